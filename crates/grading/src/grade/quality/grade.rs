//! From what a model said to the grade that is kept. Pure.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::reading::{EVIDENCE, QualityReading, REASONING, SUMMARY, bounded};
use super::rubric::{Dimension, FIRST_OWN_VERSION};
use super::settings::QualityWeights;
use crate::grade::QualityGrade;
use selftest_sessions::LeftOut;

/// What is known of a grade besides what the model said.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The session.
    pub session_id: &'a str,
    /// Full name of the model.
    pub model: &'a str,
    /// Now.
    pub ts: Timestamp,
    /// What the transcript leaves out.
    pub left_out: &'a LeftOut,
    /// Estimated tokens of the transcript.
    pub transcript_tokens: u32,
    /// Version of the rubric that the prompt held; see [`super::rubric_version`].
    pub rubric_version: u32,
}

/// What a model said of one dimension beside the score, as it is kept in a grade's details.
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

    /// What is said of it in a grade; `None` where the details hold nothing that can be read.
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
                    evidence: bounded(&reading.evidence, EVIDENCE),
                    reasoning: bounded(&reading.reasoning, REASONING),
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
            reasoning: Some(bounded(&self.summary, SUMMARY)).filter(|summary| !summary.is_empty()),
            details: Some(details),
        }
    }
}
