//! The HTTP client of the adapter: one request at a time, bounded response bodies, and one-line
//! errors with the method, the address and the cause. Independent of tasks.
//!
//! A request is repeated only if that is safe: it only reads, the server refused it without acting
//! on it (429, 503), or nothing was sent.
//!
//! Templates of paths and bodies are scanned once, so that a value that looks like a placeholder is not
//! replaced again. Values are inserted into a body as JSON strings and into an address
//! percent-encoded.

use std::fmt::Write as _;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Url, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::stream::DONE;
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
        // Before the timeout: a timeout of the connection is both, and nothing was sent yet.
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
    /// True if the server calls it server-sent events.
    pub(super) is_event_stream: bool,
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
        // A configured token goes first, because a request has one `Authorization` header.
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
            fill_path(&call.path, values)
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
            builder = builder.json(&fill_body(body, values, messages));
        }
        let transport = |error: reqwest::Error| RequestError::transport(&request, &error);
        let mut sent = builder.build().map_err(transport)?;
        let mut redirects = 0;
        let mut response = loop {
            // Sending consumes the request, and a redirect needs it once more.
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
        let kind = response.headers().get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
        let is_event_stream = kind.to_ascii_lowercase().starts_with(b"text/event-stream");
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(transport)? {
            // Checked for each chunk, because a response need not state its length.
            if body.len() + chunk.len() > MAX_BODY {
                let what = format!("{request} answered with more than {MAX_BODY} bytes");
                return Err(RequestError::new(RequestFailure::Unreadable, what));
            }
            body.extend_from_slice(&chunk);
            // Some servers keep the connection open behind the last event.
            if is_event_stream && body.trim_ascii_end().ends_with(DONE.as_bytes()) {
                break;
            }
        }
        if status.is_success() {
            return Ok(HttpAnswer { request, body, is_event_stream });
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
    // Layers of the HTTP stack repeat the message of their cause.
    words.dedup();
    if words.is_empty() {
        "the request failed".to_owned()
    } else {
        one_line(&words.join(": "), MAX_QUOTE)
    }
}

/// Longest wait between two attempts, unless the server asks for more.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// How long a task may be unknown to a server that has just accepted it.
const EARLY_LIMIT: Duration = Duration::from_secs(10);

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestFailure {
    /// The request is wrong, and was not sent.
    Invalid,
    /// No connection: nothing was sent.
    NoConnection,
    /// The connection broke after the request was sent.
    Broken,
    /// No complete response in time.
    TooSlow,
    /// An error status.
    Status(u16),
    /// A web page instead of JSON: a proxy answered.
    WebPage,
    /// The response is something else than expected.
    Unreadable,
}

/// A request, as far as it decides about repeating it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestRole {
    /// True if sending it twice has the effect of sending it once.
    pub(super) is_idempotent: bool,
    /// True if the server has answered something sensible about the task, or the API.
    pub(super) is_known: bool,
}

/// Who is at fault for a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestBlame {
    /// The system under test.
    System,
    /// Network, proxy or configuration, for this case.
    Infrastructure,
    /// The same, for every case.
    Outage,
}

impl RequestFailure {
    /// Returns true if the request may be sent again.
    pub(super) const fn may_repeat(self, role: RequestRole) -> bool {
        match self {
            RequestFailure::NoConnection | RequestFailure::Status(429 | 503) => true,
            RequestFailure::Broken
            | RequestFailure::TooSlow
            | RequestFailure::Status(408 | 425 | 502 | 504 | 520..=530) => role.is_idempotent,
            // A poll may overtake the creation of the task, until the server has shown it once.
            RequestFailure::Status(404) => role.is_idempotent && !role.is_known,
            RequestFailure::Invalid
            | RequestFailure::Status(_)
            | RequestFailure::WebPage
            | RequestFailure::Unreadable => false,
        }
    }

