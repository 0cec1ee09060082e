//! Finds in tool calls which commands an agent ran, which files it read and whether it loaded a skill,
//! whatever its tools are called.
//!
//! A skill is loaded by a skill tool called with its name, or by any reading tool called with the path
//! of its `SKILL.md`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

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

/// Keys of paths in the arguments of a tool. A title stands in for the arguments of agents that report
/// none.
const PATH_KEYS: [&str; 16] = [
    "path",
    "file_path",
    "paths",
    "file",
    "files",
    "pattern",
    "title",
    "absolute_path",
    "relative_path",
    "filePath",
    "file_paths",
    "filename",
    "target_file",
    "notebook_path",
    "uri",
    "locations",
];

/// Compiles a pattern of this module.
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant, and a test compiles it")
}

/// What stands before the program in a part of a line.
static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^(?:[\s({!'"]+|(?:sudo|time|then|do|else|if|while|exec|command)\s+|(?:\S*/)?(?:bash|sh|zsh)\s+-[a-z]*c\s+|[A-Za-z_][A-Za-z0-9_]*=\S*\s+)+"#,
    )
});
/// Programs that show what is in a file.
static READERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:\S*/)?(?:(?:cat|head|tail|less|more|bat|nl|strings|xxd|type|Get-Content)|(?P<first>sed|grep|rg|awk|jq|yq))(?P<rest>\s.*)?$",
    )
});
/// Programs that show no content of files.
static OTHERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:(?:\S*/)?(?:rm|rmdir|mkdir|touch|ls|pwd|cd|echo|printf|chmod|chown|cp|mv|ln|true|false|sleep|date|which|whoami|export|test|\[|tree|kill|ps|exit|fi|done|esac|git\s+(?:status|add|commit|push|branch|checkout|switch|init|rm|mv))(?:[\s\])]|$)|#|$)",
    )
});
/// Programs that build and test. What they read they do not show, unless it is named.
static BUILDERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:\S*/)?(?:npm|pnpm|yarn|cargo|make|pytest|go|mvn|gradle|pip|pip3|uv|docker|apt|apt-get|brew)(?:\s|$)",
    )
});
/// Several files, a folder, or one that a variable names.
static SEVERAL: LazyLock<Regex> = LazyLock::new(|| pattern(r"[*?$]|(?:^|\s)\.{1,2}/?(?:\s|$)"));
static RECURSIVE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\s(?:-[A-Za-z]*[rR]|--recursive)"));
static IN_PLACE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\s(?:-i|--in-place)"));
/// Redirections that name no file.
static REDIRECTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"[0-9]*>&[0-9-]|&>"));

pub(in crate::check) fn command_run(
    wanted: &CommandRunCheck,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let Some(calls) = seen.tool_calls else {
        return FactStatement::not_reported(TOOLS);
    };
    let shown = quote_name(wanted.matches.as_str());
    let (mut ran, mut unseen) = (Vec::new(), 0u64);
    for call in calls {
        match shell_call(call) {
            ShellCall::Runs(line) => match wanted.matches.find(&line) {
                Ok(Some(_)) => ran.push(line),
                Ok(None) => {}
                Err(error) => return FactStatement::undecided(format!("{shown}: {error}")),
            },
            ShellCall::Unseen => unseen += 1,
            ShellCall::Other => {}
        }
    }
    let count = ran.len() as u64;
    let holds = wanted.bounds.contains(count);
    // Each of the others may have matched.
    if (1..=unseen).any(|more| wanted.bounds.contains(count + more) != holds) {
        let calls = plural(unseen, "call");
        return FactStatement::undecided(format!("what {calls} ran is not reported"));
    }
    let fact = match ran.as_slice() {
        [] => format!("runs no command that matches {shown}"),
        [one] => format!("runs {}, which matches {shown}", quote_name(one)),
        several => {
            format!("runs a command that matches {shown} {}", plural(several.len() as u64, "time"))
        }
    };
    let statement = FactStatement::new(holds, fact);
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
    let mut unclear = 0u64;
    for call in calls {
        match reading(call, path) {
            FileReading::Reads => {
                let tool = quote_name(&call.name);
                return FactStatement::new(true, format!("reads {name} with {tool}"));
            }
            // Another call may still show it clearly.
            FileReading::Unclear => unclear += 1,
            FileReading::No => {}
        }
    }
    if unclear > 0 {
        let calls = plural(unclear, "call");
        return FactStatement::undecided(format!("whether {calls} read {name} is not reported"));
    }
    FactStatement::new(false, format!("does not read {name}"))
}

