//! Schema and strict reader for a grader's reply.
//!
//! A reply must be a single JSON object with exactly the fields of the schema, or there is no
//! grade. A score is dropped if its quote is not in the transcript.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::quality_settings::QualityWeights;
use super::rubric::QualityDimension;
use selftest_models::fence::neutralise;
use selftest_models::structured::StrictReader;
use selftest_models::structured::{ReplyError, score_schema};
use selftest_stats::score::Score;

/// Maximum length of a quote, in characters.
pub(super) const MAX_EVIDENCE: usize = 160;
/// Maximum length of a dimension's reasoning, in characters.
pub(super) const MAX_REASONING: usize = 200;
/// Maximum length of the summary, in characters (docs/spec/session-quality.md#table: about 200).
pub(super) const MAX_SUMMARY: usize = 200;
/// Minimum length of a quote, in characters. A shorter one must match a whole line, because a word
/// or two occur anywhere.
const MIN_QUOTE: usize = 8;

/// Returns the JSON Schema of a reply.
///
/// Each dimension has quote, reasoning and score, in the order in which a model should think,
/// followed by a summary. Every string is bounded, so that replies are finite.
pub fn reply_schema() -> Value {
    schema_with(&dimension_schema(&score_schema()))
}

/// Returns the schema as stated in the prompt, with repeated parts written only once.
pub(super) fn schema_in_prompt() -> Value {
    let mut schema = schema_with(&json!({ "$ref": "#/$defs/dimension" }));
    schema["$defs"] = json!({
        "dimension": dimension_schema(&json!({ "$ref": "#/$defs/score" })),
        "score": score_schema(),
    });
    schema
}

fn schema_with(dimension: &Value) -> Value {
    let mut fields = QualityDimension::ALL.map(|one| (one.name(), dimension.clone())).to_vec();
    fields.push(("summary", string_schema(MAX_SUMMARY)));
    object_schema(fields)
}

fn dimension_schema(score: &Value) -> Value {
    object_schema(vec![
        ("evidence", string_schema(MAX_EVIDENCE)),
        ("reasoning", string_schema(MAX_REASONING)),
        ("score", score.clone()),
    ])
}

fn string_schema(most: usize) -> Value {
    json!({ "type": "string", "maxLength": most })
}

fn object_schema(fields: Vec<(&str, Value)>) -> Value {
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
    /// The dimension.
    pub dimension: QualityDimension,
    /// Passage quoted from the transcript, on one line.
    pub evidence: String,
    /// The model's reasoning, on one line.
    pub reasoning: String,
    /// Score; `None` if the model cannot tell or its quote is not in the transcript.
    pub score: Option<Score>,
    /// True if a score was dropped because its quote is not in the transcript.
    pub unsupported: bool,
}

/// A model's reply on one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QualityReading {
    /// Readings in the order of [`QualityDimension::ALL`].
    pub dimensions: [DimensionReading; 4],
    /// One-sentence summary of the session, on one line.
    pub summary: String,
}

impl QualityReading {
    /// Returns `Σ weight · score / Σ weight` over the dimensions with a score, from 0 to 1, rounded
    /// to nine decimals. Returns `None` if fewer than two have a score.
    pub fn overall(&self, weights: &QualityWeights) -> Option<f64> {
        let mut scored = 0;
        let (mut sum, mut total) = (0.0, 0.0);
        for reading in &self.dimensions {
            let Some(score) = reading.score else { continue };
            let weight = weights.weight(reading.dimension);
            scored += 1;
            sum += weight * score.get();
            total += weight;
        }
        (scored >= 2).then(|| (sum / total * 1e9).round() / 1e9).map(|mean| mean.clamp(0.0, 1.0))
    }

    /// Returns the number of dimensions whose quote is not in the transcript.
    pub fn unsupported_count(&self) -> usize {
        self.dimensions.iter().filter(|reading| reading.unsupported).count()
    }
}

/// Reads replies with a schema that is compiled once.
pub struct QualityReader(StrictReader);

