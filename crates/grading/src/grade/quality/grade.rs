//! Stored grades by a language model (docs/spec/session-quality.md#table), built from the model's
//! reply.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::quality_settings::QualityWeights;
use super::reading::{MAX_EVIDENCE, MAX_REASONING, MAX_SUMMARY, QualityReading, truncate_chars};
use super::rubric::{FIRST_OWN_VERSION, QualityDimension};
use selftest_sessions::OmissionCounts;
use utoipa::ToSchema;

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