/// What a call shows about the reading of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileReading {
    No,
    Unclear,
    Reads,
}

fn reading(call: &ObservedToolCall, path: &str) -> FileReading {
    let tool = call.name.to_lowercase();
    let arguments = &call.arguments;
    match shell_call(call) {
        // The path of a check has `/`, and on Windows the line may have `\`.
        ShellCall::Runs(line) => return line_reading(&line.replace('\\', "/"), path),
        ShellCall::Unseen => return FileReading::Unclear,
        ShellCall::Other => {}
    }
    // Claude's text editor also shows files, by this command of a tool that is named for edits.
    let is_view = arguments["command"] == "view";
    if tool.contains("skill") || changes_files(&call.name) && !is_view {
        return FileReading::No;
    }
    let is_reader = ["read", "view", "open", "grep"].iter().any(|part| tool.contains(part));
    let names = |value: &Value| mentions_path(value, path);
    match arguments {
        Value::Object(members) if !members.is_empty() => {
            let has = |key: &&str| members.get(*key).is_some();
            let greps = tool.contains("grep");
            let is_editing = members.get("command").is_some_and(Value::is_string) && !is_view;
            if is_editing {
                FileReading::No
            } else if PATH_KEYS.iter().any(|key| {
                // What is searched for is no file.
                !(greps && *key == "pattern") && members.get(*key).is_some_and(names)
            }) {
                FileReading::Reads
            } else if greps {
                // In a folder, or everywhere.
                let folder = members.get("path").and_then(Value::as_str).unwrap_or_default();
                // A last part with an ending is a file, and another one than the one that is looked
                // for.
                let is_elsewhere = folder.rsplit('/').next().is_some_and(|it| it.contains('.'));
                if is_elsewhere && folder != "." { FileReading::No } else { FileReading::Unclear }
            } else if is_reader && !PATH_KEYS.iter().any(has)
                || ["task", "agent"].iter().any(|part| tool.contains(part)) && names(arguments)
            {
                FileReading::Unclear
            } else {
                FileReading::No
            }
        }
        Value::String(_) if is_reader && names(arguments) => FileReading::Reads,
        Value::String(text) if !text.starts_with('{') => FileReading::No,
        _ if is_reader => FileReading::Unclear,
        _ => FileReading::No,
    }
}

/// Returns whether a shell line reads a file: whether one of its parts does.
fn line_reading(line: &str, path: &str) -> FileReading {
    let line = REDIRECTION.replace_all(line, "");
    let parts = line.split([';', '&', '|', '\n', '`']).flat_map(|part| part.split("$("));
    // The readings are ordered, so that the surest part decides.
    parts.map(|part| part_reading(part, path)).max().unwrap_or(FileReading::No)
}

