//! Measures if a summary addresses the goal, as the share of the goal's words that it uses.
//!
//! docs/spec/reflections.md requires the summary to align with the goal, but does not define a
//! measure. This one is coarse but deterministic: it compares words, not meanings.

use std::collections::BTreeSet;

/// The stopwords of docs/spec/skills-and-signals.md#repetition, and other words that any two texts
/// share.
const STOPWORDS: [&str; 55] = [
    "the", "a", "an", "is", "was", "are", "were", "do", "does", "did", "can", "could", "would",
    "should", "please", "just", "me", "my", "i", //
    "about", "all", "and", "as", "at", "be", "been", "but", "by", "for", "from", "had", "has",
    "have", "if", "in", "into", "it", "its", "no", "not", "of", "on", "or", "our", "so", "than",
    "that", "then", "this", "to", "we", "will", "with", "you", "your",
];

/// Number of the goal's words used by a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GoalAlignment {
    pub(super) used: usize,
    /// Number of distinct words in the goal; at least 1.
    pub(super) of: usize,
}

impl GoalAlignment {
    /// Compares goal and summary. Returns `None` if the goal has no comparable words.
    pub(super) fn measure(goal: &str, summary: &str) -> Option<Self> {
        let (goal, summary) = (stems(goal), stems(summary));
        let used = goal.intersection(&summary).count();
        (!goal.is_empty()).then_some(Self { used, of: goal.len() })
    }

    /// Returns `used / of`, 0.0 to 1.0.
    #[expect(clippy::cast_precision_loss, reason = "word counts are far below 2^52")]
    pub(super) fn share(self) -> f64 {
        self.used as f64 / self.of as f64
    }
}

fn stems(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| !word.is_empty() && !STOPWORDS.contains(&word.as_str())).map(stem).collect()
}

/// Strips the endings of English plurals and tenses, so that "retries" matches "retry" and "cached"
/// matches "caching". The result need not be a word.
fn stem(mut word: String) -> String {
    /// Minimum number of characters left after removing an ending.
    const MIN_CHARS: usize = 3;
    let is_plural = word.ends_with('s') && !word.ends_with("ss");
    let endings = [("s", is_plural), ("ing", true), ("ed", true), ("e", true)];
    for (ending, may_go) in endings {
        if may_go && word.ends_with(ending) && word.chars().count() >= MIN_CHARS + ending.len() {
            word.truncate(word.len() - ending.len());
        }
    }
    // By now `retries` is `retri`.
    if word.ends_with('y') {
        word.pop();
        word.push('i');
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(goal: &str, summary: &str) -> Option<(usize, usize)> {
        GoalAlignment::measure(goal, summary).map(|GoalAlignment { used, of }| (used, of))
    }

    /// docs/spec/reflections.md#criteria, goal alignment: how it is measured here.
    #[test]
    fn words_count_in_any_form_and_order() {
        let goal = "Add retries to the HTTP client for flaky servers";
        let summary = "The client of the HTTP layer retried; flaky server answers were added.";
        assert_eq!(counts(goal, summary), Some((6, 6)));
        assert_eq!(counts("cache the page", "Caching of pages"), Some((2, 2)));
        assert_eq!(counts("Cache, cache, CACHE!", "cached"), Some((1, 1)));
        assert_eq!(counts("access", "process"), Some((0, 1)));
    }

    #[test]
    fn words_that_any_text_has_do_not_count() {
        assert_eq!(counts("to be or not to be", "to be with you"), None);
        assert_eq!(counts("Please do it!", "done"), None);
        assert_eq!(counts("", "anything"), None);
        assert_eq!(counts("the login page", ""), Some((0, 2)));
        assert_eq!(counts("fix the login page", "it is the one for all of us"), Some((0, 3)));
    }

    #[test]
    fn the_length_of_the_summary_does_not_count() {
        let long = "the login works ".repeat(100) + "and many other things ".repeat(500).as_str();
        assert_eq!(counts("fix the login", &long), Some((1, 2)));
    }

    #[test]
    fn other_scripts_are_compared_word_by_word() {
        assert_eq!(counts("исправить вход", "вход работает"), Some((1, 2)));
        assert_eq!(stem("s".to_owned()), "s");
        assert_eq!(stem("éés".to_owned()), "éés");
    }
}
