//! Defines Claude Code's records as stored in the file, without interpretation. Only used fields
//! are listed: skipping the others costs no more than finding their end. `toolUseResult`, which
//! repeats the content, is often most of a line.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess};
use serde_json::value::RawValue;

use crate::Text;
use crate::any_json::{AnyJson, AnyJsonSeed, deserialize_any_json};
use crate::content::{MediaInfo, MessageContent};
use crate::event::{TokenCounts, ToolResult};
use crate::gemini_cli::checkpoint::wrapped_result;
use crate::id::RecordId;
use crate::time::Moment;
use crate::wire::{LenientFlag, LenientInt, LenientNumber, LenientObject};

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
