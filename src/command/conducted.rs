//! A run that is carried out: its progress is shown, its reports are written, and it ends with an
//! exit code. Which cases it has is for others to say.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;

use super::ci_reports::{self, CiReports};
use super::context::Project;
use super::failure::Failure;
use super::{eprint, print};
use crate::cli::{Format, RunArgs};
use crate::exit::Exit;
use selftest_config::ResolvedConfig;
use selftest_harness::event::{EventLog, Observer, RunHeader};
use selftest_harness::journal::Journal;
use selftest_harness::outcome::CaseResult;
use selftest_harness::run::execute::{RunOptions, RunResults, execute as execute_plan};
use selftest_harness::run::observe;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::run::runner::Runner;
use selftest_harness::sut::namespace::RunId;
use selftest_reports::document::ReportDocument;
use selftest_reports::next_step::NextStep;
use selftest_reports::terminal::{ClosingOptions, DetailLevel};
use selftest_reports::{
    ProgressObserver, ReportFiles, ReportHandle, ReportObserver, TerminalStyle, terminal,
};

/// A run that has ended, for what is made of it.
pub(super) struct Ended {
    pub(super) exit: Exit,
    /// Absent where nothing ran.
    pub(super) conducted: Option<Conducted>,
}

impl Ended {
    pub(super) const NOTHING: Self = Self { exit: Exit::NothingRan, conducted: None };
}

/// The files that a run writes to, opened before anything is asked.
pub(super) fn report_files(
    project: &Project,
    resolved: &ResolvedConfig,
    run_id: &RunId,
    may_exist: bool,
) -> Result<ReportFiles, Failure> {
    let (json_folder, markdown_folder) = project.report_folders(resolved);
    let opened = if may_exist {
        ReportFiles::reopen(&json_folder, &markdown_folder, run_id)
    } else {
        ReportFiles::open(&json_folder, &markdown_folder, run_id)
    };
    opened.map_err(|error| Failure::setup(anyhow!("{error}")).hint(Some(error.hint())))
}

/// A run that came to its end.
pub(super) struct Conducted {
    pub(super) header: Arc<RunHeader>,
    results: RunResults,
    document: ReportHandle,
    took: Duration,
    /// Whether no run before has left a report.
    is_first: bool,
    /// Reports that could not be written.
    faults: Vec<String>,
    /// Where the journal is; absent where it is not whole.
    journal: Option<PathBuf>,
}

/// Files that a run leaves behind: its reports and its journal.
pub(super) struct Kept {
    pub(super) files: ReportFiles,
    pub(super) journal: Arc<Journal>,
}

/// Runs a plan, shows its progress and writes its reports.
pub(super) async fn conduct(
    project: &Project,
    runner: &Arc<Runner>,
    header: Arc<RunHeader>,
    plan: &[PlannedCase],
    kept: Kept,
    course: RunOptions,
) -> Conducted {
    let Kept { files, journal } = kept;
    let style = TerminalStyle {
        terminal: std::io::stderr().is_terminal() && !project.environment.ci,
        colour: std::io::stderr().is_terminal() && !project.environment.no_color,
    };
    let started = Instant::now();
    let is_first = files.is_first();
    let report = ReportObserver::new(files);
    let document = report.handle();
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(report)];
    if project.detail != DetailLevel::Brief {
        observers.push(Box::new(ProgressObserver::new(style)));
    }
    let (events, observer_thread) = observe::spawn_observers(observers);
    let events = events.with_log(Arc::clone(&journal) as Arc<dyn EventLog>);
    let results = execute_plan(runner, Arc::clone(&header), plan, &events, &course).await;
    drop(events);
    // The observers only write files; nothing else is left to do on this thread.
    let faults = tokio::task::block_in_place(|| observer_thread.finish());
    let took = started.elapsed();
    tokio::task::block_in_place(|| journal.close());
    let fault = journal.fault();
    if let Some(fault) = &fault {
        eprint(&format!("warning: {fault}; what finished after that is in the reports alone\n"));
    }
    let journal = fault.is_none().then(|| journal.path());
    Conducted { header, results, document, took, is_first, faults, journal }
}

impl Conducted {
    /// The run as its caller sees it; its results are printed where they are to be.
    pub(super) fn ended(
        self,
        project: &Project,
        args: &RunArgs,
        prints: bool,
    ) -> Result<Ended, Failure> {
        if prints {
            self.print(project, args.format)?;
        }
        Ok(Ended { exit: self.exit(args.gate.exit_zero)?, conducted: Some(self) })
    }

    /// The results, by case and all together.
    pub(super) fn cases(&self) -> &[Arc<CaseResult>] {
        &self.results.cases
    }

    /// The report as other commands read it.
    pub(super) fn report(&self) -> Result<ReportDocument, Failure> {
        let missing = || Failure::setup(anyhow!("the run has no report: it never started"));
        self.document.document().ok_or_else(missing)
    }

    /// Writes the reports that are asked for besides those of every run.
    pub(super) async fn report_to_ci(
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

    /// Prints the results on stdout.
    pub(super) fn print(&self, project: &Project, format: Format) -> Result<(), Failure> {
        match format {
            Format::Json => print(&self.document.json_text().unwrap_or_default()),
            Format::Human => {
                let environment = &project.environment;
                let is_terminal = std::io::stdout().is_terminal();
                let colour = is_terminal && !environment.no_color;
                let has_links = colour
                    && !environment.ci
                    && supports_hyperlinks::on(supports_hyperlinks::Stream::Stdout);
                let here = std::env::current_dir().ok();
                let style = TerminalStyle { terminal: is_terminal, colour };
                let RunResults { cases, summary, outcome, gate } = &self.results;
                let (header, paths) = (&self.header, self.document.paths());
                let closing = ClosingOptions {
                    style,
                    detail: project.detail,
                    links: here.as_deref().filter(|_| has_links),
                    took: self.took,
                };
                let mut text = terminal::closing(header, cases, summary, *outcome, paths, &closing);
                if let Some(finding) = gate {
                    text.push_str(&terminal::gate(finding, style));
                }
                let next = NextStep::after(header, summary, *outcome).filter(|_| self.is_first);
                text.push_str(&next.map(|next| next.line(paths)).unwrap_or_default());
                print(&text)
            }
        }
    }

    /// The exit code of the outcome, or the reports that could not be written.
    pub(super) fn exit(&self, exit_zero: bool) -> Result<Exit, Failure> {
        if !self.faults.is_empty() {
            let failure = Failure::setup(anyhow!(self.faults.join("\n")));
            let hint = self.journal.as_ref().map(|journal| {
                format!(
                    "all that finished is in {0}; once there is room for reports, \
                     `selftest --resume {0}` writes them",
                    journal.display()
                )
            });
            return Err(failure.hint(hint));
        }
        let exit = Exit::from(self.results.outcome);
        let gated = matches!(exit, Exit::Failed | Exit::Inconclusive);
        Ok(if exit_zero && gated { Exit::Passed } else { exit })
    }
}
