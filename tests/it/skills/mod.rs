//! `selftest improve skills`: what is recorded of their use, how well they work, which are in use
//! (docs/spec/skills-and-signals.md#skill-effectiveness).

mod commands;
mod disabling;
mod refresh;
mod sessions;

use serde_json::Value;

use crate::clock;
use crate::run::Run;
use crate::workspace::{CLEAR, Workspace};

impl Workspace {
    /// `selftest improve skills` with these words.
    pub(crate) fn skills(&self, words: &[&str]) -> Self {
        self.clone().args([&["improve", "skills"], words].concat())
    }

    /// Promotes a new version of a skill with that text.
    #[track_caller]
    pub(crate) fn promoted(self, name: &str, text: &str) -> Self {
        let workspace = self.file("SKILL.md", text);
        let _ = workspace.skills(&["promote", name, "--file", "SKILL.md"]).run().exit(0);
        workspace
    }

    /// Records so many executions with that status.
    pub(crate) fn used(self, name: &str, status: &str, count: u32) -> Self {
        let statement = format!(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count}) \
             INSERT INTO skill_executions (id, skill_version_id, user_id, execution_status, \
             created_at) SELECT lower(hex(randomblob(8))), id, user_id, '{status}', \
             '{:.9}' FROM skill_versions, n WHERE skill_name = '{name}' AND is_active",
            clock::now()
        );
        self.sql(&statement);
        self
    }

    /// A configuration with this `skills` section.
    pub(crate) fn skills_config(self, section: &str) -> Self {
        self.config(format!("version: 1\nskills: {section}\nscenarios:\n{CLEAR}"))
    }

    /// Version and status of a skill, the one that was put to use last first.
    #[track_caller]
    fn statuses(&self, name: &str) -> Vec<String> {
        let json = self.skills(&["history", name, "--json"]).run().exit(0).json();
        let versions = json["versions"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        versions.map(|one| format!("{} {}", text(&one["version"]), text(&one["status"]))).collect()
    }

    /// The history of a skill, oldest first.
    #[track_caller]
    pub(crate) fn actions(&self, name: &str) -> Vec<String> {
        let json = self.skills(&["history", name, "--json"]).run().exit(0).json();
        let audit = json["audit"].as_array().unwrap().iter();
        audit.map(|entry| entry["action"].as_str().unwrap().to_owned()).collect()
    }
}

/// Compares stdout with a snapshot, and says nothing on stderr.
#[track_caller]
fn shows(run: Run, name: &str) {
    assert_eq!(run.stderr, "", "{name}");
    let _ = run.snapshot(name);
}
