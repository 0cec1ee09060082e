//! A process under test, its pipes and its environment, all of them bounded. The environment is an
//! allow-list, because secrets are often stored in variables.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::sut::sut_settings::ProgramSettings;
use crate::sut::{SutError, SutTask};
use selftest_sandbox::{SUBCOMMAND, SandboxPolicy};

/// Maximum size of a line or an answer in bytes.
pub(super) const ANSWER_LIMIT: usize = 1 << 20;

/// Maximum number of bytes that a program may write to stdout in one session.
pub(super) const TOTAL_LIMIT: usize = 8 << 20;

/// Number of bytes of stderr to keep from its start, and from its end.
const MAX_STDERR_PART: usize = 16 * 1024;

/// Length of a line of stderr that is left out as a whole rather than cut.
const MAX_STDERR_LINE: usize = 4 * 1024;

/// Maximum time for the supervisor to stop a process tree.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time to read what a stopped program left in its pipe.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(1);

/// A program that was stopped.
pub(super) struct StoppedProcess {
    /// Describes its exit.
    pub(super) exit: String,
    /// What it wrote after its last answer; `None` if that was too much or cannot be read.
    pub(super) unread: Option<Vec<u8>>,
}

/// A running program under its supervisor.
pub(in crate::sut) struct SupervisedProcess {
    child: Child,
    pub(in crate::sut) stdin: Option<ChildStdin>,
    pub(in crate::sut) stdout: ProgramOutput,
    /// The task that reads stderr. Absent once stderr has closed.
    stderr: Option<JoinHandle<()>>,
}

impl SupervisedProcess {
    /// Starts the program in the project folder.
    pub(super) fn start(
        harness: &Path,
        policy: &SandboxPolicy,
        program: &[OsString],
        environment: &BTreeMap<String, String>,
        folder: &Path,
        kept: &Arc<Mutex<StderrBuffer>>,
    ) -> Result<Self, SutError> {
        let mut command = Command::new(harness);
        command.args([SUBCOMMAND, "supervise"]);
        // By this number the supervisor detects the end of the harness.
        command.arg(std::process::id().to_string());
        // On Windows it cannot receive a signal.
        #[cfg(windows)]
        command.kill_on_drop(true);
        let mut child = command
            .args(policy.to_arguments())
            .args(program)
            // Secrets of the harness must not reach the program.
            .env_clear()
            .envs(environment)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                let name = program.first().map(|name| name.display().to_string());
                SutError::failed(format!("cannot start {}: {error}", name.unwrap_or_default()))
            })?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let stdout = stdout.expect("stdout is piped above");
        let stderr = stderr.expect("stderr is piped above");
        Ok(Self {
            child,
            stdin,
            stdout: ProgramOutput { pipe: stdout, buffer: Vec::new(), total: 0 },
            stderr: Some(tokio::spawn(drain(stderr, Arc::clone(kept)))),
        })
    }

    /// Waits for the program to exit by itself.
    pub(super) async fn wait(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait().await.ok();
        // The last output may still be in the pipe.
        if let Some(stderr) = &mut self.stderr
            && tokio::time::timeout(Duration::from_secs(1), stderr).await.is_ok()
        {
            self.stderr = None;
        }
        status
    }

    /// Stops the program and everything that it started, after a `grace` period to exit by itself.
    pub(super) async fn stop(mut self, grace: Duration) -> StoppedProcess {
        let exit = self.end(grace).await;
        StoppedProcess { exit, unread: self.stdout.take_unread().await }
    }

    async fn end(&mut self, grace: Duration) -> String {
        // The end of its input asks it to exit.
        self.stdin = None;
        if let Ok(Some(status)) = tokio::time::timeout(grace, self.wait()).await {
            return describe(status);
        }
        let limit = if self.stop_supervisor().is_some() { STOP_TIMEOUT } else { Duration::ZERO };
        if tokio::time::timeout(limit, self.wait()).await.is_err() {
            // The supervisor keeps trying as long as it lives, but the kernel may hold a process.
            return format!("still running {} s after it was killed", STOP_TIMEOUT.as_secs());
        }
        "ended by the harness".to_owned()
    }

    /// Signals the supervisor to stop everything.
    #[cfg(unix)]
    fn stop_supervisor(&mut self) -> Option<()> {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok())?;
        let supervisor = rustix::process::Pid::from_raw(id)?;
        rustix::process::kill_process(supervisor, rustix::process::Signal::TERM).ok()
    }

    /// Kills the supervisor, and with its job object everything in it.
    #[cfg(windows)]
    fn stop_supervisor(&mut self) -> Option<()> {
        self.child.start_kill().ok()
    }
}

impl Drop for SupervisedProcess {
    fn drop(&mut self) {
        // Closes the read end of stderr, at which the supervisor stops the tree.
        if let Some(stderr) = &self.stderr {
            stderr.abort();
        }
        // In case the program has opened that end itself.
        self.stop_supervisor();
    }
}

