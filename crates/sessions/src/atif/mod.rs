//! Reads the Agent Trajectory Interchange Format (Harbor RFC 0001), versions 1.0 to 1.8.
//!
//! A call and its result are in the same step. The format has no error flag, so failures are
//! detected from the result (`failure`), unless the writer added `is_error`. Trajectories of
//! subagents in the file become separate sessions, with the outer one as parent.

mod write;

pub use write::to_atif;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{IgnoredAny, IntoDeserializer as _, MapAccess, SeqAccess};

use crate::content::MessageContent;
use crate::event::{
    Event, EventOrigin, EventRole, SessionHead, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use crate::feed::SessionFeed;
use crate::format::FormatEntry;
use crate::source::{DocumentReader, DocumentSeed, SessionSource, each_record};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonText, JsonValue, LenientFlag, LenientInt, LenientList, LenientObject};
use crate::{SessionReadError, failure};

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
                    // The order of keys is not fixed: the first id counts until the right one
                    // comes.
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
        // Last: our own writer states the outcome exactly, where an error flag cannot tell a
        // refusal from an unknown outcome.
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
    // Nothing to pair.
    if calls.is_empty() || results.iter().all(|result| !result.call_id.is_empty()) {
        return results;
    }
    let open: Vec<_> = calls.iter().filter(|call| is_open(call, &results)).collect();
    let mut open = open.into_iter().map(|call| call.id.clone().into_owned());
    // Results without an id are in the order of the calls.
    for result in results.iter_mut().filter(|result| result.call_id.is_empty()) {
        result.call_id = open.next().unwrap_or_default();
    }
    // Without a result, these calls would be reported as pending.
    results.extend(open.map(|call_id| ToolResult { call_id, ..ToolResult::default() }));
    results
}

#[cfg(test)]
mod tests {
    use crate::test_support::survives_damage;
    use crate::{
        EventOrigin, EventRole, ReadSummary, Session, SessionCollector, SessionFormat,
        SessionSource, TokenCounts, ToolOutcome, read,
    };

