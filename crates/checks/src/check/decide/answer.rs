//! Checks on the last answer.
//!
//! `not_contains: sorry` holds for an empty answer, and so does every upper bound; but an agent that
//! says nothing has not done what was asked. An empty answer therefore satisfies a check of its text
//! only if the case asks for one: by `equals: ""`, by a pattern such as `^$`, by `characters: 0`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{FactStatement, all_of, any_of, quote_name, quote_text};
use crate::check::questions::count_questions;
use crate::check::{
    Check, CheckKind, CheckObservation, CheckOutcome, CheckPattern, CheckText, CountBounds,
    JsonCheck, OccurrenceBounds, SimilarityCheck,
};
use selftest_text::normal::normalise;
use selftest_text::wording::plural;

/// Maximum length of an answer compared character by character, in characters.
const MAX_COMPARED: usize = 20_000;
/// Maximum number of fenced blocks of an answer that are parsed as JSON.
const MAX_BLOCKS: usize = 20;

pub(in crate::check) fn contains(text: &CheckText, seen: &CheckObservation<'_>) -> FactStatement {
    // The answer was normalised when it came; the text has to have the same form.
    if seen.output.contains(&*normalise(text.as_str()).text) {
        FactStatement::new(true, format!("the answer contains {}", quote_text(text.as_str())))
    } else {
        FactStatement::new(
            false,
            format!("the answer does not contain {}", quote_text(text.as_str())),
        )
    }
}

pub(in crate::check) fn matches(
    pattern: &CheckPattern,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let shown = quote_name(pattern.as_str());
    match pattern.find(seen.output) {
        // An empty match has nothing to quote.
        Ok(Some("")) => FactStatement::new(true, format!("the answer matches {shown}")),
        Ok(Some(found)) => FactStatement::new(
            true,
            format!("the answer matches {shown} with {}", quote_text(found)),
        ),
        Ok(None) => FactStatement::new(false, format!("the answer does not match {shown}")),
        Err(error) => FactStatement::undecided(format!("{shown}: {error}")),
    }
}

pub(in crate::check) fn equals(text: &str, seen: &CheckObservation<'_>) -> FactStatement {
    let wanted = normalise(text).text;
    let (answer, wanted) = (seen.output.trim(), wanted.trim());
    FactStatement::new(answer == wanted, format!("the answer is {}", quote_text(answer)))
        .with_demand(format!("{} expected", quote_text(wanted)))
}

pub(in crate::check) fn similar(
    similar: &SimilarityCheck,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let wanted = normalise(&similar.to).text;
    let (answer, wanted) = (seen.output.trim(), wanted.trim());
    let (length, other) = (answer.chars().count(), wanted.chars().count());
    let least = similar.at_least;
    let demand = format!("at least {least} expected");
    let told =
        |similarity: f64| format!("the similarity to {} is {similarity:.2}", quote_text(wanted));
    if length > MAX_COMPARED {
        // Each excess character costs at least one edit, so this is an upper bound on the
        // similarity.
        #[expect(clippy::cast_precision_loss, reason = "texts are far shorter than 2^52")]
        let highest = other as f64 / length as f64;
        if highest < least.get() {
            return FactStatement::new(false, told(highest)).with_demand(demand);
        }
        return FactStatement::undecided("the answer is too long to be compared letter by letter");
    }
    let similarity = strsim::normalized_levenshtein(answer, wanted);
    // The tolerance absorbs floating-point rounding.
    FactStatement::new(similarity >= least.get() - 1e-9, told(similarity)).with_demand(demand)
}

pub(in crate::check) fn occurrences(
    wanted: &OccurrenceBounds,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let count = seen.output.matches(&*normalise(wanted.of.as_str()).text).count() as u64;
    let times = plural(count, "time");
    let fact = format!("{} occurs {times} in the answer", quote_text(wanted.of.as_str()));
    compare_count(count, wanted.bounds, fact)
}

pub(in crate::check) fn lines(bounds: &CountBounds, seen: &CheckObservation<'_>) -> FactStatement {
    let count = seen.output.lines().filter(|line| !line.trim().is_empty()).count() as u64;
    compare_count(count, *bounds, plural(count, "line"))
}

pub(in crate::check) fn items(bounds: &CountBounds, seen: &CheckObservation<'_>) -> FactStatement {
    let count = count_items(seen.output);
    compare_count(count, *bounds, plural(count, "list item"))
}

