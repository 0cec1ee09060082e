//! The reply's schema, and the strict reading of a grader's reply. Pure.
//!
//! A reply is one JSON object with exactly the fields of the schema, or it is no grade. A score
//! whose quote is not in the transcript is no score.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::quality_settings::QualityWeights;
use super::rubric::Dimension;
use selftest_models::fence::neutralise;
use selftest_models::structured::StrictReader;
use selftest_models::structured::{Unreadable, scores};
use selftest_stats::score::Score;

/// Most characters of a quote.
pub(super) const MAX_EVIDENCE: usize = 160;
/// Most characters of a dimension's reasoning.
pub(super) const MAX_REASONING: usize = 200;
/// Most characters of the summary (docs/spec/session-quality.md#table: about 200).
pub(super) const MAX_SUMMARY: usize = 200;
/// A shorter quote must be a whole line: a word or two occur anywhere.
const MIN_QUOTE: usize = 8;

/// The JSON Schema of a reply: per dimension quote, reasoning and score, in the order in which a
/// model should think; then a summary. Every string is bounded, so that replies are finite.
pub fn reply_schema() -> Value {
    schema_with(&dimension(&scores()))
}

/// The same schema as the prompt states it, with what repeats written out once only.
pub(super) fn schema_in_prompt() -> Value {
    let mut schema = schema_with(&json!({ "$ref": "#/$defs/dimension" }));
    schema["$defs"] = json!({
        "dimension": dimension(&json!({ "$ref": "#/$defs/score" })),
        "score": scores(),
    });
    schema
}

fn schema_with(dimension: &Value) -> Value {
    let mut fields = Dimension::ALL.map(|one| (one.name(), dimension.clone())).to_vec();
    fields.push(("summary", text_of(MAX_SUMMARY)));
    object(fields)
}

fn dimension(score: &Value) -> Value {
    object(vec![
        ("evidence", text_of(MAX_EVIDENCE)),
        ("reasoning", text_of(MAX_REASONING)),
        ("score", score.clone()),
    ])
}

fn text_of(most: usize) -> Value {
    json!({ "type": "string", "maxLength": most })
}

fn object(fields: Vec<(&str, Value)>) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    json!({
        "type": "object",
        "required": names,
        "additionalProperties": false,
        "properties":
            fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect::<Map<_, _>>(),
    })
}

/// A model's reply on one dimension.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DimensionReading {
    /// Which.
    pub dimension: Dimension,
    /// The passage of the transcript that the model quotes, on one line.
    pub evidence: String,
    /// Why, in the model's words, on one line.
    pub reasoning: String,
    /// `None`: the model cannot tell, or its quote is not in the transcript.
    pub score: Option<Score>,
    /// Whether a score was dropped because the quote is not in the transcript.
    pub unsupported: bool,
}

/// A model's reply on one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QualityReading {
    /// In the order of [`Dimension::ALL`].
    pub dimensions: [DimensionReading; 4],
    /// The session in a sentence, on one line.
    pub summary: String,
}

impl QualityReading {
    /// `Σ weight · score / Σ weight` over the dimensions that have a score, from 0 to 1, rounded
    /// to nine decimals; `None` when fewer than two have one.
    pub fn overall(&self, weights: &QualityWeights) -> Option<f64> {
        let mut scored = 0;
        let (mut sum, mut total) = (0.0, 0.0);
        for reading in &self.dimensions {
            let Some(score) = reading.score else { continue };
            let weight = weights.of(reading.dimension);
            scored += 1;
            sum += weight * score.get();
            total += weight;
        }
        (scored >= 2).then(|| (sum / total * 1e9).round() / 1e9).map(|mean| mean.clamp(0.0, 1.0))
    }

    /// Dimensions whose quote is not in the transcript.
    pub fn unsupported(&self) -> usize {
        self.dimensions.iter().filter(|reading| reading.unsupported).count()
    }
}

/// Reads replies; the schema is compiled once.
pub struct QualityReader(StrictReader);

impl Default for QualityReader {
    fn default() -> Self {
        Self::new()
    }
}

impl QualityReader {
    /// A reader of this version's rubric.
    pub fn new() -> Self {
        Self(StrictReader::new(&reply_schema()))
    }

    /// Reads a complete reply on the session whose transcript the model was shown.
    pub fn read(&self, reply: &str, transcript: &str) -> Result<QualityReading, Unreadable> {
        let value = self.0.read(reply)?;
        reading(&value, transcript)
            .ok_or_else(|| Unreadable::malformed("a field has the wrong type"))
    }
}

/// The reading of a valid object; `None` cannot happen after validation, but is no grade.
fn reading(value: &Value, transcript: &str) -> Option<QualityReading> {
    let transcript = Transcript::new(transcript);
    let dimensions: Option<Vec<_>> = Dimension::ALL
        .into_iter()
        .map(|dimension| {
            let part = value.get(dimension.name())?;
            let evidence = part.get("evidence")?.as_str()?;
            let score = match part.get("score")? {
                Value::Null => None,
                number => Some(Score::new(number.as_f64()?).ok()?),
            };
            let supported = score.filter(|_| transcript.holds(evidence));
            Some(DimensionReading {
                dimension,
                evidence: bounded(evidence, MAX_EVIDENCE),
                reasoning: bounded(part.get("reasoning")?.as_str()?, MAX_REASONING),
                score: supported,
                unsupported: score != supported,
            })
        })
        .collect();
    let summary = bounded(value.get("summary")?.as_str()?, MAX_SUMMARY);
    Some(QualityReading { dimensions: dimensions?.try_into().ok()?, summary })
}

/// At most so many characters, on one line.
pub(super) fn bounded(words: &str, most: usize) -> String {
    selftest_text::one_line(words, most * 4).chars().take(most).collect()
}

/// The words of the session in the transcript that the model saw, with white space folded.
///
/// The transcript's own lines (counts, what is left out) and the labels of its events are the
/// program's words: they are no evidence of what was done in the session. Foreign text never
/// begins a line there, so that they can be told apart.
struct Transcript {
    /// All that was said and done, one after the other.
    folded: String,
    /// The same, line by line.
    lines: Vec<String>,
    /// The labels, such as `[13 call bash]`.
    labels: BTreeSet<String>,
}

impl Transcript {
    fn new(transcript: &str) -> Self {
        let shown = neutralise(transcript);
        let mut words = Self { folded: String::new(), lines: Vec::new(), labels: BTreeSet::new() };
        for line in shown.lines() {
            let said = if line.starts_with([' ', '\t']) {
                line
            } else if line.starts_with("[…") {
                continue;
            } else if let Some((label, said)) = split_label(line) {
                words.labels.insert(label.to_owned());
                said
            } else {
                continue;
            };
            let said = folded(said);
            if !said.is_empty() {
                words.folded.push_str(&said);
                words.folded.push(' ');
                words.lines.push(said);
            }
        }
        words
    }

    /// Whether the quote occurs in it, white space and labels apart.
    fn holds(&self, quote: &str) -> bool {
        let quoted = folded(&neutralise(quote));
        let found = self.labels.iter().filter(|label| quoted.contains(label.as_str()));
        let said = found.fold(quoted.clone(), |said, label| said.replace(label.as_str(), " "));
        let quote = folded(&said);
        if quote.chars().count() < MIN_QUOTE {
            return !quote.is_empty() && self.lines.contains(&quote);
        }
        self.folded.contains(&quote)
    }
}

/// The label of a line that begins an event, and what stands behind it.
fn split_label(line: &str) -> Option<(&str, &str)> {
    let end = line.strip_prefix('[')?.find(']')? + 2;
    Some(line.split_at(end))
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
