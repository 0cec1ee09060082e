//! A run as the user names it: by its id, its JSON report, or `latest`.

use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::error::AppError;
use crate::project::Project;
use selftest_config::ResolvedConfig;
use selftest_harness::event::RunModels;
use selftest_reports::document::ReportDocument;
use selftest_reports::{RunArchive, RunFile, read_report};
use selftest_text::one_line;

/// The newest report.
pub const LATEST: &str = "latest";

/// The run that started last. Beside the reports there may be other JSON files with such a name.
fn latest<'a>(runs: &RunArchive, files: &'a [RunFile]) -> Option<&'a RunFile> {
    files.iter().find(|file| runs.entry(file).is_some())
}

/// The differences from the models of the last run, one line each: scores of two judges say
/// little about what changed between the runs.
pub(crate) fn changed_models(
    project: &Project,
    resolved: &ResolvedConfig,
    models: &RunModels,
) -> Vec<String> {
    let runs = RunArchive::new(project.report_folders(resolved).0);
    let files = runs.files().unwrap_or_default();
    let last = latest(&runs, &files).and_then(|file| runs.entry(file));
    let Some(last) = last else { return Vec::new() };
    let generators = (last.generator.as_ref(), models.generator.as_ref());
    let roles = [
        ("judge", Some(&last.judge), Some(&models.judge)),
        ("generator", generators.0, generators.1),
    ];
    let changed = roles.into_iter().filter_map(|(role, then, now)| {
        let (then, now) = then.zip(now).filter(|(then, now)| then != now)?;
        let (then, now) = (one_line(then, 120), one_line(now, 120));
        Some(format!("the {role} is {now} now, and was {then} in the last run"))
    });
    changed.collect()
}

/// The report of the run.
pub fn find_report(
    project: &Project,
    resolved: &ResolvedConfig,
    named: &str,
) -> Result<ReportDocument, AppError> {
    find_report_file(project, resolved, named).map(|(report, _)| report)
}

/// The report of the run, and its file.
pub fn find_report_file(
    project: &Project,
    resolved: &ResolvedConfig,
    named: &str,
) -> Result<(ReportDocument, PathBuf), AppError> {
    let (folder, _) = project.report_folders(resolved);
    let runs = RunArchive::new(folder);
    let unreadable = |what: String, error: &dyn std::fmt::Display| {
        AppError::usage(anyhow!("cannot read {what}: {error}"))
    };
    let files = runs.files();
    let files = files.map_err(|error| unreadable(runs.folder().display().to_string(), &error))?;
    let found = match named {
        LATEST => latest(&runs, &files),
        id => files.iter().find(|file| file.run_id.as_str() == id),
    };
    if let Some(file) = found {
        return runs
            .read(file)
            .map(|report| (report, file.path().to_owned()))
            .map_err(|error| unreadable(format!("the report of {}", file.run_id), &error));
    }
    // Ids come first: a file in the current folder with the name of a run must not shadow its
    // report.
    let path = project.path(Path::new(named));
    if named != LATEST && path.exists() {
        return read_report(&path).map(|report| (report, path.clone())).map_err(|error| {
            unreadable(named.to_owned(), &error).hint(Some(
                "expected the JSON report of a run, such as reports/selftest/<run id>.json",
            ))
        });
    }
    let (named, folder) = (one_line(named, 200), runs.folder().display());
    Err(AppError::usage(anyhow!(
        "there is no run `{named}`: neither in {folder}, nor is it a file"
    ))
    .hint(Some("name an id from docs/reports/selftest/index.md, a JSON report, or `latest`")))
}

/// An arm of an experiment had a skill or not, and says nothing without the other one.
pub fn refuse_arm(report: &ReportDocument) -> Result<(), AppError> {
    let Some(experiment) = &report.experiment else { return Ok(()) };
    let skill = selftest_text::one_line(&experiment.skill, 100);
    let error = anyhow!("{} is an arm of an experiment with the skill {skill}", report.run_id);
    Err(AppError::usage(error)
        .hint(Some("run both arms again: `selftest improve skills experiment SKILL --suite FILE`")))
}
