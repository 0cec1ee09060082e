//! The gate of a run: every case passes, or none is worse than in a committed baseline. Pure.
//!
//! Says what is to be run again and what the outcome is; runs, reads and writes nothing.

pub mod baseline;
pub mod finding;
pub mod rule;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcome::{CaseResult, CaseStatus};
use baseline::{Baseline, BaselineCase, JudgeIdentity};
use finding::{GateFinding, Trials};
use rule::Rule;

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
    /// Every case passes; one that passed in the baseline may pass at a later try.
    Both,
}

impl GateMode {
    /// Whether there is no gate without a baseline.
    pub const fn needs_baseline(self) -> bool {
        matches!(self, Self::NoRegression | Self::Both)
    }
}

/// The gate of a run.
#[derive(Debug, Clone, Default)]
pub enum Gate {
    /// Every case passes.
    #[default]
    Absolute,
    /// The run is held against a baseline.
    Baseline(Box<BaselineGate>),
}

/// A run that is held against a baseline.
#[derive(Debug, Clone)]
pub struct BaselineGate {
    /// [`GateMode::NoRegression`] or [`GateMode::Both`].
    pub mode: GateMode,
    /// The file of the baseline, for people.
    pub path: String,
    /// The accepted results.
    pub baseline: Baseline,
    /// The judge of this run; none where checks alone decide.
    pub judge: Option<JudgeIdentity>,
    /// Ids of the cases of this run.
    pub planned: BTreeSet<String>,
    /// Ids of all cases that there are, whichever of them are run; `None` where nobody knows.
    pub existing: Option<BTreeSet<String>>,
    /// How often a miss is run again in a suite of ten cases.
    pub confirm: u32,
}

/// A case beside what the baseline says of it.
pub(crate) enum Standing<'a> {
    /// The baseline does not have it.
    New,
    /// The baseline has another one by that name, or was judged otherwise.
    Incomparable(String),
    /// Its accepted result.
    Was(&'a BaselineCase),
}

impl Gate {
    /// Whether nothing that follows could make the run pass, but for a further trial of the case.
    pub fn is_miss(&self, case: &CaseResult) -> bool {
        let failed = case.status().0.pass() == Some(false);
        failed
            && match self {
                Self::Absolute => true,
                Self::Baseline(gate) => {
                    gate.mode == GateMode::Both
                        || matches!(gate.standing(case), Standing::Was(then) if then.passed_all())
                }
            }
    }

    /// Whether the case stops a run that is to end at the first failure: it failed, and was run
    /// again as often as it has to be.
    pub fn is_settled_miss(&self, case: &CaseResult) -> bool {
        self.is_miss(case) && case.status().0 != CaseStatus::Flaky
    }
}

impl BaselineGate {
    pub(crate) fn standing(&self, case: &CaseResult) -> Standing<'_> {
        let Some(then) = self.baseline.case(&case.scenario.id) else { return Standing::New };
        let Some(digest) = baseline::digest_of(case) else {
            return Standing::Incomparable("it has no prompt".to_owned());
        };
        if digest != then.digest {
            return Standing::Incomparable("its prompt or its demands have changed".to_owned());
        }
        if then.judged {
            if let Some(why) = self.judge_difference() {
                return Standing::Incomparable(why);
            }
            let (bar, floor) = (case.threshold, case.safety_floor);
            if bar != then.threshold || floor != then.safety_floor {
                return Standing::Incomparable(format!(
                    "it passes at {bar} and safety {floor} now, and did at {} and {}",
                    then.threshold, then.safety_floor
                ));
            }
        }
        Standing::Was(then)
    }

    /// How the judge differs from that of the baseline, where both have one.
    pub fn judge_difference(&self) -> Option<String> {
        let (then, now) = (self.baseline.judge.as_ref()?, self.judge.as_ref()?);
        now.difference_from(then)
    }

    /// The rule by which misses count, made for the cases of the run that passed in the baseline.
    pub fn rule(&self) -> Rule {
        let passed = self.baseline.cases.iter().filter(|case| case.passed_all());
        let passed = passed.filter(|case| self.planned.contains(&case.id)).count();
        Rule::new(self.confirm, passed)
    }

    /// Ids of cases that are to be run once more before anything is said of them.
    pub fn to_confirm(&self, cases: &[&CaseResult]) -> Vec<String> {
        let rule = self.rule();
        let groups = Trials::by_case(cases.iter().copied());
        let misses: Vec<&Trials<'_>> =
            groups.iter().filter(|trials| self.is_first_miss(trials)).collect();
        if rule.is_beyond_chance(misses.len()) {
            return Vec::new();
        }
        let open = misses.into_iter().filter(|trials| {
            !trials.broke_out() && rule.wants_another(trials.passed(), trials.all())
        });
        open.map(|trials| trials.id().to_owned()).collect()
    }

    /// Whether a case that passed in the baseline failed before anything was run again.
    pub(crate) fn is_first_miss(&self, trials: &Trials<'_>) -> bool {
        trials.failed_at_first()
            && matches!(self.standing(trials.first()), Standing::Was(then) if then.passed_all())
    }

    /// The comparison of a run with the baseline.
    pub fn finding<'a>(&self, cases: impl IntoIterator<Item = &'a CaseResult>) -> GateFinding {
        GateFinding::of(self, &Trials::by_case(cases))
    }
}
