//! Defines the lines of a pi session.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess};

use super::{Text, ToolCall};
use crate::any_json::{AnyJson, deserialize_any_json};
use crate::content::MediaInfo;
use crate::time::Moment;
use crate::wire::{JsonText, LenientFlag, LenientInt, LenientNumber, LenientObject, each};

/// A header or an entry.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct PiEntry<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) id: Text<'a>,
    pub(super) parent_id: ParentId<'a>,
    pub(super) timestamp: Moment,
    pub(super) cwd: Text<'a>,
    #[serde(alias = "branchedFrom")]
    pub(super) parent_session: Text<'a>,
    pub(super) message: LenientObject<PiMessage<'a>>,
    pub(super) content: PiBlocks<'a>,
    pub(super) summary: Text<'a>,
}

/// `parentId`: null at the root, missing in version 1.
#[derive(Default)]
pub(super) struct ParentId<'a> {
    pub(super) is_present: bool,
    pub(super) id: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for ParentId<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Only called if the field is present, even if it is null.
        Ok(Self { is_present: true, id: Text::deserialize(deserializer)? })
    }
}

/// `message` of an entry.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct PiMessage<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: PiBlocks<'a>,
    pub(super) timestamp: Moment,
    pub(super) model: Text<'a>,
    pub(super) usage: LenientObject<PiTokens>,
    pub(super) stop_reason: Text<'a>,
    #[serde(rename = "errorMessage")]
    pub(super) error: Text<'a>,
    pub(super) tool_call_id: Text<'a>,
    pub(super) tool_name: Text<'a>,
    pub(super) is_error: LenientFlag,
    pub(super) command: Text<'a>,
    pub(super) output: Text<'a>,
    pub(super) summary: Text<'a>,
}

/// Tokens of one model call. Cached tokens are counted separately.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PiTokens {
    pub(super) input: LenientInt,
    pub(super) output: LenientInt,
    pub(super) cache_read: LenientInt,
    pub(super) cache_write: LenientInt,
    cost: LenientObject<PiCost>,
}

/// Cost of one model call, in USD.
#[derive(Deserialize, Default)]
#[serde(default)]
struct PiCost {
    total: LenientNumber,
}

impl PiTokens {
    pub(super) fn cost(&self) -> Option<f64> {
        self.cost.0.as_ref().and_then(|cost| cost.total.0)
    }
}

/// `content` of a message: a string or a list of blocks.
#[derive(Default)]
pub(super) struct PiBlocks<'a> {
    pub(super) text: Text<'a>,
    pub(super) thinking: Text<'a>,
    pub(super) calls: Vec<ToolCall<'a>>,
    /// Types of unknown blocks.
    pub(super) unknown: Vec<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct PiBlock<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    thinking: Text<'a>,
    id: Text<'a>,
    name: Text<'a>,
    arguments: JsonText,
    data: MediaInfo,
}

deserialize_any_json!(PiBlocks<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for PiBlocks<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.text = Text::new(text);
    }

    fn list<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        each(|LenientObject(block)| block.into_iter().for_each(|block| self.add(block))).list(list)
    }
}

impl<'a> PiBlocks<'a> {
    fn add(&mut self, block: PiBlock<'a>) {
        match block.kind.as_str() {
            "text" => self.text.add(block.text),
            "thinking" => self.thinking.add(block.thinking),
            "toolCall" => {
                let PiBlock { id, name, arguments, .. } = block;
                self.calls.push(ToolCall { id, name, arguments: arguments.0 });
            }
            "image" => self.text.add(block.data.note("image")),
            _ => self.unknown.push(block.kind),
        }
    }
}
