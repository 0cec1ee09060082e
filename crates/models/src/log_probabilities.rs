//! Parses first-token log-probabilities in the formats of OpenAI, Ollama, llama.cpp's server and
//! vLLM. Unusable data is treated as missing, never as an error.

use serde_json::Value;

use crate::TokenProbability;

/// Maximum number of alternatives that OpenAI and Ollama return.
pub(crate) const MAX_ALTERNATIVES: u8 = 20;

/// Parses the alternatives for the first token from the list of reply tokens. Returns `None` if the
/// server returns none or only the chosen token, which leaves the others' share unknown, or if the
/// reply starts with thinking.
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
    (alternatives.len() > 1).then_some(alternatives)
}

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
        // Not a probability; the reader of the choice detects this.
        let positive = list(
            "Yes",
            &json!([{ "token": "Yes", "logprob": 3 }, { "token": "No", "logprob": -1 }]),
        );
        assert_eq!(
            YesNoProbability::from_tokens(&parse_first_token(Some(&positive)).unwrap()),
            None
        );
    }
}
