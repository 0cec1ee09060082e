//! The verdict's schema, and the strict parser of a judge's reply. Pure.
//!
//! A reply is one JSON object with exactly the fields of the schema; anything else is rejected.
//! Nothing is repaired, guessed or defaulted.

use serde_json::{Map, Value, json};

use selftest_models::structured::{ReplyError, StrictReader, UnscoredReason, score_schema};

use super::{CategoryScore, ExpectationScore, Scorecard, Verdict};
use crate::rubric::Rubric;
use selftest_stats::score::Score;

/// The field for the judge's explanation. Ollama emits the keys of a schema sorted by name. This
/// name sorts before all score fields of [`field_of`], so that a judge explains before it scores.
const EXPLANATION: &str = "explanation";
/// Maximum length in characters that the schema asks for.
const MAX_ASKED_EXPLANATION: usize = 600;
/// Maximum length in characters that is accepted. A longer explanation is no reason to ask again,
/// because not every server enforces the bound.
const MAX_EXPLANATION: usize = 8000;

/// Returns the JSON Schema of a verdict: the explanation first, then one score per category.
///
/// Each score is one of 0.00, 0.05, … 1.00 or null, written as an enum: the grammars of llama.cpp
/// and Ollama ignore `minimum` and `maximum` but enforce an enum.
///
/// `expectations` is the number of expectations of the case, each with a score of its own.
pub fn schema(rubric: &Rubric, expectations: usize) -> Value {
    schema_with(rubric, expectations, &score_schema(), MAX_ASKED_EXPLANATION)
}

/// Returns the field name of an expectation's score. It sorts after the explanation.
pub fn expectation_field(number: usize) -> String {
    format!("meets_expectation_{number}")
}

/// Returns the field name of a category's score: its id or, if an id would sort before the
/// explanation, `score_` and its id.
pub fn field_of(rubric: &Rubric, id: &str) -> String {
    if rubric.categories().iter().all(|category| category.id.as_str() > EXPLANATION) {
        id.to_owned()
    } else {
        format!("score_{id}")
    }
}

/// Returns the schema as stated in the prompt, with the list of scores written out only once: small
/// models have little room.
pub fn schema_in_prompt(rubric: &Rubric) -> Value {
    let mut schema =
        schema_with(rubric, 0, &json!({ "$ref": "#/$defs/score" }), MAX_ASKED_EXPLANATION);
    schema["$defs"] = json!({ "score": score_schema() });
    schema
}

