//! The HTTP client of the adapter: one request at a time, bounded response bodies, and one-line
//! errors with the method, the address and the cause. Independent of tasks.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{Client, Method, Url, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::retry::RequestFailure;
use super::template;
use crate::sut::SutError;
use crate::sut::sut_settings::HttpCall;
use selftest_models::http;
use selftest_models::server_address::ServerAddress;
use selftest_text::normal::{NormalText, TextChange, decode, decode_json};
use selftest_text::one_line;

/// Maximum size of a response body in bytes.
const MAX_BODY: usize = 4 << 20;

/// Timeout for opening a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Timeout for one request to a task API, which responds at once and is polled.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_mins(1);
/// Timeout for one request that is answered when the work is done. The limit of the case ends it
/// earlier.
pub(super) const TURN_LIMIT: Duration = Duration::from_hours(6);

/// Maximum number of redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// First bytes of a body that a server compressed although it was asked not to.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Maximum length of untrusted text in an error message, in bytes.
const MAX_QUOTE: usize = 200;

pub(super) struct TaskClient {
    client: Client,
    base: Url,
    token: Option<SecretString>,
}

/// A request failed, or its response is unusable.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(super) struct RequestError {
    /// Error on one line, with method and address.
    pub(super) what: String,
    pub(super) failure: RequestFailure,
    /// How long the server asks to wait.
    pub(super) retry_after: Option<Duration>,
}

impl RequestError {
    fn new(failure: RequestFailure, what: String) -> Self {
        Self { what, failure, retry_after: None }
    }

    /// Creates the error of a request without a response.
    fn transport(request: &str, error: &reqwest::Error) -> Self {
        let failure = if error.is_connect() {
            RequestFailure::NoConnection
        } else if error.is_timeout() {
            RequestFailure::TooSlow
        } else {
            RequestFailure::Broken
        };
        Self::new(failure, format!("{request}: {}", causes(error)))
    }
}

/// A successful response.
pub(super) struct HttpAnswer {
    /// Method and address, for messages.
    pub(super) request: String,
    body: Vec<u8>,
}

impl HttpAnswer {
    /// Parses the body as JSON, with the changes that were needed to decode it. The error describes
    /// what was received instead.
    pub(super) fn json(&self) -> Result<(Value, Vec<TextChange>), RequestError> {
        let decoded = decode_json(&self.body);
        let value = serde_json::from_str(&decoded.text).map_err(|_| {
            let (failure, what) = match decoded.text.trim_start() {
                "" => (RequestFailure::Unreadable, "an empty body".to_owned()),
                _ if self.body.starts_with(GZIP) => {
                    (RequestFailure::Unreadable, "a body compressed unasked (gzip)".to_owned())
                }
                html if html.starts_with('<') => {
                    (RequestFailure::WebPage, format!("HTML: {}", one_line(html, MAX_QUOTE)))
                }
                other => {
                    (RequestFailure::Unreadable, format!("text: {}", one_line(other, MAX_QUOTE)))
                }
            };
            let what = format!("{} answered with no JSON but {what}", self.request);
            RequestError::new(failure, what)
        })?;
        Ok((value, decoded.changes))
    }

    /// Decodes the body as text.
    pub(super) fn text(&self) -> NormalText<'_> {
        decode(&self.body)
    }
}

impl TaskClient {
    pub(super) fn new(base: &str, token: Option<SecretString>) -> Result<Self, SutError> {
        let not_started = |what: String| SutError::NotStarted {
            what,
            hint: Some("write sut.http.base_url as http://host:port".to_owned()),
        };
        let address = ServerAddress::parse(base).map_err(|error| not_started(error.to_string()))?;
        let shown = address.base();
        // The paths of the calls would come behind the query.
        if !base.contains("://") || address.url("") != shown {
            return Err(not_started(format!("`{shown}` is no plain http:// address")));
        }
        let base: Url = shown
            .parse()
            .map_err(|error| not_started(format!("`{shown}` is no address: {error}")))?;
        let mut headers = HeaderMap::new();
        if let Some(credentials) = address.authorization().filter(|_| token.is_none()) {
            headers.insert(AUTHORIZATION, credentials);
        }
        let builder = http::client_builder(base.as_str())
            .default_headers(headers)
            .connect_timeout(CONNECT_LIMIT)
            // Prompts and the token must not reach another host: see `send`.
            .redirect(redirect::Policy::none());
        let client = builder.build().map_err(|error| {
            not_started(format!("cannot build a client for {shown}: {}", causes(&error)))
        })?;
        Ok(Self { client, base, token })
    }

