//! A throw-away project with a program in it, and what is left of its processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use selftest_harness::sut::acp::AcpSut;
use selftest_harness::sut::command::{CommandHost, CommandSut};
use selftest_harness::sut::namespace::{SessionId, TaskGroupId};
use selftest_harness::sut::sut_settings::{
    CommandSettings, ProgramProtocol, ProgramSettings, PromptInput,
};
use selftest_harness::sut::{
    SutError, SutEvidence, SutReply, SutTask, SutTaskType, SystemUnderTest as _,
};
use selftest_sandbox::limits::SandboxMode;
use selftest_text::redact::Redactor;

/// Long enough for the slowest machine; nothing waits for it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone)]
pub(crate) struct World {
    folder: Arc<tempfile::TempDir>,
    settings: CommandSettings,
    environment: BTreeMap<String, String>,
    scratch: &'static str,
    sandbox: SandboxMode,
    fail_on_attempts: bool,
    protected: Vec<PathBuf>,
    pub(crate) task: SutTask,
}

/// The binary under test; named otherwise where this test program was copied elsewhere.
pub(crate) fn harness() -> PathBuf {
    let named = std::env::var_os("SELFTEST_TEST_BINARY");
    named.map_or_else(|| env!("CARGO_BIN_EXE_selftest").into(), PathBuf::from)
}

pub(crate) fn task() -> SutTask {
    let now = "2026-02-06T12:34:56Z".parse().unwrap();
    SutTask {
        fixtures: Arc::new([]),
        session_id: SessionId::fresh(now),
        task_group_id: TaskGroupId::fresh(now),
        task_type: SutTaskType::ReadInfo,
        seed: 7,
    }
}

impl World {
    /// A project whose program is the fixture `agent.py` in this mode.
    pub(crate) fn agent(mode: &[&str]) -> Self {
        let mut run = vec!["python3", "agent.py"];
        run.extend(mode);
        Self::run(&run)
    }

    pub(crate) fn run(run: &[&str]) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let settings = serde_json::json!({ "run": run });
        let world = Self {
            folder,
            settings: serde_json::from_value(settings).unwrap(),
            environment: std::env::vars().collect(),
            scratch: "scratch",
            sandbox: SandboxMode::default(),
            fail_on_attempts: false,
            protected: vec!["reports".into(), "prompts".into()],
            task: task(),
        };
        world.file("agent.py", include_str!("../fixtures/agent.py"));
        world.file("README.md", "# A project\n\nIt measures widgets.\n");
        world.file("reports/selftest/run.json", "the verdict");
        world
    }

    pub(crate) fn set(mut self, change: impl FnOnce(&mut ProgramSettings)) -> Self {
        change(&mut self.settings.program);
        self
    }

    pub(crate) fn speaks(mut self, protocol: ProgramProtocol) -> Self {
        self.settings.speech.protocol = protocol;
        self
    }

    /// With the prompt on its command line.
    pub(crate) fn prompted_by_argument(mut self) -> Self {
        self.settings.speech.prompt_input = PromptInput::Argument;
        self
    }

    /// The same project for another case.
    pub(crate) fn again(&self) -> Self {
        Self { task: task(), ..self.clone() }
    }

    pub(crate) fn sandbox(mut self, sandbox: SandboxMode) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// As with `sut.fail_on_attempts`.
    pub(crate) fn fail_on_attempts(mut self) -> Self {
        self.fail_on_attempts = true;
        self
    }

    /// With one more answer key.
    pub(crate) fn protect(mut self, path: &str) -> Self {
        self.protected.push(path.into());
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// As with a temporary folder that holds both.
    pub(crate) fn scratch_beside_the_project(mut self) -> Self {
        self.scratch = ".";
        self
    }

    pub(crate) fn file(&self, path: &str, text: &str) {
        let path = self.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.folder.path().join(self.scratch)
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn sut(&self) -> CommandSut {
        CommandSut::new(self.settings.clone(), self.host())
    }

    /// An agent of this program, which speaks the Agent Client Protocol.
    pub(crate) fn acp(&self) -> AcpSut {
        AcpSut::new(&self.settings.program, self.host())
    }

    fn host(&self) -> CommandHost {
        CommandHost {
            project: self.project(),
            protected: self.protected.clone(),
            scratch_root: self.scratch(),
            harness: harness(),
            environment: self.environment.clone(),
            redactor: Arc::new(Redactor::default()),
            sandbox: self.sandbox,
            fail_on_attempts: self.fail_on_attempts,
            facts: Arc::default(),
        }
    }

    /// One task from beginning to end; afterwards no process and no scratch folder is left.
    pub(crate) async fn ask(&self, prompt: &str) -> (Result<SutReply, SutError>, SutEvidence) {
        let mut session = self.sut().open(&self.task).await.unwrap();
        let reply = tokio::time::timeout(PATIENCE, session.submit(prompt)).await.unwrap();
        let evidence = tokio::time::timeout(PATIENCE, session.close()).await.unwrap();
        self.assert_gone();
        (reply, evidence)
    }

    /// The output of a task that succeeds, by lines.
    pub(crate) async fn lines(&self) -> Vec<String> {
        let (reply, _) = self.ask("go").await;
        reply.unwrap().output.lines().map(ToOwned::to_owned).collect()
    }

    /// The message of a task that fails.
    pub(crate) async fn failure(&self) -> (String, SutEvidence) {
        let (reply, evidence) = self.ask("go").await;
        (reply.unwrap_err().to_string(), evidence)
    }

    #[track_caller]
    pub(crate) fn assert_gone(&self) {
        assert_eq!(processes(self.task.session_id.as_str()), [] as [String; 0]);
        assert!(!self.scratch().join(self.task.session_id.as_str()).exists());
    }
}

/// Whether the fixture `agent.py hang` has started all that it starts: children, and a
/// grandchild that left the session.
pub(crate) fn hangs(session: &str) -> bool {
    processes(session).iter().any(|process| process.contains(" sleep 1000"))
}

/// Waits until something holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "gave up waiting until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes that have this text in their environment, which all of a session inherit.
pub(crate) fn processes(session: &str) -> Vec<String> {
    let needle = format!("SELFTEST_SESSION_ID={session}");
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|process| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == needle.as_bytes())
        })
        .map(|process| command_line(&process))
        .collect()
}

fn command_line(process: &Path) -> String {
    let bytes = fs::read(process.join("cmdline")).unwrap_or_default();
    format!("{} {}", process.display(), String::from_utf8_lossy(&bytes).replace('\0', " "))
}
