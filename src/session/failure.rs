//! Whether a tool failed, where the format has no flag for it: read from the result itself.
//!
//! The rules are those of the agents' own sources. A word such as "error" somewhere in an output
//! is no failure: programs print it all the time.

use serde::Deserialize;
use serde_json::Value;

use super::event::{Outcome, ToolResult};
use super::text::Text;
use super::wire::Int;

/// Beginnings of a text that only a failure has. Compared without regard to case.
const BEGINNINGS: [&str; 6] = [
    "error:",
    "error executing",
    "error while",
    "traceback (most recent call last)",
    "tool error:",
    "exception:",
];

/// The structured result that several agents write as JSON into the text.
#[derive(Deserialize)]
struct Structured {
    #[serde(default, alias = "returncode", alias = "return_code")]
    exit_code: Int,
    #[serde(default)]
    exit_code_meaning: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    status: Option<Value>,
    #[serde(default)]
    success: Option<Value>,
}

/// A result whose outcome is read from its text.
///
/// JSON at its beginning is read first: `error` that is neither null, false nor empty, `success:
/// false`, `status: error`, or an exit code other than 0 that the agent does not itself call
/// harmless (`exit_code_meaning`). Else the beginning of the text decides; where it says nothing,
/// so does the outcome.
pub(super) fn result_of(text: Text<'_>) -> ToolResult<'_> {
    let mut result = ToolResult::default();
    let trimmed = text.trim_start();
    if trimmed.starts_with('{')
        && let Some(structured) = first_value(trimmed)
    {
        let code = structured.exit_code.0;
        let error = structured.error.as_ref().and_then(words);
        let is = |value: &Option<Value>, word: &str| {
            value.as_ref().and_then(Value::as_str).is_some_and(|text| text == word)
        };
        let harmless = structured.exit_code_meaning.as_ref().and_then(words).is_some();
        let failed = error.is_some()
            || structured.success == Some(Value::Bool(false))
            || is(&structured.status, "error")
            || code.is_some_and(|code| code != 0 && !harmless);
        let known = code.is_some()
            || structured.success.is_some()
            || structured.status.is_some()
            || structured.error.is_some();
        result.outcome = match (failed, is(&structured.status, "blocked"), known) {
            (_, true, _) => Outcome::Rejected,
            (true, _, _) => Outcome::Failed,
            (false, _, true) => Outcome::Ok,
            (false, _, false) => Outcome::Unknown,
        };
        result.exit_code = code;
        result.error = error.map(Text::from).unwrap_or_default();
    } else if is_failure_text(trimmed) {
        result.outcome = Outcome::Failed;
    }
    result.text = text;
    result
}

/// Whether a plain text begins as only failures do.
pub(super) fn is_failure_text(text: &str) -> bool {
    let text = text.trim_start();
    BEGINNINGS.iter().any(|beginning| {
        text.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
    })
}

/// The first JSON value of a text, which may go on in plain words.
fn first_value(text: &str) -> Option<Structured> {
    serde_json::Deserializer::from_str(text).into_iter::<Structured>().next()?.ok()
}

/// What an error field says; `None` when it says that there was none.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(map) if map.is_empty() => None,
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_of_results_without_a_flag() {
        for (text, outcome, code) in [
            (r#"{"output":"x","exit_code":0,"error":null}"#, Outcome::Ok, Some(0)),
            (r#"{"output":"","exit_code":2,"error":null}"#, Outcome::Failed, Some(2)),
            (
                r#"{"output":"","exit_code":1,"error":null,"exit_code_meaning":"No matches found (not an error)"}"#,
                Outcome::Ok,
                Some(1),
            ),
            (
                r#"{"output":"","exit_code":-1,"error":"no","status":"error"}"#,
                Outcome::Failed,
                Some(-1),
            ),
            (r#"{"error": "blocked by policy", "status":"blocked"}"#, Outcome::Rejected, None),
            ("{\"success\": true}\n\n[Tool loop warning: stop]", Outcome::Ok, None),
            (r#"{"success": false}"#, Outcome::Failed, None),
            (r#"{"rows": 3}"#, Outcome::Unknown, None),
            ("Error: user not found", Outcome::Failed, None),
            ("the log says error: none", Outcome::Unknown, None),
            ("", Outcome::Unknown, None),
        ] {
            let result = result_of(text.into());
            assert_eq!((result.outcome, result.exit_code), (outcome, code), "{text}");
        }
    }
}
