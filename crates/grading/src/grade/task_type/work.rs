//! Infers the type of a task from the work done: the kinds of files changed and commands run.
//!
//! This sees every call, so for speed it scans only the start of the arguments and does not parse
//! JSON.

use std::sync::LazyLock;

use memchr::memmem;
use regex::RegexSet;

use super::TaskType;
use crate::english;
use crate::grade::outcome::{is_editor, is_shell, strip_mcp_server};
use selftest_sessions::Event;

/// Maximum number of calls to examine; more would not change the type.
const MAX_CALLS: u32 = 400;

/// Maximum number of bytes of arguments to examine.
const MAX_LOOKED_AT: usize = 1000;

/// Argument names that tools use for a file path.
const FILES: [&str; 7] =
    ["file_path", "filePath", "path", "notebook_path", "absolute_path", "target_file", "filename"];

/// Tools that search the web, and tools that read or search files, in lower case.
const WEB: [&str; 5] = ["websearch", "webfetch", "web_search", "web_fetch", "google_web_search"];
const READERS: [&str; 12] = [
    "read",
    "grep",
    "glob",
    "ls",
    "read_file",
    "list_directory",
    "open",
    "find_file",
    "search",
    "list_files",
    "search_files",
    "read_many_files",
];

/// Kinds of commands, in order: writing files, publishing work, checking, setting up machines,
/// reading.
static COMMANDS: LazyLock<RegexSet> = LazyLock::new(|| {
    english::regex_set([
        r"\bapply_patch\b|\bsed -i|\bcat >{1,2} ",
        r"\bgit push\b|\bgh pr (create|merge)\b|\b(npm|cargo) publish\b|\btwine upload\b|\bgh release\b",
        r"\b(pytest|cargo test|go test|npm (run )?test|jest|vitest|tox|mvn test|rspec)\b|\bcheck-types\b|\blint\b",
        r"\b(docker|podman|kubectl|terraform|helm|systemctl|ansible)\b|\b(npm|pnpm|yarn|pip3?|uv|cargo|apt(-get)?|brew) (tool )?(install|add|i|sync)\b",
        r"\b(ls|cat|head|tail|find|grep|rg|sed -n|nl|tree|pwd|git (status|log|diff|show))\b",
    ])
});

/// Work done for a task: counts of changed files and commands by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskWork {
    calls: u32,
    /// File changes by kind.
    code: u32,
    tests: u32,
    notes: u32,
    settings: u32,
    /// All commands, and among them those that publish work, run checks or set up machines.
    commands: u32,
    pushes: u32,
    checks: u32,
    machines: u32,
    /// Reads of files, and web searches.
    reads: u32,
    searches: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedFileKind {
    Code,
    Test,
    Notes,
    Settings,
}

