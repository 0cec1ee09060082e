//! Reads mini-swe-agent trajectories: a bare list of messages (old), or
//! `{info, messages, trajectory_format}`.
//!
//! The only tool is a shell. Its command is in a code fence of the answer, in `tool_calls` or in
//! `extra.actions`; its result is the next message that is not the model's. Except for
//! interruptions, no message is typed by a person: the first one is a template around the task.

use std::collections::VecDeque;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use crate::chat::formats::{has_role, is_chat};
use crate::content::{ApiCall, ApiFunction, ApiUsage, MessageContent};
use crate::event::{Event, EventMark, EventOrigin, EventRole, ToolCall, ToolOutcome, ToolResult};
use crate::feed::SessionFeed;
use crate::format::{AgentFolders, FormatEntry, HomeRoot, VerificationBasis, VerifiedVersion};
use crate::outline::JsonOutline;
use crate::source::{DocumentReader, SessionSource};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonText, JsonValue, LenientInt, LenientList, LenientObject, each};
use crate::{SessionReadError, failure};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.mark("trajectory_format").starts_with("mini-swe-agent"),
    // The trajectory format is the last key, out of reach in a large file.
    weak_json: |value| {
        let messages = value.list("messages");
        is_protocol(messages) || (value.has("info") && messages.iter().any(has_role))
    },
    json_list: is_protocol,
    folders: &[AgentFolders {
        agent: "mini-swe-agent",
        variable: Some("MSWEA_GLOBAL_CONFIG_DIR"),
        roots: &[HomeRoot::Config("mini-swe-agent"), HomeRoot::Support("mini-swe-agent")],
        parts: &[""],
    }],
    verified: Some(VerifiedVersion {
        agent: "mini-swe-agent",
        version: "2.1.0",
        basis: VerificationBasis::OwnFixture,
    }),
    ..FormatEntry::new(read)
};

/// Returns true if these are messages in mini-swe-agent's protocol, which other agents use too.
fn is_protocol(messages: &[JsonOutline]) -> bool {
    // A shell fence alone may occur in any chat.
    let holds = |mark| messages.iter().any(|message| message.has(mark));
    is_chat(messages) && holds("is:bash fence") && holds("is:shell protocol")
}

/// Reads a trajectory.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    source.read_document(&mut MiniTrajectory, feed)
}

struct MiniTrajectory;

impl DocumentReader for MiniTrajectory {
    fn begin(&mut self, feed: &mut SessionFeed<'_>) {
        "mini-swe-agent".clone_into(&mut feed.head.agent);
        feed.naming.name_run_by_stem();
    }

    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut run = MiniRun::default();
        while let Some(message) = list.next_element::<LenientObject<MiniMessage<'de>>>()? {
            run.send(message, feed);
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let (mut run, mut info) = (MiniRun::default(), MiniInfo::default());
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "info" => {
                    info = map.next_value::<LenientObject<MiniInfo<'de>>>()?.0.unwrap_or_default();
                }
                "messages" => map.next_value_seed(each(|message| run.send(message, feed)))?,
                "instance_id" => {
                    feed.naming.name_run_of(&map.next_value::<Text<'de>>()?);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        run.note(&info, feed);
        Ok(())
    }
}

/// State of a run.
#[derive(Default)]
struct MiniRun {
    calls: u64,
    /// Calls without a result, oldest first.
    open: VecDeque<String>,
    has_ended: bool,
}

impl MiniRun {
    fn send(&mut self, message: LenientObject<MiniMessage<'_>>, feed: &mut SessionFeed<'_>) {
        let Some(message) = message.0 else {
            feed.notes.bad_records += 1;
            return;
        };
        match message.role.as_str() {
            "assistant" => self.answer(message, feed),
            // Answers of the Responses API have no role.
            "" if message.object.as_str() == "response" => self.answer(message, feed),
            "" if message.kind.as_str() == "function_call_output" => self.result(message, feed),
            "tool" => self.result(message, feed),
            "user" => self.user(message, feed),
            "exit" => self.exit(message, feed),
            _ => {
                let time = message.extra.0.unwrap_or_default().timestamp.0;
                feed.send(Event { text: message.content.0, time, ..Event::default() });
            }
        }
    }

