//! The main job: run the scenarios, write the reports, say how it went.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::changed;
use super::ci_reports::{self, CiReports};
use super::context::Project;
use super::failure::Failure;
use super::interruption::interruption;
use super::named_run;
use super::resume::{self, CasesOf, Purpose, Request, Start};
use super::setup::Setup;
use super::skill_creator::{self, WITH_SKILL, WITHOUT_SKILL};
use super::suite_file::SuiteFile;
use super::{eprint, print};
use super::{gate, rejudge, rerun};
use crate::cli::{Format, GlobalArgs, RunArgs};
use crate::config::{Config, Flag, Resolved};
use crate::exit::Exit;
use selftest_harness::event::{EventLog, Observer, RunHeader};
use selftest_harness::journal::Journal;
use selftest_harness::outcome::CaseResult;
use selftest_harness::report::ci::ReportRequest;
use selftest_harness::report::document::ReportDocument;
use selftest_harness::report::next_step::NextStep;
use selftest_harness::report::skill_creator::Configuration;
use selftest_harness::report::terminal::{Closing, Detail};
use selftest_harness::report::{
    ProgressObserver, ReportFiles, ReportHandle, ReportObserver, Style, terminal,
};
use selftest_harness::run::execute::{Course, Executed, execute as execute_plan};
use selftest_harness::run::observe;
use selftest_harness::run::plan::{Defaults, PlannedCase, Selection, plan, plan_suite};
use selftest_harness::run::runner::Runner;
use selftest_harness::sut::namespace::RunId;
use selftest_models::journaled::{CallKeeper, CallLog};

pub(super) async fn execute(args: &RunArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let mut project = Project::open(global)?;
    if args.quiet {
        project.detail = Detail::Brief;
    }
    let resolved = project.load(flags(args))?;
    run(args, &project, &resolved, Purpose::Results).await.map(|ended| ended.exit)
}

/// A run that has ended, for what is made of it.
pub(super) struct Ended {
    pub(super) exit: Exit,
    /// Absent where nothing ran.
    pub(super) conducted: Option<Conducted>,
}

impl Ended {
    pub(super) const NOTHING: Self = Self { exit: Exit::NothingRan, conducted: None };
}

/// Runs what the flags say. Only for the results' own sake are they printed.
pub(super) async fn run(
    args: &RunArgs,
    project: &Project,
    resolved: &Resolved,
    purpose: Purpose,
) -> Result<Ended, Failure> {
    ci_reports::check_once(&args.report)?;
    let allowed = &args.trials.allow_commands;
    if let (None, false, Some(name)) = (&args.suite, args.rerun_failed, allowed.first()) {
        return Err(Failure::usage(anyhow!("--allow-commands {name} needs --suite")));
    }
    let cases_of = args.rerun_failed.then(|| CasesOf::NotPassed(named_run::LATEST.to_owned()));
    let request = Request { args: args.clone(), flags: resolved.flags.clone(), cases_of, purpose };
    run_request(request.clone(), Start::New(Box::new(request)), project, resolved).await
}

/// Runs the cases of a command, from their beginning or from where they were broken off.
pub(super) async fn run_request(
    request: Request,
    mut start: Start,
    project: &Project,
    resolved: &Resolved,
) -> Result<Ended, Failure> {
    let prints = matches!(request.purpose, Purpose::Results);
    let allowed = request.args.trials.allow_commands.clone();
    let mut args = request.args;
    let mut suite = match &request.cases_of {
        None => {
            let load = |path: &PathBuf| SuiteFile::load(project, path, &allowed);
            args.suite.as_ref().map(load).transpose()?
        }
        Some(CasesOf::NotPassed(named)) => match rerun::failed(project, resolved, &args, named)? {
            rerun::Again::Nothing => return Ok(Ended::NOTHING),
            rerun::Again::Cases { suite, args: again, run } => {
                args = *again;
                start.name_cases_of(CasesOf::NotPassed(run));
                Some(*suite)
            }
        },
        Some(CasesOf::Rejudged(named)) => {
            let conducted = rejudge::rejudge(project, resolved, &args, named, start).await?;
            return conducted
                .map_or(Ok(Ended::NOTHING), |conducted| conducted.ended(project, &args, prints));
        }
        Some(CasesOf::Replayed(named)) => {
            let (report, file) = named_run::found(project, resolved, named)?;
            Some(SuiteFile::replaying(project, &report, file, &allowed)?)
        }
    };
    if let Some(suite) = &mut suite {
        suite.check_loading(&resolved.config);
        if suite.is_folder && args.skill_creator.is_some() {
            let error = anyhow!("--skill-creator takes the cases of one skill");
            return Err(Failure::usage(error).hint(Some("name one evals.json with --suite")));
        }
    }
    let conducted = run_cases(project, resolved, &args, suite.as_ref(), start).await?;
    let Some(conducted) = conducted else { return Ok(Ended::NOTHING) };
    if let Some(folder) = &args.skill_creator {
        let report = conducted.report()?;
        let skill = suite.as_ref().and_then(|suite| suite.skill.as_ref());
        let (skill, name) = match skill {
            Some((skill, _)) => (skill.name.as_str(), WITH_SKILL),
            None => ("none", WITHOUT_SKILL),
        };
        let configuration = Configuration { name, report: &report };
        skill_creator::write(project, folder, skill, &[configuration])?;
    }
    conducted.ended(project, &args, prints)
}

