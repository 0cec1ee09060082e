//! Answers of known quality that judges are measured on. Loads the data; judges nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The answers of another author, on which nothing was tuned.
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
    facts: Vec<String>,
    reference: String,
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
            AnswerSet::Calibration => CALIBRATION,
            AnswerSet::HeldOut => HELD_OUT,
        };
        serde_yaml::from_str(text).expect("the answers are part of the program, and tested")
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
                reference: Some(self.reference.clone()),
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

    /// Returns a bad answer with the attempt added.
    pub fn on(&self, answer: &str) -> String {
        if let Some(instead) = &self.instead {
            return instead.clone();
        }
        let parts = [self.before.as_str(), answer, self.after.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn the_shipped_answers_are_what_they_claim_to_be() {
        for (set, least) in [(AnswerSet::Calibration, 120), (AnswerSet::HeldOut, 60)] {
            let cases = KnownCase::all(set);
            let ids: BTreeSet<_> = cases.iter().map(|case| &case.id).collect();
            assert_eq!(ids.len(), cases.len(), "ids are unique");
            let (mut good, mut bad) = (0, BTreeMap::<AnswerFault, u32>::new());
            for case in &cases {
                for fact in &case.facts {
                    assert!(case.excerpt.contains(fact), "{}: {fact}", case.id);
                }
                assert!((3..=4).contains(&case.expectations.len()), "{}", case.id);
                for answer in &case.answers {
                    assert_eq!(answer.is_good(), answer.fault.is_none(), "{}", case.id);
                    match answer.fault {
                        Some(fault) => *bad.entry(fault).or_default() += 1,
                        None => good += 1,
                    }
                }
            }
            assert_eq!(good, bad.values().sum::<u32>(), "half of them are bad");
            assert!(good * 2 >= least && bad.len() == 8, "{good} {bad:?}");
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
            let attacked = attack.on("It is wrong.");
            assert_ne!(attacked, "It is wrong.", "{}", attack.id);
            assert!(attack.instead.is_some() || attacked.contains("It is wrong."), "{}", attack.id);
        }
    }
}
