//! Parses tool calls that Cline, Roo and Kilo let the model write as XML into its text,
//! `<read_file><path>a.rs</path></read_file>`. The results are in the next user message,
//! `[read_file for 'a.rs'] Result:`.
//!
//! Neither has an id. Calls and results are paired by tool name and, if a tool is used several
//! times, by number.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::block;
use crate::event::{ToolCall, ToolOutcome, ToolResult};
use crate::text::Text;

/// Tools of these agents. Any other element is part of the text.
const TOOLS: [&str; 39] = [
    "access_mcp_resource",
    "apply_diff",
    "apply_patch",
    "ask_followup_question",
    "attempt_completion",
    "browser_action",
    "codebase_search",
    "condense",
    "delete_file",
    "edit_file",
    "execute_command",
    "fetch_instructions",
    "focus_chain",
    "generate_explanation",
    "generate_image",
    "insert_content",
    "list_code_definition_names",
    "list_files",
    "load_mcp_documentation",
    "new_rule",
    "new_task",
    "plan_mode_respond",
    "read_command_output",
    "read_file",
    "replace_in_file",
    "report_bug",
    "run_slash_command",
    "search_and_replace",
    "search_files",
    "search_replace",
    "summarize_task",
    "switch_mode",
    "update_todo_list",
    "use_mcp_tool",
    "use_skill",
    "use_subagents",
    "web_fetch",
    "web_search",
    "write_to_file",
];

/// Tool that ends a task. Its text is the agent's last message, and no result has to follow.
const COMPLETION: &str = "attempt_completion";

/// Maximum bytes of a result's header, which quotes the call's argument.
const MAX_HEADER: usize = 4000;

/// Maximum number of calls read from one message.
const MAX_CALLS: usize = 200;

/// Elements around text that the user typed.
const TYPED: [&str; 6] = ["task", "user_message", "feedback", "answer", "user_input", "user_query"];

/// Prefixes of texts that these programs write in the user's place.
const HARNESS: [&str; 5] = [
    "[ERROR] You did not use a tool",
    "[ERROR] You must",
    "[TASK RESUMPTION]",
    "# Next Steps",
    "The previous task was interrupted",
];

/// Calls found in an agent's message.
pub(in super::super) struct XmlCalls {
    /// Text without the calls.
    pub(in super::super) text: String,
    pub(in super::super) calls: Vec<ToolCall<'static>>,
    /// Results of calls that end the task.
    pub(in super::super) results: Vec<ToolResult<'static>>,
}

/// Content of a message to the agent.
pub(in super::super) struct XmlPrompt {
    pub(in super::super) results: Vec<ToolResult<'static>>,
    /// Text typed by the user or written by the program in their place.
    pub(in super::super) text: String,
    pub(in super::super) is_harness: bool,
}

