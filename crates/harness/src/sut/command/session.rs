//! One session of the `command` adapter: JSON Lines or plain text, over one process or several.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;

use super::CommandSetup;
use super::diagnosis::{self, OddLine, ProgramTrace};
use super::process::{ProgramOutput, StderrBuffer, SupervisedProcess, describe};
use super::scratch::{ReadMarks, ScratchFolder};
use crate::sut::answer::SeenAnswer;
use crate::sut::project::{AnchoredFolder, HiddenFiles, Workspace};
use crate::sut::skill::SKILL_FILE;
use crate::sut::sut_settings::{COMMAND_SECTION, ProgramProtocol, PromptInput};
use crate::sut::{
    SandboxEvidence, SandboxState, SkillDelivery, SutError, SutEvidence, SutReply, SutSession,
    SutTask, answer,
};
use selftest_checks::check::{FileChanges, ObservedToolCall};
use selftest_checks::scenario::TaskStatus;
use selftest_sandbox::{AttemptCount, CaseGroup, SandboxLevel, SandboxPolicy, read_notes};
use selftest_text::normal::{decode, decode_json};
use selftest_text::one_line;
use selftest_text::redact::Redactor;

/// Maximum number of ignored lines, such as `log`, in one session.
const MAX_OTHER_LINES: u32 = 10_000;

/// Time that a program has to exit by itself after its answer.
const GRACE: Duration = Duration::from_secs(1);

/// Time that a program may keep running after it closed its output without an answer.
const SILENT_LIMIT: Duration = Duration::from_secs(5);

/// Maximum number of tool calls to record per answer.
const MAX_TOOL_CALLS: usize = 10_000;

/// Maximum length of untrusted text in an error message, in bytes.
const MAX_QUOTE: usize = 400;

/// Maximum length of printed text without a line break in which a hint is looked for, in bytes.
const MAX_PENDING: usize = 64 * 1024;

pub(in crate::sut) struct CommandSession {
    setup: Arc<CommandSetup>,
    task: SutTask,
    policy: SandboxPolicy,
    process: Option<SupervisedProcess>,
    /// The conversation, for a `text` program, which is restarted for each turn.
    conversation: Vec<(&'static str, String)>,
    stderr: Arc<Mutex<StderrBuffer>>,
    exit: Option<String>,
    other_lines: u32,
    /// The start of what the program printed that is no answer.
    printed: String,
    /// The line that ended the last turn without an answer.
    odd_line: Option<OddLine>,
    /// True if the program has answered at least once.
    has_answered: bool,
    /// The protocol rule that the program violated, if any.
    broken_rule: Option<String>,
    /// Where the skill was put, if there is one.
    skill: Option<String>,
    /// Watches whether the program reads it.
    read_marks: ReadMarks,
    /// True if a call failed or was dropped, so that the program gets no grace period.
    broken: bool,
    /// True if the last turn printed nothing and wrote files.
    has_only_written: bool,
    /// Last, because fields drop in this order and the program has to be stopped before its folders
    /// are removed.
    resources: CaseResources,
}

/// A skill that was put where the program can read it.
pub(super) struct LaidSkill {
    /// Where: `in .claude/skills/ferry`.
    pub(super) offered: String,
    /// The files that show whether it was read.
    pub(super) files: Vec<PathBuf>,
}

/// Resources created for one case and removed with it.
pub(super) struct CaseResources {
    /// The copy of the project that the program works in, if any, with its initial snapshot.
    pub(super) workspace: Option<Workspace>,
    pub(super) scratch: ScratchFolder,
    /// Its control group, if available.
    pub(super) group: Option<CaseGroup>,
}

/// The part of the project that a program may read, for adapters that read files on its behalf.
#[derive(Debug, Clone)]
pub(in crate::sut) struct GrantedView {
    /// The working directory.
    pub(in crate::sut) root: PathBuf,
    /// The same, opened before the program started, if the program can write to it.
    pub(in crate::sut) anchor: Option<AnchoredFolder>,
    /// Hidden paths: absolute, or relative to the working directory.
    pub(in crate::sut) hidden: Vec<PathBuf>,
    /// Redacts secrets.
    pub(in crate::sut) redactor: Arc<Redactor>,
}

/// A result of a `json_lines` program.
struct ProgramResult {
    line: ResultLine,
    output: SeenAnswer,
}

/// The line of a `json_lines` program that ends a turn without an answer.
struct UnusableLine {
    error: SutError,
    line: Option<OddLine>,
}

impl From<SutError> for UnusableLine {
    fn from(error: SutError) -> Self {
        Self { error, line: None }
    }
}

/// A line of a `json_lines` program. Its `output` is read separately.
#[derive(Deserialize)]
struct ResultLine {
    status: TaskStatus,
    tool_calls: Option<Vec<ObservedToolCall>>,
    /// Not worth an error if it is wrong.
    tokens: Option<Value>,
    session_id: Option<String>,
    task_group_id: Option<String>,
}

impl ResultLine {
    /// Returns the violated rule if the line names the session or task group of another case.
    fn identity_violation(&self, task: &SutTask) -> Option<String> {
        let pairs = [
            ("session", &self.session_id, task.session_id.as_str()),
            ("task group", &self.task_group_id, task.task_group_id.as_str()),
        ];
        let (what, named, own) = pairs
            .into_iter()
            .find(|(_, named, own)| named.as_ref().is_some_and(|named| named != own))?;
        let named = one_line(named.as_deref().unwrap_or_default(), MAX_QUOTE);
        Some(format!("it answered for the {what} `{named}`, and not for its own, {own}"))
    }
}

impl CommandSession {
    pub(super) fn new(
        setup: Arc<CommandSetup>,
        task: SutTask,
        resources: CaseResources,
        skill: Option<LaidSkill>,
        policy: SandboxPolicy,
    ) -> Self {
        let probe = resources.scratch.path.join("read-probe");
        let (skill, files) = skill.map(|laid| (laid.offered, laid.files)).unzip();
        let read_marks = ReadMarks::of(files.unwrap_or_default(), &probe);
        Self {
            setup,
            task,
            resources,
            policy,
            process: None,
            conversation: Vec::new(),
            stderr: Arc::default(),
            exit: None,
            other_lines: 0,
            printed: String::new(),
            odd_line: None,
            has_answered: false,
            broken_rule: None,
            skill,
            read_marks,
            broken: false,
            has_only_written: false,
        }
    }

