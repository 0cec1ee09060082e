//! Parses YAML text into a JSON value with the location of every key and value.
//!
//! Configurations, suites and the files of other programs are read here. Parsing is bounded and never
//! panics, because the file may come from an untrusted repository.
//!
//! Errors of the parser are translated for the author of the file: its own messages advise
//! programmers which function to call.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_yaml::options::DuplicateKeyPolicy;
use serde_yaml::{Error, Location, Options, Spanned};

use selftest_text::one_line;

/// A kind of file.
#[derive(Debug, Clone, Copy)]
pub struct YamlFileKind {
    /// Maximum size in bytes.
    pub max_bytes: usize,
    /// Suggestion for creating such a file.
    pub hint: &'static str,
    /// Rules by which plain words become values.
    pub schema: YamlSchema,
}

/// The rules by which plain words become values. Programs differ in them, and a file means what the
/// program reads that it was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YamlSchema {
    /// YAML 1.1, as `PyYAML` reads it: `yes`, `No` and `on` are booleans, `010` is 8.
    V1_1,
    /// The core schema of YAML 1.2: `yes`, `No` and `on` are text, `010` is 10.
    V1_2,
}

impl YamlSchema {
    /// Returns the version of YAML.
    pub const fn version(self) -> &'static str {
        match self {
            Self::V1_1 => "1.1",
            Self::V1_2 => "1.2",
        }
    }
}

/// A byte range in the text.
pub type ByteSpan = Range<usize>;

/// Location of a member of a mapping or list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLocation {
    /// Location of the key, for members of mappings.
    pub key: Option<ByteSpan>,
    /// Location of the value; for a mapping or list, the rest of its first line.
    pub value: ByteSpan,
}

/// A duplicate key in a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The key.
    pub key: String,
    /// First occurrence, whose value is used.
    pub first: ByteSpan,
    /// Second occurrence.
    pub second: ByteSpan,
}

/// A parsed document.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlDocument {
    /// Content as JSON. Integral floats are integers, as in JSON Schema.
    pub value: Value,
    /// Locations by JSON Pointer; the root is `""`.
    pub places: BTreeMap<String, NodeLocation>,
    /// Duplicate keys.
    pub duplicates: Vec<DuplicateKey>,
}

/// Error for a text that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Location of the error, if known.
    pub span: Option<ByteSpan>,
    /// Error message on one line.
    pub message: String,
    /// Suggested fix.
    pub hint: Option<&'static str>,
}

/// Parses one YAML document.
pub fn parse(text: &str, kind: YamlFileKind) -> Result<YamlDocument, SyntaxError> {
    let max_bytes = kind.max_bytes;
    if text.len() > max_bytes {
        let message = format!("the file has {} bytes, more than {max_bytes}", text.len());
        return Err(SyntaxError { span: None, message, hint: None });
    }
    let root: Spanned<YamlNode> = serde_yaml::from_str_with_options(text, options(kind))
        .map_err(|error| syntax_error(&error, text))?;
    if matches!(root.value, YamlNode::Scalar(Value::Null)) {
        let message = "the file is empty".to_owned();
        return Err(SyntaxError { span: None, message, hint: Some(kind.hint) });
    }
    let mut reader = DocumentBuilder { text, places: BTreeMap::new(), duplicates: Vec::new() };
    let value = reader.add_node(root, None, "");
    Ok(YamlDocument { value, places: reader.places, duplicates: reader.duplicates })
}

