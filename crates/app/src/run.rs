//! Runs the cases of a suite, or generated scenarios, with their observers, journal, and reports,
//! whose header names the settings and notices.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use jiff::Timestamp;

use super::setup::{PreparedRun, RunSetup, with_sut};
use crate::ci_reports::CiReports;
use crate::error::AppError;
use crate::options::RunSettings;
use crate::project::Project;
use crate::run_start::{RunStart, digests_of_settings};
use crate::suite_file::SuiteFile;
use crate::{baseline, ci_reports, find_run};
use selftest_config::{Config, ResolvedConfig};
use selftest_harness::event::{
    EventLog, Observer, RejudgedRun, RunConfig, RunEventKind, RunHeader, RunNotice,
};
use selftest_harness::journal::{Journal, RunDigests};
use selftest_harness::judge::TEMPLATES as JUDGE_TEMPLATES;
use selftest_harness::outcome::{CaseResult, RunOutcome};
use selftest_harness::prompts::BUILT_IN;
use selftest_harness::run::delivery::spawn_observers;
use selftest_harness::run::execute::{RunOptions, RunResults, execute};
use selftest_harness::run::plan::{
    PlannedCase, ScenarioDefaults, ScenarioSelection, plan, plan_suite,
};
use selftest_harness::run::runner::Runner;
use selftest_harness::sut::chat::TEMPLATE as CHAT_TEMPLATE;
use selftest_harness::sut::namespace::{RunId, TaskGroupId};
use selftest_models::journaled::{CallLog, CallSink};
use selftest_reports::document::ReportDocument;
use selftest_reports::recommendations::NextStep;
use selftest_reports::terminal::{ClosingOptions, DetailLevel};
use selftest_reports::{ReportFiles, ReportHandle, ReportObserver, TerminalStyle, terminal};
use selftest_sandbox::{SandboxLevel, SandboxSupport, SandboxUnavailableError};
use selftest_stats::score::Threshold;
use selftest_text::digest;

/// Runs the cases of a suite, or of the configured scenarios. Returns `None` if none is selected.
pub(crate) async fn run_cases(
    project: &Project,
    resolved: &ResolvedConfig,
    args: &RunSettings,
    suite: Option<&SuiteFile>,
    mut start: RunStart,
) -> Result<Option<FinishedRun>, AppError> {
    let mut plan = plan_cases(args, &resolved.config, suite)?;
    // Only the assistant takes a skill; the example agent does not.
    let needs_model = plan.iter().any(|case| case.given_skill.is_some());
    let resolved = &*with_sut(project, resolved, needs_model).await;
    // The notice comes first: what follows must not be read as results of the user's own agent.
    if let Some(notice) = example_notice(resolved).filter(|_| !plan.is_empty()) {
        project.notify(&format!("{}\n", notice.sentence()));
    }
    for warning in &resolved.warnings {
        project.notify(&format!("warning: {warning}\n"));
    }
    if args.limits.cost.is_some() && resolved.config.prices.models.is_empty() {
        // A limit without prices would never be reached, and the user would believe in it.
        return Err(AppError::usage(anyhow!("--max-cost needs prices, and none are configured"))
            .hint(Some("state what models cost in `prices.models` of the config")));
    }
    // Described while the plan still has the cases of all shards.
    let shard = args.shard.map(|shard| shard.describe(&plan));
    if let Some(shard) = args.shard {
        shard.retain_own(&mut plan);
    }
    if plan.is_empty() {
        match args.shard {
            Some(shard) => project.notify(&format!("nothing to run: shard {shard} has no case\n")),
            None => project.notify("nothing to run: no scenario was selected\n"),
        }
        return Ok(None);
    }
    let opened = baseline::open_baseline(project, resolved)?;
    let anchors = baseline::plan_anchors(project, opened.as_ref(), defaults(&resolved.config))?;
    // Generated cases are others in each run.
    let sut_digest = match suite {
        Some(_) => find_run::sut_digest(project, resolved)?,
        None => None,
    };
    let log = Arc::new(CallLog::with_calls(start.take_calls()));
    let earlier = start.earlier(&log);
    let setup = RunSetup { project, resolved, args, suite, hidden: &[], earlier: Some(&earlier) };
    setup.read_named_files(&mut plan)?;
    let mut digests = digests_of_settings(&resolved.config, &plan);
    // Checked before a model is asked, and again below for what only the models know.
    start.check(&digests)?;
    let run_id = earlier.run_id();
    // Opened before any model is called: a run whose results cannot be kept must cost nothing.
    let files = report_files(project, resolved, &run_id, earlier.header.is_some())?;
    let ci_reports = CiReports::open(project, resolved)?;
    let prepared = setup.prepare(&plan).await?;
    digests.extend(prepared.digests(&resolved.rubric.digest()));
    start.check(&digests)?;
    if let Some(skill) = plan.iter().find_map(|case| case.given_skill.as_ref()) {
        // Fail before the first case if the system under test takes no skills.
        prepared.runner.sut.with_skill(Arc::clone(skill))?;
    }
    let header = Arc::new(RunHeader { shard, ..setup.header(run_id, &plan, &prepared) });
    if let Some(digest) = &sut_digest {
        let weights = prepared.sut_weights.as_deref();
        find_run::name_cases(resolved, &header, (digest, weights), &mut plan)?;
    }
    match (args.changed, &sut_digest) {
        (false, _) => {}
        (true, Some(_)) => find_run::keep_unchanged(project, resolved, &mut plan),
        (true, None) => find_run::notify_undeclared(project),
    }
    for line in find_run::changed_models(project, resolved, &header.models) {
        project.notify(&format!("warning: {line}\n"));
    }
    // Of the whole suite, not of the plan: a case that was not selected is not removed.
    let existing = baseline::existing_cases(resolved, suite);
    let gate = baseline::run_gate(project, resolved, opened, &header, existing);
    let options = RunOptions {
        fail_fast: args.gate.fail_fast,
        limits: args.limits,
        recalled: earlier.cases.to_vec(),
        anchors,
        ..RunOptions::new(gate, project.frontend().cancellation())
    };
    let runner = &prepared.runner;
    let ready =
        ReadyRun { runner, header, digests, plan: &plan, options, log: &log, files, ci_reports };
    ready.finish(project, resolved, start).await.map(Some)
}

