//! A word with what stands around it: what tells a remark from a mention. Pure.

use selftest_text::words::{Gap, Word, gap, is_fenced};

/// Whether a word is one of these, separated by spaces.
pub(super) fn is_one_of(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// How many words back one can look.
const BACK: usize = 8;

/// A word of a folded message, with the words around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) words: &'a [Word<'a>],
    /// The number of the word.
    pub(super) at: usize,
}

impl<'a> Place<'a> {
    /// The word itself.
    pub(super) fn word(&self) -> Word<'a> {
        self.words[self.at]
    }

    /// The words before it, the nearest first, each with what stands between it and the word
    /// after it.
    pub(super) fn before(&self) -> impl Iterator<Item = (&'a str, Gap)> + use<'a> {
        let Place { text, words, at } = *self;
        let pairs = words[..=at].windows(2).rev().take(BACK);
        pairs.map(move |pair| (pair[0].text, gap(&text[pair[0].end()..pair[1].start])))
    }

    /// The words before it in the same clause, the nearest first.
    pub(super) fn clause_before(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.before().take_while(|(_, gap)| *gap == Gap::Word).map(|(word, _)| word)
    }

    /// The words after it, each with what stands between it and the word before it.
    pub(super) fn after(&self) -> impl Iterator<Item = (&'a str, Gap)> + use<'a> {
        let Place { text, words, at } = *self;
        let pairs = words[at..].windows(2);
        pairs.map(move |pair| (pair[1].text, gap(&text[pair[0].end()..pair[1].start])))
    }

    /// The words after it in the same clause.
    pub(super) fn clause_after(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.after().take_while(|(_, gap)| *gap == Gap::Word).map(|(word, _)| word)
    }

    /// Whether it is neither quoted nor a part of a name such as `nice.py`, `/thanks` or
    /// `font-awesome`.
    pub(super) fn stands_alone(&self) -> bool {
        let word = self.word();
        let (before, after) = (&self.text[..word.start], &self.text[word.end()..]);
        let mut back = before.chars().rev();
        let joined_before = match back.next() {
            // The third dot of an ellipsis is no part of a name.
            Some('.') => back.next() != Some('.'),
            Some(c) => is_quote(c) || "-_/\\@#$%&=<>|~+^{:".contains(c),
            None => false,
        };
        let mut on = after.chars();
        let joined_after = match on.next() {
            Some('-' | '.' | ':') => on.next().is_some_and(char::is_alphanumeric),
            Some(c) => is_quote(c) || "_/\\@=<>|+}".contains(c),
            None => false,
        };
        !joined_before && !joined_after && !is_fenced(before)
    }

    /// Whether its sentence ends with a question mark.
    pub(super) fn in_question(&self) -> bool {
        let rest = &self.text[self.word().end()..];
        rest.chars()
            .find(|c| matches!(c, '.' | '!' | '?' | '？' | '\n' | ';'))
            .is_some_and(|end| matches!(end, '?' | '？'))
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»' | '`')
}
