//! Reflections of made-up agents, good and bad.

use serde_json::{Value, json};

use crate::run::Run;
use crate::workspace::{CLEAR, Workspace};

/// Without any issue: 1.0.
pub(crate) fn good() -> Value {
    json!({
        "agent": "HAL", "goal": "Build a test project", "confidence": 0.8,
        "summary": "The test project builds, and its three tests run in the pipeline",
        "tags": ["loop:2", "status:success"],
    })
}

/// Brief, unsure, beside the goal and without tags: 0.45.
pub(crate) fn bad() -> Value {
    json!({
        "agent": "CRITIC", "goal": "Build a test project", "summary": "Did stuff",
        "confidence": 0.3, "tags": [],
    })
}

/// The same with another field.
pub(crate) fn with(mut document: Value, field: &str, value: impl Into<Value>) -> Value {
    document[field] = value.into();
    document
}

pub(crate) fn lines(documents: &[Value]) -> String {
    let lines: Vec<String> = documents.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

impl Workspace {
    /// Writes reflections as JSON Lines.
    pub(crate) fn reflections(self, documents: &[Value]) -> Self {
        self.file("reflections.jsonl", lines(documents))
    }

    /// A configuration with this section on reflections.
    pub(crate) fn reflection_config(self, section: &str) -> Self {
        self.config(format!("version: 1\ngrade:\n  reflection: {section}\nscenarios:\n{CLEAR}"))
    }

    /// `selftest improve reflect`
    pub(crate) fn reflect(&self, words: &[&str]) -> Run {
        self.clone().args([&["improve", "reflect"], words].concat()).run()
    }

    /// The same with this on its standard input.
    pub(crate) fn reflect_piped(&self, input: &str, words: &[&str]) -> Run {
        let workspace = self.clone().file("input", input);
        let piped = ["sh", "-c", "cat input | \"$0\" \"$@\""];
        workspace.within(piped).args([&["improve", "reflect"], words].concat()).run()
    }
}
