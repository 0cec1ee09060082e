//! Measures precision and recall on two labelled sets of messages written for this test. The rules
//! were tuned on `tuned.tsv`; `held_out.tsv` was written before them and only measured.
//! `docs/maintain-skills.md` contains the numbers, which this test recomputes.
//!
//! The author of the rules also wrote both sets, so results on other messages will be worse.

use std::fmt::Write as _;

use super::{AgentTurn, RequestWords, classify_objection, classify_signals};
use selftest_stats::wilson;

const TUNED: &str = include_str!("tuned.tsv");
const HELD_OUT: &str = include_str!("held_out.tsv");

/// Returns label, language and message of each line.
fn rows(half: &'static str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    half.lines().map(|line| {
        let mut fields = line.splitn(3, '\t');
        let mut next = || fields.next().unwrap();
        (next(), next(), next())
    })
}

/// Formats a table cell: `0.95 (19/20)`.
fn rate(part: u32, whole: u32) -> String {
    let Some(ends) = wilson(part, whole) else { return "0/0".to_owned() };
    let rate = f64::from(part) / f64::from(whole);
    format!("{part}/{whole} = {rate:.2} ({:.2} to {:.2})", ends.low, ends.high)
}

/// Counts hits, flagged messages and labelled messages of a signal in a language.
fn count(half: &'static str, label: &str, languages: &[&str]) -> (u32, u32, u32) {
    let (mut hits, mut flagged, mut labelled) = (0, 0, 0);
    for (own, language, message) in rows(half) {
        if !languages.contains(&language) {
            continue;
        }
        let signals = classify_signals(&message.replace("\\n", "\n"), Some("sort it"), None);
        let is_flagged = if label == "f" { signals.frustration } else { signals.gratitude };
        flagged += u32::from(is_flagged);
        labelled += u32::from(own == label);
        hits += u32::from(is_flagged && own == label);
    }
    (hits, flagged, labelled)
}

#[test]
fn the_published_numbers_are_what_the_rules_do() {
    let mut table = String::new();
    for (half, name) in [(TUNED, "tuned"), (HELD_OUT, "held out")] {
        for languages in [&["en"][..], &["de"], &["fr"], &["es"], &["zh"], &["ja"]] {
            for (label, signal) in [("f", "frustration"), ("g", "gratitude")] {
                let (hits, flagged, labelled) = count(half, label, languages);
                let (precision, recall) = (rate(hits, flagged), rate(hits, labelled));
                let language = languages[0];
                let _ =
                    writeln!(table, "| {name} | {language} | {signal} | {precision} | {recall} |");
            }
        }
    }
    println!("{table}");
    let docs = include_str!("../../../../../docs/maintain-skills.md");
    for line in table.lines() {
        assert!(docs.contains(line), "docs/maintain-skills.md lacks:\n{table}");
    }
}

#[test]
fn english_frustration_is_right_and_found() {
    for half in [TUNED, HELD_OUT] {
        let (hits, flagged, labelled) = count(half, "f", &["en"]);
        assert!(f64::from(hits) >= 0.9 * f64::from(flagged), "{hits} of {flagged}");
        assert!(f64::from(hits) >= 0.5 * f64::from(labelled), "{hits} of {labelled}");
    }
}

/// Limits the number of misread messages in the tuned set.
#[test]
fn few_of_the_tuned_messages_are_misread() {
    let mut misread = String::new();
    for (label, language, message) in rows(TUNED) {
        let signals = classify_signals(message, Some("sort it"), None);
        let said = match (signals.frustration, signals.gratitude) {
            (true, _) => "f",
            (false, true) => "g",
            (false, false) => "n",
        };
        if said != label {
            let _ = writeln!(misread, "{language}: {label} read as {said}: {message}");
        }
    }
    assert!(misread.lines().count() <= 12, "\n{misread}");
}

/// Objections and friendly messages of our own: what the agent did, the request before, and the
/// message. A part of both was written before the rules that it tests; all were looked at since.
const OBJECTIONS: &str = include_str!("objections.tsv");

#[test]
fn objections_are_told_from_new_tasks_questions_and_praise() {
    let (mut hits, mut labelled, mut false_alarms) = (0, 0, String::new());
    for line in OBJECTIONS.lines() {
        let mut fields = line.splitn(4, '\t').map(|field| field.replace("\\n", "\n"));
        let mut next = || fields.next().unwrap();
        let (label, turn, request, message) = (next(), next(), next(), next());
        let turn = AgentTurn { has_worked: turn == "work", ..AgentTurn::default() };
        let request = RequestWords::from_message(&request);
        let is_found = classify_objection(&message, Some(&request), turn).0.is_some();
        let is_objection = label == "o";
        labelled += u32::from(is_objection);
        hits += u32::from(is_objection && is_found);
        if is_found && !is_objection {
            let _ = writeln!(false_alarms, "{message}");
        }
    }
    assert!(false_alarms.lines().count() <= 2, "{false_alarms}");
    assert!(f64::from(hits) >= 0.85 * f64::from(labelled), "{hits} of {labelled}");
}
