//! Plain `OpenAI` chat messages: a bare list, wrapped in `messages`, `history`, `traj` or
//! `conversations` (`ShareGPT`), a list of such wrappers (tau-bench: one per run), or JSON lines
//! of any of them.
//!
//! There is no error flag: a tool's failure is read from its text (`failure`).

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess};

use super::ReadError;
use super::content::Content;
use super::feed::{Feed, Notes};
use super::repaired::{may_need_repair, repair};
use super::source::{Document, Part, Source};
use super::text::Text;

mod message;
mod tags;
#[cfg(test)]
mod tests;

use message::{Message, Place};

/// Reads chat messages.
pub(super) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    if is_lines(source)? {
        read_lines(source, feed)
    } else {
        source.document(&mut Chat { place: Place::Anywhere }, feed)
    }
}

/// Whether the first line is a JSON value by itself and another line follows.
fn is_lines(source: &Source) -> Result<bool, ReadError> {
    let (mut lines, mut notes) = (source.lines()?, Notes::default());
    let Some(first) = lines.next(&mut notes)? else { return Ok(false) };
    let bytes = first.bytes.trim_ascii();
    let may_be_whole = matches!((bytes.first(), bytes.last()), (Some(b'{'), Some(b'}')))
        || matches!((bytes.first(), bytes.last()), (Some(b'['), Some(b']')));
    let mut scratch = Vec::new();
    let is_whole =
        may_be_whole && first.parse::<IgnoredAny>(&mut scratch, &mut Notes::default()).is_some();
    Ok(is_whole && lines.next(&mut notes)?.is_some())
}

fn read_lines(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    let read = |bytes: &[u8], feed: &mut Feed<'_>| {
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let document = &mut Chat { place: Place::Anywhere };
        Part { document, feed }.deserialize(&mut deserializer)?;
        deserializer.end()
    };
    let mut lines = source.lines()?;
    while let Some(line) = lines.next(&mut feed.notes)? {
        // Before it is read: what came of the beginning of a line could not be taken back.
        let repaired = may_need_repair(line.bytes).then(|| repair(line.bytes)).flatten();
        match read(repaired.as_deref().unwrap_or(line.bytes), feed) {
            Ok(()) => feed.notes.repaired_records += u64::from(repaired.is_some()),
            Err(_) => line.skip(&mut feed.notes),
        }
    }
    Ok(())
}

/// Whether an id is but a number in its file.
fn is_row(id: &str) -> bool {
    id.len() < 10 && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// A list of messages, an object around one, a list of such objects, or one message.
struct Chat {
    place: Place,
}

impl Document for Chat {
    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut Feed<'_>,
    ) -> Result<(), A::Error> {
        let mut place = self.place;
        while list.next_element_seed(Part { document: &mut Chat { place }, feed })?.is_some() {
            place = place.after();
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
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "messages" | "traj" | "history" | "conversations" => {
                    if !is_wrapper && !feed.is_empty() {
                        feed.end();
                    }
                    is_wrapper = true;
                    let document = &mut Chat { place: Place::of_list(&key) };
                    map.next_value_seed(Part { document, feed })?;
                }
                "id" | "session_id" | "question_ID" => id = Some(map.next_value::<Text<'de>>()?),
                "task_id" => task = Some(map.next_value::<Text<'de>>()?),
                "trial" => trial = Some(map.next_value::<Text<'de>>()?),
                "model" => message.model = map.next_value()?,
                "role" | "from" => message.role = map.next_value()?,
                "content" | "value" => message.content = map.next_value()?,
                "refusal" => message.refusal = map.next_value()?,
                "reasoning" | "reasoning_content" => {
                    message.think(map.next_value::<Content<'de>>()?.0);
                }
                "name" => message.name = map.next_value()?,
                "tool_calls" => message.tool_calls = map.next_value()?,
                "function_call" => message.function_call = map.next_value()?,
                "tool_call_id" => message.tool_call_id = map.next_value()?,
                "timestamp" | "created_at" => message.time = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if !is_wrapper {
            message.send(feed, self.place);
            return Ok(());
        }
        feed.head.model(&message.model);
        feed.saw(message.time);
        let stem = feed.naming.stem();
        let name = match (&id, task, trial) {
            (Some(id), _, _) if is_row(id) => format!("{stem}#{id}"),
            (None, Some(task), Some(trial)) => format!("{stem}#{task}.{trial}"),
            (None, Some(task), None) => format!("{stem}#{task}"),
            (Some(_), _, _) | (None, None, _) => stem.to_owned(),
        };
        feed.naming.set_name(&name);
        feed.head.id = id.filter(|id| !is_row(id)).unwrap_or_default().as_str().to_owned();
        feed.end();
        Ok(())
    }
}
