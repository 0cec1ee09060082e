//! Tool calls in the format of chat APIs, which many agents store unchanged:
//! `{"id": …, "function": {"name": …, "arguments": …}}`.

use serde::Deserialize;

use super::event::ToolCall;
use super::text::Text;
use super::wire::{JsonText, LenientObject};

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
