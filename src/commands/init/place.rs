//! Finds where the answer stands in the JSON that a program prints or a server sends. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use super::task_api::OUTPUTS;

/// Names of the pieces of an answer in a stream.
const PIECES: [&str; 3] = ["delta", "token", "chunk"];

/// Names of members around an answer.
const AROUND: [&str; 3] = ["data", "choices", "delta"];

/// Most members deep that an answer is looked for.
const MAX_DEPTH: usize = 4;

/// Returns the JSON Pointer to the answer in one document; `None` if its place is not plain.
pub(super) fn of_answer(document: &Value) -> Option<String> {
    // A line of a log.
    if document.get("level").is_some() {
        return None;
    }
    let names = OUTPUTS.iter().chain(&PIECES);
    let mut level = vec![(String::new(), document)];
    for _ in 0..MAX_DEPTH {
        // The least deep text with the likeliest name.
        for name in names.clone() {
            let is_text = |(_, value): &&(String, &Value)| {
                value.get(*name).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
            };
            if let Some((pointer, _)) = level.iter().find(is_text) {
                return Some(format!("{pointer}/{name}"));
            }
        }
        level = level.iter().flat_map(|(pointer, value)| below(pointer, value)).collect();
    }
    None
}

/// Returns the members of a value in which an answer may stand.
fn below<'a>(pointer: &str, value: &'a Value) -> Vec<(String, &'a Value)> {
    let names = OUTPUTS.iter().chain(&AROUND);
    let mut inner = Vec::new();
    for name in names {
        let Some(member) = value.get(*name) else { continue };
        let pointer = format!("{pointer}/{name}");
        match member {
            Value::Object(_) => inner.push((pointer, member)),
            // The first of a list that has no other.
            Value::Array(all) if all.len() == 1 => inner.push((format!("{pointer}/0"), &all[0])),
            _ => {}
        }
    }
    inner
}

/// Returns the JSON Pointer to the pieces of the answer in the events of a stream: the place that
/// most of them have.
pub(super) fn of_pieces(events: &[Value]) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for pointer in events.iter().filter_map(of_answer) {
        *counts.entry(pointer).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(pointer, _)| pointer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_place_of_an_answer() {
        for (document, pointer) in [
            (json!({"answer": "At 9.", "model": "m"}), Some("/answer")),
            (json!({"status": "ok", "data": {"reply": "At 9."}}), Some("/data/reply")),
            (
                json!({"choices": [{"message": {"role": "x", "content": "At 9."}}]}),
                Some("/choices/0/message/content"),
            ),
            (json!({"output": {"text": "At 9."}, "message": "ok"}), Some("/message")),
            (json!({"level": "info", "message": "started"}), None),
            (json!({"messages": ["hello", "At 9."]}), None),
            (json!({"answer": ""}), None),
            (json!(["At 9."]), None),
        ] {
            assert_eq!(of_answer(&document).as_deref(), pointer, "{document}");
        }
    }

    #[test]
    fn the_place_of_pieces() {
        let events = [
            json!({"type": "start"}),
            json!({"delta": "At "}),
            json!({"delta": "9."}),
            json!({"text": "usage"}),
        ];
        assert_eq!(of_pieces(&events).as_deref(), Some("/delta"));
        assert_eq!(of_pieces(&[]), None);
    }
}
