//! Measurements that were broken off: what a judge said so far, kept in the cache folder until the
//! measurement is complete. A disk that cannot keep it costs the way back and nothing else.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fitness::FOLDER;
use crate::command::eprint;
use selftest_config::Environment;
use selftest_harness::journal::RecordFile;
use selftest_text::digest;

/// The finished part of a measurement.
pub(super) struct Unfinished<T>(Option<RecordFile<T>>);

impl<T: Serialize + DeserializeOwned> Unfinished<T> {
    /// Opens what there is of the measurement that this key stands for, and says so where it is
    /// something.
    pub(super) fn open(environment: &Environment, key: &Value) -> (Self, Vec<T>) {
        let key = digest::json_sha256_hex(key.clone());
        let folder = environment.models.cache_folder.join(FOLDER).join("unfinished");
        match RecordFile::open(&folder.join(format!("{key}.jsonl"))) {
            Ok((records, finished)) => {
                if !finished.is_empty() {
                    let count = finished.len();
                    eprint(&format!(
                        "going on after {count} answers of an unfinished measurement\n"
                    ));
                }
                (Self(Some(records)), finished)
            }
            Err(error) => {
                let mut none = Self(None);
                none.give_up(&error);
                (none, Vec::new())
            }
        }
    }

    /// Keeps a part.
    pub(super) fn keep(&mut self, part: &T) {
        let kept = self.0.as_mut().map_or(Ok(()), |records| records.append(part));
        if let Err(error) = kept {
            self.give_up(&error);
        }
    }

    /// The measurement is complete.
    pub(super) fn finish(self) {
        if let Some(records) = self.0 {
            // What stays is recognised by its key, and as true as ever.
            let _ = records.finish();
        }
    }

    fn give_up(&mut self, error: &std::io::Error) {
        self.0 = None;
        eprint(&format!("warning: cannot keep what is measured so far: {error}\n"));
    }
}