impl TaskWork {
    /// Counts the calls of an event.
    pub fn add(&mut self, event: &Event<'_>) {
        for call in &event.calls {
            if self.calls >= MAX_CALLS {
                return;
            }
            self.calls += 1;
            let name = strip_mcp_server(&call.name);
            let arguments = call.arguments.trim_start();
            let arguments = &arguments[..arguments.floor_char_boundary(MAX_LOOKED_AT)];
            if is_editor(name) {
                self.edit(name, arguments);
            } else if is_shell(name) || (!name.is_empty() && arguments.starts_with(name)) {
                self.command(arguments);
            } else if WEB.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                self.searches += 1;
            } else if READERS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                self.reads += 1;
            }
        }
    }

    fn edit(&mut self, name: &str, arguments: &str) {
        let is_json = arguments.starts_with('{');
        let path = if is_json {
            if json_string_value(arguments, "command") == Some("view") {
                self.reads += 1;
                return;
            }
            FILES.iter().find_map(|key| json_string_value(arguments, key))
        } else {
            // A command line such as `create src/x.py`.
            let mut words = arguments.split_whitespace();
            words.next().filter(|word| *word == name).and_then(|_| words.next())
        };
        let path = path.unwrap_or_default();
        // A plan that the agent writes for itself.
        if path.contains("/.claude/plans/") {
            return;
        }
        match file_kind(path) {
            ChangedFileKind::Code => self.code += 1,
            ChangedFileKind::Test => self.tests += 1,
            ChangedFileKind::Notes => self.notes += 1,
            ChangedFileKind::Settings => self.settings += 1,
        }
    }

    fn command(&mut self, arguments: &str) {
        self.commands += 1;
        let command = ["command", "cmd"].iter().find_map(|key| json_string_value(arguments, key));
        // Without JSON, the arguments are the command line itself.
        for kind in &COMMANDS.matches(command.unwrap_or(arguments)) {
            let count = match kind {
                0 => &mut self.code,
                1 => &mut self.pushes,
                2 => &mut self.checks,
                3 => &mut self.machines,
                _ => &mut self.reads,
            };
            *count += 1;
        }
    }

    /// Returns true if tools were called but none is a developer's tool.
    pub(super) fn is_non_developer(&self) -> bool {
        self.calls > 0 && *self == Self { calls: self.calls, ..Self::default() }
    }

    fn changes(&self) -> u32 {
        self.code + self.tests + self.notes + self.settings
    }

    /// Infers the type from the work alone.
    pub(super) fn task_type(&self) -> TaskType {
        let changes = self.changes();
        if changes > 0 {
            return self.single_kind().unwrap_or(TaskType::FeatureImpl);
        }
        match self {
            _ if self.pushes > 0 => TaskType::Deployment,
            _ if self.checks > 0 => TaskType::Testing,
            _ if self.machines > 0 => TaskType::Infrastructure,
            _ if self.searches > 0 || self.reads > 1 => TaskType::Research,
            _ => TaskType::General,
        }
    }

    /// Returns the type if all changes are of one kind other than code.
    fn single_kind(&self) -> Option<TaskType> {
        let kinds = [
            (self.notes, TaskType::Documentation),
            (self.tests, TaskType::Testing),
            (self.settings, TaskType::Infrastructure),
        ];
        let changes = self.changes();
        kinds.into_iter().find(|(count, _)| *count > 0 && *count == changes).map(|(_, kind)| kind)
    }

    /// Corrects a type suggested by cues. A question that led to code is a feature, and a feature
    /// that consists only of text or settings is documentation or infrastructure.
    pub(super) fn correct_type(&self, said: TaskType) -> TaskType {
        match (said, self.single_kind()) {
            (TaskType::Research, _) if self.code > 0 => TaskType::FeatureImpl,
            (TaskType::FeatureImpl | TaskType::Testing, Some(TaskType::Documentation)) => {
                TaskType::Documentation
            }
            (TaskType::FeatureImpl, Some(TaskType::Infrastructure)) => TaskType::Infrastructure,
            (said, _) => said,
        }
    }
}

/// Returns the raw text under a key of a JSON object.
fn json_string_value<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = json;
    loop {
        let at = memmem::find(rest.as_bytes(), key.as_bytes())?;
        // The name of the key may also occur within a value.
        let is_key = rest[..at].ends_with('"') && rest[at + key.len()..].starts_with('"');
        rest = &rest[at + key.len()..];
        if !is_key {
            continue;
        }
        let text = rest[1..].trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        let bytes = text.as_bytes();
        let is_end = |at: &usize| bytes[*at] == b'"' && (*at == 0 || bytes[*at - 1] != b'\\');
        let end = (0..bytes.len()).find(is_end).unwrap_or(bytes.len());
        return Some(&text[..end]);
    }
}

