//! Replays the lines of newer versions, each of which is a change to one document: `kind` 0 is the
//! document, 1 sets the value at a path, 2 cuts the list there and appends to it, 3 deletes.

use std::io;

use serde::Deserialize;
use serde_json::Value;

use crate::feed::ReadNotes;
use crate::lines::JsonLines;
use crate::source::SessionSource;
use crate::wire::LenientInt;

/// Maximum bytes of changes that are replayed. The document has to be in memory.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Maximum length of a path. Deeper documents would exhaust the stack.
const MAX_PATH: usize = 32;

/// Fields that hold copies of files and prompts and nothing of the conversation.
const HEAVY: [&str; 8] = [
    "contentReferences",
    "codeCitations",
    "variableData",
    "renderedUserMessage",
    "renderedGlobalContext",
    "codeBlocks",
    "inputState",
    "edits",
];

/// One change.
#[derive(Deserialize, Default)]
#[serde(default)]
struct JournalChange {
    kind: LenientInt,
    /// Path of keys and indices.
    k: Vec<Value>,
    v: Value,
    /// Length to which the list is cut first.
    i: LenientInt,
}

/// Returns true if the first line is a change and not a whole document.
pub(super) fn is_journal(source: &SessionSource) -> io::Result<bool> {
    let mut lines = source.lines()?;
    let Some(first) = lines.next(&mut ReadNotes::default())? else { return Ok(false) };
    let change = first.parse::<JournalChange>(&mut String::new(), &mut ReadNotes::default());
    Ok(change.is_some_and(|change| change.kind.0.is_some() && !change.v.is_null()))
}

/// Returns the document after all changes.
pub(super) fn replay(source: &SessionSource, notes: &mut ReadNotes) -> io::Result<Value> {
    let (mut document, mut read) = (Value::Null, 0);
    let (mut lines, mut scratch): (JsonLines<'_>, String) = (source.lines()?, String::new());
    while let Some(line) = lines.next(notes)? {
        read += line.bytes.len();
        if read > MAX_BYTES {
            notes.torn = Some(format!("line {}, after 256 MB of changes", line.number));
            break;
        }
        let Some(mut change) = line.parse::<JournalChange>(&mut scratch, notes) else { continue };
        shed(&mut change.v);
        if !change.apply(&mut document) {
            notes.ignored_records += 1;
        }
    }
    Ok(document)
}

impl JournalChange {
    /// Applies the change. Returns false if it fits nothing.
    fn apply(self, document: &mut Value) -> bool {
        if self.kind.0 == Some(0) {
            *document = self.v;
            return true;
        }
        if self.k.len() > MAX_PATH {
            return false;
        }
        let Some((last, path)) = self.k.split_last() else { return false };
        let Some(place) = path.iter().try_fold(document, |at, key| step(at, key)) else {
            return false;
        };
        match self.kind.0 {
            Some(1) => step(place, last).map(|place| *place = self.v).is_some(),
            Some(2) => {
                let Some(place) = step(place, last) else { return false };
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let Some(list) = place.as_array_mut() else { return false };
                if let Some(length) = self.i.0.and_then(|length| usize::try_from(length).ok()) {
                    list.truncate(length);
                }
                match self.v {
                    Value::Array(mut more) => list.append(&mut more),
                    Value::Null => {}
                    one => list.push(one),
                }
                true
            }
            Some(3) => match (place, last) {
                (Value::Object(object), Value::String(key)) => object.remove(key).is_some(),
                _ => false,
            },
            _ => false,
        }
    }
}

/// Returns the value at a key or index, which is made if it is missing.
fn step<'v>(at: &'v mut Value, key: &Value) -> Option<&'v mut Value> {
    match key {
        Value::String(key) => {
            if at.is_null() {
                *at = Value::Object(serde_json::Map::new());
            }
            at.as_object_mut().map(|object| object.entry(key.as_str()).or_insert(Value::Null))
        }
        key => {
            let index = usize::try_from(key.as_u64()?).ok()?;
            if at.is_null() {
                *at = Value::Array(Vec::new());
            }
            let list = at.as_array_mut()?;
            // A change continues a list. A gap would cost memory for nothing.
            if index == list.len() {
                list.push(Value::Null);
            }
            list.get_mut(index)
        }
    }
}

/// Empties what is not part of the conversation, so that it is not held in memory.
fn shed(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object.iter_mut() {
                if HEAVY.contains(&key.as_str()) {
                    *inner = Value::Null;
                } else {
                    shed(inner);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(shed),
        _ => {}
    }
}
