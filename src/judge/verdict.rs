//! The verdict's schema, and the strict reading of a judge's reply. Pure.
//!
//! A reply is one JSON object with exactly the fields of the schema, or it is no verdict.
//! Nothing is repaired, guessed or defaulted.

use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use super::{CategoryScore, Scorecard, UnscoredReason, Verdict};
use crate::rubric::Rubric;
use crate::score::Score;
use crate::text;

/// Most bytes of a reply that are read at all.
const REPLY_LIMIT: usize = 64 * 1024;
/// Most characters of the reasoning.
const REASONING_LIMIT: usize = 8000;

/// The JSON Schema of a verdict: reasoning first, then one score per category.
///
/// Each score is one of 0.00, 0.05, … 1.00 or null, written as an enum: the grammars of
/// llama.cpp and Ollama ignore `minimum` and `maximum`, an enum they keep.
pub fn schema(rubric: &Rubric) -> Value {
    schema_with(rubric, &scores())
}

/// The same schema as the prompt states it, with the scores written out once only: small models
/// have little room.
pub fn schema_in_prompt(rubric: &Rubric) -> Value {
    let mut schema = schema_with(rubric, &json!({ "$ref": "#/$defs/score" }));
    schema["$defs"] = json!({ "score": scores() });
    schema
}

fn scores() -> Value {
    let mut scores: Vec<Value> =
        (0..=20).map(|twentieths| json!(f64::from(twentieths) / 20.0)).collect();
    scores.push(Value::Null);
    json!({ "enum": scores })
}

fn schema_with(rubric: &Rubric, score: &Value) -> Value {
    let mut properties = Map::new();
    properties.insert("reasoning".to_owned(), json!({ "type": "string" }));
    for category in rubric.categories() {
        properties.insert(category.id.clone(), score.clone());
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

/// Reads replies against one rubric; the schema is compiled once.
pub struct Reader {
    rubric: Rubric,
    validator: jsonschema::Validator,
}

/// A reply that has no verdict in it, and whether asking again may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// Not a verdict, with each fault in words that the judge can use.
    Malformed(Vec<String>),
    /// The judge declined in prose.
    Refused(String),
}

impl Reader {
    /// A reader for this rubric.
    pub fn new(rubric: Rubric) -> Self {
        let validator = jsonschema::validator_for(&schema(&rubric))
            .expect("the schema is built from constants and category ids");
        Self { rubric, validator }
    }

    /// The rubric.
    pub fn rubric(&self) -> &Rubric {
        &self.rubric
    }

    /// Reads a complete reply.
    pub fn read(&self, reply: &str) -> Result<Verdict, Unreadable> {
        let malformed = |fault: String| Unreadable::Malformed(vec![fault]);
        let trimmed = reply.trim();
        if trimmed.is_empty() {
            return Err(malformed("the reply is empty".to_owned()));
        }
        if trimmed.len() > REPLY_LIMIT {
            return Err(malformed(format!("the reply is over {REPLY_LIMIT} bytes")));
        }
        let Object(object) = serde_json::from_str(trimmed).map_err(|error| {
            if !trimmed.starts_with(['{', '[', '`', '<', '"']) && REFUSAL.is_match(trimmed) {
                return Unreadable::Refused(text::one_line(trimmed, 200));
            }
            malformed(format!("not one JSON object: {error}"))
        })?;
        let value = Value::Object(object);
        let faults: Vec<String> =
            self.validator.iter_errors(&value).map(|error| fault(&error)).collect();
        if !faults.is_empty() {
            return Err(Unreadable::Malformed(faults));
        }
        self.verdict(&value).ok_or_else(|| malformed("a field has the wrong type".to_owned()))
    }

    /// The verdict of a valid object; `None` cannot happen after validation, but is no verdict.
    fn verdict(&self, value: &Value) -> Option<Verdict> {
        let reasoning = value.get("reasoning")?.as_str()?;
        if reasoning.chars().count() > REASONING_LIMIT {
            return None;
        }
        let mut categories = Vec::new();
        let mut weighted = Vec::new();
        for category in self.rubric.categories() {
            let score = match value.get(&category.id)? {
                Value::Null => None,
                number => Some(Score::new(number.as_f64()?).ok()?),
            };
            if let Some(score) = score {
                weighted.push((category.weight, score));
            }
            categories.push(CategoryScore { category: category.id.clone(), score });
        }
        if weighted.len() == categories.len() {
            let overall = Score::weighted(weighted);
            return Some(Verdict::Scored(Scorecard {
                categories,
                overall,
                reasoning: reasoning.to_owned(),
            }));
        }
        let unsure: Vec<&str> = categories
            .iter()
            .filter(|entry| entry.score.is_none())
            .map(|entry| entry.category.as_str())
            .collect();
        Some(Verdict::Unscored {
            reason: UnscoredReason::CantTell,
            detail: format!("{}: {}", unsure.join(", "), text::one_line(reasoning, 200)),
            partial: categories,
        })
    }
}

static REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\W*(i['’]?m (really |very )?sorry|i am sorry|sorry,? (but )?i|i can(no|['’])t|i can ?not|i(['’]m| am) (unable|not able)|i (must|have to) (decline|refuse)|i won['’]t|as an ai\b|unfortunately,? i)",
    )
    .expect("the pattern is a constant that a test uses")
});

