//! The `acp` adapter: any agent that implements the Agent Client Protocol (version 1), with one
//! process per case over stdio, sandboxed like a program of the `command` adapter.
//!
//! The harness is the client. It offers only to read files of the granted view: permission requests
//! are rejected, write requests are errors, and there is no terminal. All of them are recorded as
//! evidence. Each turn of a case is one prompt; a reply is another prompt in the same session.
//!
//! The crate `agent-client-protocol` implements the protocol in a separate task. Its lines pass through
//! this module, bounded and only during a turn.
//! Starting and sandboxing the program is up to the `command` adapter.

mod turn;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, FileSystemCapabilities, Implementation, InitializeRequest,
    NewSessionRequest, PromptRequest, ReadTextFileRequest, ReadTextFileResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionId,
    SessionModeId, SessionModeState, SessionNotification, SetSessionModeRequest, TextContent,
    WriteTextFileRequest,
};
use agent_client_protocol::{
    Agent, Client, Error, ErrorCode, Lines, on_receive_notification, on_receive_request,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::command::{CommandHost, CommandSut};
use super::skill::Skill;
use super::sut_settings::{ProgramSettings, WorkFolder};
use super::{Isolation, SutError, SutSession, SutTask, SystemUnderTest};
use crate::sut::command::{CommandSession, GrantedView};
use crate::sut::project::{read_anchored_file, read_named_file};
use crate::sut::skill::{project_folders, skills_in};
use crate::sut::{SutEvidence, SutReply};
use selftest_checks::check::FileChanges;
use selftest_checks::scenario::NamedFileError;
use selftest_text::one_line;
use turn::{AgentTurn, TurnEnd, ends_turn};

/// An agent under test.
pub struct AcpSut {
    program: CommandSut,
    /// True if the agent works in the project itself, which is then read-only.
    only_reads: bool,
    /// The redacted command line, for display.
    shown: String,
}

impl AcpSut {
    /// Creates an agent with these settings.
    pub fn new(settings: &ProgramSettings, host: CommandHost) -> Self {
        let run = host.redactor.apply(&settings.run.join(" ")).into_owned();
        let shown = selftest_text::one_line(&run, 120);
        let only_reads = settings.work_folder == WorkFolder::Project;
        Self { program: CommandSut::agent(settings.clone(), host), only_reads, shown }
    }
}

impl SystemUnderTest for AcpSut {
    fn describe(&self) -> String {
        format!("acp {}", self.shown)
    }

    fn isolation(&self) -> Isolation {
        let mut isolation = self.program.isolation();
        let rule = "each permission that the agent asks for is refused, except to load a skill of \
                    its own folder, and so is each file that it wants written for it; files are \
                    read for it that it could read itself";
        isolation.enforced.push(rule.to_owned());
        isolation
    }

    fn can_reach_project(&self) -> bool {
        self.program.can_reach_project()
    }

    fn supports_fixtures(&self) -> bool {
        self.program.supports_fixtures()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), SutError>> {
        self.program.check()
    }

    fn with_skill(&self, skill: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError> {
        if !self.supports_fixtures() {
            return Err(SutError::NotStarted {
                what: "the agent works in the project itself, where no skill can be laid for it"
                    .to_owned(),
                hint: Some("set sut.acp.work_folder to copy".to_owned()),
            });
        }
        let program = self.program.clone_with_skill(skill)?;
        Ok(Arc::new(Self { program, only_reads: self.only_reads, shown: self.shown.clone() }))
    }

    fn open<'a>(
        &'a self,
        task: &'a SutTask,
    ) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        async move {
            let session = AcpSession::new(self.program.session(task).await?, self.only_reads);
            Ok(Box::new(session) as Box<dyn SutSession>)
        }
        .boxed()
    }
}

/// Modes in which agents ask before they do more than read, strictest first: of Codex, and of
/// Claude Code, Gemini CLI and Qwen Code. Newer versions of Claude Code start in another mode.
const ASKING_MODES: [&str; 2] = ["read-only", "default"];

/// Maximum length in characters of an agent's message in an error.
const MAX_QUOTE: usize = 300;

