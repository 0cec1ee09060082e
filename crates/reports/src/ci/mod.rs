//! Reports for CI systems: their kinds, how they are requested, and their texts, all rendered from
//! a run's document. Opens no files and decides nothing.

pub mod files;
pub mod github;
pub mod otlp;
pub mod sources;

mod against;
mod ctrf;
mod details;
mod html;
mod junit;
mod request;
mod run_view;
mod sarif;

use std::fmt;
use std::sync::Arc;

pub use files::{CiFileError, CiFiles};
pub use request::{ReportFileKind, ReportRequest};
pub use sources::CaseSources;

use super::document::{ReportDocument, RunEnd};
use super::markdown::{self, MarkdownView};
use run_view::CiRunView;

/// Context for a report, in addition to the document of its run.
#[derive(Debug, Clone, Copy)]
pub struct RenderContext<'a> {
    /// Source locations of the cases.
    pub sources: &'a CaseSources,
    /// Link from the report to the run's JSON report.
    pub json_link: &'a str,
}

/// An error in rendering a report.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Error from a template.
    #[error("{0}")]
    Template(#[from] askama::Error),
    /// Error from XML serialisation.
    #[error("{0}")]
    Xml(#[from] quick_junit::SerializeError),
    /// Error from JSON serialisation.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// Renders a report.
pub fn render(
    kind: ReportFileKind,
    document: &ReportDocument,
    context: RenderContext<'_>,
) -> Result<String, RenderError> {
    let run = CiRunView::new(document, context.sources);
    match kind {
        ReportFileKind::Junit => Ok(junit::render(&run)?),
        ReportFileKind::Ctrf => Ok(ctrf::render(&run)?),
        ReportFileKind::Sarif => Ok(sarif::render(&run)?),
        ReportFileKind::Html => Ok(html::render(&run)?),
        ReportFileKind::Markdown => Ok(markdown_report(&run, context.json_link)?),
        ReportFileKind::Json => Ok(serde_json::to_string_pretty(document)? + "\n"),
    }
}

/// Renders the same Markdown report as the run itself.
fn markdown_report(run: &CiRunView<'_>, json_link: &str) -> Result<String, askama::Error> {
    let document = run.document;
    let end = document.outcome.zip(document.ended_at).map(|(outcome, at)| RunEnd {
        outcome,
        at,
        changed_files: document.changed_files.clone(),
        gate: document.gate.clone().map(Arc::new),
    });
    markdown::render(&MarkdownView {
        header: &document.header(),
        cases: run.results.iter().collect(),
        summary: &document.summary,
        warnings: &document.warnings,
        end: end.as_ref(),
        calibration: document.calibration.clone(),
        usage: run.usage.clone(),
        json_link,
    })
}

impl fmt::Display for ReportFileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
