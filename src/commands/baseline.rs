//! `selftest baseline`: accepted results, written and shown.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Subcommand;
use selftest_app::{AppError, Project, read_baseline};
use selftest_config::ResolvedConfig;
use selftest_harness::gate::anchors::anchors_file;
use selftest_harness::gate::baseline::Baseline;
use selftest_harness::outcome::repeats::RepeatedResult;
use selftest_reports::accept::{AcceptedBaseline, accept};
use selftest_reports::wording::score;
use selftest_text::escape::terminal;
use selftest_text::file;
use selftest_text::wording::plural;

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Actions on the baseline.
#[derive(Debug, Subcommand)]
pub enum BaselineAction {
    /// Write the results of a run to the baseline, and up to ten of its judged answers to
    /// selftest-anchors.json beside it; you commit both, and they replace the previous ones
    Accept {
        /// The run: its id, its JSON report, or `latest`
        #[arg(default_value = "latest")]
        run: String,
        /// Write it here [default: `baseline` of the configuration, else selftest-baseline.json
        /// beside it]
        #[arg(long, value_name = "FILE")]
        baseline: Option<PathBuf>,
    },
    /// Print the baseline
    Show {
        /// Read this file
        #[arg(long, value_name = "FILE")]
        baseline: Option<PathBuf>,
    },
}

/// Columns of an id.
const MAX_ID: usize = 60;

/// Bytes of a list of ids.
const MAX_IDS: usize = 500;

pub(super) fn execute(action: &BaselineAction, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    match action {
        BaselineAction::Accept { run, baseline } => {
            write(&project, &resolved, run, &path(&project, &resolved, baseline.as_deref()))
        }
        BaselineAction::Show { baseline } => {
            let path = path(&project, &resolved, baseline.as_deref());
            let Some(baseline) = read_baseline(&path)? else {
                let error = anyhow!("there is no baseline at {}", path.display());
                return Err(AppError::usage(error)
                    .hint(Some("`selftest baseline accept` writes one from the last run")));
            };
            print(&text(&baseline))?;
            Ok(Exit::Passed)
        }
    }
}

fn path(project: &Project, resolved: &ResolvedConfig, given: Option<&Path>) -> PathBuf {
    given.map_or_else(|| project.baseline_file(resolved), |path| project.shown_path(path))
}

fn write(
    project: &Project,
    resolved: &ResolvedConfig,
    run: &str,
    path: &Path,
) -> Result<Exit, AppError> {
    let report = selftest_app::find_report(project, resolved, run)?;
    let AcceptedBaseline { baseline, anchors, left_out } = accept(&report).map_err(|why| {
        AppError::usage(anyhow!("{} cannot be a baseline: {why}", report.run_id))
            .hint(Some("run the whole suite, and accept that run"))
    })?;
    // What stands there is replaced, but not what is no baseline.
    let before = read_baseline(path)?;
    let (baseline, history) = match &before {
        Some(before) => baseline.with_history_of(before),
        None => (baseline, 0),
    };
    // A project that runs by the defaults has no folder for it yet.
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| file::replace(path, report.run_id.as_str(), &baseline.text()))
        .map_err(|why| AppError::setup(anyhow!("cannot write {}: {why}", path.display())))?;
    print(&format!("{}\n", path.display()))?;
    let beside = anchors_file(path);
    if anchors.cases.is_empty() {
        // The answers of an earlier baseline say nothing about this one.
        file::remove_if_present(&beside)
    } else {
        print(&format!("{}\n", beside.display()))?;
        file::replace(&beside, report.run_id.as_str(), &anchors.text())
    }
    .map_err(|why| AppError::setup(anyhow!("cannot write {}: {why}", beside.display())))?;
    let count = plural(baseline.cases.len() as u64, "case");
    eprint(&format!("{count} of {} accepted: {}\n", report.run_id, results(&baseline)));
    if history > 0 {
        eprint(&format!(
            "{} of the baseline before count as well when the gate weighs how often the agent \
             fails\n",
            plural(u64::from(history), "trial")
        ));
    }
    if !left_out.is_empty() {
        eprint(&format!("left out, since they have no result: {}\n", ids(&left_out)));
    }
    let now: BTreeSet<&String> = baseline.cases.iter().map(|case| &case.id).collect();
    let gone = before.iter().flat_map(|before| &before.cases).map(|case| &case.id);
    let gone: Vec<String> = gone.filter(|id| !now.contains(id)).cloned().collect();
    if !gone.is_empty() {
        eprint(&format!("warning: no longer in it: {}\n", ids(&gone)));
    }
    Ok(Exit::Passed)
}

fn ids(ids: &[String]) -> String {
    terminal(&ids.join(", "), MAX_IDS)
}

/// Counts cases by result.
fn results(baseline: &Baseline) -> String {
    let all = [
        RepeatedResult::Passed,
        RepeatedResult::Failed,
        RepeatedResult::Flaky,
        RepeatedResult::Unscored,
    ];
    let count = |result| baseline.cases.iter().filter(|case| case.result == result).count();
    let counts = all.into_iter().map(|result| (count(result), result.label().to_lowercase()));
    let words =
        counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    words.collect::<Vec<_>>().join(", ")
}

/// The baseline for people.
fn text(baseline: &Baseline) -> String {
    let judge = match &baseline.judge {
        Some(judge) => terminal(&judge.model, 200),
        None => "none: checks alone decided".to_owned(),
    };
    let width = baseline.cases.iter().map(|case| case.id.chars().count()).max().unwrap_or(0);
    let width = width.clamp(4, MAX_ID);
    let mut lines = vec![
        format!("run: {}", terminal(&baseline.run_id, 100)),
        format!("judge: {judge}"),
        format!("cases: {}", results(baseline)),
        String::new(),
        format!("{:<width$}  {:<8}  Trials  Score", "Case", "Result"),
    ];
    lines.extend(baseline.cases.iter().map(|case| {
        let trials = format!("{}/{}", case.passed, case.trials);
        let (id, result) = (terminal(&case.id, MAX_ID), case.result.label());
        format!("{id:<width$}  {result:<8}  {trials:>6}  {:>5}", score(case.score))
    }));
    lines.push(String::new());
    lines.join("\n")
}
