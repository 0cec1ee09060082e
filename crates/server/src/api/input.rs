//! Validation of request input: ids in paths, parameters in queries and bodies.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use super::super::problem::Problem;
use selftest_store::{Cursor, RequestKey};
use selftest_text::digest;

/// Default number of rows per page.
pub(super) const DEFAULT_ROWS: u32 = 50;
/// Maximum number of rows per page.
pub(super) const MAX_ROWS: u32 = 500;
/// Error message for JSON that is not an object.
const NOT_AN_OBJECT: &str = "in the body: expected a JSON object";
/// Maximum length of an id in bytes.
const MAX_ID: usize = 512;

/// The single name in a path, percent-decoded. `%2F` becomes part of the name.
pub(super) struct PathName(pub(super) String);

/// The two names in a path.
pub(super) struct PathNames(pub(super) String, pub(super) String);

async fn path<T: DeserializeOwned + Send, S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<T, Problem> {
    let path = Path::<T>::from_request_parts(parts, state).await;
    path.map(|Path(names)| names)
        .map_err(|_| Problem::bad_request("the path is not percent-encoded UTF-8"))
}

/// Returns the name if it can exist.
fn checked_name(name: String) -> Result<String, Problem> {
    // PostgreSQL keeps no NUL in a text, and a query with one would fail.
    let is_possible = name.len() <= MAX_ID && !name.contains('\0');
    is_possible.then_some(name).ok_or_else(|| Problem::not_found("nothing has that name"))
}

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(checked_name(path(parts, state).await?)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathNames {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (first, second) = path(parts, state).await?;
        Ok(Self(checked_name(first)?, checked_name(second)?))
    }
}

/// Query parameters. Unknown ones are rejected by name if the type is marked `deny_unknown_fields`.
pub(super) struct QueryParameters<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = Query::<T>::try_from_uri(&parts.uri).map_err(|rejection| {
            let text = rejection.body_text();
            let what = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            Problem::bad_request(format!("in the query: {}", selftest_text::one_line(what, 300)))
        })?;
        Ok(Self(query.0))
    }
}

/// A request body that is a JSON object. Other JSON is rejected with 422.
pub(super) struct JsonObject(pub(super) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for JsonObject {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        parse_object(request, state).await.map(Self).map_err(body_rejection)
    }
}

/// Parses the JSON object of a body. The error is the status to return, which is 422 for other
/// JSON.
async fn parse_object<S: Send + Sync>(
    request: Request,
    state: &S,
) -> Result<Map<String, Value>, StatusCode> {
    match Json::<Value>::from_request(request, state).await {
        Ok(Json(Value::Object(object))) => Ok(object),
        Ok(_) => Err(StatusCode::UNPROCESSABLE_ENTITY),
        Err(rejection) => Err(rejection.status()),
    }
}

/// Returns the error for a body that is not a JSON object.
pub(super) fn body_rejection(status: StatusCode) -> Problem {
    let detail = match status {
        StatusCode::UNPROCESSABLE_ENTITY => NOT_AN_OBJECT,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            "the body must be JSON, with the header `Content-Type: application/json`"
        }
        StatusCode::PAYLOAD_TOO_LARGE => "the body of the request is too large",
        _ => "in the body: not JSON, expected a JSON object",
    };
    Problem::new(status, detail)
}

/// A request body that is a JSON object of type `T`.
pub(super) struct JsonBody<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await;
        let bytes = bytes.map_err(|rejection| body_rejection(rejection.status()))?;
        // Parsed as generic JSON first, because serde would accept an array as the fields of a
        // struct.
        let whole = Request::from_parts(parts, bytes.clone().into());
        parse_object(whole, state).await.map_err(|status| match status {
            // The API documents one status for any invalid body.
            StatusCode::UNPROCESSABLE_ENTITY => Problem::bad_request(NOT_AN_OBJECT),
            status => body_rejection(status),
        })?;
        Json::<T>::from_bytes(&bytes).map(|Json(body)| Self(body)).map_err(|rejection| {
            let text = rejection.body_text();
            let what = text.split_once(": ").map_or(text.as_str(), |(_, what)| what);
            Problem::bad_request(format!("in the body: {}", selftest_text::one_line(what, 300)))
        })
    }
}

/// Checks the length in characters of a text in a body.
pub(super) fn body_text(
    name: &str,
    text: String,
    least: usize,
    most: usize,
) -> Result<String, Problem> {
    let length = text.chars().count();
    if (least..=most).contains(&length) {
        return Ok(text);
    }
    let expected = format!("expected {least} to {most} characters, found {length}");
    Err(Problem::bad_request(format!("in the body: {name}: {expected}")))
}

/// Deserialises an optional count in a body, up to the database's maximum. JSON Schema also allows
/// `2.0` as an integer.
pub(super) fn body_count<'de, D: Deserializer<'de>>(count: D) -> Result<Option<u32>, D::Error> {
    let Some(count) = Option::<f64>::deserialize(count)? else { return Ok(None) };
    if count.fract() != 0.0 || !(0.0..=f64::from(i32::MAX)).contains(&count) {
        return Err(D::Error::custom(format!("{count} is not a valid count")));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and in range"
    )]
    let count = count as u32;
    Ok(Some(count))
}

/// Checks the length in characters of an optional text in a body.
pub(super) fn optional_body_text(
    name: &str,
    text: Option<String>,
    most: usize,
) -> Result<Option<String>, Problem> {
    text.map(|text| body_text(name, text, 0, most)).transpose()
}

/// Returns the requested number of rows, or the default.
pub(super) fn page_limit(asked: Option<u32>) -> Result<u32, Problem> {
    checked_range("limit", asked.unwrap_or(DEFAULT_ROWS), 1..=MAX_ROWS)
}

/// Checks that a query value is in a range.
pub(super) fn checked_range<T: PartialOrd + std::fmt::Display>(
    name: &str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<T, Problem> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    Err(Problem::bad_request(format!("in the query: {name}: expected {least} to {most}")))
}

/// Checks the maximum length in characters of a query value.
pub(super) fn checked_text(
    name: &str,
    text: Option<String>,
    most: usize,
) -> Result<Option<String>, Problem> {
    if text.as_ref().is_none_or(|text| text.chars().count() <= most) {
        return Ok(text);
    }
    Err(Problem::bad_request(format!("in the query: {name}: expected at most {most} characters")))
}

/// Parses a pagination cursor. A cursor that does not belong to this list gives 404.
pub(super) fn parse_cursor(
    text: Option<&str>,
    fits: impl FnOnce(&Cursor) -> bool,
) -> Result<Option<Cursor>, Problem> {
    let cursor = text.map(str::parse::<Cursor>).transpose().ok();
    cursor.filter(|cursor| cursor.as_ref().is_none_or(fits)).ok_or_else(|| {
        Problem::not_found(
            "there is no page at this cursor, expected the `next` of the page before",
        )
    })
}

/// Returns the schema of a string with these values.
pub(super) fn enum_schema(names: impl IntoIterator<Item = &'static str>) -> Schema {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).build().into()
}

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
