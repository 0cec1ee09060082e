//! Renders grades, skills, gaps, reflections and weekly reports as text. Only `weekly` writes
//! files.

pub mod estimate;
pub mod grades;
pub mod improvement;
pub mod outcomes;
mod plot;
pub mod quality;
pub mod reflections;
pub mod session;
pub mod skills;
pub mod transcript;
pub mod weekly;

use std::fmt;

use selftest_text::escape::inline;

/// Askama escaper for values in Markdown templates. Each value becomes a single line of at most 700
/// bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkdownEscaper;

impl askama::filters::Escaper for MarkdownEscaper {
    fn write_escaped_str<W: fmt::Write>(&self, mut output: W, text: &str) -> fmt::Result {
        output.write_str(inline(text, 700).as_str())
    }
}
