//! Derives skill executions from recorded sessions: each use, its result, and the user's next
//! message. Reading the same session again changes nothing.

use std::mem;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::{SkillTracker, reaction};
use selftest_grading::grade::ErrorClass;
use selftest_grading::improve::skill::{ExecutionStatus, SkillExecution};
use selftest_grading::signal::classify_signals;
use selftest_sessions::{
    Event, EventMark, EventOrigin, EventRole, SessionHead, SessionSink, ToolCall, ToolOutcome,
    ToolResult,
};
use selftest_store::{SkillRecord, SkillRef, StoreError};
use selftest_text::digest::uuid_from_name;
use selftest_text::redact::Redactor;
use selftest_text::{clip, one_line};

/// Maximum number of files whose executions wait to be written.
const MAX_WAITING: usize = 64;

/// Selects the sessions to search.
#[derive(Debug, Clone, Default)]
pub struct DeriveOptions {
    /// Folders and files with sessions.
    pub sources: Vec<PathBuf>,
    /// Skips files last changed before this time.
    pub since: Option<Timestamp>,
    /// Only sessions of this agent.
    pub agent: Option<String>,
}

/// Counts of the executions found in recorded sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DerivedCounts {
    /// Number of files that could contain sessions.
    pub files: u64,
    /// Number of sessions in which a skill was used.
    pub sessions: u64,
    /// Number of executions in them.
    pub executions: u64,
    /// Number of executions without a date, which are not recorded.
    pub undated: u64,
    /// Number of executions followed by a user message.
    pub answered: u64,
    /// Folders that could not be read, with the reason.
    pub problems: Vec<String>,
}

impl SkillTracker {
    /// Records the skill uses in recorded sessions. Unknown skills are added as version
    /// `unversioned`.
    pub async fn record_sessions(
        &self,
        options: DeriveOptions,
    ) -> Result<DerivedCounts, StoreError> {
        let (sender, mut receiver) = mpsc::channel(MAX_WAITING);
        let redactor = self.redactor.clone();
        let user_id = self.user_id().to_owned();
        // A separate thread, because the reader of database files has its own tokio runtime.
        let reading = std::thread::spawn(move || read(&options, &redactor, &user_id, &sender));
        let mut derived = DerivedCounts::default();
        while let Some(records) = receiver.recv().await {
            let recorded = self.record(&records).await?;
            derived.executions += recorded.executions;
        }
        // A panic has already been printed to stderr.
        let read = reading.join().unwrap_or_default();
        Ok(DerivedCounts { executions: derived.executions, ..read })
    }
}

/// Reads the files and sends the records of each; stops when the receiver is dropped.
fn read(
    options: &DeriveOptions,
    redactor: &Redactor,
    user_id: &str,
    sender: &mpsc::Sender<Vec<SkillRecord>>,
) -> DerivedCounts {
    let mut derived = DerivedCounts::default();
    let mut found = selftest_sessions::find_session_files(&options.sources, |problem| {
        derived.problems.push(problem.to_owned());
    });
    found.retain(|file| file.may_contain_session_since(options.since));
    derived.files = found.len() as u64;
    // Oldest first, because a skill is added at its first use.
    found.sort_by_key(|file| file.modified_ns);
    for file in found {
        let mut uses = SkillUseCollector::default();
        // Files without a session contain no skill uses; `grade` reports the reason.
        if selftest_sessions::read(&file.source, &mut uses).is_err() {
            continue;
        }
        let mut records = Vec::new();
        for (head, uses) in uses.into_sessions() {
            if options.agent.as_ref().is_some_and(|agent| *agent != head.agent) {
                continue;
            }
            let is_since = |since| head.start.is_some_and(|start| start >= since);
            if !options.since.is_none_or(is_since) {
                continue;
            }
            derived.sessions += 1;
            for one in uses {
                // Skills are compared week by week, and an undated use belongs to none.
                let Some(at) = one.at.or(head.start) else {
                    derived.undated += 1;
                    continue;
                };
                derived.answered += u64::from(one.next.is_some());
                let session = (head.agent.as_str(), head.id.as_str());
                records.push(execution_record(one, session, at, redactor, user_id));
            }
        }
        if !records.is_empty() && sender.blocking_send(records).is_err() {
            break;
        }
    }
    derived
}

