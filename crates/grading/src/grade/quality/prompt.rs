//! The grader's prompt. Rubric and rules come first and are byte-identical across sessions; the
//! transcript comes last.

use serde::Serialize;
use serde_json::json;

use super::reading::schema_in_prompt;
use super::rubric::{DimensionDescription, FIRST_OWN_VERSION, QualityDimension, RUBRIC_VERSION};
use selftest_models::fence::{FenceNonce, fence};
use selftest_models::prompts::{PromptError, PromptLibrary, RenderedPrompt};
use selftest_text::digest;

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
pub(super) fn built_in_template() -> &'static str {
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
