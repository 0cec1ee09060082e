//! Selects the next token: which ones the JSON Schema of a reply allows, and which of those is taken.
//!
//! Allowed tokens: white space is fixed, escapes are short, and array lengths are bounded. A string
//! ends at its `maxLength`. A string without one, or a number without an enum, is bounded only by the
//! token limit, and the reply is then reported as cut. Scores may be spelled `0`, `0.0` or `0.00`.
//!
//! Selection is greedy, or seeded top-p sampling. The result must not change between versions: reports
//! state the seed so that runs can be reproduced.

use std::collections::HashMap;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Map, Value, json};
use toktrie::{ApproximateTokEnv, SimpleVob, TokEnv, TokRxInfo, TokTrie};

use super::llama::LlamaModel;
use crate::{ModelError, ReplySchema, SamplingParameters};

/// Cumulative probability to sample from.
const TOP_P: f64 = 0.95;
/// Tokens less probable than this fraction of the best one are never sampled, which avoids sorting
/// the whole vocabulary.
const MIN_P: f64 = 0.001;

/// The sampler of one call.
pub(super) struct TokenSampler {
    temperature: f64,
    random: SplitMix64,
}

impl TokenSampler {
    /// Creates a sampler with the request's parameters.
    pub(super) fn new(sampling: &SamplingParameters) -> Self {
        Self { temperature: sampling.temperature, random: SplitMix64(sampling.seed) }
    }

    /// Selects a token allowed by the mask. Returns `None` if the mask allows none.
    pub(super) fn pick(&mut self, logits: &[f32], mask: Option<&SimpleVob>) -> Option<u32> {
        let best = best(logits, mask)?;
        if self.temperature <= 0.0 {
            return Some(best.0);
        }
        let top = f64::from(best.1);
        // At this logit, a token has `MIN_P` times the probability of the best one.
        let cutoff = top + self.temperature * MIN_P.ln();
        let mut candidates = Vec::new();
        for_each_allowed(logits, mask, |token, logit| {
            let logit = f64::from(logit);
            if logit >= cutoff {
                candidates.push((token, ((logit - top) / self.temperature).exp()));
            }
        });
        // Ties are broken by token, so that results repeat.
        candidates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let total: f64 = candidates.iter().map(|(_, weight)| weight).sum();
        let mut kept = 0.0;
        let count = candidates.iter().take_while(|(_, weight)| {
            let more = kept < TOP_P * total;
            kept += if more { *weight } else { 0.0 };
            more
        });
        candidates.truncate(count.count());
        let mut left = self.random.next_unit() * kept;
        let chosen = candidates.iter().find(|(_, weight)| {
            left -= weight;
            left < 0.0
        });
        // Rounding can leave a remainder after the last candidate.
        Some(chosen.or(candidates.last()).unwrap_or(&(best.0, 1.0)).0)
    }
}

fn best(logits: &[f32], mask: Option<&SimpleVob>) -> Option<(u32, f32)> {
    let mut best: Option<(u32, f32)> = None;
    for_each_allowed(logits, mask, |token, logit| {
        // Also skips NaN, which never compares greater.
        if logit > best.map_or(f32::NEG_INFINITY, |(_, top)| top) {
            best = Some((token, logit));
        }
    });
    best
}

fn for_each_allowed(logits: &[f32], mask: Option<&SimpleVob>, mut visit: impl FnMut(u32, f32)) {
    match mask {
        None => (0_u32..).zip(logits).for_each(|(token, logit)| visit(token, *logit)),
        Some(mask) => mask.iter_set_entries(|place| {
            if let (Some(logit), Ok(token)) = (logits.get(place), u32::try_from(place)) {
                visit(token, *logit);
            }
        }),
    }
}

/// `SplitMix64` by Steele, Lea and Flood (2014). Implemented here because a library's generator may
/// change between versions.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number in 0.0..1.0.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what an f64 holds")]
    fn next_unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Maximum number of items of an array whose schema states none.
const DEFAULT_MAX_ITEMS: u64 = 8;

/// Maximum number of cached grammars. Generated cases each have their own schema, which names
/// quotes from their excerpt.
const MAX_COMPILED: usize = 32;

/// Compiled grammars by schema.
pub(super) struct GrammarCache {
    factory: ParserFactory,
    compiled: HashMap<String, Matcher>,
}

impl GrammarCache {
    /// Reads the vocabulary, which takes about a tenth of a second.
    pub(super) fn new(model: &LlamaModel) -> Result<Self, ModelError> {
        let tokens = vocabulary(model).ok_or_else(|| vocabulary_error(&"no token ends a reply"))?;
        Self::from_vocabulary(&tokens)
    }

