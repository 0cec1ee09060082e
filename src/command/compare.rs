//! `selftest compare`: two runs of the same cases, or what a comparison could find.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use super::context::Project;
use super::failure::Failure;
use super::named_run::report;
use super::{eprint, print};
use crate::cli::GlobalArgs;
use crate::exit::Exit;
use selftest_harness::experiment::power::PowerPlan;
use selftest_harness::experiment::{Arm, Conclusion};
use selftest_reports::document::ReportDocument;
use selftest_reports::{TerminalStyle, comparison};

/// How a comparison is printed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Format {
    Text,
    Json,
    Markdown,
}

impl Format {
    /// By the flags, of which at most one is given.
    pub(super) const fn of(json: bool, markdown: bool) -> Self {
        match (json, markdown) {
            (true, _) => Self::Json,
            (false, true) => Self::Markdown,
            (false, false) => Self::Text,
        }
    }
}

/// Says what a comparison of two runs like this one can find.
pub(super) fn plan(run: &str, json: bool, global: &GlobalArgs) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let resolved = project.load(Vec::new())?;
    let report = report(&project, &resolved, run)?;
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
pub(super) fn print_plan(plan: &PowerPlan, json: bool) -> Result<Exit, Failure> {
    if json {
        print(&format!("{:#}\n", serde_json::json!(plan)))?;
    } else {
        print(&plan.text())?;
    }
    Ok(Exit::Passed)
}

pub(super) fn execute(
    runs: [&str; 2],
    format: Format,
    fail_if_worse: bool,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let resolved = project.load(Vec::new())?;
    // Reading takes most of the time, and large reports most of that.
    let (a, b) = std::thread::scope(|scope| {
        let first = scope.spawn(|| report(&project, &resolved, runs[0]));
        let b = report(&project, &resolved, runs[1]);
        (first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), b)
    });
    show(&project, &a?, &b?, format, fail_if_worse)
}

/// Compares two reports and prints what was found.
pub(super) fn show(
    project: &Project,
    a: &ReportDocument,
    b: &ReportDocument,
    format: Format,
    fail_if_worse: bool,
) -> Result<Exit, Failure> {
    let found = comparison::compare(a, b).ok_or_else(|| {
        let error = anyhow!("no case of {} is in {}: nothing to compare", a.run_id, b.run_id);
        Failure::usage(error).hint(Some(format!(
            "cases are the same where prompt, hints and expectations are: `selftest suite freeze {}`, \
             then run its suite with --suite",
            a.run_id
        )))
    })?;
    match format {
        Format::Json => print(&format!("{:#}\n", serde_json::json!(found)))?,
        Format::Markdown => print(&comparison::markdown(&found))?,
        Format::Text => {
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
