//! The table of report formats that are written to files, one entry each. The words of `--report`
//! and the keys of the configuration come from this table.

use std::fmt;
use std::sync::Arc;

use strum::VariantArray as _;

use super::run_view::CiRunView;
use super::{RenderContext, RenderError, ctrf, html, junit, reward, sarif};
use crate::document::RunEnd;
use crate::markdown::{self, MarkdownView};
use crate::skill_creator;

/// Calls a macro with the table of report formats. An entry has a description of the path in the
/// configuration, an identifier, the key and word for `--report`, and a function that renders a
/// run.
#[macro_export]
macro_rules! report_formats {
    ($then:ident) => {
        $then! {
            /// Path of a JUnit report, overwritten by each run.
            Junit(junit) => |run, _| Ok(junit::render(run)?),
            /// Path of a self-contained HTML report, overwritten by each run.
            Html(html) => |run, _| Ok(html::render(run)?),
            /// Path of a copy of the Markdown report, overwritten by each run.
            Markdown(md) => |run, context| Ok(markdown_report(run, context.json_link)?),
            /// Path of a copy of the JSON report, overwritten by each run.
            Json(json) => |run, _| Ok(serde_json::to_string_pretty(run.document)? + "\n"),
            /// Path of a report in the Common Test Report Format, overwritten by each run.
            Ctrf(ctrf) => |run, _| Ok(ctrf::render(run)?),
            /// Path of a SARIF 2.1.0 report of isolation findings, overwritten by each run.
            Sarif(sarif) => |run, _| Ok(sarif::render(run)?),
            /// Path of the reward of a Harbor task, overwritten by each run.
            Reward(reward) => |run, _| Ok(reward::render(run)),
            /// Path of a benchmark.json as skill-creator reads it, overwritten by each run.
            Benchmark(benchmark) => |run, _| Ok(skill_creator::benchmark_json(run.document)),
        }
    };
}

/// Renders a run, with what its document does not have.
type RenderReport = fn(&CiRunView<'_>, RenderContext<'_>) -> Result<String, RenderError>;

macro_rules! define_kinds {
    ($($(#[doc = $doc:literal])+ $id:ident($name:ident) => $render:expr,)+) => {
        /// A report written to a file chosen by the user.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::VariantArray)]
        pub enum ReportFileKind {
            $($(#[doc = $doc])+ $id,)+
            /// The example of docs/extending.md, in tests only.
            #[cfg(test)]
            Example,
        }

        impl ReportFileKind {
            /// Returns the name on the command line and the key in the configuration.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$id => stringify!($name),)+
                    #[cfg(test)]
                    Self::Example => "example",
                }
            }

            pub(super) fn renderer(self) -> RenderReport {
                match self {
                    $(Self::$id => $render,)+
                    #[cfg(test)]
                    Self::Example => |run, _| Ok(super::example::render(run)),
                }
            }
        }
    };
}

report_formats!(define_kinds);

impl ReportFileKind {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ReportFileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
