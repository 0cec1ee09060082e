//! Executions of skills, and what users said after them, on their way into the database.

use jiff::Timestamp;
use sqlx::{AnyConnection, Row as _};

use super::integer;
use crate::row::time;
use crate::{Store, StoreError, bound};
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
        /// What was used; takes the place of the execution's `skill_version_id`.
        skill: SkillRef,
        /// The execution.
        execution: SkillExecution,
        /// What the user said next, where that is known already.
        reaction: Option<Reaction>,
    },
    /// A user said something. It counts for the latest execution of the session, unless an
    /// earlier message did.
    Message {
        /// Who.
        user_id: String,
        /// In which session.
        session_id: String,
        /// What it says about the execution.
        reaction: Reaction,
        /// When.
        at: Timestamp,
    },
}

/// What became of records. Each is a count.
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
            let written = write(&mut writing, record, &mut recorded).await;
            written.map_err(|error| self.failed(error))?;
        }
        self.commit(writing).await?;
        Ok(recorded)
    }
}

async fn write(
    connection: &mut AnyConnection,
    record: &SkillRecord,
    recorded: &mut Recorded,
) -> Result<(), sqlx::Error> {
    match record {
        SkillRecord::Execution { skill, execution, reaction } => {
            if record_execution(connection, skill, execution, reaction.as_ref()).await? {
                recorded.executions += 1;
            } else {
                recorded.unknown += 1;
            }
        }
        SkillRecord::Message { user_id, session_id, reaction, at } => {
            if record_message(connection, user_id, session_id, reaction, *at).await? {
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
    connection: &mut AnyConnection,
    skill: &SkillRef,
    execution: &SkillExecution,
    reaction: Option<&Reaction>,
) -> Result<bool, sqlx::Error> {
    let Some(version) = resolve(connection, skill, execution).await? else {
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
    sqlx::query(query)
        .bind(bound::text(&execution.id, bound::NAME))
        .bind(version)
        .bind(bound::text(&execution.user_id, bound::NAME))
        .bind(bound::optional(execution.session_id.as_deref(), bound::NAME))
        .bind(execution.execution_status.name())
        .bind(i16::from(execution.user_edited_output))
        .bind(i16::from(execution.user_sent_thank_you))
        .bind(i16::from(execution.user_repeated_request))
        .bind(execution.conversation_turns.map(integer))
        .bind(execution.execution_time_ms.map(integer))
        .bind(bound::optional(execution.error_message.as_deref(), bound::TEXT))
        .bind(time(execution.created_at))
        .execute(&mut *connection)
        .await?;
    if let Some(reaction) = reaction {
        react(connection, &execution.id, reaction, execution.created_at).await?;
    }
    Ok(true)
}

/// The id of the version that was used, if it is known.
async fn resolve(
    connection: &mut AnyConnection,
    skill: &SkillRef,
    execution: &SkillExecution,
) -> Result<Option<String>, sqlx::Error> {
    let user_id = bound::text(&execution.user_id, bound::NAME);
    let (skill, version) = match skill {
        SkillRef::Told { skill, version } => (skill, version),
        SkillRef::Seen { skill_name } => {
            let skill_name = bound::text(skill_name, bound::NAME);
            return seen(connection, user_id, skill_name, execution).await.map(Some);
        }
    };
    let query = "SELECT id FROM skill_versions WHERE id = $1 OR (user_id = $2 \
                 AND skill_name = $1 AND (CAST($3 AS TEXT) IS NULL OR version = $3)) \
                 ORDER BY CASE WHEN id = $1 THEN 0 ELSE 1 END, is_active DESC, \
                 created_at DESC, id DESC LIMIT 1";
    let query = sqlx::query(query)
        .bind(bound::text(skill, bound::NAME))
        .bind(user_id)
        .bind(bound::optional(version.as_deref(), bound::NAME));
    let row = query.fetch_optional(connection).await?;
    row.map(|row| row.try_get(0)).transpose()
}

/// The version that was in use at the time of the execution: the one whose promotion is the last
/// before it, else the oldest, else a new one without a text.
async fn seen(
    connection: &mut AnyConnection,
    user_id: String,
    skill_name: String,
    execution: &SkillExecution,
) -> Result<String, sqlx::Error> {
    let at = time(execution.created_at);
    let promoted = "SELECT skill.id FROM skill_audit AS audit JOIN skill_versions AS skill \
                    ON skill.id = audit.skill_version_id WHERE skill.user_id = $1 \
                    AND skill.skill_name = $2 AND audit.action = 'promote' \
                    AND audit.made_at <= $3 ORDER BY audit.made_at DESC, audit.id DESC LIMIT 1";
    let promoted =
        sqlx::query(promoted).bind(user_id.clone()).bind(skill_name.clone()).bind(at.clone());
    if let Some(row) = promoted.fetch_optional(&mut *connection).await? {
        return row.try_get(0);
    }
    let oldest = "SELECT id FROM skill_versions WHERE user_id = $1 AND skill_name = $2 \
                  ORDER BY created_at, id LIMIT 1";
    let oldest = sqlx::query(oldest).bind(user_id.clone()).bind(skill_name.clone());
    if let Some(row) = oldest.fetch_optional(&mut *connection).await? {
        return row.try_get(0);
    }
    let id =
        selftest_text::digest::uuid_of(&format!("skill\0{user_id}\0{skill_name}\0{UNVERSIONED}"));
    let query = "INSERT INTO skill_versions (id, user_id, skill_name, version, is_active, \
                 created_at, promoted_at) VALUES ($1, $2, $3, $4, $5, $6, $6)";
    let query = sqlx::query(query).bind(id.clone()).bind(user_id).bind(skill_name);
    query.bind(UNVERSIONED).bind(1_i16).bind(at).execute(connection).await?;
    Ok(id)
}

/// Whether there was an execution to count it for.
async fn record_message(
    connection: &mut AnyConnection,
    user_id: &str,
    session_id: &str,
    reaction: &Reaction,
    at: Timestamp,
) -> Result<bool, sqlx::Error> {
    let query = "SELECT id FROM skill_executions \
                 WHERE session_id = $1 AND user_id = $2 AND created_at <= $3 \
                 ORDER BY created_at DESC, id DESC LIMIT 1";
    let query = sqlx::query(query)
        .bind(bound::text(session_id, bound::NAME))
        .bind(bound::text(user_id, bound::NAME))
        .bind(time(at));
    let Some(row) = query.fetch_optional(&mut *connection).await? else {
        return Ok(false);
    };
    react(connection, &row.try_get::<String, _>(0)?, reaction, at).await
}

/// Notes what the message after an execution says, and whether it is the first one that does. It
/// adds to what was recorded with the execution and takes nothing back.
async fn react(
    connection: &mut AnyConnection,
    execution_id: &str,
    reaction: &Reaction,
    at: Timestamp,
) -> Result<bool, sqlx::Error> {
    let execution_id = bound::text(execution_id, bound::NAME);
    let query = "INSERT INTO skill_signals \
                 (execution_id, made_at, gratitude, repetition, frustration) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (execution_id) DO NOTHING";
    let query = sqlx::query(query)
        .bind(execution_id.clone())
        .bind(time(at))
        .bind(i16::from(reaction.gratitude))
        .bind(reaction.repetition.map(i16::from))
        .bind(i16::from(reaction.frustration));
    if query.execute(&mut *connection).await?.rows_affected() == 0 {
        return Ok(false);
    }
    for (says, update) in [
        (reaction.edited, "UPDATE skill_executions SET user_edited_output = $2 WHERE id = $1"),
        (reaction.gratitude, "UPDATE skill_executions SET user_sent_thank_you = $2 WHERE id = $1"),
        (
            reaction.repetition == Some(true),
            "UPDATE skill_executions SET user_repeated_request = $2 WHERE id = $1",
        ),
    ] {
        if says {
            let query = sqlx::query(update).bind(execution_id.clone()).bind(1_i16);
            query.execute(&mut *connection).await?;
        }
    }
    Ok(true)
}
