//! Reads an answer that arrives in pieces: server-sent events, or a JSON document on each line. Pure.
//!
//! The pieces stand at one JSON Pointer of the events and are joined in their order. Events of
//! thinking and of tool calls are left out. A stream that reports an error or breaks off is no
//! answer.

use serde_json::Value;

use crate::sut::answer::{SeenAnswer, reports_error};
use selftest_models::completion::texts_in_parts;
use selftest_text::normal::TextChange;
use selftest_text::one_line;
use selftest_text::wording::{json_members, plural};

/// The event that ends the streams of many servers.
pub(super) const DONE: &str = "[DONE]";

/// Fields of server-sent events; a line with another start is none of theirs.
const FIELDS: [&str; 5] = ["data:", "event:", "id:", "retry:", ":"];

/// Parts of the names of events whose texts are no part of the answer.
const ASIDES: [&str; 6] = ["reasoning", "thinking", "thought", "tool", "function", "argument"];

/// Characters from which a piece that repeats all pieces before it is no coincidence.
const SURE_REPEAT: usize = 20;

/// Maximum length of a quoted event, in bytes.
const MAX_QUOTE: usize = 120;

/// A response in pieces.
#[derive(Debug, PartialEq)]
pub(super) struct EventStream {
    events: Vec<StreamEvent>,
    /// True if it ends within an event.
    is_cut: bool,
}

#[derive(Debug, Default, PartialEq)]
struct StreamEvent {
    /// What the server calls it; often empty.
    name: String,
    data: String,
    /// The data, if they are JSON.
    json: Option<Value>,
}

impl StreamEvent {
    fn new(name: String, data: String) -> Self {
        let json = serde_json::from_str(&data).ok();
        Self { name, data, json }
    }

    fn is_error(&self) -> bool {
        self.name == "error" || self.json.as_ref().is_some_and(reports_error)
    }

    fn is_object(&self) -> bool {
        self.json.as_ref().is_some_and(Value::is_object)
    }

    /// Returns true if its text is no part of the answer.
    fn is_aside(&self) -> bool {
        let kind = self.json.as_ref().and_then(|json| json.get("type")?.as_str());
        let kind = kind.unwrap_or(&self.name).to_lowercase();
        ASIDES.iter().any(|aside| kind.contains(aside))
    }
}

impl EventStream {
    /// Reads the events of a response. `None` if it is no stream.
    pub(super) fn read(text: &str) -> Option<Self> {
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        if FIELDS.iter().any(|field| first.starts_with(field)) {
            Self::of_events(text)
        } else {
            Self::of_lines(text)
        }
    }

    fn of_events(text: &str) -> Option<Self> {
        let (mut events, mut name, mut data) = (Vec::new(), String::new(), Vec::new());
        // Without an empty line at its end, the last event is not complete; many servers leave it
        // out, so that only broken JSON counts as cut.
        for line in text.lines().chain([""]) {
            let value = |value: &str| value.strip_prefix(' ').unwrap_or(value).to_owned();
            if line.is_empty() {
                let (name, data) = (std::mem::take(&mut name), std::mem::take(&mut data));
                if !data.is_empty() {
                    events.push(StreamEvent::new(name, data.join("\n")));
                }
            } else if let Some(rest) = line.strip_prefix("data:") {
                data.push(value(rest));
            } else if let Some(rest) = line.strip_prefix("event:") {
                name = value(rest);
            }
        }
        let is_cut = events.last().is_some_and(|event| ends_in_json(&event.data));
        events.retain(|event| event.data.trim() != DONE);
        (!events.is_empty()).then_some(Self { events, is_cut })
    }

    fn of_lines(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let event = |line: &&str| StreamEvent::new(String::new(), (*line).to_owned());
        let (last, before) = lines.split_last()?;
        let mut events: Vec<StreamEvent> = before.iter().map(event).collect();
        if events.is_empty() || !events.iter().all(StreamEvent::is_object) {
            return None;
        }
        let end = event(last);
        let is_cut = ends_in_json(last);
        if !is_cut && !end.is_object() {
            return None;
        }
        events.push(end);
        Some(Self { events, is_cut })
    }

    /// Sees the answer in the pieces at a JSON Pointer; at `""`, in the texts of the events.
    pub(super) fn answer(&self, pointer: &str, decoding: &[TextChange]) -> SeenAnswer {
        let quote = |event: &StreamEvent| one_line(&event.data, MAX_QUOTE);
        if let Some(event) = self.events.iter().find(|event| event.is_error()) {
            return SeenAnswer::Failed(format!("the stream reports an error: {}", quote(event)));
        }
        if self.is_cut {
            let last = self.events.last().map(quote).unwrap_or_default();
            return SeenAnswer::Unfinished(format!("the stream breaks off; its end: {last}"));
        }
        let answering = self.events.iter().filter(|event| !event.is_aside());
        let pieces: Vec<String> = match pointer {
            "" => answering.map(plain_piece).collect(),
            _ => answering.filter_map(|event| piece(event.json.as_ref()?, pointer)).collect(),
        };
        if pieces.is_empty() {
            return self.nothing_at(pointer);
        }
        let decoding = [decoding, &[TextChange::JoinedStream]].concat();
        let is_whole = pointer.is_empty() && self.events.iter().any(StreamEvent::is_object);
        // Without a place, documents stay apart for those who read them.
        let text = if is_whole { pieces.join("\n") } else { joined(&pieces) };
        SeenAnswer::of(&text, &decoding)
    }

