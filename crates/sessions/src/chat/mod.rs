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

use super::ReadError;
use super::any_json::{AnyJson, deserialize_any_json};
use super::blocks::Blocks;
use super::content::Content;
use super::event::{Origin, Role};
use super::feed::{Feed, Notes};
use super::repaired::{may_need_repair, repair};
use super::source::{Document, Part, Source};
use super::text::Text;
use super::time::Moment;
use super::wire::{Loose, Object};

/// Agent name for Inspect samples.
pub(super) const INSPECT: &str = "inspect";

/// Agent name for requests and responses of the Responses API.
pub(super) const RESPONSES: &str = "responses";

mod message;
mod tags;
#[cfg(test)]
mod tests;
mod verdict;

use message::{Message, Place, Tokens};

/// Reads the chat messages of this agent; `chat` stands for any agent.
pub(super) fn read(
    agent: &'static str,
    source: &Source,
    feed: &mut Feed<'_>,
) -> Result<(), ReadError> {
    if is_lines(source)? {
        read_lines(agent, source, feed)
    } else {
        source.document(&mut Chat::new(agent), feed)
    }
}

/// Returns true if the first line is a complete JSON value and another line follows.
pub(super) fn is_lines(source: &Source) -> Result<bool, ReadError> {
    let (mut lines, mut notes) = (source.lines()?, Notes::default());
    let Some(first) = lines.next(&mut notes)? else { return Ok(false) };
    let bytes = first.bytes.trim_ascii();
    // A cheap check before parsing a line that may be huge.
    let may_be_whole = matches!((bytes.first(), bytes.last()), (Some(b'{'), Some(b'}')))
        || matches!((bytes.first(), bytes.last()), (Some(b'['), Some(b']')));
    let mut scratch = String::new();
    let is_whole =
        may_be_whole && first.parse::<IgnoredAny>(&mut scratch, &mut Notes::default()).is_some();
    // A single line may just as well be one compact document.
    Ok(is_whole && lines.next(&mut notes)?.is_some())
}

fn read_lines(agent: &'static str, source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    let read = |text: &str, feed: &mut Feed<'_>| {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let document = &mut Chat::new(agent);
        Part { document, feed }.deserialize(&mut deserializer)?;
        deserializer.end()
    };
    let mut lines = source.lines()?;
    while let Some(line) = lines.next(&mut feed.notes)? {
        // Repair before parsing: events from the start of a line could not be taken back.
        let repaired = may_need_repair(line.bytes).then(|| repair(line.bytes)).flatten();
        let text = repaired.as_deref().or_else(|| simdutf8::basic::from_utf8(line.bytes).ok());
        match text.map(|text| read(text, feed)) {
            Some(Ok(())) => feed.notes.repaired_records += u64::from(repaired.is_some()),
            _ => line.skip(&mut feed.notes),
        }
    }
    Ok(())
}

/// Reads one message or one wrapper of messages into the current session.
pub(super) fn message(agent: &str, json: &str, feed: &mut Feed<'_>) -> serde_json::Result<()> {
    let document = &mut Chat { place: Place::Anywhere, agent, has_items: false };
    let mut deserializer = serde_json::Deserializer::from_str(json);
    Part { document, feed }.deserialize(&mut deserializer)
}

/// Reads a document that is part of a source.
pub(super) fn document(
    agent: &'static str,
    json: &str,
    feed: &mut Feed<'_>,
) -> serde_json::Result<()> {
    let document = &mut Chat::new(agent);
    Part { document, feed }.deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// A message inside a record, or its text.
#[derive(Default)]
struct Inner<'a> {
    role: Text<'a>,
    content: Blocks<'a>,
    model: Text<'a>,
    usage: Object<Tokens<'a>>,
}

