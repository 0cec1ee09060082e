//! A run in the Common Test Report Format (ctrf.io), one JSON object.
//!
//! A case without a verdict has the status `other`: it neither passed nor failed, and was not
//! skipped.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use selftest_text::escape::terminal;

use super::{CiRunView, MISSING, details};
use crate::case_view::CaseView;
use selftest_harness::outcome::CaseStatus;

/// Version of the format that is written.
const SPEC_VERSION: &str = "0.1.0";
/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 200;
/// Maximum length of a reason, in bytes.
const MAX_REASON: usize = 1_000;

/// The format's names for results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CtrfStatus {
    Passed,
    Failed,
    Skipped,
    Other,
}

impl CtrfStatus {
    const fn of(status: CaseStatus) -> Self {
        match status {
            // CTRF has no status for a flaky test: it is one that passed, with a flag of its own.
            CaseStatus::Passed | CaseStatus::Flaky => Self::Passed,
            CaseStatus::Failed
            | CaseStatus::SutError
            | CaseStatus::SutTimeout
            | CaseStatus::IsolationViolation => Self::Failed,
            CaseStatus::GenerationFailed | CaseStatus::Unscored => Self::Other,
            CaseStatus::NotRun | CaseStatus::Skipped => Self::Skipped,
        }
    }
}

/// One test.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CtrfTest {
    name: String,
    status: CtrfStatus,
    duration: u64,
    /// True if it failed, and passed when it was retried.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flaky: bool,
    suite: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    raw_status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    extra: Map<String, Value>,
}

