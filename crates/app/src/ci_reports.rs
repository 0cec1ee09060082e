//! Reports for CI, from settings and flags to files, annotations and step summary. What is in them
//! is the harness's to say.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;

use crate::error::AppError;
use crate::otlp::OtlpCollector;
use crate::project::Frontend;
use crate::project::Project;
use selftest_config::{Environment, ResolvedConfig, ValueOrigin, suite};
use selftest_harness::event::SuiteRun;
use selftest_reports::ci::{CaseSources, CiFiles, ReportRequest, github};
use selftest_reports::document::ReportDocument;

/// Reports requested besides those of every run.
pub struct CiReports {
    files: CiFiles,
    github: GithubReport,
    collector: Option<OtlpCollector>,
    frontend: Arc<dyn Frontend>,
}

/// Annotations and step summary.
enum GithubReport {
    /// Not requested.
    Unwanted,
    /// Requested, but this is not GitHub Actions.
    Elsewhere,
    /// They are written; the summary only if GitHub names a file for it.
    NeededRoles { summary: Option<PathBuf> },
}

impl GithubReport {
    fn of(environment: &Environment) -> Self {
        let variables = &environment.variables;
        if variables.get("GITHUB_ACTIONS").is_none_or(|value| value != "true") {
            return Self::Elsewhere;
        }
        let summary = variables.get("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
        Self::NeededRoles { summary: summary.map(PathBuf::from) }
    }
}

/// Fails if one kind of report is requested twice.
pub fn check_once(requests: &[ReportRequest]) -> Result<(), AppError> {
    match ReportRequest::repeated(requests) {
        None => Ok(()),
        Some(kind) => Err(AppError::usage(anyhow!("--report names `{kind}` twice"))
            .hint(Some("a run writes one report of each kind"))),
    }
}

impl CiReports {
    /// Opens all of them, so that a file that cannot be written fails before any model call.
    pub fn open(project: &Project, resolved: &ResolvedConfig) -> Result<Self, AppError> {
        let requests = project.report_requests(resolved);
        let files = CiFiles::open(&requests)
            .map_err(|error| AppError::setup(anyhow!("{error}")).hint(Some(error.hint())))?;
        let github = if requests.contains(&ReportRequest::Github) {
            GithubReport::of(&project.environment)
        } else {
            GithubReport::Unwanted
        };
        let endpoint = requests.iter().find_map(|request| match request {
            ReportRequest::Otlp(endpoint) => Some(endpoint),
            ReportRequest::File(..) | ReportRequest::Github => None,
        });
        let collector = endpoint.map(|at| OtlpCollector::new(at, project)).transpose()?;
        Ok(Self { files, github, collector, frontend: Arc::clone(project.frontend()) })
    }

    /// Returns true if any report is requested.
    pub fn are_wanted(&self) -> bool {
        let github = !matches!(self.github, GithubReport::Unwanted);
        github || self.collector.is_some() || !self.files.is_empty()
    }

    /// Writes all of them; the faults are of those that could not be written. A collector comes
    /// last: it may be slow, and is no fault.
    pub async fn write(
        &self,
        document: &ReportDocument,
        sources: &CaseSources,
        json: &Path,
    ) -> Vec<String> {
        let mut faults = self.files.write(document, sources, Some(json));
        match &self.github {
            GithubReport::Unwanted => {}
            GithubReport::Elsewhere => {
                self.frontend.notify(
                    "note: no annotations: GITHUB_ACTIONS is not `true`, so this is not GitHub\n",
                );
            }
            GithubReport::NeededRoles { summary } => {
                // GitHub reads both streams; stdout may hold the JSON report and nothing else.
                self.frontend.command(&github::annotations(document, sources));
                let written = summary.as_ref().map(|path| {
                    append(path, &github::step_summary(document, sources)).map_err(|cause| {
                        let path = path.display();
                        format!("cannot write the step summary to {path}: {cause}")
                    })
                });
                faults.extend(written.and_then(Result::err));
            }
        }
        if let Some(collector) = &self.collector {
            collector.tell(document).await;
        }
        faults
    }
}

/// Appends to a file that other steps of the job write to as well.
fn append(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}

/// Returns the locations of the cases: in the suite, else in the configuration.
pub fn case_sources(
    project: &Project,
    resolved: &ResolvedConfig,
    suite: Option<&SuiteRun>,
) -> CaseSources {
    let root = project.environment.variables.get("GITHUB_WORKSPACE").map(Path::new);
    match suite {
        Some(suite) if suite.replayed => CaseSources::default(),
        Some(suite) => {
            let path = project.shown_path(Path::new(&suite.path));
            if path.is_file() {
                CaseSources::new(from_root(&path, root), suite::case_lines(&path))
            } else {
                // A folder of skills has a file for each of them, and none that stands for all.
                CaseSources::default()
            }
        }
        None => match &resolved.path {
            Some(path) => CaseSources::new(from_root(path, root), scenario_lines(resolved)),
            None => CaseSources::default(),
        },
    }
}

/// The lines of the scenarios in the configuration.
fn scenario_lines(resolved: &ResolvedConfig) -> BTreeMap<String, u32> {
    let scenarios = resolved.config.scenarios.iter().enumerate();
    let line = |(at, scenario): (usize, &selftest_checks::scenario::Scenario)| {
        let ValueOrigin::File { line } = resolved.origins.get(&format!("/scenarios/{at}/id"))?
        else {
            return None;
        };
        Some((scenario.id.clone(), u32::try_from(*line).ok()?))
    };
    scenarios.filter_map(line).collect()
}

/// Returns a path relative to the root of the repository, as GitHub expects it.
fn from_root(path: &Path, root: Option<&Path>) -> String {
    let real = path.canonicalize().ok();
    let root = root.and_then(|root| root.canonicalize().ok());
    let inside =
        real.zip(root).and_then(|(real, root)| Some(real.strip_prefix(root).ok()?.to_owned()));
    inside.as_deref().unwrap_or(path).display().to_string()
}
