//! Reflections as agents submit them and as they are stored and returned
//! (docs/spec/reflections.md#functions).
//!
//! Each is one JSON document, whose fields may be missing or of any type. Unreadable fields count
//! as missing; no values are made up.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Deserializer, Map, Value};
use strum::{EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use selftest_text::one_line;

/// Maximum number of tags to examine.
const MAX_TAGS: usize = 1000;

/// The fields of a reflection that the criteria examine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reflection {
    /// `reflection_id`, or `id`.
    pub reflection_id: Option<String>,
    /// `project_id`.
    pub project_id: Option<String>,
    /// `agent`, or `agent_id`: the author of the reflection.
    pub agent: Option<String>,
    /// `goal`: the intended result.
    pub goal: Option<String>,
    /// `summary`: the work done, as described by the agent.
    pub summary: Option<String>,
    /// `confidence`: a number from 0.0 to 1.0, possibly as text.
    pub confidence: Option<f64>,
    /// `tags`: a list of strings, or one comma-separated string.
    pub tags: Vec<String>,
    /// `loop`, or `loop_count`.
    pub loop_count: Option<u64>,
    /// `timestamp` in RFC 3339 format: the time when the agent wrote it.
    pub made_at: Option<Timestamp>,
}

impl Reflection {
    /// Extracts the fields of a document.
    pub fn from_document(document: &Map<String, Value>) -> Self {
        let text = |key: &str| document.get(key).and_then(text_value);
        let confidence = document.get("confidence").and_then(float_value);
        Self {
            reflection_id: text("reflection_id").or_else(|| text("id")),
            project_id: text("project_id"),
            agent: text("agent").or_else(|| text("agent_id")),
            goal: text("goal"),
            summary: text("summary"),
            confidence: confidence.filter(|value| (0.0..=1.0).contains(value)),
            tags: document.get("tags").map(tags).unwrap_or_default(),
            loop_count: ["loop", "loop_count"]
                .iter()
                .find_map(|key| integer_value(document.get(*key)?)),
            made_at: text("timestamp").and_then(|text| text.parse().ok()),
        }
    }
}

