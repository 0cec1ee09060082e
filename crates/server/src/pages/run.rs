//! The pages of selftest runs: the list with the chart of their pass rates, and one run with its
//! result and cases. The parts that change during a run are separate templates, which live events
//! send again.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use selftest_checks::check::CheckOutcome;
use selftest_harness::gate::finding::CaseChange;
use selftest_harness::judge::Verdict;
use selftest_harness::outcome::repeats::{RepeatedCase, RepeatedResult};
use selftest_harness::outcome::{CaseStatus, CaseStep};
use selftest_models::CallRecord;
use selftest_reports::against::CaseStanding;
use selftest_reports::causes::{CaseFault, SharedCauses};
use selftest_reports::contrast::{Contrast, PieceKind};
use selftest_reports::document::{CaseDocument, ReportDocument};
use selftest_reports::traces::EvidencePart;
use selftest_reports::{
    RunArchive, RunEntry, RunFile, against, older_than, traces, trend_picture, wording,
};
use serde::Deserialize;

use super::{filters, links, quote, render_html, run_blocking, svg_response};
use crate::App;
use crate::problem::Problem;

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
    pub(crate) causes: &'r SharedCauses,
}

#[derive(Template)]
#[template(path = "page/run.html")]
struct RunDetailPage {
    section: &'static str,
    report: ReportDocument,
    causes: SharedCauses,
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

impl<'r> CaseRow<'r> {
    /// Returns the key by which rows are sorted: what needs attention first, then the position in
    /// the plan.
    fn order(&self) -> usize {
        let Self { report, case, .. } = self;
        let planned = report.scenarios.iter().enumerate().filter(|(_, id)| **id == case.id);
        // The plan lists a repeated case once for each repeat, under one id.
        let before = case.repeat.unwrap_or(1).saturating_sub(1);
        let order = planned.map(|(order, _)| order).nth(before as usize);
        let rank = match (self.standing(), case.pass) {
            (Some(CaseStanding::Changed(CaseChange::Regression)), _) => 0,
            (_, Some(false)) => 1,
            (_, None) => 2,
            (_, Some(true)) => 3,
        };
        // One more than there are cases, so that the order within a rank never reaches the next
        // rank.
        rank * (report.scenarios.len() + 1) + order.unwrap_or(report.scenarios.len())
    }

    /// Returns how the case stands against the baseline; `None` if it is unchanged, or without a
    /// baseline.
    fn standing(&self) -> Option<CaseStanding> {
        let standing = CaseStanding::of(self.report.gate.as_ref()?, &self.case.id);
        (standing != CaseStanding::Same).then_some(standing)
    }

    /// Returns the reason, or the cause that states it.
    fn reason(&self) -> Cow<'r, str> {
        let shared = self.causes.of_fault(CaseFault::of_document(self.case));
        match shared {
            Some(cause) => Cow::Owned(cause.name()),
            None => Cow::Borrowed(self.case.reason.as_deref().unwrap_or_default()),
        }
    }
}

impl RunDetailPage {
    fn progress(&self) -> RunProgress<'_> {
        RunProgress { report: &self.report }
    }

    /// Returns what the gate found out about the run as a whole: whose change it was, and what kept
    /// it from deciding.
    fn findings(&self) -> Vec<String> {
        let found = self.report.gate.as_ref().map(against::of_run).unwrap_or_default();
        // The first line says what was compared; it stands above the changes of cases.
        found.into_iter().skip(1).take(MAX_LINES).collect()
    }

    /// Describes what was compared, and each change. The rows of the cases have the reasons.
    fn changes(&self) -> Vec<String> {
        let Some(gate) = &self.report.gate else { return Vec::new() };
        let compared = against::of_run(gate).into_iter().take(1);
        compared.chain(against::of_cases(gate, |_| false)).take(MAX_LINES).collect()
    }

    /// Returns the repeated cases, those that did not always pass first.
    fn repeated(&self) -> Vec<&RepeatedCase> {
        let rank = |case: &&RepeatedCase| match case.result {
            RepeatedResult::Failed => 0,
            RepeatedResult::Flaky => 1,
            RepeatedResult::Unscored => 2,
            RepeatedResult::Passed => 3,
        };
        let mut cases: Vec<&RepeatedCase> =
            self.report.repeats.iter().flat_map(|repeats| &repeats.cases).collect();
        cases.sort_by_key(rank);
        cases
    }

    fn repeated_class(case: &RepeatedCase) -> &'static str {
        match case.result {
            RepeatedResult::Passed => "good",
            RepeatedResult::Failed => "poor",
            RepeatedResult::Flaky | RepeatedResult::Unscored => "fair",
        }
    }

    /// Returns the rows of the finished cases in their order.
    fn rows(&self) -> Vec<CaseRow<'_>> {
        let row = |case| CaseRow { report: &self.report, case, causes: &self.causes };
        let mut rows: Vec<CaseRow<'_>> = self.report.cases.iter().map(row).collect();
        rows.sort_by_cached_key(CaseRow::order);
        rows
    }
}

/// Returns the causes that several cases of a run have in common.
pub(crate) fn shared_causes(report: &ReportDocument) -> SharedCauses {
    SharedCauses::of(report.cases.iter().filter_map(CaseFault::of_document))
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
        // A time in the future, after the clock was set back, is no silence.
        let silent = file.modified.elapsed().unwrap_or_default();
        // The report is rewritten after each case. Silence for longer than a case may take means
        // that the run was killed, which no report can say of itself.
        let is_silent = !report.complete && silent > MAX_CASE_TIME;
        let silence = is_silent.then_some(silent.as_secs_f64());
        let causes = shared_causes(&report);
        Ok(RunDetailPage { section: "selftests", report, causes, silence })
    };
    render_html(&run_blocking(page).await?)
}

