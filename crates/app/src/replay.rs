//! Runs the cases of an earlier run again.

use selftest_reports::document::ReportDocument;

use crate::error::AppError;
use crate::find_run::{find_report_file, refuse_arm};
use crate::finished::FinishedRun;
use crate::options::RunSettings;
use crate::project::Project;
use crate::request::{CasesOf, RunPurpose, RunRequest};
use crate::resume::RunStart;
use crate::run::run_cases;
use crate::suite_file::SuiteFile;

/// A run whose cases ran again.
pub struct Replay {
    /// Report of the earlier run.
    pub earlier: ReportDocument,
    /// The new run.
    pub run: FinishedRun,
}

/// Runs the cases of a run again, with its seed and number of repeats unless the settings state others.
/// Returns `None` if there is nothing to replay.
pub async fn replay(
    project: &Project,
    mut settings: RunSettings,
    run: &str,
    repeats: Option<u32>,
    purpose: RunPurpose,
) -> Result<Option<Replay>, AppError> {
    // The configuration locates the run; options of the new run do not change where it is.
    let (report, file) = find_report_file(project, &project.load(Vec::new())?, run)?;
    refuse_arm(&report)?;
    settings.trials.seed = settings.trials.seed.or(Some(report.seed));
    settings.repeats = repeats.or(report.summary.repeats).unwrap_or(1);
    let resolved = project.load(settings.flags())?;
    let suite = SuiteFile::of_run(project, &report, file, &settings.trials.allow_commands)?;
    if suite.suite.cases.is_empty() {
        project
            .notify(&format!("nothing to replay: {} has no case with a prompt\n", report.run_id));
        return Ok(None);
    }
    let cases_of = Some(CasesOf::Replayed(report.run_id.to_string()));
    let request = RunRequest::new(settings.clone(), resolved.flags.clone(), cases_of, purpose);
    let start = RunStart::New(Box::new(request));
    let run = run_cases(project, &resolved, &settings, Some(&suite), start).await?;
    Ok(run.map(|run| Replay { earlier: report, run }))
}
