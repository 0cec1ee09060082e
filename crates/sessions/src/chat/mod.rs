//! Reads chat messages: a bare list, a wrapper with `messages`, `history`, `traj` or
//! `conversations` (`ShareGPT`), a list of such wrappers (tau-bench: one per run), or JSON lines of
//! any of them. The same reader serves programs that store messages in the format of a model API:
//! Cline, Roo and Kilo, Amp, the Vercel AI SDK. Message content is parsed by `blocks`.
//!
//! Without an error flag, tool failures are detected from the text (`failure`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor as _};
use serde_json::Value;

use super::SessionReadError;
use super::any_json::{AnyJson, deserialize_any_json};
use super::blocks::ContentBlocks;
use super::content::MessageContent;
use super::event::{EventOrigin, EventRole};
use super::feed::{ReadNotes, SessionFeed};
use super::repaired::{may_need_repair, repair};
use super::source::{DocumentReader, DocumentSeed, SessionSource};
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonValue, LenientObject};

/// Agent name for Inspect samples.
pub(super) const INSPECT: &str = "inspect";

/// Agent name for requests and responses of the Responses API.
pub(super) const RESPONSES: &str = "responses";

pub(crate) mod formats;
mod message;
mod tags;
#[cfg(test)]
mod tests;
mod verdict;

use message::{ChatMessage, ChatTokens, MessagePosition};

/// Reads the chat messages of this agent; `chat` stands for any agent.
pub(super) fn read(
    agent: &'static str,
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    if is_lines(source)? {
        read_lines(agent, source, feed)
    } else {
        source.read_document(&mut ChatDocument::new(agent), feed)
    }
}

/// Returns true if the first line is a complete JSON value and another line follows.
pub(super) fn is_lines(source: &SessionSource) -> Result<bool, SessionReadError> {
    let (mut lines, mut notes) = (source.lines()?, ReadNotes::default());
    let Some(first) = lines.next(&mut notes)? else { return Ok(false) };
    let bytes = first.bytes.trim_ascii();
    // A cheap check before parsing a line that may be huge.
    let may_be_whole = matches!((bytes.first(), bytes.last()), (Some(b'{'), Some(b'}')))
        || matches!((bytes.first(), bytes.last()), (Some(b'['), Some(b']')));
    let mut scratch = String::new();
    let is_whole = may_be_whole
        && first.parse::<IgnoredAny>(&mut scratch, &mut ReadNotes::default()).is_some();
    // A single line may just as well be one compact document.
    Ok(is_whole && lines.next(&mut notes)?.is_some())
}

fn read_lines(
    agent: &'static str,
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    let read = |text: &str, feed: &mut SessionFeed<'_>| {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let document = &mut ChatDocument::new(agent);
        DocumentSeed { document, feed }.deserialize(&mut deserializer)?;
        deserializer.end()
    };
    let mut lines = source.lines()?;
    while let Some(line) = lines.next(&mut feed.notes)? {
        // Repair before parsing: events from the start of a line could not be taken back.
        let repaired = may_need_repair(line.bytes).then(|| repair(line.bytes)).flatten();
        let text = repaired.as_deref().or_else(|| simdutf8::basic::from_utf8(line.bytes).ok());
        match text.map(|text| read(text, feed)) {
            Some(Ok(())) => feed.notes.repaired_records += u64::from(repaired.is_some()),
            _ => line.note_skipped(&mut feed.notes),
        }
    }
    Ok(())
}

/// Reads one message or one wrapper of messages into the current session.
pub(super) fn read_message(
    agent: &str,
    json: &str,
    feed: &mut SessionFeed<'_>,
) -> serde_json::Result<()> {
    let document = &mut ChatDocument { place: MessagePosition::Anywhere, agent, has_items: false };
    let mut deserializer = serde_json::Deserializer::from_str(json);
    DocumentSeed { document, feed }.deserialize(&mut deserializer)
}