/// Maximum number of steps, calls, attempts and notes to show.
const MAX_ROWS: usize = 100;

#[derive(Template)]
#[template(path = "page/case.html")]
struct CasePage {
    section: &'static str,
    report: ReportDocument,
    position: usize,
    /// The difference between what was expected and what came, if the case failed.
    contrast: Option<Contrast>,
    evidence: Vec<EvidencePart>,
    /// Absent if the system under test does not report them.
    tool_calls: Option<Vec<String>>,
}

impl CasePage {
    fn case(&self) -> &CaseDocument {
        &self.report.cases[self.position]
    }

    fn before(&self) -> Option<String> {
        Some(self.report.cases.get(self.position.checked_sub(1)?)?.name())
    }

    fn after(&self) -> Option<String> {
        Some(self.report.cases.get(self.position + 1)?.name())
    }

    /// Returns how the case stands against the baseline: its label, and what is known of the change.
    fn standing(&self) -> Option<(CaseStanding, String)> {
        let gate = self.report.gate.as_ref()?;
        let CaseDocument { id, reason, .. } = self.case();
        let gated = gate.cases.iter().find(|case| case.id == *id);
        let details = gated.map(|gated| against::details(gated, reason.as_deref()));
        Some((CaseStanding::of(gate, id), details.unwrap_or_default()))
    }

    /// Returns the reference, unless the comparison with it is shown.
    fn reference(&self) -> Option<&str> {
        let is_shown = self.contrast.as_ref().is_some_and(Contrast::has_reference);
        self.case().grounds.reference.as_deref().filter(|_| !is_shown)
    }

    fn hints(&self) -> Option<&str> {
        self.case().hints.as_deref().filter(|hints| !hints.trim().is_empty())
    }

    /// Returns all calls of a step with their role.
    fn calls(step: &CaseStep) -> Vec<(&'static str, &CallRecord)> {
        let answered = step.reply.iter().filter_map(|reply| reply.call.as_ref());
        let judged = step.judgement.iter().flat_map(|judgement| &judgement.calls);
        let answered = answered.map(|call| ("system under test", call));
        answered.chain(judged.map(|call| ("judge", call))).take(MAX_ROWS).collect()
    }
}

pub(super) async fn case_page(
    State(app): State<Arc<App>>,
    Path((run_id, scenario)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let page = move || {
        let (report, _) = read_run(&app, &run_id)?;
        // By name and not by index: cases of a running self-test are still being added.
        let position = report.cases.iter().position(|case| case.name() == scenario);
        let position = position.ok_or_else(|| {
            let scenario = quote(&scenario);
            Problem::not_found(format!("run {} has no finished case {scenario}", report.run_id))
        })?;
        let result = report.cases[position].result(position);
        Ok(CasePage {
            section: "selftests",
            contrast: Contrast::of(&result),
            evidence: traces::evidence(&result),
            tool_calls: traces::tool_calls(&result),
            report,
            position,
        })
    };
    render_html(&run_blocking(page).await?)
}

/// Maximum number of runs per page.
const MAX_RUNS: usize = 50;
/// Maximum number of runs to read for the chart, which shows the latest of each suite.
const MAX_CHARTED: usize = 120;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SelftestsParams {
    before: String,
}

#[derive(Template)]
#[template(path = "page/selftests.html")]
struct SelftestsPage {
    section: &'static str,
    total: usize,
    rows: Vec<RunEntry>,
    /// JSON files on this page that are not reports.
    foreign: usize,
    older: Option<String>,
    newer: bool,
}

fn load_page(runs: &RunArchive, before: &str) -> Result<SelftestsPage, Problem> {
    let mut files = runs.files().map_err(|error| Problem::unreadable_reports(&error))?;
    let total = files.len();
    if !before.is_empty() {
        files = older_than(files, before);
    }
    // From file names alone; only the reports that are shown are opened.
    let more = files.len() > MAX_RUNS;
    files.truncate(MAX_RUNS);
    let older = files.last().filter(|_| more);
    let older = older.map(|file| links::query("/selftests", &[("before", file.run_id.as_str())]));
    let rows: Vec<RunEntry> = files.iter().filter_map(|file| runs.entry(file)).collect();
    Ok(SelftestsPage {
        section: "selftests",
        total,
        foreign: files.len() - rows.len(),
        rows,
        older,
        newer: !before.is_empty(),
    })
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<SelftestsParams>,
) -> Result<Response, Problem> {
    render_html(&run_blocking(move || load_page(&app.runs, &params.before)).await?)
}

pub(super) async fn trend(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let picture = move || {
        let files = app.runs.files().map_err(|error| Problem::unreadable_reports(&error))?;
        let newest = files.iter().filter_map(|file| app.runs.entry(file));
        // Before `take`: experiments and replays are no points of the chart and must not use up its
        // places.
        let newest = newest.filter(|run| run.series().is_development()).take(MAX_CHARTED);
        Ok(trend_picture(&newest.collect::<Vec<_>>())?)
    };
    run_blocking(picture).await.map(svg_response)
}
