//! `selftest improve skills experiment`: the same cases with and without a skill.

use std::io::IsTerminal as _;

use anyhow::anyhow;
use selftest_app::{
    AppError, ExperimentSettings, FinishedExperiment, LATEST, Project, SuiteFile, find_parts,
    find_report, plan_cases, run_experiment,
};
use selftest_config::ResolvedConfig;
use selftest_harness::experiment::power::PowerPlan;
use selftest_harness::experiment::{Arm, Conclusion};
use selftest_reports::comparison::experiment::text;
use selftest_reports::{TerminalStyle, comparison};

use crate::cli::{ExperimentArgs, GlobalArgs};
use crate::command::compare::print_plan;
use crate::exit::Exit;
use crate::ui::{self, eprint, print};

pub(super) async fn execute(
    told: &ExperimentArgs,
    json: bool,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    if !told.report.is_empty() {
        let error = anyhow!("--report names one file, and an experiment is two runs");
        return Err(AppError::usage(error).hint(Some(
            "write reports of either arm afterwards: `selftest report write RUN --report junit=PATH`",
        )));
    }
    let project = ui::open(global)?;
    let settings = told.settings();
    let resolved = project.load(settings.run().flags())?;
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    let parts = find_parts(&project, &settings, None)?;
    if told.power {
        return plan(&project, &resolved, &settings, json);
    }
    let finished = run_experiment(&project, &resolved, &settings, parts, json, None).await?;
    finished.map_or(Ok(Exit::NothingRan), |finished| show(&project, &finished, &settings, json))
}

/// Prints the result of an experiment.
pub(in crate::command) fn show(
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
        print(&text(found, style))?;
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
    let worse = found.analysis.conclusion == Conclusion::Harms;
    Ok(if worse && settings.fail_if_worse { Exit::Failed } else { Exit::Passed })
}

/// Says what the experiment can find, by the noise of the latest run.
fn plan(
    project: &Project,
    resolved: &ResolvedConfig,
    settings: &ExperimentSettings,
    json: bool,
) -> Result<Exit, AppError> {
    let suite =
        SuiteFile::for_experiment(project, &settings.suite, &settings.trials.allow_commands)?;
    let plan = plan_cases(&settings.run(), &resolved.config, Some(&suite))?;
    let cases = plan.len() / settings.repeats as usize;
    if cases == 0 {
        eprint("nothing to run: no case was selected\n");
        return Ok(Exit::NothingRan);
    }
    // Without any run the noise is assumed, and the plan says so.
    let latest = find_report(project, resolved, LATEST).ok();
    let trials = latest.map(|report| comparison::trials(&report, Arm::Control));
    let cases = u32::try_from(cases).unwrap_or(u32::MAX);
    print_plan(&PowerPlan::new(cases, settings.repeats, &trials.unwrap_or_default()), json)
}
