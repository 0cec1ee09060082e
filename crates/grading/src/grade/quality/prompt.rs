//! The grader's prompt: rubric and rules first and byte-identical, the transcript last. Pure.

use serde::Serialize;
use serde_json::json;

use super::reading::schema_in_prompt;
use super::rubric::{Description, Dimension, FIRST_OWN_VERSION, RUBRIC_VERSION};
use selftest_models::fence::{Nonce, fence};
use selftest_models::prompts::{PromptError, PromptLibrary, Rendered};
use selftest_text::digest;

/// The grader's template, path under `prompts/`.
pub const TEMPLATE: &str = "grade/session_v1.md";

#[derive(Serialize)]
struct Values<'a> {
    dimensions: [Description; 4],
    names: [&'static str; 4],
    schema: String,
    nonce: &'a str,
    transcript: String,
}

/// Renders the prompt of one session from its condensed transcript. [`TEMPLATE`] must be loaded.
pub fn render(
    library: &PromptLibrary,
    transcript: &str,
    nonce: &Nonce,
) -> Result<Rendered, PromptError> {
    let values = Values {
        dimensions: Dimension::ALL.map(Dimension::description),
        names: Dimension::ALL.map(Dimension::name),
        schema: schema_in_prompt().to_string(),
        nonce: nonce.as_str(),
        transcript: fence("TRANSCRIPT", transcript, nonce),
    };
    library.render(TEMPLATE, &values)
}

/// The template of this binary.
pub(super) fn built_in() -> &'static str {
    let found = crate::prompts::BUILT_IN.iter().find(|(name, _)| *name == TEMPLATE);
    found.map_or("", |(_, text)| text)
}

/// The version of the rubric that the loaded template puts to the model: [`RUBRIC_VERSION`] of the
/// one of this binary. One that the project has edited is another rubric, with a version made from
/// its digest and that of this binary: grades by different texts are never mixed, and who takes an
/// edit back finds the grades from before.
pub fn rubric_version(library: &PromptLibrary) -> u32 {
    let built_in = digest::of_bytes(built_in().as_bytes());
    match library.digests().get(TEMPLATE) {
        Some(own) if *own != built_in => {
            let digest = digest::of_json(json!([RUBRIC_VERSION, own]));
            let number = digest.get(..8).and_then(|first| u32::from_str_radix(first, 16).ok());
            FIRST_OWN_VERSION + number.unwrap_or_default() % FIRST_OWN_VERSION
        }
        _ => RUBRIC_VERSION,
    }
}
