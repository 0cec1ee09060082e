//! Reads chat messages: a bare list, a wrapper with `messages`, `history`, `traj` or
//! `conversations` (`ShareGPT`), a list of such wrappers (tau-bench: one per run), or JSON lines of
//! any of them. The same reader serves programs that store messages in the format of a model API:
//! Cline, Roo and Kilo, Amp, the Vercel AI SDK. Message content is parsed by `blocks`.
//!
//! Without an error flag, tool failures are detected from the text (`failure`).
//!
//! The verdict of a benchmark's verifier, the `reward` of tau-bench or the `scores` of Inspect,
//! becomes the last event of its session. A number other than 0 or 1 is shown but decides nothing.

pub(crate) mod formats;
mod message;

use std::borrow::Cow;
use std::collections::BTreeMap;

use selftest_text::one_line;
use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor as _};
use serde_json::Value;

use crate::SessionReadError;
use crate::blocks::ContentBlocks;
use crate::content::MessageContent;
use crate::event::{Event, EventMark, EventOrigin, EventRole};
use crate::feed::{ReadNotes, SessionFeed};
use crate::repaired::{may_need_repair, repair};
use crate::source::{DocumentReader, DocumentSeed, SessionSource};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{AnyJson, JsonValue, LenientObject, deserialize_any_json};
use message::{ChatMessage, ChatTokens, MessagePosition};

/// Agent name for Inspect samples.
pub(super) const INSPECT: &str = "inspect";

/// Agent name for requests and responses of the Responses API.
pub(super) const RESPONSES: &str = "responses";

/// Reads the chat messages of this agent; `chat` stands for any agent.
pub(super) fn read(
    agent: &'static str,
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    if is_lines(source)? {
        read_lines(agent, source, feed)
    } else {
        source.read_document(&mut ChatDocument::new(agent), feed)
    }
}

/// Returns true if the first line is a complete JSON value, or no JSON at all, such as a warning
/// printed before, and another line follows.
pub(super) fn is_lines(source: &SessionSource) -> Result<bool, SessionReadError> {
    let (mut lines, mut notes) = (source.lines()?, ReadNotes::default());
    let Some(first) = lines.next(&mut notes)? else { return Ok(false) };
    let bytes = first.bytes.trim_ascii();
    if !matches!(bytes.first(), Some(b'{' | b'[')) {
        return Ok(lines.next(&mut notes)?.is_some());
    }
    // A cheap check before parsing a line that may be huge.
    let may_be_whole = matches!((bytes.first(), bytes.last()), (Some(b'{'), Some(b'}')))
        || matches!((bytes.first(), bytes.last()), (Some(b'['), Some(b']')));
    let mut scratch = String::new();
    let is_whole = may_be_whole
        && first.parse::<IgnoredAny>(&mut scratch, &mut ReadNotes::default()).is_some();
    // A single line may just as well be one compact document.
    Ok(is_whole && lines.next(&mut notes)?.is_some())
}

fn read_lines(
    agent: &'static str,
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    let read = |text: &str, feed: &mut SessionFeed<'_>| {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let document = &mut ChatDocument::new(agent);
        DocumentSeed { document, feed }.deserialize(&mut deserializer)?;
        deserializer.end()
    };
    let mut lines = source.lines()?;
    while let Some(line) = lines.next(&mut feed.notes)? {
        // Repair before parsing: events from the start of a line could not be taken back.
        let repaired = may_need_repair(line.bytes).then(|| repair(line.bytes)).flatten();
        let text = repaired.as_deref().or_else(|| simdutf8::basic::from_utf8(line.bytes).ok());
        match text.map(|text| read(text, feed)) {
            Some(Ok(())) => feed.notes.repaired_records += u64::from(repaired.is_some()),
            _ => line.note_skipped(&mut feed.notes),
        }
    }
    Ok(())
}

