//! `selftest compare`: two runs of the same cases, or what a comparison could find.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;

use anyhow::anyhow;

use crate::cli::{Format, GlobalArgs, ReplayArgs};
use crate::exit::Exit;
use crate::ui::{self, Terminal};
use crate::ui::{eprint, print};
use selftest_app::{
    AppError, ComparisonFormat, FinishedRun, Project, Replay, RunPurpose, find_report, replay,
};
use selftest_harness::experiment::power::PowerPlan;
use selftest_harness::experiment::{Arm, Conclusion};
use selftest_reports::document::ReportDocument;
use selftest_reports::{TerminalStyle, comparison};

/// Returns the format that the flags ask for; at most one is given.
pub(super) const fn format(json: bool, markdown: bool) -> ComparisonFormat {
    match (json, markdown) {
        (true, _) => ComparisonFormat::Json,
        (false, true) => ComparisonFormat::Markdown,
        (false, false) => ComparisonFormat::Text,
    }
}

/// Replays a run and compares both.
pub(super) async fn replay_run(args: &ReplayArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let terminal = Terminal::new(global, false);
    let project = ui::open_with(global, terminal)?;
    let format = format(args.json, args.markdown);
    let fail_if_worse = args.fail_if_worse;
    let purpose = RunPurpose::Replay { format, fail_if_worse };
    let replayed = replay(&project, args.settings(), &args.run, args.repeats, purpose).await?;
    let Some(Replay { earlier, run }) = replayed else { return Ok(Exit::NothingRan) };
    conclude_replay(&project, terminal, &earlier, &run, format, fail_if_worse)
}

/// Compares a finished replay with the run whose cases it has. A replay that did not finish prints its
/// results instead.
pub(super) fn conclude_replay(
    project: &Project,
    terminal: Terminal,
    earlier: &ReportDocument,
    run: &FinishedRun,
    format: ComparisonFormat,
    fail_if_worse: bool,
) -> Result<Exit, AppError> {
    match Exit::of_run(run, true)? {
        Exit::Passed => show(project, earlier, &run.report()?, format, fail_if_worse),
        exit => {
            terminal.print_run(run, Format::Human)?;
            Ok(exit)
        }
    }
}

/// Says what a comparison of two runs like this one can find.
pub(super) fn plan(run: &str, json: bool, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    let report = find_report(&project, &resolved, run)?;
    let trials = comparison::trials(&report, Arm::Control);
    let cases: BTreeSet<&str> = trials.iter().map(|trial| trial.case.as_str()).collect();
    if cases.is_empty() {
        eprint(&format!("nothing to plan by: no case of {} was run\n", report.run_id));
        return Ok(Exit::NothingRan);
    }
    let repeats = report.summary.repeats.unwrap_or(1);
    let cases = u32::try_from(cases.len()).unwrap_or(u32::MAX);
    print_plan(&PowerPlan::new(cases, repeats, &trials), json)
}

/// Prints a plan.
pub(super) fn print_plan(plan: &PowerPlan, json: bool) -> Result<Exit, AppError> {
    if json {
        print(&format!("{:#}\n", serde_json::json!(plan)))?;
    } else {
        print(&plan.text())?;
    }
    Ok(Exit::Passed)
}

pub(super) fn execute(
    runs: [&str; 2],
    format: ComparisonFormat,
    fail_if_worse: bool,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    // Reading takes most of the time, and large reports most of that.
    let (a, b) = std::thread::scope(|scope| {
        let first = scope.spawn(|| find_report(&project, &resolved, runs[0]));
        let b = find_report(&project, &resolved, runs[1]);
        (first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), b)
    });
    show(&project, &a?, &b?, format, fail_if_worse)
}

/// Compares two reports and prints what was found.
pub(super) fn show(
    project: &Project,
    a: &ReportDocument,
    b: &ReportDocument,
    format: ComparisonFormat,
    fail_if_worse: bool,
) -> Result<Exit, AppError> {
    let found = comparison::compare(a, b).ok_or_else(|| {
        let error = anyhow!("no case of {} is in {}: nothing to compare", a.run_id, b.run_id);
        AppError::usage(error).hint(Some(format!(
            "cases are the same where prompt, hints and expectations are: `selftest suite freeze {}`, \
             then run its suite with --suite",
            a.run_id
        )))
    })?;
    match format {
        ComparisonFormat::Json => print(&format!("{:#}\n", serde_json::json!(found)))?,
        ComparisonFormat::Markdown => print(&comparison::markdown(&found))?,
        ComparisonFormat::Text => {
            let style = TerminalStyle {
                terminal: std::io::stdout().is_terminal(),
                colour: std::io::stdout().is_terminal() && !project.environment.no_color,
            };
            print(&comparison::text(&found, style))?;
        }
    }
    let worse = found.analysis.conclusion == Conclusion::Harms;
    Ok(if worse && fail_if_worse { Exit::Failed } else { Exit::Passed })
}
