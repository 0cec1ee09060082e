//! Probes of the sandbox: programs under test that try to get out, to find the answers, or to harm
//! the run. Each hole of a red team has one. These need Linux with namespaces.
//!
//! `as_an_ordinary_user` runs all of them again as a user without rights, where these tests run as
//! root.
#![cfg(target_os = "linux")]

mod acp;
mod addresses;
mod files;
mod folder;
mod life;
mod limits;
mod local;
mod machine;
mod network;
mod programs;
mod protocol;
mod user;

use selftest_harness::sut::{SandboxEvidence, SandboxState};
use selftest_sandbox::limits::SandboxMode;
use selftest_sandbox::{AttemptCount, SandboxLevel, SandboxSupport};

use crate::require;
use crate::sut::world::{World, harness};

/// Whether this machine has the whole sandbox; said when a test cannot test anything.
pub(crate) fn has_namespaces() -> bool {
    let standing = SandboxSupport::detect(&harness(), SandboxMode::BestEffort).unwrap();
    if standing.level != SandboxLevel::Full {
        let why = standing.missing_namespaces.unwrap_or_default();
        require::skip(format!("needs namespaces of users: {why}"));
    }
    standing.level == SandboxLevel::Full
}

/// Results of probes.
struct Probed {
    /// The answer, by lines.
    lines: Vec<String>,
    sandbox: SandboxEvidence,
}

impl Probed {
    /// Every probe was refused.
    #[track_caller]
    fn all_refused(self) -> Self {
        for line in &self.lines {
            assert!(line.contains(": refused "), "{line}\nall: {:#?}", self.lines);
        }
        assert!(!self.lines.is_empty());
        self
    }

    /// The attempts are evidence.
    #[track_caller]
    fn noted(self, expected: &[&str]) -> Self {
        let noted: Vec<String> = self
            .sandbox
            .attempts
            .iter()
            .map(|AttemptCount { attempt, .. }| attempt.to_string())
            .collect();
        for words in expected {
            assert!(noted.iter().any(|it| it.contains(words)), "{words} in {noted:#?}");
        }
        if !expected.is_empty() {
            assert_eq!(self.sandbox.state, SandboxState::BlockedAttempts, "{noted:#?}");
        }
        self
    }
}

/// Runs probes of the fixture `probe.py` by name.
async fn probe(world: &World, names: &[&str], given: &[(&str, &str)]) -> Probed {
    world.file("probe.py", include_str!("../fixtures/probe.py"));
    let mut run = vec!["/usr/bin/python3".to_owned(), "probe.py".to_owned(), names.join(",")];
    run.extend(given.iter().map(|(name, value)| format!("{name}={value}")));
    let world = world.again().set(|settings| settings.run = run);
    let (reply, evidence) = world.ask("go").await;
    let reply = reply.unwrap_or_else(|error| panic!("{error}\n{:?}", evidence.stderr));
    let lines = reply.output.lines().map(ToOwned::to_owned).collect();
    Probed { lines, sandbox: evidence.sandbox.unwrap() }
}
