//! How alike two messages are: Jaccard similarity of their words (seed 002, item 3). Pure.

use std::collections::BTreeSet;

/// Words that say nothing about what a message asks (seed 002, `classify_repetition`).
const STOPWORDS: [&str; 19] = [
    "the", "a", "an", "is", "was", "are", "were", "do", "does", "did", "can", "could", "would",
    "should", "please", "just", "me", "my", "i",
];

/// The words of a text that count: lower case, split at everything but letters and digits.
pub fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’')
        .map(|word| word.trim_matches(['\'', '’']).to_lowercase())
        .filter(|word| !word.is_empty() && !STOPWORDS.contains(&word.as_str()))
        .collect()
}

/// |A ∩ B| / |A ∪ B|, from 0.0 to 1.0; 0.0 for two empty sets.
pub fn jaccard(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let union = a.union(b).count();
    if union == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "word counts are far below 2^52")]
    let ratio = a.intersection(b).count() as f64 / union as f64;
    ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(a: &str, b: &str) -> f64 {
        jaccard(&words(a), &words(b))
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
