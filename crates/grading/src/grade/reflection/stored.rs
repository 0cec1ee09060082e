//! Reflections and their scores as stored and returned (docs/spec/reflections.md#functions).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::issue::ReflectionIssue;

/// A reflection as submitted, with secrets removed.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReflection {
    /// Sequence number of the submission, across all projects.
    pub number: i64,
    /// ID of the project.
    pub project_id: String,
    /// ID of the reflection, unique within its project.
    pub reflection_id: String,
    /// Author of the reflection, if stated.
    pub agent: Option<String>,
    /// Loop that it refers to. If it names none, the number of reflections in the project,
    /// including this one.
    pub loop_count: u64,
    /// Time when the agent wrote it, if stated; otherwise the time of submission.
    pub made_at: Timestamp,
    /// The submitted document.
    pub document: Map<String, Value>,
}

/// Score of a reflection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReflectionScore {
    /// ID of the project.
    pub project_id: String,
    /// ID of the reflection, unique within its project.
    pub reflection_id: String,
    /// Author of the reflection; null if not stated.
    pub agent: Option<String>,
    /// Loop that it refers to. If it names none, the number of reflections in the project,
    /// including this one.
    #[serde(rename = "loop")]
    pub loop_count: u64,
    /// Quality, from 0.0 to 1.0.
    pub score: f64,
    /// Threshold in force at that time.
    pub threshold: f64,
    /// True if the score is below the threshold.
    pub weak: bool,
    /// Issues of the reflection.
    pub issues: Vec<ReflectionIssue>,
    /// Time of grading.
    pub timestamp: Timestamp,
    /// Time when the agent wrote it, if stated; otherwise the time of submission.
    pub made_at: Timestamp,
}

/// A weak reflection with its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WeakReflection {
    /// Score of the reflection.
    #[serde(flatten)]
    pub score: ReflectionScore,
    /// The submitted document, with secrets removed.
    #[schema(value_type = Object)]
    pub reflection: Map<String, Value>,
}

/// Summary of a project's reflections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectReflections {
    /// ID of the project.
    pub project_id: String,
    /// Number of scored reflections.
    pub count: u64,
    /// Average score over all of them, 0.0 to 1.0.
    pub average_score: f64,
    /// Number of weak reflections.
    pub weak: u64,
    /// Time of the newest reflection.
    pub newest: Timestamp,
}

/// Scores of a project, latest submission first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReflectionScores {
    /// ID of the project.
    pub project_id: String,
    /// Scores on this page.
    pub reflection_scores: Vec<ReflectionScore>,
    /// Total number of scores in the project.
    pub count: u64,
    /// Average score over all of them; null without any.
    pub average_score: Option<f64>,
    /// Value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}

/// Weak reflections of a project, latest submission first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WeakReflections {
    /// ID of the project.
    pub project_id: String,
    /// Weak reflections on this page.
    pub weak_reflections: Vec<WeakReflection>,
    /// Total number of weak reflections in the project.
    pub count: u64,
    /// Value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}