    /// Returns the running program, and starts it if necessary, for an adapter with its own
    /// protocol. The turn counts as failed until [`CommandSession::answered`] is called.
    pub(in crate::sut) fn process(&mut self) -> Result<&mut SupervisedProcess, SutError> {
        // A call that is dropped at its time limit never comes to the line that takes this back.
        self.broken = true;
        let process = match self.process.take() {
            Some(process) => process,
            None => self.start(&self.setup.program()?)?,
        };
        Ok(self.process.insert(process))
    }

    /// Marks the turn as finished successfully.
    pub(in crate::sut) fn mark_answered(&mut self) {
        self.broken = false;
        self.has_answered = true;
    }

    /// Returns the part of the project that the program may read.
    pub(in crate::sut) fn view(&self) -> GrantedView {
        let host = &self.setup.host;
        let HiddenFiles { answers, secrets } = host.hidden();
        GrantedView {
            root: self.workspace().unwrap_or(&host.project).to_owned(),
            anchor: self.resources.workspace.as_ref().map(|copy| copy.anchor().clone()),
            hidden: [&host.protected[..], answers, secrets].concat(),
            redactor: Arc::clone(&host.redactor),
        }
    }

    async fn turn(&mut self, said: &str, is_reply: bool) -> Result<SutReply, SutError> {
        self.broken = true;
        let answer = match self.setup.speech.protocol {
            ProgramProtocol::JsonLines => self.json_turn(said, is_reply).await,
            ProgramProtocol::Text => self.text_turn(said).await,
        };
        self.broken = answer.is_err();
        self.has_answered |= answer.is_ok();
        answer
    }

    /// Returns the evidence that the sandbox has collected so far.
    fn sandbox(&self) -> SandboxEvidence {
        let (mut attempts, left_out) = read_notes(&self.resources.scratch.notes());
        for AttemptCount { attempt, .. } in &mut attempts {
            attempt.what = self.setup.host.redactor.apply(&attempt.what).into_owned();
        }
        let standing = self.setup.host.standing();
        let is_enforced =
            standing.is_ok_and(|it| it.level == SandboxLevel::Full && it.watches_calls);
        let mut evidence = SandboxEvidence::new(attempts, left_out, is_enforced);
        if let Some(broken) = &self.broken_rule {
            evidence.state = SandboxState::Tainted;
            evidence.forbidden.push(broken.clone());
        }
        evidence.add_forbidden(self.setup.host.fail_on_attempts);
        evidence
    }

