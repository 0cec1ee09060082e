//! Defines `OpenHands` SDK events and a conversation's state.

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};

use crate::any_json::{AnyJson, deserialize_any_json};
use crate::content::MessageContent;
use crate::event::TokenCounts;
use crate::feed::SessionFeed;
use crate::text::Text;
use crate::time::Moment;
use crate::tokens::ApiUsage;
use crate::wire::{JsonText, JsonValue, LenientFlag, LenientInt, LenientObject};

/// An event of any kind.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct SdkRecord<'a> {
    pub(super) kind: Text<'a>,
    pub(super) timestamp: Moment,
    pub(super) source: Text<'a>,
    pub(super) llm_response_id: Text<'a>,
    // Messages.
    pub(super) llm_message: LenientObject<SdkMessage<'a>>,
    pub(super) system_prompt: Text<'a>,
    pub(super) summary: Text<'a>,
    // Calls.
    pub(super) thought: MessageContent<'a>,
    pub(super) reasoning_content: Text<'a>,
    pub(super) action: JsonText,
    pub(super) tool_name: Text<'a>,
    pub(super) tool_call_id: Text<'a>,
    pub(super) tool_call: LenientObject<SdkCall<'a>>,
    // Results.
    pub(super) observation: LenientObject<SdkObservation<'a>>,
    pub(super) rejection_reason: Text<'a>,
    pub(super) error: Text<'a>,
    // Errors of the conversation.
    pub(super) code: Text<'a>,
    pub(super) detail: Text<'a>,
    // Calls of an agent driven through ACP.
    pub(super) title: Text<'a>,
    pub(super) status: Text<'a>,
    pub(super) tool_kind: Text<'a>,
    pub(super) raw_input: JsonText,
    pub(super) raw_output: JsonText,
    pub(super) is_error: LenientFlag,
    pub(super) parent_tool_call_id: Text<'a>,
    // State updates.
    pub(super) key: Text<'a>,
    pub(super) value: LenientObject<SdkState>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct SdkMessage<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: MessageContent<'a>,
    pub(super) reasoning_content: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct SdkCall<'a> {
    pub(super) name: Text<'a>,
    pub(super) arguments: JsonText,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct SdkObservation<'a> {
    pub(super) content: MessageContent<'a>,
    /// In place of `content` in the first versions, with `error`.
    pub(super) output: Text<'a>,
    pub(super) error: Text<'a>,
    pub(super) is_error: LenientFlag,
    exit_code: LenientInt,
    metadata: LenientObject<SdkMetadata<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SdkMetadata<'a> {
    exit_code: LenientInt,
    working_dir: Text<'a>,
}

impl SdkObservation<'_> {
    pub(super) fn code(&self) -> Option<i64> {
        let of_metadata = self.metadata.0.as_ref().and_then(|metadata| metadata.exit_code.0);
        self.exit_code.0.or(of_metadata)
    }

    /// Records the working directory.
    pub(super) fn note_folder(&self, feed: &mut SessionFeed<'_>) {
        if let Some(metadata) = &self.metadata.0 {
            note_folder(&metadata.working_dir, feed);
        }
    }
}

fn note_folder(folder: &Text<'_>, feed: &mut SessionFeed<'_>) {
    if feed.head.cwd.is_none() {
        feed.head.cwd = folder.line(400);
    }
}

/// Value of a state update: `stats`, or the whole state including `stats`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct SdkState {
    usage_to_metrics: UsageTotals,
    stats: LenientObject<SdkStats>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SdkStats {
    usage_to_metrics: UsageTotals,
}

impl SdkState {
    /// Records the running totals, replacing earlier ones.
    pub(super) fn note(self, feed: &mut SessionFeed<'_>) {
        self.usage_to_metrics.note(feed);
        if let Some(stats) = self.stats.0 {
            stats.usage_to_metrics.note(feed);
        }
    }
}

/// Records data from `base_state.json` that the events lack.
pub(super) fn note_base_state(state: &JsonValue, feed: &mut SessionFeed<'_>) {
    feed.head.add_model(&state.text("/agent/llm/model"));
    note_folder(&state.text("/workspace/working_dir"), feed);
    state.part::<UsageTotals>("/stats/usage_to_metrics").note(feed);
}

/// Token totals, summed over uses (the agent, the condenser, …).
#[derive(Default)]
struct UsageTotals {
    usage: TokenCounts,
    models: Vec<String>,
}

impl UsageTotals {
    fn note(self, feed: &mut SessionFeed<'_>) {
        if self.usage != TokenCounts::default() {
            feed.head.usage = Some(self.usage);
        }
        self.models.iter().for_each(|model| feed.head.add_model(model));
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct UseMetrics<'a> {
    model_name: Text<'a>,
    accumulated_token_usage: LenientObject<ApiUsage>,
}

deserialize_any_json!(UsageTotals);

impl<'de> AnyJson<'de> for UsageTotals {
    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        const MAX_MODELS: usize = 32;
        while let Some((_, LenientObject(metrics))) =
            map.next_entry::<IgnoredAny, LenientObject<UseMetrics<'de>>>()?
        {
            let Some(metrics) = metrics else { continue };
            let tokens = metrics.accumulated_token_usage.0;
            let Some(usage) = tokens.as_ref().and_then(ApiUsage::usage) else { continue };
            self.usage += usage;
            if self.models.len() < MAX_MODELS {
                self.models.push(metrics.model_name.as_str().to_owned());
            }
        }
        Ok(())
    }
}
