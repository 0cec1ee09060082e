//! A text of a suite with the lines of its keys, and mappings that remember which keys were read.
//!
//! An importer reads a mapping through [`Fields`]. What it did not ask for is reported when the mapping
//! goes out of scope, so that no importer can drop a key without a word.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{EvalsReadError, MAX_BYTES};
use crate::yaml::{self, YamlFileKind, YamlSchema};
use selftest_text::escape::terminal;
use selftest_text::one_line;

/// Maximum number of lines that a warning names.
const MAX_LINES: usize = 3;
/// Maximum number of places that are kept for a key.
const MAX_PLACES: usize = 10_000;

/// A parsed text.
pub(super) struct SourceText {
    /// Name of the file in warnings; empty for the suite itself.
    name: String,
    value: Value,
    lines: SourceLines,
    /// Keys that were not read, without the numbers of list items, with their places.
    unread: RefCell<BTreeMap<String, Vec<String>>>,
}

/// The lines of the keys of a text.
enum SourceLines {
    /// By JSON Pointer; found when the first warning needs them.
    Parsed { text: String, before: usize, found: OnceCell<BTreeMap<String, usize>> },
    /// Everything is on this line.
    Line(usize),
}

impl SourceText {
    /// Parses YAML. `before` is the number of lines before the text in its file.
    pub(super) fn yaml(
        name: &str,
        text: &str,
        schema: YamlSchema,
        before: usize,
    ) -> Result<Self, EvalsReadError> {
        // Warnings and errors name the line in the file.
        let fault = |line: Option<usize>, words: &str| {
            let line = line.map(|line| format!("line {}: ", line + before)).unwrap_or_default();
            EvalsReadError(format!("not YAML: {line}{}", one_line(words, 200)))
        };
        let line_of = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
        let document = yaml::parse(text, kind(text, schema)).map_err(|error| {
            let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            fault(error.span.map(|span| line_of(span.start)), &(error.message + &hint))
        })?;
        if let Some(twice) = document.duplicates.first() {
            let words = format!("`{}` is there twice", one_line(&twice.key, 60));
            return Err(fault(Some(line_of(twice.second.start)), &words));
        }
        let found = OnceCell::new();
        let lines = SourceLines::Parsed { text: text.to_owned(), before, found };
        Ok(Self::new(name, document.value, lines))
    }

    /// Holds a value that was parsed from this text.
    pub(super) fn parsed(name: &str, value: Value, text: &str) -> Self {
        let found = OnceCell::new();
        Self::new(name, value, SourceLines::Parsed { text: text.to_owned(), before: 0, found })
    }

    /// Holds a value that was parsed from this TOML.
    pub(super) fn toml(value: Value, text: &str) -> Self {
        let found = OnceCell::from(toml_lines(text));
        Self::new("", value, SourceLines::Parsed { text: String::new(), before: 0, found })
    }

    /// Holds a value that stands on one line.
    pub(super) fn on_line(value: Value, line: usize) -> Self {
        Self::new("", value, SourceLines::Line(line))
    }

    fn new(name: &str, value: Value, lines: SourceLines) -> Self {
        Self { name: name.to_owned(), value, lines, unread: RefCell::default() }
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the members of the text, if it is a mapping.
    pub(super) fn root(&self) -> Option<Fields<'_>> {
        Fields::of(self, String::new(), &self.value)
    }

    /// Returns the line of a place.
    fn line(&self, pointer: &str) -> Option<usize> {
        match &self.lines {
            SourceLines::Line(line) => Some(*line),
            SourceLines::Parsed { text, before, found } => {
                // Lines are needed for warnings only, and take a second parse.
                let found = found.get_or_init(|| lines_of(text));
                found.get(pointer).map(|line| line + before)
            }
        }
    }

    /// Records that a key is not carried over.
    pub(super) fn leave_out(&self, pointer: &str) {
        let mut unread = self.unread.borrow_mut();
        // All items of a list share an entry, so that one warning names the lines of all.
        let places = unread.entry(without_numbers(pointer)).or_default();
        if places.len() < MAX_PLACES {
            places.push(pointer.to_owned());
        }
    }