    fn start(&mut self, program: &[OsString]) -> Result<SupervisedProcess, SutError> {
        self.read_marks.set();
        let setup = &self.setup;
        let mut environment = super::process::environment(
            &setup.host.environment,
            &setup.settings,
            &self.resources.scratch.path,
            &self.task,
        );
        if self.skill.is_some() {
            let file = self.resources.scratch.path.join(SKILL_FILE).to_string_lossy().into_owned();
            environment.insert(super::process::SKILL_FILE.to_owned(), file);
        }
        let folder = self.workspace().unwrap_or(&setup.host.project);
        SupervisedProcess::start(
            &setup.host.harness,
            &self.policy,
            program,
            &environment,
            folder,
            &self.stderr,
        )
    }

    async fn json_turn(&mut self, said: &str, is_reply: bool) -> Result<SutReply, SutError> {
        let message = if is_reply {
            json!({ "type": "reply", "reply": said })
        } else {
            json!({
                "type": "task",
                "session_id": self.task.session_id,
                "task_group_id": self.task.task_group_id,
                "task_type": self.task.task_type,
                "prompt": said,
            })
        };
        if self.process.is_none() {
            if is_reply {
                return Err(SutError::failed("a reply needs a task before it"));
            }
            self.process = Some(self.start(&self.setup.program()?)?);
        }
        let Some(process) = &mut self.process else { unreachable!("started above") };
        // A result sent before the reply cannot answer it.
        if is_reply && process.stdout.has_early_result().await? {
            let rule = "it answered before it was asked";
            self.broken_rule = Some(rule.to_owned());
            return Err(SutError::failed(rule));
        }
        let mut stdin = process.stdin.take();
        let write = write(stdin.as_mut(), format!("{message}\n").into_bytes());
        let read = read_result(&mut process.stdout, &mut self.other_lines, &mut self.printed);
        let read = while_writing(write, read).await;
        // Not closed, because a reply may follow.
        process.stdin = stdin;
        let line = read.map_err(|odd| {
            self.odd_line = odd.line;
            odd.error
        })?;
        let Some(ProgramResult { line, output }) = line else {
            return Err(self.no_answer().await);
        };
        if let Some(rule) = line.identity_violation(&self.task) {
            self.broken_rule = Some(rule.clone());
            return Err(SutError::failed(rule));
        }
        let redactor = &self.setup.host.redactor;
        let tool_calls = line.tool_calls.map(|calls| {
            let kept = calls.into_iter().take(MAX_TOOL_CALLS);
            kept.map(|call| redacted(&call, redactor)).collect()
        });
        self.odd_line = match &output {
            SeenAnswer::Missing(_) => Some(OddLine::Result),
            SeenAnswer::Unfinished(_) => Some(OddLine::Unfinished),
            SeenAnswer::Text(_) | SeenAnswer::Empty | SeenAnswer::Failed(_) => None,
        };
        let mut reply = output.into_reply(line.status, redactor)?;
        let tokens = line.tokens.as_ref().and_then(Value::as_u64);
        if tokens.is_none() && line.tokens.is_some() {
            reply
                .notes
                .push("`tokens` of the result is no whole number, and was left out".to_owned());
        }
        Ok(SutReply { tool_calls, tokens, ..reply })
    }

    /// Returns the error for output that ended before an answer.
    pub(in crate::sut) async fn no_answer(&mut self) -> SutError {
        let Some(process) = &mut self.process else { unreachable!("it was just read from") };
        // Its exit, which usually follows, says more than the closed pipe.
        let ended = tokio::time::timeout(SILENT_LIMIT, process.wait()).await;
        let what = match ended {
            Ok(Some(status)) => {
                let how = describe(status);
                self.exit = Some(how.clone());
                self.process = None;
                let what = format!("the program ended without an answer: {how}");
                return self.ended(&what, status.code());
            }
            _ => "the program closed its output without an answer and runs on".to_owned(),
        };
        self.failed(&what)
    }

