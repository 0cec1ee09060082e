//! Reports for CI systems: their kinds, how they are requested, and their texts, all rendered from
//! a run's document. Opens no files and decides nothing.

pub mod files;
pub mod github;
pub mod otlp;
pub mod sources;

mod ctrf;
#[cfg(test)]
mod example;
mod formats;
mod html;
mod junit;
mod request;
mod reward;
mod run_view;
mod sarif;

pub use files::{CiFileError, CiFiles};
pub use formats::ReportFileKind;
pub use request::{ReportRequest, ReportRequestError};
pub use sources::CaseSources;

use super::document::ReportDocument;
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
    kind.renderer()(&CiRunView::new(document, context.sources), context)
}