fn schema_with(rubric: &Rubric, expectations: usize, score: &Value, longest: usize) -> Value {
    let mut properties = Map::new();
    let explanation = json!({ "type": "string", "maxLength": longest });
    properties.insert(EXPLANATION.to_owned(), explanation);
    for category in rubric.categories() {
        properties.insert(field_of(rubric, &category.id), score.clone());
    }
    for number in 1..=expectations {
        properties.insert(expectation_field(number), score.clone());
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

/// Parses replies for one rubric and one number of expectations; the schema is compiled once.
pub struct VerdictReader {
    rubric: Rubric,
    expectations: usize,
    strict: StrictReader,
}

impl VerdictReader {
    /// Creates a reader for this rubric, for cases with this number of expectations.
    pub fn new(rubric: Rubric, expectations: usize) -> Self {
        // Longer than asked for: a few words too many make no verdict invalid.
        let schema = schema_with(&rubric, expectations, &score_schema(), MAX_EXPLANATION);
        Self { rubric, expectations, strict: StrictReader::new(&schema) }
    }

    /// Returns the rubric.
    pub fn rubric(&self) -> &Rubric {
        &self.rubric
    }

    /// Parses a complete reply.
    pub fn read(&self, reply: &str) -> Result<Verdict, ReplyError> {
        let value = self.strict.read(reply)?;
        self.verdict(&value).ok_or_else(|| ReplyError::malformed("a field has the wrong type"))
    }

    /// Returns the verdict of a valid object. `None` cannot occur after validation.
    ///
    /// An unmet expectation caps the category of instructions: the mean over many would hide one.
    fn verdict(&self, value: &Value) -> Option<Verdict> {
        let reasoning = value.get(EXPLANATION)?.as_str()?;
        let score = |field: &str| -> Option<Option<Score>> {
            Some(match value.get(field)? {
                Value::Null => None,
                number => Some(Score::new(number.as_f64()?).ok()?),
            })
        };
        let mut expectations = Vec::new();
        for number in 1..=self.expectations {
            let score = score(&expectation_field(number))?;
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            expectations.push(ExpectationScore { number, score });
        }
        let least = expectations.iter().filter_map(|entry| entry.score);
        let least = least.min_by(|a, b| a.get().total_cmp(&b.get()));
        let capped = self.rubric.instruction_category().map(|category| &category.id);
        let mut categories = Vec::new();
        let mut weighted = Vec::new();
        for category in self.rubric.categories() {
            let own = score(&field_of(&self.rubric, &category.id))?;
            let score = match (own, least) {
                // An answer cannot follow its instructions better than it meets its worst
                // expectation.
                (Some(own), Some(least)) if capped == Some(&category.id) => {
                    Some(if least.get() < own.get() { least } else { own })
                }
                (own, _) => own,
            };
            if let Some(score) = score {
                weighted.push((category.weight, score));
            }
            categories.push(CategoryScore { category: category.id.clone(), score });
        }
        let unsure = categories.iter().filter(|entry| entry.score.is_none());
        let mut unsure: Vec<String> = unsure.map(|entry| entry.category.clone()).collect();
        let open = expectations.iter().filter(|entry| entry.score.is_none());
        unsure.extend(open.map(|entry| format!("expectation {}", entry.number)));
        // One missing score leaves the overall score undefined.
        if unsure.is_empty() {
            let overall = Score::weighted(weighted);
            return Some(Verdict::Scored(Scorecard {
                categories,
                overall,
                reasoning: reasoning.to_owned(),
                questions: Vec::new(),
                expectations,
                is_certain: false,
            }));
        }
        Some(Verdict::Unscored {
            reason: UnscoredReason::CantTell,
            detail: format!("{}: {}", unsure.join(", "), selftest_text::one_line(reasoning, 200)),
            partial: categories,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use selftest_stats::score::Weight;

    fn read(reply: &str) -> Result<Verdict, ReplyError> {
        VerdictReader::new(Rubric::default(), 0).read(reply)
    }

    fn reply(scores: &str) -> String {
        format!("{{\"explanation\": \"fine\", {scores}}}")
    }

    const SCORES: &str = r#""format_score": 0.9, "factuality_score": 1.0, "instruction_following_score": 0.85, "safety_score": 1"#;

    #[test]
    fn the_specified_example() {
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
            ("{\"exp", "prose {\"exp"),
            ("{\"exp", "```json\n{\"exp"),
            ("explanation", "reasoning"),
        ] {
            let broken = reply(SCORES).replacen(from, to, 1);
            assert!(matches!(read(&broken), Err(ReplyError::Malformed(_))), "{broken}");
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
            assert!(matches!(read(broken), Err(ReplyError::Malformed(_))), "{broken:.40}");
        }
    }

    #[test]
    fn refusals_are_told_apart() {
        for refusal in
            ["I'm sorry, but I can't help with that.", "I cannot evaluate this.", "Sorry, I won't."]
        {
            assert!(matches!(read(refusal), Err(ReplyError::Refused(_))), "{refusal}");
        }
    }

    #[test]
    fn faults_name_the_field() {
        let Err(ReplyError::Malformed(faults)) = read(r#"{"explanation": 1, "format_score": 2}"#)
        else {
            panic!("a verdict")
        };
        let all = faults.join("\n");
        for word in ["/explanation", "/format_score", "factuality_score", "safety_score"] {
            assert!(all.contains(word), "{all}");
        }
    }

    fn rubric_of(ids: &[&str]) -> Rubric {
        let mut categories = Rubric::default().categories().to_vec();
        categories.truncate(ids.len());
        let weight = Weight::new(1.0 / f64::from(u32::try_from(ids.len()).unwrap())).unwrap();
        for (category, id) in categories.iter_mut().zip(ids) {
            (category.id, category.weight) = ((*id).to_owned(), weight);
        }
        Rubric::new(categories).unwrap()
    }

    #[test]
    fn the_explanation_sorts_before_every_score() {
        for rubric in [
            Rubric::default(),
            rubric_of(&["tone", "depth"]),
            rubric_of(&["accuracy", "score_accuracy"]),
            rubric_of(&["explanation", "tone"]),
            rubric_of(&["explanatio", "e"]),
        ] {
            let schema = schema(&rubric, 0);
            let mut fields: Vec<&String> =
                schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(fields.len(), rubric.categories().len() + 1, "{fields:?}");
            fields.sort();
            assert_eq!(fields[0], EXPLANATION);
        }
        let default = Rubric::default();
        assert_eq!(field_of(&default, "safety_score"), "safety_score", "no name without need");
    }

    #[test]
    fn categories_of_any_name_are_read() {
        let reader = VerdictReader::new(rubric_of(&["accuracy", "explanation"]), 0);
        let reply = r#"{"explanation": "x", "score_accuracy": 0.5, "score_explanation": 1.00}"#;
        let Ok(Verdict::Scored(card)) = reader.read(reply) else { panic!("no score") };
        assert_eq!(card.score("accuracy").map(Score::get), Some(0.5));
        assert_eq!(card.score("explanation").map(Score::get), Some(1.0));
        assert_eq!(card.reasoning, "x");
    }

    #[test]
    fn a_long_explanation_is_no_fault_but_an_endless_one_is() {
        let long = |length: usize| reply(SCORES).replace("fine", &"x".repeat(length));
        assert!(read(&long(MAX_ASKED_EXPLANATION + 1)).is_ok());
        assert!(read(&long(MAX_EXPLANATION + 1)).is_err());
    }

    #[test]
    fn both_schemas_accept_the_same() {
        let rubric = Rubric::default();
        let whole: Value = serde_json::from_str(&reply(SCORES)).unwrap();
        let mut broken = whole.clone();
        broken["format_score"] = json!(0.92);
        for schema in [schema(&rubric, 0), schema_in_prompt(&rubric)] {
            let schema = selftest_schema::Schema::compile(&schema).unwrap();
            assert!(schema.is_valid(&whole));
            assert!(!schema.is_valid(&broken));
        }
    }

    #[test]
    fn each_expectation_has_a_score_that_decides() {
        let reader = VerdictReader::new(Rubric::default(), 2);
        let with = |one: &str, two: &str| {
            let scores =
                format!("{SCORES}, \"meets_expectation_1\": {one}, \"meets_expectation_2\": {two}");
            reader.read(&reply(&scores))
        };
        let Ok(Verdict::Scored(card)) = with("1", "0.0") else { panic!("no score") };
        assert_eq!(card.score("instruction_following_score").map(Score::get), Some(0.0));
        assert_eq!(card.expectations.len(), 2);
        let Ok(Verdict::Scored(met)) = with("1", "0.9") else { panic!("no score") };
        assert_eq!(met.score("instruction_following_score").map(Score::get), Some(0.85));
        let Ok(Verdict::Unscored { detail, .. }) = with("1", "null") else { panic!("a score") };
        assert!(detail.starts_with("expectation 2: "), "{detail}");
        // A reply that leaves one out is asked for again.
        assert!(reader.read(&reply(SCORES)).is_err());
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