/// Reads a document that is part of a source.
pub(super) fn read_embedded(
    agent: &'static str,
    json: &str,
    feed: &mut SessionFeed<'_>,
) -> serde_json::Result<()> {
    let document = &mut ChatDocument::new(agent);
    DocumentSeed { document, feed }.deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// A message inside a record, or its text.
#[derive(Default)]
struct InnerMessage<'a> {
    role: Text<'a>,
    content: ContentBlocks<'a>,
    model: Text<'a>,
    usage: LenientObject<ChatTokens<'a>>,
}

deserialize_any_json!(InnerMessage<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for InnerMessage<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.content.say(Text::new(text));
    }

    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "role" => self.role = map.next_value()?,
                "content" => self.content = map.next_value()?,
                "model" => self.model = map.next_value()?,
                "usage" => self.usage = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Returns true if an id is just a number within its file.
fn is_row_number(id: &str) -> bool {
    id.len() < 10 && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// A list of messages, an object around one, a list of such objects, or one message.
struct ChatDocument<'n> {
    place: MessagePosition,
    agent: &'n str,
    /// Set if the document may be a request or response of the Responses API, with lists of items
    /// in `input` and `output`.
    has_items: bool,
}

impl<'n> ChatDocument<'n> {
    fn new(agent: &'n str) -> Self {
        Self { place: MessagePosition::Anywhere, agent, has_items: agent == RESPONSES }
    }

    fn nested(&self, place: MessagePosition) -> Self {
        Self { place, agent: self.agent, has_items: false }
    }
}

