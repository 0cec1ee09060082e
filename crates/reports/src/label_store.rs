//! The file of a run's labels, next to its JSON report. Several people may label one run at the same
//! time, from a terminal, a script or a page.

use std::path::{Path, PathBuf};

use selftest_harness::calibration::labels::{AnswerId, LabelFile};
use selftest_harness::calibration::{Label, LabelError};
use selftest_harness::sut::namespace::RunId;
use selftest_text::file::{self, read_bounded_text};

/// Maximum size of the stored labels of a run, in bytes.
const MAX_STORED: u64 = 64 * 1024 * 1024;

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
        match read_bounded_text(&self.file, MAX_STORED) {
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

    fn answer(case: &str) -> AnswerId {
        let (case_digest, answer_digest) = ("c".to_owned(), "a".to_owned());
        AnswerId { case: case.to_owned(), case_digest, answer_digest }
    }

    #[test]
    fn labels_of_several_people_are_merged() {
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