    /// Creates the error of a program that ended without an answer.
    fn ended(&self, what: &str, code: Option<i32>) -> SutError {
        let error = self.failed(what);
        // A program that has answered once can be started. Only a first exit is about the setup and
        // ends the run.
        if self.has_answered || !diagnosis::could_not_start(code, &self.stderr_text()) {
            return error;
        }
        let hint = Some(format!("correct {}.run in the config", self.setup.section));
        SutError::NotStarted { what: error.to_string(), hint }
    }

    /// Returns the redacted stderr so far.
    fn stderr_text(&self) -> String {
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).text();
        let stderr = stderr.map(|text| self.setup.host.redactor.apply(&text).into_owned());
        stderr.unwrap_or_default()
    }

    /// Explains the missing answer of a program that left these files.
    fn hint(&self, files: &[String]) -> Option<String> {
        // A question such as `Continue? ` has no line break and is still in the buffer.
        let rest = self.process.as_ref().map(|process| process.stdout.pending());
        let rest = rest.unwrap_or_default();
        // A question is at the end, and patterns are slow on megabytes.
        let rest = String::from_utf8_lossy(&rest[rest.len().saturating_sub(MAX_PENDING)..]);
        let redactor = &self.setup.host.redactor;
        let printed = redactor.apply(&format!("{}{rest}", self.printed)).into_owned();
        let is_agent = self.setup.section != COMMAND_SECTION;
        diagnosis::hint(&ProgramTrace {
            protocol: (!is_agent).then_some(self.setup.speech.protocol),
            is_prompt_argument: self.setup.speech.prompt_input == PromptInput::Argument,
            odd_line: self.odd_line,
            printed: &printed,
            stderr: &self.stderr_text(),
            exit: self.exit.as_deref().filter(|_| self.process.is_none()),
            files,
            section: self.setup.section,
        })
    }

    /// Creates an error with the last line of stderr, which usually states the reason.
    pub(in crate::sut) fn failed(&self, what: &str) -> SutError {
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).last_line();
        let stderr = stderr.map(|line| self.setup.host.redactor.apply(&line).into_owned());
        let mut what = match stderr {
            Some(line) => format!("{what}; its last words: {}", one_line(&line, MAX_QUOTE)),
            None => what.to_owned(),
        };
        // A denied access is usually the cause of the failure.
        let (attempts, _) = read_notes(&self.resources.scratch.notes());
        let denied = attempts.iter().find_map(|it| Some((it, it.attempt.kind.granted_by()?)));
        if let Some((AttemptCount { attempt, .. }, key)) = denied {
            let attempt = self.setup.host.redactor.apply(&attempt.to_string()).into_owned();
            let key = key.replace(COMMAND_SECTION, self.setup.section);
            what += &format!("; the sandbox refused: {attempt}, which {key} grants");
        }
        SutError::failed(what)
    }

    async fn text_turn(&mut self, said: &str) -> Result<SutReply, SutError> {
        self.conversation.push(("User", said.to_owned()));
        let prompt = prompt(&self.conversation);
        let mut program = self.setup.program()?;
        let stdin = match self.setup.speech.prompt_input {
            PromptInput::Stdin => prompt.into_bytes(),
            PromptInput::Argument => {
                insert_prompt(&mut program, &prompt);
                Vec::new()
            }
        };
        let started = self.start(&program)?;
        let process = self.process.insert(started);
        let mut pipe = process.stdin.take();
        let feed = async move {
            write(pipe.as_mut(), stdin).await;
            // Closes stdin, so that the program sees the end of its prompt.
            drop(pipe);
        };
        let answer = while_writing(feed, process.stdout.read_to_end()).await?;
        let status = process.wait().await;
        self.process = None;
        let how = status.map_or_else(|| "ended".to_owned(), describe);
        self.exit = Some(how.clone());
        if !status.is_some_and(|status| status.success()) {
            self.printed = clipped(&answer);
            let code = status.and_then(|status| status.code());
            return Err(self.ended(&format!("the program failed: {how}"), code));
        }
        if answer.is_empty() {
            let changes = self.files(&[]).await.unwrap_or_default();
            self.has_only_written = !changes.created.is_empty() || !changes.changed.is_empty();
            if !self.has_only_written {
                return Err(self.failed("the program printed no answer"));
            }
            // Its files may be all that was asked for, which checks know.
            let note = "it printed nothing, and wrote files in its copy of the project";
            return Ok(SutReply {
                status_rule: Some(answer::EMPTY_ANSWER.to_owned()),
                notes: vec![note.to_owned()],
                ..SutReply::new(TaskStatus::Complete, "")
            });
        }
        let decoded = decode(&answer);
        let seen = match self.setup.speech.output.as_str() {
            "" => SeenAnswer::printed(&decoded.text, &decoded.changes),
            pointer => SeenAnswer::in_json(&decoded.text, pointer, &decoded.changes),
        };
        let (status, rule) = answer::infer_status(seen.text())
            .unwrap_or((TaskStatus::Complete, answer::EMPTY_ANSWER));
        let mut reply = seen.into_reply(status, &self.setup.host.redactor)?;
        if speaks_json_lines(&reply.output) {
            let hint = "hint: set sut.command.protocol: json_lines";
            reply.notes.push(format!("the answer is a JSON Lines result, taken as text; {hint}"));
        }
        self.conversation.push(("Assistant", reply.output.clone()));
        Ok(SutReply { status_rule: Some(rule.to_owned()), ..reply })
    }
}

