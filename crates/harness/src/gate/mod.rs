//! The gate of a run: either every case has to pass, or no case may be worse than in a committed
//! baseline.
//!
//! The gate decides which cases are retried and what the outcome is. It runs, reads and writes
//! nothing.

pub mod anchors;
pub mod attribution;
pub mod baseline;
pub mod finding;
pub mod pooled;
pub mod rule;
pub mod trials;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcome::{CaseResult, CaseStatus};
use attribution::{Anchor, CaseShifts, infrastructure_failure};
use baseline::{Baseline, BaselineCase, JudgeIdentity};
use finding::GateFinding;
use pooled::MAX_ROUNDS;
use rule::RegressionRule;
use trials::TrialGroup;

/// The gate that a run has to pass.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GateMode {
    /// Every case passes.
    #[default]
    Absolute,
    /// No case that passed in the baseline fails.
    NoRegression,
    /// Every case passes; one that passed in the baseline may pass on a retry.
    Both,
}

impl GateMode {
    /// Returns true if the mode requires a baseline.
    pub const fn needs_baseline(self) -> bool {
        matches!(self, Self::NoRegression | Self::Both)
    }
}

/// The gate of a run.
#[derive(Debug, Clone, Default)]
pub enum RunGate {
    /// Every case passes.
    #[default]
    Absolute,
    /// The run is compared with a baseline.
    Baseline(Box<BaselineGate>),
}

/// A gate that compares the run with a baseline.
#[derive(Debug, Clone)]
pub struct BaselineGate {
    /// [`GateMode::NoRegression`] or [`GateMode::Both`].
    pub mode: GateMode,
    /// Path of the baseline file, for display.
    pub path: String,
    /// The accepted results.
    pub baseline: Baseline,
    /// The judge of this run, or `None` if checks alone decide.
    pub judge: Option<JudgeIdentity>,
    /// Ids of the cases of this run; of a shard, those of all shards.
    pub planned: BTreeSet<String>,
    /// Ids of all existing cases, run or not; `None` if unknown.
    pub existing: Option<BTreeSet<String>>,
    /// Number of retries of a failure in a suite of up to five cases.
    pub confirm: u32,
    /// True if the run is over, so that nothing can be run again.
    pub is_over: bool,
}

/// How a case relates to its entry in the baseline.
pub(crate) enum BaselineStanding<'a> {
    /// The baseline does not contain it.
    New,
    /// The baseline has a different case with this id, or its verdict came from a different judge
    /// or threshold.
    Incomparable(String),
    /// The accepted result.
    Accepted(&'a BaselineCase),
}

impl RunGate {
    /// Returns true if the case failed and only another trial of it could make the run pass.
    pub fn is_miss(&self, case: &CaseResult) -> bool {
        let failed = case.status().0.pass() == Some(false);
        failed
            && match self {
                Self::Absolute => true,
                Self::Baseline(gate) => {
                    gate.mode == GateMode::Both
                        || matches!(gate.standing(case), BaselineStanding::Accepted(then) if then.passed_all())
                }
            }
    }

    /// Returns true if the failure is final: the case failed and was retried as often as necessary.
    /// Such a case stops a fail-fast run.
    pub fn is_settled_miss(&self, case: &CaseResult) -> bool {
        self.is_miss(case) && case.status().0 != CaseStatus::Flaky
    }
}

impl BaselineGate {
    /// Returns the gate of results that are known, so that nothing can be run again.
    #[must_use]
    pub fn of_finished_run(self) -> Self {
        Self { is_over: true, ..self }
    }

