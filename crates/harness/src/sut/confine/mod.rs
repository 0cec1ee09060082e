//! Confines a program under test: Landlock, a cleared environment by its caller, and a
//! supervisor that ends its whole process tree.
//!
//! ```text
//! selftest ─► selftest __sut supervise POLICY -- PROGRAM     own session, adopts orphans
//!               └► selftest __sut exec POLICY -- PROGRAM     locks itself, then becomes
//!                    └► PROGRAM
//! ```
//!
//! Two processes of our own binary stand in between, because a library that forbids unsafe code
//! can run nothing between fork and exec. Nothing here knows of tasks, prompts or answers.

mod lock;
mod policy;
mod supervise;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

pub use lock::landlock_abi;
pub use policy::{Policy, toolchains};

/// The hidden first argument that starts a process of this module.
pub const WORD: &str = "__sut";

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
        Some("supervise") => supervise::run(&rest),
        Some("exec") => lock::exec(&rest),
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
