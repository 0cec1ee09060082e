//! Compares a run with its baseline, case by case, and derives the outcome. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attribution::{Anchor, ChangeAttribution};
use super::baseline::BaselineCase;
use super::pooled::{PooledFinding, PooledVerdict};
use super::rule::{RELIABLE, RegressionRule, RegressionVerdict};
use super::trials::TrialGroup;
use super::{BaselineGate, BaselineStanding, GateMode};
use crate::outcome::repeats::RepeatedResult;
use crate::outcome::{CaseStatus, RunEnding, RunOutcome, RunSummary, absolute_outcome as absolute};
use selftest_stats::score::Score;
use selftest_text::wording::{cases, plural};

/// How a case changed since the baseline was accepted.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CaseChange {
    /// Passed then and fails now, beyond chance.
    Regression,
    /// Passed then, failed now, and could not be retried often enough to confirm it.
    Unconfirmed,
    /// Passed then; now at least one trial failed and one passed.
    Flaky,
    /// Passed then, has no verdict now.
    Undecided,
    /// Passed then; fails now by the scores of a judge that decides identical answers differently.
    JudgeMoved,
    /// Did not pass then, and does not pass now.
    StillFailing,
    /// Failed then, passes now.
    Fixed,
    /// Not in the baseline.
    New,
    /// In the baseline, but not comparable with it.
    NotCompared,
}

impl CaseChange {
    /// Returns the label used in tables.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Regression => "REGRESSION",
            Self::Unconfirmed => "NOT CONFIRMED",
            Self::Flaky => "FLAKY",
            Self::Undecided => "NO VERDICT",
            Self::JudgeMoved => "JUDGE MOVED",
            Self::StillFailing => "STILL FAILING",
            Self::Fixed => "FIXED",
            Self::New => "NEW",
            Self::NotCompared => "NOT COMPARED",
        }
    }
}

/// A case that changed since the baseline, or that could not be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatedCase {
    /// Id of the case.
    pub id: String,
    /// How it changed.
    pub change: CaseChange,
    /// The reason, in one line; null without one.
    pub reason: Option<String>,
    /// Passed trials, including retries.
    pub passed: u32,
    /// Trials with a verdict.
    pub decided: u32,
    /// Mean overall score in the baseline; null if it has none.
    pub score_before: Option<Score>,
    /// Mean overall score now.
    pub score: Option<Score>,
}

/// Comparison of a run with its baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateFinding {
    /// The gate that the run has to pass.
    pub mode: GateMode,
    /// Path of the baseline file.
    pub baseline: String,
    /// Id of the run that was accepted.
    pub baseline_run_id: String,
    /// How the judge differs from the baseline's judge. Absent if it is the same, or if either run
    /// had no judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_difference: Option<String>,
    /// Cases that have a verdict in both.
    pub compared: u32,
    /// Number of compared cases that passed in the baseline.
    pub passed_before: u32,
    /// Number of trials without a pass after which a failure counts.
    pub trials_needed: u32,
    /// True if too many cases failed at once to be chance, so that the failures count without
    /// retries.
    pub beyond_chance: bool,
    /// The change since the baseline by cause. Absent if nothing is known about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<ChangeAttribution>,
    /// Answers of the baseline's run that the judge of this run scored again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<Anchor>,
    /// The test of the agent as a whole. Absent without comparable cases, and with fewer than four
    /// of which the baseline shows fewer than ten trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooled: Option<PooledFinding>,
    /// Cases that changed, worst first.
    pub cases: Vec<GatedCase>,
    /// Cases of the baseline that no longer exist.
    pub removed: Vec<String>,
}

