//! Reads SWE-agent `.traj` files: one JSON object with the same run twice, as `trajectory` (steps
//! of action and observation) and as `history` (the messages that the model saw).
//!
//! If `trajectory` has steps, actions come only from there. It includes retried attempts, the last
//! observation, and observations without the surrounding template. `history` then contributes only
//! the messages before the first answer: the task. A file with nothing but `history` is read from
//! there. The prompts in each step (`query`, `messages`) repeat the history and are skipped;
//! demonstrations are dropped.
//!
//! Commands have no exit code in this format. Failures are detected from messages of SWE-agent, its
//! tools and the shell at the start or in the last line of an observation. Words inside an output
//! must not count.

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};

use crate::chat::formats::has_role;
use crate::content::{ApiCall, MessageContent};
use crate::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use crate::feed::SessionFeed;
use crate::format::{FormatEntry, VerificationBasis, VerifiedVersion};
use crate::outline::JsonOutline;
use crate::source::{DocumentReader, SessionSource, each_record};
use crate::text::Text;
use crate::wire::{
    JsonValue, LenientFlag, LenientInt, LenientList, LenientNumber, LenientObject, each,
};
use crate::{SessionReadError, failure};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.has("trajectory") || is_history(value.list("history")),
    verified: Some(VerifiedVersion {
        agent: "swe-agent",
        version: "1.1.0",
        basis: VerificationBasis::OwnFixture,
    }),
    ..FormatEntry::new(read)
};

/// Reads a trajectory.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    // The task comes after the steps in the file, so a first pass looks for it.
    let mut found = FirstPass::default();
    source.read_document(&mut found, feed)?;
    source.read_document(&mut SweTrajectory { found }, feed)
}

/// Returns true if this is a history, which names the agent in each message and has no other list
/// beside it.
fn is_history(messages: &[JsonOutline]) -> bool {
    let is_of_agent = |message: &JsonOutline| message.has("agent") && has_role(message);
    !messages.is_empty() && messages.iter().all(is_of_agent)
}

