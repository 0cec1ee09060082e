//! The labels of a run on disk, beside its JSON report. The one place that reads and writes them,
//! whoever gives them: a terminal, a script or a page.

use std::path::{Path, PathBuf};

use selftest_harness::calibration::labels::AnswerId;
use selftest_harness::calibration::{Label, LabelFault, LabelFile};
use selftest_harness::sut::namespace::RunId;
use selftest_text::file;

/// The folder of the labels, within that of the JSON reports.
pub const LABELS_FOLDER: &str = "labels";

/// Why labels cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum LabelStoreError {
    /// The kept labels cannot be read, or are of other answers.
    #[error("{}: {why}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// The new label and one that is kept exclude each other.
    #[error("{0}")]
    Refused(#[from] LabelFault),
    /// It cannot be written.
    #[error("cannot write {}: {error}", .file.display())]
    Unwritten {
        /// The file.
        file: PathBuf,
        /// The error of the disk.
        error: std::io::Error,
    },
}

/// The file of the labels of a run.
#[derive(Debug, Clone)]
pub struct LabelStore {
    file: PathBuf,
    run_id: String,
}

impl LabelStore {
    /// That of a run whose report is in this folder. The name of a run holds no separator, by its
    /// type.
    pub fn new(json_folder: &Path, run_id: &RunId) -> Self {
        let file = json_folder.join(LABELS_FOLDER).join(format!("{}.json", run_id.as_str()));
        Self { file, run_id: run_id.to_string() }
    }

    /// The file, which need not exist.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The labels that are kept, each of an answer that the run has.
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
                .and_then(|labels| labels.bound(answers))
                .map_err(|error| unreadable(&error)),
        }
    }

    /// Adds labels to those that are kept at this moment, and gives all of them.
    pub fn add(
        &self,
        answers: &[AnswerId],
        given: &[(&AnswerId, Label)],
    ) -> Result<LabelFile, LabelStoreError> {
        let mut labels = self.read(answers)?;
        for (answer, label) in given {
            labels.add(answer, *label)?;
        }
        let text = format!("{:#}\n", serde_json::json!(labels));
        // Two processes may label one run; each of them takes turns with itself.
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