/// Describes a program's exit.
#[cfg(windows)]
pub(super) fn describe(status: ExitStatus) -> String {
    status.code().map_or_else(|| "ended".to_owned(), |code| format!("exit code {code}"))
}

/// Describes a program's exit.
#[cfg(unix)]
pub(super) fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        // The supervisor reports a signal of the program as 128 + signal, like a shell.
        (Some(code @ 129..=192), _) => format!("killed by signal {}", code - 128),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("its supervisor was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The stdout of a program.
pub(in crate::sut) struct ProgramOutput {
    pipe: ChildStdout,
    buffer: Vec<u8>,
    total: usize,
}

impl ProgramOutput {
    /// Returns the next line without its line break, or `None` at the end of the output. A last
    /// line without a line break counts.
    pub(in crate::sut) async fn line(&mut self) -> Result<Option<Vec<u8>>, SutError> {
        let mut searched = 0;
        loop {
            // Only new bytes are searched, so that a long line takes linear time.
            let end = self.buffer[searched..].iter().position(|&byte| byte == b'\n');
            if let Some(end) = end {
                let rest = self.buffer.split_off(searched + end + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.pop();
                return Ok(Some(line));
            }
            searched = self.buffer.len();
            if searched > ANSWER_LIMIT {
                return Err(SutError::failed(format!(
                    "the program wrote a line of more than {ANSWER_LIMIT} bytes"
                )));
            }
            if self.fill().await? == 0 {
                let line = std::mem::take(&mut self.buffer);
                return Ok((!line.is_empty()).then_some(line));
            }
        }
    }

    /// Returns what was read and is neither a line nor an answer yet.
    pub(super) fn pending(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns everything that is left once no process writes any more.
    async fn take_unread(&mut self) -> Option<Vec<u8>> {
        tokio::time::timeout(UNREAD_TIMEOUT, self.read_to_end()).await.ok()?.ok()
    }

    /// Returns true if an unrequested result has already arrived.
    pub(super) async fn has_early_result(&mut self) -> Result<bool, SutError> {
        // A zero timeout reads only what is in the pipe already.
        let _ = tokio::time::timeout(Duration::ZERO, self.fill()).await;
        let lines = self.buffer.split(|&byte| byte == b'\n');
        Ok(lines.into_iter().any(|line| {
            let value: Option<serde_json::Value> = serde_json::from_slice(line).ok();
            value.is_some_and(|value| value["type"] == "result")
        }))
    }

    /// Reads everything until the end of the output.
    pub(super) async fn read_to_end(&mut self) -> Result<Vec<u8>, SutError> {
        while self.fill().await? > 0 {
            if self.buffer.len() > ANSWER_LIMIT {
                return Err(SutError::failed(format!(
                    "the program wrote an answer of more than {ANSWER_LIMIT} bytes"
                )));
            }
        }
        Ok(std::mem::take(&mut self.buffer))
    }

    async fn fill(&mut self) -> Result<usize, SutError> {
        self.buffer.reserve(16 * 1024);
        let read = self.pipe.read_buf(&mut self.buffer).await;
        let read = read.map_err(|error| {
            SutError::failed(format!("cannot read what the program writes: {error}"))
        })?;
        self.total += read;
        if self.total > TOTAL_LIMIT {
            return Err(SutError::failed(format!(
                "the program wrote more than {TOTAL_LIMIT} bytes in one session"
            )));
        }
        Ok(read)
    }
}

async fn drain(mut pipe: ChildStderr, kept: Arc<Mutex<StderrBuffer>>) {
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk[..read]);
    }
}

/// The start and the end of a stream.
#[derive(Debug, Default)]
pub(super) struct StderrBuffer {
    first: Vec<u8>,
    last: VecDeque<u8>,
    left_out: usize,
}

impl StderrBuffer {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = (MAX_STDERR_PART - self.first.len()).min(bytes.len());
        self.first.extend_from_slice(&bytes[..room]);
        self.last.extend(&bytes[room..]);
        let excess = self.last.len().saturating_sub(MAX_STDERR_PART);
        self.last.drain(..excess);
        self.left_out += excess;
    }

    /// Returns the stored text, with a note of the omitted bytes, or `None` if there was no output.
    pub(super) fn text(&self) -> Option<String> {
        if self.first.is_empty() {
            return None;
        }
        let (mut bytes, mut start) = (self.first.clone(), 0);
        if self.left_out > 0 {
            // Both parts end at a line if one is near: a key that the gap cuts would not be redacted.
            let is_break = |byte: &u8| *byte == b'\n';
            let dropped = bytes.iter().rev().take(MAX_STDERR_LINE).position(is_break).unwrap_or(0);
            bytes.truncate(bytes.len() - dropped);
            start =
                self.last.iter().take(MAX_STDERR_LINE).position(is_break).map_or(0, |at| at + 1);
            let left_out = self.left_out + dropped + start;
            bytes.extend_from_slice(format!("\n… [{left_out} bytes left out]\n").as_bytes());
        }
        bytes.extend(self.last.range(start..));
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the last non-empty line.
    pub(super) fn last_line(&self) -> Option<String> {
        let text = self.text()?;
        text.lines().rev().find(|line| !line.trim().is_empty()).map(ToOwned::to_owned)
    }
}

/// Variables that are passed on if they are set, in addition to `LC_*`.
const PASSED_ON: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "NO_COLOR",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "VOLTA_HOME",
    "JAVA_HOME",
    "VIRTUAL_ENV",
];