    /// Returns who is at fault if the request is not sent again.
    pub(super) const fn blame(self, role: RequestRole) -> RequestBlame {
        match self {
            // No case can succeed: a refused key, an empty account, a server that stays overloaded.
            RequestFailure::NoConnection
            | RequestFailure::Status(300..=399 | 401 | 402 | 407 | 429 | 503) => {
                RequestBlame::Outage
            }
            // A gateway whose server did not come back while the request was repeated.
            RequestFailure::Status(502 | 504 | 520..=530) if role.is_idempotent => {
                RequestBlame::Outage
            }
            RequestFailure::Broken
            | RequestFailure::WebPage
            // 421 and 511 come from a proxy or a network that wants a login first.
            | RequestFailure::Status(403 | 408 | 421 | 425 | 502 | 504 | 511 | 520..=530 | 599) => {
                RequestBlame::Infrastructure
            }
            // Another address or method, or a server that is still starting.
            RequestFailure::Status(404 | 405 | 501) if !role.is_known => {
                RequestBlame::Infrastructure
            }
            RequestFailure::Invalid
            | RequestFailure::TooSlow
            | RequestFailure::Status(_)
            | RequestFailure::Unreadable => RequestBlame::System,
        }
    }

    /// Returns one thing that the user can do.
    pub(super) const fn hint(self) -> Option<&'static str> {
        match self {
            RequestFailure::Status(401 | 403) => {
                Some("name the variable with the server's token in sut.http.token_variable")
            }
            RequestFailure::Status(404) => {
                Some("correct sut.http.base_url, or the path of the call in sut.http")
            }
            RequestFailure::Status(405 | 501) => Some("correct the method of the call in sut.http"),
            RequestFailure::Status(300..=399) => {
                Some("write the address that it leads to into sut.http.base_url")
            }
            RequestFailure::WebPage => {
                Some("is this the address of the API, and not of a proxy or a login page?")
            }
            _ => None,
        }
    }
}

/// Decides when the next attempt is, or returns `None` if it would be too late. `failed` attempts
/// took `spent` so far, and the case has `left`.
pub(super) fn pause(
    failure: RequestFailure,
    asked: Option<Duration>,
    failed: u32,
    spent: Duration,
    left: Duration,
) -> Option<Duration> {
    // The bound keeps the shift small; the fourth doubling is beyond the longest pause anyway.
    let usual = Duration::from_millis(250).saturating_mul(1 << failed.min(4)).min(MAX_PAUSE);
    let pause = asked.unwrap_or(usual);
    // Only a task that the server does not know yet has this bound; the others end with the case.
    let is_early = failure != RequestFailure::Status(404) || spent + pause < EARLY_LIMIT;
    (is_early && pause < left).then_some(pause)
}

/// Replaces each `{name}` with its value after applying `encode`.
fn fill(template: &str, values: &[(&str, &str)], encode: impl Fn(&str) -> String) -> String {
    // Only the template is searched, so that a `{name}` within a value stays as it is.
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        let found = values.iter().find_map(|(name, value)| {
            Some((rest.strip_prefix('{')?.strip_prefix(name)?.strip_prefix('}')?, value))
        });
        if let Some((after, value)) = found {
            filled.push_str(&encode(value));
            rest = after;
        } else {
            // An unknown placeholder stays as it is.
            filled.push('{');
            rest = &rest[1..];
        }
    }
    filled.push_str(rest);
    filled
}

/// Fills a path. Values are percent-encoded except letters, digits and `-_.~`.
fn fill_path(template: &str, values: &[(&str, &str)]) -> String {
    fill(template, values, |value| {
        value.bytes().fold(String::new(), |mut encoded, byte| {
            if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
            encoded
        })
    })
}