    fn answer(&mut self, message: MiniMessage<'_>, feed: &mut SessionFeed<'_>) {
        let extra = message.extra.0.unwrap_or_default();
        let response = extra.response.0.unwrap_or_default();
        for model in [&message.model, &response.model] {
            feed.head.add_model(model);
        }
        let tokens = message.usage.0.or(response.usage.0);
        let content = if message.content.0.is_empty() { message.output } else { message.content.0 };
        let (mut text, fenced) = split_fence(&content);
        let mut calls: Vec<ToolCall<'_>> = Vec::new();
        // What was really run, as the program parsed it from the answer.
        for action in extra.actions.0 {
            let (id, arguments) = (action.tool_call_id, action.command);
            calls.push(ToolCall { id, name: "bash".into(), arguments });
        }
        if calls.is_empty() {
            for call in message.tool_calls.0 {
                let ApiFunction { name, arguments } = call.function.0.unwrap_or_default();
                calls.push(ToolCall { id: call.id, name, arguments: command_of(arguments) });
            }
        }
        if calls.is_empty() {
            calls.extend(fenced.map(|command| ToolCall {
                name: "bash".into(),
                arguments: command.into(),
                ..ToolCall::default()
            }));
        }
        if calls.is_empty() {
            // Without a call, a fence is part of the answer.
            text = content.as_str();
        }
        for call in &mut calls {
            self.calls += 1;
            if call.id.is_empty() {
                // Fenced commands have no id, but calls and results are paired by id.
                call.id = format!("call {}", self.calls).into();
            }
        }
        self.open = calls.iter().map(|call| call.id.as_str().to_owned()).collect();
        feed.send(Event {
            role: EventRole::Assistant,
            origin: EventOrigin::Agent,
            text: text.into(),
            reasoning: message.reasoning_content,
            calls,
            usage: tokens.and_then(|tokens| tokens.usage()),
            time: extra.timestamp.0,
            ..Event::default()
        });
    }

    /// Handles a message to the model: the task, a result, or a comment of the user or harness on
    /// the last answer.
    fn user(&mut self, message: MiniMessage<'_>, feed: &mut SessionFeed<'_>) {
        let kind = message.extra.0.as_ref().map_or("", |extra| extra.interrupt_type.as_str());
        let text = message.content.0.as_str();
        let is_rejection =
            kind == "UserRejection" || text.starts_with("Command not executed. The user");
        let is_interruption = kind == "UserInterruption" || text.starts_with("Interrupted by user");
        let is_human = is_rejection || is_interruption || kind.starts_with("User");
        let is_notice = is_human || !kind.is_empty();
        // In the old format, a command's output is a plain user message.
        if !is_notice && !self.open.is_empty() {
            self.result(message, feed);
            return;
        }
        let time = message.extra.0.as_ref().and_then(|extra| extra.timestamp.0);
        if is_rejection {
            // The rejected command never ran and gets no other result.
            self.close(ToolOutcome::Rejected, time, feed);
        }
        feed.send(Event {
            role: EventRole::User,
            origin: if is_human { EventOrigin::Human } else { EventOrigin::Harness },
            text: message.content.0,
            time,
            mark: is_interruption.then_some(EventMark::Interrupted),
            ..Event::default()
        });
    }