/// Returns a non-empty trimmed text. Numbers are converted to text, and lists of strings are joined
/// as lines.
fn text_value(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => {
            let lines: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            lines.join("\n").trim().to_owned()
        }
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn float_value(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn integer_value(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn tags(value: &Value) -> Vec<String> {
    let trimmed = |text: &str| {
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    match value {
        Value::Array(items) => {
            items.iter().filter_map(Value::as_str).filter_map(trimmed).take(MAX_TAGS).collect()
        }
        Value::String(text) => text.split(',').filter_map(trimmed).take(MAX_TAGS).collect(),
        _ => Vec::new(),
    }
}

/// Error for a text that contains something other than reflections.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct ReadReflectionsError {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the error and the expected value.
    pub why: String,
}

/// Parses all reflections in a text: JSON objects, either consecutive or in arrays, as in a JSON or
/// JSON Lines file. An empty text contains none.
pub fn parse_reflections(text: &str) -> Result<Vec<Map<String, Value>>, ReadReflectionsError> {
    let mut found = Vec::new();
    // As a stream, so that one object, a list and an object in each line are read alike.
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let start = values.byte_offset();
        let line = |offset: usize| text[..offset].matches('\n').count() + 1;
        // The reported line is where the value starts, after any whitespace.
        let begins = start + (text[start..].len() - text[start..].trim_start().len());
        let not_an_object = |value: &Value| ReadReflectionsError {
            line: line(begins),
            why: format!("expected a JSON object, found {}", kind(value)),
        };
        match values.next() {
            None => return Ok(found),
            Some(Ok(Value::Object(document))) => found.push(document),
            Some(Ok(Value::Array(items))) => {
                for item in items {
                    match item {
                        Value::Object(document) => found.push(document),
                        other => return Err(not_an_object(&other)),
                    }
                }
            }
            Some(Ok(other)) => return Err(not_an_object(&other)),
            Some(Err(error)) => {
                let why = error.to_string();
                // serde_json appends the position, which is reported separately.
                let why = why.split(" at line ").next().unwrap_or_default();
                let why = format!("not JSON: {}", one_line(why, 200));
                return Err(ReadReflectionsError { line: error.line().max(1), why });
            }
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A reflection as submitted, with secrets removed.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReflection {
    /// Sequence number of the submission, across all projects.
    pub number: i64,
    /// ID of the project.
    pub project_id: String,
    /// ID of the reflection, unique within its project.
    pub reflection_id: String,
    /// Author of the reflection, if stated.
    pub agent: Option<String>,
    /// Loop that it refers to. If it names none, the number of reflections in the project,
    /// including this one.
    pub loop_count: u64,
    /// Time when the agent wrote it, if stated; otherwise the time of submission.
    pub made_at: Timestamp,
    /// The submitted document.
    pub document: Map<String, Value>,
}

/// Score of a reflection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReflectionScore {
    /// ID of the project.
    pub project_id: String,
    /// ID of the reflection, unique within its project.
    pub reflection_id: String,
    /// Author of the reflection; null if not stated.
    pub agent: Option<String>,
    /// Loop that it refers to. If it names none, the number of reflections in the project,
    /// including this one.
    #[serde(rename = "loop")]
    pub loop_count: u64,
    /// Quality, from 0.0 to 1.0.
    pub score: f64,
    /// Threshold in force at that time.
    pub threshold: f64,
    /// True if the score is below the threshold.
    pub weak: bool,
    /// Issues of the reflection.
    pub issues: Vec<ReflectionIssue>,
    /// Time of grading.
    pub timestamp: Timestamp,
    /// Time when the agent wrote it, if stated; otherwise the time of submission.
    pub made_at: Timestamp,
}

/// A kind of issue with a reflection. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum IssueCode {
    /// The document does not match the expected schema.
    SchemaMismatch,
    /// The confidence is below the minimum.
    LowConfidence,
    /// There is no confidence between 0 and 1. Deducts nothing by itself, since no number is made
    /// up.
    ConfidenceMissing,
    /// No tag refers to a loop.
    LoopTagMissing,
    /// There is no goal to compare the summary with. Deducts nothing by itself.
    GoalMissing,
    /// The summary does not align with the goal.
    GoalMisaligned,
    /// The summary is too brief.
    SummaryTooBrief,
    /// The summary is excessively verbose.
    SummaryTooLong,
}

selftest_text::named!(IssueCode);

impl IssueCode {
    /// Returns the deduction from a score of 1.0 in hundredths, so that sums are exact.
    pub const fn hundredths(self) -> u8 {
        match self {
            IssueCode::SchemaMismatch => 30,
            IssueCode::LowConfidence => 20,
            IssueCode::LoopTagMissing | IssueCode::SummaryTooBrief => 10,
            IssueCode::GoalMisaligned => 15,
            IssueCode::SummaryTooLong => 5,
            IssueCode::ConfidenceMissing | IssueCode::GoalMissing => 0,
        }
    }
}

/// An issue with a reflection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReflectionIssue {
    /// Kind of issue.
    pub code: IssueCode,
    /// Description on one line. Parts of it may be untrusted.
    pub text: String,
    /// Deduction from the score; 0 if the specification deducts nothing.
    pub deduction: f64,
}

impl ReflectionIssue {
    /// Creates an issue with the deduction of its code.
    pub fn new(code: IssueCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), deduction: f64::from(code.hundredths()) / 100.0 }
    }
}

/// A weak reflection with its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WeakReflection {
    /// Score of the reflection.
    #[serde(flatten)]
    pub score: ReflectionScore,
    /// The submitted document, with secrets removed.
    #[schema(value_type = Object)]
    pub reflection: Map<String, Value>,
}

