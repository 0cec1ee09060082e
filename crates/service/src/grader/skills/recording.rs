//! Executions and messages as callers tell them, made fit to be kept: bounded, and without
//! secrets. Of a message only what it says about an execution is kept, never the message.

use super::SkillTracker;
use selftest_grading::improve::skill::{ExecutionStatus, Reaction, SkillExecution};
use selftest_grading::signal::{Signals, classify_signals};
use selftest_store::{Recorded, SkillRecord, SkillRef, SkillRequest, StoreError};
use selftest_text::clip;
use selftest_text::digest::uuid_of;

/// Bytes of an error's words.
const MAX_ERROR: usize = 4000;

/// A use of a skill as it is told.
#[derive(Debug, Clone, PartialEq)]
pub struct NewExecution {
    /// The skill.
    pub skill: SkillRef,
    /// The session that it was used in.
    pub session_id: Option<String>,
    /// How it ended.
    pub execution_status: ExecutionStatus,
    /// Whether the user significantly changed the result.
    pub user_edited_output: bool,
    /// Whether the user's next message was gratitude, where that is known already.
    pub user_sent_thank_you: bool,
    /// Whether the user asked for the same again, where that is known already.
    pub user_repeated_request: bool,
    /// How many turns the task took.
    pub conversation_turns: Option<u32>,
    /// How long it took, in milliseconds.
    pub execution_time_ms: Option<u32>,
    /// The error.
    pub error_message: Option<String>,
}

/// A message of a user as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// The session that it was written in.
    pub session_id: String,
    /// The message.
    pub message: String,
    /// The user's message before it; without it nobody knows whether the request is repeated.
    pub previous: Option<String>,
    /// Whether the user significantly changed the last result.
    pub user_edited_output: bool,
}

impl SkillTracker {
    /// Makes a record of an execution that happened just now.
    pub fn execution(&self, told: NewExecution) -> SkillRecord {
        let error = told.error_message.map(|words| clip(&self.redactor.apply(&words), MAX_ERROR));
        let execution = SkillExecution {
            id: uuid_of(&format!("{:032x}", rand::random::<u128>())),
            // The store fills it in.
            skill_version_id: String::new(),
            user_id: self.user_id().to_owned(),
            session_id: told.session_id,
            execution_status: told.execution_status,
            user_edited_output: told.user_edited_output,
            user_sent_thank_you: told.user_sent_thank_you,
            user_repeated_request: told.user_repeated_request,
            user_was_frustrated: None,
            conversation_turns: told.conversation_turns,
            execution_time_ms: told.execution_time_ms,
            error_message: error,
            created_at: selftest_clock::now(),
        };
        SkillRecord::Execution { skill: told.skill, execution, reaction: None }
    }

    /// Makes a record of what a message that was written just now says, without the message.
    pub fn message(&self, told: &NewMessage) -> (Signals, SkillRecord) {
        let signals = classify_signals(&told.message, told.previous.as_deref(), None);
        let record = SkillRecord::Message {
            user_id: self.user_id().to_owned(),
            session_id: told.session_id.clone(),
            reaction: Reaction { edited: told.user_edited_output, ..reaction(&signals) },
            at: selftest_clock::now(),
        };
        (signals, record)
    }

    /// Writes records, all or none. A skill that nobody made known is counted and no error.
    pub async fn record(&self, records: &[SkillRecord]) -> Result<Recorded, StoreError> {
        self.store.record_skills(records).await
    }

    /// The same for what clients sent: each request once, if it has a key.
    pub async fn record_requests(&self, requests: &[SkillRequest]) -> Result<Recorded, StoreError> {
        self.store.record_requests(requests).await
    }
}

/// The meaning of the signals of a message for the execution before it.
pub(super) fn reaction(signals: &Signals) -> Reaction {
    Reaction {
        gratitude: signals.gratitude,
        repetition: signals.repetition,
        frustration: signals.frustration,
        edited: false,
    }
}
