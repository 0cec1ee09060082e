//! Errors of the sandbox's own processes and of control groups. A trial prints them, and reports
//! quote them as the reason why a machine has no sandbox.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// A policy on a command line that cannot be decoded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyArgumentError {
    /// The list ends before the program.
    #[error("expected `--` and a program")]
    NoSeparator,
    /// The list ends after a flag.
    #[error("expected a value after a flag")]
    NoValue,
    /// A value of another form.
    #[error("expected {expected} after `{flag}`")]
    Value {
        /// The flag.
        flag: &'static str,
        /// The expected form of its value.
        expected: &'static str,
    },
    /// A flag of another version.
    #[error("unknown flag {}", .0.display())]
    UnknownFlag(OsString),
}

/// A process of the sandbox cannot do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SandboxError {
    /// The first argument is no process of the sandbox.
    #[error("expected `supervise` or `exec`")]
    UnknownProcess,
    /// The policy cannot be decoded.
    #[error(transparent)]
    Policy(#[from] PolicyArgumentError),
    /// An argument beside the policy is missing or invalid.
    #[error("{0}")]
    Argument(&'static str),
    /// The OS denied a step.
    #[error("cannot {step}: {source}")]
    Step {
        /// The step, as in "cannot open /dev/null".
        step: &'static str,
        /// Error of the OS.
        source: io::Error,
    },
    /// A file of the harness, or a control group, cannot be used.
    #[error("cannot {verb} {}: {source}", path.display())]
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has them"))]
    Path {
        /// What was to be done with it.
        verb: &'static str,
        /// The file or group.
        path: PathBuf,
        /// Error of the OS.
        source: io::Error,
    },
    /// The kernel denied namespaces.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Namespaces(#[from] super::namespaces::NamespaceError),
    /// Landlock rules cannot be applied.
    #[cfg(target_os = "linux")]
    #[error("cannot confine: {0}")]
    Landlock(#[source] landlock::RulesetError),
    /// System calls cannot be filtered.
    #[cfg(target_os = "linux")]
    #[error("cannot filter system calls: {0}")]
    Filter(#[source] seccompiler::Error),
    /// The policy needs calls that wait for the supervisor.
    #[cfg(target_os = "linux")]
    #[error("cannot keep the program to {0}: its supervisor sees no calls")]
    Unwatched(&'static str),
    /// The supervisor ended.
    #[cfg(target_os = "linux")]
    #[error("the supervisor is gone")]
    SupervisorGone,
    /// A program that cannot be started.
    #[error("cannot start {}: {source}{}", program.display(), start_hint(source))]
    Start {
        /// The program.
        program: PathBuf,
        /// Error of the OS.
        source: io::Error,
    },
}

impl SandboxError {
    /// Returns a function that adds the failed step to an error of the OS.
    pub(crate) fn step<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> Self + Copy {
        move |source| Self::Step { step, source: source.into() }
    }

    pub(crate) fn start(program: &OsString, source: io::Error) -> Self {
        Self::Start { program: program.into(), source }
    }
}

/// Returns how to fix that a program was not started. A Windows error number means something else.
fn start_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error().filter(|_| cfg!(unix)) {
        // ENOEXEC.
        Some(8) => {
            "; it is neither a program for this machine nor a script whose first line names its \
             interpreter, such as `#!/bin/sh`"
        }
        // ENOENT.
        Some(2) => {
            "; it, its interpreter or its loader is not in the sandbox: grant the folder by \
             sut.command.readable"
        }
        // EACCES.
        Some(13) => {
            "; it may not be executed, or its folder is not granted: see sut.command.readable"
        }
        _ => "",
    }
}

/// Reasons why a run has no control group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunGroupError {
    /// The kernel or the system has none.
    #[error("this system has no control groups")]
    Unsupported,
    /// Only version 1 is mounted, or the process is outside the mounted part.
    #[error("there is no control group of version 2 that this process is seen in")]
    NotInVersion2,
    /// Nothing above the process's own group is writable.
    #[error("no control group above {} may be written", .0.display())]
    NotWritable(PathBuf),
}
