//! Labels of a run's answers: the answers as presented to a human labeller, the judge's verdicts on
//! them, and the file of labels next to the JSON report.
//!
//! Blind: the presentation contains no verdict, score or threshold. All labels go through this
//! module, whether they come from a terminal, a script or a page.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::document::{CaseDocument, ReportDocument};
use selftest_harness::calibration::labels::{AnswerId, LabelFile, labelling_order};
use selftest_harness::calibration::{
    CalibratedJudge, Label, LabelError, LabelledAnswer, OwnScores, features,
};
use selftest_harness::sut::namespace::RunId;
use selftest_text::escape::{block, terminal};
use selftest_text::{file, one_line};

/// Maximum length of a displayed text, in bytes.
const MAX_SHOWN: usize = 8_000;
/// Maximum length of a path in a heading, in bytes.
const MAX_PATH: usize = 200;

/// Returns the answers of a run in labelling order.
pub fn answers(report: &ReportDocument) -> Vec<AnswerId> {
    let mut answers: Vec<AnswerId> = report.cases.iter().filter_map(answer_id).collect();
    labelling_order(report.run_id.as_str(), &mut answers);
    answers
}

fn answer_id(case: &CaseDocument) -> Option<AnswerId> {
    AnswerId::of(case.name(), &case.scenario, &case.generated()?, &case.steps)
}

/// A section of a case in the presentation for labelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabellingSection {
    /// Heading of the section.
    pub heading: String,
    /// Its text, possibly untrusted.
    pub text: String,
}

/// Returns the sections of a case for labelling: the prompt, the answer, the criteria, and the
/// judge's excerpts of the project.
pub fn sections(report: &ReportDocument, answer: &AnswerId) -> Option<Vec<LabellingSection>> {
    let case = report.cases.iter().find(|case| case.name() == answer.case)?;
    let generated = case.generated()?;
    let mut parts = Vec::new();
    let mut add = |heading: &str, text: &str| {
        parts.push(LabellingSection { heading: heading.to_owned(), text: text.to_owned() });
    };
    for step in &case.steps {
        let Some(reply) = &step.reply else { continue };
        add("Asked", &step.input);
        add("Answered", &reply.output);
        let (expected, found) = (step.expected_status, reply.status);
        add("Status", &format!("{found}, expected {expected}"));
    }
    let grounds = &generated.grounds;
    if !generated.hints.trim().is_empty() {
        add("Look for", &generated.hints);
    }
    if !grounds.expectations.is_empty() {
        add("Expected", &grounds.expectations.join("\n"));
    }
    for excerpt in &grounds.excerpts {
        add(&format!("From {}", one_line(&excerpt.path, MAX_PATH)), &excerpt.text);
    }
    Some(parts)
}

/// Formats the sections for a terminal.
pub fn render_sections(report: &ReportDocument, answer: &AnswerId) -> Option<String> {
    let mut text = String::new();
    for part in sections(report, answer)? {
        text += &format!("{}:\n", terminal(&part.heading, 2 * MAX_PATH));
        for line in block(&part.text, MAX_SHOWN).lines() {
            text += &format!("  {line}\n");
        }
    }
    Some(text)
}

/// Returns the identity of a run's judge.
pub fn calibrated_judge(report: &ReportDocument) -> CalibratedJudge {
    let models = &report.models;
    CalibratedJudge::new(
        &models.judge,
        models.judge_weights.as_deref(),
        models.judge_method,
        &report.prompt_digests,
        &report.rubric.digest,
    )
}