impl SutSession for CommandSession {
    fn files<'a>(&'a mut self, named: &'a [String]) -> BoxFuture<'a, Option<FileChanges>> {
        async move {
            // The report reads the files itself.
            self.read_marks.stop();
            let workspace = self.resources.workspace.clone()?;
            let named = named.to_vec();
            tokio::task::spawn_blocking(move || workspace.report(&named)).await.ok()
        }
        .boxed()
    }

    fn take_baseline(&mut self) -> BoxFuture<'_, ()> {
        async move {
            let Some(workspace) = self.resources.workspace.clone() else { return };
            let settled = tokio::task::spawn_blocking(move || workspace.with_new_baseline()).await;
            if let Ok(settled) = settled {
                self.resources.workspace = Some(settled);
            }
        }
        .boxed()
    }

    fn workspace(&self) -> Option<&Path> {
        self.resources.workspace.as_ref().map(Workspace::folder)
    }

    fn submit<'a>(&'a mut self, prompt: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        self.turn(prompt, false).boxed()
    }

    fn reply<'a>(&'a mut self, reply: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        self.turn(reply, true).boxed()
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, SutEvidence> {
        let task = self.task.clone();
        let speaks_json = self.setup.speech.protocol == ProgramProtocol::JsonLines;
        self.close_after(
            move |unread| {
                if speaks_json { violation_in_unread(unread, &task) } else { None }
            },
        )
    }
}

impl CommandSession {
    /// Marks the case as tainted, because the program broke this rule.
    pub(in crate::sut) fn break_rule(&mut self, rule: String) {
        // The first one stays, because what followed may come of it.
        self.broken_rule.get_or_insert(rule);
    }

    /// Closes the session. `find_violation` returns the rule that is broken by what the program wrote
    /// after its last answer, if any.
    pub(in crate::sut) fn close_after(
        mut self: Box<Self>,
        find_violation: impl FnOnce(&[u8]) -> Option<String> + Send + 'static,
    ) -> BoxFuture<'static, SutEvidence> {
        async move {
            let mut hint = None;
            if self.broken || self.has_only_written {
                let CaseResources { workspace, scratch, .. } = &self.resources;
                let (folder, notes) = (scratch.path.clone(), scratch.notes());
                let files = written_files(workspace.clone(), folder, notes).await;
                hint = self.hint(&files);
            }
            if let Some(process) = self.process.take() {
                // A program that failed has had its chance to exit.
                let grace = if self.broken { Duration::ZERO } else { GRACE };
                let stopped = process.stop(grace).await;
                self.exit = Some(stopped.exit);
                // Of a program that failed there is no answer to be tainted.
                if !self.broken {
                    let violation = match stopped.unread {
                        Some(unread) => find_violation(&unread),
                        None => Some("it wrote more after its answer than is read".to_owned()),
                    };
                    if let Some(rule) = violation {
                        self.break_rule(rule);
                    }
                }
            }
            // Ends what is left of its processes before their folders are removed below.
            self.resources.group = None;
            let read = self.read_marks.look();
            let mut notes = Vec::new();
            let died = self.exit.as_deref().filter(|exit| {
                let is_death = exit.starts_with("exit code") || exit.starts_with("killed");
                is_death && *exit != "exit code 0"
            });
            if let Some(exit) = died.filter(|_| self.has_answered && !self.broken) {
                notes.push(format!("the program ended after its answer, which was kept: {exit}"));
            }
            if self.other_lines > 0 {
                notes.push(format!("{} lines of other types were read over", self.other_lines));
            }
            if let Err(error) = self.resources.scratch.remove().await {
                notes.push(format!(
                    "cannot remove {}: {error}",
                    self.resources.scratch.path.display()
                ));
            }
            let stderr = Some(self.stderr_text()).filter(|text| !text.is_empty());
            let sandbox = Some(self.sandbox());
            let skill = self.skill.map(|offered| SkillDelivery { offered, read });
            SutEvidence { stderr, exit: self.exit, notes, hint, sandbox, failed_call: None, skill }
        }
        .boxed()
    }
}

