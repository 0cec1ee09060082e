//! Executes the two arms of an experiment, interleaving their trials in a given order.
//!
//! Each arm is a run with its own report. Neither the system under test nor the judge learns about
//! the other arm.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::watch;

use super::execute::{RunExecution, RunResults};
use super::observe::EventSender;
use super::order::TrialSlot;
use super::plan::PlannedCase;
use super::runner::Runner;
use crate::event::RunHeader;
use crate::experiment::{Arm, Arms};
use crate::gate::RunGate;
use crate::outcome::CaseResult;

/// One arm of an experiment.
pub struct ArmRun {
    /// Resources shared by its cases.
    pub runner: Arc<Runner>,
    /// Facts that are known before the first case.
    pub header: Arc<RunHeader>,
    /// Receives its events.
    pub events: EventSender,
    /// Cases that finished before the experiment was interrupted. They are not run again.
    pub recalled: Vec<Arc<CaseResult>>,
}

/// Runs the same plan in both arms, trial by trial in this order. For `cancel` see
/// [`super::execute::execute`].
pub async fn execute_arms(
    arms: &Arms<ArmRun>,
    plan: &[PlannedCase],
    order: &[TrialSlot],
    cancel: watch::Receiver<bool>,
) -> Arms<RunResults> {
    let limit = arms.control.header.config.concurrency.max(1);
    let start = |arm: Arm| {
        let ArmRun { runner, header, events, recalled } = arms.of(arm);
        let run = RunExecution::start(run_number(arm), runner, Arc::clone(header), events, &cancel);
        run.emit_recalled(recalled);
        run
    };
    let runs = Arms { control: start(Arm::Control), treatment: start(Arm::Treatment) };
    let mut results = arms.as_ref().map(|arm| arm.recalled.clone());
    let known = arms
        .as_ref()
        .map(|arm| -> BTreeSet<usize> { arm.recalled.iter().map(|case| case.index).collect() });
    let cases = plan.len() / repeat_count(plan);
    // Trials start lazily in the given order, at most `limit` at a time.
    let trials = order.iter().copied().filter_map(|slot| {
        let planned = plan.get(slot.position(cases))?;
        // A resumed experiment skips finished trials but keeps the order of the others.
        let arm = slot.arm;
        let is_left = !known.of(arm).contains(&planned.index);
        is_left.then(|| runs.of(arm).start_case(planned).map(move |case| (arm, case)))
    });
    let mut trials = stream::iter(trials).buffer_unordered(limit);
    while let Some((arm, case)) = trials.next().await {
        results.of_mut(arm).push(case);
    }
    drop(trials);
    let Arms { control, treatment } = runs;
    Arms {
        control: control.finish(results.control, &RunGate::Absolute, &[], None),
        treatment: treatment.finish(results.treatment, &RunGate::Absolute, &[], None),
    }
}

/// Returns the run number of an arm in the call log that both arms share.
pub fn run_number(arm: Arm) -> usize {
    match arm {
        Arm::Control => 0,
        Arm::Treatment => 1,
    }
}

/// Returns the number of repeats in the plan; at least 1.
fn repeat_count(plan: &[PlannedCase]) -> usize {
    plan.last().and_then(|planned| planned.repeat).map_or(1, |repeat| repeat as usize)
}
