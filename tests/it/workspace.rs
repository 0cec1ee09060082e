//! A throw-away project and the real binary in it: `Workspace::new().config(..).run().exit(0)`.
//!
//! The environment of the process is built from nothing, so that neither a developer's shell
//! nor a model server on this machine can change a result.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::model_server::ModelServer;
use crate::report::Report;

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
         models: {{ max_retries: 0 }}\n\
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
    environment: BTreeMap<String, OsString>,
    wrapper: Vec<OsString>,
    arguments: Vec<OsString>,
    watchdog: Duration,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("selftest-it-")
            .tempdir()
            .unwrap();
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
            environment,
            wrapper: Vec::new(),
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
        fs::write(path, contents).unwrap();
        self
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
        let binary = OsString::from(env!("CARGO_BIN_EXE_selftest"));
        let mut words = self.wrapper.iter().chain([&binary]).chain(&self.arguments);
        let mut child = Command::new(words.next().expect("the binary is among them"))
            .args(words)
            .current_dir(self.project())
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        let started = Instant::now();
        Running {
            child,
            stdout,
            stderr,
            started,
            workspace: self.clone(),
        }
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// A process that has not ended yet.
#[must_use]
pub(crate) struct Running {
    child: Child,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
    started: Instant,
    workspace: Workspace,
}

impl Running {
    /// Waits until a condition of the world outside holds.
    #[track_caller]
    pub(crate) fn until(mut self, what: &str, holds: impl Fn() -> bool) -> Self {
        while !holds() {
            let over = self.child.try_wait().unwrap().is_some();
            if over || self.started.elapsed() > self.workspace.watchdog {
                let _ = self.child.kill();
                panic!("{what} did not happen:\n{}", self.wait().transcript());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self
    }

    #[cfg(unix)]
    pub(crate) fn signal(self, signal: rustix::process::Signal) -> Self {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .unwrap();
        self
    }

    #[must_use]
    #[track_caller]
    pub(crate) fn wait(mut self) -> Run {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break Some(status);
            }
            if self.started.elapsed() > self.workspace.watchdog {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let elapsed = self.started.elapsed();
        let text =
            |pipe: JoinHandle<Vec<u8>>| String::from_utf8_lossy(&pipe.join().unwrap()).into_owned();
        let (stdout, stderr) = (text(self.stdout), text(self.stderr));
        let run = Run {
            status,
            stdout,
            stderr,
            elapsed,
            workspace: self.workspace,
        };
        assert!(
            run.status.is_some(),
            "ended by the watchdog:\n{}",
            run.transcript()
        );
        run
    }
}

/// A process that has ended, and what it left behind.
pub(crate) struct Run {
    status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
    workspace: Workspace,
}

impl Run {
    #[track_caller]
    pub(crate) fn exit(self, code: i32) -> Self {
        let actual = self.status.and_then(|status| status.code());
        assert_eq!(
            actual,
            Some(code),
            "wrong exit code:\n{}",
            self.transcript()
        );
        self
    }

    #[cfg(unix)]
    #[track_caller]
    pub(crate) fn killed_by(self, signal: i32) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        let actual = self.status.and_then(|status| status.signal());
        assert_eq!(actual, Some(signal), "not killed:\n{}", self.transcript());
        self
    }

    #[track_caller]
    pub(crate) fn stdout_contains(self, part: &str) -> Self {
        assert!(
            self.stdout.contains(part),
            "no `{part}` in stdout:\n{}",
            self.transcript()
        );
        self
    }

    #[track_caller]
    pub(crate) fn stderr_contains(self, part: &str) -> Self {
        assert!(
            self.stderr.contains(part),
            "no `{part}` in stderr:\n{}",
            self.transcript()
        );
        self
    }

    /// Neither stdout, nor stderr, nor any file under the project holds the text.
    #[track_caller]
    pub(crate) fn nowhere(self, secret: &str) -> Self {
        assert!(
            !self.stdout.contains(secret),
            "`{secret}` in stdout:\n{}",
            self.transcript()
        );
        assert!(
            !self.stderr.contains(secret),
            "`{secret}` in stderr:\n{}",
            self.transcript()
        );
        for path in files(&self.workspace.project()) {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(
                !text.contains(secret),
                "`{secret}` in {}:\n{text}",
                path.display()
            );
        }
        self
    }

    /// One line of stderr says it all: an error that names what it is about, and at most hints.
    #[track_caller]
    pub(crate) fn one_error(self, parts: &[&str]) -> Self {
        let errors: Vec<&str> = self
            .stderr
            .lines()
            .filter(|line| line.starts_with("error"))
            .collect();
        assert_eq!(
            errors.len(),
            1,
            "not exactly one error line:\n{}",
            self.transcript()
        );
        for part in parts {
            assert!(
                errors[0].contains(part),
                "no `{part}` in the error:\n{}",
                self.transcript()
            );
        }
        assert!(
            !self.stderr.contains("panicked"),
            "a panic:\n{}",
            self.transcript()
        );
        self
    }

    /// The only report of the project; for `--format json`, see [`Run::stdout_report`].
    #[track_caller]
    pub(crate) fn report(&self) -> Report {
        let mut reports = self.reports();
        assert_eq!(
            reports.len(),
            1,
            "not exactly one report:\n{}",
            self.transcript()
        );
        reports.remove(0)
    }

    /// All reports of the project in the order of their names.
    #[track_caller]
    pub(crate) fn reports(&self) -> Vec<Report> {
        let folder = self.workspace.path("reports/selftest");
        let mut paths: Vec<PathBuf> = files(&folder)
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .collect();
        paths.sort();
        paths
            .iter()
            .map(|path| Report::parse(&fs::read_to_string(path).unwrap()))
            .collect()
    }

    #[track_caller]
    pub(crate) fn stdout_report(&self) -> Report {
        Report::parse(&self.stdout)
    }

    /// The Markdown report of the only run.
    #[track_caller]
    pub(crate) fn markdown(&self) -> String {
        let run_id = self.report().run_id();
        self.read(&format!("docs/reports/selftest/{run_id}.md"))
    }

    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.workspace.path(path);
        fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", path.display(), self.transcript()))
    }

