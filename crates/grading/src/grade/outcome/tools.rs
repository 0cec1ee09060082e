//! Recognizes tools that run commands or change files by the names agents use, and extracts the
//! relevant arguments.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Names of tools that run shell commands, in lower case.
const SHELLS: [&str; 19] = [
    "bash",
    "shell",
    "exec_command",
    "run_shell_command",
    "run_terminal_cmd",
    "run_terminal_command",
    "run_in_terminal",
    "execute_command",
    "execute_bash",
    "terminal",
    "run",
    "local_shell",
    "shell_command",
    "run_command",
    "container.exec",
    "unified_exec",
    "cmdrunaction",
    "powershell",
    "command",
];

/// Names of tools that change files, in lower case.
const EDITORS: [&str; 30] = [
    "edit",
    "multiedit",
    "write",
    "notebookedit",
    "create",
    "insert",
    "append",
    "str_replace",
    "str_replace_editor",
    "str_replace_based_edit_tool",
    "apply_patch",
    "apply_diff",
    "write_file",
    "writefile",
    "write_to_file",
    "write_new_file",
    "replace",
    "replace_in_file",
    "replace_file_content",
    "edit_file",
    "edit_block",
    "create_file",
    "delete_file",
    "insert_content",
    "search_and_replace",
    "patch",
    "file_editor",
    "multi_edit",
    "hashline_edit",
    "fileeditaction",
];

/// Effect of a tool call, as far as it matters for outcomes.
#[derive(Debug, PartialEq)]
pub(super) enum ToolEffect<'a> {
    /// Runs a command.
    Command(Cow<'a, str>),
    /// Changes a file. The path is empty if the call does not name one.
    Edit {
        path: Cow<'a, str>,
        /// True if the whole file is written.
        is_whole: bool,
    },
    /// Has no relevant effect.
    Other,
}

/// Arguments of editing tools in the spellings of different agents. The first path present is used.
#[derive(Deserialize, Default)]
#[serde(default)]
struct EditArguments<'a> {
    #[serde(borrow)]
    file_path: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "filePath")]
    file_path_in_camel_case: Option<Cow<'a, str>>,
    #[serde(borrow)]
    path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    target_file: Option<Cow<'a, str>>,
    #[serde(borrow)]
    notebook_path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    filename: Option<Cow<'a, str>>,
    #[serde(borrow)]
    absolute_path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    file: Option<Cow<'a, str>>,
    #[serde(borrow)]
    command: Option<Cow<'a, str>>,
}

impl<'a> EditArguments<'a> {
    fn into_path(self) -> Cow<'a, str> {
        let first = self.file_path.or(self.file_path_in_camel_case).or(self.path);
        let first = first.or(self.target_file).or(self.notebook_path).or(self.filename);
        first.or(self.absolute_path).or(self.file).unwrap_or_default()
    }
}

/// Strips the server prefix that MCP adds to a tool's name.
pub(in crate::grade) fn strip_mcp_server(tool: &str) -> &str {
    // Names are short and every call has one, so setting up a substring search would take longer.
    let joint = tool.as_bytes().windows(2).rposition(|two| two == b"__");
    joint.map_or(tool, |at| &tool[at + 2..])
}

/// Returns true if the tool runs shell commands.
pub(in crate::grade) fn is_shell(tool: &str) -> bool {
    let name = strip_mcp_server(tool);
    SHELLS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns true if the tool changes files.
pub(in crate::grade) fn is_editor(tool: &str) -> bool {
    EDITORS.iter().any(|known| known.eq_ignore_ascii_case(tool))
}

/// Determines the effect of a call.
pub(super) fn tool_effect<'a>(tool: &str, arguments: &'a str) -> ToolEffect<'a> {
    let name = strip_mcp_server(tool);
    let is = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let text = arguments.trim_start();
    let is_json = text.starts_with(['{', '[']);
    if is(&EDITORS) {
        return edit_effect(name, text, is_json);
    }
    if is(&SHELLS) && is_json {
        return shell_command(text).map_or(ToolEffect::Other, ToolEffect::Command);
    }
    // Some formats name a call after the first word of its command.
    if !is_json && !text.is_empty() && (is(&SHELLS) || text.starts_with(tool)) {
        return ToolEffect::Command(text.into());
    }
    ToolEffect::Other
}

fn edit_effect<'a>(name: &str, text: &'a str, is_json: bool) -> ToolEffect<'a> {
    if !is_json {
        // Either `create src/x.py`, or the text of a patch.
        let mut words = text.split_whitespace();
        let is_command = words.next().is_some_and(|word| word.eq_ignore_ascii_case(name));
        let path = words.next().filter(|_| is_command).unwrap_or_default();
        if is_command && path == "view" {
            return ToolEffect::Other;
        }
        return ToolEffect::Edit {
            path: path.into(),
            is_whole: name.eq_ignore_ascii_case("create"),
        };
    }
    let arguments: EditArguments<'_> = serde_json::from_str(text).unwrap_or_default();
    let command = arguments.command.as_deref().unwrap_or_default();
    // Some editing tools also have a command that only reads.
    if command == "view" {
        return ToolEffect::Other;
    }
    let name = name.to_ascii_lowercase();
    let is_whole = command == "create" || name.starts_with("write") || name.starts_with("create");
    ToolEffect::Edit { path: arguments.into_path(), is_whole }
}

/// Arguments of shell tools in the spellings of different agents. The first one present is used.
#[derive(Deserialize)]
struct ShellArguments<'a> {
    #[serde(borrow)]
    command: Option<CommandText<'a>>,
    #[serde(borrow)]
    cmd: Option<CommandText<'a>>,
    #[serde(borrow)]
    script: Option<CommandText<'a>>,
    #[serde(borrow, rename = "CommandLine")]
    command_line: Option<CommandText<'a>>,
    #[serde(borrow)]
    code: Option<CommandText<'a>>,
    #[serde(borrow)]
    input: Option<CommandText<'a>>,
    run_in_background: Option<Value>,
    is_background: Option<Value>,
    background: Option<Value>,
}

/// A command given as a string or as an argument list, whose last element is the shell's script.
/// `None` for any other JSON type.
struct CommandText<'a>(Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for CommandText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A raw value lets long commands be borrowed instead of copied.
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        Ok(Self(match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str::<BorrowedText<'_>>(raw).ok().map(|said| said.0),
            Some(b'[') => {
                let words: Vec<Value> = serde_json::from_str(raw).unwrap_or_default();
                words.last().and_then(Value::as_str).map(|word| word.to_owned().into())
            }
            _ => None,
        }))
    }
}

/// A string that is borrowed if it has no escapes.
#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns the command in the arguments of a shell tool. A background command is ignored, because
/// it is still running when its result arrives.
fn shell_command(json: &str) -> Option<Cow<'_, str>> {
    if json.starts_with('[') {
        return serde_json::from_str::<CommandText<'_>>(json).ok()?.0;
    }
    let shell: ShellArguments<'_> = serde_json::from_str(json).ok()?;
    let in_background = [shell.run_in_background, shell.is_background, shell.background];
    if in_background.contains(&Some(Value::Bool(true))) {
        return None;
    }
    let first = shell.command.or(shell.cmd).or(shell.script).or(shell.command_line);
    first.or(shell.code).or(shell.input)?.0
}
