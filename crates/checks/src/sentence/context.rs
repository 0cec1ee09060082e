//! What a case says around a sentence.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::data;
use super::skeleton::{is_path, regex};

/// What a case says around a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentenceContext {
    /// The only data file that the case names.
    pub data_file: Option<String>,
    /// Name of the skill under test.
    pub skill: Option<String>,
    /// Names of other skills that the case is about.
    pub others: Vec<String>,
    /// Where the text may be that a sentence is about, besides in the answer.
    pub(super) work: WrittenWork,
}

/// The files that a case asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum WrittenWork {
    /// None: the answer is all there is.
    #[default]
    None,
    /// This file.
    File(String),
    /// Several, or some whose names it does not say.
    Unnamed,
}

/// A file that is written: "saves the plan to plan.md".
static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:sav|writ|creat|generat|export|produc|output|put|stor|deliver)\w*\b[^.\n]{0,80}?[\s`'\x22(](?P<path>[A-Za-z0-9_@./-]*[A-Za-z0-9_-]\.[A-Za-z][A-Za-z0-9]{0,9})\b",
    )
});
/// A request for work on files that it does not name.
static WORK: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:create|creates|write|generate|implement|build|scaffold|add|refactor|fix|update|migrate|convert|port|set up|save|edit|modify|make|produce|draft|design|render|export|translate)\b",
    )
});

impl SentenceContext {
    /// Reads the texts of a case: what is asked, and everything else that it says.
    pub fn of<'t>(
        prompt: &'t str,
        texts: impl IntoIterator<Item = &'t str>,
        skill: Option<&str>,
    ) -> Self {
        let mut data_files = BTreeSet::new();
        let mut written = BTreeSet::new();
        // Most texts name no file, which is cheap to see.
        let with_dot = |text: &&str| text.contains('.');
        for text in texts.into_iter().chain([prompt]).filter(with_dot) {
            data_files.extend(data::files(text).map(ToOwned::to_owned));
            let paths = WRITTEN.captures_iter(text).map(|found| found["path"].to_owned());
            written.extend(paths.filter(|path| is_path(path)));
        }
        let only = |files: BTreeSet<String>| {
            let mut files = files.into_iter();
            files.next().filter(|_| files.next().is_none())
        };
        let is_written = !written.is_empty();
        let work = match only(written) {
            Some(path) => WrittenWork::File(path),
            None if is_written || WORK.is_match(prompt) => WrittenWork::Unnamed,
            None => WrittenWork::None,
        };
        Self {
            data_file: only(data_files),
            skill: skill.map(ToOwned::to_owned),
            others: Vec::new(),
            work,
        }
    }

    /// Returns true for the name of a skill that the case is about.
    pub(super) fn is_skill(&self, name: &str) -> bool {
        self.skill.iter().chain(&self.others).any(|known| known.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_file_can_be_meant() {
        let of = |prompt: &str| SentenceContext::of(prompt, [], None).data_file;
        assert_eq!(
            SentenceContext::of("Write caseplan.json", ["caseplan.json.version === '1'"], None)
                .data_file
                .as_deref(),
            Some("caseplan.json")
        );
        assert_eq!(of("Write a.json and b.yaml"), None);
        assert_eq!(of("Write a plan"), None);
    }

    #[test]
    fn a_text_may_be_in_the_file_that_a_case_asks_for() {
        for (prompt, wanted) in [
            ("What is the capital of France?", WrittenWork::None),
            (
                "Summarise it and save the summary to out/sum.md.",
                WrittenWork::File("out/sum.md".to_owned()),
            ),
            ("Create a.md, then write b.md", WrittenWork::Unnamed),
            ("Implement the parser", WrittenWork::Unnamed),
        ] {
            assert_eq!(SentenceContext::of(prompt, [], None).work, wanted, "{prompt}");
        }
    }
}