/// Returns the labelled answers that the judge scored, the names of the numbers it gave, and the
/// number of labels on answers without a score.
pub fn labelled_answers(
    report: &ReportDocument,
    labels: &LabelFile,
) -> (Vec<LabelledAnswer>, Vec<String>, usize) {
    let cases: HashMap<String, &CaseDocument> =
        report.cases.iter().map(|case| (case.name(), case)).collect();
    let (mut found, mut names, mut unscored) = (Vec::new(), Vec::new(), 0);
    for given in &labels.labels {
        let scored = cases.get(&given.case).and_then(|case| {
            let card = features::deciding_card(&case.steps)?;
            Some((case, card, features::values(card)?, case.pass?))
        });
        let Some((case, card, features, passed)) = scored else {
            unscored += 1;
            continue;
        };
        names = features::names(card);
        found.push(LabelledAnswer {
            run_id: report.run_id.to_string(),
            case: case.name(),
            is_good: given.label == Label::Good,
            passed,
            features,
        });
    }
    (found, names, unscored)
}

/// Adds the judge's scores of a run's labelled answers, also of those that it left undecided. An answer
/// that is `known` from another run counts once.
pub fn add_own_scores(
    report: &ReportDocument,
    labels: &LabelFile,
    known: &mut BTreeSet<(String, String)>,
    scores: &mut OwnScores,
) {
    let categories = &report.rubric.categories;
    let weight = |id: &str| categories.iter().find(|one| one.id == id).map(|one| one.weight);
    let of_case: HashMap<String, &CaseDocument> =
        report.cases.iter().map(|case| (case.name(), case)).collect();
    for given in &labels.labels {
        let Some(case) = of_case.get(&given.case) else { continue };
        let said = case.steps.iter().filter_map(|step| step.reply.as_ref());
        let said: Vec<&str> = said.map(|reply| reply.output.as_str()).collect();
        let asked = case.prompt.clone().unwrap_or_default();
        if known.insert((asked, said.join("\n"))) {
            let has_reference = case.grounds.reference.is_some();
            scores.add(&case.steps, weight, has_reference, given.label == Label::Good);
        }
    }
}

/// Folder of the labels, inside the folder of the JSON reports.
pub const LABELS_FOLDER: &str = "labels";

/// An error in reading or storing labels.
#[derive(Debug, thiserror::Error)]
pub enum LabelStoreError {
    /// The stored labels cannot be read, or belong to other answers.
    #[error("{}: {why}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// The new label conflicts with a stored one.
    #[error("{0}")]
    Refused(#[from] LabelError),
    /// The labels cannot be written.
    #[error("cannot write {}: {error}", .file.display())]
    Unwritten {
        /// The file.
        file: PathBuf,
        /// Error from the file system.
        error: std::io::Error,
    },
}

/// The label file of a run.
#[derive(Debug, Clone)]
pub struct LabelStore {
    file: PathBuf,
    run_id: String,
}

impl LabelStore {
    /// Creates the store of a run whose report is in this folder. A run ID contains no path
    /// separators, as its type guarantees.
    pub fn new(json_folder: &Path, run_id: &RunId) -> Self {
        let file = json_folder.join(LABELS_FOLDER).join(format!("{}.json", run_id.as_str()));
        Self { file, run_id: run_id.to_string() }
    }

    /// Returns the file, which need not exist.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the stored labels, checking that each belongs to an answer of the run.
    pub fn read(&self, answers: &[AnswerId]) -> Result<LabelFile, LabelStoreError> {
        let unreadable = |error: &dyn std::fmt::Display| LabelStoreError::Unreadable {
            file: self.file.clone(),
            why: error.to_string(),
        };
        match std::fs::read_to_string(&self.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(LabelFile::new(&self.run_id))
            }
            Err(error) => Err(unreadable(&error)),
            Ok(text) => LabelFile::parse(&text, &self.run_id)
                .and_then(|labels| labels.bind(answers))
                .map_err(|error| unreadable(&error)),
        }
    }

