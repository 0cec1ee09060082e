//! Translates sentences with an unambiguous meaning into checks.
//!
//! A sentence becomes a check only if all of it is understood. Quoted literals, paths and names that
//! only code spells so are taken out, its verb is brought into one form, and the rest must match one of
//! the known forms from the first word to the last. One additional word ("… in the first line", "… or
//! similar") leaves it to the judge. Nothing is guessed from keywords.
//!
//! Sentences about loading a skill, and about the data in a file (`data.rs`), have patterns of their
//! own, which come first.

mod data;
mod form_parts;
mod forms;
mod skeleton;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::check::{self, Check};
use skeleton::{SentenceSkeleton, is_path, regex};

/// Longer sentences usually say more than one thing.
const MAX_SENTENCE: usize = 300;

/// Suffix of the name of a check that a rule made of a sentence.
pub const BY_RULE_SUFFIX: &str = " (by rule)";

/// Returns the check that a sentence means, if that is unambiguous.
pub fn check_of(sentence: &str) -> Option<Check> {
    check_in(sentence, &SentenceContext::default())
}

/// Returns the check that a sentence means in its case, if that is unambiguous.
pub fn check_in(sentence: &str, context: &SentenceContext) -> Option<Check> {
    let sentence = sentence.trim();
    if sentence.len() > MAX_SENTENCE || sentence.contains('\n') {
        return None;
    }
    if let Some(skill) = skill_check(sentence, context) {
        return check::read(&skill).ok();
    }
    if let Some(data) = data::data_check(sentence, context) {
        return check::read(&data).ok();
    }
    let skeleton = SentenceSkeleton::of(sentence, context)?;
    forms::check_of_form(&skeleton)
}

/// What a case says around a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentenceContext {
    /// The only data file that the case names, if the case asks for it.
    pub data_file: Option<String>,
    /// Name of the skill under test.
    pub skill: Option<String>,
    /// Names of other skills that the case is about.
    pub others: Vec<String>,
    /// Where the text may be that a sentence is about, besides in the answer.
    work: WrittenWork,
}

/// The files that a case asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum WrittenWork {
    /// None: the answer is all there is.
    #[default]
    None,
    /// Some, or what it asks for is not clear.
    Some,
}

/// A file that is written: "saves the plan to plan.md".
static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:save|saving|write|writing|create|creating|generate|generating|export|produce|producing|output|put|store|storing|deliver)\w*\b(?P<between>[^.\n]{0,80}?)[\s`'\x22(](?P<path>[A-Za-z0-9_@./-]*[A-Za-z0-9_-]\.[A-Za-z][A-Za-z0-9]{0,9})\b",
    )
});
/// Words after which a file is what is read: "write a summary of notes.md".
static IS_READ: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:of|from|about|for|with|on|in|by|via|using|based|than|like|per|read|see|after)\b",
    )
});
/// A question, to which the answer is all that is asked for.
static QUESTION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)^\W*(?:what|which|who|when|where|why|how|is|are|does|do|can|should|explain|tell|list|name|compare|describe)\b",
    )
});
/// A request for work, or for a file that it does not name.
static WORK: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:creat\w*|writ\w*|rewrite|generate|implement|build|scaffold|add|refactor|fix|update|migrate|convert|port|set up|save|edit|modify|change|make|produce|draft|design|render|export|translate|prepare|put|store|send|files?|folders?|director(?:y|ies)|scripts?|reports?|documents?|readme|spreadsheets?|slides?)\b",
    )
});

/// Returns true if a text names a file or a folder.
fn names_path(text: &str) -> bool {
    text.split_whitespace().any(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '.');
        let word = word.trim_end_matches('.');
        is_path(word) || word.contains('/')
    })
}

impl SentenceContext {
    /// Reads the texts of a case: what is asked, and everything else that it says.
    pub fn of<'t>(
        prompt: &'t str,
        texts: impl IntoIterator<Item = &'t str>,
        skill: Option<&str>,
    ) -> Self {
        let mut data_files = BTreeSet::new();
        let mut written = BTreeSet::new();
        let mut is_written = false;
        // Most texts name no file, which is cheap to see.
        let with_dot = |text: &&str| text.contains('.');
        for text in texts.into_iter().chain([prompt]).filter(with_dot) {
            data_files.extend(data::files(text).map(ToOwned::to_owned));
            for found in WRITTEN.captures_iter(text).filter(|found| is_path(&found["path"])) {
                is_written = true;
                if !IS_READ.is_match(&found["between"]) {
                    written.insert(found["path"].to_owned());
                }
            }
        }
        let mut files = data_files.into_iter();
        // With several data files it is open which of them a key belongs to.
        let data_file =
            files.next().filter(|file| files.next().is_none() && written.contains(file));
        let is_question =
            QUESTION.is_match(prompt) && !WORK.is_match(prompt) && !names_path(prompt);
        let work = if is_question && !is_written { WrittenWork::None } else { WrittenWork::Some };
        Self { data_file, skill: skill.map(ToOwned::to_owned), others: Vec::new(), work }
    }

    /// Returns true for the name of a skill that the case is about.
    fn is_skill(&self, name: &str) -> bool {
        self.skill.iter().chain(&self.others).any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// The skill is what the sentence is about.
static PASSIVE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?ix)^(?:the\s)?(?:(?P<quote>[`"'])?(?P<name>[a-z0-9][a-z0-9_:-]*)[`"']?\s)?skill\s
        (?:(?:is|was|gets|got|has\sbeen|should|must|does|did|will)(?P<not>\snot|n't)?\s(?:be\s|been\s|get\s)?)?(?P<not2>not\s)?
        (?:triggered|loaded|activated|invoked|used|selected|consulted|trigger|load|activate|triggers|activates|loads)\.?$"#,
    )
});

