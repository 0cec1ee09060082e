//! The options of a run, as the application takes them and as journals store them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use selftest_config::FlagValue;
use selftest_harness::experiment::Arms;
use selftest_harness::run::plan::Shard;
use selftest_harness::run::runner::RunLimits;
use selftest_harness::sut::namespace::RunId;
use selftest_reports::ci::ReportRequest;

/// Options that a run shares with each arm of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialSettings {
    /// The first N scenarios, or their ids, comma-separated; all if absent.
    pub scenarios: Option<String>,
    /// Skills and cases whose shell lines may run in the sandbox.
    pub allow_commands: Vec<String>,
    /// Time limit of the system under test for each case, in seconds.
    pub timeout: Option<f64>,
    /// Number of trials in flight, and of concurrent calls per model endpoint.
    pub concurrency: Option<u32>,
    /// Seed of all sampling, and of the order of trials; random if absent.
    pub seed: Option<u64>,
    /// Model for every role.
    pub model: Option<String>,
    /// Model that judges.
    pub judge_model: Option<String>,
    /// Model of the built-in assistant.
    pub sut_model: Option<String>,
    /// Program to test, with its arguments, instead of the configured system.
    #[serde(default)]
    pub sut: Option<Vec<String>>,
}

impl TrialSettings {
    /// Returns the options that are given here and differ from those of an earlier start, as flags of
    /// the command line. The number of trials in flight changes no trial.
    pub fn given_differently(&self, earlier: &Self) -> Vec<String> {
        // What is not listed here does not compile.
        let Self {
            scenarios,
            allow_commands,
            timeout,
            concurrency: _,
            seed,
            model,
            judge_model,
            sut_model,
            sut,
        } = self;
        let flags = [
            ("--scenarios", scenarios.is_some() && *scenarios != earlier.scenarios),
            (
                "--allow-commands",
                !allow_commands.is_empty() && *allow_commands != earlier.allow_commands,
            ),
            ("--timeout", timeout.is_some() && *timeout != earlier.timeout),
            ("--seed", seed.is_some() && *seed != earlier.seed),
            ("--model", model.is_some() && *model != earlier.model),
            ("--judge-model", judge_model.is_some() && *judge_model != earlier.judge_model),
            ("--sut-model", sut_model.is_some() && *sut_model != earlier.sut_model),
            ("--sut", sut.is_some() && *sut != earlier.sut),
        ];
        flags.into_iter().filter(|(_, differs)| *differs).map(|(flag, _)| flag.to_owned()).collect()
    }
}

/// Requirements of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GateSettings {
    /// True to start no further case after the first failure.
    pub fail_fast: bool,
    /// Name of the gate; the configured one if absent.
    pub mode: Option<String>,
    /// File of the baseline.
    pub baseline: Option<PathBuf>,
    /// Number of times to run a case that misses the baseline again.
    pub confirm: Option<u32>,
    /// True if failed and undecided cases do not fail the run.
    pub exit_zero: bool,
}

/// Options of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunSettings {
    /// Options of an arm too.
    pub trials: TrialSettings,
    /// Suite, `evals.json` or folder of skills whose cases run; generated cases if absent.
    pub suite: Option<PathBuf>,
    /// Folder for results as skill-creator reads them.
    pub skill_creator: Option<PathBuf>,
    /// Reports to write besides those of every run.
    // They are among the flags of the configuration.
    #[serde(skip)]
    pub report: Vec<ReportRequest>,
    /// Number of times to run each case of the suite.
    pub repeats: u32,
    /// True to run only the cases of the last run that did not pass.
    pub rerun_failed: bool,
    /// Limits of the whole run.
    // Each start of a run has its own.
    #[serde(skip)]
    pub limits: RunLimits,
    /// True to reuse earlier results of unchanged cases.
    pub changed: bool,
    /// Share of the cases to run.
    pub shard: Option<Shard>,
    /// Strictness between 0 and 1.
    pub strictness: Option<f64>,
    /// Minimum overall score that passes, before strictness is added.
    pub min_score: Option<f64>,
    /// Requirements of the run.
    pub gate: GateSettings,
    /// Model that generates the cases.
    pub generator_model: Option<String>,
    /// Folder that records every model reply.
    pub record: Option<PathBuf>,
}

