//! Who wrote the files of a session: those that the agent created, with the number of tests in them,
//! and results of tools that say that a person changed what the agent had written. Agents that
//! record such a change have a mark for it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::english;

/// Maximum number of stored names.
const MAX_CREATED: usize = 500;

/// Files that the agent wrote, by base name, with the number of tests that their text defines.
#[derive(Debug, Default)]
pub(super) struct CreatedFiles {
    files: BTreeMap<String, u64>,
}

/// Definition of a test in the usual languages. In a call's arguments line breaks are escaped.
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r#"\bdef test_?\w*\s*\(|\b(?:it|test|specify)(?:\.each\S*)?\s*\(\s*\\?['"`]|#\[(?:\w+::)?test\b|\bfunc Test\w+\(|@(?:Parameterized)?Test\b|\[(?:Fact|Theory|Test|TestMethod)\]|\bTEST(?:_F|_P|_CASE)?\(|@test \\?"|\bfunction test\w*\("#,
    )
});

impl CreatedFiles {
    /// Adds a file that was written whole, or text that was added to it.
    pub(super) fn add(&mut self, path: &str, text: &str, is_whole: bool) {
        let name = base_name(path);
        if name.is_empty() || (self.files.len() >= MAX_CREATED && !self.files.contains_key(name)) {
            return;
        }
        let tests = TEST.find_iter(text).count() as u64;
        let known = self.files.entry(name.to_owned()).or_default();
        // A file written whole loses the tests that it had; added text leaves them in place.
        *known = if is_whole { tests } else { known.saturating_add(tests) };
    }

    /// Returns true if the agent wrote a file of this name.
    pub(super) fn has(&self, path: &str) -> bool {
        self.files.contains_key(base_name(path))
    }

    /// Returns the number of files with tests.
    pub(super) fn test_files(&self) -> u64 {
        self.files.values().filter(|tests| **tests > 0).count() as u64
    }

    /// Returns the number of tests in all files.
    pub(super) fn tests(&self) -> u64 {
        self.files.values().fold(0, |sum, tests| sum.saturating_add(*tests))
    }
}

pub(super) fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// What a result says about other hands on the agent's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForeignEdit {
    /// The person changed the agent's proposal before it was written.
    OfProposal,
    /// The file was changed since the agent last touched it, by a person or a program such as a
    /// formatter.
    SinceTouched,
}

/// Bytes of a result that are examined; agents say it at the beginning, after the name of the file.
const MAX_EXAMINED: usize = 1000;

/// Sentences of agents about a changed proposal: Cline, Roo and Kilo; Gemini CLI and Qwen Code;
/// Claude Code.
const OF_PROPOSAL: [&str; 4] = [
    "the user made the following updates to your content",
    "user modified the `new_string` content to be",
    "user modified the `content` to be",
    "the user modified your proposed changes",
];

/// Sentences about a file: Claude Code, `OpenCode` and others.
const SINCE_TOUCHED: [&str; 3] = [
    "has been modified since read",
    "has been modified since it was last read",
    "has been unexpectedly modified",
];

/// Returns what a result of an editing tool says, if anything.
pub(super) fn foreign_edit(text: &str, error: &str) -> Option<ForeignEdit> {
    let start = |text: &str| text[..text.floor_char_boundary(MAX_EXAMINED)].to_lowercase();
    let says = |sentences: &[&str]| {
        [text, error].iter().any(|text| {
            let text = start(text);
            sentences.iter().any(|sentence| text.contains(sentence))
        })
    };
    if says(&OF_PROPOSAL) {
        Some(ForeignEdit::OfProposal)
    } else {
        says(&SINCE_TOUCHED).then_some(ForeignEdit::SinceTouched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_its_words() {
        for (text, expected) in [
            (
                "The user made the following updates to your content:\n\n-a\n+b\n\nThe updated content …",
                Some(ForeignEdit::OfProposal),
            ),
            (
                "Successfully modified file: /w/a.ts (1 replacements). User modified the `new_string` content to be: x",
                Some(ForeignEdit::OfProposal),
            ),
            (
                "The file /w/a.py has been updated.  The user modified your proposed changes before accepting them.",
                Some(ForeignEdit::OfProposal),
            ),
            (
                "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it.",
                Some(ForeignEdit::SinceTouched),
            ),
            (
                "File /w/a.ts has been modified since it was last read.\nLast modification: …",
                Some(ForeignEdit::SinceTouched),
            ),
            ("The file /w/a.py has been updated.", None),
            ("", None),
        ] {
            assert_eq!(foreign_edit(text, ""), expected, "{text}");
            assert_eq!(foreign_edit("", text), expected, "{text}");
        }
    }
}
