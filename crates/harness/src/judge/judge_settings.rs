//! The `judge` section of the configuration. Reads nothing itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_models::DEFAULT_THINK_TOKENS;

/// How a judge is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum JudgeMethod {
    /// By probability where the model tells probabilities, else for a verdict.
    #[default]
    Auto,
    /// Yes/no questions, answered by the probabilities of the first token.
    Probability,
    /// One JSON object with a score for each category.
    Verdict,
}

/// The `judge` section: the model that scores the answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JudgeSettings {
    /// The model; `auto`, `provider/model`, or a bare name that `auto` resolves.
    #[schemars(length(min = 1))]
    pub model: String,
    /// Unlike models that all judge every answer, instead of `model`; the mean of their scores counts.
    /// Two or more, or none.
    #[schemars(length(max = 7), inner(length(min = 1)))]
    pub panel: Vec<String>,
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
    /// How the model is asked.
    pub method: JudgeMethod,
    /// The least area under the ROC curve (0.5 is chance, 1.0 perfect) that the judge must reach on
    /// known answers: the lower end of its 95 % interval. Below it nothing is scored, nor where it is
    /// wrong about half of the good or of the bad ones about which it is sure. Answers of a run about
    /// which it is not sure are unscored. 0 asks any judge and takes every score as it is.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_auc: f64,
    /// Whether a judge that was never measured is first shown a few known answers, for at most 20
    /// seconds. Reports say how it did; it decides nothing. Asked of judges whose weights are
    /// known, and kept until they change.
    pub first_impression: bool,
    /// Most probability, 0 to 1, that an answer to a yes/no question may leave to other words.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_neither: f64,
    /// How often the judge is asked for a verdict on each answer, with another seed each time; the
    /// score is the mean. More than once only with `method: verdict` and a `temperature` above 0.
    #[schemars(range(min = 1, max = 9))]
    pub samples: u32,
    /// Whether the judge says in words why the most doubted question got a no.
    pub explain: bool,
    /// Whether a thinking model may think before the verdict. Absent: it may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Most tokens of thinking, beside those of the verdict; only where `think` is true.
    #[schemars(range(min = 16, max = 131_072))]
    pub think_tokens: u32,
}

impl JudgeSettings {
    /// Names of the models that judge: those of the panel, or the one.
    pub fn models(&self) -> Vec<&str> {
        if self.panel.is_empty() {
            vec![self.model.as_str()]
        } else {
            self.panel.iter().map(String::as_str).collect()
        }
    }

    /// The same for a judge whose own worth is measured: one verdict on each answer, without words.
    #[must_use]
    pub fn measuring(&self) -> Self {
        Self { explain: false, samples: 1, ..self.clone() }
    }
}

impl Default for JudgeSettings {
    fn default() -> Self {
        Self {
            model: "auto".to_owned(),
            panel: Vec::new(),
            temperature: 0.0,
            max_tokens: 1000,
            max_reasks: 2,
            max_prompt_tokens: 6000,
            method: JudgeMethod::Auto,
            min_auc: 0.7,
            first_impression: true,
            max_neither: 0.95,
            samples: 1,
            explain: true,
            think: None,
            think_tokens: DEFAULT_THINK_TOKENS,
        }
    }
}
