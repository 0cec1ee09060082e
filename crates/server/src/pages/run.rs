//! The page of one selftest run with its result and cases. The parts that change during a run are
//! separate templates, which live events send again.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::{filters, links, quote, render_html, run_blocking};
use crate::App;
use crate::problem::Problem;
use selftest_harness::outcome::CaseStatus;
use selftest_reports::document::{CaseDocument, ReportDocument};
use selftest_reports::{RunFile, wording};

/// A run writes its report after each case; cases rarely take longer than this.
const MAX_CASE_TIME: Duration = Duration::from_mins(30);
/// Maximum number of lines of a list to show.
const MAX_LINES: usize = 100;

/// Current result of a run, finished or not.
#[derive(Template)]
#[template(path = "page/run_progress.html")]
pub(crate) struct RunProgress<'r> {
    pub(crate) report: &'r ReportDocument,
}

/// A row in the table of finished cases.
#[derive(Template)]
#[template(path = "page/case_row.html")]
pub(crate) struct CaseRow<'r> {
    pub(crate) report: &'r ReportDocument,
    pub(crate) case: &'r CaseDocument,
}

#[derive(Template)]
#[template(path = "page/run.html")]
struct RunDetailPage {
    section: &'static str,
    report: ReportDocument,
    /// Seconds since an unfinished run last wrote its report; set if it was probably killed.
    silence: Option<f64>,
}

impl RunProgress<'_> {
    #[expect(clippy::cast_precision_loss, reason = "a share of cases in whole per cent")]
    fn share(&self) -> f64 {
        self.report.cases.len() as f64 / self.report.scenarios.len().max(1) as f64
    }

    /// Describes the progress in a sentence, for screen readers.
    pub(crate) fn sentence(&self) -> String {
        let Self { report } = self;
        let summary = &report.summary;
        format!(
            "{}: {} of {} cases finished, {} passed, {} failed, {} without verdict",
            wording::outcome(report.outcome),
            report.cases.len(),
            report.scenarios.len(),
            summary.passed,
            summary.failed,
            summary.unscored
        )
    }
}

impl CaseRow<'_> {
    /// Returns the position in the plan, by which rows are sorted.
    fn order(&self) -> usize {
        let Self { report, case } = self;
        let planned = report.scenarios.iter().enumerate().filter(|(_, id)| **id == case.id);
        let before = case.repeat.unwrap_or(1).saturating_sub(1);
        let order = planned.map(|(order, _)| order).nth(before as usize);
        order.unwrap_or(report.scenarios.len())
    }
}

impl RunDetailPage {
    fn progress(&self) -> RunProgress<'_> {
        RunProgress { report: &self.report }
    }

    fn row<'r>(&'r self, case: &'r CaseDocument) -> CaseRow<'r> {
        CaseRow { report: &self.report, case }
    }
}

/// Returns the report of a run and its file.
pub(super) fn read_run(app: &App, run_id: &str) -> Result<(ReportDocument, RunFile), Problem> {
    app.read_run(run_id)?
        .ok_or_else(|| Problem::not_found(format!("there is no report of a run {}", quote(run_id))))
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(run_id): Path<String>,
) -> Result<Response, Problem> {
    let page = move || {
        let (report, file) = read_run(&app, &run_id)?;
        let silent = file.modified.elapsed().unwrap_or_default();
        let is_silent = !report.complete && silent > MAX_CASE_TIME;
        let silence = is_silent.then_some(silent.as_secs_f64());
        Ok(RunDetailPage { section: "selftests", report, silence })
    };
    render_html(&run_blocking(page).await?)
}
