//! Brings foreign text into one form before it is compared: line ends, control sequences of
//! terminals, byte order marks, broken Unicode and composed characters. Pure.
//!
//! What was changed is reported, so that a reader of a report can see why the raw text differs.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// A change made to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextChange {
    /// A byte order mark was removed.
    ByteOrderMark,
    /// Lone surrogates or invalid bytes were replaced by U+FFFD.
    InvalidUnicode,
    /// Colours, links and other control sequences of terminals were removed.
    ControlSequences,
    /// CRLF or CR became LF.
    LineEnds,
    /// Decomposed characters were composed (NFC).
    Composition,
    /// The code fence around a whole reply was taken off.
    CodeFence,
    /// Texts of several parts were joined.
    JoinedParts,
    /// The pieces of a stream were joined.
    JoinedStream,
    /// Thinking before the answer was taken off.
    Thinking,
}

impl TextChange {
    /// Describes the change, for a note.
    pub const fn describe(self) -> &'static str {
        match self {
            TextChange::ByteOrderMark => "byte order mark removed",
            TextChange::InvalidUnicode => "lone surrogates or invalid bytes replaced by U+FFFD",
            TextChange::ControlSequences => "terminal colour and control codes removed",
            TextChange::LineEnds => "line ends CRLF or CR changed to LF",
            TextChange::Composition => "characters composed (Unicode NFC)",
            TextChange::CodeFence => "code fence around the reply taken off",
            TextChange::JoinedParts => "text parts joined, others left out",
            TextChange::JoinedStream => "the pieces of a stream joined",
            TextChange::Thinking => "thinking before the answer taken off",
        }
    }
}

/// A text with the changes that were made to it, without duplicates and in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalText<'t> {
    /// The text.
    pub text: Cow<'t, str>,
    /// The changes; empty if the text is as it was.
    pub changes: Vec<TextChange>,
}

/// Describes changes on one line, or returns `None` for an unchanged text.
pub fn describe_changes(changes: &[TextChange]) -> Option<String> {
    let words: Vec<&str> = changes.iter().map(|change| change.describe()).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// CSI, OSC (ended by BEL, ST or the line's end), other strings, and two-byte sequences (ECMA-48).
static CONTROL_SEQUENCES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x{9d})[^\x07\x1b\x{9c}\r\n]*(?:\x07|\x1b\\|\x{9c})?|\x1b[PX^_][^\x1b\x{9c}\r\n]*(?:\x1b\\|\x{9c})?|\x1b[ -/]*[0-~]|\x1b",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

/// Normalises a text: removes byte order mark and control sequences, changes line ends to LF and
/// composes characters. Applying it twice changes nothing.
pub fn normalise(text: &str) -> NormalText<'_> {
    let mut normal = NormalText { text: Cow::Borrowed(text), changes: Vec::new() };
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        normal.replace(TextChange::ByteOrderMark, Cow::Borrowed(rest));
    }
    if normal.text.contains(['\u{1b}', '\u{9b}', '\u{9d}']) {
        let plain = CONTROL_SEQUENCES.replace_all(&normal.text, "").into_owned();
        // A mark may have stood behind a colour code.
        let plain = plain.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(plain);
        normal.replace(TextChange::ControlSequences, Cow::Owned(plain));
    }
    if normal.text.contains('\r') {
        // CRLF first, or each would become two line breaks.
        let lines = normal.text.replace("\r\n", "\n").replace('\r', "\n");
        normal.replace(TextChange::LineEnds, Cow::Owned(lines));
    }
    // Last: removing a control sequence may join a letter with a combining mark behind it.
    if !is_nfc(&normal.text) {
        let composed: String = normal.text.nfc().collect();
        normal.replace(TextChange::Composition, Cow::Owned(composed));
    }
    normal
}

impl<'t> NormalText<'t> {
    fn replace(&mut self, change: TextChange, text: Cow<'t, str>) {
        if text != self.text {
            self.text = text;
            self.changes.push(change);
        }
    }
}