    fn result(&mut self, message: MiniMessage<'_>, feed: &mut SessionFeed<'_>) {
        let extra = message.extra.0.unwrap_or_default();
        let content = if message.content.0.is_empty() { message.output } else { message.content.0 };
        let given = [message.tool_call_id, message.call_id];
        let call_id = match given.into_iter().find(|id| !id.is_empty()) {
            Some(id) => {
                self.open.retain(|open| *open != id.as_str());
                id
            }
            None => self.open.pop_front().map(Text::from).unwrap_or_default(),
        };
        let (stated, text) = split_returncode(&content);
        let code = extra.returncode.0.or(stated);
        let mut result = match code {
            Some(code) => ToolResult {
                text: text.into(),
                outcome: if code == 0 { ToolOutcome::Ok } else { ToolOutcome::Failed },
                exit_code: Some(code),
                ..ToolResult::default()
            },
            None => failure::result_of(text.into()),
        };
        let timed_out =
            text.starts_with("The last command <command>") && text.contains("timed out");
        if timed_out || !extra.exception_info.is_empty() {
            result.outcome = ToolOutcome::Failed;
        }
        result.error = extra.exception_info;
        let results = vec![ToolResult { call_id, ..result }];
        feed.send_results(EventOrigin::Agent, results, extra.timestamp.0);
    }

    /// Handles the end of a run. The command that submits has no result, because the run ends with
    /// it.
    fn exit(&mut self, message: MiniMessage<'_>, feed: &mut SessionFeed<'_>) {
        let extra = message.extra.0.unwrap_or_default();
        // The last command submits the work and ends the run, so that it gets no output.
        if extra.exit_status.as_str() == "Submitted" {
            self.close(ToolOutcome::Ok, extra.timestamp.0, feed);
        }
        self.end(&extra.exit_status, extra.timestamp.0, feed);
    }

    /// Sends a result for each open call.
    fn close(
        &mut self,
        outcome: ToolOutcome,
        time: Option<jiff::Timestamp>,
        feed: &mut SessionFeed<'_>,
    ) {
        let result =
            |id: String| ToolResult { call_id: id.into(), outcome, ..ToolResult::default() };
        let results = self.open.drain(..).map(result).collect();
        feed.send_results(EventOrigin::Agent, results, time);
    }

    fn end(&mut self, status: &str, time: Option<jiff::Timestamp>, feed: &mut SessionFeed<'_>) {
        // The status may be in the exit message and in `info`.
        if !status.is_empty() && !self.has_ended {
            self.has_ended = true;
            let text = format!("exit status: {}", selftest_text::one_line(status, 200)).into();
            feed.send(Event { text, time, ..Event::default() });
        }
    }