    pub(crate) fn path_exists(&self, path: &str) -> bool {
        self.workspace.path(path).exists()
    }

    /// Compares stdout with `tests/it/snapshots/<name>.snap`.
    #[track_caller]
    pub(crate) fn snapshot(self, name: &str) -> Self {
        let text = self.stdout.clone();
        self.snapshot_of(name, &text)
    }

    #[track_caller]
    pub(crate) fn snapshot_stderr(self, name: &str) -> Self {
        let text = self.stderr.clone();
        self.snapshot_of(name, &text)
    }

    /// Compares a text with a snapshot; ids, times, ports and paths are replaced.
    #[track_caller]
    pub(crate) fn snapshot_of(self, name: &str, text: &str) -> Self {
        let text = text.replace(&*self.workspace.folder.path().to_string_lossy(), "[folder]");
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        for (pattern, replacement) in FILTERS {
            settings.add_filter(pattern, replacement);
        }
        settings.bind(|| insta::assert_snapshot!(name, text));
        self
    }

    fn transcript(&self) -> String {
        let code = self
            .status
            .map_or("none".to_owned(), |status| status.to_string());
        format!(
            "$ selftest {:?}\n[{code} after {:?}]\n--- stdout\n{}\n--- stderr\n{}",
            self.workspace.arguments, self.elapsed, self.stdout, self.stderr
        )
    }
}

/// What differs between two runs of the same test, in this order.
const FILTERS: [(&str, &str); 8] = [
    (r"selftest-\d{8}-\d{4}-[a-z0-9]+", "[run-id]"),
    (
        r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?( ?UTC|Z)?",
        "[time]",
    ),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:[port]"),
    (r"\b[0-9a-f]{64}\b", "[sha256]"),
    (r"\b\d+(\.\d+)? ?(ms|s)\b", "[duration]"),
    (r"seed \d+", "seed [seed]"),
    (r"selftest \d+\.\d+\.\d+", "selftest [version]"),
    (r"[ \t]+\n", "\n"),
];

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
