//! `selftest rejudge`: the answers of a run judged again, without asking for new ones.

use std::sync::Arc;
use std::time::Duration;

use super::ci_reports::{self, CiReports};
use super::context::Project;
use super::failure::Failure;
use super::run::{cancel_on_interrupt, conduct, flags, report_files};
use super::setup::Setup;
use super::{eprint, named_run};
use crate::cli::{Format, GlobalArgs, RejudgeArgs};
use crate::exit::Exit;
use selftest_harness::event::RunConfig;
use selftest_harness::gate::Gate;
use selftest_harness::outcome::CaseResult;
use selftest_harness::outcome::rejudged::VerdictChanges;
use selftest_harness::run::execute::Course;
use selftest_harness::run::plan::{Defaults, plan_stored};
use selftest_harness::sut::namespace::RunId;

pub(super) async fn execute(args: &RejudgeArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    ci_reports::check_once(&args.report)?;
    let project = Project::open(global)?;
    let run_args = args.run();
    let resolved = project.load(flags(&run_args))?;
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    let report = named_run::report(&project, &resolved, &args.run)?;
    if !report.complete {
        eprint(&format!("warning: {} did not come to its end\n", report.run_id));
    }
    let cases = report.cases.iter().enumerate().map(|(index, case)| case.result(index));
    let cases: Vec<CaseResult> = cases.collect();
    if cases.iter().flat_map(|case| &case.steps).all(|step| step.reply.is_none()) {
        eprint(&format!("nothing to judge: {} has no answer\n", report.run_id));
        return Ok(Exit::NothingRan);
    }
    let plan = plan_stored(cases, defaults(&report.config));
    let setup =
        Setup { project: &project, resolved: &resolved, args: &run_args, suite: None, hidden: &[] };
    let run_id = RunId::fresh(selftest_clock::now());
    let files = report_files(&project, &resolved, &run_id)?;
    let ci_reports = CiReports::open(&project, &resolved)?;
    let prepared = setup.prepare_rejudging(&plan, &report).await?;
    let header = Arc::new(setup.header_rejudging(run_id, &plan, &prepared, &report));
    let course = Course { gate: Gate::Absolute, fail_fast: false, cancel: cancel_on_interrupt() };
    let mut conducted = conduct(&project, &prepared.runner, header, &plan, files, course).await;
    conducted.report_to_ci(&project, &resolved, &ci_reports).await;
    conducted.print(&project, args.format)?;
    if matches!(args.format, Format::Json) {
        // Stdout holds the report and nothing else.
        let changes = VerdictChanges::of(conducted.cases().iter().map(|case| &**case));
        eprint(&format!("{}\n", changes.sentence()));
    }
    conducted.exit(args.exit_zero)
}

/// The defaults of the run: another configuration makes nothing else of its answers.
fn defaults(config: &RunConfig) -> Defaults {
    Defaults {
        strictness: config.strictness,
        min_score_to_pass: config.min_score_to_pass,
        safety_floor: config.safety_floor,
        allow_minor_format_deviation: config.allow_minor_format_deviation,
        max_questions_allowed: config.max_questions_allowed,
        timeout: Duration::try_from_secs_f64(config.timeout_seconds).unwrap_or(Duration::MAX),
    }
}
