//! Reads the Agent Trajectory Interchange Format (Harbor RFC 0001), versions 1.0 to 1.8.
//!
//! A call and its result are in the same step. The format has no error flag, so failures are
//! detected from the result (`failure`), unless the writer added `is_error`. Trajectories of
//! subagents in the file become separate sessions, with the outer one as parent.

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{IgnoredAny, IntoDeserializer as _, MapAccess, SeqAccess};

use super::SessionReadError;
use super::content::MessageContent;
use super::event::{
    Event, EventOrigin, EventRole, SessionHead, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use super::failure;
use super::feed::SessionFeed;
use super::source::{DocumentReader, DocumentSeed, SessionSource, each_record};
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonText, JsonValue, LenientFlag, LenientInt, LenientList, LenientObject};
use crate::entry::FormatEntry;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.mark("schema_version").starts_with("ATIF"),
    ..FormatEntry::new(read)
};

/// Reads a trajectory.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    source.read_document(&mut AtifTrajectory::default(), feed)
}

/// A trajectory, with the id of its parent trajectory.
#[derive(Default)]
struct AtifTrajectory {
    parent: Option<String>,
}

impl DocumentReader for AtifTrajectory {
    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let parent = self.parent.clone();
        let is_subagent = parent.is_some();
        feed.head = SessionHead { agent: "atif".to_owned(), parent, ..SessionHead::default() };
        let mut id = String::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                // Subagents share the session id; their own id is the trajectory's.
                "session_id" | "trajectory_id" => {
                    let text = map.next_value::<Text<'de>>()?;
                    if id.is_empty() || is_subagent == (key.as_str() == "trajectory_id") {
                        text.as_str().clone_into(&mut id);
                        // Set at once, because subagents later in the file refer to it.
                        feed.head.id.clone_from(&id);
                    }
                }
                "agent" => {
                    let agent =
                        map.next_value::<LenientObject<AtifAgent<'de>>>()?.0.unwrap_or_default();
                    agent.note(&mut feed.head);
                }
                "steps" => {
                    map.next_value_seed(each_record(feed, |step: AtifStep<'de>, feed| {
                        step.send(feed, is_subagent);
                    }))?;
                }
                "final_metrics" => {
                    let totals =
                        map.next_value::<LenientObject<AtifTotals>>()?.0.unwrap_or_default();
                    feed.head.usage = totals.usage();
                }
                "subagent_trajectories" => {
                    // The session's final name depends on its steps, which are still to come.
                    let is_unnamed = id.is_empty() && feed.is_empty();
                    let parent =
                        if is_unnamed { feed.naming.stem().to_owned() } else { feed.current_id() };
                    // If the steps come later in the file, the session is not finished yet.
                    let head = feed.is_empty().then(|| std::mem::take(&mut feed.head));
                    feed.end_session();
                    map.next_value_seed(DocumentSeed {
                        document: &mut SubagentTrajectories { parent },
                        feed,
                    })?;
                    feed.head = head.unwrap_or_default();
                }
                // Written by our own writer.
                "extra" => {
                    let extra = map.next_value::<JsonValue>()?;
                    let head = &mut feed.head;
                    head.cwd = head.cwd.take().or(extra.text("/cwd").line(400));
                    head.platform = head.platform.take().or(extra.text("/platform").line(400));
                    head.parent = head.parent.take().or(extra.text("/parent").line(400));
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The trajectories of subagents inside a trajectory.
struct SubagentTrajectories {
    parent: String,
}

impl DocumentReader for SubagentTrajectories {
    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        loop {
            let document = &mut AtifTrajectory { parent: Some(self.parent.clone()) };
            let next = list.next_element_seed(DocumentSeed { document, feed })?;
            feed.end_session();
            if next.is_none() {
                return Ok(());
            }
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AtifAgent<'a> {
    name: Text<'a>,
    version: Text<'a>,
    model_name: Text<'a>,
    extra: JsonValue,
}

impl AtifAgent<'_> {
    fn note(&self, head: &mut SessionHead) {
        if let Some(name) = self.name.line(80) {
            head.agent = name;
        }
        head.agent_version = self.version.line(80).or(head.agent_version.take());
        head.add_model(&self.model_name);
        for model in self.extra.part::<Vec<String>>("/models") {
            head.add_model(&model);
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct AtifTotals {
    total_prompt_tokens: LenientInt,
    total_completion_tokens: LenientInt,
    total_cached_tokens: LenientInt,
}

impl AtifTotals {
    fn usage(&self) -> Option<TokenCounts> {
        usage(self.total_prompt_tokens, self.total_completion_tokens, self.total_cached_tokens)
    }
}

/// Converts token counts. The prompt's include cached tokens.
fn usage(prompt: LenientInt, completion: LenientInt, cached: LenientInt) -> Option<TokenCounts> {
    if prompt.0.is_none() && completion.0.is_none() {
        return None;
    }
    let cached = cached.count();
    let input = prompt.count().saturating_sub(cached);
    Some(TokenCounts { input, output: completion.count(), cached })
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AtifStep<'a> {
    source: Text<'a>,
    message: MessageContent<'a>,
    reasoning_content: Text<'a>,
    model_name: Text<'a>,
    timestamp: Moment,
    tool_calls: LenientList<AtifCall<'a>>,
    observation: LenientObject<AtifObservation<'a>>,
    metrics: LenientObject<StepMetrics>,
    extra: LenientObject<StepExtra>,
    /// 0 for a step without a model call.
    llm_call_count: LenientInt,
    is_copied_context: LenientFlag,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct StepMetrics {
    prompt_tokens: LenientInt,
    completion_tokens: LenientInt,
    cached_tokens: LenientInt,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AtifCall<'a> {
    tool_call_id: Text<'a>,
    function_name: Text<'a>,
    arguments: JsonText,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AtifObservation<'a> {
    results: LenientList<AtifResult<'a>>,
}

/// Fields that our own writer adds to a step.
#[derive(Deserialize, Default)]
#[serde(default)]
struct StepExtra {
    role: JsonText,
    origin: JsonText,
    mark: JsonText,
    continues: LenientFlag,
}

/// Parses a variant name, if it is known.
fn parse_variant<'de, T: Deserialize<'de>>(JsonText(name): &'de JsonText) -> Option<T> {
    let name: StrDeserializer<'de, serde::de::value::Error> = name.as_str().into_deserializer();
    T::deserialize(name).ok()
}

/// Result of a tool call, or of the environment if the step has no call.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AtifResult<'a> {
    source_call_id: Text<'a>,
    content: MessageContent<'a>,
    is_error: LenientFlag,
    extra: LenientObject<ResultExtra>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResultExtra {
    is_error: LenientFlag,
    exit_code: LenientInt,
    /// From our own writer, like those below.
    outcome: JsonText,
    call_id: JsonText,
    error: JsonText,
    tool: JsonText,
}

impl<'a> AtifResult<'a> {
    fn into_result(self) -> ToolResult<'a> {
        let extra = self.extra.0.unwrap_or_default();
        let mut result =
            ToolResult { call_id: self.source_call_id, ..failure::result_of(self.content.0) };
        result.exit_code = result.exit_code.or(extra.exit_code.0);
        match self.is_error.0.or(extra.is_error.0) {
            Some(true) => result.outcome = ToolOutcome::Failed,
            Some(false) => result.outcome = ToolOutcome::Ok,
            None if result.outcome == ToolOutcome::Unknown => {
                result.outcome = match result.exit_code {
                    Some(0) => ToolOutcome::Ok,
                    Some(_) => ToolOutcome::Failed,
                    None => ToolOutcome::Unknown,
                }
            }
            None => {}
        }
        if let Some(outcome) = parse_variant(&extra.outcome) {
            result.outcome = outcome;
        }
        if !extra.error.0.is_empty() {
            // Our writer puts the error into `content` if the result has no text.
            if extra.error.0 == result.text {
                result.text = Text::default();
            }
            result.error = extra.error.0;
        }
        if !extra.tool.0.is_empty() {
            result.tool = extra.tool.0;
        }
        if result.call_id.is_empty() {
            result.call_id = extra.call_id.0;
        }
        result
    }
}

impl AtifStep<'_> {
    fn send(self, feed: &mut SessionFeed<'_>, is_subagent: bool) {
        // Context copied from an earlier trajectory, which has these steps itself.
        if self.is_copied_context.is_set() {
            feed.notes.dropped_records += 1;
            return;
        }
        let (role, origin) = match self.source.as_str() {
            "agent" => (EventRole::Assistant, EventOrigin::Agent),
            "user" => (EventRole::User, EventOrigin::Human),
            "system" => (EventRole::System, EventOrigin::Harness),
            _ => {
                feed.notes.ignored_records += 1;
                return;
            }
        };
        let extra = self.extra.0.unwrap_or_default();
        let role = parse_variant(&extra.role).unwrap_or(role);
        let origin = parse_variant(&extra.origin).unwrap_or(origin);
        let origin = if is_subagent { EventOrigin::Subagent } else { origin };
        let time = self.timestamp.0;
        if role == EventRole::Assistant {
            feed.head.add_model(&self.model_name);
        }
        let calls: Vec<_> = self.tool_calls.0.into_iter().map(AtifCall::into_call).collect();
        let given = self.observation.0.unwrap_or_default().results.0;
        let results =
            pair_results(&calls, given.into_iter().map(AtifResult::into_result).collect());
        let metrics = self.metrics.0.unwrap_or_default();
        feed.send(Event {
            role,
            origin,
            text: self.message.0,
            reasoning: self.reasoning_content,
            calls,
            usage: usage(metrics.prompt_tokens, metrics.completion_tokens, metrics.cached_tokens),
            time,
            continues: role == EventRole::Assistant
                && (self.llm_call_count.0 == Some(0) || extra.continues.is_set()),
            mark: parse_variant(&extra.mark),
            ..Event::default()
        });
        let origin = if is_subagent { EventOrigin::Subagent } else { EventOrigin::Agent };
        feed.send_results(origin, results, time);
    }
}

impl<'a> AtifCall<'a> {
    fn into_call(self) -> ToolCall<'a> {
        ToolCall { id: self.tool_call_id, name: self.function_name, arguments: self.arguments.0 }
    }
}

/// Assigns results without a call id to the calls of their step, in order. If there are fewer
/// results than calls, they belong to all calls together, and the remaining calls get a result with
/// unknown outcome.
fn pair_results<'a>(
    calls: &[ToolCall<'_>],
    mut results: Vec<ToolResult<'a>>,
) -> Vec<ToolResult<'a>> {
    let is_open = |call: &&ToolCall<'_>, results: &[ToolResult<'_>]| {
        !call.id.is_empty() && !results.iter().any(|result| result.call_id == call.id)
    };
    if calls.is_empty() || results.iter().all(|result| !result.call_id.is_empty()) {
        return results;
    }
    let open: Vec<_> = calls.iter().filter(|call| is_open(call, &results)).collect();
    let mut open = open.into_iter().map(|call| call.id.clone().into_owned());
    for result in results.iter_mut().filter(|result| result.call_id.is_empty()) {
        result.call_id = open.next().unwrap_or_default();
    }
    // Without a result, these calls would be reported as pending.
    results.extend(open.map(|call_id| ToolResult { call_id, ..ToolResult::default() }));
    results
}

#[cfg(test)]
mod tests;
mod write;

pub use write::to_atif;
