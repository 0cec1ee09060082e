//! Grades of recorded sessions by a language model (docs/spec/session-quality.md): the settings, the
//! rubric and the prompt; `grade.rs` reads the reply.
//!
//! Rubric and rules come first in the prompt and are byte-identical across sessions; the transcript
//! comes last. Nothing here calls a model or uses the clock or the database. The overall score is
//! computed here; the model is never asked for it.

mod grade;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use grade::schema_in_prompt;
use selftest_models::DEFAULT_THINK_TOKENS;
use selftest_models::fence::{FenceNonce, fence};
use selftest_models::name::ModelName;
use selftest_models::prompts::{PromptError, PromptLibrary, RenderedPrompt};
use selftest_stats::score::Weight;
use selftest_text::digest;

pub use grade::{
    CombinedQuality, DimensionNote, DimensionReading, QualityContext, QualityGrade, QualityReader,
    QualityReading, ScoreSpread, combine_grades, reply_schema,
};

/// The `grade.quality` section: the model that grades recorded sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QualitySettings {
    /// Model to use: `auto`, `provider/model`, or a bare name that `auto` resolves.
    #[schemars(length(min = 1), extend("examples" = ModelName::examples()))]
    pub model: String,
    /// Sampling temperature; 0.0 is deterministic.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Maximum number of tokens in a reply.
    #[schemars(range(min = 16, max = 32768))]
    pub max_tokens: u32,
    /// Number of times to ask again after a malformed reply.
    #[schemars(range(min = 0, max = 20))]
    pub max_reasks: u32,
    /// Maximum number of tokens in a condensed transcript.
    #[schemars(range(min = 256, max = 1_000_000))]
    pub max_transcript_tokens: u32,
    /// Number of sessions to grade concurrently.
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: u32,
    /// Weights of the dimensions in the overall score; they sum to 1.
    pub weights: QualityWeights,
    /// Allow a thinking model to think before the reply. Absent: not allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Maximum number of thinking tokens, in addition to those of the reply. Only used if `think`
    /// is true.
    #[schemars(range(min = 16, max = 131_072))]
    pub think_tokens: u32,
}

impl Default for QualitySettings {
    fn default() -> Self {
        Self {
            model: "auto".to_owned(),
            temperature: 0.0,
            max_tokens: 1200,
            max_reasks: 2,
            max_transcript_tokens: 8000,
            concurrency: 2,
            weights: QualityWeights::default(),
            think: None,
            think_tokens: DEFAULT_THINK_TOKENS,
        }
    }
}

/// Weight of each dimension in the overall score. The specification leaves these open.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QualityWeights {
    /// Weight of solving the problem.
    pub problem_solved: Weight,
    /// Weight of adding tests.
    pub tests_added: Weight,
    /// Weight of clean code.
    pub code_clean: Weight,
    /// Weight of handling edge cases.
    pub edge_cases_handled: Weight,
}

impl QualityWeights {
    /// Returns the weight of a dimension.
    pub const fn weight(&self, dimension: QualityDimension) -> f64 {
        match dimension {
            QualityDimension::ProblemSolved => self.problem_solved.get(),
            QualityDimension::TestsAdded => self.tests_added.get(),
            QualityDimension::CodeClean => self.code_clean.get(),
            QualityDimension::EdgeCases => self.edge_cases_handled.get(),
        }
    }

    /// Returns the sum of the weights, rounded to six decimals.
    pub fn sum(&self) -> f64 {
        let sum: f64 = QualityDimension::ALL.iter().map(|dimension| self.weight(*dimension)).sum();
        (sum * 1e6).round() / 1e6
    }
}

impl Default for QualityWeights {
    fn default() -> Self {
        let weight = |share| Weight::new(share).expect("the default weights are in range");
        Self {
            problem_solved: weight(0.4),
            tests_added: weight(0.2),
            code_clean: weight(0.2),
            edge_cases_handled: weight(0.2),
        }
    }
}

/// Version of the rubric. Grades of different versions are never mixed. Increment this after
/// changing `prompts/grade/session_v1.md`, the anchors or the schema; a test enforces it.
pub const RUBRIC_VERSION: u32 = 1;

/// First version number for prompts edited by projects; see [`rubric_version`]. All versions
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
struct ScoreAnchor {
    score: f64,
    meaning: &'static str,
}

/// Description of a dimension for the prompt.
#[derive(Debug, Serialize)]
struct DimensionDescription {
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

    fn description(self) -> DimensionDescription {
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

/// Path of the grader's template under `prompts/`.
pub const TEMPLATE: &str = "grade/session_v1.md";

#[derive(Serialize)]
struct QualityPromptValues<'a> {
    dimensions: [DimensionDescription; 4],
    names: [&'static str; 4],
    schema: String,
    nonce: &'a str,
    transcript: String,
}

/// Renders the prompt for a session from its condensed transcript. [`TEMPLATE`] must be loaded.
pub fn render(
    library: &PromptLibrary,
    transcript: &str,
    nonce: &FenceNonce,
) -> Result<RenderedPrompt, PromptError> {
    let values = QualityPromptValues {
        dimensions: QualityDimension::ALL.map(QualityDimension::description),
        names: QualityDimension::ALL.map(QualityDimension::name),
        schema: schema_in_prompt().to_string(),
        nonce: nonce.as_str(),
        transcript: fence("TRANSCRIPT", transcript, nonce),
    };
    library.render(TEMPLATE, &values)
}

/// Returns the built-in template.
fn built_in_template() -> &'static str {
    let found = crate::prompts::BUILT_IN.iter().find(|(name, _)| *name == TEMPLATE);
    found.map_or("", |(_, text)| text)
}

/// Returns the version of the rubric in the loaded template.
///
/// The built-in template has [`RUBRIC_VERSION`]. A template edited by the project is a different
/// rubric, whose version is derived from its digest and the built-in version. Grades by different
/// texts are therefore never mixed, and reverting an edit makes the earlier grades valid again.
pub fn rubric_version(library: &PromptLibrary) -> u32 {
    let built_in = digest::sha256_hex(built_in_template().as_bytes());
    match library.digests().get(TEMPLATE) {
        Some(own) if *own != built_in => {
            let digest = digest::json_sha256_hex(json!([RUBRIC_VERSION, own]));
            let number = digest.get(..8).and_then(|first| u32::from_str_radix(first, 16).ok());
            // Keeps the version within 31 bits.
            FIRST_OWN_VERSION + number.unwrap_or_default() % FIRST_OWN_VERSION
        }
        _ => RUBRIC_VERSION,
    }
}
