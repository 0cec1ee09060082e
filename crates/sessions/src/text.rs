//! Defines the text type of session data: bounded, without base64 media, and borrowed where
//! possible.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};
use serde::{Serialize, Serializer};
use serde_json::Number;

use super::bounded::may_be_cut;
use crate::wire::{AnyJson, deserialize_any_json};

/// Bytes kept at each end of a longer text. Errors are usually in the last lines.
const KEPT_END: usize = 16 * 1024;

/// Maximum length of base64 after `;base64,`; longer runs are replaced by a note.
const MAX_BASE64: usize = 256;

/// The same for base64 without that prefix, such as an image in the JSON of a tool result.
const MAX_BARE_BASE64: usize = 1024;

/// Start and end of the note about cut bytes.
const NOTE_BEGINS: &str = "\n… [";
const NOTE_ENDS: &str = " bytes left out] …\n";

/// Maximum distance of a cut from a line break or space. Half of a secret would not be recognised
/// as one, so a cut avoids splitting words.
const MAX_CUT_SHIFT: usize = 2048;

/// Base64 in a data URL. [`without_runs`] leaves short ones alone.
static DATA_URL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(";base64,[A-Za-z0-9+/=_-]+").expect("the pattern is a constant"));

/// Searcher for base64 in data URLs; built once because every text is searched.
static MARK_OF_BASE64: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(b";base64,"));

/// Untrusted text of at most about 32 KiB.
///
/// Deserializes from any JSON value, so that an unexpected type never loses a record. `null` is
/// empty, numbers and booleans are formatted, and lists are joined by line breaks. Of an object,
/// `text`, `content` or `output` is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a> {
    value: Cow<'a, str>,
    /// Number of bytes cut.
    cut: usize,
}

impl<'a> Text<'a> {
    /// Creates a text and bounds its length.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        let (mut value, mut cut) = (text.into(), 0);
        // Most texts are short and cannot contain anything to cut.
        if value.len() <= MAX_BASE64 {
            return Self { value, cut };
        }
        // The prefix of a data URL allows a lower limit than base64 by itself.
        // Base64 goes before the length is bounded. Otherwise a screenshot would push out the text
        // around it, and the cut would leave half a run that is no longer recognised.
        for without in [without_base64, without_bare_base64] {
            if let Some((without, more)) = without(&value) {
                value = Cow::Owned(without);
                cut += more;
            }
        }
        // After removing base64, because the rest may fit without a cut.
        let rest = Self::bounded(value);
        Self { cut: rest.cut + cut, ..rest }
    }

    fn bounded(value: Cow<'a, str>) -> Self {
        if value.len() <= 2 * KEPT_END {
            return Self { value, cut: 0 };
        }
        let head = trim_partial_end(&value[..value.floor_char_boundary(KEPT_END)]);
        let tail = &value[value.ceil_char_boundary(value.len() - KEPT_END)..];
        let tail = trim_partial_start(tail);
        let cut = value.len() - head.len() - tail.len();
        let text = format!("{head}{NOTE_BEGINS}{cut}{NOTE_ENDS}{tail}");
        Self { value: Cow::Owned(text), cut }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.value
    }

    /// Returns the number of bytes cut.
    pub fn cut_bytes(&self) -> usize {
        self.cut
    }

    /// Makes JSON that was cut inside a string valid again; returns `None` for any other text.
    pub fn repaired_json(&self) -> Option<String> {
        if self.cut == 0 || !self.starts_with(['{', '[']) {
            return None;
        }
        let from = self.find(NOTE_BEGINS)?;
        let to = from + self[from..].find(NOTE_ENDS)?;
        let (note, rest) = (self[from..to].trim_start(), &self[to + NOTE_ENDS.len()..]);
        // The note stands inside of a string, in which a raw line break is invalid.
        Some([&self[..from], r"\n", note, NOTE_ENDS.trim_end(), r"\n", rest].concat())
    }

    /// Returns true if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// Returns the text as one line of at most `max` bytes, for a name or a path; `None` if it is
    /// empty.
    pub(super) fn line(&self, max: usize) -> Option<String> {
        (!self.is_empty()).then(|| selftest_text::one_line(self, max))
    }

    /// Returns a copy that owns its text.
    pub fn into_owned(self) -> Text<'static> {
        Text { value: Cow::Owned(self.value.into_owned()), cut: self.cut }
    }

    /// Appends a paragraph. The first one stays borrowed.
    pub(super) fn add(&mut self, other: Text<'a>) {
        if self.is_empty() && self.cut == 0 {
            *self = other;
        } else {
            self.append(&other);
        }
    }

    /// Appends a paragraph.
    pub fn append(&mut self, other: &Text<'_>) {
        if other.is_empty() {
            return;
        }
        let mut text = std::mem::take(&mut self.value).into_owned();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&other.value);
        let bounded = Self::bounded(Cow::Owned(text));
        self.cut += other.cut + bounded.cut;
        self.value = bounded.value;
    }

    /// Replaces the text with the result of `change`, unless that is `None`. The count of cut bytes
    /// stays.
    pub(super) fn map(self, change: impl FnOnce(&str) -> Option<String>) -> Self {
        match change(&self.value) {
            Some(value) => Self { value: Cow::Owned(value), cut: self.cut },
            None => self,
        }
    }

    /// Returns a placeholder for media, such as `[image image/png 531 kB]`. `encoded` is the length
    /// of the base64 text; if that may have been shortened, the size reads `over 196 kB`.
    pub fn media(kind: &str, media_type: &str, encoded: usize) -> Text<'static> {
        // Base64 encodes three bytes as four characters.
        let bytes = encoded / 4 * 3;
        let media_type = selftest_text::one_line(media_type, 60);
        let size = if bytes < 1000 { format!("{bytes} B") } else { format!("{} kB", bytes / 1000) };
        let over = if may_be_cut(encoded) { "over " } else { "" };
        let value = format!("[{kind} {media_type} {over}{size}]").replace("  ", " ");
        Text { value: Cow::Owned(value), cut: encoded }
    }
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.value
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text<'static> {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.value)
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.value)
    }
}

