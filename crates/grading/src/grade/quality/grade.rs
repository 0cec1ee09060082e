//! From a grader's reply to a stored grade (docs/spec/session-quality.md#table), and the average of
//! several models' grades.
//!
//! A reply must be a single JSON object with exactly the fields of the schema, or there is no
//! grade. A score is dropped if its quote is not in the transcript. Each model has its biases, so
//! several can be asked if precision matters (docs/spec/session-quality.md#biases).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{FIRST_OWN_VERSION, QualityDimension, QualityWeights};
use selftest_models::fence::neutralise;
use selftest_models::structured::{ReplyError, StrictReader, score_schema};
use selftest_sessions::OmissionCounts;
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
        // The quote comes first: a model that looks for evidence before it scores scores by it.
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
        // Weights are above 0, so `total` is too. One dimension alone is no picture of a session.
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
            // What was left out is described by this program, not by the session.
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
        // A model may quote labels along with the text. They were written by this program, so that
        // a quote of one alone proves nothing: they are removed before the length is checked.
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

/// Grade of a session by one model with one version of the rubric. Scores range from 0 to 1; `None`
/// if the model could not tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QualityGrade {
    /// ID of the session.
    pub session_id: String,
    /// Model that graded.
    pub model: String,
    /// Version of the rubric. Versions from 1073741824 on stand for a prompt edited by the project.
    pub rubric_version: u32,
    /// Time of grading.
    pub ts: Timestamp,
    /// Score for solving the problem.
    pub problem_solved: Option<f64>,
    /// Score for adding tests.
    pub tests_added: Option<f64>,
    /// Score for clean code.
    pub code_clean: Option<f64>,
    /// Score for handling edge cases.
    pub edge_cases: Option<f64>,
    /// Weighted average of the available scores.
    pub overall: Option<f64>,
    /// Short summary.
    pub reasoning: Option<String>,
    /// Notes on each score and the weights; `None` also if they are not valid JSON.
    #[schema(value_type = Option<Object>)]
    pub details: Option<Value>,
}

/// Facts of a grade that do not come from the model.
#[derive(Debug, Clone, Copy)]
pub struct QualityContext<'a> {
    /// ID of the session.
    pub session_id: &'a str,
    /// Full name of the model.
    pub model: &'a str,
    /// Current time.
    pub ts: Timestamp,
    /// Parts that the transcript leaves out.
    pub left_out: &'a OmissionCounts,
    /// Estimated number of tokens in the transcript.
    pub transcript_tokens: u32,
    /// Version of the rubric in the prompt; see [`super::rubric_version`].
    pub rubric_version: u32,
}

/// A model's note on one dimension, stored in the details of a grade.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DimensionNote {
    /// Quote from the session.
    pub evidence: String,
    /// Reason for the score.
    pub reasoning: String,
    /// True if the quote does not occur in the session, so that the score was dropped.
    pub unsupported: bool,
}

impl QualityDimension {
    /// Returns the dimension's score in a grade.
    pub fn score_of(self, grade: &QualityGrade) -> Option<f64> {
        match self {
            QualityDimension::ProblemSolved => grade.problem_solved,
            QualityDimension::TestsAdded => grade.tests_added,
            QualityDimension::CodeClean => grade.code_clean,
            QualityDimension::EdgeCases => grade.edge_cases,
        }
    }

    /// Returns the dimension's note in a grade, or `None` if the details contain no readable note.
    pub fn note_of(self, grade: &QualityGrade) -> Option<DimensionNote> {
        let note = grade.details.as_ref()?.get("dimensions")?.get(self.name())?;
        DimensionNote::deserialize(note).ok()
    }
}