/// Fills the strings of a body; keys are not changed. A string `{messages}` becomes the list of
/// messages.
fn fill_body(template: &Value, values: &[(&str, &str)], messages: &[Value]) -> Value {
    let body = |item| fill_body(item, values, messages);
    match template {
        Value::String(text) if text == "{messages}" => Value::from(messages),
        Value::String(text) => Value::String(fill(text, values, ToOwned::to_owned)),
        Value::Array(items) => items.iter().map(body).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), body(value))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use RequestBlame::*;
    use RequestFailure::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_of_failed_requests() {
        let role = |is_idempotent, is_known| RequestRole { is_idempotent, is_known };
        let (post, get, late) = (role(false, false), role(true, false), role(true, true));
        // The failure; whether POST, GET and a later GET are repeated; whose fault each is then.
        for (failure, repeated, blamed) in [
            (NoConnection, [true, true, true], [Outage; 3]),
            (Broken, [false, true, true], [Infrastructure; 3]),
            (Status(429), [true, true, true], [Outage; 3]),
            (Status(503), [true, true, true], [Outage; 3]),
            (Status(502), [false, true, true], [Infrastructure, Outage, Outage]),
            (Status(504), [false, true, true], [Infrastructure, Outage, Outage]),
            (Status(522), [false, true, true], [Infrastructure, Outage, Outage]),
            (Status(404), [false, true, false], [Infrastructure, Infrastructure, System]),
            (Status(405), [false; 3], [Infrastructure, Infrastructure, System]),
            (Status(501), [false; 3], [Infrastructure, Infrastructure, System]),
            (Status(401), [false; 3], [Outage; 3]),
            (Status(402), [false; 3], [Outage; 3]),
            (Status(403), [false; 3], [Infrastructure; 3]),
            (Status(511), [false; 3], [Infrastructure; 3]),
            (Status(302), [false; 3], [Outage; 3]),
            (Status(500), [false; 3], [System; 3]),
            (Status(400), [false; 3], [System; 3]),
            (Status(409), [false; 3], [System; 3]),
            (TooSlow, [false, true, true], [System; 3]),
            (WebPage, [false; 3], [Infrastructure; 3]),
            (Unreadable, [false; 3], [System; 3]),
            (Invalid, [false; 3], [System; 3]),
        ] {
            for (at, role) in [post, get, late].into_iter().enumerate() {
                assert_eq!(failure.may_repeat(role), repeated[at], "{failure:?} {role:?}");
                assert_eq!(failure.blame(role), blamed[at], "{failure:?} {role:?}");
            }
        }
    }

    #[test]
    fn waits_fit_into_the_case() {
        let second = Duration::from_secs(1);
        let left = 12 * second;
        let at = |failed| pause(Status(503), None, failed, Duration::ZERO, left).unwrap();
        assert_eq!(at(0), Duration::from_millis(250));
        assert_eq!((at(3), at(9)), (2 * second, 2 * second));
        let asked = |asked| pause(Status(429), Some(asked), 0, Duration::ZERO, left);
        assert_eq!(asked(5 * second), Some(5 * second));
        assert_eq!(asked(86_400 * second), None);
        assert_eq!(pause(Status(503), None, 0, 11 * second, Duration::ZERO), None);
        assert!(pause(Status(404), None, 3, 7 * second, 60 * second).is_some());
        assert_eq!(pause(Status(404), None, 3, 9 * second, 60 * second), None);
    }

    const VALUES: &[(&str, &str)] =
        &[("prompt", "say \"{task_id}\"\n"), ("task_id", "../a b?#é"), ("task_type", "READ_INFO")];

    #[test]
    fn bodies_are_json_whatever_the_values_hold() {
        assert_eq!(
            fill_body(
                &json!({"{prompt}": ["{prompt}", 1, null], "t": {"x": "<{task_type}> {other} {"}}),
                VALUES,
                &[]
            ),
            json!({
                "{prompt}": ["say \"{task_id}\"\n", 1, null],
                "t": {"x": "<READ_INFO> {other} {"}
            })
        );
    }

    #[test]
    fn messages_are_a_list_and_not_templates() {
        let messages = [json!({"role": "user", "content": "say {prompt} and {messages}"})];
        assert_eq!(
            fill_body(&json!({"m": "{messages}", "n": "x{messages}"}), VALUES, &messages),
            json!({"m": messages, "n": "x{messages}"})
        );
    }

    #[test]
    fn paths_are_encoded() {
        assert_eq!(
            fill_path("/api/tasks/{task_id}/reply", VALUES),
            "/api/tasks/..%2Fa%20b%3F%23%C3%A9/reply"
        );
        assert_eq!(fill_path("/t?type={task_type}&{x", VALUES), "/t?type=READ_INFO&{x");
    }
}
