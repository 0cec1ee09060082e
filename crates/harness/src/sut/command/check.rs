//! Runs the commands of checks: programs that read an answer and report by their exit code if it is
//! good. They are sandboxed like a program under test.
//!
//! The exit of a command is evaluated by `selftest_checks::check`.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use super::process::{StderrBuffer, SupervisedProcess, passed_on, variable};
use super::{CommandHost, DEFAULT_PATH, ProgramStartError};
use crate::sut::namespace::SessionId;
use selftest_checks::check::{CommandCheck, CommandOutcome};
use selftest_sandbox::limits::SandboxMode;
use selftest_sandbox::{CaseGroup, EXIT_NOT_STARTED};

/// Maximum time that the pipes of a finished command may stay open.
const GRACE: Duration = Duration::from_secs(1);

/// Environment variable with the case of a command, as JSON.
const CASE: &str = "SELFTEST_CASE";

/// Runs the commands of checks.
pub struct CommandRunner {
    host: CommandHost,
    /// Numbers the scratch folders.
    started: AtomicU32,
}

impl CommandRunner {
    /// Creates a runner on this host.
    ///
    /// Even if programs under test run without a sandbox, commands are sandboxed as far as
    /// possible, because they may come from a third party.
    pub fn new(mut host: CommandHost) -> Self {
        if host.sandbox == SandboxMode::Off {
            host.sandbox = SandboxMode::BestEffort;
            // The shared facts were determined with the sandbox off.
            host.facts = Arc::default();
        }
        Self { host: host.absolute(), started: AtomicU32::new(0) }
    }

    /// Runs a command with the answer on stdin and the case, as JSON, in its environment. It works
    /// in `workspace`, which is writable, or else in the read-only project.
    pub async fn run(
        &self,
        command: &CommandCheck,
        session: &SessionId,
        case: &str,
        answer: &str,
        workspace: Option<&Path>,
    ) -> CommandOutcome {
        let limit = command.timeout_seconds.duration();
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let name = format!("{session}-check-{number}");
        let started = self.host.make_scratch(&name).and_then(|scratch| {
            let (process, group) = self.start(command, case, workspace, &scratch.path)?;
            Ok((process, group, scratch))
        });
        let (mut process, _group, _scratch) = match started {
            Ok(started) => started,
            Err(error) => return CommandOutcome::NotStarted { why: error.to_string() },
        };
        let mut stdin = process.stdin.take();
        let answer = answer.as_bytes().to_vec();
        // A command may ignore stdin, so write errors do not matter.
        let feed = tokio::spawn(async move {
            if let Some(pipe) = &mut stdin {
                let _ = pipe.write_all(&answer).await;
            }
        });
        let read = tokio::time::timeout(limit, async {
            let printed = process.stdout.read_to_end().await;
            let status = if printed.is_ok() { process.wait().await } else { None };
            (printed, status)
        });
        let end = match read.await {
            Err(_) => CommandOutcome::TimedOut,
            Ok((Err(_), _)) => CommandOutcome::TooMuchOutput,
            Ok((Ok(printed), status)) => {
                let printed = String::from_utf8_lossy(&printed);
                let stdout = self.host.redactor.apply(&printed).into_owned();
                end(status, stdout)
            }
        };
        // A command that never reads its stdin would leave the task in a full pipe.
        feed.abort();
        // A command that was cut off gets no grace period.
        let ended = matches!(end, CommandOutcome::Exited { .. } | CommandOutcome::Killed { .. });
        process.stop(if ended { GRACE } else { Duration::ZERO }).await;
        end
    }

    fn start(
        &self,
        command: &CommandCheck,
        case: &str,
        workspace: Option<&Path>,
        scratch: &Path,
    ) -> Result<(SupervisedProcess, Option<CaseGroup>), ProgramStartError> {
        let host = &self.host;
        host.standing().map_err(|error| ProgramStartError::Sandbox(error.clone()))?;
        let path = variable(&host.environment, "PATH").map_or(OsStr::new(DEFAULT_PATH), OsStr::new);
        let found = host.find(command.run.program(), path)?;
        let folder = workspace.unwrap_or(&host.project);
        let mut policy = host.policy(folder, path);
        policy.allow.push(found.clone());
        policy.write.push(scratch.to_owned());
        policy.write.extend(workspace.map(Path::to_owned));
        // The folders of other cases have to stay hidden from commands, too.
        policy.protect_unless_needed(&host.scratch_root);
        let group = host.create_case_group(&mut policy)?;
        // The agent's own variables, such as a key, are none of the command's business.
        let mut environment = passed_on(&host.environment, &[]);
        let scratch = scratch.to_string_lossy();
        for (name, value) in [("HOME", &*scratch), ("TMPDIR", &*scratch), (CASE, case)] {
            environment.insert(name.to_owned(), value.to_owned());
        }
        let mut program = vec![found.into_os_string()];
        program.extend(command.run.words().iter().skip(1).map(OsString::from));
        let stderr = Arc::new(Mutex::new(StderrBuffer::default()));
        let started = SupervisedProcess::start(
            &host.harness,
            &policy,
            &program,
            &environment,
            folder,
            &stderr,
        );
        Ok((started?, group))
    }
}

fn end(status: Option<ExitStatus>, stdout: String) -> CommandOutcome {
    match status.and_then(|status| status.code()) {
        // Exit codes of the supervisor: see `process::describe`.
        Some(signal @ 129..=192) => CommandOutcome::Killed { signal: signal - 128 },
        Some(code) if code == i32::from(EXIT_NOT_STARTED) => {
            CommandOutcome::NotStarted { why: "the program could not be executed".to_owned() }
        }
        Some(code) => CommandOutcome::Exited { code, stdout },
        None => {
            CommandOutcome::NotStarted { why: "its supervisor ended without a word".to_owned() }
        }
    }
}
