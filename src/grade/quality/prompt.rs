//! The grader's prompt: rubric and rules first and byte-identical, the transcript last. Pure.

use serde::Serialize;

use super::reading::schema_in_prompt;
use super::rubric::{Description, Dimension};
use crate::digest;
use crate::judge::evidence::{Nonce, fence};
use crate::prompts::{BUILT_IN, PromptError, PromptLibrary, Rendered};

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
    let found = BUILT_IN.iter().find(|(name, _)| *name == TEMPLATE);
    found.map_or("", |(_, text)| text)
}

/// Whether the loaded template is the project's own and not the one of this binary: its grades
/// carry the same rubric version and yet another rubric.
pub fn is_edited(library: &PromptLibrary) -> bool {
    library
        .digests()
        .get(TEMPLATE)
        .is_some_and(|loaded| *loaded != digest::of_bytes(built_in().as_bytes()))
}