/// Summary of a project's reflections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectReflections {
    /// ID of the project.
    pub project_id: String,
    /// Number of scored reflections.
    pub count: u64,
    /// Average score over all of them, 0.0 to 1.0.
    pub average_score: f64,
    /// Number of weak reflections.
    pub weak: u64,
    /// Time of the newest reflection.
    pub newest: Timestamp,
}

/// Scores of a project, latest submission first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReflectionScores {
    /// ID of the project.
    pub project_id: String,
    /// Scores on this page.
    pub reflection_scores: Vec<ReflectionScore>,
    /// Total number of scores in the project.
    pub count: u64,
    /// Average score over all of them; null without any.
    pub average_score: Option<f64>,
    /// Value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}

/// Weak reflections of a project, latest submission first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WeakReflections {
    /// ID of the project.
    pub project_id: String,
    /// Weak reflections on this page.
    pub weak_reflections: Vec<WeakReflection>,
    /// Total number of weak reflections in the project.
    pub count: u64,
    /// Value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(document: Value) -> Reflection {
        let Value::Object(document) = document else { panic!("{document}") };
        Reflection::from_document(&document)
    }

    #[test]
    fn fields_of_other_types_are_read_or_absent() {
        let found = read(json!({
            "id": 7, "agent_id": " HAL ", "goal": ["a", 1, "b"], "summary": {"text": "x"},
            "confidence": " 0.8 ", "tags": "loop:3, planning,,", "loop": "3",
            "timestamp": "2026-11-20T10:00:00Z", "other": null,
        }));
        let expected = Reflection {
            reflection_id: Some("7".to_owned()),
            agent: Some("HAL".to_owned()),
            goal: Some("a\nb".to_owned()),
            confidence: Some(0.8),
            tags: vec!["loop:3".to_owned(), "planning".to_owned()],
            loop_count: Some(3),
            made_at: Some("2026-11-20T10:00:00Z".parse().unwrap()),
            ..Reflection::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_confidence_out_of_range_is_none() {
        for value in [json!(85), json!(-0.1), json!("85 %"), json!("NaN"), json!(true), json!(null)]
        {
            assert_eq!(read(json!({ "confidence": value })).confidence, None, "{value}");
        }
        assert_eq!(read(json!({ "confidence": 1 })).confidence, Some(1.0));
    }

    #[test]
    fn the_first_name_of_a_field_counts() {
        let found = read(json!({
            "reflection_id": "a", "id": "b", "agent": "", "agent_id": "SAGE", "loop": -1,
            "loop_count": 4,
        }));
        assert_eq!(found.reflection_id.as_deref(), Some("a"));
        assert_eq!(found.agent.as_deref(), Some("SAGE"));
        assert_eq!(found.loop_count, Some(4));
    }

    #[test]
    fn objects_lists_and_lines() {
        for text in [
            r#"{"n":1}{"n":2}"#,
            "[{\"n\":1},\n {\"n\":2}]",
            "{\"n\":1}\n\n{\"n\":2}\n",
            "\n{\n\"n\":1}\n[{\"n\":2}]",
        ] {
            let found = parse_reflections(text).unwrap();
            let numbers: Vec<_> = found.iter().map(|document| document["n"].as_u64()).collect();
            assert_eq!(numbers, [Some(1), Some(2)], "{text}");
        }
        assert!(parse_reflections(" \n").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, expected) in [
            ("{\"n\":1}\n\n7\n", "line 3: expected a JSON object, found a number"),
            ("[{},\n\"x\"]", "line 1: expected a JSON object, found a text"),
            ("{}\n{\"n\":", "line 2: not JSON: EOF while parsing a value"),
            ("{}\nI reflect\n", "line 2: not JSON: expected value"),
        ] {
            assert_eq!(parse_reflections(text).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(parse_reflections(&"[".repeat(100_000)).unwrap_err().why.contains("recursion"));
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[\\[\\]{}:,\"a0.\\- \né]{0,40}") {
            let _ = parse_reflections(&text);
        }
    }
}
