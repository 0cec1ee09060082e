//! Finds evidence in a case that the system under test did more than answer: changes to the
//! project, tool calls that name an answer key, and accesses denied by the sandbox. Pure. Isolation
//! itself is enforced elsewhere.

use serde_json::Value;

use super::case::Interruption;
use super::{CaseResult, CaseStep};
use selftest_checks::check::ObservedToolCall;
use selftest_sandbox::AttemptKind;

/// Answer keys with unmistakable paths. A bare `reports` folder could belong to the project.
const UNMISTAKABLE: &[&str] = &[
    "config/selftest.yaml",
    "config/suites",
    "docs/reports/selftest",
    "prompts/generator",
    "prompts/judge",
    "reports/selftest",
    ".selftest",
];

/// Maximum number of values inspected in one call's arguments.
const MAX_VALUES: usize = 10_000;

/// An action that the system under test should not have taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IsolationBreach {
    /// These files of the project changed while the case ran: `changed: a.md`.
    ProjectChanged(Vec<String>),
    /// The system under test reported a tool call with the path of an answer key.
    AnswerKeyNamed {
        /// Name of the tool.
        tool: String,
        /// Path of the answer key.
        path: String,
    },
    /// It tried to read this answer key and was denied.
    AnswerKeyRefused(String),
    /// It tried to read this file of keys or passwords and was denied.
    SecretRefused(String),
    /// Other denied actions: `connection to 10.0.0.1:80`.
    Refused(Vec<String>),
}

/// Returns the breaches of a case and its further trials. `more_keys` are additional files with
/// answers, such as the suite.
pub fn breaches(case: &CaseResult, more_keys: &[&str]) -> Vec<IsolationBreach> {
    let again = case.reruns.iter();
    let interruptions = case
        .interruption
        .iter()
        .chain(again.clone().filter_map(|rerun| rerun.interruption.as_ref()));
    let mut found: Vec<IsolationBreach> = Vec::new();
    for interruption in interruptions {
        if let Interruption::IsolationViolation(files) = interruption {
            found.push(IsolationBreach::ProjectChanged(files.clone()));
        }
    }
    let steps = case.steps.iter().chain(again.flat_map(|rerun| &rerun.steps));
    for call in steps.flat_map(tool_calls) {
        // The longest matching path is the most specific one.
        let keys = more_keys.iter().chain(UNMISTAKABLE);
        let named =
            keys.filter(|path| mentions_path(&call.arguments, path)).max_by_key(|path| path.len());
        if let Some(path) = named {
            let (tool, path) = (call.name.clone(), (*path).to_owned());
            let breach = IsolationBreach::AnswerKeyNamed { tool, path };
            if !found.contains(&breach) {
                found.push(breach);
            }
        }
    }
    let sandbox = case.evidence.sandbox.iter();
    let mut others = Vec::new();
    for attempt in sandbox.flat_map(|sandbox| &sandbox.attempts).map(|it| &it.attempt) {
        match attempt.kind {
            AttemptKind::AnswerKey => {
                found.push(IsolationBreach::AnswerKeyRefused(attempt.what.clone()));
            }
            AttemptKind::Secret => found.push(IsolationBreach::SecretRefused(attempt.what.clone())),
            _ => others.push(attempt.to_string()),
        }
    }
    found.extend((!others.is_empty()).then_some(IsolationBreach::Refused(others)));
    found
}

fn tool_calls(step: &CaseStep) -> impl Iterator<Item = &ObservedToolCall> {
    step.reply.iter().flat_map(|reply| reply.tool_calls.iter().flatten())
}

/// Returns true if a value anywhere in the arguments contains the path as a whole.
fn mentions_path(arguments: &Value, path: &str) -> bool {
    // Iterative and bounded, because the arguments come from the program under test.
    let mut waiting = vec![arguments];
    for _ in 0..MAX_VALUES {
        match waiting.pop() {
            Some(Value::String(text)) if contains_path(text, path) => return true,
            Some(Value::Array(items)) => waiting.extend(items),
            Some(Value::Object(members)) => waiting.extend(members.values()),
            Some(_) => {}
            None => return false,
        }
    }
    false
}

/// Returns true if the text contains the path and not merely as part of a longer name.
fn contains_path(text: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "._-".contains(c);
    // `reports/selftest` must not match within `my-reports/selftests`.
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + path.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_is_found_wherever_it_is_named_as_a_whole() {
        let path = "config/suites/ci.yaml";
        for arguments in [
            json!("config/suites/ci.yaml"),
            json!({ "file_path": "/home/me/project/config/suites/ci.yaml" }),
            json!({ "command": ["sh", "-c", "cat ./config/suites/ci.yaml | head"] }),
            json!([[{ "deep": "git show HEAD:config/suites/ci.yaml" }]]),
        ] {
            assert!(mentions_path(&arguments, path), "{arguments}");
        }
        for arguments in [
            json!({ "path": "config/suites/ci.yaml.md" }),
            json!({ "path": "my-config/suites/ci.yaml" }),
            json!({ "config/suites/ci.yaml": "a key is no value" }),
            json!(null),
            json!("README.md"),
        ] {
            assert!(!mentions_path(&arguments, path), "{arguments}");
        }
    }
}
