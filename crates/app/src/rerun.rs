//! `--rerun-failed`: the cases of the last run that did not pass, as a plan for the next one.

use crate::error::AppError;
use crate::find_run;
use crate::options::RunSettings;
use crate::project::Project;
use crate::suite_file::SuiteFile;
use selftest_config::ResolvedConfig;
use selftest_reports::document::ReportDocument;
use selftest_reports::not_passed::UnpassedCases;
use selftest_text::escape::terminal;

/// Runs in a row of which each ran cases of the one before.
const MAX_TRACED: usize = 100;

/// The cases to run again.
pub(crate) enum RerunPlan {
    /// Every case passed.
    Nothing,
    /// These.
    Cases {
        /// The cases, with their prompts if they had one.
        suite: Box<SuiteFile>,
        /// The flags of the run.
        args: Box<RunSettings>,
        /// The run whose cases they are.
        run: String,
    },
}

/// Puts the suite in place that the cases first came from: a run of some cases of another one knows
/// that one only, and not what is around them.
fn trace_suite(project: &Project, resolved: &ResolvedConfig, report: &mut ReportDocument) {
    for _ in 0..MAX_TRACED {
        let replayed = report.suite.as_ref().filter(|suite| suite.replayed);
        let Some(run) = replayed.and_then(|suite| suite.run_id.clone()) else { return };
        // Where that report is gone, the cases are run with what this one holds.
        let Ok((earlier, _)) = find_run::find_report_file(project, resolved, &run) else { return };
        report.suite = earlier.suite;
    }
}

/// The cases of a run, such as the last one, that did not pass, each as often as that run did.
pub(crate) fn failed(
    project: &Project,
    resolved: &ResolvedConfig,
    args: &RunSettings,
    named: &str,
) -> Result<RerunPlan, AppError> {
    let (mut report, file) = find_run::find_report_file(project, resolved, named)?;
    find_run::refuse_arm(&report)?;
    trace_suite(project, resolved, &mut report);
    let UnpassedCases { with_prompt, without_prompt } = UnpassedCases::of(&report);
    let is_known = |id: &String| {
        report.suite.is_none() && resolved.config.scenarios.iter().any(|known| known.id == *id)
    };
    let (to_generate, unknown): (Vec<String>, Vec<String>) =
        without_prompt.into_iter().partition(is_known);
    if !unknown.is_empty() {
        let ids = terminal(&unknown.join(", "), 500);
        project
            .notify(&format!("warning: not run again, because their prompts are unknown: {ids}\n"));
    }
    if with_prompt.is_empty() && to_generate.is_empty() {
        if unknown.is_empty() {
            project.notify(&format!("nothing to run: every case of {} passed\n", report.run_id));
        }
        return Ok(RerunPlan::Nothing);
    }
    report.cases.retain(|case| with_prompt.contains(&case.id));
    let mut suite = SuiteFile::of_run(project, &report, file, &args.trials.allow_commands)?;
    suite.to_generate = to_generate;
    let repeats = report.summary.repeats.unwrap_or(1);
    let args = RunSettings { repeats, ..args.clone() };
    let run = report.run_id.to_string();
    Ok(RerunPlan::Cases { suite: Box::new(suite), args: Box::new(args), run })
}
