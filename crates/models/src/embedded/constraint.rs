//! From the JSON Schema of a reply to the tokens allowed next.
//!
//! The schema is narrowed so that its language is finite: white space is fixed, escapes are
//! short, strings and arrays have a greatest length. A number without an enum stays unbounded
//! (endless digits); then only the token limit ends the reply, and says so.

use std::collections::HashMap;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};

use super::llama::Model;
use crate::{ModelError, ReplySchema};

/// Most items of an array that states no limit itself.
const DEFAULT_MAX_ITEMS: u64 = 8;

/// Grammars by schema, each compiled once.
pub(super) struct Constraints {
    factory: ParserFactory,
    compiled: HashMap<(String, usize), Matcher>,
}

impl Constraints {
    /// Reads the vocabulary, which takes about a tenth of a second.
    pub(super) fn new(model: &Model) -> Result<Self, ModelError> {
        let unfit = |why: &dyn std::fmt::Display| {
            let what = format!("the vocabulary does not fit constrained decoding: {why}");
            ModelError::engine(what, None)
        };
        let tokens = vocabulary(model).ok_or_else(|| unfit(&"no token ends a reply"))?;
        let mut factory = ParserFactory::new_simple(&tokens).map_err(|error| unfit(&error))?;
        factory.quiet();
        Ok(Self { factory, compiled: HashMap::new() })
    }

    /// A fresh matcher of the schema.
    pub(super) fn matcher(&mut self, schema: &ReplySchema) -> Result<Matcher, ModelError> {
        // By text and not by digest: the order of keys is the order in which they are written.
        let key = (schema.schema.to_string(), schema.brief);
        if let Some(matcher) = self.compiled.get(&key) {
            return Ok(matcher.deep_clone());
        }
        let grammar = TopLevelGrammar::from_json_schema(narrowed(&schema.schema, schema.brief));
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        if let Some(error) = matcher.get_error() {
            let what = format!("schema `{}` cannot constrain a reply: {error}", schema.name);
            return Err(ModelError::engine(what, None));
        }
        let fresh = matcher.deep_clone();
        self.compiled.insert(key, matcher);
        Ok(fresh)
    }
}

/// The vocabulary in llguidance's form; none where no token ends a reply.
fn vocabulary(model: &Model) -> Option<TokEnv> {
    let size = model.vocabulary_size();
    let end = model.end()?;
    let mut ends = vec![end];
    ends.extend((0..size).filter(|token| *token != end && model.is_end(*token)));
    let words: Vec<Vec<u8>> = (0..size)
        .map(|token| {
            let text = model.token_bytes(token, false);
            if !text.is_empty() {
                return text;
            }
            match model.token_bytes(token, true) {
                control if control.is_empty() => control,
                control => [&[TokTrie::SPECIAL_TOKEN_MARKER], control.as_slice()].concat(),
            }
        })
        .collect();
    let trie = TokTrie::from(&TokRxInfo::new(size, end), &words).with_eos_tokens(&ends);
    Some(Arc::new(ApproximateTokEnv::new(trie)))
}

fn narrowed(schema: &Value, brief: usize) -> Value {
    let mut schema = schema.clone();
    narrow(&mut schema, u64::try_from(brief).unwrap_or(u64::MAX));
    if let Some(root) = schema.as_object_mut() {
        let style = json!({ "whitespace_flexible": false, "json_allowed_escapes": "nrbtf\\\"" });
        root.insert("x-guidance".to_owned(), style);
    }
    schema
}

fn narrow(schema: &mut Value, brief: u64) {
    let Some(keys) = schema.as_object_mut() else {
        return;
    };
    let is = |name: &str| match keys.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    };
    let open = !keys.contains_key("enum") && !keys.contains_key("const");
    let (string, array) = (open && is("string"), open && is("array"));
    let number = |name: &str| keys.get(name).and_then(Value::as_u64);
    let most_characters =
        number("maxLength").unwrap_or(u64::MAX).min(brief.max(number("minLength").unwrap_or(0)));
    let most_items =
        number("maxItems").unwrap_or(DEFAULT_MAX_ITEMS.max(number("minItems").unwrap_or(0)));
    if string {
        keys.insert("maxLength".to_owned(), json!(most_characters));
    }
    if array {
        keys.insert("maxItems".to_owned(), json!(most_items));
    }
    for (key, value) in keys.iter_mut() {
        match key.as_str() {
            "properties" | "patternProperties" | "$defs" | "definitions" => {
                for schema in value.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
                    narrow(schema, brief);
                }
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                for schema in value.as_array_mut().into_iter().flatten() {
                    narrow(schema, brief);
                }
            }
            "items" | "additionalProperties" => narrow(value, brief),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_arrays_become_finite() {
        let schema = json!({
            "type": "object",
            "properties": {
                "type": { "type": "string" },
                "short": { "type": ["string", "null"], "maxLength": 5 },
                "long": { "type": "string", "maxLength": 9000, "minLength": 60 },
                "fixed": { "type": "string", "enum": ["a"] },
                "list": { "type": "array", "items": { "type": "string" } },
                "twelve": { "type": "array", "minItems": 12, "items": { "$ref": "#/$defs/x" } },
                "either": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            },
            "$defs": { "x": { "type": "string" } },
        });
        let narrow = narrowed(&schema, 40);
        let at = |pointer: &str| narrow.pointer(pointer).cloned();
        assert_eq!(at("/properties/type/maxLength"), Some(json!(40)));
        assert_eq!(at("/properties/short/maxLength"), Some(json!(5)));
        assert_eq!(at("/properties/long/maxLength"), Some(json!(60)));
        assert_eq!(at("/properties/fixed/maxLength"), None);
        assert_eq!(at("/properties/list/maxItems"), Some(json!(DEFAULT_MAX_ITEMS)));
        assert_eq!(at("/properties/list/items/maxLength"), Some(json!(40)));
        assert_eq!(at("/properties/twelve/maxItems"), Some(json!(12)));
        assert_eq!(at("/properties/either/anyOf/0/maxLength"), Some(json!(40)));
        assert_eq!(at("/$defs/x/maxLength"), Some(json!(40)));
        assert_eq!(at("/x-guidance/whitespace_flexible"), Some(json!(false)));
    }
}