/// Returns the JSON Pointer of a member.
pub fn join(pointer: &str, key: &str) -> String {
    // `~` is escaped first because the escape of `/` contains it.
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn options(kind: YamlFileKind) -> Options {
    let YamlFileKind { max_bytes, schema, .. } = kind;
    serde_yaml::options! {
        // Aliases can expand a small file to an enormous one, so time and memory are bounded.
        budget: serde_yaml::budget! {
            max_events: max_bytes,
            max_nodes: max_bytes / 4,
            max_depth: 32,
            flow_nesting_limit: 32,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_recorded_anchor_events: 50_000,
            max_merge_keys: 1_000,
            max_total_scalar_bytes: 4 * max_bytes,
        },
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: 20_000,
        },
        // Duplicates are detected in this module instead, so that all of them are reported together
        // with the first occurrence.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: schema == YamlSchema::V1_2,
        legacy_octal_numbers: schema == YamlSchema::V1_1,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

fn syntax_error(error: &Error, text: &str) -> SyntaxError {
    let span = error.location().map(|location| span(location, text));
    let mut cause = error;
    // Reports the error inside the alias instead of its use.
    while let Error::AliasError { error, .. } = cause {
        cause = error;
    }
    let (message, hint) = match cause {
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => {
            return SyntaxError { span, ..expands_too_far() };
        }
        other => {
            let words = other.to_string();
            // This limit has no error of its own, so that only its words tell.
            if words.contains("recursion limit") {
                return SyntaxError { span, ..expands_too_far() };
            }
            let YamlFault { message, hint } = YamlFault::new(&words);
            (format!("not readable as YAML: {message}"), hint)
        }
    };
    SyntaxError { span, message, hint }
}

fn expands_too_far() -> SyntaxError {
    SyntaxError {
        span: None,
        message: "the file expands to far more than such a file holds".to_owned(),
        hint: Some("write values out instead of nesting them deeply or repeating them by alias"),
    }
}

/// Returns the byte range of a location. It is clamped to the text and to character boundaries,
/// whatever the crate reports.
fn span(location: Location, text: &str) -> ByteSpan {
    let span = location.span();
    let offset = |value: Option<u64>| value.and_then(|value| usize::try_from(value).ok());
    let start = match offset(span.byte_offset()) {
        Some(start) => start,
        None => line_start(text, usize::try_from(location.line()).unwrap_or(0)),
    };
    let start = text.floor_char_boundary(start);
    let end = start.saturating_add(offset(span.byte_len()).unwrap_or(0));
    start..text.floor_char_boundary(end).max(start)
}

impl YamlDocument {
    /// Returns the line of each key, and of each item of a list, by JSON Pointer, counted from 1.
    pub fn lines(&self, text: &str) -> BTreeMap<String, usize> {
        let starts: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let line = |place: &NodeLocation| {
            let start = place.key.as_ref().unwrap_or(&place.value).start;
            starts.partition_point(|at| *at < start) + 1
        };
        self.places.iter().map(|(pointer, place)| (pointer.clone(), line(place))).collect()
    }
}

fn line_start(text: &str, line: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1));
    before.map(str::len).sum()
}

struct DocumentBuilder<'a> {
    text: &'a str,
    places: BTreeMap<String, NodeLocation>,
    duplicates: Vec<DuplicateKey>,
}

impl DocumentBuilder<'_> {
    fn add_node(&mut self, node: Spanned<YamlNode>, key: Option<ByteSpan>, pointer: &str) -> Value {
        let mut place = span(node.referenced, self.text);
        if !matches!(node.value, YamlNode::Scalar(_)) {
            let line = self.text[place.start..].lines().next().unwrap_or_default();
            // A mapping or a list would be marked over all of its lines.
            place.end = place.start + line.trim_end().len();
        }
        self.places.insert(pointer.to_owned(), NodeLocation { key, value: place });
        match node.value {
            YamlNode::Scalar(value) => value,
            YamlNode::List(items) => items
                .into_iter()
                .enumerate()
                .map(|(index, item)| self.add_node(item, None, &format!("{pointer}/{index}")))
                .collect(),
            YamlNode::Mapping(members) => {
                let mut object = Map::new();
                for (key, member) in members {
                    let child = join(pointer, &key.value);
                    let second = span(key.referenced, self.text);
                    // The first occurrence counts, and every further one is reported with it.
                    if let Some(place) = self.places.get(&child) {
                        let first = place.key.clone().unwrap_or_default();
                        self.duplicates.push(DuplicateKey { key: key.value, first, second });
                        continue;
                    }
                    let value = self.add_node(member, Some(second), &child);
                    object.insert(key.value, value);
                }
                Value::Object(object)
            }
        }
    }
}

/// A YAML value whose members have locations.
enum YamlNode {
    Scalar(Value),
    List(Vec<Spanned<YamlNode>>),
    Mapping(Vec<(Spanned<String>, Spanned<YamlNode>)>),
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl NodeVisitor {
    /// Converts a number to JSON, with integral floats as integers.
    fn float<E: serde::de::Error>(value: f64) -> Result<YamlNode, E> {
        #[expect(clippy::cast_possible_truncation, reason = "integral and within 2^53")]
        // `3.0` is the whole number 3 where one is expected; beyond 2^53 it would no longer be
        // exact.
        let number = if value.fract() == 0.0 && value.abs() < 9e15 {
            Some(Number::from(value as i64))
        } else {
            Number::from_f64(value)
        };
        let number = number.ok_or_else(|| E::custom("expected a finite number"))?;
        Ok(YamlNode::Scalar(Value::Number(number)))
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }
    #[expect(clippy::cast_precision_loss, reason = "far outside every range, exactness is moot")]
    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<YamlNode, E> {
        Self::float(value as f64)
    }
    #[expect(clippy::cast_precision_loss, reason = "far outside every range, exactness is moot")]
    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<YamlNode, E> {
        Self::float(value as f64)
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<YamlNode, E> {
        Self::float(value)
    }
    fn visit_str<E>(self, value: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }
    fn visit_string<E>(self, value: String) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }
    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<YamlNode, E> {
        Err(E::custom("expected text, found binary data"))
    }
    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Value::Null))
    }
    fn visit_none<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Value::Null))
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        YamlNode::deserialize(deserializer)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<YamlNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(YamlNode::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<YamlNode, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = access.next_entry()? {
            members.push(member);
        }
        Ok(YamlNode::Mapping(members))
    }
}