impl GateFinding {
    pub(super) fn of(gate: &BaselineGate, all: &[TrialGroup<'_>], anchors: &[Anchor]) -> Self {
        let rule = gate.rule();
        let misses = all.iter().filter(|trials| gate.is_first_miss(trials)).count();
        let mut finding = Self {
            mode: gate.mode,
            baseline: gate.path.clone(),
            baseline_run_id: gate.baseline.run_id.clone(),
            judge_difference: gate.judge_difference(),
            attribution: ChangeAttribution::of(
                &gate.case_shifts(all),
                anchors,
                gate.judge_difference().is_none(),
            ),
            compared: 0,
            passed_before: 0,
            trials_needed: rule.trials_needed(),
            beyond_chance: rule.is_beyond_chance(misses),
            anchors: anchors.to_vec(),
            pooled: gate.pooled(all, |_| true),
            cases: Vec::new(),
            removed: removed_cases(gate),
        };
        if finding.has_judge_moved()
            && let Some(PooledFinding { verdict: verdict @ PooledVerdict::Worse, .. }) =
                &mut finding.pooled
        {
            // What no judge decides is still the agent's doing.
            let by_checks = gate.pooled(all, |trials| !trials.first().is_by_judge());
            let is_worse = |found: &PooledFinding| found.verdict == PooledVerdict::Worse;
            if !by_checks.as_ref().is_some_and(is_worse) {
                *verdict = PooledVerdict::JudgeMoved;
            }
        }
        for trials in all {
            finding.add(gate, rule, trials);
        }
        // The variants are ordered by severity.
        finding.cases.sort_by_key(|case| case.change);
        if finding.count(CaseChange::Regression) > 0
            && let Some(PooledFinding { verdict: verdict @ PooledVerdict::Open, .. }) =
                &mut finding.pooled
        {
            // The run is blocked anyway, so that no further round is run.
            *verdict = PooledVerdict::Unclear;
        }
        finding
    }

    fn add(&mut self, gate: &BaselineGate, rule: RegressionRule, trials: &TrialGroup<'_>) {
        let then = match gate.standing(trials.first()) {
            BaselineStanding::New => {
                self.cases.push(GatedCase::of(trials, CaseChange::New, trials.reason(), None));
                return;
            }
            BaselineStanding::Incomparable(why) => {
                self.cases.push(GatedCase::of(trials, CaseChange::NotCompared, Some(why), None));
                return;
            }
            BaselineStanding::Accepted(then) => then,
        };
        let (passed, decided) = (trials.passed(), trials.decided());
        let was_decided = then.result != RepeatedResult::Unscored;
        // Without a verdict on both sides there is nothing to compare.
        self.compared += u32::from(decided > 0 && was_decided);
        self.passed_before += u32::from(then.passed_all());
        let change = match then.result {
            RepeatedResult::Passed => match rule.weigh(passed, decided, self.beyond_chance) {
                RegressionVerdict::Passed => return,
                // A broken isolation is never retried, and no later pass would make up for it.
                RegressionVerdict::Unconfirmed | RegressionVerdict::Flaky if trials.broke_out() => {
                    CaseChange::Regression
                }
                RegressionVerdict::Regression | RegressionVerdict::Unconfirmed
                    if self.has_judge_moved() && trials.first().is_by_judge() =>
                {
                    CaseChange::JudgeMoved
                }
                RegressionVerdict::Regression => CaseChange::Regression,
                RegressionVerdict::Flaky => CaseChange::Flaky,
                RegressionVerdict::Unconfirmed => CaseChange::Unconfirmed,
                RegressionVerdict::Undecided => CaseChange::Undecided,
            },
            // Without a verdict now there is no change to report.
            RepeatedResult::Failed | RepeatedResult::Flaky if decided == 0 => return,
            RepeatedResult::Failed if passed == decided => CaseChange::Fixed,
            RepeatedResult::Flaky if passed == decided => return,
            RepeatedResult::Failed | RepeatedResult::Flaky => CaseChange::StillFailing,
            RepeatedResult::Unscored => {
                let why = "it has no verdict in the baseline".to_owned();
                self.cases.push(GatedCase::of(
                    trials,
                    CaseChange::NotCompared,
                    Some(why),
                    Some(then),
                ));
                return;
            }
        };
        self.cases.push(GatedCase::of(trials, change, trials.reason(), Some(then)));
    }

    /// Returns true if the judge decides the baseline's answers differently than then.
    pub fn has_judge_moved(&self) -> bool {
        self.attribution.as_ref().is_some_and(|attribution| attribution.judge_moved)
    }

    /// Returns the cases with this change.
    pub fn cases_with(&self, change: CaseChange) -> impl Iterator<Item = &GatedCase> + Clone {
        self.cases.iter().filter(move |case| case.change == change)
    }

    fn pooled_verdict(&self) -> Option<PooledVerdict> {
        self.pooled.as_ref().map(|pooled| pooled.verdict)
    }

    /// Returns the sentence on the agent as a whole. There is none while single cases block the
    /// run and nothing was run again for the whole.
    pub fn pooled_sentence(&self) -> Option<String> {
        let pooled = self.pooled.as_ref()?;
        let is_moot = pooled.verdict == PooledVerdict::Unclear
            && (self.beyond_chance || self.count(CaseChange::Regression) > 0);
        if is_moot { None } else { pooled.sentence() }
    }

    /// Returns the sentence on the agent as a whole if it is the reason why the gate blocks.
    pub fn blocking_sentence(&self) -> Option<String> {
        let is_worse = self.pooled_verdict() == Some(PooledVerdict::Worse);
        self.pooled.as_ref().filter(|_| is_worse)?.sentence()
    }

    fn count(&self, change: CaseChange) -> u32 {
        u32::try_from(self.cases_with(change).count()).unwrap_or(u32::MAX)
    }

    /// Returns the finding on the case with this id, if it changed or could not be compared.
    pub fn of_case(&self, id: &str) -> Option<&GatedCase> {
        self.cases.iter().find(|case| case.id == id)
    }

    /// Returns the outcome of the run.
    pub fn outcome(&self, summary: &RunSummary, ending: RunEnding) -> RunOutcome {
        let every_case = absolute(summary, ending);
        if matches!(every_case, RunOutcome::Interrupted | RunOutcome::NothingRan) {
            return every_case;
        }
        // In mode `both`, new and previously failing cases have to pass as well.
        let is_other_failure = |case: &GatedCase| {
            let excused = [CaseChange::Flaky, CaseChange::JudgeMoved];
            case.passed < case.decided && !excused.contains(&case.change)
        };
        let both = self.mode == GateMode::Both;
        if self.count(CaseChange::Regression) > 0
            || self.pooled_verdict() == Some(PooledVerdict::Worse)
            || (both && self.cases.iter().any(is_other_failure))
        {
            return RunOutcome::Failed;
        }
        if summary.count(CaseStatus::NotRun) > 0 {
            // A run that stopped at its own limit is merely incomplete.
            return match ending {
                RunEnding::LimitReached => RunOutcome::Inconclusive,
                RunEnding::Complete | RunEnding::Interrupted | RunEnding::ServerLost => {
                    RunOutcome::ModelUnavailable
                }
            };
        }
        // Neither an undecided regression nor a comparison of nothing passes the gate.
        let open = self.count(CaseChange::Unconfirmed)
            + self.count(CaseChange::Undecided)
            + self.count(CaseChange::JudgeMoved);
        let is_pool_open =
            matches!(self.pooled_verdict(), Some(PooledVerdict::Open | PooledVerdict::JudgeMoved));
        if open > 0
            || is_pool_open
            || (both && summary.unscored > 0)
            || (!both && self.compared == 0)
        {
            let is_lost = summary.lost_verdicts(ending);
            return if is_lost { RunOutcome::ModelUnavailable } else { RunOutcome::Inconclusive };
        }
        RunOutcome::Passed
    }

    /// Returns the sentences for reports, most important first. Case names are inserted as they
    /// are.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![format!(
            "{}: {} held against {} ({}), {} of them passed there",
            self.mode,
            cases(self.compared),
            self.baseline,
            self.baseline_run_id,
            self.passed_before
        )];
        if let Some(why) = &self.judge_difference {
            sentences.push(format!(
                "{why}: what a judge decides is not compared; accept a new baseline"
            ));
        }
        let cause = |found: &ChangeAttribution| format!("by cause: {}", found.sentence());
        sentences.extend(self.attribution.as_ref().map(cause));
        if self.compared == 0 {
            sentences.push(
                "nothing could be compared: generated cases are others in each run, `selftest \
                 suite freeze latest` keeps them"
                    .to_owned(),
            );
        }
        if self.beyond_chance {
            sentences.push(format!(
                "so many cases failed at once that chance does not explain it, even where each \
                 passes {:.0} times of 100; nothing was run again",
                100.0 * RELIABLE
            ));
        }
        sentences.extend(self.pooled_sentence());
        sentences.extend(self.cases.iter().map(GatedCase::sentence));
        if !self.removed.is_empty() {
            sentences.push(format!("no more there: {}", self.removed.join(", ")));
        }
        sentences
    }
}

