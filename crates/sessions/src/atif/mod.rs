//! Reads the Agent Trajectory Interchange Format (Harbor RFC 0001), versions 1.0 to 1.8.
//!
//! A call and its result are in the same step. The format has no error flag, so failures are
//! detected from the result (`failure`), unless the writer added `is_error`. Trajectories of
//! subagents in the file become separate sessions, with the outer one as parent.

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{IgnoredAny, IntoDeserializer as _, MapAccess, SeqAccess};

use super::ReadError;
use super::content::Content;
use super::event::{Event, Head, Origin, Outcome, Role, ToolCall, ToolResult, Usage};
use super::failure;
use super::feed::Feed;
use super::source::{Document, Part, Source, records};
use super::text::Text;
use super::time::Moment;
use super::wire::{Flag, Int, Json, List, Loose, Object};

/// Reads a trajectory.
pub(super) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    source.document(&mut Trajectory::default(), feed)
}

/// A trajectory, with the id of its parent trajectory.
#[derive(Default)]
struct Trajectory {
    parent: Option<String>,
}

impl Document for Trajectory {
    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut Feed<'_>,
    ) -> Result<(), A::Error> {
        let parent = self.parent.clone();
        let is_subagent = parent.is_some();
        feed.head = Head { agent: "atif".to_owned(), parent, ..Head::default() };
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
                    let agent = map.next_value::<Object<Agent<'de>>>()?.0.unwrap_or_default();
                    agent.note(&mut feed.head);
                }
                "steps" => map.next_value_seed(records(feed, |step: Step<'de>, feed| {
                    step.send(feed, is_subagent);
                }))?,
                "final_metrics" => {
                    let totals = map.next_value::<Object<Totals>>()?.0.unwrap_or_default();
                    feed.head.usage = totals.usage();
                }
                "subagent_trajectories" => {
                    // The session's final name depends on its steps, which are still to come.
                    let is_unnamed = id.is_empty() && feed.is_empty();
                    let parent =
                        if is_unnamed { feed.naming.stem().to_owned() } else { feed.id_so_far() };
                    // If the steps come later in the file, the session is not finished yet.
                    let head = feed.is_empty().then(|| std::mem::take(&mut feed.head));
                    feed.end();
                    map.next_value_seed(Part { document: &mut Subagents { parent }, feed })?;
                    feed.head = head.unwrap_or_default();
                }
                // Written by our own writer.
                "extra" => {
                    let extra = map.next_value::<Loose>()?;
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
struct Subagents {
    parent: String,
}

impl Document for Subagents {
    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut Feed<'_>,
    ) -> Result<(), A::Error> {
        loop {
            let document = &mut Trajectory { parent: Some(self.parent.clone()) };
            let next = list.next_element_seed(Part { document, feed })?;
            feed.end();
            if next.is_none() {
                return Ok(());
            }
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Agent<'a> {
    name: Text<'a>,
    version: Text<'a>,
    model_name: Text<'a>,
    extra: Loose,
}

impl Agent<'_> {
    fn note(&self, head: &mut Head) {
        if let Some(name) = self.name.line(80) {
            head.agent = name;
        }
        head.agent_version = self.version.line(80).or(head.agent_version.take());
        head.model(&self.model_name);
        for model in self.extra.part::<Vec<String>>("/models") {
            head.model(&model);
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct Totals {
    total_prompt_tokens: Int,
    total_completion_tokens: Int,
    total_cached_tokens: Int,
}

impl Totals {
    fn usage(&self) -> Option<Usage> {
        usage(self.total_prompt_tokens, self.total_completion_tokens, self.total_cached_tokens)
    }
}

/// Converts token counts. The prompt's include cached tokens.
fn usage(prompt: Int, completion: Int, cached: Int) -> Option<Usage> {
    if prompt.0.is_none() && completion.0.is_none() {
        return None;
    }
    let cached = cached.count();
    let input = prompt.count().saturating_sub(cached);
    Some(Usage { input, output: completion.count(), cached })
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Step<'a> {
    source: Text<'a>,
    message: Content<'a>,
    reasoning_content: Text<'a>,
    model_name: Text<'a>,
    timestamp: Moment,
    tool_calls: List<Call<'a>>,
    observation: Object<Observation<'a>>,
    metrics: Object<Metrics>,
    extra: Object<StepExtra>,
    /// 0 for a step without a model call.
    llm_call_count: Int,
    is_copied_context: Flag,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct Metrics {
    prompt_tokens: Int,
    completion_tokens: Int,
    cached_tokens: Int,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Call<'a> {
    tool_call_id: Text<'a>,
    function_name: Text<'a>,
    arguments: Json,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Observation<'a> {
    results: List<Given<'a>>,
}

/// Fields that our own writer adds to a step.
#[derive(Deserialize, Default)]
#[serde(default)]
struct StepExtra {
    role: Json,
    origin: Json,
    mark: Json,
}

/// Parses a variant name, if it is known.
fn named<'de, T: Deserialize<'de>>(Json(name): &'de Json) -> Option<T> {
    let name: StrDeserializer<'de, serde::de::value::Error> = name.as_str().into_deserializer();
    T::deserialize(name).ok()
}

/// Result of a tool call, or of the environment if the step has no call.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Given<'a> {
    source_call_id: Text<'a>,
    content: Content<'a>,
    is_error: Flag,
    extra: Object<Extra>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Extra {
    is_error: Flag,
    exit_code: Int,
    /// From our own writer, like the two below.
    outcome: Json,
    error: Json,
    tool: Json,
}

impl<'a> Given<'a> {
    fn into_result(self) -> ToolResult<'a> {
        let extra = self.extra.0.unwrap_or_default();
        let mut result =
            ToolResult { call_id: self.source_call_id, ..failure::result_of(self.content.0) };
        result.exit_code = result.exit_code.or(extra.exit_code.0);
        match self.is_error.0.or(extra.is_error.0) {
            Some(true) => result.outcome = Outcome::Failed,
            Some(false) => result.outcome = Outcome::Ok,
            None if result.outcome == Outcome::Unknown => {
                result.outcome = match result.exit_code {
                    Some(0) => Outcome::Ok,
                    Some(_) => Outcome::Failed,
                    None => Outcome::Unknown,
                }
            }
            None => {}
        }
        if let Some(outcome) = named(&extra.outcome) {
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
        result
    }
}

impl Step<'_> {
    fn send(self, feed: &mut Feed<'_>, is_subagent: bool) {
        // Context copied from an earlier trajectory, which has these steps itself.
        if self.is_copied_context.is_set() {
            feed.notes.dropped_records += 1;
            return;
        }
        let (role, origin) = match self.source.as_str() {
            "agent" => (Role::Assistant, Origin::Agent),
            "user" => (Role::User, Origin::Human),
            "system" => (Role::System, Origin::Harness),
            _ => {
                feed.notes.ignored_records += 1;
                return;
            }
        };
        let extra = self.extra.0.unwrap_or_default();
        let role = named(&extra.role).unwrap_or(role);
        let origin = named(&extra.origin).unwrap_or(origin);
        let origin = if is_subagent { Origin::Subagent } else { origin };
        let time = self.timestamp.0;
        if role == Role::Assistant {
            feed.head.model(&self.model_name);
        }
        let calls: Vec<_> = self.tool_calls.0.into_iter().map(Call::into_call).collect();
        let given = self.observation.0.unwrap_or_default().results.0;
        let results = paired(&calls, given.into_iter().map(Given::into_result).collect());
        let metrics = self.metrics.0.unwrap_or_default();
        feed.event(Event {
            role,
            origin,
            text: self.message.0,
            reasoning: self.reasoning_content,
            calls,
            usage: usage(metrics.prompt_tokens, metrics.completion_tokens, metrics.cached_tokens),
            time,
            continues: role == Role::Assistant && self.llm_call_count.0 == Some(0),
            mark: named(&extra.mark),
            ..Event::default()
        });
        let origin = if is_subagent { Origin::Subagent } else { Origin::Agent };
        feed.results(origin, results, time);
    }
}

impl<'a> Call<'a> {
    fn into_call(self) -> ToolCall<'a> {
        ToolCall { id: self.tool_call_id, name: self.function_name, arguments: self.arguments.0 }
    }
}

/// Assigns results without a call id to the calls of their step, in order. If there are fewer
/// results than calls, they belong to all calls together, and the remaining calls get a result with
/// unknown outcome.
fn paired<'a>(calls: &[ToolCall<'_>], mut results: Vec<ToolResult<'a>>) -> Vec<ToolResult<'a>> {
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

pub use write::atif;
