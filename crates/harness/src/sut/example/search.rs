//! Searches the files that the example agent knows: by path, by section, by words. Pure.

use std::collections::BTreeSet;

use crate::prose::{heading_of, is_prose, normalise_spaces, quotes, section_end};
use crate::sut::project::ProjectFile;
use selftest_text::words::fold;

/// Words that say nothing about what is asked for.
const COMMON: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "could", "do", "does", "for", "from",
    "give", "have", "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "one", "or",
    "please", "say", "says", "should", "tell", "that", "the", "their", "there", "this", "to",
    "use", "was", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you",
    "your", "answer", "file", "project", "sentence", "short", "only", "exactly", "many", "much",
    "about",
];

/// One file that can be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchedFile {
    pub(super) path: String,
    text: String,
    /// The text with single spaces, for quotes that go over lines.
    flat: String,
    is_prose: bool,
    /// False for a text that came with a request.
    has_lines: bool,
}

/// A sentence and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundSentence {
    pub(super) text: String,
    pub(super) path: String,
    /// Line from 1; `None` in a text that is no file.
    pub(super) line: Option<usize>,
}

impl FoundSentence {
    /// Returns the sentence in quotation marks with its place behind it.
    pub(super) fn cited(&self) -> String {
        match self.line {
            Some(line) => format!("“{}” ({}:{line})", self.text, self.path),
            None => format!("“{}”", self.text),
        }
    }

    /// Returns the place of the sentence.
    pub(super) fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.path),
            None => self.path.clone(),
        }
    }
}

impl SearchedFile {
    fn new(path: &str, text: &str) -> Self {
        let is_prose = is_prose(path);
        let (path, text, flat) = (path.to_owned(), text.to_owned(), normalise_spaces(text));
        Self { path, text, flat, is_prose, has_lines: true }
    }

    /// Creates a text that came with a request.
    pub(super) fn attached(text: &str) -> Self {
        Self { is_prose: true, has_lines: false, ..Self::new("the attached text", text) }
    }

    /// Returns true if the text holds this statement word for word.
    pub(super) fn says(&self, statement: &str) -> bool {
        self.flat.contains(&normalise_spaces(statement))
    }

    /// Returns the text with single spaces.
    pub(super) fn flat(&self) -> &str {
        &self.flat
    }

