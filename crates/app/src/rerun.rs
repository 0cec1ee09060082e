//! Runs the cases of an earlier run again: all of them, those that did not pass (`--rerun-failed`),
//! or only the judge on the same answers (`selftest judge rejudge`).

use std::sync::Arc;
use std::time::Duration;

use crate::ci_reports::{CiReports, check_once};
use crate::error::AppError;
use crate::find_run::{self, find_report_file, refuse_arm};
use crate::options::{CasesOf, RunPurpose, RunRequest, RunSettings};
use crate::project::Project;
use crate::run::{FinishedRun, ReadyRun, report_files, run_cases};
use crate::run_start::{RunStart, digests_of_settings};
use crate::setup::RunSetup;
use crate::suite_file::SuiteFile;
use selftest_config::ResolvedConfig;
use selftest_harness::event::RunConfig;
use selftest_harness::gate::RunGate;
use selftest_harness::outcome::CaseResult;
use selftest_harness::run::execute::RunOptions;
use selftest_harness::run::plan::{ScenarioDefaults, plan_stored};
use selftest_models::journaled::CallLog;
use selftest_reports::document::ReportDocument;
use selftest_reports::rerun::UnpassedCases;
use selftest_text::escape::terminal;

/// A run whose cases ran again.
pub struct Replay {
    /// Report of the earlier run.
    pub earlier: ReportDocument,
    /// The new run.
    pub run: FinishedRun,
}

/// Runs the cases of a run again, with its seed and number of repeats unless the settings state others.
/// Returns `None` if there is nothing to replay.
pub async fn replay(
    project: &Project,
    mut settings: RunSettings,
    run: &str,
    repeats: Option<u32>,
    purpose: RunPurpose,
) -> Result<Option<Replay>, AppError> {
    // The configuration locates the run; options of the new run do not change where it is.
    let (report, file) = find_report_file(project, &project.load(Vec::new())?, run)?;
    refuse_arm(&report)?;
    // The seed of that run, so that chance makes as little difference as possible.
    settings.trials.seed = settings.trials.seed.or(Some(report.seed));
    settings.repeats = repeats.or(report.summary.repeats).unwrap_or(1);
    let resolved = project.load(settings.flags())?;
    let suite = SuiteFile::of_run(project, &report, file, &settings.trials.allow_commands)?;
    if suite.suite.cases.is_empty() {
        project
            .notify(&format!("nothing to replay: {} has no case with a prompt\n", report.run_id));
        return Ok(None);
    }
    let cases_of = Some(CasesOf::Replayed(report.run_id.to_string()));
    let request = RunRequest::new(settings.clone(), resolved.flags.clone(), cases_of, purpose);
    let start = RunStart::New(Box::new(request));
    let run = run_cases(project, &resolved, &settings, Some(&suite), start).await?;
    Ok(run.map(|run| Replay { earlier: report, run }))
}

/// Runs in a row of which each ran cases of the one before.
const MAX_TRACED: usize = 100;

/// The cases to run again.
pub(crate) enum RerunPlan {
    /// Every case passed.
    Nothing,
    /// These.
    Cases {
        /// The cases, with their prompts if they had one.
        suite: Box<SuiteFile>,
        /// The flags of the run.
        args: Box<RunSettings>,
        /// The run whose cases they are.
        run: String,
    },
}

/// Puts the suite in place that the cases first came from: a run of some cases of another one knows
/// that one only, and not what is around them.
fn trace_suite(project: &Project, resolved: &ResolvedConfig, report: &mut ReportDocument) {
    // Bounded, because edited reports could name each other in a circle.
    for _ in 0..MAX_TRACED {
        let replayed = report.suite.as_ref().filter(|suite| suite.replayed);
        let Some(run) = replayed.and_then(|suite| suite.run_id.clone()) else { return };
        // Where that report is gone, the cases are run with what this one holds.
        let Ok((earlier, _)) = find_run::find_report_file(project, resolved, &run) else { return };
        report.suite = earlier.suite;
    }
}

