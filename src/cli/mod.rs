//! The command line: clap structs only. Help, man page and completions come from here.

mod aa;
mod again;
mod baseline;
mod ci;
mod db;
mod experiment;
mod grade;
mod improve;
mod init;
mod jobs;
mod judge;
mod label;
mod reflect;
mod run;
mod serve;
mod signals;
mod skills;
mod suite;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::exit;
pub use aa::AaArgs;
pub use again::{RejudgeArgs, ReplayArgs};
pub use baseline::BaselineAction;
pub use ci::{CiArgs, CommentArgs};
pub use db::DbAction;
pub use experiment::ExperimentArgs;
pub use grade::{
    DATABASE, DatabaseArgs, DoctorFormat, EstimateArgs, ExportFormat, GradeAction, OverrideArgs,
    SessionArgs, SessionLabelArgs, SessionsAction, StoreArgs,
};
pub use improve::{GapsAction, ProposalsAction, ProposeArgs};
pub use init::InitArgs;
pub use jobs::{JobsAction, WorkerArgs};
pub use judge::{AttackArgs, BenchArgs, JudgeAction};
pub use label::{CalibrateArgs, LabelArgs};
pub use reflect::{GradeReflectionArgs, ReflectAction};
pub use run::{Format, GateArgs, LimitArgs, RunArgs, TrialArgs};
use selftest_grading::grade::TaskType;
use selftest_reports::ci::ReportRequest;
pub use serve::ServeArgs;
pub use signals::SignalsAction;
pub use skills::{KeptAction, RecordArgs, SkillsAction, StatusName};
pub use suite::{SuiteAction, SuiteCheckArgs};

/// Everything that can stand on the command line.
#[derive(Debug, Parser)]
#[command(
    name = "selftest",
    version,
    about = "A self-test harness for AI agents",
    long_about = "A self-test harness for AI agents: a generator model invents test prompts, the \
                  system under test answers them in an isolated namespace, a judge model scores \
                  the answers by a rubric, and a threshold decides.\n\nWithout a subcommand it runs \
                  the scenarios of config/selftest.yaml and writes a JSON and a Markdown report.",
    after_help = exit::TABLE,
    max_term_width = 100
)]
pub struct Cli {
    /// The subcommand; without one the scenarios are run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of a run.
    #[command(flatten)]
    pub run: RunArgs,
    /// Running again and again.
    #[command(flatten)]
    pub watch: WatchArgs,
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
}

impl Cli {
    /// Reads a command line. Flags of a run do not go with a subcommand; those of every command
    /// do, before and behind it.
    pub fn read(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let mut matches = command.try_get_matches_from_mut(words)?;
        if let Some(name) = matches.subcommand_name() {
            let run = RunArgs::augment_args(clap::Command::new("run"));
            let mut run = WatchArgs::augment_args(run);
            run.build();
            let given = |flag: &&clap::Arg| {
                matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine)
            };
            if let Some(flag) = run.get_arguments().find(given) {
                let words = format!("`{flag}` is a flag of a run and does not go with `{name}`");
                return Err(command.error(ErrorKind::ArgumentConflict, words));
            }
        }
        Self::from_arg_matches_mut(&mut matches)
    }
}

