//! Tracks skills: their executions, their effectiveness, and which versions are active
//! (docs/spec/skills-and-signals.md#skill-effectiveness).
//!
//! The module `improve` computes scores and decides; this one carries the decisions out. Reported
//! executions are truncated and redacted. Of a message only the reaction that it expresses is
//! stored, never its text. Prints nothing.

mod change;
mod derive;
mod recording;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

pub use change::SkillChangeError;
pub use derive::{DeriveOptions, DerivedCounts};
pub use recording::{NewExecution, NewMessage};
use selftest_grading::improve::effectiveness::Effectiveness;
use selftest_grading::improve::skill::{SkillScore, SkillVersion};
use selftest_grading::improve::skill_settings::SkillSettings;
use selftest_grading::improve::trend;
use selftest_store::{SkillDayCount, Store, StoreError};
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
        let first = trend::first_day(today).to_zoned(TimeZone::UTC);
        let first = first.map_or(Timestamp::MIN, |first| first.timestamp());
        self.store.skill_days(self.user_id(), first).await
    }

    /// Returns the time from which executions count at `now`.
    pub fn lookback(&self, now: Timestamp) -> Timestamp {
        let days = i64::from(self.settings.lookback_days);
        now.checked_sub(SignedDuration::from_hours(24 * days)).unwrap_or(Timestamp::MIN)
    }
}
