//! The table of report formats that are written to files, one entry each, and the syntax of requests:
//! `junit=out.xml`, `github`. The words of `--report` and the keys of the configuration come from
//! this table.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use strum::VariantArray as _;

use super::{CiRunView, RenderContext, RenderError, ctrf, html, junit, reward, sarif};
use crate::document::RunEnd;
use crate::markdown::MarkdownView;
use crate::{markdown, skill_creator};
use selftest_text::one_line;

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

/// Names of the kinds without a file.
const GITHUB: &str = "github";
const OTLP: &str = "otlp";

/// A requested report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportRequest {
    /// A file.
    File(ReportFileKind, PathBuf),
    /// Step summary and annotations in GitHub Actions.
    Github,
    /// An OpenTelemetry collector at this base address.
    Otlp(String),
}

impl ReportRequest {
    /// Returns the name of the kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::File(kind, _) => kind.name(),
            Self::Github => GITHUB,
            Self::Otlp(_) => OTLP,
        }
    }

    /// Returns the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(_, path) => Some(path),
            Self::Github | Self::Otlp(_) => None,
        }
    }

    /// Returns the first kind that is requested twice.
    pub fn repeated(requests: &[Self]) -> Option<&'static str> {
        let kinds: Vec<&str> = requests.iter().map(Self::kind).collect();
        let twice = |at: usize| kinds[..at].contains(&kinds[at]);
        (0..kinds.len()).find(|at| twice(*at)).map(|at| requests[at].kind())
    }
}

/// A report that cannot be requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportRequestError {
    /// A file was given where GitHub Actions decides.
    #[error("`{GITHUB}` takes no path: GitHub Actions sets the file")]
    GithubPath,
    /// The address of the collector is missing or not HTTP.
    #[error("`{OTLP}` needs an address: {OTLP}=http://127.0.0.1:4318")]
    NoAddress,
    /// No report has this name.
    #[error("unknown report `{name}`, expected one of: {}{}", known_names().join(", "), nearest(name))]
    Unknown {
        /// The name, shortened.
        name: String,
    },
    /// The path of a file is missing.
    #[error("`{0}` needs a path: {0}=PATH")]
    NoPath(ReportFileKind),
}

fn known_names() -> Vec<&'static str> {
    let files = ReportFileKind::VARIANTS.iter().map(|kind| kind.name());
    files.chain([GITHUB, OTLP]).collect()
}

fn nearest(name: &str) -> String {
    let near = known_names().into_iter().find(|known| strsim::levenshtein(known, name) <= 2);
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

impl FromStr for ReportRequest {
    type Err = ReportRequestError;

    fn from_str(text: &str) -> Result<Self, ReportRequestError> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (name.trim(), Some(path)),
            None => (text.trim(), None),
        };
        if name == GITHUB {
            return match path {
                None => Ok(Self::Github),
                Some(_) => Err(ReportRequestError::GithubPath),
            };
        }
        if name == OTLP {
            let has_scheme = |at: &&str| at.starts_with("http://") || at.starts_with("https://");
            let endpoint = path.map(str::trim).filter(has_scheme);
            let endpoint = endpoint.ok_or(ReportRequestError::NoAddress)?;
            return Ok(Self::Otlp(endpoint.to_owned()));
        }
        let unknown = || ReportRequestError::Unknown { name: one_line(name, 40) };
        let kind = ReportFileKind::from_name(name).ok_or_else(unknown)?;
        match path {
            Some(path) if !path.trim().is_empty() => Ok(Self::File(kind, PathBuf::from(path))),
            _ => Err(ReportRequestError::NoPath(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let read = |text: &str| text.parse::<ReportRequest>();
        assert_eq!(
            read("md=a=b.md"),
            Ok(ReportRequest::File(ReportFileKind::Markdown, "a=b.md".into()))
        );
        assert_eq!(read("github"), Ok(ReportRequest::Github));
        let otlp = ReportRequest::Otlp("http://[::1]:4318".to_owned());
        assert_eq!(read("otlp=http://[::1]:4318"), Ok(otlp));
        for (text, words) in [
            ("github=x", "takes no path"),
            ("otlp=127.0.0.1:4318", "`otlp` needs an address: otlp=http://127.0.0.1:4318"),
            ("json", "`json` needs a path: json=PATH"),
            ("json= ", "needs a path"),
            ("jsn=x", "did you mean `json`?"),
            ("pdf=x", "unknown report `pdf`, expected one of: "),
            ("", "unknown report ``"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_kind_that_is_asked_for_twice_is_found() {
        let requests: Vec<ReportRequest> =
            ["md=a", "github", "json=b", "md=c"].iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(ReportRequest::repeated(&requests), Some("md"));
        assert_eq!(ReportRequest::repeated(&requests[..3]), None);
    }
}
