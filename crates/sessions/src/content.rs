//! The content of chat messages in the shapes that agents share: text, parts, media. Media are
//! named with type and size, never kept.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::text::Text;
use super::wire::otherwise_default;

/// `content` of a chat message: a string, a list of parts, or nothing. Images, audio and files
/// are named with type and size instead of being kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Content<'a>(pub(super) Text<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyContent;

        impl<'de> Visitor<'de> for AnyContent {
            type Value = Content<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text or a list of parts")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content(Text::new(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content(Text::new(text).into_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut all = Text::default();
                while let Some(part) = list.next_element::<Part<'de>>()? {
                    if all.is_empty() {
                        all = part.0;
                    } else {
                        all.join(&part.0);
                    }
                }
                Ok(Content(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Part::deserialize(MapAccessDeserializer::new(map)).map(|part| Content(part.0))
            }

            otherwise_default!(number boolean null);
        }

        deserializer.deserialize_any(AnyContent)
    }
}

/// One part of a message's content.
#[derive(Default)]
struct Part<'a>(Text<'a>);

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
    media: Media,
}

impl<'de: 'a, 'a> Deserialize<'de> for Part<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyPart;

        impl<'de> Visitor<'de> for AnyPart {
            type Value = Part<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a part of a message")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Part(Text::new(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Part(Text::new(text).into_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let fields = PartFields::deserialize(MapAccessDeserializer::new(map))?;
                if !fields.text.is_empty() || fields.media.length == 0 {
                    return Ok(Part(fields.text));
                }
                Ok(Part(fields.media.note(&fields.kind)))
            }

            otherwise_default!(number boolean null list);
        }

        deserializer.deserialize_any(AnyPart)
    }
}

/// An image, a sound or a file inside a message: only what it is and how large, never its data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Media {
    media_type: String,
    /// Of the encoded data, in bytes.
    length: usize,
}

impl Media {
    /// `[image image/png 531 kB]`.
    pub(super) fn note(&self, kind: &str) -> Text<'static> {
        let kind = match kind.split('_').next().unwrap_or_default() {
            "" => "media",
            // `input_image`
            "input" => kind.split('_').nth(1).unwrap_or("media"),
            kind => kind,
        };
        Text::media(kind, &self.media_type, self.length)
    }

    fn of_text(text: &str) -> Self {
        let media_type = text.strip_prefix("data:").and_then(|rest| rest.split_once(';'));
        let media_type = media_type.map(|(kind, _)| selftest_text::one_line(kind, 60));
        Self { media_type: media_type.unwrap_or_default(), length: text.len() }
    }
}

impl<'de> Deserialize<'de> for Media {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyMedia;

        impl<'de> Visitor<'de> for AnyMedia {
            type Value = Media;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("media")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Media, E> {
                Ok(Media::of_text(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Media, A::Error> {
                let mut all = Media::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match key.as_str() {
                        "url" | "data" | "file_data" => {
                            let inner: Media = map.next_value()?;
                            all.length = inner.length;
                            if all.media_type.is_empty() {
                                all.media_type = inner.media_type;
                            }
                        }
                        "media_type" | "mimeType" | "mime_type" | "format" => {
                            let name = map.next_value::<Text<'de>>()?;
                            all.media_type = selftest_text::one_line(&name, 60);
                        }
                        _ => drop(map.next_value::<de::IgnoredAny>()?),
                    }
                }
                Ok(all)
            }

            otherwise_default!(number boolean null list);
        }

        deserializer.deserialize_any(AnyMedia)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(json: &str) -> String {
        serde_json::from_str::<Content<'_>>(json).unwrap().0.as_str().to_owned()
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
