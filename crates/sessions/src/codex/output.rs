//! Determines the outcome of tool calls: from the tools' output, which has had five forms, and from
//! `…_end` events, which are more reliable than the output and come before or after it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use memchr::memmem;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess};
use serde_json::value::RawValue;

use super::RolloutPayload;
use crate::content::MessageContent;
use crate::event::{ToolOutcome, ToolResult};
use crate::failure;
use crate::text::Text;
use crate::wire::{AnyJson, LenientInt, LenientObject, deserialize_any_json};

/// Maximum number of leading lines in which an exit code may appear.
const MAX_HEADER_LINES: usize = 6;

/// `output` of a tool: JSON in a string with `metadata.exit_code`, plain text, or a list or object
/// of text parts.
#[derive(Default)]
pub(super) struct CodexOutput {
    text: Text<'static>,
    /// From the metadata of the JSON form.
    exit_code: Option<i64>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct JsonOutput<'a> {
    output: Text<'a>,
    metadata: LenientObject<OutputMetadata>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputMetadata {
    exit_code: LenientInt,
}

deserialize_any_json!(CodexOutput);

impl<'de> AnyJson<'de> for CodexOutput {
    fn string(&mut self, text: Cow<'de, str>) {
        // Parse before the text is bounded, because the metadata is at its end.
        if text.starts_with('{')
            && let Ok(structured) = serde_json::from_str::<JsonOutput<'_>>(&text)
            && let Some(metadata) = structured.metadata.0
        {
            self.exit_code = metadata.exit_code.0;
            self.text = structured.output.into_owned();
        } else {
            self.text = Text::new(text).into_owned();
        }
    }

    fn list<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        let content = MessageContent::deserialize(SeqAccessDeserializer::new(list))?;
        self.text = content.0.into_owned();
        Ok(())
    }

    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        self.text = Text::deserialize(MapAccessDeserializer::new(map))?.into_owned();
        Ok(())
    }
}

impl CodexOutput {
    /// Parses the output. If it is not `wanted`, the text of a successful call is left out.
    pub(super) fn read(json: Option<&RawValue>, wanted: bool) -> Self {
        let Some(json) = json.map(RawValue::get) else { return Self::default() };
        // Outputs are most of a rollout, and unescaping them most of the time that reading takes.
        if !wanted && is_clear_success(json) {
            return Self { text: Text::default(), exit_code: Some(0) };
        }
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Builds the result, as far as the output alone determines it.
    pub(super) fn result(self) -> ToolResult<'static> {
        let text = self.text;
        // Before the exit code: a refused command has one too, which is not the program's.
        if is_rejection(&text) {
            return ToolResult { outcome: ToolOutcome::Rejected, text, ..ToolResult::default() };
        }
        // Metadata is more reliable than the text.
        if let Some(exit_code) = self.exit_code.or_else(|| stated_exit_code(&text)) {
            let outcome = if exit_code == 0 { ToolOutcome::Ok } else { ToolOutcome::Failed };
            return ToolResult {
                outcome,
                exit_code: Some(exit_code),
                text,
                ..ToolResult::default()
            };
        }
        if is_failure(&text) {
            return ToolResult { outcome: ToolOutcome::Failed, text, ..ToolResult::default() };
        }
        if text.starts_with("Success.") || text.as_str() == "Plan updated" {
            return ToolResult { outcome: ToolOutcome::Ok, text, ..ToolResult::default() };
        }
        failure::result_of(text)
    }
}

/// Start of the metadata of a successful call, escaped.
const METADATA: &str = r#"\"metadata\":{\"exit_code\":0"#;

/// Built once, because every output is searched.
static LAST_METADATA: LazyLock<memmem::FinderRev<'static>> =
    LazyLock::new(|| memmem::FinderRev::new(METADATA));

/// Returns true if the JSON of an output states success explicitly, at its start or end. It looks
/// at the escaped form, where the same text inside an output would be escaped twice. The middle is
/// searched only if it may be a rejection.
fn is_clear_success(json: &str) -> bool {
    const MIN_LENGTH: usize = 3 * MAX_REJECTION;
    const ENDING: usize = 200;
    let worked = || {
        if json.starts_with(r#""Exit code: 0\n"#) {
            return true;
        }
        let end = &json[json.ceil_char_boundary(json.len().saturating_sub(ENDING))..];
        let after = LAST_METADATA.rfind(end.as_bytes()).map(|at| &end[at + METADATA.len()..]);
        // Only in this form is the metadata Codex's own and not part of an output.
        json.starts_with(r#""{\"output\":\""#)
            && after.is_some_and(|after| after.starts_with([',', '}']))
    };
    worked() && (json.len() >= MIN_LENGTH || !may_be_rejection(json))
}

/// Returns true if JSON may contain a text of [`is_rejection`]. All of them contain one of two
/// words, unless their letters are escaped.
fn may_be_rejection(json: &str) -> bool {
    MARKS_OF_REJECTION.iter().any(|mark| mark.find(json.as_bytes()).is_some())
}

/// The words of [`may_be_rejection`]; built once, because every long output is searched.
static MARKS_OF_REJECTION: LazyLock<[memmem::Finder<'static>; 3]> =
    LazyLock::new(|| ["abort", "reject", r"\u"].map(memmem::Finder::new));

/// Maximum bytes of a rejection.
const MAX_REJECTION: usize = 2000;

/// Returns true if the user or a policy refused the call, or the user stopped it.
pub(super) fn is_rejection(text: &str) -> bool {
    const BEGINNINGS: [&str; 5] = [
        "rejected by user",
        "rejected: ",
        "aborted by user",
        "This action was rejected",
        "user rejected",
    ];
    // The reason follows on the first line: "exec command rejected by user".
    let first = text.lines().next().unwrap_or_default();
    // Real rejections are short; a long output may only quote one.
    text.len() < MAX_REJECTION
        && (text == "aborted"
            || text.starts_with("Wall time: ") && text.ends_with("\naborted by user")
            || first.ends_with("rejected by user")
            || BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)))
}

