//! Tells a search that found nothing from a failure: `grep` and `which` end with exit code 1.

use super::{MAX_LOOKED_AT, program_name, split_commands, without_wrappers};

/// Returns true if the exit code of a command is that of a search or comparison.
pub(in crate::grade::outcome) fn ends_with_search(command: &str) -> bool {
    let command = &command[..command.floor_char_boundary(MAX_LOOKED_AT)];
    let segments = split_commands(command);
    let Some(last) = segments.last() else { return false };
    let word = |at: usize| last.words.get(at).map_or("", |word| &**word);
    // `command -v x` would be taken for a wrapper.
    if (word(0), word(1)) == ("command", "-v") {
        return true;
    }
    let words = without_wrappers(&last.words);
    let second = words.get(1).map_or("", |word| &**word);
    match program_name(words) {
        "grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "ack" | "pgrep" | "which" | "type"
        | "test" | "[" | "[[" | "cmp" | "diff" => true,
        "git" => {
            second == "grep"
                || (second == "diff"
                    && words.iter().any(|word| word == "--quiet" || word == "--exit-code"))
        }
        _ => false,
    }
}

/// Returns true if a failed search says no more than that it found nothing.
pub(in crate::grade::outcome) fn says_nothing_found(exit_code: Option<i64>, output: &str) -> bool {
    let output = output.trim();
    let (code, output) = match output.strip_prefix("Exit code ") {
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            (rest[..end].parse().ok(), rest[end..].trim())
        }
        None => (None, output),
    };
    let is_empty = |line: &str| {
        line.is_empty()
            || line.starts_with("which: no ")
            || line.ends_with(" not found")
            || matches!(line, "(no output)" | "(Bash completed with no output)")
    };
    exit_code.or(code) == Some(1) && output.lines().all(|line| is_empty(line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_search_may_find_nothing() {
        for command in [
            "grep -rn x src",
            "cat a | grep x",
            "which java",
            "command -v node",
            "cd a && rg x",
            "git grep x",
        ] {
            assert!(ends_with_search(command), "{command}");
        }
        for command in ["", "pytest", "grep x a | head", "grep x a; ls b", "sudo make grep"] {
            assert!(!ends_with_search(command), "{command}");
        }
    }

    #[test]
    fn a_search_that_failed_says_why() {
        assert!(says_nothing_found(Some(1), ""));
        assert!(says_nothing_found(None, "Exit code 1"));
        assert!(says_nothing_found(Some(1), "which: no java in (/usr/bin:/bin)"));
        assert!(!says_nothing_found(Some(2), ""));
        assert!(!says_nothing_found(None, ""));
        assert!(!says_nothing_found(Some(1), "grep: a.py: No such file or directory"));
    }
}