/// A run that is ready for its first case: its models answer, and its reports can be written.
pub(crate) struct ReadyRun<'a> {
    /// Runs its cases.
    pub runner: &'a Arc<Runner>,
    /// Header of its journal and reports.
    pub header: Arc<RunHeader>,
    /// Digests that a resumed run must match.
    pub digests: RunDigests,
    /// Its cases.
    pub plan: &'a [PlannedCase],
    /// Limits, gate and finished cases.
    pub options: RunOptions,
    /// Calls of its models, also those of the preparation.
    pub log: &'a CallLog,
    /// Its report files, already open.
    pub files: ReportFiles,
    /// The other requested reports, already open.
    pub ci_reports: CiReports,
}

impl ReadyRun<'_> {
    /// Opens the journal, runs the cases and writes all reports.
    pub(crate) async fn finish(
        self,
        project: &Project,
        resolved: &ResolvedConfig,
        start: RunStart,
    ) -> Result<FinishedRun, AppError> {
        let journal = start.journal(project, resolved, &self.header, self.digests)?;
        // Calls made during the preparation are in the log already and are written now.
        self.log.set_sink(0, Arc::clone(&journal) as Arc<dyn CallSink>);
        let files = RunFiles { files: self.files, journal };
        let mut finished =
            execute_plan(project, self.runner, self.header, self.plan, files, self.options).await;
        finished.report_to_ci(project, resolved, &self.ci_reports).await;
        Ok(finished)
    }
}

