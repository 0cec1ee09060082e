//! A skill: instructions that are handed to a system under test, to see whether they help.

use selftest_text::digest;

/// The text of a skill with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Name in reports.
    pub name: String,
    /// All of it, as in its `SKILL.md`.
    pub text: String,
}

impl Skill {
    /// SHA-256 of the text.
    pub fn digest(&self) -> String {
        digest::of_bytes(self.text.as_bytes())
    }
}
