//! The `skills` section of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `skills` section: how executions of skills are scored, and when bad skills are disabled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SkillSettings {
    /// Owner of the skills, stored with every version and execution.
    #[schemars(length(min = 1, max = 200))]
    pub user_id: String,
    /// Number of days that a score covers.
    #[schemars(range(min = 1, max = 3650))]
    pub lookback_days: u32,
    /// Rules for disabling a skill automatically.
    pub disable: DisableSettings,
    /// Hooks to run after a skill was promoted, disabled or rolled back.
    pub refresh: RefreshSettings,
}

impl Default for SkillSettings {
    /// The 30 days come from docs/spec/skills-and-signals.md#effectiveness-score; the specification
    /// leaves the user open.
    fn default() -> Self {
        Self {
            user_id: "local".to_owned(),
            lookback_days: 30,
            disable: DisableSettings::default(),
            refresh: RefreshSettings::default(),
        }
    }
}

/// Rules for disabling a skill automatically.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DisableSettings {
    /// Score below which a skill is disabled.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: f64,
    /// Minimum number of executions before a skill can be disabled.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_executions: u32,
    /// A skill is also disabled if the upper end of the 95 % interval of its success rate is below
    /// this; 0.0 turns this rule off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub success_rate: f64,
}

impl Default for DisableSettings {
    /// Values from docs/spec/skills-and-signals.md#disabling. The success rate is not specified.
    fn default() -> Self {
        Self { threshold: 0.3, min_executions: 10, success_rate: 0.5 }
    }
}

/// Hooks that announce changes to the active skills.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RefreshSettings {
    /// Program and arguments that receive the change. Absent: no program is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// URL that the change is posted to. Absent: nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub webhook: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/spec/skills-and-signals.md#effectiveness-score, #disabling: 30 days, 0.3, 10
    /// executions.
    #[test]
    fn the_defaults_are_as_specified() {
        let settings = SkillSettings::default();
        assert_eq!(settings.lookback_days, 30);
        assert_eq!((settings.disable.threshold, settings.disable.min_executions), (0.3, 10));
    }
}
