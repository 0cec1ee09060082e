//! Earlier runs: one as the user names it, by its id, its JSON report, or `latest`; and for
//! `--changed` those whose results are kept for cases of which nothing has changed. What makes two
//! cases the same is the harness's to say; here files and reports are found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use serde_json::json;

use crate::error::AppError;
use crate::project::Project;
use selftest_config::ResolvedConfig;
use selftest_harness::event::{RunHeader, RunModels};
use selftest_harness::outcome::CaseResult;
use selftest_harness::run::cache_key::CacheScope;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::sut::identity;
use selftest_harness::sut::identity::IdentityError;
use selftest_reports::document::ReportDocument;
use selftest_reports::{ReusedResults, RunArchive, RunEntry, RunFile, read_report};
use selftest_text::escape::terminal;
use selftest_text::one_line;
use selftest_text::wording::plural;

/// The newest report.
pub const LATEST: &str = "latest";

/// The report before the newest, if there is one of the same suite.
const PREVIOUS: &str = "previous";

/// The runs, the one that started last first, by a clock that was not ahead if there is one. Beside
/// the reports there may be other JSON files with such a name.
fn newest_first<'a>(
    runs: &RunArchive,
    files: &'a [RunFile],
) -> impl Iterator<Item = (&'a RunFile, RunEntry)> {
    let now = selftest_clock::now();
    let (future, past): (Vec<_>, Vec<_>) =
        files.iter().partition(|file| file.run_id.is_of_the_future(now));
    past.into_iter().chain(future).filter_map(|file| Some((file, runs.entry(file)?)))
}

fn latest<'a>(runs: &RunArchive, files: &'a [RunFile]) -> Option<&'a RunFile> {
    newest_first(runs, files).next().map(|(file, _)| file)
}

fn previous<'a>(runs: &RunArchive, files: &'a [RunFile]) -> Option<&'a RunFile> {
    let mut runs: Vec<_> = newest_first(runs, files).collect();
    let series = runs.first()?.1.series();
    runs.remove(0);
    // The same suite with other options is better than nothing: cases pair by themselves.
    let like = runs.iter().find(|(_, run)| run.series() == series);
    like.or(runs.first()).map(|(file, _)| *file)
}

/// The differences from the models of the last run, one line each: scores of two judges say
/// little about what changed between the runs.
pub(crate) fn changed_models(
    project: &Project,
    resolved: &ResolvedConfig,
    models: &RunModels,
) -> Vec<String> {
    let runs = RunArchive::new(project.report_folders(resolved).0);
    // Only for a remark: a folder that cannot be read leaves it out.
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
        PREVIOUS => previous(&runs, &files),
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
    if ![LATEST, PREVIOUS].contains(&named) && path.exists() {
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
    .hint(Some(
        "name an id from docs/reports/selftest/index.md, a JSON report, `latest`, or `previous`",
    )))
}

/// An arm of an experiment had a skill or not, and says nothing without the other one.
pub fn refuse_arm(report: &ReportDocument) -> Result<(), AppError> {
    let Some(experiment) = &report.experiment else { return Ok(()) };
    let skill = selftest_text::one_line(&experiment.skill, 100);
    let error = anyhow!("{} is an arm of an experiment with the skill {skill}", report.run_id);
    Err(AppError::usage(error)
        .hint(Some("run both arms again: `selftest improve skills experiment SKILL --suite FILE`")))
}

const UNDECLARED: &str = "note: --changed skips nothing: it is unknown whether the system under test \
                          has changed\nhint: name what it is made of in `sut.identity.files`, or set \
                          `sut.identity.version`\n";

/// Returns the digest of the declared identity of the system under test; `None` without one.
pub(crate) fn sut_digest(
    project: &Project,
    resolved: &ResolvedConfig,
) -> Result<Option<String>, AppError> {
    let Some(declared) = &resolved.config.sut.identity else { return Ok(None) };
    identity::digest(declared, &project.folder).map_err(|fault| unreadable(&fault))
}

fn unreadable(fault: &IdentityError) -> AppError {
    AppError::usage(anyhow!("sut.identity.files: {fault}"))
        .hint(Some("name files and folders of the project, or set `sut.identity.version`"))
}

/// Sets the cache key of each case, by which later runs find its result.
pub(crate) fn name_cases(
    resolved: &ResolvedConfig,
    header: &RunHeader,
    (digest, weights): (&str, Option<&str>),
    plan: &mut [PlannedCase],
) -> Result<(), AppError> {
    let config = &resolved.config;
    let mut sut = json!(config.sut);
    // The identity is in the digest already, wherever it is declared.
    sut["identity"].take();
    let scope = CacheScope {
        header,
        judge: json!({ "judge": config.judge, "context_tokens": config.models.context_tokens }),
        sut: json!({ "sut": sut, "context_tokens": config.models.context_tokens }),
        sut_digest: digest,
        sut_weights: weights,
    };
    for planned in plan {
        let id = &planned.scenario.id;
        planned.cache_key = scope.key(planned).map_err(|fault| {
            AppError::usage(anyhow!("the files of case {}: {fault}", terminal(id, 100)))
        })?;
    }
    Ok(())
}

/// Reuses earlier results of unchanged cases and reports how many.
pub(crate) fn keep_unchanged(
    project: &Project,
    resolved: &ResolvedConfig,
    plan: &mut [PlannedCase],
) {
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    for key in plan.iter().filter_map(|planned| planned.cache_key.as_ref()) {
        // Repeats of a case have the same key, and each needs a trial of its own.
        *wanted.entry(key.clone()).or_default() += 1;
    }
    let nameless = plan.iter().filter(|planned| planned.cache_key.is_none()).count();
    let archive = RunArchive::new(project.report_folders(resolved).0);
    let ReusedResults { mut trials, faults } = ReusedResults::find(&archive, &wanted);
    for fault in faults {
        project.notify(&format!("note: --changed skips {}\n", terminal(&fault, 400)));
    }
    let mut kept = 0_u64;
    for planned in plan.iter_mut() {
        let former = planned.cache_key.as_ref().and_then(|key| trials.get_mut(key));
        let Some(former) = former.filter(|former| !former.is_empty()) else { continue };
        let result = CaseResult {
            index: planned.index,
            scenario: planned.scenario.clone(),
            repeat: planned.repeat,
            // Taken out, because each earlier trial stands for one repeat only.
            ..former.remove(0)
        };
        planned.reused_result = Some(Arc::new(result));
        kept += 1;
    }
    let mut words = format!("{kept} of {} unchanged", plural(plan.len() as u64, "case"));
    if nameless > 0 {
        let count = plural(nameless as u64, "case");
        words.push_str(&format!("; {count} with commands, which may read anything, always run"));
    }
    project.notify(&format!("note: {words}\n"));
}

/// Reports that nothing can be skipped, and why.
pub(crate) fn notify_undeclared(project: &Project) {
    project.notify(UNDECLARED);
}