    /// Returns one warning for each key that was not read, with the lines where it stands.
    pub(super) fn unread_warnings(&self) -> Vec<String> {
        let unread = std::mem::take(&mut *self.unread.borrow_mut());
        let warning = |(key, places): (String, Vec<String>)| {
            let lines: BTreeSet<usize> =
                places.iter().filter_map(|pointer| self.line(pointer)).collect();
            let shown: Vec<String> = lines.iter().take(MAX_LINES).map(usize::to_string).collect();
            let more = match lines.len().saturating_sub(MAX_LINES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let at = match shown.len() {
                0 => String::new(),
                1 => format!(" (line {})", shown[0]),
                _ => format!(" (lines {}{more})", shown.join(", ")),
            };
            let file =
                if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) };
            format!("{file}not carried over: `{}`{at}", terminal(&key, 100))
        };
        unread.into_iter().map(warning).collect()
    }
}

fn kind(text: &str, schema: YamlSchema) -> YamlFileKind {
    // The limits grow with the text, so that a small file cannot expand to an enormous one.
    YamlFileKind { max_bytes: text.len().clamp(4_000, MAX_BYTES), hint: "write a case", schema }
}

/// Returns the lines of a text by pointer: none where it is not YAML, to which JSON belongs.
fn lines_of(text: &str) -> BTreeMap<String, usize> {
    match yaml::parse(text, kind(text, YamlSchema::V1_2)) {
        Ok(document) => document.lines(text),
        Err(_) => BTreeMap::new(),
    }
}

/// Returns the lines of the keys of a TOML text. Multi-line values may hide keys, never move them.
fn toml_lines(text: &str) -> BTreeMap<String, usize> {
    let mut section = String::new();
    let mut lines = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_matches(['[', ']', ' ']);
            section = name.split('.').map(|part| format!("/{}", part.trim())).collect();
            // Of several `[[tables]]` of one name the first is as good a place as any.
            lines.entry(section.clone()).or_insert(number);
        } else if let Some((key, _)) = line.split_once('=') {
            let key = key.trim().trim_matches('"');
            lines.entry(format!("{section}/{key}")).or_insert(number);
        }
    }
    lines
}

/// Writes `/evals/3/tags` as `evals[].tags`.
fn without_numbers(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str("[]");
            continue;
        }
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&part.replace("~1", "/").replace("~0", "~"));
    }
    path
}

/// The members of a mapping. Each key that was not read is left out with a warning.
pub(super) struct Fields<'a> {
    source: &'a SourceText,
    pointer: String,
    members: &'a Map<String, Value>,
    read: RefCell<BTreeSet<&'a str>>,
}

impl<'a> Fields<'a> {
    /// Returns the members of a value at this place, if it is a mapping.
    pub(super) fn of(source: &'a SourceText, pointer: String, value: &'a Value) -> Option<Self> {
        let members = value.as_object()?;
        Some(Self { source, pointer, members, read: RefCell::default() })
    }

    pub(super) fn pointer(&self) -> &str {
        &self.pointer
    }

    pub(super) fn source(&self) -> &'a SourceText {
        self.source
    }

    pub(super) fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    /// Reads a key. Null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.place_of(key).map(|(_, value)| value)
    }

    /// Reads a key that is present, with its value, null too.
    pub(super) fn get_or_null(&self, key: &str) -> Option<&'a Value> {
        let (key, value) = member(self.members, key)?;
        self.read.borrow_mut().insert(key);
        Some(value)
    }

    /// Reads a key, and returns the pointer of its value too.
    fn place_of(&self, key: &str) -> Option<(String, &'a Value)> {
        let (key, value) = member(self.members, key)?;
        self.read.borrow_mut().insert(key);
        (!value.is_null()).then(|| (yaml::join(&self.pointer, key), value))
    }

    /// Reads the first of several keys that is present.
    pub(super) fn first<'k>(&self, keys: &[&'k str]) -> Option<(&'k str, &'a Value)> {
        keys.iter().find_map(|key| Some((*key, self.get(key)?)))
    }

    /// Counts keys as read that only describe.
    pub(super) fn describes(&self, keys: &[&str]) {
        for key in keys {
            let _ = self.get(key);
        }
    }

    /// Counts every key as read.
    pub(super) fn reads_all(&self) {
        self.read.borrow_mut().extend(self.members.keys().map(String::as_str));
    }

    /// Reads a text that is not blank.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str().filter(|text| !text.trim().is_empty())
    }

    /// Reads the texts of a list, or a single text.
    pub(super) fn texts(&self, key: &str) -> Vec<&'a str> {
        match self.place_of(key) {
            Some((pointer, Value::Array(items))) => {
                // An item that is no text must not be lost without a warning.
                for (at, _) in items.iter().enumerate().filter(|(_, item)| !item.is_string()) {
                    self.source.leave_out(&format!("{pointer}/{at}"));
                }
                items.iter().filter_map(Value::as_str).collect()
            }
            Some((_, Value::String(text))) => vec![text],
            _ => Vec::new(),
        }
    }

    /// Reads a mapping.
    pub(super) fn fields(&self, key: &str) -> Option<Fields<'a>> {
        let (pointer, value) = self.place_of(key)?;
        Fields::of(self.source, pointer, value)
    }

    /// Reads a list. Each item is a mapping, or `None` for anything else.
    pub(super) fn list(&self, key: &str) -> Vec<Option<Fields<'a>>> {
        let Some((pointer, value)) = self.place_of(key) else { return Vec::new() };
        let items = value.as_array().into_iter().flatten().enumerate();
        items.map(|(at, item)| Fields::of(self.source, format!("{pointer}/{at}"), item)).collect()
    }
}

