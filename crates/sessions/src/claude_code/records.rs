//! Defines Claude Code's records as stored in the file, without interpretation. Only used fields
//! are listed: skipping the others costs no more than finding their end. `toolUseResult`, which
//! repeats the content, is often most of a line.
//!
//! It makes up two fifths of all bytes and nearly always ends its line, so parsing stops before it
//! ([`PrefixParser`]), but only in lines for which this is certain to be safe. All others are
//! parsed completely.

use std::borrow::Cow;
use std::fmt;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::Text;
use crate::content::{MediaInfo, MessageContent};
use crate::event::{TokenCounts, ToolResult};
use crate::gemini_cli::wrapped_result;
use crate::lines::JsonLine;
use crate::time::Moment;
use crate::wire::{
    AnyJson, AnyJsonSeed, LenientFlag, LenientInt, LenientNumber, LenientObject, RecordId,
    deserialize_any_json,
};

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct ClaudeRecord<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) subtype: Text<'a>,
    pub(super) uuid: RecordId,
    pub(super) parent_uuid: RecordId,
    pub(super) logical_parent_uuid: RecordId,
    pub(super) forked_from: LenientObject<ForkedFrom<'a>>,
    pub(super) session_id: Text<'a>,
    pub(super) agent_id: Text<'a>,
    pub(super) version: Text<'a>,
    pub(super) cwd: Text<'a>,
    pub(super) entrypoint: Text<'a>,
    pub(super) timestamp: Moment,
    pub(super) is_sidechain: LenientFlag,
    pub(super) is_meta: LenientFlag,
    pub(super) is_compact_summary: LenientFlag,
    pub(super) is_visible_in_transcript_only: LenientFlag,
    pub(super) is_api_error_message: LenientFlag,
    pub(super) origin: LenientObject<TextAuthor<'a>>,
    pub(super) request_id: RecordId,
    /// Cost of the call, in versions before 1.0.10.
    #[serde(rename = "costUSD")]
    pub(super) cost: LenientNumber,
    pub(super) message: LenientObject<ClaudeMessage<'a>>,
    pub(super) attachment: LenientObject<ClaudeAttachment<'a>>,
    /// Text of a `system` record.
    pub(super) content: Text<'a>,
    pub(super) error: LenientObject<ProviderError<'a>>,
}

/// Origin of a record that was copied when a session was branched into its own file.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct ForkedFrom<'a> {
    pub(super) session_id: Text<'a>,
    pub(super) message_uuid: RecordId,
}

/// Author of a text, in newer versions.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct TextAuthor<'a> {
    pub(super) kind: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ClaudeMessage<'a> {
    pub(super) id: RecordId,
    pub(super) model: Text<'a>,
    pub(super) content: ClaudeBlocks<'a>,
    pub(super) usage: LenientObject<ClaudeTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ClaudeTokens {
    #[serde(rename = "input_tokens")]
    input: LenientInt,
    #[serde(rename = "cache_creation_input_tokens")]
    into_cache: LenientInt,
    #[serde(rename = "cache_read_input_tokens")]
    from_cache: LenientInt,
    #[serde(rename = "output_tokens")]
    output: LenientInt,
}

impl ClaudeTokens {
    pub(super) fn usage(&self) -> TokenCounts {
        // Anthropic counts cached input beside `input_tokens`; in our counts, only what was read
        // from the cache is apart.
        let input = self.input.count().saturating_add(self.into_cache.count());
        TokenCounts { input, output: self.output.count(), cached: self.from_cache.count() }
    }

    /// Returns the part of the input that the provider wrote to its cache.
    pub(super) fn cache_written(&self) -> u64 {
        self.into_cache.count()
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct ClaudeAttachment<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) prompt: MessageContent<'a>,
    pub(super) command_mode: Text<'a>,
    pub(super) is_meta: LenientFlag,
    pub(super) origin: LenientObject<TextAuthor<'a>>,
    /// Of a file that was changed by other hands.
    pub(super) filename: Text<'a>,
}

/// An error of the model provider, nested once more if the provider's reply is included.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ProviderError<'a> {
    pub(super) formatted: Text<'a>,
    pub(super) message: Text<'a>,
    pub(super) status: LenientInt,
}

/// One block of a message.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ClaudeBlock<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) text: Text<'a>,
    thinking: Option<&'a RawValue>,
    pub(super) id: Text<'a>,
    pub(super) name: Text<'a>,
    input: Option<&'a RawValue>,
    pub(super) tool_use_id: Text<'a>,
    content: Option<&'a RawValue>,
    pub(super) is_error: LenientFlag,
    pub(super) source: MediaInfo,
}