deserialize_any_json!(Inner<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for Inner<'a> {
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
fn is_row(id: &str) -> bool {
    id.len() < 10 && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// A list of messages, an object around one, a list of such objects, or one message.
struct Chat<'n> {
    place: Place,
    agent: &'n str,
    /// Set if the document may be a request or response of the Responses API, with lists of items
    /// in `input` and `output`.
    has_items: bool,
}

impl<'n> Chat<'n> {
    fn new(agent: &'n str) -> Self {
        Self { place: Place::Anywhere, agent, has_items: agent == RESPONSES }
    }

    fn inside(&self, place: Place) -> Self {
        Self { place, agent: self.agent, has_items: false }
    }
}

impl Document for Chat<'_> {
    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut Feed<'_>,
    ) -> Result<(), A::Error> {
        let mut element = Self { ..*self };
        while list.next_element_seed(Part { document: &mut element, feed })?.is_some() {
            element.place = element.place.after();
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut Feed<'_>,
    ) -> Result<(), A::Error> {
        let mut message = Message::default();
        let (mut is_wrapper, mut id, mut task, mut trial) = (false, None, None, None);
        let (mut reward, mut scores) = (Value::Null, Object::default());
        let (mut system, mut updated, mut cwd) = (Text::default(), Moment::default(), None);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "messages" | "traj" | "history" | "conversations" | "chat_messages" => {
                    // Messages before the wrapper belong to a session of their own.
                    if !is_wrapper && !feed.is_empty() {
                        feed.end();
                    }
                    is_wrapper = true;
                    if !system.is_empty() {
                        feed.say(Role::System, Origin::Harness, std::mem::take(&mut system), None);
                    }
                    let document = &mut self.inside(Place::of_list(&key));
                    map.next_value_seed(Part { document, feed })?;
                }
                "input" | "output" if self.has_items => {
                    is_wrapper = true;
                    if !system.is_empty() {
                        feed.say(Role::System, Origin::Harness, std::mem::take(&mut system), None);
                    }
                    let document = &mut self.inside(Place::Anywhere);
                    map.next_value_seed(Part { document, feed })?;
                }
                // Inspect logs: each sample is a wrapper of its own.
                "samples" => {
                    let document = &mut self.inside(Place::Anywhere);
                    map.next_value_seed(Part { document, feed })?;
                    return IgnoredAny.visit_map(map).map(drop);
                }
                // Cursor's agent and Factory wrap each message.
                "message" => {
                    let inner = map.next_value::<Inner<'de>>()?;
                    // The outer fields may have set them already.
                    if !inner.role.is_empty() {
                        message.role = inner.role;
                    }
                    if !inner.model.is_empty() {
                        message.model = inner.model;
                    }
                    message.content.append(inner.content);
                    message.usage = Object(message.usage.0.take().or(inner.usage.0));
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
                    let all = map.next_value::<Object<BTreeMap<String, Object<Tokens<'de>>>>>()?;
                    for (model, Object(tokens)) in all.0.into_iter().flatten() {
                        feed.head.model(&model);
                        let own = tokens.as_ref().and_then(Tokens::usage).unwrap_or_default();
                        let mut total = feed.head.usage.unwrap_or_default();
                        total += own;
                        feed.head.usage = Some(total);
                    }
                }
                "reward" => reward = map.next_value::<Loose>()?.part(""),
                "scores" if self.agent == INSPECT => scores = map.next_value()?,
                // tau-bench, and Inspect logs.
                "trial" | "epoch" => trial = Some(map.next_value::<Text<'de>>()?),
                "model" => message.model = map.next_value()?,
                "modelInfo" => message.model = map.next_value::<Loose>()?.text("/id"),
                "role" | "from" | "sender" => message.role = map.next_value()?,
                "content" | "value" => message.content = map.next_value()?,
                "parts" => message.parts = map.next_value()?,
                "toolInvocations" => message.tool_invocations = map.next_value()?,
                "reasoning" | "reasoning_content" => {
                    message.think(map.next_value::<Content<'de>>()?.0);
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
                    let Moment(sent) = map.next_value::<Loose>()?.part("/sentAt");
                    message.time = Moment(message.time.0.or(sent));
                }
                // Amp: the initial working directory of the thread.
                "env" => {
                    let tree = map.next_value::<Loose>()?.text("/initial/trees/0/uri");
                    let tree = tree.line(400);
                    cwd = tree.map(|uri| uri.strip_prefix("file://").unwrap_or(&uri).to_owned());
                }
                // From a request to Anthropic's API.
                "system" | "instructions" => system = map.next_value::<Content<'de>>()?.0,
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
        feed.head.model(&message.model);
        feed.saw(message.time);
        feed.saw(updated);
        feed.head.cwd = feed.head.cwd.take().or(cwd);
        if self.agent == INSPECT {
            // The id is the number or name of the instance, which all of its runs share.
            task = id.take().or(task);
        }
        let stem = feed.naming.stem();
        let name = match (&id, task, trial) {
            (Some(id), _, _) if is_row(id) => format!("{stem}#{id}"),
            (None, Some(task), Some(trial)) => format!("{stem}#{task}.{trial}"),
            (None, Some(task), None) => format!("{stem}#{task}"),
            (Some(_), _, _) | (None, None, _) => stem.to_owned(),
        };
        feed.naming.set_name(&name);
        // A row number is not unique across files.
        feed.head.id = id.filter(|id| !is_row(id)).unwrap_or_default().as_str().to_owned();
        verdict::send_reward(&reward, feed);
        verdict::send_scores(scores, feed);
        feed.end();
        Ok(())
    }
}
