//! Recognises events worth showing by their text: reverts, thanks, tests, edits. This only ranks
//! what is shown and does not affect grades.

use std::sync::LazyLock;

use regex::Regex;

/// Bytes searched at the start and at the end of a text. A command is at the start, thanks at
/// either end.
const MAX_SEARCHED: usize = 1500;

macro_rules! pattern {
    ($name:ident, $pattern:literal) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("the pattern is a constant"));
    };
}

// ASCII word boundaries keep the regex engine on its fast path.
pattern!(
    GIT_REVERT,
    r"(?-u:\b)git(?-u:\b)[^\n;&|]{0,80}?\s(revert|restore|reset|stash|checkout)(?-u:\b)"
);
pattern!(NEW_BRANCH, r"(?-u:\b)checkout\s+(-b|-B|--orphan)(?-u:\b)");
pattern!(
    TESTS,
    r"(?-u:\b)(cargo (nextest|test)|pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|playwright test|(npm|pnpm|yarn|bun|deno)( run)? test|go test|make (test|check)|ctest|bats|mvn [^\n;&|]{0,60}(test|verify)|gradlew? [^\n;&|]{0,60}(test|check)|rspec|rake test|phpunit|pest|dotnet test|swift test|mix test|manage\.py test|runtests|run_tests|tests?\.sh)(?-u:\b)"
);
pattern!(
    SHELL_EDIT,
    r"(?-u:\b)(apply_patch|sed -i|perl -p?i|tee|patch -p|git apply)(?-u:\b)|\bcat\s*>|<<\s*['\x22]?EOF"
);
pattern!(EDITOR_COMMAND, r"(?-u:\b)(create|str_replace|insert)(?-u:\b)");
// Includes complaints, because praise alone would make every session look good.
pattern!(
    VERDICT,
    r"(?i)(?-u:\b)(thanks|thank you|thx|cheers|perfect|awesome|great (job|work)|well done|lgtm|works now|revert|undo|roll(ed)? ?back|put (it|that|them) back|still (fails?|failing|broken|wrong|not)|(does ?n[o'’]?t|not) work(ing)?|that['’ ]?i?s (wrong|not right|not what)|you broke)(?-u:\b)"
);

/// Returns the searched start and end of a text.
fn head_and_tail(text: &str) -> [&str; 2] {
    if text.len() <= 2 * MAX_SEARCHED {
        return [text, ""];
    }
    let head = &text[..text.floor_char_boundary(MAX_SEARCHED)];
    let tail = &text[text.ceil_char_boundary(text.len() - MAX_SEARCHED)..];
    [head, tail]
}

/// Returns true if the user thanks, complains, or wants something undone.
pub(super) fn is_feedback(prompt: &str) -> bool {
    head_and_tail(prompt).iter().any(|end| VERDICT.is_match(end))
}

/// Kind of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Undoes changes.
    Revert,
    /// Runs tests.
    Test,
    /// Writes files.
    Edit,
    /// Anything else.
    Other,
}

/// Classifies a call by the tool's name and its arguments as formatted by
/// [`super::arguments::arguments`].
pub(super) fn call_kind(tool: &str, arguments: &str) -> CallKind {
    let tool = tool.to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| tool.contains(word));
    let head = head_and_tail(arguments)[0];
    if names(&["undo", "revert", "rollback"])
        || head.contains("undo_edit")
        || (GIT_REVERT.is_match(head) && !NEW_BRANCH.is_match(head))
    {
        CallKind::Revert
    } else if names(&["run_test", "runtest"]) || TESTS.is_match(head) {
        CallKind::Test
    } else if names(&["todo", "memory", "stdin"]) {
        // These tools write, but not to files of the project.
        CallKind::Other
    } else if names(&["editor", "str_replace"]) {
        // A single tool for viewing and editing; its command decides.
        if EDITOR_COMMAND.is_match(head) { CallKind::Edit } else { CallKind::Other }
    } else if names(&["write", "edit", "patch", "replace", "create", "insert", "append"])
        || SHELL_EDIT.is_match(head)
    {
        CallKind::Edit
    } else {
        CallKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_calls() {
        for (tool, arguments, expected) in [
            ("bash", "git -C repo checkout -- src/a.rs", CallKind::Revert),
            ("bash", "cd x && git reset --hard HEAD~1", CallKind::Revert),
            ("bash", "git checkout -b fix", CallKind::Other),
            ("bash", "git log; reset", CallKind::Other),
            ("undo_edit", "path: a.py", CallKind::Revert),
            ("str_replace_editor", "command: undo_edit, path: a.py", CallKind::Revert),
            ("str_replace_editor", "command: view, path: a.py", CallKind::Other),
            ("str_replace_editor", "command: create, path: a.py", CallKind::Edit),
            ("shell", "bash -lc cargo test --lib", CallKind::Test),
            ("Bash", "npm run test", CallKind::Test),
            ("bash", "python -m pytest -q", CallKind::Test),
            ("bash", "cat tests/a.py", CallKind::Other),
            ("bash", "cat > a.py <<EOF", CallKind::Edit),
            ("MultiEdit", "file_path: a.rs", CallKind::Edit),
            ("TodoWrite", "todos: []", CallKind::Other),
            ("Read", "file_path: a.rs", CallKind::Other),
        ] {
            assert_eq!(call_kind(tool, arguments), expected, "{tool} {arguments}");
        }
    }

    #[test]
    fn verdicts_of_users() {
        for said in
            ["Thanks!", "no, undo that", "it still fails", "That's wrong", "it doesn't work"]
        {
            assert!(is_feedback(said), "{said}");
        }
        for said in ["add a button", "what is a patch?", ""] {
            assert!(!is_feedback(said), "{said}");
        }
        let long = format!("{}thanks", "x ".repeat(10_000));
        assert!(is_feedback(&long));
    }
}
