//! The main job: run the scenarios, write the reports, say how it went.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::ci_reports::{self, CiReports};
use super::context::Project;
use super::failure::Failure;
use super::named_run;
use super::setup::Setup;
use super::skill_creator::{self, WITH_SKILL, WITHOUT_SKILL};
use super::suite_file::SuiteFile;
use super::{eprint, print};
use crate::cli::{Format, GlobalArgs, RunArgs};
use crate::config::{Config, Flag, Resolved};
use crate::exit::Exit;
use selftest_harness::event::{Observer, RunHeader};
use selftest_harness::outcome::CaseResult;
use selftest_harness::report::document::ReportDocument;
use selftest_harness::report::skill_creator::Configuration;
use selftest_harness::report::{
    ProgressObserver, ReportFiles, ReportHandle, ReportObserver, Style, terminal,
};
use selftest_harness::run::execute::{Executed, execute as execute_plan};
use selftest_harness::run::observe;
use selftest_harness::run::plan::{Defaults, PlannedCase, Selection, plan, plan_suite};
use selftest_harness::run::runner::Runner;
use selftest_harness::sut::namespace::RunId;

pub(super) async fn execute(args: &RunArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let (exit, _) = run(args, global, true).await?;
    Ok(exit)
}

/// Runs what the flags say. Gives the name of the run, where there was one, for what is made of it;
/// whether the results are printed is the caller's to say.
pub(super) async fn run(
    args: &RunArgs,
    global: &GlobalArgs,
    prints: bool,
) -> Result<(Exit, Option<RunId>), Failure> {
    let project = Project::open(global)?;
    ci_reports::check_once(&args.report)?;
    let resolved = project.load(flags(args))?;
    let allowed = &args.trials.allow_commands;
    if let (None, Some(name)) = (&args.suite, allowed.first()) {
        return Err(Failure::usage(anyhow!("--allow-commands {name} needs --suite")));
    }
    let load = |path: &PathBuf| SuiteFile::load(&project, path, allowed);
    let mut suite = args.suite.as_ref().map(load).transpose()?;
    if let Some(suite) = &mut suite {
        suite.check_loading(&resolved.config);
        if suite.is_folder && args.skill_creator.is_some() {
            let error = anyhow!("--skill-creator takes the cases of one skill");
            return Err(Failure::usage(error).hint(Some("name one evals.json with --suite")));
        }
    }
    let conducted = run_cases(&project, &resolved, args, suite.as_ref()).await?;
    let Some(conducted) = conducted else { return Ok((Exit::NothingRan, None)) };
    if let Some(folder) = &args.skill_creator {
        let report = conducted.report()?;
        let skill = suite.as_ref().and_then(|suite| suite.skill.as_ref());
        let (skill, name) = match skill {
            Some((skill, _)) => (skill.name.as_str(), WITH_SKILL),
            None => ("none", WITHOUT_SKILL),
        };
        let configuration = Configuration { name, report: &report };
        skill_creator::write(&project, folder, skill, &[configuration])?;
    }
    if prints {
        conducted.print(&project, args.format)?;
    }
    Ok((conducted.exit(args.exit_zero)?, Some(conducted.header.run_id.clone())))
}

/// Runs the cases of a suite, or of the scenarios of the configuration. `None` where none is chosen.
pub(super) async fn run_cases(
    project: &Project,
    resolved: &Resolved,
    args: &RunArgs,
    suite: Option<&SuiteFile>,
) -> Result<Option<Conducted>, Failure> {
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    let mut plan = planned(args, &resolved.config, suite)?;
    if plan.is_empty() {
        eprint("nothing to run: no scenario was selected\n");
        return Ok(None);
    }
    let setup = Setup { project, resolved, args, suite, hidden: &[] };
    setup.read_named_files(&mut plan)?;
    let run_id = RunId::fresh(selftest_clock::now());
    let files = report_files(project, resolved, &run_id)?;
    let ci_reports = CiReports::open(project, resolved)?;
    let prepared = setup.prepare(&plan).await?;
    if let Some(skill) = plan.iter().find_map(|case| case.handed.as_ref()) {
        // Whether skills can be handed over at all is known before the first case.
        prepared.runner.sut.with_skill(Arc::clone(skill))?;
    }
    let header = Arc::new(setup.header(run_id, &plan, &prepared));
    for line in named_run::changed_models(project, resolved, &header.models) {
        eprint(&format!("warning: {line}\n"));
    }
    let mut conducted = conduct(project, &prepared.runner, header, &plan, files).await;
    if let Some(document) = conducted.document.document() {
        let sources = ci_reports::case_sources(project, resolved, document.suite.as_ref());
        let json = &conducted.document.paths().json;
        let faults = ci_reports.write(&document, &sources, json);
        conducted.faults.extend(faults);
    }
    Ok(Some(conducted))
}

