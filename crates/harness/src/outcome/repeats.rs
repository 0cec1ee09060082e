//! Combines the trials of repeated cases: flaky cases, pass@k and pass^k, and the sources of
//! variance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_stats::{
    Interval, MeanShare, PassAtK, VarianceComponents, pass_at_k, variance_components,
};
use selftest_text::wording::{percent, plural};

/// Maximum k of pass@k and pass^k.
const MAX_K: u32 = 10;

/// Combined result of the trials of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepeatedResult {
    /// Every trial with a verdict passed.
    Passed,
    /// Every trial with a verdict failed.
    Failed,
    /// Some trials passed and some failed.
    Flaky,
    /// No trial has a verdict.
    Unscored,
}

impl RepeatedResult {
    /// Returns the result for this number of passed trials among those with a verdict.
    pub const fn of(passed: u32, decided: u32) -> Self {
        match (passed, decided) {
            (_, 0) => Self::Unscored,
            (0, _) => Self::Failed,
            (passed, decided) if passed < decided => Self::Flaky,
            _ => Self::Passed,
        }
    }

    /// Returns the label used in tables.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Passed => "PASS",
            Self::Failed => "FAIL",
            Self::Flaky => "FLAKY",
            Self::Unscored => "UNSCORED",
        }
    }
}

/// One trial of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatedTrial<'a> {
    /// Id of the case.
    pub id: &'a str,
    /// True if it passed; `None` without a verdict.
    pub pass: Option<bool>,
    /// The judge's overall scores: empty if it gave none, several if it was asked several times.
    pub scores: Vec<f64>,
}

/// A case over all its trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedCase {
    /// Id of the case.
    pub id: String,
    /// Combined result of its trials.
    pub result: RepeatedResult,
    /// Number of passed trials.
    pub passed: u32,
    /// Number of trials with a verdict.
    pub decided: u32,
    /// Total number of trials.
    pub trials: u32,
}

/// The repeated cases of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatSummary {
    /// Cases whose trials disagree.
    pub flaky: u32,
    /// The cases in the order of their first trials.
    pub cases: Vec<RepeatedCase>,
    /// pass@k and pass^k for k from 1 to the number of repeats, at most 10. Only cases with k
    /// trials count.
    pub pass_at_k: Vec<PassAtK>,
    /// Variances of the overall scores.
    pub variance: VarianceComponents,
}

impl RepeatSummary {
    /// Combines the trials of a run.
    pub fn of<'a>(trials: impl IntoIterator<Item = RepeatedTrial<'a>>) -> Self {
        let mut positions = std::collections::HashMap::new();
        let mut cases: Vec<RepeatedCase> = Vec::new();
        let mut scores: Vec<Vec<Vec<f64>>> = Vec::new();
        for trial in trials {
            // Trials of a case need not follow each other: rounds of all cases are run one after
            // the other.
            let position = *positions.entry(trial.id).or_insert_with(|| {
                let result = RepeatedResult::Unscored;
                let id = trial.id.to_owned();
                cases.push(RepeatedCase { id, result, passed: 0, decided: 0, trials: 0 });
                scores.push(Vec::new());
                cases.len() - 1
            });
            let case = &mut cases[position];
            case.trials += 1;
            case.decided += u32::from(trial.pass.is_some());
            case.passed += u32::from(trial.pass == Some(true));
            case.result = RepeatedResult::of(case.passed, case.decided);
            // A trial without a score is left out of the variances and never counts as 0.
            if !trial.scores.is_empty() {
                scores[position].push(trial.scores);
            }
        }
        let counts: Vec<(u32, u32)> =
            cases.iter().map(|case| (case.passed, case.decided)).collect();
        // The largest k for which at least one case has enough trials.
        let most = counts.iter().map(|(_, decided)| *decided).max().unwrap_or(0).min(MAX_K);
        let flaky = cases.iter().filter(|case| case.result == RepeatedResult::Flaky).count();
        Self {
            flaky: u32::try_from(flaky).unwrap_or(u32::MAX),
            pass_at_k: (1..=most).filter_map(|k| pass_at_k(&counts, k)).collect(),
            variance: variance_components(&scores),
            cases,
        }
    }

    /// Returns sentences for reports.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let all = u32::try_from(self.cases.len()).unwrap_or(u32::MAX);
        let verb = if self.flaky == 1 { "is" } else { "are" };
        sentences.push(format!("{} of {} {verb} flaky", self.flaky, plural(all, "case")));
        // For a single trial, both are the pass rate.
        if let Some(PassAtK { k, any, all, .. }) = self.pass_at_k.last().filter(|last| last.k > 1) {
            sentences.push(format!("pass@{k}, at least one of {k} trials passes: {}", share(any)));
            sentences.push(format!("pass^{k}, all {k} trials pass: {}", share(all)));
        }
        let VarianceComponents { cases, repeats, judge } = self.variance;
        // As deviations, which have the unit of scores.
        let deviations: Vec<String> =
            [("cases", cases), ("trials of a case", repeats), ("samples of the judge", judge)]
                .into_iter()
                .filter_map(|(what, variance)| Some(format!("{what} {:.2}", variance?.sqrt())))
                .collect();
        if !deviations.is_empty() {
            sentences.push(format!("standard deviations of scores: {}", deviations.join(", ")));
        }
        sentences
    }
}

fn share(share: &MeanShare) -> String {
    let ends = share.interval.map_or_else(String::new, |Interval { low, high }| {
        format!(" (95 % interval {:.0} % to {:.0} %)", 100.0 * low, 100.0 * high)
    });
    format!("{} %{ends}", percent(share.mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_that_disagree_make_a_case_flaky() {
        let trial = |id, pass: Option<bool>| {
            let score = pass.map(|pass| if pass { 0.9 } else { 0.5 });
            RepeatedTrial { id, pass, scores: score.into_iter().collect() }
        };
        let (yes, no) = (Some(true), Some(false));
        let found = RepeatSummary::of([
            trial("a", yes),
            trial("b", no),
            trial("c", yes),
            trial("d", None),
            trial("a", yes),
            trial("b", no),
            trial("c", no),
            trial("d", None),
        ]);
        let results = [
            RepeatedResult::Passed,
            RepeatedResult::Failed,
            RepeatedResult::Flaky,
            RepeatedResult::Unscored,
        ];
        let found_results: Vec<RepeatedResult> =
            found.cases.iter().map(|case| case.result).collect();
        assert_eq!(found_results, results);
        let last = found.pass_at_k.last().unwrap();
        assert_eq!((last.k, last.cases), (2, 3));
        assert!(
            (last.any.mean - 2.0 / 3.0).abs() < 1e-12 && (last.all.mean - 1.0 / 3.0).abs() < 1e-12
        );
        assert_eq!(
            found.sentences(),
            [
                "1 of 4 cases is flaky",
                "pass@2, at least one of 2 trials passes: 67 % (95 % interval 0 % to 100 %)",
                "pass^2, all 2 trials pass: 33 % (95 % interval 0 % to 100 %)",
                "standard deviations of scores: cases 0.16, trials of a case 0.16",
            ]
        );
        assert!(found.cases.iter().all(|case| case.trials == 2), "{found:?}");
        let once = RepeatSummary::of([trial("a", yes), trial("b", no)]);
        assert_eq!(
            once.sentences(),
            ["0 of 2 cases are flaky", "standard deviations of scores: cases 0.28"]
        );
        assert!(RepeatSummary::of([]).pass_at_k.is_empty());
        let labels = results.map(RepeatedResult::label);
        assert_eq!(labels, ["PASS", "FAIL", "FLAKY", "UNSCORED"]);
    }
}
