//! The `gaps` section of the configuration.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `gaps` section: what counts as a gap in the agent's skills, and how proposals are drafted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GapSettings {
    /// Number of days that detection looks back.
    #[schemars(range(min = 1, max = 3650))]
    pub lookback_days: u32,
    /// Minimum number of sessions with errors of the same class from the same tool.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub error_sessions: u64,
    /// Minimum number of sessions that called the same nonexistent tool.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unknown_tool_sessions: u64,
    /// Minimum number of sessions of a task type before it can count as low.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub task_sessions: u64,
    /// A task type is low if the upper end of the 95 % interval of its completion rate is below
    /// this …
    #[schemars(range(min = 0.0, max = 1.0))]
    pub completion_rate: f64,
    /// … or if its mean score, 1 to 5, is below this.
    #[schemars(range(min = 1.0, max = 5.0))]
    pub task_score: f64,
    /// Minimum number of sessions in which users had to repeat a similar request.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub repeated_sessions: u64,
    /// Maximum number of open gaps to draft skills for per run.
    #[schemars(range(min = 1, max = 100))]
    pub proposals_per_run: u32,
    /// Maximum number of tokens of a drafted skill. From 3428 tokens on, the instructions may have
    /// 3000 characters; with fewer tokens, they are shorter.
    #[schemars(range(min = 64, max = 32768))]
    pub max_tokens: u32,
    /// Number of times to ask again after a malformed draft.
    #[schemars(range(min = 0, max = 20))]
    pub max_reasks: u32,
    /// Suite file, as written by `selftest freeze`, whose cases test each drafted skill. Without
    /// one, skills are proposed untested.
    #[schemars(length(min = 1))]
    pub suite: Option<PathBuf>,
    /// Number of times to run each of its cases with the skill, and as often without.
    #[schemars(range(min = 1, max = 1000))]
    pub repeats: u32,
    /// Folder for accepted skills, each written to <name>/SKILL.md.
    #[schemars(length(min = 1))]
    pub skills_folder: PathBuf,
}

impl Default for GapSettings {
    /// The 3 gaps per run come from docs/spec/skills-and-signals.md#skill-generation, the score of
    /// 3 from docs/spec/session-grades.md#skill-recommendations. The other defaults are ours.
    fn default() -> Self {
        Self {
            lookback_days: 28,
            error_sessions: 3,
            unknown_tool_sessions: 2,
            task_sessions: 5,
            completion_rate: 0.7,
            task_score: 3.0,
            repeated_sessions: 3,
            proposals_per_run: 3,
            max_tokens: 3500,
            max_reasks: 2,
            suite: None,
            repeats: 5,
            skills_folder: PathBuf::from(".selftest/skills"),
        }
    }
}
