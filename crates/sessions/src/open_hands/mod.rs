//! Reads `OpenHands` before its SDK: events (actions and observations) in one file or in one file
//! each, and the evaluation's `output.jsonl` with one run and its `history` per line.
//!
//! An observation names its action in `cause`; without event ids, it belongs to the last action.
//! Each event repeats the model's reply in `tool_call_metadata`, of which only id, model and token
//! counts are read, once per reply.

mod record;

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use crate::content::{ApiUsage, MessageContent};
use crate::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use crate::feed::SessionFeed;
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use crate::outline::JsonOutline;
use crate::source::{DocumentReader, SessionSource};
use crate::text::Text;
use crate::wire::each;
use crate::{SessionReadError, failure};
use record::{HistoryEntries, OpenHandsRecord, ToolCallMetadata};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.inner("history").is_some_and(is_event_list),
    weak_json: |value| value.has("source") && (value.has("action") || value.has("observation")),
    in_lists: true,
    ids: IdSource::FolderName,
    folders: &[AgentFolders {
        agent: "open-hands",
        variable: None,
        roots: &[HomeRoot::Home(".openhands")],
        parts: &["sessions"],
    }],
    ..FormatEntry::new(read)
};

/// Reads events.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let is_folder = matches!(source, SessionSource::Folder { .. });
    if is_folder || is_lines(source)? {
        read_lines(source, feed)
    } else {
        source.read_document(&mut EventDocument, feed)
    }
}

/// Returns true if this is a list of events. Older ones are recognisable only by action and
/// observation, which may form a list of their own.
fn is_event_list(list: &JsonOutline) -> bool {
    let is_event = |event: &JsonOutline| {
        event.mark("role").is_empty() && (event.has("action") || event.has("observation"))
    };
    list.elements.iter().any(|event| is_event(event) || (event.is_list && is_event_list(event)))
}

/// Returns true if the first line is a complete object.
fn is_lines(source: &SessionSource) -> Result<bool, SessionReadError> {
    let mut lines = source.lines()?;
    let mut notes = super::ReadNotes::default();
    let Some(line) = lines.next(&mut notes)? else { return Ok(false) };
    Ok(line.bytes.trim_ascii_start().starts_with(b"{")
        && line.parse::<IgnoredAny>(&mut String::new(), &mut notes).is_some())
}

fn read_lines(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    let mut run = OpenHandsRun::default();
    while let Some(line) = lines.next(&mut feed.notes)? {
        let Some(mut record) = line.parse::<OpenHandsRecord<'_>>(&mut scratch, &mut feed.notes)
        else {
            continue;
        };
        // A line with a history is a whole run of the evaluation.
        let history = std::mem::take(&mut record.history.0);
        if history.is_empty() {
            run.send(record, feed);
            continue;
        }
        feed.end_session();
        let mut run = OpenHandsRun::of_evaluation();
        for event in history {
            run.send(event, feed);
        }
        record.note_run(feed);
        feed.end_session();
    }
    Ok(())
}

/// One JSON value: a list of events, or one evaluated run.
struct EventDocument;

impl DocumentReader for EventDocument {
    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut run = OpenHandsRun::default();
        while let Some(HistoryEntries(records)) = list.next_element()? {
            for record in records {
                run.send(record, feed);
            }
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut run = OpenHandsRun::of_evaluation();
        let mut about = OpenHandsRecord::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "history" => {
                    map.next_value_seed(each(|HistoryEntries(records): HistoryEntries<'de>| {
                        for record in records {
                            run.send(record, feed);
                        }
                    }))?;
                }
                "instance_id" => about.instance_id = map.next_value()?,
                "issue" => about.issue = map.next_value()?,
                "error" => about.error = map.next_value()?,
                "metadata" => about.metadata = map.next_value()?,
                "metrics" => about.metrics = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        about.note_run(feed);
        Ok(())
    }
}

