//! Parses first-token log-probabilities in the formats of OpenAI, Ollama, llama.cpp's server and
//! vLLM. Unusable data is treated as missing, never as an error.

use std::collections::HashSet;

use serde_json::Value;

use crate::TokenProbability;

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
    use serde_json::json;

    use super::*;
    use crate::choice::YesNoProbability;

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
