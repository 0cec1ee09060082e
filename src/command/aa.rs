//! `selftest compare --self`: the same cases twice, to see how much differs where nothing was changed.

use std::io::IsTerminal as _;

use anyhow::anyhow;

use super::conducted::Ended;
use super::context::{Project, flags};
use super::failure::Failure;
use super::named_run::report;
use super::print;
use super::resume::Purpose;
use super::run;
use crate::cli::{AaArgs, GlobalArgs};
use crate::exit::Exit;
use selftest_reports::TerminalStyle;
use selftest_reports::comparison::aa::{against_itself, text};

pub(super) async fn execute(args: &AaArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let named = if let Some(named) = &args.run {
        if !args.report.is_empty() {
            let error = anyhow!("--report needs --suite: nothing is run for {named}");
            return Err(Failure::usage(error).hint(Some(
                "`selftest report write RUN --report junit=PATH` writes reports of it",
            )));
        }
        named.clone()
    } else {
        let resolved = project.load(flags(&args.run()))?;
        let purpose = Purpose::Aa { json: args.json };
        let ended = run::run(&args.run(), &project, &resolved, purpose).await?;
        return conclude(&project, ended, args.json).map(|ended| ended.exit);
    };
    show(&project, &named, args.json)
}

/// Holds a run that has ended against itself.
pub(super) fn conclude(project: &Project, ended: Ended, json: bool) -> Result<Ended, Failure> {
    match &ended.conducted {
        Some(conducted) if ended.exit == Exit::Passed => {
            let exit = show(project, conducted.header.run_id.as_str(), json)?;
            Ok(Ended { exit, ..ended })
        }
        _ => Ok(ended),
    }
}

fn show(project: &Project, named: &str, json: bool) -> Result<Exit, Failure> {
    let resolved = project.load(Vec::new())?;
    let report = report(project, &resolved, named)?;
    let found = against_itself(&report).ok_or_else(|| {
        Failure::usage(anyhow!("{} has no case with two trials", report.run_id)).hint(Some(
            "run a suite with --repeats 2 or more, or let this do it: `selftest compare --self --suite FILE`",
        ))
    })?;
    if json {
        print(&format!("{:#}\n", serde_json::json!(found)))?;
    } else {
        let is_terminal = std::io::stdout().is_terminal();
        let colour = is_terminal && !project.environment.no_color;
        print(&text(&found, TerminalStyle { terminal: is_terminal, colour }))?;
    }
    Ok(Exit::Passed)
}
