//! A cheap answer to most comparisons of two texts: their words cannot be half the same.

use super::key::GOLDEN;
use super::set::{STOPWORDS, counting};
use super::{Key, Word, Words};

/// Bits of a sketch.
const BITS: usize = 1024;

/// One bit for each word that counts; different words may share one.
#[derive(Debug, Clone, Default)]
pub struct Sketch {
    bits: [u64; BITS / 64],
    /// How many are set: no more than there are different words.
    set: u32,
    /// Words, repeated ones as often as they are there: no fewer than there are different ones.
    words: u32,
}

impl Sketch {
    /// Adds a word of a text, if it counts.
    #[inline]
    pub fn add(&mut self, word: &Word, text: &str) {
        each_bit(word, text, |part, bit| self.insert(part, bit));
    }

    /// Sets a bit, if there is one.
    #[inline]
    fn insert(&mut self, part: usize, bit: u64) {
        self.set += u32::from(self.bits[part] & bit != bit);
        self.words += u32::from(bit != 0);
        self.bits[part] |= bit;
    }

    /// Whether it is certain that the Jaccard similarity to the words of `parts` is below one
    /// half. False says nothing.
    pub fn is_unlike(&self, parts: &[&str]) -> bool {
        let (mut same, mut other) = (0, Self::default());
        for text in parts {
            for word in Words::of(text) {
                each_bit(&word, text, |part, bit| {
                    same += u32::from(self.bits[part] & bit != 0);
                    other.insert(part, bit & !self.bits[part]);
                });
                // More words are only theirs than there are words of ours.
                if other.set > self.words {
                    return true;
                }
            }
        }
        // At most as many are the same, and at least as many are in either.
        2 * same < self.set + other.set
    }
}

/// Where the bits of a word are, or of its parts. A word that does not count has none: which words
/// do is irregular, and a processor guesses wrong.
#[inline]
fn each_bit(word: &Word, text: &str, mut each: impl FnMut(usize, u64)) {
    let mut at = |key: Key, counts: bool| {
        let place = key.place(GOLDEN, BITS);
        each(place / 64, u64::from(counts) << (place % 64));
    };
    if word.apostrophe {
        counting(word, text, |key| at(key, true));
    } else {
        at(word.key, !STOPWORDS.contains(word.key));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::WordSet;
    use super::*;

    fn sketch(text: &str) -> Sketch {
        let mut sketch = Sketch::default();
        Words::of(text).for_each(|word| sketch.add(&word, text));
        sketch
    }

    #[test]
    fn most_pairs_are_seen_to_be_unlike() {
        for (one, other) in [
            ("ok", "run the tests"),
            ("run the tests and fix what fails", "push it"),
            ("what's for dinner", "what's the weather"),
        ] {
            assert!(sketch(one).is_unlike(&[other]) && sketch(other).is_unlike(&[one]), "{one}");
        }
    }

    proptest! {
        #[test]
        fn what_is_alike_is_never_unlike(
            one in "([a-f]{1,2}[ ,'’]){0,40}|([a-z]{1,3} ){0,90}",
            other in "([a-f]{1,2}[ ,'’]){0,40}|([a-z]{1,3} ){0,90}",
        ) {
            let similarity = WordSet::of(&one).jaccard(&WordSet::of(&other));
            let spaces: Vec<usize> = other.match_indices(' ').map(|(at, _)| at).collect();
            let middle = spaces.get(spaces.len() / 2).copied().unwrap_or(0);
            let (head, tail) = other.split_at(middle);
            prop_assert!(similarity < 0.5 || !sketch(&one).is_unlike(&[head, tail]));
        }
    }
}