    /// Returns the sentences of the section with this heading; of several the first that has some.
    pub(super) fn section(&self, heading: &str) -> Vec<FoundSentence> {
        let lines: Vec<&str> = self.text.lines().collect();
        let starts = lines.iter().enumerate().filter(|(_, line)| {
            heading_of(line, self.is_prose).is_some_and(|title| title == heading)
        });
        let sections = starts.map(|(at, _)| {
            let end = section_end(&lines, at, self.is_prose);
            self.sentences_between(at, &lines[at..end].join("\n"))
        });
        sections.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Returns the sentences from where these words begin a line.
    pub(super) fn starting_with(&self, words: &str) -> Vec<FoundSentence> {
        let words = words.trim_end_matches('…');
        let lines: Vec<&str> = self.text.lines().collect();
        let begins = |at: &usize| {
            let next = lines[*at..].iter().take(12).copied().collect::<Vec<_>>().join("\n");
            !lines[*at].trim().is_empty() && normalise_spaces(&next).starts_with(words)
        };
        let found = (0..lines.len()).filter(begins);
        let parts = found.map(|at| self.sentences_between(at, &lines[at..].join("\n")));
        parts.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Returns all sentences.
    pub(super) fn sentences(&self) -> Vec<FoundSentence> {
        self.sentences_between(0, &self.text)
    }

    /// Returns the sentences of a part of the text that begins at this line.
    fn sentences_between(&self, first: usize, part: &str) -> Vec<FoundSentence> {
        let words: Vec<(usize, &str)> = part
            .lines()
            .enumerate()
            .flat_map(|(at, line)| line.split_whitespace().map(move |word| (first + at + 1, word)))
            .collect();
        let mut from = 0;
        let mut found = Vec::new();
        for text in quotes(part, self.is_prose) {
            let own: Vec<&str> = text.split(' ').collect();
            let is_here = |at: &usize| {
                words[*at..].iter().map(|(_, word)| *word).take(own.len()).eq(own.iter().copied())
            };
            // Sentences come in the order of the text.
            let at = (from..words.len()).find(is_here);
            from = at.map_or(from, |at| at + own.len());
            let line = at.map(|at| words[at].0).filter(|_| self.has_lines);
            found.push(FoundSentence { text, path: self.path.clone(), line });
        }
        found
    }
}

/// The files that the agent knows.
pub(super) struct Library {
    files: Vec<SearchedFile>,
}

impl Library {
    pub(super) fn new(files: &[ProjectFile]) -> Self {
        let searched = |file: &ProjectFile| SearchedFile::new(&file.path, file.own_text());
        Self { files: files.iter().map(searched).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns the file of this path, or the only one whose path ends in it.
    pub(super) fn file(&self, path: &str) -> Option<&SearchedFile> {
        let exact = self.files.iter().find(|file| file.path == path);
        exact.or_else(|| {
            let end = format!("/{path}");
            // An ambiguous name is none: the agent asks back rather than to guess.
            let mut found = self.files.iter().filter(|file| file.path.ends_with(&end));
            found.next().filter(|_| found.next().is_none())
        })
    }

    /// Returns the paths of the first files.
    pub(super) fn some_paths(&self, count: usize) -> Vec<&str> {
        self.files.iter().take(count).map(|file| file.path.as_str()).collect()
    }

    /// Returns the sentence that shares most with a question: at least two words, and more than half
    /// of them.
    pub(super) fn best(&self, question: &str) -> Option<FoundSentence> {
        let wanted = telling_words(question);
        let mut best: Option<(usize, FoundSentence)> = None;
        for sentence in self.files.iter().flat_map(SearchedFile::sentences) {
            let shared = telling_words(&sentence.text).intersection(&wanted).count();
            if best.as_ref().is_none_or(|(most, _)| shared > *most) {
                best = Some((shared, sentence));
            }
        }
        let (shared, sentence) = best?;
        // One shared word is a coincidence in a project of any size.
        (shared >= 2 && 2 * shared > wanted.len()).then_some(sentence)
    }
}

/// Returns the sentence that shares most words with a statement.
pub(super) fn nearest(sentences: Vec<FoundSentence>, statement: &str) -> Option<FoundSentence> {
    let wanted = all_words(statement);
    let likeness = |sentence: &FoundSentence| {
        let own = all_words(&sentence.text);
        let shared = own.intersection(&wanted).count();
        // In thousandths, so that it can be ordered.
        2000 * shared / (own.len() + wanted.len()).max(1)
    };
    // Of equals the first.
    sentences.into_iter().rev().max_by_key(likeness)
}

fn all_words(text: &str) -> BTreeSet<String> {
    let folded = fold(text);
    let words = folded.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    words.filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
}

/// Returns the subject of a question, word by word, without the ends of plurals.
fn telling_words(text: &str) -> BTreeSet<String> {
    let words = all_words(text).into_iter().filter(|word| !COMMON.contains(&word.as_str()));
    words
        .map(|word| match word.strip_suffix('s') {
            Some(stem) if stem.len() >= 3 => stem.to_owned(),
            _ => word,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Ferry\n\n## Ports\n\nThe server listens on port 7700\nof this machine. It \
        serves 20 clients at once.\n\n- Each of them waits for 30 seconds.\n\n### More\n\nA lock \
        keeps two servers apart.\n\n## Names\n\nThe program is called ferry by all.\n";

    fn library() -> Library {
        let file = |path: &str, text: &str| ProjectFile {
            path: path.to_owned(),
            text: text.to_owned(),
            cut: false,
        };
        Library::new(&[file("docs/usage.md", PAGE), file("src/main.rs", "fn main() { run() }\n")])
    }

    #[test]
    fn a_section_ends_at_the_next_of_its_level_and_its_sentences_have_lines() {
        let library = library();
        let file = library.file("usage.md").unwrap();
        let found = file.section("Ports");
        let places: Vec<(&str, Option<usize>)> =
            found.iter().map(|sentence| (sentence.text.as_str(), sentence.line)).collect();
        assert_eq!(
            places,
            [
                ("The server listens on port 7700 of this machine.", Some(5)),
                ("It serves 20 clients at once.", Some(6)),
                ("Each of them waits for 30 seconds.", Some(8)),
                ("A lock keeps two servers apart.", Some(12)),
            ]
        );
        assert_eq!(
            found[0].cited(),
            "“The server listens on port 7700 of this machine.” (docs/usage.md:5)"
        );
        assert_eq!(file.section("Nothing"), []);
        assert_eq!(file.starting_with("## Names The program")[0].line, Some(16));
    }

    #[test]
    fn a_question_finds_its_sentence_or_nothing() {
        let library = library();
        let found = library.best("On which port does the server listen?").unwrap();
        assert_eq!(found.line, Some(5));
        assert_eq!(library.best("Can you make it better?"), None);
        assert_eq!(library.best("What does a return ticket to Sandholm cost?"), None);
    }

    #[test]
    fn the_nearest_sentence_differs_least() {
        let library = library();
        let sentences = library.file("docs/usage.md").unwrap().sentences();
        let found = nearest(sentences, "It serves 33 clients at once.").unwrap();
        assert_eq!(found.text, "It serves 20 clients at once.");
    }
}