struct AcpSession {
    program: CommandSession,
    only_reads: bool,
    turn: Arc<Mutex<AgentTurn>>,
    link: Option<AgentConnection>,
    /// Number of lines from the agent that are not messages.
    other_lines: u32,
}

/// The connection to the task that implements the protocol.
struct AgentConnection {
    /// Lines written by the agent.
    lines: mpsc::UnboundedSender<String>,
    prompts: mpsc::UnboundedSender<TurnRequest>,
    speaking: JoinHandle<()>,
    writing: JoinHandle<()>,
}

impl Drop for AgentConnection {
    fn drop(&mut self) {
        self.speaking.abort();
        // Closes the agent's stdin, so that it may exit by itself.
        self.writing.abort();
    }
}

/// Parameters for opening a session.
struct SessionOptions {
    /// Working directory of the agent.
    folder: PathBuf,
    /// True if the agent must ask before it does more than read.
    only_reads: bool,
}

/// A prompt, and the channel for its result.
struct TurnRequest {
    text: String,
    ended: oneshot::Sender<Result<TurnEnd, Error>>,
}

impl AcpSession {
    /// Creates a session with that program. If `only_reads` is set, the agent is switched to a mode
    /// in which it asks before it does anything else.
    fn new(program: CommandSession, only_reads: bool) -> Self {
        Self { program, only_reads, turn: Arc::default(), link: None, other_lines: 0 }
    }

    async fn turn(&mut self, said: &str) -> Result<SutReply, SutError> {
        lock(&self.turn).begin();
        let view = self.program.view();
        let process = self.program.process()?;
        let opening = SessionOptions { folder: view.root.clone(), only_reads: self.only_reads };
        // One connection for all turns: the program's stdin can be taken only once.
        let link = self.link.get_or_insert_with(|| {
            lock(&self.turn).set_skills(skills_in(&view.root));
            AgentConnection::new(
                process.stdin.take(),
                Arc::clone(&self.turn),
                view.clone(),
                opening,
            )
        });
        let (ended, mut end) = oneshot::channel();
        // If the task has ended, so has the sender of `end`, which reports it.
        let _ = link.prompts.send(TurnRequest { text: said.to_owned(), ended });
        // Lines behind the end of the turn. They are kept from the connection, which may handle them
        // before it says that the turn has ended.
        let (mut is_over, mut late) = (false, Vec::new());
        let end = loop {
            tokio::select! {
                biased;
                end = &mut end => break end,
                line = process.stdout.line() => match line? {
                    Some(line) if is_over => {
                        late.extend_from_slice(&line);
                        late.push(b'\n');
                    }
                    Some(line) if line.trim_ascii_start().starts_with(b"{") => {
                        is_over = ends_turn(&line);
                        let _ = link.lines.send(String::from_utf8_lossy(&line).into_owned());
                    }
                    Some(line) if line.trim_ascii().is_empty() => {}
                    // Some agents print log lines to stdout.
                    Some(_) => self.other_lines = self.other_lines.saturating_add(1),
                    None => return Err(self.program.no_answer().await),
                },
            }
        };
        let end = match end {
            Ok(Ok(end)) => end,
            Ok(Err(error)) => return Err(self.program.failed(&describe_error(&error))),
            Err(_) => {
                let why = lock(&self.turn).take_fault();
                let why = why.unwrap_or_else(|| "the agent broke the protocol".to_owned());
                return Err(self.program.failed(&why));
            }
        };
        let (reply, violation) = {
            let mut turn = lock(&self.turn);
            let before = turn.take_violation();
            let after = turn.violation_in_unread(&late);
            (turn.reply(&end, &view.redactor), before.or(after))
        };
        if let Some(rule) = violation {
            self.program.break_rule(rule);
        }
        let reply = reply?;
        self.program.mark_answered();
        Ok(reply)
    }
}

