//! `selftest compare --self`: compares a run with itself, to measure its noise.

use std::io::IsTerminal as _;

use anyhow::anyhow;

use crate::cli::{AaArgs, GlobalArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::print;
use selftest_app::{AppError, FinishedRun, Project, RunPurpose, SelfTest, find_report};
use selftest_reports::TerminalStyle;
use selftest_reports::comparison::aa::{against_itself, text};

pub(super) async fn execute(args: &AaArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let named = if let Some(named) = &args.run {
        if !args.report.is_empty() {
            let error = anyhow!("--report needs --suite: nothing is run for {named}");
            return Err(AppError::usage(error).hint(Some(
                "`selftest report write RUN --report junit=PATH` writes reports of it",
            )));
        }
        named.clone()
    } else {
        let purpose = RunPurpose::SelfComparison { json: args.json };
        let builder = SelfTest::builder(&project).settings(args.settings()).purpose(purpose);
        let Some(run) = builder.run().await? else { return Ok(Exit::NothingRan) };
        return conclude(&project, &run, args.json);
    };
    show(&project, &named, args.json)
}

/// Compares a finished run with itself.
pub(super) fn conclude(project: &Project, run: &FinishedRun, json: bool) -> Result<Exit, AppError> {
    match Exit::of_run(run, true)? {
        Exit::Passed => show(project, run.header.run_id.as_str(), json),
        exit => Ok(exit),
    }
}

fn show(project: &Project, named: &str, json: bool) -> Result<Exit, AppError> {
    let resolved = project.load(Vec::new())?;
    let report = find_report(project, &resolved, named)?;
    let found = against_itself(&report).ok_or_else(|| {
        AppError::usage(anyhow!("{} has no case with two trials", report.run_id)).hint(Some(
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