/// Reads one message or one wrapper of messages into the current session.
pub(super) fn read_message(
    agent: &str,
    json: &str,
    feed: &mut SessionFeed<'_>,
) -> serde_json::Result<()> {
    let place = MessagePosition::Anywhere;
    let created = Moment::default();
    let document = &mut ChatDocument { place, agent, has_items: false, created };
    let mut deserializer = serde_json::Deserializer::from_str(json);
    DocumentSeed { document, feed }.deserialize(&mut deserializer)
}

/// Reads a document that is part of a source.
pub(super) fn read_embedded(
    agent: &'static str,
    json: &str,
    feed: &mut SessionFeed<'_>,
) -> serde_json::Result<()> {
    let document = &mut ChatDocument::new(agent);
    DocumentSeed { document, feed }.deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// A message inside a record, or its text.
#[derive(Default)]
struct InnerMessage<'a> {
    role: Text<'a>,
    content: ContentBlocks<'a>,
    model: Text<'a>,
    usage: LenientObject<ChatTokens<'a>>,
}

deserialize_any_json!(InnerMessage<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for InnerMessage<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.content.say(Text::new(text));
    }

    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "role" => self.role = map.next_value()?,
                "content" => self.content = map.next_value()?,
                "model" => self.model = map.next_value()?,
                "usage" => self.usage = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Returns true if an id is just a number within its file.
fn is_row_number(id: &str) -> bool {
    id.len() < 10 && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// A list of messages, an object around one, a list of such objects, or one message.
struct ChatDocument<'n> {
    place: MessagePosition,
    agent: &'n str,
    /// Set if the document may be a request or response of the Responses API, with lists of items
    /// in `input` and `output`.
    has_items: bool,
    /// When an Inspect log was begun; its samples state no time.
    created: Moment,
}

impl<'n> ChatDocument<'n> {
    fn new(agent: &'n str) -> Self {
        let place = MessagePosition::Anywhere;
        Self { place, agent, has_items: agent == RESPONSES, created: Moment::default() }
    }

    fn nested(&self, place: MessagePosition) -> Self {
        Self { place, agent: self.agent, has_items: false, created: self.created }
    }
}