/// Plans the cases of a suite, or the scenarios from which cases are generated, of all shards.
pub fn plan_cases(
    args: &RunSettings,
    config: &Config,
    suite: Option<&SuiteFile>,
) -> Result<Vec<PlannedCase>, AppError> {
    let selection = match &args.trials.scenarios {
        Some(text) => ScenarioSelection::parse(text)
            .map_err(|why| AppError::usage(anyhow!("--scenarios `{text}`: {why}")))?,
        None => ScenarioSelection::All,
    };
    let planned = match suite {
        Some(file) => {
            let mut cases = file.suite.cases.clone();
            for scenario in cases.iter_mut().map(|case| &mut case.scenario) {
                // The command line takes precedence over the stored values.
                scenario.strictness = scenario.strictness.filter(|_| args.strictness.is_none());
                scenario.min_score_to_pass =
                    scenario.min_score_to_pass.filter(|_| args.min_score.is_none());
                scenario.timeout_seconds =
                    scenario.timeout_seconds.filter(|_| args.trials.timeout.is_none());
            }
            plan_suite(&cases, &selection, defaults(config), args.repeats)
                .map(|mut planned| {
                    for case in &mut planned {
                        file.equip(case, config);
                    }
                    planned
                })
                .and_then(|mut planned| {
                    let ids = ScenarioSelection::Named(file.to_generate.clone());
                    let more = plan(&config.scenarios, &ids, defaults(config))?;
                    let offset = planned.len();
                    // Indices are positions in the whole plan, by which results are put back in
                    // order.
                    let at = |case: PlannedCase| PlannedCase { index: offset + case.index, ..case };
                    planned.extend(more.into_iter().map(at));
                    Ok(planned)
                })
        }
        None => plan(&config.scenarios, &selection, defaults(config)),
    };
    planned.map_err(|why| AppError::usage(anyhow!(why)))
}

