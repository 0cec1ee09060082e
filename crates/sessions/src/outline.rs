//! Describes the shape of a JSON value, by which formats recognise their content. The outline is
//! built while the value is read, so a truncated value still has one, and memory does not grow with
//! the value.

use std::io::{BufReader, Read};

use serde::de::{self, DeserializeSeed as _, MapAccess, SeqAccess};

use crate::Text;
use crate::repaired::repair;
use crate::wire::{AnyJson, AnyJsonSeed};

/// Shape of a JSON value: the keys of an object and a few short values that distinguish formats.
/// For a list, the shapes of its first elements.
#[derive(Debug, Default, Clone)]
pub(crate) struct JsonOutline {
    pub(crate) is_list: bool,
    pub(crate) is_object: bool,
    pub(crate) keys: Vec<String>,
    /// Values of the keys in [`MARKS`].
    pub(crate) marks: Vec<(&'static str, String)>,
    /// First elements of a list.
    pub(crate) elements: Vec<JsonOutline>,
    /// Outlines of the lists and objects in [`INNER`].
    pub(crate) inner: Vec<(&'static str, JsonOutline)>,
}

const MARKS: [&str; 8] =
    ["type", "kind", "role", "from", "source", "trajectory_format", "schema_version", "id"];
const INNER: [&str; 17] = [
    "context",
    "data",
    "spans",
    "runs",
    "observations",
    "traces",
    "payload",
    "message",
    "messages",
    "traj",
    "history",
    "conversations",
    "parts",
    "input",
    "output",
    "v",
    "contents",
];

impl JsonOutline {
    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|own| own == key)
    }

    pub(crate) fn mark(&self, name: &str) -> &str {
        self.marks.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value)
    }

    /// Returns the outline of a list or object in [`INNER`].
    pub(crate) fn inner(&self, name: &str) -> Option<&JsonOutline> {
        self.inner.iter().find(|(own, _)| *own == name).map(|(_, outline)| outline)
    }

    /// Returns the first elements of a list in [`INNER`].
    pub(crate) fn list(&self, name: &str) -> &[JsonOutline] {
        self.inner(name).map_or(&[], |list| &list.elements)
    }

    /// Describes a value that is not a session, for an error message.
    pub(crate) fn describe(&self) -> String {
        let mut keys: Vec<String> =
            self.keys.iter().take(8).map(|key| selftest_text::one_line(key, 40)).collect();
        if self.keys.len() > keys.len() {
            keys.push("…".to_owned());
        }
        match self.elements.first() {
            Some(first) if first.is_list => "lists inside of a list".to_owned(),
            Some(first) if first.is_object => format!("a list of {}", first.describe()),
            _ if self.is_list => "a list without objects".to_owned(),
            _ if !keys.is_empty() => format!("objects with the keys {}", keys.join(", ")),
            _ if self.is_object => "an empty object".to_owned(),
            _ => "no JSON object was found in it".to_owned(),
        }
    }
}

/// Maximum number of keys per object.
const MAX_KEYS: usize = 1000;

/// Maximum number of elements per list.
const MAX_ELEMENTS: usize = 4;

/// Maximum nesting of lists.
const MAX_DEPTH: usize = 5;

/// Maximum bytes of a value that distinguishes formats.
const MAX_MARK: usize = 100;

/// Shell code fences.
const FENCES: [&str; 2] = ["```bash", "```mswea_bash_command"];

/// Phrases of mini-swe-agent's protocol.
const PROTOCOL: [&str; 3] =
    ["<returncode>", "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT"];

/// Tags in every prompt of Cline, Roo and Kilo.
const CLINE: [&str; 1] = ["<environment_details>"];

impl JsonOutline {
    /// Parses a line; `None` if it is not a complete JSON value.
    pub(crate) fn of_line(line: &[u8]) -> Option<Self> {
        let whole = |line: &[u8]| {
            let mut deserializer = serde_json::Deserializer::from_slice(line);
            let (outline, result) = Self::fill(&mut deserializer);
            result.and_then(|()| deserializer.end()).map(|()| outline)
        };
        let outline = whole(line).or_else(|error| match repair(line) {
            Some(repaired) if error.is_syntax() => whole(repaired.as_bytes()),
            _ => Err(error),
        });
        outline.ok().filter(|outline| outline.is_list || !outline.keys.is_empty())
    }

