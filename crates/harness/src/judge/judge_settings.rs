//! The `judge` section of the configuration. Reads nothing itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_models::DEFAULT_THINK_TOKENS;

/// The `judge` section: the model that scores the answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JudgeSettings {
    /// The model; `auto`, `provider/model`, or a bare name that `auto` resolves.
    #[schemars(length(min = 1))]
    pub model: String,
    /// Sampling temperature; 0.0 is deterministic.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Most tokens of a verdict.
    #[schemars(range(min = 16, max = 32768))]
    pub max_tokens: u32,
    /// How often a malformed verdict is asked for again.
    #[schemars(range(max = 20))]
    pub max_reasks: u32,
    /// Most tokens of a prompt to the judge; a case that needs more is unscored, not cut.
    #[schemars(range(min = 256, max = 1_048_576))]
    pub max_prompt_tokens: u32,
    /// Whether a thinking model may think before the verdict. Absent: it may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Most tokens of thinking, beside those of the verdict; only where `think` is true.
    #[schemars(range(min = 16, max = 131_072))]
    pub think_tokens: u32,
}

impl Default for JudgeSettings {
    fn default() -> Self {
        Self {
            model: "auto".to_owned(),
            temperature: 0.0,
            max_tokens: 1000,
            max_reasks: 2,
            max_prompt_tokens: 6000,
            think: None,
            think_tokens: DEFAULT_THINK_TOKENS,
        }
    }
}