/// Returns the text without the partial word at its end.
fn trim_partial_end(head: &str) -> &str {
    let near = &head[head.ceil_char_boundary(head.len().saturating_sub(MAX_CUT_SHIFT))..];
    // A line break is the better place to cut.
    let kept = near.rfind('\n').or_else(|| near.rfind(ends_word)).unwrap_or(near.len());
    &head[..head.len() - near.len() + kept]
}

/// Returns the text without the partial word at its start.
fn trim_partial_start(tail: &str) -> &str {
    // Beyond this distance a text without any space, such as minified code, is cut where it is.
    let near = &tail[..tail.floor_char_boundary(MAX_CUT_SHIFT)];
    let left_out = near.find('\n').or_else(|| near.find(ends_word));
    &tail[left_out.map_or(0, |at| at + 1)..]
}

fn ends_word(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, ',' | ';' | '&')
}

/// Replaces long base64 runs after `;base64,`; returns the text and the number of bytes removed.
fn without_base64(text: &str) -> Option<(String, usize)> {
    MARK_OF_BASE64.find(text.as_bytes())?;
    let runs = DATA_URL.find_iter(text).map(|hit| hit.start() + ";base64,".len()..hit.end());
    without_runs(text, runs)
}

/// Does the same for longer runs without the prefix.
fn without_bare_base64(text: &str) -> Option<(String, usize)> {
    let mut from = 0;
    without_runs(
        text,
        std::iter::from_fn(|| {
            let run = bare_base64(text.as_bytes(), from)?;
            from = run.end;
            Some(run)
        }),
    )
}

/// Finds the next long run of base64. Without one, it looks at only one byte per
/// [`MAX_BARE_BASE64`], because any longer run crosses one of these positions.
fn bare_base64(text: &[u8], from: usize) -> Option<Range<usize>> {
    let is_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    // The text may be megabytes of log; a step of the minimum length visits a thousandth of it.
    let mut at = from + MAX_BARE_BASE64;
    while at < text.len() {
        let before = text[from..at].iter().rev().take_while(is_base64).count();
        let after = text[at..].iter().take_while(is_base64).count();
        let run = at - before..at + after;
        // Base64 mixes digits and both cases, unlike hexadecimal digits or a line of dashes.
        let has = |kind: fn(&u8) -> bool| text[run.clone()].iter().any(kind);
        if after > 0
            && run.len() > MAX_BARE_BASE64
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
        {
            return Some(run);
        }
        // The run is too short or no base64; nothing before its end can be part of a longer one.
        at = run.end + MAX_BARE_BASE64;
    }
    None
}

/// Replaces these runs of base64; returns the text and the number of bytes removed.
fn without_runs(text: &str, runs: impl Iterator<Item = Range<usize>>) -> Option<(String, usize)> {
    let (mut result, mut from, mut cut) = (String::new(), 0, 0);
    for run in runs.filter(|run| run.len() > MAX_BASE64) {
        result.push_str(&text[from..run.start]);
        result.push_str(&format!("[{} bytes of base64 left out]", run.len()));
        from = run.end;
        cut += run.len();
    }
    if cut == 0 {
        return None;
    }
    result.push_str(&text[from..]);
    Some((result, cut))
}