/// The agent is, or is left out.
static ACTIVE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?ix)^(?:(?:the\s)?(?:agent|assistant|model|claude)\s)?
        (?P<not>(?:does|did|should|must)\snot\s|(?:does|did|should|must)n't\s|never\s|(?:answers|answered|responds|responded)\swithout\s)?
        (?:should\s|must\s)?(?:correctly\s)?
        (?:loads?|loaded|loading|triggers?|triggered|triggering|activates?|activated|activating|invokes?|invoked|invoking|selects?|selected|selecting|uses?|used|using|consults?|consulted)\s
        (?:the\s)?(?:(?P<quote>[`"'])?(?P<name>[a-z0-9][a-z0-9_:-]*)[`"']?)?(?P<word>\s?skill)?\.?$"#,
    )
});

/// The file of a skill is read.
static FILE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?ix)^(?:(?:the\s)?(?:agent|assistant|model|claude)\s)?(?P<not>(?:does|did|should|must)\snot\s|never\s)?(?:should\s|must\s)?
        (?:reads?|opens?|opened|loads?|loaded)\s(?:the\s)?(?:file\s)?`?(?:(?:[a-z0-9_.@-]+/)*(?P<name>[a-z0-9][a-z0-9_-]*)/)?(?P<skill_file>skill\.md)`?\.?$",
    )
});

/// Words before "skill" that are no name.
const NOT_NAMES: [&str; 16] = [
    "the",
    "a",
    "this",
    "that",
    "right",
    "correct",
    "wrong",
    "other",
    "same",
    "any",
    "new",
    "no",
    "appropriate",
    "its",
    "another",
    "relevant",
];

