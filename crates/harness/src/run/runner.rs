//! Resources that all cases of a run share: models, system under test, templates, and the watched
//! project folder.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::prefetch::PromptPrefetch;
use crate::judge::panel::JudgePanel;
use crate::scenario::generate::Generator;
use crate::sut::SystemUnderTest;
use crate::sut::command::CommandRunner;
use crate::sut::project::ProjectSnapshot;
use selftest_models::guarded::Outages;
use selftest_models::prompts::PromptLibrary;
use selftest_text::redact::Redactor;

/// Resources that all cases of a run share.
pub struct Runner {
    /// Writes prompts. Absent if all cases are frozen.
    pub generator: Option<Arc<Generator>>,
    /// Prompts that are being prefetched.
    pub prefetch: PromptPrefetch,
    /// Judges answers. Absent if checks alone decide.
    pub judge: Option<Arc<JudgePanel>>,
    /// The system under test.
    pub sut: Arc<dyn SystemUnderTest>,
    /// All templates, loaded.
    pub library: Arc<PromptLibrary>,
    /// Runs the commands of checks.
    pub commands: Arc<CommandRunner>,
    /// Removes secrets from the output of the system under test.
    pub redactor: Arc<Redactor>,
    /// The model servers that were given up. Once one is, no further case is started.
    pub outages: Arc<Outages>,
    /// Seed of the run.
    pub seed: u64,
    /// Detects changes of the project folder. Absent if nothing in the run could change it.
    pub watch: Option<Arc<ProjectWatch>>,
}

/// The project folder with its first and latest snapshots.
pub struct ProjectWatch {
    first: Arc<ProjectSnapshot>,
    latest: Mutex<Arc<ProjectSnapshot>>,
}

impl ProjectWatch {
    /// Takes the first snapshot of the folder. `excluded` are the report folders.
    pub fn new(root: &Path, excluded: &[PathBuf]) -> Self {
        let first = Arc::new(ProjectSnapshot::take(root, excluded));
        let latest = Mutex::new(Arc::clone(&first));
        Self { first, latest }
    }

    /// Returns the changes since the last call, and since the start.
    pub(super) fn detect_changes(&self) -> (Vec<String>, Vec<String>) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Arc::new(latest.refresh());
        let changes = (now.changes_since(&latest), now.changes_since(&self.first));
        *latest = now;
        changes
    }
}

impl Runner {
    /// Returns the same resources with another system under test.
    #[must_use]
    pub fn with_sut(&self, sut: Arc<dyn SystemUnderTest>) -> Self {
        Self {
            generator: None,
            prefetch: PromptPrefetch::default(),
            judge: self.judge.clone(),
            sut,
            library: Arc::clone(&self.library),
            commands: Arc::clone(&self.commands),
            redactor: Arc::clone(&self.redactor),
            outages: Arc::clone(&self.outages),
            seed: self.seed,
            watch: self.watch.clone(),
        }
    }

    /// Returns the files that changed since the last snapshot, if the system under test can reach
    /// the project.
    pub(super) fn project_changes(&self) -> Vec<String> {
        match &self.watch {
            Some(watch) if self.sut.can_reach_project() => {
                tokio::task::block_in_place(|| watch.detect_changes().0)
            }
            _ => Vec::new(),
        }
    }
}
