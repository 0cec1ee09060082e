//! Detection of replies that repeat themselves endlessly, as small models do. Without it, such a
//! reply runs for a minute until a limit cuts it.

use serde_json::Value;

use super::llama::Token;

/// Maximum length in tokens of a repeated passage.
const MAX_PASSAGE: usize = 64;
/// Minimum number of consecutive repetitions and of tokens in them. Rows of zeros or dashes that
/// were asked for are shorter.
const MIN_REPETITIONS: usize = 8;
const MIN_TOKENS: usize = 240;

/// Returns true if the last tokens repeat a single passage.
pub(super) fn is_repeating(tokens: &[Token]) -> bool {
    tokens.len() >= MIN_TOKENS
        && (1..=MAX_PASSAGE).any(|passage| {
            let wanted = MIN_TOKENS.max(MIN_REPETITIONS * passage);
            let Some(start) = tokens.len().checked_sub(wanted) else { return false };
            let last = &tokens[start..];
            last[passage..] == last[..wanted - passage]
        })
}

/// Returns true if a schema limits the length of strings, so that a reply always terminates.
pub(super) fn bounds_strings(schema: &Value) -> bool {
    match schema {
        Value::Object(keys) => keys.contains_key("maxLength") || keys.values().any(bounds_strings),
        Value::Array(all) => all.iter().any(bounds_strings),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns distinct tokens followed by a repeated passage.
    fn reply(before: usize, passage: usize, times: usize) -> Vec<Token> {
        let repeated = (0..passage).cycle().take(passage * times);
        let all = (1000..1000 + before).chain(repeated);
        all.map(|token| Token::try_from(token).unwrap()).collect()
    }

    #[test]
    fn a_passage_over_and_over_is_endless() {
        for (passage, times) in [(1, 240), (7, 35), (30, 8), (64, 8)] {
            assert!(is_repeating(&reply(50, passage, times)), "{passage} x {times}");
        }
        // Cut in the middle of the passage.
        let mut cut = reply(0, 7, 40);
        cut.truncate(7 * 40 - 3);
        assert!(is_repeating(&cut));
    }

    #[test]
    fn what_ends_or_changes_is_not() {
        for (passage, times) in [(1, 239), (7, 34), (30, 7), (64, 7), (65, 100)] {
            assert!(!is_repeating(&reply(50, passage, times)), "{passage} x {times}");
        }
        let mut goes_on = reply(50, 7, 100);
        goes_on.push(7);
        assert!(!is_repeating(&goes_on));
        assert!(!is_repeating(&reply(1000, 0, 0)));
        assert!(!is_repeating(&[]));
    }

    #[test]
    fn a_schema_may_bound_texts() {
        let schema = |text: Value| json!({"type": "object", "properties": {"a": text}});
        assert!(bounds_strings(&schema(json!({"type": "string", "maxLength": 60}))));
        assert!(bounds_strings(&schema(json!({"type": "array", "items": [{"maxLength": 9}]}))));
        assert!(!bounds_strings(&schema(json!({"type": "string", "minLength": 1}))));
        assert!(!bounds_strings(&json!(null)));
    }
}