fn part_reading(part: &str, path: &str) -> FileReading {
    let part = BEFORE.replace(part, "");
    let part = part.trim();
    let base = path.rsplit('/').next().unwrap_or(path);
    let is_named = contains_path(part, base);
    if OTHERS.is_match(part) {
        // `echo $(<a.md)`
        return if part.contains('<') && is_named { FileReading::Unclear } else { FileReading::No };
    }
    if BUILDERS.is_match(part) {
        return if is_named { FileReading::Unclear } else { FileReading::No };
    }
    let Some(found) = READERS.captures(part) else { return FileReading::Unclear };
    let program = found.name("first").map_or("", |name| name.as_str());
    // Elsewhere `-i` means something else, such as to ignore case.
    if program == "sed" && IN_PLACE.is_match(part) {
        return FileReading::No;
    }
    let rest = found.name("rest").map_or("", |rest| rest.as_str());
    // What follows is where the output goes.
    let shown = rest.split('>').next().unwrap_or_default();
    // The first word of a search is what is searched for.
    let files = if program.is_empty() {
        shown.to_owned()
    } else {
        let mut words = shown.split_whitespace().filter(|word| !word.starts_with('-'));
        words.next();
        words.collect::<Vec<_>>().join(" ")
    };
    if contains_path(&files, path) {
        FileReading::Reads
    } else if contains_path(shown, base)
        || SEVERAL.is_match(&files)
        || program == "grep" && RECURSIVE.is_match(shown)
        || program == "rg"
    {
        FileReading::Unclear
    } else {
        FileReading::No
    }
}

/// What a call runs.
enum ShellCall {
    Runs(String),
    /// A shell, whose command is not reported.
    Unseen,
    Other,
}

fn shell_call(call: &ObservedToolCall) -> ShellCall {
    let tool = call.name.to_lowercase();
    let arguments = &call.arguments;
    // These look at a command that runs already.
    let is_about_other = ["output", "kill", "skill"].iter().any(|part| tool.contains(part));
    let is_shell = !is_about_other && SHELLS.iter().any(|part| tool.contains(part));
    if let Value::String(line) = arguments {
        return match (is_shell, line.starts_with("{\"")) {
            (true, false) => ShellCall::Runs(line.clone()),
            // Arguments that were cut off.
            (true, true) => ShellCall::Unseen,
            (false, _) => ShellCall::Other,
        };
    }
    // A title stands in for the arguments of agents that report none.
    if arguments["kind"] == "execute"
        && let Some(title) = arguments["title"].as_str()
    {
        return ShellCall::Runs(title.trim_matches('`').to_owned());
    }
    // Editing tools have a key `command` as well, beside the path of a file.
    let has_path = ["path", "file_path"].iter().any(|key| arguments.get(*key).is_some());
    if is_about_other || !is_shell && has_path {
        return ShellCall::Other;
    }
    // For a tool that is no shell by its name, only the clearest keys stand for a command.
    let keys = if is_shell { &COMMAND_KEYS[..] } else { &COMMAND_KEYS[..2] };
    let given = keys.iter().find_map(|key| words(arguments.get(*key)?));
    match given.or_else(|| words(arguments.get("action")?.get("command")?)) {
        Some(line) => ShellCall::Runs(line),
        None if is_shell => ShellCall::Unseen,
        None => ShellCall::Other,
    }
}

/// Returns a command that is a text or a list of words.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        _ => None,
    }
}

/// Tools that load a skill, in lower case without `_` and `-`: those of Claude Code, Gemini CLI and
/// Hermes, and likely names in other agents.
const SKILL_TOOLS: [&str; 6] =
    ["skill", "skillview", "useskill", "loadskill", "activateskill", "invokeskill"];
/// Argument keys that hold the skill's name.
const NAME_KEYS: [&str; 4] = ["skill", "skill_name", "name", "command"];
/// Parts of tool names that indicate changing a file rather than reading it.
const CHANGES: [&str; 8] =
    ["write", "edit", "create", "delete", "patch", "replace", "move", "rename"];
/// File name of a skill.
const SKILL_FILE: &str = "SKILL.md";
/// Maximum nesting depth of searched arguments.
const MAX_SKILL_DEPTH: usize = 8;

pub(in crate::check) fn loaded(skill: &CheckText, seen: &CheckObservation<'_>) -> FactStatement {
    let Some(calls) = seen.tool_calls else {
        return FactStatement::not_reported("calls of tools");
    };
    let name = quote_name(skill.as_str());
    match calls.iter().find(|call| loads(call, skill.as_str())) {
        Some(call) => FactStatement::new(
            true,
            format!("loads the skill {name} with {}", quote_name(&call.name)),
        ),
        None => FactStatement::new(false, format!("does not load the skill {name}")),
    }
}

