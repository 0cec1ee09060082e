//! Parses one content block under all known field names and decides what it is.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};

use super::{ContentBlocks, ToolOutput};
use crate::content::{MediaInfo, MessageContent};
use crate::event::{ToolCall, ToolOutcome, ToolResult};
use crate::failure;
use crate::text::Text;
use crate::wire::{AnyJson, JsonText, JsonValue, LenientFlag, LenientObject, deserialize_any_json};

/// Values of `state` for a failed call.
const FAILED: [&str; 6] = ["error", "failed", "output-error", "incomplete", "timeout", "errored"];

/// Values of `state` for a call that a user or a policy refused.
const REFUSED: [&str; 8] = [
    "rejected",
    "rejected-by-user",
    "denied",
    "output-denied",
    "cancelled",
    "canceled",
    "declined",
    "blocked",
];

/// Values of `state` for a successful call.
const SUCCEEDED: [&str; 7] =
    ["success", "completed", "output-available", "result", "done", "ok", "finished"];

/// Values of `state` for a call without a result so far.
const OPEN: [&str; 8] = [
    "call",
    "partial-call",
    "input-streaming",
    "input-available",
    "approval-requested",
    "in_progress",
    "pending",
    "running",
];

/// Fields that may be alone in a part and carry no content.
const IGNORED_FIELDS: [&str; 8] = [
    "thoughtSignature",
    "thought_signature",
    "signature",
    "cache_control",
    "providerMetadata",
    "providerOptions",
    "videoMetadata",
    "index",
];

/// Prefixes of the text that agents put in place of a result when the user refuses a call.
const REFUSALS: [&str; 4] = [
    "The user denied this operation",
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "User rejected",
];

/// Prefixes of text that marks a failure, in agents without an error flag.
const FAILURES: [&str; 3] =
    ["The tool execution failed with the following error", "<tool_use_error>", "<error>"];

/// Returns the text of an error; for an object, its message.
fn error_text(error: Text<'static>) -> Text<'static> {
    if !error.starts_with('{') {
        // Some agents write the field into every result, and put `false` or an empty list there
        // when nothing failed.
        return if matches!(error.as_str(), "false" | "[]") { Text::default() } else { error };
    }
    let message = JsonValue::parse(&error).text("/message");
    if message.is_empty() { error } else { message }
}

/// Builds a result from plain text.
pub(super) fn text_result(text: Text<'_>) -> ToolResult<'_> {
    ContentBlock { text, ..ContentBlock::default() }.take_result()
}

/// A block whose fields are parsed but not yet interpreted.
#[derive(Default)]
pub(in super::super) struct ContentBlock<'a> {
    pub(in super::super) kind: Text<'a>,
    pub(in super::super) id: Text<'a>,
    /// Id that links a call and its result.
    pub(in super::super) call_id: Text<'a>,
    pub(in super::super) name: Text<'a>,
    pub(in super::super) text: Text<'a>,
    thinking: Text<'a>,
    is_thought: LenientFlag,
    arguments: Text<'a>,
    output: Option<ToolOutput>,
    is_error: LenientFlag,
    pub(in super::super) error: Text<'a>,
    pub(in super::super) state: Text<'a>,
    /// Reason why a message ended.
    pub(in super::super) reason: Text<'a>,
    media: MediaInfo,
    media_type: Text<'a>,
    /// Set by a field that identifies the block if it has no type.
    shape: Option<BlockShape>,
    /// First unknown field.
    unknown_field: Text<'a>,
}

/// Kind of block, as identified by one of its fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockShape {
    Call,
    Result,
}

deserialize_any_json!(ContentBlock<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for ContentBlock<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.text = Text::new(text);
    }

    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "content" => self.text.add(map.next_value::<MessageContent<'de>>()?.0),
                key => self.field(key, &mut map)?,
            }
        }
        Ok(())
    }
}

/// goose: `{"status": "success", "value": {"name": …, "arguments": …}}`.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GooseCall<'a> {
    status: Text<'a>,
    value: LenientObject<ContentBlock<'a>>,
    name: Text<'a>,
    arguments: JsonText,
    error: Text<'a>,
}

/// goose: `{"status": "error", "error": …}`, or a list of contents on success.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GooseResult<'a> {
    status: Text<'a>,
    value: Option<ToolOutput>,
    error: Text<'a>,
}

impl<'a> ContentBlock<'a> {
    pub(super) fn of_text(text: Text<'a>) -> Self {
        Self { kind: Text::from("text"), text, ..Self::default() }
    }

