//! `selftest run --ci`: a run with the defaults of CI, whichever CI it is.
//!
//! Runs are conducted by `run`; only the differences in CI stand here.

use crate::show::show_run;
use std::fmt::Write as _;
use std::fs;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use anyhow::anyhow;
use selftest_app::{AppError, Project, SelfTest};
use selftest_config::{Environment, FlagValue, ResolvedConfig, ValueOrigin};
use selftest_harness::gate::GateMode;
use selftest_reports::comment::render;
use selftest_reports::document::ReportDocument;
use selftest_text::file;
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::commands::run::RunCommand;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{Terminal, eprint};

/// Folder of the reports, in the folder of the JSON reports.
const FOLDER: &str = "ci";

/// Key of the comment unless one is given.
const DEFAULT_KEY: &str = "main";

/// A service that runs builds, known by a variable that it sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    GitHub,
    GitLab,
    Jenkins,
    Buildkite,
    Other,
}

impl Service {
    fn of(environment: &Environment) -> Self {
        let has = |name: &str| {
            environment
                .variables
                .get(name)
                .is_some_and(|value| !value.is_empty() && value != "false")
        };
        // Buildkite and Jenkins may run beside variables that a build set for other tools.
        if has("GITHUB_ACTIONS") {
            Self::GitHub
        } else if has("GITLAB_CI") {
            Self::GitLab
        } else if has("BUILDKITE") {
            Self::Buildkite
        } else if has("JENKINS_URL") {
            Self::Jenkins
        } else {
            Self::Other
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::GitHub => "GitHub Actions",
            Self::GitLab => "GitLab CI",
            Self::Jenkins => "Jenkins",
            Self::Buildkite => "Buildkite",
            Self::Other => "unknown CI system",
        }
    }
}

pub(super) async fn execute(args: &RunCommand, global: &GlobalArgs) -> Result<Exit, AppError> {
    // Logs are read later and in a browser: lines, and no colour.
    ui::print_build_log();
    let terminal = Terminal { ci: true, no_color: true, ..Terminal::new(global, args.run.quiet) };
    let mut project = ui::open_with(global, terminal)?;
    project.environment.ci = true;
    project.environment.no_color = true;
    let mut flags = Vec::new();
    let settings = args.run.settings();
    let resolved = project.load(settings.flags())?;
    let (gate, why) = gate(&project, &resolved);
    flags.push(FlagValue {
        pointer: "/gate".to_owned(),
        flag: "--ci".to_owned(),
        value: json!(gate),
    });
    let service = Service::of(&project.environment);
    let folder = match &args.output {
        Some(folder) => project.path(folder),
        None => project.report_folders(&resolved).0.join(FOLDER),
    };
    // Fail before models are paid if the reports cannot be written.
    fs::create_dir_all(&folder).map_err(|error| unwritten(&folder, &error))?;
    flags.extend(reports(&resolved, &folder, service)?);
    eprint(&format!("{}; gate {gate}: {why}\n", service.name()));
    let environment = &project.environment;
    let builder = SelfTest::builder(&project).settings(settings).flags(flags);
    let ended = match &args.run.resume {
        Some(named) => Box::pin(super::resume(&args.run, named, &project, terminal)).await,
        None => match Box::pin(builder.run()).await {
            Ok(Some(run)) => {
                show_run(&run, &args.run, terminal, false).map(|exit| (exit, Some(run)))
            }
            Ok(None) => Ok((Exit::NothingRan, None)),
            Err(error) => Err(error),
        },
    };
    let (exit, run) = match ended {
        Ok(ended) => ended,
        Err(error) => {
            // The error counts more than a file that cannot be written.
            let _ = outputs(service, environment, Outputs::without_run("error"));
            return Err(error);
        }
    };
    let Some(run) = run else {
        outputs(service, environment, Outputs::without_run("nothing_ran"))?;
        return Ok(exit);
    };
    let report = run.report()?;
    let written = write_comment(&project, &report, args, &folder);
    // Written also if the comment could not be.
    outputs(service, environment, Outputs::of(&report, &folder))?;
    written.map(|()| exit)
}

