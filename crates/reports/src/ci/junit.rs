//! A run as JUnit XML, for every CI system that displays test results.
//!
//! Only what is known to be wrong is a failure. A case without a verdict is an error with its
//! reason, and one that was not run is skipped: neither is evidence about the system under test.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use jiff::Timestamp;
use quick_junit::{
    NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestRerun, TestSuite,
};
use selftest_text::escape::{terminal, visible};
use selftest_text::wording::percent;

use super::{CiRunView, MISSING, details};
use crate::against::{self, CaseStanding};
use crate::case_view::CaseView;
use crate::wording;
use selftest_harness::gate::finding::{GateFinding, GatedCase};
use selftest_harness::outcome::CaseStatus;
use selftest_harness::outcome::usage::RoleUsage;

/// Maximum length of a name or a property, in bytes.
const MAX_NAME: usize = 200;
/// Maximum length of a reason, in bytes.
const MAX_REASON: usize = 1_000;

/// Renders the report as XML. Characters that XML does not allow are written as their code.
pub(super) fn render(run: &CiRunView<'_>) -> Result<String, SerializeError> {
    let document = run.document;
    let mut report = Report::new(document.run_id.as_str());
    let started = timestamp(document.timestamp);
    if let Some(started) = started {
        report.set_timestamp(started);
    }
    if let Some(wall) = run.wall_ms() {
        report.set_time(Duration::from_millis(wall));
    }
    for (group, cases) in groups(run) {
        let mut suite = TestSuite::new(name(&group));
        if let Some(started) = started {
            suite.set_timestamp(started);
        }
        let time: Duration = cases.iter().filter_map(|case| case.time).sum();
        suite.set_time(time);
        for (key, value) in properties(run) {
            suite.add_property((key, value.as_str()));
        }
        suite.add_test_cases(cases);
        report.add_test_suite(suite);
    }
    report.to_string()
}

/// Returns the test cases by group in plan order, with missing ones last.
fn groups(run: &CiRunView<'_>) -> Vec<(String, Vec<TestCase>)> {
    let mut groups: Vec<(String, Vec<TestCase>)> = Vec::new();
    let mut add =
        |group: &str, case: TestCase| match groups.iter_mut().find(|(known, _)| known == group) {
            Some((_, cases)) => cases.push(case),
            None => groups.push((group.to_owned(), vec![case])),
        };
    for case in &run.cases() {
        let group = run.group(case);
        add(group, test_case(run, case, group));
    }
    for id in run.missing() {
        let group = run.default_group();
        let mut status = TestCaseStatus::skipped();
        status.set_message(MISSING);
        let mut case = TestCase::new(name(id), status);
        case.set_classname(name(group));
        add(group, case);
    }
    // Its cases are flaky at most, and a file without a failure would contradict the exit code.
    if let Some(why) = run.document.gate.as_ref().and_then(GateFinding::blocking_sentence) {
        let group = run.default_group();
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(terminal(&why, MAX_REASON));
        status.set_type("regression");
        let mut case = TestCase::new("all cases together", status);
        case.set_classname(name(group));
        add(group, case);
    }
    groups
}

fn test_case(run: &CiRunView<'_>, case: &CaseView<'_>, group: &str) -> TestCase {
    let gate = run.document.gate.as_ref();
    let gated = gate.and_then(|gate| gate.of_case(&case.result.scenario.id));
    let mut found = TestCase::new(name(case.name()), status(case, gated));
    found.set_classname(name(group));
    found.set_time(Duration::from_millis(case.result.duration_ms));
    if let Some(source) = run.source(case) {
        found.extra.insert("file".into(), name(source.file).into());
        if let Some(line) = source.line {
            found.extra.insert("line".into(), line.to_string().into());
        }
    }
    let result = case.result;
    let mut property = |key: &str, value: String| {
        found.add_property((key, name(&value).as_str()));
    };
    property("status", <&str>::from(case.status).to_owned());
    if let Some(gated) = gated {
        property("change", CaseStanding::Changed(gated.change).value());
    }
    if let Some(score) = case.score() {
        property("score", score.to_string());
        property("threshold", result.threshold.to_string());
    }
    property("expected_status", case.expected_status().to_string());
    if let Some(status) = case.task_status() {
        property("actual_status", status.to_string());
    }
    if let Some(repeat) = result.repeat {
        property("repeat", repeat.to_string());
    }
    if let Some(skill) = &result.skill {
        property("skill", skill.clone());
    }
    if let Some(run_id) = case.unchanged_since() {
        property("unchanged_since", run_id.to_string());
    }
    property("session_id", result.session_id.to_string());
    for (key, value) in used(&run.usage(case).total, run.currency()) {
        property(key, value);
    }
    found
}

