//! Options that several commands share, of all commands and of runs. They hold no defaults of the
//! configuration.

pub mod sessions;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;

use selftest_app::{GateSettings, RunSettings, TrialSettings};
use selftest_harness::run::plan::Shard;
use selftest_harness::run::runner::RunLimits;
use selftest_models::name::ModelName;
use selftest_reports::ci::ReportRequest;

pub(crate) use sessions::{DatabaseArgs, SessionArgs, StoreArgs};

/// Options of every command.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Work in this project folder instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Read this configuration instead of config/selftest.yaml
    #[arg(long, value_name = "FILE", env = "SELFTEST_CONFIG", global = true)]
    pub config: Option<PathBuf>,
    /// Log more to stderr; twice for even more
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Never fetch model weights or anything else
    #[arg(long, global = true)]
    pub offline: bool,
}

/// How results are printed on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// A table for people
    #[default]
    Human,
    /// The JSON report
    Json,
}

/// Options that a run shares with each arm of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct TrialArgs {
    /// Run the first N scenarios, or these: a,b,c
    #[arg(long, value_name = "N|IDS", help_heading = "What to run")]
    pub scenarios: Option<String>,
    /// Run the shell lines (`setup`, `cmd`) of this skill or case in the sandbox; they come from a third
    /// party, so review them first
    #[arg(long, value_name = "NAME", help_heading = "What to run")]
    pub allow_commands: Vec<String>,
    /// Time limit of the system under test for each case: seconds, or 30s, 2m
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "What to run")]
    pub timeout: Option<f64>,
    /// Number of trials in flight, and of concurrent calls per model endpoint
    #[arg(long, value_name = "N", value_parser = count, help_heading = "What to run")]
    pub concurrency: Option<u32>,
    /// Seed of all sampling and of the order of trials; random by default
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = whole,
        allow_negative_numbers = true,
        help_heading = "What to run"
    )]
    pub seed: Option<u64>,
    /// Model for every role
    #[arg(
        long,
        value_name = "MODEL",
        help = format!("Model for every role: {}", ModelName::forms()),
        help_heading = "Models"
    )]
    pub model: Option<String>,
    /// Model that judges the answers
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub judge_model: Option<String>,
    /// Test this program, which reads the request on stdin and prints the answer, instead of the
    /// configured system: "python3 agent.py"
    #[arg(
        long,
        value_name = "COMMAND",
        conflicts_with = "sut_model",
        help_heading = "What to run"
    )]
    pub sut: Option<CommandLine>,
    /// Model of the built-in assistant (system under test `chat`)
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub sut_model: Option<String>,
}

/// A program with its arguments, as one would type it; no shell reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine(pub Vec<String>);

/// A value of an option that is not what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A quotation mark that is not closed.
    #[error("expected a command, found an open quotation mark")]
    OpenQuote,
    /// An empty command line.
    #[error("expected a command, such as \"python3 agent.py\"")]
    NoCommand,
    /// No time above 0.
    #[error("expected a time above 0, such as 90s, 10m or 1h30m")]
    Time,
    /// No number from 0 to 1.
    #[error("expected a number from 0 to 1, such as 0.7")]
    Share,
    /// No whole number from 0 on.
    #[error("expected a whole number from 0 on")]
    Whole,
    /// No whole number.
    #[error("expected a whole number, such as 4")]
    Count,
    /// No amount above 0.
    #[error("expected an amount above 0, such as 2.50")]
    Money,
}

impl FromStr for CommandLine {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let words = shlex::split(text).ok_or(ValueError::OpenQuote)?;
        if words.is_empty() { Err(ValueError::NoCommand) } else { Ok(Self(words)) }
    }
}

/// Options of the gate.
#[derive(Debug, Clone, Default, Args)]
pub struct GateArgs {
    /// Start no further case after the first failure; the rest are `not_run`
    #[arg(long, help_heading = "What to run")]
    pub fail_fast: bool,
    /// Gate that the run must pass: absolute (every case passes), `no_regression` (no case that passed in
    /// the baseline fails), both
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
    /// Number of times to retry a case that misses the baseline before it counts; more in suites of over
    /// ten cases
    #[arg(long, value_name = "N", value_parser = count, help_heading = "What passes")]
    pub confirm: Option<u32>,
    /// Exit 0 even if cases fail or have no verdict; setup errors still count
    #[arg(long, help_heading = "What passes")]
    pub exit_zero: bool,
}

/// Limits of a whole run.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct LimitArgs {
    /// Stop the run after this time, such as 90s, 10m or 1h30m; cases in flight and the rest are
    /// `not_run`
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "What to run")]
    pub max_duration: Option<Duration>,
    /// Start no further case after models have read and written this many tokens
    #[arg(long, value_name = "N", value_parser = whole, help_heading = "What to run")]
    pub max_tokens: Option<u64>,
    /// Start no further case after models have cost this much, by `prices` of the configuration
    #[arg(long, value_name = "MONEY", value_parser = money, help_heading = "What to run")]
    pub max_cost: Option<f64>,
}