impl DocumentReader for ChatDocument<'_> {
    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut element = Self { ..*self };
        while list.next_element_seed(DocumentSeed { document: &mut element, feed })?.is_some() {
            element.place = element.place.next();
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut message = ChatMessage::default();
        let (mut is_wrapper, mut id, mut task, mut trial) = (false, None, None, None);
        let (mut reward, mut scores) = (Value::Null, LenientObject::default());
        let (mut system, mut updated, mut cwd) = (Text::default(), Moment::default(), None);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "messages" | "traj" | "history" | "conversations" | "chat_messages" => {
                    // Messages before the wrapper belong to a session of their own.
                    if !is_wrapper && !feed.is_empty() {
                        feed.end_session();
                    }
                    is_wrapper = true;
                    if !system.is_empty() {
                        feed.send_text(
                            EventRole::System,
                            EventOrigin::Harness,
                            std::mem::take(&mut system),
                            None,
                        );
                    }
                    let document = &mut self.nested(MessagePosition::of_list(&key));
                    map.next_value_seed(DocumentSeed { document, feed })?;
                }
                "input" | "output" if self.has_items => {
                    is_wrapper = true;
                    if !system.is_empty() {
                        feed.send_text(
                            EventRole::System,
                            EventOrigin::Harness,
                            std::mem::take(&mut system),
                            None,
                        );
                    }
                    let document = &mut self.nested(MessagePosition::Anywhere);
                    map.next_value_seed(DocumentSeed { document, feed })?;
                }
                // Inspect logs: each sample is a wrapper of its own.
                "samples" => {
                    let document = &mut self.nested(MessagePosition::Anywhere);
                    map.next_value_seed(DocumentSeed { document, feed })?;
                    return IgnoredAny.visit_map(map).map(drop);
                }
                // Cursor's agent and Factory wrap each message.
                "message" => {
                    let inner = map.next_value::<InnerMessage<'de>>()?;
                    // The outer fields may have set them already.
                    if !inner.role.is_empty() {
                        message.role = inner.role;
                    }
                    if !inner.model.is_empty() {
                        message.model = inner.model;
                    }
                    message.content.append(inner.content);
                    message.usage = LenientObject(message.usage.0.take().or(inner.usage.0));
                }
                "cwd" => cwd = map.next_value::<Text<'de>>()?.line(400),
                "id" | "session_id" | "question_ID" | "sessionId" | "chatId" | "uuid" => {
                    let given = map.next_value::<Text<'de>>()?;
                    // Depending on the object, the id belongs to a message or to the session.
                    message.item.id = given.clone();
                    id = Some(given);
                }
                "task_id" => task = Some(map.next_value::<Text<'de>>()?),
                "model_usage" if self.agent == INSPECT => {
                    let all = map.next_value::<LenientObject<BTreeMap<String, LenientObject<ChatTokens<'de>>>>>()?;
                    for (model, LenientObject(tokens)) in all.0.into_iter().flatten() {
                        feed.head.add_model(&model);
                        let own = tokens.as_ref().and_then(ChatTokens::usage).unwrap_or_default();
                        let mut total = feed.head.usage.unwrap_or_default();
                        total += own;
                        feed.head.usage = Some(total);
                    }
                }
                "reward" => reward = map.next_value::<JsonValue>()?.part(""),
                "scores" if self.agent == INSPECT => scores = map.next_value()?,
                // tau-bench, and Inspect logs.
                "trial" | "epoch" => trial = Some(map.next_value::<Text<'de>>()?),
                "model" => message.model = map.next_value()?,
                "modelInfo" => message.model = map.next_value::<JsonValue>()?.text("/id"),
                "role" | "from" | "sender" => message.role = map.next_value()?,
                "content" | "value" => message.content = map.next_value()?,
                "parts" => message.parts = map.next_value()?,
                "toolInvocations" => message.tool_invocations = map.next_value()?,
                "reasoning" | "reasoning_content" => {
                    message.think(map.next_value::<MessageContent<'de>>()?.0);
                }
                "tool_calls" => message.tool_calls = map.next_value()?,
                "function_call" => message.function_call = map.next_value()?,
                "usage" | "metrics" => message.usage = map.next_value()?,
                "timestamp" | "created_at" | "createdAt" | "created" | "ts" | "startTime" => {
                    message.time = map.next_value()?;
                }
                "updated_at" | "updatedAt" => updated = map.next_value()?,
                // Amp: `{"sentAt": …}` of a message.
                "meta" => {
                    let Moment(sent) = map.next_value::<JsonValue>()?.part("/sentAt");
                    message.time = Moment(message.time.0.or(sent));
                }
                // Amp: the initial working directory of the thread.
                "env" => {
                    let tree = map.next_value::<JsonValue>()?.text("/initial/trees/0/uri");
                    let tree = tree.line(400);
                    cwd = tree.map(|uri| uri.strip_prefix("file://").unwrap_or(&uri).to_owned());
                }
                // From a request to Anthropic's API.
                "system" | "instructions" => system = map.next_value::<MessageContent<'de>>()?.0,
                key => message.item.field(key, &mut map)?,
            }
        }
        if !is_wrapper && message.item.kind.as_str() == "session_start" {
            // First line of a Factory session.
            feed.head.id = id.unwrap_or_default().as_str().to_owned();
            feed.head.cwd = cwd;
            return Ok(());
        }
        if !is_wrapper {
            message.send(feed, self.place, self.agent);
            return Ok(());
        }
        feed.head.add_model(&message.model);
        feed.record_time(message.time);
        feed.record_time(updated);
        feed.head.cwd = feed.head.cwd.take().or(cwd);
        if self.agent == INSPECT {
            // The id is the number or name of the instance, which all of its runs share.
            task = id.take().or(task);
        }
        let stem = feed.naming.stem();
        let name = match (&id, task, trial) {
            (Some(id), _, _) if is_row_number(id) => format!("{stem}#{id}"),
            (None, Some(task), Some(trial)) => format!("{stem}#{task}.{trial}"),
            (None, Some(task), None) => format!("{stem}#{task}"),
            (Some(_), _, _) | (None, None, _) => stem.to_owned(),
        };
        feed.naming.set_name(&name);
        // A row number is not unique across files.
        feed.head.id = id.filter(|id| !is_row_number(id)).unwrap_or_default().as_str().to_owned();
        verdict::send_reward(&reward, feed);
        verdict::send_scores(scores, feed);
        feed.end_session();
        Ok(())
    }
}
