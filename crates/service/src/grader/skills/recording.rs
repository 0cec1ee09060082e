//! Prepares reported executions and messages for storage: truncated and redacted. Only the reaction
//! expressed by a message is stored, never its text.

use super::SkillTracker;
use selftest_grading::improve::skill::{ExecutionStatus, SkillExecution, UserReaction};
use selftest_grading::signal::{MessageSignals, classify_signals};
use selftest_store::{SkillRecord, SkillRecordCounts, SkillRef, SkillRequest, StoreError};
use selftest_text::clip;
use selftest_text::digest::uuid_from_name;

/// Maximum bytes of an error message.
const MAX_ERROR: usize = 4000;

/// A reported skill execution.
#[derive(Debug, Clone, PartialEq)]
pub struct NewExecution {
    /// Skill that was used.
    pub skill: SkillRef,
    /// Session in which it was used.
    pub session_id: Option<String>,
    /// Result of the execution.
    pub execution_status: ExecutionStatus,
    /// True if the user significantly changed the result.
    pub user_edited_output: bool,
    /// True if the user's next message is known to express gratitude.
    pub user_sent_thank_you: bool,
    /// True if the user is known to have repeated the request.
    pub user_repeated_request: bool,
    /// Number of conversation turns for the task.
    pub conversation_turns: Option<u32>,
    /// Duration in milliseconds.
    pub execution_time_ms: Option<u32>,
    /// Error message.
    pub error_message: Option<String>,
}

/// A reported user message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Session in which it was written.
    pub session_id: String,
    /// Text of the message.
    pub message: String,
    /// The user's previous message; without it a repeated request cannot be recognized.
    pub previous: Option<String>,
    /// True if the user significantly changed the last result.
    pub user_edited_output: bool,
}

impl SkillTracker {
    /// Creates the record of an execution that happened just now.
    pub fn execution_record(&self, told: NewExecution) -> SkillRecord {
        let error = told.error_message.map(|words| clip(&self.redactor.apply(&words), MAX_ERROR));
        let execution = SkillExecution {
            id: uuid_from_name(&format!("{:032x}", rand::random::<u128>())),
            // Set by the store.
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

    /// Creates the record of a message that was just written, without its text.
    pub fn message_record(&self, told: &NewMessage) -> (MessageSignals, SkillRecord) {
        let signals = classify_signals(&told.message, told.previous.as_deref(), None);
        let record = SkillRecord::Message {
            user_id: self.user_id().to_owned(),
            session_id: told.session_id.clone(),
            reaction: UserReaction { edited: told.user_edited_output, ..reaction(&signals) },
            at: selftest_clock::now(),
        };
        (signals, record)
    }

    /// Saves records, all or none. Unknown skills are counted and are not an error.
    pub async fn record(&self, records: &[SkillRecord]) -> Result<SkillRecordCounts, StoreError> {
        self.store.record_skills(records).await
    }

    /// Saves records sent by clients; a request with a key is saved once.
    pub async fn record_requests(
        &self,
        requests: &[SkillRequest],
    ) -> Result<SkillRecordCounts, StoreError> {
        self.store.record_requests(requests).await
    }
}

/// Converts the signals of a message to a reaction to the preceding execution.
pub(super) fn reaction(signals: &MessageSignals) -> UserReaction {
    UserReaction {
        gratitude: signals.gratitude,
        repetition: signals.repetition,
        frustration: signals.frustration,
        edited: false,
    }
}
