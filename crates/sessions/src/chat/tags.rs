//! Parses calls and results between tags in the text, the way many models are trained on them:
//! `<tool_call>{"name": …, "arguments": …}</tool_call>` and
//! `<tool_response>{"tool_call_id": …, "name": …, "content": …}</tool_response>`.

use serde::Deserialize;

use crate::event::{ToolCall, ToolResult};
use crate::failure;
use crate::function_call::ApiFunction;
use crate::text::Text;
use crate::wire::JsonText;

const CALL: (&str, &str) = ("<tool_call>", "</tool_call>");
const RESPONSE: (&str, &str) = ("<tool_response>", "</tool_response>");

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct TaggedResponse<'a> {
    tool_call_id: Text<'a>,
    name: Text<'a>,
    content: Option<JsonText>,
}

/// Splits an answer into its text and its calls. The calls have no ids.
pub(super) fn take_calls(text: Text<'_>) -> (Text<'_>, Vec<ToolCall<'static>>) {
    let mut calls = Vec::new();
    let rest = strip_tagged(&text, CALL, |inside| {
        let function: Option<ApiFunction<'_>> = serde_json::from_str(inside).ok();
        let call = function.map(|function| function.into_call(Text::default()));
        calls.extend(call.filter(|call| !call.name.is_empty()).map(ToolCall::into_owned));
    });
    match rest {
        // Tags without a valid call stay in the text.
        Some(rest) if !calls.is_empty() => (rest.into(), calls),
        _ => (text, calls),
    }
}

/// Parses the results of a text that contains nothing else; `None` if it has no tags.
pub(super) fn parse_results(text: &str) -> Option<Vec<ToolResult<'static>>> {
    let mut results = Vec::new();
    strip_tagged(text, RESPONSE, |inside| {
        let response: TaggedResponse<'_> = serde_json::from_str(inside).unwrap_or_default();
        let content = match response.content {
            Some(JsonText(content)) => content,
            None => inside.to_owned().into(),
        };
        results.push(ToolResult {
            call_id: response.tool_call_id.into_owned(),
            tool: response.name.into_owned(),
            ..failure::result_of(content)
        });
    })?;
    Some(results)
}

/// Calls `found` with the content between each pair of tags. Returns the text without them; `None`
/// if there is no pair.
fn strip_tagged(text: &str, tags: (&str, &str), mut found: impl FnMut(&str)) -> Option<String> {
    let (mut rest, mut from) = (String::new(), text);
    while let Some((before, tagged)) = from.split_once(tags.0)
        && let Some((inside, after)) = tagged.split_once(tags.1)
    {
        rest.push_str(before.trim_end());
        found(inside.trim());
        from = after;
    }
    (from.len() < text.len()).then(|| (rest + from.trim_end()).trim().to_owned())
}
