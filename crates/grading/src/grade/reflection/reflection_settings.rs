//! The `grade.reflection` section of the configuration. Reads nothing itself.

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
    /// A reflection with a score below it is weak.
    pub weak_threshold: Threshold,
    /// The use of the threshold that past scores propose.
    pub adaptive: AdaptiveThreshold,
    /// The requirements for reflections of all agents.
    pub criteria: ReflectionCriteria,
    /// Further requirements for an agent, by its name; case-insensitive.
    pub agents: BTreeMap<String, AgentCriteria>,
    /// The alert for a weak reflection.
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

/// The use of the threshold that past scores propose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdaptiveThreshold {
    /// It is shown.
    #[default]
    Propose,
    /// It is in force where it is above `weak_threshold`.
    Apply,
}

/// The requirements for a reflection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReflectionCriteria {
    /// The least confidence that costs nothing.
    pub min_confidence: Score,
    /// Fewest characters of a summary that is not too brief.
    #[schemars(range(max = 1_000_000))]
    pub summary_min_chars: u32,
    /// Most characters of a summary that is not too long.
    #[schemars(range(max = 1_000_000))]
    pub summary_max_chars: u32,
    /// Regular expression that a tag must match to refer to a loop.
    #[schemars(length(min = 1))]
    pub tag_pattern: String,
    /// The least share of the goal's words that the summary must use; 0.0 asks for none.
    pub min_goal_overlap: Score,
    /// JSON Schema of a reflection. Absent, without `schema_file` too: goal, summary, confidence
    /// and tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// File that holds the schema, from the project folder.
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

/// The requirements for one agent. An absent one is as for all agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentCriteria {
    /// The least confidence that costs nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_confidence: Option<Score>,
    /// Fewest characters of a summary that is not too brief.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub summary_min_chars: Option<u32>,
    /// Most characters of a summary that is not too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub summary_max_chars: Option<u32>,
    /// Regular expression that a tag must match to refer to a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tag_pattern: Option<String>,
    /// The least share of the goal's words that the summary must use; 0.0 asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_goal_overlap: Option<Score>,
    /// JSON Schema of a reflection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// File that holds the schema, from the project folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub schema_file: Option<PathBuf>,
}

impl AgentCriteria {
    /// Everything that is expected of the agent.
    pub fn over(&self, all: &ReflectionCriteria) -> ReflectionCriteria {
        let own = self.clone();
        // The agent's schema stands for that of all agents, wherever either is.
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

/// Whom a weak reflection is handed to, so that something can be done about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HookSettings {
    /// A program and its arguments that get the reflection. Absent: none is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// An address that the reflection is posted to. Absent: nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub webhook: Option<String>,
}
