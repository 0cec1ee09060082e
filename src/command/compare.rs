//! `selftest compare`: two runs of the same cases.

use std::io::IsTerminal as _;

use anyhow::anyhow;

use super::context::Project;
use super::failure::Failure;
use super::named_run::report;
use super::print;
use crate::cli::GlobalArgs;
use crate::exit::Exit;
use selftest_harness::experiment::Conclusion;
use selftest_harness::report::{Style, comparison};

pub(super) fn execute(
    runs: [&str; 2],
    json: bool,
    fail_if_worse: bool,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let resolved = project.load(Vec::new())?;
    let [a, b] = runs.map(|run| report(&project, &resolved, run));
    let (a, b) = (a?, b?);
    let found = comparison::compare(&a, &b).ok_or_else(|| {
        let error = anyhow!("no case of {} is in {}: nothing to compare", a.run_id, b.run_id);
        Failure::usage(error).hint(Some(format!(
            "cases are the same where prompt, hints and expectations are: `selftest freeze {}`, \
             then run its suite with --suite",
            a.run_id
        )))
    })?;
    if json {
        print(&format!("{:#}\n", serde_json::json!(found)))?;
    } else {
        let style = Style {
            terminal: std::io::stdout().is_terminal(),
            colour: std::io::stdout().is_terminal() && !project.environment.no_color,
        };
        print(&comparison::text(&found, style))?;
    }
    let worse = found.analysis.conclusion == Conclusion::Harms;
    Ok(if worse && fail_if_worse { Exit::Failed } else { Exit::Passed })
}