/// Findings of the first pass.
#[derive(Default)]
struct FirstPass {
    has_steps: bool,
    /// Messages before the first answer, at most [`MAX_OPENING`].
    opening: Vec<(EventRole, Text<'static>)>,
    demonstrations: u64,
}

impl DocumentReader for FirstPass {
    fn begin(&mut self, _feed: &mut SessionFeed<'_>) {
        *self = FirstPass::default();
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        _feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let FirstPass { has_steps, opening, demonstrations } = self;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "trajectory" => map.next_value_seed(each(|_: IgnoredAny| *has_steps = true))?,
                "history" => {
                    let mut answered = false;
                    map.next_value_seed(each(
                        |LenientObject(message): LenientObject<SweMessage<'de>>| {
                            let Some(message) = message else { return };
                            if message.is_demonstration() {
                                *demonstrations += 1;
                            } else if message.role() == EventRole::Assistant {
                                answered = true;
                            // Held in memory until the second pass, hence the bound.
                            } else if !answered && opening.len() < MAX_OPENING {
                                opening.push((message.role(), message.content.0.into_owned()));
                            }
                        },
                    ))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct SweTrajectory {
    found: FirstPass,
}

impl DocumentReader for SweTrajectory {
    fn begin(&mut self, feed: &mut SessionFeed<'_>) {
        "swe-agent".clone_into(&mut feed.head.agent);
        feed.naming.name_run_by_stem();
        // Set here, because a second pass starts with empty notes.
        feed.notes.dropped_records = self.found.demonstrations;
        if self.found.has_steps {
            for (role, text) in &self.found.opening {
                let (role, text) = (*role, Text::new(text.as_str()));
                feed.send(Event { role, text, ..Event::default() });
            }
        }
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let has_steps = self.found.has_steps;
        let mut info = None;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "trajectory" if has_steps => {
                    let mut number = 0;
                    map.next_value_seed(each(
                        |LenientObject(step): LenientObject<SweStep<'de>>| {
                            number += 1;
                            match step {
                                Some(step) => step.send(number, feed),
                                None => feed.notes.bad_records += 1,
                            }
                        },
                    ))?;
                }
                "history" if !has_steps => {
                    let mut history = SweHistory::default();
                    map.next_value_seed(each_record(feed, |message: SweMessage<'de>, feed| {
                        history.send(message, feed);
                    }))?;
                }
                "info" => info = map.next_value::<LenientObject<SweInfo<'de>>>()?.0,
                "replay_config" => {
                    note_replay(&map.next_value()?, feed);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if let Some(info) = info {
            info.note(feed);
        }
        Ok(())
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SweStep<'a> {
    action: Text<'a>,
    observation: Text<'a>,
    /// Thought and action as the model wrote them.
    response: Text<'a>,
    thought: Text<'a>,
    state: JsonValue,
}

impl SweStep<'_> {
    fn send(self, number: u64, feed: &mut SessionFeed<'_>) {
        if feed.head.cwd.is_none() {
            feed.head.cwd = self.state.text("/working_dir").line(400);
        }
        let is_written = !self.response.is_empty() || !self.thought.is_empty();
        // The response is the thought together with the action, which becomes the call.
        let text = if self.thought.is_empty() { self.response } else { self.thought };
        // The format has no ids; the observation is in the same step as its action.
        let id = format!("step {number}");
        let call = call_of(&self.action, Text::new(id.as_str()));
        let is_call = call.is_some();
        if is_written || is_call {
            feed.send(Event {
                role: EventRole::Assistant,
                origin: EventOrigin::Agent,
                text,
                calls: call.into_iter().collect(),
                ..Event::default()
            });
        }
        if is_call {
            let result = ToolResult { call_id: id.into(), ..result_of(self.observation) };
            feed.send_results(EventOrigin::Agent, vec![result], None);
        } else {
            // SWE-agent's comment on an answer without action, or on the end.
            feed.send(Event { text: self.observation, ..Event::default() });
        }
    }
}

/// Converts an action to a call; the first word is the tool's name.
fn call_of<'a>(action: &'a str, id: Text<'a>) -> Option<ToolCall<'a>> {
    let action = action.trim();
    let name = action.split_whitespace().next()?;
    // A path or an assignment at the start is an ordinary shell command.
    let is_name = name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let name = if is_name { name } else { "bash" };
    Some(ToolCall { id, name: name.into(), arguments: action.into() })
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SweInfo<'a> {
    exit_status: Text<'a>,
    model_stats: LenientObject<ModelStats>,
    swe_agent_version: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ModelStats {
    tokens_sent: LenientInt,
    tokens_received: LenientInt,
    instance_cost: LenientNumber,
}

impl SweInfo<'_> {
    fn note(self, feed: &mut SessionFeed<'_>) {
        if let Some(stats) = self.model_stats.0 {
            feed.head.add_stated_cost(stats.instance_cost.0);
            let (input, output) = (stats.tokens_sent.count(), stats.tokens_received.count());
            feed.head.usage =
                (input + output > 0).then_some(TokenCounts { input, output, cached: 0 });
        }
        if let Some(version) = self.swe_agent_version.line(60) {
            feed.head.agent_version = Some(version);
        }
        if !self.exit_status.is_empty() {
            let status = selftest_text::one_line(&self.exit_status, 200);
            // `exit_api` is SWE-agent's status for a provider that failed for good.
            let mark = status.contains("exit_api").then_some(EventMark::ApiError);
            let text = Text::from(format!("exit status: {status}"));
            feed.send(Event { text, mark, ..Event::default() });
        }
    }
}

/// Records the settings that can repeat a run.
fn note_replay(replay: &JsonValue, feed: &mut SessionFeed<'_>) {
    feed.head.add_model(&replay.text("/agent/model/name"));
    feed.naming.name_run_of(&replay.text("/problem_statement/id"));
}

/// Maximum number of messages kept from before the first answer.
const MAX_OPENING: usize = 8;

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SweMessage<'a> {
    role: Text<'a>,
    content: MessageContent<'a>,
    #[serde(rename = "message_type")]
    kind: Text<'a>,
    thought: Text<'a>,
    action: Text<'a>,
    tool_calls: LenientList<ApiCall<'a>>,
    /// A single id. Several ids become separate lines.
    tool_call_ids: Text<'a>,
    is_demo: LenientFlag,
}

impl SweMessage<'_> {
    /// Returns true if the message is an example for the model and not its own work.
    fn is_demonstration(&self) -> bool {
        self.is_demo.is_set() || self.kind.as_str() == "demonstration"
    }

    fn role(&self) -> EventRole {
        match self.role.as_str() {
            "assistant" => EventRole::Assistant,
            "user" => EventRole::User,
            "tool" => EventRole::Tool,
            _ => EventRole::System,
        }
    }
}

/// State of a history: the number of calls, and the call that waits for its observation.
#[derive(Default)]
struct SweHistory {
    calls: u64,
    open: Option<String>,
}