impl<'a> ClaudeBlock<'a> {
    /// Parses the output of a tool. Most outputs are never used, so they are parsed on demand.
    pub(super) fn content(&self) -> Text<'a> {
        let read = |json: &'a RawValue| serde_json::from_str::<MessageContent<'a>>(json.get()).ok();
        self.content.and_then(read).unwrap_or_default().0
    }

    /// Parses the output of a tool of iFlow, which writes the same records.
    pub(super) fn wrapped(&self) -> Option<ToolResult<'static>> {
        let json = self.content?.get();
        json.starts_with('{').then(|| wrapped_result(json)).flatten()
    }

    /// Returns the model's reasoning. If it is not `wanted`, it stays escaped, because then only
    /// its presence matters.
    pub(super) fn thinking(&self, wanted: bool) -> Text<'a> {
        let Some(json) = self.thinking.map(RawValue::get) else { return Text::default() };
        match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            // Unescaping reasoning that is not shown would only cost time.
            Some(escaped) if !wanted => Text::new(escaped),
            _ => serde_json::from_str(json).unwrap_or_default(),
        }
    }

    pub(super) fn arguments(&self) -> Text<'a> {
        self.input.map(|json| Text::new(json.get())).unwrap_or_default()
    }
}

/// `content` of a message: a text or a list of blocks.
#[derive(Default)]
pub(super) struct ClaudeBlocks<'a>(pub(super) Vec<ClaudeBlock<'a>>);

deserialize_any_json!(ClaudeBlocks<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for ClaudeBlocks<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.0.push(ClaudeBlock {
            kind: Text::from("text"),
            text: Text::new(text),
            ..ClaudeBlock::default()
        });
    }

    fn list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        // Each element, a string or an object, adds a block to `self`.
        while list.next_element_seed(AnyJsonSeed(self))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        self.0.push(ClaudeBlock::deserialize(MapAccessDeserializer::new(map))?);
        Ok(())
    }
}

/// The key with the comma before it. It cannot occur inside a JSON string, where the quote would be
/// escaped.
const KEY: &str = ",\"toolUseResult\":";

/// An unescaped key of every record. After the result, it belongs to another record, which was
/// written into this line after a truncated one.
const OTHER_RECORD: &str = "\"parentUuid\":";

/// Keys that determine the kind of a record. A few versions write them after the result.
const LATE_KEYS: [&str; 6] = [
    ",\"isMeta\":",
    ",\"isCompactSummary\":",
    ",\"isVisibleInTranscriptOnly\":",
    ",\"isSidechain\":",
    ",\"forkedFrom\":",
    ",\"origin\":",
];

/// Bytes at the end of a line that are searched for these keys. Only little follows the result.
const TAIL_BYTES: usize = 2048;

/// Searchers for the position where a record can be cut.
pub(super) struct PrefixParser {
    key: Finder<'static>,
    another: Finder<'static>,
    later: [Finder<'static>; LATE_KEYS.len()],
}

impl Default for PrefixParser {
    fn default() -> Self {
        let (key, another) = (Finder::new(KEY), Finder::new(OTHER_RECORD));
        Self { key, another, later: LATE_KEYS.map(Finder::new) }
    }
}

impl PrefixParser {
    /// Parses a line up to its `toolUseResult`; `None` if the line has to be parsed completely.
    pub(super) fn read<'a>(&self, line: &JsonLine<'a>) -> Option<ClaudeRecord<'a>> {
        let bytes = line.bytes;
        // A line without a line break may be truncated and must be parsed completely to notice it.
        let at = self.key.find(bytes).filter(|_| line.is_terminated())?;
        let rest = &bytes[at..];
        // Searching the whole result for six keys would cost what parsing it does.
        let end = &rest[rest.len().saturating_sub(TAIL_BYTES)..];
        let is_object = rest.trim_ascii_end().ends_with(b"}");
        if !is_object
            // An empty key or value before it: malformed, so the complete parser decides.
            || bytes[..at].ends_with(b",")
            || self.another.find(rest).is_some()
            || self.later.iter().any(|key| key.find(end).is_some())
        {
            return None;
        }
        let text = simdutf8::basic::from_utf8(&bytes[..at]).ok()?;
        let mut record = None;
        let read =
            PartialFields(&mut record).deserialize(&mut serde_json::Deserializer::from_str(text));
        // The text must end where the next key of the record is expected. Inside a value, the
        // fields would have failed to parse.
        let is_cut = read.is_err_and(|error| error.is_eof());
        record.filter(|record| {
            // Otherwise, a required field may follow the result.
            is_cut
                && !record.kind.is_empty()
                && !record.uuid.is_none()
                && record.timestamp.0.is_some()
                && record.message.0.is_some()
        })
    }
}

/// Parses the fields of an object that may end early.
struct PartialFields<'o, 'a>(&'o mut Option<ClaudeRecord<'a>>);

impl<'a> DeserializeSeed<'a> for PartialFields<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for PartialFields<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<(), A::Error> {
        *self.0 = Some(ClaudeRecord::deserialize(MapAccessDeserializer::new(TruncatedMap(map)))?);
        Ok(())
    }
}

