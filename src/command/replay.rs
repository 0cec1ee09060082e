//! `selftest compare --replay`: the cases of a run once more, and what became of them.

use super::conducted::{Conducted, Ended};
use super::context::{Project, flags};
use super::failure::Failure;
use super::resume::{CasesOf, Purpose, Request, Start};
use super::run::run_cases;
use super::suite_file::SuiteFile;
use super::{compare, eprint, named_run};
use crate::cli::{Format, GlobalArgs, ReplayArgs};
use crate::exit::Exit;
use selftest_config::ResolvedConfig;
use selftest_reports::document::ReportDocument;

pub(super) async fn execute(args: &ReplayArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    // Which run is meant is said by the configuration, which flags of the run do not change.
    let (report, file) = named_run::found(&project, &project.load(Vec::new())?, &args.run)?;
    named_run::refuse_arm(&report)?;
    let repeats = report.summary.repeats.unwrap_or(1);
    let run_args = args.run(report.seed, repeats);
    let resolved = project.load(flags(&run_args))?;
    let suite = SuiteFile::replaying(&project, &report, file, &run_args.trials.allow_commands)?;
    if suite.suite.cases.is_empty() {
        eprint(&format!("nothing to replay: {} has no case with a prompt\n", report.run_id));
        return Ok(Exit::NothingRan);
    }
    let format = compare::Format::of(args.json, args.markdown);
    let start = Start::New(Box::new(Request {
        args: run_args.clone(),
        flags: resolved.flags.clone(),
        cases_of: Some(CasesOf::Replayed(report.run_id.to_string())),
        purpose: Purpose::Replay { format, fail_if_worse: args.fail_if_worse },
    }));
    let conducted = run_cases(&project, &resolved, &run_args, Some(&suite), start).await?;
    let Some(conducted) = conducted else {
        return Ok(Exit::NothingRan);
    };
    compared(&project, &report, &conducted, format, args.fail_if_worse)
}

/// Compares a replay that was resumed, and has ended, with the run whose cases it has.
pub(super) fn conclude(
    project: &Project,
    resolved: &ResolvedConfig,
    ended: Ended,
    cases_of: Option<&CasesOf>,
    format: compare::Format,
    fail_if_worse: bool,
) -> Result<Ended, Failure> {
    let (Some(conducted), Some(CasesOf::Replayed(run))) = (&ended.conducted, cases_of) else {
        return Ok(ended);
    };
    let report = named_run::report(project, resolved, run)?;
    let exit = compared(project, &report, conducted, format, fail_if_worse)?;
    Ok(Ended { exit, ..ended })
}

fn compared(
    project: &Project,
    report: &ReportDocument,
    conducted: &Conducted,
    format: compare::Format,
    fail_if_worse: bool,
) -> Result<Exit, Failure> {
    let exit = conducted.exit(true)?;
    if exit != Exit::Passed {
        conducted.print(project, Format::Human)?;
        return Ok(exit);
    }
    compare::show(project, report, &conducted.report()?, format, fail_if_worse)
}
