//! Measurements in progress: the answers finished so far, in a file of the cache folder, so that an
//! interrupted measurement is resumed.
//!
//! If the disk cannot keep them, the measurement continues and only resuming it is lost.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::judges::FOLDER;
use crate::project::Frontend;
use crate::project::Project;
use selftest_harness::journal::RecordFile;
use selftest_text::digest;

/// A measurement in progress. Each answer is stored when it is finished.
pub struct UnfinishedMeasurement<T> {
    records: Option<RecordFile<T>>,
    frontend: Arc<dyn Frontend>,
}

impl<T: Serialize + DeserializeOwned> UnfinishedMeasurement<T> {
    /// Opens the measurement of this key, and returns the parts that were finished earlier.
    ///
    /// The key holds everything that the answers depend on (judge, set of answers, method), so that
    /// a measurement is never continued with another judge.
    pub fn open(project: &Project, key: &Value) -> (Self, Vec<T>) {
        let key = digest::json_sha256_hex(key.clone());
        let folder = project.environment.models.cache_folder.join(FOLDER).join("unfinished");
        let mut measurement = Self { records: None, frontend: Arc::clone(project.frontend()) };
        let finished = match RecordFile::open(&folder.join(format!("{key}.jsonl"))) {
            Ok((records, finished)) => {
                measurement.records = Some(records);
                finished
            }
            Err(error) => {
                measurement.give_up(&error);
                Vec::new()
            }
        };
        if !finished.is_empty() {
            let count = finished.len();
            project
                .notify(&format!("resuming after {count} answers of an unfinished measurement\n"));
        }
        (measurement, finished)
    }

    /// Stores a finished part.
    pub fn keep(&mut self, part: &T) {
        let kept = self.records.as_mut().map_or(Ok(()), |records| records.append(part));
        if let Err(error) = kept {
            self.give_up(&error);
        }
    }

    /// Removes the file of a complete measurement.
    pub fn finish(self) {
        if let Some(records) = self.records {
            // A file that cannot be removed does no harm: the same key finds it again, and its
            // answers are still right.
            let _ = records.finish();
        }
    }

    fn give_up(&mut self, error: &std::io::Error) {
        self.records = None;
        self.frontend.notify(&format!("warning: cannot keep what is measured so far: {error}\n"));
    }
}
