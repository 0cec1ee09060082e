//! `selftest report`: reports of an earlier run.

use anyhow::anyhow;

use crate::cli::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use selftest_app::{AppError, CiReports, RunSettings, case_sources, check_once, find_report_file};
use selftest_reports::ci::ReportRequest;

pub(super) async fn execute(
    named: &str,
    requests: &[ReportRequest],
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    check_once(requests)?;
    let settings = RunSettings { report: requests.to_vec(), ..RunSettings::default() };
    let mut resolved = project.load(settings.flags())?;
    if !requests.is_empty() {
        resolved.config.reports.set_requests(requests);
    }
    if project.report_requests(&resolved).is_empty() {
        let error = anyhow!("nothing to write: neither --report nor `reports` names a report");
        return Err(AppError::usage(error).hint(Some("for example --report md=selftest.md")));
    }
    let (document, json) = find_report_file(&project, &resolved, named)?;
    let reports = CiReports::open(&project, &resolved)?;
    let sources = case_sources(&project, &resolved, document.suite.as_ref());
    let faults = reports.write(&document, &sources, &json).await;
    if faults.is_empty() {
        Ok(Exit::Passed)
    } else {
        Err(AppError::setup(anyhow!(faults.join("\n"))))
    }
}
