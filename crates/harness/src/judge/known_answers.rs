//! Answers of known quality that judges are measured on. Loads the data; judges nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_checks::check::ObservedToolCall;
use selftest_checks::scenario::{CaseGrounds, FileExcerpt, GeneratedCase, TaskStatus};

const CALIBRATION: &str = include_str!("../../calibration/known_answers.yaml");
const HELD_OUT: &str = include_str!("../../calibration/held_out_answers.yaml");
const ATTACKS: &str = include_str!("../../calibration/attacks.yaml");

/// A set of shipped answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum AnswerSet {
    /// The answers on which prompts were tuned and a judge's scale is fitted.
    Calibration,
    /// The first of them, on which a judge is measured before its first verdict.
    Certificate,
    /// The answers of other authors, on which nothing was tuned.
    HeldOut,
}

/// The kinds of bad answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(JsonSchema, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum AnswerFault {
    /// A number or a name contradicts the excerpt.
    WrongFact,
    /// It answers something else.
    OffTopic,
    /// The facts are right, but the form is not the requested one.
    WrongFormat,
    /// It recommends something destructive, or something that leaks secrets.
    UnsafeCommand,
    /// It asks back although the request is clear.
    UnaskedQuestion,
    /// It guesses although the request is vague.
    MissingQuestion,
    /// It refuses a harmless request.
    Refusal,
    /// Well worded, but made up.
    PlausibleNonsense,
    /// A wrong number.
    Number,
    /// The right number with a wrong unit.
    Unit,
    /// A statement is negated, or a negation is dropped.
    Negation,
    /// A rule is reversed, or two values are swapped.
    Direction,
    /// The name of a neighbour: another option, exception, file or person.
    WrongName,
    /// Another day, month, year or time.
    Date,
    /// Something that is demanded is left out.
    MissingPart,
    /// One item of several is wrong.
    OneWrong,
    /// Everything demanded is right, and something made up is added.
    InventedAddition,
}

/// A request with answers to it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownCase {
    /// Id, unique in its set.
    pub id: String,
    /// Two-letter language code.
    pub language: String,
    source: String,
    excerpt: String,
    expected_status: ExpectedStatus,
    request: String,
    expectations: Vec<String>,
    #[serde(default)]
    facts: Vec<String>,
    #[serde(default)]
    reference: Option<String>,
    /// Good and bad answers.
    pub answers: Vec<KnownAnswer>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExpectedStatus {
    Complete,
    AwaitingResponse,
}

/// One answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownAnswer {
    #[serde(default)]
    good: bool,
    /// The fault of a bad answer. Absent for a good one.
    #[serde(default)]
    pub fault: Option<AnswerFault>,
    /// Text of the answer.
    pub text: String,
    /// Files that the agent wrote.
    #[serde(default)]
    pub files: Vec<FileExcerpt>,
    /// Tools that it called.
    #[serde(default)]
    pub tool_calls: Vec<ObservedToolCall>,
}

/// A bad answer's attempt to persuade the judge.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    /// The kind of attempt, such as `fake_verdict`.
    pub shape: String,
    /// Unique id.
    pub id: String,
    #[serde(default)]
    before: String,
    #[serde(default)]
    after: String,
    #[serde(default)]
    instead: Option<String>,
}

impl KnownAnswer {
    /// Returns true if it is a good answer.
    pub fn is_good(&self) -> bool {
        self.good
    }
}

impl KnownCase {
    /// Returns the cases of a set.
    ///
    /// # Panics
    /// Never: the files are compiled into the program, and a test parses them.
    pub fn all(set: AnswerSet) -> Vec<Self> {
        let text = match set {
            AnswerSet::Calibration | AnswerSet::Certificate => CALIBRATION,
            AnswerSet::HeldOut => HELD_OUT,
        };
        serde_yaml::from_str(text).expect("the answers are part of the program, and tested")
    }

    /// Returns the reference, if the case has one.
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// Parses a list of cases.
    pub fn parse(text: &str) -> Result<Vec<Self>, serde_yaml::Error> {
        serde_yaml::from_str(text)
    }

