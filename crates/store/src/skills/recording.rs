//! Records skill executions and the reactions of users to them, each request once: the table
//! `request_keys` has their idempotency keys. Callers validate the format of a key.

use jiff::{SignedDuration, Timestamp};

use crate::statement::{ToValue as _, params};
use crate::transaction::WriteTransaction;
use crate::{Store, StoreError, bound};
use selftest_grading::improve::skill::{SkillExecution, UserReaction};

/// Version name of a skill that was only observed in use.
const UNVERSIONED: &str = "unversioned";

/// Reference to the skill version that was used.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillRef {
    /// Named explicitly.
    Named {
        /// Id of a version, or name of a skill.
        skill: String,
        /// Version name; without it the active version, else the newest.
        version: Option<String>,
    },
    /// The version active at the time of the execution. An unknown skill is added as version
    /// `unversioned` without a text.
    Observed {
        /// Name of the skill.
        skill_name: String,
    },
}

/// An event to record.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillRecord {
    /// A skill was used. An existing execution with this id is updated.
    Execution {
        /// Skill version; replaces the execution's `skill_version_id`.
        skill: SkillRef,
        /// The execution.
        execution: SkillExecution,
        /// Reaction in the user's next message, if it is already known.
        reaction: Option<UserReaction>,
    },
    /// A message from a user. It counts for the latest execution of the session, unless an earlier
    /// message already did.
    Message {
        /// User who sent it.
        user_id: String,
        /// Session of the message.
        session_id: String,
        /// Meaning for the execution.
        reaction: UserReaction,
        /// Time of the message.
        at: Timestamp,
    },
}

/// Counts of what was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkillRecordCounts {
    /// Executions inserted or updated.
    pub executions: u64,
    /// Executions of unknown skills.
    pub unknown: u64,
    /// Messages that counted for an execution.
    pub messages: u64,
    /// Messages in sessions without an execution waiting for one.
    pub unrelated: u64,
    /// Requests that had already been recorded.
    pub repeated: u64,
}

impl Store {
    /// Writes records in order, all or none.
    pub async fn record_skills(
        &self,
        records: &[SkillRecord],
    ) -> Result<SkillRecordCounts, StoreError> {
        let mut recorded = SkillRecordCounts::default();
        if records.is_empty() {
            return Ok(recorded);
        }
        let mut writing = self.begin_write().await?;
        for record in records {
            write_record(&mut writing, record, &mut recorded).await?;
        }
        writing.commit().await?;
        Ok(recorded)
    }

    /// Writes records sent by clients. A request with a known key is counted but not written again.
    pub async fn record_requests(
        &self,
        requests: &[SkillRequest],
    ) -> Result<SkillRecordCounts, StoreError> {
        let mut recorded = SkillRecordCounts::default();
        let mut writing = self.begin_write().await?;
        for SkillRequest { record, key } in requests {
            if let Some(key) = key
                && !insert_key(&mut writing, key).await?
            {
                recorded.repeated += 1;
                continue;
            }
            write_record(&mut writing, record, &mut recorded).await?;
        }
        writing.commit().await?;
        Ok(recorded)
    }
}

async fn write_record(
    writing: &mut WriteTransaction,
    record: &SkillRecord,
    recorded: &mut SkillRecordCounts,
) -> Result<(), StoreError> {
    match record {
        SkillRecord::Execution { skill, execution, reaction } => {
            if record_execution(writing, skill, execution, reaction.as_ref()).await? {
                recorded.executions += 1;
            } else {
                recorded.unknown += 1;
            }
        }
        SkillRecord::Message { user_id, session_id, reaction, at } => {
            if record_message(writing, user_id, session_id, reaction, *at).await? {
                recorded.messages += 1;
            } else {
                recorded.unrelated += 1;
            }
        }
    }
    Ok(())
}

/// Returns false if the skill is unknown.
async fn record_execution(
    writing: &mut WriteTransaction,
    skill: &SkillRef,
    execution: &SkillExecution,
    reaction: Option<&UserReaction>,
) -> Result<bool, StoreError> {
    let Some(version) = resolve_version(writing, skill, execution).await? else {
        return Ok(false);
    };
    // A shorter copy of a session must not overwrite the results of a longer one.
    let query = "INSERT INTO skill_executions (id, skill_version_id, user_id, session_id, \
                 execution_status, user_edited_output, user_sent_thank_you, \
                 user_repeated_request, conversation_turns, execution_time_ms, error_message, \
                 created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
                 ON CONFLICT (id) DO UPDATE SET execution_status = excluded.execution_status, \
                 conversation_turns = excluded.conversation_turns, \
                 execution_time_ms = excluded.execution_time_ms, \
                 error_message = excluded.error_message, created_at = excluded.created_at \
                 WHERE COALESCE(excluded.conversation_turns, 0) \
                 >= COALESCE(skill_executions.conversation_turns, 0)";
    let values = params![
        execution.id,
        version,
        execution.user_id,
        execution.session_id,
        execution.execution_status.name(),
        execution.user_edited_output,
        execution.user_sent_thank_you,
        execution.user_repeated_request,
        execution.conversation_turns,
        execution.execution_time_ms,
        execution.error_message.to_value(bound::TEXT),
        execution.created_at,
    ];
    writing.execute(query, values).await?;
    if let Some(reaction) = reaction {
        record_reaction(writing, &execution.id, reaction, execution.created_at).await?;
    }
    Ok(true)
}