fn file_kind(path: &str) -> ChangedFileKind {
    const NOTES: [&str; 5] = ["md", "mdx", "rst", "adoc", "txt"];
    const SETTINGS: [&str; 10] =
        ["yml", "yaml", "toml", "ini", "cfg", "conf", "tf", "lock", "env", "gitignore"];
    let path = path.to_ascii_lowercase();
    let mut parts = path.rsplit(['/', '\\']).filter(|part| !part.is_empty());
    let name = parts.next().unwrap_or_default();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_named = |names: &[&str]| names.iter().any(|beginning| name.starts_with(beginning));
    if NOTES.contains(&extension) || is_named(&["readme", "license", "changelog"]) {
        return ChangedFileKind::Notes;
    }
    let in_tests = parts
        .take(2)
        .any(|folder| matches!(folder, "test" | "tests" | "spec" | "specs" | "__tests__"));
    let is_test = name.starts_with("test_")
        || stem.ends_with("_test")
        || stem.rsplit_once('.').is_some_and(|(_, inner)| matches!(inner, "test" | "spec"));
    if in_tests || is_test {
        return ChangedFileKind::Test;
    }
    let is_settings = SETTINGS.contains(&extension)
        || matches!(
            name,
            "dockerfile" | "containerfile" | "makefile" | "justfile" | "package.json"
        )
        || is_named(&["tsconfig", ".env"])
        || name == "vercel.json"
        || (name.starts_with('.') && (name.ends_with("rc") || stem.ends_with("rc")))
        || path.contains(".github/");
    if is_settings { ChangedFileKind::Settings } else { ChangedFileKind::Code }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::ToolCall;

    fn work(calls: &[(&'static str, &'static str)]) -> TaskWork {
        let call = |&(name, arguments): &(&'static str, &'static str)| ToolCall {
            name: name.into(),
            arguments: arguments.into(),
            ..ToolCall::default()
        };
        let mut work = TaskWork::default();
        work.add(&Event { calls: calls.iter().map(call).collect(), ..Event::default() });
        work
    }

    #[test]
    fn what_was_done_has_a_type_by_itself() {
        for (calls, expected) in [
            (&[][..], TaskType::General),
            (&[("Edit", r#"{"file_path":"/Users/test/dev/app/src/x.rs"}"#)], TaskType::FeatureImpl),
            (
                &[("Write", r#"{"file_path":"/a/tests/x.rs","content":"\"path\""}"#)],
                TaskType::Testing,
            ),
            (
                &[("Write", r#"{"content":"a","file_path":"C:\\p\\README.md"}"#)],
                TaskType::Documentation,
            ),
            (&[("create", "create .github/workflows/ci.yml")], TaskType::Infrastructure),
            (&[("Bash", r#"{"command":"git push origin main"}"#)], TaskType::Deployment),
            (&[("shell", r#"{"command":["bash","-lc","pnpm run lint"]}"#)], TaskType::Testing),
            (&[("Bash", r#"{"command": "docker compose up"}"#)], TaskType::Infrastructure),
            (&[("WebSearch", "{}")], TaskType::Research),
            (&[("Read", "{}"), ("mcp__files__read", "{}")], TaskType::Research),
            (&[("Read", "{}")], TaskType::General),
            (&[("str_replace_editor", r#"{"command":"view","path":"a.rs"}"#)], TaskType::General),
            (&[("Write", r#"{"file_path":"/h/.claude/plans/p.md"}"#)], TaskType::General),
        ] {
            assert_eq!(work(calls).task_type(), expected, "{calls:?}");
        }
    }

    #[test]
    fn what_was_done_corrects_what_cues_say() {
        let code = work(&[("Edit", r#"{"file_path":"a.rs"}"#)]);
        assert_eq!(code.correct_type(TaskType::Research), TaskType::FeatureImpl);
        assert_eq!(code.correct_type(TaskType::Debugging), TaskType::Debugging);
        let notes = work(&[("Edit", r#"{"file_path":"a.md"}"#)]);
        assert_eq!(notes.correct_type(TaskType::FeatureImpl), TaskType::Documentation);
        assert_eq!(notes.correct_type(TaskType::Debugging), TaskType::Debugging);
    }

    #[test]
    fn tools_of_other_trades_are_foreign() {
        assert!(work(&[("get_user_details", "{}")]).is_non_developer());
        assert!(!work(&[("get_user_details", "{}"), ("Read", "{}")]).is_non_developer());
        assert!(!work(&[]).is_non_developer());
        let booked = work(&[("book_flight", "{}")]);
        assert_eq!(TaskType::from_task("I want to change my flight", &booked), TaskType::General);
    }

    #[test]
    fn values_are_found_as_they_are_written() {
        assert_eq!(json_string_value(r#"{"path" : "a\"b", "x": 1}"#, "path"), Some(r#"a\"b"#));
        assert_eq!(json_string_value(r#"{"xpath":"n","path":"y"#, "path"), Some("y"));
        assert_eq!(json_string_value(r#"{"path":["a"]}"#, "path"), None);
        assert_eq!(json_string_value(r#"{"a":"path"#, "path"), None);
        assert_eq!(json_string_value("", "path"), None);
    }
}