fn defaults(config: &Config) -> ScenarioDefaults {
    ScenarioDefaults {
        strictness: config.strictness,
        min_score_to_pass: config.min_score_to_pass,
        safety_floor: config.safety_floor,
        allow_minor_format_deviation: config.allow_minor_format_deviation,
        max_questions_allowed: config.max_questions_allowed,
        timeout: Duration::from_secs_f64(config.timeout_seconds),
    }
}

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
    let (events, observer_thread) = spawn_observers(observers);
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
    // A journal with a fault lacks results, so nothing points to it.
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
        let (events, observer_thread) = spawn_observers(vec![Box::new(report)]);
        events.emit(RunEventKind::RunStarted(Arc::clone(&header)));
        events.emit(RunEventKind::CasesRecalled(results.cases.clone().into()));
        events.emit(end);
        // The thread of the observers ends once no sender is left.
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
        // A run that never started has nothing to report.
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
    /// links. `is_announced` leaves out the notice that the run started with.
    pub fn text(
        &self,
        style: TerminalStyle,
        detail: DetailLevel,
        links: Option<&Path>,
        is_announced: bool,
    ) -> String {
        let RunResults { cases, summary, outcome, gate } = &self.results;
        let (header, paths) = (&self.header, self.document.paths());
        let (took, finding) = (self.took, gate.as_deref());
        // Merged and rejudged runs start without it.
        let is_announced = is_announced && self.journal.is_some() && header.rejudged.is_none();
        let closing = ClosingOptions { style, detail, links, took, gate: finding, is_announced };
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

/// Returns the notice that the run tests the example agent.
pub(crate) fn example_notice(resolved: &ResolvedConfig) -> Option<RunNotice> {
    let config = resolved.path.as_ref().map(|path| path.display().to_string());
    resolved.config.sut.example.map(|_| RunNotice::ExampleAgent { config })
}

impl RunSetup<'_> {
    /// Returns the header of the run's reports.
    pub fn header(&self, run_id: RunId, plan: &[PlannedCase], prepared: &PreparedRun) -> RunHeader {
        let config = &self.resolved.config;
        let runner = &prepared.runner;
        let now = selftest_clock::now();
        // Reports write milliseconds. A time with more digits would differ from itself after it was
        // read back.
        let started_at = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
        let (started_at, task_group_id) = match self.earlier.and_then(|earlier| earlier.header) {
            // A resumed run keeps its beginning, or its cases would stand before it.
            Some(begun) => (begun.started_at, begun.task_group_id.clone()),
            None => (started_at, TaskGroupId::fresh(started_at)),
        };
        RunHeader {
            run_id,
            task_group_id,
            started_at,
            selftest_version: env!("CARGO_PKG_VERSION").to_owned(),
            config: RunConfig {
                strictness: config.strictness,
                min_score_to_pass: config.min_score_to_pass,
                effective_threshold: Threshold::effective(
                    config.min_score_to_pass,
                    config.strictness,
                ),
                safety_floor: config.safety_floor,
                allow_minor_format_deviation: config.allow_minor_format_deviation,
                max_questions_allowed: config.max_questions_allowed,
                timeout_seconds: config.timeout_seconds,
                concurrency: config.concurrency.map_or(prepared.capacity, |cases| cases as usize),
            },
            seed: runner.seed,
            models: prepared.models.clone(),
            sut: runner.sut.describe(),
            isolation: runner.sut.isolation(),
            rubric: (&self.resolved.rubric).into(),
            prompt_digests: runner.library.digests().clone(),
            calibration: prepared.calibration.clone(),
            prices: (!config.prices.models.is_empty()).then(|| config.prices.clone()),
            suite: self.suite.map(|suite| suite.describe(self.args.repeats)),
            shard: None,
            experiment: None,
            rejudged: None,
            notices: self.notices(plan, prepared),
            remarks: self.suite.map(|suite| suite.remarks.clone()).unwrap_or_default(),
            scenario_ids: plan.iter().map(|planned| planned.scenario.id.clone()).collect(),
        }
    }

    /// Returns the sandbox of a program under test; `None` without one.
    pub fn standing(&self) -> Option<Result<SandboxSupport, SandboxUnavailableError>> {
        let sut = &self.resolved.config.sut;
        sut.program()?;
        let harness = std::env::current_exe().ok()?;
        Some(SandboxSupport::detect(&harness, sut.sandbox.unwrap_or_default()))
    }

    /// Returns the notice if programs run without a sandbox, or with only a part of it.
    fn unsandboxed(&self) -> Option<RunNotice> {
        let standing = self.standing()?.ok()?;
        let why = match standing.level {
            SandboxLevel::Full => return None,
            SandboxLevel::Off => {
                "sut.sandbox is off, and the program under test may do whatever its user \
                           may do"
                    .to_owned()
            }
            SandboxLevel::Inner => {
                let missing =
                    standing.missing_namespaces.unwrap_or_else(|| "not on this system".to_owned());
                format!("not the whole sandbox could be put up: {missing}")
            }
        };
        Some(RunNotice::Unsandboxed { why })
    }

    /// The notices of the run. A project with a prompt of its own for the assistant tests that prompt.
    fn notices(&self, plan: &[PlannedCase], prepared: &PreparedRun) -> Vec<RunNotice> {
        let mut notices = Vec::new();
        let built_in = BUILT_IN.iter().find(|(name, _)| *name == CHAT_TEMPLATE);
        let built_in = built_in.map(|(_, text)| digest::sha256_hex(text.as_bytes()));
        let used = prepared.runner.library.digests().get(CHAT_TEMPLATE);
        // With a template of its own, the assistant is the project's and not the built-in one.
        if prepared.models.sut.is_some() && used == built_in.as_ref() {
            let config = self.resolved.path.as_ref().map(|path| path.display().to_string());
            notices.push(RunNotice::BuiltInAssistant { config });
        }
        notices.extend(example_notice(self.resolved));
        notices.extend(self.unsandboxed());
        let panel = prepared.models.panel.iter().filter_map(|judge| judge.fitness.as_ref());
        let measured = prepared.models.judge_fitness.iter().chain(panel);
        let have_references = plan.iter().all(|planned| {
            let grounds = planned.frozen.as_ref().map_or(&planned.grounds, |case| &case.grounds);
            grounds.reference.is_some()
        });
        notices.extend(measured.filter_map(|fitness| {
            let model = fitness.model.clone();
            if let Some(measured) = fitness.unfit.clone() {
                return Some(RunNotice::UnfitJudge { model, measured });
            }
            let measured = fitness.unfit_reason_for(have_references)?.to_owned();
            Some(RunNotice::UnfitWithoutReference { model, measured })
        }));
        notices
    }

    /// The header of a run that judges the answers of another one by the thresholds of that one.
    pub fn header_rejudging(
        &self,
        run_id: RunId,
        plan: &[PlannedCase],
        prepared: &PreparedRun,
        report: &ReportDocument,
    ) -> RunHeader {
        let header = self.header(run_id, plan, prepared);
        let mut prompt_digests = report.prompt_digests.clone();
        for name in JUDGE_TEMPLATES {
            // The answers were made with the prompts of the earlier run, and are judged with the
            // present ones.
            prompt_digests.remove(name);
            let now = header.prompt_digests.get(name).cloned();
            prompt_digests.extend(now.map(|digest| (name.to_owned(), digest)));
        }
        let concurrency = header.config.concurrency;
        let (run_id, judge) = (report.run_id.clone(), report.models.judge.clone());
        RunHeader {
            config: RunConfig { concurrency, ..report.config.clone() },
            prompt_digests,
            suite: report.suite.clone(),
            rejudged: Some(RejudgedRun { run_id, judge }),
            ..header
        }
    }
}