/// Further variables on Windows, where most programs need them to start.
const PASSED_ON_WINDOWS: &[&str] =
    &["SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS"];

/// Further variables on Windows for the home and temporary folders.
const HOMES_WINDOWS: &[&str] = &["USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"];

/// Returns a variable. Names are case-insensitive on Windows.
pub(super) fn variable<'a>(own: &'a BTreeMap<String, String>, name: &str) -> Option<&'a String> {
    own.get(name).or_else(|| {
        let same = |known: &str| cfg!(windows) && known.eq_ignore_ascii_case(name);
        own.iter().find_map(|(known, value)| same(known).then_some(value))
    })
}

/// Variable with the path of the skill's file, if there is a skill.
pub(super) const SKILL_FILE: &str = "SELFTEST_SKILL_FILE";

/// Returns the variables of the harness's own environment that are passed on.
pub(super) fn passed_on(
    own: &BTreeMap<String, String>,
    besides: &[String],
) -> BTreeMap<String, String> {
    let handed_on = own.iter().filter_map(|(name, value)| {
        // On Windows the names of variables ignore case.
        let known = if cfg!(windows) { name.to_ascii_uppercase() } else { name.clone() };
        let is_handed_on = PASSED_ON.contains(&known.as_str())
            || cfg!(windows) && PASSED_ON_WINDOWS.contains(&known.as_str())
            || name.starts_with("LC_")
            || besides.contains(name);
        is_handed_on.then(|| (known, value.clone()))
    });
    handed_on.collect()
}

/// Returns the variables of a program: the allow-list, overridden by those of the harness and then
/// by the settings.
pub(super) fn environment(
    own: &BTreeMap<String, String>,
    settings: &ProgramSettings,
    scratch: &Path,
    task: &SutTask,
) -> BTreeMap<String, String> {
    let mut variables = passed_on(own, &settings.pass_environment);
    for (name, value) in [
        ("HOME", scratch.to_string_lossy().as_ref()),
        ("TMPDIR", scratch.to_string_lossy().as_ref()),
        ("SELFTEST_SESSION_ID", task.session_id.as_str()),
        ("SELFTEST_TASK_GROUP_ID", task.task_group_id.as_str()),
        ("SELFTEST_TASK_TYPE", task.task_type.as_str()),
    ] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    if cfg!(windows) {
        let home = |name: &&str| ((*name).to_owned(), scratch.to_string_lossy().into_owned());
        variables.extend(HOMES_WINDOWS.iter().map(home));
    }
    // The last ones, so that the config can set any of them, `HOME` included.
    variables.extend(settings.environment.clone());
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_both_ends() {
        let mut tail = StderrBuffer::default();
        assert_eq!(tail.text(), None);
        tail.push(b"first\n");
        assert_eq!(tail.text().unwrap(), "first\n");
        for _ in 0..1000 {
            tail.push(&[b'x'; 1000]);
        }
        tail.push(b"\nlast\n\n");
        let text = tail.text().unwrap();
        assert!(text.starts_with("first\nxxx") && text.ends_with("\nlast\n\n"));
        assert!(text.len() < 2 * MAX_STDERR_PART + 100, "{}", text.len());
        assert!(text.contains("bytes left out"));
        assert_eq!(tail.last_line().unwrap(), "last");
    }

    #[test]
    fn what_is_left_out_cuts_no_line() {
        let line = format!("key {}\n", "k3y-".repeat(30));
        let mut tail = StderrBuffer::default();
        for _ in 0..1000 {
            tail.push(line.as_bytes());
        }
        let text = tail.text().unwrap();
        let cut = |one: &&str| one.contains("k3y") && *one != line.trim_end();
        assert_eq!(text.lines().find(cut), None);
        let note = text.lines().find(|one| one.contains("left out")).unwrap();
        let left_out: usize = note.split(['[', ' ']).find_map(|word| word.parse().ok()).unwrap();
        assert_eq!(left_out + text.len() - note.len() - 2, 1000 * line.len());
    }
}
