//! `selftest judge rejudge`: the answers of a run judged again, without asking for new ones.

use std::sync::Arc;
use std::time::Duration;

use crate::ci_reports::{CiReports, check_once};
use crate::error::AppError;
use crate::find_run;
use crate::finished::{FinishedRun, RunFiles, execute_plan, report_files};
use crate::options::RunSettings;
use crate::project::Project;
use crate::request::{CasesOf, RunPurpose, RunRequest};
use crate::resume::{RunStart, digests_of_settings};
use crate::setup::RunSetup;
use selftest_config::ResolvedConfig;
use selftest_harness::event::RunConfig;
use selftest_harness::gate::RunGate;
use selftest_harness::outcome::CaseResult;
use selftest_harness::run::execute::RunOptions;
use selftest_harness::run::plan::{ScenarioDefaults, plan_stored};
use selftest_models::journaled::{CallLog, CallSink};

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
    let files = report_files(project, resolved, &run_id, earlier.header.is_some())?;
    let ci_reports = CiReports::open(project, resolved)?;
    let prepared = setup.prepare_rejudging(&plan, &report).await?;
    digests.extend(prepared.digests(&resolved.rubric.digest()));
    start.check(&digests)?;
    let header = Arc::new(setup.header_rejudging(run_id, &plan, &prepared, &report));
    let course = RunOptions {
        recalled: earlier.cases.to_vec(),
        ..RunOptions::new(RunGate::Absolute, project.frontend().cancellation())
    };
    let journal = start.journal(project, resolved, &header, digests)?;
    log.set_sink(0, Arc::clone(&journal) as Arc<dyn CallSink>);
    let kept = RunFiles { files, journal };
    let mut conducted = execute_plan(project, &prepared.runner, header, &plan, kept, course).await;
    conducted.report_to_ci(project, resolved, &ci_reports).await;
    Ok(Some(conducted))
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
