//! Translates sentences with an unambiguous meaning into checks.
//!
//! A sentence becomes a check only if all of it is understood. Quoted literals, paths and names that
//! only code spells so are taken out, its verb is brought into one form, and the rest must match one of
//! the known forms from the first word to the last. One additional word ("… in the first line", "… or
//! similar") leaves it to the judge. Nothing is guessed from keywords.

mod context;
mod counts;
mod data;
mod form_parts;
mod forms;
mod skeleton;
mod skill;
mod verbs;

use crate::check::{self, Check};
pub use context::SentenceContext;
use skeleton::SentenceSkeleton;

/// Longer sentences usually say more than one thing.
const MAX_SENTENCE: usize = 300;

/// Suffix of the name of a check that a rule made of a sentence.
pub const BY_RULE_SUFFIX: &str = " (by rule)";

/// Returns the check that a sentence means, if that is unambiguous.
pub fn check_of(sentence: &str) -> Option<Check> {
    check_in(sentence, &SentenceContext::default())
}

/// Returns the check that a sentence means in its case, if that is unambiguous.
pub fn check_in(sentence: &str, context: &SentenceContext) -> Option<Check> {
    let sentence = sentence.trim();
    if sentence.len() > MAX_SENTENCE || sentence.contains('\n') {
        return None;
    }
    if let Some(skill) = skill::skill_check(sentence, context) {
        return check::read(&skill).ok();
    }
    if let Some(data) = data::data_check(sentence, context) {
        return check::read(&data).ok();
    }
    let skeleton = SentenceSkeleton::of(sentence, context)?;
    forms::check_of_form(&skeleton)
}

#[cfg(test)]
mod tests;
