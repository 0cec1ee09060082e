//! Decision models: a state and yes/no questions in, probabilities out, in one request. The shapes of
//! `POST /v1/systemone` (`TypeSafe`; Ollama, llama.cpp's server) and `POST /v1/decisions` (`OpenAI`,
//! `SGLang`). Pure.
//!
//! Nothing is repaired: an answer too few or too many, a probability that is none, or a decision that
//! contradicts its probabilities makes the whole reply unusable.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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
        Some(true) if yes < 0.5 - TOLERANCE => Err(DecisionError::Decided { is_yes: true, yes }),
        Some(false) if yes > 0.5 + TOLERANCE => Err(DecisionError::Decided { is_yes: false, yes }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