/// Maximum length of the message, in bytes.
const MAX_MESSAGE: usize = 200;

/// What is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlFault {
    /// The fault in one line, without its place.
    pub message: String,
    /// Advice.
    pub hint: Option<&'static str>,
}

/// Signs of a fault in the parser's words, with our message (the parser's if empty) and a hint.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "multiple YAML documents",
        "expected one YAML document, found several",
        "remove the lines `---` and `...`",
    ),
    ("tabs disallowed", "a tab in the indentation", "indent by spaces"),
    (
        "mapping values are not allowed",
        "a second `: ` in one line",
        "put a text that holds `: ` in quotes",
    ),
    ("unexpected character", "", "put a text that begins with a special character in quotes"),
    ("unknown anchor", "", "put a text that begins with `*` in quotes"),
    ("unsupported tag", "", "put a text that begins with `!` in quotes"),
    ("non-finite float", "a number that is not finite", "write a number such as 0.7"),
    ("unclosed bracket", "", "close it, or write one item in each line with `- `"),
    ("multiline quoted scalar", "a quotation mark that is not closed", "close it in the same line"),
    (
        "did not find expected '-'",
        "an indentation that fits no list or mapping above",
        "let all keys of a mapping, and all items of a list, begin in the same column",
    ),
    (
        "did not find expected key",
        "an indentation that fits no list or mapping above",
        "let all keys of a mapping, and all items of a list, begin in the same column",
    ),
];