impl DocumentReader for ChatDocument<'_> {
    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut element = Self { ..*self };
        while list.next_element_seed(DocumentSeed { document: &mut element, feed })?.is_some() {
            element.place = element.place.next();
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut message = ChatMessage::default();
        let (mut is_wrapper, mut id, mut task, mut trial) = (false, None, None, None);
        let (mut reward, mut scores) = (Value::Null, LenientObject::default());
        let (mut system, mut updated, mut cwd) = (Text::default(), Moment::default(), None);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "messages" | "traj" | "history" | "conversations" | "chat_messages" => {
                    // Messages before the wrapper belong to a session of their own.
                    // Once per wrapper: one that has two of these lists is still a single session.
                    if !is_wrapper && !feed.is_empty() {
                        feed.end_session();
                    }
                    is_wrapper = true;
                    if !system.is_empty() {
                        feed.send_text(
                            EventRole::System,
                            EventOrigin::Harness,
                            std::mem::take(&mut system),
                            None,
                        );
                    }
                    let document = &mut self.nested(MessagePosition::of_list(&key));
                    map.next_value_seed(DocumentSeed { document, feed })?;
                }
                "input" | "output" if self.has_items => {
                    is_wrapper = true;
                    if !system.is_empty() {
                        feed.send_text(
                            EventRole::System,
                            EventOrigin::Harness,
                            std::mem::take(&mut system),
                            None,
                        );
                    }
                    let document = &mut self.nested(MessagePosition::Anywhere);
                    map.next_value_seed(DocumentSeed { document, feed })?;
                }
                "eval" if self.agent == INSPECT => {
                    self.created = map.next_value::<JsonValue>()?.part("/created");
                }
                // Inspect logs: each sample is a wrapper of its own.
                "samples" => {
                    let document = &mut self.nested(MessagePosition::Anywhere);
                    map.next_value_seed(DocumentSeed { document, feed })?;
                    return IgnoredAny.visit_map(map).map(drop);
                }
                // Cursor's agent and Factory wrap each message.
                "message" => {
                    let inner = map.next_value::<InnerMessage<'de>>()?;
                    // The outer fields may have set them already.
                    if !inner.role.is_empty() {
                        message.role = inner.role;
                    }
                    if !inner.model.is_empty() {
                        message.model = inner.model;
                    }
                    message.content.append(inner.content);
                    message.usage = LenientObject(message.usage.0.take().or(inner.usage.0));
                }
                "cwd" => cwd = map.next_value::<Text<'de>>()?.line(400),
                "id" | "session_id" | "question_ID" | "sessionId" | "chatId" | "uuid" => {
                    let given = map.next_value::<Text<'de>>()?;
                    // Depending on the object, the id belongs to a message or to the session.
                    message.item.id = given.clone();
                    id = Some(given);
                }
                "task_id" => task = Some(map.next_value::<Text<'de>>()?),
                "model_usage" if self.agent == INSPECT => {
                    let all = map.next_value::<LenientObject<BTreeMap<String, LenientObject<ChatTokens<'de>>>>>()?;
                    for (model, LenientObject(tokens)) in all.0.into_iter().flatten() {
                        feed.head.add_model(&model);
                        let own = tokens.as_ref().and_then(ChatTokens::usage).unwrap_or_default();
                        let mut total = feed.head.usage.unwrap_or_default();
                        total += own;
                        feed.head.usage = Some(total);
                    }
                }
                "reward" => reward = map.next_value::<JsonValue>()?.part(""),
                "scores" if self.agent == INSPECT => scores = map.next_value()?,
                // tau-bench, and Inspect logs.
                "trial" | "epoch" => trial = Some(map.next_value::<Text<'de>>()?),
                "model" => message.model = map.next_value()?,
                // The first name is that of older versions of Cline.
                "modelInfo" => {
                    let about = map.next_value::<JsonValue>()?;
                    message.model = about.text("/id");
                    message.model.add(about.text("/modelId"));
                }
                "role" | "from" | "sender" => message.role = map.next_value()?,
                "content" | "value" => message.content = map.next_value()?,
                "parts" => message.parts = map.next_value()?,
                "toolInvocations" => message.tool_invocations = map.next_value()?,
                "reasoning" | "reasoning_content" => {
                    message.think(map.next_value::<MessageContent<'de>>()?.0);
                }
                "tool_calls" => message.tool_calls = map.next_value()?,
                "function_call" => message.function_call = map.next_value()?,
                "usage" | "metrics" => message.usage = map.next_value()?,
                "timestamp" | "created_at" | "createdAt" | "created" | "ts" | "startTime" => {
                    message.time = map.next_value()?;
                }
                "updated_at" | "updatedAt" => updated = map.next_value()?,
                "_metadata" => {
                    let Moment(stated) = map.next_value::<JsonValue>()?.part("/timestamp");
                    message.time = Moment(message.time.0.or(stated));
                }
                // Amp: `{"sentAt": …}` of a message.
                "meta" => {
                    let Moment(sent) = map.next_value::<JsonValue>()?.part("/sentAt");
                    message.time = Moment(message.time.0.or(sent));
                }
                // Amp: the initial working directory of the thread.
                "env" => {
                    let tree = map.next_value::<JsonValue>()?.text("/initial/trees/0/uri");
                    let tree = tree.line(400);
                    cwd = tree.map(|uri| uri.strip_prefix("file://").unwrap_or(&uri).to_owned());
                }
                // From a request to Anthropic's API.
                "system" | "instructions" => system = map.next_value::<MessageContent<'de>>()?.0,
                key => message.item.field(key, &mut map)?,
            }
        }
        if !is_wrapper && message.item.kind.as_str() == "session_start" {
            // First line of a Factory session.
            feed.head.id = id.unwrap_or_default().as_str().to_owned();
            feed.head.cwd = cwd;
            return Ok(());
        }
        if !is_wrapper {
            message.send(feed, self.place, self.agent);
            return Ok(());
        }
        feed.head.add_model(&message.model);
        feed.record_time(message.time);
        feed.record_time(updated);
        feed.record_time(self.created);
        feed.head.cwd = feed.head.cwd.take().or(cwd);
        if self.agent == INSPECT {
            // The id is the number or name of the instance, which all of its runs share.
            task = id.take().or(task);
        }
        let stem = feed.naming.stem();
        let name = match (&id, task, trial) {
            (Some(id), _, _) if is_row_number(id) => format!("{stem}#{id}"),
            (None, Some(task), Some(trial)) => format!("{stem}#{task}.{trial}"),
            (None, Some(task), None) => format!("{stem}#{task}"),
            (Some(_), _, _) | (None, None, _) => stem.to_owned(),
        };
        feed.naming.set_name(&name);
        // A row number is not unique across files.
        feed.head.id = id.filter(|id| !is_row_number(id)).unwrap_or_default().as_str().to_owned();
        send_reward(&reward, feed);
        send_scores(scores, feed);
        feed.end_session();
        Ok(())
    }
}

