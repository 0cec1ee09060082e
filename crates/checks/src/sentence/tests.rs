//! Tests of what sentences mean, on sentences labelled by hand.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Labelled by hand: the check, or `judge`. Some labels were rewritten to what later rules give, so this
/// is a test against change, not a measure.
const SENTENCES: &str = include_str!("sentences.tsv");

/// Labelled after the rules were written, to catch what they should leave alone. Some of these labels were
/// rewritten too.
const LATER: &str = include_str!("sentences_later.tsv");

/// Returns a check without what was added to all checks of its kind after the labels: the ends of words,
/// and that a file must be there to lack a text.
fn as_labelled(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("\\b", "")),
        Value::Array(items) => Value::Array(items.into_iter().map(as_labelled).collect()),
        Value::Object(mut members) => {
            let lacks = match members.get("all").and_then(Value::as_array).map(Vec::as_slice) {
                Some([there, lacks]) if there.get("file_exists").is_some() => Some(lacks.clone()),
                _ => None,
            };
            if let Some(lacks) = lacks.filter(|lacks| lacks.get("not").is_some()) {
                return as_labelled(lacks);
            }
            for value in members.values_mut() {
                *value = as_labelled(value.take());
            }
            Value::Object(members)
        }
        other => other,
    }
}

fn is_as_labelled(found: &Check, label: &Check) -> bool {
    let value = |check: &Check| as_labelled(serde_json::to_value(check).unwrap());
    value(found) == value(label)
}

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
            (Some(found), Some(label)) if is_as_labelled(&found, &label) => right += 1,
            (Some(found), _) => wrong.push(format!("{sentence}: {found:?}")),
            (None, Some(_)) => missed.push(sentence),
            (None, None) => {}
        }
    }
    (sentences.lines().count(), right, wrong, missed)
}

#[test]
fn what_is_decided_by_rule_is_right() {
    let mut counts = Vec::new();
    for (sentences, least) in [(SENTENCES, 300), (LATER, 80)] {
        let (all, right, wrong, missed) = tally(sentences);
        let decided = right + wrong.len();
        assert!(all >= least, "{all}");
        assert!(decided * 5 >= all, "{decided} of {all} are decided, not: {missed:#?}");
        assert!(wrong.is_empty(), "{right} of {decided} are right, not: {wrong:#?}");
        counts.push((all, right));
    }
    // The first of these is in docs/evals.md.
    assert_eq!(counts, [(316, 100), (123, 52)]);
}

/// Returns the check of a sentence without a case, as in a suite.
fn value_of(sentence: &str) -> Value {
    let check = check_of(sentence).unwrap_or_else(|| panic!("{sentence}"));
    serde_json::json!({ check.kind.name(): check.kind.value() })
}

/// Returns true if the pattern of the check of a sentence is in a text.
fn finds(sentence: &str, text: &str) -> bool {
    let seen = check::CheckObservation { output: text, ..check::CheckObservation::default() };
    let check = check_of(sentence).unwrap_or_else(|| panic!("{sentence}"));
    check::decide(&check, &seen).outcome == check::CheckOutcome::Held
}

#[test]
fn a_literal_is_no_part_of_another() {
    for (sentence, held, failed) in [
        ("The answer contains \"just\"", "It is just so", "adjust it"),
        ("The answer does not contain the word \"just\"", "adjust it", "Just so"),
        ("The answer states \"5\"", "There are 5.", "There are 15."),
        ("The answer has a \"Test\" section", "## 🚀 Test\na", "Testing was skipped."),
        ("The answer has a \"Test\" section", "a\nTest:\nb", "Test it first."),
        ("The answer contains a Java code block", "```java\na\n```", "```javascript\na\n```"),
        ("The answer contains a bash code block", "```sh\na\n```", "```shrimp\na\n```"),
        ("The answer contains a table", "│ a │ b │", "│   └── src"),
        ("The answer contains a link", "See [here](docs/a.md).", "See here."),
    ] {
        assert!(finds(sentence, held), "{sentence}: {held}");
        assert!(!finds(sentence, failed), "{sentence}: {failed}");
    }
    for (sentence, wanted) in [
        (
            "README.md mentions \"rollback\"",
            r#"{"file_matches":{"path":"README.md","pattern":"(?i)\\brollback\\b"}}"#,
        ),
        (
            "`report.md` does not contain \"TODO\"",
            r#"{"all":[{"file_exists":"report.md"},{"not":{"file_contains":{"path":"report.md","text":"TODO"}}}]}"#,
        ),
        (
            "Only `a.md` is modified",
            r#"{"all":[{"only_changes":["a.md"]},{"any":[{"file_changed":"a.md"},{"file_created":"a.md"},{"file_deleted":"a.md"}]}]}"#,
        ),
        (
            "Adds the `parse()` function to util.py",
            r#"{"all":[{"any":[{"file_created":"util.py"},{"file_changed":"util.py"}]},{"file_contains":{"path":"util.py","text":"parse"}}]}"#,
        ),
    ] {
        let wanted: Value = serde_json::from_str(wanted).unwrap();
        let wanted = check::read(&wanted).unwrap();
        assert_eq!(check_of(sentence), Some(wanted), "{sentence}: {}", value_of(sentence));
    }
}

/// Sentences of docs/evals.md, in the table of kinds that are understood.
#[test]
fn what_the_page_says_is_understood() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evals.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = page.split("| About | Such as |").nth(1).unwrap();
    let table = table.split("\n\n").next().unwrap();
    let mut context = SentenceContext::of("When does it leave?", [], Some("ferry"));
    context.others.push("ferry-times".to_owned());
    let sentences: Vec<&str> = table.split('`').skip(1).step_by(2).collect();
    assert!(sentences.len() > 15, "{sentences:?}");
    for sentence in sentences {
        assert!(check_in(sentence, &context).is_some(), "{sentence}");
    }
}

#[test]
fn where_a_reader_may_doubt_the_judge_decides() {
    for sentence in [
        "Should not avoid mentioning \"risk\"",
        "Mentions the \"Refund Policy\" section",
        "Does not modify the source file",
        "No files were written",
        "Avoids `git push --force`",
        "The message starts with \"fix:\"",
        "Runs \"the tests\"",
        "Runs `parse_date`",
        "Does not run `npm test`",
        "States the \"why\"",
        "config.yaml is valid JSON",
        "The expected skill was triggered",
        "Reads SKILL.md",
        "Reads SKILL.md and a.md",
        "The file outlet/a.md exists in out/",
    ] {
        assert_eq!(check_of(sentence), None, "{sentence}");
    }
    for sentence in ["Runs \"npm test\"", "Runs `make all`", "Runs `scripts/a.sh`"] {
        assert!(check_of(sentence).is_some(), "{sentence}");
    }
    let asked = SentenceContext::of("Create index.html and style.css", [], None);
    for sentence in [
        "Mentions \"budget\"",
        "The output mentions \"budget\"",
        "The output is valid JSON",
        "The output contains the number 42",
        "The output contains \"a\" (case-insensitive)",
        "The first line is \"a\"",
        "Contains a table",
    ] {
        assert_eq!(check_in(sentence, &asked), None, "{sentence}");
        assert!(check_of(sentence).is_some(), "{sentence}");
    }
    assert!(check_in("The answer mentions \"budget\"", &asked).is_some());
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