/// Returns the check of a skill that a sentence states.
fn skill_check(sentence: &str, context: &SentenceContext) -> Option<Value> {
    // Most sentences name no skill, which is cheap to see.
    let has = |name: &str| sentence.to_lowercase().contains(&name.to_lowercase());
    if !has("skill") && !context.skill.iter().chain(&context.others).any(|name| has(name)) {
        return None;
    }
    let plain = PASSIVE.captures(sentence).or_else(|| FILE.captures(sentence));
    let is_active = plain.is_none();
    let is_file = plain.as_ref().is_some_and(|found| found.name("skill_file").is_some());
    let found = plain.or_else(|| ACTIVE.captures(sentence))?;
    let group = |name: &str| found.name(name).map(|text| text.as_str());
    // "Loads the skill" has no name but the word.
    let name = group("name").filter(|name| !name.eq_ignore_ascii_case("skill"));
    let has_word = group("word").is_some() || name != group("name");
    let is_certain = |name: &str| {
        name.contains(['-', '_', ':'])
            || group("quote").is_some()
            || is_file
            || context.is_skill(name)
    };
    // "Uses memory" may mean many things.
    let is_told = |name: &str| {
        let is_marked = name.contains(['-', '_', ':']) || group("quote").is_some();
        has_word || is_marked && context.is_skill(name)
    };
    let name = match name {
        Some(name) if NOT_NAMES.contains(&name.to_lowercase().as_str()) => return None,
        // "The expected skill" names none.
        Some(name) if !is_certain(name) || is_active && !is_told(name) => return None,
        Some(name) => name.to_owned(),
        None if is_active && !has_word => return None,
        None => context.skill.clone()?,
    };
    let loaded = json!({ "skill_loaded": name });
    let is_negative = found.name("not").or(found.name("not2")).is_some();
    Some(if is_negative { json!({ "not": loaded }) } else { loaded })
}

#[cfg(test)]
mod tests {
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
                    Some([there, lacks]) if there.get("file_exists").is_some() => {
                        Some(lacks.clone())
                    }
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
        assert_eq!(counts, [(320, 103), (123, 52)]);
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

    #[test]
    fn only_one_file_can_be_meant() {
        let of = |prompt: &str| SentenceContext::of(prompt, [], None).data_file;
        assert_eq!(
            SentenceContext::of("Write caseplan.json", ["caseplan.json.version === '1'"], None)
                .data_file
                .as_deref(),
            Some("caseplan.json")
        );
        assert_eq!(of("Write a.json and b.yaml"), None);
        assert_eq!(of("Write a plan"), None);
        assert_eq!(of("Write a summary of a.json"), None, "it is read");
        assert_eq!(of("Explain a.json"), None);
    }

    #[test]
    fn only_a_question_asks_for_no_file() {
        for (prompt, wanted) in [
            ("What is the capital of France?", WrittenWork::None),
            ("Compare tea with coffee.", WrittenWork::None),
            ("Summarise it and save the summary to out/sum.md.", WrittenWork::Some),
            ("Write a short summary of notes.md", WrittenWork::Some),
            ("What does src/main.rs do?", WrittenWork::Some),
            ("Can you draft a plan?", WrittenWork::Some),
            ("Implement the parser", WrittenWork::Some),
            ("Schreibe ein Skript app.py", WrittenWork::Some),
            ("", WrittenWork::Some),
        ] {
            assert_eq!(SentenceContext::of(prompt, [], None).work, wanted, "{prompt}");
        }
    }

    #[test]
    fn a_skill_is_known_by_the_word_or_by_its_name() {
        let mut context = SentenceContext::of("", [], Some("ferry-times"));
        context.others.push("tide".to_owned());
        for (sentence, wanted) in [
            ("The skill was triggered", json!({"skill_loaded": "ferry-times"})),
            ("Selected ferry-times", json!({"skill_loaded": "ferry-times"})),
            ("Does not select ferry-times.", json!({"not": {"skill_loaded": "ferry-times"}})),
            (
                "Answered without invoking ferry-times",
                json!({"not": {"skill_loaded": "ferry-times"}}),
            ),
            ("Invokes the `bus` skill", json!({"skill_loaded": "bus"})),
            ("Reads SKILL.md", json!({"skill_loaded": "ferry-times"})),
            ("Reads skills/tide/SKILL.md", json!({"skill_loaded": "tide"})),
            ("The skill should not trigger", json!({"not": {"skill_loaded": "ferry-times"}})),
            ("Uses `tide`", json!({"skill_loaded": "tide"})),
        ] {
            assert_eq!(skill_check(sentence, &context), Some(wanted), "{sentence}");
        }
        for sentence in [
            "Uses tide",
            "Invokes the bus skill",
            "The expected skill was triggered",
            "Every skill was loaded",
            "The matching skill was not triggered",
            "Selects bus-times",
            "Uses the appropriate skill",
            "Loads the skill only when needed",
            "Selects ferry-times rather than a generic skill",
            "Uses skills",
        ] {
            assert_eq!(skill_check(sentence, &context), None, "{sentence}");
        }
    }
}
