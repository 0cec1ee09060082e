//! Executes the two arms of an experiment, their trials mixed in a given order.
//!
//! Each arm is a run with a report of its own. Nobody who answers or judges is told of the other.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::watch;

use super::execute::{Executed, Execution};
use super::observe::Events;
use super::order::Slot;
use super::plan::PlannedCase;
use super::runner::Runner;
use crate::event::RunHeader;
use crate::experiment::Arms;
use crate::gate::Gate;

/// One arm.
pub struct ArmRun {
    /// Everything that its cases share.
    pub runner: Arc<Runner>,
    /// Facts that are known before the first case.
    pub header: Arc<RunHeader>,
    /// Who is told.
    pub events: Events,
}

/// Runs the same plan in both arms, trial by trial in this order. `cancel` is as in
/// [`super::execute::execute`].
pub async fn execute_arms(
    arms: &Arms<ArmRun>,
    plan: &[PlannedCase],
    order: &[Slot],
    cancel: watch::Receiver<bool>,
) -> Arms<Executed> {
    let limit = arms.control.header.config.concurrency.max(1);
    let runs = arms
        .as_ref()
        .map(|arm| Execution::start(&arm.runner, Arc::clone(&arm.header), &arm.events, &cancel));
    let cases = plan.len() / rounds(plan);
    let trials = order.iter().copied().filter_map(|slot| {
        let planned = plan.get(slot.position(cases))?;
        let arm = slot.arm;
        Some(runs.of(arm).case(planned).map(move |case| (arm, case)))
    });
    let mut results = Arms::<Vec<_>>::default();
    let mut trials = stream::iter(trials).buffer_unordered(limit);
    while let Some((arm, case)) = trials.next().await {
        results.of_mut(arm).push(case);
    }
    drop(trials);
    let Arms { control, treatment } = runs;
    Arms {
        control: control.finish(results.control, &Gate::Absolute, None),
        treatment: treatment.finish(results.treatment, &Gate::Absolute, None),
    }
}

/// How often the plan has each case; at least 1.
fn rounds(plan: &[PlannedCase]) -> usize {
    plan.last().and_then(|planned| planned.repeat).map_or(1, |repeat| repeat as usize)
}
