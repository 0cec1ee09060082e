//! Parses the content of chat messages in the shapes that agents share: text, parts and media.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::any_json::{AnyJson, deserialize_any_json};
use super::text::Text;

/// `content` of a chat message: a string, a list of parts, or nothing. Images, audio and files are
/// replaced by their type and size.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MessageContent<'a>(pub(super) Text<'a>);

deserialize_any_json!(MessageContent<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for MessageContent<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.0 = Text::new(text);
    }

    fn list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(ContentPart(text)) = list.next_element::<ContentPart<'de>>()? {
            self.0.add(text);
        }
        Ok(())
    }

    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        let mut part = ContentPart::default();
        part.object(map)?;
        self.0 = part.0;
        Ok(())
    }
}

/// One part of a message's content.
#[derive(Default)]
struct ContentPart<'a>(Text<'a>);

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct PartFields<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    #[serde(
        alias = "image_url",
        alias = "input_audio",
        alias = "source",
        alias = "file",
        alias = "inlineData"
    )]
    media: MediaInfo,
}

deserialize_any_json!(ContentPart<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for ContentPart<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.0 = Text::new(text);
    }

    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        let fields = PartFields::deserialize(MapAccessDeserializer::new(map))?;
        // A document may contain its own text, which is more useful than a placeholder.
        let is_media = fields.text.is_empty() && fields.media.length > 0;
        self.0 = if is_media { fields.media.note(&fields.kind) } else { fields.text };
        Ok(())
    }
}

/// Type and size of an image, audio clip or file in a message. The data itself is dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MediaInfo {
    media_type: String,
    /// Length of the encoded data, in bytes.
    length: usize,
}

impl MediaInfo {
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Sets the media type if the data URL has none.
    pub(super) fn set_type(&mut self, media_type: &str) {
        if self.media_type.is_empty() {
            self.media_type = selftest_text::one_line(media_type, 60);
        }
    }

    /// Formats a note such as `[image image/png 531 kB]`.
    pub(super) fn note(&self, kind: &str) -> Text<'static> {
        let kind = match kind.split('_').next().unwrap_or_default() {
            "" => "media",
            // As in `input_image`.
            "input" => kind.split('_').nth(1).unwrap_or("media"),
            kind => kind,
        };
        Text::media(kind, &self.media_type, self.length)
    }

    fn of_text(text: &str) -> Self {
        // A data URL starts with its media type.
        let media_type = text.strip_prefix("data:").and_then(|rest| rest.split_once(';'));
        let media_type = media_type.map(|(kind, _)| selftest_text::one_line(kind, 60));
        Self { media_type: media_type.unwrap_or_default(), length: text.len() }
    }
}

deserialize_any_json!(MediaInfo);

impl<'de> AnyJson<'de> for MediaInfo {
    fn string(&mut self, text: Cow<'de, str>) {
        *self = MediaInfo::of_text(&text);
    }

    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "url" | "data" | "file_data" => {
                    // Some formats nest the URL in an object, and the data may be a plain string.
                    let inner: MediaInfo = map.next_value()?;
                    self.length = inner.length;
                    if self.media_type.is_empty() {
                        self.media_type = inner.media_type;
                    }
                }
                // OpenAI's audio parts have only a `format`.
                "media_type" | "mimeType" | "mime_type" | "format" => {
                    let name = map.next_value::<Text<'de>>()?;
                    self.media_type = selftest_text::one_line(&name, 60);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(json: &str) -> String {
        serde_json::from_str::<MessageContent<'_>>(json).unwrap().0.as_str().to_owned()
    }

    #[test]
    fn content_in_all_its_shapes() {
        assert_eq!(content(r#""plain""#), "plain");
        assert_eq!(content("null"), "");
        assert_eq!(content(r#"[{"type":"text","text":"a"},"b",7,{"text":null}]"#), "a\nb");
        let data = "QUJD".repeat(1000);
        let url = format!(
            r#"[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}]"#
        );
        assert_eq!(content(&url), "[image image/png 3 kB]");
        let source = format!(
            r#"[{{"type":"image","source":{{"media_type":"image/gif","data":"{data}"}}}}]"#
        );
        assert_eq!(content(&source), "[image image/gif 3 kB]");
    }
}
