//! A run for an OpenTelemetry collector, as request bodies of OTLP/HTTP in JSON. It consists of a
//! span for the run, a `gen_ai.evaluation.result` span per case, and one event of that name per
//! score, following the semantic conventions for generative AI. Sends nothing.
//!
//! Prompts and answers are left out, because the conventions make them opt-in. IDs are derived from
//! the run, so that sending it twice yields the same data.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{CaseSources, CiRunView};
use crate::case_view::{self, CaseView};
use crate::document::{CaseDocument, ReportDocument};
use selftest_harness::outcome::CaseStatus;
use selftest_text::digest;
use selftest_text::escape::terminal;

/// Name of the events, and of the span of a case.
const EVENT: &str = "gen_ai.evaluation.result";
/// Name of a whole case's evaluation; the others are named after rubric categories.
const OVERALL: &str = "selftest";
/// Number of spans or events per request.
const BATCH: usize = 500;
/// Maximum length of an explanation, and of a name, in bytes.
const MAX_EXPLANATION: usize = 1_000;
const MAX_NAME: usize = 200;
/// Length of IDs in hexadecimal digits.
const TRACE_ID: usize = 32;
const SPAN_ID: usize = 16;
/// Severity number for INFO.
const SEVERITY: u32 = 9;
/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u32 = 1;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtlpRequest {
    /// Path below the base address of the collector.
    pub path: &'static str,
    /// JSON body.
    pub body: Value,
}

/// Returns the requests that export a run.
pub fn requests(document: &ReportDocument) -> Vec<OtlpRequest> {
    let sources = CaseSources::default();
    let run = CiRunView::new(document, &sources);
    let told = OtlpContext::of(document);
    let mut spans = vec![told.run_span(document)];
    let mut events = Vec::new();
    for (case, kept) in run.cases().iter().zip(&document.cases) {
        let span_id = told.span_id(case.name());
        let overall = overall(case, kept);
        spans.push(told.case_span(&span_id, overall.clone()));
        events.push(told.event(&span_id, overall));
        for category in &kept.scores.categories {
            let Some(score) = category.score else { continue };
            let mut attributes = identity(case);
            attributes.insert("gen_ai.evaluation.name".to_owned(), name(&category.category));
            attributes.insert("gen_ai.evaluation.score.value".to_owned(), json!(score));
            events.push(told.event(&span_id, attributes));
        }
    }
    let traces = spans.chunks(BATCH).map(|spans| OtlpRequest {
        path: "/v1/traces",
        body: json!({ "resourceSpans": [{
            "resource": told.resource,
            "scopeSpans": [{ "scope": told.scope, "spans": spans }],
        }] }),
    });
    let logs = events.chunks(BATCH).map(|events| OtlpRequest {
        path: "/v1/logs",
        body: json!({ "resourceLogs": [{
            "resource": told.resource,
            "scopeLogs": [{ "scope": told.scope, "logRecords": events }],
        }] }),
    });
    traces.chain(logs).collect()
}

/// Values common to all spans and events.
struct OtlpContext {
    run_id: String,
    trace_id: String,
    run_span: String,
    start: String,
    end: String,
    resource: Value,
    scope: Value,
}

impl OtlpContext {
    fn of(document: &ReportDocument) -> Self {
        let run_id = document.run_id.to_string();
        let version = &document.selftest_version;
        // As text: the JSON form of OTLP writes 64-bit integers so, because many readers round
        // them.
        let nanoseconds = |at: jiff::Timestamp| at.as_nanosecond().to_string();
        let mut resource = Map::new();
        resource.insert("service.name".to_owned(), json!("selftest"));
        resource.insert("service.version".to_owned(), json!(version));
        Self {
            trace_id: id(&["trace", &run_id], TRACE_ID),
            run_span: id(&["run", &run_id], SPAN_ID),
            start: nanoseconds(document.timestamp),
            // The evaluation time of a case is not recorded; this is an upper bound.
            end: nanoseconds(document.ended_at.unwrap_or(document.timestamp)),
            resource: json!({ "attributes": attributes(resource) }),
            scope: json!({ "name": "selftest", "version": version }),
            run_id,
        }
    }

