//! Labels that users gave to the answers of a run. Each is bound to the run, the case and the
//! answer, so that it cannot be applied to another.
//!
//! The judge's scores of labelled answers are kept beside them, as [`OwnScores`]. Once there are enough,
//! its bounds are chosen on them and no longer on known answers: they are of the cases that it really
//! judges.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fit::CalibratedJudge;
use crate::judge::Verdict;
use crate::judge::fitness::{JudgeFitness, KnownScore, KnownScores};
use crate::outcome::CaseStep;
use selftest_checks::scenario::{GeneratedCase, Scenario};
use selftest_checks::suite::case_digest;
use selftest_stats::score::Score;
use selftest_text::{digest, one_line};

/// Version of the file. Incremented when a key changes its meaning or is removed.
pub const LABELS_VERSION: u32 = 1;

/// A user's verdict on an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The answer is acceptable.
    Good,
    /// The answer is not acceptable.
    Bad,
}

/// Identity of an answer that can be labelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerId {
    /// Name of the case: its id, with the repeat's number in a run with repeats.
    pub case: String,
    /// Digest of the case's prompt and expectations.
    pub case_digest: String,
    /// Digest of the answer.
    pub answer_digest: String,
}

impl AnswerId {
    /// Returns the id of the answers in a case, or `None` for a case without answers.
    pub fn of(
        name: String,
        scenario: &Scenario,
        generated: &GeneratedCase,
        steps: &[CaseStep],
    ) -> Option<Self> {
        let answers: Vec<&str> =
            steps.iter().filter_map(|step| Some(step.reply.as_ref()?.output.as_str())).collect();
        (!answers.is_empty()).then(|| Self {
            case: name,
            case_digest: case_digest(scenario, generated),
            answer_digest: digest::json_sha256_hex(serde_json::json!(answers)),
        })
    }
}

/// The labels of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelFile {
    /// Version of this format; 1.
    pub version: u32,
    /// Id of the run whose answers are labelled.
    pub run_id: String,
    /// The labels in the order in which they were given.
    pub labels: Vec<AnswerLabel>,
}

/// One label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerLabel {
    /// Name of the case.
    pub case: String,
    /// Digest of the case. Absent in labels written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_digest: Option<String>,
    /// Digest of the answer. Absent in labels written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_digest: Option<String>,
    /// The label.
    pub label: Label,
}

/// The labels cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The text is not a list of labels.
    #[error("expected labels as JSON: {0}")]
    Malformed(String),
    /// They belong to another run.
    #[error("the labels are of {found}, expected those of {expected}")]
    OtherRun {
        /// The run being labelled.
        expected: String,
        /// The run that the labels name.
        found: String,
    },
    /// The run has no such case, or no answer to it.
    #[error("the label of `{0}` is of no answer of this run")]
    UnknownCase(String),
    /// The run has a case with this name, but its prompt or expectations differ.
    #[error("the label of `{0}` is of another case of that name")]
    OtherCase(String),
    /// The case is the same, but the answer differs.
    #[error("the label of `{0}` is of another answer")]
    OtherAnswer(String),
    /// The same answer is labelled both good and bad.
    #[error("the labels of `{0}` contradict each other")]
    Contradiction(String),
}

/// Labels as provided by a script: a label file, or only the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenLabels {
    #[serde(default, rename = "version")]
    _version: Option<u32>,
    #[serde(default)]
    run_id: Option<String>,
    labels: Vec<AnswerLabel>,
}

impl LabelFile {
    /// Creates a file without labels.
    pub fn new(run_id: &str) -> Self {
        Self { version: LABELS_VERSION, run_id: run_id.to_owned(), labels: Vec::new() }
    }

    /// Parses labels for a run: a label file, or a list of `{"case": …, "label": "good"}`.
    pub fn parse(text: &str, run_id: &str) -> Result<Self, LabelError> {
        let malformed = |error: &dyn std::fmt::Display| {
            LabelError::Malformed(one_line(&error.to_string(), 300))
        };
        let value: Value = serde_json::from_str(text).map_err(|error| malformed(&error))?;
        let value = match value {
            Value::Array(_) => serde_json::json!({ "labels": value }),
            other => other,
        };
        let given: GivenLabels =
            serde_json::from_value(value).map_err(|error| malformed(&error))?;
        match given.run_id {
            Some(found) if found != run_id => Err(LabelError::OtherRun {
                expected: run_id.to_owned(),
                found: one_line(&found, 100),
            }),
            _ => Ok(Self { labels: given.labels, ..Self::new(run_id) }),
        }
    }

