//! `get_selftest_report`: a summary of one self-test run and its cases.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{
    QuoteLimit, ToolError, UntrustedText, clip_name, fit, fits, quote_for_message,
    truncation_remarks,
};
use selftest_checks::scenario::TaskStatus;
use selftest_harness::experiment::Arm;
use selftest_harness::outcome::{CaseStatus, RunOutcome};
use selftest_reports::document::{CaseDocument, CaseScores, ReportDocument};
use selftest_reports::{RunArchive, RunFile};
use selftest_stats::Interval;
use selftest_stats::score::{Score, Threshold};

/// Maximum number of cases per result.
const MAX_CASES: usize = 200;
/// Maximum number of warnings and of changed files per result.
const MAX_LISTED: usize = 10;
/// Maximum number of runs listed in an error.
const MAX_IDS: usize = 5;

/// Arguments of `get_selftest_report`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportArguments {
    /// Id of the run, such as selftest-20260206-1234-abc123. Default: the newest run.
    run_id: Option<String>,
}

/// Summary of one run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunReport {
    /// Id of the run.
    run_id: String,
    /// Start time.
    #[schemars(with = "String", extend("format" = "date-time"))]
    started_at: Timestamp,
    /// True if the run has finished.
    complete: bool,
    /// Result; null until the run has finished.
    outcome: Option<RunOutcome>,
    /// Experiment that the run is an arm of: the value of a skill only shows in comparison with the
    /// other arm's run. Null for other runs.
    experiment: Option<RunExperiment>,
    /// The system under test and the models.
    system_under_test: UntrustedText,
    /// Model of the judge.
    judge: String,
    /// Minimum overall score to pass.
    threshold: Threshold,
    /// Minimum safety score to pass, regardless of the overall score.
    safety_floor: Score,
    /// Number of finished cases.
    cases_total: u32,
    /// Number of passed cases.
    passed: u32,
    /// Number of failed cases.
    failed: u32,
    /// Number of cases without a verdict: neither passed nor failed.
    unscored: u32,
    /// passed / (passed + failed); null if both are 0.
    pass_rate: Option<f64>,
    /// 95 % interval of the pass rate.
    pass_rate_interval: Option<Interval>,
    /// Cases that did not pass come first.
    cases: Vec<RunCase>,
    /// Warnings about the run.
    warnings: Vec<UntrustedText>,
    /// Files of the project that changed during the run.
    changed_files: Vec<UntrustedText>,
    /// Omitted parts, and the file that contains them.
    remarks: Vec<String>,
}

/// The experiment that a run is an arm of.
#[derive(Debug, Serialize, JsonSchema)]
struct RunExperiment {
    /// `treatment` had the skill, `control` did not.
    arm: Arm,
    /// Run id of the other arm.
    other_run_id: String,
    /// The tested skill.
    skill: UntrustedText,
}

/// Summary of one case.
#[derive(Debug, Serialize, JsonSchema)]
struct RunCase {
    /// Id of the scenario, with its number if the case is repeated.
    id: String,
    /// Status of the case.
    status: CaseStatus,
    /// Null without a verdict.
    pass: Option<bool>,
    /// Reason, unless passed.
    reason: Option<UntrustedText>,
    /// Scores by category and overall; null without a verdict.
    scores: CaseScores,
    /// Expected status of the task after the first answer.
    expected_status: TaskStatus,
    /// Actual status of the task.
    actual_status: Option<TaskStatus>,
    /// Wall time.
    duration_ms: u64,
}

/// Runs the tool. Blocks on file I/O.
pub(super) fn show(runs: &RunArchive, arguments: &ReportArguments) -> Result<RunReport, ToolError> {
    let unreadable = |what: &str, error: &std::io::Error| {
        ToolError(format!("cannot read {what} in {}: {error}", runs.folder().display()))
    };
    let files = runs.files().map_err(|error| unreadable("the reports", &error))?;
    let file = choose_run(runs, &files, arguments.run_id.as_deref())?;
    let report = runs.read(file).map_err(|error| unreadable(file.run_id.as_str(), &error))?;
    Ok(answer(runs, &report))
}

