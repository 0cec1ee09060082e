//! The flags of a run. Holds no defaults of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use selftest_app::{GateSettings, RunSettings, TrialSettings};
use selftest_harness::run::limits::RunLimits;
use selftest_harness::run::shard::Shard;
use selftest_reports::ci::ReportRequest;

/// How results are printed on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// A table for people
    #[default]
    Human,
    /// The JSON report
    Json,
}

/// Flags that a run has in common with each arm of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct TrialArgs {
    /// Run the first N scenarios, or these: a,b,c
    #[arg(long, value_name = "N|IDS", help_heading = "What to run")]
    pub scenarios: Option<String>,
    /// Run the shell lines (`setup`, `cmd`) in an evals.json of this skill, or of the case with this
    /// id, in the sandbox; they are strangers' lines, so read them first
    #[arg(long, value_name = "NAME", help_heading = "What to run")]
    pub allow_commands: Vec<String>,
    /// Time limit of the system under test for each case: seconds, or 30s, 2m
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "What to run")]
    pub timeout: Option<f64>,
    /// Trials in flight, and calls at once per model endpoint
    #[arg(long, value_name = "N", help_heading = "What to run")]
    pub concurrency: Option<u32>,
    /// Seed of all sampling, and of the order of trials; random when absent
    #[arg(long, value_name = "NUMBER", help_heading = "What to run")]
    pub seed: Option<u64>,
    /// Model for every role: auto, ollama/NAME, openai/NAME, embedded/NAME, cassette/DIR
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub model: Option<String>,
    /// Model that judges the answers
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub judge_model: Option<String>,
    /// Model of the built-in assistant (system under test `chat`)
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub sut_model: Option<String>,
}

/// Flags that say what a run has to meet.
#[derive(Debug, Clone, Default, Args)]
pub struct GateArgs {
    /// Begin no further case after the first that fails; the others are `not_run`
    #[arg(long, help_heading = "What to run")]
    pub fail_fast: bool,
    /// The gate that the run must pass: absolute (every case passes), `no_regression` (none that
    /// passed in the baseline fails), both
    #[arg(
        id = "gate",
        long = "gate",
        value_name = "GATE",
        value_parser = ["absolute", "no_regression", "both"],
        hide_possible_values = true,
        help_heading = "What passes"
    )]
    pub mode: Option<String>,
    /// The baseline that `selftest baseline accept` wrote
    #[arg(long, value_name = "FILE", help_heading = "What passes")]
    pub baseline: Option<PathBuf>,
    /// Run a case that misses the baseline again so many times before it counts; more in a suite of
    /// more than ten cases
    #[arg(long, value_name = "N", help_heading = "What passes")]
    pub confirm: Option<u32>,
    /// Exit 0 even when cases fail or have no verdict; setup errors still count
    #[arg(long, help_heading = "What passes")]
    pub exit_zero: bool,
}

/// Limits of a whole run.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct LimitArgs {
    /// End the run after this time, such as 90s, 10m or 1h30m: cases in flight are closed, and they and
    /// the others are `not_run`
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "What to run")]
    pub max_duration: Option<Duration>,
    /// Begin no further case once models have read and written so many tokens
    #[arg(long, value_name = "N", help_heading = "What to run")]
    pub max_tokens: Option<u64>,
    /// Begin no further case once models have cost so much, by `prices` of the configuration
    #[arg(long, value_name = "MONEY", value_parser = money, help_heading = "What to run")]
    pub max_cost: Option<f64>,
}

impl LimitArgs {
    /// The same for the run.
    pub fn limits(self) -> RunLimits {
        RunLimits { duration: self.max_duration, tokens: self.max_tokens, cost: self.max_cost }
    }
}

/// Reads a time: `90`, `90s`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time above 0, such as 90s, 10m or 1h30m".to_owned();
    let read = if let Ok(seconds) = text.trim().parse::<f64>() {
        Duration::try_from_secs_f64(seconds).map_err(|_| expected())?
    } else {
        let read = text.parse::<SignedDuration>().map_err(|_| expected())?;
        Duration::try_from(read).map_err(|_| expected())?
    };
    if read.is_zero() { Err(expected()) } else { Ok(read) }
}

/// Reads a time in seconds. A bare number is handed on as it is: the configuration checks its range.
fn seconds(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(seconds) => Ok(seconds),
        Err(_) => duration(text).map(|duration| duration.as_secs_f64()),
    }
}

/// Reads an amount of money.
fn money(text: &str) -> Result<f64, String> {
    let amount =
        text.trim().parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| "expected an amount above 0, such as 2.50".to_owned())
}

