//! A process of the binary: while it runs, and what is asserted of it afterwards.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::report::Report;
use crate::workspace::{Workspace, files};

/// The output of a process, as it arrives.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let gathered = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut part) {
                gathered.lock().unwrap().extend_from_slice(&part[..count]);
            }
        });
        Self { bytes, thread }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn whole(self) -> String {
        self.thread.join().unwrap();
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }
}

/// A process that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that has not ended yet; dropping ends it by force.
#[must_use]
pub(crate) struct Running {
    process: Process,
    stdout: Output,
    stderr: Output,
    started: Instant,
    workspace: Workspace,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(command: &mut Command, workspace: Workspace) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = Output::of(child.stdout.take().unwrap());
        let stderr = Output::of(child.stderr.take().unwrap());
        let process = Process(child);
        Self { process, stdout, stderr, started: Instant::now(), workspace }
    }

    /// Waits until a condition of the world outside holds.
    #[track_caller]
    pub(crate) fn until(self, what: &str, holds: impl Fn() -> bool) -> Self {
        self.until_it(what, |_| holds())
    }

    /// Waits until stdout holds the text.
    #[track_caller]
    pub(crate) fn until_stdout(self, part: &str) -> Self {
        self.until_it(&format!("`{part}` on stdout"), |own| own.stdout.so_far().contains(part))
    }

    /// Waits until stderr holds the text.
    #[track_caller]
    pub(crate) fn until_stderr(self, part: &str) -> Self {
        self.until_it(&format!("`{part}` on stderr"), |own| own.stderr.so_far().contains(part))
    }

    #[track_caller]
    fn until_it(mut self, what: &str, holds: impl Fn(&Self) -> bool) -> Self {
        while !holds(&self) {
            let over = self.process.0.try_wait().unwrap().is_some();
            if over || self.started.elapsed() > self.workspace.limit() {
                let _ = self.process.0.kill();
                panic!("{what} did not happen:\n{}", self.wait().transcript());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self
    }

    /// Its stdout so far.
    pub(crate) fn said(&self) -> String {
        self.stdout.so_far()
    }

    /// Its stderr so far.
    pub(crate) fn log(&self) -> String {
        self.stderr.so_far()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.process.0)
    }

    #[cfg(unix)]
    pub(crate) fn signal(self, signal: rustix::process::Signal) -> Self {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.process.0), signal)
            .unwrap();
        self
    }

    /// The same for a process that may have ended by itself.
    #[cfg(unix)]
    pub(crate) fn signal_if_running(mut self, signal: rustix::process::Signal) -> Self {
        if self.process.0.try_wait().unwrap().is_none() {
            return self.signal(signal);
        }
        self
    }

    #[must_use]
    #[track_caller]
    pub(crate) fn wait(mut self) -> Run {
        let status = loop {
            if let Some(status) = self.process.0.try_wait().unwrap() {
                break Some(status);
            }
            if self.started.elapsed() > self.workspace.limit() {
                let _ = self.process.0.kill();
                let _ = self.process.0.wait();
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let elapsed = self.started.elapsed();
        let (stdout, stderr) = (self.stdout.whole(), self.stderr.whole());
        let run = Run { status, stdout, stderr, elapsed, workspace: self.workspace };
        assert!(run.status.is_some(), "ended by the watchdog:\n{}", run.transcript());
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
    /// The project that it ran in.
    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    #[track_caller]
    pub(crate) fn exit(self, code: i32) -> Self {
        let actual = self.status.and_then(|status| status.code());
        assert_eq!(actual, Some(code), "wrong exit code:\n{}", self.transcript());
        self
    }

    /// Whether it ended by itself with this code.
    #[cfg(unix)]
    pub(crate) fn ended_with(&self, code: i32) -> bool {
        self.status.is_some_and(|status| status.code() == Some(code))
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
        assert!(self.stdout.contains(part), "no `{part}` in stdout:\n{}", self.transcript());
        self
    }

    #[track_caller]
    pub(crate) fn stderr_contains(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "no `{part}` in stderr:\n{}", self.transcript());
        self
    }

    /// On one of the two streams.
    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        let said = self.stdout.contains(part) || self.stderr.contains(part);
        assert!(said, "no `{part}`:\n{}", self.transcript());
        self
    }

    /// Neither stdout, nor stderr, nor any file under the project holds the text.
    #[track_caller]
    pub(crate) fn nowhere(self, secret: &str) -> Self {
        assert!(!self.stdout.contains(secret), "`{secret}` in stdout:\n{}", self.transcript());
        assert!(!self.stderr.contains(secret), "`{secret}` in stderr:\n{}", self.transcript());
        for path in files(&self.workspace.project()) {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(secret), "`{secret}` in {}:\n{text}", path.display());
        }
        self
    }

    /// One line of stderr says it all: an error that names what it is about, and at most hints.
    #[track_caller]
    pub(crate) fn one_error(self, parts: &[&str]) -> Self {
        let errors: Vec<&str> =
            self.stderr.lines().filter(|line| line.starts_with("error")).collect();
        assert_eq!(errors.len(), 1, "not exactly one error line:\n{}", self.transcript());
        for part in parts {
            assert!(errors[0].contains(part), "no `{part}` in the error:\n{}", self.transcript());
        }
        assert!(!self.stderr.contains("panicked"), "a panic:\n{}", self.transcript());
        self
    }

    /// The only report of the project; for `--format json`, see [`Run::stdout_report`].
    #[track_caller]
    pub(crate) fn report(&self) -> Report {
        let mut reports = self.reports();
        assert_eq!(reports.len(), 1, "not exactly one report:\n{}", self.transcript());
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
        paths.iter().map(|path| Report::parse(&fs::read_to_string(path).unwrap())).collect()
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
        let text = text.replace(&*self.workspace.folder().to_string_lossy(), "[folder]");
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
        let code = self.status.map_or("none".to_owned(), |status| status.to_string());
        format!(
            "$ {}\n[{code} after {:?}]\n--- stdout\n{}\n--- stderr\n{}",
            self.workspace.command_line(),
            self.elapsed,
            self.stdout,
            self.stderr
        )
    }
}

/// The parts that differ between two runs of the same test, in this order.
const FILTERS: [(&str, &str); 8] = [
    (r"selftest-\d{8}-\d{4}-[a-z0-9]+", "[run-id]"),
    (r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?( ?UTC|Z)?", "[time]"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:[port]"),
    (r"\b[0-9a-f]{64}\b", "[sha256]"),
    (r"\b\d+(\.\d+)? ?(ms|s)\b", "[duration]"),
    (r"seed \d+", "seed [seed]"),
    (r"selftest \d+\.\d+\.\d+", "selftest [version]"),
    (r"[ \t]+\n", "\n"),
];