/// Returns a member by its key, in the spelling of this key or as JavaScript spells it.
pub(super) fn member<'v>(
    members: &'v Map<String, Value>,
    key: &str,
) -> Option<(&'v str, &'v Value)> {
    if let Some((key, value)) = members.get_key_value(key) {
        return Some((key.as_str(), value));
    }
    let is_spelled_so = |spelled: &str| {
        let mut wanted = key.chars();
        // `expectedSkill` is `expected_skill`.
        spelled.chars().all(|c| match wanted.next() {
            Some('_') => c.is_ascii_uppercase() && wanted.next() == Some(c.to_ascii_lowercase()),
            next => next == Some(c),
        }) && wanted.next().is_none()
    };
    let found = key.contains('_').then(|| members.iter().find(|(key, _)| is_spelled_so(key)))?;
    found.map(|(key, value)| (key.as_str(), value))
}

impl Drop for Fields<'_> {
    fn drop(&mut self) {
        let read = self.read.borrow();
        for key in self.members.keys().filter(|key| !read.contains(key.as_str())) {
            self.source.leave_out(&yaml::join(&self.pointer, key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_is_named_with_its_lines() {
        let text = "name: a\ncases:\n  - id: 1\n    tags: [x]\n  - id: 2\n    tags: [y]\n    deep: {er: 1}\n";
        let source = SourceText::yaml("", text, YamlSchema::V1_2, 10).unwrap();
        {
            let root = source.root().unwrap();
            root.describes(&["name"]);
            for case in root.list("cases").into_iter().flatten() {
                let _ = (case.get("id"), case.fields("deep"));
            }
        }
        let expected = [
            "not carried over: `cases[].deep.er` (line 17)",
            "not carried over: `cases[].tags` (lines 14, 16)",
        ];
        assert_eq!(source.unread_warnings(), expected);
        assert!(source.unread_warnings().is_empty());
    }

    #[test]
    fn keys_of_json_and_toml_have_lines_too() {
        let json = "{\n \"a\": 1,\n \"b\": {\n  \"c\": 2\n }\n}";
        assert_eq!(lines_of(json)["/b/c"], 4);
        let toml = "version = \"1\"\n[agent]\ntimeout_sec = 3\n";
        assert_eq!(toml_lines(toml)["/agent/timeout_sec"], 3);
    }

    #[test]
    fn keys_may_be_spelled_as_in_javascript() {
        let text = "expectedSkill: a\nmaxTurns: {x: 1}\nexpectedskill: b\nmax_TurnsX: 1\n";
        let source = SourceText::yaml("", text, YamlSchema::V1_2, 0).unwrap();
        {
            let root = source.root().unwrap();
            assert_eq!(root.text("expected_skill"), Some("a"));
            assert!(root.fields("max_turns").is_some_and(|it| it.get("y").is_none()));
            assert!(root.get("max_turns_x").is_none() && root.get("expected").is_none());
        }
        let unread = source.unread_warnings().join("\n");
        assert!(unread.contains("`maxTurns.x` (line 2)"), "{unread}");
        assert!(
            unread.contains("`expectedskill`") && !unread.contains("expectedSkill"),
            "{unread}"
        );
    }

    #[test]
    fn a_key_twice_is_refused_with_its_line() {
        let error = SourceText::yaml("", "a: 1\na: 2\n", YamlSchema::V1_2, 0).err().unwrap();
        assert_eq!(error.to_string(), "not YAML: line 2: `a` is there twice");
    }
}
