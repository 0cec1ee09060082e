//! `selftest report`: reports of an earlier run.

use anyhow::anyhow;

use super::ci_reports::{self, CiReports};
use super::context::{Project, flags};
use super::failure::Failure;
use super::named_run;
use crate::cli::{GlobalArgs, RunArgs};
use crate::exit::Exit;
use selftest_reports::ci::ReportRequest;

pub(super) async fn execute(
    named: &str,
    requests: &[ReportRequest],
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    ci_reports::check_once(requests)?;
    let args = RunArgs { report: requests.to_vec(), ..RunArgs::default() };
    let mut resolved = project.load(flags(&args))?;
    if !requests.is_empty() {
        resolved.config.reports.set_requests(requests);
    }
    if project.report_requests(&resolved).is_empty() {
        let error = anyhow!("nothing to write: neither --report nor `reports` names a report");
        return Err(Failure::usage(error).hint(Some("for example --report md=selftest.md")));
    }
    let (document, json) = named_run::found(&project, &resolved, named)?;
    let reports = CiReports::open(&project, &resolved)?;
    let sources = ci_reports::case_sources(&project, &resolved, document.suite.as_ref());
    let faults = reports.write(&document, &sources, &json).await;
    if faults.is_empty() {
        Ok(Exit::Passed)
    } else {
        Err(Failure::setup(anyhow!(faults.join("\n"))))
    }
}
