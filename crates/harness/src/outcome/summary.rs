//! Summarises the cases of a run and derives its outcome.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::{CaseResult, CaseStatus};
use selftest_models::structured::UnscoredReason;
use selftest_stats::{Interval, wilson_clustered};

/// Counts over the cases of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Number of planned cases.
    pub total: u32,
    /// Cases with `pass: true`.
    pub passed: u32,
    /// Cases with `pass: false`.
    pub failed: u32,
    /// Cases with `pass: null`: unscored, not generated, not run, skipped.
    pub unscored: u32,
    /// passed / (passed + failed), from 0.0 to 1.0; null if both are 0.
    pub pass_rate: Option<f64>,
    /// 95 % Wilson interval of the pass rate. With repeats it is not narrower than without, because
    /// repeats of a case are not independent.
    pub pass_rate_interval: Option<Interval>,
    /// Number of repeats of each case. Absent in a run without repeats. Each repeat counts as a
    /// case above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// Number of cases by status.
    pub by_status: std::collections::BTreeMap<CaseStatus, u32>,
    /// Number of unscored cases by reason.
    pub by_unscored_reason: std::collections::BTreeMap<UnscoredReason, u32>,
    /// Generated prompts that the harness rejected.
    pub rejected_prompts: u32,
    /// Cases reused from an earlier run because their inputs are unchanged. They are included in
    /// the counts above.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unchanged: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl RunSummary {
    /// Adds one case.
    pub fn add(&mut self, case: &CaseResult) {
        let (status, _) = case.status();
        self.total += 1;
        match status.pass() {
            Some(true) => self.passed += 1,
            Some(false) => self.failed += 1,
            None => self.unscored += 1,
        }
        *self.by_status.entry(status).or_default() += 1;
        if let Some(reason) = case.unscored_reason() {
            *self.by_unscored_reason.entry(reason).or_default() += 1;
        }
        self.rejected_prompts += u32::try_from(case.generation.rejections()).unwrap_or(u32::MAX);
        self.unchanged += u32::from(case.unchanged_since.is_some());
        self.repeats = self.repeats.max(case.repeat);
        self.update_rate();
    }

    /// Recomputes the pass rate and its interval from the counts.
    pub fn update_rate(&mut self) {
        let decided = self.passed.saturating_add(self.failed);
        self.pass_rate = (decided > 0).then(|| f64::from(self.passed) / f64::from(decided));
        self.pass_rate_interval = wilson_clustered(self.passed, decided, self.repeats.unwrap_or(1));
    }

    /// Returns true if cases lack a verdict because the server of their judge was given up.
    pub(crate) fn lost_verdicts(&self, ending: RunEnding) -> bool {
        ending == RunEnding::ServerLost
            && self.by_unscored_reason.contains_key(&UnscoredReason::Unavailable)
    }

    /// Returns the number of cases with this status.
    pub fn count(&self, status: CaseStatus) -> u32 {
        self.by_status.get(&status).copied().unwrap_or(0)
    }
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Outcome")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum RunOutcome {
    /// Every case passed.
    Passed,
    /// A case failed.
    Failed,
    /// No case failed, but not all have a verdict.
    Inconclusive,
    /// No case failed, but not all could be run because a model server gave no answer.
    ModelUnavailable,
    /// There was no case.
    NothingRan,
    /// Stopped by the user.
    Interrupted,
}

selftest_text::named!(RunOutcome);

/// The reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnding {
    /// All cases were run.
    Complete,
    /// The user interrupted it.
    Interrupted,
    /// A limit of time, tokens or money was reached.
    LimitReached,
    /// A server that the run needs was given up.
    ServerLost,
}

/// Returns the outcome of a summary (design, "Exit codes").
pub fn absolute_outcome(summary: &RunSummary, ending: RunEnding) -> RunOutcome {
    // The order is that of what a caller can act on: who pressed Ctrl-C knows why; a failure is a
    // fact, whatever else is missing; an outage explains missing verdicts better than
    // "inconclusive".
    if ending == RunEnding::Interrupted {
        RunOutcome::Interrupted
    } else if summary.total == 0 || summary.count(CaseStatus::Skipped) == summary.total {
        RunOutcome::NothingRan
    } else if summary.failed > 0 {
        RunOutcome::Failed
    // A limit leaves cases as `NotRun` too. That is what was asked for, and no outage.
    } else if summary.lost_verdicts(ending)
        || summary.count(CaseStatus::NotRun) > 0 && ending != RunEnding::LimitReached
    {
        RunOutcome::ModelUnavailable
    } else if summary.unscored > 0 {
        RunOutcome::Inconclusive
    } else {
        RunOutcome::Passed
    }
}
