//! One request of a chat: what the person asked, and the parts of the answer.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use crate::blocks::{ContentBlocks, MessageContext};
use crate::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use crate::failure;
use crate::feed::SessionFeed;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonText, JsonValue, LenientFlag, LenientInt, LenientList, LenientObject};

/// Kinds of parts that only steer the display.
const DISPLAY: [&str; 22] = [
    "codeblockUri",
    "codeCitation",
    "command",
    "confirmation",
    "elicitation",
    "elicitationSerialized",
    "extensions",
    "externalEdits",
    "hook",
    "markdownVuln",
    "mcpServersStarting",
    "multiDiffData",
    "notebookEditGroup",
    "prepareToolInvocation",
    "progressMessage",
    "progressTask",
    "progressTaskSerialized",
    "pullRequest",
    "references",
    "treeData",
    "undoStop",
    "workspaceEdit",
];

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct ChatRequest<'a> {
    /// A text, or an object with one.
    message: Text<'a>,
    response: LenientList<AnswerPart<'a>>,
    result: LenientObject<AnswerResult<'a>>,
    timestamp: Moment,
    model_id: Text<'a>,
    is_canceled: LenientFlag,
    prompt_tokens: LenientInt,
    completion_tokens: LenientInt,
    /// What the person did with the agent's changes since the request before.
    edited_file_events: LenientList<EditedFile<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct EditedFile<'a> {
    uri: LenientObject<FileUri<'a>>,
    /// 1 is kept, 2 undone, 3 changed.
    event_kind: LenientInt,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct FileUri<'a> {
    path: Text<'a>,
}

impl EditedFile<'_> {
    fn send(self, time: Option<Timestamp>, feed: &mut SessionFeed<'_>) {
        let mark = match self.event_kind.count() {
            2 => EventMark::EditUndone,
            3 => EventMark::FileEdited,
            _ => return,
        };
        let text = self.uri.0.unwrap_or_default().path;
        let (origin, mark) = (EventOrigin::Human, Some(mark));
        feed.send(Event { origin, text, time, mark, ..Event::default() });
    }
}

/// A part of the answer. Markdown has no kind.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct AnswerPart<'a> {
    kind: Text<'a>,
    value: JsonValue,
    content: JsonValue,
    name: Text<'a>,
    inline_reference: JsonValue,
    uri: JsonValue,
    tool_id: Text<'a>,
    tool_call_id: Text<'a>,
    invocation_message: JsonValue,
    past_tense_message: JsonValue,
    is_confirmed: JsonValue,
    is_complete: LenientFlag,
    tool_specific_data: JsonValue,
    result_details: JsonValue,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct AnswerResult<'a> {
    error_details: LenientObject<AnswerError<'a>>,
    metadata: LenientObject<AnswerMetadata<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AnswerError<'a> {
    message: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct AnswerMetadata<'a> {
    tool_call_rounds: LenientList<CallRound<'a>>,
    tool_call_results: LenientObject<BTreeMap<String, JsonValue>>,
    resolved_model: Text<'a>,
    prompt_tokens: LenientInt,
    output_tokens: LenientInt,
}

/// One call to the model, and the tools that it called.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct CallRound<'a> {
    response: Text<'a>,
    thinking: Text<'a>,
    tool_calls: LenientList<RoundCall<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct RoundCall<'a> {
    id: Text<'a>,
    name: Text<'a>,
    arguments: JsonText,
}

impl ChatRequest<'_> {
    pub(super) fn send(self, feed: &mut SessionFeed<'_>) {
        let time = self.timestamp.0;
        feed.record_time(self.timestamp);
        self.edited_file_events.0.into_iter().for_each(|file| file.send(time, feed));
        feed.send_text(EventRole::User, EventOrigin::Human, self.message, time);
        let result = self.result.0.unwrap_or_default();
        let metadata = result.metadata.0.unwrap_or_default();
        let model = if metadata.resolved_model.is_empty() {
            self.model_id.strip_prefix("copilot/").unwrap_or(&self.model_id)
        } else {
            &metadata.resolved_model
        };
        // The choice of the model was left to Copilot, and which one answered is not recorded.
        if model != "auto" {
            feed.head.add_model(model);
        }
        // Versions write the counts in one place, in the other, or in both.
        let input = self.prompt_tokens.count().max(metadata.prompt_tokens.count());
        let output = self.completion_tokens.count().max(metadata.output_tokens.count());
        let usage = TokenCounts { input, output, cached: 0 };
        let mut speaker = MessageContext::new(EventOrigin::Agent, time);
        speaker.usage = (usage != TokenCounts::default()).then_some(usage);

        let rounds = metadata.tool_call_rounds.0;
        let results = metadata.tool_call_results.0.unwrap_or_default();
        let has_rounds = rounds.iter().any(|round| !round.tool_calls.0.is_empty());
        let blocks = if has_rounds {
            of_rounds(rounds, &results, &self.response.0)
        } else {
            of_parts(self.response.0, feed)
        };
        if !blocks.is_empty() {
            blocks.send_answer(&speaker, feed);
        }
        let error = result.error_details.0.map(|error| error.message).unwrap_or_default();
        let mark = if self.is_canceled.is_set() {
            Some(EventMark::Interrupted)
        } else {
            (!error.is_empty()).then_some(EventMark::ApiError)
        };
        if mark.is_some() {
            feed.send(Event { text: error, time, mark, ..Event::default() });
        }
    }
}

