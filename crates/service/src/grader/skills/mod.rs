//! Tracks skills: their executions, their effectiveness, and which versions are active
//! (docs/spec/skills-and-signals.md#skill-effectiveness).
//!
//! The module `improve` computes scores and decides; this one carries the decisions out. Reported
//! executions are truncated and redacted. Of a message only the reaction that it expresses is
//! stored, never its text. Prints nothing.

mod change;
mod derive;

pub use change::SkillChangeError;
pub use derive::{DeriveOptions, DerivedCounts};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use selftest_grading::improve::effectiveness::Effectiveness;
use selftest_grading::improve::skill;
use selftest_grading::improve::skill::{
    ExecutionStatus, SkillExecution, SkillScore, SkillSettings, SkillVersion, UserReaction,
};
use selftest_grading::signal::{MessageSignals, classify_signals};
use selftest_store::{
    SkillDayCount, SkillRecord, SkillRecordCounts, SkillRef, SkillRequest, Store, StoreError,
};
use selftest_text::clip;
use selftest_text::digest::uuid_from_name;
use selftest_text::redact::Redactor;

/// Tracks the skills of one user.
#[derive(Debug, Clone)]
pub struct SkillTracker {
    store: Store,
    settings: SkillSettings,
    redactor: Redactor,
}

impl SkillTracker {
    /// Creates a tracker for the user named in the settings.
    pub fn new(store: Store, settings: SkillSettings, redactor: Redactor) -> Self {
        Self { store, settings, redactor }
    }

    /// Returns the database.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the owner of the skills.
    pub fn user_id(&self) -> &str {
        &self.settings.user_id
    }

    /// Computes the effectiveness of a version from its recent executions.
    pub async fn compute_effectiveness(
        &self,
        skill_version_id: &str,
    ) -> Result<Effectiveness, StoreError> {
        let since = self.lookback(selftest_clock::now());
        Ok(Effectiveness::from_counts(&self.store.skill_counts(skill_version_id, since).await?))
    }

    /// Scores every active version by its executions in the days before `now`, and saves the
    /// scores.
    pub async fn score_all_skills(&self, now: Timestamp) -> Result<Vec<SkillScore>, StoreError> {
        let active = self.store.active_skills(self.user_id(), self.lookback(now)).await?;
        let score = |(skill, counts): &(SkillVersion, _)| {
            let effectiveness = Effectiveness::from_counts(counts);
            (skill.id.clone(), effectiveness.score(), effectiveness.total_executions())
        };
        let scores: Vec<_> = active.iter().map(score).collect();
        self.store.save_skill_scores(&scores, now).await?;
        let scored = active.into_iter().zip(scores);
        Ok(scored
            .map(|((skill, _), (_, score, total_executions))| SkillScore {
                skill_name: skill.skill_name,
                version: skill.version,
                score,
                total_executions,
            })
            .collect())
    }

    /// Counts executions by version and day, over the weeks of a trend that ends on `today`.
    pub async fn days(&self, today: Date) -> Result<Vec<SkillDayCount>, StoreError> {
        let first = skill::first_day(today).to_zoned(TimeZone::UTC);
        let first = first.map_or(Timestamp::MIN, |first| first.timestamp());
        self.store.skill_days(self.user_id(), first).await
    }

    /// Returns the time from which executions count at `now`.
    pub fn lookback(&self, now: Timestamp) -> Timestamp {
        let days = i64::from(self.settings.lookback_days);
        now.checked_sub(SignedDuration::from_hours(24 * days)).unwrap_or(Timestamp::MIN)
    }
}

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
fn reaction(signals: &MessageSignals) -> UserReaction {
    UserReaction {
        gratitude: signals.gratitude,
        repetition: signals.repetition,
        frustration: signals.frustration,
        edited: false,
    }
}
