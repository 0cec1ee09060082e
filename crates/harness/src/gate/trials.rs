//! The trials of a case: counted, and grouped by case. Pure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcome::{CaseResult, CaseStatus};
use selftest_stats::score::Score;

/// Maximum length of a reason in bytes.
const MAX_REASON: usize = 300;

/// Number of trials from which a case that failed all of them is known to fail. It is not pooled.
const KNOWN_FAILURE: u32 = 3;

/// Maximum number of trials of a case that are kept from earlier baselines.
const MAX_HISTORY: u32 = 40;

/// Numbers of passed and failed trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialCounts {
    /// Passed trials.
    pub passed: u32,
    /// Failed trials.
    pub failed: u32,
}

impl TrialCounts {
    /// Returns the number of trials.
    pub const fn all(self) -> u32 {
        self.passed.saturating_add(self.failed)
    }

    /// Returns the sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed.saturating_add(other.passed),
            failed: self.failed.saturating_add(other.failed),
        }
    }

    /// Returns at most [`MAX_HISTORY`] of these trials, in the same proportion, so that an agent
    /// that slowly improves is not measured by what it was.
    #[must_use]
    pub(super) fn recent(self) -> Self {
        let mut counts = self;
        while counts.all() > MAX_HISTORY {
            // Failures are rounded up: a rare one must not be the first that is forgotten.
            counts = Self { passed: counts.passed / 2, failed: counts.failed.div_ceil(2) };
        }
        counts
    }

    /// Adds one trial; one without a verdict counts as neither.
    pub fn add(&mut self, pass: Option<bool>) {
        self.passed += u32::from(pass == Some(true));
        self.failed += u32::from(pass == Some(false));
    }

    pub(super) const fn is_known_failure(self) -> bool {
        self.passed == 0 && self.failed >= KNOWN_FAILURE
    }
}

/// All trials of a case in a run.
pub struct TrialGroup<'a> {
    cases: Vec<&'a CaseResult>,
}

impl<'a> TrialGroup<'a> {
    /// Groups results by case, in the order of their first trials.
    pub fn by_case(cases: impl IntoIterator<Item = &'a CaseResult>) -> Vec<Self> {
        let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
        let mut found: Vec<Self> = Vec::new();
        for case in cases {
            let position = *positions.entry(&case.scenario.id).or_insert_with(|| {
                found.push(Self { cases: Vec::new() });
                found.len() - 1
            });
            found[position].cases.push(case);
        }
        found
    }

    /// Returns the id of the case.
    pub fn id(&self) -> &'a str {
        &self.first().scenario.id
    }

    /// Returns the first trial.
    pub fn first(&self) -> &'a CaseResult {
        // `by_case` never creates an empty group.
        self.cases[0]
    }

    /// Returns the number of repeats.
    pub(super) const fn repeats(&self) -> usize {
        self.cases.len()
    }

    /// Returns the first trial of each repeat.
    pub fn first_trials(&self) -> TrialCounts {
        let mut counts = TrialCounts::default();
        self.cases.iter().for_each(|case| counts.add(case.first_status().0.pass()));
        counts
    }

    /// Returns the verdicts of all trials: those of the repeats, then those that were run again.
    pub(super) fn in_order(&self) -> Vec<Option<bool>> {
        self.verdicts().collect()
    }

    fn verdicts(&self) -> impl Iterator<Item = Option<bool>> {
        let again = self.cases.iter().flat_map(|case| &case.reruns);
        let first = self.cases.iter().map(|case| case.first_status().0.pass());
        first.chain(again.map(|rerun| rerun.status.pass()))
    }

    /// Returns the number of passed trials.
    pub fn passed(&self) -> u32 {
        count(self.verdicts().filter(|verdict| *verdict == Some(true)))
    }

    /// Returns the number of trials with a verdict.
    pub fn decided(&self) -> u32 {
        count(self.verdicts().flatten())
    }

    /// Returns the number of trials.
    pub fn all(&self) -> u32 {
        count(self.verdicts())
    }

    /// Returns true if the case failed, and never passed, before any retry.
    pub fn failed_at_first(&self) -> bool {
        let mut first = self.cases.iter().filter_map(|case| case.first_status().0.pass());
        first.next() == Some(false) && first.all(|pass| !pass)
    }

    /// Returns true if a trial broke its isolation. No retry makes up for that.
    pub fn broke_out(&self) -> bool {
        self.cases.iter().any(|case| {
            let again = case.reruns.iter().map(|rerun| rerun.status);
            again.chain([case.first_status().0]).any(|it| it == CaseStatus::IsolationViolation)
        })
    }

    /// Returns true if no trial of the case was run.
    pub fn was_not_run(&self) -> bool {
        let not_run = |case: &&CaseResult| {
            matches!(case.first_status().0, CaseStatus::NotRun | CaseStatus::Skipped)
        };
        self.cases.iter().all(not_run)
    }

    /// Returns the mean overall score of the trials that have one.
    pub fn score(&self) -> Option<Score> {
        let first = self.cases.iter().filter_map(|case| case.weakest_step()?.overall());
        let again = self.cases.iter().flat_map(|case| &case.reruns);
        let scores: Vec<f64> =
            // Retries count in the mean, but only results with a score do.
            first.chain(again.filter_map(|rerun| rerun.overall)).map(Score::get).collect();
        let mean = selftest_stats::mean(&scores)?;
        // The mean of scores in 0..=1 can leave the range by rounding.
        Score::new((mean.clamp(0.0, 1.0) * 1_000.0).round() / 1_000.0).ok()
    }

    /// Returns the reason for the first result that was not a pass, in one line.
    pub(super) fn reason(&self) -> Option<String> {
        let reasons = self.cases.iter().filter_map(|case| case.first_status().1);
        let why = reasons.map(|why| selftest_text::one_line(&why, MAX_REASON)).next();
        why.filter(|why| !why.is_empty())
    }
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
