//! Yes-or-no answers with their probabilities. Pure.
//!
//! Most servers give them as the distribution of a reply's first token. That accepts all spellings:
//! `Yes`, ` yes`, `YES`, translations, and prefixes of words that a tokenizer splits.
//!
//! Decision models take a state and several questions in one request: `POST /v1/systemone`
//! (`TypeSafe`; Ollama, llama.cpp's server) and `POST /v1/decisions` (`OpenAI`, `SGLang`). Nothing of
//! their replies is repaired: an answer too few or too many, a probability that is none, or a decision
//! that contradicts its probabilities makes the whole reply unusable.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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
        // SentencePiece writes the space before a word as `▁`.
        let word = text.trim_matches(|c: char| c.is_whitespace() || "\"'`*.,:!_▁".contains(c));
        // Everything starts with the empty word, and no word of the lists has more than 12 bytes.
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
    // The first token of thoughts says nothing of the answer.
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
        // One unreadable alternative spoils the list: its share would be missing from the sum.
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

/// Tolerance of sums and of comparisons of probabilities.
const TOLERANCE: f64 = 0.01;

/// A protocol of decision models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecisionProtocol {
    /// `POST /v1/systemone`.
    SystemOne,
    /// `POST /v1/decisions`.
    Decisions,
}

/// The answer to one question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionAnswer {
    /// The probability of yes, 0 to 1.
    Yes(f64),
    /// The model refuses this question.
    Refused,
}

/// A reply that is not the answers to the questions.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum DecisionError {
    #[error("the state was truncated")]
    Truncated,
    #[error("a reply without `answers`")]
    NoAnswers,
    #[error("`answers` is no {0}")]
    Shape(&'static str),
    #[error("{found} answers to {wanted} questions")]
    Count { found: usize, wanted: usize },
    #[error("no answer to {0}")]
    Missing(String),
    #[error("an answer to {found} in place of {wanted}")]
    Order { found: String, wanted: String },
    #[error("{question}: {source}")]
    Answer { question: String, source: Box<Self> },
    #[error("an error in place of an answer")]
    Failed,
    #[error("the answer is of another type")]
    Type,
    #[error("no `{0}`")]
    NoProbability(&'static str),
    #[error("{0} is no number")]
    NoNumber(Value),
    #[error("{0} is no probability")]
    Range(f64),
    #[error("`probabilities` is neither a list nor an object")]
    Distribution,
    #[error("probabilities that sum to {0:.2}")]
    Sum(f64),
    #[error("{share} beside a probability of {yes}")]
    Share { share: f64, yes: f64 },
    #[error("decided {} at {yes}", if *.is_yes { "yes" } else { "no" })]
    Decided { is_yes: bool, yes: f64 },
}

impl DecisionError {
    /// Adds the question that was answered wrongly.
    fn at(self, question: String) -> Self {
        Self::Answer { question, source: Box::new(self) }
    }
}

impl DecisionProtocol {
    /// Returns the path below `/v1`.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::SystemOne => "/systemone",
            Self::Decisions => "/decisions",
        }
    }

    /// Returns the request about a state.
    pub(crate) fn body(self, model: &str, state: &str, questions: &[String]) -> Value {
        let named = questions.iter().enumerate();
        match self {
            Self::SystemOne => {
                let questions: Map<String, Value> = named
                    .map(|(at, text)| (id(at), json!({ "type": "noul", "instructions": text })))
                    .collect();
                json!({ "model": model, "state": state, "questions": questions })
            }
            Self::Decisions => {
                let questions: Vec<Value> = named
                    .map(|(at, text)| {
                        json!({ "type": "predicate", "name": id(at), "instructions": text })
                    })
                    .collect();
                json!({ "model": model, "input": state, "questions": questions })
            }
        }
    }

    /// Reads the answers to this many questions, in order.
    pub(crate) fn read(
        self,
        reply: &Value,
        count: usize,
    ) -> Result<Vec<DecisionAnswer>, DecisionError> {
        // Answers about a part of the state would be answers to another question.
        if is_truncated(reply) {
            return Err(DecisionError::Truncated);
        }
        let answers = reply.get("answers").ok_or(DecisionError::NoAnswers)?;
        match self {
            Self::SystemOne => {
                let answers = answers.as_object().ok_or(DecisionError::Shape("object"))?;
                if answers.len() != count {
                    return Err(DecisionError::Count { found: answers.len(), wanted: count });
                }
                (0..count)
                    .map(|at| {
                        let name = id(at);
                        let answer = answers.get(&name);
                        let answer = answer.ok_or_else(|| DecisionError::Missing(name.clone()))?;
                        read_noul(answer).map_err(|error| error.at(name))
                    })
                    .collect()
            }
            Self::Decisions => {
                let answers = answers.as_array().ok_or(DecisionError::Shape("list"))?;
                if answers.len() != count {
                    return Err(DecisionError::Count { found: answers.len(), wanted: count });
                }
                let each = answers.iter().enumerate().map(|(at, answer)| {
                    let name = id(at);
                    // The name may be left out; the order then identifies the answers.
                    let said = answer.get("name").and_then(Value::as_str).unwrap_or(&name);
                    if said != name {
                        return Err(DecisionError::Order { found: said.to_owned(), wanted: name });
                    }
                    read_predicate(answer).map_err(|error| error.at(name))
                });
                each.collect()
            }
        }
    }
}