/// Flags of a run.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct RunArgs {
    /// Those of an arm too
    #[command(flatten)]
    pub trials: TrialArgs,
    /// Run exactly the cases of this suite, as `selftest suite freeze` writes it, of the evals.json or the
    /// trigger-evals.json of a skill, or of all skills in a folder; no case is generated
    #[arg(long, value_name = "PATH", help_heading = "What to run")]
    pub suite: Option<PathBuf>,
    /// Write the results into this folder too, as skill-creator reads them: grading.json,
    /// timing.json, `eval_metadata.json`, benchmark.json
    #[arg(long, value_name = "DIR", requires = "suite", help_heading = "What to write")]
    pub skill_creator: Option<PathBuf>,
    /// Write these reports too, comma-separated or repeated: junit=PATH, html=PATH, md=PATH, json=PATH,
    /// ctrf=PATH, sarif=PATH, github; or tell a collector of OpenTelemetry: otlp=URL
    #[arg(long, value_name = "KIND=PATH", value_delimiter = ',', help_heading = "What to write")]
    pub report: Vec<ReportRequest>,
    /// Run each case of the suite so many times
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000),
        requires = "suite",
        hide_default_value = true,
        help_heading = "What to run"
    )]
    pub repeats: u32,
    /// Run those cases of the last run again that did not pass: failed, without a verdict, not run
    #[arg(long, conflicts_with_all = ["suite", "scenarios", "full"], help_heading = "What to run")]
    pub rerun_failed: bool,
    /// Go on with a run that was broken off, or with the experiment that it is an arm of: its id, its
    /// journal, or `latest`. What finished is neither asked nor run again, and flags that decide results
    /// are those of its beginning
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = [
            "rerun_failed", "suite", "scenarios", "full", "allow_commands", "timeout", "seed", "model",
            "judge_model", "sut_model", "generator_model", "record", "repeats", "shard", "strictness",
            "min_score", "skill_creator",
        ],
        help_heading = "What to run"
    )]
    pub resume: Option<String>,
    /// Limits of the run
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Run only the cases of the suite of which something has changed since an earlier run: prompt,
    /// demands, limits, judge, or the system under test as `sut.identity` declares it
    #[arg(
        long,
        requires = "suite",
        conflicts_with_all = ["rerun_failed", "record"],
        help_heading = "What to run"
    )]
    pub changed: bool,
    /// Run the K-th of N shares of the cases, such as 1/4; together they are all of them
    #[arg(long, value_name = "K/N", help_heading = "What to run")]
    pub shard: Option<Shard>,
    /// Run all scenarios (the default; says so in scripts)
    #[arg(long, conflicts_with = "scenarios", help_heading = "What to run")]
    pub full: bool,

    /// How strict: 0.0 lenient to 1.0 strict
    #[arg(long, value_name = "0..1", help_heading = "What passes")]
    pub strictness: Option<f64>,
    /// Least overall score that passes, before strictness is added
    #[arg(long, value_name = "0..1", help_heading = "What passes")]
    pub min_score: Option<f64>,
    /// Gate of the run
    #[command(flatten)]
    pub gate: GateArgs,

    /// Model that invents the prompts
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub generator_model: Option<String>,
    /// Record every model reply in this folder, to be replayed with --model cassette/DIR
    #[arg(long, value_name = "DIR", help_heading = "Models")]
    pub record: Option<PathBuf>,

    /// The format of stdout
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// No progress, and of the results only the outcome and why cases failed. With -v, all about
    /// every failed case
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// Options of `selftest run`.
#[derive(Debug, Clone, Default, Args)]
pub struct RunCommand {
    /// Options that decide results.
    #[command(flatten)]
    pub run: RunArgs,
    /// Run again whenever the configuration, the prompts or the suite change, until Ctrl-C
    #[arg(
        long,
        conflicts_with_all = ["rerun_failed", "resume", "ci"],
        help_heading = "What to run"
    )]
    pub watch: bool,
    /// Use the defaults of CI: no colour, reports under fixed names, and the gate of the baseline if
    /// there is one
    #[arg(long, help_heading = "CI")]
    pub ci: bool,
    /// Put report.json, report.md and comment.md here too, under the same names each time
    /// [default: ci in the folder of the JSON reports]
    #[arg(long, value_name = "DIR", requires = "ci", help_heading = "CI")]
    pub output: Option<PathBuf>,
    /// Which comment of several on one pull request comment.md updates [default: main]
    #[arg(long, value_name = "KEY", requires = "ci", help_heading = "CI")]
    pub key: Option<String>,
}

impl TrialArgs {
    /// Returns these options as the application takes them.
    pub fn settings(&self) -> TrialSettings {
        TrialSettings {
            scenarios: self.scenarios.clone(),
            allow_commands: self.allow_commands.clone(),
            timeout: self.timeout,
            concurrency: self.concurrency,
            seed: self.seed,
            model: self.model.clone(),
            judge_model: self.judge_model.clone(),
            sut_model: self.sut_model.clone(),
        }
    }
}

impl GateArgs {
    /// Returns these options as the application takes them.
    pub fn settings(&self) -> GateSettings {
        GateSettings {
            fail_fast: self.fail_fast,
            mode: self.mode.clone(),
            baseline: self.baseline.clone(),
            confirm: self.confirm,
            exit_zero: self.exit_zero,
        }
    }
}

impl RunArgs {
    /// Returns these options as the application takes them.
    pub fn settings(&self) -> RunSettings {
        RunSettings {
            trials: self.trials.settings(),
            suite: self.suite.clone(),
            skill_creator: self.skill_creator.clone(),
            report: self.report.clone(),
            // Zero without a command line: clap's default is not Rust's.
            repeats: self.repeats.max(1),
            rerun_failed: self.rerun_failed,
            limits: self.limits.limits(),
            changed: self.changed,
            shard: self.shard,
            strictness: self.strictness,
            min_score: self.min_score,
            gate: self.gate.settings(),
            generator_model: self.generator_model.clone(),
            record: self.record.clone(),
        }
    }
}
