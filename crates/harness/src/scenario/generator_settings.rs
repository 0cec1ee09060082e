//! The `generator` section of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_models::DEFAULT_THINK_TOKENS;
use selftest_models::name::ModelName;

/// The `generator` section: the model that writes the prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GeneratorSettings {
    /// The model; `auto`, `provider/model`, or a bare name that `auto` resolves.
    #[schemars(length(min = 1), extend("examples" = ModelName::examples()))]
    pub model: String,
    /// Sampling temperature.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Maximum number of tokens of a generated prompt with its hints.
    #[schemars(range(min = 16, max = 32768))]
    pub max_tokens: u32,
    /// Maximum number of attempts to get a usable prompt; after that, a template is filled with an
    /// excerpt of the project.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// Set to let a thinking model think before the prompt. Default: it must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Maximum number of thinking tokens, in addition to those of the prompt. Only used if `think`
    /// is true.
    #[schemars(range(min = 16, max = 131_072))]
    pub think_tokens: u32,
}

impl Default for GeneratorSettings {
    fn default() -> Self {
        Self {
            model: "auto".to_owned(),
            temperature: 0.7,
            max_tokens: 500,
            max_attempts: 3,
            think: None,
            think_tokens: DEFAULT_THINK_TOKENS,
        }
    }
}
