//! What a case says around a sentence.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::data;
use super::skeleton::{is_path, regex};

/// What a case says around a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentenceContext {
    /// The only data file that the case names, if the case asks for it.
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
    /// Some, or what it asks for is not clear.
    Some,
}

/// A file that is written: "saves the plan to plan.md".
static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:save|saving|write|writing|create|creating|generate|generating|export|produce|producing|output|put|store|storing|deliver)\w*\b(?P<between>[^.\n]{0,80}?)[\s`'\x22(](?P<path>[A-Za-z0-9_@./-]*[A-Za-z0-9_-]\.[A-Za-z][A-Za-z0-9]{0,9})\b",
    )
});
/// Words after which a file is what is read: "write a summary of notes.md".
static IS_READ: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:of|from|about|for|with|on|in|by|via|using|based|than|like|per|read|see|after)\b",
    )
});
/// A question, to which the answer is all that is asked for.
static QUESTION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)^\W*(?:what|which|who|when|where|why|how|is|are|does|do|can|should|explain|tell|list|name|compare|describe)\b",
    )
});
/// A request for work, or for a file that it does not name.
static WORK: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:creat\w*|writ\w*|rewrite|generate|implement|build|scaffold|add|refactor|fix|update|migrate|convert|port|set up|save|edit|modify|change|make|produce|draft|design|render|export|translate|prepare|put|store|send|files?|folders?|director(?:y|ies)|scripts?|reports?|documents?|readme|spreadsheets?|slides?)\b",
    )
});

/// Returns true if a text names a file or a folder.
fn names_path(text: &str) -> bool {
    text.split_whitespace().any(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '.');
        let word = word.trim_end_matches('.');
        is_path(word) || word.contains('/')
    })
}

impl SentenceContext {
    /// Reads the texts of a case: what is asked, and everything else that it says.
    pub fn of<'t>(
        prompt: &'t str,
        texts: impl IntoIterator<Item = &'t str>,
        skill: Option<&str>,
    ) -> Self {
        let mut data_files = BTreeSet::new();
        let mut written = BTreeSet::new();
        let mut is_written = false;
        // Most texts name no file, which is cheap to see.
        let with_dot = |text: &&str| text.contains('.');
        for text in texts.into_iter().chain([prompt]).filter(with_dot) {
            data_files.extend(data::files(text).map(ToOwned::to_owned));
            for found in WRITTEN.captures_iter(text).filter(|found| is_path(&found["path"])) {
                is_written = true;
                if !IS_READ.is_match(&found["between"]) {
                    written.insert(found["path"].to_owned());
                }
            }
        }
        let mut files = data_files.into_iter();
        let data_file =
            files.next().filter(|file| files.next().is_none() && written.contains(file));
        let is_question =
            QUESTION.is_match(prompt) && !WORK.is_match(prompt) && !names_path(prompt);
        let work = if is_question && !is_written { WrittenWork::None } else { WrittenWork::Some };
        Self { data_file, skill: skill.map(ToOwned::to_owned), others: Vec::new(), work }
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
        assert_eq!(of("Write a summary of a.json"), None, "it is read");
        assert_eq!(of("Explain a.json"), None);
    }

    #[test]
    fn only_a_question_asks_for_no_file() {
        for (prompt, wanted) in [
            ("What is the capital of France?", WrittenWork::None),
            ("Compare tea with coffee.", WrittenWork::None),
            ("Summarise it and save the summary to out/sum.md.", WrittenWork::Some),
            ("Write a short summary of notes.md", WrittenWork::Some),
            ("What does src/main.rs do?", WrittenWork::Some),
            ("Can you draft a plan?", WrittenWork::Some),
            ("Implement the parser", WrittenWork::Some),
            ("Schreibe ein Skript app.py", WrittenWork::Some),
            ("", WrittenWork::Some),
        ] {
            assert_eq!(SentenceContext::of(prompt, [], None).work, wanted, "{prompt}");
        }
    }
}