    /// Returns the same labels bound to the answers of the run, without duplicates.
    pub fn bind(self, answers: &[AnswerId]) -> Result<Self, LabelError> {
        let known: BTreeMap<&str, &AnswerId> =
            answers.iter().map(|answer| (answer.case.as_str(), answer)).collect();
        let mut bound = Self::new(&self.run_id);
        for given in self.labels {
            let name = || one_line(&given.case, 200);
            let answer =
                known.get(given.case.as_str()).ok_or_else(|| LabelError::UnknownCase(name()))?;
            // Hand-written labels have no digests and match by name.
            let differs = |given: &Option<String>, own: &String| {
                given.as_ref().is_some_and(|given| given != own)
            };
            if differs(&given.case_digest, &answer.case_digest) {
                return Err(LabelError::OtherCase(name()));
            }
            if differs(&given.answer_digest, &answer.answer_digest) {
                return Err(LabelError::OtherAnswer(name()));
            }
            bound.add(answer, given.label)?;
        }
        Ok(bound)
    }

    /// Adds a label. Repeating it has no effect; a different label is a contradiction.
    pub fn add(&mut self, answer: &AnswerId, label: Label) -> Result<(), LabelError> {
        match self.of(&answer.case) {
            Some(known) if known != label => {
                return Err(LabelError::Contradiction(one_line(&answer.case, 200)));
            }
            Some(_) => {}
            None => self.labels.push(AnswerLabel {
                case: answer.case.clone(),
                case_digest: Some(answer.case_digest.clone()),
                answer_digest: Some(answer.answer_digest.clone()),
                label,
            }),
        }
        Ok(())
    }

    /// Returns the label of a case.
    pub fn of(&self, case: &str) -> Option<Label> {
        self.labels.iter().find(|known| known.case == case).map(|known| known.label)
    }
}

/// Sorts the answers into labelling order. It is pseudo-random but stable, so that any prefix of it
/// is a random sample, as the corrected pass rate requires.
pub fn labelling_order(run_id: &str, answers: &mut [AnswerId]) {
    answers.sort_by_cached_key(|answer| {
        digest::sha256_hex(format!("{run_id} {}", answer.case).as_bytes())
    });
}

/// Version of the file. Incremented when a key changes its meaning or is removed.
const OWN_SCORES_VERSION: u32 = 1;

/// Minimum number of labels, with or without a reference, for bounds of their own.
pub const MIN_OWN_LABELS: usize = 30;

/// The scores of a judge on a project's own labelled answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnScores {
    /// Version of this format; 1.
    pub version: u32,
    /// The judge that they are of.
    pub judge: CalibratedJudge,
    /// Digest of the scales on which it scored; empty for one that gives verdicts. Scores on other
    /// scales are other numbers.
    pub scales_digest: String,
    /// The scores with the labels.
    pub scores: KnownScores,
}

impl OwnScores {
    /// Creates an empty list.
    pub fn new(judge: CalibratedJudge, fitness: Option<&JudgeFitness>) -> Self {
        Self {
            version: OWN_SCORES_VERSION,
            judge,
            scales_digest: scales_digest(fitness),
            scores: KnownScores::default(),
        }
    }

    /// Returns true if they are of this judge with these scales.
    pub fn are_of(&self, judge: &CalibratedJudge, fitness: Option<&JudgeFitness>) -> bool {
        self.version == OWN_SCORES_VERSION
            && self.judge.difference_from(judge).is_none()
            && self.scales_digest == scales_digest(fitness)
    }

    /// Adds a labelled answer. One without a score of the judge is left out.
    pub fn add(
        &mut self,
        steps: &[CaseStep],
        weight: impl Fn(&str) -> Option<f64>,
        has_reference: bool,
        is_good: bool,
    ) {
        let Some(score) = overall_score(steps, weight) else { return };
        let known = KnownScore { score: score.get(), is_good, is_certain: false };
        let scores = &mut self.scores;
        if has_reference {
            scores.with_reference.push(known);
        } else {
            scores.without_reference.push(known);
        }
    }

    /// Returns true if there are enough for bounds, with or without a reference.
    pub fn are_enough(&self) -> bool {
        let count = |has_reference| self.scores.of(has_reference).len();
        count(true).max(count(false)) >= MIN_OWN_LABELS
    }
}

