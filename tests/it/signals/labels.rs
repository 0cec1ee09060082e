//! Precision and recall on 300 recorded messages that were read and labelled, against the naive
//! reading of the specification: the tables of `docs/maintain-skills.md` are what the code computes.
//!
//! The messages are no part of the project, only their SHA-256 and the labels are. Their folder is
//! found as in `real_sessions.rs`; without it this test is skipped.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use selftest_grading::signal::{
    AgentTurn, RequestWords, classify_frustration, classify_gratitude, classify_objection,
    classify_repetition,
};
use selftest_sessions::{EventOrigin, EventRole, SessionCollector, find_session_files, read};
use selftest_stats::wilson;
use selftest_text::digest;

use crate::real_sessions::sessions;

const LABELS: &str = include_str!("../fixtures/signal_labels.csv");

/// A labelled message: its hash and that of the one before it, which may be empty, who wrote it,
/// and the three labels.
struct Label {
    message: &'static str,
    previous: &'static str,
    source: &'static str,
    gratitude: bool,
    repetition: Option<bool>,
    frustration: bool,
}

fn labels() -> Vec<Label> {
    let rows = LABELS.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let label = |row: Vec<&'static str>| {
        let [message, previous, source, _drawn, gratitude, repetition, frustration] = row[..]
        else {
            panic!("{row:?}")
        };
        let flag = |text: &str| match text {
            "1" => Some(true),
            "0" => Some(false),
            "" => None,
            other => panic!("{other}"),
        };
        Label {
            message,
            previous,
            source,
            gratitude: flag(gratitude).unwrap(),
            repetition: flag(repetition),
            frustration: flag(frustration).unwrap(),
        }
    };
    rows.map(label).collect()
}

/// Every message of a person in the recorded sessions with the one before it, by their hashes.
fn messages(folder: &Path) -> HashMap<(String, String), (String, String)> {
    let mut found = HashMap::new();
    for file in find_session_files(&[folder.to_owned()], |problem| panic!("{problem}")) {
        let mut collector = SessionCollector::default();
        if read(&file.source, &mut collector).is_err() {
            continue;
        }
        for session in collector.into_sessions() {
            let (mut previous, mut previous_hash) = (String::new(), String::new());
            for event in &session.events {
                let text = event.text.as_str();
                let is_human = event.role == EventRole::User && event.origin == EventOrigin::Human;
                if !is_human || text.trim().is_empty() {
                    continue;
                }
                let hash = digest::sha256_hex(text.as_bytes());
                found.insert(
                    (hash.clone(), previous_hash.clone()),
                    (text.to_owned(), previous.clone()),
                );
                (previous, previous_hash) = (text.to_owned(), hash);
            }
        }
    }
    found
}

/// The specification to the letter: substrings of the text in lower case.
mod naive {
    use std::collections::HashSet;

    pub(super) fn gratitude(message: &str) -> bool {
        let patterns = [
            "thank",
            "thanks",
            "thx",
            "ty",
            "perfect",
            "great job",
            "awesome",
            "exactly what i needed",
            "love it",
            "nice",
        ];
        contains_any(message, &patterns)
    }

    pub(super) fn frustration(message: &str) -> bool {
        let patterns = [
            "that's wrong",
            "no that's not",
            "you misunderstood",
            "try again",
            "not what i asked",
            "still wrong",
            "ugh",
            "come on",
            "wtf",
            "seriously?",
        ];
        contains_any(message, &patterns)
    }

    pub(super) fn repetition(current: &str, previous: &str) -> bool {
        let (current, previous) = (current.to_lowercase(), previous.to_lowercase());
        let (a, b) = (words(&current), words(&previous));
        // Over one half.
        2 * a.intersection(&b).count() > a.union(&b).count()
    }

    fn contains_any(message: &str, patterns: &[&str]) -> bool {
        let message = message.to_lowercase();
        patterns.iter().any(|pattern| message.contains(pattern))
    }

    fn words(text: &str) -> HashSet<&str> {
        let stopwords = "the a an is was are were do does did can could would should please just \
                         me my i";
        let stopwords: HashSet<&str> = stopwords.split(' ').collect();
        text.split_whitespace().filter(|word| !stopwords.contains(word)).collect()
    }
}

/// How a classifier did.
#[derive(Default)]
struct Outcome {
    right: u32,
    false_alarms: u32,
    missed: u32,
}

impl Outcome {
    fn of(pairs: impl Iterator<Item = (bool, bool)>) -> Self {
        pairs.fold(Self::default(), |mut outcome, (said, label)| {
            outcome.right += u32::from(said && label);
            outcome.false_alarms += u32::from(said && !label);
            outcome.missed += u32::from(!said && label);
            outcome
        })
    }

