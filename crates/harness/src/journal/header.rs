//! The first record of a journal: identifies the run and states what has to match to resume it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::RunHeader;
use crate::sut::namespace::{RunId, TaskGroupId};

/// Version of the journal format. Incremented with every change; journals live only as long as
/// their run.
pub(super) const VERSION: u32 = 2;

/// SHA-256 of the inputs that decide a run's results, keyed by their names in messages. If one
/// differs, the finished cases do not fit the resumed run.
pub type RunDigests = BTreeMap<String, String>;

/// The description of a run, written before its first case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalHeader {
    /// Version of the journal format.
    pub version: u32,
    /// Version of the program.
    pub selftest_version: String,
    /// Id of the run.
    pub run_id: RunId,
    /// Group of all its tasks.
    pub task_group_id: TaskGroupId,
    /// Time when it started.
    pub started_at: Timestamp,
    /// Seed of all sampling.
    pub seed: u64,
    /// Number of planned cases.
    pub cases: usize,
    /// Digests that have to be equal for the run to be resumed.
    pub digests: RunDigests,
    /// The command that started the run, interpreted by the command line.
    pub request: Value,
}

impl JournalHeader {
    /// Creates the header of a new run. `request` is what the command line needs to start it again.
    pub fn new(header: &RunHeader, digests: RunDigests, request: Value) -> Self {
        Self {
            version: VERSION,
            selftest_version: header.selftest_version.clone(),
            run_id: header.run_id.clone(),
            task_group_id: header.task_group_id.clone(),
            started_at: header.started_at,
            seed: header.seed,
            cases: header.scenario_ids.len(),
            digests,
            request,
        }
    }

    /// Returns the names of the parts that changed.
    pub fn differences(&self, now: &RunDigests) -> Vec<String> {
        let names = self.digests.keys().chain(now.keys());
        let mut differ: Vec<String> =
            names.filter(|name| self.digests.get(*name) != now.get(*name)).cloned().collect();
        differ.sort();
        differ.dedup();
        differ
    }
}