/// Returns flags for the reports that CI reads, except those requested under another name.
fn reports(
    resolved: &ResolvedConfig,
    folder: &Path,
    service: Service,
) -> Result<Vec<FlagValue>, AppError> {
    // Paths of the configuration are within the project.
    let folder = std::path::absolute(folder)
        .map_err(|error| AppError::setup(anyhow!("{}: {error}", folder.display())))?;
    let asked = resolved.config.reports.requests();
    let is_asked = |kind: &str| asked.iter().any(|request| request.kind() == kind);
    let wanted = |kind: &str, value: Value| FlagValue {
        pointer: format!("/reports/{kind}"),
        flag: "--ci".to_owned(),
        value,
    };
    let files = [
        ("junit", "junit.xml"),
        ("html", "report.html"),
        ("json", "report.json"),
        ("md", "report.md"),
    ];
    let files = files.into_iter().filter(|(kind, _)| !is_asked(kind));
    let mut flags: Vec<FlagValue> =
        files.map(|(kind, name)| wanted(kind, json!(folder.join(name)))).collect();
    if service == Service::GitHub && !is_asked("github") {
        flags.push(wanted("github", json!(true)));
    }
    Ok(flags)
}

/// Returns the gate and its origin: the configured one, else that of the baseline if it exists.
fn gate(project: &Project, resolved: &ResolvedConfig) -> (GateMode, String) {
    let gate = resolved.config.gate;
    let origin = resolved.origins.get("/gate").unwrap_or(&ValueOrigin::Default);
    // A gate that the project chose stays, and is named with where it comes from.
    if *origin != ValueOrigin::Default {
        return (gate, origin.to_string());
    }
    let path = project.baseline_file(resolved);
    let shown = selftest_text::escape::terminal(&path.display().to_string(), 300);
    if path.exists() {
        (GateMode::NoRegression, format!("baseline {shown}"))
    } else {
        let why = format!("no baseline {shown}; `selftest baseline accept` writes one");
        (GateMode::Absolute, why)
    }
}

/// Writes the comment beside the reports, for jobs that collect them.
fn write_comment(
    project: &Project,
    report: &ReportDocument,
    args: &RunCommand,
    folder: &Path,
) -> Result<(), AppError> {
    let text = render(
        report,
        args.key.as_deref().unwrap_or(DEFAULT_KEY),
        project.environment.github_run_url().as_deref(),
    );
    let path = folder.join("comment.md");
    file::replace(&path, report.run_id.as_str(), &text)
        .map_err(|error| unwritten(&path, &error))?;
    eprint(&format!("reports for CI: {}\n", folder.display()));
    Ok(())
}

fn unwritten(path: &Path, error: &std::io::Error) -> AppError {
    AppError::setup(anyhow!("cannot write {}: {error}", path.display()))
        .hint(Some("name a folder that can be written with --output DIR"))
}

/// Outputs for later steps of a job, by name.
struct Outputs(Vec<(&'static str, String)>);

impl Outputs {
    fn of(report: &ReportDocument, folder: &Path) -> Self {
        let rate = report.summary.pass_rate.map(|rate| format!("{rate:.4}"));
        let outcome: &str = report.outcome.map_or("unfinished", Into::into);
        Self(vec![
            ("pass-rate", rate.unwrap_or_default()),
            ("outcome", outcome.to_owned()),
            ("run-id", report.run_id.to_string()),
            ("reports", folder.display().to_string()),
        ])
    }

    fn without_run(outcome: &str) -> Self {
        Self(vec![("pass-rate", String::new()), ("outcome", outcome.to_owned())])
    }
}

/// Passes outputs to later steps of a job, if the service supports that.
fn outputs(service: Service, environment: &Environment, told: Outputs) -> Result<(), AppError> {
    let path = environment.variables.get("GITHUB_OUTPUT").filter(|path| !path.is_empty());
    let Some(path) = path.filter(|_| service == Service::GitHub) else { return Ok(()) };
    let mut text = String::new();
    for (name, value) in told.0 {
        // One line per name: a line break in a value would start another.
        let _ = writeln!(text, "{name}={}", selftest_text::one_line(&value, 1_000));
    }
    let written = OpenOptions::new()
        // Other programs of the step may have written to it.
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| AppError::setup(anyhow!("GITHUB_OUTPUT {path}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(pairs: &[(&str, &str)]) -> Service {
        let pairs = pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Service::of(&Environment::from_variables(pairs.collect()))
    }

    #[test]
    fn services_are_known_by_their_variables() {
        assert_eq!(service(&[("CI", "true"), ("GITHUB_ACTIONS", "true")]), Service::GitHub);
        assert_eq!(service(&[("GITLAB_CI", "true")]), Service::GitLab);
        assert_eq!(service(&[("JENKINS_URL", "http://j/"), ("CI", "1")]), Service::Jenkins);
        assert_eq!(service(&[("BUILDKITE", "true")]), Service::Buildkite);
        assert_eq!(service(&[("GITHUB_ACTIONS", "false")]), Service::Other);
        assert_eq!(service(&[("CI", "true")]), Service::Other);
    }
}