/// Returns the id of the version that was used, if it is known.
async fn resolve_version(
    writing: &mut WriteTransaction,
    skill: &SkillRef,
    execution: &SkillExecution,
) -> Result<Option<String>, StoreError> {
    let (skill, version) = match skill {
        SkillRef::Named { skill, version } => (skill, version),
        SkillRef::Observed { skill_name } => {
            return observed_version(writing, skill_name, execution).await.map(Some);
        }
    };
    // An exact id wins over a name. By name, the active version wins, then the newest.
    let query = "SELECT id FROM skill_versions WHERE id = $1 OR (user_id = $2 \
                 AND skill_name = $1 AND (CAST($3 AS TEXT) IS NULL OR version = $3)) \
                 ORDER BY CASE WHEN id = $1 THEN 0 ELSE 1 END, is_active DESC, \
                 created_at DESC, id DESC LIMIT 1";
    writing.fetch_text(query, params![skill, execution.user_id, version]).await
}

/// Returns the version that was active at the time of the execution: the last one promoted before
/// it, else the oldest, else a new one without a text.
async fn observed_version(
    writing: &mut WriteTransaction,
    skill_name: &str,
    execution: &SkillExecution,
) -> Result<String, StoreError> {
    let user_id = bound::text(&execution.user_id, bound::NAME);
    let skill_name = bound::text(skill_name, bound::NAME);
    let at = execution.created_at;
    // The audit and not `is_active`: sessions are often scanned days later, when another version is
    // active.
    let promoted = "SELECT skill.id FROM skill_audit AS audit JOIN skill_versions AS skill \
                    ON skill.id = audit.skill_version_id WHERE skill.user_id = $1 \
                    AND skill.skill_name = $2 AND audit.action = 'promote' \
                    AND audit.made_at <= $3 ORDER BY audit.made_at DESC, audit.id DESC LIMIT 1";
    if let Some(id) = writing.fetch_text(promoted, params![user_id, skill_name, at]).await? {
        return Ok(id);
    }
    let oldest = "SELECT id FROM skill_versions WHERE user_id = $1 AND skill_name = $2 \
                  ORDER BY created_at, id LIMIT 1";
    if let Some(id) = writing.fetch_text(oldest, params![user_id, skill_name]).await? {
        return Ok(id);
    }
    // Derived from owner and name, so that the same skill always gets the same id.
    let id = selftest_text::digest::uuid_from_name(&format!(
        "skill\0{user_id}\0{skill_name}\0{UNVERSIONED}"
    ));
    let query = "INSERT INTO skill_versions (id, user_id, skill_name, version, is_active, \
                 created_at, promoted_at) VALUES ($1, $2, $3, $4, 1, $5, $5)";
    writing.execute(query, params![id, user_id, skill_name, UNVERSIONED, at]).await?;
    Ok(id)
}

/// Returns false if there was no execution to count the message for.
async fn record_message(
    writing: &mut WriteTransaction,
    user_id: &str,
    session_id: &str,
    reaction: &UserReaction,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let query = "SELECT id FROM skill_executions \
                 WHERE session_id = $1 AND user_id = $2 AND created_at <= $3 \
                 ORDER BY created_at DESC, id DESC LIMIT 1";
    match writing.fetch_text(query, params![session_id, user_id, at]).await? {
        Some(id) => record_reaction(writing, &id, reaction, at).await,
        None => Ok(false),
    }
}

/// Records the reaction in the message after an execution. Returns false if an earlier message
/// already counted. It adds to what was recorded with the execution and removes nothing.
async fn record_reaction(
    writing: &mut WriteTransaction,
    execution_id: &str,
    reaction: &UserReaction,
    at: Timestamp,
) -> Result<bool, StoreError> {
    // `DO NOTHING`: only the first message after an execution counts.
    let query = "INSERT INTO skill_signals \
                 (execution_id, made_at, gratitude, repetition, frustration) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (execution_id) DO NOTHING";
    let UserReaction { gratitude, repetition, frustration, .. } = reaction;
    let values = params![execution_id, at, gratitude, repetition, frustration];
    if writing.execute(query, values).await? == 0 {
        return Ok(false);
    }
    for (says, column) in [
        (reaction.edited, "user_edited_output"),
        (reaction.gratitude, "user_sent_thank_you"),
        (reaction.repetition == Some(true), "user_repeated_request"),
    ] {
        // Only ever set. The message after an execution says nothing about what was recorded with
        // it.
        if says {
            let query = format!("UPDATE skill_executions SET {column} = 1 WHERE id = $1");
            writing.execute(query, params![execution_id]).await?;
        }
    }
    Ok(true)
}

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