    /// Adds labels to those currently stored, and returns all of them.
    pub fn add(
        &self,
        answers: &[AnswerId],
        given: &[(&AnswerId, Label)],
    ) -> Result<LabelFile, LabelStoreError> {
        // Read again, because another process may have added labels in the meantime.
        let mut labels = self.read(answers)?;
        for (answer, label) in given {
            labels.add(answer, *label)?;
        }
        let text = format!("{:#}\n", serde_json::json!(labels));
        // Two processes may label the same run. Each needs a temporary file of its own.
        let writer = format!("{}-{}", self.run_id, std::process::id());
        let folder = self.file.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| file::replace(&self.file, &writer, &text))
            .map_err(|error| LabelStoreError::Unwritten { file: self.file.clone(), error })?;
        Ok(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use selftest_harness::calibration::labels::LabelError;

    fn report() -> ReportDocument {
        serde_json::from_str(&fixture::rich_run().json().unwrap().unwrap()).unwrap()
    }

    #[test]
    fn who_labels_sees_no_verdict() {
        let report = report();
        let answers = answers(&report);
        assert!(answers.len() > 5, "{answers:?}");
        for answer in &answers {
            let text = render_sections(&report, answer).unwrap();
            let case = report.cases.iter().find(|case| case.name() == answer.case).unwrap();
            assert!(text.contains("Asked:") && text.contains("Answered:"), "{text}");
            for word in ["threshold", "overall"] {
                assert!(!text.contains(word), "{word} in {text}");
            }
            assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{text:?}");
            if let Some(overall) = case.scores.overall {
                assert!(!text.contains(&format!("{overall}")), "{text}");
            }
        }
    }

    #[test]
    fn labels_meet_what_the_judge_said() {
        let report = report();
        let answers = answers(&report);
        let mut labels = LabelFile::new(report.run_id.as_str());
        for answer in &answers {
            labels.add(answer, Label::Good).unwrap();
        }
        let labels = labels.bind(&answers).unwrap();
        let (found, names, unscored) = labelled_answers(&report, &labels);
        assert_eq!(found.len() + unscored, answers.len());
        assert!(unscored > 0 && found.iter().all(|answer| answer.features.len() == names.len()));
        // Another answer to the same request makes the label void.
        let mut other = report.clone();
        let name = &found[0].case;
        let case = other.cases.iter_mut().find(|case| case.name() == *name).unwrap();
        case.steps[0].reply.as_mut().unwrap().output.push('!');
        let fault = labels.bind(&super::answers(&other)).unwrap_err();
        assert_eq!(fault, LabelError::OtherAnswer(name.clone()));
    }

    fn answer(case: &str) -> AnswerId {
        let (case_digest, answer_digest) = ("c".to_owned(), "a".to_owned());
        AnswerId { case: case.to_owned(), case_digest, answer_digest }
    }

    #[test]
    fn labels_of_several_hands_come_together() {
        let folder = tempfile::tempdir().unwrap();
        let run_id = RunId::try_from("selftest-20260206-1234-bcdfgh".to_owned()).unwrap();
        let store = LabelStore::new(folder.path(), &run_id);
        let answers = [answer("a"), answer("b #2")];
        assert_eq!(store.read(&answers).unwrap().labels, []);
        let other = store.clone();
        store.add(&answers, &[(&answers[0], Label::Good)]).unwrap();
        let all = other.add(&answers, &[(&answers[1], Label::Bad)]).unwrap();
        assert_eq!((all.of("a"), all.of("b #2")), (Some(Label::Good), Some(Label::Bad)));
        assert_eq!(store.read(&answers).unwrap(), all);
        let fault = store.add(&answers, &[(&answers[0], Label::Bad)]).unwrap_err();
        assert!(matches!(fault, LabelStoreError::Refused(_)), "{fault}");
        assert_eq!(store.read(&answers).unwrap(), all, "nothing was written over");
        std::fs::write(store.file(), "{").unwrap();
        let fault = store.add(&answers, &[(&answers[0], Label::Good)]).unwrap_err();
        assert!(matches!(fault, LabelStoreError::Unreadable { .. }), "{fault}");
        assert_eq!(std::fs::read_to_string(store.file()).unwrap(), "{");
    }
}
