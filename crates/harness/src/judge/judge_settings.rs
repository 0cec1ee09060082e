//! The `judge` section of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_models::DEFAULT_THINK_TOKENS;
use selftest_models::name::ModelName;

/// The method by which a judge is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum JudgeMethod {
    /// By decisions if it is a decision model, by probability if it supports logprobs, else for a
    /// verdict.
    #[default]
    Auto,
    /// Yes/no questions, all in one request to a decision model.
    Decision,
    /// Yes/no questions, answered by the probabilities of the first token.
    Probability,
    /// One JSON object with a score for each category.
    Verdict,
}

impl JudgeMethod {
    /// Returns true if readings are taken, which known answers weigh; a verdict has scores of its own.
    pub fn takes_readings(self) -> bool {
        matches!(self, Self::Decision | Self::Probability)
    }
}

/// The `judge` section: the model that scores the answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JudgeSettings {
    /// The model; `auto`, `provider/model`, or a bare name that `auto` resolves.
    #[schemars(length(min = 1), extend("examples" = ModelName::examples()))]
    pub model: String,
    /// Different models that all judge every answer, instead of `model`; the mean of their scores
    /// counts. Two or more, or none.
    #[schemars(length(max = 7), inner(length(min = 1)))]
    pub panel: Vec<String>,
    /// Sampling temperature; 0.0 is deterministic.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Maximum number of tokens of a verdict.
    #[schemars(range(min = 16, max = 32768))]
    pub max_tokens: u32,
    /// Maximum number of times a malformed verdict is asked for again.
    #[schemars(range(max = 20))]
    pub max_reasks: u32,
    /// Maximum number of tokens of a prompt to the judge. A case that needs more is unscored, not
    /// cut.
    #[schemars(range(min = 256, max = 1_048_576))]
    pub max_prompt_tokens: u32,
    /// Method by which the model is asked.
    pub method: JudgeMethod,
    /// Minimum area under the ROC curve (0.5 is chance, 1.0 perfect) that the judge must reach on
    /// known answers, by the lower end of its 95 % interval. Below it the judge decides nothing. 0
    /// accepts any judge and every score.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_auc: f64,
    /// Maximum share of wrong verdicts among the judge's passes, and among its fails. Scores at which
    /// more were wrong on known answers are left undecided.
    #[schemars(range(min = 0.01, max = 0.5))]
    pub max_wrong: f64,
    /// Measures a judge that was never measured, before its first verdict: 20 to 80 known answers, at
    /// most 60 seconds and 100,000 tokens. The result is kept until the judge changes. With `off`, a
    /// judge that was never measured judges without any promise, and reports say so.
    pub certificate: JudgeCertificate,
    /// Maximum probability, 0 to 1, that an answer to a yes/no question may leave to other words.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_neither: f64,
    /// Number of verdicts to ask for on each answer, each with another seed; the score is their
    /// mean. More than one requires `method: verdict` and a `temperature` above 0.
    #[schemars(range(min = 1, max = 9))]
    pub samples: u32,
    /// Set to have the judge explain its answer to the lowest-scoring question.
    pub explain: bool,
    /// Set to let a thinking model think before the verdict. Default: it must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Maximum number of thinking tokens, in addition to those of the verdict. Only used if `think`
    /// is true.
    #[schemars(range(min = 16, max = 131_072))]
    pub think_tokens: u32,
}

/// Whether a judge is measured before its first verdict.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum JudgeCertificate {
    /// Measures it at its first run.
    #[default]
    Auto,
    /// Never measures it.
    Off,
}

impl JudgeSettings {
    /// Returns the names of the models that judge: those of the panel, or the single one.
    pub fn models(&self) -> Vec<&str> {
        if self.panel.is_empty() {
            vec![self.model.as_str()]
        } else {
            self.panel.iter().map(String::as_str).collect()
        }
    }

    /// Returns the settings for measuring the judge itself: one verdict per answer, without
    /// explanations.
    #[must_use]
    pub fn for_measurement(&self) -> Self {
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
            min_auc: 0.55,
            max_wrong: 0.1,
            certificate: JudgeCertificate::Auto,
            max_neither: 0.95,
            samples: 1,
            explain: true,
            think: None,
            think_tokens: DEFAULT_THINK_TOKENS,
        }
    }
}