fn execution_record(
    one: SkillUse,
    (agent, session_id): (&str, &str),
    at: Timestamp,
    redactor: &Redactor,
    user_id: &str,
) -> SkillRecord {
    let reaction = one
        .next
        .as_ref()
        .map(|(message, previous)| reaction(&classify_signals(message, previous.as_deref(), None)));
    let error = one.error.as_deref().map(|words| redactor.apply(words).into_owned());
    let execution = SkillExecution {
        id: uuid_from_name(&format!(
            "execution\0{agent}\0{session_id}\0{}\0{}",
            one.key, one.skill
        )),
        // Set by the store.
        skill_version_id: String::new(),
        user_id: user_id.to_owned(),
        session_id: Some(session_id.to_owned()),
        execution_status: one.status,
        user_edited_output: false,
        user_sent_thank_you: false,
        user_repeated_request: false,
        user_was_frustrated: None,
        conversation_turns: Some(one.turns),
        execution_time_ms: one.milliseconds,
        error_message: error,
        created_at: at,
    };
    SkillRecord::Execution {
        skill: SkillRef::Observed { skill_name: one.skill },
        execution,
        reaction,
    }
}

/// Maximum bytes of a skill name.
const MAX_NAME: usize = 200;
/// Maximum bytes of an error message.
const MAX_ERROR: usize = 4000;
/// Maximum bytes of a message that are inspected.
const MAX_MESSAGE: usize = 8000;
/// Maximum number of uses per session, so that a crafted file cannot exhaust memory.
const MAX_USES: usize = 10_000;

/// A finished skill use.
#[derive(Debug, Clone, PartialEq)]
struct SkillUse {
    /// Name of the skill.
    skill: String,
    /// Key that is unique in its session: the id of the tool call, else the number of the event.
    key: String,
    status: ExecutionStatus,
    /// Error message.
    error: Option<String>,
    /// Number of model calls from the use to the user's next message.
    turns: u32,
    at: Option<Timestamp>,
    /// Milliseconds from the use to the last event before the user's next message.
    milliseconds: Option<u32>,
    /// The user's next message, and the one before it.
    next: Option<(String, Option<String>)>,
}

/// A use whose end has not been seen yet.
struct OpenUse {
    skill: String,
    key: String,
    /// Id of the pending tool call; `None` if no tool was called.
    call_id: Option<String>,
    /// `None` until the result is known.
    ended: Option<(ExecutionStatus, Option<String>)>,
    /// True once the program has inserted the skill's text into the conversation, which happens
    /// once per use.
    has_text: bool,
    turns: u32,
    at: Option<Timestamp>,
    last: Option<Timestamp>,
    /// True if the model's provider failed and the model has not answered since.
    broken: bool,
}

/// Collects the skill uses in the sessions of a source.
#[derive(Default)]
struct SkillUseCollector {
    sessions: Vec<(SessionHead, Vec<SkillUse>)>,
    open: Vec<OpenUse>,
    done: Vec<SkillUse>,
    /// The user's last message.
    last_message: Option<String>,
    /// The last command that the user typed.
    command: Option<String>,
}

/// Input of the tools that use a skill, with the field names of their different versions.
#[derive(Deserialize, Default)]
#[serde(default)]
struct SkillInput {
    skill: Option<String>,
    name: Option<String>,
    command: Option<String>,
    /// File beside the skill; viewing it is not a separate use.
    file_path: Option<String>,
}

impl SkillUseCollector {
    /// Returns the sessions in which a skill was used.
    fn into_sessions(self) -> Vec<(SessionHead, Vec<SkillUse>)> {
        self.sessions
    }