impl SweHistory {
    /// Sends a message.
    fn send(&mut self, message: SweMessage<'_>, feed: &mut SessionFeed<'_>) {
        if message.is_demonstration() {
            return;
        }
        let role = message.role();
        let MessageContent(text) = message.content;
        match role {
            EventRole::Assistant => {
                // `content` contains the thought together with the action.
                let text = if message.thought.is_empty() { text } else { message.thought };
                self.calls += 1;
                let id = format!("call {}", self.calls);
                let given = message.tool_calls.0.into_iter().filter_map(ApiCall::into_call);
                let mut calls: Vec<_> = given.collect();
                if calls.is_empty() {
                    calls.extend(call_of(&message.action, id.as_str().into()));
                }
                for call in calls.iter_mut().filter(|call| call.id.is_empty()) {
                    call.id = id.as_str().into();
                }
                self.open = calls.first().map(|call| call.id.as_str().to_owned());
                feed.send(Event {
                    role,
                    origin: EventOrigin::Agent,
                    text,
                    calls,
                    ..Event::default()
                });
            }
            EventRole::User | EventRole::Tool => {
                let named = message.tool_call_ids.lines().next().map(Text::from);
                let Some(call_id) = named.or_else(|| self.open.take().map(Text::from)) else {
                    let role = EventRole::User;
                    feed.send(Event { role, text, ..Event::default() });
                    return;
                };
                // An observation answers one call; another one without a call is a comment.
                self.open = None;
                let result = ToolResult { call_id, ..result_of(text) };
                feed.send_results(EventOrigin::Agent, vec![result], None);
            }
            EventRole::System => feed.send(Event { role, text, ..Event::default() }),
        }
    }
}

/// Prefixes that only failures have.
const FAILED: [&str; 9] = [
    "bash: ",
    "/bin/bash: ",
    "-bash: ",
    "sh: ",
    "/bin/sh: ",
    "COMMAND FAILED TO EXECUTE",
    "BROKEN PIPE ERROR",
    "No file open.",
    "No replacement was performed",
];