/// The cases of a run, such as the last one, that did not pass, each as often as that run did.
pub(crate) fn failed(
    project: &Project,
    resolved: &ResolvedConfig,
    args: &RunSettings,
    named: &str,
) -> Result<RerunPlan, AppError> {
    let (mut report, file) = find_run::find_report_file(project, resolved, named)?;
    find_run::refuse_arm(&report)?;
    trace_suite(project, resolved, &mut report);
    let UnpassedCases { with_prompt, without_prompt } = UnpassedCases::of(&report);
    let is_known = |id: &String| {
        report.suite.is_none() && resolved.config.scenarios.iter().any(|known| known.id == *id)
    };
    let (to_generate, unknown): (Vec<String>, Vec<String>) =
        without_prompt.into_iter().partition(is_known);
    if !unknown.is_empty() {
        let ids = terminal(&unknown.join(", "), 500);
        project
            .notify(&format!("warning: not run again, because their prompts are unknown: {ids}\n"));
    }
    if with_prompt.is_empty() && to_generate.is_empty() {
        if unknown.is_empty() {
            project.notify(&format!("nothing to run: every case of {} passed\n", report.run_id));
        }
        return Ok(RerunPlan::Nothing);
    }
    report.cases.retain(|case| with_prompt.contains(&case.id));
    let mut suite = SuiteFile::of_run(project, &report, file, &args.trials.allow_commands)?;
    suite.to_generate = to_generate;
    let repeats = report.summary.repeats.unwrap_or(1);
    let args = RunSettings { repeats, ..args.clone() };
    let run = report.run_id.to_string();
    Ok(RerunPlan::Cases { suite: Box::new(suite), args: Box::new(args), run })
}

/// Judges the answers of the run of these settings again. Returns `None` if it has no answers.
pub async fn rejudge_run(
    project: &Project,
    settings: RunSettings,
    run: &str,
) -> Result<Option<FinishedRun>, AppError> {
    check_once(&settings.report)?;
    let resolved = project.load(settings.flags())?;
    let request = RunRequest::new(
        settings.clone(),
        resolved.flags.clone(),
        Some(CasesOf::Rejudged(run.to_owned())),
        RunPurpose::Results,
    );
    let start = RunStart::New(Box::new(request));
    rejudge(project, &resolved, &settings, run, start).await
}

/// Judges the answers of a run again. Returns `None` if it has none.
pub(crate) async fn rejudge(
    project: &Project,
    resolved: &ResolvedConfig,
    args: &RunSettings,
    named: &str,
    mut start: RunStart,
) -> Result<Option<FinishedRun>, AppError> {
    for warning in &resolved.warnings {
        project.notify(&format!("warning: {warning}\n"));
    }
    let report = find_run::find_report(project, resolved, named)?;
    // Another run may be the latest one when this one is resumed.
    if named == find_run::LATEST {
        start.name_cases_of(CasesOf::Rejudged(report.run_id.to_string()));
    }
    if !report.complete {
        project.notify(&format!("warning: {} was not finished\n", report.run_id));
    }
    let cases = report.cases.iter().enumerate().map(|(index, case)| case.result(index));
    let cases: Vec<CaseResult> = cases.collect();
    if cases.iter().flat_map(|case| &case.steps).all(|step| step.reply.is_none()) {
        project.notify(&format!("nothing to judge: {} has no answer\n", report.run_id));
        return Ok(None);
    }
    let plan = plan_stored(cases, defaults(&report.config));
    let log = Arc::new(CallLog::with_calls(start.take_calls()));
    let earlier = start.earlier(&log);
    let setup =
        RunSetup { project, resolved, args, suite: None, hidden: &[], earlier: Some(&earlier) };
    let mut digests = digests_of_settings(&resolved.config, &plan);
    start.check(&digests)?;
    let run_id = earlier.run_id();
    // Opened before the judge is asked: a run whose results cannot be kept must cost nothing.
    let files = report_files(project, resolved, &run_id, earlier.header.is_some())?;
    let ci_reports = CiReports::open(project, resolved)?;
    let prepared = setup.prepare_rejudging(&plan, &report).await?;
    digests.extend(prepared.digests(&resolved.rubric.digest()));
    start.check(&digests)?;
    let header = Arc::new(setup.header_rejudging(run_id, &plan, &prepared, &report));
    let options = RunOptions {
        recalled: earlier.cases.to_vec(),
        ..RunOptions::new(RunGate::Absolute, project.frontend().cancellation())
    };
    let runner = &prepared.runner;
    let ready =
        ReadyRun { runner, header, digests, plan: &plan, options, log: &log, files, ci_reports };
    ready.finish(project, resolved, start).await.map(Some)
}

/// Returns the defaults of the run; the current configuration does not change them.
fn defaults(config: &RunConfig) -> ScenarioDefaults {
    ScenarioDefaults {
        strictness: config.strictness,
        min_score_to_pass: config.min_score_to_pass,
        safety_floor: config.safety_floor,
        allow_minor_format_deviation: config.allow_minor_format_deviation,
        max_questions_allowed: config.max_questions_allowed,
        timeout: Duration::try_from_secs_f64(config.timeout_seconds).unwrap_or(Duration::MAX),
    }
}