impl Default for RunSettings {
    /// Returns the options of `selftest` without arguments.
    fn default() -> Self {
        Self {
            trials: TrialSettings::default(),
            suite: None,
            skill_creator: None,
            report: Vec::new(),
            repeats: 1,
            rerun_failed: false,
            limits: RunLimits::default(),
            changed: false,
            shard: None,
            strictness: None,
            min_score: None,
            gate: GateSettings::default(),
            generator_model: None,
            record: None,
        }
    }
}

/// Options of an experiment with a skill.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ExperimentSettings {
    /// The skill: a file, a folder or a name; the one around the suite if absent.
    pub skill: Option<String>,
    /// The cases.
    pub suite: PathBuf,
    /// Number of times to run each case in each arm.
    pub repeats: u32,
    /// Folder for results as skill-creator reads them.
    pub skill_creator: Option<PathBuf>,
    /// True if a skill that harms is a failure.
    pub fail_if_worse: bool,
    /// Options of both arms.
    pub trials: TrialSettings,
}

impl ExperimentSettings {
    /// Returns the options of a run like each of the arms.
    pub fn run(&self) -> RunSettings {
        RunSettings {
            suite: Some(self.suite.clone()),
            repeats: self.repeats,
            trials: self.trials.clone(),
            ..RunSettings::default()
        }
    }
}

impl RunSettings {
    /// Returns the configuration values that these options set, in rising precedence.
    pub fn flags(&self) -> Vec<FlagValue> {
        let mut flags = Vec::new();
        let mut set = |pointer: &str, flag: &str, value: Option<Value>| {
            if let Some(value) = value {
                flags.push(FlagValue { pointer: pointer.to_owned(), flag: flag.to_owned(), value });
            }
        };
        for pointer in ["/generator/model", "/judge/model", "/sut/chat/model"] {
            set(pointer, "--model", self.trials.model.as_ref().map(|model| json!(model)));
        }
        let text = |value: &Option<String>| value.as_ref().map(|value| json!(value));
        set("/generator/model", "--generator-model", text(&self.generator_model));
        set("/judge/model", "--judge-model", text(&self.trials.judge_model));
        set("/sut/chat/model", "--sut-model", text(&self.trials.sut_model));
        // The whole section: a second adapter beside that of the file would be an error.
        let program = |run| json!({ "command": { "run": run, "protocol": "text" } });
        set("/sut", "--sut", self.trials.sut.as_ref().map(program));
        // Who is named on the command line judges alone.
        let alone = self.trials.judge_model.as_ref().map(|_| "--judge-model");
        if let Some(flag) = alone.or(self.trials.model.as_ref().map(|_| "--model")) {
            set("/judge/panel", flag, Some(json!([])));
        }
        for request in &self.report {
            let kind = request.kind();
            let (pointer, value) = match request {
                ReportRequest::File(_, path) => (format!("/reports/{kind}"), json!(path)),
                ReportRequest::Github => (format!("/reports/{kind}"), json!(true)),
                ReportRequest::Otlp(endpoint) => {
                    (format!("/reports/{kind}/endpoint"), json!(endpoint))
                }
            };
            set(&pointer, "--report", Some(value));
        }
        set("/strictness", "--strictness", self.strictness.map(|value| json!(value)));
        set("/min_score_to_pass", "--min-score", self.min_score.map(|value| json!(value)));
        set("/gate", "--gate", text(&self.gate.mode));
        set("/baseline", "--baseline", self.gate.baseline.as_ref().map(|path| json!(path)));
        set("/confirm", "--confirm", self.gate.confirm.map(|value| json!(value)));
        set("/timeout_seconds", "--timeout", self.trials.timeout.map(|value| json!(value)));
        // Cases that run at once call their models at once, too.
        set("/concurrency", "--concurrency", self.trials.concurrency.map(|value| json!(value)));
        set(
            "/models/concurrency",
            "--concurrency",
            self.trials.concurrency.map(|value| json!(value)),
        );
        flags
    }
}

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
    /// The cases that did not pass.
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