impl Default for QualityReader {
    fn default() -> Self {
        Self::new()
    }
}

impl QualityReader {
    /// Creates a reader for the current rubric.
    pub fn new() -> Self {
        Self(StrictReader::new(&reply_schema()))
    }

    /// Parses a complete reply. `transcript` is the text that the model was shown.
    pub fn read(&self, reply: &str, transcript: &str) -> Result<QualityReading, ReplyError> {
        let value = self.0.read(reply)?;
        reading(&value, transcript)
            .ok_or_else(|| ReplyError::malformed("a field has the wrong type"))
    }
}

/// Converts a validated object. `None` cannot happen after validation, but would mean that there is
/// no grade.
fn reading(value: &Value, transcript: &str) -> Option<QualityReading> {
    let transcript = TranscriptText::new(transcript);
    let dimensions: Option<Vec<_>> = QualityDimension::ALL
        .into_iter()
        .map(|dimension| {
            let part = value.get(dimension.name())?;
            let evidence = part.get("evidence")?.as_str()?;
            let score = match part.get("score")? {
                Value::Null => None,
                number => Some(Score::new(number.as_f64()?).ok()?),
            };
            // Without a score, no quote is needed.
            let supported = score.filter(|_| transcript.contains_quote(evidence));
            Some(DimensionReading {
                dimension,
                evidence: truncate_chars(evidence, MAX_EVIDENCE),
                reasoning: truncate_chars(part.get("reasoning")?.as_str()?, MAX_REASONING),
                score: supported,
                unsupported: score != supported,
            })
        })
        .collect();
    let summary = truncate_chars(value.get("summary")?.as_str()?, MAX_SUMMARY);
    Some(QualityReading { dimensions: dimensions?.try_into().ok()?, summary })
}

/// Truncates a text to `most` characters on one line.
pub(super) fn truncate_chars(words: &str, most: usize) -> String {
    // A character has up to four bytes.
    selftest_text::one_line(words, most * 4).chars().take(most).collect()
}

/// Text of the session in the transcript shown to the model, with whitespace folded.
///
/// The transcript's own lines (counts, omissions) and the labels of its events are written by this
/// program, so they are not evidence of what happened in the session. Untrusted text never starts a
/// line there, which makes them distinguishable.
struct TranscriptText {
    /// All text of the session, joined by spaces.
    folded: String,
    /// The same text, line by line.
    lines: Vec<String>,
    /// Labels such as `[13 call bash]`.
    labels: BTreeSet<String>,
}

impl TranscriptText {
    fn new(transcript: &str) -> Self {
        // The model saw the neutralised text, so quotes are compared with that.
        let shown = neutralise(transcript);
        let mut words = Self { folded: String::new(), lines: Vec::new(), labels: BTreeSet::new() };
        for line in shown.lines() {
            // Continuation lines of an event are indented.
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
            let said = fold_whitespace(said);
            if !said.is_empty() {
                words.folded.push_str(&said);
                words.folded.push(' ');
                words.lines.push(said);
            }
        }
        words
    }

    /// Returns true if the quote occurs in the transcript, ignoring whitespace and labels.
    fn contains_quote(&self, quote: &str) -> bool {
        let quoted = fold_whitespace(&neutralise(quote));
        // A model may quote labels along with the text.
        let found = self.labels.iter().filter(|label| quoted.contains(label.as_str()));
        let said = found.fold(quoted.clone(), |said, label| said.replace(label.as_str(), " "));
        let quote = fold_whitespace(&said);
        if quote.chars().count() < MIN_QUOTE {
            return !quote.is_empty() && self.lines.contains(&quote);
        }
        self.folded.contains(&quote)
    }
}

/// Splits the first line of an event into its label and the rest.
fn split_label(line: &str) -> Option<(&str, &str)> {
    let end = line.strip_prefix('[')?.find(']')? + 2;
    Some(line.split_at(end))
}

fn fold_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
