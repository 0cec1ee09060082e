//! The page of one case: how it was generated, asked, answered and judged.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::run::read_run;
use super::{filters, links, quote, render_html, run_blocking};
use crate::App;
use crate::problem::Problem;
use selftest_checks::check::CheckOutcome;
use selftest_harness::judge::Verdict;
use selftest_harness::outcome::CaseStep;
use selftest_models::CallRecord;
use selftest_reports::against::{self, CaseStanding};
use selftest_reports::contrast::{Contrast, PieceKind};
use selftest_reports::document::{CaseDocument, ReportDocument};
use selftest_reports::traces::{self, EvidencePart};

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

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path((run_id, scenario)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let page = move || {
        let (report, _) = read_run(&app, &run_id)?;
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
