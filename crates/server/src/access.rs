//! Access control: allowed host names, tokens and request origins, and security headers on every
//! response. Runs before everything else.
//!
//! Guessing is slowed down: responses to wrong tokens of a client are increasingly delayed and
//! logged, without the token. The table of clients is bounded.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, ORIGIN,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Redirect, Response};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use super::AccessSettings;
use super::problem::Problem;
use selftest_text::digest;

/// Paths that need no token.
const PUBLIC_PATHS: [&str; 4] = ["/healthz", "/readyz", "/favicon.ico", LOGIN];

/// Query parameters that may contain a token by mistake.
const TOKEN_PARAMETERS: [&str; 4] = ["token", "access_token", "auth_token", "api_key"];

/// Path of the login page.
pub(super) const LOGIN: &str = "/login";

const SECURITY_HEADERS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // With `no-referrer`, browsers hide the origin of forms as well: they send `Origin: null`, as
    // other sites can too.
    (REFERRER_POLICY, "same-origin"),
    (X_FRAME_OPTIONS, "DENY"),
    (CACHE_CONTROL, "no-cache"),
];

/// Decides which requests are allowed.
pub(super) struct AccessGuard {
    address: SocketAddr,
    hosts: Vec<String>,
    token: Option<SecretString>,
    attempts: LoginAttempts,
}

impl AccessGuard {
    pub(super) fn new(access: AccessSettings, address: SocketAddr) -> Self {
        let attempts = LoginAttempts::default();
        Self { address, hosts: access.hosts, token: access.token, attempts }
    }

    /// Returns true for a name of this server. A page of another site can point its own name at
    /// this machine (DNS rebinding), but it cannot make a browser send a different `Host`.
    fn is_own_host(&self, authority: &str) -> bool {
        let (host, port) = match authority.rsplit_once(':') {
            // The last colon of an IPv6 address in brackets does not separate a port.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
            // Without a port, `Host` means HTTP's default port.
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
                // A literal address cannot be rebound.
                own.is_unspecified()
                    || [own, Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()].contains(&ip)
            }
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        };
        is_own && port == Some(self.address.port())
    }

    /// Checks a token. The response to wrong tokens of a client is increasingly delayed.
    pub(super) async fn check_token(&self, client: IpAddr, given: &str) -> TokenCheck {
        let Some(token) = &self.token else { return TokenCheck::Correct };
        self.attempts.check_token(client, || digests_match(given, token.expose_secret())).await
    }

    pub(super) fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// Returns the name of the cookie. It contains the port, because browsers share cookies between
    /// ports.
    pub(super) fn cookie_name(&self) -> String {
        format!("selftest_{}", self.address.port())
    }

    /// Returns the value of the cookie, which proves knowledge of the token without revealing it.
    pub(super) fn cookie_value(&self) -> Option<String> {
        let token = self.token.as_ref()?.expose_secret();
        Some(digest::sha256_hex(format!("selftest cookie {token}").as_bytes()))
    }

    /// Returns true if a request carries the login cookie.
    fn has_cookie(&self, request: &Request) -> bool {
        let Some(expected) = self.cookie_value() else { return true };
        let name = self.cookie_name();
        let cookies = request.headers().get_all(COOKIE).iter();
        // Browsers may send several cookies of one name, of this path and of others; any valid one
        // is enough.
        let mut cookies =
            cookies.filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(';'));
        cookies.any(|cookie| {
            cookie
                .trim()
                .split_once('=')
                .is_some_and(|(key, value)| key == name && digests_match(value, &expected))
        })
    }

    /// Extracts the credentials of a request.
    fn credentials(&self, request: &Request) -> Credentials {
        if self.token.is_none() || PUBLIC_PATHS.contains(&request.uri().path()) {
            return Credentials::Granted;
        }
        // A token takes precedence over the cookie.
        if let Some(token) = bearer_token(request) {
            return Credentials::Token { client: client_address(request), token: token.to_owned() };
        }
        if self.has_cookie(request) {
            return Credentials::Granted;
        }
        let accepts = header_text(request, &ACCEPT).unwrap_or_default();
        // Only a page can be redirected to the form: a redirected POST would lose what was sent,
        // and a program would take the form for its result.
        let is_page = *request.method() == Method::GET && accepts.contains("text/html");
        Credentials::Missing { is_page }
    }

    /// Returns the error response for a request that must be rejected regardless of its token.
    fn rejection(&self, request: &Request) -> Option<Response> {
        let misdirected = || {
            let detail = "this server does not answer to that host name; see --host";
            Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail).into_response())
        };
        let mut hosts = request.headers().get_all(HOST).iter();
        // Several `Host` headers would be ambiguous.
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return misdirected();
        };
        let Some(host) = host.to_str().ok().filter(|host| self.is_own_host(host)) else {
            return misdirected();
        };
        // Absolute-form requests name the host in the URI as well.
        if request.uri().authority().is_some_and(|authority| !self.is_own_host(authority.as_str()))
        {
            return misdirected();
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        // Forms on other sites must not change anything (CSRF).
        if !reads && is_cross_site(request, host) {
            let detail = "the request comes from a page of another site";
            return Some(Problem::new(StatusCode::FORBIDDEN, detail).into_response());
        }
        // Refused even if the token is wrong or none is required, so that no client gets used to
        // it.
        if has_token_parameter(request.uri().query().unwrap_or_default()) {
            let detail = "the address holds a token, and addresses are kept in logs and \
                          histories: send it as `Authorization: Bearer …`, or give it at /login";
            return Some(Problem::bad_request(detail).into_response());
        }
        None
    }
}

