//! Parses mini-swe-agent messages, and the commands and exit codes inside their text.

use serde::Deserialize;

use crate::content::MessageContent;
use crate::function_call::ApiCall;
use crate::text::Text;
use crate::time::Moment;
use crate::tokens::ApiUsage;
use crate::wire::{JsonText, JsonValue, LenientInt, LenientList, LenientObject};

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct MiniInfo<'a> {
    pub(super) exit_status: Text<'a>,
    pub(super) mini_version: Text<'a>,
    pub(super) config: JsonValue,
    pub(super) model_stats: JsonValue,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct MiniMessage<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: MessageContent<'a>,
    pub(super) reasoning_content: Text<'a>,
    pub(super) tool_calls: LenientList<ApiCall<'a>>,
    pub(super) tool_call_id: Text<'a>,
    /// In the Responses API: `message` or `function_call_output`.
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) call_id: Text<'a>,
    /// In the Responses API: the items of an answer, or the result of a call.
    pub(super) output: Text<'a>,
    pub(super) object: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) usage: LenientObject<ApiUsage>,
    pub(super) extra: LenientObject<MiniExtra<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct MiniExtra<'a> {
    pub(super) actions: LenientList<MiniAction<'a>>,
    pub(super) returncode: LenientInt,
    pub(super) exception_info: Text<'a>,
    pub(super) response: LenientObject<MiniResponse<'a>>,
    pub(super) timestamp: Moment,
    pub(super) interrupt_type: Text<'a>,
    pub(super) exit_status: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct MiniAction<'a> {
    pub(super) command: Text<'a>,
    pub(super) tool_call_id: Text<'a>,
}

/// The provider's reply. Its choices repeat the message.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct MiniResponse<'a> {
    pub(super) model: Text<'a>,
    pub(super) usage: LenientObject<ApiUsage>,
}

/// Splits off the fenced command of an answer. Returns the text before it and the command, if there
/// is exactly one.
pub(super) fn split_fence(content: &str) -> (&str, Option<&str>) {
    let mut found = None;
    for opening in ["```bash", "```mswea_bash_command"] {
        for (at, _) in content.match_indices(opening) {
            let rest = &content[at + opening.len()..];
            let Some((_, body)) = rest.split_once('\n').filter(|(line, _)| line.trim().is_empty())
            else {
                continue;
            };
            let Some((command, _)) = body.split_once("\n```") else { continue };
            if found.is_some() {
                // mini-swe-agent rejects an answer with several commands.
                return (content, None);
            }
            found = Some((content[..at].trim_end(), command.trim()));
        }
    }
    found.map_or((content, None), |(text, command)| (text, Some(command)))
}

/// Splits a message into its exit code and its output without tags.
pub(super) fn split_returncode(content: &str) -> (Option<i64>, &str) {
    let Some((_, rest)) = content.split_once("<returncode>") else { return (None, content) };
    let Some((code, rest)) = rest.split_once("</returncode>") else { return (None, content) };
    let Ok(code) = code.trim().parse() else { return (None, content) };
    let output = rest.trim();
    let output = output.strip_prefix("<output>").unwrap_or(output);
    let output = output.strip_suffix("</output>").unwrap_or(output);
    (Some(code), output.trim_matches('\n'))
}

/// Returns the command in the arguments of a call, or all arguments if it is missing.
pub(super) fn command_of(arguments: JsonText) -> Text<'static> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Arguments {
        command: JsonText,
    }
    match serde_json::from_str::<Arguments>(&arguments.0) {
        Ok(inner) if !inner.command.0.is_empty() => inner.command.0,
        _ => arguments.0,
    }
}