    fn from_vocabulary(tokens: &TokEnv) -> Result<Self, ModelError> {
        let mut factory =
            ParserFactory::new_simple(tokens).map_err(|error| vocabulary_error(&error))?;
        factory.quiet();
        Ok(Self { factory, compiled: HashMap::new() })
    }

    /// Returns a fresh matcher for the schema.
    pub(super) fn matcher(&mut self, schema: &ReplySchema) -> Result<Matcher, ModelError> {
        // The key is the text and not a digest, because the order of keys is the order in which
        // they are generated.
        let key = schema.schema.to_string();
        if let Some(matcher) = self.compiled.get(&key) {
            return Ok(matcher.deep_clone());
        }
        let matcher = Matcher::new(self.factory.create_parser(grammar(&schema.schema)));
        if let Some(error) = matcher.get_error() {
            let what = format!("schema `{}` cannot constrain a reply: {error}", schema.name);
            return Err(ModelError::engine(what, None));
        }
        // The cached matcher stays in its initial state.
        let fresh = matcher.deep_clone();
        if self.compiled.len() >= MAX_COMPILED {
            self.compiled.clear();
        }
        self.compiled.insert(key, matcher);
        Ok(fresh)
    }
}

fn vocabulary_error(why: &dyn std::fmt::Display) -> ModelError {
    let what = format!("the vocabulary does not fit constrained decoding: {why}");
    ModelError::engine(what, None)
}

/// Converts the vocabulary for llguidance. Returns `None` if no token ends a reply.
fn vocabulary(model: &LlamaModel) -> Option<TokEnv> {
    let size = model.vocabulary_size();
    let end = model.end_token()?;
    let mut ends = vec![end];
    ends.extend((0..size).filter(|token| *token != end && model.is_end_token(*token)));
    let words: Vec<Vec<u8>> = (0..size)
        .map(|token| {
            let text = model.token_bytes(token, false);
            if !text.is_empty() {
                return text;
            }
            match model.token_bytes(token, true) {
                control if control.is_empty() => control,
                // llguidance marks control tokens with a byte that text cannot contain.
                control => [&[TokTrie::SPECIAL_TOKEN_MARKER], control.as_slice()].concat(),
            }
        })
        .collect();
    let trie = TokTrie::from(&TokRxInfo::new(size, end), &words).with_eos_tokens(&ends);
    Some(Arc::new(ApproximateTokEnv::new(trie)))
}

/// Builds the grammar of a schema. llguidance accepts only one spelling of each number, so a schema
/// with scores is split until each score is a separate pattern.
fn grammar(schema: &Value) -> TopLevelGrammar {
    let mut schema = schema.clone();
    bound_arrays(&mut schema);
    // A reference cannot be split, since its target is elsewhere in the schema.
    if any_schema(&schema, &|keys| keys.contains_key("$ref"))
        || !any_schema(&schema, &|keys| choice_of_numbers(keys).is_some())
    {
        return TopLevelGrammar::from_json_schema(with_style(&schema));
    }
    let mut parts = Vec::new();
    split_schema(&schema, &mut parts);
    let parts: Vec<String> = parts.iter().map(GrammarPart::to_lark).collect();
    TopLevelGrammar::from_lark(format!("start: {}\n", parts.join(" ")))
}

/// A part of a grammar.
enum GrammarPart {
    /// Literal text.
    Text(String),
    /// Text that matches a regular expression.
    Pattern(String),
    /// JSON that matches a schema.
    Schema(Value),
}

impl GrammarPart {
    fn to_lark(&self) -> String {
        match self {
            GrammarPart::Text(text) => json!(text).to_string(),
            GrammarPart::Pattern(pattern) => format!("/{pattern}/"),
            GrammarPart::Schema(schema) => format!("%json {}", with_style(schema)),
        }
    }
}

fn split_schema(schema: &Value, parts: &mut Vec<GrammarPart>) {
    let say = |parts: &mut Vec<GrammarPart>, words: &str| match parts.last_mut() {
        Some(GrammarPart::Text(text)) => text.push_str(words),
        _ => parts.push(GrammarPart::Text(words.to_owned())),
    };
    let keys = schema.as_object();
    if let Some(pattern) = keys.and_then(choice_of_numbers) {
        parts.push(GrammarPart::Pattern(pattern));
    } else if let Some(fields) = keys.and_then(fields_in_order) {
        // Properties are generated in the order of the schema.
        for (place, (name, field)) in fields.iter().enumerate() {
            let before = if place == 0 { "{" } else { "," };
            say(parts, &format!("{before}{}:", json!(name)));
            split_schema(field, parts);
        }
        say(parts, if fields.is_empty() { "{}" } else { "}" });
    } else {
        parts.push(GrammarPart::Schema(schema.clone()));
    }
}

