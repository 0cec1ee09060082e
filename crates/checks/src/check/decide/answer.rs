//! Checks on the last answer.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{FactStatement, quote_name, quote_text};
use crate::check::questions::count_questions;
use crate::check::{
    CheckObservation, CheckPattern, CheckText, CountBounds, JsonCheck, OccurrenceBounds,
    SimilarityCheck,
};
use selftest_text::normal::normalise;
use selftest_text::wording::plural;

/// Maximum length of an answer compared character by character, in characters.
const MAX_COMPARED: usize = 20_000;
/// Maximum number of fenced blocks of an answer that are parsed as JSON.
const MAX_BLOCKS: usize = 20;

pub(in crate::check) fn contains(text: &CheckText, seen: &CheckObservation<'_>) -> FactStatement {
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
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
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