fn choose_run<'f>(
    runs: &RunArchive,
    files: &'f [RunFile],
    wanted: Option<&str>,
) -> Result<&'f RunFile, ToolError> {
    // The folder may contain other JSON files with such a name.
    let mut reports = files.iter().filter(|file| runs.entry(file).is_some());
    let Some(wanted) = wanted else {
        return reports.next().ok_or_else(|| no_reports(runs));
    };
    // Compared with the names of existing files, so that an id from an agent never becomes part of
    // a path.
    if let Some(file) = files.iter().find(|file| file.run_id.as_str() == wanted) {
        return Ok(file);
    }
    let ids: Vec<&str> = reports.take(MAX_IDS).map(|file| file.run_id.as_str()).collect();
    if ids.is_empty() {
        return Err(no_reports(runs));
    }
    Err(ToolError(format!(
        "no run has the id {}; the newest runs are {}; leave run_id out for the newest",
        quote_for_message(wanted),
        ids.join(", ")
    )))
}

fn no_reports(runs: &RunArchive) -> ToolError {
    ToolError(format!(
        "there is no report in {} yet: run `selftest` in the project, which tests the configured \
         system and writes one",
        runs.folder().display()
    ))
}

fn answer(runs: &RunArchive, report: &ReportDocument) -> RunReport {
    let mut shown = report.cases.len().min(MAX_CASES);
    loop {
        let answer = fit(|quoting| build_report(runs, report, shown, quoting));
        if shown == 0 || fits(&answer) {
            return answer;
        }
        // Even with the shortest quotes the cases are too many.
        shown /= 2;
    }
}

fn build_report(
    runs: &RunArchive,
    report: &ReportDocument,
    shown: usize,
    quoting: QuoteLimit,
) -> RunReport {
    let mut cases: Vec<&CaseDocument> = report.cases.iter().collect();
    // Those that passed come last, so that a list that has to be cut loses them first.
    cases.sort_by_key(|case| case.status == CaseStatus::Passed);
    let quoted = |texts: &[String]| {
        texts.iter().take(MAX_LISTED).map(|text| quoting.quote(text)).collect::<Vec<_>>()
    };
    let summary = &report.summary;
    RunReport {
        run_id: report.run_id.as_str().to_owned(),
        started_at: report.timestamp,
        complete: report.complete,
        outcome: report.outcome,
        experiment: report.experiment.as_ref().map(|experiment| RunExperiment {
            arm: experiment.arm,
            other_run_id: clip_name(experiment.other_run_id.as_str()),
            skill: quoting.quote(&experiment.skill),
        }),
        system_under_test: quoting.quote(&report.sut),
        judge: clip_name(&report.models.judge),
        threshold: report.config.effective_threshold,
        safety_floor: report.config.safety_floor,
        cases_total: summary.total,
        passed: summary.passed,
        failed: summary.failed,
        unscored: summary.unscored,
        pass_rate: summary.pass_rate,
        pass_rate_interval: summary.pass_rate_interval,
        cases: cases.iter().take(shown).map(|case| RunCase::of(case, quoting)).collect(),
        warnings: quoted(&report.warnings),
        changed_files: quoted(&report.changed_files),
        remarks: remarks(runs, report, shown),
    }
}

fn remarks(runs: &RunArchive, report: &ReportDocument, shown: usize) -> Vec<String> {
    let mut remarks = truncation_remarks([
        (report.cases.len(), shown, "cases"),
        (report.warnings.len(), MAX_LISTED, "warnings"),
        (report.changed_files.len(), MAX_LISTED, "changed files"),
    ]);
    if !report.complete {
        remarks.push("the run goes on or was killed: more cases may follow".to_owned());
    }
    let file = runs.folder().join(format!("{}.json", report.run_id.as_str()));
    remarks.push(format!(
        "prompts, answers, verdicts with their evidence and raw replies are in {}",
        file.display()
    ));
    remarks
}

impl RunCase {
    fn of(case: &CaseDocument, quoting: QuoteLimit) -> Self {
        Self {
            id: clip_name(&case.name()),
            status: case.status,
            pass: case.pass,
            reason: quoting.quote_optional(case.reason.as_deref()),
            scores: case.scores.clone(),
            expected_status: case.expected_status,
            actual_status: case.actual_status,
            duration_ms: case.duration_ms,
        }
    }
}
