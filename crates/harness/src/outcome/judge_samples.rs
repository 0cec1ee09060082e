//! A judge that was asked several times about each answer: how far its verdicts are apart. Pure.
//!
//! The variance between trials of a case is another matter: `repeats.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::{CaseResult, Step};
use crate::judge::Verdict;
use selftest_stats::variance_components;
use selftest_text::wording::plural;

/// The samples of the judge over a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeSamples {
    /// Answers about which a judge was asked more than once; with a panel, once for each judge.
    pub answers: u32,
    /// Verdicts on them.
    pub samples: u32,
    /// Verdicts among these without a score. They are in no mean and in no variance.
    pub unscored: u32,
    /// Answers that pass by some samples and fall short by others.
    pub split: u32,
    /// Variance of the overall scores of one answer, over all answers; null where none has two.
    /// It adds an n-th of itself to a mean of n samples.
    pub variance: Option<f64>,
}

impl JudgeSamples {
    /// Over the answers of a run; `None` where the judge was asked once about each.
    pub fn of<'a>(cases: impl IntoIterator<Item = &'a CaseResult>) -> Option<Self> {
        let (mut answers, mut samples, mut unscored, mut split) = (0, 0, 0, 0);
        let mut scores: Vec<Vec<f64>> = Vec::new();
        for case in cases {
            for samples_of_one in case.steps.iter().flat_map(Step::repeated_verdicts) {
                answers += 1;
                samples += samples_of_one.len();
                let cards: Vec<_> = samples_of_one.iter().filter_map(Verdict::card).collect();
                unscored += samples_of_one.len() - cards.len();
                let pass = |card: &&_| case.is_enough(card);
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

    /// For reports.
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