/// Converts an observation to a result.
fn result_of(observation: Text<'_>) -> ToolResult<'_> {
    let outcome = outcome_of(observation.trim());
    let mut result = failure::result_of(observation);
    result.outcome = outcome.unwrap_or(result.outcome);
    result
}

fn outcome_of(observation: &str) -> Option<ToolOutcome> {
    // In the history, observations are wrapped in a template.
    let text = ["OBSERVATION:", "Observation:"]
        .iter()
        .find_map(|prefix| observation.strip_prefix(prefix))
        .unwrap_or(observation)
        .trim_start();
    let first = text.lines().next().unwrap_or_default();
    let last = text.lines().next_back().unwrap_or_default();
    // A forbidden command: refused by a policy, not a tool failure.
    let is_refused = (first.starts_with("Operation '")
        || first.starts_with("Interactive operation '"))
        && first.contains("' is not supported");
    if is_refused {
        return Some(ToolOutcome::Rejected);
    }
    let is_failure = failure::is_failure_text(text)
        || FAILED.iter().any(|beginning| text.starts_with(beginning))
        // "Your bash command contained syntax errors", "Your proposed edit has introduced new …"
        || (first.starts_with("Your ") && first.contains("syntax error"))
        || (first.starts_with("The command '") && text.contains("' was cancelled because it took"))
        || (first.starts_with("File ") && first.ends_with(" not found"))
        || (first.starts_with("File \"") && is_syntax_error(last))
        || last.starts_with("EXECUTION TIMED OUT")
        // From `submit` in a capture-the-flag task.
        || text == "Wrong flag!";
    is_failure.then_some(ToolOutcome::Failed)
}

/// Returns true if this is the last line of Python's report about a script that it cannot parse.
fn is_syntax_error(line: &str) -> bool {
    ["SyntaxError:", "IndentationError:", "TabError:"].iter().any(|error| line.starts_with(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::survives_damage;
    use crate::{
        EventOrigin, EventRole, Session, SessionCollector, SessionFormat, SessionSource,
        TokenCounts, ToolOutcome, read,
    };

    /// A run in both tellings: 3 steps, one asked for again without action, a demonstration, prompts
    /// in the steps. Messages: 1 system and 1 user of the harness; 4 answers, 1 word of the harness,
    /// 3 results (1 failed), 1 exit status. Calls: 3.
    const RUN: &str = r#"{
  "environment": "main",
  "trajectory": [
    {"action": "open a.py\n", "observation": "[File: a.py (1 lines total)]\n1:x", "thought": "Look.",
     "response": "Look.\n```\nopen a.py\n```", "execution_time": 0.2,
     "state": "{\"open_file\": \"n/a\", \"working_dir\": \"/repo\"}",
     "query": [{"role": "user", "content": "all over again"}]},
    {"action": "", "observation": "Your output could not be parsed as a tool call.",
     "response": "I shall think.", "thought": "", "state": {"working_dir": "/other"}},
    {"action": "python a.py", "observation": "\nEXECUTION TIMED OUT", "thought": "Run it.",
     "response": "Run it.", "messages": [{"role": "system", "content": "again"}]},
    {"action": "submit", "observation": "diff --git a/a.py b/a.py", "thought": "Done.", "response": ""}
  ],
  "history": [
    {"role": "system", "content": "SETTING: rules", "agent": "main", "message_type": "system_prompt"},
    {"role": "user", "content": "Here is a demonstration", "agent": "main", "is_demo": true},
    {"role": "assistant", "content": "demo", "action": "ls", "agent": "main", "is_demo": true},
    {"role": "user", "content": [{"type": "text", "text": "ISSUE: it hangs"}], "agent": "main"},
    {"role": "assistant", "content": "Look.", "thought": "Look.", "action": "open a.py\n", "agent": "main"},
    {"role": "user", "content": "OBSERVATION:\n[File: a.py (1 lines total)]", "agent": "main"}
  ],
  "info": {"exit_status": "submitted (exit_cost)", "submission": "diff", "swe_agent_version": "1.1.0",
    "model_stats": {"instance_cost": 0.1, "tokens_sent": 700, "tokens_received": 24, "api_calls": 4}},
  "replay_config": "{\"agent\":{\"model\":{\"name\":\"gpt-x\"}},\"problem_statement\":{\"id\":\"repo-i1\"}}"
}"#;

    fn session(json: &str) -> Session {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("run.traj", json), &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::SweAgent);
        let mut sessions = collector.into_sessions();
        assert_eq!(sessions.len(), 1);
        sessions.remove(0)
    }

    fn roles(session: &Session) -> Vec<(EventRole, EventOrigin)> {
        session.events.iter().map(|event| (event.role, event.origin)).collect()
    }

    #[test]
    fn steps_count_once_and_the_task_comes_first() {
        let session = session(RUN);
        let (system, user) =
            ((EventRole::System, EventOrigin::Harness), (EventRole::User, EventOrigin::Harness));
        let (answer, result) =
            ((EventRole::Assistant, EventOrigin::Agent), (EventRole::Tool, EventOrigin::Agent));
        assert_eq!(
            roles(&session),
            [system, user, answer, result, answer, system, answer, result, answer, result, system]
        );
        assert_eq!(session.events[1].text.as_str(), "ISSUE: it hangs");
        assert_eq!(session.events[2].text.as_str(), "Look.");
        let call = &session.events[2].calls[0];
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("open", "open a.py"));
        assert_eq!(session.events[4].text.as_str(), "I shall think.");
        let outcome = |number: usize| {
            let result = &session.events[number].results[0];
            (result.tool.as_str(), result.outcome)
        };
        assert_eq!(outcome(3), ("open", ToolOutcome::Unknown));
        assert_eq!(outcome(7), ("python", ToolOutcome::Failed));
        assert_eq!(outcome(9), ("submit", ToolOutcome::Unknown));
        assert_eq!(session.events[10].text.as_str(), "exit status: submitted (exit_cost)");
    }

    #[test]
    fn the_head_comes_from_info_and_replay() {
        let session = session(RUN);
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("repo-i1-fd5ca277", "swe-agent"));
        assert_eq!(head.models, ["gpt-x"]);
        assert_eq!(head.agent_version.as_deref(), Some("1.1.0"));
        assert_eq!(head.cwd.as_deref(), Some("/repo"));
        assert_eq!(head.usage, Some(TokenCounts { input: 700, output: 24, cached: 0 }));
        let calls = session.events.iter().filter(|event| event.role == EventRole::Assistant);
        assert_eq!(calls.count(), 4);
    }

    #[test]
    fn demonstrations_are_counted_as_dropped() {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("run.traj", RUN), &mut collector).unwrap();
        assert_eq!(reading.notes.dropped_records, 2);
        assert_eq!(reading.notes.torn, None);
    }

    /// 1 system, 1 user, 2 answers with 1 call each (one by function call, one by action), 2 results.
    const HISTORY: &str = r#"{"history": [
  {"role": "system", "content": "rules", "agent": "main"},
  {"role": "user", "content": "ISSUE: it hangs", "agent": "main"},
  {"role": "assistant", "content": "Look.", "thought": "Look.", "action": "ls -F", "agent": "main",
   "tool_calls": [{"id": "c1", "type": "function",
     "function": {"name": "bash", "arguments": "{\"command\":\"ls -F\"}"}}]},
  {"role": "tool", "content": "a.py", "agent": "main", "tool_call_ids": ["c1"]},
  {"role": "assistant", "content": "Run it.\n```\n./a.py\n```", "thought": "Run it.",
   "action": "./a.py", "agent": "main", "tool_calls": null},
  {"role": "user", "content": "bash: ./a.py: Permission denied\n(Open file: n/a)\nbash-$", "agent": "main"}
]}"#;

    #[test]
    fn a_file_with_nothing_but_history() {
        let session = session(HISTORY);
        assert_eq!(session.events.len(), 6);
        assert_eq!(session.head.id, "run-07a69e7b");
        let call = &session.events[2].calls[0];
        assert_eq!(call.arguments.as_str(), r#"{"command":"ls -F"}"#);
        assert_eq!(session.events[3].results[0].tool.as_str(), "bash");
        assert_eq!(session.events[4].text.as_str(), "Run it.");
        let failed = &session.events[5].results[0];
        assert_eq!((failed.tool.as_str(), failed.outcome), ("bash", ToolOutcome::Failed));
    }

    #[test]
    fn an_empty_trajectory_leaves_the_history() {
        let json = HISTORY.replacen('{', r#"{"trajectory": [], "#, 1);
        assert_eq!(session(&json).events.len(), 6);
        let alone = r#"{"trajectory": [{"action": "ls", "observation": "a", "thought": "t"}]}"#;
        assert_eq!(session(alone).events.len(), 2);
    }

    #[test]
    fn torn_in_the_history_and_in_the_steps() {
        let torn = |end: &str| {
            let at = RUN.find(end).unwrap();
            let mut collector = SessionCollector::default();
            let reading =
                read(&SessionSource::bytes("run.traj", &RUN[..at]), &mut collector).unwrap();
            assert!(reading.notes.torn.is_some());
            collector.into_sessions().remove(0)
        };
        // The task, three steps with their results, and one answered by the harness.
        assert_eq!(torn("\"submission\"").events.len(), 10);
        // Two steps with their results and one answered by the harness; no task.
        assert_eq!(torn("\"submit\"").events.len(), 6);
    }

    #[test]
    fn text_to_repair_keeps_the_task() {
        let session = session(&RUN.replace("Look.", "Look\\ud83d."));
        assert_eq!(session.events.len(), 11);
        assert_eq!(session.events[1].text.as_str(), "ISSUE: it hangs");
        assert_eq!(session.events[2].text.as_str(), "Look\u{fffd}.");
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::SweAgent, RUN.as_bytes());
        survives_damage(SessionFormat::SweAgent, HISTORY.as_bytes());
    }

    #[test]
    fn what_fails_and_what_only_looks_like_it() {
        use ToolOutcome::{Failed, Rejected, Unknown};
        for (observation, outcome) in [
            ("Your bash command contained syntax errors and was NOT executed. Please", Failed),
            ("Your proposed edit has introduced new syntax error(s). Please read", Failed),
            ("\nEXECUTION TIMED OUT", Failed),
            ("1\n2\nEXECUTION TIMED OUT BECAUSE NO OUTPUT WAS PRODUCED FOR 30 SECONDS.", Failed),
            ("The command 'sleep 99' was cancelled because it took more than 30 seconds.", Failed),
            ("bash: frobnicate: command not found", Failed),
            ("/bin/bash: line 1: frobnicate: command not found\n", Failed),
            ("OBSERVATION:\nbash: x: command not found\n(Open file: n/a)", Failed),
            ("Traceback (most recent call last):\n  File \"a.py\", line 1", Failed),
            (
                "  File \"a.py\", line 4\n    def f()\n          ^\nSyntaxError: invalid syntax",
                Failed,
            ),
            ("File src/a.py not found", Failed),
            ("Wrong flag!", Failed),
            ("Interactive operation 'vim' is not supported by this environment", Rejected),
            ("Operation 'nano a' is not supported by this environment", Rejected),
            ("the log has error: none and bash: x: command not found", Unknown),
            ("[File: /a/b.py (3 lines total)]\n1:raise SyntaxError", Unknown),
            ("Found 2 matches for \"syntax error\"", Unknown),
            ("", Unknown),
        ] {
            assert_eq!(result_of(observation.into()).outcome, outcome, "{observation}");
        }
    }
}
