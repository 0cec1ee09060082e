//! Parses mini-swe-agent messages, and the commands and exit codes inside their text.

use serde::Deserialize;

use crate::content::Content;
use crate::function_call::Call;
use crate::text::Text;
use crate::time::Moment;
use crate::tokens::Counts;
use crate::wire::{Int, Json, List, Loose, Object};

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Info<'a> {
    pub(super) exit_status: Text<'a>,
    pub(super) mini_version: Text<'a>,
    pub(super) config: Loose,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: Content<'a>,
    pub(super) reasoning_content: Text<'a>,
    pub(super) tool_calls: List<Call<'a>>,
    pub(super) tool_call_id: Text<'a>,
    /// In the Responses API: `message` or `function_call_output`.
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) call_id: Text<'a>,
    /// In the Responses API: the items of an answer, or the result of a call.
    pub(super) output: Text<'a>,
    pub(super) object: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) usage: Object<Counts>,
    pub(super) extra: Object<Extra<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Extra<'a> {
    pub(super) actions: List<Action<'a>>,
    pub(super) returncode: Int,
    pub(super) exception_info: Text<'a>,
    pub(super) response: Object<Response<'a>>,
    pub(super) timestamp: Moment,
    pub(super) interrupt_type: Text<'a>,
    pub(super) exit_status: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Action<'a> {
    pub(super) command: Text<'a>,
    pub(super) tool_call_id: Text<'a>,
}

/// The provider's reply. Its choices repeat the message.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Response<'a> {
    pub(super) model: Text<'a>,
    pub(super) usage: Object<Counts>,
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
pub(super) fn command_of(arguments: Json) -> Text<'static> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Arguments {
        command: Json,
    }
    match serde_json::from_str::<Arguments>(&arguments.0) {
        Ok(inner) if !inner.command.0.is_empty() => inner.command.0,
        _ => arguments.0,
    }
}
