//! Defines the records of a rollout. All payloads share one struct, because their fields do not
//! clash and each line is then parsed only once.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::content::Content;
use crate::event::Usage;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{Flag, Int, Json, Object};

/// One line.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Record<'a> {
    pub(super) timestamp: Moment,
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    // Boxed, because it has the fields of all payload types.
    pub(super) payload: Object<Box<Payload<'a>>>,
}

/// Any payload.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Payload<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    // session_meta
    pub(super) id: Text<'a>,
    pub(super) timestamp: Moment,
    pub(super) cwd: Text<'a>,
    pub(super) originator: Text<'a>,
    pub(super) cli_version: Text<'a>,
    pub(super) source: Json,
    pub(super) thread_source: Text<'a>,
    pub(super) forked_from_id: Text<'a>,
    pub(super) parent_thread_id: Text<'a>,
    // turn_context, task_started
    pub(super) model: Text<'a>,
    pub(super) turn_id: Text<'a>,
    // response_item
    pub(super) role: Text<'a>,
    pub(super) content: Content<'a>,
    pub(super) summary: Text<'a>,
    pub(super) name: Text<'a>,
    pub(super) arguments: Json,
    pub(super) input: Text<'a>,
    pub(super) action: Json,
    pub(super) call_id: Text<'a>,
    /// See [`super::output::Output`]; unparsed, because most outputs are never used.
    pub(super) output: Option<&'a RawValue>,
    // event_msg
    pub(super) message: Content<'a>,
    pub(super) error: Json,
    pub(super) info: Object<Totals>,
    pub(super) exit_code: Int,
    pub(super) success: Flag,
    pub(super) status: Text<'a>,
    pub(super) result: Object<McpResult<'a>>,
    pub(super) reason: Text<'a>,
    pub(super) num_turns: Int,
}

impl Payload<'_> {
    /// Returns the running total of tokens. The input includes cached tokens, the output includes
    /// reasoning.
    pub(super) fn total_tokens(&self) -> Option<Usage> {
        let tokens = self.info.0.as_ref()?.total_token_usage.0.as_ref()?;
        let cached = tokens.cached.count();
        Some(Usage {
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

/// Result of an MCP call; exactly one of the fields is present.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct McpResult<'a> {
    #[serde(rename = "Ok")]
    pub(super) ok: Object<McpOk>,
    #[serde(rename = "Err")]
    pub(super) err: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct McpOk {
    #[serde(alias = "is_error", rename = "isError")]
    pub(super) is_error: Flag,
}

/// `info` of a `token_count`; null while the counts are unknown.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Totals {
    total_token_usage: Object<Tokens>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    #[serde(rename = "input_tokens")]
    input: Int,
    #[serde(rename = "cached_input_tokens")]
    cached: Int,
    #[serde(rename = "output_tokens")]
    output: Int,
}
