//! Detects from tool calls whether an agent loaded a skill: a skill tool called with the skill's
//! name, or any reading tool called with the path of its `SKILL.md`.

use serde_json::Value;

use super::{FactStatement, quote_name};
use crate::check::{CheckObservation, CheckText, ObservedToolCall};

/// Tools that load a skill, in lower case without `_` and `-`: those of Claude Code, Gemini CLI and
/// Hermes, and likely names in other agents.
const TOOLS: [&str; 6] =
    ["skill", "skillview", "useskill", "loadskill", "activateskill", "invokeskill"];
/// Argument keys that hold the skill's name.
const NAME_KEYS: [&str; 4] = ["skill", "skill_name", "name", "command"];
/// Parts of tool names that indicate changing a file rather than reading it.
const CHANGES: [&str; 8] =
    ["write", "edit", "create", "delete", "patch", "replace", "move", "rename"];
/// File name of a skill.
const FILE: &str = "SKILL.md";
/// Maximum nesting depth of searched arguments.
const MAX_DEPTH: usize = 8;

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
    if is_skill_tool(&call.name) {
        let given = match &call.arguments {
            Value::String(name) => Some(name.as_str()),
            arguments => NAME_KEYS.iter().find_map(|key| arguments.get(*key)?.as_str()),
        };
        return given.is_some_and(|given| is_name(given, skill));
    }
    !changes_files(&call.name) && mentions_path(&call.arguments, &format!("{skill}/{FILE}"))
}

/// Returns true for the name of a tool that loads a skill, such as `Skill` or `activate_skill`.
pub fn is_skill_tool(name: &str) -> bool {
    // Agents spell the same tool `load_skill`, `LoadSkill` or `load-skill`.
    TOOLS.contains(&name.to_lowercase().replace(['_', '-'], "").as_str())
}

/// Returns true for the name of a tool that changes files rather than reading them.
pub(super) fn changes_files(tool: &str) -> bool {
    let tool = tool.to_lowercase();
    CHANGES.iter().any(|part| tool.contains(part))
}

/// Returns true for the name itself, `/ferry`, or `harbour:ferry`.
fn is_name(given: &str, skill: &str) -> bool {
    let given = given.trim().trim_start_matches('/');
    given == skill || given.rsplit_once(':').is_some_and(|(_, name)| name == skill)
}

/// Returns true if any string in the arguments contains a path.
pub(super) fn mentions_path(value: &Value, path: &str) -> bool {
    mentions(value, path, 0)
}

fn mentions(value: &Value, path: &str, depth: usize) -> bool {
    let inner = |value: &Value| depth < MAX_DEPTH && mentions(value, path, depth + 1);
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
    use crate::check::CheckOutcome;

    fn outcome(calls: Option<&[ObservedToolCall]>) -> CheckOutcome {
        let seen = CheckObservation { tool_calls: calls, ..CheckObservation::default() };
        loaded(&CheckText::new("ferry").unwrap(), &seen).outcome
    }

    fn call(name: &str, arguments: Value) -> ObservedToolCall {
        ObservedToolCall { name: name.to_owned(), arguments }
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
                outcome(Some(std::slice::from_ref(&loading))),
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
                outcome(Some(std::slice::from_ref(&other))),
                CheckOutcome::Failed,
                "{other:?}"
            );
        }
        assert_eq!(outcome(Some(&[])), CheckOutcome::Failed);
        assert_eq!(outcome(None), CheckOutcome::Undecided, "nobody said what was called");
    }
}
