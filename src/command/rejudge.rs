//! `selftest judge rejudge`: the answers of a run judged again, without asking for new ones.

use std::sync::Arc;
use std::time::Duration;

use super::ci_reports::{self, CiReports};
use super::conducted::{Conducted, Kept, conduct, report_files};
use super::context::{Project, flags};
use super::failure::Failure;
use super::interruption::cancel_on_interrupt;
use super::resume::{CasesOf, Purpose, Request, Start, digests_of_settings};
use super::setup::Setup;
use super::{eprint, named_run};
use crate::cli::{Format, GlobalArgs, RejudgeArgs, RunArgs};
use crate::exit::Exit;
use selftest_config::ResolvedConfig;
use selftest_harness::event::RunConfig;
use selftest_harness::gate::RunGate;
use selftest_harness::outcome::CaseResult;
use selftest_harness::outcome::rejudged::VerdictChanges;
use selftest_harness::run::execute::RunOptions;
use selftest_harness::run::plan::{ScenarioDefaults, plan_stored};
use selftest_harness::sut::namespace::RunId;
use selftest_models::journaled::{CallLog, CallSink};

pub(super) async fn execute(args: &RejudgeArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    ci_reports::check_once(&args.report)?;
    let project = Project::open(global)?;
    let run_args = args.run();
    let resolved = project.load(flags(&run_args))?;
    let start = Start::New(Box::new(Request {
        args: run_args.clone(),
        flags: resolved.flags.clone(),
        cases_of: Some(CasesOf::Rejudged(args.run.clone())),
        purpose: Purpose::Results,
    }));
    let conducted = rejudge(&project, &resolved, &run_args, &args.run, start).await?;
    let Some(conducted) = conducted else { return Ok(Exit::NothingRan) };
    conducted.print(&project, run_args.format)?;
    conducted.exit(run_args.gate.exit_zero)
}

/// Judges the answers of a run again. `None` where it has none.
pub(super) async fn rejudge(
    project: &Project,
    resolved: &ResolvedConfig,
    args: &RunArgs,
    named: &str,
    mut start: Start,
) -> Result<Option<Conducted>, Failure> {
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    let report = named_run::report(project, resolved, named)?;
    if named == named_run::LATEST {
        start.name_cases_of(CasesOf::Rejudged(report.run_id.to_string()));
    }
    if !report.complete {
        eprint(&format!("warning: {} did not come to its end\n", report.run_id));
    }
    let cases = report.cases.iter().enumerate().map(|(index, case)| case.result(index));
    let cases: Vec<CaseResult> = cases.collect();
    if cases.iter().flat_map(|case| &case.steps).all(|step| step.reply.is_none()) {
        eprint(&format!("nothing to judge: {} has no answer\n", report.run_id));
        return Ok(None);
    }
    let plan = plan_stored(cases, defaults(&report.config));
    let log = Arc::new(CallLog::with_calls(start.take_calls()));
    let earlier = start.earlier(&log);
    let setup =
        Setup { project, resolved, args, suite: None, hidden: &[], earlier: Some(&earlier) };
    let mut digests = digests_of_settings(&resolved.config, &plan);
    start.check(&digests)?;
    let run_id = match earlier.header {
        Some(header) => header.run_id.clone(),
        None => RunId::fresh(selftest_clock::now()),
    };
    let files = report_files(project, resolved, &run_id, earlier.header.is_some())?;
    let ci_reports = CiReports::open(project, resolved)?;
    let prepared = setup.prepare_rejudging(&plan, &report).await?;
    digests.extend(prepared.digests(&resolved.rubric.digest()));
    start.check(&digests)?;
    let header = Arc::new(setup.header_rejudging(run_id, &plan, &prepared, &report));
    let course = RunOptions {
        recalled: earlier.cases.to_vec(),
        ..RunOptions::new(RunGate::Absolute, cancel_on_interrupt())
    };
    let journal = start.journal(project, resolved, &header, digests)?;
    log.set_sink(0, Arc::clone(&journal) as Arc<dyn CallSink>);
    let kept = Kept { files, journal };
    let mut conducted = conduct(project, &prepared.runner, header, &plan, kept, course).await;
    conducted.report_to_ci(project, resolved, &ci_reports).await;
    if matches!(args.format, Format::Json) {
        // Stdout holds the report and nothing else.
        let changes = VerdictChanges::of(conducted.cases().iter().map(|case| &**case));
        eprint(&format!("{}\n", changes.sentence()));
    }
    Ok(Some(conducted))
}

/// The defaults of the run: another configuration makes nothing else of its answers.
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
