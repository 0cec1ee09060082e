//! How alike two messages are: Jaccard similarity of their words (seed 002, item 3). Pure.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Words that say nothing about what a message asks (seed 002, `classify_repetition`).
const STOPWORDS: [&str; 19] = [
    "the", "a", "an", "is", "was", "are", "were", "do", "does", "did", "can", "could", "would",
    "should", "please", "just", "me", "my", "i",
];

/// The words of a text that count, as sorted hashes without repeats: a run compares every new
/// prompt with all earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words(Vec<u64>);

impl Words {
    /// Splits at everything but letters, digits and apostrophes; case does not count.
    pub fn of(text: &str) -> Self {
        let words = text
            .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’')
            .map(|word| word.trim_matches(['\'', '’']).to_lowercase())
            .filter(|word| !word.is_empty() && !STOPWORDS.contains(&word.as_str()));
        let mut hashes: Vec<u64> = words
            .map(|word| {
                let mut hasher = DefaultHasher::new();
                word.hash(&mut hasher);
                hasher.finish()
            })
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self(hashes)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(a: &str, b: &str) -> f64 {
        Words::of(a).jaccard(&Words::of(b))
    }

    #[test]
    fn the_same_words_are_alike() {
        assert_eq!(similarity("Summarise the README", "please summarise README!"), 1.0);
        assert_eq!(similarity("", ""), 0.0);
        assert_eq!(similarity("the a an", "is was"), 0.0);
    }

    #[test]
    fn different_words_are_not() {
        assert!(similarity("Summarise README.md in 3 lines", "Which licence applies?") < 0.2);
        assert_eq!(similarity("a b c d", "c d e f"), 0.4);
    }
}