    fn nothing_at(&self, pointer: &str) -> SeenAnswer {
        let count = plural(self.events.len() as u64, "event");
        let objects = || self.events.iter().filter_map(|event| event.json.as_ref());
        let what = match objects().find(|json| json.is_object()) {
            Some(json) => json_members(json),
            None => "they hold plain text, which output: \"\" joins".to_owned(),
        };
        SeenAnswer::Missing(format!("nothing at {pointer} in the {count} of the stream; {what}"))
    }

    /// Returns the JSON of the events, the last first.
    pub(super) fn newest(&self) -> impl Iterator<Item = &Value> {
        self.events.iter().rev().filter_map(|event| event.json.as_ref())
    }
}

/// Returns true if a text ends within a JSON document.
fn ends_in_json(text: &str) -> bool {
    let is_document = text.trim_start().starts_with(['{', '[', '"']) && text.trim() != DONE;
    is_document && serde_json::from_str::<Value>(text).is_err_and(|error| error.is_eof())
}

/// Returns the piece of the answer in an event.
fn piece(json: &Value, pointer: &str) -> Option<String> {
    match json.pointer(pointer)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(texts_in_parts(other).map_or_else(|| other.to_string(), |it| it.concat())),
    }
}

/// Returns the text of an event: a JSON string without its quotes, anything else as it is.
fn plain_piece(event: &StreamEvent) -> String {
    match &event.json {
        Some(Value::String(text)) => text.clone(),
        _ => event.data.clone(),
    }
}

/// Joins pieces. Some servers send the whole text so far in each, or once more at the end.
fn joined(pieces: &[String]) -> String {
    if let Some((last, before)) = pieces.split_last()
        && !before.is_empty()
        && last.chars().count() >= SURE_REPEAT
    {
        let grows = pieces.windows(2).all(|two| two[1].starts_with(&two[0]));
        if grows || before.concat().trim() == last.trim() {
            return last.clone();
        }
    }
    pieces.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str, pointer: &str) -> SeenAnswer {
        EventStream::read(text).unwrap_or_else(|| panic!("{text}")).answer(pointer, &[])
    }

    #[test]
    fn pieces_are_joined() {
        for (text, pointer) in [
            ("data: {\"d\": \"At \"}\n\ndata: {\"d\": \"9.\"}\n\ndata: [DONE]\n\n", "/d"),
            (": hello\n\nevent: token\ndata: {\"d\": \"At 9\"}\n\ndata:{\"d\": \".\"}", "/d"),
            ("{\"d\": \"At \"}\n{\"d\": \"9.\"}\n{\"usage\": 3}\n", "/d"),
            ("data: {\"c\": [{\"m\": {\"t\": \"At 9.\"}}]}\n\ndata: {\"c\": []}\n\n", "/c/0/m/t"),
            ("data: At \n\ndata: 9.\n\n", ""),
            ("data: \"At \"\n\ndata: \"9.\"\n\n", ""),
            (
                "data: {\"type\": \"reasoning-delta\", \"d\": \"8?\"}\n\n\
                 data: {\"type\": \"text-delta\", \"d\": \"At 9.\"}\n\n",
                "/d",
            ),
            ("event: thinking\ndata: {\"d\": \"8?\"}\n\ndata: {\"d\": \"At 9.\"}\n\n", "/d"),
        ] {
            assert_eq!(seen(text, pointer).text(), "At 9.", "{text}");
        }
        let whole = "The shop opens at 9 and closes at 5.";
        for pieces in [
            ["The shop", "The shop opens at 9", whole],
            ["The shop opens", " at 9 and closes at 5.", whole],
        ] {
            assert_eq!(joined(&pieces.map(str::to_owned)), whole);
        }
        assert_eq!(joined(&["ha", "ha"].map(str::to_owned)), "haha");
    }

    #[test]
    fn what_is_no_answer_says_why() {
        let why = |text: &str, pointer: &str| match seen(text, pointer) {
            SeenAnswer::Missing(why) | SeenAnswer::Unfinished(why) | SeenAnswer::Failed(why) => why,
            other => panic!("{text}: {other:?}"),
        };
        for (text, pointer, words) in [
            ("data: {\"d\": \"At\"}\n\nevent: error\ndata: overloaded\n\n", "/d", "an error: over"),
            ("data: {\"d\": \"At\"}\n\ndata: {\"error\": \"busy\"}\n\n", "/d", "an error: {"),
            ("data: {\"d\": \"At\"}\n\ndata: {\"d\": \"9", "/d", "breaks off"),
            ("{\"d\": \"At \"}\n{\"d\": \"9", "/d", "breaks off"),
            ("data: {\"x\": \"At 9.\"}\n\n", "/d", "nothing at /d in the 1 event"),
            ("data: At 9.\n\n", "/d", "output: \"\" joins"),
        ] {
            assert!(why(text, pointer).contains(words), "{text}: {}", why(text, pointer));
        }
    }

    #[test]
    fn other_texts_are_no_stream() {
        for text in ["", "At 9.", "{\"d\": 1}", "{\n\"d\": 1\n}", "{\"d\": 1}\nAt 9.", ": x\n\n"] {
            assert_eq!(EventStream::read(text), None, "{text}");
        }
    }
}
