//! An index of the prompts of a run, for finding near-duplicates.

use std::collections::{HashMap, HashSet};

use selftest_text::words::WordSet;

use super::rejection::prompt_digest;

/// Prompts indexed by word. Runs have tens of thousands of cases, and each new prompt is compared
/// with all earlier ones.
#[derive(Debug, Default)]
pub(super) struct PromptIndex {
    prompts: Vec<IndexedPrompt>,
    digests: HashSet<String>,
    /// Indices of the prompts that contain a word.
    by_word: HashMap<u64, Vec<usize>>,
}

#[derive(Debug)]
struct IndexedPrompt {
    text: String,
    /// Number of distinct words.
    words: usize,
}

impl PromptIndex {
    /// Adds a prompt.
    pub(super) fn add(&mut self, text: String) {
        let words = WordSet::from_text(&text);
        self.digests.insert(prompt_digest(&text));
        for word in words.hashes() {
            self.by_word.entry(*word).or_default().push(self.prompts.len());
        }
        self.prompts.push(IndexedPrompt { text, words: words.hashes().len() });
    }

    /// Returns true if exactly this prompt was added before.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.digests.contains(&prompt_digest(text))
    }

    /// Returns the first prompt whose Jaccard similarity with a text, word by word, exceeds
    /// `similarity`.
    pub(super) fn near_duplicate(&self, text: &str, similarity: f64) -> Option<&str> {
        let new = WordSet::from_text(text);
        let mut common = vec![0_u32; self.prompts.len()];
        for prompt in new.hashes().iter().filter_map(|word| self.by_word.get(word)).flatten() {
            common[*prompt] += 1;
        }
        let is_twin = |(prompt, common): &(&IndexedPrompt, u32)| {
            let all = prompt.words + new.hashes().len();
            #[expect(clippy::cast_precision_loss, reason = "word counts are far below 2^52")]
            let union = all as f64 - f64::from(*common);
            // Multiplied instead of divided, because the union may be empty.
            f64::from(*common) > similarity * union
        };
        let found = self.prompts.iter().zip(common).find(is_twin);
        found.map(|(prompt, _)| prompt.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twin_is_what_the_jaccard_similarity_says() {
        let texts = [
            "Summarise the release notes of the parser",
            "Summarise the release notes of the lexer",
            "Which port does the server listen on?",
            "List the supported platforms in a table",
            "",
            "the of",
        ];
        let new = ["Summarise the release notes of the printer", "Which port is open?", "", "of"];
        for similarity in [0.0, 0.3, 0.5, 0.6, 1.0] {
            for text in new {
                let mut asked = PromptIndex::default();
                for earlier in texts {
                    asked.add(earlier.to_owned());
                }
                let words = WordSet::from_text(text);
                let expected = texts
                    .into_iter()
                    .find(|earlier| WordSet::from_text(earlier).jaccard(&words) > similarity);
                assert_eq!(
                    asked.near_duplicate(text, similarity),
                    expected,
                    "{text:?} {similarity}"
                );
            }
        }
    }

    #[test]
    fn the_same_prompt_is_known() {
        let mut asked = PromptIndex::default();
        asked.add("Which port?".to_owned());
        assert!(asked.contains("Which port?"));
        assert!(!asked.contains("Which host?"));
    }
}
