//! The rubric: the dimensions that a model scores in a session, and the meaning of each score.

use serde::Serialize;

/// Version of the rubric. Grades of different versions are never mixed. Increment this after
/// changing `prompts/grade/session_v1.md`, the anchors or the schema; a test enforces it.
pub const RUBRIC_VERSION: u32 = 1;

/// First version number for prompts edited by projects; see [`super::rubric_version`]. All versions
/// fit into 31 bits.
pub const FIRST_OWN_VERSION: u32 = 1 << 30;

/// Returns the name of a version: `rubric 1`, or `the project's own rubric 2f3a91bc`.
pub fn rubric_name(version: u32) -> String {
    match version.checked_sub(FIRST_OWN_VERSION) {
        None => format!("rubric {version}"),
        Some(own) => format!("the project's own rubric {own:08x}"),
    }
}

/// An aspect of a session's quality (docs/spec/session-quality.md#dimensions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum QualityDimension {
    /// The user's request was fulfilled.
    #[serde(rename = "problem_solved")]
    ProblemSolved,
    /// Tests were added or adapted.
    #[serde(rename = "tests_added")]
    TestsAdded,
    /// The new code is clean.
    #[serde(rename = "code_clean")]
    CodeClean,
    /// Edge cases and errors were handled.
    #[serde(rename = "edge_cases_handled")]
    EdgeCases,
}

/// The meaning of one score of a dimension.
#[derive(Debug, Serialize)]
pub(super) struct ScoreAnchor {
    score: f64,
    meaning: &'static str,
}

/// Description of a dimension for the prompt.
#[derive(Debug, Serialize)]
pub(super) struct DimensionDescription {
    name: &'static str,
    question: &'static str,
    anchors: [ScoreAnchor; 4],
    unknown: &'static str,
}

impl QualityDimension {
    /// All dimensions, in the order of the reply.
    pub const ALL: [QualityDimension; 4] = [
        QualityDimension::ProblemSolved,
        QualityDimension::TestsAdded,
        QualityDimension::CodeClean,
        QualityDimension::EdgeCases,
    ];

    /// Returns the field of the reply, which is also the key of the weight.
    pub const fn name(self) -> &'static str {
        match self {
            QualityDimension::ProblemSolved => "problem_solved",
            QualityDimension::TestsAdded => "tests_added",
            QualityDimension::CodeClean => "code_clean",
            QualityDimension::EdgeCases => "edge_cases_handled",
        }
    }

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        match self {
            QualityDimension::ProblemSolved => "Problem solved",
            QualityDimension::TestsAdded => "Tests added",
            QualityDimension::CodeClean => "Code clean",
            QualityDimension::EdgeCases => "Edge cases handled",
        }
    }

    pub(super) fn description(self) -> DimensionDescription {
        let (question, meanings, unknown) = match self {
            QualityDimension::ProblemSolved => (
                "Was what the user asked for done in the end?",
                [
                    "Done, and shown to work or accepted by the user",
                    "Done for the most part, or done without a check",
                    "Begun; important parts are missing or fail",
                    "Not done, undone again, or rejected by the user",
                ],
                "the outcome is not shown",
            ),
            QualityDimension::TestsAdded => (
                "Were tests added or adapted for what was changed, and run?",
                [
                    "Tests for the change were written and pass",
                    "Tests were written or adapted, but not run or with gaps",
                    "Existing tests were only run",
                    "Code was changed without any test",
                ],
                "no code was to be changed",
            ),
            QualityDimension::CodeClean => (
                "Is the code that was written clear, small and in the style of what is around it?",
                [
                    "Clear and minimal; a reviewer would take it as it is",
                    "Good, with small blemishes",
                    "Hard to follow, duplicated, or with leftovers of debugging",
                    "Hacks, dead code or broken code were left behind",
                ],
                "no code is shown",
            ),
            QualityDimension::EdgeCases => (
                "Were edge cases, wrong input and failures thought of?",
                [
                    "The relevant ones are handled or tested",
                    "Most are handled; a minor one is missing",
                    "Hardly any: only the plain case works",
                    "An evident case breaks the result, or errors are hidden",
                ],
                "nothing shown has any",
            ),
        };
        let [best, good, poor, worst] = meanings;
        let anchors = [(1.0, best), (0.7, good), (0.3, poor), (0.0, worst)]
            .map(|(score, meaning)| ScoreAnchor { score, meaning });
        DimensionDescription { name: self.name(), question, anchors, unknown }
    }
}
