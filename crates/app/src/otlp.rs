//! Sends a run to an OpenTelemetry collector, by OTLP over HTTP. What is sent is the harness's to
//! say. A collector that is down, slow or refuses costs a warning and some seconds, never a verdict.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url};
use serde_json::Value;

use crate::error::AppError;
use crate::project::Frontend;
use crate::project::Project;
use selftest_models::http::{client_builder, is_loopback, root_cause};
use selftest_reports::ci::otlp::{self, OtlpRequest};
use selftest_reports::document::ReportDocument;
use selftest_text::escape::terminal;

/// Headers for every request, `name=value` separated by commas, as OpenTelemetry names them.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// Time limits for all requests together, for one, and for its connection.
const TOTAL: Duration = Duration::from_secs(10);
const REQUEST: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(2);
/// Pauses before a request is retried.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];
/// Maximum size of an answer in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// A collector, checked before a run.
#[derive(Debug)]
pub(crate) struct OtlpCollector {
    base: Url,
    headers: HeaderMap,
    frontend: Arc<dyn Frontend>,
}

impl OtlpCollector {
    /// Checks the endpoint and headers, without opening a connection.
    pub(crate) fn new(endpoint: &str, project: &Project) -> Result<Self, AppError> {
        let base = Url::parse(endpoint).map_err(|error| {
            let endpoint = terminal(endpoint, 200);
            AppError::usage(anyhow!("reports.otlp.endpoint `{endpoint}`: {error}"))
                .hint(Some("write the base address of a collector: http://127.0.0.1:4318"))
        })?;
        let given =
            project.environment.variables.get(HEADERS).map(String::as_str).unwrap_or_default();
        let mut headers =
            headers(given).map_err(|why| AppError::usage(anyhow!("{HEADERS}: {why}")))?;
        if !headers.is_empty() && base.scheme() != "https" && !is_loopback(&base) {
            // They usually hold a key, which anyone on the way could read.
            headers.clear();
            let shown = shown(&base);
            project.notify(&format!("warning: {HEADERS} is not sent unencrypted to {shown}\n"));
        }
        Ok(Self { base, headers, frontend: Arc::clone(project.frontend()) })
    }

    /// Sends a run; warns about what could not be sent.
    pub(crate) async fn tell(&self, document: &ReportDocument) {
        let told = match tokio::time::timeout(TOTAL, self.send(&otlp::requests(document))).await {
            Ok(told) => told,
            Err(_) => Err(OtlpError::TooLong),
        };
        if let Err(why) = told {
            let shown = shown(&self.base);
            self.frontend.notify(&format!(
                "warning: OpenTelemetry: {shown} did not receive everything: {why}\n"
            ));
        }
    }

    async fn send(&self, requests: &[OtlpRequest]) -> Result<(), OtlpError> {
        let client = client_builder(self.base.as_str())
            // The headers may hold a key, which must not reach another server.
            .redirect(reqwest::redirect::Policy::none())
            .default_headers(self.headers.clone())
            .connect_timeout(CONNECT)
            .timeout(REQUEST)
            .build()
            .map_err(OtlpError::Client)?;
        let (mut refused, mut faults) = (Vec::new(), Vec::new());
        for OtlpRequest { path, body } in requests {
            // A collector may take spans and no events.
            if refused.contains(path) {
                continue;
            }
            match post(&client, &self.address(path), body).await {
                Ok(()) => {}
                // Each further request would wait for the same server in vain.
                Err(DeliveryError::Gone(why)) => {
                    faults.push(why);
                    break;
                }
                Err(DeliveryError::Refused(why)) => {
                    refused.push(path);
                    faults.push(format!("{path}: {why}"));
                }
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(OtlpError::Undelivered(faults)) }
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base.as_str().trim_end_matches('/'))
    }
}

/// Returns the address without parts that may hold a secret.
fn shown(base: &Url) -> String {
    let port = base.port().map(|port| format!(":{port}")).unwrap_or_default();
    let host = base.host_str().unwrap_or_default();
    terminal(&format!("{}://{host}{port}{}", base.scheme(), base.path()), 200)
}