/// Flags of a run that goes on.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Run again whenever the configuration, the prompts or the suite change, until Ctrl-C
    #[arg(long, conflicts_with_all = ["rerun_failed", "resume"], help_heading = "What to run")]
    pub watch: bool,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Work in this project folder instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Read this configuration instead of config/selftest.yaml
    #[arg(long, value_name = "FILE", env = "SELFTEST_CONFIG", global = true)]
    pub config: Option<PathBuf>,
    /// Say more on stderr; twice for even more
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Never fetch anything: neither model weights nor anything else
    #[arg(long, global = true)]
    pub offline: bool,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check or show the configuration
    Config {
        /// The action.
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Print a JSON Schema
    Schema {
        /// Which one
        #[arg(value_enum)]
        which: SchemaName,
    },
    /// Look at this project and write a configuration that tests it, a suite to begin with and a CI
    /// workflow
    Init(InitArgs),
    /// Freeze the cases of a run in a suite file, to be run again with --suite
    Freeze {
        /// Id of the run, its JSON report, or `latest`
        run: String,
        /// Write the suite here. It is an answer key: in config/suites, what is tested cannot read
        /// it [default: config/suites/<run id>.yaml]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Run with the defaults of CI: no colour, reports under names that stay, and the gate of a baseline
    /// that is there
    #[command(after_help = exit::TABLE)]
    Ci(Box<CiArgs>),
    /// Write a run as a comment on a pull request of GitHub, or update the one that is there; the token
    /// is that of `GITHUB_TOKEN` or `GH_TOKEN`
    Comment(CommentArgs),
    /// Keep the results of a run as the baseline of later ones, or look at it
    Baseline {
        /// The action.
        #[command(subcommand)]
        action: BaselineAction,
    },
    /// Write reports of an earlier run: those of --report, else those of the configuration
    #[command(after_help = REPORT_EXITS)]
    Report {
        /// Id of the run, its JSON report, or `latest`
        run: String,
        /// The reports, comma-separated or repeated: junit=PATH, html=PATH, md=PATH, json=PATH, ctrf=PATH,
        /// github
        #[arg(long, value_name = "KIND=PATH", value_delimiter = ',')]
        report: Vec<ReportRequest>,
    },
    /// Look at suites and evals.json files before they are run
    Suite {
        /// The action.
        #[command(subcommand)]
        action: SuiteAction,
    },
    /// Compare two runs of the same cases, with intervals
    #[command(after_help = COMPARE_EXITS)]
    Compare {
        /// The first run: its id, its JSON report, or `latest`
        a: String,
        /// The second run
        #[arg(required_unless_present = "power", conflicts_with = "power")]
        b: Option<String>,
        /// Instead of comparing, say what a comparison with another run like the first can find, and
        /// how many cases and repeats differences need
        #[arg(long, conflicts_with = "fail_if_worse")]
        power: bool,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
        /// Print Markdown instead of text, for a comment beside a change
        #[arg(long, conflicts_with_all = ["json", "power"])]
        markdown: bool,
        /// Exit 1 when the second run is worse beyond chance
        #[arg(long)]
        fail_if_worse: bool,
    },
    /// Run the same cases twice and say how much differs where nothing was changed
    Aa(Box<AaArgs>),
    /// Judge the answers of a run again, with the judge of today or another one: neither generator nor
    /// system under test is asked. The result is a run of its own
    #[command(after_help = exit::TABLE)]
    Rejudge(RejudgeArgs),
    /// Run the cases of a run again, with its seed unless --seed names another and with the settings of
    /// today, and compare both runs
    #[command(after_help = REPLAY_EXITS)]
    Replay(Box<ReplayArgs>),
    /// Say which answers of a run are good and which are bad, without seeing the judge's verdicts
    #[command(after_help = LABEL_KEYS)]
    Label(LabelArgs),
    /// Hold the judge against your labels: how far its probabilities are right, and which threshold
    /// fits. Later runs give their pass rate corrected by it
    Calibrate(CalibrateArgs),
    /// Check configuration, models, structured output and write access, with advice
    Doctor {
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Measure how well models judge: how well they tell good answers from bad ones
    Judge {
        /// The action.
        #[command(subcommand)]
        action: JudgeAction,
    },
    /// Grade recorded agent sessions by rules, and report on them
    Grade {
        /// Which sessions.
        #[command(flatten)]
        sessions: SessionArgs,
        /// How results are printed, and where they are kept.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: GradeAction,
    },
    /// Find gaps in the agent's skills, and let a model draft skills that could close them
    Gaps {
        /// How results are printed, and where they are kept.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: GapsAction,
    },
    /// Look at proposed skills, and accept or reject them
    Proposals {
        /// How results are printed, and where they are kept.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: ProposalsAction,
    },
    /// Say how each type of task goes, and which tier of models it needs
    Route {
        /// Only this type, such as debugging
        #[arg(value_name = "TASK TYPE", value_parser = improve::task_type)]
        task_type: Option<TaskType>,
        /// Only sessions of this agent, such as claude-code
        #[arg(long, value_name = "NAME", help_heading = "Which sessions")]
        agent: Option<String>,
        /// How results are printed, and where they are kept.
        #[command(flatten)]
        store: StoreArgs,
    },
    /// List, print, export and label recorded agent sessions
    Sessions {
        /// Which sessions.
        #[command(flatten)]
        sessions: SessionArgs,
        /// Print JSON instead of text
        #[arg(long, global = true, help_heading = "Output")]
        json: bool,
        /// The action.
        #[command(subcommand)]
        action: SessionsAction,
    },
    /// Find thanks, repeated requests and frustration in messages of users
    Signals {
        /// In what.
        #[command(subcommand)]
        action: SignalsAction,
    },
    /// Grade what agents say of their own work, and report on it
    Reflect {
        /// How results are printed, and where they are kept.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: ReflectAction,
    },
    /// Track how well skills work, and disable those that do not
    Skills {
        /// How results are printed, and where they are kept.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: SkillsAction,
    },
    /// Serve the web page and the HTTP API
    Serve {
        /// Where grades are kept.
        #[command(flatten)]
        database: DatabaseArgs,
        /// How it is reached.
        #[command(flatten)]
        serve: ServeArgs,
    },
    /// Run the weekly jobs when they are due, and grade the sessions that are queued
    Worker {
        /// Which sessions.
        #[command(flatten)]
        sessions: SessionArgs,
        /// How results are printed, and where they are kept.
        #[command(flatten)]
        store: StoreArgs,
        /// How it works.
        #[command(flatten)]
        worker: WorkerArgs,
    },
    /// List jobs, run one now, or try failed ones again
    Jobs {
        /// How results are printed, and where they are kept.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: JobsAction,
    },
    /// Copy the database, print what is in it, or delete what is old
    Db {
        /// How results are printed, and where they are kept.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: DbAction,
    },
    /// Serve grades and reports to an agent: Model Context Protocol on stdin and stdout
    Mcp {
        /// Where grades are kept.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List, fetch or find model weights for the embedded engine
    Model {
        /// The action.
        #[command(subcommand)]
        action: ModelAction,
    },
    /// Print shell completions
    Completions {
        /// For which shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
}

/// Actions on the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Say whether it is right; all errors at once
    Check(Box<RunArgs>),
    /// Print every value with where it comes from
    Show(Box<RunArgs>),
}

const COMPARE_EXITS: &str = "\
Exit codes:
  0  compared, whatever the result
  1  with --fail-if-worse: the second run is worse beyond chance
  2  wrong usage, or no case is in both runs";

const REPORT_EXITS: &str = "\
Exit codes:
  0  all of them are written, whatever the result of the run
  2  wrong usage, or there is no such run
  5  a report could not be written; the others are";

const REPLAY_EXITS: &str = "\
Exit codes:
  0    compared, whatever the result
  1    with --fail-if-worse: the run is worse now, beyond chance
  2    wrong usage, or the cases of the run cannot be run again
  4    nothing ran
  5    a model or the system under test could not be used
  130  interrupted";

const LABEL_KEYS: &str = "\
Keys, one for each answer:
  g    good
  b    bad
  s    skip; it is asked again next time
  q    quit; what was labelled is kept";

/// The published schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    /// Of config/selftest.yaml
    Config,
    /// Of the JSON report of a run
    Report,
    /// Of a judge's reply, for the configured rubric
    Verdict,
    /// Of a suite file
    Suite,
    /// Of selftest-baseline.json
    Baseline,
}

/// Actions on model files.
#[derive(Debug, Subcommand)]
pub enum ModelAction {
    /// List the models that are here or can be fetched
    List {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Fetch weights: a known name, an https:// address, or hf:owner/repo/file.gguf
    Pull {
        /// The model to fetch
        source: String,
        /// Expected SHA-256 of the file, in hexadecimal
        #[arg(long, value_name = "HEX")]
        sha256: Option<String>,
    },
    /// Print the file of a model
    Path {
        /// Name, as in embedded/NAME
        #[arg(default_value = selftest_models::model_files::DEFAULT)]
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_commands_of_the_readme_parse() {
        for line in [
            "selftest --scenarios=2",
            "selftest init --yes --force --prompts",
            "selftest --scenarios=2 --timeout=30",
            "selftest --full --model ollama/qwen2.5:7b",
            "selftest config check -C x",
            "selftest -C x --config y.yaml -v config check",
            "selftest -C x grade latest --offline",
            "selftest model pull hf:a/b/c.gguf --sha256 00",
            "selftest grade latest 10 --source x --json",
            "selftest grade --agent codex summary --days 30",
            "selftest grade override abc --task-completed false --reason no",
            "selftest sessions list --since 30d",
            "selftest reflect grade - --project demo --exit-zero",
            "selftest --suite config/suites/a.yaml --repeats 5 --scenarios 2",
            "selftest freeze latest --output a.yaml",
            "selftest --scenarios=2 --report md=a.md,json=b.json --report github",
            "selftest report latest --report md=a.md",
            "selftest compare a.json latest --fail-if-worse",
            "selftest suite check skills/a/evals/evals.json skills --json -v",
            "selftest compare latest --power --json",
            "selftest compare a.json latest --markdown",
            "selftest aa latest --json",
            "selftest aa --suite a.yaml --repeats 4 --seed 7",
            "selftest rejudge latest --judge ollama/x --format json --exit-zero",
            "selftest replay latest --fail-if-worse --repeats 3 --seed 7",
            "selftest label latest --from labels.json --json",
            "selftest calibrate --runs latest,b.json --json",
            "selftest skills record --skill x --version 2 --status success --session s --time-ms 9",
            "selftest skills record --session s --message thanks --previous hello",
            "selftest skills record --from-sessions --source x --since 30d",
            "selftest skills promote x --file SKILL.md --json",
            "selftest worker --once --now 2026-11-22T04:00:00Z",
            "selftest worker --concurrency 4 --jobs run_weekly_digest,gradings",
            "selftest jobs list --json",
            "selftest db backup a.db",
            "selftest db export --output a.jsonl",
            "selftest db prune --older-than 90d --dry-run --json",
            "selftest jobs run run_weekly_digest",
            "selftest jobs retry --all",
            "selftest skills experiment SKILL.md --suite a.yaml --repeats 5 --json",
        ] {
            Cli::read(line.split(' ')).unwrap();
        }
        let error = Cli::read(["selftest", "--scenarios=2", "doctor"]).unwrap_err().to_string();
        assert!(error.contains("`--scenarios <N|IDS>` is a flag of a run"), "{error}");
        // A command has the flags that it uses and no others.
        for line in ["skills disable x --source y", "proposals list --since 3d", "mcp --json"] {
            let line = format!("selftest {line}");
            assert!(Cli::read(line.split(' ')).is_err(), "{line}");
        }
        assert!(Cli::read(["selftest", "--repeats=2"]).is_err());
        assert!(Cli::read(["selftest", "compare", "a"]).is_err());
        assert!(Cli::read(["selftest", "aa"]).is_err());
        assert!(Cli::read(["selftest", "compare", "a", "b", "--power"]).is_err());
        assert!(Cli::read(["selftest", "--suite=a", "--repeats=0"]).is_err());
        // A record says one thing, and a promotion names a text or a version.
        for line in [
            "record",
            "record --skill x",
            "record --message x",
            "record --skill x --status success --from-sessions",
            "record --from-sessions --status success",
            "promote x",
        ] {
            let line = format!("selftest skills {line}");
            assert!(Cli::read(line.split(' ')).is_err(), "{line}");
        }
        // An override says something, in range, with a reason.
        for line in ["--reason x", "--response-quality 6 --reason x", "--task-completed true"] {
            let line = format!("selftest grade override abc {line}");
            assert!(Cli::read(line.split(' ')).is_err(), "{line}");
        }
    }
}
