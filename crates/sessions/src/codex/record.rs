//! Defines the records of a rollout. All payloads share one struct, because their fields do not
//! clash and each line is then parsed only once.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::content::MessageContent;
use crate::event::TokenCounts;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonText, LenientFlag, LenientInt, LenientObject};

/// One line.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct RolloutRecord<'a> {
    pub(super) timestamp: Moment,
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    // Boxed, because it has the fields of all payload types.
    pub(super) payload: LenientObject<Box<RolloutPayload<'a>>>,
}

/// Any payload.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct RolloutPayload<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    // session_meta
    pub(super) id: Text<'a>,
    pub(super) timestamp: Moment,
    pub(super) cwd: Text<'a>,
    pub(super) originator: Text<'a>,
    pub(super) cli_version: Text<'a>,
    pub(super) source: JsonText,
    pub(super) thread_source: Text<'a>,
    pub(super) forked_from_id: Text<'a>,
    pub(super) parent_thread_id: Text<'a>,
    pub(super) history_base: LenientObject<HistoryBase<'a>>,
    // turn_context, task_started
    pub(super) model: Text<'a>,
    pub(super) turn_id: Text<'a>,
    // response_item
    pub(super) role: Text<'a>,
    pub(super) content: MessageContent<'a>,
    pub(super) summary: Text<'a>,
    pub(super) name: Text<'a>,
    pub(super) arguments: JsonText,
    pub(super) input: Text<'a>,
    pub(super) action: JsonText,
    pub(super) call_id: Text<'a>,
    /// See [`super::output::Output`]; unparsed, because most outputs are never used.
    pub(super) output: Option<&'a RawValue>,
    // event_msg
    pub(super) message: MessageContent<'a>,
    pub(super) error: JsonText,
    pub(super) info: LenientObject<TokenTotals>,
    pub(super) exit_code: LenientInt,
    pub(super) success: LenientFlag,
    pub(super) status: Text<'a>,
    pub(super) result: LenientObject<McpResult<'a>>,
    pub(super) reason: Text<'a>,
    pub(super) num_turns: LenientInt,
}

impl RolloutPayload<'_> {
    /// Returns the running total of tokens. The input includes cached tokens, the output includes
    /// reasoning.
    pub(super) fn total_tokens(&self) -> Option<TokenCounts> {
        let tokens = self.info.0.as_ref()?.total_token_usage.0.as_ref()?;
        let cached = tokens.cached.count();
        Some(TokenCounts {
            input: tokens.input.count().saturating_sub(cached),
            output: tokens.output.count(),
            cached,
        })
    }

    /// For a meta record: returns true if another agent started this session.
    pub(super) fn is_subagent(&self) -> bool {
        self.thread_source.as_str() == "subagent" || self.source.0.contains("\"subagent\"")
    }
}

/// Rollout that holds the records before those of this one, in paginated histories.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct HistoryBase<'a> {
    pub(super) thread_id: Text<'a>,
    pub(super) end_ordinal_exclusive: LenientInt,
}

/// Result of an MCP call; exactly one of the fields is present.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct McpResult<'a> {
    #[serde(rename = "Ok")]
    pub(super) ok: LenientObject<McpOk>,
    #[serde(rename = "Err")]
    pub(super) err: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct McpOk {
    #[serde(alias = "is_error", rename = "isError")]
    pub(super) is_error: LenientFlag,
}

/// `info` of a `token_count`; null while the counts are unknown.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct TokenTotals {
    total_token_usage: LenientObject<CodexTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CodexTokens {
    #[serde(rename = "input_tokens")]
    input: LenientInt,
    #[serde(rename = "cached_input_tokens")]
    cached: LenientInt,
    #[serde(rename = "output_tokens")]
    output: LenientInt,
}
