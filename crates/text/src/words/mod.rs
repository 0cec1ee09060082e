//! The words of a text, as the eye reads them: case does not count, and either apostrophe is one.
//! Pure; makes no copies, and knows nothing of what words mean.

mod block;
mod gap;
mod key;
mod map;
mod set;
mod sketch;

use std::iter::FusedIterator;

pub use gap::{Gap, gap, is_fenced};
pub use key::Key;
pub use map::WordMap;
pub use set::WordSet;
pub use sketch::Sketch;

use block::Block;

/// A run of letters and digits with apostrophes inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// What it is, without its case.
    pub key: Key,
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends, in bytes.
    pub end: usize,
    /// It holds an apostrophe.
    pub apostrophe: bool,
}

/// The words of a text, in order. A copy looks ahead.
#[derive(Debug, Clone)]
pub struct Words<'t> {
    text: &'t str,
    block: Block,
}

impl<'t> Words<'t> {
    /// The words of this text.
    pub fn of(text: &'t str) -> Self {
        Self { text, block: Block::BEFORE }
    }

    /// The text.
    pub fn text(&self) -> &'t str {
        self.text
    }
}

impl Iterator for Words<'_> {
    type Item = Word;

    #[inline]
    fn next(&mut self) -> Option<Word> {
        let bytes = self.text.as_bytes();
        loop {
            let (start, end) = self.block.next_run(bytes)?;
            if end > start {
                let key = key::of_ascii(bytes, start, end);
                return Some(Word { key, start, end, apostrophe: false });
            }
            let (key, length, apostrophe) = key::scan(&self.text[start..]);
            let end = start + length;
            self.block = Block::at(bytes, end);
            if let Some(key) = key {
                return Some(Word { key, start, end, apostrophe });
            }
        }
    }
}

impl FusedIterator for Words<'_> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<&str> {
        Words::of(text).map(|word| &text[word.start..word.end]).collect()
    }

    #[test]
    fn words_are_runs_of_letters() {
        let text = "  Thanks, that's 'it'… snake_case (x)\nÉté—“no” 它。";
        let words = ["Thanks", "that's", "it", "snake", "case", "x", "Été", "no", "它"];
        assert_eq!(split(text), words);
        assert_eq!(split(" \n.'’` "), Vec::<&str>::new());
        assert_eq!(
            split("don’t o'clock rock'n'roll '90s x''y"),
            ["don’t", "o'clock", "rock'n'roll", "90s", "x", "y"]
        );
    }

    #[test]
    fn words_go_over_the_end_of_a_block() {
        for before in 0..140 {
            for word in ["ab", "abcdefghi", "don't", "naïve", "ä", &"x".repeat(200)] {
                let text = format!("{}{word} b", ".".repeat(before));
                assert_eq!(split(&text), [word, "b"], "{before}");
            }
        }
    }

    proptest! {
        #[test]
        fn words_cover_what_is_alphanumeric(
            text in "\\PC{0,40}|[a-cA-C'’` .,é\n它]{0,200}|[a-z]{0,80} [a-z']{0,80}"
        ) {
            let mut from = 0;
            for word in Words::of(&text) {
                prop_assert!(from <= word.start && word.start < word.end);
                let between = &text[from..word.start];
                prop_assert!(!between.contains(char::is_alphanumeric), "{between:?}");
                let own = &text[word.start..word.end];
                prop_assert!(own.chars().all(|c| c.is_alphanumeric() || key::is_apostrophe(c)));
                prop_assert_eq!(word.key, Key::of(own));
                prop_assert_eq!(word.apostrophe, own.contains(key::is_apostrophe));
                from = word.end;
            }
            prop_assert!(!text[from..].contains(char::is_alphanumeric));
        }
    }
}