impl LimitArgs {
    /// Returns the limits of a run.
    pub fn limits(self) -> RunLimits {
        RunLimits { duration: self.max_duration, tokens: self.max_tokens, cost: self.max_cost }
    }
}

/// Parses a time: `90`, `90s`, `1h30m`.
fn duration(text: &str) -> Result<Duration, ValueError> {
    let read = if let Ok(seconds) = text.trim().parse::<f64>() {
        Duration::try_from_secs_f64(seconds).ok()
    } else {
        text.parse::<SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok())
    };
    read.filter(|read| !read.is_zero()).ok_or(ValueError::Time)
}

/// Parses a number from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, ValueError> {
    let number = text.trim().parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or(ValueError::Share)
}

/// Parses a whole number.
fn whole(text: &str) -> Result<u64, ValueError> {
    text.trim().parse().map_err(|_| ValueError::Whole)
}

/// Parses a count, whose range the configuration checks.
fn count(text: &str) -> Result<u32, ValueError> {
    text.trim().parse().map_err(|_| ValueError::Count)
}

/// Parses a time in seconds. The configuration checks the range of a bare number.
pub(crate) fn seconds(text: &str) -> Result<f64, ValueError> {
    match text.trim().parse::<f64>() {
        Ok(seconds) if seconds.is_finite() => Ok(seconds),
        Ok(_) => Err(ValueError::Time),
        Err(_) => duration(text).map(|duration| duration.as_secs_f64()),
    }
}

/// Parses an amount of money.
fn money(text: &str) -> Result<f64, ValueError> {
    let amount =
        text.trim().parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount > 0.0);
    amount.ok_or(ValueError::Money)
}

/// Options of a run.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct RunArgs {
    /// Options that an arm has too
    #[command(flatten)]
    pub trials: TrialArgs,
    /// Run the cases of this suite, evals.json or trigger-evals.json, or of all skills in a folder, instead
    /// of generated ones
    #[arg(long, value_name = "PATH", help_heading = "What to run")]
    pub suite: Option<PathBuf>,
    /// Also write the results to this folder in the format of skill-creator: grading.json,
    /// timing.json, `eval_metadata.json`, benchmark.json
    #[arg(long, value_name = "DIR", requires = "suite", help_heading = "What to write")]
    pub skill_creator: Option<PathBuf>,
    /// Also write these reports, comma-separated or repeated: junit=PATH, html=PATH, md=PATH, json=PATH,
    /// ctrf=PATH, sarif=PATH, reward=PATH, benchmark=PATH, github, or to an OpenTelemetry collector: otlp=URL
    #[arg(long, value_name = "KIND=PATH", value_delimiter = ',', help_heading = "What to write")]
    pub report: Vec<ReportRequest>,
    /// Number of times to run each case of the suite
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
    /// Run only the cases of the last run that did not pass: failed, without a verdict, or not run
    #[arg(long, conflicts_with_all = ["suite", "scenarios", "full"], help_heading = "What to run")]
    pub rerun_failed: bool,
    /// Resume an interrupted run, or the experiment that it is an arm of: its id, its journal, or
    /// `latest`. Finished cases and calls are kept; options that decide results are those of the first
    /// start
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = [
            "rerun_failed", "changed", "scenarios", "full", "allow_commands", "timeout", "seed", "model",
            "judge_model", "sut", "sut_model", "generator_model", "record", "repeats", "shard", "strictness",
            "min_score", "skill_creator",
        ],
        help_heading = "What to run"
    )]
    pub resume: Option<String>,
    /// Limits of the run
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Run only cases affected by changes since an earlier run: prompt, expectations, limits, judge, or the
    /// system under test as declared in `sut.identity`
    #[arg(
        long,
        requires = "suite",
        conflicts_with_all = ["rerun_failed", "record"],
        help_heading = "What to run"
    )]
    pub changed: bool,
    /// Run the K-th of N parts of the cases, such as 1/4
    #[arg(long, value_name = "K/N", help_heading = "What to run")]
    pub shard: Option<Shard>,
    /// Run all scenarios (the default)
    #[arg(long, conflicts_with = "scenarios", help_heading = "What to run")]
    pub full: bool,

    /// Strictness, from 0.0 (lenient) to 1.0 (strict)
    #[arg(
        long,
        value_name = "0..1",
        value_parser = share,
        allow_negative_numbers = true,
        help_heading = "What passes"
    )]
    pub strictness: Option<f64>,
    /// Minimum overall score that passes, before strictness is added
    #[arg(
        long,
        value_name = "0..1",
        value_parser = share,
        allow_negative_numbers = true,
        help_heading = "What passes"
    )]
    pub min_score: Option<f64>,
    /// Gate of the run
    #[command(flatten)]
    pub gate: GateArgs,

    /// Model that generates the prompts
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub generator_model: Option<String>,
    /// Record every model reply in this folder, to replay it with --model cassette/DIR
    #[arg(long, value_name = "DIR", help_heading = "Models")]
    pub record: Option<PathBuf>,

    /// Format of stdout
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Hide progress; print only the outcome and why cases failed. With -v, print all details of failed
    /// cases
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
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
            sut: self.sut.clone().map(|CommandLine(words)| words),
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
