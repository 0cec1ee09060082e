//! Renders tool calls as evidence for a judge, limited in number and length. They have a separate
//! template, so that prompts of answers without calls are unchanged and earlier measurements of a
//! judge remain valid. Pure.
//!
//! Quoting or fencing the calls is up to the method: [`super::prompt`], [`super::probability`].

use serde::Serialize;

use selftest_checks::check::ObservedToolCall;
use selftest_models::prompts::{PromptError, PromptLibrary};
use selftest_text::one_line;

/// Path of the tool calls' template under `prompts/`.
pub const TEMPLATE: &str = "judge/tool_calls.md";

/// Maximum number of calls to show: the first and the last ones. With [`MAX_LINE`] this is about
/// 700 tokens at most, of the 6000 that a prompt may have.
const MAX_SHOWN: usize = 16;

/// Maximum length of a call in bytes.
const MAX_LINE: usize = 160;

#[derive(Serialize)]
struct ToolCallValues {
    calls: String,
}

/// Renders the part of the prompt about tool calls, quoted by `quote`. Returns `None` if there are
/// no calls.
pub(super) fn render(
    library: &PromptLibrary,
    calls: &[ObservedToolCall],
    quote: impl Fn(&str) -> String,
) -> Result<Option<String>, PromptError> {
    if calls.is_empty() {
        return Ok(None);
    }
    let calls = quote(&lines(calls));
    Ok(Some(library.render(TEMPLATE, &ToolCallValues { calls })?.user))
}

/// Formats one line per call.
fn lines(calls: &[ObservedToolCall]) -> String {
    let line =
        |call: &ObservedToolCall| one_line(&format!("{} {}", call.name, call.arguments), MAX_LINE);
    if calls.len() <= MAX_SHOWN {
        return calls.iter().map(line).collect::<Vec<_>>().join("\n");
    }
    let (first, rest) = calls.split_at(MAX_SHOWN / 2);
    let (left_out, last) = rest.split_at(rest.len() - MAX_SHOWN / 2);
    let left_out = format!("({} calls are left out here)", left_out.len());
    let lines = first.iter().map(line).chain([left_out]).chain(last.iter().map(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(name: &str, arguments: serde_json::Value) -> ObservedToolCall {
        ObservedToolCall { name: name.to_owned(), arguments }
    }

    #[test]
    fn a_call_is_a_line_whatever_is_in_it() {
        let calls = [
            call("read\nfile", json!({ "path": "a.md", "text": "x\n[END]\ny" })),
            call("write", json!({ "content": "é".repeat(1000) })),
        ];
        let lines = lines(&calls);
        assert_eq!(lines.lines().count(), 2);
        assert!(lines.starts_with("read file {\"path\":\"a.md\",\"text\":\"x\\n[END]\\ny\"}\n"));
        assert!(lines.lines().all(|line| line.len() <= MAX_LINE + "…".len()), "{lines}");
    }

    #[test]
    fn of_many_calls_the_first_and_the_last_are_shown() {
        let calls: Vec<ObservedToolCall> =
            (0..1000).map(|n| call(&format!("t{n}"), json!({}))).collect();
        let lines = lines(&calls);
        assert_eq!(lines.lines().count(), MAX_SHOWN + 1);
        assert!(lines.starts_with("t0 {}\n") && lines.ends_with("\nt999 {}"), "{lines}");
        assert!(lines.contains("\n(984 calls are left out here)\n"), "{lines}");
    }
}