/// Numbers the uses of each tool in a message.
#[derive(Default)]
struct UseNumbers(HashMap<&'static str, u32>);

impl UseNumbers {
    fn id(&mut self, tool: &'static str) -> String {
        let number = self.0.entry(tool).or_default();
        *number += 1;
        if *number == 1 { tool.to_owned() } else { format!("{tool} {number}") }
    }
}

/// Extracts the calls from an agent's message; `None` if it has none.
pub(in super::super) fn take_calls(text: &str) -> Option<XmlCalls> {
    let (mut numbers, mut written) = (
        UseNumbers::default(),
        XmlCalls { text: String::new(), calls: Vec::new(), results: Vec::new() },
    );
    let (mut rest, mut is_fenced) = (text, false);
    let mut last_words = String::new();
    while !rest.is_empty() {
        let line_end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let line = &rest[..line_end];
        let begins = line.trim_start();
        // A call starts a line and is not inside a code block, where XML is just an example.
        let element = (!is_fenced && begins.starts_with('<') && written.calls.len() < MAX_CALLS)
            .then(|| element(rest.trim_start_matches([' ', '\t'])))
            .flatten();
        if let Some((tool, inside, after)) = element {
            let arguments = arguments(inside);
            let id = Text::from(numbers.id(tool));
            if tool == COMPLETION {
                if let Some(Value::String(result)) = arguments.get("result") {
                    result.clone_into(&mut last_words);
                }
                written.results.push(ToolResult {
                    call_id: id.clone(),
                    tool: tool.into(),
                    outcome: ToolOutcome::Ok,
                    ..ToolResult::default()
                });
            }
            let arguments = Text::from(Value::Object(arguments).to_string());
            written.calls.push(ToolCall { id, name: tool.into(), arguments });
            rest = after;
            continue;
        }
        is_fenced ^= begins.starts_with("```");
        written.text.push_str(line);
        rest = &rest[line_end..];
    }
    written.text.truncate(written.text.trim_end().len());
    let start = written.text.len() - written.text.trim_start().len();
    written.text.drain(..start);
    if !last_words.is_empty() {
        if !written.text.is_empty() {
            written.text.push_str("\n\n");
        }
        // The completion is what the user reads as the answer, so it is text and not only an
        // argument.
        written.text.push_str(last_words.trim());
    }
    (!written.calls.is_empty()).then_some(written)
}

/// Parses the element of a tool at the start of a text; returns its name, content and the text
/// after it. An unclosed element extends to the end, because the answer was cut off.
fn element(text: &str) -> Option<(&'static str, &str, &str)> {
    let name = text.strip_prefix('<')?.split_once('>')?.0;
    let tool = TOOLS.into_iter().find(|tool| *tool == name)?;
    let inside = &text[name.len() + 2..];
    let close = format!("</{tool}>");
    // A mention of the tool, not a call: a call has parameters or is empty.
    // Agents explain their tools in prose, as in "use <read_file> for that".
    let begins = inside.trim_start();
    if !begins.starts_with('<') {
        return None;
    }
    // The written file may contain the closing tag itself.
    let end = if tool == "write_to_file" { inside.rfind(&close) } else { inside.find(&close) };
    Some(match end {
        Some(end) => (tool, &inside[..end], &inside[end + close.len()..]),
        None => (tool, inside, ""),
    })
}

/// Parses the parameters of a call, which are its child elements.
fn arguments(inside: &str) -> Map<String, Value> {
    let mut arguments = Map::new();
    let mut rest = inside.trim_start();
    while let Some((name, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        let is_name = !name.is_empty()
            && name.len() <= 60
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if !is_name {
            break;
        }
        let close = format!("</{name}>");
        // These may contain their own closing tag.
        let end = if matches!(name, "content" | "diff") {
            after.rfind(&close)
        } else {
            after.find(&close)
        };
        let (value, after) = match end {
            Some(end) => (&after[..end], &after[end + close.len()..]),
            None => (after, ""),
        };
        arguments.insert(name.to_owned(), Value::String(value.trim_matches('\n').to_owned()));
        rest = after.trim_start();
    }
    arguments
}

/// Parses a message to one of these agents; returns `None` for a message of another kind.
pub(in super::super) fn parse_prompt(text: &str) -> Option<XmlPrompt> {
    // These agents add the element to every user message.
    let has_environment = text.contains("<environment_details>");
    let trimmed = text.trim_start();
    let is_harness = HARNESS.iter().any(|start| trimmed.starts_with(start));
    // The other elements appear only inside results.
    let is_typed = TYPED[..1].iter().chain(&TYPED[4..]).any(|tag| {
        trimmed.strip_prefix('<').is_some_and(|rest| rest.starts_with(tag))
            && typed(trimmed).is_some()
    });
    if !has_environment && !is_harness && !is_typed && header(trimmed).is_none() {
        return None;
    }
    let text = strip_elements(text, "<environment_details>", "</environment_details>");
    let (mut numbers, mut results) = (UseNumbers::default(), Vec::new());
    let mut words = String::new();
    let mut rest = text.as_str();
    // First the text before the first result, then one section per result.
    let mut section: Option<&'static str> = None;
    loop {
        let next = next_header(rest);
        let part = &rest[..next.map_or(rest.len(), |(at, _, _)| at)];
        match section {
            None => words.push_str(part),
            Some(tool) => {
                // A completion already got its result in the answer.
                // Bounded like the calls: a hostile message may hold any number of headers.
                if tool != COMPLETION && results.len() < MAX_CALLS {
                    results.push(result(tool, numbers.id(tool), part));
                }
                // Text that the user adds to a result has its own element.
                for tag in &TYPED[1..4] {
                    if let Some(said) = inside(part, tag) {
                        words.push('\n');
                        words.push_str(said.trim());
                    }
                }
            }
        }
        let Some((_, tool, after)) = next else { break };
        section = Some(tool);
        rest = &rest[after..];
    }
    let words = words.trim();
    let words = typed(words).unwrap_or(words).trim().to_owned();
    Some(XmlPrompt { results, text: words, is_harness })
}

/// Finds the next header of a result; returns its start, tool and end.
fn next_header(text: &str) -> Option<(usize, &'static str, usize)> {
    let mut at = 0;
    loop {
        if let Some((tool, length)) = header(&text[at..]) {
            return Some((at, tool, at + length));
        }
        at += text[at..].find('\n')? + 1;
    }
}

/// Parses a header at the start of a text; returns its tool and length.
fn header(text: &str) -> Option<(&'static str, usize)> {
    const END: &str = "] Result:";
    let name = text.strip_prefix('[')?;
    let length = name.find(|c: char| !c.is_ascii_lowercase() && c != '_')?;
    let given = &name[..length];
    // The only tool whose results have another name.
    let given = if given == "subagents" { "use_subagents" } else { given };
    let tool = TOOLS.into_iter().find(|tool| *tool == given)?;
    let rest = &text[..text.floor_char_boundary(MAX_HEADER)];
    Some((tool, rest.find(END)? + END.len()))
}

fn result(tool: &'static str, id: String, text: &str) -> ToolResult<'static> {
    let text = text.trim();
    let mut result = block::text_result(Text::from(text.to_owned()));
    // A command reports its exit code on a separate line; a tool that reads several files reports
    // an error per file.
    let code = text.lines().take(10).find_map(|line| line.strip_prefix("Exit code: "));
    if let Some(code) = code.and_then(|code| code.trim().parse::<i64>().ok()) {
        result.exit_code = Some(code);
        result.outcome = if code == 0 { ToolOutcome::Ok } else { ToolOutcome::Failed };
    }
    let is_file = text.starts_with("<file");
    if is_file && text.contains("<error>") && result.outcome == ToolOutcome::Unknown {
        result.outcome = ToolOutcome::Failed;
    }
    (result.call_id, result.tool) = (id.into(), tool.into());
    result
}

/// Returns the text that the user typed, inside the element that the program put around it.
fn typed(text: &str) -> Option<&str> {
    TYPED.iter().find_map(|tag| {
        let rest = text.strip_prefix('<')?.strip_prefix(tag)?;
        let (attributes, rest) = rest.split_once('>')?;
        let is_tag = attributes.is_empty() || attributes.starts_with(' ');
        let (inside, _) = rest.split_once(&format!("</{tag}>"))?;
        is_tag.then_some(inside)
    })
}

fn inside<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0)
}

/// Removes these elements from a text; an unclosed one extends to the end.
fn strip_elements(text: &str, open: &str, close: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, from)) = rest.split_once(open) {
        kept.push_str(before);
        rest = from.split_once(close).map_or("", |(_, after)| after);
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_leave_the_text_and_words_about_tools_stay() {
        let text = "I look.\n\n<read_file>\n<path>src/a.rs</path>\n</read_file>\n\
            <execute_command>\n<command>cargo test</command>\n\
            <requires_approval>false</requires_approval>\n</execute_command>\n\
            <read_file><path>b</path></read_file>";
        let written = take_calls(text).unwrap();
        assert_eq!(written.text, "I look.");
        let ids: Vec<_> = written.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["read_file", "execute_command", "read_file 2"]);
        assert_eq!(written.calls[0].arguments.as_str(), r#"{"path":"src/a.rs"}"#);
        for words in [
            "use <read_file> for files",
            "```\n<read_file>\n<path>a</path>\n</read_file>\n```",
            "<read_file>is a tool</read_file>",
            "<div>\n<path>a</path></div>",
        ] {
            assert!(take_calls(words).is_none(), "{words}");
        }
    }

    #[test]
    fn a_completion_is_said_and_a_call_that_was_cut_off_is_one() {
        let written = take_calls(
            "<attempt_completion>\n<result>\nAll done.\n</result>\n</attempt_completion>",
        )
        .unwrap();
        assert_eq!((written.text.as_str(), written.results.len()), ("All done.", 1));
        let torn = take_calls("<write_to_file>\n<path>a</path>\n<content>let x").unwrap();
        assert_eq!(torn.calls[0].arguments.as_str(), r#"{"path":"a","content":"let x"}"#);
    }

    #[test]
    fn results_and_words_of_the_next_message() {
        let text = "[read_file for 'src/a.rs'] Result:\nfn main() {}\n\
            [execute_command for 'cargo\ntest'] Result:\nCommand executed.\nExit code: 101\nOutput:\nno\n\
            [ask_followup_question for 'which?'] Result:\n<answer>\nthe first\n</answer>\n\
            <environment_details>\n# Files\n</environment_details>";
        let given = parse_prompt(text).unwrap();
        let outcomes: Vec<_> = given
            .results
            .iter()
            .map(|result| (result.call_id.as_str(), result.outcome, result.exit_code))
            .collect();
        assert_eq!(
            outcomes,
            [
                ("read_file", ToolOutcome::Unknown, None),
                ("execute_command", ToolOutcome::Failed, Some(101)),
                ("ask_followup_question", ToolOutcome::Unknown, None),
            ]
        );
        assert_eq!((given.text.as_str(), given.is_harness), ("the first", false));
        assert!(super::parse_prompt("plain words about [read_file]").is_none());
        let task = super::parse_prompt("<task>\nfix it\n</task>\n<environment_details>x").unwrap();
        assert_eq!(task.text, "fix it");
    }
}