/// Decodes bytes that should be UTF-8: removes a byte order mark, reads UTF-16 that begins with
/// one, and replaces what is invalid by U+FFFD.
pub fn decode(bytes: &[u8]) -> NormalText<'_> {
    type Unit = fn([u8; 2]) -> u16;
    for (mark, unit) in
        [(&[0xff, 0xfe], u16::from_le_bytes as Unit), (&[0xfe, 0xff], u16::from_be_bytes as Unit)]
    {
        let Some(rest) = bytes.strip_prefix(mark) else { continue };
        let units: Vec<u16> = rest.as_chunks::<2>().0.iter().map(|pair| unit(*pair)).collect();
        let text = String::from_utf16_lossy(&units);
        return NormalText { text: Cow::Owned(text), changes: vec![TextChange::ByteOrderMark] };
    }
    let (rest, mut changes) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => (rest, vec![TextChange::ByteOrderMark]),
        None => (bytes, Vec::new()),
    };
    let text = String::from_utf8_lossy(rest);
    if matches!(text, Cow::Owned(_)) {
        changes.push(TextChange::InvalidUnicode);
    }
    NormalText { text, changes }
}

/// Prepares JSON text for a parser: removes a byte order mark, and replaces escapes of lone
/// surrogates, which no string can hold, by U+FFFD.
pub fn readable_json(json: &str) -> NormalText<'_> {
    let mut normal = NormalText { text: Cow::Borrowed(json), changes: Vec::new() };
    if let Some(rest) = json.strip_prefix('\u{feff}') {
        normal.replace(TextChange::ByteOrderMark, Cow::Borrowed(rest));
    }
    if has_surrogate_escape(&normal.text) {
        let repaired = without_lone_surrogates(&normal.text);
        normal.replace(TextChange::InvalidUnicode, Cow::Owned(repaired));
    }
    normal
}

/// Decodes bytes of JSON: [`decode`] and [`readable_json`] together.
pub fn decode_json(bytes: &[u8]) -> NormalText<'_> {
    let mut decoded = decode(bytes);
    if has_surrogate_escape(&decoded.text) {
        let repaired = without_lone_surrogates(&decoded.text);
        let is_known = decoded.changes.contains(&TextChange::InvalidUnicode);
        if is_known {
            decoded.text = Cow::Owned(repaired);
        } else {
            decoded.replace(TextChange::InvalidUnicode, Cow::Owned(repaired));
        }
    }
    decoded
}

/// Returns true if a JSON text may contain an escaped surrogate.
fn has_surrogate_escape(json: &str) -> bool {
    json.contains("\\ud") || json.contains("\\uD")
}

fn without_lone_surrogates(json: &str) -> String {
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        repaired.push_str(&rest[..at]);
        rest = &rest[at..];
        let (taken, is_lone) = match escaped_unit(rest) {
            Some(0xd800..=0xdbff) => match rest.get(6..).and_then(escaped_unit) {
                Some(0xdc00..=0xdfff) => (12, false),
                _ => (6, true),
            },
            Some(0xdc00..=0xdfff) => (6, true),
            Some(_) => (6, false),
            // A backslash and the character after it.
            None => (1 + rest[1..].chars().next().map_or(0, char::len_utf8), false),
        };
        if is_lone {
            // Writing to a String cannot fail.
            let _ = write!(repaired, "\\ufffd");
        } else {
            repaired.push_str(&rest[..taken]);
        }
        rest = &rest[taken..];
    }
    repaired.push_str(rest);
    repaired
}

