//! The judge: a neutral transcript in, a verdict out.
//!
//! Never sees a system under test, only what it said. Computes the overall score itself and
//! never asks a model for it (design: "the judge never grades itself").

pub mod ask;
pub mod asking;
pub mod evidence;
pub mod prompt;
pub(crate) mod reply;
pub mod settings;
pub mod verdict;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::CallRecord;
use crate::score::Score;

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

/// Why there is no score. None of these is a pass, a fail or a zero.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum UnscoredReason {
    /// The reply is not a verdict, and re-asking did not help.
    Malformed,
    /// The reply, or the prompt that the judge saw, was cut by a limit.
    Truncated,
    /// The judge declined.
    Refused,
    /// The judge says of a category that it can't tell.
    CantTell,
    /// No reply: the server is gone, or answers something that is not its protocol.
    Unavailable,
}

impl UnscoredReason {
    /// In words for people.
    pub const fn describe(self) -> &'static str {
        match self {
            UnscoredReason::Malformed => "the judge's reply is not a valid verdict",
            UnscoredReason::Truncated => "the judge's reply or prompt was cut by a limit",
            UnscoredReason::Refused => "the judge refused",
            UnscoredReason::CantTell => "the judge could not tell",
            UnscoredReason::Unavailable => "the judge gave no reply",
        }
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