    /// Returns the address without credentials.
    pub(super) fn base(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Returns true if the server runs on this machine.
    pub(super) fn is_local(&self) -> bool {
        http::is_loopback(&self.base)
    }

    /// Checks that a server responds at the address.
    pub(super) async fn reach(&self) -> Result<(), RequestError> {
        let request = self.client.get(self.base.clone()).timeout(REQUEST_LIMIT);
        let answer = request.send().await;
        let request = format!("GET {}", self.base);
        answer.map(drop).map_err(|error| RequestError::transport(&request, &error))
    }

    /// Sends a call with these values in its templates. Any status but 2xx is an error.
    pub(super) async fn send(
        &self,
        call: &HttpCall,
        values: &[(&str, &str)],
        messages: &[Value],
        limit: Duration,
    ) -> Result<HttpAnswer, RequestError> {
        let address = format!(
            "{}{}",
            self.base.as_str().trim_end_matches('/'),
            template::path(&call.path, values)
        );
        let request = format!("{} {address}", call.method);
        let invalid = |what: String| RequestError::new(RequestFailure::Invalid, what);
        let address: Url =
            address.parse().map_err(|error| invalid(format!("{request}: {error}")))?;
        // A path such as `@host/` would change the origin and leak the token.
        if address.origin() != self.base.origin() {
            return Err(invalid(format!("{request} leads to another server than {}", self.base)));
        }
        let method: Method =
            call.method.parse().map_err(|_| invalid(format!("{request}: unknown method")))?;
        let mut builder = self.client.request(method, address).timeout(limit);
        if let Some(token) = &self.token {
            builder = builder.bearer_auth(token.expose_secret());
        }
        if let Some(body) = &call.body {
            builder = builder.json(&template::body(body, values, messages));
        }
        let transport = |error: reqwest::Error| RequestError::transport(&request, &error);
        let mut sent = builder.build().map_err(transport)?;
        let mut redirects = 0;
        let mut response = loop {
            let (origin, again) = (sent.url().clone(), sent.try_clone());
            let response = self.client.execute(sent).await.map_err(transport)?;
            match (again, http::followed_redirect(&origin, &response)) {
                (Some(again), Some(target)) if redirects < MAX_REDIRECTS => {
                    sent = again;
                    *sent.url_mut() = target;
                    redirects += 1;
                }
                _ => break response,
            }
        };
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(transport)? {
            // Checked for each chunk, because a response need not state its length.
            if body.len() + chunk.len() > MAX_BODY {
                let what = format!("{request} answered with more than {MAX_BODY} bytes");
                return Err(RequestError::new(RequestFailure::Unreadable, what));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return Ok(HttpAnswer { request, body });
        }
        let location = response.headers().get("location").map(|to| {
            format!(
                " to {}, which is not followed",
                one_line(&String::from_utf8_lossy(to.as_bytes()), MAX_QUOTE)
            )
        });
        let reason = status.canonical_reason().map(|reason| format!(" {reason}"));
        let status = status.as_u16();
        let text = one_line(&String::from_utf8_lossy(&body), MAX_QUOTE);
        let after = if text.is_empty() { String::new() } else { format!(": {text}") };
        Err(RequestError {
            what: format!(
                "{request} answered {status}{}{}{after}",
                reason.unwrap_or_default(),
                location.unwrap_or_default()
            ),
            failure: RequestFailure::Status(status),
            retry_after: http::retry_after(response.headers()),
        })
    }
}

/// Formats an error with its causes, innermost last. The address is omitted, because the caller
/// adds it.
fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut words = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words.push(error.to_string());
        cause = error.source();
    }
    words.dedup();
    if words.is_empty() {
        "the request failed".to_owned()
    } else {
        one_line(&words.join(": "), MAX_QUOTE)
    }
}