/// `name=value` pairs; values are percent-encoded.
fn headers(text: &str) -> Result<HeaderMap, HeaderError> {
    let mut found = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(HeaderError::NoPair)?;
        let name: HeaderName = name.trim().parse().map_err(|_| HeaderError::Name)?;
        let mut value = HeaderValue::from_bytes(&decoded(value.trim()))
            .map_err(|_| HeaderError::Value(name.clone()))?;
        // Keeps it out of debug output.
        value.set_sensitive(true);
        found.insert(name, value);
    }
    Ok(found)
}

/// The bytes behind `%20` and the like.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let (b'%', Some(byte)) = (first, byte) {
            bytes.push(byte);
            rest = &behind[2..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    bytes
}

/// A run that a collector did not get as a whole.
#[derive(Debug, thiserror::Error)]
enum OtlpError {
    #[error("it took longer than {} s", TOTAL.as_secs())]
    TooLong,
    #[error("{}", root_cause(.0))]
    Client(#[source] reqwest::Error),
    #[error("{}", .0.join("; "))]
    Undelivered(Vec<String>),
}

/// A header of the environment that cannot be sent. Its value may be a secret and is not shown.
#[derive(Debug, thiserror::Error)]
enum HeaderError {
    #[error("expected name=value,name=value")]
    NoPair,
    #[error("a name that no header can have")]
    Name,
    #[error("the value of {0} cannot be sent")]
    Value(HeaderName),
}

/// A request that was not delivered.
enum DeliveryError {
    /// The collector is unreachable, so later requests would fail too.
    Gone(String),
    /// The collector rejected this one with these words.
    Refused(String),
}

async fn post(client: &reqwest::Client, address: &str, body: &Value) -> Result<(), DeliveryError> {
    let mut pauses = PAUSES.iter();
    loop {
        let answer = client.post(address).json(body).send().await;
        // OTLP names these statuses as those after which to try again.
        let again = match &answer {
            Ok(answer) => matches!(
                answer.status(),
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            ),
            // An unreachable port stays unreachable within a second.
            Err(_) => false,
        };
        if let Some(pause) = pauses.next().filter(|_| again) {
            tokio::time::sleep(*pause).await;
            continue;
        }
        let answer = answer.map_err(|error| DeliveryError::Gone(unreachable(&error)))?;
        return check(answer).await;
    }
}

fn unreachable(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", REQUEST.as_secs());
    }
    terminal(&root_cause(error), 200)
}

/// Checks that the collector rejected nothing.
async fn check(mut answer: reqwest::Response) -> Result<(), DeliveryError> {
    let status = answer.status();
    let mut bytes = Vec::new();
    // A body that breaks off only loses the collector's words: its status has arrived.
    while let Ok(Some(chunk)) = answer.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_ANSWER {
            break;
        }
    }
    let said: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if !status.is_success() {
        let words = said["message"].as_str().map(|words| format!(": {}", terminal(words, 200)));
        let words = format!("HTTP {}{}", status.as_u16(), words.unwrap_or_default());
        return Err(DeliveryError::Refused(words));
    }
    let part = &said["partialSuccess"];
    // Protobuf's JSON writes 64-bit integers as strings; plain numbers are read as well.
    let rejected = ["rejectedSpans", "rejectedLogRecords"].map(|key| match &part[key] {
        Value::String(count) => count.parse::<u64>().unwrap_or(0),
        other => other.as_u64().unwrap_or(0),
    });
    match rejected.iter().sum::<u64>() {
        0 => Ok(()),
        count => {
            let words = terminal(part["errorMessage"].as_str().unwrap_or_default(), 200);
            Err(DeliveryError::Refused(format!("{count} refused: {words}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_opentelemetry_writes_them() {
        let found = headers("authorization=Basic%20YTpi, x-team = one ,").unwrap();
        assert_eq!(
            (&found["authorization"], &found["x-team"]),
            (&"Basic YTpi".parse().unwrap(), &"one".parse().unwrap())
        );
        assert!(headers("").unwrap().is_empty());
        for bad in ["plain", "a b=c", "x=%0a"] {
            assert!(headers(bad).is_err(), "{bad}");
        }
        assert_eq!(decoded("100%"), b"100%");
    }

    #[test]
    fn an_address_is_shown_without_a_password() {
        let base = Url::parse("https://me:secret@collector.example:4318/otlp?key=1").unwrap();
        assert_eq!(shown(&base), "https://collector.example:4318/otlp");
    }
}
