//! Combines grades of one session by several models into a mean and a spread. Each model has its
//! biases, so several can be asked if precision matters (docs/spec/session-quality.md#biases).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::rubric::QualityDimension;
use crate::grade::QualityGrade;

// The doc comments of this type and of `ScoreSpread` are descriptions in the schema of the MCP tools.
// Only grades by the latest version of the rubric count; numbers are rounded to nine decimals.
/// Average over the models, using the latest version of the rubric.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Average")]
pub struct CombinedQuality {
    /// Version of the rubric.
    pub rubric_version: u32,
    /// Number of models that graded the session by it.
    pub models: usize,
    /// Was the problem solved?
    pub problem_solved: Option<ScoreSpread>,
    /// Were tests added?
    pub tests_added: Option<ScoreSpread>,
    /// Is the code clean?
    pub code_clean: Option<ScoreSpread>,
    /// Were edge cases handled?
    pub edge_cases: Option<ScoreSpread>,
    /// Average of the models' overall scores.
    pub overall: Option<ScoreSpread>,
}

impl CombinedQuality {
    /// Returns the overall score and each dimension as pairs of name and value.
    pub fn rows(&self) -> [(&'static str, Option<ScoreSpread>); 5] {
        let of = |dimension: QualityDimension| match dimension {
            QualityDimension::ProblemSolved => self.problem_solved,
            QualityDimension::TestsAdded => self.tests_added,
            QualityDimension::CodeClean => self.code_clean,
            QualityDimension::EdgeCases => self.edge_cases,
        };
        let [solved, tests, code, edges] =
            QualityDimension::ALL.map(|dimension| (dimension.name(), of(dimension)));
        [("overall", self.overall), solved, tests, code, edges]
    }
}

/// Mean over the models with a score; null if no model has one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Consensus")]
pub struct ScoreSpread {
    /// Mean score, 0 to 1.
    pub mean: f64,
    /// Highest minus lowest score; 0 if all models agree or there is only one.
    pub spread: f64,
    /// Number of models with a score.
    pub models: usize,
}

impl ScoreSpread {
    fn from_scores(scores: impl Iterator<Item = f64>) -> Option<Self> {
        let scores: Vec<f64> = scores.collect();
        if scores.is_empty() {
            return None;
        }
        let rounded = |value: f64| (value * 1e9).round() / 1e9;
        #[expect(clippy::cast_precision_loss, reason = "a handful of models")]
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        let (low, high) =
            scores.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &score| {
                (low.min(score), high.max(score))
            });
        Some(Self { mean: rounded(mean), spread: rounded(high - low), models: scores.len() })
    }
}

/// Combines the grades of one session: the latest of each model by the latest rubric version.
/// Returns `None` without grades.
pub fn combine_grades(grades: &[QualityGrade]) -> Option<CombinedQuality> {
    let rubric_version = grades.iter().map(|grade| grade.rubric_version).max()?;
    let mut latest: BTreeMap<&str, &QualityGrade> = BTreeMap::new();
    for grade in grades.iter().filter(|grade| grade.rubric_version == rubric_version) {
        let kept = latest.entry(&grade.model).or_insert(grade);
        if grade.ts >= kept.ts {
            *kept = grade;
        }
    }
    let spread = |score: fn(&QualityGrade) -> Option<f64>| {
        ScoreSpread::from_scores(latest.values().filter_map(|grade| score(grade)))
    };
    Some(CombinedQuality {
        rubric_version,
        models: latest.len(),
        problem_solved: spread(|grade| grade.problem_solved),
        tests_added: spread(|grade| grade.tests_added),
        code_clean: spread(|grade| grade.code_clean),
        edge_cases: spread(|grade| grade.edge_cases),
        overall: spread(|grade| grade.overall),
    })
}
