//! `selftest suite check --suggest`: checks proposed by rules for sentences that are left to the judge,
//! as a diff that a person accepts.

use std::path::Path;

use selftest_checks::check::Check;
use selftest_checks::evals::{DemandDecider, EvalsFile, MAX_BYTES, is_negative};
use selftest_checks::suggest::suggestion;
use selftest_text::file::read_bounded_text;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use similar::TextDiff;

/// Keys of an object that only wraps a sentence.
const WRAPPERS: [&str; 6] =
    ["text", "description", "criterion", "expectation", "assertion", "statement"];
/// Keys beside a wrapped sentence that a check can do without.
const BESIDE: [&str; 7] = ["id", "name", "type", "passed", "evidence", "kind", "trap"];
/// Types of wrapped sentences that fix nothing.
const UNTYPED: [&str; 6] = ["boolean", "qualitative", "output", "text", "behavior", "semantic"];

/// The proposals for one file.
pub(super) struct ProposedChecks {
    /// The diff; empty if there is nothing to propose.
    pub diff: String,
    /// Number of demands that the diff would decide without a model.
    pub proposed: usize,
    /// The reason why there is no diff, though there are proposals.
    pub note: Option<String>,
}

/// Proposes a check for each sentence of a file that stands in it as JSON. `file` is what was read from
/// it.
pub(super) fn propose(path: &Path, file: &EvalsFile) -> ProposedChecks {
    // It was read a moment ago; if it is gone now, nothing is proposed in it.
    let text = read_bounded_text(path, MAX_BYTES as u64).unwrap_or_default();
    let is_json = path.extension().is_some_and(|end| end == "json");
    let demands = file.cases.iter().flat_map(|case| &case.demands);
    let judged = demands.filter(|demand| demand.decider == DemandDecider::Judge);
    let wanted: Vec<(&str, Check)> = judged
        .filter_map(|demand| Some((demand.text.as_str(), suggestion(&demand.text)?)))
        .collect();
    let places = if is_json { places(&text) } else { Vec::new() };
    let (changed, proposed) = replaced(&text, &places, &wanted);
    let elsewhere = wanted.len() - proposed;
    let shown = path.display().to_string();
    let diff = if proposed == 0 {
        String::new()
    } else {
        let diff = TextDiff::from_lines(&text, &changed);
        diff.unified_diff().header(&shown, &format!("{shown} (suggested)")).to_string()
    };
    let note = (elsewhere > 0).then(|| {
        format!("{elsewhere} more would be proposed in a list of sentences of an evals.json: `selftest suite export --to evals.json {shown}` writes one")
    });
    ProposedChecks { diff, proposed, note }
}

/// A sentence in a text of JSON, alone or wrapped in an object.
struct SentencePlace {
    start: usize,
    end: usize,
    sentence: String,
}

/// Returns the text with a check in the place of each sentence that has one, and their number.
fn replaced(text: &str, places: &[SentencePlace], wanted: &[(&str, Check)]) -> (String, usize) {
    let mut is_open = vec![true; places.len()];
    let mut chosen = Vec::new();
    for (sentence, check) in wanted {
        let at = places
            .iter()
            .zip(&is_open)
            .position(|(place, open)| *open && place.sentence.trim() == *sentence);
        if let Some(at) = at {
            // The same sentence may stand in several cases, each with a place of its own.
            is_open[at] = false;
            chosen.push((&places[at], check));
        }
    }
    // From the end, so that the places before stay where they are.
    chosen.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    let mut changed = text.to_owned();
    for (place, check) in &chosen {
        changed.replace_range(place.start..place.end, &json!(check).to_string());
    }
    (changed, chosen.len())
}