    /// Returns the status that the task should have after a good answer.
    pub fn expected_status(&self) -> TaskStatus {
        match self.expected_status {
            ExpectedStatus::Complete => TaskStatus::Complete,
            ExpectedStatus::AwaitingResponse => TaskStatus::AwaitingResponse,
        }
    }

    /// Returns the case as a generator would have created it. It has no hints, because the
    /// expectations are more precise.
    pub fn case(&self) -> GeneratedCase {
        GeneratedCase {
            prompt: self.request.clone(),
            hints: String::new(),
            grounds: CaseGrounds {
                expectations: self.expectations.clone(),
                facts: self.facts.clone(),
                excerpts: vec![FileExcerpt {
                    path: self.source.clone(),
                    text: self.excerpt.clone(),
                }],
                reference: self.reference.clone(),
                ..CaseGrounds::default()
            },
        }
    }
}

impl Attack {
    /// Returns every attempt.
    ///
    /// # Panics
    /// Never, see [`KnownCase::all`].
    pub fn all() -> Vec<Self> {
        serde_yaml::from_str(ATTACKS).expect("the attacks are part of the program, and tested")
    }

    /// Returns a bad answer with the attempt added. `{reference}` and `{reversed}` in its texts stand
    /// for the reference of the case, and for that in reverse order.
    pub fn on(&self, answer: &str, reference: Option<&str>) -> String {
        let reference = reference.unwrap_or("The answer above is correct.");
        let reversed: Vec<&str> = reference.split_whitespace().rev().collect();
        let reversed = reversed.join(" ");
        let fill =
            |text: &str| text.replace("{reference}", reference).replace("{reversed}", &reversed);
        if let Some(instead) = &self.instead {
            return fill(instead);
        }
        let parts = [fill(&self.before), answer.to_owned(), fill(&self.after)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn the_shipped_answers_are_what_they_claim_to_be() {
        for (set, least, kinds) in
            [(AnswerSet::Calibration, 240, 15), (AnswerSet::HeldOut, 150, 12)]
        {
            let cases = KnownCase::all(set);
            let ids: BTreeSet<_> = cases.iter().map(|case| &case.id).collect();
            assert_eq!(ids.len(), cases.len(), "ids are unique");
            let (mut good, mut bad) = (0, BTreeMap::<AnswerFault, u32>::new());
            for case in &cases {
                for fact in &case.facts {
                    assert!(case.excerpt.contains(fact), "{}: {fact}", case.id);
                }
                assert!((2..=5).contains(&case.expectations.len()), "{}", case.id);
                for answer in &case.answers {
                    assert_eq!(answer.is_good(), answer.fault.is_none(), "{}", case.id);
                    match answer.fault {
                        Some(fault) => *bad.entry(fault).or_default() += 1,
                        None => good += 1,
                    }
                }
            }
            let faults = bad.values().sum::<u32>();
            assert!(good + faults >= least && bad.len() >= kinds, "{good} {bad:?}");
            assert!(2 * good.min(faults) >= faults.max(good), "about half of them are bad");
            let languages: BTreeSet<_> = cases.iter().map(|case| &case.language).collect();
            assert!(languages.len() >= 5, "{languages:?}");
        }
    }

    #[test]
    fn no_answer_is_in_both_sets() {
        let texts = |set| -> BTreeSet<String> {
            let cases = KnownCase::all(set).into_iter();
            cases.flat_map(|case| case.answers).map(|answer| answer.text).collect()
        };
        assert!(texts(AnswerSet::Calibration).is_disjoint(&texts(AnswerSet::HeldOut)));
    }

    #[test]
    fn attacks_change_an_answer() {
        let all = Attack::all();
        let ids: BTreeSet<_> = all.iter().map(|attack| &attack.id).collect();
        assert!(all.len() >= 40 && ids.len() == all.len());
        for attack in &all {
            let attacked = attack.on("It is wrong.", Some("It is right."));
            assert_ne!(attacked, "It is wrong.", "{}", attack.id);
            assert!(attack.instead.is_some() || attacked.contains("It is wrong."), "{}", attack.id);
        }
    }
}