/// Credentials of a request.
enum Credentials {
    /// Access is granted: no token is required, or the cookie is valid.
    Granted,
    /// A token that must be checked.
    Token { client: IpAddr, token: String },
    /// No credentials. If `is_page` is set, the client is a browser and is redirected to the login
    /// page.
    Missing { is_page: bool },
}

fn unauthorized(detail: &str) -> Response {
    let problem = Problem::new(StatusCode::UNAUTHORIZED, detail);
    let scheme = HeaderValue::from_static("Bearer realm=\"selftest\"");
    problem.with_header(WWW_AUTHENTICATE, scheme).into_response()
}

/// Returns the error for a client with too many pending wrong tokens.
pub(super) fn too_many_tokens() -> Problem {
    let detail = "too many wrong tokens have come from your address; wait a moment";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(5)
}

/// Returns the bearer token of a request.
fn bearer_token(request: &Request) -> Option<&str> {
    let (scheme, token) = header_text(request, &AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the client's address.
fn client_address(request: &Request) -> IpAddr {
    let client = request.extensions().get::<ConnectInfo<SocketAddr>>();
    client.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(client)| client.ip())
}

/// Returns true if a query contains a parameter for a token.
fn has_token_parameter(query: &str) -> bool {
    let names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    names.into_iter().any(|name| TOKEN_PARAMETERS.iter().any(|it| it.eq_ignore_ascii_case(name)))
}

/// Returns true if the browser reports that another site makes the request. Programs send no such
/// headers.
fn is_cross_site(request: &Request, host: &str) -> bool {
    let headers = request.headers();
    let other_site = header_text(request, &HeaderName::from_static("sec-fetch-site"))
        .is_some_and(|site| !matches!(site, "same-origin" | "none"));
    // Older browsers send only `Origin`.
    let other_origin = headers.get(ORIGIN).is_some_and(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        !origin.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
    });
    other_site || other_origin
}

fn header_text<'r>(request: &'r Request, name: &HeaderName) -> Option<&'r str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

