//! Parses tool output in the forms that agents store.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::ContentBlocks;
use crate::event::ToolOutcome;
use crate::text::Text;
use crate::wire::JsonText;

/// Maximum number of nested wrappers that are removed.
const MAX_DEPTH: usize = 4;

/// An output as text, with the outcome and error that its wrapper reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in super::super) struct ToolOutput {
    pub(in super::super) text: Text<'static>,
    pub(in super::super) outcome: Option<ToolOutcome>,
    pub(in super::super) error: Text<'static>,
}

impl<'de> Deserialize<'de> for ToolOutput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::of(raw.get(), 0))
    }
}

/// A list element with a type.
#[derive(Deserialize)]
struct TypedElement {
    #[serde(rename = "type")]
    _kind: String,
}

impl ToolOutput {
    fn of(json: &str, depth: usize) -> Self {
        let plain = |json: &str| {
            serde_json::from_str::<JsonText>(json).map(|JsonText(text)| text).unwrap_or_default()
        };
        let is_blocks =
            || serde_json::from_str::<Vec<TypedElement>>(json).is_ok_and(|all| !all.is_empty());
        // Any other list is the output itself.
        if json.starts_with('[') && is_blocks() {
            let mut blocks = ContentBlocks::parse(json).unwrap_or_default();
            return Self { text: blocks.take_text(), ..Self::default() };
        }
        if json.starts_with('{') && depth < MAX_DEPTH {
            let fields: Result<BTreeMap<Cow<'_, str>, &RawValue>, _> = serde_json::from_str(json);
            if let Some(output) = fields.ok().and_then(|fields| Self::unwrap_output(&fields, depth))
            {
                return output;
            }
        }
        Self { text: plain(json), ..Self::default() }
    }

    /// Unwraps an object that only wraps an output; returns `None` if the object is the output
    /// itself.
    fn unwrap_output(fields: &BTreeMap<Cow<'_, str>, &RawValue>, depth: usize) -> Option<Self> {
        let field = |name: &str| fields.get(name).map(|raw| raw.get());
        let inner = |name: &str| field(name).map(|json| Self::of(json, depth + 1));
        let failed = |output: Self| Self { outcome: Some(ToolOutcome::Failed), ..output };
        // Vercel AI: `{"type": "error-text", "value": …}`.
        let kind = field("type").and_then(|json| serde_json::from_str::<String>(json).ok());
        match kind.as_deref() {
            Some("text" | "json" | "content") if fields.contains_key("value") => {
                return inner("value");
            }
            Some("error-text" | "error-json") => {
                return Some(failed(inner("value").unwrap_or_default()));
            }
            Some("execution-denied") => {
                let output = inner("reason").unwrap_or_default();
                return Some(Self { outcome: Some(ToolOutcome::Rejected), ..output });
            }
            Some("text") if fields.contains_key("text") => return inner("text"),
            _ => {}
        }
        // A Model Context Protocol result.
        let flag = field("isError").or_else(|| field("is_error"));
        if fields.contains_key("content") && (flag.is_some() || fields.len() == 1) {
            let output = inner("content").unwrap_or_default();
            return Some(match flag {
                Some("true") => failed(output),
                Some("false") => Self { outcome: Some(ToolOutcome::Ok), ..output },
                _ => output,
            });
        }
        // Gemini's wrapper, also used by other programs.
        if fields.len() == 1 {
            if let Some(error) = inner("error").filter(|error| !error.text.is_empty()) {
                return Some(failed(Self { error: error.text, ..Self::default() }));
            }
            return ["output", "result", "text", "value"].iter().find_map(|name| inner(name));
        }
        None
    }
}