    pub(crate) fn standing(&self, case: &CaseResult) -> BaselineStanding<'_> {
        let Some(then) = self.baseline.case(&case.scenario.id) else {
            return BaselineStanding::New;
        };
        let Some(digest) = baseline::case_digest_of(case) else {
            return BaselineStanding::Incomparable("it has no prompt".to_owned());
        };
        if digest != then.digest {
            return BaselineStanding::Incomparable(
                "its prompt or its demands have changed".to_owned(),
            );
        }
        if then.judged {
            if let Some(why) = self.judge_difference() {
                return BaselineStanding::Incomparable(why);
            }
            // With other limits, a pass means something else.
            let (bar, floor) = (case.threshold, case.safety_floor);
            if bar != then.threshold || floor != then.safety_floor {
                return BaselineStanding::Incomparable(format!(
                    "it passes at {bar} and safety {floor} now, and did at {} and {}",
                    then.threshold, then.safety_floor
                ));
            }
        }
        BaselineStanding::Accepted(then)
    }

    /// Describes how the judge differs from the baseline's, if both runs have one.
    pub fn judge_difference(&self) -> Option<String> {
        let (then, now) = (self.baseline.judge.as_ref()?, self.judge.as_ref()?);
        now.difference_from(then)
    }

    /// Returns the rule for counting failures, sized for the cases of this run that passed in the
    /// baseline.
    pub fn rule(&self) -> RegressionRule {
        let passed = self.baseline.cases.iter().filter(|case| case.passed_all());
        let passed = passed.filter(|case| self.planned.contains(&case.id)).count();
        RegressionRule::new(self.confirm, passed, self.pooled_test().tolerated_of_case())
    }

    /// Returns the number of rounds of the pooled test. Without retries there is only the first.
    pub(crate) const fn max_rounds(&self) -> u32 {
        if self.confirm == 0 || self.is_over { 1 } else { MAX_ROUNDS }
    }

    /// Returns the ids of cases that have to be run again: failures before they are decided, and
    /// once `all_ran`, all cases if the pooled test needs another round.
    pub fn to_confirm(&self, cases: &[&CaseResult], all_ran: bool) -> Vec<String> {
        let rule = self.rule();
        let groups = TrialGroup::by_case(cases.iter().copied());
        let misses: Vec<&TrialGroup<'_>> =
            groups.iter().filter(|trials| self.is_first_miss(trials)).collect();
        // Too many failures to be flakiness: they count as they are.
        if rule.is_beyond_chance(misses.len()) {
            return Vec::new();
        }
        let open = misses.iter().filter(|trials| {
            // A case that broke its isolation is a regression without any retry.
            !trials.broke_out() && rule.needs_another_trial(trials.passed(), trials.all())
        });
        let open: Vec<String> = open.map(|trials| trials.id().to_owned()).collect();
        // Such a case fails the run whatever the pooled test would find in another round.
        let is_blocked = misses.iter().any(|trials| trials.passed() == 0 || trials.broke_out());
        if !all_ran || is_blocked || !open.is_empty() {
            return open;
        }
        self.next_round(&groups)
    }

    /// Returns true if a case that passed in the baseline failed before any retry.
    pub(crate) fn is_first_miss(&self, trials: &TrialGroup<'_>) -> bool {
        trials.failed_at_first()
            && matches!(self.standing(trials.first()), BaselineStanding::Accepted(then) if then.passed_all())
    }

    /// Compares a run with the baseline. `anchors` are the answers of the baseline's run that this
    /// run's judge judged again.
    pub fn finding<'a>(
        &self,
        cases: impl IntoIterator<Item = &'a CaseResult>,
        anchors: &[Anchor],
    ) -> GateFinding {
        GateFinding::of(self, &TrialGroup::by_case(cases), anchors)
    }

    /// Returns how the cases with an entry in the baseline changed, whichever judge scored them.
    pub(crate) fn case_shifts(&self, all: &[TrialGroup<'_>]) -> CaseShifts {
        let mut shifts = CaseShifts::default();
        for trials in all {
            shifts.not_run.extend(infrastructure_failure(trials.first()));
            let Some(then) = self.baseline.case(trials.id()) else { continue };
            if baseline::case_digest_of(trials.first()).as_ref() != Some(&then.digest) {
                continue;
            }
            if then.judged {
                let scores = then.score.zip(trials.score());
                shifts.judged.extend(scores.map(|(then, now)| now.get() - then.get()));
            } else if trials.decided() > 0 && then.trials > 0 {
                let share = |passed: u32, of: u32| f64::from(passed) / f64::from(of);
                let now = share(trials.passed(), trials.decided());
                shifts.checked.push(now - share(then.passed, then.trials));
            }
        }
        shifts
    }
}

#[cfg(test)]
mod tests;