fn loads(call: &ObservedToolCall, skill: &str) -> bool {
    // Such as a call for a skill that the folder does not hold.
    if call.failed {
        return false;
    }
    if is_skill_tool(&call.name) {
        let given = match &call.arguments {
            Value::String(name) => Some(name.as_str()),
            arguments => NAME_KEYS.iter().find_map(|key| arguments.get(*key)?.as_str()),
        };
        return given.is_some_and(|given| is_name(given, skill));
    }
    !changes_files(&call.name) && mentions_path(&call.arguments, &format!("{skill}/{SKILL_FILE}"))
}

/// Returns true for the name of a tool that loads a skill, such as `Skill` or `activate_skill`.
pub fn is_skill_tool(name: &str) -> bool {
    // Agents spell the same tool `load_skill`, `LoadSkill` or `load-skill`.
    SKILL_TOOLS.contains(&name.to_lowercase().replace(['_', '-'], "").as_str())
}

/// Returns true for the name of a tool that changes files rather than reading them.
pub(super) fn changes_files(tool: &str) -> bool {
    let tool = tool.to_lowercase();
    CHANGES.iter().any(|part| tool.contains(part))
}

/// Returns true for the name itself, `/ferry`, or `harbour:ferry`.
fn is_name(given: &str, skill: &str) -> bool {
    let given = given.trim().trim_start_matches('/');
    // The name of a plugin may stand before that of its skill.
    given == skill || given.rsplit_once(':').is_some_and(|(_, name)| name == skill)
}

/// Returns true if any string in the arguments contains a path.
pub(super) fn mentions_path(value: &Value, path: &str) -> bool {
    mentions(value, path, 0)
}

fn mentions(value: &Value, path: &str, depth: usize) -> bool {
    let inner = |value: &Value| depth < MAX_SKILL_DEPTH && mentions(value, path, depth + 1);
    match value {
        Value::String(text) => contains_path(&text.replace('\\', "/"), path),
        Value::Array(items) => items.iter().any(inner),
        Value::Object(members) => members.values().any(inner),
        _ => false,
    }
}