    /// 1 system, 1 human, 4 agent steps of which one is copied context and one asked no model.
    /// 4 calls: one ok by its JSON, one failed by its text, one failed by the flag, one of two that
    /// share a result.
    const FIXTURE: &str = r#"{
  "schema_version": "ATIF-v1.7", "session_id": "s-1", "trajectory_id": "t-1",
  "agent": {"name": "terminus-2", "version": "2.0.1", "model_name": "m-1",
            "tool_definitions": [{"type": "function"}]},
  "steps": [
    {"step_id": 1, "source": "system", "message": "rules", "timestamp": "2026-05-01T10:00:00Z"},
    {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "mend it"}]},
    {"step_id": 3, "source": "agent", "message": "old", "is_copied_context": true,
     "metrics": {"prompt_tokens": 9000, "completion_tokens": 900}},
    {"step_id": 4, "source": "agent", "message": "looking", "reasoning_content": "hm",
     "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}],
     "observation": {"results": [{"content": "{\"exit_code\": 0, \"output\": \"a\"}"}]},
     "metrics": {"prompt_tokens": 1000, "completion_tokens": 50, "cached_tokens": 400}},
    {"step_id": 5, "source": "agent", "message": "", "model_name": "m-2",
     "tool_calls": [
       {"tool_call_id": "c2", "function_name": "bash", "arguments": {}},
       {"tool_call_id": "c3", "function_name": "edit", "arguments": {}}],
     "observation": {"results": [
       {"source_call_id": "c3", "content": "fine", "is_error": true},
       {"source_call_id": "c2", "content": "Error: no such file"}]},
     "metrics": {"prompt_tokens": 1100, "completion_tokens": 60, "cached_tokens": 1000}},
    {"step_id": 6, "source": "agent", "message": "done", "llm_call_count": 0,
     "timestamp": "2026-05-01T10:05:00Z",
     "tool_calls": [{"tool_call_id": "c4", "function_name": "finish", "arguments": {}}]}
  ],
  "final_metrics": {"total_prompt_tokens": 2100, "total_completion_tokens": 110,
                    "total_cached_tokens": 1400},
  "subagent_trajectories": [
    {"schema_version": "ATIF-v1.7", "session_id": "s-1", "trajectory_id": "t-2",
     "agent": {"name": "summariser", "version": "1"},
     "steps": [{"step_id": 1, "source": "user", "message": "summarise"},
               {"step_id": 2, "source": "agent", "message": "short"}]}]
}"#;

    fn sessions(json: &str) -> (Vec<Session>, ReadSummary) {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("run.json", json), &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::Atif);
        (collector.into_sessions(), reading)
    }

    #[test]
    fn a_whole_trajectory() {
        let (sessions, reading) = sessions(FIXTURE);
        assert_eq!(sessions.len(), 2);
        assert_eq!(reading.notes.dropped_records, 1);
        let head = &sessions[0].head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("s-1", "terminus-2"));
        assert_eq!(head.agent_version.as_deref(), Some("2.0.1"));
        assert_eq!(head.models, ["m-1", "m-2"]);
        assert_eq!(head.start.unwrap().to_string(), "2026-05-01T10:00:00Z");
        assert_eq!(head.end.unwrap().to_string(), "2026-05-01T10:05:00Z");
        assert_eq!(head.usage, Some(TokenCounts { input: 700, output: 110, cached: 1400 }));

        let events = &sessions[0].events;
        let of = |role: EventRole| events.iter().filter(|event| event.role == role).count();
        // The last tool event is the call without a result.
        assert_eq!(
            (
                of(EventRole::System),
                of(EventRole::User),
                of(EventRole::Assistant),
                of(EventRole::Tool)
            ),
            (1, 1, 3, 3)
        );
        let asked =
            events.iter().filter(|event| event.role == EventRole::Assistant && !event.continues);
        assert_eq!(asked.count(), 2);
        assert_eq!(events.iter().map(|event| event.calls.len()).sum::<usize>(), 4);
        let mut usage = TokenCounts::default();
        events.iter().filter_map(|event| event.usage).for_each(|one| usage += one);
        assert_eq!(usage, TokenCounts { input: 700, output: 110, cached: 1400 });
        let outcomes: Vec<_> = events
            .iter()
            .flat_map(|event| &event.results)
            .map(|result| (result.call_id.as_str(), result.tool.as_str(), result.outcome))
            .collect();
        assert_eq!(
            outcomes,
            [
                ("c1", "bash", ToolOutcome::Ok),
                ("c3", "edit", ToolOutcome::Failed),
                ("c2", "bash", ToolOutcome::Failed),
                ("c4", "finish", ToolOutcome::Pending),
            ]
        );
    }

    #[test]
    fn a_subagent_is_a_session_of_its_own() {
        let (sessions, _) = sessions(FIXTURE);
        let head = &sessions[1].head;
        assert_eq!((head.id.as_str(), head.parent.as_deref()), ("t-2", Some("s-1")));
        assert_eq!(head.agent, "summariser");
        assert_eq!(sessions[1].events.len(), 2);
        assert!(sessions[1].events.iter().all(|event| event.origin == EventOrigin::Subagent));
    }

    #[test]
    fn results_without_an_id_belong_to_the_calls_of_their_step() {
        let step = |calls: &str, results: &str| {
            let json = format!(
                r#"{{"schema_version":"ATIF-v1.0","session_id":"s","agent":{{"name":"a"}},"steps":[
            {{"source":"agent","message":"x","tool_calls":[{calls}],
              "observation":{{"results":[{results}]}}}}]}}"#
            );
            let (sessions, _) = sessions(&json);
            let events = &sessions[0].events;
            let results = events.iter().flat_map(|event| &event.results);
            results
                .map(|result| (result.call_id.as_str().to_owned(), result.outcome))
                .collect::<Vec<_>>()
        };
        let two =
            r#"{"tool_call_id":"a","function_name":"f"},{"tool_call_id":"b","function_name":"f"}"#;
        let both = [("a".to_owned(), ToolOutcome::Failed), ("b".to_owned(), ToolOutcome::Unknown)];
        assert_eq!(step(two, r#"{"content":"Error: x"}"#), both);
        assert_eq!(step(two, r#"{"content":"Error: x"},{"content":"y"}"#), both);
        assert_eq!(
            step(two, r#"{"source_call_id":"b","content":"y"},{"content":"Error: x"}"#),
            [both[1].clone(), both[0].clone()]
        );
        assert_eq!(step("", r#"{"content":"$ ls"}"#), [(String::new(), ToolOutcome::Unknown)]);
        let code = r#"{"content":"x","extra":{"exit_code":2}}"#;
        assert_eq!(step("", code), [(String::new(), ToolOutcome::Failed)]);
    }

    #[test]
    fn keys_in_any_order_and_a_torn_file() {
        let json = r#"{"schema_version":"ATIF-v1.8","subagent_trajectories":[{"trajectory_id":"in",
        "steps":[{"source":"agent","message":"x"}]}],"steps":[{"source":"user","message":"go"}],
        "session_id":"out","agent":{"name":"a"}}"#;
        let (found, _) = sessions(json);
        assert_eq!(found[0].head.id, "in");
        assert_eq!((found[1].head.id.as_str(), found[1].head.agent.as_str()), ("out", "a"));
        let (found, reading) = sessions(&FIXTURE[..FIXTURE.find("\"step_id\": 5").unwrap()]);
        assert_eq!(found[0].events.len(), 4);
        assert!(reading.notes.torn.is_some());
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::Atif, FIXTURE.as_bytes());
    }

    /// Counts and texts that must be the same once a session was written and read again.
    type Counts = (
        usize,
        usize,
        Vec<(EventRole, EventOrigin, String)>,
        Vec<(String, ToolOutcome)>,
        TokenCounts,
    );

    fn counts(session: &Session) -> Counts {
        let events = || session.events.iter();
        let calls = events().map(|event| event.calls.len()).sum();
        let answers =
            events().filter(|event| event.role == EventRole::Assistant && !event.continues);
        let mut said: Vec<_> = events()
            .filter(|event| !event.text.is_empty())
            .map(|event| (event.role, event.origin, event.text.as_str().to_owned()))
            .collect();
        said.retain(|(role, ..)| *role != EventRole::Tool);
        let results = events().flat_map(|event| &event.results);
        let mut results: Vec<_> =
            results.map(|result| (result.tool.as_str().to_owned(), result.outcome)).collect();
        results.sort_by_key(|(tool, outcome)| (tool.clone(), format!("{outcome:?}")));
        let mut usage = TokenCounts::default();
        events().filter_map(|event| event.usage).for_each(|own| usage += own);
        (calls, answers.count(), said, results, usage)
    }

    fn again(session: &Session) -> Session {
        let json = crate::to_atif(session).to_string();
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("again.json", json), &mut collector).unwrap();
        assert_eq!((reading.format, reading.sessions), (SessionFormat::Atif, 1));
        collector.into_sessions().remove(0)
    }

    #[test]
    fn a_session_that_is_written_is_read_back_the_same() {
        let claude = r#"{"type":"user","sessionId":"s","cwd":"/w","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"go"}}
{"type":"assistant","sessionId":"s","timestamp":"2026-01-01T00:00:01Z","message":{"id":"m1","model":"m-1","role":"assistant","usage":{"input_tokens":7,"output_tokens":3},"content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}},{"type":"tool_use","id":"c2","name":"Read","input":{}},{"type":"tool_use","id":"c3","name":"Edit","input":{}}]}}
{"type":"user","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"gone","is_error":true},{"type":"tool_result","tool_use_id":"c1","content":"a.rs"}]}}
{"type":"user","sessionId":"s","message":{"role":"user","content":"[Request interrupted by user]"}}
"#;
        for text in [FIXTURE, claude] {
            let mut collector = SessionCollector::default();
            read(&SessionSource::bytes("one.json", text), &mut collector).unwrap();
            for session in collector.into_sessions() {
                let back = again(&session);
                assert_eq!(counts(&back), counts(&session));
                let head = |session: &Session| {
                    let head = &session.head;
                    (head.id.clone(), head.agent.clone(), head.models.clone(), head.cwd.clone())
                };
                assert_eq!(head(&back), head(&session));
                assert_eq!(back.head.usage, session.head.usage);
            }
        }
    }

    /// Any session that a reader can hand on.
    fn any_session() -> impl proptest::strategy::Strategy<Value = Session> {
        use crate::{Event, EventMark, Text, ToolCall, ToolResult};
        use proptest::prelude::*;

        let role =
            prop::sample::select(vec![EventRole::User, EventRole::System, EventRole::Assistant]);
        let origin = prop::sample::select(vec![
            EventOrigin::Human,
            EventOrigin::Agent,
            EventOrigin::Harness,
        ]);
        let outcome = prop::sample::select(vec![
            ToolOutcome::Ok,
            ToolOutcome::Failed,
            ToolOutcome::Rejected,
            ToolOutcome::Unknown,
        ]);
        let mark = prop::option::of(Just(EventMark::Interrupted));
        let words = prop::sample::select(vec!["", "a", "Error: <b>\u{1b}[31m", "{\"x\":1}"]);
        let said =
            (role, origin, words, mark, prop::collection::vec((any::<bool>(), outcome), 0..3));
        prop::collection::vec(said, 1..12).prop_map(|all| {
            let mut events: Vec<Event<'static>> = Vec::new();
            for (role, origin, words, mark, tools) in all {
                let tools = if role == EventRole::Assistant { tools } else { Vec::new() };
                let id = |at: usize| Text::from(format!("c{at}-{}", events.len()));
                let calls = tools.iter().enumerate().map(|(at, _)| ToolCall {
                    id: id(at),
                    name: "tool".into(),
                    arguments: words.into(),
                });
                let results = tools.iter().enumerate().filter(|(_, (is_given, _))| *is_given);
                let results: Vec<_> = results
                    .map(|(at, (_, outcome))| ToolResult {
                        call_id: id(at),
                        tool: "tool".into(),
                        text: words.into(),
                        outcome: *outcome,
                        ..ToolResult::default()
                    })
                    .collect();
                let calls = calls.collect();
                events.push(Event {
                    role,
                    origin,
                    text: words.into(),
                    mark,
                    calls,
                    ..Event::default()
                });
                events.push(Event {
                    role: EventRole::Tool,
                    origin: EventOrigin::Agent,
                    results,
                    ..Event::default()
                });
            }
            events.push(Event { role: EventRole::User, text: "end".into(), ..Event::default() });
            let head = crate::SessionHead {
                id: "s".to_owned(),
                agent: "a".to_owned(),
                ..Default::default()
            };
            Session { head, events, left_out: 0 }
        })
    }

    proptest::proptest! {
        #[test]
        fn any_session_is_read_back_with_the_same_counts(session in any_session()) {
            let (calls, answers, said, mut results, usage) = counts(&again(&session));
            results.retain(|(_, outcome)| *outcome != ToolOutcome::Pending);
            proptest::prop_assert_eq!((calls, answers, said, results, usage), counts(&session));
        }
    }
}