fn scales_digest(fitness: Option<&JudgeFitness>) -> String {
    let scales = fitness.and_then(|fitness| fitness.scales.as_ref());
    scales.map(|scales| digest::json_sha256_hex(json!(scales))).unwrap_or_default()
}

/// Returns the lowest overall score of the steps, also of those that the judge left undecided. Returns
/// `None` if form decided, or if a step has no score.
fn overall_score(steps: &[CaseStep], weight: impl Fn(&str) -> Option<f64>) -> Option<Score> {
    let each = steps.iter().map(|step| match &step.judgement.as_ref()?.verdict {
        // What form alone decided says nothing about the judge.
        Verdict::Scored(card) => Some(card.overall).filter(|_| !card.is_certain),
        // What lies between the bounds has all its scores.
        Verdict::Unscored { partial, .. } if !partial.is_empty() => {
            let parts = partial.iter().map(|one| Some(weight(&one.category)? * one.score?.get()));
            Score::new(parts.sum::<Option<f64>>()?.clamp(0.0, 1.0)).ok()
        }
        Verdict::Unscored { .. } => None,
    });
    let scores: Vec<Score> = each.collect::<Option<_>>()?;
    // A case is as good as its weakest step.
    scores.into_iter().min_by(|a, b| a.get().total_cmp(&b.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "selftest-20260206-1234-bcdfgh";

    fn answer(case: &str) -> AnswerId {
        let digest = |what: &str| format!("{what} of {case}");
        AnswerId {
            case: case.to_owned(),
            case_digest: digest("case"),
            answer_digest: digest("answer"),
        }
    }

    #[test]
    fn labels_are_read_and_bound() {
        let answers = [answer("a"), answer("b #2")];
        let list = r#"[{"case": "a", "label": "good"}, {"case": "b #2", "label": "bad"}]"#;
        let found = LabelFile::parse(list, RUN).unwrap().bind(&answers).unwrap();
        assert_eq!((found.of("a"), found.of("b #2")), (Some(Label::Good), Some(Label::Bad)));
        assert_eq!(found.of("b"), None);
        // What was written is read again.
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(LabelFile::parse(&text, RUN).unwrap().bind(&answers).unwrap(), found);
    }

    #[test]
    fn every_wrong_label_is_named() {
        let fault = |labels: &str| {
            LabelFile::parse(labels, RUN).and_then(|file| file.bind(&[answer("a")])).unwrap_err()
        };
        let name = || "a".to_owned();
        for (labels, expected) in [
            (
                r#"{"run_id": "other", "labels": []}"#,
                LabelError::OtherRun { expected: RUN.to_owned(), found: "other".to_owned() },
            ),
            (r#"[{"case": "x", "label": "good"}]"#, LabelError::UnknownCase("x".to_owned())),
            (
                r#"[{"case": "a", "case_digest": "no", "label": "good"}]"#,
                LabelError::OtherCase(name()),
            ),
            (
                r#"[{"case": "a", "answer_digest": "no", "label": "good"}]"#,
                LabelError::OtherAnswer(name()),
            ),
            (
                r#"[{"case": "a", "label": "good"}, {"case": "a", "label": "bad"}]"#,
                LabelError::Contradiction(name()),
            ),
        ] {
            assert_eq!(fault(labels), expected);
        }
        for broken in ["", "{", "3", r#"[{"case": "a"}]"#, r#"[{"case": "a", "label": "fine"}]"#] {
            assert!(matches!(fault(broken), LabelError::Malformed(_)), "{broken}");
        }
        // Twice the same is no contradiction.
        let twice = r#"[{"case": "a", "label": "bad"}, {"case": "a", "label": "bad"}]"#;
        let found = LabelFile::parse(twice, RUN).unwrap().bind(&[answer("a")]).unwrap();
        assert_eq!(found.labels.len(), 1);
    }

    #[test]
    fn the_order_is_mixed_and_stays() {
        let names: Vec<String> = (0..40).map(|number| format!("case-{number:02}")).collect();
        let mut answers: Vec<AnswerId> = names.iter().map(|name| answer(name)).collect();
        let before = answers.clone();
        labelling_order(RUN, &mut answers);
        assert_ne!(answers, before);
        let first = answers.clone();
        answers.reverse();
        labelling_order(RUN, &mut answers);
        assert_eq!(answers, first);
    }
}