    fn span_id(&self, name: &str) -> String {
        id(&["case", &self.run_id, name], SPAN_ID)
    }

    fn run_span(&self, document: &ReportDocument) -> Value {
        let summary = &document.summary;
        let mut found = Map::new();
        let mut add = |key: &str, value: Value| found.insert(format!("selftest.{key}"), value);
        add("run.id", json!(self.run_id));
        add("run.outcome", json!(document.outcome.map_or("unfinished", Into::into)));
        add("judge", name(&document.models.judge));
        add("sut", name(&document.sut));
        add("cases", json!(summary.total));
        add("passed", json!(summary.passed));
        add("failed", json!(summary.failed));
        add("unscored", json!(summary.unscored));
        if let Some(rate) = summary.pass_rate {
            add("pass_rate", json!(rate));
        }
        if let Some(suite) = &document.suite {
            add("suite", name(&suite.path));
        }
        json!({
            "traceId": self.trace_id, "spanId": self.run_span, "name": "selftest.run",
            "kind": INTERNAL, "startTimeUnixNano": self.start, "endTimeUnixNano": self.end,
            "attributes": attributes(found),
        })
    }

    fn case_span(&self, span_id: &str, told: Map<String, Value>) -> Value {
        json!({
            "traceId": self.trace_id, "spanId": span_id, "parentSpanId": self.run_span,
            "name": EVENT, "kind": INTERNAL,
            "startTimeUnixNano": self.end, "endTimeUnixNano": self.end,
            "attributes": attributes(told),
        })
    }

    fn event(&self, span_id: &str, told: Map<String, Value>) -> Value {
        json!({
            "timeUnixNano": self.end, "observedTimeUnixNano": self.end,
            "severityNumber": SEVERITY, "eventName": EVENT,
            "traceId": self.trace_id, "spanId": span_id,
            "attributes": attributes(told),
        })
    }
}

/// Returns the attributes that identify a case.
fn identity(case: &CaseView<'_>) -> Map<String, Value> {
    let result = case.result;
    let mut found = Map::new();
    // The system under test uses the same name for its session.
    found.insert("gen_ai.conversation.id".to_owned(), json!(result.session_id));
    found.insert("selftest.case.id".to_owned(), name(&result.scenario.id));
    if let Some(repeat) = result.repeat {
        found.insert("selftest.case.repeat".to_owned(), json!(repeat));
    }
    found
}

/// Returns the evaluation of a whole case.
fn overall(case: &CaseView<'_>, kept: &CaseDocument) -> Map<String, Value> {
    let result = case.result;
    let mut found = identity(case);
    let mut add = |key: &str, value: Value| found.insert(key.to_owned(), value);
    add("gen_ai.evaluation.name", json!(OVERALL));
    if let Some(passed) = case.status.pass() {
        let label = match case.status {
            CaseStatus::Flaky => "flaky",
            _ if passed => "pass",
            _ => "fail",
        };
        add("gen_ai.evaluation.score.label", json!(label));
    } else {
        // Without a verdict there is neither a label nor a number.
        let reason = kept.unscored_reason.map(|reason| json!(reason));
        let status: &str = case.status.into();
        add("error.type", reason.unwrap_or_else(|| json!(status)));
    }
    if let Some(score) = case.score() {
        add("gen_ai.evaluation.score.value", json!(score));
    }
    let words = case.deciding_step().and_then(case_view::card).map(|card| card.reasoning.as_str());
    let words = case.reason.as_deref().or(words).filter(|words| !words.trim().is_empty());
    if let Some(words) = words {
        let words = terminal(words, MAX_EXPLANATION);
        add("gen_ai.evaluation.explanation", json!(words));
    }
    let status: &str = case.status.into();
    add("selftest.case.status", json!(status));
    add("selftest.case.threshold", json!(result.threshold));
    add("selftest.case.duration_ms", json!(result.duration_ms));
    if let Some(run_id) = case.unchanged_since() {
        add("selftest.case.unchanged_since", json!(run_id));
    }
    found
}