/// Returns the properties of an object schema if all are required and no others are allowed.
fn fields_in_order(keys: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let fields = keys.get("properties")?.as_object()?;
    let required = keys.get("required")?.as_array()?;
    let all = fields.keys().all(|name| required.iter().any(|one| one == name));
    let closed = keys.get("additionalProperties") == Some(&Value::Bool(false));
    (all && closed && required.len() == fields.len()).then_some(fields)
}

/// Returns a regular expression for all spellings with up to two decimals if a schema is an enum of
/// such numbers and null.
fn choice_of_numbers(keys: &Map<String, Value>) -> Option<String> {
    let choices = keys.get("enum")?.as_array()?;
    // Only decimals have several spellings.
    if !choices.iter().any(Value::is_f64) {
        return None;
    }
    let spellings = choices.iter().map(|choice| match choice {
        Value::Null => Some("null".to_owned()),
        Value::Number(number) => {
            let shortest = number.as_f64()?.to_string();
            let more = match shortest.split_once('.') {
                None => r"(\.00?)?",
                Some((_, decimals)) if decimals.len() == 1 => "0?",
                Some(_) => "",
            };
            Some(shortest.replace('.', r"\.") + more)
        }
        _ => None,
    });
    Some(spellings.collect::<Option<Vec<_>>>()?.join("|"))
}

/// Returns true if the predicate holds for the schema or any nested one.
fn any_schema(schema: &Value, is_so: &dyn Fn(&Map<String, Value>) -> bool) -> bool {
    match schema {
        Value::Object(keys) => is_so(keys) || keys.values().any(|value| any_schema(value, is_so)),
        Value::Array(items) => items.iter().any(|item| any_schema(item, is_so)),
        _ => false,
    }
}

fn with_style(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(root) = schema.as_object_mut() {
        let style = json!({ "whitespace_flexible": false, "json_allowed_escapes": "nrbtf\\\"" });
        // llguidance reads its options from this key.
        root.insert("x-guidance".to_owned(), style);
    }
    schema
}

