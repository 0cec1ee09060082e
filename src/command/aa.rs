//! `selftest aa`: the same cases twice, to see how much differs where nothing was changed.

use std::io::IsTerminal as _;

use anyhow::anyhow;

use super::context::Project;
use super::failure::Failure;
use super::named_run::report;
use super::{print, run};
use crate::cli::{AaArgs, GlobalArgs};
use crate::exit::Exit;
use selftest_harness::report::Style;
use selftest_harness::report::comparison::aa::{against_itself, text};

pub(super) async fn execute(args: &AaArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let named = if let Some(named) = &args.run {
        if !args.report.is_empty() {
            let error = anyhow!("--report needs --suite: nothing is run for {named}");
            return Err(Failure::usage(error)
                .hint(Some("`selftest report RUN --report junit=PATH` writes reports of it")));
        }
        named.clone()
    } else {
        let flags = run::flags(&args.run());
        let ended = run::run(&args.run(), &project, &project.load(flags)?, false).await?;
        match ended.conducted {
            Some(conducted) if ended.exit == Exit::Passed => conducted.header.run_id.to_string(),
            _ => return Ok(ended.exit),
        }
    };
    let resolved = project.load(Vec::new())?;
    let report = report(&project, &resolved, &named)?;
    let found = against_itself(&report).ok_or_else(|| {
        Failure::usage(anyhow!("{} has no case with two trials", report.run_id)).hint(Some(
            "run a suite with --repeats 2 or more, or let this do it: `selftest aa --suite FILE`",
        ))
    })?;
    if args.json {
        print(&format!("{:#}\n", serde_json::json!(found)))?;
    } else {
        let is_terminal = std::io::stdout().is_terminal();
        let colour = is_terminal && !project.environment.no_color;
        print(&text(&found, Style { terminal: is_terminal, colour }))?;
    }
    Ok(Exit::Passed)
}
