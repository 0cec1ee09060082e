//! The table `request_keys`: requests that may be sent again under a key of the client's, each of
//! which is written once. What a key looks like is for the caller to check.

use jiff::{SignedDuration, Timestamp};

use super::statement::params;
use super::transaction::Writing;
use super::{SkillRecord, Store, StoreError};

/// How long a key is known after its request was written.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// The key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// Where the request was sent to: a key is only known there.
    pub scope: String,
    /// The client's key.
    pub key: String,
    /// Of the body: another body is another request.
    pub digest: String,
    /// When it came.
    pub at: Timestamp,
}

impl RequestKey {
    /// Keys from before are forgotten.
    fn known_since(&self) -> Timestamp {
        self.at.checked_sub(KEPT).unwrap_or(Timestamp::MIN)
    }
}

/// A record that a client sent, and the key of its request, where it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillRequest {
    /// The record.
    pub record: SkillRecord,
    /// The key.
    pub key: Option<RequestKey>,
}

impl Store {
    /// The digest of the body that was written under a key, if the key is known.
    pub async fn request_digest(&self, key: &RequestKey) -> Result<Option<String>, StoreError> {
        let query = "SELECT digest FROM request_keys \
                     WHERE scope = $1 AND request_key = $2 AND made_at >= $3";
        let values = params![key.scope, key.key, key.known_since()];
        self.fetch_one("the key of a request", query, values, |row| row.get("digest")).await
    }
}

/// Notes that a request is written: `false` where its key is known already.
pub(super) async fn note(writing: &mut Writing, key: &RequestKey) -> Result<bool, StoreError> {
    let query = "DELETE FROM request_keys WHERE made_at < $1";
    writing.execute(query, params![key.known_since()]).await?;
    let query = "INSERT INTO request_keys (scope, request_key, digest, made_at) \
                 VALUES ($1, $2, $3, $4) ON CONFLICT (scope, request_key) DO NOTHING";
    let values = params![key.scope, key.key, key.digest, key.at];
    Ok(writing.execute(query, values).await? > 0)
}
