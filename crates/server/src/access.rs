//! Who is answered: names of this server, tokens, origins; and headers that keep browsers from
//! doing more with an answer than showing it. Stands before everything else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, ORIGIN,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Redirect, Response};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::Access;
use super::problem::Problem;
use selftest_text::digest;

/// Paths that need no token.
const OPEN: [&str; 3] = ["/healthz", "/favicon.ico", LOGIN];

/// Where the token is asked for.
pub(super) const LOGIN: &str = "/login";

const HEADERS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // With `no-referrer` browsers hide the origin of forms as well: they send `Origin: null`, as
    // other sites can too.
    (REFERRER_POLICY, "same-origin"),
    (X_FRAME_OPTIONS, "DENY"),
    (CACHE_CONTROL, "no-cache"),
];

/// Knows who may ask.
pub(super) struct Guard {
    address: SocketAddr,
    hosts: Vec<String>,
    token: Option<SecretString>,
}

impl Guard {
    pub(super) fn new(access: Access, address: SocketAddr) -> Self {
        Self { address, hosts: access.hosts, token: access.token }
    }

    /// Whether that is a name of this server. A page of another site can point its own name at
    /// this machine (DNS rebinding), but it cannot make a browser send another one.
    fn is_own(&self, authority: &str) -> bool {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
            _ => (authority, Some(80)),
        };
        let named =
            |name: &String| name.eq_ignore_ascii_case(host) || name.eq_ignore_ascii_case(authority);
        if port.is_some() && self.hosts.iter().any(named) {
            return true;
        }
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_own = match address.unwrap_or(host).parse::<IpAddr>() {
            Ok(ip) => {
                let own = self.address.ip();
                // Nobody can point an address elsewhere.
                own.is_unspecified()
                    || [own, Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()].contains(&ip)
            }
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        };
        is_own && port == Some(self.address.port())
    }

    /// Whether that is the token. Compares digests, whose bytes nobody can choose, and all of
    /// them, so that the time says nothing.
    pub(super) fn admits(&self, given: &str) -> bool {
        self.token.as_ref().is_none_or(|token| same(given, token.expose_secret()))
    }

    pub(super) fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// Name of the cookie: browsers do not tell ports apart.
    pub(super) fn cookie_name(&self) -> String {
        format!("selftest_{}", self.address.port())
    }

    /// The value of the cookie: it shows that its owner knew the token, without showing it.
    pub(super) fn cookie_value(&self) -> Option<String> {
        let token = self.token.as_ref()?.expose_secret();
        Some(digest::of_bytes(format!("selftest cookie {token}").as_bytes()))
    }

    fn has_token(&self, request: &Request) -> bool {
        let Some(expected) = self.cookie_value() else {
            return true;
        };
        let bearer = text(request, &AUTHORIZATION)
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        if let Some((_, token)) = bearer {
            return self.admits(token.trim());
        }
        let name = self.cookie_name();
        let cookies = request.headers().get_all(COOKIE).iter();
        let mut cookies =
            cookies.filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(';'));
        cookies.any(|cookie| {
            cookie
                .trim()
                .split_once('=')
                .is_some_and(|(key, value)| key == name && same(value, &expected))
        })
    }

    /// Why a request is not answered.
    fn refusal(&self, request: &Request) -> Option<Response> {
        let misdirected = || {
            let detail = "this server does not answer to that host name; see --host";
            Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail).into_response())
        };
        let mut hosts = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return misdirected();
        };
        let Some(host) = host.to_str().ok().filter(|host| self.is_own(host)) else {
            return misdirected();
        };
        if request.uri().authority().is_some_and(|authority| !self.is_own(authority.as_str())) {
            return misdirected();
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        if !reads && is_foreign(request, host) {
            let detail = "the request comes from a page of another site";
            return Some(Problem::new(StatusCode::FORBIDDEN, detail).into_response());
        }
        let path = request.uri().path();
        if OPEN.contains(&path) || self.has_token(request) {
            return None;
        }
        let accepts = text(request, &ACCEPT).unwrap_or_default();
        if *request.method() == Method::GET && accepts.contains("text/html") {
            return Some(Redirect::to(LOGIN).into_response());
        }
        let detail = "this server asks for its token, as `Authorization: Bearer …`";
        let problem = Problem::new(StatusCode::UNAUTHORIZED, detail);
        let scheme = HeaderValue::from_static("Bearer realm=\"selftest\"");
        Some(problem.with(WWW_AUTHENTICATE, scheme).into_response())
    }
}

/// Whether a browser says that another site makes the request. Programs say nothing.
fn is_foreign(request: &Request, host: &str) -> bool {
    let headers = request.headers();
    let other_site = text(request, &HeaderName::from_static("sec-fetch-site"))
        .is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let other_origin = headers.get(ORIGIN).is_some_and(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        !origin.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
    });
    other_site || other_origin
}

fn text<'r>(request: &'r Request, name: &HeaderName) -> Option<&'r str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

fn same(given: &str, expected: &str) -> bool {
    let (given, expected) = (Sha256::digest(given), Sha256::digest(expected));
    given.iter().zip(expected.iter()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// Lets requests through that may be answered.
pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.refusal(&request) {
        Some(response) => response,
        None => next.run(request).await,
    }
}

/// Adds the headers that every answer carries. There are none of CORS: no other site may read.
pub(super) async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str, hosts: &[&str]) -> Guard {
        let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        Guard::new(Access { token: None, hosts }, address.parse().unwrap())
    }

    #[test]
    fn names_of_this_server() {
        let own = guard("127.0.0.1:7878", &["box.example", "proxy.example:8443"]);
        for host in [
            "127.0.0.1:7878",
            "localhost:7878",
            "LocalHost:7878",
            "[::1]:7878",
            "box.example",
            "BOX.example:1",
            "proxy.example:8443",
        ] {
            assert!(own.is_own(host), "{host}");
        }
        for host in [
            "",
            ":",
            "evil.example",
            "evil.example:7878",
            "localhost",
            "localhost:7879",
            "127.0.0.1",
            "127.0.0.1:",
            "127.0.0.2:7878",
            "[::1]",
            "::1:7878:x",
            "localhost.evil.example:7878",
            "proxy.example",
            "box.example:x",
            "10.0.0.1:7878",
        ] {
            assert!(!own.is_own(host), "{host}");
        }
        assert!(guard("127.0.0.1:80", &[]).is_own("localhost"));
        let any = guard("0.0.0.0:7878", &[]);
        assert!(any.is_own("10.0.0.1:7878") && !any.is_own("evil.example:7878"));
    }
}
