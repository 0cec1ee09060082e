//! The `gaps` section of the configuration. Reads nothing itself.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `gaps` section: what counts as a gap in the agent's skills, and how proposals are drafted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GapSettings {
    /// Days that detection looks back.
    #[schemars(range(min = 1, max = 3650))]
    pub lookback_days: u32,
    /// Fewest sessions that met errors of the same class at the same tool.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub error_sessions: u64,
    /// Fewest sessions that called the same tool that does not exist.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unknown_tool_sessions: u64,
    /// Fewest sessions of a task type before it can be low.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub task_sessions: u64,
    /// A task type is low when the upper end of the 95 % interval of its completion rate is below
    /// this …
    #[schemars(range(min = 0.0, max = 1.0))]
    pub completion_rate: f64,
    /// … or when its mean score, 1 to 5, is below this.
    #[schemars(range(min = 1.0, max = 5.0))]
    pub task_score: f64,
    /// Fewest sessions in which people had to repeat a similar request.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub repeated_sessions: u64,
    /// Most open gaps that one run drafts skills for.
    #[schemars(range(min = 1, max = 100))]
    pub proposals_per_run: u32,
    /// Most tokens of a drafted skill. From 3428 on its instructions may have 3000 characters, else
    /// fewer.
    #[schemars(range(min = 64, max = 32768))]
    pub max_tokens: u32,
    /// How often a malformed draft is asked for again.
    #[schemars(range(min = 0, max = 20))]
    pub max_reasks: u32,
    /// File of a suite, as `selftest freeze` writes it, on whose cases each drafted skill is tried;
    /// without one it is proposed untested.
    #[schemars(length(min = 1))]
    pub suite: Option<PathBuf>,
    /// How often each of its cases is run with the skill, and as often without.
    #[schemars(range(min = 1, max = 1000))]
    pub repeats: u32,
    /// Folder that accepted skills are written to, each as <name>/SKILL.md.
    #[schemars(length(min = 1))]
    pub skills_folder: PathBuf,
}

impl Default for GapSettings {
    /// docs/spec/skills-and-signals.md#skill-generation gives the 3 gaps of a run,
    /// docs/spec/session-grades.md#skill-recommendations the score of 3; the others are ours.
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
