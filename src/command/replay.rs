//! `selftest replay`: the cases of a run once more, and what became of them.

use super::context::Project;
use super::failure::Failure;
use super::resume::{CasesOf, Request, Start};
use super::run::{flags, run_cases};
use super::suite_file::SuiteFile;
use super::{compare, eprint, named_run};
use crate::cli::{GlobalArgs, ReplayArgs};
use crate::exit::Exit;

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
    let start = Start::New(Box::new(Request {
        args: run_args.clone(),
        flags: resolved.flags.clone(),
        cases_of: Some(CasesOf::Replayed(report.run_id.to_string())),
    }));
    let conducted = run_cases(&project, &resolved, &run_args, Some(&suite), start).await?;
    let Some(conducted) = conducted else {
        return Ok(Exit::NothingRan);
    };
    let exit = conducted.exit(true)?;
    if exit != Exit::Passed {
        conducted.print(&project, run_args.format)?;
        return Ok(exit);
    }
    let format = compare::Format::of(args.json, args.markdown);
    compare::show(&project, &report, &conducted.report()?, format, args.fail_if_worse)
}
