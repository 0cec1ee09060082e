//! Detects failed tool calls from the result text, for formats without an error flag.
//!
//! The rules follow the agents' own sources. A word such as "error" inside an output does not
//! count, because programs print it all the time.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::event::{ToolOutcome, ToolResult};
use super::text::Text;
use super::wire::LenientInt;

/// Text prefixes that only failures have. Compared case-insensitively.
const FAILURE_PREFIXES: [&str; 6] = [
    "error:",
    "error executing",
    "error while",
    "traceback (most recent call last)",
    "tool error:",
    "exception:",
];

/// Prefixes of the text that replaces a result when the user stopped the tool.
const STOPPED: [&str; 2] = ["[Tool execution cancelled", "[Tool execution skipped"];

/// Phrases of `exit_code_meaning` with which Hermes marks an exit code as harmless. Other meanings
/// only explain the failure, such as "Could not resolve host".
const HARMLESS: [&str; 4] = ["not an error", "expected", "often normal", "may still be valid"];

/// Values of `status` for a call that a policy or the user refused.
const REFUSED: [&str; 5] = ["blocked", "disabled", "denied", "rejected", "approval_required"];

/// Values of `status` for a failed call.
const FAILED: [&str; 3] = ["error", "failed", "timeout"];

/// Values of `status` for a successful call.
const SUCCEEDED: [&str; 4] = ["ok", "success", "completed", "done"];

/// The structured result that several agents write as JSON into the text.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ToolReport {
    #[serde(alias = "exitCode")]
    exit_code: LenientInt,
    returncode: LenientInt,
    return_code: LenientInt,
    exit_code_meaning: Option<Value>,
    /// `null` means that no error occurred.
    #[serde(deserialize_with = "even_null")]
    error: Option<Value>,
    status: Option<Value>,
    success: Option<Value>,
    /// Set by patch tools.
    applied: Option<Value>,
    /// Set by file writes that succeeded.
    bytes_written: Option<Value>,
    /// Set when a guard answered in place of the tool.
    guardrail: Option<Value>,
    /// Set for a program that was started in the background and is still running.
    pid: Option<Value>,
    #[serde(deserialize_with = "even_null")]
    output: Option<IgnoredAny>,
    message: Option<IgnoredAny>,
    traceback: Option<IgnoredAny>,
}

/// Deserializes to `Some` whenever the field is present, even if it is `null`.
fn even_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl ToolReport {
    fn code(&self) -> Option<i64> {
        self.exit_code.0.or(self.returncode.0).or(self.return_code.0)
    }

    fn error(&self) -> Option<String> {
        self.error.as_ref().and_then(error_text)
    }

    fn status_is(&self, states: &[&str]) -> bool {
        self.status.as_ref().and_then(Value::as_str).is_some_and(|status| states.contains(&status))
    }

    /// Returns true if the tool reports on itself. Otherwise, `status` may belong to the data, for
    /// example to an order that the tool looked up.
    fn is_report(&self) -> bool {
        self.code().is_some()
            || self.error.is_some()
            || self.success.is_some()
            || self.output.is_some()
            || self.traceback.is_some()
    }

    fn is_harmless(&self) -> bool {
        let meaning = self.exit_code_meaning.as_ref().and_then(Value::as_str).unwrap_or_default();
        HARMLESS.iter().any(|words| meaning.contains(words))
    }

    /// Returns true if the program was started in the background and its outcome is unknown.
    fn is_running(&self) -> bool {
        self.pid.is_some() && self.code() == Some(0)
    }

    fn outcome(&self) -> ToolOutcome {
        let says = |field: &Option<Value>, what: bool| *field == Some(Value::Bool(what));
        let is_report = self.is_report();
        // Refusals may also set an error, so they are checked first.
        if (is_report && self.status_is(&REFUSED)) || self.guardrail.is_some() {
            return ToolOutcome::Rejected;
        }
        if self.error().is_some()
            || says(&self.success, false)
            || says(&self.applied, false)
            || ((is_report || self.message.is_some()) && self.status_is(&FAILED))
            || self.code().is_some_and(|code| code != 0 && !self.is_harmless())
        {
            return ToolOutcome::Failed;
        }
        // Exit code 0 of a background start says nothing about the program itself.
        if self.is_running() {
            return ToolOutcome::Unknown;
        }
        let known = self.code().is_some()
            || (is_report && self.status.is_some())
            || self.status_is(&SUCCEEDED)
            || self.error.is_some()
            || self.success.is_some()
            || self.applied.is_some()
            || self.bytes_written.is_some();
        if known { ToolOutcome::Ok } else { ToolOutcome::Unknown }
    }
}

