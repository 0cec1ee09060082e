//! One grade by a model, as answers show it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::answer::{Quoted, Quoting, name};
use selftest_grading::grade::QualityGrade;

/// Most notes that are shown of one grade; the rubric has fewer.
const MAX_NOTES: usize = 8;

/// A grade of a session by a language model. Scores are in 0 to 1; null where the model could not
/// tell.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ModelGrade {
    /// The session.
    session_id: String,
    /// The model that graded.
    grader_model: String,
    /// Version of the rubric; scores of different versions do not compare. From 1073741824 on it
    /// is of a prompt that the project has edited.
    rubric_version: u32,
    /// When it was graded.
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
    /// Weighted average of the scores that there are; null where fewer than two are known.
    overall: Option<f64>,
    /// The grader's summary.
    reasoning: Option<Quoted>,
}

/// A model's reasons for one score.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Note {
    /// Which score.
    dimension: String,
    /// The quotation from the session on which the score rests.
    evidence: Option<Quoted>,
    /// The model's reasoning.
    reasoning: Option<Quoted>,
    /// The quotation does not occur in the session: the score was not counted.
    unsupported: bool,
}

impl ModelGrade {
    pub(super) fn of(grade: &QualityGrade, quoting: Quoting) -> Self {
        Self {
            session_id: name(&grade.session_id),
            grader_model: name(&grade.model),
            rubric_version: grade.rubric_version,
            graded_at: grade.ts,
            problem_solved: grade.problem_solved,
            tests_added: grade.tests_added,
            code_clean: grade.code_clean,
            edge_cases: grade.edge_cases,
            overall: grade.overall,
            reasoning: quoting.quote_some(grade.reasoning.as_deref()),
        }
    }
}

/// The reasons for each score; none where the row was written by another program.
pub(super) fn notes(grade: &QualityGrade, quoting: Quoting) -> Vec<Note> {
    let dimensions = grade.details.as_ref().and_then(|details| details.get("dimensions"));
    let Some(Value::Object(dimensions)) = dimensions else { return Vec::new() };
    let of = |(dimension, note): (&String, &Value)| Note {
        dimension: name(dimension),
        evidence: quoting.quote_some(note["evidence"].as_str()),
        reasoning: quoting.quote_some(note["reasoning"].as_str()),
        unsupported: note["unsupported"].as_bool().unwrap_or_default(),
    };
    dimensions.iter().take(MAX_NOTES).map(of).collect()
}
