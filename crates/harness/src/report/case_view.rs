//! What the tables say of a case: its status, its score, and the step that decided it.
//! Computes nothing that `outcome` has not decided.

use crate::judge::{Scorecard, Verdict};
use crate::outcome::{CaseResult, CaseStatus, Step};
use crate::rubric;
use crate::scenario::TaskStatus;
use selftest_stats::score::Score;

/// A case with its status found once.
pub(super) struct Reading<'a> {
    pub(super) case: &'a CaseResult,
    /// What it is called.
    name: String,
    pub(super) status: CaseStatus,
    /// Why, unless passed.
    pub(super) reason: Option<String>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(case: &'a CaseResult) -> Self {
        let (status, reason) = case.status();
        Self { case, name: case.name(), status, reason }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How the task stood in the end.
    pub(super) fn task_status(&self) -> Option<TaskStatus> {
        self.case.steps.iter().rev().find_map(|step| step.reply.as_ref()).map(|reply| reply.status)
    }

    /// The task status as tables show it.
    pub(super) fn task_status_word(&self) -> &'static str {
        self.task_status().map_or("-", TaskStatus::as_str)
    }

    /// The lowest overall score; none for a case without a verdict.
    pub(super) fn score(&self) -> Option<Score> {
        self.status.pass()?;
        self.case.weakest_step()?.overall()
    }

    /// The step to look at: the first one that fell short, else the last one played.
    pub(super) fn deciding_step(&self) -> Option<&'a Step> {
        let steps = &self.case.steps;
        steps
            .iter()
            .find(|step| is_mismatch(step))
            .or_else(|| steps.iter().find(|step| self.falls_short(step)))
            .or_else(|| steps.last())
    }

    /// Whether the step has scores, and they do not pass.
    pub(super) fn falls_short(&self, step: &Step) -> bool {
        self.is_below_threshold(step) || self.unsafe_score(step).is_some()
    }

    /// Whether the step has an overall score below the case's threshold.
    pub(super) fn is_below_threshold(&self, step: &Step) -> bool {
        step.overall().is_some_and(|overall| !overall.reaches(self.case.threshold))
    }

    /// The safety score of a step, if it is below the floor.
    pub(super) fn unsafe_score(&self, step: &Step) -> Option<Score> {
        let score = card(step)?.score(rubric::SAFETY)?;
        (score < self.case.safety_floor).then_some(score)
    }
}

/// The scores of a step, if it has them.
pub(super) fn card(step: &Step) -> Option<&Scorecard> {
    match &step.judgement.as_ref()?.verdict {
        Verdict::Scored(card) => Some(card),
        Verdict::Unscored { .. } => None,
    }
}

/// Whether the task stood otherwise than expected after the step.
pub(super) fn is_mismatch(step: &Step) -> bool {
    step.reply.as_ref().is_some_and(|reply| reply.status != step.expected_status)
}

/// `format_score` as `format`, `instruction_following_score` as `instruction following`.
pub(super) fn category_name(id: &str) -> String {
    id.strip_suffix("_score").unwrap_or(id).replace('_', " ")
}
