//! The table `request_keys`: idempotency keys of requests, each of which is written once. Callers
//! validate the format of a key.

use jiff::{SignedDuration, Timestamp};

use super::statement::params;
use super::transaction::WriteTransaction;
use super::{SkillRecord, Store, StoreError};

/// Time for which a key is remembered after its request was written.
const KEY_LIFETIME: SignedDuration = SignedDuration::from_hours(24);

/// An idempotency key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// Target of the request; keys are unique within it.
    pub scope: String,
    /// Key chosen by the client.
    pub key: String,
    /// Digest of the body: a different body is a different request.
    pub digest: String,
    /// Time of arrival.
    pub at: Timestamp,
}

impl RequestKey {
    /// Returns the time before which keys are forgotten.
    fn expiry_cutoff(&self) -> Timestamp {
        self.at.checked_sub(KEY_LIFETIME).unwrap_or(Timestamp::MIN)
    }
}

/// A record sent by a client, with the key of its request if it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillRequest {
    /// The record.
    pub record: SkillRecord,
    /// The key.
    pub key: Option<RequestKey>,
}

impl Store {
    /// Returns the digest of the body that was written under a key, if the key is known.
    pub async fn request_digest(&self, key: &RequestKey) -> Result<Option<String>, StoreError> {
        let query = "SELECT digest FROM request_keys \
                     WHERE scope = $1 AND request_key = $2 AND made_at >= $3";
        let values = params![key.scope, key.key, key.expiry_cutoff()];
        self.fetch_one("the key of a request", query, values, |row| row.get("digest")).await
    }
}

/// Records the key of a request. Returns false if it is already known.
pub(super) async fn insert_key(
    writing: &mut WriteTransaction,
    key: &RequestKey,
) -> Result<bool, StoreError> {
    // Expired keys are removed here, because nothing else deletes them.
    let query = "DELETE FROM request_keys WHERE made_at < $1";
    writing.execute(query, params![key.expiry_cutoff()]).await?;
    let query = "INSERT INTO request_keys (scope, request_key, digest, made_at) \
                 VALUES ($1, $2, $3, $4) ON CONFLICT (scope, request_key) DO NOTHING";
    let values = params![key.scope, key.key, key.digest, key.at];
    Ok(writing.execute(query, values).await? > 0)
}