/// Shortens an untrusted text.
fn name(text: &str) -> Value {
    json!(terminal(text, MAX_NAME))
}

/// Derives an ID from names.
fn id(names: &[&str], digits: usize) -> String {
    let mut id = digest::json_sha256_hex(json!(names));
    id.truncate(digits);
    id
}

/// Encodes attributes for the protocol, where integers are strings.
fn attributes(found: Map<String, Value>) -> Vec<Value> {
    let value = |value: Value| match value {
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => json!({ "intValue": whole.to_string() }),
            None => json!({ "doubleValue": number }),
        },
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    };
    found.into_iter().map(|(key, it)| json!({ "key": key, "value": value(it) })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// The attributes of an object by name.
    fn told(value: &Value) -> Map<String, Value> {
        let list = value["attributes"].as_array().unwrap().iter();
        let pair = |it: &Value| {
            let value = it["value"].as_object().unwrap().values().next().unwrap().clone();
            (it["key"].as_str().unwrap().to_owned(), value)
        };
        list.map(pair).collect()
    }

    #[test]
    fn spans_and_events_of_a_rich_run() {
        let document = fixture::document();
        let all = requests(&document);
        assert_eq!(all.iter().map(|it| it.path).collect::<Vec<_>>(), ["/v1/traces", "/v1/logs"]);
        assert_eq!(requests(&document), all, "sent twice it is the same");
        let spans = &all[0].body["resourceSpans"][0]["scopeSpans"][0]["spans"];
        let spans = spans.as_array().unwrap();
        assert_eq!(spans.len(), document.cases.len() + 1);
        let events = &all[1].body["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
        let events = events.as_array().unwrap();
        for event in events {
            assert_eq!(event["eventName"], EVENT);
            assert_eq!(event["traceId"].as_str().unwrap().len(), TRACE_ID);
            assert!(spans.iter().any(|span| span["spanId"] == event["spanId"]));
        }
        insta::assert_snapshot!(serde_json::to_string_pretty(&all).unwrap());
    }

    #[test]
    fn a_case_without_a_verdict_has_neither_label_nor_number() {
        let document = fixture::document();
        let all = requests(&document);
        let events = &all[1].body["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
        let mut open = 0;
        for event in events.as_array().unwrap().iter().map(told) {
            let is_overall = event["gen_ai.evaluation.name"] == OVERALL;
            let labelled = event.contains_key("gen_ai.evaluation.score.label");
            assert_eq!(is_overall, labelled || event.contains_key("error.type"), "{event:?}");
            if event.contains_key("error.type") {
                assert!(!labelled && !event.contains_key("gen_ai.evaluation.score.value"));
                open += 1;
            }
        }
        assert_eq!(open, document.summary.unscored as usize);
    }

    #[test]
    fn what_models_and_systems_said_is_not_in_it() {
        let document = fixture::document();
        let text = serde_json::to_string(&json!(
            requests(&document).into_iter().map(|it| it.body).collect::<Vec<_>>()
        ))
        .unwrap();
        for case in &document.cases {
            for said in case.prompt.iter().chain(&case.output).filter(|said| said.len() > 20) {
                let said = json!(said).to_string();
                assert!(!text.contains(said.trim_matches('"')), "{said}");
            }
        }
    }

    #[test]
    fn many_cases_are_many_requests() {
        let mut document = fixture::document();
        document.cases = vec![document.cases[0].clone(); BATCH + 1];
        let paths: Vec<&str> = requests(&document).iter().map(|it| it.path).collect();
        assert_eq!(paths.iter().filter(|path| **path == "/v1/traces").count(), 2);
        assert!(paths.iter().filter(|path| **path == "/v1/logs").count() >= 2);
    }
}
