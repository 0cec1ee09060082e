//! Files that the agent wrote in the session, and the number of tests in them.

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