/// Renders the report as JSON.
pub(super) fn render(run: &CiRunView<'_>) -> serde_json::Result<String> {
    let document = run.document;
    let cases = run.cases();
    let mut tests: Vec<CtrfTest> = cases.iter().map(|case| test(run, case)).collect();
    tests.extend(run.missing().into_iter().map(|id| missing(run, id)));
    let count = |status| tests.iter().filter(|test| test.status == status).count();
    let suites: BTreeSet<&Vec<String>> = tests.iter().map(|test| &test.suite).collect();
    let start = document.timestamp.as_millisecond();
    // A killed run has no end time; the total duration of its cases is the best estimate.
    let worked = || cases.iter().map(|case| case.result.duration_ms).sum();
    let duration = run.wall_ms().unwrap_or_else(worked);
    let stop = start.saturating_add(i64::try_from(duration).unwrap_or(i64::MAX));
    let models = &document.models;
    let report = json!({
        "reportFormat": "CTRF",
        "specVersion": SPEC_VERSION,
        "timestamp": document.ended_at.unwrap_or(document.timestamp),
        "generatedBy": format!("selftest {}", document.selftest_version),
        "results": {
            "tool": { "name": "selftest", "version": document.selftest_version },
            "summary": {
                "tests": tests.len(),
                "passed": count(CtrfStatus::Passed),
                "failed": count(CtrfStatus::Failed),
                "skipped": count(CtrfStatus::Skipped),
                "pending": 0,
                "other": count(CtrfStatus::Other),
                "suites": suites.len(),
                "start": start,
                "stop": stop,
                "duration": duration,
                "extra": {
                    "runId": document.run_id,
                    "outcome": document.outcome,
                    "passRate": document.summary.pass_rate,
                    "passRateInterval": document.summary.pass_rate_interval,
                    "seed": document.seed,
                    "judge": name(&models.judge),
                    "generator": models.generator.as_deref().map(name),
                    "sut": name(&document.sut),
                    "usage": run.usage,
                },
            },
            "tests": tests,
            "environment": {
                "osPlatform": document.host.os,
                "extra": { "arch": document.host.arch },
            },
        },
    });
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

fn test(run: &CiRunView<'_>, case: &CaseView<'_>) -> CtrfTest {
    let result = case.result;
    let source = run.source(case);
    let details = details(case);
    let is_open = case.status != CaseStatus::Passed;
    let mut extra = Map::new();
    if let Some(score) = case.score() {
        extra.insert("score".to_owned(), json!(score));
        extra.insert("threshold".to_owned(), json!(result.threshold));
    }
    extra.insert("expectedStatus".to_owned(), json!(case.expected_status()));
    extra.extend(case.task_status().map(|status| ("actualStatus".to_owned(), json!(status))));
    extra.extend(result.repeat.map(|repeat| ("repeat".to_owned(), json!(repeat))));
    extra.insert("sessionId".to_owned(), json!(result.session_id));
    let since = result.unchanged_since.as_ref();
    extra.extend(since.map(|run_id| ("unchangedSince".to_owned(), json!(run_id))));
    let used = run.usage(case);
    if !used.is_empty() {
        extra.insert("usage".to_owned(), json!(used));
    }
    CtrfTest {
        name: name(case.name()),
        status: CtrfStatus::of(case.status),
        duration: result.duration_ms,
        flaky: case.status == CaseStatus::Flaky,
        suite: vec![name(run.group(case))],
        message: case.reason.as_deref().map(|reason| terminal(reason, MAX_REASON)),
        trace: (is_open && !details.is_empty()).then_some(details),
        file_path: source.map(|source| source.file.to_owned()),
        line: source.and_then(|source| source.line),
        raw_status: case.status.into(),
        tags: result.skill.iter().map(|skill| name(skill)).collect(),
        extra,
    }
}

/// Returns the entry of a planned case without a result.
fn missing(run: &CiRunView<'_>, id: &str) -> CtrfTest {
    CtrfTest {
        name: name(id),
        status: CtrfStatus::Skipped,
        duration: 0,
        flaky: false,
        suite: vec![name(run.default_group())],
        message: Some(MISSING.to_owned()),
        trace: None,
        file_path: None,
        line: None,
        raw_status: CaseStatus::Skipped.into(),
        tags: Vec::new(),
        extra: Map::new(),
    }
}

/// Shortens an untrusted text. Never returns an empty one, which the format does not allow.
fn name(text: &str) -> String {
    let name = terminal(text, MAX_NAME);
    if name.is_empty() { "-".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::CaseSources;
    use super::*;
    use crate::fixture;

    /// The format as specified (ctrf.io, version 0.1.0), restated: the members that we write, their
    /// types, and which are required. All objects except `extra` are closed.
    fn restated_schema() -> Value {
        let (text, number) =
            (json!({ "type": "string" }), json!({ "type": "integer", "minimum": 0 }));
        let named = json!({ "type": "string", "minLength": 1 });
        let any = json!({ "type": "object" });
        let closed = |properties: Value, required: &[&str]| {
            json!({
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
            })
        };
        let test = closed(
            json!({
                "name": named, "duration": number, "message": text, "trace": text,
                "status": { "enum": ["passed", "failed", "skipped", "pending", "other"] },
                "suite": { "type": "array", "minItems": 1, "items": text },
                "filePath": text, "line": number, "rawStatus": text,
                "tags": { "type": "array", "items": text }, "extra": any,
            }),
            &["name", "status", "duration"],
        );
        let counts = ["tests", "passed", "failed", "skipped", "pending", "other", "start", "stop"];
        let more = ["suites", "duration"];
        let mut summary: Map<String, Value> =
            counts.iter().chain(&more).map(|key| ((*key).to_owned(), number.clone())).collect();
        summary.insert("extra".to_owned(), any.clone());
        let results = closed(
            json!({
                "tool": closed(json!({ "name": named, "version": text }), &["name"]),
                "summary": closed(Value::Object(summary), &counts),
                "tests": { "type": "array", "items": test },
                "environment": closed(json!({ "osPlatform": text, "extra": any }), &[]),
            }),
            &["tool", "summary", "tests"],
        );
        closed(
            json!({
                "reportFormat": { "const": "CTRF" },
                "specVersion": { "type": "string", "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+$" },
                "timestamp": { "type": "string", "format": "date-time" },
                "generatedBy": text, "results": results,
            }),
            &["results", "reportFormat", "specVersion"],
        )
    }

    #[test]
    fn a_rich_run_keeps_to_the_format() {
        let document = fixture::document();
        let lines = BTreeMap::from([(document.cases[0].id.clone(), 12)]);
        let sources = CaseSources::new("config/selftest.yaml", lines);
        let text = render(&CiRunView::new(&document, &sources)).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        let schema = selftest_schema::Schema::compile(&restated_schema()).unwrap();
        let faults: Vec<String> = schema.errors(&report).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}");
        let counts = &report["results"]["summary"];
        assert_eq!(counts["failed"], document.summary.failed);
        assert_eq!(counts["passed"], document.summary.passed);
        let undecided = counts["other"].as_u64().unwrap() + counts["skipped"].as_u64().unwrap();
        assert_eq!(undecided, u64::from(document.summary.unscored));
        assert_eq!(report["results"]["tests"][0]["line"], 12);
        insta::assert_snapshot!(text);
    }
}