/// Bounds the length of each array.
fn bound_arrays(schema: &mut Value) {
    let Some(keys) = schema.as_object_mut() else {
        return;
    };
    let is_array = match keys.get("type") {
        Some(Value::String(one)) => one == "array",
        Some(Value::Array(several)) => several.iter().any(|one| one == "array"),
        _ => false,
    };
    if is_array && !keys.contains_key("enum") && !keys.contains_key("const") {
        let number = |name: &str| keys.get(name).and_then(Value::as_u64);
        // An array with a larger `minItems` must stay satisfiable.
        let most = number("maxItems")
            .unwrap_or_else(|| DEFAULT_MAX_ITEMS.max(number("minItems").unwrap_or(0)));
        keys.insert("maxItems".to_owned(), json!(most));
    }
    for (key, value) in keys.iter_mut() {
        match key.as_str() {
            "properties" | "patternProperties" | "$defs" | "definitions" => {
                value.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(bound_arrays);
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                value.as_array_mut().into_iter().flatten().for_each(bound_arrays);
            }
            "items" | "additionalProperties" => bound_arrays(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structured::{StrictReader, score_schema};

    fn sampler(temperature: f64, seed: u64) -> TokenSampler {
        TokenSampler::new(&SamplingParameters { temperature, max_tokens: 1, seed })
    }

    #[test]
    fn the_generator_gives_the_published_values() {
        let mut random = SplitMix64(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn greedy_takes_the_best_allowed_token() {
        let logits = [1.0, 5.0, f32::NAN, 3.0];
        assert_eq!(sampler(0.0, 0).pick(&logits, None), Some(1));
        let mask = SimpleVob::from_slice(&[true, false, true, true]);
        assert_eq!(sampler(0.0, 0).pick(&logits, Some(&mask)), Some(3));
        let nothing = SimpleVob::from_slice(&[false; 4]);
        assert_eq!(sampler(0.0, 0).pick(&logits, Some(&nothing)), None);
        assert_eq!(sampler(1.0, 0).pick(&[f32::NAN], None), None);
    }

    #[test]
    fn sampling_follows_the_probabilities_and_the_seed() {
        // Probabilities 0.6, 0.3, 0.1 and one far below MIN_P.
        let logits = [0.6_f32.ln(), 0.3_f32.ln(), 0.1_f32.ln(), -20.0];
        let mut counts = [0_u32; 4];
        let mut all = sampler(1.0, 7);
        for _ in 0..10_000 {
            counts[all.pick(&logits, None).unwrap() as usize] += 1;
        }
        assert!((5_800..6_200).contains(&counts[0]), "{counts:?}");
        assert!((2_800..3_200).contains(&counts[1]), "{counts:?}");
        assert_eq!(counts[3], 0);
        let draw = |seed| {
            let mut sampler = sampler(1.0, seed);
            (0..40).map(|_| sampler.pick(&logits, None).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn masked_tokens_are_never_sampled() {
        let mask = SimpleVob::from_slice(&[false, true, true]);
        let mut sampler = sampler(2.0, 1);
        for _ in 0..1_000 {
            assert_ne!(sampler.pick(&[9.0, 1.0, 1.0], Some(&mask)), Some(0));
        }
    }

    #[test]
    fn arrays_become_finite() {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "type": { "type": "string" },
                "short": { "type": ["string", "null"], "maxLength": 5 },
                "list": { "type": "array", "items": { "type": "string" } },
                "twelve": { "type": "array", "minItems": 12, "items": { "$ref": "#/$defs/x" } },
                "either": { "anyOf": [{ "type": "array" }, { "type": "null" }] },
                "two": { "type": "array", "maxItems": 2 },
            },
            "$defs": { "x": { "type": "array" } },
        });
        bound_arrays(&mut schema);
        let at = |pointer: &str| schema.pointer(pointer).cloned();
        assert_eq!(at("/properties/type/maxLength"), None);
        assert_eq!(at("/properties/short/maxLength"), Some(json!(5)));
        assert_eq!(at("/properties/list/maxItems"), Some(json!(DEFAULT_MAX_ITEMS)));
        assert_eq!(at("/properties/twelve/maxItems"), Some(json!(12)));
        assert_eq!(at("/properties/either/anyOf/0/maxItems"), Some(json!(DEFAULT_MAX_ITEMS)));
        assert_eq!(at("/properties/two/maxItems"), Some(json!(2)));
        assert_eq!(at("/$defs/x/maxItems"), Some(json!(DEFAULT_MAX_ITEMS)));
    }

    /// Returns true if a reply may be this text, byte by byte.
    fn accepts(schema: &Value, reply: &str) -> bool {
        let tokens = ApproximateTokEnv::single_byte_env();
        let mut constraints = GrammarCache::from_vocabulary(&tokens).unwrap();
        let schema = ReplySchema { name: "test", schema: Arc::new(schema.clone()) };
        let mut matcher = constraints.matcher(&schema).unwrap();
        let bytes: Vec<u32> = reply.bytes().map(u32::from).collect();
        matcher.validate_tokens(&bytes).unwrap() == bytes.len()
            && matcher.consume_tokens(&bytes).is_ok()
            && matcher.is_accepting().unwrap()
    }

    fn object(fields: &Value) -> Value {
        let names: Vec<&String> = fields.as_object().unwrap().keys().collect();
        json!({
            "type": "object",
            "properties": fields,
            "required": names,
            "additionalProperties": false,
        })
    }

    #[test]
    fn a_score_has_every_spelling() {
        let part = object(
            &json!({ "quote": { "type": "string", "maxLength": 6 }, "score": score_schema() }),
        );
        let schema = object(
            &json!({ "explanation": { "type": "string" }, "part": part, "b": score_schema() }),
        );
        let reader = StrictReader::new(&schema);
        let reply = |score: &str| {
            format!(
                r#"{{"explanation":"a \"b\"","part":{{"quote":"é 🦀","score":{score}}},"b":{score}}}"#
            )
        };
        for score in
            ["0", "0.0", "0.00", "0.05", "0.1", "0.10", "0.5", "0.50", "1", "1.0", "1.00", "null"]
        {
            assert!(accepts(&schema, &reply(score)), "{score}");
            assert!(reader.read(&reply(score)).is_ok(), "{score}");
        }
        for score in [
            "0.000", "0.", "00", "0.01", "1.05", "1.1", "2", "-0.5", "0.050", "\"0.5\"", "true", "",
        ] {
            assert!(!accepts(&schema, &reply(score)), "{score}");
        }
        assert!(!accepts(&schema, &reply("0.5").replace("é 🦀", "seven c")));
        assert!(!accepts(&schema, &reply("0.5").replace("{\"q", "{ \"q")));
    }

    #[test]
    fn the_rest_is_read_as_it_stands() {
        let whole = object(&json!({ "n": { "enum": [1, 2, null] }, "s": { "enum": ["a", "b"] } }));
        assert!(accepts(&whole, r#"{"n":1,"s":"b"}"#));
        assert!(!accepts(&whole, r#"{"n":1.0,"s":"b"}"#));
        let referred = json!({
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/score" } },
            "required": ["a"],
            "additionalProperties": false,
            "$defs": { "score": score_schema() },
        });
        assert!(accepts(&referred, r#"{"a":0.5}"#));
    }
}
