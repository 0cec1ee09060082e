//! Confines a program under test with namespaces, a private file system, Landlock, system call
//! filters and control groups. A supervisor makes permitted connections, ends the whole process
//! tree and records denied attempts. The caller clears the environment. macOS uses a `sandbox-exec`
//! profile instead, Windows a job object.
//!
//! ```text
//! selftest ─► selftest __sut supervise POLICY -- PROGRAM    own session; enters the namespaces,
//!               │                                           looks at calls, notes attempts
//!               └► selftest __sut exec POLICY -- PROGRAM    process 1 in there: makes the view,
//!                    │                                      locks itself, collects orphans
//!                    └► PROGRAM
//! ```
//!
//! Two processes of our own binary sit in between, because running code between `fork` and `exec`
//! would take unsafe code. This crate is independent of tasks, prompts and answers.

mod attempt;
#[cfg(target_os = "linux")]
mod case_cgroup;
#[cfg(unix)]
mod confine;
#[cfg(target_os = "linux")]
mod control;
mod error;
#[cfg(unix)]
mod group;
#[cfg(windows)]
#[path = "ungrouped.rs"]
mod group;
#[cfg(windows)]
mod job;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod landlock_rules;
pub mod limits;
#[cfg(target_os = "linux")]
mod loopback;
#[cfg(target_os = "linux")]
mod namespaces;
mod policy;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
pub mod stale_folder;
#[cfg(unix)]
mod supervise;
mod support;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod usage_watch;
#[cfg(target_os = "linux")]
mod view;
#[cfg(target_os = "linux")]
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

pub use attempt::{AttemptCount, AttemptKind, SandboxAttempt, read_notes};
pub use error::{PolicyArgumentError, RunGroupError};
pub use group::{CaseGroup, RunGroup};
pub use policy::{SandboxLevel, SandboxPolicy, toolchains};
pub use support::{EnforcedLimits, SandboxSupport, SandboxUnavailableError};

/// The hidden first argument that starts one of this crate's processes.
pub const SUBCOMMAND: &str = "__sut";

/// The macOS program that runs others in a sandbox.
#[cfg(not(target_os = "linux"))]
const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// Exit code if the program could not be started.
pub const EXIT_NOT_STARTED: u8 = 127;

/// Runs the sandbox process that the arguments request; `None` if the first is not [`SUBCOMMAND`]. `main`
/// must call it before anything else, while the process is single-threaded.
pub fn run_if_requested(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != SUBCOMMAND {
        return None;
    }
    let step = arguments.next().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();
    let ended = match step.to_str() {
        #[cfg(unix)]
        Some("supervise") => supervise::run(&rest),
        #[cfg(unix)]
        Some("exec") => confine::run(&rest),
        #[cfg(windows)]
        Some("supervise") => job::run(&rest),
        _ => Err(error::SandboxError::UnknownProcess),
    };
    Some(ended.map_or_else(
        |error| {
            // If stderr is broken as well, the error cannot be reported anywhere.
            let _ = writeln!(std::io::stderr(), "selftest: {error}");
            ExitCode::from(EXIT_NOT_STARTED)
        },
        ExitCode::from,
    ))
}

/// Returns true if the kernel reports the network namespace of a socket (Linux 5.14).
pub fn reports_socket_networks() -> bool {
    #[cfg(target_os = "linux")]
    return std::os::unix::net::UnixDatagram::unbound()
        .is_ok_and(|socket| kernel::network_id(std::os::fd::AsFd::as_fd(&socket)).is_ok());
    #[cfg(not(target_os = "linux"))]
    return false;
}

/// Returns the Landlock ABI version that this kernel enforces; 0 if none.
pub fn landlock_abi() -> i32 {
    #[cfg(target_os = "linux")]
    return landlock_rules::abi();
    #[cfg(not(target_os = "linux"))]
    return 0;
}