/// Prefix of the message that the evaluation sends in place of a user.
const STAND_IN: &str = "Please continue working on the task on whatever approach you think";

/// State of a run.
#[derive(Default)]
struct OpenHandsRun {
    is_evaluation: bool,
    has_started: bool,
    calls: u64,
    /// Id of the last call without a result, for events that name no cause.
    open: Option<String>,
    /// Id of the model's last reply.
    reply: String,
    /// Number of nested subagents at work.
    subagents: u32,
}

impl OpenHandsRun {
    /// Creates a run whose user is a program.
    fn of_evaluation() -> Self {
        Self { is_evaluation: true, ..Self::default() }
    }

    /// Sends an event.
    fn send(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        "open-hands".clone_into(&mut feed.head.agent);
        if let Some(metrics) = &record.llm_metrics.0 {
            metrics.note(feed);
        }
        match (record.action.is_empty(), record.observation.is_empty()) {
            (false, _) => self.action(record, feed),
            (true, false) => self.observation(record, feed),
            (true, true) => feed.notes.ignored_records += 1,
        }
    }

    fn agent(&self) -> EventOrigin {
        if self.subagents > 0 { EventOrigin::Subagent } else { EventOrigin::Agent }
    }

    fn action(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        let time = record.timestamp.0;
        let is_user = record.source.as_str() == "user";
        match record.action.as_str() {
            "message" => self.message(record, feed),
            "system" => {
                feed.send(Event { text: record.args.content, time, ..Event::default() });
            }
            "finish" | "reject" => self.finish(record, feed),
            "change_agent_state"
                if is_user && matches!(record.args.agent_state.as_str(), "stopped" | "paused") =>
            {
                let (role, origin) = (EventRole::User, EventOrigin::Human);
                let mark = Some(EventMark::Interrupted);
                feed.send(Event { role, origin, time, mark, ..Event::default() });
            }
            "condensation" => {
                let (text, mark) = (record.args.summary, Some(EventMark::Compacted));
                feed.send(Event { text, time, mark, ..Event::default() });
            }
            "null"
            | "change_agent_state"
            | "recall"
            | "start"
            | "pause"
            | "resume"
            | "stop"
            | "summarize"
            | "condensation_request"
            | "loop_recovery" => {
                feed.notes.ignored_records += 1;
            }
            // A command that the user ran beside the agent.
            _ if is_user => feed.notes.ignored_records += 1,
            _ => self.call(record, feed),
        }
    }

    fn message(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        let text =
            if record.args.content.is_empty() { record.content.0 } else { record.args.content };
        let is_agent = match record.source.as_str() {
            // Before 2025, only this distinguished agent and user.
            "" => self.has_started && record.wait_for_response.is_set(),
            source => source == "agent",
        };
        self.has_started = true;
        let time = record.timestamp.0;
        if is_agent {
            let (continues, usage) = self.note_reply(record.tool_call_metadata.0.as_ref(), feed);
            let (role, origin) = (EventRole::Assistant, self.agent());
            feed.send(Event { role, origin, text, usage, time, continues, ..Event::default() });
            return;
        }
        // In an evaluation, a program plays the user: it states the task and asks the agent to
        // continue.
        let is_program = self.is_evaluation
            || record.source.as_str() == "environment"
            || text.starts_with(STAND_IN);
        let origin = if is_program { EventOrigin::Harness } else { EventOrigin::Human };
        feed.send_text(EventRole::User, origin, text, time);
    }

    /// Sends the agent's final message. It has the form of a call but never gets a result.
    fn finish(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        let (continues, usage) = self.note_reply(record.tool_call_metadata.0.as_ref(), feed);
        let args = record.args;
        // The name of the field changed between versions.
        let said = [args.final_thought, args.thought, args.content, record.message];
        let text = said.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let (role, origin, time) = (EventRole::Assistant, self.agent(), record.timestamp.0);
        feed.send(Event { role, origin, text, usage, time, continues, ..Event::default() });
    }