impl QualityReading {
    /// Converts the reading to a grade for storage. Texts are truncated again here, whatever their
    /// origin.
    pub fn into_grade(self, about: QualityContext<'_>, weights: &QualityWeights) -> QualityGrade {
        let weights_of: Map<String, Value> = QualityDimension::ALL
            .iter()
            .map(|dimension| (dimension.name().to_owned(), json!(weights.weight(*dimension))))
            .collect();
        let notes: Map<String, Value> = self
            .dimensions
            .iter()
            .map(|reading| {
                let note = DimensionNote {
                    evidence: truncate_chars(&reading.evidence, MAX_EVIDENCE),
                    reasoning: truncate_chars(&reading.reasoning, MAX_REASONING),
                    unsupported: reading.unsupported,
                };
                (reading.dimension.name().to_owned(), json!(note))
            })
            .collect();
        let details = json!({
            "weights": weights_of,
            "dimensions": notes,
            "unsupported": self.unsupported_count(),
            "left_out": about.left_out,
            "transcript_tokens": about.transcript_tokens,
            "prompt_edited": about.rubric_version >= FIRST_OWN_VERSION,
        });
        let score = |dimension: QualityDimension| {
            let reading = self.dimensions.iter().find(|reading| reading.dimension == dimension)?;
            reading.score.map(f64::from)
        };
        QualityGrade {
            session_id: about.session_id.to_owned(),
            model: about.model.to_owned(),
            rubric_version: about.rubric_version,
            ts: about.ts,
            problem_solved: score(QualityDimension::ProblemSolved),
            tests_added: score(QualityDimension::TestsAdded),
            code_clean: score(QualityDimension::CodeClean),
            edge_cases: score(QualityDimension::EdgeCases),
            overall: self.overall(weights),
            reasoning: Some(truncate_chars(&self.summary, MAX_SUMMARY))
                .filter(|summary| !summary.is_empty()),
            details: Some(details),
        }
    }
}

// The doc comments of this type and of `ScoreSpread` are descriptions in the schema of the MCP
// tools. Only grades by the latest version of the rubric count; numbers are rounded to nine
// decimals.
/// Average over the models, using the latest version of the rubric.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Average")]
pub struct CombinedQuality {
    /// Version of the rubric.
    pub rubric_version: u32,
    /// Number of models that graded the session by it.
    pub models: usize,
    /// Was the problem solved?
    pub problem_solved: Option<ScoreSpread>,
    /// Were tests added?
    pub tests_added: Option<ScoreSpread>,
    /// Is the code clean?
    pub code_clean: Option<ScoreSpread>,
    /// Were edge cases handled?
    pub edge_cases: Option<ScoreSpread>,
    /// Average of the models' overall scores.
    pub overall: Option<ScoreSpread>,
}

impl CombinedQuality {
    /// Returns the overall score and each dimension as pairs of name and value.
    pub fn rows(&self) -> [(&'static str, Option<ScoreSpread>); 5] {
        let of = |dimension: QualityDimension| match dimension {
            QualityDimension::ProblemSolved => self.problem_solved,
            QualityDimension::TestsAdded => self.tests_added,
            QualityDimension::CodeClean => self.code_clean,
            QualityDimension::EdgeCases => self.edge_cases,
        };
        let [solved, tests, code, edges] =
            QualityDimension::ALL.map(|dimension| (dimension.name(), of(dimension)));
        [("overall", self.overall), solved, tests, code, edges]
    }
}

/// Mean over the models with a score; null if no model has one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Consensus")]
pub struct ScoreSpread {
    /// Mean score, 0 to 1.
    pub mean: f64,
    /// Highest minus lowest score; 0 if all models agree or there is only one.
    pub spread: f64,
    /// Number of models with a score.
    pub models: usize,
}

impl ScoreSpread {
    fn from_scores(scores: impl Iterator<Item = f64>) -> Option<Self> {
        let scores: Vec<f64> = scores.collect();
        if scores.is_empty() {
            return None;
        }
        let rounded = |value: f64| (value * 1e9).round() / 1e9;
        #[expect(clippy::cast_precision_loss, reason = "a handful of models")]
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        let (low, high) =
            scores.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &score| {
                (low.min(score), high.max(score))
            });
        Some(Self { mean: rounded(mean), spread: rounded(high - low), models: scores.len() })
    }
}

/// Combines the grades of one session: the latest of each model by the latest rubric version.
/// Returns `None` without grades.
pub fn combine_grades(grades: &[QualityGrade]) -> Option<CombinedQuality> {
    // Another rubric asks other questions, so its scores are not averaged with these.
    let rubric_version = grades.iter().map(|grade| grade.rubric_version).max()?;
    let mut latest: BTreeMap<&str, &QualityGrade> = BTreeMap::new();
    for grade in grades.iter().filter(|grade| grade.rubric_version == rubric_version) {
        let kept = latest.entry(&grade.model).or_insert(grade);
        if grade.ts >= kept.ts {
            *kept = grade;
        }
    }
    let spread = |score: fn(&QualityGrade) -> Option<f64>| {
        ScoreSpread::from_scores(latest.values().filter_map(|grade| score(grade)))
    };
    Some(CombinedQuality {
        rubric_version,
        models: latest.len(),
        problem_solved: spread(|grade| grade.problem_solved),
        tests_added: spread(|grade| grade.tests_added),
        code_clean: spread(|grade| grade.code_clean),
        edge_cases: spread(|grade| grade.edge_cases),
        overall: spread(|grade| grade.overall),
    })
}