    /// Parses as far as the bytes go; large documents are cut off.
    pub(crate) fn of_beginning(bytes: &[u8]) -> Self {
        let (outline, result) = Self::fill(&mut serde_json::Deserializer::from_slice(bytes));
        match result.is_err_and(|error| error.is_syntax()).then(|| repair(bytes)).flatten() {
            Some(repaired) => {
                Self::fill(&mut serde_json::Deserializer::from_slice(repaired.as_bytes())).0
            }
            None => outline,
        }
    }

    /// Does the same for a stream.
    pub(crate) fn of_stream(input: impl Read) -> Self {
        let input = BufReader::with_capacity(256 * 1024, input);
        Self::fill(&mut serde_json::Deserializer::from_reader(input)).0
    }

    /// Builds the outline of the readable part, and returns the error that ended it, if any.
    fn fill<'de, D: de::Deserializer<'de>>(deserializer: D) -> (Self, Result<(), D::Error>) {
        let mut outline = JsonOutline::default();
        let result = AnyJsonSeed(&mut OutlineBuilder { outline: &mut outline, depth: 0 })
            .deserialize(deserializer);
        (outline, result)
    }
}

/// An outline under construction.
struct OutlineBuilder<'o> {
    outline: &'o mut JsonOutline,
    depth: usize,
}

impl<'de> AnyJson<'de> for OutlineBuilder<'_> {
    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        self.outline.is_object = true;
        while let Some(key) = map.next_key::<String>()? {
            let find = |names: &[&'static str]| names.iter().copied().find(|name| *name == key);
            // Bounds memory and time for hostile objects; a repeated key keeps its first value.
            if self.outline.keys.len() >= MAX_KEYS || self.outline.has(&key) {
                map.next_value::<de::IgnoredAny>()?;
                continue;
            }
            self.outline.keys.push(key.clone());
            if let Some(name) = find(&MARKS) {
                let text = map.next_value::<Text<'de>>()?;
                if text.len() < MAX_MARK {
                    self.outline.marks.push((name, text.as_str().to_owned()));
                }
            } else if key == "content" {
                let text = map.next_value::<Text<'de>>()?;
                let holds = |words: &[&str]| words.iter().any(|word| text.contains(word));
                // Pseudo-keys, because only the presence of these texts matters, not their content.
                if holds(&FENCES) {
                    self.outline.keys.push("is:bash fence".to_owned());
                }
                if holds(&CLINE) || text.trim_start().starts_with("<task>") {
                    self.outline.keys.push("is:cline".to_owned());
                }
                if holds(&PROTOCOL) {
                    self.outline.keys.push("is:shell protocol".to_owned());
                }
            } else if let Some(name) = find(&INNER).filter(|_| self.depth < 3) {
                self.outline.inner.push((name, JsonOutline::default()));
                if let Some((_, outline)) = self.outline.inner.last_mut() {
                    map.next_value_seed(AnyJsonSeed(&mut OutlineBuilder {
                        outline,
                        depth: self.depth + 1,
                    }))?;
                }
            } else {
                map.next_value::<de::IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        self.outline.is_list = true;
        // A few elements tell the format; the rest are skipped without being kept.
        while self.outline.elements.len() < MAX_ELEMENTS && self.depth < MAX_DEPTH {
            self.outline.elements.push(JsonOutline::default());
            let outline = self.outline.elements.last_mut();
            let Some(outline) = outline else { break };
            let mut inner = OutlineBuilder { outline, depth: self.depth + 1 };
            if list.next_element_seed(AnyJsonSeed(&mut inner))?.is_none() {
                self.outline.elements.pop();
                return Ok(());
            }
        }
        // The parser must still reach the end of the list.
        while list.next_element::<de::IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