    fn start_use(&mut self, skill: &str, event: &Event<'_>, call: Option<&ToolCall<'_>>) {
        let skill = one_line(skill.trim().trim_start_matches('/'), MAX_NAME);
        if skill.is_empty() || self.open.len() + self.done.len() >= MAX_USES {
            return;
        }
        let id = call.map(|call| call.id.as_str()).filter(|id| !id.is_empty());
        self.open.push(OpenUse {
            skill,
            key: id.map_or_else(|| format!("#{}", event.number), ToOwned::to_owned),
            call_id: call.map(|call| call.id.as_str().to_owned()),
            ended: None,
            has_text: call.is_none(),
            turns: 0,
            at: event.time,
            last: event.time,
            broken: false,
        });
    }

    fn result(&mut self, result: &ToolResult<'_>) {
        let waiting = self.open.iter().position(|open| {
            open.ended.is_none() && open.call_id.as_deref() == Some(result.call_id.as_str())
        });
        let Some(at) = waiting else { return };
        let ended = match result.outcome {
            ToolOutcome::Ok | ToolOutcome::Unknown => (ExecutionStatus::Success, None),
            ToolOutcome::Failed => {
                let words = if result.error.is_empty() { &result.text } else { &result.error };
                let status = match ErrorClass::classify(words, result.exit_code) {
                    ErrorClass::Timeout => ExecutionStatus::Timeout,
                    _ => ExecutionStatus::Error,
                };
                (status, Some(clip(words, MAX_ERROR)))
            }
            // A rejected or unfinished call does not count as an execution.
            ToolOutcome::Rejected | ToolOutcome::Pending => {
                self.open.remove(at);
                return;
            }
        };
        self.open[at].ended = Some(ended);
    }

    /// Handles a text inserted by the program, which may be a skill that the user called by name.
    fn notice(&mut self, event: &Event<'_>) {
        let text = event.text.trim_start();
        if text.starts_with("<command-") {
            let command = element(text, "<command-name>", "</command-name>");
            self.command = command.map(|name| name.trim().trim_start_matches('/').to_owned());
        } else if let Some(rest) = text.strip_prefix("Base directory for this skill:") {
            let folder = rest.lines().next().unwrap_or_default().trim();
            let folder = folder.rsplit(['/', '\\']).next().unwrap_or_default();
            // Calls and commands may include the plugin name: `plugin:skill`.
            let is_it = |name: &str| name.rsplit(':').next() == Some(folder);
            // The text of a skill that the model called with its tool is no second use.
            let called = self.open.iter_mut().find(|open| !open.has_text && is_it(&open.skill));
            if let Some(called) = called {
                called.has_text = true;
                return;
            }
            // The command may name the plugin too, which the folder does not.
            let command = self.command.take().filter(|command| is_it(command));
            self.start_use(command.as_deref().unwrap_or(folder), event, None);
        } else {
            for name in invoked_skills(text) {
                self.start_use(name, event, None);
            }
        }
    }

    /// Handles a user message. It refers to the last use, if the agent has continued since.
    fn user_message(&mut self, text: &str) {
        let text = clip(text, MAX_MESSAGE);
        let previous = self.last_message.replace(text.clone());
        let waiting = mem::take(&mut self.open).into_iter();
        // A message before the agent continued cannot be about the use.
        let (answered, open): (Vec<_>, Vec<_>) = waiting.partition(|open| open.turns > 0);
        self.open = open;
        let last = answered.len().saturating_sub(1);
        for (position, open) in answered.into_iter().enumerate() {
            let next = (position == last).then(|| (text.clone(), previous.clone()));
            self.done.extend(open.end(next));
        }
    }
}

