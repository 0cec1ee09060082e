//! A skill: instructions for a system under test, whose effect is measured.

use selftest_text::digest;

/// The text of a skill with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Name in reports.
    pub name: String,
    /// The whole text of its `SKILL.md`.
    pub text: String,
}

impl Skill {
    /// Returns the SHA-256 of the text.
    pub fn digest(&self) -> String {
        digest::sha256_hex(self.text.as_bytes())
    }
}