/// Runs the cases of a suite, or of the scenarios of the configuration. `None` where none is chosen.
pub(super) async fn run_cases(
    project: &Project,
    resolved: &Resolved,
    args: &RunArgs,
    suite: Option<&SuiteFile>,
    mut start: Start,
) -> Result<Option<Conducted>, Failure> {
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    if args.limits.max_cost.is_some() && resolved.config.prices.models.is_empty() {
        return Err(Failure::usage(anyhow!("--max-cost needs prices, and there are none"))
            .hint(Some("state what models cost in `prices.models` of the config")));
    }
    let mut plan = planned(args, &resolved.config, suite)?;
    if plan.is_empty() {
        match args.shard {
            Some(shard) => eprint(&format!("nothing to run: shard {shard} has no case\n")),
            None => eprint("nothing to run: no scenario was selected\n"),
        }
        return Ok(None);
    }
    let baseline = gate::opened(project, resolved)?;
    // Generated cases are others in each run.
    let sut_digest = match suite {
        Some(_) => changed::sut_digest(project, resolved)?,
        None => None,
    };
    let log = Arc::new(CallLog::knowing(start.take_calls()));
    let earlier = start.earlier(&log);
    let setup = Setup { project, resolved, args, suite, hidden: &[], earlier: Some(&earlier) };
    setup.read_named_files(&mut plan)?;
    let mut digests = resume::digests_of_settings(&resolved.config, &plan);
    start.check(&digests)?;
    let run_id = match earlier.header {
        Some(header) => header.run_id.clone(),
        None => RunId::fresh(selftest_clock::now()),
    };
    let files = report_files(project, resolved, &run_id, earlier.header.is_some())?;
    let ci_reports = CiReports::open(project, resolved)?;
    let prepared = setup.prepare(&plan).await?;
    digests.extend(prepared.digests(&resolved.rubric.digest()));
    start.check(&digests)?;
    if let Some(skill) = plan.iter().find_map(|case| case.handed.as_ref()) {
        // Whether skills can be handed over at all is known before the first case.
        prepared.runner.sut.with_skill(Arc::clone(skill))?;
    }
    let header = Arc::new(setup.header(run_id, &plan, &prepared));
    if let Some(digest) = &sut_digest {
        let weights = prepared.sut_weights.as_deref();
        changed::name_cases(resolved, &header, (digest, weights), &mut plan)?;
    }
    match (args.changed, &sut_digest) {
        (false, _) => {}
        (true, Some(_)) => changed::keep_unchanged(project, resolved, &mut plan),
        (true, None) => changed::say_undeclared(),
    }
    for line in named_run::changed_models(project, resolved, &header.models) {
        eprint(&format!("warning: {line}\n"));
    }
    let existing = gate::existing(resolved, suite);
    let gate = gate::gate(resolved, baseline, &header, existing);
    let course = Course {
        fail_fast: args.gate.fail_fast,
        limits: args.limits.limits(),
        recalled: earlier.cases.to_vec(),
        ..Course::new(gate, cancel_on_interrupt())
    };
    let journal = start.journal(project, resolved, &header, digests)?;
    log.keep_in(0, Arc::clone(&journal) as Arc<dyn CallKeeper>);
    let kept = Kept { files, journal };
    let mut conducted = conduct(project, &prepared.runner, header, &plan, kept, course).await;
    conducted.report_to_ci(project, resolved, &ci_reports).await;
    Ok(Some(conducted))
}

/// The files that a run writes to, opened before anything is asked.
pub(super) fn report_files(
    project: &Project,
    resolved: &Resolved,
    run_id: &RunId,
    may_exist: bool,
) -> Result<ReportFiles, Failure> {
    let (json_folder, markdown_folder) = project.report_folders(resolved);
    let opened = if may_exist {
        ReportFiles::open_again(&json_folder, &markdown_folder, run_id)
    } else {
        ReportFiles::open(&json_folder, &markdown_folder, run_id)
    };
    opened.map_err(|error| Failure::setup(anyhow!("{error}")).hint(Some(error.hint())))
}

