//! The `grade.reflection` section of the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use selftest_stats::score::{Score, Threshold};

/// The `grade.reflection` section: how reflections of agents are graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReflectionSettings {
    /// Score below which a reflection is weak.
    pub weak_threshold: Threshold,
    /// Use of the threshold proposed from past scores.
    pub adaptive: AdaptiveThreshold,
    /// Requirements for the reflections of all agents.
    pub criteria: ReflectionCriteria,
    /// Additional requirements per agent, by name; case-insensitive.
    pub agents: BTreeMap<String, AgentCriteria>,
    /// Alert for a weak reflection.
    pub hook: HookSettings,
}

impl Default for ReflectionSettings {
    fn default() -> Self {
        Self {
            weak_threshold: Threshold::new(0.6).expect("0.6 is in range"),
            adaptive: AdaptiveThreshold::default(),
            criteria: ReflectionCriteria::default(),
            agents: BTreeMap::new(),
            hook: HookSettings::default(),
        }
    }
}

/// Use of the threshold proposed from past scores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdaptiveThreshold {
    /// The proposal is only shown.
    #[default]
    Propose,
    /// The proposal is used if it is above `weak_threshold`.
    Apply,
}

/// Requirements for a reflection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReflectionCriteria {
    /// Minimum confidence without a deduction.
    pub min_confidence: Score,
    /// Minimum number of characters in a summary; below it is too brief.
    #[schemars(range(max = 1_000_000))]
    pub summary_min_chars: u32,
    /// Maximum number of characters in a summary; above it is too long.
    #[schemars(range(max = 1_000_000))]
    pub summary_max_chars: u32,
    /// Regular expression that a tag must match to refer to a loop.
    #[schemars(length(min = 1))]
    pub tag_pattern: String,
    /// Minimum share of the goal's words that the summary must use; 0.0 disables the check.
    pub min_goal_overlap: Score,
    /// JSON Schema of a reflection. If `schema_file` is absent too, goal, summary, confidence and
    /// tags are required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// File that contains the schema, relative to the project folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub schema_file: Option<PathBuf>,
}

impl Default for ReflectionCriteria {
    fn default() -> Self {
        Self {
            min_confidence: Score::new(0.6).expect("0.6 is in range"),
            summary_min_chars: 50,
            summary_max_chars: 1000,
            tag_pattern: r"(?i)^#?loop([ :_#-]+\w|\d)".to_owned(),
            min_goal_overlap: Score::new(0.25).expect("0.25 is in range"),
            schema: None,
            schema_file: None,
        }
    }
}

/// Requirements for one agent. Absent values default to those for all agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentCriteria {
    /// Minimum confidence without a deduction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_confidence: Option<Score>,
    /// Minimum number of characters in a summary; below it is too brief.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub summary_min_chars: Option<u32>,
    /// Maximum number of characters in a summary; above it is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub summary_max_chars: Option<u32>,
    /// Regular expression that a tag must match to refer to a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tag_pattern: Option<String>,
    /// Minimum share of the goal's words that the summary must use; 0.0 disables the check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_goal_overlap: Option<Score>,
    /// JSON Schema of a reflection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// File that contains the schema, relative to the project folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub schema_file: Option<PathBuf>,
}

impl AgentCriteria {
    /// Merges the agent's requirements with those for all agents.
    pub fn merge_with(&self, all: &ReflectionCriteria) -> ReflectionCriteria {
        let own = self.clone();
        // A schema of the agent in either form replaces both forms of the general one.
        let (schema, schema_file) = match (own.schema, own.schema_file) {
            (None, None) => (all.schema.clone(), all.schema_file.clone()),
            own => own,
        };
        ReflectionCriteria {
            min_confidence: own.min_confidence.unwrap_or(all.min_confidence),
            summary_min_chars: own.summary_min_chars.unwrap_or(all.summary_min_chars),
            summary_max_chars: own.summary_max_chars.unwrap_or(all.summary_max_chars),
            tag_pattern: own.tag_pattern.unwrap_or_else(|| all.tag_pattern.clone()),
            min_goal_overlap: own.min_goal_overlap.unwrap_or(all.min_goal_overlap),
            schema,
            schema_file,
        }
    }
}

/// Hooks that receive a weak reflection, so that it can be handled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HookSettings {
    /// Program and arguments that receive the reflection. Absent: no program is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// URL that the reflection is posted to. Absent: nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub webhook: Option<String>,
}