/// Returns the rule that lines of a `json_lines` program after its last answer break, if any.
fn violation_in_unread(unread: &[u8], task: &SutTask) -> Option<String> {
    let lines = unread.split(|&byte| byte == b'\n');
    let mut results = lines.filter_map(|line| {
        // Only a result is an answer: logs and broken lines may come at any time.
        let value: Value = serde_json::from_str(&decode_json(line).text).ok()?;
        (value.get("type").and_then(Value::as_str) == Some("result")).then_some(value)
    });
    let value = results.next()?;
    let line = ResultLine::deserialize(&value).ok();
    let foreign = line.and_then(|line| line.identity_violation(task));
    Some(foreign.unwrap_or_else(|| "it answered again, unasked".to_owned()))
}

/// Returns true if a `text` program printed a result of the other protocol.
fn speaks_json_lines(answer: &str) -> bool {
    let last: Option<Value> =
        answer.lines().last().and_then(|line| serde_json::from_str(line).ok());
    last.is_some_and(|line| line["type"] == "result" && line.get("status").is_some())
}

fn redacted(call: &ObservedToolCall, redactor: &Redactor) -> ObservedToolCall {
    let name = redactor.apply(&call.name).into_owned();
    let text = call.arguments.to_string();
    // Redaction keeps the JSON valid unless it replaced part of the syntax; then the arguments are
    // dropped.
    let arguments = serde_json::from_str(&redactor.apply(&text)).unwrap_or(Value::Null);
    ObservedToolCall { name, arguments, failed: call.failed }
}