/// Returns the answer as the model gave it. The parts add what became of each call.
fn of_rounds<'a>(
    rounds: Vec<CallRound<'a>>,
    results: &BTreeMap<String, JsonValue>,
    parts: &[AnswerPart<'a>],
) -> ContentBlocks<'a> {
    let mut blocks = ContentBlocks::default();
    let after_last_call = parts.iter().rposition(AnswerPart::is_call).map_or(0, |at| at + 1);
    let mut ending = Text::default();
    // The rounds may lack the last answer, which was shown after the last call.
    for part in &parts[after_last_call..] {
        say(&mut ending, &part.words());
    }
    let shown: Vec<&AnswerPart<'_>> = parts.iter().filter(|part| part.is_call()).collect();
    let count = rounds.iter().map(|round| round.tool_calls.0.len()).sum::<usize>();
    let mut number = 0;
    let mut is_last_said = false;
    for round in rounds {
        is_last_said = !round.response.is_empty() && round.tool_calls.0.is_empty();
        blocks.think(round.thinking);
        blocks.say(round.response);
        let mut of_round = Vec::new();
        for call in round.tool_calls.0 {
            // Ids of newer versions have an addition, those of older ones differ.
            let by_id = shown.iter().find(|part| part.tool_call_id.starts_with(call.id.as_str()));
            // Only if every call was shown: otherwise a place says nothing.
            let by_place = || shown.get(number).filter(|_| shown.len() == count);
            let part = by_id.filter(|_| !call.id.is_empty()).or_else(by_place);
            number += 1;
            let text = results.get(call.id.as_str()).map(output_of).unwrap_or_default();
            let seen = part.and_then(|part| part.result());
            if seen.is_some() || !text.is_empty() {
                let mut result = failure::result_of(text);
                if let Some(seen) = seen {
                    if seen.outcome != ToolOutcome::Unknown {
                        result.outcome = seen.outcome;
                    }
                    result.exit_code = seen.exit_code.or(result.exit_code);
                    if result.text.is_empty() {
                        result.text = seen.text;
                    }
                }
                result.call_id = call.id.clone();
                of_round.push(result);
            }
            blocks.call(ToolCall { id: call.id, name: call.name, arguments: call.arguments.0 });
        }
        // After all calls of the round: they were made at once, and a result would end the step.
        for result in of_round {
            blocks.result(result.into_owned());
        }
    }
    if !is_last_said {
        blocks.say(ending);
    }
    blocks
}

/// Returns the answer from what was shown.
fn of_parts<'a>(parts: Vec<AnswerPart<'a>>, feed: &mut SessionFeed<'_>) -> ContentBlocks<'a> {
    let mut blocks = ContentBlocks::default();
    let has_calls = parts.iter().any(AnswerPart::is_call);
    let mut text = Text::default();
    let mut calls: Vec<Text<'a>> = Vec::new();
    for (number, part) in parts.into_iter().enumerate() {
        match part.kind.as_str() {
            "thinking" => blocks.think(part.value.text("")),
            "toolInvocationSerialized" | "toolInvocation" => {
                blocks.say(std::mem::take(&mut text));
                let mut id = part.tool_call_id.clone();
                if id.is_empty() {
                    id = Text::from(format!("call {number}"));
                }
                let result = part.result();
                // A call is written again when it has changed.
                if !calls.contains(&id) {
                    calls.push(id.clone());
                    let (name, arguments) = (part.tool_id.clone(), part.arguments());
                    blocks.call(ToolCall { id: id.clone(), name, arguments });
                }
                if let Some(result) = result {
                    blocks.result(ToolResult { call_id: id, ..result });
                }
            }
            // Beside calls, the edits are those of the calls.
            "textEditGroup" if !has_calls => {
                blocks.say(std::mem::take(&mut text));
                let id = Text::from(format!("edit {number}"));
                let arguments = Text::from(
                    serde_json::json!({ "path": path_of(&part.uri).as_str() }).to_string(),
                );
                blocks.call(ToolCall { id: id.clone(), name: "edit".into(), arguments });
                let outcome = ToolOutcome::Ok;
                blocks.result(ToolResult { call_id: id, outcome, ..ToolResult::default() });
            }
            // Markdown is stored in fragments, which continue each other without line breaks.
            "" | "markdownContent" | "inlineReference" | "warning" => say(&mut text, &part.words()),
            "textEditGroup" => {}
            kind if DISPLAY.contains(&kind) => {}
            kind => feed.count_unknown(kind),
        }
    }
    blocks.say(text);
    blocks
}

