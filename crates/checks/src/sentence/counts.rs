//! Counts of lines, words and the like: "at most three", "under 50", "between 50 and 80".

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::forms::with_pieces;
use super::skeleton::{SentenceSkeleton, regex};

static BOUND: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = with_pieces(
        "(?P<exact>exactly <n>)|(?P<max>(?:at most|no more than|not more than|no longer than|up to|a maximum of|exceed|<=|≤) ?<n>)|(?P<or_fewer><n> or (?:fewer|less))|(?P<min>(?:at least|no fewer than|no less than|a minimum of|>=|≥) ?<n>)|(?P<or_more><n> or more)|(?P<below>(?:fewer than|less than|under|below|<) ?<n>)|(?P<above>(?:more than|over|>) ?<n>)|(?:between )?(?P<low><n>)(?: ?[-–] ?| and | to )(?P<high><n>)|(?P<none>no)",
    );
    regex(&format!("^(?:{pattern})$"))
});

/// Returns the bounds that a phrase states, as in a suite.
pub(super) fn bounds(phrase: &str) -> Option<Value> {
    let bound = BOUND.captures(phrase)?;
    let number = |group: &str| bound.name(group).and_then(|found| number(found.as_str()));
    Some(if let Some(exact) = number("exact") {
        json!(exact)
    } else if let Some(max) = number("max").or_else(|| number("or_fewer")) {
        json!({ "max": max })
    } else if let Some(min) = number("min").or_else(|| number("or_more")) {
        json!({ "min": min })
    } else if let Some(below) = number("below") {
        json!({"max": below.checked_sub(1)?})
    } else if let Some(above) = number("above") {
        json!({"min": above + 1})
    } else if let (Some(low), Some(high)) = (number("low"), number("high")) {
        json!({"min": low, "max": high})
    } else if bound.name("none").is_some() {
        json!(0)
    } else {
        return None;
    })
}

/// Returns the check of a number of units.
pub(super) fn count(_: &SentenceSkeleton<'_>, found: &Captures<'_>) -> Option<Value> {
    let unit = match found["what"].trim_end_matches('s') {
        "bullet" | "bullet point" | "list item" => "item",
        unit => unit,
    };
    let phrase = match found.name("after") {
        Some(after) => format!("{} or {}", &found["bound"], after.as_str()),
        None => found["bound"].to_owned(),
    };
    let value = bounds(&phrase)?;
    // "No words" is no count.
    if phrase == "no" && !matches!(unit, "question" | "item") {
        return None;
    }
    Some(json!({ format!("{unit}s"): value }))
}

/// Returns how often something is called, from "once", "exactly twice" or "at least 3 times".
pub(super) fn times(phrase: &str) -> Option<(Option<u64>, Option<u64>)> {
    let exact = phrase.trim_start_matches("exactly ").trim_start_matches("only ");
    let limits = |value: &Value| {
        let limit = |key: &str| value.get(key).and_then(Value::as_u64);
        value.as_u64().map_or_else(|| (limit("min"), limit("max")), |one| (Some(one), Some(one)))
    };
    match exact {
        "once" if exact != phrase => return Some((Some(1), Some(1))),
        "twice" if exact != phrase => return Some((Some(2), Some(2))),
        "at least once" | "once or more" => return Some((Some(1), None)),
        "at most once" | "no more than once" => return Some((None, Some(1))),
        "at least twice" | "more than once" => return Some((Some(2), None)),
        _ => {}
    }
    let phrase = phrase.strip_suffix(" times").or_else(|| phrase.strip_suffix(" time"))?;
    Some(limits(&bounds(phrase)?))
}

/// Returns the number in a phrase that contains one.
pub(super) fn number(phrase: &str) -> Option<u64> {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    phrase.split(' ').find_map(|word| match word.trim_start_matches(['<', '>', '=', '≤', '≥']) {
        "fifteen" => Some(15),
        "twenty" => Some(20),
        word => {
            let named = WORDS.iter().position(|known| *known == word).map(|at| at as u64);
            named.or_else(|| word.replace(',', "").parse().ok())
        }
    })
}
