//! HTTP requests to model servers, with time limits, bounded bodies and one-line errors.
//! Independent of any provider.

use std::error::Error;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use serde::Serialize;
use serde_json::Value;

use super::error_body::{ErrorBody, PromptOverflow};
use super::model_settings::ModelSettings;
use super::{ModelError, TimeoutPhase};

/// Maximum size in bytes of a response body.
const MAX_BODY: usize = 8 * 1024 * 1024;

/// A server at a base address.
pub struct HttpEndpoint {
    client: reqwest::Client,
    base: String,
    /// The last URL posted to, which is usually the next one as well.
    posted: Mutex<Option<(String, Url)>>,
    unreachable_hint: String,
    first_byte: Duration,
    total: Duration,
    connect: Duration,
}

/// A response with any status; providers interpret error statuses.
pub struct HttpResponse {
    /// HTTP status.
    pub status: u16,
    /// Complete body.
    pub body: Vec<u8>,
    retry_after: Option<Duration>,
}

impl HttpResponse {
    #[cfg(test)]
    pub(crate) fn new(status: u16, body: Vec<u8>) -> Self {
        Self { status, body, retry_after: None }
    }

    /// Returns the error message in the body.
    pub fn error_message(&self) -> String {
        ErrorBody::parse(&self.body).message
    }

    /// Returns true if the body contains this lower-case word, ignoring case.
    pub fn mentions(&self, word: &str) -> bool {
        String::from_utf8_lossy(&self.body).to_lowercase().contains(word)
    }
}

impl HttpEndpoint {
    /// Creates an endpoint for `base`, which has no trailing slash. Opens no connection.
    pub fn new(
        base: &str,
        headers: HeaderMap,
        settings: &ModelSettings,
        unreachable_hint: String,
    ) -> Result<Self, ModelError> {
        let failed = |error: reqwest::Error| ModelError::Unreachable {
            endpoint: base.to_owned(),
            why: root_cause(&error),
            hint: unreachable_hint.clone(),
        };
        let client = client_builder(base)
            .default_headers(headers)
            .connect_timeout(settings.connect())
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(failed)?;
        Ok(Self {
            client,
            base: base.to_owned(),
            posted: Mutex::default(),
            unreachable_hint,
            first_byte: settings.first_byte(),
            total: settings.total(),
            connect: settings.connect(),
        })
    }

    /// Returns the base address, for messages.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends `GET base + path`.
    pub async fn get(&self, path: &str) -> Result<HttpResponse, ModelError> {
        self.exchange(self.client.get(format!("{}{path}", self.base))).await
    }

    /// Sends `POST base + path` with a JSON body of about `bytes` bytes.
    pub async fn post(
        &self,
        path: &str,
        body: &impl Serialize,
        bytes: usize,
    ) -> Result<HttpResponse, ModelError> {
        let mut json = Vec::with_capacity(bytes);
        serde_json::to_writer(&mut json, body)
            .map_err(|error| self.protocol_error(&error.to_string(), false))?;
        let request = match self.url(path) {
            Some(url) => self.client.post(url),
            // Sending it returns an error that describes the invalid URL.
            None => self.client.post(format!("{}{path}", self.base)),
        };
        let is_json = HeaderValue::from_static("application/json");
        self.exchange(request.header(CONTENT_TYPE, is_json).body(json)).await
    }

    fn url(&self, path: &str) -> Option<Url> {
        let mut posted = self.posted.lock().unwrap_or_else(PoisonError::into_inner);
        match &*posted {
            Some((known, url)) if known == path => Some(url.clone()),
            _ => {
                let url = Url::parse(&format!("{}{path}", self.base)).ok()?;
                *posted = Some((path.to_owned(), url.clone()));
                Some(url)
            }
        }
    }

    async fn exchange(&self, request: reqwest::RequestBuilder) -> Result<HttpResponse, ModelError> {
        tokio::time::timeout(self.total, self.exchange_unbounded(request))
            .await
            .unwrap_or_else(|_| Err(self.timeout_error(TimeoutPhase::Total, self.total)))
    }

