//! The prompts that a run has asked, so that no case is another's twin. Judges nothing else.

use std::collections::{HashMap, HashSet};

use selftest_text::words::WordSet;

use super::rejection::prompt_digest;

/// Prompts, found by their words: runs have tens of thousands of cases, and each new prompt is held
/// against all before it.
#[derive(Debug, Default)]
pub(super) struct AskedPrompts {
    prompts: Vec<Prompt>,
    digests: HashSet<String>,
    /// The numbers of the prompts that have a word.
    by_word: HashMap<u64, Vec<usize>>,
}

#[derive(Debug)]
struct Prompt {
    text: String,
    /// How many different words it has.
    words: usize,
}

impl AskedPrompts {
    /// Keeps a prompt.
    pub(super) fn add(&mut self, text: String) {
        let words = WordSet::of(&text);
        self.digests.insert(prompt_digest(&text));
        for word in words.hashes() {
            self.by_word.entry(*word).or_default().push(self.prompts.len());
        }
        self.prompts.push(Prompt { text, words: words.hashes().len() });
    }

    /// Whether the very same prompt was asked.
    pub(super) fn has(&self, text: &str) -> bool {
        self.digests.contains(&prompt_digest(text))
    }

    /// The first prompt whose words have a greater Jaccard similarity with those of a text.
    pub(super) fn twin(&self, text: &str, similarity: f64) -> Option<&str> {
        let new = WordSet::of(text);
        let mut common = vec![0_u32; self.prompts.len()];
        for prompt in new.hashes().iter().filter_map(|word| self.by_word.get(word)).flatten() {
            common[*prompt] += 1;
        }
        let is_twin = |(prompt, common): &(&Prompt, u32)| {
            let all = prompt.words + new.hashes().len();
            #[expect(clippy::cast_precision_loss, reason = "word counts are far below 2^52")]
            let union = all as f64 - f64::from(*common);
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
                let mut asked = AskedPrompts::default();
                texts.iter().for_each(|earlier| asked.add((*earlier).to_owned()));
                let words = WordSet::of(text);
                let expected = texts
                    .into_iter()
                    .find(|earlier| WordSet::of(earlier).jaccard(&words) > similarity);
                assert_eq!(asked.twin(text, similarity), expected, "{text:?} {similarity}");
            }
        }
    }

    #[test]
    fn the_same_prompt_is_known() {
        let mut asked = AskedPrompts::default();
        asked.add("Which port?".to_owned());
        assert!(asked.has("Which port?"));
        assert!(!asked.has("Which host?"));
    }
}