/// The files that a run writes to, opened before anything is asked.
pub(super) fn report_files(
    project: &Project,
    resolved: &Resolved,
    run_id: &RunId,
) -> Result<ReportFiles, Failure> {
    let (json_folder, markdown_folder) = project.report_folders(resolved);
    ReportFiles::open(&json_folder, &markdown_folder, run_id)
        .map_err(|error| Failure::setup(anyhow!("{error}")).hint(Some(error.hint())))
}

/// A run that came to its end.
pub(super) struct Conducted {
    pub(super) header: Arc<RunHeader>,
    results: Executed,
    document: ReportHandle,
    /// Reports that could not be written.
    faults: Vec<String>,
}

/// Runs a plan, shows its progress and writes its reports.
pub(super) async fn conduct(
    project: &Project,
    runner: &Arc<Runner>,
    header: Arc<RunHeader>,
    plan: &[PlannedCase],
    files: ReportFiles,
) -> Conducted {
    let style = Style {
        terminal: std::io::stderr().is_terminal() && !project.environment.ci,
        colour: std::io::stderr().is_terminal() && !project.environment.no_color,
    };
    let report = ReportObserver::new(files);
    let document = report.handle();
    let observers: Vec<Box<dyn Observer>> =
        vec![Box::new(ProgressObserver::new(style)), Box::new(report)];
    let (events, observer_thread) = observe::spawn_observers(observers);
    let cancel = cancel_on_interrupt();
    let results = execute_plan(runner, Arc::clone(&header), plan, &events, cancel).await;
    drop(events);
    // The observers only write files; nothing else is left to do on this thread.
    let faults = tokio::task::block_in_place(|| observer_thread.finish());
    Conducted { header, results, document, faults }
}

impl Conducted {
    /// The results, by case and all together.
    pub(super) fn cases(&self) -> &[Arc<CaseResult>] {
        &self.results.0
    }

    /// The report as other commands read it.
    pub(super) fn report(&self) -> Result<ReportDocument, Failure> {
        let missing = || Failure::setup(anyhow!("the run has no report: it never started"));
        self.document.document().ok_or_else(missing)
    }

    /// Prints the results on stdout.
    pub(super) fn print(&self, project: &Project, format: Format) -> Result<(), Failure> {
        match format {
            Format::Json => print(&self.document.json_text().unwrap_or_default()),
            Format::Human => {
                let style = Style {
                    terminal: std::io::stdout().is_terminal(),
                    colour: std::io::stdout().is_terminal() && !project.environment.no_color,
                };
                let (cases, summary, outcome) = &self.results;
                let (header, paths) = (&self.header, self.document.paths());
                print(&terminal::closing(header, cases, summary, *outcome, paths, style))
            }
        }
    }

    /// The exit code of the outcome, or the reports that could not be written.
    pub(super) fn exit(&self, exit_zero: bool) -> Result<Exit, Failure> {
        if !self.faults.is_empty() {
            return Err(Failure::setup(anyhow!(self.faults.join("\n"))));
        }
        let exit = Exit::from(self.results.2);
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
        let pointer = format!("/reports/{}", request.kind());
        let value = request.path().map_or(json!(true), |path| json!(path));
        set(&pointer, "--report", Some(value));
    }
    set("/strictness", "--strictness", args.strictness.map(|value| json!(value)));
    set("/min_score_to_pass", "--min-score", args.min_score.map(|value| json!(value)));
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
            plan_suite(&cases, &selection, defaults(config), args.repeats).map(|mut planned| {
                for case in &mut planned {
                    file.equip(case, config);
                }
                planned
            })
        }
        None => plan(&config.scenarios, &selection, defaults(config)),
    };
    planned.map_err(|why| Failure::usage(anyhow!(why)))
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

/// Turns true at the first Ctrl-C or SIGTERM; the second one ends the process at once.
pub(super) fn cancel_on_interrupt() -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        interrupt().await;
        eprint("\ninterrupted: closing what runs; once more to stop at once\n");
        // Without a receiver the run is over already.
        let _ = sender.send(true);
        interrupt().await;
        #[expect(clippy::exit, reason = "the user asked twice; nothing is left to lose")]
        std::process::exit(Exit::Interrupted as i32);
    });
    receiver
}

#[cfg(unix)]
pub(super) async fn interrupt() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
pub(super) async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
