//! A throw-away project and the real binary in it: `Workspace::new().config(..).run().exit(0)`.
//!
//! The environment of the process is built from nothing, so that neither a developer's shell
//! nor a model server on this machine can change a result.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use crate::clock;
use crate::databases::Schema;
use crate::model_server::ModelServer;
use crate::run::{Run, Running};

/// A program under test that takes longer is ended and the test fails.
const WATCHDOG: Duration = Duration::from_mins(2);

/// Nobody listens here: port 1 is never handed out.
pub(crate) const NOBODY: &str = "127.0.0.1:1";

/// The three models of a test's configuration by default: served by the OpenAI protocol.
pub(crate) const OPENAI: &str = "openai/gpt-4o-mini";
/// The same by Ollama's protocol.
pub(crate) const OLLAMA: &str = "ollama/qwen2.5:7b";

/// One scenario that is answered at once.
pub(crate) const CLEAR: &str = r#"
  - id: "clear"
    description: "Request for a 3-line summary"
    expected_status: "COMPLETE"
"#;

/// One scenario that is asked back and then answered.
pub(crate) const FLOW: &str = r#"
  - id: "flow"
    description: "Request that the assistant cannot answer before: ask me back"
    expected_status: "AWAITING_RESPONSE"
    requires_reply: true
    reply_flow:
      - reply: "Please use flat structure"
        expected_status: "COMPLETE"
"#;

/// A configuration whose generator, judge and chat SUT are `model`.
pub(crate) fn config(model: &str, scenarios: &str) -> String {
    format!(
        "version: 1\n\
         models: {{ max_retries: 0, restart_seconds: 0 }}\n\
         generator: {{ model: \"{model}\" }}\n\
         judge: {{ model: \"{model}\" }}\n\
         sut: {{ chat: {{ model: \"{model}\" }} }}\n\
         scenarios:\n{scenarios}"
    )
}

/// `count` scenarios, `case-0` and so on, that are answered at once.
pub(crate) fn scenarios(count: usize) -> String {
    let one = |number| {
        format!(
            "  - id: \"case-{number}\"\n    \
             description: \"Request number {number}\"\n    \
             expected_status: \"COMPLETE\"\n"
        )
    };
    (0..count).map(one).collect()
}

/// A project folder, an environment and arguments; see [`Workspace::run`].
#[must_use]
#[derive(Clone)]
pub(crate) struct Workspace {
    folder: Arc<TempDir>,
    schema: Option<Arc<Schema>>,
    environment: BTreeMap<String, OsString>,
    wrapper: Vec<OsString>,
    /// Started instead of the binary of this build.
    program: Option<PathBuf>,
    arguments: Vec<OsString>,
    watchdog: Duration,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("selftest-it-").tempdir().unwrap();
        for name in ["project", "home", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let home = folder.path().join("home");
        let mut environment = BTreeMap::new();
        let mut set = |name: &str, value: OsString| environment.insert(name.to_owned(), value);
        set("PATH", std::env::var_os("PATH").unwrap_or_default());
        set("TMPDIR", folder.path().join("tmp").into());
        set("XDG_CACHE_HOME", home.join("cache").into());
        set("XDG_CONFIG_HOME", home.join("config").into());
        set("XDG_DATA_HOME", home.join("data").into());
        set("HOME", home.into());
        set("LANG", "C.UTF-8".into());
        set("OLLAMA_HOST", NOBODY.into());
        set("NO_PROXY", "127.0.0.1,localhost,::1".into());
        Self {
            folder: Arc::new(folder),
            schema: None,
            environment,
            wrapper: Vec::new(),
            program: None,
            arguments: Vec::new(),
            watchdog: WATCHDOG,
        }
    }

    /// Writes `config/selftest.yaml`.
    pub(crate) fn config(self, yaml: impl AsRef<[u8]>) -> Self {
        self.file("config/selftest.yaml", yaml)
    }

    /// A configuration with one scenario that is answered at once, and this server behind it.
    pub(crate) fn simple(server: &ModelServer) -> Self {
        Self::new().config(config(OPENAI, CLEAR)).server(server)
    }

    /// Writes a file of the project.
    pub(crate) fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        clock::age(&path, 0);
        self
    }

    /// The suite without its checks, so that the judge alone decides.
    pub(crate) fn judged_only(self, suite: &str) -> Self {
        let text = std::fs::read_to_string(self.path(suite)).unwrap();
        let mut in_checks = false;
        let kept = text.lines().filter(|line| {
            in_checks = line.trim() == "checks:" || in_checks && line.starts_with("      - {");
            !in_checks
        });
        let kept: Vec<&str> = kept.collect();
        self.file(suite, kept.join("\n"))
    }

    /// The server stands for OpenAI and for Ollama.
    pub(crate) fn server(self, server: &ModelServer) -> Self {
        self.env("OPENAI_BASE_URL", server.openai_url())
            .env("OPENAI_API_KEY", "sk-test-0123456789abcdef")
            .env("OLLAMA_HOST", server.ollama_host())
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn env_remove(mut self, name: &str) -> Self {
        self.environment.remove(name);
        self
    }

    /// The database that the environment names is this one.
    #[cfg(feature = "postgres")]
    pub(crate) fn with_schema(mut self, schema: Arc<Schema>) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Where the database is, if it is on a server.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        self.schema.as_deref()
    }

    /// Replaces the arguments.
    pub(crate) fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.arguments = args.into_iter().map(Into::into).collect();
        self
    }

    /// Starts the binary by another program, which gets it and its arguments appended.
    pub(crate) fn within<A: Into<OsString>>(
        mut self,
        wrapper: impl IntoIterator<Item = A>,
    ) -> Self {
        self.wrapper = wrapper.into_iter().map(Into::into).collect();
        self
    }

    /// Starts this program: the binary as it was installed from a package.
    #[cfg(all(feature = "embedded", target_os = "linux"))]
    pub(crate) fn program(mut self, program: &Path) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    #[cfg(feature = "embedded")]
    pub(crate) fn watchdog(mut self, limit: Duration) -> Self {
        self.watchdog = limit;
        self
    }

    /// A path in the project.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.project().join(path)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Runs the binary in the project folder until it ends.
    #[must_use]
    #[track_caller]
    pub(crate) fn run(&self) -> Run {
        self.spawn().wait()
    }

    /// Starts the binary in the project folder.
    #[track_caller]
    pub(crate) fn spawn(&self) -> Running {
        let binary = self.program.clone();
        let binary = binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_selftest").into()).into();
        let mut words = self.wrapper.iter().chain([&binary]).chain(&self.arguments);
        let mut command = Command::new(words.next().expect("the binary is among them"));
        command.args(words).current_dir(self.project()).env_clear();
        // Scripted judges give every answer the same score; tests of certificates set it themselves.
        command.env("SELFTEST_JUDGE_CERTIFICATE", "off");
        command.envs(clock::environment()).envs(&self.environment);
        Running::start(&mut command, self.clone())
    }

    /// The time after which a process is ended and its test fails.
    pub(crate) fn limit(&self) -> Duration {
        self.watchdog
    }

    /// Everything of the test: project, home folder, temporary files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// For messages.
    pub(crate) fn command_line(&self) -> String {
        format!("selftest {:?}", self.arguments)
    }
}

/// All files under a folder; none where it does not exist.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
