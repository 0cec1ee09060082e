//! The `jobs` section of the configuration. Reads nothing itself.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Heartbeats of a worker that may be missing before its work is given to others.
pub(super) const MAX_MISSED_HEARTBEATS: u32 = 3;

/// Longest wait after a model did not answer.
const MAX_WAIT: Duration = Duration::from_mins(5);

/// The `jobs` section: schedule, heartbeats, attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobSettings {
    /// When the scheduled jobs run.
    pub schedule: ScheduleSettings,
    /// Seconds between two heartbeats of a worker. After three that are missing its work is given
    /// to others.
    #[schemars(range(min = 1, max = 3600))]
    pub heartbeat_seconds: u32,
    /// How often a job is begun before it counts as failed.
    #[schemars(range(min = 1, max = 1000))]
    pub max_attempts: u32,
    /// Seconds that a worker waits before a grading is tried again because the model did not
    /// answer; three times as long each further time, at most 300.
    #[schemars(range(min = 0.0, max = 300.0))]
    pub retry_seconds: f64,
    /// Days that gradings stay in the queue's tables after they are done.
    #[schemars(range(min = 0, max = 3650))]
    pub keep_days: u32,
}

impl Default for JobSettings {
    fn default() -> Self {
        Self {
            schedule: ScheduleSettings::default(),
            heartbeat_seconds: 10,
            max_attempts: 3,
            retry_seconds: 10.0,
            keep_days: 7,
        }
    }
}

impl JobSettings {
    /// Between two heartbeats.
    pub(super) fn heartbeat(&self) -> Duration {
        Duration::from_secs(u64::from(self.heartbeat_seconds))
    }

    /// After which silence a worker counts as dead.
    pub(super) fn dead_after(&self) -> Duration {
        self.heartbeat() * MAX_MISSED_HEARTBEATS
    }

    /// How long to wait after the attempt with that number, from 1.
    pub(super) fn wait_after(&self, attempt: usize) -> Duration {
        let times =
            3_u32.saturating_pow(u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
        let seconds = (self.retry_seconds * f64::from(times)).clamp(0.0, MAX_WAIT.as_secs_f64());
        Duration::try_from_secs_f64(seconds).unwrap_or(MAX_WAIT)
    }
}

/// The `jobs.schedule` section: for each job cron with five fields (minute, hour, day of the
/// month, month, weekday) in UTC, or `off`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleSettings {
    /// When gaps in the agent's skills are looked for.
    #[schemars(length(min = 1, max = 100))]
    pub gap_detection: String,
    /// When skills are drafted for open gaps.
    #[schemars(length(min = 1, max = 100))]
    pub skill_generation: String,
    /// When the report of the week is written.
    #[schemars(length(min = 1, max = 100))]
    pub weekly_report: String,
    /// When skills are scored, and disabled where they do not work.
    #[schemars(length(min = 1, max = 100))]
    pub skill_scoring: String,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self {
            gap_detection: "0 3 * * SUN".to_owned(),
            skill_generation: "15 3 * * SUN".to_owned(),
            weekly_report: "30 3 * * SUN".to_owned(),
            skill_scoring: "0 4 * * SUN".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_grows_and_stops_growing() {
        let settings = JobSettings::default();
        let waits = [1, 2, 3, 4, 5, usize::MAX].map(|attempt| settings.wait_after(attempt));
        assert_eq!(waits.map(|wait| wait.as_secs()), [10, 30, 90, 270, 300, 300]);
        let none = JobSettings { retry_seconds: 0.0, ..settings };
        assert_eq!(none.wait_after(usize::MAX), Duration::ZERO);
    }
}
