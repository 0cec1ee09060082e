//! Executes a plan: cases in flight up to a limit, cancellable at any point.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::watch;

use super::case::CasePlay;
use super::observe::Events;
use super::plan::PlannedCase;
use super::runner::Runner;
use crate::event::{RunEventKind, RunHeader};
use crate::outcome::{CaseResult, RunOutcome, Summary, gate};

/// The results of a run: its cases in the order of the plan, their summary, and the outcome.
pub type Executed = (Vec<Arc<CaseResult>>, Summary, RunOutcome);

/// Runs the plan. `cancel` turns true when the user interrupts: cases in flight are then
/// closed with what is known of them, and the others are skipped.
pub async fn execute(
    runner: &Arc<Runner>,
    header: Arc<RunHeader>,
    plan: &[PlannedCase],
    events: &Events,
    cancel: watch::Receiver<bool>,
) -> Executed {
    let concurrency = header.config.concurrency.max(1);
    let run = Execution::start(runner, header, events, &cancel);
    let cases = stream::iter(plan).map(|planned| run.case(planned));
    let results = cases.buffer_unordered(concurrency).collect().await;
    run.finish(results)
}

/// A run that has begun.
pub(super) struct Execution<'a> {
    runner: &'a Arc<Runner>,
    header: Arc<RunHeader>,
    events: &'a Events,
    cancel: &'a watch::Receiver<bool>,
}

impl<'a> Execution<'a> {
    pub(super) fn start(
        runner: &'a Arc<Runner>,
        header: Arc<RunHeader>,
        events: &'a Events,
        cancel: &'a watch::Receiver<bool>,
    ) -> Self {
        events.emit(RunEventKind::RunStarted(Arc::clone(&header)));
        Self { runner, header, events, cancel }
    }

    /// Starts a case; what is returned waits for its end.
    pub(super) fn case(
        &self,
        planned: &PlannedCase,
    ) -> impl Future<Output = Arc<CaseResult>> + use<> {
        let (runner, group) = (Arc::clone(self.runner), self.header.task_group_id.clone());
        let case = CasePlay::new(runner, self.events.clone(), planned.clone(), group);
        let running = tokio::spawn(run_case(case, self.events.clone(), self.cancel.clone()));
        // A panic in a case is a bug, and goes on as one.
        running.map(|end| end.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())))
    }

    /// Sums up.
    pub(super) fn finish(self, mut results: Vec<Arc<CaseResult>>) -> Executed {
        let (runner, events) = (self.runner, self.events);
        results.sort_by_key(|case| case.index);
        let mut summary = Summary::default();
        for case in &results {
            summary.add(case);
        }
        let outcome = gate(&summary, *self.cancel.borrow());
        if let Some(why) = runner.outages.first() {
            events.emit(RunEventKind::Warning(format!("the run ended early: {why}")));
        }
        let changed_files = runner.watch.as_ref().map_or_else(Vec::new, |watch| {
            tokio::task::block_in_place(|| watch.detect_changes().1)
        });
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
            at: selftest_clock::now(),
            changed_files,
        });
        (results, summary, outcome)
    }
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
