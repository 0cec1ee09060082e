//! Executes a plan: cases in flight up to a limit, cancellable at any point.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use super::case::CasePlay;
use super::observe::Events;
use super::plan::PlannedCase;
use super::runner::Runner;
use crate::event::{RunEventKind, RunHeader};
use crate::outcome::{CaseResult, Outcome, Summary, gate};

/// Runs the plan. `cancel` turns true when the user interrupts: cases in flight are then
/// closed with what is known of them, and the others are skipped.
pub async fn execute(
    runner: &Arc<Runner>,
    header: Arc<RunHeader>,
    plan: &[PlannedCase],
    events: &Events,
    cancel: watch::Receiver<bool>,
) -> (Vec<Arc<CaseResult>>, Summary, Outcome) {
    let group = header.task_group_id.clone();
    let concurrency = header.concurrency.max(1);
    events.emit(RunEventKind::RunStarted(header));
    let mut results: Vec<Arc<CaseResult>> = stream::iter(plan)
        .map(|planned| {
            let runner = Arc::clone(runner);
            let case = CasePlay::new(runner, events.clone(), planned.clone(), group.clone());
            tokio::spawn(run_case(case, events.clone(), cancel.clone()))
        })
        .buffer_unordered(concurrency)
        // A panic in a case is a bug, and goes on as one.
        .map(|ended| ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())))
        .collect()
        .await;
    results.sort_by_key(|case| case.index);
    let mut summary = Summary::default();
    for case in &results {
        summary.add(case);
    }
    let outcome = gate(&summary, *cancel.borrow());
    let changed_files = tokio::task::block_in_place(|| runner.watch.look().1);
    if !changed_files.is_empty() && !runner.sut.can_reach_project() {
        events.emit(RunEventKind::Warning(format!(
            "files of the project changed during the run, though the system under test \
             cannot reach them: {}",
            changed_files.join(", ")
        )));
    }
    events.emit(RunEventKind::RunFinished {
        summary: summary.clone(),
        outcome,
        at: Timestamp::now(),
        changed_files,
    });
    (results, summary, outcome)
}

async fn run_case(
    mut play: CasePlay,
    events: Events,
    mut cancel: watch::Receiver<bool>,
) -> Arc<CaseResult> {
    let cancelled = tokio::select! {
        biased;
        // An error means that nobody can cancel any more.
        Ok(_) = cancel.wait_for(|cancelled| *cancelled) => true,
        () = play.play() => false,
    };
    let case = Arc::new(play.finish(cancelled).await);
    events.emit(RunEventKind::CaseFinished(Arc::clone(&case)));
    case
}
