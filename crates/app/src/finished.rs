//! Executes a planned run, with its observers, reports and journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;

use crate::ci_reports::{self, CiReports};
use crate::error::AppError;
use crate::project::Project;
use selftest_config::ResolvedConfig;
use selftest_harness::event::{EventLog, Observer, RunEventKind, RunHeader};
use selftest_harness::journal::Journal;
use selftest_harness::outcome::{CaseResult, RunOutcome};
use selftest_harness::run::execute::{RunOptions, RunResults, execute};
use selftest_harness::run::observe;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::run::runner::Runner;
use selftest_harness::sut::namespace::RunId;
use selftest_reports::document::ReportDocument;
use selftest_reports::next_step::NextStep;
use selftest_reports::terminal::{ClosingOptions, DetailLevel};
use selftest_reports::{ReportFiles, ReportHandle, ReportObserver, TerminalStyle, terminal};

/// Opens the report files of a run, before any model call.
pub(crate) fn report_files(
    project: &Project,
    resolved: &ResolvedConfig,
    run_id: &RunId,
    may_exist: bool,
) -> Result<ReportFiles, AppError> {
    let (json_folder, markdown_folder) = project.report_folders(resolved);
    let opened = if may_exist {
        ReportFiles::reopen(&json_folder, &markdown_folder, run_id)
    } else {
        ReportFiles::open(&json_folder, &markdown_folder, run_id)
    };
    opened.map_err(|error| AppError::setup(anyhow!("{error}")).hint(Some(error.hint())))
}

/// A run that has finished.
pub struct FinishedRun {
    /// Header of its reports.
    pub header: Arc<RunHeader>,
    results: RunResults,
    document: ReportHandle,
    took: Duration,
    /// True if this is the first run with a report.
    is_first: bool,
    /// Reports that could not be written.
    faults: Vec<String>,
    /// File of the journal; absent if it is incomplete.
    journal: Option<PathBuf>,
}

/// Files of a run: its reports and its journal.
pub(crate) struct RunFiles {
    pub files: ReportFiles,
    pub journal: Arc<Journal>,
}

/// Executes a plan and writes its reports.
pub(crate) async fn execute_plan(
    project: &Project,
    runner: &Arc<Runner>,
    header: Arc<RunHeader>,
    plan: &[PlannedCase],
    kept: RunFiles,
    options: RunOptions,
) -> FinishedRun {
    let RunFiles { files, journal } = kept;
    let started = Instant::now();
    let is_first = files.is_first();
    let report = ReportObserver::new(files);
    let document = report.handle();
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(report)];
    observers.extend(project.frontend().run_observer(None));
    let (events, observer_thread) = observe::spawn_observers(observers);
    let events = events.with_log(Arc::clone(&journal) as Arc<dyn EventLog>);
    let results = execute(runner, Arc::clone(&header), plan, &events, &options).await;
    // Closes the channel: the observers finish once they have seen every event.
    drop(events);
    // The observers only write files; nothing else is left to do on this thread.
    let faults = tokio::task::block_in_place(|| observer_thread.finish());
    let took = started.elapsed();
    // Only now, because events were logged until the channel was closed.
    tokio::task::block_in_place(|| journal.close());
    let fault = journal.fault();
    if let Some(fault) = &fault {
        project.notify(&format!(
            "warning: {fault}; what finished after that is in the reports alone\n"
        ));
    }
    let journal = fault.is_none().then(|| journal.path());
    FinishedRun { header, results, document, took, is_first, faults, journal }
}

impl FinishedRun {
    /// Writes the reports of results that are already known. Nothing is run.
    pub(crate) fn of_results(
        header: Arc<RunHeader>,
        results: RunResults,
        files: ReportFiles,
        (took, end): (Duration, RunEventKind),
    ) -> Self {
        let is_first = files.is_first();
        let report = ReportObserver::new(files);
        let document = report.handle();
        let (events, observer_thread) = observe::spawn_observers(vec![Box::new(report)]);
        events.emit(RunEventKind::RunStarted(Arc::clone(&header)));
        events.emit(RunEventKind::CasesRecalled(results.cases.clone().into()));
        events.emit(end);
        drop(events);
        let faults = tokio::task::block_in_place(|| observer_thread.finish());
        Self { header, results, document, took, is_first, faults, journal: None }
    }

    /// Returns the results of all cases.
    pub fn cases(&self) -> &[Arc<CaseResult>] {
        &self.results.cases
    }

    /// Returns the report as a document.
    pub fn report(&self) -> Result<ReportDocument, AppError> {
        let missing = || AppError::setup(anyhow!("the run has no report: it never started"));
        self.document.document().ok_or_else(missing)
    }

    /// Writes the requested reports besides those of every run.
    pub async fn report_to_ci(
        &mut self,
        project: &Project,
        resolved: &ResolvedConfig,
        reports: &CiReports,
    ) {
        if !reports.are_wanted() {
            return;
        }
        let Some(document) = self.document.document() else { return };
        let sources = ci_reports::case_sources(project, resolved, document.suite.as_ref());
        let faults = reports.write(&document, &sources, &self.document.paths().json).await;
        self.faults.extend(faults);
    }

    /// Returns the JSON report as it was written.
    pub fn json_text(&self) -> String {
        self.document.json_text().unwrap_or_default()
    }

    /// Renders the results for a terminal.
    ///
    /// `links` is the folder that links to reports are relative to; without it the text has no
    /// links.
    pub fn text(&self, style: TerminalStyle, detail: DetailLevel, links: Option<&Path>) -> String {
        let RunResults { cases, summary, outcome, gate } = &self.results;
        let (header, paths) = (&self.header, self.document.paths());
        let closing =
            ClosingOptions { style, detail, links, took: self.took, gate: gate.as_deref() };
        let mut text = terminal::closing(header, cases, summary, *outcome, paths, &closing);
        if let Some(finding) = gate {
            text.push_str(&terminal::gate(finding, style));
        }
        let next = NextStep::after(header, summary, *outcome).filter(|_| self.is_first);
        text.push_str(&next.map(|next| next.line(paths)).unwrap_or_default());
        text
    }

    /// Returns the outcome of the run.
    ///
    /// # Errors
    ///
    /// Fails if reports could not be written; the journal then still has all results.
    pub fn outcome(&self) -> Result<RunOutcome, AppError> {
        if self.faults.is_empty() {
            return Ok(self.results.outcome);
        }
        let failure = AppError::setup(anyhow!(self.faults.join("\n")));
        let hint = self.journal.as_ref().map(|journal| {
            format!(
                "all finished results are in {0}; once there is room for reports, \
                 `selftest --resume {0}` writes them",
                journal.display()
            )
        });
        Err(failure.hint(hint))
    }
}
