//! Decides checks on an empty answer.
//!
//! `not_contains: sorry` holds for an empty answer, and so does every upper bound; but an agent that
//! says nothing has not done what was asked. An empty answer therefore satisfies a check of its text
//! only if the case asks for one: by `equals: ""`, by a pattern such as `^$`, by `characters: 0`.

use super::{FactStatement, all_of, any_of};
use crate::check::{Check, CheckKind, CheckObservation, CheckOutcome};

/// Answers that a check which asks for an empty one refuses.
const ANSWERS: [&str; 4] =
    ["a", "42", "The shop opens at 9. It closes at 5.", "Which one do you mean?\n\n- this\n- that"];

/// Returns true if a check of the case asks for an empty answer.
pub(super) fn is_wanted(checks: &[Check]) -> bool {
    checks.iter().any(asks_for_emptiness)
}

/// Returns true if an empty answer can satisfy a case with these checks: one asks for it, or one
/// finds what the agent did without words.
pub fn accepts_empty_answer(checks: &[Check]) -> bool {
    is_wanted(checks) || checks.iter().flat_map(Check::walk).any(|check| check.kind.finds_deed())
}

/// Decides a check of an empty answer that no check of the case asks for.
pub(super) fn statement(check: &Check, seen: &CheckObservation<'_>) -> FactStatement {
    let nested = |checks: &[Check]| -> Vec<FactStatement> {
        checks.iter().map(|check| statement(check, seen)).collect()
    };
    match &check.kind {
        CheckKind::All(checks) => return all_of(&nested(checks)),
        CheckKind::Any(checks) => return any_of(&nested(checks)),
        _ => {}
    }
    let raw = check.kind.decide(seen);
    if raw.outcome == CheckOutcome::Held && reads_answer(check) {
        return FactStatement::new(false, "the answer is empty");
    }
    raw
}

/// Returns true if the check holds for an empty answer and for no other.
fn asks_for_emptiness(check: &Check) -> bool {
    let holds = |output| {
        let seen = CheckObservation { output, ..CheckObservation::default() };
        check.kind.decide(&seen).outcome == CheckOutcome::Held
    };
    check.walk().iter().any(|check| check.kind.reads_answer())
        && holds("")
        && !ANSWERS.into_iter().any(holds)
}

/// Returns true if a check that holds says nothing about anything but the text of the answer. What a
/// transcript contains may be a call, but what it lacks may be missing words.
fn reads_answer(check: &Check) -> bool {
    match &check.kind {
        CheckKind::Not(inner) => inner.walk().iter().any(|check| {
            check.kind.reads_answer() || matches!(check.kind, CheckKind::TranscriptRegex(_))
        }),
        kind => kind.reads_answer(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::check::{decide_all, read_list};

    fn checks(checks: &Value) -> Vec<Check> {
        read_list(checks).unwrap()
    }

    fn outcome(given: &Value, output: &str) -> Option<CheckOutcome> {
        let seen = CheckObservation { output, ..CheckObservation::default() };
        decide_all(&checks(given), &seen).outcome
    }

    #[test]
    fn an_empty_answer_satisfies_only_what_asks_for_it() {
        for (given, holds) in [
            (json!([{ "equals": "" }]), true),
            (json!([{ "regex": "^$" }]), true),
            (json!([{ "regex": r"\A\s*\z" }]), true),
            (json!([{ "characters": 0 }]), true),
            (json!([{ "characters": { "max": 0 } }]), true),
            (json!([{ "words": { "max": 0 } }]), true),
            (json!([{ "not_regex": "." }]), true),
            (json!([{ "not": { "regex": r"\S" } }]), true),
            (json!([{ "any": [{ "equals": "" }, { "equals": "NONE" }] }]), true),
            (json!([{ "equals": "" }, { "not_contains": "sorry" }]), true),
            (json!([{ "not_contains": "sorry" }]), false),
            (json!([{ "not_regex": "sorry" }]), false),
            (json!([{ "not": { "contains": "sorry" } }]), false),
            (json!([{ "regex": ".*" }]), false),
            (json!([{ "regex": "(sorry)?" }]), false),
            (json!([{ "characters": { "max": 80 } }]), false),
            (json!([{ "words": { "max": 80 } }]), false),
            (json!([{ "lines": { "max": 3 } }]), false),
            (json!([{ "questions": 0 }]), false),
            (json!([{ "all": [{ "questions": 0 }, { "not_contains": "x" }] }]), false),
            (json!([{ "any": [{ "contains": "9" }, { "not_contains": "x" }] }]), false),
            (json!([{ "contains": "9" }]), false),
        ] {
            for answer in ["", " \n", "\u{200b}"] {
                let expected = CheckOutcome::of(holds);
                assert_eq!(outcome(&given, answer), Some(expected), "{given} {answer:?}");
            }
        }
        let said = json!([{ "not_contains": "sorry" }]);
        assert_eq!(outcome(&said, "At 9."), Some(CheckOutcome::Held));
    }

    #[test]
    fn deeds_need_no_words() {
        for (given, accepts) in [
            (json!([{ "file_created": "a.md" }, { "not_contains": "x" }]), true),
            (json!([{ "tool_called": "Read" }]), true),
            (json!([{ "equals": "" }]), true),
            (json!([{ "not_contains": "x" }, { "status": "COMPLETE" }]), false),
            (json!([{ "file_unchanged": "a.md" }, { "only_changes": ["b.md"] }]), false),
            (json!([{ "tool_not_called": "Bash" }, { "seconds": { "max": 9 } }]), false),
            (json!([]), false),
        ] {
            assert_eq!(accepts_empty_answer(&checks(&given)), accepts, "{given}");
        }
    }
}