deserialize_any_json!(Text<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for Text<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        *self = Text::new(text);
    }

    fn boolean(&mut self, value: bool) {
        *self = Text::new(value.to_string());
    }

    fn number(&mut self, number: &Number) {
        // Formats `1.0` as `1`.
        let float = number.as_f64().filter(|_| number.is_f64());
        *self = Text::new(float.map_or_else(|| number.to_string(), |float| float.to_string()));
    }

    fn list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(text) = list.next_element::<Text<'de>>()? {
            self.add(text);
        }
        Ok(())
    }

    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        let mut rank = 0;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let this = match &*key {
                "text" => 3,
                "content" => 2,
                "output" => 1,
                _ => 0,
            };
            // The order of the keys varies, so the best one wins.
            if this > rank {
                (*self, rank) = (map.next_value()?, this);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_value_is_some_text() {
        for (json, text) in [
            (r#""a\nb""#, "a\nb"),
            ("null", ""),
            ("12", "12"),
            ("[\"a\", {\"type\": \"text\", \"text\": \"b\"}, {\"x\": 1}]", "a\nb"),
            (r#"{"content": [{"text": "deep"}], "id": 3}"#, "deep"),
        ] {
            assert_eq!(serde_json::from_str::<Text>(json).unwrap().as_str(), text, "{json}");
        }
    }

    #[test]
    fn a_long_text_keeps_head_and_tail_and_says_what_was_cut() {
        let long = format!("begin{}end", "é".repeat(40_000));
        let text = Text::new(long.as_str());
        assert!(text.starts_with("begin") && text.ends_with("end"));
        assert!(text.len() < 2 * KEPT_END + 100);
        assert_eq!(
            text.cut_bytes(),
            80_008 - (text.len() - "\n… [47240 bytes left out] …\n".len())
        );
        assert!(text.contains("bytes left out"), "{}", &text[KEPT_END - 5..KEPT_END + 60]);
    }

    #[test]
    fn cut_json_is_mended() {
        let long = r#"a word, \"another\"\n"#.repeat(5_000);
        let text = Text::new(format!(r#"{{"path":"a","text":"{long}","n":1}}"#));
        assert!(text.cut_bytes() > 0 && serde_json::from_str::<serde_json::Value>(&text).is_err());
        let mended = text.repaired_json().unwrap();
        let mended: serde_json::Value = serde_json::from_str(&mended).unwrap();
        assert_eq!((&mended["path"], &mended["n"]), (&"a".into(), &1.into()));
        assert!(mended["text"].as_str().unwrap().contains("\n… ["), "{mended}");
        for whole in ["", "{}", r#"{"path":"a"}"#, "\n… [3 bytes left out] …\n"] {
            assert_eq!(Text::new(whole).repaired_json(), None, "{whole}");
        }
        assert_eq!(Text::new("words ".repeat(10_000)).repaired_json(), None);
    }

    #[test]
    fn no_word_is_cut_in_half() {
        let key = "sk-proj-a1B2c3D4e5F6g7H8i9J0";
        for space in [" ", "\n", ","] {
            for shift in 0..key.len() {
                // The key across the end of the beginning, and across the beginning of the end.
                let filler = format!("{}{space}", "x".repeat(99)).repeat(200);
                let filler = &filler[..KEPT_END - shift];
                let (before, after) = filler.split_at(filler.len() - 200);
                let text = format!(
                    "{before}{space}{after}{space}{key}{space}{filler}{space}{key}{space}{filler}"
                );
                let text = Text::new(text);
                assert!(text.cut_bytes() > 0);
                let rest = text.replace(key, "");
                assert!(!rest.contains("sk-") && !rest.contains("J0"), "{shift} {space:?}");
            }
        }
    }

    #[test]
    fn base64_is_left_out() {
        let text = format!("see data:image/png;base64,{} and on", "QUJD".repeat(200));
        let text = Text::new(text);
        assert_eq!(
            text.as_str(),
            "see data:image/png;base64,[800 bytes of base64 left out] and on"
        );
        assert_eq!(text.cut_bytes(), 800);
        let data = "iVBORw0KGgo/".repeat(200);
        let json = format!(r#"{{"type":"image","data":"{data}","more":"{data}"}}"#);
        let note = "[2400 bytes of base64 left out]";
        let text = Text::new(json.as_str());
        assert_eq!(text.as_str(), json.replace(&data, note));
        assert_eq!(text.cut_bytes(), 4800);
        assert_eq!(Text::new(data).as_str(), note);
        for other in ["0123456789abcdef".repeat(200), "-".repeat(2000), "aB3 ".repeat(2000)] {
            assert_eq!(Text::new(other.as_str()).as_str(), other);
        }
        assert_eq!(Text::media("image", "image/png", 708_000).as_str(), "[image image/png 531 kB]");
        let cut = Text::media("image", "", 264_192);
        assert_eq!(cut.as_str(), "[image over 198 kB]", "it may have been larger");
    }
}