    fn call(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        let metadata = record.tool_call_metadata.0;
        let (continues, usage) = self.note_reply(metadata.as_ref(), feed);
        self.calls += 1;
        let id = match record.id.0 {
            Some(id) if id >= 0 => id.to_string(),
            // Old events have no ids, but calls and results are paired by id.
            _ => format!("call {}", self.calls),
        };
        let named = metadata.map(|metadata| metadata.function_name).filter(|name| !name.is_empty());
        let beside = [record.command, record.code, record.browser_actions, record.path, record.url];
        let arguments = match record.args.of_tool {
            args if args.is_empty() => {
                beside.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
            }
            args => args.into(),
        };
        let thought = record.args.thought;
        let is_delegation = record.action.as_str() == "delegate";
        let call =
            ToolCall { id: id.as_str().into(), name: named.unwrap_or(record.action), arguments };
        feed.send(Event {
            role: EventRole::Assistant,
            origin: self.agent(),
            text: if thought.is_empty() { record.thought } else { thought },
            calls: vec![call],
            usage,
            time: record.timestamp.0,
            continues,
            ..Event::default()
        });
        // Events until the delegation's observation come from the subagent.
        self.subagents += u32::from(is_delegation);
        self.open = Some(id);
    }

    /// Returns true if an event belongs to the same model reply as an earlier one, and the tokens
    /// of a new reply.
    fn note_reply(
        &mut self,
        metadata: Option<&ToolCallMetadata<'_>>,
        feed: &mut SessionFeed<'_>,
    ) -> (bool, Option<TokenCounts>) {
        let Some(reply) = metadata.and_then(|metadata| metadata.model_response.0.as_ref()) else {
            return (false, None);
        };
        feed.head.add_model(&reply.model);
        // Each action of one reply repeats it, with all its tokens.
        if !reply.id.is_empty() && self.reply == reply.id.as_str() {
            return (true, None);
        }
        reply.id.as_str().clone_into(&mut self.reply);
        (false, reply.usage.0.as_ref().and_then(ApiUsage::usage))
    }

    fn observation(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        let kind = record.observation.as_str();
        let time = record.timestamp.0;
        // Observations of the user's own commands have the user as source.
        let is_noise =
            matches!(kind, "agent_state_changed" | "null" | "recall" | "chat" | "message");
        if is_noise || (record.source.as_str() == "user" && kind != "user_rejected") {
            feed.notes.ignored_records += 1;
            return;
        }
        let MessageContent(text) = record.content;
        if kind == "condense" {
            let mark = Some(EventMark::Compacted);
            feed.send(Event { text, time, mark, ..Event::default() });
            return;
        }
        if kind == "delegate" {
            self.subagents = self.subagents.saturating_sub(1);
        }
        let cause = record.cause.0.filter(|cause| *cause >= 0).map(|cause| cause.to_string());
        // Taken in any case: with event ids, the last action must not wait for a later observation.
        let open = self.open.take();
        let Some(call_id) = cause.or(open) else {
            // An error of the harness itself.
            feed.send(Event { text, time, ..Event::default() });
            return;
        };
        let extras = record.extras.0.unwrap_or_default();
        let metadata = extras.metadata.0.unwrap_or_default();
        if feed.head.cwd.is_none() {
            feed.head.cwd = metadata.working_dir.line(400);
        }
        // The place of the exit code changed between versions.
        let code = metadata.exit_code.0.or(extras.exit_code.0).or(record.exit_code.0);
        // -1 means that the command has not ended yet.
        let exit_code = code.filter(|code| *code >= 0);
        let failed = kind == "error"
            || extras.error.is_set()
            || exit_code.is_some_and(|code| code != 0)
            || (code.is_none() && record.success.0 == Some(false))
            || is_traceback(&text);
        let outcome = match (kind, failed, code) {
            ("user_rejected", ..) => ToolOutcome::Rejected,
            (_, true, _) => ToolOutcome::Failed,
            (_, _, Some(0)) => ToolOutcome::Ok,
            // -1: still running.
            (_, _, Some(_)) => ToolOutcome::Unknown,
            (_, _, None) if failure::is_failure_text(&text) => ToolOutcome::Failed,
            // These report failures as an `error` observation.
            ("success" | "read" | "write" | "edit" | "think" | "delegate", ..) => ToolOutcome::Ok,
            ("browse", ..) if extras.error.0 == Some(false) => ToolOutcome::Ok,
            (_, _, None) => ToolOutcome::Unknown,
        };
        let call_id = call_id.into();
        let result = ToolResult { call_id, text, outcome, exit_code, ..ToolResult::default() };
        feed.send_results(self.agent(), vec![result], time);
    }
}

