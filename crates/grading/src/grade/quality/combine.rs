//! Several models on one session: their mean, and how far they lie apart. A model has its biases;
//! where precision matters, several are asked (docs/spec/session-quality.md#biases).

use std::collections::BTreeMap;

use serde::Serialize;

use super::rubric::Dimension;
use crate::grade::QualityGrade;

/// The grades of several models for one session. A dimension is `None` where no model has a score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Combined {
    /// The latest version of the rubric among the grades; others do not count.
    pub rubric_version: u32,
    /// Models that graded by it.
    pub models: usize,
    /// Whether the problem was solved.
    pub problem_solved: Option<Spread>,
    /// Whether tests were added.
    pub tests_added: Option<Spread>,
    /// Whether the code is clean.
    pub code_clean: Option<Spread>,
    /// Whether edge cases were handled.
    pub edge_cases: Option<Spread>,
    /// Of the models' overall scores.
    pub overall: Option<Spread>,
}

impl Combined {
    /// Names and values: the overall score, and each dimension.
    pub fn rows(&self) -> [(&'static str, Option<Spread>); 5] {
        let of = |dimension: Dimension| match dimension {
            Dimension::ProblemSolved => self.problem_solved,
            Dimension::TestsAdded => self.tests_added,
            Dimension::CodeClean => self.code_clean,
            Dimension::EdgeCases => self.edge_cases,
        };
        let [solved, tests, code, edges] =
            Dimension::ALL.map(|dimension| (dimension.name(), of(dimension)));
        [("overall", self.overall), solved, tests, code, edges]
    }
}

/// Scores of several models as one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Their mean, 0 to 1, rounded to nine decimals.
    pub mean: f64,
    /// The highest minus the lowest, 0 to 1, rounded to nine decimals; 0 of one model.
    pub spread: f64,
    /// Models that have a score.
    pub models: usize,
}

impl Spread {
    fn of(scores: impl Iterator<Item = f64>) -> Option<Self> {
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

/// The grades of one session as one: of the latest rubric version, the latest of each model.
/// `None` without a grade.
pub fn combine(grades: &[QualityGrade]) -> Option<Combined> {
    let rubric_version = grades.iter().map(|grade| grade.rubric_version).max()?;
    let mut latest: BTreeMap<&str, &QualityGrade> = BTreeMap::new();
    for grade in grades.iter().filter(|grade| grade.rubric_version == rubric_version) {
        let kept = latest.entry(&grade.model).or_insert(grade);
        if grade.ts >= kept.ts {
            *kept = grade;
        }
    }
    let spread = |score: fn(&QualityGrade) -> Option<f64>| {
        Spread::of(latest.values().filter_map(|grade| score(grade)))
    };
    Some(Combined {
        rubric_version,
        models: latest.len(),
        problem_solved: spread(|grade| grade.problem_solved),
        tests_added: spread(|grade| grade.tests_added),
        code_clean: spread(|grade| grade.code_clean),
        edge_cases: spread(|grade| grade.edge_cases),
        overall: spread(|grade| grade.overall),
    })
}
