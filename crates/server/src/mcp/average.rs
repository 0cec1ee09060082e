//! What several models say of one session, as answers show it.

use schemars::JsonSchema;
use serde::Serialize;

use selftest_grading::grade::QualityGrade;
use selftest_grading::grade::quality::{Spread, combine};

/// The average over the models, by the rubric of now.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Average {
    /// Version of the rubric.
    rubric_version: u32,
    /// How many models have graded the session by it.
    models: usize,
    /// Was the problem solved?
    problem_solved: Option<Consensus>,
    /// Were tests added?
    tests_added: Option<Consensus>,
    /// Is the code clean?
    code_clean: Option<Consensus>,
    /// Were edge cases handled?
    edge_cases: Option<Consensus>,
    /// Of the models' overall scores.
    overall: Option<Consensus>,
}

/// The mean over the models that have a score; null where none has.
#[derive(Debug, Serialize, JsonSchema)]
struct Consensus {
    /// 0 to 1.
    mean: f64,
    /// Highest minus lowest: 0 where all agree, and where there is only one model.
    spread: f64,
    /// Models that have a score.
    models: usize,
}

impl From<Spread> for Consensus {
    fn from(Spread { mean, spread, models }: Spread) -> Self {
        Self { mean, spread, models }
    }
}

impl Average {
    /// `None` without a grade.
    pub(super) fn of(grades: &[QualityGrade]) -> Option<Self> {
        let combined = combine(grades)?;
        Some(Self {
            rubric_version: combined.rubric_version,
            models: combined.models,
            problem_solved: combined.problem_solved.map(Into::into),
            tests_added: combined.tests_added.map(Into::into),
            code_clean: combined.code_clean.map(Into::into),
            edge_cases: combined.edge_cases.map(Into::into),
            overall: combined.overall.map(Into::into),
        })
    }
}