impl SutSession for AcpSession {
    fn submit<'a>(&'a mut self, prompt: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        self.turn(prompt).boxed()
    }

    fn reply<'a>(&'a mut self, reply: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        async move {
            if self.link.is_none() {
                return Err(SutError::failed("a reply needs a task before it"));
            }
            self.turn(reply).await
        }
        .boxed()
    }

    fn files<'a>(&'a mut self, named: &'a [String]) -> BoxFuture<'a, Option<FileChanges>> {
        self.program.files(named)
    }

    fn take_baseline(&mut self) -> BoxFuture<'_, ()> {
        self.program.take_baseline()
    }

    fn workspace(&self) -> Option<&Path> {
        self.program.workspace()
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, SutEvidence> {
        let Self { program, turn, link, other_lines, .. } = *self;
        async move {
            // First of all: an agent may exit by itself only after its stdin is closed.
            drop(link);
            let redactor = program.view().redactor;
            let ended = Arc::clone(&turn);
            let find_violation = move |unread: &[u8]| lock(&ended).violation_in_unread(unread);
            let mut evidence = Box::new(program).close_after(find_violation).await;
            let notes = lock(&turn).notes();
            evidence.notes.extend(notes.iter().map(|note| redactor.apply(note).into_owned()));
            if other_lines > 0 {
                evidence
                    .notes
                    .push(format!("{other_lines} lines that are no messages were read over"));
            }
            evidence
        }
        .boxed()
    }
}

impl AgentConnection {
    fn new(
        stdin: Option<tokio::process::ChildStdin>,
        turn: Arc<Mutex<AgentTurn>>,
        view: GrantedView,
        opening: SessionOptions,
    ) -> Self {
        let (lines, from_agent) = mpsc::unbounded_channel::<String>();
        let (to_agent, mut to_write) = mpsc::unbounded_channel::<String>();
        let (prompts, asked) = mpsc::unbounded_channel();
        let incoming = futures_util::stream::unfold(from_agent, async |mut lines| {
            let line = lines.recv().await?;
            Some((Ok(line), lines))
        });
        let outgoing = futures_util::sink::unfold(to_agent, async |lines, line: String| {
            lines.send(line).map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(lines)
        });
        let transport = Lines::new(Box::pin(outgoing), Box::pin(incoming));
        let speaking = tokio::spawn(async move {
            if let Err(error) =
                run_protocol(transport, Arc::clone(&turn), view, opening, asked).await
            {
                lock(&turn).set_fault(describe_error(&error));
            }
        });
        let writing = tokio::spawn(async move {
            let Some(mut stdin) = stdin else { return };
            while let Some(line) = to_write.recv().await {
                // An agent that stops reading is detected by its exit.
                if stdin.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                    return;
                }
                let _ = stdin.flush().await;
            }
        });
        Self { lines, prompts, speaking, writing }
    }
}