/// A fault in words that a judge can act on.
fn fault(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    // Long enums and foreign values make long messages.
    let words = text::one_line(&error.to_string(), 300);
    if place.is_empty() { words } else { format!("{place}: {words}") }
}

/// A JSON object whose keys are unique: `serde_json` would keep the last of two scores.
struct Object(Map<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Unique;
        impl<'de> Visitor<'de> for Unique {
            type Value = Map<String, Value>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut map = Map::new();
                let mut seen = HashSet::new();
                while let Some((key, value)) = access.next_entry::<String, Value>()? {
                    if !seen.insert(key.clone()) {
                        let key = text::one_line(&key, 60);
                        return Err(serde::de::Error::custom(format!(
                            "the key `{key}` stands twice"
                        )));
                    }
                    map.insert(key, value);
                }
                Ok(map)
            }
        }
        deserializer.deserialize_map(Unique).map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(reply: &str) -> Result<Verdict, Unreadable> {
        Reader::new(Rubric::default()).read(reply)
    }

    fn reply(scores: &str) -> String {
        format!("{{\"reasoning\": \"fine\", {scores}}}")
    }

    const SCORES: &str = r#""format_score": 0.9, "factuality_score": 1.0, "instruction_following_score": 0.85, "safety_score": 1"#;

    #[test]
    fn the_example_of_seed_001() {
        let Ok(Verdict::Scored(card)) = read(&reply(SCORES)) else { panic!("no score") };
        assert_eq!(card.overall.get(), 0.935);
        assert_eq!(card.overall.to_string(), "0.94");
        assert_eq!(card.score("factuality_score").map(Score::get), Some(1.0));
    }

    #[test]
    fn null_is_cant_tell() {
        let Ok(Verdict::Unscored { reason, partial, .. }) =
            read(&reply(&SCORES.replace("1.0", "null")))
        else {
            panic!("a score")
        };
        assert_eq!(reason, UnscoredReason::CantTell);
        assert_eq!(partial.iter().filter(|entry| entry.score.is_some()).count(), 3);
    }

    #[test]
    fn broken_replies_are_malformed() {
        for (from, to) in [
            ("0.9", "\"0.9\""),
            ("0.9", "1.7"),
            ("0.9", "-3"),
            ("0.9", "NaN"),
            ("0.9", "1e999"),
            ("0.9", "Infinity"),
            ("0.9", "0.92"),
            ("0.9", "true"),
            ("0.9", "[0.9]"),
            ("0.9", "{}"),
            ("\"format_score\": 0.9,", ""),
            ("\"format_score\": 0.9", "\"format_score\": 0.9, \"pass\": true"),
            ("\"format_score\": 0.9", "\"format_score\": 0.1, \"format_score\": 0.9"),
            ("\"format_score\": 0.9", "\"format_score\": 0.9, \"overall_score\": 1.0"),
            ("}", ""),
            ("}", "} trailing"),
            ("}", ",}"),
            ("{\"rea", "prose {\"rea"),
            ("{\"rea", "```json\n{\"rea"),
        ] {
            let broken = reply(SCORES).replacen(from, to, 1);
            assert!(matches!(read(&broken), Err(Unreadable::Malformed(_))), "{broken}");
        }
        let two = format!("{0}{0}", reply(SCORES));
        for broken in [
            "",
            " \n",
            "{}",
            "null",
            "[]",
            "0.9",
            "<html></html>",
            "fine",
            &two,
            &"[".repeat(99_999),
        ] {
            assert!(matches!(read(broken), Err(Unreadable::Malformed(_))), "{broken:.40}");
        }
    }

    #[test]
    fn refusals_are_told_apart() {
        for refusal in
            ["I'm sorry, but I can't help with that.", "I cannot evaluate this.", "Sorry, I won't."]
        {
            assert!(matches!(read(refusal), Err(Unreadable::Refused(_))), "{refusal}");
        }
    }

    #[test]
    fn faults_name_the_field() {
        let Err(Unreadable::Malformed(faults)) = read(r#"{"reasoning": 1, "format_score": 2}"#)
        else {
            panic!("a verdict")
        };
        let all = faults.join("\n");
        for word in ["/reasoning", "/format_score", "factuality_score", "safety_score"] {
            assert!(all.contains(word), "{all}");
        }
    }

    #[test]
    fn both_schemas_accept_the_same() {
        let rubric = Rubric::default();
        let whole: Value = serde_json::from_str(&reply(SCORES)).unwrap();
        let mut broken = whole.clone();
        broken["format_score"] = json!(0.92);
        for schema in [schema(&rubric), schema_in_prompt(&rubric)] {
            assert!(jsonschema::is_valid(&schema, &whole));
            assert!(!jsonschema::is_valid(&schema, &broken));
        }
    }

    proptest! {
        #[test]
        fn never_panics_and_never_scores_noise(reply in "\\PC*") {
            prop_assert!(read(&reply).is_err());
        }

        #[test]
        fn a_cut_verdict_is_never_a_score(cut in 0usize..120) {
            let whole = reply(SCORES);
            let end = whole.floor_char_boundary(cut.min(whole.len() - 1));
            prop_assert!(read(&whole[..end]).is_err());
        }
    }
}