    fn note(&mut self, info: &MiniInfo<'_>, feed: &mut SessionFeed<'_>) {
        feed.head.agent_version = info.mini_version.line(60).or(feed.head.agent_version.take());
        // The configuration may spell the model differently, which would count as another model.
        if feed.head.models.is_empty() {
            feed.head.add_model(&info.config.text("/model/model_name"));
        }
        feed.head.add_stated_cost(info.model_stats.part("/instance_cost"));
        self.end(&info.exit_status, None, feed);
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MiniInfo<'a> {
    exit_status: Text<'a>,
    mini_version: Text<'a>,
    config: JsonValue,
    model_stats: JsonValue,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MiniMessage<'a> {
    role: Text<'a>,
    content: MessageContent<'a>,
    reasoning_content: Text<'a>,
    tool_calls: LenientList<ApiCall<'a>>,
    tool_call_id: Text<'a>,
    /// In the Responses API: `message` or `function_call_output`.
    #[serde(rename = "type")]
    kind: Text<'a>,
    call_id: Text<'a>,
    /// In the Responses API: the items of an answer, or the result of a call.
    output: Text<'a>,
    object: Text<'a>,
    model: Text<'a>,
    usage: LenientObject<ApiUsage>,
    extra: LenientObject<MiniExtra<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MiniExtra<'a> {
    actions: LenientList<MiniAction<'a>>,
    returncode: LenientInt,
    exception_info: Text<'a>,
    response: LenientObject<MiniResponse<'a>>,
    timestamp: Moment,
    interrupt_type: Text<'a>,
    exit_status: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MiniAction<'a> {
    command: Text<'a>,
    tool_call_id: Text<'a>,
}

/// The provider's reply. Its choices repeat the message.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MiniResponse<'a> {
    model: Text<'a>,
    usage: LenientObject<ApiUsage>,
}

/// Splits off the fenced command of an answer. Returns the text before it and the command, if there
/// is exactly one.
fn split_fence(content: &str) -> (&str, Option<&str>) {
    let mut found = None;
    for opening in ["```bash", "```mswea_bash_command"] {
        for (at, _) in content.match_indices(opening) {
            let rest = &content[at + opening.len()..];
            let Some((_, body)) = rest.split_once('\n').filter(|(line, _)| line.trim().is_empty())
            else {
                continue;
            };
            let Some((command, _)) = body.split_once("\n```") else { continue };
            if found.is_some() {
                // mini-swe-agent rejects an answer with several commands.
                return (content, None);
            }
            found = Some((content[..at].trim_end(), command.trim()));
        }
    }
    found.map_or((content, None), |(text, command)| (text, Some(command)))
}

/// Splits a message into its exit code and its output without tags.
fn split_returncode(content: &str) -> (Option<i64>, &str) {
    let Some((_, rest)) = content.split_once("<returncode>") else { return (None, content) };
    let Some((code, rest)) = rest.split_once("</returncode>") else { return (None, content) };
    let Ok(code) = code.trim().parse() else { return (None, content) };
    let output = rest.trim();
    let output = output.strip_prefix("<output>").unwrap_or(output);
    let output = output.strip_suffix("</output>").unwrap_or(output);
    (Some(code), output.trim_matches('\n'))
}

/// Returns the command in the arguments of a call, or all arguments if it is missing.
fn command_of(arguments: JsonText) -> Text<'static> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Arguments {
        command: JsonText,
    }
    match serde_json::from_str::<Arguments>(&arguments.0) {
        Ok(inner) if !inner.command.0.is_empty() => inner.command.0,
        _ => arguments.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::test_support::{only_session, survives_damage};
    use crate::{
        EventMark, EventOrigin, EventRole, Session, SessionCollector, SessionFormat, SessionSource,
        TokenCounts, ToolOutcome, read,
    };

    /// The old form. 1 system, 1 user of the harness, 4 answers (3 calls), 3 results: 1 failed, 1 ok,
    /// 1 whose end is not stated; 1 refusal of an answer with two commands.
    const OLD: &str = r#"[
  {"role": "system", "content": "Answer with one ```bash block.\n```bash\nyour command\n```"},
  {"role": "user", "content": "Please solve this issue: it hangs"},
  {"role": "assistant", "content": "I look.\n\n```bash\ncat a.py\n```"},
  {"role": "user", "content": "<returncode>1</returncode>\n<output>\ncat: a.py: No such file\n</output>"},
  {"role": "assistant", "content": "Two.\n```bash\nls\n```\n```bash\npwd\n```"},
  {"role": "user", "content": "Please always provide EXACTLY ONE action in triple backticks."},
  {"role": "assistant", "content": "```mswea_bash_command\nls -la\n```"},
  {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
  {"role": "assistant", "content": "Done.\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
  {"role": "user", "content": "diff --git a/a.py b/a.py"}
]"#;

    /// The new form. 1 system, 1 user of the harness, 1 of a person; 3 answers (3 calls), 3 results:
    /// 1 ok, 1 rejected, 1 ok by submission; 1 exit status.
    const NEW: &str = r#"{
  "info": {"exit_status": "Submitted", "submission": "diff", "mini_version": "2.1.0",
    "model_stats": {"instance_cost": 0.1, "api_calls": 3},
    "config": {"model": {"model_name": "provider/model-x"}}},
  "messages": [
    {"role": "system", "content": "rules", "extra": {"timestamp": 1777493100.0}},
    {"role": "user", "content": "Please solve this issue: it hangs"},
    {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "c1", "type": "function",
      "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}}],
     "extra": {"actions": [{"command": "ls", "tool_call_id": "c1"}], "cost": 0.01,
       "response": {"id": "r1", "model": "model-x", "choices": [{"message": {"content": "I look."}}],
         "usage": {"prompt_tokens": 100, "completion_tokens": 10,
           "prompt_tokens_details": {"cached_tokens": 40}}}}},
    {"role": "tool", "tool_call_id": "c1", "content": "<returncode>0</returncode>\n<output>\na.py</output>",
     "extra": {"raw_output": "a.py", "returncode": 0, "timestamp": 1777493160.0}},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c2",
      "function": {"name": "bash", "arguments": "{\"command\": \"rm -r .\"}"}}]},
    {"role": "user", "content": "Command not executed. The user rejected your command with the following message: no",
     "extra": {"interrupt_type": "UserRejection"}},
    {"object": "response", "model": "model-x", "usage": {"input_tokens": 50, "output_tokens": 5},
     "output": [{"type": "reasoning", "summary": []},
       {"type": "message", "content": [{"type": "output_text", "text": "Done."}]},
       {"type": "function_call", "call_id": "c3", "name": "bash", "arguments": "{}"}],
     "extra": {"actions": [{"command": "echo COMPLETE", "tool_call_id": "c3"}]}},
    {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}}
  ],
  "trajectory_format": "mini-swe-agent-1.1"
}"#;

    fn session(json: &str) -> Session {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("run.traj.json", json), &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::MiniSweAgent);
        assert_eq!(reading.notes.bad_records, 0);
        collector.into_sessions().remove(0)
    }

    fn outcomes(session: &Session) -> Vec<(ToolOutcome, Option<i64>)> {
        let results = session.events.iter().flat_map(|event| &event.results);
        results.map(|result| (result.outcome, result.exit_code)).collect()
    }

    fn count(session: &Session, role: EventRole, origin: EventOrigin) -> usize {
        session.events.iter().filter(|event| event.role == role && event.origin == origin).count()
    }

    #[test]
    fn a_bare_list_with_fences() {
        let session = session(OLD);
        assert_eq!(session.head.id, "run-ea82411e");
        assert_eq!(count(&session, EventRole::System, EventOrigin::Harness), 1);
        assert_eq!(count(&session, EventRole::User, EventOrigin::Harness), 2);
        assert_eq!(count(&session, EventRole::User, EventOrigin::Human), 0);
        assert_eq!(count(&session, EventRole::Assistant, EventOrigin::Agent), 4);
        let expected = [
            (ToolOutcome::Failed, Some(1)),
            (ToolOutcome::Ok, Some(0)),
            (ToolOutcome::Unknown, None),
        ];
        assert_eq!(outcomes(&session), expected);
        let answer = &session.events[2];
        assert_eq!(answer.text.as_str(), "I look.");
        assert_eq!(answer.calls[0].name.as_str(), "bash");
        assert_eq!(answer.calls[0].arguments.as_str(), "cat a.py");
        let result = &session.events[3].results[0];
        assert_eq!(
            (result.tool.as_str(), result.text.as_str()),
            ("bash", "cat: a.py: No such file")
        );
        assert!(session.events[4].calls.is_empty());
        assert!(session.events[4].text.contains("pwd"));
    }

    #[test]
    fn the_new_form_with_calls_and_extras() {
        let session = session(NEW);
        assert_eq!(count(&session, EventRole::User, EventOrigin::Harness), 1);
        assert_eq!(count(&session, EventRole::User, EventOrigin::Human), 1);
        assert_eq!(count(&session, EventRole::Assistant, EventOrigin::Agent), 3);
        let expected =
            [(ToolOutcome::Ok, Some(0)), (ToolOutcome::Rejected, None), (ToolOutcome::Ok, None)];
        assert_eq!(outcomes(&session), expected);
        let commands: Vec<_> = session
            .events
            .iter()
            .flat_map(|event| &event.calls)
            .map(|call| call.arguments.as_str())
            .collect();
        assert_eq!(commands, ["ls", "rm -r .", "echo COMPLETE"]);
        assert_eq!(session.head.models, ["model-x"]);
        assert_eq!(session.head.agent_version.as_deref(), Some("2.1.0"));
        assert_eq!(
            session.events[2].usage,
            Some(TokenCounts { input: 60, output: 10, cached: 40 })
        );
        let last = &session.events[session.events.len() - 1];
        assert_eq!(last.text.as_str(), "exit status: Submitted");
        let text = session.events.iter().find(|event| event.text.as_str() == "Done.");
        assert_eq!(text.unwrap().usage, Some(TokenCounts { input: 50, output: 5, cached: 0 }));
        assert_eq!(session.head.start.unwrap().to_string(), "2026-04-29T20:05:00Z");
    }

    #[test]
    fn the_format_may_stand_out_of_sight_and_the_model_in_the_configuration() {
        let json = r#"{"info": {"exit_status": "LimitsExceeded", "config": {"model": {"model_name": "m"}}},
      "messages": [{"role": "user", "content": "task"}, {"role": "assistant", "content": "x"},
        {"role": "user", "content": "Interrupted by user: stop"}]}"#;
        let session = session(json);
        assert_eq!(session.head.models, ["m"]);
        assert_eq!(session.events.len(), 4);
        assert_eq!(session.events[2].mark, Some(EventMark::Interrupted));
        assert_eq!(session.events[2].origin, EventOrigin::Human);
        assert_eq!(session.events[3].text.as_str(), "exit status: LimitsExceeded");
    }

    #[test]
    fn timeouts_and_exceptions_are_failures() {
        let json = r#"[{"role": "user", "content": "Fix it, then echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"},
      {"role": "assistant", "content": "```bash\nsleep 99\n```"},
      {"role": "user", "content": "The last command <command>sleep 99</command> timed out and has been killed."},
      {"role": "assistant", "content": "```bash\nls\n```"},
      {"role": "user", "content": "<exception>x</exception>\n<returncode>-1</returncode>\n<output>\n</output>",
       "extra": {"returncode": -1, "exception_info": "docker died"}},
      {"role": "assistant", "content": "```bash\ncat\n```"}]"#;
        let session = session(json);
        let expected = [
            (ToolOutcome::Failed, None),
            (ToolOutcome::Failed, Some(-1)),
            (ToolOutcome::Pending, None),
        ];
        assert_eq!(outcomes(&session), expected);
        assert_eq!(session.events[4].results[0].error.as_str(), "docker died");
    }

    #[test]
    fn a_chat_about_a_shell_is_a_chat() {
        let json = r#"[{"role": "user", "content": "How do I list files?"},
      {"role": "assistant", "content": "So:\n```bash\nls\n```"}]"#;
        let reading =
            read(&SessionSource::bytes("chat.json", json), &mut SessionCollector::default())
                .unwrap();
        assert_eq!(reading.format, SessionFormat::Chat);
    }

    #[test]
    fn other_agents_with_its_protocol() {
        let text = r#"{"outcome":"exit:task_complete","messages":[
  {"role":"system","content":"Wrap each command in a ```bash ... ``` block."},
  {"role":"user","content":"count lines"},
  {"role":"assistant","content":"```bash\nwc -l a\n```"},
  {"role":"tool","content":"<returncode>1</returncode>\n<output>\nno such file\n</output>"},
  {"role":"assistant","content":"There is none."}]}"#;
        let session =
            only_session(SessionFormat::MiniSweAgent, &SessionSource::bytes("run.json", text));
        let said: Vec<_> =
            session.events.iter().map(|event| (event.text.as_str(), event.calls.len())).collect();
        assert_eq!(said[2..], [("", 1), ("", 0), ("There is none.", 0)]);
        let result = &session.events[3].results[0];
        assert_eq!((result.outcome, result.exit_code), (ToolOutcome::Failed, Some(1)));
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::MiniSweAgent, OLD.as_bytes());
        survives_damage(SessionFormat::MiniSweAgent, NEW.as_bytes());
    }
}