/// Runs the protocol until the session is dropped.
async fn run_protocol(
    transport: impl agent_client_protocol::ConnectTo<Client> + 'static,
    turn: Arc<Mutex<AgentTurn>>,
    view: GrantedView,
    opening: SessionOptions,
    mut prompts: mpsc::UnboundedReceiver<TurnRequest>,
) -> Result<(), Error> {
    let [told, asked, wanted_to_write, wanted_to_read] = [(); 4].map(|()| Arc::clone(&turn));
    Client
        .v1()
        .name("selftest")
        .on_receive_notification(
            async move |told_now: SessionNotification, _| {
                lock(&told).receive(told_now);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                let mut turn = lock(&asked);
                let outcome = if turn.is_own("a request", &request.session_id) {
                    turn.answer_permission(&request)
                } else {
                    RequestPermissionOutcome::Cancelled
                };
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: WriteTextFileRequest, responder, _| {
                let path = one_line(&request.path.to_string_lossy(), MAX_QUOTE);
                lock(&wanted_to_write).is_own("a request", &request.session_id);
                lock(&wanted_to_write).record_refusal(&format!("to write {path}"));
                let why = "this session only reads".to_owned();
                responder.respond_with_error(Error::invalid_request().data(why))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _| {
                // A file of the view is harmless; the name of the session is not.
                lock(&wanted_to_read).is_own("a request", &request.session_id);
                match read(&view, &request) {
                    Ok(content) => responder.respond(ReadTextFileResponse::new(content)),
                    // Agents use this error to distinguish a file that they may create from one that
                    // they must not see.
                    Err(NamedFileError::Missing) => {
                        let path = request.path.to_string_lossy().into_owned();
                        let missing = agent_client_protocol::v1::schema::Error::resource_not_found;
                        responder.respond_with_error(missing(Some(path)).into())
                    }
                    Err(why) => {
                        let path = one_line(&request.path.to_string_lossy(), MAX_QUOTE);
                        lock(&wanted_to_read).record_refusal(&format!("to read {path}: {why}"));
                        responder.respond_with_error(Error::invalid_params().data(why.to_string()))
                    }
                }
            },
            on_receive_request!(),
        )
        .connect_with(transport, async move |agent: ConnectionTo<Agent>| {
            let mut session = None;
            while let Some(TurnRequest { text, ended }) = prompts.recv().await {
                let end = prompt(&agent, &mut session, &opening, &turn, text).await;
                // The receiver is gone if the turn was abandoned.
                let _ = ended.send(end);
            }
            Ok(())
        })
        .await
}

/// Runs one turn. The first one opens the session.
async fn prompt(
    agent: &ConnectionTo<Agent>,
    session: &mut Option<SessionId>,
    opening: &SessionOptions,
    turn: &Mutex<AgentTurn>,
    text: String,
) -> Result<TurnEnd, Error> {
    let id = match session {
        Some(id) => id.clone(),
        None => session.insert(open(agent, opening, turn).await?).clone(),
    };
    let prompt = PromptRequest::new(id, vec![ContentBlock::Text(TextContent::new(text))]);
    let ended = agent.send_request(prompt).block_task().await;
    lock(turn).finish();
    Ok(ended?.into())
}

async fn open(
    agent: &ConnectionTo<Agent>,
    opening: &SessionOptions,
    turn: &Mutex<AgentTurn>,
) -> Result<SessionId, Error> {
    // Writing and terminals would run in this process, outside of the agent's sandbox.
    let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(false);
    let request = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new().fs(files).terminal(false))
        .client_info(Implementation::new("selftest", env!("CARGO_PKG_VERSION")));
    // The crate rejects other versions of the protocol.
    agent.send_request(request).block_task().await?;
    let opened = agent.send_request(NewSessionRequest::new(&opening.folder)).block_task().await?;
    let id = opened.session_id;
    lock(turn).open(id.clone());
    if let Some((now, asking)) =
        opened.modes.as_ref().filter(|_| opening.only_reads).and_then(asking_mode)
    {
        let request = SetSessionModeRequest::new(id.clone(), asking.clone());
        let (now, asking) = (one_line(&now.0, MAX_QUOTE), one_line(&asking.0, MAX_QUOTE));
        let set = agent.send_request(request).block_task().await;
        lock(turn).note(match set {
            Ok(_) => format!("the agent began in its mode `{now}`, and was put into `{asking}`"),
            Err(error) => format!(
                "the agent began in its mode `{now}`, and could not be put into `{asking}`: {}",
                one_line(&error.message, MAX_QUOTE)
            ),
        });
    }
    Ok(id)
}

/// If an agent starts in a mode without asking, returns that mode and the one to switch to.
fn asking_mode(modes: &SessionModeState) -> Option<(&SessionModeId, &SessionModeId)> {
    let now = &modes.current_mode_id;
    let own =
        |mode: &&str| modes.available_modes.iter().map(|own| &own.id).find(|own| *own.0 == **mode);
    let asking = ASKING_MODES.iter().find_map(own)?;
    (!ASKING_MODES.contains(&&*now.0)).then_some((now, asking))
}

/// Reads a file of the granted view, or the requested lines of it.
fn read(view: &GrantedView, request: &ReadTextFileRequest) -> Result<String, NamedFileError> {
    // Paths outside the view are rejected before anything is opened.
    let path = request.path.strip_prefix(&view.root).map_err(|_| NamedFileError::Outside)?;
    let path = path.to_str().ok_or(NamedFileError::Missing)?;
    let GrantedView { root, anchor, hidden, redactor } = view;
    // Skills lie in folders whose names begin with a dot.
    let skills = project_folders();
    let text = match anchor {
        Some(folder) => read_anchored_file(folder, root, hidden, &skills, path, redactor),
        // The program cannot write to the project, so no path in it changes under us.
        None => read_named_file(root, hidden, &skills, path, redactor).map(|source| source.text),
    };
    let text = match text {
        Ok(text) => text,
        // An empty file tells nothing as evidence, but an agent may well read it.
        Err(NamedFileError::Empty) => String::new(),
        Err(fault) => return Err(fault),
    };
    // Lines count from one in the protocol.
    let first = request.line.map_or(0, |line| line.saturating_sub(1)) as usize;
    let limit = request.limit.map_or(usize::MAX, |limit| limit as usize);
    Ok(text.split_inclusive('\n').skip(first).take(limit).collect())
}

/// Formats an agent's error.
fn describe_error(error: &Error) -> String {
    let mut words =
        format!("the agent answered with an error: {}", one_line(&error.message, MAX_QUOTE));
    if let Some(data) = &error.data {
        let data = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
        words += &format!(": {}", one_line(&data, MAX_QUOTE));
    }
    if error.code == ErrorCode::AUTH_REQUIRED {
        words += "; it sees none of your settings: hand its key on with sut.acp.pass_environment";
    }
    words
}

fn lock(turn: &Mutex<AgentTurn>) -> MutexGuard<'_, AgentTurn> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn files_are_read_as_they_are_granted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("a.md"), "one\ntwo\nthree\n").unwrap();
        fs::write(root.join("empty.md"), "").unwrap();
        fs::create_dir(root.join("secret")).unwrap();
        fs::write(root.join("secret/key.md"), "hints").unwrap();
        let skill = root.join(".qwen/skills/ferry");
        fs::create_dir_all(skill.join("references")).unwrap();
        fs::write(skill.join("references/times.md"), "10:40").unwrap();
        fs::write(skill.join(".env"), "KEY=1").unwrap();
        fs::write(root.join(".qwen/settings.json"), "{}").unwrap();
        let view = GrantedView {
            root: root.clone(),
            anchor: None,
            hidden: vec![root.join("secret")],
            redactor: Arc::default(),
        };
        let ask = |path: PathBuf| ReadTextFileRequest::new("s", path);
        assert_eq!(read(&view, &ask(root.join("a.md"))).unwrap(), "one\ntwo\nthree\n");
        let part = ask(root.join("a.md")).line(2).limit(1);
        assert_eq!(read(&view, &part).unwrap(), "two\n");
        assert_eq!(read(&view, &ask(root.join("empty.md"))).unwrap(), "");
        assert_eq!(read(&view, &ask(skill.join("references/times.md"))).unwrap(), "10:40");
        for (path, fault) in [
            (root.join("secret/key.md"), NamedFileError::Hidden),
            (skill.join(".env"), NamedFileError::Hidden),
            (root.join(".qwen/settings.json"), NamedFileError::Hidden),
            (root.join("../x"), NamedFileError::Outside),
            (PathBuf::from("/etc/passwd"), NamedFileError::Outside),
            (root.join("nothing.md"), NamedFileError::Missing),
        ] {
            assert_eq!(read(&view, &ask(path)).unwrap_err(), fault);
        }
    }

    #[test]
    fn an_agent_is_put_into_a_mode_in_which_it_asks() {
        for (now, available, expected) in [
            ("auto", &["default", "acceptEdits", "auto"][..], Some("default")),
            ("agent", &["read-only", "agent"], Some("read-only")),
            ("default", &["default", "yolo"], None),
            ("read-only", &["read-only", "default"], None),
            ("build", &["build", "plan"], None),
        ] {
            let available: Vec<serde_json::Value> =
                available.iter().map(|id| serde_json::json!({ "id": id, "name": id })).collect();
            let modes = serde_json::json!({ "currentModeId": now, "availableModes": available });
            let modes: SessionModeState = serde_json::from_value(modes).unwrap();
            let found = asking_mode(&modes).map(|(now, asking)| (&*now.0, &*asking.0));
            assert_eq!(found, expected.map(|expected| (now, expected)));
        }
    }
}