/// Returns true if the text starts like an exception report of `IPython`.
fn is_traceback(text: &str) -> bool {
    let mut lines = text.trim_start().lines();
    let first = lines.next().unwrap_or_default();
    (first.starts_with("-----")
        && lines.next().is_some_and(|line| line.ends_with("Traceback (most recent call last)")))
        || first.starts_with("Cell In[")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::test_support::survives_damage;
    use crate::{
        EventMark, EventOrigin, EventRole, Session, SessionCollector, SessionFormat, SessionSource,
        TokenCounts, ToolOutcome, read,
    };

    /// 1 system, 2 texts of a person and 1 stop, 1 stand-in of the harness; 6 answers of 5 replies, 6 calls;
    /// results: 1 ok, 3 failed, 1 rejected, 1 still running, 0 pending; 1 error of the harness, 1
    /// summary; 4 records of noise.
    const LIST: &str = r#"[
  {"id": 0, "timestamp": "2025-01-27T23:16:49", "source": "agent", "action": "system",
   "args": {"content": "You are OpenHands", "tools": [{"name": "execute_bash"}]}},
  {"id": 1, "timestamp": "2025-01-27T23:16:50.239610", "source": "user", "message": "Rename it",
   "action": "message", "args": {"content": "Rename it", "image_urls": null}},
  {"id": 2, "source": "user", "action": "recall", "args": {"query": "Rename it"}},
  {"id": 3, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {"agent_state": "running"}},
  {"id": 4, "source": "agent", "message": "Running", "action": "run",
   "args": {"command": "mv a b", "thought": "I rename it.", "blocking": true, "hidden": false},
   "tool_call_metadata": {"function_name": "execute_bash", "tool_call_id": "t1", "total_calls_in_response": 2,
     "model_response": {"id": "r1", "model": "model-x", "choices": [{"message": {"content": "I rename it."}}],
       "usage": {"prompt_tokens": 100, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 60}}}}},
  {"id": 5, "source": "agent", "action": "read", "args": {"path": "/w/b", "start": 0, "thought": ""},
   "tool_call_metadata": {"function_name": "str_replace_editor", "tool_call_id": "t2",
     "model_response": {"id": "r1", "model": "model-x", "usage": {"prompt_tokens": 100, "completion_tokens": 9}}}},
  {"id": 6, "source": "agent", "cause": 5, "observation": "error", "content": "ERROR: no such file",
   "tool_call_metadata": {"model_response": {"id": "r1", "usage": {"prompt_tokens": 100}}}},
  {"id": 7, "source": "agent", "cause": 4, "observation": "run", "content": "",
   "extras": {"command": "mv a b", "metadata": {"exit_code": 0, "working_dir": "/w"}}, "success": true},
  {"id": 8, "source": "agent", "action": "run", "args": {"command": "ls -x", "thought": ""}},
  {"id": 9, "source": "agent", "cause": 8, "observation": "run", "content": "bad option",
   "extras": {"exit_code": 2}, "success": false},
  {"id": 10, "source": "agent", "action": "run", "args": {"command": "rm -r /", "thought": ""}},
  {"id": 11, "source": "user", "cause": 10, "observation": "user_rejected", "content": "Action was rejected"},
  {"id": 12, "source": "agent", "action": "run", "args": {"command": "sleep 99"}},
  {"id": 13, "source": "agent", "cause": 12, "observation": "run", "content": "no new output",
   "extras": {"metadata": {"exit_code": -1}}, "success": false},
  {"id": 14, "source": "agent", "action": "run_ipython", "args": {"code": "1/0"}},
  {"id": 15, "source": "agent", "cause": 14, "observation": "run_ipython",
   "content": "---------------------------------\nZeroDivisionError          Traceback (most recent call last)\nCell In[1]"},
  {"id": 16, "source": "user", "action": "message", "args": {"content": "Please continue working on the task on whatever approach you think is suitable."}},
  {"id": 17, "source": "environment", "observation": "error", "content": "STATUS$ERROR"},
  {"id": 18, "source": "agent", "action": "condensation", "args": {"summary": "so far: renamed"}},
  {"id": 19, "source": "user", "action": "change_agent_state", "args": {"agent_state": "stopped", "thought": ""}},
  {"id": 20, "source": "environment", "action": "change_agent_state", "args": {"agent_state": "running"}},
  {"id": 21, "source": "environment", "observation": "null", "content": ""},
  {"id": 22, "source": "user", "action": "message", "args": {"content": "Finish"}},
  {"id": 23, "timestamp": "2025-01-27T23:20:00", "source": "agent", "message": "All done!", "action": "finish",
   "args": {"outputs": {}, "thought": "", "final_thought": ""},
   "llm_metrics": {"accumulated_token_usage": {"prompt_tokens": 900, "completion_tokens": 90, "cache_read_tokens": 400}}}
]"#;

    fn sessions(source: &SessionSource) -> (Vec<Session>, crate::ReadNotes) {
        let mut collector = SessionCollector::default();
        let reading = read(source, &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::OpenHands);
        (collector.into_sessions(), reading.notes)
    }

    fn count(session: &Session, role: EventRole, origin: EventOrigin) -> usize {
        session.events.iter().filter(|event| event.role == role && event.origin == origin).count()
    }

    fn outcomes(session: &Session) -> Vec<(String, ToolOutcome, Option<i64>)> {
        let results = session.events.iter().flat_map(|event| &event.results);
        results
            .map(|result| (result.tool.as_str().to_owned(), result.outcome, result.exit_code))
            .collect()
    }

    fn check_list(session: &Session) {
        assert_eq!(count(session, EventRole::User, EventOrigin::Human), 3);
        assert_eq!(count(session, EventRole::User, EventOrigin::Harness), 1);
        assert_eq!(count(session, EventRole::System, EventOrigin::Harness), 3);
        assert_eq!(count(session, EventRole::Assistant, EventOrigin::Agent), 7);
        let calls = session
            .events
            .iter()
            .filter(|event| event.role == EventRole::Assistant && !event.continues);
        assert_eq!(calls.count(), 6);
        let of = |tool: &str, outcome, code| (tool.to_owned(), outcome, code);
        assert_eq!(
            outcomes(session),
            [
                of("str_replace_editor", ToolOutcome::Failed, None),
                of("execute_bash", ToolOutcome::Ok, Some(0)),
                of("run", ToolOutcome::Failed, Some(2)),
                of("run", ToolOutcome::Rejected, None),
                of("run", ToolOutcome::Unknown, None),
                of("run_ipython", ToolOutcome::Failed, None),
            ]
        );
        let usages: Vec<_> = session.events.iter().filter_map(|event| event.usage).collect();
        assert_eq!(usages, [TokenCounts { input: 40, output: 9, cached: 60 }]);
        assert_eq!(session.head.usage, Some(TokenCounts { input: 500, output: 90, cached: 400 }));
        assert_eq!(session.head.models, ["model-x"]);
        assert_eq!(session.head.cwd.as_deref(), Some("/w"));
        assert_eq!(session.head.start.unwrap().to_string(), "2025-01-27T23:16:49Z");
        let marks: Vec<_> = session.events.iter().filter_map(|event| event.mark).collect();
        assert_eq!(marks, [EventMark::Compacted, EventMark::Interrupted]);
        let last = session.events.last().unwrap();
        assert_eq!((last.text.as_str(), last.calls.len()), ("All done!", 0));
    }

    #[test]
    fn a_list_of_events() {
        let (sessions, notes) = sessions(&SessionSource::bytes("trajectory.json", LIST));
        assert_eq!(sessions.len(), 1);
        check_list(&sessions[0]);
        assert_eq!(notes.ignored_records, 4);
        let call = &sessions[0].events.iter().find(|event| !event.calls.is_empty()).unwrap();
        assert_eq!(call.text.as_str(), "I rename it.");
        assert_eq!(call.calls[0].arguments.as_str(), r#"{"command":"mv a b"}"#);
    }

    #[test]
    fn the_same_events_one_file_each() {
        let folder = tempfile::tempdir().unwrap();
        let events: Vec<serde_json::Value> = serde_json::from_str(LIST).unwrap();
        let mut files = Vec::new();
        for (number, event) in events.iter().enumerate() {
            let path = folder.path().join(format!("{number}.json"));
            fs::write(&path, serde_json::to_string_pretty(event).unwrap()).unwrap();
            files.push(path);
        }
        files.push(folder.path().join("gone.json"));
        let source = SessionSource::Folder { path: folder.path().join("session-7"), files };
        let mut collector = SessionCollector::default();
        let reading = crate::read_as(SessionFormat::OpenHands, &source, &mut collector).unwrap();
        assert_eq!(reading.notes.bad_records, 1);
        let session = &collector.into_sessions()[0];
        check_list(session);
        assert_eq!(session.head.id, "session-7");
    }

    /// Two evaluated runs in the old layout, without ids and sources, and in the new one. Run 1:
    /// 1 user of the harness, 3 answers (2 calls), 2 results (1 failed), 1 error. Run 2: 1 user of the
    /// harness, 1 answer (1 call), 1 result.
    const LINES: &str = concat!(
        r#"{"issue":{"owner":"o","repo":"r","number":5},"instruction":"Fix it","history":["#,
        r#"{"content":"Fix it","wait_for_response":false,"action":"message"},"#,
        r#"{"command":"touch L","thought":"I add it.","keep_prompt":true,"action":"run"},"#,
        r#"{"content":"$","command_id":-1,"command":"touch L","exit_code":0,"observation":"run"},"#,
        r#"{"code":"x","thought":"","action":"run_ipython"},"#,
        r#"{"content":"Cell In[1], line 1\nSyntaxError","code":"x","observation":"run_ipython"},"#,
        r#"{"content":"Is this right?","wait_for_response":true,"action":"message"}],"#,
        r#""metrics":{"accumulated_cost":0.1},"success":true,"error":"Agent reached maximum iteration"}"#,
        "\nnot json\n",
        r#"{"instance_id":"i-2","instruction":"Fix it","history":[["#,
        r#"{"id":0,"source":"user","action":"message","args":{"content":"Fix it"}},{"observation":"null","content":""}],["#,
        r#"{"id":2,"source":"agent","action":"run","args":{"command":"ls"}},"#,
        r#"{"id":3,"cause":2,"source":"agent","observation":"run","content":"a","extras":{"metadata":{"exit_code":0}}}]],"#,
        r#""metadata":{"llm_config":{"model":"model-y"}},"#,
        r#""metrics":{"accumulated_token_usage":{"prompt_tokens":10,"completion_tokens":2}},"error":null}"#,
        "\n{\"instance_id\":\"i-3\",\"history\":[]}\n",
    );

    #[test]
    fn evaluated_runs_one_per_line() {
        let (sessions, notes) = sessions(&SessionSource::bytes("output.jsonl", LINES));
        assert_eq!(sessions.len(), 2);
        assert_eq!((notes.bad_records, notes.ignored_records), (1, 2));
        let first = &sessions[0];
        assert_eq!(first.head.id, "o/r#5-b095eb1b");
        assert_eq!(count(first, EventRole::User, EventOrigin::Harness), 1);
        assert_eq!(count(first, EventRole::Assistant, EventOrigin::Agent), 3);
        assert_eq!(first.events[1].calls[0].arguments.as_str(), "touch L");
        assert_eq!(
            outcomes(first),
            [
                ("run".to_owned(), ToolOutcome::Ok, Some(0)),
                ("run_ipython".to_owned(), ToolOutcome::Failed, None)
            ]
        );
        assert_eq!(
            first.events.last().unwrap().text.as_str(),
            "error: Agent reached maximum iteration"
        );
        let second = &sessions[1];
        assert!(second.head.id.starts_with("i-2-"), "{}", second.head.id);
        assert_eq!(second.events.len(), 3);
        assert_eq!(second.head.models, ["model-y"]);
        assert_eq!(second.head.usage, Some(TokenCounts { input: 10, output: 2, cached: 0 }));
    }

    #[test]
    fn one_evaluated_run_written_over_many_lines() {
        let line = LINES.lines().next().unwrap();
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let (sessions, _) = sessions(&SessionSource::bytes("run.json", pretty));
        assert_eq!(sessions.len(), 1);
        assert_eq!((sessions[0].head.id.as_str(), sessions[0].events.len()), ("o/r#5-b095eb1b", 7));
    }

    #[test]
    fn what_a_subagent_does_is_labelled() {
        use EventOrigin::{Agent, Human, Subagent};
        let json = r#"[{"id":1,"source":"user","action":"message","args":{"content":"go"}},
      {"id":2,"source":"agent","action":"delegate","args":{"agent":"Browser","inputs":{"task":"look"}}},
      {"id":3,"source":"agent","action":"browse","args":{"url":"http://x"}},
      {"id":4,"cause":3,"source":"agent","observation":"browse","content":"gone","extras":{"error":true}},
      {"id":5,"cause":2,"source":"agent","observation":"delegate","content":"done"},
      {"id":6,"source":"agent","action":"message","args":{"content":"ok"}}]"#;
        let (sessions, _) = sessions(&SessionSource::bytes("t.json", json));
        let origins: Vec<_> = sessions[0].events.iter().map(|event| event.origin).collect();
        assert_eq!(origins, [Human, Agent, Subagent, Subagent, Agent, Agent]);
        assert_eq!(outcomes(&sessions[0])[0], ("browse".to_owned(), ToolOutcome::Failed, None));
    }

    #[test]
    fn results_without_an_exit_code() {
        for (kind, content, extras, outcome) in [
            ("read", "text", "{}", ToolOutcome::Ok),
            ("edit", "ERROR:\\nno match", "{}", ToolOutcome::Failed),
            ("think", "Your thought has been logged.", "{}", ToolOutcome::Ok),
            ("browse", "page", r#"{"error":false}"#, ToolOutcome::Ok),
            ("run_ipython", "2", "{}", ToolOutcome::Unknown),
            ("run", "x", r#"{"metadata":"odd","exit_code":"0"}"#, ToolOutcome::Ok),
        ] {
            let json = format!(
                r#"[{{"id":1,"source":"agent","action":"{kind}","args":{{"x":1}}}},
            {{"id":2,"cause":1,"source":"agent","observation":"{kind}","content":"{content}","extras":{extras}}}]"#
            );
            let (sessions, _) = sessions(&SessionSource::bytes("t.json", json));
            assert_eq!(sessions[0].events[1].results[0].outcome, outcome, "{kind} {content}");
        }
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::OpenHands, LIST.as_bytes());
        survives_damage(SessionFormat::OpenHands, LINES.as_bytes());
    }
}
