//! Interrupted measurements: answers of a judge, kept in the cache folder until the measurement is
//! complete. If the disk cannot keep them, only resuming is lost.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::frontend::Frontend;
use crate::judges::FOLDER;
use crate::project::Project;
use selftest_harness::journal::RecordFile;
use selftest_text::digest;

/// The finished part of a measurement.
pub struct UnfinishedMeasurement<T> {
    records: Option<RecordFile<T>>,
    frontend: Arc<dyn Frontend>,
}

impl<T: Serialize + DeserializeOwned> UnfinishedMeasurement<T> {
    /// Opens what there is of the measurement that this key stands for, and says so where it is
    /// something.
    pub fn open(project: &Project, key: &Value) -> (Self, Vec<T>) {
        let key = digest::json_sha256_hex(key.clone());
        let folder = project.environment.models.cache_folder.join(FOLDER).join("unfinished");
        match RecordFile::open(&folder.join(format!("{key}.jsonl"))) {
            Ok((records, finished)) => {
                if !finished.is_empty() {
                    let count = finished.len();
                    project.notify(&format!(
                        "resuming after {count} answers of an unfinished measurement\n"
                    ));
                }
                (
                    Self { records: Some(records), frontend: Arc::clone(project.frontend()) },
                    finished,
                )
            }
            Err(error) => {
                let mut none = Self { records: None, frontend: Arc::clone(project.frontend()) };
                none.give_up(&error);
                (none, Vec::new())
            }
        }
    }

    /// Keeps a part.
    pub fn keep(&mut self, part: &T) {
        let kept = self.records.as_mut().map_or(Ok(()), |records| records.append(part));
        if let Err(error) = kept {
            self.give_up(&error);
        }
    }

    /// The measurement is complete.
    pub fn finish(self) {
        if let Some(records) = self.records {
            // A leftover file is found by its key and stays valid.
            let _ = records.finish();
        }
    }

    fn give_up(&mut self, error: &std::io::Error) {
        self.records = None;
        self.frontend.notify(&format!("warning: cannot keep what is measured so far: {error}\n"));
    }
}
