//! Results that several commands print: of a run, of a comparison, of an experiment.

use std::io::IsTerminal as _;

use anyhow::anyhow;
use selftest_app::{
    AppError, ComparisonFormat, ExperimentSettings, FinishedExperiment, FinishedRun, Project,
    find_report,
};
use selftest_harness::experiment::Conclusion;
use selftest_harness::experiment::power::PowerPlan;
use selftest_harness::outcome::agreement::VerdictChanges;
use selftest_reports::comparison::{aa, experiment};
use selftest_reports::document::ReportDocument;
use selftest_reports::{TerminalStyle, comparison};

use crate::args::{Format, RunArgs};
use crate::exit::Exit;
use crate::ui::{Terminal, eprint, print};

/// Prints the results of a run, and what changed if it judged answers again.
pub(crate) fn show_run(
    run: &FinishedRun,
    args: &RunArgs,
    terminal: Terminal,
    is_rejudged: bool,
) -> Result<Exit, AppError> {
    if is_rejudged && args.format == Format::Json {
        // stdout holds the report and nothing else.
        let changes = VerdictChanges::of(run.cases().iter().map(|case| &**case));
        eprint(&format!("{}\n", changes.sentence()));
    }
    terminal.print_run(run, args.format)?;
    Exit::of_run(run, args.gate.exit_zero)
}

/// Compares a finished replay with the run whose cases it has. A replay that did not finish prints its
/// results instead.
pub(crate) fn conclude_replay(
    project: &Project,
    terminal: Terminal,
    earlier: &ReportDocument,
    run: &FinishedRun,
    format: ComparisonFormat,
    fail_if_worse: bool,
) -> Result<Exit, AppError> {
    match Exit::of_run(run, true)? {
        Exit::Passed => show_comparison(project, earlier, &run.report()?, format, fail_if_worse),
        exit => {
            terminal.print_run(run, Format::Human)?;
            Ok(exit)
        }
    }
}

/// Prints a plan.
pub(crate) fn print_plan(plan: &PowerPlan, json: bool) -> Result<Exit, AppError> {
    if json {
        print(&format!("{:#}\n", serde_json::json!(plan)))?;
    } else {
        print(&plan.text())?;
    }
    Ok(Exit::Passed)
}

/// Compares two reports and prints what was found.
pub(crate) fn show_comparison(
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
    Ok(if found.is_worse() && fail_if_worse { Exit::Failed } else { Exit::Passed })
}

/// Compares a finished run with itself.
pub(crate) fn conclude_self_comparison(
    project: &Project,
    run: &FinishedRun,
    json: bool,
) -> Result<Exit, AppError> {
    match Exit::of_run(run, true)? {
        Exit::Passed => show_self_comparison(project, run.header.run_id.as_str(), json),
        exit => Ok(exit),
    }
}

pub(crate) fn show_self_comparison(
    project: &Project,
    named: &str,
    json: bool,
) -> Result<Exit, AppError> {
    let resolved = project.load(Vec::new())?;
    let report = find_report(project, &resolved, named)?;
    let found = aa::against_itself(&report).ok_or_else(|| {
        AppError::usage(anyhow!("{} has no case with two trials", report.run_id)).hint(Some(
            "run a suite with --repeats 2 or more, or let this do it: `selftest compare --self --suite FILE`",
        ))
    })?;
    if json {
        print(&format!("{:#}\n", serde_json::json!(found)))?;
    } else {
        let is_terminal = std::io::stdout().is_terminal();
        let colour = is_terminal && !project.environment.no_color;
        print(&aa::text(&found, TerminalStyle { terminal: is_terminal, colour }))?;
    }
    Ok(Exit::Passed)
}

/// Prints the result of an experiment.
pub(crate) fn show_experiment(
    project: &Project,
    finished: &FinishedExperiment,
    settings: &ExperimentSettings,
    json: bool,
) -> Result<Exit, AppError> {
    let found = &finished.found;
    if json {
        print(&format!("{:#}\n", serde_json::json!(found)))?;
    } else {
        let style = TerminalStyle {
            terminal: std::io::stdout().is_terminal(),
            colour: std::io::stdout().is_terminal() && !project.environment.no_color,
        };
        print(&experiment::text(found, style))?;
    }
    if !finished.faults.is_empty() {
        return Err(AppError::setup(anyhow!(finished.faults.join("\n"))));
    }
    if finished.is_interrupted {
        return Ok(Exit::Interrupted);
    }
    if finished.lacks_model {
        return Ok(Exit::Setup);
    }
    Ok(match found.analysis.conclusion {
        // A number without a control would be no answer.
        Conclusion::Blocked => Exit::Inconclusive,
        Conclusion::Harms if settings.fail_if_worse => Exit::Failed,
        _ => Exit::Passed,
    })
}