impl OpenUse {
    /// Returns the finished use, or `None` if its result is unknown.
    fn end(self, next: Option<(String, Option<String>)>) -> Option<SkillUse> {
        let (mut status, error) = match self.ended {
            Some(ended) => ended,
            // Called by name: it counts as run once the agent has continued.
            None if self.call_id.is_none() && (self.turns > 0 || self.broken) => {
                (ExecutionStatus::Success, None)
            }
            None => return None,
        };
        if self.broken && status == ExecutionStatus::Success {
            status = ExecutionStatus::Error;
        }
        // A clock that was set back makes the difference negative, which no `u32` holds.
        let milliseconds = self
            .at
            .zip(self.last)
            .and_then(|(at, last)| u32::try_from(last.duration_since(at).as_millis()).ok());
        Some(SkillUse {
            skill: self.skill,
            key: self.key,
            status,
            error: error.or_else(|| self.broken.then(|| "the model's provider failed".to_owned())),
            turns: self.turns,
            at: self.at,
            milliseconds,
            next,
        })
    }
}

impl SessionSink for SkillUseCollector {
    fn event(&mut self, event: Event<'_>) {
        if event.role == EventRole::User
            && event.origin == EventOrigin::Human
            && !event.text.is_empty()
        {
            self.user_message(&event.text);
            return;
        }
        for open in &mut self.open {
            open.last = event.time.max(open.last);
            if event.mark == Some(EventMark::ApiError) {
                open.broken = true;
            } else if event.role == EventRole::Assistant {
                // After an answer, the error of the provider was overcome by a retry.
                open.broken = false;
                // Several events can belong to one model call.
                open.turns += u32::from(!event.continues);
            }
        }
        for call in &event.calls {
            if let Some(name) = used_skill(call) {
                self.start_use(&name, &event, Some(call));
            }
        }
        for result in &event.results {
            self.result(result);
        }
        if event.origin == EventOrigin::Harness && event.role == EventRole::User {
            self.notice(&event);
        }
    }

    fn end(&mut self, head: SessionHead) {
        let this = mem::take(self);
        self.sessions = this.sessions;
        let open = this.open.into_iter().filter_map(|open| open.end(None));
        let uses: Vec<SkillUse> = this.done.into_iter().chain(open).collect();
        if !uses.is_empty() {
            self.sessions.push((head, uses));
        }
    }

    fn restart(&mut self) {
        *self = Self { sessions: mem::take(&mut self.sessions), ..Self::default() };
    }

    fn wants_outputs(&self) -> bool {
        false
    }
}

/// Returns the skill used by a tool call.
fn used_skill(call: &ToolCall<'_>) -> Option<String> {
    let tool = call.name.as_str();
    if !matches!(tool, "Skill" | "skill" | "skill_view") {
        return None;
    }
    let input: SkillInput = serde_json::from_str(&call.arguments).ok()?;
    // With a path, Hermes reads one more file of the skill.
    if tool == "skill_view" && input.file_path.is_some_and(|path| !path.is_empty()) {
        return None;
    }
    input.skill.or(input.name).or(input.command)
}

/// Returns the skills invoked in Hermes, from the notice that it inserts into the conversation.
fn invoked_skills(text: &str) -> Vec<&str> {
    let quoted = |beginning: &str| text.strip_prefix(beginning)?.split('"').next();
    let called =
        ["[IMPORTANT: The user has invoked the \"", "[SYSTEM: The user has invoked the \""];
    if let Some(names) = called.into_iter().find_map(quoted) {
        // Several skills are in one pair of quotes, each as typed.
        return if names.starts_with('/') { names.split(' ').collect() } else { vec![names] };
    }
    let loaded = quoted("[IMPORTANT: The \"");
    let is_loaded =
        text.lines().next().is_some_and(|line| line.contains("\" skill is auto-loaded."));
    loaded.filter(|_| is_loaded).into_iter().collect()
}

