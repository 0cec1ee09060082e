//! The judge: a neutral transcript in, a verdict out.
//!
//! Never sees a system under test, only what it said. Computes the overall score itself and
//! never asks a model for it (design: "the judge never grades itself").

pub mod ask;
pub mod judge_settings;
pub mod prompt;
pub mod verdict;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_models::CallRecord;
use selftest_models::structured::UnscoredReason;
use selftest_stats::score::Score;

/// The score of one category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryScore {
    /// Id of the category, such as `format_score`.
    pub category: String,
    /// `None`: the judge says that it can't tell.
    pub score: Option<Score>,
}

/// Scores of every category, and the overall score that the harness made of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scorecard {
    /// One entry per category, in the rubric's order; all of them have a score.
    pub categories: Vec<CategoryScore>,
    /// `Σ weight · score`.
    pub overall: Score,
    /// The judge's words.
    pub reasoning: String,
}

impl Scorecard {
    /// The score of a category, if the rubric has it.
    pub fn score(&self, category: &str) -> Option<Score> {
        self.categories.iter().find(|entry| entry.category == category)?.score
    }
}

/// What the judge says of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Verdict {
    /// All categories have a score.
    Scored(Scorecard),
    /// There is no score.
    Unscored {
        /// Which kind.
        reason: UnscoredReason,
        /// What exactly was wrong, in one line.
        detail: String,
        /// What was readable, such as the scores beside a "can't tell"; for people, never for
        /// the gate.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        partial: Vec<CategoryScore>,
    },
}

/// A verdict with every call that led to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Questions counted in the answer by rule, as told to the judge.
    pub question_count: u32,
    /// Calls in order; more than one when a malformed reply was re-asked.
    pub calls: Vec<CallRecord>,
}
