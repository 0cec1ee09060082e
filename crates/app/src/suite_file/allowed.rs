//! Whose shell lines may be run: those of skills and cases that a person allowed by name, on a
//! machine that can confine them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use selftest_checks::evals::ShellPermission;
use selftest_sandbox::limits::SandboxMode;
use selftest_sandbox::{SandboxLevel, SandboxSupport};
use selftest_text::escape::terminal;

/// The least version of Landlock's interface under which strangers' lines are run where there are no
/// namespaces: with it a program is kept to its files and off the network.
const CONFINED: i32 = 4;

/// The skills and cases whose shell lines a person allowed.
pub(super) struct AllowedCommands {
    pub names: Vec<String>,
    /// True if this machine confines programs to their files and off the network.
    is_confined: bool,
    /// The skills and cases that have shell lines.
    seen: Mutex<BTreeSet<String>>,
}

impl AllowedCommands {
    pub(super) fn new(names: &[String]) -> Self {
        let (names, seen) = (names.to_vec(), Mutex::default());
        let is_confined = !names.is_empty() && can_confine();
        Self { names, is_confined, seen }
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the lines of the case with these names may run.
    pub(super) fn rule(&self, skill: &str, id: &str) -> ShellPermission {
        let names = [skill.to_owned(), id.to_owned(), format!("{skill}/{id}")];
        let is_allowed = names.iter().any(|name| self.names.contains(name));
        self.seen().extend(names);
        if !is_allowed {
            let name = terminal(skill, 80);
            let why = format!("shell lines are run only with --allow-commands {name}");
            ShellPermission::Denied(why)
        } else if !self.is_confined {
            let why = "allowed, and not run: this machine cannot confine it to files and network";
            ShellPermission::Denied(why.to_owned())
        } else {
            ShellPermission::Allowed
        }
    }

    /// The first name that stands for no shell line.
    pub(super) fn unused(&self) -> Option<&String> {
        let seen = self.seen();
        self.names.iter().find(|name| !seen.contains(*name))
    }
}

/// Whatever `sut.sandbox` says: these lines are a stranger's.
fn can_confine() -> bool {
    let harness = std::env::current_exe().ok();
    let standing =
        harness.and_then(|harness| SandboxSupport::detect(&harness, SandboxMode::BestEffort).ok());
    standing.is_some_and(|it| it.level == SandboxLevel::Full || it.landlock_abi >= CONFINED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(names: &[&str], is_confined: bool) -> AllowedCommands {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        AllowedCommands { names, is_confined, seen: Mutex::default() }
    }

    #[test]
    fn lines_are_run_only_by_name_and_only_confined() {
        for name in ["ferry", "3", "ferry/3"] {
            let allowed = allowed(&[name], true);
            assert_eq!(allowed.rule("ferry", "3"), ShellPermission::Allowed);
            assert_eq!(allowed.unused(), None);
        }
        let refused = |allowed: &AllowedCommands| match allowed.rule("ferry", "3") {
            ShellPermission::Denied(why) => why,
            ShellPermission::Allowed => panic!("it was allowed"),
        };
        let other = allowed(&["ferry/4", "harbour"], true);
        assert!(refused(&other).contains("--allow-commands ferry"));
        assert_eq!(other.unused().map(String::as_str), Some("ferry/4"));
        assert!(refused(&allowed(&["ferry"], false)).contains("cannot confine"));
    }
}
