//! Defines `OpenHands` SDK events and a conversation's state.

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};

use crate::any_json::{AnyJson, deserialize_any_json};
use crate::content::Content;
use crate::event::Usage;
use crate::feed::Feed;
use crate::text::Text;
use crate::time::Moment;
use crate::tokens::Counts;
use crate::wire::{Flag, Int, Json, Loose, Object};

/// An event of any kind.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Record<'a> {
    pub(super) kind: Text<'a>,
    pub(super) timestamp: Moment,
    pub(super) source: Text<'a>,
    pub(super) llm_response_id: Text<'a>,
    // Messages.
    pub(super) llm_message: Object<Message<'a>>,
    pub(super) system_prompt: Text<'a>,
    pub(super) summary: Text<'a>,
    // Calls.
    pub(super) thought: Content<'a>,
    pub(super) reasoning_content: Text<'a>,
    pub(super) action: Json,
    pub(super) tool_name: Text<'a>,
    pub(super) tool_call_id: Text<'a>,
    pub(super) tool_call: Object<Call<'a>>,
    // Results.
    pub(super) observation: Object<Observation<'a>>,
    pub(super) rejection_reason: Text<'a>,
    pub(super) error: Text<'a>,
    // Errors of the conversation.
    pub(super) code: Text<'a>,
    pub(super) detail: Text<'a>,
    // Calls of an agent driven through ACP.
    pub(super) title: Text<'a>,
    pub(super) status: Text<'a>,
    pub(super) tool_kind: Text<'a>,
    pub(super) raw_input: Json,
    pub(super) raw_output: Json,
    pub(super) is_error: Flag,
    pub(super) parent_tool_call_id: Text<'a>,
    // State updates.
    pub(super) key: Text<'a>,
    pub(super) value: Object<State>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: Content<'a>,
    pub(super) reasoning_content: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Call<'a> {
    pub(super) name: Text<'a>,
    pub(super) arguments: Json,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Observation<'a> {
    pub(super) content: Content<'a>,
    /// In place of `content` in the first versions, with `error`.
    pub(super) output: Text<'a>,
    pub(super) error: Text<'a>,
    pub(super) is_error: Flag,
    exit_code: Int,
    metadata: Object<Metadata<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Metadata<'a> {
    exit_code: Int,
    working_dir: Text<'a>,
}

impl Observation<'_> {
    pub(super) fn code(&self) -> Option<i64> {
        let of_metadata = self.metadata.0.as_ref().and_then(|metadata| metadata.exit_code.0);
        self.exit_code.0.or(of_metadata)
    }

    /// Records the working directory.
    pub(super) fn note_folder(&self, feed: &mut Feed<'_>) {
        if let Some(metadata) = &self.metadata.0 {
            note_folder(&metadata.working_dir, feed);
        }
    }
}

fn note_folder(folder: &Text<'_>, feed: &mut Feed<'_>) {
    if feed.head.cwd.is_none() {
        feed.head.cwd = folder.line(400);
    }
}

/// Value of a state update: `stats`, or the whole state including `stats`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct State {
    usage_to_metrics: Totals,
    stats: Object<Stats>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Stats {
    usage_to_metrics: Totals,
}

impl State {
    /// Records the running totals, replacing earlier ones.
    pub(super) fn note(self, feed: &mut Feed<'_>) {
        self.usage_to_metrics.note(feed);
        if let Some(stats) = self.stats.0 {
            stats.usage_to_metrics.note(feed);
        }
    }
}

/// Records data from `base_state.json` that the events lack.
pub(super) fn note_base_state(state: &Loose, feed: &mut Feed<'_>) {
    feed.head.model(&state.text("/agent/llm/model"));
    note_folder(&state.text("/workspace/working_dir"), feed);
    state.part::<Totals>("/stats/usage_to_metrics").note(feed);
}

/// Token totals, summed over uses (the agent, the condenser, …).
#[derive(Default)]
struct Totals {
    usage: Usage,
    models: Vec<String>,
}

impl Totals {
    fn note(self, feed: &mut Feed<'_>) {
        if self.usage != Usage::default() {
            feed.head.usage = Some(self.usage);
        }
        self.models.iter().for_each(|model| feed.head.model(model));
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Metrics<'a> {
    model_name: Text<'a>,
    accumulated_token_usage: Object<Counts>,
}

deserialize_any_json!(Totals);

impl<'de> AnyJson<'de> for Totals {
    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        const MAX_MODELS: usize = 32;
        while let Some((_, Object(metrics))) =
            map.next_entry::<IgnoredAny, Object<Metrics<'de>>>()?
        {
            let Some(metrics) = metrics else { continue };
            let tokens = metrics.accumulated_token_usage.0;
            let Some(usage) = tokens.as_ref().and_then(Counts::usage) else { continue };
            self.usage += usage;
            if self.models.len() < MAX_MODELS {
                self.models.push(metrics.model_name.as_str().to_owned());
            }
        }
        Ok(())
    }
}
