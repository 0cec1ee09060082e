//! How many made-up keys redaction finds of kinds that its rules' author had not seen, and how much of
//! recorded sessions it takes for keys that are none. `docs/security.md` has the numbers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use selftest_text::redact::{REDACTED, Redactor};

use crate::real_sessions;

/// Least percentage of the keys that are found.
const FOUND: usize = 95;
/// Most distinct tokens that are taken for secrets in a thousand texts.
const TAKEN_OF_THOUSAND: usize = 5;

struct Made {
    is_test: bool,
    rule: String,
    key: String,
    line: String,
}

/// The list of `scripts/held_out_keys.py`.
fn held_out() -> Vec<Made> {
    let text = include_str!("fixtures/held_out_keys.tsv");
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let [half, rule, key, line] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("four columns: {line}");
            };
            let line: String = serde_json::from_str(line).unwrap();
            let (is_test, rule) = (half == "test", rule.to_owned());
            Made { is_test, rule, key: backwards(key), line: backwards(&line) }
        })
        .collect()
}

#[test]
fn nine_of_ten_keys_of_unseen_kinds_are_found() {
    let redactor = Redactor::default();
    let all = held_out();
    for is_test in [false, true] {
        let half: Vec<&Made> = all.iter().filter(|made| made.is_test == is_test).collect();
        let is_left = |made: &&&Made| redactor.apply(&made.line).contains(&made.key);
        let left: Vec<&str> = half.iter().filter(is_left).map(|made| made.rule.as_str()).collect();
        let found = half.len() - left.len();
        println!("test half: {is_test}; found {found} of {}; left: {left:?}", half.len());
        assert!(half.len() > 90 && found * 100 >= half.len() * FOUND, "{found}: {left:?}");
        for made in &half {
            let once = redactor.apply(&made.line).into_owned();
            assert_eq!(redactor.apply(&once), once, "twice: {}", made.rule);
        }
    }
}

#[test]
fn recorded_sessions_lose_next_to_nothing() {
    let Some(folder) = real_sessions::sessions() else { return };
    let mut texts = BTreeSet::new();
    collect(&folder, &mut texts);
    let redactor = Redactor::default();
    let mut taken = BTreeSet::new();
    for text in &texts {
        let redacted = redactor.apply(text);
        let mut rest = text.as_str();
        for kept in redacted.split(REDACTED).filter(|kept| !kept.is_empty()) {
            let Some((token, behind)) = rest.split_once(kept) else { break };
            if !token.is_empty() {
                taken.insert(token.to_owned());
            }
            rest = behind;
        }
        if !rest.is_empty() && redacted.ends_with(REDACTED) {
            taken.insert(rest.to_owned());
        }
    }
    println!("{} distinct tokens in {} texts", taken.len(), texts.len());
    assert!(texts.len() > 10_000, "{}", texts.len());
    assert!(taken.len() * 1000 < texts.len() * TAKEN_OF_THOUSAND, "{taken:#?}");
}

/// The texts of all files of a folder.
fn collect(folder: &Path, texts: &mut BTreeSet<String>) {
    for item in fs::read_dir(folder).unwrap().flatten() {
        let path = item.path();
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_none_or(|kind| kind != "tsv")
            && let Ok(bytes) = fs::read(&path)
        {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            match serde_json::from_str::<Value>(&text) {
                Ok(value) => strings(&value, texts),
                Err(_) => lines(&text, texts),
            }
        }
    }
}

fn lines(text: &str, texts: &mut BTreeSet<String>) {
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str::<Value>(line) {
            Ok(value) => strings(&value, texts),
            Err(_) => {
                texts.insert(line.to_owned());
            }
        }
    }
}

fn strings(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.len() >= 8 => {
            texts.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, texts)),
        Value::Object(members) => members.values().for_each(|member| strings(member, texts)),
        _ => {}
    }
}
