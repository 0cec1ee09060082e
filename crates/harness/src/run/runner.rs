//! Parts that all cases of a run share: models, system under test, templates, and the project folder
//! as it should stay.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::ahead::Ahead;
use crate::judge::panel::Panel;
use crate::scenario::generate::Generator;
use crate::sut::SystemUnderTest;
use crate::sut::command::CommandRunner;
use crate::sut::project::Snapshot;
use selftest_models::breaker::Outages;
use selftest_models::prompts::PromptLibrary;
use selftest_text::redact::Redactor;

/// Everything that the cases of a run share.
pub struct Runner {
    /// Invents prompts; absent where all cases are frozen.
    pub generator: Option<Arc<Generator>>,
    /// Prompts that are in the making already.
    pub ahead: Ahead,
    /// Judges answers; absent where checks alone decide.
    pub judge: Option<Arc<Panel>>,
    /// Answers.
    pub sut: Arc<dyn SystemUnderTest>,
    /// All templates, loaded.
    pub library: Arc<PromptLibrary>,
    /// Runs the commands of checks.
    pub commands: Arc<CommandRunner>,
    /// Removes secrets from what the system under test says.
    pub redactor: Arc<Redactor>,
    /// The model servers that were given up. With one of them gone, no further case is begun.
    pub outages: Arc<Outages>,
    /// Seed of the run.
    pub seed: u64,
    /// The project folder as it should stay; absent where nobody is asked who could change it.
    pub watch: Option<Arc<ProjectWatch>>,
}

/// The project folder and how it looked last.
pub struct ProjectWatch {
    first: Arc<Snapshot>,
    latest: Mutex<Arc<Snapshot>>,
}

impl ProjectWatch {
    /// Looks at the folder for the first time. `excluded` are the folders that reports go to.
    pub fn new(root: &Path, excluded: &[PathBuf]) -> Self {
        let first = Arc::new(Snapshot::take(root, excluded));
        let latest = Mutex::new(Arc::clone(&first));
        Self { first, latest }
    }

    /// Changes since the last call, and since the beginning.
    pub(super) fn detect_changes(&self) -> (Vec<String>, Vec<String>) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Arc::new(latest.again());
        let changes = (now.changes_since(&latest), now.changes_since(&self.first));
        *latest = now;
        changes
    }
}

impl Runner {
    /// The same with another system under test.
    #[must_use]
    pub fn with_sut(&self, sut: Arc<dyn SystemUnderTest>) -> Self {
        Self {
            generator: None,
            ahead: Ahead::default(),
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

    /// Files that changed since the last look, when the system under test could have done it.
    pub(super) fn project_changes(&self) -> Vec<String> {
        match &self.watch {
            Some(watch) if self.sut.can_reach_project() => {
                tokio::task::block_in_place(|| watch.detect_changes().0)
            }
            _ => Vec::new(),
        }
    }
}
