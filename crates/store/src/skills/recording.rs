//! Writes executions of skills and the reactions of users to them.

use jiff::Timestamp;

use crate::statement::{ToValue as _, params};
use crate::transaction::Writing;
use crate::{SkillRequest, Store, StoreError, bound, requests};
use selftest_grading::improve::skill::{Reaction, SkillExecution};

/// The version of a skill that was only seen in use.
const UNVERSIONED: &str = "unversioned";

/// Which version of a skill was used.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillRef {
    /// As it was told.
    Told {
        /// The id of a version, or the name of a skill.
        skill: String,
        /// With the name the version; without it the one in use, else the newest.
        version: Option<String>,
    },
    /// Whichever was in use at the time of the execution. A skill that nobody promoted is made
    /// known, as version `unversioned` without a text.
    Seen {
        /// The skill.
        skill_name: String,
    },
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillRecord {
    /// A skill was used. An execution that is there already by its id is brought up to date.
    Execution {
        /// The version; takes the place of the execution's `skill_version_id`.
        skill: SkillRef,
        /// The execution.
        execution: SkillExecution,
        /// The next message of the user, where that is known already.
        reaction: Option<Reaction>,
    },
    /// A user said something. It counts for the latest execution of the session, unless an
    /// earlier message did.
    Message {
        /// Who.
        user_id: String,
        /// In which session.
        session_id: String,
        /// Its meaning for the execution.
        reaction: Reaction,
        /// When.
        at: Timestamp,
    },
}

/// The results of writing records. Each is a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Executions that were written or brought up to date.
    pub executions: u64,
    /// Executions of skills that nobody made known.
    pub unknown: u64,
    /// Messages that counted for an execution.
    pub messages: u64,
    /// Messages in whose session no execution waited for one.
    pub unrelated: u64,
    /// Requests that had been written before.
    pub repeated: u64,
}

impl Store {
    /// Writes records in their order, all or none.
    pub async fn record_skills(&self, records: &[SkillRecord]) -> Result<Recorded, StoreError> {
        let mut recorded = Recorded::default();
        if records.is_empty() {
            return Ok(recorded);
        }
        let mut writing = self.begin().await?;
        for record in records {
            write(&mut writing, record, &mut recorded).await?;
        }
        writing.commit().await?;
        Ok(recorded)
    }

    /// The same for what clients sent. A request whose key is known is counted and not written.
    pub async fn record_requests(&self, requests: &[SkillRequest]) -> Result<Recorded, StoreError> {
        let mut recorded = Recorded::default();
        let mut writing = self.begin().await?;
        for SkillRequest { record, key } in requests {
            if let Some(key) = key
                && !requests::note(&mut writing, key).await?
            {
                recorded.repeated += 1;
                continue;
            }
            write(&mut writing, record, &mut recorded).await?;
        }
        writing.commit().await?;
        Ok(recorded)
    }
}

async fn write(
    writing: &mut Writing,
    record: &SkillRecord,
    recorded: &mut Recorded,
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

/// Whether the skill is known.
async fn record_execution(
    writing: &mut Writing,
    skill: &SkillRef,
    execution: &SkillExecution,
    reaction: Option<&Reaction>,
) -> Result<bool, StoreError> {
    let Some(version) = resolve(writing, skill, execution).await? else {
        return Ok(false);
    };
    // A copy of a session that knows less must not take back what a longer one said.
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
        react(writing, &execution.id, reaction, execution.created_at).await?;
    }
    Ok(true)
}

/// The id of the version that was used, if it is known.
async fn resolve(
    writing: &mut Writing,
    skill: &SkillRef,
    execution: &SkillExecution,
) -> Result<Option<String>, StoreError> {
    let (skill, version) = match skill {
        SkillRef::Told { skill, version } => (skill, version),
        SkillRef::Seen { skill_name } => {
            return seen(writing, skill_name, execution).await.map(Some);
        }
    };
    let query = "SELECT id FROM skill_versions WHERE id = $1 OR (user_id = $2 \
                 AND skill_name = $1 AND (CAST($3 AS TEXT) IS NULL OR version = $3)) \
                 ORDER BY CASE WHEN id = $1 THEN 0 ELSE 1 END, is_active DESC, \
                 created_at DESC, id DESC LIMIT 1";
    writing.fetch_text(query, params![skill, execution.user_id, version]).await
}

/// The version that was in use at the time of the execution: the one whose promotion is the last
/// before it, else the oldest, else a new one without a text.
async fn seen(
    writing: &mut Writing,
    skill_name: &str,
    execution: &SkillExecution,
) -> Result<String, StoreError> {
    let user_id = bound::text(&execution.user_id, bound::NAME);
    let skill_name = bound::text(skill_name, bound::NAME);
    let at = execution.created_at;
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
    let id =
        selftest_text::digest::uuid_of(&format!("skill\0{user_id}\0{skill_name}\0{UNVERSIONED}"));
    let query = "INSERT INTO skill_versions (id, user_id, skill_name, version, is_active, \
                 created_at, promoted_at) VALUES ($1, $2, $3, $4, 1, $5, $5)";
    writing.execute(query, params![id, user_id, skill_name, UNVERSIONED, at]).await?;
    Ok(id)
}

/// Whether there was an execution to count it for.
async fn record_message(
    writing: &mut Writing,
    user_id: &str,
    session_id: &str,
    reaction: &Reaction,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let query = "SELECT id FROM skill_executions \
                 WHERE session_id = $1 AND user_id = $2 AND created_at <= $3 \
                 ORDER BY created_at DESC, id DESC LIMIT 1";
    match writing.fetch_text(query, params![session_id, user_id, at]).await? {
        Some(id) => react(writing, &id, reaction, at).await,
        None => Ok(false),
    }
}

/// Notes what the message after an execution says, and whether it is the first one that does. It
/// adds to what was recorded with the execution and takes nothing back.
async fn react(
    writing: &mut Writing,
    execution_id: &str,
    reaction: &Reaction,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let query = "INSERT INTO skill_signals \
                 (execution_id, made_at, gratitude, repetition, frustration) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (execution_id) DO NOTHING";
    let Reaction { gratitude, repetition, frustration, .. } = reaction;
    let values = params![execution_id, at, gratitude, repetition, frustration];
    if writing.execute(query, values).await? == 0 {
        return Ok(false);
    }
    for (says, column) in [
        (reaction.edited, "user_edited_output"),
        (reaction.gratitude, "user_sent_thank_you"),
        (reaction.repetition == Some(true), "user_repeated_request"),
    ] {
        if says {
            let query = format!("UPDATE skill_executions SET {column} = 1 WHERE id = $1");
            writing.execute(query, params![execution_id]).await?;
        }
    }
    Ok(true)
}
