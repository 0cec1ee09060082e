//! Full-text search: parses queries of words and "phrases", normalises text for indexing, and
//! produces snippets with highlighted hits. User input never reaches the search engine's query
//! language; only words are taken from it.

use std::ops::Range;

use serde::Serialize;

use crate::escape::terminal;
use crate::words::fold;

/// Maximum number of words and phrases in a query.
const MAX_TERMS: usize = 16;

/// Maximum number of words in a phrase.
const MAX_PHRASE: usize = 16;

/// Maximum number of bytes of a word; only this prefix of longer words is indexed.
const MAX_WORD: usize = 64;

/// Number of bytes of a snippet before the first hit.
const BEFORE: usize = 60;

/// The terms of a query; a text must contain all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchWords(Vec<SearchTerm>);

/// A word or a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchTerm {
    /// Letters and digits in lower case; at least one word.
    pub words: Vec<String>,
    /// True if the last word matches as a prefix.
    pub is_prefix: bool,
}

/// A piece of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnippetPart {
    /// One line, without characters that hide or reorder text.
    pub text: String,
    /// True if this piece matches the query.
    pub is_hit: bool,
}

impl SearchWords {
    /// Parses user input: words, `"phrases"`, and `word*` for prefixes. Returns `None` if it
    /// contains no words.
    ///
    /// ```
    /// use selftest_text::search::SearchWords;
    ///
    /// let words = SearchWords::parse(r#"login "flaky test" time*"#).unwrap();
    /// let terms: Vec<String> = words.terms().iter().map(|term| term.words.join(" ")).collect();
    /// assert_eq!(terms, ["login", "flaky test", "time"]);
    /// ```
    pub fn parse(typed: &str) -> Option<Self> {
        let mut terms = Vec::new();
        for (at, part) in typed.split('"').enumerate() {
            // Odd parts are inside quotation marks.
            if at % 2 == 1 {
                terms.push((part, false));
            } else {
                terms.extend(part.split_whitespace().map(|word| (word, word.ends_with('*'))));
            }
        }
        let terms = terms.into_iter().filter_map(|(part, is_prefix)| {
            let folded = fold(part);
            let words = tokens(&folded).map(|range| clip_word(&folded[range]).to_owned());
            // The same limits as in the index, or a long word would never be found.
            let words: Vec<String> = words.take(MAX_PHRASE).collect();
            (!words.is_empty()).then_some(SearchTerm { words, is_prefix })
        });
        let terms: Vec<SearchTerm> = terms.take(MAX_TERMS).collect();
        (!terms.is_empty()).then_some(Self(terms))
    }

    /// Returns the terms; at least one.
    pub fn terms(&self) -> &[SearchTerm] {
        &self.0
    }

    /// Returns about `limit` bytes of a text around the first hit, with all hits highlighted.
    pub fn snippet(&self, text: &str, limit: usize) -> Vec<SnippetPart> {
        // Escaped first, so that hits are positions in the displayed text.
        let text = terminal(text, text.len());
        let hits = self.hits(&text);
        let first = hits.first().map_or(0, |hit| hit.start);
        let mut start = text.floor_char_boundary(first.saturating_sub(BEFORE));
        if start > 0 {
            // Start at a word boundary if one is near.
            start += text[start..first].find(' ').map_or(0, |space| space + 1);
        }
        let end = text.floor_char_boundary((start + limit).min(text.len()));
        let mut pieces = Vec::new();
        let mut add = |text: String, is_hit| {
            if !text.is_empty() {
                pieces.push(SnippetPart { text, is_hit });
            }
        };
        let mut at = start;
        let mut before = if start > 0 { "… ".to_owned() } else { String::new() };
        for hit in hits.iter().filter(|hit| hit.start >= start && hit.end <= end) {
            add(before + &text[at..hit.start], false);
            add(text[hit.clone()].to_owned(), true);
            (before, at) = (String::new(), hit.end);
        }
        let rest = before + text[at..end].trim_end() + if end < text.len() { " …" } else { "" };
        add(rest, false);
        pieces
    }

    /// Returns the ranges of the hits, in order and without overlaps.
    fn hits(&self, text: &str) -> Vec<Range<usize>> {
        let places: Vec<Range<usize>> = tokens(text).collect();
        let words: Vec<String> =
            places.iter().map(|place| clip_word(&fold(&text[place.clone()])).to_owned()).collect();
        let mut hits: Vec<Range<usize>> = Vec::new();
        for at in 0..words.len() {
            // If several terms match here, the longest one is highlighted.
            let length = self.0.iter().filter_map(|term| term.match_length(&words[at..])).max();
            let Some(length) = length else { continue };
            let hit = places[at].start..places[at + length - 1].end;
            // Phrases may overlap; a snippet marks each character once.
            if hits.last().is_none_or(|last| last.end <= hit.start) {
                hits.push(hit);
            }
        }
        hits
    }
}

