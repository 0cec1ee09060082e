//! A grade by a model in tool results.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::answer::{QuoteLimit, UntrustedText, clip_name};
use selftest_grading::grade::QualityGrade;

/// Maximum number of notes per grade; the rubric has fewer.
const MAX_NOTES: usize = 8;

/// A grade of a session by a language model. Scores are from 0 to 1, or null if the model could not
/// tell.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ModelGrade {
    /// Session id.
    session_id: String,
    /// Model that graded the session.
    grader_model: String,
    /// Version of the rubric; scores of different versions are not comparable. Versions from
    /// 1073741824 on belong to a prompt that the project has edited.
    rubric_version: u32,
    /// Time of grading.
    #[schemars(with = "String", extend("format" = "date-time"))]
    graded_at: Timestamp,
    /// Was the problem solved?
    problem_solved: Option<f64>,
    /// Were tests added?
    tests_added: Option<f64>,
    /// Is the code clean?
    code_clean: Option<f64>,
    /// Were edge cases handled?
    edge_cases: Option<f64>,
    /// Weighted average of the known scores; null if fewer than two are known.
    overall: Option<f64>,
    /// The grader's summary.
    reasoning: Option<UntrustedText>,
}

/// A model's reasons for one score.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ScoreNote {
    /// Name of the score.
    dimension: String,
    /// Quotation from the session that supports the score.
    evidence: Option<UntrustedText>,
    /// The model's reasoning.
    reasoning: Option<UntrustedText>,
    /// True if the quotation does not occur in the session; the score is then ignored.
    unsupported: bool,
}

impl ModelGrade {
    pub(super) fn of(grade: &QualityGrade, quoting: QuoteLimit) -> Self {
        Self {
            session_id: clip_name(&grade.session_id),
            grader_model: clip_name(&grade.model),
            rubric_version: grade.rubric_version,
            graded_at: grade.ts,
            problem_solved: grade.problem_solved,
            tests_added: grade.tests_added,
            code_clean: grade.code_clean,
            edge_cases: grade.edge_cases,
            overall: grade.overall,
            reasoning: quoting.quote_optional(grade.reasoning.as_deref()),
        }
    }
}

/// Returns the reasons for each score. Empty if another program wrote the row.
pub(super) fn notes(grade: &QualityGrade, quoting: QuoteLimit) -> Vec<ScoreNote> {
    let dimensions = grade.details.as_ref().and_then(|details| details.get("dimensions"));
    let Some(Value::Object(dimensions)) = dimensions else { return Vec::new() };
    let of = |(dimension, note): (&String, &Value)| ScoreNote {
        dimension: clip_name(dimension),
        evidence: quoting.quote_optional(note["evidence"].as_str()),
        reasoning: quoting.quote_optional(note["reasoning"].as_str()),
        unsupported: note["unsupported"].as_bool().unwrap_or_default(),
    };
    dimensions.iter().take(MAX_NOTES).map(of).collect()
}