/// Parses `Exit code: 1`, `Process exited with code 1`, or
/// `… execution error: …, exit code: 1, stdout`.
fn stated_exit_code(text: &str) -> Option<i64> {
    // These messages state the exit code in the middle of the first line.
    if text.starts_with("failed in sandbox") || text.starts_with("execution error") {
        let (_, rest) = text.split_once("exit code: ")?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
        return rest[..end].parse().ok();
    }
    // The exit code comes before the output, which may contain a similar line.
    let header =
        text.lines().take(MAX_HEADER_LINES).take_while(|line| !line.starts_with("Output:"));
    for line in header {
        let code = line
            .strip_prefix("Exit code: ")
            .or_else(|| line.strip_prefix("Process exited with code "));
        if let Some(code) = code {
            return code.trim().parse().ok();
        }
    }
    None
}

/// Returns true if the text starts like a failure report of Codex.
fn is_failure(text: &str) -> bool {
    const BEGINNINGS: [&str; 8] = [
        "failed in sandbox",
        "execution error",
        "failed to parse function arguments",
        "unsupported call",
        "unsupported custom tool call",
        "apply_patch verification failed",
        "command timed out",
        "err: ",
    ];
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// Maximum number of calls tracked, so that an untrusted file cannot exhaust memory.
const MAX_CALLS: usize = 100_000;

/// Outcome of one call.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct CallEnding {
    pub(super) outcome: ToolOutcome,
    pub(super) exit_code: Option<i64>,
}

impl CallEnding {
    /// Reads the outcome from an event; `None` if the event does not state it.
    pub(super) fn of_event(payload: &RolloutPayload<'_>) -> Option<Self> {
        // For every kind of event: a declined patch also says `success: false`, as a failed one
        // does.
        let declined = payload.status.as_str() == "declined";
        if declined {
            return Some(Self { outcome: ToolOutcome::Rejected, exit_code: None });
        }
        let worked = match payload.kind.as_str() {
            "exec_command_end" => {
                let exit_code = payload.exit_code.0?;
                let outcome = if exit_code == 0 { ToolOutcome::Ok } else { ToolOutcome::Failed };
                return Some(Self { outcome, exit_code: Some(exit_code) });
            }
            "mcp_tool_call_end" => {
                let result = payload.result.0.as_ref()?;
                // A refusal is reported as an error, so its text decides.
                if is_rejection(&result.err) {
                    return Some(Self { outcome: ToolOutcome::Rejected, exit_code: None });
                }
                // A tool may report its own error in a successful MCP response.
                result.err.is_empty() && !result.ok.0.as_ref()?.is_error.is_set()
            }
            _ => payload.success.0?,
        };
        let outcome = if worked { ToolOutcome::Ok } else { ToolOutcome::Failed };
        Some(Self { outcome, exit_code: None })
    }

    /// Reads the outcome from a status.
    pub(super) fn of_status(status: &str) -> Option<Self> {
        let outcome = match status {
            "completed" => ToolOutcome::Ok,
            "failed" => ToolOutcome::Failed,
            "declined" => ToolOutcome::Rejected,
            _ => return None,
        };
        Some(Self { outcome, exit_code: None })
    }

    /// Builds a result with this outcome.
    pub(super) fn result(self, text: Text<'_>) -> ToolResult<'_> {
        ToolResult { outcome: self.outcome, exit_code: self.exit_code, text, ..Default::default() }
    }
}

/// State of one call.
#[derive(Default)]
struct TrackedCall {
    has_started: bool,
    /// Outcome that was sent to the sink.
    sent: Option<CallEnding>,
    /// Outcome according to the call's event.
    ending: Option<CallEnding>,
}

/// The calls of a rollout, by id.
#[derive(Default)]
pub(super) struct CallEndings {
    calls: HashMap<String, TrackedCall>,
    order: Vec<String>,
    needs_second_pass: bool,
}

impl CallEndings {
    fn call(&mut self, id: &str) -> Option<&mut TrackedCall> {
        if !self.calls.contains_key(id) {
            if id.is_empty() || self.calls.len() >= MAX_CALLS {
                return None;
            }
            self.order.push(id.to_owned());
            self.calls.insert(id.to_owned(), TrackedCall::default());
        }
        self.calls.get_mut(id)
    }