/// Maximum number of scorers kept per sample.
const MAX_SCORERS: usize = 16;

/// A score of Inspect. Its explanation may contain the answer and is dropped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InspectScore {
    value: Value,
}

/// Sends the reward of a run: 1 for success, 0 for failure. The meaning of other numbers depends on
/// the benchmark.
fn send_reward(reward: &Value, feed: &mut SessionFeed<'_>) {
    if reward.is_number() || reward.is_boolean() {
        send_verdict(format!("reward: {reward}"), parse_verdict(reward), feed);
    }
}

/// Sends the scores of a sample. Of several scorers, only *correct* and *incorrect* decide, because
/// a number may be a count and *true* may be a refusal, and only if all of them grade or the scorer
/// is known to compare answers.
fn send_scores(
    scores: LenientObject<BTreeMap<String, LenientObject<InspectScore>>>,
    feed: &mut SessionFeed<'_>,
) {
    // Inspect's CORRECT and INCORRECT.
    let graded = |value: &Value| match value.as_str() {
        Some("C") => Some(true),
        Some("I") => Some(false),
        _ => None,
    };
    let scores = scores.0.unwrap_or_default();
    let scores: Vec<_> = scores
        .into_iter()
        .take(MAX_SCORERS)
        .map(|(scorer, LenientObject(score))| (scorer, score.unwrap_or_default().value))
        .collect();
    let is_only = scores.len() == 1;
    // Of several scorers, one may measure anything, such as a length, or whether the agent did
    // what it should not do.
    let all_grade = scores.iter().all(|(_, value)| graded(value).is_some());
    for (scorer, value) in scores {
        let passed = match graded(&value) {
            Some(passed) if all_grade || compares_answers(&scorer) => Some(passed),
            None if is_only => parse_verdict(&value),
            _ => None,
        };
        let said = match &value {
            Value::String(word) => word.clone(),
            other => other.to_string(),
        };
        send_verdict(format!("{}: {}", one_line(&scorer, 80), one_line(&said, 80)), passed, feed);
    }
}

/// Returns true for a scorer of Inspect's own, which compares the answer with the expected one. The
/// second one of a name ends in a digit.
fn compares_answers(scorer: &str) -> bool {
    let name = scorer.trim_end_matches(|c: char| c.is_ascii_digit());
    ["match", "includes", "pattern", "answer", "choice", "exact", "math"].contains(&name)
        || name.starts_with("model_graded_")
}

