//! The gate of a run, from its settings and the file of the baseline.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::error::AppError;
use crate::project::Project;
use crate::suite_file::SuiteFile;
use selftest_config::ResolvedConfig;
use selftest_harness::event::RunHeader;
use selftest_harness::gate::anchors::{AnchorSet, anchors_file};
use selftest_harness::gate::baseline::Baseline;
use selftest_harness::gate::{BaselineGate, GateMode, RunGate};
use selftest_harness::run::plan::{PlannedCase, ScenarioDefaults, plan_stored};
use selftest_text::file::read_bounded_text;

/// Maximum size of a baseline in bytes: far more than ten thousand cases need.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

const ACCEPT: &str = "`selftest baseline accept` writes one from the last run; commit it";

/// A baseline and its file.
pub(crate) struct OpenedBaseline {
    baseline: Baseline,
    path: PathBuf,
}

/// Opens the baseline if the gate needs one, before any model is called.
pub(crate) fn open_baseline(
    project: &Project,
    resolved: &ResolvedConfig,
) -> Result<Option<OpenedBaseline>, AppError> {
    if !resolved.config.gate.needs_baseline() {
        return Ok(None);
    }
    let path = project.baseline_file(resolved);
    let baseline = read_baseline(&path)?.ok_or_else(|| {
        let (gate, path) = (resolved.config.gate, path.display());
        let error = anyhow!("gate {gate} needs a baseline, and {path} is missing");
        AppError::usage(error).hint(Some(ACCEPT))
    })?;
    Ok(Some(OpenedBaseline { baseline, path }))
}

/// Reads a baseline. Returns `None` if the file is missing.
pub fn read_baseline(path: &Path) -> Result<Option<Baseline>, AppError> {
    let Some(text) = read_bounded(path)? else { return Ok(None) };
    let baseline = Baseline::read(&text).map_err(|error| {
        AppError::usage(anyhow!("{}: {error}", path.display()))
            .hint(Some("accept a new one with `selftest baseline accept`"))
    })?;
    Ok(Some(baseline))
}

/// Reads a file of limited size. Returns `None` if it is missing.
fn read_bounded(path: &Path) -> Result<Option<String>, AppError> {
    let shown = path.display();
    let unreadable = |why: &dyn std::fmt::Display| AppError::usage(anyhow!("{shown}: {why}"));
    match read_bounded_text(path, MAX_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => text.map(Some).map_err(|error| unreadable(&error)),
    }
}

/// Reads the anchors of a baseline, planned to be judged again. Returns none if there is no such
/// file or if it belongs to another baseline.
pub(crate) fn plan_anchors(
    project: &Project,
    opened: Option<&OpenedBaseline>,
    defaults: ScenarioDefaults,
) -> Result<Vec<PlannedCase>, AppError> {
    let Some(OpenedBaseline { baseline, path }) = opened else { return Ok(Vec::new()) };
    let path = anchors_file(path);
    let Some(text) = read_bounded(&path)? else { return Ok(Vec::new()) };
    let anchors = AnchorSet::read(&text).map_err(|error| {
        AppError::usage(anyhow!("{}: {error}", path.display())).hint(Some(ACCEPT))
    })?;
    // Scores of other answers would be taken for a change of the judge.
    if anchors.run_id != baseline.run_id {
        project.notify(&format!(
            "warning: {}: it belongs to another baseline, so that the judge is not measured\n\
             hint: accept both again with `selftest baseline accept`\n",
            path.display()
        ));
        return Ok(Vec::new());
    }
    Ok(plan_stored(anchors.cases, defaults))
}

/// Returns the ids of all existing cases, whether selected or not; `None` if only some are known.
pub(crate) fn existing_cases(
    resolved: &ResolvedConfig,
    suite: Option<&SuiteFile>,
) -> Option<BTreeSet<String>> {
    match suite {
        // A replay has the cases of a report, which may be a part of their suite.
        Some(suite) if suite.replays() => None,
        Some(suite) => {
            Some(suite.suite.cases.iter().map(|case| case.scenario.id.clone()).collect())
        }
        None => Some(resolved.config.scenarios.iter().map(|one| one.id.clone()).collect()),
    }
}

/// Returns the gate for the cases and the judge of a header.
pub(crate) fn gate_of_header(
    mode: GateMode,
    confirm: u32,
    baseline: Baseline,
    path: &Path,
    header: &RunHeader,
) -> BaselineGate {
    // A shard is gated as strictly as the whole run.
    let planned = header.shard.as_ref().map_or(&header.scenario_ids, |shard| &shard.scenarios);
    BaselineGate {
        mode,
        path: path.display().to_string(),
        baseline,
        judge: header.models.judge_identity(&header.prompt_digests, &header.rubric.digest),
        planned: planned.iter().cloned().collect(),
        existing: None,
        confirm,
        is_over: false,
    }
}

/// Returns the gate of a run. Warns before the first case about what cannot be compared.
pub(crate) fn run_gate(
    project: &Project,
    resolved: &ResolvedConfig,
    opened: Option<OpenedBaseline>,
    header: &RunHeader,
    existing: Option<BTreeSet<String>>,
) -> RunGate {
    let Some(OpenedBaseline { baseline, path }) = opened else { return RunGate::Absolute };
    let (mode, confirm) = (resolved.config.gate, resolved.config.confirm);
    let gate = BaselineGate { existing, ..gate_of_header(mode, confirm, baseline, &path, header) };
    if let Some(why) = gate.judge_difference() {
        let path = selftest_text::escape::terminal(&gate.path, 300);
        let why = selftest_text::escape::terminal(&why, 300);
        project.notify(&format!(
            "warning: {path}: {why}; what a judge decides is not compared\nhint: accept a new \
             baseline with `selftest baseline accept`\n"
        ));
    }
    RunGate::Baseline(Box::new(gate))
}