/// Returns the prompt of a `text` program: the first message alone, or else the conversation so
/// far.
fn prompt(conversation: &[(&'static str, String)]) -> String {
    if let [(_, only)] = conversation {
        return only.clone();
    }
    let mut text = String::new();
    for (who, what) in conversation {
        // Writing to a String cannot fail.
        let _ = write!(text, "{who}: {what}\n\n");
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns the files that the program created in its copy of the project, or at the top of its
/// scratch folder, besides the sandbox's own `notes`.
async fn written_files(
    workspace: Option<Workspace>,
    scratch: PathBuf,
    notes: PathBuf,
) -> Vec<String> {
    let listed = tokio::task::spawn_blocking(move || {
        let own = [super::WORKSPACE, super::SKILL_FILE];
        let created = workspace.map(|workspace| workspace.report(&[]).created);
        let entries = std::fs::read_dir(&scratch).into_iter().flatten().flatten();
        let others = entries.filter(|entry| entry.path() != notes).filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            // Caches and settings are no answers.
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            let is_own = name.starts_with('.') || own.contains(&name.as_str());
            (is_file && !is_own).then_some(name)
        });
        let mut files: Vec<String> = created.into_iter().flatten().chain(others).collect();
        files.sort();
        files
    });
    listed.await.unwrap_or_default()
}

/// Returns the start of what a program printed.
fn clipped(printed: &[u8]) -> String {
    let start = &printed[..printed.len().min(MAX_QUOTE)];
    String::from_utf8_lossy(start).into_owned()
}

/// Replaces `{prompt}` with the prompt, or appends it if there is no placeholder.
fn insert_prompt(program: &mut Vec<OsString>, prompt: &str) {
    let mut placed = false;
    // The program's own path is no template.
    for argument in program.iter_mut().skip(1) {
        if let Some(text) = argument.to_str().filter(|text| text.contains("{prompt}")) {
            *argument = text.replace("{prompt}", prompt).into();
            placed = true;
        }
    }
    if !placed {
        program.push(prompt.into());
    }
}

/// Writes and ignores errors: a program may ignore stdin, and its answer decides.
async fn write(stdin: Option<&mut ChildStdin>, bytes: Vec<u8>) {
    if let Some(stdin) = stdin {
        let _ = stdin.write_all(&bytes).await;
        let _ = stdin.flush().await;
    }
}

/// Drives both futures, because a program may write before it has read. The read decides the
/// result.
async fn while_writing<T>(write: impl Future<Output = ()>, read: impl Future<Output = T>) -> T {
    tokio::pin!(write, read);
    let mut written = false;
    loop {
        tokio::select! {
            answer = &mut read => return answer,
            () = &mut write, if !written => written = true,
        }
    }
}

async fn read_result(
    output: &mut ProgramOutput,
    other_lines: &mut u32,
    printed: &mut String,
) -> Result<Option<ProgramResult>, UnusableLine> {
    while let Some(line) = output.line().await? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let decoded = decode_json(&line);
        let mut garbage = |value: Option<&Value>| {
            *printed = clipped(&line);
            let quote = one_line(printed, MAX_QUOTE);
            let what = format!("expected one JSON object with a `type` per line, got: {quote}");
            UnusableLine {
                error: SutError::failed(what),
                line: Some(OddLine::of(&decoded.text, value)),
            }
        };
        let value: Value = serde_json::from_str(&decoded.text).map_err(|_| garbage(None))?;
        match value.get("type").and_then(Value::as_str) {
            Some("result") => {
                let output = SeenAnswer::at(&value, "/output", &decoded.changes);
                let result = ResultLine::deserialize(&value);
                return result.map(|line| Some(ProgramResult { line, output })).map_err(|error| {
                    let quote = one_line(&decoded.text, MAX_QUOTE);
                    let what = format!("the result is not as expected: {error}: {quote}");
                    UnusableLine { error: SutError::failed(what), line: Some(OddLine::Result) }
                });
            }
            Some(_) => {
                *other_lines += 1;
                if *other_lines > MAX_OTHER_LINES {
                    let what = format!("more than {MAX_OTHER_LINES} lines without a result");
                    return Err(SutError::failed(what).into());
                }
            }
            None => return Err(garbage(Some(&value))),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_one_prompt() {
        let said = |who, what: &str| (who, what.to_owned());
        assert_eq!(prompt(&[said("User", "hi")]), "hi");
        assert_eq!(
            prompt(&[said("User", "hi"), said("Assistant", "which?"), said("User", "both")]),
            "User: hi\n\nAssistant: which?\n\nUser: both"
        );
    }

    #[test]
    fn what_is_left_unread_breaks_a_rule_if_it_is_an_answer() {
        let now = "2026-02-06T12:34:56Z".parse().unwrap();
        let task = SutTask {
            fixtures: Arc::new([]),
            session_id: crate::sut::namespace::SessionId::fresh(now),
            task_group_id: crate::sut::namespace::TaskGroupId::fresh(now),
            task_type: crate::sut::SutTaskType::ReadInfo,
            seed: 1,
        };
        let found = |text: &str| violation_in_unread(text.as_bytes(), &task);
        assert_eq!(found(""), None);
        assert_eq!(found("bye\n{\"type\":\"log\"}\n"), None);
        let again = "{\"type\":\"log\"}\n{\"type\":\"result\",\"status\":\"COMPLETE\"}";
        assert_eq!(found(again).unwrap(), "it answered again, unasked");
        let other = "{\"type\":\"result\",\"status\":\"COMPLETE\",\"session_id\":\"x\"}\n";
        assert!(found(other).unwrap().contains("for the session `x`"));
    }

    #[test]
    fn a_result_of_the_other_protocol_is_recognised() {
        assert!(speaks_json_lines("{\"type\": \"result\", \"status\": \"COMPLETE\"}"));
        for answer in ["", "At 9.", "{\"type\": \"result\"}", "{\"status\": \"COMPLETE\"}", "[1]"] {
            assert!(!speaks_json_lines(answer), "{answer}");
        }
    }

    #[test]
    fn a_prompt_has_its_place() {
        let place = |words: &[&str]| {
            let mut program: Vec<OsString> = words.iter().map(Into::into).collect();
            super::insert_prompt(&mut program, "say {prompt}");
            program
        };
        assert_eq!(place(&["a", "-p"]), ["a", "-p", "say {prompt}"]);
        assert_eq!(place(&["a", "--ask={prompt}", "-q"]), ["a", "--ask=say {prompt}", "-q"]);
    }
}