/// Appends a fragment. The fragments of an answer are one text.
fn say(text: &mut Text<'_>, fragment: &str) {
    let whole = format!("{}{fragment}", text.as_str());
    *text = Text::from(whole);
}

/// Returns the output that the model saw.
fn output_of(result: &JsonValue) -> Text<'static> {
    let mut text = Text::default();
    // A pointer per part instead of a list: `JsonValue` is read only by pointer. The bound is for
    // hostile files.
    for number in 0..50 {
        let part = result.text(&format!("/content/{number}/value"));
        if part.is_empty() {
            break;
        }
        text.append(&part);
    }
    text
}

/// Returns the path of a URI as VS Code writes it.
fn path_of(uri: &JsonValue) -> Text<'static> {
    let path = uri.text("/fsPath");
    if path.is_empty() { uri.text("/path") } else { path }
}

/// Returns the text of a value that is a text or a Markdown string.
fn markdown(value: &JsonValue) -> Text<'static> {
    let text = value.text("/value");
    if text.is_empty() && !value.text("").starts_with('{') { value.text("") } else { text }
}

impl AnswerPart<'_> {
    fn is_call(&self) -> bool {
        matches!(self.kind.as_str(), "toolInvocationSerialized" | "toolInvocation")
    }

    /// Returns the text of a part of the answer.
    fn words(&self) -> String {
        match self.kind.as_str() {
            "" | "warning" => markdown(&self.value).as_str().to_owned(),
            "markdownContent" => {
                let text = markdown(&self.content);
                let text = if text.is_empty() { markdown(&self.value) } else { text };
                text.as_str().to_owned()
            }
            "inlineReference" => {
                let path = path_of(&self.inline_reference);
                let name = if self.name.is_empty() {
                    path.rsplit(['/', '\\']).next().unwrap_or_default()
                } else {
                    self.name.as_str()
                };
                if name.is_empty() { String::new() } else { format!("`{name}`") }
            }
            _ => String::new(),
        }
    }

    fn arguments(&self) -> Text<'static> {
        let data = &self.tool_specific_data;
        // The last version of the command is the one that ran: the user may edit it before it does.
        let edited = ["userEdited", "toolEdited", "original"];
        let command = edited.map(|name| data.text(&format!("/commandLine/{name}")));
        let command = command.into_iter().find(|command| !command.is_empty());
        let command = command.unwrap_or_else(|| data.text("/command"));
        if !command.is_empty() {
            return Text::from(serde_json::json!({ "command": command.as_str() }).to_string());
        }
        let given = [data.text("/rawInput"), self.result_details.text("/input")];
        given.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| {
            let shown = markdown(&self.invocation_message);
            let shown = serde_json::json!({ "shown": shown.as_str() }).to_string();
            Text::from(shown)
        })
    }

    /// Returns what became of the call; `None` if it has not ended.
    fn result(&self) -> Option<ToolResult<'static>> {
        let exit_code: LenientInt = self.tool_specific_data.part("/terminalCommandState/exitCode");
        let is_error: LenientFlag = self.result_details.part("/isError");
        // A flag in older versions; in newer ones 0 is denied and 5 skipped.
        let confirmed: LenientFlag = self.is_confirmed.part("");
        let reason: LenientInt = self.is_confirmed.part("/type");
        let is_refused = confirmed.0 == Some(false) || matches!(reason.0, Some(0 | 5));
        let outcome = match (exit_code.0, is_error.0) {
            _ if is_refused => ToolOutcome::Rejected,
            (Some(0), _) | (None, Some(false)) => ToolOutcome::Ok,
            (Some(_), _) | (None, Some(true)) => ToolOutcome::Failed,
            _ if !self.is_complete.is_set() => return None,
            // It has ended, and nothing says how.
            (None, None) => ToolOutcome::Unknown,
        };
        let terminal = self.tool_specific_data.text("/terminalCommandOutput/text");
        let texts = [terminal, details(&self.result_details), markdown(&self.past_tense_message)];
        let text = texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        Some(ToolResult { text, outcome, exit_code: exit_code.0, ..ToolResult::default() })
    }
}

/// Returns the output in the details of a result: a text, or a list of texts.
fn details(details: &JsonValue) -> Text<'static> {
    let first = details.text("/output/0/value");
    let output = details.text("/output");
    if !first.is_empty() {
        first
    } else if output.starts_with(['{', '[']) {
        Text::default()
    } else {
        output
    }
}