/// Returns the status of a case in a test report. How it stands against the baseline comes first.
fn status(case: &CaseView<'_>, gated: Option<&GatedCase>) -> TestCaseStatus {
    let mut status = match case.status {
        CaseStatus::Passed => return TestCaseStatus::success(),
        CaseStatus::Failed
        | CaseStatus::SutError
        | CaseStatus::SutTimeout
        | CaseStatus::IsolationViolation => TestCaseStatus::non_success(NonSuccessKind::Failure),
        CaseStatus::GenerationFailed | CaseStatus::Unscored => {
            TestCaseStatus::non_success(NonSuccessKind::Error)
        }
        CaseStatus::NotRun | CaseStatus::Skipped => TestCaseStatus::skipped(),
        // It passed when retried, which JUnit readers display as a flaky failure.
        CaseStatus::Flaky => {
            let mut failure = TestRerun::new(NonSuccessKind::Failure);
            failure.set_message(terminal(case.reason.as_deref().unwrap_or_default(), MAX_REASON));
            let mut status = TestCaseStatus::success();
            status.add_rerun(failure);
            return status;
        }
    };
    let reason = case.reason.as_deref().unwrap_or("no reason given");
    let message = match gated {
        Some(gated) => {
            let details = against::details(gated, Some(reason));
            let details = if details.is_empty() { details } else { format!(" ({details})") };
            format!("{}{details}: {reason}", gated.change.label())
        }
        None => reason.to_owned(),
    };
    status.set_message(terminal(&message, MAX_REASON));
    status.set_type(<&str>::from(case.status));
    let details = details(case);
    if !details.is_empty() {
        status.set_description(details);
    }
    status
}

/// Returns properties of the whole run.
fn properties(run: &CiRunView<'_>) -> Vec<(&'static str, String)> {
    let document = run.document;
    let models = &document.models;
    let mut found = vec![
        ("run_id", document.run_id.to_string()),
        ("outcome", wording::outcome(document.outcome).to_owned()),
        ("judge", models.judge.clone()),
        ("sut", document.sut.clone()),
        ("seed", document.seed.to_string()),
        ("threshold", document.config.effective_threshold.to_string()),
        ("selftest_version", document.selftest_version.clone()),
    ];
    found.extend(models.generator.clone().map(|model| ("generator", model)));
    found.extend(models.sut.clone().map(|model| ("sut_model", model)));
    if let Some(usage) = &run.usage {
        found.extend(used(&usage.usage.total, run.currency()));
    }
    let unchanged = document.summary.unchanged;
    found.extend((unchanged > 0).then(|| ("unchanged", unchanged.to_string())));
    let rate = document.summary.pass_rate;
    found.extend(rate.map(|rate| ("pass_rate", format!("{} %", percent(rate)))));
    found.into_iter().map(|(key, value)| (key, name(&value))).collect()
}

/// Returns the usage of models, as far as known.
fn used(used: &RoleUsage, currency: Option<&str>) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if used.calls > 0 {
        if used.prompt_tokens > 0 {
            found.push(("tokens_in", wording::tokens_in(used)));
            found.push(("tokens_out", wording::tokens_out(used)));
        }
        let seconds = Duration::from_millis(used.model_ms).as_secs_f64();
        found.push(("model_seconds", format!("{seconds:.3}")));
    }
    if used.undivided_tokens > 0 {
        found.push(("sut_tokens", used.undivided_tokens.to_string()));
    }
    found.extend(wording::cost(used, currency).map(|cost| ("cost", cost)));
    found
}

