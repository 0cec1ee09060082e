//! Spread of a judge's verdicts when it was asked several times about each answer. Pure.
//!
//! For the variance between trials of a case, see `repeats.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::{CaseResult, CaseStep};
use crate::judge::Verdict;
use selftest_stats::variance_components;
use selftest_text::wording::plural;

/// The samples of the judge over a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeSamples {
    /// Answers that a judge was asked about more than once; with a panel, counted once per judge.
    pub answers: u32,
    /// Verdicts on these answers.
    pub samples: u32,
    /// Verdicts without a score. They are excluded from means and variances.
    pub unscored: u32,
    /// Answers that pass by some samples and fail by others.
    pub split: u32,
    /// Variance of the overall scores of one answer, pooled over all answers; null if no answer has
    /// two. It contributes 1/n of itself to a mean of n samples.
    pub variance: Option<f64>,
}

impl JudgeSamples {
    /// Computes the statistics of a run. Returns `None` if the judge was asked only once about each
    /// answer.
    pub fn of<'a>(cases: impl IntoIterator<Item = &'a CaseResult>) -> Option<Self> {
        let (mut answers, mut samples, mut unscored, mut split) = (0, 0, 0, 0);
        let mut scores: Vec<Vec<f64>> = Vec::new();
        for case in cases {
            for samples_of_one in case.steps.iter().flat_map(CaseStep::repeated_verdicts) {
                answers += 1;
                samples += samples_of_one.len();
                let cards: Vec<_> = samples_of_one.iter().filter_map(Verdict::card).collect();
                unscored += samples_of_one.len() - cards.len();
                let pass = |card: &&_| case.passes_with(card);
                split += u32::from(cards.iter().any(pass) && !cards.iter().all(pass));
                scores.push(cards.iter().map(|card| card.overall.get()).collect());
            }
        }
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        (answers > 0).then(|| Self {
            answers,
            samples: count(samples),
            unscored: count(unscored),
            split,
            variance: variance_components(&[scores]).judge,
        })
    }

    /// Returns the statistics as one sentence for reports.
    pub fn sentence(&self) -> String {
        let mut parts = vec![format!(
            "{} on {}",
            plural(self.samples, "verdict"),
            plural(self.answers, "answer")
        )];
        if let Some(variance) = self.variance {
            let deviation = variance.sqrt();
            parts.push(format!("standard deviation on one answer {deviation:.2}"));
        }
        if self.split > 0 {
            let verb = if self.split == 1 { "passes" } else { "pass" };
            parts.push(format!("{} {verb} by some of them only", plural(self.split, "answer")));
        }
        if self.unscored > 0 {
            parts.push(format!("{} without a score", plural(self.unscored, "verdict")));
        }
        parts.join(", ")
    }
}
