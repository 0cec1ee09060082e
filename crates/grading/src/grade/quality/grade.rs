//! A grade by a language model as it is kept (docs/spec/session-quality.md#table), made from what
//! the model said. Pure.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::quality_settings::QualityWeights;
use super::reading::{MAX_EVIDENCE, MAX_REASONING, MAX_SUMMARY, QualityReading, bounded};
use super::rubric::{Dimension, FIRST_OWN_VERSION};
use selftest_sessions::LeftOut;
use utoipa::ToSchema;

/// One model's grade of one session, by one version of the rubric. Scores are in 0 to 1; `None`
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

/// The facts of a grade that do not come from the model.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The session.
    pub session_id: &'a str,
    /// Full name of the model.
    pub model: &'a str,
    /// Now.
    pub ts: Timestamp,
    /// The parts that the transcript leaves out.
    pub left_out: &'a LeftOut,
    /// Estimated tokens of the transcript.
    pub transcript_tokens: u32,
    /// Version of the rubric that the prompt held; see [`super::rubric_version`].
    pub rubric_version: u32,
}

/// A model's words on one dimension, as they are kept in a grade's details.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// A quote from the session.
    pub evidence: String,
    /// Why the score is what it is.
    pub reasoning: String,
    /// The quote does not occur in the session, so that the score was dropped.
    pub unsupported: bool,
}

impl Dimension {
    /// Its score in a grade.
    pub fn score_of(self, grade: &QualityGrade) -> Option<f64> {
        match self {
            Dimension::ProblemSolved => grade.problem_solved,
            Dimension::TestsAdded => grade.tests_added,
            Dimension::CodeClean => grade.code_clean,
            Dimension::EdgeCases => grade.edge_cases,
        }
    }

    /// Its note in a grade; `None` where the details hold nothing that can be read.
    pub fn note_of(self, grade: &QualityGrade) -> Option<Note> {
        let note = grade.details.as_ref()?.get("dimensions")?.get(self.name())?;
        Note::deserialize(note).ok()
    }
}

impl QualityReading {
    /// The grade that is kept. Words are bounded again here, whatever made them.
    pub fn into_grade(self, about: About<'_>, weights: &QualityWeights) -> QualityGrade {
        let weights_of: Map<String, Value> = Dimension::ALL
            .iter()
            .map(|dimension| (dimension.name().to_owned(), json!(weights.of(*dimension))))
            .collect();
        let notes: Map<String, Value> = self
            .dimensions
            .iter()
            .map(|reading| {
                let note = Note {
                    evidence: bounded(&reading.evidence, MAX_EVIDENCE),
                    reasoning: bounded(&reading.reasoning, MAX_REASONING),
                    unsupported: reading.unsupported,
                };
                (reading.dimension.name().to_owned(), json!(note))
            })
            .collect();
        let details = json!({
            "weights": weights_of,
            "dimensions": notes,
            "unsupported": self.unsupported(),
            "left_out": about.left_out,
            "transcript_tokens": about.transcript_tokens,
            "prompt_edited": about.rubric_version >= FIRST_OWN_VERSION,
        });
        let score = |dimension: Dimension| {
            let reading = self.dimensions.iter().find(|reading| reading.dimension == dimension)?;
            reading.score.map(f64::from)
        };
        QualityGrade {
            session_id: about.session_id.to_owned(),
            model: about.model.to_owned(),
            rubric_version: about.rubric_version,
            ts: about.ts,
            problem_solved: score(Dimension::ProblemSolved),
            tests_added: score(Dimension::TestsAdded),
            code_clean: score(Dimension::CodeClean),
            edge_cases: score(Dimension::EdgeCases),
            overall: self.overall(weights),
            reasoning: Some(bounded(&self.summary, MAX_SUMMARY))
                .filter(|summary| !summary.is_empty()),
            details: Some(details),
        }
    }
}
