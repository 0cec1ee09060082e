//! Defines the lines of a pi session.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess};

use super::{Text, ToolCall};
use crate::any_json::{AnyJson, deserialize_any_json};
use crate::content::Media;
use crate::time::Moment;
use crate::wire::{Flag, Int, Json, Object, each};

/// A header or an entry.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct Entry<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) id: Text<'a>,
    pub(super) parent_id: ParentId<'a>,
    pub(super) timestamp: Moment,
    pub(super) cwd: Text<'a>,
    #[serde(alias = "branchedFrom")]
    pub(super) parent_session: Text<'a>,
    pub(super) message: Object<Message<'a>>,
    pub(super) content: Blocks<'a>,
    pub(super) summary: Text<'a>,
}

/// `parentId`: null at the root, missing in version 1.
#[derive(Default)]
pub(super) struct ParentId<'a> {
    pub(super) is_there: bool,
    pub(super) id: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for ParentId<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Only called if the field is present, even if it is null.
        Ok(Self { is_there: true, id: Text::deserialize(deserializer)? })
    }
}

/// `message` of an entry.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: Blocks<'a>,
    pub(super) timestamp: Moment,
    pub(super) model: Text<'a>,
    pub(super) usage: Object<Tokens>,
    pub(super) stop_reason: Text<'a>,
    #[serde(rename = "errorMessage")]
    pub(super) error: Text<'a>,
    pub(super) tool_call_id: Text<'a>,
    pub(super) tool_name: Text<'a>,
    pub(super) is_error: Flag,
    pub(super) command: Text<'a>,
    pub(super) output: Text<'a>,
    pub(super) summary: Text<'a>,
}

/// Tokens of one model call. Cached tokens are counted separately.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Tokens {
    pub(super) input: Int,
    pub(super) output: Int,
    pub(super) cache_read: Int,
    pub(super) cache_write: Int,
}

/// `content` of a message: a string or a list of blocks.
#[derive(Default)]
pub(super) struct Blocks<'a> {
    pub(super) text: Text<'a>,
    pub(super) thinking: Text<'a>,
    pub(super) calls: Vec<ToolCall<'a>>,
    /// Types of unknown blocks.
    pub(super) unknown: Vec<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    thinking: Text<'a>,
    id: Text<'a>,
    name: Text<'a>,
    arguments: Json,
    data: Media,
}

deserialize_any_json!(Blocks<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for Blocks<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.text = Text::new(text);
    }

    fn list<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        each(|Object(block)| block.into_iter().for_each(|block| self.add(block))).list(list)
    }
}

impl<'a> Blocks<'a> {
    fn add(&mut self, block: Block<'a>) {
        match block.kind.as_str() {
            "text" => self.text.add(block.text),
            "thinking" => self.thinking.add(block.thinking),
            "toolCall" => {
                let Block { id, name, arguments, .. } = block;
                self.calls.push(ToolCall { id, name, arguments: arguments.0 });
            }
            "image" => self.text.add(block.data.note("image")),
            _ => self.unknown.push(block.kind),
        }
    }
}