/// Compares digests in constant time. Clients cannot choose the bytes of a digest, so timing
/// reveals nothing about the token.
fn digests_match(given: &str, expected: &str) -> bool {
    let (given, expected) = (Sha256::digest(given), Sha256::digest(expected));
    given.iter().zip(expected.iter()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// Middleware that rejects requests without access.
pub(super) async fn check_access(
    State(guard): State<Arc<AccessGuard>>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(response) = guard.rejection(&request) {
        return response;
    }
    match guard.credentials(&request) {
        Credentials::Granted => {}
        Credentials::Missing { is_page: true } => return Redirect::to(LOGIN).into_response(),
        Credentials::Missing { is_page: false } => {
            return unauthorized("this server asks for its token, as `Authorization: Bearer …`");
        }
        Credentials::Token { client, token } => match guard.check_token(client, &token).await {
            TokenCheck::Correct => {}
            TokenCheck::Wrong => return unauthorized("that is not the token of this server"),
            TokenCheck::TooMany => return too_many_tokens().into_response(),
        },
    }
    next.run(request).await
}

/// Middleware that adds security headers to every response. There are no CORS headers, so other
/// sites cannot read responses.
pub(super) async fn add_security_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in SECURITY_HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Maximum number of tracked clients; when full, the least recently active one is removed.
const MAX_CLIENTS: usize = 1024;
/// Maximum number of pending wrong tokens per client; further tokens are rejected unchecked.
const MAX_WAITING: u32 = 4;
/// Delay of the response to the first wrong token, doubled for each further one.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay of a response.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Time without attempts after which a client's failures are forgotten.
const FORGET_AFTER: Duration = Duration::from_mins(15);

/// Result of checking a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenCheck {
    /// The token is correct.
    Correct,
    /// The token is wrong.
    Wrong,
    /// The token was not checked: the client has too many pending wrong tokens.
    TooMany,
}

#[derive(Debug, Clone, Copy)]
struct ClientAttempts {
    failures: u32,
    pending: u32,
    last: Instant,
}

/// Clients that have sent wrong tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct LoginAttempts(Arc<Mutex<HashMap<IpAddr, ClientAttempts>>>);

impl LoginAttempts {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, ClientAttempts>> {
        // The table only holds counters, so it is valid even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a token of a client. The result for a wrong token is delayed.
    pub(super) async fn check_token(
        &self,
        client: IpAddr,
        is_right: impl FnOnce() -> bool,
    ) -> TokenCheck {
        let client = client_network(client);
        let failures = {
            let mut clients = self.lock();
            // Pending responses keep their entry: their end lowers the count in it.
            clients.retain(|_, known| known.pending > 0 || known.last.elapsed() < FORGET_AFTER);
            // Rejected unchecked: otherwise parallel requests would bypass the delay.
            if clients.get(&client).is_some_and(|known| known.pending >= MAX_WAITING) {
                return TokenCheck::TooMany;
            }
            // A right token clears the failures of its address: a person who mistyped it is not
            // slowed down afterwards.
            if is_right() {
                clients.remove(&client);
                return TokenCheck::Correct;
            }
            make_room(&mut clients);
            let fresh = ClientAttempts { failures: 0, pending: 0, last: Instant::now() };
            let known = clients.entry(client).or_insert(fresh);
            (known.failures, known.pending) = (known.failures.saturating_add(1), known.pending + 1);
            known.last = Instant::now();
            known.failures
        };
        let _waiting = PendingResponse { attempts: self.clone(), client };
        // Logged only at powers of two, so that guessing cannot flood the log.
        if failures.is_power_of_two() {
            tracing::warn!("a wrong token from {client}, number {failures} in a row");
        }
        sleep(response_delay(failures)).await;
        TokenCheck::Wrong
    }
}

/// A delayed response, counted until it is sent or the client disconnects.
struct PendingResponse {
    attempts: LoginAttempts,
    client: IpAddr,
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        if let Some(known) = self.attempts.lock().get_mut(&self.client) {
            known.pending = known.pending.saturating_sub(1);
        }
    }
}

/// Evicts a client if the table is full.
fn make_room(clients: &mut HashMap<IpAddr, ClientAttempts>) {
    if clients.len() >= MAX_CLIENTS
        && let Some(oldest) =
            clients.iter().min_by_key(|(_, known)| known.last).map(|(client, _)| *client)
    {
        clients.remove(&oldest);
    }
}

/// Returns the key of a client: its address, or for IPv6 the /64 network usually assigned to one
/// site.
fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            // The loopback address is a client of its own.
            if address.is_loopback() { client } else { Ipv6Addr::from(network).into() }
        }
        address @ IpAddr::V4(_) => address,
    }
}