impl SearchTerm {
    /// Returns the number of words that the term matches at the start of `words`.
    fn match_length(&self, words: &[String]) -> Option<usize> {
        let (last, first) = self.words.split_last()?;
        let there = words.get(..self.words.len())?;
        let (there_last, there_first) = there.split_last()?;
        let ends = if self.is_prefix { there_last.starts_with(last) } else { there_last == last };
        (ends && there_first == first).then_some(self.words.len())
    }
}

/// Normalises a text for indexing: words of letters and digits, in lower case, separated by single
/// spaces.
pub fn index_text(text: &str) -> String {
    let folded = fold(text);
    let mut words = String::with_capacity(folded.len());
    for place in tokens(&folded) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(clip_word(&folded[place]));
    }
    words
}

fn clip_word(word: &str) -> &str {
    &word[..word.floor_char_boundary(MAX_WORD)]
}

/// Returns runs of letters and digits. In scripts without spaces, each letter is a word.
fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(char::is_alphanumeric)?;
        let mut rest = text[start..].char_indices();
        let (_, first) = rest.next()?;
        // Chinese and Japanese have no spaces, so that each character is a word and a query a
        // phrase.
        let end = if is_unspaced_script(first) {
            first.len_utf8()
        } else {
            let ends = |c: char| !c.is_alphanumeric() || is_unspaced_script(c);
            rest.find(|(_, c)| ends(*c)).map_or(text.len() - start, |(end, _)| end)
        };
        at = start + end;
        Some(start..at)
    })
}

/// Returns true for Han, kana and related scripts.
fn is_unspaced_script(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(typed: &str) -> Vec<(String, bool)> {
        let words = SearchWords::parse(typed);
        let terms = words.map(|words| words.0).unwrap_or_default();
        terms.into_iter().map(|term| (term.words.join(" "), term.is_prefix)).collect()
    }

    fn marked(typed: &str, text: &str) -> String {
        let pieces = SearchWords::parse(typed).unwrap().snippet(text, 120);
        let mark = |piece: &SnippetPart| {
            if piece.is_hit { format!("<{}>", piece.text) } else { piece.text.clone() }
        };
        pieces.iter().map(mark).collect()
    }

    #[test]
    fn what_is_typed_is_words_and_phrases_and_nothing_else() {
        let one = |word: &str| (word.to_owned(), false);
        assert_eq!(terms("Login  FAILED"), [one("login"), one("failed")]);
        assert_eq!(terms("\"flaky Test\" x"), [one("flaky test"), one("x")]);
        assert_eq!(terms("\"torn phrase"), [one("torn phrase")]);
        assert_eq!(terms("a AND b OR NOT c NEAR(d)").len(), 7);
        assert_eq!(
            terms("src/main.rs words:x ^a -b"),
            [one("src main rs"), one("words x"), one("a"), one("b")]
        );
        assert_eq!(terms("log*"), [("log".to_owned(), true)]);
        assert_eq!(terms("修复"), [one("修 复")]);
        for nothing in ["", "  ", "\"\"", "* ^ ( ) : -", "\"*\""] {
            assert_eq!(SearchWords::parse(nothing), None, "{nothing}");
        }
        assert_eq!(terms(&"a ".repeat(100)).len(), MAX_TERMS);
    }

    #[test]
    fn hits_are_marked() {
        assert_eq!(marked("login", "Fix the Login, login2"), "Fix the <Login>, login2");
        assert_eq!(marked("log*", "Login now"), "<Login> now");
        assert_eq!(marked("\"the test\"", "test the test"), "test <the test>");
        assert_eq!(marked("main.rs", "see src/main.rs:3"), "see src/<main.rs>:3");
        assert_eq!(marked("修复", "请修复它"), "请<修复>它");
        assert_eq!(marked("absent", "no such word"), "no such word");
        let long = format!("{} needle {}", "hay ".repeat(100), "hay ".repeat(100));
        let shown = marked("needle", &long);
        assert!(shown.starts_with("… hay") && shown.contains("<needle>"), "{shown}");
        assert!(shown.ends_with(" …") && shown.len() < 160, "{shown}");
        assert_eq!(marked("b", "\u{202e}a\n\u{1b}[31m b"), "⟨U+202E⟩a [31m <b>");
    }

    proptest! {
        #[test]
        fn every_word_of_a_text_finds_it(text in "\\PC{0,80}") {
            let words = index_text(&text);
            prop_assert!(words.split(' ').all(|word| word.len() <= MAX_WORD));
            for word in words.split(' ').filter(|word| !word.is_empty()) {
                let [term] = &SearchWords::parse(word).unwrap().0[..] else { panic!() };
                prop_assert_eq!(term.words.join(" "), word);
            }
            if let Some(search) = SearchWords::parse(&text) {
                let _ = search.snippet(&text, 40);
            }
        }
    }
}