/// Builds a result and reads its outcome from the text.
///
/// JSON at the start of the text comes first, and any text after it is ignored. It reports a
/// failure with one of:
///
/// - an `error` that is not null, false or empty
/// - `success: false`
/// - `status: error` beside another field of a tool report
/// - a non-zero exit code that the agent does not call harmless (`exit_code_meaning`)
///
/// The outcome of a program started in the background stays unknown. Without JSON, the start of the
/// text decides.
pub(super) fn result_of(text: Text<'_>) -> ToolResult<'_> {
    let mut result = ToolResult::default();
    let trimmed = text.trim_start();
    if trimmed.starts_with('{')
        // Harnesses append warnings and user input after the JSON, so only its first value is
        // parsed.
        && let Some(structured) = first_value(trimmed).or_else(|| first_value_across_cut(&text))
    {
        result.outcome = structured.outcome();
        // Not the program's exit code if it is still running.
        result.exit_code = structured.code().filter(|_| !structured.is_running());
        result.error = structured.error().map(Text::from).unwrap_or_default();
    } else if let Some(code) = reported_code(trimmed) {
        result.outcome = if code == 0 { ToolOutcome::Ok } else { ToolOutcome::Failed };
        result.exit_code = Some(code);
    } else if STOPPED.iter().any(|beginning| trimmed.starts_with(beginning)) {
        result.outcome = ToolOutcome::Rejected;
    } else if is_failure_text(trimmed) {
        result.outcome = ToolOutcome::Failed;
    }
    result.text = text;
    result
}

/// Returns true if the text starts the way only failures do.
pub(super) fn is_failure_text(text: &str) -> bool {
    let text = text.trim_start();
    FAILURE_PREFIXES.iter().any(|beginning| {
        text.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
    })
}

/// Parses the exit code that a program puts before the output of a command: `AutoGen` (`exitcode: 1
/// (execution failed)`), mini-swe-agent (`<returncode>1</returncode>`) and Codex (`Exit code: 1` and
/// the time that the command took).
fn reported_code(text: &str) -> Option<i64> {
    let (start, end) = [
        ("exitcode: ", " (execution "),
        ("<returncode>", "</returncode>"),
        ("Exit code: ", "\nWall time: "),
    ]
    .into_iter()
    .find(|(start, _)| text.starts_with(start))?;
    text[start.len()..].split_once(end)?.0.trim().parse().ok()
}

/// Parses the first JSON value of a text; plain text may follow it.
fn first_value(text: &str) -> Option<ToolReport> {
    serde_json::Deserializer::from_str(text).into_iter::<ToolReport>().next()?.ok()
}

/// Does the same for a text that was shortened in the middle. The cut is nearly always inside a
/// long `output`, and the fields that matter come after it.
fn first_value_across_cut(text: &Text<'_>) -> Option<ToolReport> {
    let note = format!("\n… [{} bytes left out] …\n", text.cut_bytes());
    let (head, tail) = text.split_once(&note)?;
    // The cut may be inside an escape, which has at most six bytes.
    let window = head.floor_char_boundary(head.len().saturating_sub(6));
    let escape = head[window..].find('\\').map_or(head.len(), |at| window + at);
    let head = head[..escape].trim_end_matches('\\');
    // The cut may also have left a quote or backslash of the string behind.
    [tail, tail.strip_prefix(['"', '\\']).unwrap_or(tail)]
        .into_iter()
        .find_map(|tail| first_value(&format!("{head}{tail}")))
}

/// Returns the text of an error field; `None` if the field reports no error.
fn error_text(value: &Value) -> Option<String> {
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
            (r#"{"output":"x","exit_code":0,"error":null}"#, ToolOutcome::Ok, Some(0)),
            (r#"{"output":"","exit_code":2,"error":null}"#, ToolOutcome::Failed, Some(2)),
            (
                r#"{"output":"","exit_code":1,"error":null,"exit_code_meaning":"No matches found (not an error)"}"#,
                ToolOutcome::Ok,
                Some(1),
            ),
            (
                r#"{"output":"","exit_code":6,"error":null,"exit_code_meaning":"Could not resolve host"}"#,
                ToolOutcome::Failed,
                Some(6),
            ),
            (
                r#"{"output":"","exit_code":-1,"error":"no","status":"error"}"#,
                ToolOutcome::Failed,
                Some(-1),
            ),
            (
                r#"{"output":"","exit_code":124,"error":"Command timed out after 180 seconds"}"#,
                ToolOutcome::Failed,
                Some(124),
            ),
            (
                r#"{"output":"Background process started","session_id":"p","pid":1,"exit_code":0,"error":null}"#,
                ToolOutcome::Unknown,
                None,
            ),
            (r#"{"error": "blocked by policy", "status":"blocked"}"#, ToolOutcome::Rejected, None),
            (r#"{"error": "off", "status":"disabled"}"#, ToolOutcome::Rejected, None),
            (
                r#"{"error":"Blocked terminal: …","guardrail":{"action":"block"}}"#,
                ToolOutcome::Rejected,
                None,
            ),
            ("{\"success\": true}\n\n[Tool loop warning: stop]", ToolOutcome::Ok, None),
            (r#"{"success": false}"#, ToolOutcome::Failed, None),
            (r#"{"bytes_written": 12, "dirs_created": false}"#, ToolOutcome::Ok, None),
            (r#"{"bytes_written": 0, "error": "disk full"}"#, ToolOutcome::Failed, None),
            (r#"{"applied": true}"#, ToolOutcome::Ok, None),
            (r#"{"rows": 3}"#, ToolOutcome::Unknown, None),
            (r#"{"content": "x", "error": null}"#, ToolOutcome::Ok, None),
            (r#"{"error": null}"#, ToolOutcome::Ok, None),
            (r#"{"error": false, "status": "rejected"}"#, ToolOutcome::Rejected, None),
            // What was asked for, not how the asking went.
            (r#"{"order": 1, "status": "rejected"}"#, ToolOutcome::Unknown, None),
            (r#"{"user": 1, "status": "disabled", "message": "left"}"#, ToolOutcome::Unknown, None),
            (r#"{"job": 1, "status": "failed"}"#, ToolOutcome::Unknown, None),
            (r#"{"order": 1, "status": "shipped"}"#, ToolOutcome::Unknown, None),
            (r#"{"status": "ok", "id": 7}"#, ToolOutcome::Ok, None),
            (r#"{"status": "error", "message": "no such file"}"#, ToolOutcome::Failed, None),
            (r#"{"output": "", "status": "timeout"}"#, ToolOutcome::Failed, None),
            (r#"{"output": null, "status": "approval_required"}"#, ToolOutcome::Rejected, None),
            ("exitcode: 0 (execution succeeded)\nCode output: 4", ToolOutcome::Ok, Some(0)),
            ("exitcode: 1 (execution failed)\nCode output:", ToolOutcome::Failed, Some(1)),
            ("exitcode: is what I print", ToolOutcome::Unknown, None),
            ("<returncode>1</returncode>\n<output>\n", ToolOutcome::Failed, Some(1)),
            ("<returncode>0</returncode>\n<output>\n", ToolOutcome::Ok, Some(0)),
            ("Exit code: 2\nWall time: 1.1 seconds\nOutput:\n", ToolOutcome::Failed, Some(2)),
            ("Exit code: 2", ToolOutcome::Unknown, None),
            ("[Tool execution cancelled — user interrupt]", ToolOutcome::Rejected, None),
            ("Error: user not found", ToolOutcome::Failed, None),
            ("the log says error: none", ToolOutcome::Unknown, None),
            ("", ToolOutcome::Unknown, None),
        ] {
            let result = result_of(text.into());
            assert_eq!((result.outcome, result.exit_code), (outcome, code), "{text}");
        }
    }

    #[test]
    fn fields_behind_an_output_that_was_shortened_count() {
        for unit in [r"line\n", r#"say \"x\" "#, r"\u00e9", r"c:\\x "] {
            for shift in 0..8 {
                let output = format!("{}{}", "-".repeat(shift), unit.repeat(9000));
                let text = format!(r#"{{"output":"{output}","exit_code":3,"error":null}}"#);
                let text = Text::new(text);
                assert!(text.cut_bytes() > 0);
                let result = result_of(text);
                assert_eq!(result.exit_code, Some(3), "{unit} {shift}");
                assert_eq!(result.outcome, ToolOutcome::Failed);
            }
        }
    }
}
