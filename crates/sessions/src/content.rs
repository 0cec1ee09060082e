//! Parses the parts of chat messages in the shapes that agents share: text and media, tool calls,
//! the model's reasoning, token counts.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use crate::event::{TokenCounts, ToolCall};
use crate::text::Text;
use crate::wire::{AnyJson, JsonText, LenientInt, LenientObject, deserialize_any_json};

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

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ApiCall<'a> {
    pub(super) id: Text<'a>,
    pub(super) function: LenientObject<ApiFunction<'a>>,
}

/// A function and its arguments. Also the content of `<tool_call>` tags.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ApiFunction<'a> {
    pub(super) name: Text<'a>,
    pub(super) arguments: JsonText,
}

impl<'a> ApiCall<'a> {
    /// Converts to a neutral call; `None` without a function.
    pub(super) fn into_call(self) -> Option<ToolCall<'a>> {
        Some(self.function.0?.into_call(self.id))
    }
}

impl<'a> ApiFunction<'a> {
    pub(super) fn into_call(self, id: Text<'a>) -> ToolCall<'a> {
        ToolCall { id, name: self.name, arguments: self.arguments.0 }
    }
}

/// A `usage` object: `prompt_tokens` in chat completions, `input_tokens` in the Responses API. Both
/// include cached tokens.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiUsage {
    prompt_tokens: LenientInt,
    completion_tokens: LenientInt,
    input_tokens: LenientInt,
    output_tokens: LenientInt,
    prompt_tokens_details: LenientObject<ApiUsageDetails>,
    input_tokens_details: LenientObject<ApiUsageDetails>,
    /// As copied from Anthropic by `litellm`.
    cache_read_input_tokens: LenientInt,
    /// As summed by `OpenHands`.
    cache_read_tokens: LenientInt,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ApiUsageDetails {
    cached_tokens: LenientInt,
}

impl ApiUsage {
    /// Returns the counts; `None` if all are zero.
    pub(super) fn usage(&self) -> Option<TokenCounts> {
        // A provider sets only one of the names, or repeats the same count.
        let either = |one: LenientInt, other: LenientInt| one.count().max(other.count());
        let details = |object: &LenientObject<ApiUsageDetails>| {
            object.0.as_ref().map_or(LenientInt::default(), |details| details.cached_tokens)
        };
        let input = either(self.prompt_tokens, self.input_tokens);
        let cached =
            either(details(&self.prompt_tokens_details), details(&self.input_tokens_details))
                .max(either(self.cache_read_input_tokens, self.cache_read_tokens));
        let output = either(self.completion_tokens, self.output_tokens);
        let usage = TokenCounts { input: input.saturating_sub(cached), output, cached };
        (usage != TokenCounts::default()).then_some(usage)
    }
}

/// Tags around reasoning at the start of a text.
const TAGS: [(&str, &str); 3] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<REASONING_SCRATCHPAD>", "</REASONING_SCRATCHPAD>"),
];

/// Splits a text into its leading reasoning and the rest. Reasoning without a closing tag extends
/// to the end.
pub(super) fn split_thinking(text: Text<'_>) -> (Text<'_>, Text<'_>) {
    let mut thoughts = Text::default();
    let mut rest = text.trim_start();
    while let Some((inside, close)) =
        TAGS.iter().find_map(|(open, close)| Some((rest.strip_prefix(open)?, close)))
    {
        let (thought, after) = inside.split_once(close).unwrap_or((inside, ""));
        thoughts.append(&thought.trim().into());
        rest = after.trim_start();
    }
    // Without a tag, the text stays borrowed.
    if rest.len() == text.trim_start().len() {
        return (thoughts, text);
    }
    let rest = Text::from(rest.to_owned());
    (thoughts.into_owned(), rest)
}

/// Adds reasoning unless it is already present, because some formats store it in two fields.
pub(super) fn add_thinking<'a>(all: &mut Text<'a>, thought: Text<'a>) {
    if thought.trim().is_empty() || all.contains(thought.trim()) {
        return;
    }
    // Keep the longer text if it contains the other.
    if all.is_empty() || thought.contains(all.trim()) {
        *all = thought;
    } else {
        all.append(&thought);
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

    #[test]
    fn every_spelling_of_the_same_counts() {
        let expected = Some(TokenCounts { input: 70, output: 20, cached: 30 });
        for json in [
            r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":30}}"#,
            r#"{"prompt_tokens":100,"completion_tokens":20,"cache_read_input_tokens":30,
                "prompt_tokens_details":null}"#,
            r#"{"input_tokens":100,"output_tokens":20,"input_tokens_details":{"cached_tokens":30}}"#,
            r#"{"prompt_tokens":100,"completion_tokens":20,"cache_read_tokens":"30"}"#,
        ] {
            assert_eq!(serde_json::from_str::<ApiUsage>(json).unwrap().usage(), expected, "{json}");
        }
        assert_eq!(
            serde_json::from_str::<ApiUsage>(r#"{"prompt_tokens":0}"#).unwrap().usage(),
            None
        );
    }

    #[test]
    fn thoughts_are_taken_out_of_the_beginning_only() {
        for (text, thoughts, rest) in [
            ("plain", "", "plain"),
            ("<think>\na\n</think>\n\nb", "a", "b"),
            (" <think>a</think><thinking>b</thinking> c", "a\nb", "c"),
            ("<think>never ends", "never ends", ""),
            ("write `<think>x</think>`", "", "write `<think>x</think>`"),
            ("<REASONING_SCRATCHPAD>r</REASONING_SCRATCHPAD>", "r", ""),
            ("<think></think>", "", ""),
        ] {
            let (found, left) = split_thinking(text.into());
            assert_eq!((found.as_str(), left.as_str()), (thoughts, rest), "{text}");
        }
    }

    #[test]
    fn a_repeated_thought_counts_once() {
        let mut all = Text::default();
        for thought in ["look first", "look first\n", "", "look first, then act", "other"] {
            add_thinking(&mut all, thought.into());
        }
        assert_eq!(all.as_str(), "look first, then act\nother");
    }
}