/// Shortens an untrusted text.
fn name(text: &str) -> String {
    visible(&selftest_text::one_line(text, MAX_NAME))
}

fn timestamp(at: Timestamp) -> Option<DateTime<FixedOffset>> {
    DateTime::from_timestamp_millis(at.as_millisecond()).map(|at| at.fixed_offset())
}

#[cfg(test)]
mod tests {
    use quick_junit::Report;

    use super::super::CaseSources;
    use super::*;
    use crate::document::ReportDocument;
    use crate::fixture;
    use selftest_harness::outcome::CaseResult;

    fn xml(document: &ReportDocument) -> String {
        render(&CiRunView::new(document, &CaseSources::default())).unwrap()
    }

    #[test]
    fn xml_of_a_rich_run() {
        insta::assert_snapshot!(xml(&fixture::document()));
    }

    #[test]
    fn only_what_is_known_to_be_wrong_is_a_failure() {
        let document = fixture::document();
        let report = Report::deserialize_from_str(&xml(&document)).unwrap();
        let summary = &document.summary;
        assert_eq!(report.tests, document.cases.len());
        assert_eq!(report.failures, summary.failed as usize);
        let not_run = summary.count(CaseStatus::NotRun) + summary.count(CaseStatus::Skipped);
        assert_eq!(report.skipped, not_run as usize);
        assert_eq!(report.errors, (summary.unscored - not_run) as usize);
        for case in report.test_suites.iter().flat_map(|suite| &suite.test_cases) {
            let message = match &case.status {
                TestCaseStatus::Success { .. } => continue,
                TestCaseStatus::NonSuccess { message, .. }
                | TestCaseStatus::Skipped { message, .. } => message,
            };
            assert!(message.as_ref().is_some_and(|words| !words.as_str().is_empty()), "{case:?}");
        }
    }

    #[test]
    fn a_failure_says_how_it_stands_and_what_was_expected() {
        let mut document = fixture::document();
        let failed = document.cases.iter().find(|case| case.pass == Some(false)).unwrap();
        let id = failed.id.clone();
        let finding = serde_json::json!({
            "mode": "no_regression", "baseline": "b.json",
            "baseline_run_id": "selftest-20260101-0000-a", "compared": 1, "passed_before": 1,
            "trials_needed": 3, "beyond_chance": false, "removed": [],
            "cases": [{ "id": id, "change": "regression", "reason": "", "passed": 0, "decided": 3,
                        "score_before": null, "score": null }],
        });
        document.gate = Some(serde_json::from_value(finding).unwrap());
        let text = xml(&document);
        let found = text.split("<testcase ").find(|case| case.contains(&format!("name=\"{id}\"")));
        let found = found.unwrap();
        assert!(found.contains("message=\"REGRESSION (0 of 3 trials passed): "), "{found}");
        assert!(found.contains("<property name=\"change\" value=\"regression\"/>"), "{found}");
    }

    #[test]
    fn repeats_are_cases_of_their_own_and_missing_ones_are_skipped() {
        let mut document = fixture::document();
        document.cases.truncate(1);
        let mut case: CaseResult = document.cases[0].result(0);
        case.repeat = Some(2);
        case.scenario.id = "again".to_owned();
        let case = crate::document::CaseDocument::new(&case, &[], None);
        document.cases.push(case);
        document.scenarios = vec![document.cases[0].id.clone(), "again".into(), "again".into()];
        let text = xml(&document);
        assert!(text.contains("<testcase name=\"again #2\""), "{text}");
        assert!(text.contains("<property name=\"repeat\" value=\"2\"/>"), "{text}");
        let skipped = "<skipped message=\"not reached before the run ended\"/>";
        assert_eq!(text.matches(skipped).count(), 1, "{text}");
    }
}