/// Returns the id of a question.
fn id(at: usize) -> String {
    format!("q{}", at + 1)
}

fn is_truncated(reply: &Value) -> bool {
    let usage = reply.get("usage");
    [Some(reply), usage]
        .into_iter()
        .flatten()
        .any(|part| part.get("truncated").is_some_and(|value| *value != json!(false)))
}

fn is_refusal(answer: &Value) -> bool {
    answer.get("type").and_then(Value::as_str) == Some("refusal")
        || answer.get("refusal").is_some_and(|value| !value.is_null() && *value != json!(false))
}

fn probability(value: &Value) -> Result<f64, DecisionError> {
    let number = value.as_f64().ok_or_else(|| DecisionError::NoNumber(value.clone()))?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(DecisionError::Range(number)) }
}

fn read_noul(answer: &Value) -> Result<DecisionAnswer, DecisionError> {
    // Before the type: a refusal may have one of its own.
    if is_refusal(answer) {
        return Ok(DecisionAnswer::Refused);
    }
    if answer.get("error").is_some_and(|error| !error.is_null()) {
        return Err(DecisionError::Failed);
    }
    if answer.get("type").and_then(Value::as_str) != Some("noul") {
        return Err(DecisionError::Type);
    }
    let yes = probability(answer.get("noul").ok_or(DecisionError::NoProbability("noul"))?)?;
    agrees(answer, yes)?;
    Ok(DecisionAnswer::Yes(yes))
}

fn read_predicate(answer: &Value) -> Result<DecisionAnswer, DecisionError> {
    if is_refusal(answer) {
        return Ok(DecisionAnswer::Refused);
    }
    if answer.get("type").and_then(Value::as_str) != Some("predicate") {
        return Err(DecisionError::Type);
    }
    let yes =
        probability(answer.get("probability").ok_or(DecisionError::NoProbability("probability"))?)?;
    agrees(answer, yes)?;
    Ok(DecisionAnswer::Yes(yes))
}

