//! Executes the arms of an experiment, interleaving their trials in a given order.
//!
//! Each arm is a run with its own report. Neither the system under test nor the judge learns about
//! the other arms.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::watch;

use super::execute::{RunExecution, RunResults};
use super::limits::{RunLimits, RunSpending};
use super::observe::EventSender;
use super::plan::PlannedCase;
use super::runner::Runner;
use crate::event::RunHeader;
use crate::gate::RunGate;
use crate::outcome::CaseResult;
use crate::outcome::case::Interruption;

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
    /// Its trials.
    pub plan: Vec<PlannedCase>,
}

/// A trial in the order of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArmTrial {
    /// Position of the arm.
    pub arm: usize,
    /// Position in the plan of that arm.
    pub position: usize,
}

/// Runs the trials of all arms in this order, within limits that all arms share. The number of an
/// arm in the call log of its models is its position. For `cancel` see [`super::execute::execute`].
pub async fn execute_arms(
    arms: &[ArmRun],
    order: &[ArmTrial],
    limits: RunLimits,
    cancel: watch::Receiver<bool>,
) -> Vec<RunResults> {
    let Some(first) = arms.first() else { return Vec::new() };
    let at_once = first.header.config.concurrency.max(1);
    let mut spending = RunSpending::start(limits, first.header.prices.clone().unwrap_or_default());
    let deadline = spending.deadline().map(|at| (at, spending.time_limit_message()));
    let runs: Vec<RunExecution<'_>> = arms
        .iter()
        .enumerate()
        .map(|(number, ArmRun { runner, header, events, recalled, .. })| {
            let run = RunExecution::start(number, runner, Arc::clone(header), events, &cancel)
                .with_deadline(deadline.clone());
            run.emit_recalled(recalled);
            run
        })
        .collect();
    let mut results: Vec<Vec<Arc<CaseResult>>> =
        arms.iter().map(|arm| arm.recalled.clone()).collect();
    for case in results.iter().flatten() {
        spending.add(case);
    }
    let known: Vec<BTreeSet<usize>> =
        arms.iter().map(|arm| arm.recalled.iter().map(|case| case.index).collect()).collect();
    // A resumed experiment skips finished trials but keeps the order of the others.
    let waiting: Vec<(usize, &PlannedCase)> = order
        .iter()
        .filter_map(|trial| Some((trial.arm, arms.get(trial.arm)?.plan.get(trial.position)?)))
        .filter(|(arm, planned)| !known[*arm].contains(&planned.index))
        .collect();
    let stop = AtomicBool::new(spending.reached_limit(Instant::now()).is_some());
    let mut begun = 0;
    // Trials start lazily in the given order, and none does once a limit is reached.
    let trials = (0..waiting.len()).map_while(|at| {
        let goes_on = !stop.load(Ordering::Relaxed);
        let (arm, planned) = waiting[at];
        goes_on.then(|| runs[arm].start_case(planned).map(move |case| (arm, case)))
    });
    let mut trials = stream::iter(trials).buffer_unordered(at_once);
    while let Some((arm, case)) = trials.next().await {
        begun += 1;
        spending.add(&case);
        results[arm].push(case);
        if spending.reached_limit(Instant::now()).is_some() {
            stop.store(true, Ordering::Relaxed);
        }
    }
    drop(trials);
    let limit = spending.reached_limit(Instant::now());
    if let Some(why) = &limit {
        for &(arm, planned) in &waiting[begun..] {
            let why = Interruption::LimitReached(why.clone());
            results[arm].push(runs[arm].skip_case(planned, &why));
        }
    }
    let finish = |(run, results): (RunExecution<'_>, Vec<Arc<CaseResult>>)| {
        let is_short = results.iter().any(|case| case.was_stopped_by_limit());
        run.finish(results, &RunGate::Absolute, &[], limit.clone().filter(|_| is_short))
    };
    runs.into_iter().zip(results).map(finish).collect()
}
