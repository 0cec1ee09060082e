//! Reports that CI systems read: which kinds there are, how they are asked for, and their texts,
//! each made from the one document of a run. Opens no file and decides nothing.

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
pub use request::{FileKind, ReportRequest};
pub use sources::CaseSources;

use super::document::{ReportDocument, RunEnd};
use super::markdown::{self, RunView as MarkdownView};
use run_view::RunView;

/// The context of a report besides the document of its run.
#[derive(Debug, Clone, Copy)]
pub struct RenderContext<'a> {
    /// Where the cases are written down.
    pub sources: &'a CaseSources,
    /// The link from the report to the JSON report of the run.
    pub json_link: &'a str,
}

/// Why a report has no text.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A template.
    #[error("{0}")]
    Template(#[from] askama::Error),
    /// XML.
    #[error("{0}")]
    Xml(#[from] quick_junit::SerializeError),
    /// JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// The text of a report.
pub fn render(
    kind: FileKind,
    document: &ReportDocument,
    context: RenderContext<'_>,
) -> Result<String, RenderError> {
    let run = RunView::new(document, context.sources);
    match kind {
        FileKind::Junit => Ok(junit::render(&run)?),
        FileKind::Ctrf => Ok(ctrf::render(&run)?),
        FileKind::Sarif => Ok(sarif::render(&run)?),
        FileKind::Html => Ok(html::render(&run)?),
        FileKind::Markdown => Ok(markdown_report(&run, context.json_link)?),
        FileKind::Json => Ok(serde_json::to_string_pretty(document)? + "\n"),
    }
}

/// The Markdown report as the run wrote it.
fn markdown_report(run: &RunView<'_>, json_link: &str) -> Result<String, askama::Error> {
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

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
