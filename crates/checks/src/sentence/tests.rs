//! Tests of what sentences mean, on sentences labelled by hand.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Labelled by hand before the rules were written: the check, or `judge`.
const SENTENCES: &str = include_str!("sentences.tsv");

/// Labelled after the rules were written, to catch what they should leave alone.
const LATER: &str = include_str!("sentences_later.tsv");

/// The number of sentences, and of those that are decided correctly, wrongly, and not at all.
fn tally(sentences: &'static str) -> (usize, usize, Vec<String>, Vec<&'static str>) {
    let (mut right, mut wrong, mut missed) = (0, Vec::new(), Vec::new());
    for line in sentences.lines() {
        let (label, sentence) = line.split_once('\t').unwrap();
        let label = (label != "judge").then(|| {
            let value: Value = serde_json::from_str(label).unwrap();
            check::read(&value).unwrap_or_else(|faults| panic!("{label}: {faults:?}"))
        });
        match (check_of(sentence), label) {
            (Some(found), Some(label)) if found == label => right += 1,
            (Some(found), _) => wrong.push(format!("{sentence}: {found:?}")),
            (None, Some(_)) => missed.push(sentence),
            (None, None) => {}
        }
    }
    (sentences.lines().count(), right, wrong, missed)
}

#[test]
fn what_is_decided_by_rule_is_right() {
    for (sentences, least) in [(SENTENCES, 300), (LATER, 80)] {
        let (all, right, wrong, missed) = tally(sentences);
        let decided = right + wrong.len();
        assert!(all >= least, "{all}");
        assert!(decided * 5 >= all, "{decided} of {all} are decided, not: {missed:#?}");
        assert!(right * 100 >= decided * 98, "{right} of {decided} are right, not: {wrong:#?}");
    }
}

#[test]
fn one_word_more_and_it_is_left_to_the_judge() {
    for sentence in [
        "The answer contains \"a\"",
        "The response is at most 50 words",
        "The file `a.md` was created",
        "The `Bash` tool is not called",
    ] {
        assert!(check_of(sentence).is_some(), "{sentence}");
        for more in ["if asked", "or similar", "(unless told otherwise)", "and explains why"] {
            assert_eq!(check_of(&format!("{sentence} {more}")), None, "{sentence} {more}");
        }
        assert_eq!(check_of(&format!("Ideally, {sentence}")), None, "{sentence}");
    }
}

#[test]
fn blanks_and_broken_quotes_are_not_literals() {
    for sentence in [
        "The answer contains \"feat(<scope>)\"",
        "The answer contains \"...\"",
        "The answer contains \"Dear {name}\"",
        "The answer contains \"open",
        "The answer contains \"\"",
        "The answer contains `a`b",
        "Creates `../outside.md`",
        "Creates `the thing`",
        "The response exceeds 50 words",
        "Uses the `jq` tool",
        "The `docker` tool is not used",
    ] {
        assert_eq!(check_of(sentence), None, "{sentence}");
    }
}

proptest! {
    #[test]
    fn any_sentence_is_read_or_left(sentence in "\\PC{0,80}", literal in "\\PC{0,20}") {
        let _ = check_of(&sentence);
        let _ = check_of(&format!("The answer contains \"{literal}\""));
        let _ = check_of(&format!("The answer is at most {literal} words"));
    }
}