    /// Parses one field, except `content`, which differs between blocks and messages.
    pub(in super::super) fn field<'de: 'a, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match key {
            "type" => self.kind = map.next_value()?,
            "id" => self.id = map.next_value()?,
            "call_id" | "tool_use_id" | "toolUseID" | "toolUseId" | "toolCallId"
            | "tool_call_id" | "callID" | "callId" => self.call_id = map.next_value()?,
            "name" | "toolName" | "tool_name" => self.name = map.next_value()?,
            "text" | "refusal" | "transcript" => {
                self.text.add(map.next_value::<MessageContent<'de>>()?.0);
            }
            "thinking" | "reasoning" | "reasoningText" | "summary" => {
                let thought = map.next_value::<MessageContent<'de>>()?.0;
                crate::content::add_thinking(&mut self.thinking, thought);
            }
            "reason" => self.reason = map.next_value()?,
            "thought" => self.is_thought = map.next_value()?,
            "input" | "args" | "arguments" | "action" | "code" | "queries" | "operation" => {
                let JsonText(arguments) = map.next_value()?;
                if self.arguments.is_empty() {
                    self.arguments = arguments;
                }
            }
            "output" | "result" | "response" => {
                let output = map.next_value::<ToolOutput>()?;
                self.output = Some(output);
            }
            "is_error" | "isError" => self.is_error = map.next_value()?,
            "error" | "errorText" | "errorMessage" => {
                let JsonText(error) = map.next_value()?;
                self.error.add(error_text(error));
            }
            "state" | "status" | "outcome" => {
                let state = map.next_value::<Text<'de>>()?;
                if self.state.is_empty() {
                    self.state = state;
                }
            }
            // Inspect writes only the name here.
            "function" => {
                let mut inner = map.next_value::<ContentBlock<'de>>()?;
                if inner.name.is_empty() {
                    inner.name = std::mem::take(&mut inner.text);
                }
                self.merge(inner);
            }
            "custom" | "toolInvocation" | "run" => {
                let inner = map.next_value::<LenientObject<ContentBlock<'de>>>()?.0;
                self.merge(inner.unwrap_or_default());
            }
            "functionCall" | "function_call" | "executableCode" | "executable_code" => {
                if let LenientObject(Some(inner)) =
                    map.next_value::<LenientObject<ContentBlock<'de>>>()?
                {
                    self.merge(inner);
                    // Gemini's parts have no type; the field identifies them.
                    self.shape = Some(BlockShape::Call);
                    if self.name.is_empty() {
                        self.name = Text::from("code_execution");
                    }
                }
            }
            "functionResponse"
            | "function_response"
            | "codeExecutionResult"
            | "code_execution_result" => {
                if let LenientObject(Some(inner)) =
                    map.next_value::<LenientObject<ContentBlock<'de>>>()?
                {
                    self.merge(inner);
                    self.shape = Some(BlockShape::Result);
                }
            }
            "toolCall" => {
                let tried =
                    map.next_value::<LenientObject<GooseCall<'de>>>()?.0.unwrap_or_default();
                let inner = tried.value.0.unwrap_or_default();
                self.merge(inner);
                if self.name.is_empty() {
                    (self.name, self.arguments) = (tried.name, tried.arguments.0);
                }
                // A call that could not be parsed still counts as made by the model.
                if tried.status.as_str() == "error" && self.name.is_empty() {
                    self.name = Text::from("unreadable call");
                    self.arguments = tried.error;
                }
            }
            "toolResult" => {
                let answered =
                    map.next_value::<LenientObject<GooseResult<'de>>>()?.0.unwrap_or_default();
                (self.state, self.error) = (answered.status, answered.error);
                self.output = answered.value;
            }
            "source" | "image_url" | "imageUrl" | "input_audio" | "file" | "inlineData"
            | "inline_data" | "fileData" | "file_data" | "image" | "url" | "data" | "blob" => {
                let media = map.next_value::<MediaInfo>()?;
                if self.media == MediaInfo::default() {
                    self.media = media;
                }
            }
            "mediaType" | "mimeType" | "media_type" | "mime_type" => {
                self.media_type = map.next_value()?;
            }
            key => {
                if self.unknown_field.is_empty() && !IGNORED_FIELDS.contains(&key) {
                    self.unknown_field = Text::from(key.to_owned());
                }
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    /// Merges the fields of a nested object; existing values win.
    fn merge(&mut self, inner: Self) {
        let take = |own: &mut Text<'a>, other: Text<'a>| {
            if own.is_empty() {
                *own = other;
            }
        };
        take(&mut self.id, inner.id);
        take(&mut self.call_id, inner.call_id);
        take(&mut self.name, inner.name);
        take(&mut self.text, inner.text);
        take(&mut self.arguments, inner.arguments);
        take(&mut self.error, inner.error);
        take(&mut self.state, inner.state);
        self.output = self.output.take().or(inner.output);
        self.is_error = LenientFlag(self.is_error.0.or(inner.is_error.0));
    }

    /// Converts an element of `tool_calls` to a call; `None` without a name.
    pub(super) fn into_listed_call(self) -> Option<ToolCall<'a>> {
        let id = if self.id.is_empty() { self.call_id } else { self.id };
        (!self.name.is_empty()).then_some(ToolCall {
            id,
            name: self.name,
            arguments: self.arguments,
        })
    }

    /// Returns the id that links call and result.
    pub(in super::super) fn given_id(&self) -> &str {
        if self.call_id.is_empty() { &self.id } else { &self.call_id }
    }

    /// Takes the id that links call and result. Anthropic's calls have only `id`.
    fn take_id(&mut self) -> Text<'a> {
        let id = std::mem::take(&mut self.call_id);
        if id.is_empty() { std::mem::take(&mut self.id) } else { id }
    }

    fn take_call(&mut self) -> ToolCall<'a> {
        let id = self.take_id();
        let name = std::mem::take(&mut self.name);
        ToolCall { id, name, arguments: std::mem::take(&mut self.arguments) }
    }

