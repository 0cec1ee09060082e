//! Reflections and their scores as they are kept and handed out
//! (docs/spec/reflections.md#functions).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::issue::Issue;

/// A reflection as it was submitted, without its secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReflection {
    /// Its number in the order of submission, over all projects.
    pub number: i64,
    /// The project that it belongs to.
    pub project_id: String,
    /// Unique in its project.
    pub reflection_id: String,
    /// Who reflects, where it says so.
    pub agent: Option<String>,
    /// The loop that it speaks of; else how many reflections the project had with it.
    pub loop_count: u64,
    /// When the agent made it, where it says so; else when it was submitted.
    pub made_at: Timestamp,
    /// The submitted document.
    pub document: Map<String, Value>,
}

/// The score of a reflection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReflectionScore {
    /// The project.
    pub project_id: String,
    /// The reflection, unique in its project.
    pub reflection_id: String,
    /// Who reflects; null where the reflection does not say so.
    pub agent: Option<String>,
    /// The loop that it speaks of; else how many reflections the project had with it.
    #[serde(rename = "loop")]
    pub loop_count: u64,
    /// Quality, from 0.0 to 1.0.
    pub score: f64,
    /// The threshold that was in force.
    pub threshold: f64,
    /// Whether the score is below it.
    pub weak: bool,
    /// Its issues.
    pub issues: Vec<Issue>,
    /// When it was graded.
    pub timestamp: Timestamp,
    /// When the agent made it, where it says so; else when it was submitted.
    pub made_at: Timestamp,
}

/// A weak reflection with what it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WeakReflection {
    /// Its score.
    #[serde(flatten)]
    pub score: ReflectionScore,
    /// The submitted document, without its secrets.
    #[schema(value_type = Object)]
    pub reflection: Map<String, Value>,
}

/// The reflections of a project, summed up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectReflections {
    /// The project.
    pub project_id: String,
    /// How many have a score.
    pub count: u64,
    /// Average score over all of them, 0.0 to 1.0.
    pub average_score: f64,
    /// How many are weak.
    pub weak: u64,
    /// When the newest one was made.
    pub newest: Timestamp,
}

/// The scores of a project, that of the reflection submitted last first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReflectionScores {
    /// The project.
    pub project_id: String,
    /// Those of this page.
    pub reflection_scores: Vec<ReflectionScore>,
    /// How many the project has in all.
    pub count: u64,
    /// Average score over all of them; null where there are none.
    pub average_score: Option<f64>,
    /// Hand it back as `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}

/// The weak reflections of a project, the one submitted last first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WeakReflections {
    /// The project.
    pub project_id: String,
    /// Those of this page.
    pub weak_reflections: Vec<WeakReflection>,
    /// How many the project has in all.
    pub count: u64,
    /// Hand it back as `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}