/// Returns true if a text contains a path, alone or as the end of a longer one.
pub(super) fn contains_path(text: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.match_indices(path).any(|(at, _)| {
        let after = text[at + path.len()..].chars().next();
        // `not-ferry/SKILL.md` belongs to another skill.
        !text[..at].ends_with(is_part)
            && !after.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/'))
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
                failed: false,
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
            ("local_shell", json!({"action": {"command": ["npm", "test"]}})),
        ] {
            assert_eq!(outcome(&check, &[(name, arguments)]), CheckOutcome::Held, "{name}");
        }
        let written = [("Write", json!({"path": "a.md", "content": "npm test"}))];
        assert_eq!(outcome(&check, &written), CheckOutcome::Failed);
        for unseen in [Value::Null, json!("{\"command\": \"npm te"), json!({"timeout": 3})] {
            let calls = [("Bash", unseen)];
            assert_eq!(outcome(&check, &calls), CheckOutcome::Undecided, "{calls:?}");
            let not = json!({"not": check.clone()});
            assert_eq!(outcome(&not, &calls), CheckOutcome::Undecided, "{calls:?}");
        }
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
            ("Bash", json!({"command": "head x && rm docs/a.md"}), CheckOutcome::Failed),
            ("Bash", json!({"command": "npm test 2>&1 | tail -5"}), CheckOutcome::Failed),
            ("Bash", json!({"command": "sed -i s/a/b/ docs/a.md"}), CheckOutcome::Failed),
            ("Bash", json!({"command": "cat > docs/a.md"}), CheckOutcome::Failed),
            ("Bash", json!({"command": "bash -lc 'cat docs/a.md'"}), CheckOutcome::Held),
            ("Bash", json!({"command": "grep -n b docs/a.md"}), CheckOutcome::Held),
            ("Bash", json!({"command": "cd docs && cat a.md"}), CheckOutcome::Undecided),
            ("Bash", json!({"command": "cat docs/*.md"}), CheckOutcome::Undecided),
            ("Bash", json!({"command": "grep -rn b docs"}), CheckOutcome::Undecided),
            ("Bash", json!({"command": "source docs/a.md"}), CheckOutcome::Undecided),
            ("Bash", json!({"command": "git show HEAD:docs/a.md"}), CheckOutcome::Undecided),
            ("Bash", Value::Null, CheckOutcome::Undecided),
            ("Read", Value::Null, CheckOutcome::Undecided),
            ("edit", json!({"command": "view", "path": "docs/a.md"}), CheckOutcome::Held),
            ("edit", json!({"command": "create", "path": "docs/a.md"}), CheckOutcome::Failed),
            ("AskUserQuestion", json!({"question": "docs/a.md?"}), CheckOutcome::Failed),
            ("Write", json!({"file_path": "docs/a.md"}), CheckOutcome::Failed),
            ("Read", json!({"file_path": "other-docs/a.md"}), CheckOutcome::Failed),
            ("Read", json!({"file_path": "docs/a.mdx"}), CheckOutcome::Failed),
        ] {
            assert_eq!(outcome(&check, &[(name, arguments)]), wanted, "{name}");
        }
    }

    fn loads_ferry(calls: Option<&[ObservedToolCall]>) -> CheckOutcome {
        let seen = CheckObservation { tool_calls: calls, ..CheckObservation::default() };
        loaded(&CheckText::new("ferry").unwrap(), &seen).outcome
    }

    fn call(name: &str, arguments: Value) -> ObservedToolCall {
        ObservedToolCall { name: name.to_owned(), arguments, failed: false }
    }

    #[test]
    fn a_call_that_failed_loads_nothing() {
        let mut call = call("skill", json!({ "name": "ferry" }));
        assert!(loads(&call, "ferry"));
        call.failed = true;
        assert!(!loads(&call, "ferry"));
    }

    #[test]
    fn tools_for_skills_and_reads_of_the_file_load_a_skill() {
        for loading in [
            call("Skill", json!({"skill": "ferry"})),
            call("skill", json!({"name": "/ferry"})),
            call("Skill", json!({"command": "harbour:ferry"})),
            call("activate_skill", json!("ferry")),
            call("Read", json!({"file_path": "/w/.claude/skills/ferry/SKILL.md"})),
            call("Bash", json!({"command": "cat .claude/skills/ferry/SKILL.md; ls"})),
            call("read_many", json!({"paths": ["a", "ferry/SKILL.md"]})),
            call("Read", json!({"file_path": "skills\\ferry\\SKILL.md"})),
        ] {
            assert_eq!(
                loads_ferry(Some(std::slice::from_ref(&loading))),
                CheckOutcome::Held,
                "{loading:?}"
            );
        }
        for other in [
            call("Skill", json!({"skill": "ferry-times"})),
            call("Skill", json!({})),
            call("Read", json!({"file_path": "skills/not-ferry/SKILL.md"})),
            call("Read", json!({"file_path": "skills/ferry/SKILL.mdx"})),
            call("Write", json!({"file_path": "skills/ferry/SKILL.md", "content": ""})),
            call("Bash", json!({"command": "ls skills/ferry"})),
            call("Read", Value::Null),
        ] {
            assert_eq!(
                loads_ferry(Some(std::slice::from_ref(&other))),
                CheckOutcome::Failed,
                "{other:?}"
            );
        }
        assert_eq!(loads_ferry(Some(&[])), CheckOutcome::Failed);
        assert_eq!(loads_ferry(None), CheckOutcome::Undecided, "nobody said what was called");
    }
}