    /// Records a call.
    pub(super) fn record_call(&mut self, id: &str) {
        if let Some(call) = self.call(id) {
            call.has_started = true;
        }
    }

    /// Records the outcome of a call.
    pub(super) fn record_ending(&mut self, id: &str, ending: CallEnding) {
        let Some(call) = self.call(id) else { return };
        // A rejection in the output is final, because its event reports a plain failure.
        let differs = |sent: CallEnding| sent != ending && sent.outcome != ToolOutcome::Rejected;
        let is_news = call.sent.is_some_and(differs);
        call.ending = Some(ending);
        self.needs_second_pass |= is_news;
    }

    /// Returns true if an event already reported the call as failed. Its output then describes the
    /// failure.
    pub(super) fn has_failed(&self, id: &str) -> bool {
        let ending = self.calls.get(id).and_then(|call| call.ending);
        ending.is_some_and(|ending| ending.outcome == ToolOutcome::Failed)
    }

    /// Records that the output of a call was sent, with the output's own outcome. Returns the
    /// outcome of the event, if it is already known.
    pub(super) fn record_output(
        &mut self,
        id: &str,
        result: &ToolResult<'_>,
    ) -> Option<CallEnding> {
        let call = self.call(id)?;
        let own = CallEnding { outcome: result.outcome, exit_code: result.exit_code };
        // A refusal is also reported as a failure with exit code -1.
        let ending = call.ending.filter(|_| own.outcome != ToolOutcome::Rejected);
        call.sent = Some(ending.unwrap_or(own));
        ending
    }

    /// Returns calls that ended according to an event but have no output.
    pub(super) fn unanswered(&mut self) -> Vec<(String, CallEnding)> {
        // A call that never started in this file belongs to the copied history.
        let open = |id: &String| {
            let call = self.calls.get(id).filter(|call| call.has_started && call.sent.is_none())?;
            Some((id.clone(), call.ending?))
        };
        self.order.iter().filter_map(open).collect()
    }

    /// Returns true if an event contradicted an outcome already sent.
    pub(super) fn needs_second_pass(&self) -> bool {
        self.needs_second_pass
    }

    /// Resets what this pass has sent, but keeps what it learned.
    pub(super) fn reset_pass(&mut self) {
        self.needs_second_pass = false;
        for call in self.calls.values_mut() {
            // The endings stay: knowing them is the reason for the second pass.
            (call.has_started, call.sent) = (false, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Leaving out the text must not change what is known of the call.
    fn same(json: &str) -> (ToolOutcome, Option<i64>, usize) {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        let whole = CodexOutput::read(Some(raw), true).result();
        let brief = CodexOutput::read(Some(raw), false).result();
        assert_eq!((whole.outcome, whole.exit_code), (brief.outcome, brief.exit_code), "{json}");
        (brief.outcome, brief.exit_code, brief.text.len())
    }

    fn structured(output: &str, code: i64) -> String {
        let inner = format!(
            r#"{{"output":{},"metadata":{{"exit_code":{code},"duration_seconds":0.1}}}}"#,
            serde_json::to_string(output).unwrap()
        );
        serde_json::to_string(&inner).unwrap()
    }

    #[test]
    fn a_long_output_of_a_call_that_worked_is_left_out() {
        let long = "line\n".repeat(2000);
        assert_eq!(same(&structured(&long, 0)), (ToolOutcome::Ok, Some(0), 0));
        assert_eq!(same(&structured(&long, 1)), (ToolOutcome::Failed, Some(1), long.len()));
        assert_eq!(same(&structured(&long, -1)).0, ToolOutcome::Failed);
        assert_eq!(same(&structured("short", 0)), (ToolOutcome::Ok, Some(0), 0));
        for refused in ["rejected by user", "aborted", "user rejected it"] {
            assert_eq!(same(&structured(refused, 0)).0, ToolOutcome::Rejected);
        }
        let plain = |head: &str| serde_json::to_string(&format!("{head}{long}")).unwrap();
        assert_eq!(same(&plain("Exit code: 0\nWall time: 1\nOutput:\n")).2, 0);
        assert_eq!(same(&plain("Exit code: 1\nWall time: 1\nOutput:\n")).0, ToolOutcome::Failed);
    }

    proptest! {
        #[test]
        fn an_output_that_quotes_others_is_not_mistaken(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("\"metadata\":{\"exit_code\":0}}".to_owned()),
                    Just("{\"output\":\"".to_owned()),
                    Just("Exit code: 0\n".to_owned()),
                    Just("rejected: no".to_owned()),
                    Just("aborted".to_owned()),
                    "[a-z\"\\\\{}:,0]{0,12}",
                    Just("x".repeat(7000)),
                ],
                0..6,
            ),
            code in -1..3_i64,
        ) {
            let text = parts.concat();
            same(&structured(&text, code));
            // Broken JSON between the right ends is not told from whole one.
            if !text.starts_with("{\"output\":\"") {
                same(&serde_json::to_string(&text).unwrap());
            }
        }
    }
}
