//! Text from a session file: bounded, without base64 media, and borrowed where it can be.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use memchr::memmem;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// A longer text keeps this many bytes at each end: the error is usually in the last lines.
const KEPT_END: usize = 16 * 1024;

/// Runs of base64 longer than this are replaced by a note.
const LONGEST_BASE64: usize = 256;

/// What stands before it.
static BASE64: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new(";base64,"));

/// Foreign text of at most about 32 KiB.
///
/// Deserializes from any JSON value, so that one odd field never loses a record: `null` is empty,
/// numbers and booleans are written out, lists are joined by line breaks, and of an object its
/// `text`, `content` or `output` counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a> {
    value: Cow<'a, str>,
    /// Bytes that were left out.
    cut: usize,
}

impl<'a> Text<'a> {
    /// Bounds a text.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        let value = text.into();
        if value.len() > LONGEST_BASE64 && BASE64.find(value.as_bytes()).is_some() {
            let (without, cut) = without_base64(&value);
            let rest = Self::bounded(Cow::Owned(without));
            return Self { cut: rest.cut + cut, ..rest };
        }
        Self::bounded(value)
    }

    fn bounded(value: Cow<'a, str>) -> Self {
        if value.len() <= 2 * KEPT_END {
            return Self { value, cut: 0 };
        }
        let head = &value[..value.floor_char_boundary(KEPT_END)];
        let tail = &value[value.ceil_char_boundary(value.len() - KEPT_END)..];
        let cut = value.len() - head.len() - tail.len();
        let text = format!("{head}\n… [{cut} bytes left out] …\n{tail}");
        Self { value: Cow::Owned(text), cut }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.value
    }

    /// Bytes that were left out.
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// A copy that owns its text.
    pub fn into_owned(self) -> Text<'static> {
        Text { value: Cow::Owned(self.value.into_owned()), cut: self.cut }
    }

    /// Adds a paragraph.
    pub fn join(&mut self, other: &Text<'_>) {
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

    /// The text as `change` makes it; `None` leaves it as it is. What was cut stays counted.
    pub(super) fn map(self, change: impl FnOnce(&str) -> Option<String>) -> Self {
        match change(&self.value) {
            Some(value) => Self { value: Cow::Owned(value), cut: self.cut },
            None => self,
        }
    }

    /// Stands for media: `[image image/png 531 kB]`. `encoded` is the length of the base64 text.
    pub fn media(kind: &str, media_type: &str, encoded: usize) -> Text<'static> {
        let bytes = encoded / 4 * 3;
        let media_type = crate::text::one_line(media_type, 60);
        let size = if bytes < 1000 { format!("{bytes} B") } else { format!("{} kB", bytes / 1000) };
        let value = format!("[{kind} {media_type} {size}]").replace("  ", " ");
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

/// The text with long base64 runs behind `;base64,` replaced, and how many bytes that took away.
fn without_base64(text: &str) -> (String, usize) {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte);
    let mut result = String::with_capacity(text.len().min(2 * KEPT_END));
    let (mut from, mut cut) = (0, 0);
    for hit in BASE64.find_iter(text.as_bytes()) {
        let start = hit + ";base64,".len();
        if start < from {
            continue;
        }
        let run = text.as_bytes()[start..].iter().take_while(|byte| is_base64(byte)).count();
        if run > LONGEST_BASE64 {
            result.push_str(&text[from..start]);
            result.push_str(&format!("[{run} bytes of base64 left out]"));
            from = start + run;
            cut += run;
        }
    }
    result.push_str(&text[from..]);
    (result, cut)
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyText)
    }
}

struct AnyText;

impl<'de> Visitor<'de> for AnyText {
    type Value = Text<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text")
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<Text<'de>, E> {
        Ok(Text::new(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Text<'de>, E> {
        // Bounded first, so that no long copy is made.
        let bounded = Text::new(value);
        Ok(Text { value: Cow::Owned(bounded.value.into_owned()), cut: bounded.cut })
    }

    fn visit_unit<E: de::Error>(self) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Text<'de>, E> {
        Ok(Text::new(value.to_string()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Text<'de>, E> {
        Ok(Text::new(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Text<'de>, E> {
        Ok(Text::new(value.to_string()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Text<'de>, E> {
        Ok(Text::new(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Text<'de>, A::Error> {
        let mut all = Text::default();
        while let Some(text) = list.next_element::<Text<'de>>()? {
            if all.is_empty() && all.cut == 0 {
                all = text;
            } else {
                all.join(&text);
            }
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text<'de>, A::Error> {
        let (mut found, mut rank) = (Text::default(), 0);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let this = match &*key {
                "text" => 3,
                "content" => 2,
                "output" => 1,
                _ => 0,
            };
            if this > rank {
                (found, rank) = (map.next_value()?, this);
            } else {
                map.next_value::<de::IgnoredAny>()?;
            }
        }
        Ok(found)
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
        assert_eq!(text.cut(), 80_008 - (text.len() - "\n… [47240 bytes left out] …\n".len()));
        assert!(text.contains("bytes left out"), "{}", &text[KEPT_END - 5..KEPT_END + 60]);
    }

    #[test]
    fn base64_is_left_out() {
        let text = format!("see data:image/png;base64,{} and on", "QUJD".repeat(200));
        let text = Text::new(text);
        assert_eq!(
            text.as_str(),
            "see data:image/png;base64,[800 bytes of base64 left out] and on"
        );
        assert_eq!(text.cut(), 800);
        assert_eq!(Text::media("image", "image/png", 708_000).as_str(), "[image image/png 531 kB]");
    }
}
