//! Yes-or-no answers read from the probabilities of a reply's first token.
//!
//! Accepts all spellings: `Yes`, ` yes`, `YES`, translations, and prefixes of words that a
//! tokenizer splits.

use std::collections::HashSet;

use serde_json::Value;

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

/// Maximum number of alternatives that OpenAI and Ollama return.
pub(crate) const MAX_ALTERNATIVES: u8 = 20;

/// Largest sum of probabilities, with room for rounding.
const MAX_SUM: f64 = 1.01;

/// Parses the alternatives for the first token from the list of reply tokens. Returns `None` if the
/// server returns none or only the chosen token, which leaves the others' share unknown, or if the
/// reply starts with thinking. Neither does it read what is no distribution: probabilities that sum to
/// more than 1, a token that occurs twice, or a chosen token, which is asked for greedily, that is not
/// the likeliest.
pub(crate) fn parse_first_token(tokens: Option<&Value>) -> Option<Vec<TokenProbability>> {
    let first = tokens?.as_array()?.first()?;
    let chosen = first.get("token").and_then(Value::as_str).unwrap_or_default();
    if chosen.trim_start().starts_with("<think") {
        return None;
    }
    let alternatives = first.get("top_logprobs")?.as_array()?;
    let read = |alternative: &Value| {
        let text = alternative.get("token")?.as_str()?.to_owned();
        let probability = alternative.get("logprob")?.as_f64()?.exp();
        Some(TokenProbability { text, probability })
    };
    let alternatives: Vec<TokenProbability> =
        alternatives.iter().map(read).collect::<Option<_>>()?;
    let sum: f64 = alternatives.iter().map(|one| one.probability).sum();
    let texts: HashSet<&str> = alternatives.iter().map(|one| one.text.as_str()).collect();
    let likeliest = alternatives.iter().map(|one| one.probability).fold(0.0, f64::max);
    let is_greedy =
        alternatives.iter().any(|one| one.text == chosen && one.probability >= likeliest - MAX_TIE);
    let is_distribution = sum <= MAX_SUM && texts.len() == alternatives.len() && is_greedy;
    (alternatives.len() > 1 && is_distribution).then_some(alternatives)
}

/// Difference of probabilities below which two tokens are equally likely.
const MAX_TIE: f64 = 1e-3;

/// Returns true if the message contains separate thinking; the token list then starts with the
/// thoughts.
pub(crate) fn has_thinking(message: &Value) -> bool {
    ["thinking", "reasoning", "reasoning_content"].iter().any(|field| {
        message.get(*field).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

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

    fn list(chosen: &str, alternatives: &Value) -> Value {
        json!([{ "token": chosen, "logprob": -0.5, "top_logprobs": alternatives }])
    }

    #[test]
    fn a_recorded_list_is_read() {
        // From Ollama 0.32.15 with a 0.5B model.
        let tokens = list(
            "Yes",
            &json!([
                { "token": "Yes", "logprob": -0.514_359_295_368_194_6, "bytes": [89, 101, 115] },
                { "token": "No", "logprob": -0.952_256_143_093_109_1, "bytes": [78, 111] },
                { "token": "yes", "logprob": -5.263_957_977_294_922, "bytes": [121, 101, 115] },
            ]),
        );
        let read = parse_first_token(Some(&tokens)).unwrap();
        assert_eq!(read.len(), 3);
        let found = YesNoProbability::from_tokens(&read).unwrap();
        assert!((found.share() - 0.61).abs() < 0.01, "{found:?}");
        assert!(found.neither() < 0.02);
    }

    #[test]
    fn what_cannot_be_used_is_absent() {
        let two = json!([{ "token": "Yes", "logprob": -0.1 }, { "token": "No", "logprob": -2.0 }]);
        for tokens in [
            json!(null),
            json!([]),
            json!("x"),
            json!([{ "token": "Yes", "logprob": -0.1 }]),
            list("Yes", &json!([])),
            list("Yes", &json!([{ "token": "Yes", "logprob": -0.1 }])),
            list("Yes", &json!([{ "token": "Yes" }, { "token": "No", "logprob": -2.0 }])),
            list(
                "Yes",
                &json!([{ "token": "Yes", "logprob": "NaN" }, { "token": "No", "logprob": 0 }]),
            ),
            list("<think>", &two),
        ] {
            assert_eq!(parse_first_token(Some(&tokens)), None, "{tokens}");
        }
        assert_eq!(parse_first_token(None), None);
    }

    #[test]
    fn what_is_no_distribution_is_absent() {
        let pair = |yes: f64, no: f64| json!([{ "token": "Yes", "logprob": yes }, { "token": "No", "logprob": no }]);
        for tokens in [
            list("Yes", &pair(3.0, -1.0)),
            list("Yes", &pair(0.0, 0.0)),
            list("Yes", &pair(-0.01, -0.02)),
            // The token that was said is not the likeliest, or none of them.
            list("No", &pair(-0.1, -3.0)),
            list("Maybe", &pair(-0.1, -3.0)),
            list(
                "Yes",
                &json!([
                    { "token": "Yes", "logprob": -1.0 },
                    { "token": "Yes", "logprob": -1.0 },
                    { "token": "No", "logprob": -3.0 },
                ]),
            ),
        ] {
            assert_eq!(parse_first_token(Some(&tokens)), None, "{tokens}");
        }
    }
}