/// A run that came to its end.
pub(super) struct Conducted {
    pub(super) header: Arc<RunHeader>,
    results: Executed,
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
    course: Course,
) -> Conducted {
    let Kept { files, journal } = kept;
    let style = Style {
        terminal: std::io::stderr().is_terminal() && !project.environment.ci,
        colour: std::io::stderr().is_terminal() && !project.environment.no_color,
    };
    let started = Instant::now();
    let is_first = files.is_first();
    let report = ReportObserver::new(files);
    let document = report.handle();
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(report)];
    if project.detail != Detail::Brief {
        observers.push(Box::new(ProgressObserver::new(style)));
    }
    let (events, observer_thread) = observe::spawn_observers(observers);
    let events = events.kept_in(Arc::clone(&journal) as Arc<dyn EventLog>);
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
    fn ended(self, project: &Project, args: &RunArgs, prints: bool) -> Result<Ended, Failure> {
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
        resolved: &Resolved,
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
                let style = Style { terminal: is_terminal, colour };
                let Executed { cases, summary, outcome, gate } = &self.results;
                let (header, paths) = (&self.header, self.document.paths());
                let closing = Closing {
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

/// The flags that set a key of the configuration, in rising precedence.
pub(super) fn flags(args: &RunArgs) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut set = |pointer: &str, flag: &str, value: Option<Value>| {
        if let Some(value) = value {
            flags.push(Flag { pointer: pointer.to_owned(), flag: flag.to_owned(), value });
        }
    };
    for pointer in ["/generator/model", "/judge/model", "/sut/chat/model"] {
        set(pointer, "--model", args.trials.model.as_ref().map(|model| json!(model)));
    }
    let text = |value: &Option<String>| value.as_ref().map(|value| json!(value));
    set("/generator/model", "--generator-model", text(&args.generator_model));
    set("/judge/model", "--judge-model", text(&args.trials.judge_model));
    set("/sut/chat/model", "--sut-model", text(&args.trials.sut_model));
    // Who is named on the command line judges alone.
    let alone = args.trials.judge_model.as_ref().map(|_| "--judge-model");
    if let Some(flag) = alone.or(args.trials.model.as_ref().map(|_| "--model")) {
        set("/judge/panel", flag, Some(json!([])));
    }
    for request in &args.report {
        let kind = request.kind();
        let (pointer, value) = match request {
            ReportRequest::File(_, path) => (format!("/reports/{kind}"), json!(path)),
            ReportRequest::Github => (format!("/reports/{kind}"), json!(true)),
            ReportRequest::Otlp(endpoint) => (format!("/reports/{kind}/endpoint"), json!(endpoint)),
        };
        set(&pointer, "--report", Some(value));
    }
    set("/strictness", "--strictness", args.strictness.map(|value| json!(value)));
    set("/min_score_to_pass", "--min-score", args.min_score.map(|value| json!(value)));
    set("/gate", "--gate", text(&args.gate.mode));
    set("/baseline", "--baseline", args.gate.baseline.as_ref().map(|path| json!(path)));
    set("/confirm", "--confirm", args.gate.confirm.map(|value| json!(value)));
    set("/timeout_seconds", "--timeout", args.trials.timeout.map(|value| json!(value)));
    set("/concurrency", "--concurrency", args.trials.concurrency.map(|value| json!(value)));
    set("/models/concurrency", "--concurrency", args.trials.concurrency.map(|value| json!(value)));
    flags
}

/// The cases of a suite, or the scenarios of which cases are made.
pub(super) fn planned(
    args: &RunArgs,
    config: &Config,
    suite: Option<&SuiteFile>,
) -> Result<Vec<PlannedCase>, Failure> {
    let selection = match &args.trials.scenarios {
        Some(text) => Selection::parse(text)
            .map_err(|why| Failure::usage(anyhow!("--scenarios `{text}`: {why}")))?,
        None => Selection::All,
    };
    let planned = match suite {
        Some(file) => {
            let mut cases = file.suite.cases.clone();
            for scenario in cases.iter_mut().map(|case| &mut case.scenario) {
                // What is said on the command line counts more than what held at the time.
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
                    let ids = Selection::Named(file.to_generate.clone());
                    let more = plan(&config.scenarios, &ids, defaults(config))?;
                    let offset = planned.len();
                    let at = |case: PlannedCase| PlannedCase { index: offset + case.index, ..case };
                    planned.extend(more.into_iter().map(at));
                    Ok(planned)
                })
        }
        None => plan(&config.scenarios, &selection, defaults(config)),
    };
    let mut planned = planned.map_err(|why| Failure::usage(anyhow!(why)))?;
    if let Some(shard) = args.shard {
        shard.keep(&mut planned);
    }
    Ok(planned)
}

fn defaults(config: &Config) -> Defaults {
    Defaults {
        strictness: config.strictness,
        min_score_to_pass: config.min_score_to_pass,
        safety_floor: config.safety_floor,
        allow_minor_format_deviation: config.allow_minor_format_deviation,
        max_questions_allowed: config.max_questions_allowed,
        timeout: Duration::from_secs_f64(config.timeout_seconds),
    }
}

/// Turns true at the first Ctrl-C, SIGTERM or SIGHUP; the second one ends the process at once.
pub(super) fn cancel_on_interrupt() -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        let Ok(first) = interruption() else { return };
        first.await;
        eprint("\ninterrupted: closing what runs; once more to stop at once\n");
        // Without a receiver the run is over already.
        let _ = sender.send(true);
        let Ok(second) = interruption() else { return };
        second.await;
        #[expect(clippy::exit, reason = "the user asked twice; nothing is left to lose")]
        std::process::exit(Exit::Interrupted as i32);
    });
    receiver
}
