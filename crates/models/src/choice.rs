//! Yes-or-no answers read from the probabilities of a reply's first token.
//!
//! Accepts all spellings: `Yes`, ` yes`, `YES`, translations, and prefixes of words that a
//! tokenizer splits.

use super::TokenProbability;

/// Words for yes, in lower case.
const YES: [&str; 14] =
    ["yes", "yeah", "yep", "true", "ja", "oui", "sí", "si", "sim", "tak", "да", "はい", "是", "对"];
/// Words for no, in lower case.
const NO: [&str; 13] =
    ["no", "nope", "not", "false", "nein", "non", "não", "nie", "нет", "いいえ", "否", "不", "nee"];

/// Meaning of a first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YesNoAnswer {
    /// Yes.
    Yes,
    /// No.
    No,
}

impl YesNoAnswer {
    /// Parses a token's text: a word of either list, or a prefix of `yes` or `no`.
    pub fn from_token(text: &str) -> Option<Self> {
        let word = text.trim_matches(|c: char| c.is_whitespace() || "\"'`*.,:!_▁".contains(c));
        if word.is_empty() || word.len() > 12 {
            return None;
        }
        // `"yes".starts_with(word)` below holds for `y` and `ye`, which some tokenizers produce. It
        // cannot confuse the two: no word is a prefix of both.
        let word = word.to_lowercase();
        if YES.contains(&&*word) || "yes".starts_with(&word) {
            Some(YesNoAnswer::Yes)
        } else if NO.contains(&&*word) || "no".starts_with(&word) {
            Some(YesNoAnswer::No)
        } else {
            None
        }
    }
}

/// Probabilities of yes and no in the first-token distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct YesNoProbability {
    /// Total probability of all spellings of yes.
    pub yes: f64,
    /// Total probability of all spellings of no.
    pub no: f64,
}

impl YesNoProbability {
    /// Sums the probabilities of tokens. Returns `None` if any probability is not a number from 0
    /// to 1, or if neither word occurs.
    pub fn from_tokens(tokens: &[TokenProbability]) -> Option<Self> {
        let mut sum = Self { yes: 0.0, no: 0.0 };
        for token in tokens {
            // Rounding can push a probability slightly above 1.
            if !(0.0..=1.001).contains(&token.probability) {
                return None;
            }
            match YesNoAnswer::from_token(&token.text) {
                Some(YesNoAnswer::Yes) => sum.yes += token.probability,
                Some(YesNoAnswer::No) => sum.no += token.probability,
                None => {}
            }
        }
        (sum.yes + sum.no > 0.0).then_some(sum)
    }

    /// Returns the share of yes among yes and no, 0 to 1.
    pub fn share(self) -> f64 {
        self.yes / (self.yes + self.no)
    }

    /// Returns the probability of any other token, 0 to 1.
    pub fn neither(self) -> f64 {
        (1.0 - self.yes - self.no).clamp(0.0, 1.0)
    }

    /// Returns `ln(yes / no)`. Each is at least 1e-6, since smaller probabilities are cut off from
    /// the list of top tokens.
    pub fn log_odds(self) -> f64 {
        (self.yes.max(1e-6) / self.no.max(1e-6)).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(list: &[(&str, f64)]) -> Vec<TokenProbability> {
        let token = |&(text, probability): &(&str, f64)| TokenProbability {
            text: text.to_owned(),
            probability,
        };
        list.iter().map(token).collect()
    }

    #[test]
    fn every_spelling_counts() {
        let all = tokens(&[("Yes", 0.3), (" yes", 0.1), ("YES", 0.1), ("No", 0.2), ("The", 0.3)]);
        let found = YesNoProbability::from_tokens(&all).unwrap();
        assert!((found.yes - 0.5).abs() < 1e-12 && (found.no - 0.2).abs() < 1e-12);
        assert!((found.share() - 5.0 / 7.0).abs() < 1e-12);
        assert!((found.neither() - 0.3).abs() < 1e-12);
        for (text, answer) in [
            ("▁Yes", Some(YesNoAnswer::Yes)),
            ("**No", Some(YesNoAnswer::No)),
            ("Ja", Some(YesNoAnswer::Yes)),
            ("Nein", Some(YesNoAnswer::No)),
            ("はい", Some(YesNoAnswer::Yes)),
            ("否", Some(YesNoAnswer::No)),
            // Prefixes of words.
            ("Y", Some(YesNoAnswer::Yes)),
            ("n", Some(YesNoAnswer::No)),
            ("Yesterday", None),
            ("Now", None),
            ("", None),
            ("\n", None),
        ] {
            assert_eq!(YesNoAnswer::from_token(text), answer, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_probability_is_no_answer() {
        assert_eq!(YesNoProbability::from_tokens(&tokens(&[("Yes", f64::NAN), ("No", 0.2)])), None);
        assert_eq!(YesNoProbability::from_tokens(&tokens(&[("Yes", 7.0)])), None);
        assert_eq!(YesNoProbability::from_tokens(&tokens(&[("Yes", -0.1)])), None);
        assert_eq!(YesNoProbability::from_tokens(&tokens(&[("The", 0.9)])), None);
        assert_eq!(YesNoProbability::from_tokens(&[]), None);
        let only_one = YesNoProbability::from_tokens(&tokens(&[("Yes", 0.9)])).unwrap();
        assert_eq!(only_one.share(), 1.0);
        assert!(only_one.log_odds().is_finite());
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,20}", probability in -1.0f64..2.0) {
            let list = [TokenProbability { text, probability }];
            if let Some(found) = YesNoProbability::from_tokens(&list) {
                prop_assert!((0.0..=1.0).contains(&found.share()));
                prop_assert!((0.0..=1.0).contains(&found.neither()));
            }
        }
    }
}
