//! The HTTP client of the adapter: one request at a time, bounded response bodies, and one-line
//! errors with the method, the address and the cause. Independent of tasks.

use std::time::Duration;

use reqwest::{Client, Method, Url, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::template;
use crate::sut::SutError;
use crate::sut::sut_settings::HttpCall;
use selftest_models::http;
use selftest_text::one_line;

/// Maximum size of a response body in bytes.
const MAX_BODY: usize = 4 << 20;

/// Timeout for opening a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Timeout for one request. A task API responds at once and is polled.
const REQUEST_LIMIT: Duration = Duration::from_mins(1);

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
    /// The HTTP status, if there was a response.
    pub(super) status: Option<u16>,
}

impl From<String> for RequestError {
    fn from(what: String) -> Self {
        Self { what, status: None }
    }
}

/// A successful response.
pub(super) struct HttpAnswer {
    /// Method and address, for messages.
    pub(super) request: String,
    body: Vec<u8>,
}

impl HttpAnswer {
    /// Parses the body as JSON. The error describes what was received instead.
    pub(super) fn json(&self) -> Result<Value, RequestError> {
        serde_json::from_slice(&self.body).map_err(|_| {
            let text = String::from_utf8_lossy(&self.body);
            let what = match text.trim_start() {
                "" => "an empty body".to_owned(),
                html if html.starts_with('<') => format!("HTML: {}", one_line(html, MAX_QUOTE)),
                other => format!("text: {}", one_line(other, MAX_QUOTE)),
            };
            format!("{} answered with no JSON but {what}", self.request).into()
        })
    }
}

impl TaskClient {
    pub(super) fn new(base: &str, token: Option<SecretString>) -> Result<Self, SutError> {
        let not_started = |what: String| SutError::NotStarted {
            what,
            hint: Some("write sut.http.base_url as http://host:port".to_owned()),
        };
        let shown = one_line(base, MAX_QUOTE);
        let base: Url = base
            .parse()
            .map_err(|error| not_started(format!("`{shown}` is no address: {error}")))?;
        let plain = base.query().is_none() && base.fragment().is_none();
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() || !plain {
            return Err(not_started(format!("`{shown}` is no HTTP address")));
        }
        let builder = http::client_builder(base.as_str())
            .connect_timeout(CONNECT_LIMIT)
            .timeout(REQUEST_LIMIT)
            // Prompts and the token must not reach another host.
            .redirect(redirect::Policy::none());
        let client = builder.build().map_err(|error| {
            not_started(format!("cannot build a client for {shown}: {}", causes(&error)))
        })?;
        Ok(Self { client, base, token })
    }

    /// Returns true if the server runs on this machine.
    pub(super) fn is_local(&self) -> bool {
        http::is_loopback(&self.base)
    }

    /// Checks that a server responds at the address.
    pub(super) async fn reach(&self) -> Result<(), RequestError> {
        let answer = self.client.get(self.base.clone()).send().await;
        answer.map(drop).map_err(|error| format!("GET {}: {}", self.base, causes(&error)).into())
    }

    /// Sends a call with these values in its templates. Any status but 2xx is an error.
    pub(super) async fn send(
        &self,
        call: &HttpCall,
        values: &[(&str, &str)],
    ) -> Result<HttpAnswer, RequestError> {
        let address = format!(
            "{}{}",
            self.base.as_str().trim_end_matches('/'),
            template::path(&call.path, values)
        );
        let request = format!("{} {address}", call.method);
        let address: Url = address.parse().map_err(|error| format!("{request}: {error}"))?;
        // A path such as `@host/` would change the origin and leak the token.
        if address.origin() != self.base.origin() {
            return Err(format!("{request} leads to another server than {}", self.base).into());
        }
        let method: Method =
            call.method.parse().map_err(|_| format!("{request}: unknown method"))?;
        let mut builder = self.client.request(method, address);
        if let Some(token) = &self.token {
            builder = builder.bearer_auth(token.expose_secret());
        }
        if let Some(body) = &call.body {
            builder = builder.json(&template::body(body, values));
        }
        let mut response =
            builder.send().await.map_err(|error| format!("{request}: {}", causes(&error)))?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) =
            response.chunk().await.map_err(|error| format!("{request}: {}", causes(&error)))?
        {
            // Checked for each chunk, because a response need not state its length.
            if body.len() + chunk.len() > MAX_BODY {
                return Err(format!("{request} answered with more than {MAX_BODY} bytes").into());
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
        let text = one_line(&String::from_utf8_lossy(&body), MAX_QUOTE);
        let after = if text.is_empty() { String::new() } else { format!(": {text}") };
        Err(RequestError {
            what: format!("{request} answered {status}{}{after}", location.unwrap_or_default()),
            status: Some(status.as_u16()),
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