    async fn exchange_unbounded(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<HttpResponse, ModelError> {
        let response = tokio::time::timeout(self.first_byte, request.send())
            .await
            .map_err(|_| self.timeout_error(TimeoutPhase::FirstByte, self.first_byte))?
            .map_err(|error| self.transport_error(&error))?;
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let mut response = response;
        let mut body = Vec::new();
        while let Some(chunk) =
            response.chunk().await.map_err(|error| self.protocol_error(&error.to_string(), true))?
        {
            // Counted, because `Content-Length` can be missing or wrong.
            if body.len() + chunk.len() > MAX_BODY {
                return Err(self.protocol_error(&format!("more than {MAX_BODY} bytes"), false));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(HttpResponse { status, body, retry_after })
    }

    /// Parses the response as JSON if its status is a success.
    pub fn parse_json(&self, answer: &HttpResponse) -> Result<Value, ModelError> {
        if !(200..300).contains(&answer.status) {
            return Err(self.status_error(answer));
        }
        serde_json::from_slice(&answer.body).map_err(|_| {
            let text = String::from_utf8_lossy(&answer.body);
            let what = match text.trim() {
                "" => "an empty body".to_owned(),
                body if body.starts_with('<') => {
                    format!("HTML instead of JSON: {}", selftest_text::one_line(body, 120))
                }
                body => {
                    format!("something that is not JSON: {}", selftest_text::one_line(body, 120))
                }
            };
            ModelError::NotJson { endpoint: self.base.clone(), what }
        })
    }

    /// Converts a response with an error status to an error.
    pub fn status_error(&self, answer: &HttpResponse) -> ModelError {
        let ErrorBody { message: words, too_long } = ErrorBody::parse(&answer.body);
        // Only for client errors: the message of any other failure may quote arbitrary text.
        if matches!(answer.status, 400 | 413 | 422)
            && let Some(PromptOverflow { prompt_tokens, context_tokens }) = too_long
        {
            let length = prompt_tokens.map(|tokens| format!("{tokens} tokens"));
            let limit = context_tokens.and_then(|tokens| usize::try_from(tokens).ok());
            return ModelError::PromptTooLong { length, limit, most: None };
        }
        ModelError::Status {
            endpoint: self.base.clone(),
            status: answer.status,
            body: if words.is_empty() { "(empty body)".to_owned() } else { words },
            retry_after: answer.retry_after,
        }
    }

    /// Creates an error for a response that violates the protocol.
    pub fn protocol_error(&self, what: &str, broken: bool) -> ModelError {
        ModelError::Protocol { endpoint: self.base.clone(), what: what.to_owned(), broken }
    }

    fn timeout_error(&self, phase: TimeoutPhase, after: Duration) -> ModelError {
        ModelError::Timeout { endpoint: self.base.clone(), phase, after }
    }

    fn transport_error(&self, error: &reqwest::Error) -> ModelError {
        if error.is_connect() && error.is_timeout() {
            self.timeout_error(TimeoutPhase::Connect, self.connect)
        } else if error.is_connect() {
            ModelError::Unreachable {
                endpoint: self.base.clone(),
                why: root_cause(error),
                hint: self.unreachable_hint.clone(),
            }
        } else {
            self.protocol_error(&format!("a broken connection: {}", root_cause(error)), true)
        }
    }
}

/// Creates a client builder for an address. Plain `http://` needs no certificates and must work on
/// a machine without any.
pub fn client_builder(address: &str) -> reqwest::ClientBuilder {
    // Fails only if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder =
        reqwest::Client::builder().user_agent(concat!("selftest/", env!("CARGO_PKG_VERSION")));
    // A network proxy must not be used for a server on this machine.
    let local = Url::parse(address).is_ok_and(|address| is_loopback(&address));
    let builder = if local { builder.no_proxy() } else { builder };
    if address.starts_with("https:") { builder } else { builder.tls_certs_only([]) }
}

/// Returns true for a loopback address.
pub fn is_loopback(address: &Url) -> bool {
    // `host_str` keeps the brackets of IPv6 addresses.
    let host = address.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns how long the server asks to wait, given in seconds or as a date relative to the server's
/// `Date`.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let asked = text(RETRY_AFTER)?;
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    // A date in the past means no wait.
    Some(date(asked)?.duration_since(date(text(DATE)?)?).unwrap_or_default())
}

/// Returns the innermost cause of an error, on one line.
pub fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    selftest_text::one_line(&cause.to_string(), 200)
}
