//! The `grade.quality` section of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rubric::QualityDimension;
use selftest_models::DEFAULT_THINK_TOKENS;
use selftest_models::name::ModelName;
use selftest_stats::score::Weight;

/// The `grade.quality` section: the model that grades recorded sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QualitySettings {
    /// Model to use: `auto`, `provider/model`, or a bare name that `auto` resolves.
    #[schemars(length(min = 1), extend("examples" = ModelName::examples()))]
    pub model: String,
    /// Sampling temperature; 0.0 is deterministic.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Maximum number of tokens in a reply.
    #[schemars(range(min = 16, max = 32768))]
    pub max_tokens: u32,
    /// Number of times to ask again after a malformed reply.
    #[schemars(range(min = 0, max = 20))]
    pub max_reasks: u32,
    /// Maximum number of tokens in a condensed transcript.
    #[schemars(range(min = 256, max = 1_000_000))]
    pub max_transcript_tokens: u32,
    /// Number of sessions to grade concurrently.
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: u32,
    /// Weights of the dimensions in the overall score; they sum to 1.
    pub weights: QualityWeights,
    /// Allow a thinking model to think before the reply. Absent: not allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Maximum number of thinking tokens, in addition to those of the reply. Only used if `think`
    /// is true.
    #[schemars(range(min = 16, max = 131_072))]
    pub think_tokens: u32,
}

impl Default for QualitySettings {
    fn default() -> Self {
        Self {
            model: "auto".to_owned(),
            temperature: 0.0,
            max_tokens: 1200,
            max_reasks: 2,
            max_transcript_tokens: 8000,
            concurrency: 2,
            weights: QualityWeights::default(),
            think: None,
            think_tokens: DEFAULT_THINK_TOKENS,
        }
    }
}

/// Weight of each dimension in the overall score. The specification leaves these open.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QualityWeights {
    /// Weight of solving the problem.
    pub problem_solved: Weight,
    /// Weight of adding tests.
    pub tests_added: Weight,
    /// Weight of clean code.
    pub code_clean: Weight,
    /// Weight of handling edge cases.
    pub edge_cases_handled: Weight,
}

impl QualityWeights {
    /// Returns the weight of a dimension.
    pub const fn weight(&self, dimension: QualityDimension) -> f64 {
        match dimension {
            QualityDimension::ProblemSolved => self.problem_solved.get(),
            QualityDimension::TestsAdded => self.tests_added.get(),
            QualityDimension::CodeClean => self.code_clean.get(),
            QualityDimension::EdgeCases => self.edge_cases_handled.get(),
        }
    }

    /// Returns the sum of the weights, rounded to six decimals.
    pub fn sum(&self) -> f64 {
        let sum: f64 = QualityDimension::ALL.iter().map(|dimension| self.weight(*dimension)).sum();
        (sum * 1e6).round() / 1e6
    }
}

impl Default for QualityWeights {
    fn default() -> Self {
        let weight = |share| Weight::new(share).expect("the default weights are in range");
        Self {
            problem_solved: weight(0.4),
            tests_added: weight(0.2),
            code_clean: weight(0.2),
            edge_cases_handled: weight(0.2),
        }
    }
}