fn parse_verdict(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(passed) => Some(*passed),
        Value::Number(number) => match number.as_f64() {
            Some(1.0) => Some(true),
            Some(0.0) => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn send_verdict(text: String, passed: Option<bool>, feed: &mut SessionFeed<'_>) {
    // A session that consists only of a verdict is useless.
    if feed.is_empty() {
        return;
    }
    let mark = passed
        .map(|passed| if passed { EventMark::VerifierPassed } else { EventMark::VerifierFailed });
    let (role, origin) = (EventRole::System, EventOrigin::Harness);
    feed.send(Event { role, origin, text: text.into(), mark, ..Event::default() });
}

#[cfg(test)]
mod tests {
    use crate::test_support::{only_session, survives_damage};
    use crate::{
        EventMark, EventOrigin, EventRole, Session, SessionCollector, SessionFormat, SessionSource,
        ToolOutcome, read,
    };

    fn sessions(json: &str) -> Vec<Session> {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("runs.json", json), &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::Chat);
        collector.into_sessions()
    }

    #[test]
    fn a_list_of_runs_is_a_list_of_sessions() {
        let run = |task: u32| {
            format!(
                r#"{{"task_id":{task},"reward":1.0,"trial":0,"traj":[
            {{"role":"system","content":"rules"}},
            {{"role":"user","content":"hello"}},
            {{"role":"assistant","content":null,"tool_calls":[
              {{"id":"c1","type":"function","function":{{"name":"find","arguments":"{{\"a\": 1}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c1","name":"find","content":"Error: user not found"}},
            {{"role":"assistant","content":"sorry"}}]}}"#
            )
        };
        let found = sessions(&format!("[{},{}]", run(4), run(5)));
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].head.id, "runs#5.0-b0e0a05c");
        assert_eq!(found[0].events.len(), 6);
        let verdict = &found[0].events[5];
        assert_eq!(
            (verdict.text.as_str(), verdict.mark),
            ("reward: 1.0", Some(EventMark::VerifierPassed))
        );
        assert_eq!(found[0].events[2].calls[0].arguments.as_str(), r#"{"a": 1}"#);
        assert_eq!(found[0].events[3].results[0].outcome, ToolOutcome::Failed);
    }

    /// Checks the text and the mark of the last event of a run with that field.
    #[track_caller]
    fn verdict(run: &str, said: &str, mark: Option<EventMark>) {
        let file = format!(r#"[{{"traj":[{{"role":"user","content":"go"}}],{run}}}]"#);
        let found = sessions(&file);
        let last = found[0].events.last().unwrap();
        assert_eq!((last.text.as_str(), last.mark), (said, mark), "{run}");
    }

    #[test]
    fn only_a_whole_reward_is_a_verdict() {
        verdict(r#""reward":1.0"#, "reward: 1.0", Some(EventMark::VerifierPassed));
        verdict(r#""reward":0"#, "reward: 0", Some(EventMark::VerifierFailed));
        verdict(r#""reward":false"#, "reward: false", Some(EventMark::VerifierFailed));
        verdict(r#""reward":0.4"#, "reward: 0.4", None);
        verdict(r#""reward":7"#, "reward: 7", None);
        for nothing in ["null", r#""good""#, "[1]", r#"{"value":1}"#] {
            verdict(&format!(r#""reward":{nothing}"#), "go", None);
        }
        // Before the messages, and of a run without any.
        let early = r#"[{"reward":1,"traj":[{"role":"user","content":"go"}]}]"#;
        assert_eq!(sessions(early)[0].events[1].mark, Some(EventMark::VerifierPassed));
        let without =
            r#"[{"reward":1,"traj":[]},{"reward":0,"traj":[{"role":"user","content":"go"}]}]"#;
        let found = sessions(without);
        assert_eq!((found.len(), found[0].events.len()), (1, 2));
    }

    #[test]
    fn damage_does_no_harm() {
        let fixture = r#"{"messages":[{"role":"user","content":"hello"},{"role":"assistant",
        "content":[{"type":"text","text":"hi"}],"tool_calls":[{"id":"c","function":
        {"name":"f","arguments":{}}}]},{"role":"tool","tool_call_id":"c","content":"{\"error\":1}"}]}"#;
        survives_damage(SessionFormat::Chat, fixture.as_bytes());
    }

    #[test]
    fn a_bare_list_and_a_torn_one() {
        let whole = r#"[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]"#;
        assert_eq!(sessions(whole)[0].events.len(), 2);
        let mut collector = SessionCollector::default();
        let torn = SessionSource::bytes("torn.json", &whole[..whole.len() - 10]);
        let reading = read(&torn, &mut collector).unwrap();
        assert!(reading.notes.torn.unwrap().contains("EOF"));
        assert_eq!(collector.into_sessions()[0].events.len(), 1);
    }

    fn roles(session: &Session) -> Vec<(EventRole, EventOrigin)> {
        session.events.iter().map(|event| (event.role, event.origin)).collect()
    }

    #[test]
    fn in_a_group_of_agents_only_the_first_message_is_the_humans() {
        let found = sessions(
            r#"{"question":"how many?","question_ID":"q-1","history":[
        {"content":"You are given a task.","role":"assistant","name":"Excel_Expert"},
        {"content":"There is no code to execute.","role":"user","name":"Computer_terminal"},
        {"content":"I count them.","role":"assistant","name":"Excel_Expert"},
        {"content":"exitcode: 1 (execution failed)\nCode output: x","role":"user","name":"Computer_terminal"},
        {"content":"exitcode: 0 (execution succeeded)\nCode output: 4","role":"user","name":"Computer_terminal"},
        {"content":"TERMINATE","role":"user","name":"Checker"}]}"#,
        );
        assert_eq!(found[0].head.id, "q-1");
        assert_eq!(
            roles(&found[0]),
            [
                (EventRole::User, EventOrigin::Human),
                (EventRole::User, EventOrigin::Harness),
                (EventRole::Assistant, EventOrigin::Agent),
                (EventRole::Tool, EventOrigin::Agent),
                (EventRole::Tool, EventOrigin::Agent),
                (EventRole::Assistant, EventOrigin::Agent),
            ]
        );
        let results: Vec<_> = found[0].events.iter().flat_map(|event| &event.results).collect();
        assert_eq!((results[0].outcome, results[0].exit_code), (ToolOutcome::Failed, Some(1)));
        assert_eq!((results[1].outcome, results[1].exit_code), (ToolOutcome::Ok, Some(0)));
        let named_by_role = r#"{"history":[{"role":"human","content":"go"},
        {"role":"Orchestrator (-> WebSurfer)","content":"look"}]}"#;
        let expected =
            [(EventRole::User, EventOrigin::Human), (EventRole::Assistant, EventOrigin::Agent)];
        assert_eq!(roles(&sessions(named_by_role)[0]), expected);
    }

    #[test]
    fn old_functions_other_roles_and_parts() {
        let found = sessions(
            r#"[{"role":"developer","content":"rules"},
        {"role":"user","name":"ada","content":[{"type":"text","text":"see"},
          {"type":"image_url","image_url":{"url":"data:image/png;base64,QUJDQUJD"}}]},
        {"role":"assistant","content":null,"function_call":{"name":"find","arguments":"{}"}},
        {"role":"function","name":"find","content":"Error: none"},
        {"role":"assistant","content":null,"refusal":"I will not.","reasoning":"no",
         "reasoning_content":"no","model":"m-1"},
        {"role":"cheerleader","content":"hurrah"}]"#,
        );
        let session = &found[0];
        assert_eq!(
            roles(session),
            [
                (EventRole::System, EventOrigin::Harness),
                (EventRole::User, EventOrigin::Human),
                (EventRole::Assistant, EventOrigin::Agent),
                (EventRole::Tool, EventOrigin::Agent),
                (EventRole::Assistant, EventOrigin::Agent),
            ]
        );
        assert_eq!(session.events[1].text.as_str(), "see\n[image image/png 21 B]");
        let result = &session.events[3].results[0];
        assert_eq!((result.tool.as_str(), result.outcome), ("find", ToolOutcome::Failed));
        assert_eq!(session.events[4].text.as_str(), "I will not.");
        assert_eq!(session.events[4].reasoning.as_str(), "no");
        assert_eq!(session.head.models, ["m-1"]);
    }

    /// An export of Codex as messages: each call is among the blocks and in the list.
    const CALLS_TWICE: &str = r#"{"messages":[
  {"role":"developer","content":[{"type":"text","text":"be good"}],"_metadata":{"timestamp":"2026-03-24T13:01:26Z"}},
  {"role":"user","content":[{"type":"text","text":"list"}],"_metadata":{"timestamp":"2026-03-24T13:01:27Z"}},
  {"role":"assistant","content":[{"type":"tool_call","tool_call_id":"c1","name":"shell_command","arguments":"{}"}],"tool_calls":[{"id":"c1","type":"function","function":{"name":"shell_command","arguments":"{}"}}],"_metadata":{"timestamp":"2026-03-24T13:01:28Z"}},
  {"role":"tool","tool_call_id":"c1","content":[{"type":"tool_output","text":"Exit code: 1\nWall time: 0.9 seconds\nOutput:\nno"}],"_metadata":{"timestamp":"2026-03-24T13:01:29Z"}}]}"#;

    #[test]
    fn a_call_in_two_places_is_one() {
        let session =
            only_session(SessionFormat::Chat, &SessionSource::bytes("s.json", CALLS_TWICE));
        assert_eq!(session.events.iter().map(|event| event.calls.len()).sum::<usize>(), 1);
        let result = &session.events[3].results[0];
        assert_eq!((result.outcome, result.exit_code), (ToolOutcome::Failed, Some(1)));
        assert!(session.head.unknown_blocks.is_empty());
        assert_eq!(session.head.start.unwrap().to_string(), "2026-03-24T13:01:26Z");
    }

    const SHARE_GPT: &str = r#"{"conversations":[{"from":"system","value":"<tools>[]</tools>"},{"from":"human","value":"list"},{"from":"gpt","value":"<think>\nhm\n</think>\nSure.\n<tool_call>\n{\"name\": \"terminal\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"memory\", \"arguments\": {}}\n</tool_call>"},{"from":"tool","value":"<tool_response>\n{\"tool_call_id\": \"c1\", \"name\": \"terminal\", \"content\": {\"exit_code\": 2, \"output\": \"\"}}\n</tool_response>\n<tool_response>\nplain\n</tool_response>"},{"from":"gpt","value":"<think>\n</think>\ndone"}],"timestamp":"2026-04-29T20:05:00.5","model":"m-1","completed":false}"#;

    #[test]
    fn trajectories_in_json_lines() {
        let found = sessions(&format!("{SHARE_GPT}\n{SHARE_GPT}\n"));
        assert_eq!(found.len(), 2);
        let session = &found[1];
        assert_eq!(session.head.models, ["m-1"]);
        assert_eq!(session.head.start.unwrap().to_string(), "2026-04-29T20:05:00.5Z");
        assert_eq!(
            roles(session),
            [
                (EventRole::System, EventOrigin::Harness),
                (EventRole::User, EventOrigin::Human),
                (EventRole::Assistant, EventOrigin::Agent),
                (EventRole::Tool, EventOrigin::Agent),
                (EventRole::Assistant, EventOrigin::Agent),
            ]
        );
        let answer = &session.events[2];
        assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), ("Sure.", "hm"));
        assert_eq!(answer.calls.len(), 2);
        assert_eq!(answer.calls[0].arguments.as_str(), r#"{"command": "ls"}"#);
        let results = &session.events[3].results;
        assert_eq!(
            (results[0].tool.as_str(), results[0].outcome),
            ("terminal", ToolOutcome::Failed)
        );
        assert_eq!((results[1].text.as_str(), results[1].outcome), ("plain", ToolOutcome::Unknown));
        assert_eq!(session.events[4].text.as_str(), "done");
        assert_eq!(sessions(SHARE_GPT).len(), 1);
    }

    #[test]
    fn json_lines_of_messages_are_one_session() {
        let lines = "{\"role\":\"user\",\"content\":\"a\"}\nbroken\n\
                     {\"role\":\"assistant\",\"content\":\"b \\ud83d\"}\n{\"role\":\"us";
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("runs.jsonl", lines), &mut collector).unwrap();
        assert_eq!((reading.sessions, reading.notes.bad_records), (1, 1));
        assert_eq!(reading.notes.repaired_records, 1);
        assert_eq!(reading.notes.torn.as_deref(), Some("line 4"));
        assert_eq!(collector.into_sessions()[0].events.len(), 2);
    }

    #[test]
    fn a_repaired_wrapper_in_a_line_counts_once() {
        let line = |text: &str| {
            format!(
                r#"{{"id":"x","messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":"{text}"}}]}}"#
            )
        };
        let found = sessions(&format!("{}\n{}\n", line("b"), line(r"\ud83d")));
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].events.len(), 2);
    }

    #[test]
    fn damaged_lines_do_no_harm() {
        survives_damage(SessionFormat::Chat, format!("{SHARE_GPT}\n{SHARE_GPT}\n").as_bytes());
    }

    /// A chat of two messages.
    fn short(question: &str) -> String {
        format!(
            r#"{{"messages":[{{"role":"user","content":"{question}"}},{{"role":"assistant","content":"yes"}}]}}"#
        )
    }

    fn questions(source: &SessionSource) -> (Vec<String>, crate::ReadNotes) {
        let mut collector = SessionCollector::default();
        let reading = read(source, &mut collector).unwrap();
        let sessions = collector.into_sessions();
        assert_eq!(reading.sessions, sessions.len() as u64);
        assert!(sessions.iter().all(|session| session.events.len() == 2));
        (
            sessions.iter().map(|session| session.events[0].text.as_str().to_owned()).collect(),
            reading.notes,
        )
    }

    /// Half a character, a broken byte and a raw control character lose nothing.
    const BROKEN: [(&[u8], &str); 3] =
        [(br"\ud83d", "\u{fffd}"), (b"\xff", "\u{fffd}"), (b"\0", " ")];

    #[test]
    fn what_is_broken_in_one_session_loses_no_other_and_hands_on_none_twice() {
        for (broken, read) in BROKEN {
            for (begin, between, end) in [("[", ",", "]"), ("", "\n", ""), ("[", ",", "]\n[]\n")] {
                let runs: Vec<_> = ["a", "b", "c@", "d", "e@"].map(short).into();
                let text = format!("{begin}{}{end}", runs.join(between));
                let bytes = text.split('@').map(str::as_bytes).collect::<Vec<_>>().join(broken);
                let (found, notes) = questions(&SessionSource::bytes("runs.json", bytes));
                let expected = ["a", "b", "c@", "d", "e@"].map(|text| text.replace('@', read));
                assert_eq!(found, expected, "{text}");
                assert!(notes.repaired_records > 0, "{notes:?}");
                assert_eq!((notes.bad_records, notes.torn), (0, None));
            }
        }
    }

    #[test]
    fn a_document_too_large_for_memory_is_repaired_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.json");
        let padding = format!(r#"{{"padding":"{}"}}"#, "x".repeat(33 * 1024 * 1024));
        let runs = [short("a"), short(r"b\udc00"), padding, short("c@"), short("d")];
        let text = format!("\u{feff}[{}]", runs.join(","));
        let bytes = text.split('@').map(str::as_bytes).collect::<Vec<_>>().join(&b"\xff"[..]);
        std::fs::write(&path, bytes).unwrap();
        let (found, notes) = questions(&SessionSource::file(path));
        assert_eq!(found, ["a", "b\u{fffd}", "c\u{fffd}", "d"]);
        assert_eq!((notes.repaired_records, notes.torn), (1, None));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_document() {
        for text in
            [short("a"), format!("[{}]", short("a")), format!("{}\n{}", short("a"), short("b"))]
        {
            let (found, notes) =
                questions(&SessionSource::bytes("marked.json", format!("\u{feff}{text}")));
            assert_eq!((found[0].as_str(), notes), ("a", crate::ReadNotes::default()), "{text}");
        }
    }
}
