//! Executes a plan: cases in flight up to a limit, cancellable at any point.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use super::case::CasePlay;
use super::observe::Events;
use super::plan::PlannedCase;
use crate::event::{RunEventKind, RunHeader};
use crate::judge::ask::Judge;
use crate::outcome::{CaseResult, Outcome, Summary, gate};
use crate::prompts::PromptLibrary;
use crate::redact::Redactor;
use crate::scenario::generate::Generator;
use crate::sut::SystemUnderTest;
use crate::sut::project::Snapshot;

/// Everything that the cases of a run share.
pub struct Runner {
    /// Invents prompts.
    pub generator: Generator,
    /// Judges answers.
    pub judge: Judge,
    /// Answers.
    pub sut: Arc<dyn SystemUnderTest>,
    /// All templates, loaded.
    pub library: Arc<PromptLibrary>,
    /// Removes secrets from what the system under test says.
    pub redactor: Arc<Redactor>,
    /// Seed of the run.
    pub seed: u64,
    /// The project folder as it should stay.
    pub watch: ProjectWatch,
}

/// The project folder and how it looked last.
pub struct ProjectWatch {
    first: Arc<Snapshot>,
    latest: Mutex<Arc<Snapshot>>,
}

impl ProjectWatch {
    /// Looks at the folder for the first time. `excluded` are the folders that reports go to.
    pub fn new(root: &Path, excluded: &[PathBuf]) -> Self {
        let first = Arc::new(Snapshot::take(root, excluded));
        let latest = Mutex::new(Arc::clone(&first));
        Self { first, latest }
    }

    /// What changed since the last call, and since the beginning.
    fn look(&self) -> (Vec<String>, Vec<String>) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Arc::new(latest.again());
        let changes = (now.changes_since(&latest), now.changes_since(&self.first));
        *latest = now;
        changes
    }
}

impl Runner {
    /// Files that changed since the last look, when the system under test could have done it.
    pub(super) fn project_changes(&self) -> Vec<String> {
        if !self.sut.can_reach_project() {
            return Vec::new();
        }
        tokio::task::block_in_place(|| self.watch.look().0)
    }

    /// Runs the plan. `cancel` turns true when the user interrupts: cases in flight are then
    /// closed with what is known of them, and the others are skipped.
    pub async fn run(
        self: Arc<Self>,
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
                let runner = Arc::clone(&self);
                let case = CasePlay::new(runner, events.clone(), planned.clone(), group.clone());
                tokio::spawn(run_case(case, events.clone(), cancel.clone()))
            })
            .buffer_unordered(concurrency)
            // A panic in a case is a bug, and goes on as one.
            .map(|ended| {
                ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
            })
            .collect()
            .await;
        results.sort_by_key(|case| case.index);
        let mut summary = Summary::default();
        for case in &results {
            summary.add(case);
        }
        let outcome = gate(&summary, *cancel.borrow());
        let changed_files = tokio::task::block_in_place(|| self.watch.look().1);
        if !changed_files.is_empty() && !self.sut.can_reach_project() {
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