fn response_delay(failures: u32) -> Duration {
    // Bounded before the power: 2 to the 32nd no longer fits.
    let doubled = failures.saturating_sub(1).min(16);
    (FIRST_DELAY * 2_u32.pow(doubled)).min(MAX_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str, hosts: &[&str]) -> AccessGuard {
        let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        AccessGuard::new(AccessSettings { token: None, hosts }, address.parse().unwrap())
    }

    #[test]
    fn tokens_in_queries() {
        for query in ["token=x", "a=b&Access_Token=x", "token", "limit=1&api_key="] {
            assert!(has_token_parameter(query), "{query}");
        }
        for query in ["", "q=token", "tokens=3", "a=b&search=token=x"] {
            assert!(!has_token_parameter(query), "{query}");
        }
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
            assert!(own.is_own_host(host), "{host}");
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
            assert!(!own.is_own_host(host), "{host}");
        }
        assert!(guard("127.0.0.1:80", &[]).is_own_host("localhost"));
        let any = guard("0.0.0.0:7878", &[]);
        assert!(any.is_own_host("10.0.0.1:7878") && !any.is_own_host("evil.example:7878"));
    }

    const CLIENT: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    #[test]
    fn each_wrong_token_is_answered_later_up_to_a_limit() {
        let delays =
            [1, 2, 3, 6, 7, 100, u32::MAX].map(|failures| response_delay(failures).as_millis());
        assert_eq!(delays, [100, 200, 400, 3200, 5000, 5000, 5000]);
    }

    #[test]
    fn one_site_is_one_client() {
        let of = |text: &str| client_network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(of("::1"), "::1");
    }

    #[tokio::test]
    async fn a_right_token_begins_anew_and_too_many_at_once_are_not_looked_at() {
        let attempts = LoginAttempts::default();
        assert_eq!(attempts.check_token(CLIENT, || false).await, TokenCheck::Wrong);
        assert_eq!(attempts.check_token(CLIENT, || true).await, TokenCheck::Correct);
        assert!(attempts.lock().is_empty());
        let wrong = || {
            let attempts = attempts.clone();
            tokio::spawn(async move { attempts.check_token(CLIENT, || false).await })
        };
        let held = [(); MAX_WAITING as usize].map(|()| wrong());
        while attempts.lock().get(&CLIENT).is_none_or(|known| known.pending < MAX_WAITING) {
            tokio::task::yield_now().await;
        }
        let looked_at = std::cell::Cell::new(false);
        let judged = attempts.check_token(CLIENT, || !looked_at.replace(true)).await;
        assert_eq!((judged, looked_at.get()), (TokenCheck::TooMany, false));
        for task in held {
            task.abort();
            let _ = task.await;
        }
        assert_eq!(attempts.lock()[&CLIENT].pending, 0, "whoever hangs up waits no more");
    }

    #[tokio::test]
    async fn the_table_is_bounded() {
        let mut clients = HashMap::new();
        for number in 0..=u32::try_from(MAX_CLIENTS).unwrap() {
            make_room(&mut clients);
            let client = ClientAttempts { failures: 1, pending: 0, last: Instant::now() };
            clients.insert(IpAddr::V4(number.into()), client);
        }
        assert_eq!(clients.len(), MAX_CLIENTS);
        assert!(!clients.contains_key(&IpAddr::V4(0.into())));
    }
}
