//! Merges the reports of shards into the report of one run, with one gate.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;

use super::judging::judge_calibration;
use crate::baseline::{gate_of_header, read_baseline};
use crate::ci_reports::{CiReports, check_once};
use crate::error::AppError;
use crate::find_run::find_report_file;
use crate::options::RunSettings;
use crate::project::Project;
use crate::run::{FinishedRun, report_files};
use selftest_config::ResolvedConfig;
use selftest_harness::calibration::{CalibratedJudge, JudgeCalibration};
use selftest_harness::event::{RunEventKind, RunHeader};
use selftest_harness::gate::BaselineGate;
use selftest_harness::gate::finding::GateFinding;
use selftest_harness::outcome::{CaseResult, absolute_outcome};
use selftest_harness::run::execute::RunResults;
use selftest_harness::sut::namespace::{RunId, TaskGroupId};
use selftest_reports::ci::ReportRequest;
use selftest_reports::merge::{MergedRun, ShardReport, merge};
use selftest_text::wording::plural;

/// Merges the shards with these names: run ids or JSON reports. Writes the reports of a run of its
/// own, and those that are requested.
pub async fn merge_shards(
    project: &Project,
    named: &[String],
    reports: &[ReportRequest],
) -> Result<FinishedRun, AppError> {
    check_once(reports)?;
    let settings = RunSettings { report: reports.to_vec(), ..RunSettings::default() };
    let mut resolved = project.load(settings.flags())?;
    if !reports.is_empty() {
        resolved.config.reports.set_requests(reports);
    }
    let shards = named
        .iter()
        .map(|name| {
            let (document, file) = find_report_file(project, &resolved, name)?;
            Ok(ShardReport { file: file.display().to_string(), document })
        })
        .collect::<Result<Vec<_>, AppError>>()?;
    let merged = merge(&shards)
        .map_err(|error| AppError::usage(anyhow!("{error}")).hint(Some(error.hint())))?;
    // Every shard has the same gate.
    let former = shards.iter().find_map(|shard| shard.document.gate.as_ref());
    let gate = former.map(|gate| open_gate(project, &resolved, gate, &merged)).transpose()?;
    let MergedRun { header, cases, summary, ending, ended_at, changed_files, anchors } = merged;
    // From the first start to the last end, since shards run side by side; clocks of machines may
    // disagree, which gives 0.
    let took = Duration::try_from(ended_at.duration_since(header.started_at)).unwrap_or_default();
    let now = selftest_clock::now();
    let mut remarks = header.remarks.clone();
    remarks.push(format!(
        "merged from {} that ran from {:.0} to {ended_at:.0}",
        plural(shards.len() as u64, "shard"),
        header.started_at
    ));
    let header = RunHeader {
        // `latest` is the run that started last, and the shards may be in the same folder.
        started_at: now,
        remarks,
        run_id: RunId::fresh(now),
        task_group_id: TaskGroupId::fresh(now),
        // Labels may be newer than the shards, and their files are on this machine.
        calibration: calibration(project, &resolved, &header),
        ..header
    };
    let files = report_files(project, &resolved, &header.run_id, false)?;
    let ci_reports = CiReports::open(project, &resolved)?;
    let cases: Vec<Arc<CaseResult>> = cases.into_iter().map(Arc::new).collect();
    let finding = former.zip(gate).map(|(former, gate)| {
        let finding = gate.finding(cases.iter().map(|case| &**case), &anchors);
        // Which cases exist beyond those that were planned is known to the shards alone.
        Arc::new(GateFinding { removed: former.removed.clone(), ..finding })
    });
    let outcome = match &finding {
        Some(finding) => finding.outcome(&summary, ending),
        None => absolute_outcome(&summary, ending),
    };
    let end = RunEventKind::RunFinished {
        summary: summary.clone(),
        outcome,
        at: now,
        changed_files,
        gate: finding.clone(),
    };
    let results = RunResults { cases, summary, outcome, gate: finding };
    let mut run = FinishedRun::of_results(Arc::new(header), results, files, (took, end));
    run.report_to_ci(project, &resolved, &ci_reports).await;
    Ok(run)
}

/// Returns the gate of the shards over all cases. Its baseline has to be the one that they were
/// compared with.
fn open_gate(
    project: &Project,
    resolved: &ResolvedConfig,
    former: &GateFinding,
    merged: &MergedRun,
) -> Result<BaselineGate, AppError> {
    let path = project.baseline_file(resolved);
    let expected = &former.baseline_run_id;
    let hint = "merge in a checkout with the baseline of the shards";
    let Some(baseline) = read_baseline(&path)? else {
        let error = anyhow!(
            "{}: the baseline of {expected}, with which the shards were compared, is missing",
            path.display()
        );
        return Err(AppError::usage(error).hint(Some(hint)));
    };
    if baseline.run_id != *expected {
        let error = anyhow!(
            "{}: it is the baseline of {}, and the shards were compared with that of {expected}",
            path.display(),
            selftest_text::one_line(&baseline.run_id, 100)
        );
        return Err(AppError::usage(error).hint(Some(hint)));
    }
    let gate =
        gate_of_header(former.mode, resolved.config.confirm, baseline, &path, &merged.header);
    Ok(gate.of_finished_run())
}

/// Returns what labels say of the judge.
fn calibration(
    project: &Project,
    resolved: &ResolvedConfig,
    header: &RunHeader,
) -> JudgeCalibration {
    let Some(weights) = header.models.judge_weights.clone() else { return JudgeCalibration::None };
    let judge = CalibratedJudge::new(
        &header.models.judge,
        Some(&weights),
        header.models.judge_method,
        &header.prompt_digests,
        &header.rubric.digest,
    );
    judge_calibration(project, resolved, &judge)
}
