//! Finds in tool calls which commands an agent ran and which files it read, whatever its tools are called.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::skill::{changes_files, contains_path};
use super::{FactStatement, quote_name};
use crate::check::{CheckObservation, CheckText, CommandRunCheck, ObservedToolCall};
use selftest_text::wording::plural;

/// Parts of the names of tools that run commands.
const SHELLS: [&str; 8] =
    ["bash", "shell", "terminal", "exec", "command", "powershell", "console", "cmd"];
/// Keys of a command in the arguments of a tool.
const COMMAND_KEYS: [&str; 6] = ["command", "cmd", "commands", "script", "command_line", "input"];
/// What is reported by adapters that observe tools.
const TOOLS: &str = "calls of tools";

/// Programs that show what is in a file.
static READERS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:^|[\s;&|(/])(?:cat|head|tail|less|more|sed|grep|rg|awk|bat|nl|jq|yq|strings|xxd|type|Get-Content)\s",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

pub(in crate::check) fn command_run(
    wanted: &CommandRunCheck,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let Some(calls) = seen.tool_calls else {
        return FactStatement::not_reported(TOOLS);
    };
    let shown = quote_name(wanted.matches.as_str());
    let lines = calls.iter().filter_map(command_line);
    let ran: Vec<String> = lines.filter(|line| wanted.matches.find(line).is_some()).collect();
    let fact = match ran.as_slice() {
        [] => format!("runs no command that matches {shown}"),
        [one] => format!("runs {}, which matches {shown}", quote_name(one)),
        several => {
            format!("runs a command that matches {shown} {}", plural(several.len() as u64, "time"))
        }
    };
    let statement = FactStatement::new(wanted.bounds.contains(ran.len() as u64), fact);
    if wanted.bounds.limits() == (Some(1), None) {
        statement
    } else {
        statement.with_demand(format!("{} expected", wanted.bounds))
    }
}

pub(in crate::check) fn file_read(path: &CheckText, seen: &CheckObservation<'_>) -> FactStatement {
    let Some(calls) = seen.tool_calls else {
        return FactStatement::not_reported(TOOLS);
    };
    let name = quote_name(path.as_str());
    let path = path.as_str().trim_start_matches("./");
    match calls.iter().find(|call| reads(call, path)) {
        Some(call) => {
            FactStatement::new(true, format!("reads {name} with {}", quote_name(&call.name)))
        }
        None => FactStatement::new(false, format!("does not read {name}")),
    }
}

fn reads(call: &ObservedToolCall, path: &str) -> bool {
    match command_line(call) {
        Some(line) => READERS.is_match(&line) && contains_path(&line.replace('\\', "/"), path),
        None => !changes_files(&call.name) && super::skill::mentions_path(&call.arguments, path),
    }
}

/// Returns the command that a call runs; `None` if it runs none.
fn command_line(call: &ObservedToolCall) -> Option<String> {
    let tool = call.name.to_lowercase();
    let is_shell = SHELLS.iter().any(|part| tool.contains(part));
    let arguments = &call.arguments;
    if let Value::String(line) = arguments {
        return is_shell.then(|| line.clone());
    }
    // A title stands in for the arguments of agents that report none.
    if arguments["kind"] == "execute"
        && let Some(title) = arguments["title"].as_str()
    {
        return Some(title.trim_matches('`').to_owned());
    }
    let keys = if is_shell { &COMMAND_KEYS[..] } else { &COMMAND_KEYS[..2] };
    keys.iter().find_map(|key| match arguments.get(*key)? {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::{self, CheckOutcome};

    fn outcome(check: &Value, calls: &[(&str, Value)]) -> CheckOutcome {
        let calls: Vec<ObservedToolCall> = calls
            .iter()
            .map(|(name, arguments)| ObservedToolCall {
                name: (*name).to_owned(),
                arguments: arguments.clone(),
            })
            .collect();
        let seen = CheckObservation {
            output: "a",
            tool_calls: Some(&calls),
            ..CheckObservation::default()
        };
        check::decide(&check::read(check).unwrap(), &seen).outcome
    }

    #[test]
    fn commands_are_found_in_tools_of_any_name() {
        let check = json!({"command_run": r"npm\s+test"});
        for (name, arguments) in [
            ("Bash", json!({"command": "cd app && npm test"})),
            ("run_shell_command", json!({"command": "npm  test"})),
            ("shell", json!({"command": ["bash", "-lc", "npm test"]})),
            ("npm test", json!({"title": "`npm test`", "kind": "execute"})),
            ("execute", json!({"cmd": "npm test"})),
        ] {
            assert_eq!(outcome(&check, &[(name, arguments)]), CheckOutcome::Held, "{name}");
        }
        let written = [("Write", json!({"path": "a.md", "content": "npm test"}))];
        assert_eq!(outcome(&check, &written), CheckOutcome::Failed);
        let twice =
            [("Bash", json!({"command": "npm test"})), ("Bash", json!({"command": "npm test"}))];
        let once = json!({"command_run": {"matches": "npm test", "max": 1}});
        assert_eq!(outcome(&once, &twice), CheckOutcome::Failed);
    }

    #[test]
    fn a_file_is_read_by_a_tool_or_a_program_that_shows_it() {
        let check = json!({"file_read": "docs/a.md"});
        for (name, arguments, wanted) in [
            ("Read", json!({"file_path": "/work/docs/a.md"}), CheckOutcome::Held),
            ("Bash", json!({"command": "head -5 docs/a.md"}), CheckOutcome::Held),
            ("Bash", json!({"command": "rm docs/a.md"}), CheckOutcome::Failed),
            ("Write", json!({"file_path": "docs/a.md"}), CheckOutcome::Failed),
            ("Read", json!({"file_path": "other-docs/a.md"}), CheckOutcome::Failed),
            ("Read", json!({"file_path": "docs/a.mdx"}), CheckOutcome::Failed),
        ] {
            assert_eq!(outcome(&check, &[(name, arguments)]), wanted, "{name}");
        }
    }
}
