//! The `skills` section of the configuration. Reads nothing itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `skills` section: how executions of skills are counted, and what becomes of bad skills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SkillSettings {
    /// Whose skills these are; kept with every version and every execution.
    #[schemars(length(min = 1, max = 200))]
    pub user_id: String,
    /// Days that a score looks back.
    #[schemars(range(min = 1, max = 3650))]
    pub lookback_days: u32,
    /// When a skill is disabled without being asked.
    pub disable: DisableSettings,
    /// Who is told after a skill was promoted, disabled or rolled back.
    pub refresh: RefreshSettings,
}

impl Default for SkillSettings {
    /// docs/spec/skills-and-signals.md#effectiveness-score: 30 days. The user is a setting.
    fn default() -> Self {
        Self {
            user_id: "local".to_owned(),
            lookback_days: 30,
            disable: DisableSettings::default(),
            refresh: RefreshSettings::default(),
        }
    }
}

/// When a skill is disabled without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DisableSettings {
    /// The score below which a skill is disabled.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: f64,
    /// Fewest executions that such a decision takes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_executions: u32,
    /// A skill is disabled too when the upper end of the 95 % interval of its success rate is
    /// below this; 0.0 switches that off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub success_rate: f64,
}

impl Default for DisableSettings {
    /// docs/spec/skills-and-signals.md#disabling; the success rate is not specified.
    fn default() -> Self {
        Self { threshold: 0.3, min_executions: 10, success_rate: 0.5 }
    }
}

/// Who is told that the skills in use have changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RefreshSettings {
    /// A program and its arguments that get the change. Absent: none is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// An address that the change is posted to. Absent: nothing is sent.
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
