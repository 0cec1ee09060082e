//! A grade by a language model as it is kept: the columns of `session_quality_grades`
//! (docs/spec/session-quality.md#table).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// What one model says of one session, by one version of the rubric. Scores are in 0 to 1; `None`
/// where the model cannot tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QualityGrade {
    /// The session.
    pub session_id: String,
    /// The model that graded.
    pub model: String,
    /// Version of the rubric; from 1073741824 on of a prompt that the project has edited.
    pub rubric_version: u32,
    /// When it was graded.
    pub ts: Timestamp,
    /// Whether the problem was solved.
    pub problem_solved: Option<f64>,
    /// Whether tests were added.
    pub tests_added: Option<f64>,
    /// Whether the code is clean.
    pub code_clean: Option<f64>,
    /// Whether edge cases were handled.
    pub edge_cases: Option<f64>,
    /// Weighted average of the scores that there are.
    pub overall: Option<f64>,
    /// A short summary.
    pub reasoning: Option<String>,
    /// Notes on each score and the weights; `None` also where they are no JSON.
    #[schema(value_type = Option<Object>)]
    pub details: Option<Value>,
}