/// Checks what stands beside a probability: a distribution sums to 1 and holds it, and a decision is
/// the likelier one.
fn agrees(answer: &Value, yes: f64) -> Result<(), DecisionError> {
    if let Some(all) = answer.get("probabilities").filter(|all| !all.is_null()) {
        let each: Vec<(String, f64)> = match all {
            Value::Array(list) => list
                .iter()
                .map(|one| {
                    let value = one.get("value").map(Value::to_string).unwrap_or_default();
                    let share = probability(one.get("probability").unwrap_or(&Value::Null))?;
                    Ok((value.trim_matches('"').to_owned(), share))
                })
                .collect::<Result<_, DecisionError>>()?,
            Value::Object(map) => map
                .iter()
                .map(|(name, share)| Ok((name.clone(), probability(share)?)))
                .collect::<Result<_, DecisionError>>()?,
            _ => return Err(DecisionError::Distribution),
        };
        let sum: f64 = each.iter().map(|(_, share)| share).sum();
        if (sum - 1.0).abs() > TOLERANCE {
            return Err(DecisionError::Sum(sum));
        }
        // Servers name the two outcomes differently; a third form is not compared.
        let named = each.iter().find(|(name, _)| name == "true" || name == "yes");
        if let Some((_, share)) = named.filter(|(_, share)| (share - yes).abs() > TOLERANCE) {
            return Err(DecisionError::Share { share: *share, yes });
        }
    }
    let decided = ["choice", "value", "decision", "predicate", "answer"];
    let decided = decided.iter().find_map(|key| answer.get(*key)).and_then(|value| match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) if text == "true" || text == "yes" => Some(true),
        Value::String(text) if text == "false" || text == "no" => Some(false),
        _ => None,
    });
    match decided {
        // Rounded to one half, either decision is right.
        Some(true) if yes < 0.5 - TOLERANCE => Err(DecisionError::Decided { is_yes: true, yes }),
        Some(false) if yes > 0.5 + TOLERANCE => Err(DecisionError::Decided { is_yes: false, yes }),
        _ => Ok(()),
    }
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

    const SYSTEM_ONE: DecisionProtocol = DecisionProtocol::SystemOne;
    const DECISIONS: DecisionProtocol = DecisionProtocol::Decisions;

    fn noul(value: &Value) -> Value {
        json!({ "model": "nimble", "answers": { "q1": { "type": "noul", "noul": value } } })
    }

    #[test]
    fn answers_are_read_in_the_order_of_the_questions() {
        let reply = json!({ "answers": {
            "q2": { "type": "noul", "noul": 0.25 }, "q1": { "type": "noul", "noul": 0.9 },
        }, "usage": { "input_tokens": 12, "output_tokens": 0 } });
        let expected = [DecisionAnswer::Yes(0.9), DecisionAnswer::Yes(0.25)];
        assert_eq!(SYSTEM_ONE.read(&reply, 2).unwrap(), expected);
        let reply = json!({ "answers": [
            { "type": "predicate", "name": "q1", "probability": 0.9,
              "probabilities": [{ "value": true, "probability": 0.9 },
                                { "value": false, "probability": 0.1 }] },
            { "type": "refusal", "name": null, "refusal": "no" },
        ] });
        let expected = [DecisionAnswer::Yes(0.9), DecisionAnswer::Refused];
        assert_eq!(DECISIONS.read(&reply, 2).unwrap(), expected);
    }

    #[test]
    fn what_is_no_probability_or_contradicts_itself_is_no_answer() {
        for value in [json!(1.2), json!(-0.1), json!("NaN"), json!(null), json!(true), json!([0.5])]
        {
            assert!(SYSTEM_ONE.read(&noul(&value), 1).is_err(), "{value}");
        }
        for reply in [
            json!({}),
            json!({ "answers": {} }),
            json!({ "answers": [] }),
            json!({ "answers": { "q2": { "type": "noul", "noul": 0.9 } } }),
            json!({ "answers": { "q1": { "type": "score", "score": 0.9 } } }),
            json!({ "answers": { "q1": { "type": "noul", "noul": 0.9 },
                                 "q2": { "type": "noul", "noul": 0.9 } } }),
            json!({ "answers": { "q1": { "type": "noul", "noul": 0.9, "choice": "no" } } }),
            json!({ "answers": { "q1": { "type": "noul", "noul": 0.9,
                                         "probabilities": { "true": 0.9, "false": 0.9 } } } }),
            json!({ "answers": { "q1": { "type": "noul", "noul": 0.9 } }, "truncated": true }),
            json!({ "answers": { "q1": { "error": "overloaded" } } }),
        ] {
            assert!(SYSTEM_ONE.read(&reply, 1).is_err(), "{reply}");
        }
        for answer in [
            json!({ "type": "predicate", "name": "q2", "probability": 0.9 }),
            json!({ "type": "predicate", "probability": 0.9, "probabilities": [
                { "value": true, "probability": 0.2 }, { "value": false, "probability": 0.8 } ] }),
            json!({ "type": "predicate", "probability": 0.2, "value": true }),
        ] {
            assert!(DECISIONS.read(&json!({ "answers": [answer] }), 1).is_err(), "{answer}");
        }
    }
}