    /// Takes the result of a call.
    pub(in super::super) fn take_result(&mut self) -> ToolResult<'a> {
        let call_id = self.take_id();
        let tool = std::mem::take(&mut self.name);
        let output = self.output.take().unwrap_or_default();
        let mut text = std::mem::take(&mut self.text);
        if text.is_empty() {
            text = output.text;
        }
        let mut error = std::mem::take(&mut self.error);
        error.add(output.error);
        // The text is read even if a flag decides: it may hold an exit code or the tool's name.
        let read = failure::result_of(text);
        // Some agents put the refusal message into the error field.
        let words = if read.text.is_empty() { &error } else { &read.text };
        let begins = |all: &[&str]| all.iter().any(|start| words.trim_start().starts_with(start));
        let is = |states: &[&str]| states.contains(&self.state.as_str());
        let is_flagged = self.is_error.0.or(match output.outcome {
            Some(ToolOutcome::Failed) => Some(true),
            Some(ToolOutcome::Ok) => Some(false),
            _ => None,
        });
        let is_refused = output.outcome == Some(ToolOutcome::Rejected)
            || is(&REFUSED)
            // A successful result may quote such a message, for example from a file that was read.
            || (is_flagged != Some(false) && begins(&REFUSALS));
        // In Anthropic's protocol, a result without an error flag is a success.
        let is_anthropic = matches!(self.kind.as_str(), "tool_result" | "mcp_tool_result")
            || self.kind.ends_with("_tool_result");
        let outcome = match is_flagged {
            // Agents flag refusals as errors too, so they are checked first.
            _ if is_refused => ToolOutcome::Rejected,
            Some(true) => ToolOutcome::Failed,
            Some(false) => ToolOutcome::Ok,
            None if is(&FAILED) || !error.is_empty() || begins(&FAILURES) => ToolOutcome::Failed,
            None if read.outcome != ToolOutcome::Unknown => read.outcome,
            None if is(&SUCCEEDED) || is_anthropic => ToolOutcome::Ok,
            None => ToolOutcome::Unknown,
        };
        let error = if error.is_empty() { read.error } else { error };
        let tool = if tool.is_empty() { read.tool } else { tool };
        ToolResult { call_id, tool, text: read.text, outcome, exit_code: read.exit_code, error }
    }

    /// Returns true if the block has no result data yet.
    fn is_open(&self) -> bool {
        OPEN.contains(&self.state.as_str())
            || (self.output.is_none() && self.error.is_empty() && self.state.is_empty())
    }

    fn note_of_media(&mut self) -> Text<'a> {
        let kind = std::mem::take(&mut self.kind);
        let mut media = std::mem::take(&mut self.media);
        media.set_type(&self.media_type);
        if media.is_empty() {
            Text::from(format!("[{}]", kind.line(40).unwrap_or_default()))
        } else {
            media.note(&kind)
        }
    }

    /// Adds the block to `blocks` according to its type or identifying field.
    pub(super) fn put_into(mut self, blocks: &mut ContentBlocks<'a>) {
        let kind = std::mem::take(&mut self.kind);
        self.kind = kind.clone();
        match kind.as_str() {
            "" => self.put_untyped(blocks),
            "text" | "input_text" | "output_text" | "summary_text" | "refusal" => {
                if self.is_thought.is_set() {
                    blocks.think(self.text);
                } else {
                    blocks.say(self.text);
                }
            }
            // The text of a tool's message, which names the call.
            "tool_output" if self.call_id.is_empty() && self.id.is_empty() => blocks.say(self.text),
            "thinking" | "reasoning" | "reasoning_text" | "redacted_thinking"
            | "redacted-reasoning" | "redactedThinking" => {
                let mut thought = self.thinking;
                if thought.is_empty() {
                    thought = self.text;
                }
                blocks.think(thought);
            }
            "tool_use"
            | "server_tool_use"
            | "mcp_tool_use"
            | "tool-call"
            | "tool_call"
            | "toolCall"
            | "toolRequest"
            | "frontendToolRequest"
            | "function_call"
            | "function"
            | "custom_tool_call" => blocks.call(self.take_call()),
            "local_shell_call" | "shell_call" | "computer_call" | "apply_patch_call" => {
                self.name = Text::from(kind.trim_end_matches("_call").to_owned());
                blocks.call(self.take_call());
            }
            // Run by the provider, so the item includes the result.
            "web_search_call"
            | "file_search_call"
            | "code_interpreter_call"
            | "image_generation_call"
            | "mcp_call"
            | "mcp_list_tools"
            | "tool_search_call" => {
                if self.name.is_empty() {
                    self.name = Text::from(kind.trim_end_matches("_call").to_owned());
                }
                self.put_both(blocks);
            }
            "tool_result"
            | "tool-result"
            | "tool-error"
            | "tool_call_response"
            | "tool_output"
            | "toolResponse"
            | "function_call_output"
            | "function_result"
            | "custom_tool_call_output"
            | "local_shell_call_output"
            | "shell_call_output"
            | "computer_call_output"
            | "apply_patch_call_output" => {
                if kind.as_str() == "tool-error" {
                    self.is_error = LenientFlag(Some(true));
                }
                blocks.result(self.take_result());
            }
            kind if kind.ends_with("_tool_result") => blocks.result(self.take_result()),
            // Parts without content for the transcript.
            "tool-approval-request"
            | "tool-approval-response"
            | "step-start"
            | "step-finish"
            | "source"
            | "source-url"
            | "source-document"
            | "fallback"
            | "cachePoint"
            | "toolConfirmationRequest"
            | "systemNotification"
            | "actionRequired" => {}
            "dynamic-tool" | "tool-invocation" => self.put_both(blocks),
            // The Vercel AI SDK puts the tool's name into the type.
            kind if kind.starts_with("tool-") => {
                // After `tool-call` and `tool-result`, which have the same prefix and are no names
                // of tools.
                self.name = Text::from(kind["tool-".len()..].to_owned());
                self.put_both(blocks);
            }
            "image"
            | "image_url"
            | "input_image"
            | "input_audio"
            | "audio"
            | "file"
            | "document"
            | "input_file"
            | "video"
            | "media"
            | "blob"
            | "file_data"
            | "uri"
            | "computer_screenshot" => {
                // Document text in the block is short or already bounded.
                let mut note = self.note_of_media();
                note.append(&self.text);
                blocks.say(note.into_owned());
            }
            _ => blocks.unknown(&kind, &self.text),
        }
    }

    /// Adds a call together with its result, if there is one.
    fn put_both(mut self, blocks: &mut ContentBlocks<'a>) {
        let id = self.take_id();
        let (name, arguments) = (self.name.clone(), std::mem::take(&mut self.arguments));
        blocks.call(ToolCall { id: id.clone(), name, arguments });
        if !self.is_open() {
            self.call_id = id;
            blocks.result(self.take_result());
        }
    }

    fn put_untyped(mut self, blocks: &mut ContentBlocks<'a>) {
        match self.shape {
            Some(BlockShape::Call) => blocks.call(self.take_call()),
            Some(BlockShape::Result) => blocks.result(self.take_result()),
            None if self.is_thought.is_set() => blocks.think(self.text),
            None if !self.text.is_empty() => blocks.say(self.text),
            None if !self.media.is_empty() => {
                self.kind = Text::from("media");
                let note = self.note_of_media();
                blocks.say(note);
            }
            None if !self.thinking.is_empty() => blocks.think(self.thinking),
            None if !self.unknown_field.is_empty() => {
                blocks.unknown(&self.unknown_field, &Text::default());
            }
            // A part without content, such as a lone signature.
            None => {}
        }
    }
}
