//! The request that started a run, as its journal stores it.

use selftest_config::FlagValue;
use selftest_harness::experiment::Arms;
use selftest_harness::sut::namespace::RunId;
use serde::{Deserialize, Serialize};

use crate::options::{ExperimentSettings, RunSettings};

/// Version of [`RunRequest`]. Raise it when a stored request would be read differently.
pub(crate) const REQUEST_VERSION: u32 = 1;

/// Format of a printed comparison.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonFormat {
    /// Text for a terminal.
    Text,
    /// JSON.
    Json,
    /// Markdown.
    Markdown,
}

/// The command that began a run, as its journal keeps it. Beside it stand flags of the configuration,
/// which hold what other commands than `selftest` itself set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRequest {
    /// Version of this format; another one cannot be resumed.
    pub version: u32,
    /// The flags of the run.
    pub settings: RunSettings,
    /// The flags that set keys of the configuration.
    pub flags: Vec<FlagValue>,
    /// The run whose cases it repeats; absent for those of a suite or the configuration.
    pub cases_of: Option<CasesOf>,
    /// Use of the finished run.
    pub purpose: RunPurpose,
}

/// The purpose for which a command runs cases.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPurpose {
    /// For their results.
    Results,
    /// The odd of its repeats are held against the even ones.
    SelfComparison {
        /// True to print JSON.
        json: bool,
    },
    /// It is compared with the run whose cases it has.
    Replay {
        /// Format of the comparison.
        format: ComparisonFormat,
        /// True if a worse run is a failure.
        fail_if_worse: bool,
    },
    /// It is one arm of an experiment.
    Experiment(Box<ExperimentRequest>),
    /// It is one arm of a test of skills.
    SkillTest {
        /// Id of the test.
        id: String,
    },
}

/// The experiment that two runs are the arms of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExperimentRequest {
    /// Its flags.
    pub settings: ExperimentSettings,
    /// The runs.
    pub arms: Arms<RunId>,
    /// True to print JSON.
    pub json: bool,
    /// The text of a skill that is in no file.
    pub drafted: Option<String>,
}

/// The run whose cases another one has.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CasesOf {
    /// Those that did not pass.
    NotPassed(String),
    /// All of them.
    Replayed(String),
    /// All of them, with their answers, which are judged again.
    Rejudged(String),
}

impl RunRequest {
    /// Creates a request of the current version.
    pub fn new(
        settings: RunSettings,
        flags: Vec<FlagValue>,
        cases_of: Option<CasesOf>,
        purpose: RunPurpose,
    ) -> Self {
        Self { version: REQUEST_VERSION, settings, flags, cases_of, purpose }
    }
}