/// Counts list items of the outermost level: those with the smallest indentation, outside of code.
fn count_items(answer: &str) -> u64 {
    static ITEM: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^([ \t]*)(?:[-*•+–]|[0-9]{1,3}[.)])[ \t]+\S")
            .expect("the pattern is a constant")
    });
    let mut in_code = false;
    let mut indents = Vec::new();
    for line in answer.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code && let Some(found) = ITEM.captures(line) {
            indents.push(found[1].replace('\t', "    ").len());
        }
    }
    // A list may be indented by one more space here and there without being nested.
    let least = indents.iter().min().copied().unwrap_or(0);
    indents.iter().filter(|indent| **indent <= least + 1).count() as u64
}

pub(in crate::check) fn words(bounds: &CountBounds, seen: &CheckObservation<'_>) -> FactStatement {
    // Dashes and bullets on their own are not words.
    let word = |word: &&str| word.chars().any(char::is_alphanumeric);
    let count = seen.output.split_whitespace().filter(word).count() as u64;
    compare_count(count, *bounds, plural(count, "word"))
}

pub(in crate::check) fn questions(
    bounds: &CountBounds,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let count = u64::from(count_questions(seen.output));
    compare_count(count, *bounds, plural(count, "question"))
}

pub(in crate::check) fn characters(
    bounds: &CountBounds,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let count = seen.output.trim().chars().count() as u64;
    compare_count(count, *bounds, plural(count, "character"))
}

/// Compares a count with its bounds.
pub(super) fn compare_count(count: u64, bounds: CountBounds, fact: String) -> FactStatement {
    FactStatement::new(bounds.contains(count), fact).with_demand(format!("{bounds} expected"))
}

pub(in crate::check) fn json(check: &JsonCheck, seen: &CheckObservation<'_>) -> FactStatement {
    let found = json_values(seen.output);
    let mut first = None;
    // Any block may satisfy the check; a failure is reported for the first one.
    for value in &found {
        let statement = decide_value(check, value);
        if statement.outcome == crate::check::CheckOutcome::Held {
            return statement;
        }
        first.get_or_insert(statement);
    }
    first.unwrap_or_else(|| {
        FactStatement::new(false, "the answer is not JSON and has no fenced block with JSON")
    })
}

fn decide_value(check: &JsonCheck, whole: &Value) -> FactStatement {
    if let Some(schema) = &check.schema
        && let Some(fault) = schema.first_fault(whole)
    {
        return FactStatement::new(false, format!("the JSON does not satisfy the schema: {fault}"));
    }
    // The empty pointer refers to the whole document (RFC 6901).
    let pointer = check.pointer.as_ref().map_or("", |pointer| pointer.as_str());
    let place = if pointer.is_empty() { "the JSON".to_owned() } else { quote_name(pointer) };
    let Some(value) = whole.pointer(pointer) else {
        return FactStatement::new(false, format!("the JSON has nothing at {place}"));
    };
    match &check.equals {
        Some(wanted) => {
            let shown = |value: &Value| quote_name(&value.to_string());
            FactStatement::new(equal(value, wanted), format!("{place} is {}", shown(value)))
                .with_demand(format!("{} expected", shown(wanted)))
        }
        None if check.schema.is_some() => FactStatement::new(true, "the JSON satisfies the schema"),
        None if pointer.is_empty() => FactStatement::new(true, "the answer holds JSON"),
        None => FactStatement::new(true, format!("the JSON has a value at {place}")),
    }
}

/// Compares two JSON values, treating `3` and `3.0` as the same number.
pub(in crate::check) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        // 1 and 1.0 are equal. Whole numbers are compared as such: long ids that differ are equal as
        // floating-point numbers.
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(key, a)| b.get(key).is_some_and(|b| equal(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => a == b,
    }
}

/// Returns the JSON of an answer: the whole text, or each fenced block that parses.
pub(in crate::check) fn json_values(answer: &str) -> Vec<Value> {
    if let Ok(whole) = serde_json::from_str(answer.trim()) {
        return vec![whole];
    }
    fenced_blocks(answer)
        .into_iter()
        .filter_map(|block| serde_json::from_str(block.trim()).ok())
        .collect()
}

/// Returns the contents of fenced code blocks.
fn fenced_blocks(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let ticks = bare.bytes().take_while(|&byte| byte == b'`').count();
        match open {
            // An info string with a backtick means inline code such as ```x```, not a fence
            // (CommonMark).
            None if ticks >= 3 && !bare[ticks..].contains('`') => {
                open = Some((ticks, at + line.len()));
            }
            // A closing fence is at least as long as the opening one and has nothing after it.
            Some((fence, start)) if ticks >= fence && ticks == bare.len() => {
                found.push(&text[start..at]);
                open = None;
            }
            _ => {}
        }
        at += line.len();
        if found.len() == MAX_BLOCKS {
            break;
        }
    }
    found
}

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