/// An object that ends at the first key that cannot be read.
struct TruncatedMap<A>(A);

impl<'a, A: MapAccess<'a>> MapAccess<'a> for TruncatedMap<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        // `Record` treats this as the end of the object. The caller checks if that was the reason.
        Ok(self.0.next_key_seed(seed).unwrap_or_default())
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::feed::ReadNotes;
    use crate::lines::JsonLines;

    const BEFORE: &str = r#"{"type":"user","uuid":"u1","timestamp":"2026-03-01T10:00:04Z","message":{"role":"user","content":"hi"}"#;

    /// The text of a record that is read without its result; `None` where the line is read whole.
    fn read(line: &str) -> Option<String> {
        let mut lines = JsonLines::new(Box::new(line.as_bytes()));
        let line = lines.next(&mut ReadNotes::default()).unwrap()?;
        let record = PrefixParser::default().read(&line)?;
        let blocks = record.message.0?.content.0;
        Some(blocks.into_iter().map(|block| block.text.as_str().to_owned()).collect())
    }

    #[test]
    fn what_stands_before_the_result_is_the_record() {
        let hi = Some("hi".to_owned());
        assert_eq!(read(&format!("{BEFORE},\"toolUseResult\":{{\"a\":[1]}}}}\n")), hi);
        assert_eq!(
            read(&format!(
                "{BEFORE},\"toolUseResult\":\"x\",\"sourceToolAssistantUUID\":\"a\"}}\n"
            )),
            hi
        );
        // A word of it need not even be JSON.
        assert_eq!(read(&format!("{BEFORE},\"toolUseResult\":{{\"a\":\"\\ud83d\"}}}}\n")), hi);
    }

    #[test]
    fn lines_that_may_say_more_are_read_whole() {
        let whole = [
            format!("{BEFORE}}}"),
            format!("{BEFORE},\"toolUseResult\":{{\"a\":1"),
            // Torn in the result, and another record behind it, which has a long one of its own.
            format!(
                "{BEFORE},\"toolUseResult\":{{\"a\":\"b{{\"parentUuid\":null,{},\"toolUseResult\":\"{}\"}}",
                &BEFORE[1..],
                "x".repeat(5000)
            ),
            format!("{BEFORE},\"toolUseResult\":{{}},\"isMeta\":true}}"),
            // Missing before it: an id, a time, a message.
            r#"{"type":"user","timestamp":"2026-03-01T10:00:04Z","message":{"content":"hi"},"toolUseResult":1,"uuid":"u1"}"#.to_owned(),
            r#"{"type":"user","uuid":"u1","message":{"content":"hi"},"toolUseResult":1,"timestamp":"2026-03-01T10:00:04Z"}"#.to_owned(),
            r#"{"type":"user","uuid":"u1","timestamp":"2026-03-01T10:00:04Z","toolUseResult":1,"message":{"content":"hi"}}"#.to_owned(),
            // A key of that name in the arguments of a call, and in a text.
            BEFORE.replace("\"hi\"", r#"[{"type":"tool_use","input":{"a":1,"toolUseResult":2}}]"#) + "}",
            BEFORE.replace("hi", r#",\"toolUseResult\":"#) + "}",
            // Not JSON before it.
            format!("{BEFORE} x,\"toolUseResult\":1}}"),
            format!("{BEFORE},,\"toolUseResult\":1}}"),
            format!("{BEFORE},\"a\",\"toolUseResult\":1}}"),
        ];
        for line in whole {
            assert_eq!(read(&format!("{line}\n")), None, "{line}");
        }
        let last = format!("{BEFORE},\"toolUseResult\":{{\"a\":{{\"b\":1}}");
        assert_eq!(read(&last), None, "it may be torn");
    }

    proptest! {
        /// Wherever a valid record has its result, what is read without it is what is read with it.
        #[test]
        fn the_same_as_of_the_whole(text in ".*", result in "\\PC*", place in 0..5usize) {
            let mut fields = vec![
                "\"type\":\"user\"".to_owned(),
                "\"uuid\":\"u1\"".to_owned(),
                "\"timestamp\":\"2026-03-01T10:00:04Z\"".to_owned(),
                format!("\"message\":{{\"content\":{}}}", serde_json::to_string(&text).unwrap()),
            ];
            let result = serde_json::to_string(&result).unwrap();
            fields.insert(place.min(4), format!("\"toolUseResult\":{{\"stdout\":{result}}}"));
            let line = format!("{{{}}}", fields.join(","));
            let whole: ClaudeRecord<'_> = serde_json::from_str(&line).unwrap();
            let whole = whole.message.0.unwrap().content.0.remove(0).text.as_str().to_owned();
            let found = read(&format!("{line}\n"));
            prop_assert!(found.is_none() || found == Some(whole));
            prop_assert_eq!(found.is_some(), place == 4);
        }
    }
}
