//! The first record of a journal: which run it is of, and what it takes to go on with it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::RunHeader;
use crate::sut::namespace::{RunId, TaskGroupId};

/// Version of the shape of journals. Grows with every change of it: journals live for one run.
pub(super) const VERSION: u32 = 1;

/// SHA-256 of the parts of a run that decide its results, by their names in messages: where one
/// differs, finished cases would not be those of the run that goes on.
pub type Digests = BTreeMap<String, String>;

/// The description of a run, written before its first case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalHeader {
    /// Version of the journal's shape.
    pub version: u32,
    /// Version of the program.
    pub selftest_version: String,
    /// Name of the run.
    pub run_id: RunId,
    /// Group of all its tasks.
    pub task_group_id: TaskGroupId,
    /// When it started.
    pub started_at: Timestamp,
    /// Seed of all sampling.
    pub seed: u64,
    /// Cases of the plan.
    pub cases: usize,
    /// Digests that have to be equal for the run to be resumed.
    pub digests: Digests,
    /// The command that began it, for the command line to read.
    pub request: Value,
}

impl JournalHeader {
    /// The header of a run that begins. `request` is what the command line needs to begin it again.
    pub fn new(header: &RunHeader, digests: Digests, request: Value) -> Self {
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

    /// The parts that are not as they were, in words.
    pub fn differences(&self, now: &Digests) -> Vec<String> {
        let names = self.digests.keys().chain(now.keys());
        let mut differ: Vec<String> =
            names.filter(|name| self.digests.get(*name) != now.get(*name)).cloned().collect();
        differ.sort();
        differ.dedup();
        differ
    }
}
