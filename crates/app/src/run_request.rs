//! Runs what a request asks for: the cases of a suite, generated scenarios, or those of an earlier
//! run.

use std::path::PathBuf;

use anyhow::anyhow;

use crate::error::AppError;
use crate::experiment::{WITH_SKILL, WITHOUT_SKILL, write_skill_creator};
use crate::options::{CasesOf, RunRequest};
use crate::project::Project;
use crate::run::{FinishedRun, run_cases};
use crate::run_start::RunStart;
use crate::suite_file::SuiteFile;
use crate::{find_run, rerun};
use selftest_config::ResolvedConfig;
use selftest_reports::skill_creator::ArmConfiguration;

/// Runs the cases of a request, from the first one or from where it was interrupted. Returns `None`
/// if there is nothing to run.
pub(crate) async fn run_request(
    request: RunRequest,
    mut start: RunStart,
    project: &Project,
    resolved: &ResolvedConfig,
) -> Result<Option<FinishedRun>, AppError> {
    let allowed = request.settings.trials.allow_commands.clone();
    let mut args = request.settings;
    let mut suite = match &request.cases_of {
        None => {
            let load = |path: &PathBuf| SuiteFile::load(project, path, &allowed);
            args.suite.as_ref().map(load).transpose()?
        }
        Some(CasesOf::NotPassed(named)) => match rerun::failed(project, resolved, &args, named)? {
            rerun::RerunPlan::Nothing => return Ok(None),
            rerun::RerunPlan::Cases { suite, args: again, run } => {
                args = *again;
                // The journal keeps the run by its id: `latest` would be another one when it is
                // resumed.
                start.name_cases_of(CasesOf::NotPassed(run));
                Some(*suite)
            }
        },
        Some(CasesOf::Rejudged(named)) => {
            return rerun::rejudge(project, resolved, &args, named, start).await;
        }
        Some(CasesOf::Replayed(named)) => {
            let (report, file) = find_run::find_report_file(project, resolved, named)?;
            Some(SuiteFile::of_run(project, &report, file, &allowed)?)
        }
    };
    if let Some(suite) = &mut suite {
        suite.check_loading(&resolved.config);
        if suite.is_folder && args.skill_creator.is_some() {
            let error = anyhow!("--skill-creator takes the cases of one skill");
            return Err(AppError::usage(error).hint(Some("name one evals.json with --suite")));
        }
    }
    let finished = run_cases(project, resolved, &args, suite.as_ref(), start).await?;
    let Some(finished) = finished else { return Ok(None) };
    if let Some(folder) = &args.skill_creator {
        let report = finished.report()?;
        let skill = suite.as_ref().and_then(|suite| suite.skill.as_ref());
        let (skill, name) = match skill {
            Some((skill, _)) => (skill.name.as_str(), WITH_SKILL),
            None => ("none", WITHOUT_SKILL),
        };
        let configuration = ArmConfiguration { name, report: &report };
        write_skill_creator(project, folder, skill, &[configuration])?;
    }
    Ok(Some(finished))
}
