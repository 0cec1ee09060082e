//! How alike two messages are: the Jaccard similarity of their words
//! (docs/spec/skills-and-signals.md#repetition).

use std::cmp::Ordering;

use super::key::is_apostrophe;
use super::{Key, Word, WordMap, Words};

/// Words that say nothing about what a message asks (docs/spec/skills-and-signals.md#repetition).
pub(super) static STOPWORDS: WordMap<(), 128> = WordMap::new(&[
    ("the", ()),
    ("a", ()),
    ("an", ()),
    ("is", ()),
    ("was", ()),
    ("are", ()),
    ("were", ()),
    ("do", ()),
    ("does", ()),
    ("did", ()),
    ("can", ()),
    ("could", ()),
    ("would", ()),
    ("should", ()),
    ("please", ()),
    ("just", ()),
    ("me", ()),
    ("my", ()),
    ("i", ()),
]);

/// The words of a text that count, each once.
///
/// Stopwords do not count; what a contraction or possessive adds to a word is taken off
/// (*what's* is *what*, *today's* is *today*), and *n't* is the word *not*.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WordSet(Vec<Key>);

impl WordSet {
    /// The words of a text.
    pub fn of(text: &str) -> Self {
        Self::of_parts(&[text])
    }

    /// The words of several parts of a text.
    pub fn of_parts(parts: &[&str]) -> Self {
        let mut keys = Vec::new();
        for part in parts {
            Words::of(part).for_each(|word| counting(&word, part, |key| keys.push(key)));
        }
        keys.sort_unstable();
        keys.dedup();
        Self(keys)
    }

    /// |A ∩ B| / |A ∪ B|, from 0.0 to 1.0; 0.0 for two empty sets.
    pub fn jaccard(&self, other: &Self) -> f64 {
        let (mut a, mut b) = (self.0.as_slice(), other.0.as_slice());
        let mut common = 0_usize;
        while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b) {
            match first_a.cmp(first_b) {
                Ordering::Less => a = rest_a,
                Ordering::Greater => b = rest_b,
                Ordering::Equal => {
                    common += 1;
                    (a, b) = (rest_a, rest_b);
                }
            }
        }
        let union = self.0.len() + other.0.len() - common;
        if union == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "word counts are far below 2^52")]
        let ratio = common as f64 / union as f64;
        ratio
    }
}

/// Hands over the words that count in a word: none, itself, or its parts.
#[inline]
pub(super) fn counting(word: &Word, text: &str, mut count: impl FnMut(Key)) {
    let mut count = |key: Key| {
        if !STOPWORDS.contains(key) {
            count(key);
        }
    };
    if word.apostrophe {
        parts(&text[word.start..word.end], count);
    } else {
        count(word.key);
    }
}

/// The words in a word with an apostrophe.
fn parts(word: &str, mut count: impl FnMut(Key)) {
    let Some((base, ending)) = word.rsplit_once(is_apostrophe) else { return };
    match Key::of(ending) {
        S | M | D | RE | VE | LL => count(Key::of(base)),
        T if base.ends_with(['n', 'N']) => {
            count(NOT);
            match Key::of(base) {
                CAN | WON | SHAN => {}
                _ => count(Key::of(&base[..base.len() - 1])),
            }
        }
        _ => count(Key::of(word)),
    }
}

const S: Key = Key::ascii("s");
const M: Key = Key::ascii("m");
const D: Key = Key::ascii("d");
const RE: Key = Key::ascii("re");
const VE: Key = Key::ascii("ve");
const LL: Key = Key::ascii("ll");
const T: Key = Key::ascii("t");
const NOT: Key = Key::ascii("not");
const CAN: Key = Key::ascii("can");
const WON: Key = Key::ascii("won");
const SHAN: Key = Key::ascii("shan");

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(a: &str, b: &str) -> f64 {
        WordSet::of(a).jaccard(&WordSet::of(b))
    }

    #[test]
    fn the_same_words_are_alike() {
        assert_eq!(similarity("Summarise the README", "please summarise README!"), 1.0);
        assert_eq!(similarity("", ""), 0.0);
        assert_eq!(similarity("the a an", "is was"), 0.0);
    }

    /// docs/spec/skills-and-signals.md#repetition: Jaccard similarity of sets of words.
    #[test]
    fn different_words_are_not() {
        assert!(similarity("Summarise README.md in 3 lines", "Which licence applies?") < 0.2);
        assert_eq!(similarity("a b c d", "c d e f"), 0.4);
    }

    /// docs/spec/skills-and-signals.md#repetition: the stopwords.
    #[test]
    fn the_specified_stopwords() {
        let stopwords =
            "the a an is was are were do does did can could would should please just me my i";
        for word in stopwords.split(' ') {
            assert_eq!(WordSet::of(word), WordSet::default(), "{word}");
            assert_eq!(similarity("sort", &format!("{} sort", word.to_uppercase())), 1.0, "{word}");
        }
        for word in ["you", "it", "to", "not", "what", "this"] {
            assert_ne!(WordSet::of(word), WordSet::default(), "{word}");
        }
    }

    #[test]
    fn contractions_and_possessives_are_taken_off() {
        // The specification's own pair: what, weather, today against tell, today, weather.
        assert_eq!(similarity("what's the weather today", "tell me today's weather"), 0.5);
        for (one, other) in [
            ("I'm they're we’ve you'll he'd", "they we you he"),
            ("don't isn’t", "not"),
            ("can't WON'T shan't", "not"),
            ("haven't", "have not"),
            ("o'clock", "O’CLOCK"),
        ] {
            assert_eq!(similarity(one, other), 1.0, "{one}");
        }
    }
}