impl YamlFault {
    /// Translates an error message of the parser.
    pub fn new(words: &str) -> Self {
        let words = words.lines().next().unwrap_or_default();
        let words = words.strip_prefix("error: ").unwrap_or(words);
        // Callers show the place themselves.
        let words = match words.split_once(": ") {
            Some((place, rest)) if place.starts_with("line ") && place.contains("column") => rest,
            _ => words,
        };
        let words = words.split(" at line ").next().unwrap_or_default();
        if let Some(key) = words.strip_prefix("duplicate mapping key: ") {
            let key = key.split(", set ").next().unwrap_or_default();
            let message = format!("the key `{}` is there twice", one_line(key, 60));
            return Self { message, hint: Some("remove one of the two") };
        }
        let known = FAULTS.iter().find(|(sign, _, _)| words.contains(sign));
        let message = match known {
            Some((_, ours, _)) if !ours.is_empty() => (*ours).to_owned(),
            _ => one_line(words, MAX_MESSAGE),
        };
        Self { message, hint: known.map(|(_, _, hint)| *hint) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPEC: &str = include_str!("../../config/src/fixtures/specified.yaml");

    const CONFIG: YamlFileKind =
        YamlFileKind { max_bytes: 1 << 20, hint: "write one", schema: YamlSchema::V1_2 };

    fn at<'a>(text: &'a str, document: &YamlDocument, pointer: &str) -> (&'a str, &'a str) {
        let place = &document.places[pointer];
        (place.key.clone().map_or("", |key| &text[key]), &text[place.value.clone()])
    }

    #[test]
    fn every_member_has_its_place() {
        let document = parse(SPEC, CONFIG).unwrap();
        assert_eq!(at(SPEC, &document, "/strictness"), ("strictness", "0.7"));
        assert_eq!(at(SPEC, &document, "/judge/model"), ("model", "\"gpt-4o-mini\""));
        assert_eq!(at(SPEC, &document, "/scenarios/1"), ("", "id: \"clear_summary\""));
        assert_eq!(
            at(SPEC, &document, "/scenarios/3/reply_flow/0/expected_status"),
            ("expected_status", "\"COMPLETE\"")
        );
        assert_eq!(document.value["judge"]["temperature"], 0);
        assert_eq!(document.duplicates, vec![]);
    }

    #[test]
    fn places_are_bytes_not_characters() {
        let text = "a: \"é…\"\nb: [ü, x]\n? c\n: {d: &n 1, e: *n}\n";
        let document = parse(text, CONFIG).unwrap();
        assert_eq!(at(text, &document, "/b/1"), ("", "x"));
        assert_eq!(at(text, &document, "/c/e"), ("e", "*n"));
    }

    #[test]
    fn duplicates_are_found_at_every_level() {
        let text = "a: 1\nb: {c: 1, c: 2}\na: 2\n";
        let document = parse(text, CONFIG).unwrap();
        let found: Vec<_> = document
            .duplicates
            .iter()
            .map(|duplicate| {
                (duplicate.key.as_str(), duplicate.first.start, duplicate.second.start)
            })
            .collect();
        assert_eq!(found, [("c", 9, 15), ("a", 0, 21)]);
        assert_eq!(document.value["a"], 1);
    }

    #[test]
    fn words_of_other_yaml_versions_stay_words() {
        let document = parse("a: yes\nb: no\nc: on\nd: true\ne: ~\nf: 1e3\n", CONFIG).unwrap();
        let expected = serde_json::json!(
            {"a": "yes", "b": "no", "c": "on", "d": true, "e": null, "f": 1000}
        );
        assert_eq!(document.value, expected);
        let old = YamlFileKind { schema: YamlSchema::V1_1, ..CONFIG };
        let document = parse("a: yes\nb: No\nc: on\nd: 010\ne: '010'\n", old).unwrap();
        let expected = serde_json::json!({"a": true, "b": false, "c": true, "d": 8, "e": "010"});
        assert_eq!(document.value, expected);
    }

    #[test]
    fn bombs_are_refused_quickly() {
        let level = |level: usize| {
            let before = vec![format!("*a{}", level - 1); 10].join(", ");
            format!("a{level}: &a{level} [{before}]\n")
        };
        let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        let laughs: String = std::iter::once(first).chain((1..10).map(level)).collect();
        let wide = format!("a: &a {}\nb: [{}]", "x".repeat(1000), "*a, ".repeat(200_000));
        let deep = "[".repeat(100_000);
        let deep_blocks =
            (0..500).fold(String::new(), |text, depth| text + " ".repeat(depth).as_str() + "a:\n");
        for bomb in [laughs, wide, deep, deep_blocks, "- ".repeat(10_000)] {
            let started = std::time::Instant::now();
            let error = parse(&bomb, CONFIG).unwrap_err();
            assert!(error.message.contains("far more than"), "{error:?}");
            assert!(started.elapsed().as_secs() < 5, "{error:?}");
        }
        assert!(parse(&" ".repeat(CONFIG.max_bytes + 1), CONFIG).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = parse(&text, CONFIG);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&String::from_utf8_lossy(&bytes), CONFIG);
        }

        #[test]
        fn a_damaged_file_is_read_or_refused(
            edits in prop::collection::vec((0..SPEC.len(), 0..20usize, "[-\\[\\]{}:,&*!|>#%@`\"' \nа\t~<]{0,4}"), 1..6)
        ) {
            let mut text = SPEC.to_owned();
            for (start, length, insert) in edits {
                let start = text.floor_char_boundary(start);
                let end = text.floor_char_boundary(start + length);
                text.replace_range(start..end, &insert);
            }
            if let Ok(document) = parse(&text, CONFIG) {
                for place in document.places.values() {
                    prop_assert!(text.get(place.value.clone()).is_some());
                    prop_assert!(place.key.clone().is_none_or(|key| text.get(key).is_some()));
                }
            }
        }
    }

    #[test]
    fn no_advice_for_programmers_is_left() {
        for (words, message) in [
            (
                "error: line 7 column 1: multiple YAML documents detected; use from_str_multiple or \
                 from_str_multiple_with_options\n --> <input>:7:1",
                "expected one YAML document, found several",
            ),
            (
                "line 4 column 5: duplicate mapping key: prompt, set DuplicateKeyPolicy in Options if \
                 acceptable",
                "the key `prompt` is there twice",
            ),
            (
                "non-finite float `.nan` rejected by the configured policy",
                "a number that is not finite",
            ),
            ("unexpected character: `@'", "unexpected character: `@'"),
            ("something new at line 3", "something new"),
        ] {
            assert_eq!(YamlFault::new(words).message, message);
        }
        assert!(YamlFault::new("unexpected character: `@'").hint.is_some());
        assert_eq!(YamlFault::new("").message, "");
    }
}
