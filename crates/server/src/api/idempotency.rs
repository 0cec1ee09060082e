//! Safe retries of requests with the header `Idempotency-Key`
//! (draft-ietf-httpapi-idempotency-key-header).

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderName};
use serde::de::DeserializeOwned;

use super::super::problem::Problem;
use super::input::{JsonBody, body_rejection};
use selftest_store::RequestKey;
use selftest_text::digest;

/// Request header with the key.
const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// Response header that marks the response of an earlier request.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Maximum length of a key in bytes.
const MAX_KEY: usize = 255;

/// A JSON body with its optional idempotency key.
pub(super) struct IdempotentBody<T> {
    pub(super) body: T,
    pub(super) key: Option<RequestKey>,
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for IdempotentBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let key = parse_key(request.headers())?;
        let scope = request.uri().path().to_owned();
        let (parts, body) = request.into_parts();
        // Read first, because the digest covers the exact bytes.
        let bytes = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await;
        let bytes = bytes.map_err(|rejection| body_rejection(rejection.status()))?;
        let digest = digest::sha256_hex(&bytes);
        let JsonBody(body) =
            JsonBody::from_request(Request::from_parts(parts, bytes.into()), state).await?;
        let at = selftest_clock::now();
        Ok(Self { body, key: key.map(|key| RequestKey { scope, key, digest, at }) })
    }
}

/// Parses the idempotency key of a request, if present.
fn parse_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all(HEADER).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let text = key.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    match (text, keys.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => Err(Problem::bad_request(
            "in the header Idempotency-Key: expected one key of 1 to 255 ASCII characters",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &[&str]) -> Result<Option<String>, Problem> {
        let mut headers = HeaderMap::new();
        for key in keys {
            headers.append(HEADER, key.parse().unwrap());
        }
        parse_key(&headers)
    }

    #[test]
    fn keys_are_bounded() {
        let long = "x".repeat(MAX_KEY);
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&["\"8e03978e\""]).unwrap().as_deref(), Some("\"8e03978e\""));
        assert_eq!(read(&[&long]).unwrap(), Some(long.clone()));
        for wrong in [&[String::new()][..], &[long + "x"], &["a".to_owned(), "a".to_owned()]] {
            let wrong: Vec<&str> = wrong.iter().map(String::as_str).collect();
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
    }
}