impl GatedCase {
    fn of(
        trials: &TrialGroup<'_>,
        change: CaseChange,
        reason: Option<String>,
        then: Option<&BaselineCase>,
    ) -> Self {
        Self {
            id: trials.id().to_owned(),
            change,
            reason,
            passed: trials.passed(),
            decided: trials.decided(),
            score_before: then.and_then(|then| then.score),
            score: trials.score(),
        }
    }

    /// Returns the result as one line.
    pub fn sentence(&self) -> String {
        let Self { id, passed, decided, .. } = self;
        let trials = plural(*decided, "trial");
        let words = match self.change {
            CaseChange::Regression => {
                format!("passed before, fails now ({passed} of {trials} passed)")
            }
            CaseChange::Unconfirmed => {
                "passed before, failed now, and could not be run again often enough".to_owned()
            }
            CaseChange::Flaky => format!("passed before, {passed} of {trials} now"),
            CaseChange::Undecided => "passed before, has no verdict now".to_owned(),
            CaseChange::JudgeMoved => {
                "passed before, fails now by a judge that decides differently".to_owned()
            }
            CaseChange::StillFailing => "did not pass before either".to_owned(),
            CaseChange::Fixed => "failed before, passes now".to_owned(),
            CaseChange::New if passed == decided && *decided > 0 => "passes".to_owned(),
            CaseChange::New if *decided == 0 => "has no verdict".to_owned(),
            CaseChange::New => "does not pass".to_owned(),
            CaseChange::NotCompared => "not held against the baseline".to_owned(),
        };
        let why = self.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{} {id}: {words}{why}", self.change.label())
    }
}

/// Returns the cases of the baseline that no longer exist.
fn removed_cases(gate: &BaselineGate) -> Vec<String> {
    let Some(existing) = &gate.existing else { return Vec::new() };
    let gone = gate.baseline.cases.iter().map(|case| &case.id);
    gone.filter(|id| !existing.contains(*id)).cloned().collect()
}