/// Returns the text between two markers.
fn element<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    Some(text.split_once(open)?.1.split_once(close)?.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{SkillUse, SkillUseCollector};
    use selftest_grading::improve::skill::ExecutionStatus;
    use selftest_sessions::{SessionSource, read};

    /// Returns the uses in one Claude Code session, given as speaker and content.
    fn claude(records: &[(&str, Value)]) -> Vec<SkillUse> {
        let lines = records.iter().enumerate().map(|(number, (kind, content))| {
            let is_meta = content.as_str().is_some_and(|text| text.starts_with("Base directory"));
            let mut record = json!({
                "type": kind, "uuid": format!("u{number}"),
                "parentUuid": number.checked_sub(1).map(|before| format!("u{before}")),
                "sessionId": "s", "version": "2.1.3", "isMeta": is_meta,
                "timestamp": format!("2026-11-20T10:00:{number:02}Z"),
                "message": { "role": kind, "content": content },
            });
            if *kind == "assistant" {
                record["message"]["id"] = format!("m{number}").into();
            }
            record.to_string() + "\n"
        });
        uses("s.jsonl", &lines.collect::<String>())
    }

    /// Returns the uses in one Hermes snapshot.
    fn hermes(messages: &Value) -> Vec<SkillUse> {
        let snapshot = json!({
            "session_id": "s", "session_start": "2026-11-20T10:00:00", "messages": messages,
        });
        uses("session_s.json", &snapshot.to_string())
    }

    fn uses(name: &str, text: &str) -> Vec<SkillUse> {
        let mut uses = SkillUseCollector::default();
        read(&SessionSource::bytes(name, text.to_owned()), &mut uses).unwrap();
        let sessions = uses.into_sessions();
        assert!(sessions.len() < 2, "{sessions:?}");
        sessions.into_iter().flat_map(|(_, uses)| uses).collect()
    }

    fn call(id: &str, skill: &str) -> (&'static str, Value) {
        let input = json!({ "skill": skill });
        ("assistant", json!([{ "type": "tool_use", "id": id, "name": "Skill", "input": input }]))
    }

    fn result(id: &str, words: &str, is_error: bool) -> (&'static str, Value) {
        let block = json!({
            "type": "tool_result", "tool_use_id": id, "content": words, "is_error": is_error,
        });
        ("user", json!([block]))
    }

    fn says(text: &str) -> (&'static str, Value) {
        ("assistant", json!([{ "type": "text", "text": text }]))
    }

    fn asks(text: &str) -> (&'static str, Value) {
        ("user", json!(text))
    }

    fn text_of(skill: &str) -> (&'static str, Value) {
        asks(&format!("Base directory for this skill: /home/me/.claude/skills/{skill}\n\n# Do it"))
    }

    /// docs/spec/skills-and-signals.md#next-message: a skill that was used in a turn is an execution.
    #[test]
    fn a_skill_called_by_the_model_is_one_execution_with_the_next_message() {
        let uses = claude(&[
            asks("release 1.2"),
            call("t1", "kit:release"),
            result("t1", "Launching skill: kit:release", false),
            text_of("release"),
            says("Reading the changelog."),
            says("Released."),
            asks("thanks, perfect"),
            says("You are welcome."),
            asks("now the docs"),
        ]);
        let [one] = &uses[..] else { panic!("{uses:?}") };
        assert_eq!((one.skill.as_str(), one.key.as_str()), ("kit:release", "t1"));
        assert_eq!(
            (one.status, one.turns, one.milliseconds),
            (ExecutionStatus::Success, 2, Some(4000))
        );
        assert_eq!(one.at.unwrap().to_string(), "2026-11-20T10:00:01Z");
        assert_eq!(one.next, Some(("thanks, perfect".to_owned(), Some("release 1.2".to_owned()))));
    }

    /// docs/spec/skills-and-signals.md#next-message: `execution_status` is "error" if the step has an
    /// error.
    #[test]
    fn the_result_of_the_call_is_the_status() {
        let status = |words: &str, is_error| {
            let uses = claude(&[
                asks("go"),
                call("t1", "kit"),
                result("t1", words, is_error),
                says("Hm."),
            ]);
            uses.into_iter().map(|one| (one.status, one.error)).next()
        };
        assert_eq!(status("Launching skill: kit", false), Some((ExecutionStatus::Success, None)));
        let failed = status("<tool_use_error>Unknown skill: kit</tool_use_error>", true);
        let words = Some("Unknown skill: kit".to_owned());
        assert_eq!(failed, Some((ExecutionStatus::Error, words)));
        let late = status("the skill timed out after 60 s", true).unwrap();
        assert_eq!(late.0, ExecutionStatus::Timeout);
        let refused = "The user doesn't want to proceed with this tool use.";
        assert_eq!(status(refused, true), None, "a call that was refused did not run");
        let pending = claude(&[asks("go"), call("t1", "kit")]);
        assert_eq!(pending, [], "nothing says how it ended");
    }

    /// docs/spec/skills-and-signals.md#next-message: skills requested by the user or by the model.
    #[test]
    fn a_skill_called_by_the_person_is_an_execution_too() {
        let command = "<command-message>kit:release is running…</command-message>\n\
                   <command-name>/kit:release</command-name>\n<command-args>1.2</command-args>";
        let uses = claude(&[
            asks("hello"),
            says("Hello."),
            asks(command),
            text_of("release"),
            says("Released."),
            asks("release 1.2 again"),
        ]);
        let [one] = &uses[..] else { panic!("{uses:?}") };
        assert_eq!((one.skill.as_str(), one.status), ("kit:release", ExecutionStatus::Success));
        assert_eq!(one.next.as_ref().unwrap().0, "release 1.2 again");
        let builtin = "<command-name>/clear</command-name>";
        assert_eq!(claude(&[asks("hello"), asks(builtin), says("Cleared.")]), []);
        // An earlier command with another name does not rename the skill.
        let other = claude(&[asks("hello"), asks(builtin), text_of("release"), says("Done.")]);
        assert_eq!(other[0].skill, "release");
        let unanswered = claude(&[asks("hello"), says("Hi."), asks(command), text_of("release")]);
        assert_eq!(unanswered, [], "the agent has not gone on");
    }

    /// docs/spec/skills-and-signals.md#next-message: the next message updates the execution before it.
    #[test]
    fn of_several_uses_before_a_message_the_last_one_gets_it() {
        let uses = claude(&[
            asks("go"),
            call("t1", "one"),
            result("t1", "Launching skill: one", false),
            call("t2", "two"),
            result("t2", "Launching skill: two", false),
            says("Done."),
            asks("thanks"),
        ]);
        let next: Vec<_> =
            uses.iter().map(|one| (one.skill.as_str(), one.next.is_some())).collect();
        assert_eq!(next, [("one", false), ("two", true)]);
    }

    #[test]
    fn a_message_before_the_agent_went_on_is_not_about_the_use() {
        let uses = claude(&[
            asks("go"),
            call("t1", "kit"),
            asks("and hurry"),
            result("t1", "Launching skill: kit", false),
            says("Done."),
            asks("thanks"),
        ]);
        assert_eq!(uses[0].next, Some(("thanks".to_owned(), Some("and hurry".to_owned()))));
    }

    #[test]
    fn a_provider_that_fails_to_the_end_fails_the_execution() {
        let broken = json!({
            "type": "assistant", "uuid": "x", "sessionId": "s", "isApiErrorMessage": true,
            "timestamp": "2026-11-20T10:01:00Z",
            "message": { "role": "assistant", "model": "<synthetic>",
                         "content": [{ "type": "text", "text": "API Error: 529" }] },
        });
        let mut lines = String::new();
        for (kind, content) in
            [asks("go"), call("t1", "kit"), result("t1", "Launching skill: kit", false)]
        {
            let message = json!({ "role": kind, "content": content });
            lines += &json!({ "type": kind, "sessionId": "s", "message": message }).to_string();
            lines.push('\n');
        }
        let uses = uses("s.jsonl", &format!("{lines}{broken}\n"));
        assert_eq!(uses[0].status, ExecutionStatus::Error);
        assert_eq!(uses[0].error.as_deref(), Some("the model's provider failed"));
    }

    /// docs/spec/skills-and-signals.md#next-message, in sessions of Hermes.
    #[test]
    fn hermes_looks_at_a_skill_with_its_tool() {
        let view = |id: &str, arguments: &Value, content: &Value| {
            let function = json!({ "name": "skill_view", "arguments": arguments.to_string() });
            [
                json!({ "role": "assistant", "tool_calls": [{ "id": id, "function": function }] }),
                json!({ "role": "tool", "tool_call_id": id, "content": content.to_string() }),
            ]
        };
        let good = json!({ "success": true, "name": "plan", "content": "# Plan" });
        let bad = json!({ "success": false, "error": "Skill 'pln' not found." });
        let said = |role: &str, text: &str| json!({ "role": role, "content": text });
        let mut messages = vec![said("user", "plan it")];
        messages.extend(view("c1", &json!({ "name": "plan" }), &good));
        messages.extend(view("c2", &json!({ "name": "plan", "file_path": "a.md" }), &good));
        messages.extend(view("c3", &json!({ "name": "pln" }), &bad));
        messages.extend([said("assistant", "Planned."), said("user", "thank you")]);
        let uses = hermes(&json!(messages));
        let found: Vec<_> = uses.iter().map(|one| (one.skill.as_str(), one.status)).collect();
        assert_eq!(found, [("plan", ExecutionStatus::Success), ("pln", ExecutionStatus::Error)]);
        assert_eq!(uses[1].error.as_deref(), Some("Skill 'pln' not found."));
    }

    /// docs/spec/skills-and-signals.md#next-message, in sessions of Hermes.
    #[test]
    fn hermes_is_told_to_use_skills_by_name() {
        let single = "[IMPORTANT: The user has invoked the \"pr\" skill, indicating they want you to \
        follow its instructions. The full skill content is loaded below.]\n\n# PR\n\nThe user has \
        provided the following instruction alongside the skill invocation: open one";
        let old = single.replace("[IMPORTANT:", "[SYSTEM:");
        let several = "[IMPORTANT: The user has invoked the \"/pr /tests\" skill bundle, loading 2.]\n\
        User instruction: open one\n\n[Loaded as part of the bundle]\n# PR";
        let loaded = "[IMPORTANT: The \"ops\" skill is auto-loaded. Follow its instructions for this \
        session.]\n\nbody\nResolve, then run them with the terminal tool using the absolute path.\n\
        \nis it up?";
        for (text, skills) in [
            (single, &["pr"][..]),
            (&old, &["pr"]),
            (several, &["pr", "tests"]),
            (loaded, &["ops"]),
        ] {
            let uses = hermes(&json!([
                { "role": "user", "content": text },
                { "role": "assistant", "content": "Opened." },
                { "role": "user", "content": "thanks" },
            ]));
            let found: Vec<_> = uses.iter().map(|one| one.skill.as_str()).collect();
            assert_eq!(found, skills, "{text}");
            // Text typed together with the command is the request, not a reaction to the skill.
            let (next, previous) = uses.last().unwrap().next.clone().unwrap();
            assert_eq!(next, "thanks");
            assert!(
                previous.is_some_and(|said| said == "open one" || said == "is it up?"),
                "{text}"
            );
        }
        let notice = json!([
            { "role": "user", "content": "[IMPORTANT: The \"x\" is down.]\n\nhello" },
            { "role": "assistant", "content": "Hi." },
        ]);
        assert_eq!(hermes(&notice), []);
    }

    #[test]
    fn what_is_no_skill_is_no_use() {
        let tool = |name: &str, input: Value| {
            let block = json!([{ "type": "tool_use", "id": "t", "name": name, "input": input }]);
            claude(&[asks("go"), ("assistant", block), result("t", "ok", false), says("Done.")])
        };
        assert_eq!(tool("Bash", json!({ "skill": "x" })), []);
        assert_eq!(tool("Skill", json!({ "skill": "  / " })), []);
        assert_eq!(tool("Skill", json!({ "skill": 7 })), []);
        assert_eq!(tool("Skill", json!("x")), []);
        assert_eq!(tool("Skill", json!({ "command": "old-form" }))[0].skill, "old-form");
    }
}
