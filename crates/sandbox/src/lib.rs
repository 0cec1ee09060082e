//! Confines a program under test: namespaces and a file system of its own, Landlock, filters of
//! system calls, control groups, a cleared environment by its caller, and a supervisor that connects
//! where it may, ends its whole process tree and notes what was attempted. On macOS a profile of
//! `sandbox-exec`, on Windows a job object.
//!
//! ```text
//! selftest ─► selftest __sut supervise POLICY -- PROGRAM    own session; enters the namespaces,
//!               │                                           looks at calls, notes attempts
//!               └► selftest __sut exec POLICY -- PROGRAM    process 1 in there: makes the view,
//!                    │                                      locks itself, collects orphans
//!                    └► PROGRAM
//! ```
//!
//! Two processes of our own binary stand in between, because a library that forbids unsafe code
//! can run nothing between fork and exec. Nothing here knows of tasks, prompts or answers.

mod attempt;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod control;
#[cfg(unix)]
mod group;
#[cfg(windows)]
#[path = "ungrouped.rs"]
mod group;
#[cfg(target_os = "linux")]
mod grouped;
#[cfg(windows)]
mod job;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod landlocked;
pub mod leftover;
pub mod limits;
#[cfg(unix)]
mod lock;
#[cfg(target_os = "linux")]
mod loopback;
#[cfg(target_os = "linux")]
mod namespaces;
mod policy;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
mod standing;
#[cfg(unix)]
mod supervise;
#[cfg(target_os = "linux")]
mod view;
#[cfg(target_os = "linux")]
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

pub use attempt::{Attempt, AttemptKind, Attempts, read_notes};
pub use group::{CaseGroup, RunGroup};
pub use policy::{Policy, Walls, toolchains};
pub use standing::{Held, NoSandbox, Standing};

/// The hidden first argument that starts a process of this module.
pub const WORD: &str = "__sut";

/// The program of macOS that puts others into a sandbox.
#[cfg(not(target_os = "linux"))]
const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// Exit code when the program could not be started.
pub const NOT_STARTED: u8 = 127;

/// Runs the process of this module that the arguments ask for; `None` when their first is not
/// [`WORD`]. `main` calls it before anything else, while there is one thread only.
pub fn entry(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != WORD {
        return None;
    }
    let step = arguments.next().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();
    let ended = match step.to_str() {
        #[cfg(unix)]
        Some("supervise") => supervise::run(&rest),
        #[cfg(unix)]
        Some("exec") => lock::run(&rest),
        #[cfg(windows)]
        Some("supervise") => job::run(&rest),
        _ => Err("expected `supervise` or `exec`".to_owned()),
    };
    Some(ended.map_or_else(
        |why| {
            // Nobody is left to tell when this fails too.
            let _ = writeln!(std::io::stderr(), "selftest: {why}");
            ExitCode::from(NOT_STARTED)
        },
        ExitCode::from,
    ))
}

/// Whether the kernel tells of which network a socket is: Linux 5.14.
pub fn tells_networks() -> bool {
    #[cfg(target_os = "linux")]
    return std::os::unix::net::UnixDatagram::unbound()
        .is_ok_and(|socket| kernel::network_of(std::os::fd::AsFd::as_fd(&socket)).is_ok());
    #[cfg(not(target_os = "linux"))]
    return false;
}

/// The version of Landlock's interface that this kernel enforces; 0 where there is none.
pub fn landlock_abi() -> i32 {
    #[cfg(target_os = "linux")]
    return landlocked::abi();
    #[cfg(not(target_os = "linux"))]
    return 0;
}