    fn cells(&self) -> String {
        let share = |of: u32| match wilson(self.right, of) {
            Some(interval) => {
                let rate = f64::from(self.right) / f64::from(of);
                let (low, high) = (interval.low, interval.high);
                format!("{}/{of} = {rate:.2} ({low:.2} to {high:.2})", self.right)
            }
            None => "0/0".to_owned(),
        };
        let (flagged, real) = (self.right + self.false_alarms, self.right + self.missed);
        format!("{} | {}", share(flagged), share(real))
    }
}

#[test]
fn the_labels_are_sound() {
    let labels = labels();
    assert_eq!(labels.len(), 300);
    let distinct: BTreeSet<_> =
        labels.iter().map(|label| (label.message, label.previous)).collect();
    assert_eq!(distinct.len(), labels.len());
    for label in &labels {
        assert_eq!(label.message.len(), 64);
        assert_eq!(label.repetition.is_some(), !label.previous.is_empty(), "{}", label.message);
        assert!(["people", "simulated"].contains(&label.source));
    }
}

/// docs/spec/skills-and-signals.md#signals, measured against the specification to the letter.
#[test]
fn the_page_tells_precision_and_recall() {
    let Some(folder) = sessions() else { return };
    let messages = messages(&folder);
    let labels = labels();
    let text = |label: &Label| {
        let key = (label.message.to_owned(), label.previous.to_owned());
        let found = messages.get(&key);
        found.unwrap_or_else(|| panic!("no message has the hash {}", label.message))
    };
    let mut rows = Vec::new();
    for (source, shown) in [("people", "people"), ("simulated", "simulated users")] {
        let of_source = || labels.iter().filter(|label| label.source == source);
        let mut add = |name: &str, ours: Outcome, naive: Outcome| {
            rows.push(format!("| {shown} | {name} | ours | {} |", ours.cells()));
            rows.push(format!("| {shown} | {name} | naive | {} |", naive.cells()));
        };
        let gratitude = |classify: fn(&str) -> bool| {
            Outcome::of(of_source().map(|label| (classify(&text(label).0), label.gratitude)))
        };
        add("gratitude", gratitude(classify_gratitude), gratitude(naive::gratitude));
        let repetition = |classify: fn(&str, &str) -> bool| {
            Outcome::of(of_source().filter_map(|label| {
                let (current, previous) = text(label);
                Some((classify(current, previous), label.repetition?))
            }))
        };
        add("repetition", repetition(classify_repetition), repetition(naive::repetition));
        let frustration = |classify: fn(&str) -> bool| {
            Outcome::of(of_source().map(|label| (classify(&text(label).0), label.frustration)))
        };
        add("frustration", frustration(classify_frustration), frustration(naive::frustration));
    }
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/maintain-skills.md"))
            .unwrap();
    eprintln!("{}", rows.join("\n"));
    let missing: Vec<_> = rows.iter().filter(|row| !page.contains(*row)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "rows that docs/maintain-skills.md does not have");
}

/// Objections to the agent's work, by hand-made labels of messages that follow an answer. The
/// baseline flags every message with a denial.
#[test]
fn objections_against_labels_are_printed() {
    const OBJECTIONS: &str = include_str!("../fixtures/objection_labels.csv");
    let Some(folder) = sessions() else { return };
    let mut texts: HashMap<String, (String, String)> = HashMap::new();
    for (text, previous) in messages(&folder).into_values() {
        texts.insert(digest::sha256_hex(text.trim().as_bytes()), (text, previous));
    }
    let denies = |text: &str| {
        let text = text.to_lowercase();
        ["not", "n't", "no ", "wrong", "still"].iter().any(|word| text.contains(word))
    };
    // The recordings of coding agents call tools between nearly all messages.
    let turn = AgentTurn { has_worked: true, ..AgentTurn::default() };
    let objects = |text: &str, previous: &str| {
        let previous = RequestWords::from_message(previous);
        classify_objection(text, Some(&previous), turn).0.is_some()
    };
    let mut rows = Vec::new();
    for source in ["people", "simulated"] {
        let labelled: Vec<(&(String, String), bool)> = OBJECTIONS
            .lines()
            .skip(1)
            .filter_map(|line| {
                let [hash, own, label] = line.split(',').collect::<Vec<_>>()[..] else {
                    panic!("{line}")
                };
                let text = texts.get(hash).filter(|_| own == source)?;
                Some((text, label == "1"))
            })
            .collect();
        let ours = labelled.iter().map(|((text, before), label)| (objects(text, before), *label));
        let naive = labelled.iter().map(|((text, _), label)| (denies(text), *label));
        let n = labelled.len();
        rows.push(format!("| {source}, {n} | ours | {} |", Outcome::of(ours).cells()));
        rows.push(format!("| {source}, {n} | a denial | {} |", Outcome::of(naive).cells()));
        for ((text, before), label) in &labelled {
            if objects(text, before) != *label {
                eprintln!("labelled {label}: {}", text.chars().take(100).collect::<String>());
            }
        }
    }
    eprintln!("{}", rows.join("\n"));
}