/// Returns the items of lists that are sentences or wrap one, by their place in the text. Lists of what
/// must not hold are left out.
fn places(text: &str) -> Vec<SentencePlace> {
    let mut found = Vec::new();
    let mut lists = 0usize;
    // The text before, which is a key if a `:` follows.
    let mut key = None;
    let (mut at, bytes) = (0, text.as_bytes());
    // The start of each item: behind `[`, or behind `,` in a list. Each bracket with whether it is in
    // something negative.
    let mut open: Vec<(u8, bool)> = Vec::new();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = at + value_length(&text[at..]).unwrap_or(1);
                let is_key = text[end..].trim_start().starts_with(':');
                key = is_key.then(|| &text[at..end]);
                at = end;
                continue;
            }
            b'[' => {
                let is_unwanted = is_in_unwanted(&open, key.take());
                open.push((b'[', is_unwanted));
                lists += 1;
                if !is_unwanted {
                    add_item(text, at + 1, &mut found);
                }
            }
            b'{' => {
                let is_unwanted = is_in_unwanted(&open, key.take());
                open.push((b'{', is_unwanted));
            }
            b']' | b'}' => {
                let is_list = open.pop().is_some_and(|(bracket, _)| bracket == b'[');
                lists -= usize::from(is_list).min(lists);
            }
            b',' if lists > 0 && open.last() == Some(&(b'[', false)) => {
                add_item(text, at + 1, &mut found);
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Returns true if a value is in something that must not hold, or has a key that says so.
fn is_in_unwanted(open: &[(u8, bool)], key: Option<&str>) -> bool {
    let key = key.and_then(|key| serde_json::from_str::<String>(key).ok());
    open.last().is_some_and(|(_, is_unwanted)| *is_unwanted)
        || key.is_some_and(|key| is_negative(&key))
}

/// Adds the item that begins behind this place, if it is a sentence or wraps one.
fn add_item(text: &str, from: usize, found: &mut Vec<SentencePlace>) {
    let rest = &text[from..];
    let start = from + (rest.len() - rest.trim_start().len());
    let is_item = matches!(text.as_bytes().get(start), Some(b'"' | b'{'));
    let Some(length) = is_item.then(|| value_length(&text[start..])).flatten() else { return };
    let end = start + length;
    let sentence = match serde_json::from_str::<Value>(&text[start..end]) {
        Ok(Value::String(sentence)) => Some(sentence),
        Ok(Value::Object(members)) => wrapped(&members),
        _ => None,
    };
    found.extend(sentence.map(|sentence| SentencePlace { start, end, sentence }));
}

/// Returns the sentence of an object that says nothing else.
fn wrapped(members: &Map<String, Value>) -> Option<String> {
    let is_plain = members
        .keys()
        .all(|key| WRAPPERS.contains(&key.as_str()) || BESIDE.contains(&key.as_str()));
    let kind = members.get("type").or(members.get("kind")).and_then(Value::as_str);
    if !is_plain || kind.is_some_and(|kind| !UNTYPED.contains(&kind)) {
        return None;
    }
    WRAPPERS.iter().find_map(|key| members.get(*key)?.as_str()).map(ToOwned::to_owned)
}

/// Returns the length of the JSON value at the start of a text.
fn value_length(text: &str) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_lists_and_their_wrappers_are_found() {
        let text = r#"{"a": "x", "b": ["y, [z", {"id": 1, "text": "w"}], "c": [{"type": "regex", "text": "n"}], "d": [{"id": 2, "prompt": "p", "e": ["q"]}]}"#;
        let found: Vec<String> = places(text).into_iter().map(|place| place.sentence).collect();
        assert_eq!(found, ["y, [z", "w", "q"]);
    }

    #[test]
    fn what_must_not_hold_is_left_alone() {
        let text = r#"{"anti": ["x", {"text": "y"}], "must": {"not": ["z"]}, "b": ["w"]}"#;
        let found: Vec<String> = places(text).into_iter().map(|place| place.sentence).collect();
        assert_eq!(found, ["w"]);
    }

    #[test]
    fn a_wrapper_is_replaced_as_a_whole() {
        let text = r#"{"b": [{"id": 1, "text": "Asks a question"}, "Asks a question"]}"#;
        let check = suggestion("Asks a question").unwrap();
        let wanted = [("Asks a question", check.clone()), ("Asks a question", check)];
        let (changed, count) = replaced(text, &places(text), &wanted);
        assert_eq!(count, 2);
        let value: Value = serde_json::from_str(&changed).unwrap();
        assert_eq!(value["b"][0], value["b"][1]);
        assert_eq!(value["b"][0]["questions"]["min"], 1);
    }
}