/// Returns the code unit of an escape such as `\ud83d` at the beginning of a text.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_change_is_made_and_named() {
        use TextChange::*;
        for (raw, text, changes) in [
            ("plain\ntext", "plain\ntext", &[][..]),
            ("at 9.\r\nat 5.\r\n", "at 9.\nat 5.\n", &[LineEnds]),
            ("old\rmac", "old\nmac", &[LineEnds]),
            ("\u{feff}hi", "hi", &[ByteOrderMark]),
            ("\u{1b}[1;31mred\u{1b}[0m", "red", &[ControlSequences]),
            ("\u{1b}[38;2;255;0;0mred\u{1b}[m\u{1b}(B", "red", &[ControlSequences]),
            ("\u{1b}]0;title\u{7}text", "text", &[ControlSequences]),
            (
                "see \u{1b}]8;;https://example.org\u{1b}\\docs\u{1b}]8;;\u{1b}\\.",
                "see docs.",
                &[ControlSequences],
            ),
            ("\u{1b}]0;never ended\nline", "\nline", &[ControlSequences]),
            ("\u{9b}32mgreen\u{9b}0m", "green", &[ControlSequences]),
            ("\u{1b}[0m\u{feff}x", "x", &[ControlSequences]),
            ("cafe\u{301}", "café", &[Composition]),
            (
                "\u{feff}\u{1b}[1me\u{301}\r\n",
                "é\n",
                &[ByteOrderMark, ControlSequences, LineEnds, Composition],
            ),
        ] {
            let normal = normalise(raw);
            assert_eq!((&*normal.text, &*normal.changes), (text, changes), "{raw:?}");
        }
        assert_eq!(describe_changes(&[]), None);
        let words = describe_changes(&[ByteOrderMark, LineEnds]).unwrap();
        assert_eq!(words, "byte order mark removed; line ends CRLF or CR changed to LF");
    }

    #[test]
    fn bytes_are_decoded() {
        let read = |bytes: &[u8]| decode(bytes).text.into_owned();
        assert_eq!(read(b"\xef\xbb\xbfhi"), "hi");
        assert_eq!(read(b"\xff\xfeh\0i\0"), "hi");
        assert_eq!(read(b"\xfe\xff\0h\0i"), "hi");
        assert_eq!(decode(b"a\xffb").changes, [TextChange::InvalidUnicode]);
    }

    #[test]
    fn json_with_lone_surrogates_can_be_read() {
        for (json, expected) in [
            (r#"{"a":"\ud83d"}"#, "\u{fffd}"),
            (r#"{"a":"\uDE00x"}"#, "\u{fffd}x"),
            (r#"{"a":"\ud83d\ude00"}"#, "😀"),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}😀"),
            (r#"{"a":"\\ud83d"}"#, "\\ud83d"),
            (r#"{"a":"\ud83d\n"}"#, "\u{fffd}\n"),
            (r#"{"a":"\u00e9\""}"#, "é\""),
        ] {
            let normal = decode_json(json.as_bytes());
            let value: serde_json::Value = serde_json::from_str(&normal.text).unwrap();
            assert_eq!(value["a"], expected, "{json}");
            assert_eq!(normal.text, readable_json(json).text);
        }
        let marked = readable_json("\u{feff}{}");
        assert_eq!((&*marked.text, marked.changes), ("{}", vec![TextChange::ByteOrderMark]));
    }

    proptest! {
        #[test]
        fn a_normal_text_stays_as_it_is(text in "(\\PC|[\r\n\u{1b}\u{9b}\u{feff}\\[\\]m;0\u{301}])*") {
            let once = normalise(&text).text.into_owned();
            // A control sequence may be left by another one within it; everything else is final.
            if !once.contains(['\u{1b}', '\u{9b}', '\u{9d}']) && !once.starts_with('\u{feff}') {
                prop_assert_eq!(normalise(&once).changes, vec![]);
            }
        }

        #[test]
        fn json_of_any_text_stays_valid(text in ".*") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(&*readable_json(&json).text, &*json);
        }

        #[test]
        fn anything_can_be_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode_json(&bytes);
            let _ = without_lone_surrogates(&String::from_utf8_lossy(&bytes));
        }
    }
}
