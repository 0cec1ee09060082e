//! The command line: clap structs only. Help, man page and completions come from here.

mod baseline;
mod ci;
mod compare;
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
mod suggestion;
mod suite;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::exit;
pub use baseline::BaselineAction;
pub use ci::CommentArgs;
pub use compare::{AaArgs, CompareArgs, Comparison, ReplayArgs};
pub use db::DbAction;
pub use experiment::ExperimentArgs;
pub use grade::{
    DATABASE, DatabaseArgs, DoctorFormat, EstimateArgs, ExportFormat, GradeAction, OverrideArgs,
    SessionArgs, SessionLabelArgs, SessionsAction, StoreArgs,
};
pub use improve::{GapsAction, ProposalsAction, ProposeArgs};
pub use init::InitArgs;
pub use jobs::{JobsAction, WorkerArgs};
pub use judge::{AttackArgs, BenchArgs, JudgeAction, RejudgeArgs};
pub use label::{CalibrateArgs, LabelArgs};
pub use reflect::{GradeReflectionArgs, ReflectAction};
pub use run::{Format, GateArgs, LimitArgs, RunArgs, RunCommand, TrialArgs};
use selftest_grading::grade::TaskType;
use selftest_reports::ci::ReportRequest;
pub use serve::ServeArgs;
pub use signals::SignalsAction;
pub use skills::{KeptAction, RecordArgs, SkillsAction, StatusName};
pub use suite::{SuiteAction, SuiteCheckArgs};

/// A parsed command line.
#[derive(Debug, Parser)]
#[command(
    name = "selftest",
    version,
    about = "A self-test harness for AI agents",
    long_about = "A self-test harness for AI agents: a generator model invents test prompts, the \
                  system under test answers them in an isolated namespace, a judge model scores \
                  the answers against a rubric, and a threshold decides.",
    after_help = "Without a command, selftest runs the scenarios of config/selftest.yaml and \
                  writes a JSON and a\nMarkdown report. The options of `selftest run` work without \
                  `run` too: selftest --scenarios=2",
    max_term_width = 100
)]
pub struct Cli {
    /// The command; without one the scenarios are run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `selftest run`, which work without `run` too.
    #[command(flatten)]
    pub run: RunCommand,
    /// Print the man page or shell completions: man, complete-bash, complete-elvish, complete-fish,
    /// complete-powershell, complete-zsh
    #[arg(long, value_name = "KIND", value_enum, exclusive = true, hide_possible_values = true)]
    pub generate: Option<Generated>,
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// A file that is generated from the definition of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// Manual page in roff
    Man,
    /// Completions for bash
    CompleteBash,
    /// Completions for elvish
    CompleteElvish,
    /// Completions for fish
    CompleteFish,
    /// Completions for `PowerShell`
    CompletePowershell,
    /// Completions for zsh
    CompleteZsh,
}

/// Commands as `selftest --help` lists them, in the order in which a newcomer needs them.
const GROUPS: [(&str, &[&str]); 3] = [
    ("Test", &["init", "run", "report", "compare", "baseline", "suite", "judge", "doctor"]),
    ("Sessions", &["sessions", "grade", "improve"]),
    ("Operate", &["serve", "worker", "db", "config"]),
];

impl Cli {
    /// Parses a command line.
    ///
    /// Options of a command do not go with its subcommands: `selftest --scenarios=2 doctor` is an
    /// error. An unknown command or option gets a hint if it is one of another command.
    pub fn read(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = Self::grouped();
        let mut matches = command
            .try_get_matches_from_mut(words)
            .map_err(|error| suggestion::add(error, &command))?;
        refuse_options_beside_a_subcommand(&mut command, &matches)?;
        let cli = Self::from_arg_matches_mut(&mut matches)?;
        if let Some(Command::Compare(args)) = &cli.command
            && args.starts_no_run()
            && args.trials != TrialArgs::default()
        {
            let message =
                "options of a run are for `compare --self --suite` and `compare --replay`";
            return Err(command.error(ErrorKind::ArgumentConflict, message));
        }
        Ok(cli)
    }

    /// Returns the definition whose help lists the commands in groups and leaves the options of a
    /// run to `selftest run --help`.
    fn grouped() -> clap::Command {
        let is_of_run = |arg: &clap::Arg| {
            let id = arg.get_id().as_str();
            !["generate", "directory", "config", "verbose", "offline"].contains(&id)
        };
        let command = Self::command();
        let hidden: Vec<clap::Id> = command
            .get_arguments()
            .filter(|arg| is_of_run(arg))
            .map(|arg| arg.get_id().clone())
            .collect();
        let command = hidden
            .into_iter()
            .fold(command, |command, id| command.mut_arg(id, |arg| arg.hide(true)));
        let groups = listed_commands(&command);
        command.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{options}}{{after-help}}"
        ))
    }
}

/// Renders the commands below the headings of their groups.
fn listed_commands(command: &clap::Command) -> String {
    let style = command.get_styles();
    let (header, literal) = (style.get_header(), style.get_literal());
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text += &format!("{header}{heading}:{header:#}\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &format!("  {literal}{name:<9}{literal:#} {about}\n");
        }
        text += "\n";
    }
    text + &format!("{header}Options:{header:#}\n")
}

/// Refuses options of a command that were given beside one of its subcommands.
fn refuse_options_beside_a_subcommand(
    command: &mut clap::Command,
    matches: &clap::ArgMatches,
) -> Result<(), clap::Error> {
    let Some((name, inner)) = matches.subcommand() else { return Ok(()) };
    let given = command.get_arguments().find(|arg| {
        !arg.is_global_set()
            && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
    });
    if let Some(arg) = given {
        let path = command.get_bin_name().unwrap_or(command.get_name());
        let path = if path == "selftest" { "selftest run" } else { path };
        let message = format!("`{arg}` is an option of `{path}` and cannot be used with `{name}`");
        return Err(command.error(ErrorKind::ArgumentConflict, message));
    }
    match command.find_subcommand_mut(name) {
        Some(subcommand) => refuse_options_beside_a_subcommand(subcommand, inner),
        None => Ok(()),
    }
}

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

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a configuration, a first suite and a CI workflow for this project
    Init(InitArgs),
    /// Run scenarios or a suite, and write reports (the default command)
    #[command(after_help = exit::TABLE)]
    Run(Box<RunCommand>),
    /// Write reports of an earlier run, or comment it on a pull request
    Report {
        /// The action.
        #[command(subcommand)]
        action: ReportAction,
    },
    /// Compare two runs, a run with itself, or a run with a replay of it
    #[command(after_help = COMPARE_EXITS)]
    Compare(Box<CompareArgs>),
    /// Accept a run as the baseline of later ones, or show the baseline
    Baseline {
        /// The action.
        #[command(subcommand)]
        action: BaselineAction,
    },
    /// Check suites and evals.json files, or freeze the cases of a run in a suite
    Suite {
        /// The action.
        #[command(subcommand)]
        action: SuiteAction,
    },
    /// Measure, label and calibrate judges, and manage model files
    Judge {
        /// The action.
        #[command(subcommand)]
        action: JudgeAction,
    },
    /// Check configuration, models, structured output and write access, with advice
    Doctor {
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// List, show, search, export and label recorded agent sessions
    Sessions {
        /// The sessions.
        #[command(flatten)]
        sessions: SessionArgs,
        /// Print JSON instead of text
        #[arg(long, global = true, help_heading = "Output")]
        json: bool,
        /// The action.
        #[command(subcommand)]
        action: SessionsAction,
    },
    /// Grade recorded agent sessions by rules or with a model, and report on them
    Grade {
        /// The sessions.
        #[command(flatten)]
        sessions: SessionArgs,
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: GradeAction,
    },
    /// Find skill gaps, draft and measure skills, read user signals and reflections
    Improve {
        /// The action.
        #[command(subcommand)]
        action: ImproveAction,
    },
    /// Serve the web pages and the HTTP API, or MCP on stdin and stdout
    Serve {
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
        /// Address and access.
        #[command(flatten)]
        serve: ServeArgs,
    },
    /// Run scheduled jobs when they are due and grade queued sessions
    Worker {
        /// The sessions.
        #[command(flatten)]
        sessions: SessionArgs,
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// Options of the worker.
        #[command(flatten)]
        worker: WorkerArgs,
        /// The action; without one the worker starts.
        #[command(subcommand)]
        action: Option<JobsAction>,
    },
    /// Back up, export or prune the database
    Db {
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: DbAction,
    },
    /// Check or show the configuration, or print a JSON Schema
    Config {
        /// The action.
        #[command(subcommand)]
        action: ConfigAction,
    },
}

/// Actions on the reports of a run.
#[derive(Debug, Subcommand)]
pub enum ReportAction {
    /// Write reports of an earlier run: those of --report, else those of the configuration
    #[command(after_help = REPORT_EXITS)]
    Write {
        /// Id of the run, its JSON report, or `latest`
        run: String,
        /// The reports, comma-separated or repeated: junit=PATH, html=PATH, md=PATH, json=PATH,
        /// ctrf=PATH, github
        #[arg(long, value_name = "KIND=PATH", value_delimiter = ',')]
        report: Vec<ReportRequest>,
    },
    /// Write a run as a comment on a GitHub pull request, or update the existing comment; the token
    /// is that of `GITHUB_TOKEN` or `GH_TOKEN`
    Comment(CommentArgs),
}

/// Ways to make an agent better.
#[derive(Debug, Subcommand)]
pub enum ImproveAction {
    /// Find skill gaps, and let a model draft skills that could close them
    Gaps {
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: GapsAction,
    },
    /// Show proposed skills, and accept or reject them
    Proposals {
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: ProposalsAction,
    },
    /// Track how well skills work, and disable those that do not
    Skills {
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: SkillsAction,
    },
    /// Summarise results by task type, with the tier of models that each needs
    Route {
        /// Only this type, such as debugging
        #[arg(value_name = "TASK TYPE", value_parser = improve::task_type)]
        task_type: Option<TaskType>,
        /// Only sessions of this agent, such as claude-code
        #[arg(long, value_name = "NAME", help_heading = "Which sessions")]
        agent: Option<String>,
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Find thanks, repeated requests and frustration in users' messages
    Signals {
        /// The action.
        #[command(subcommand)]
        action: SignalsAction,
    },
    /// Grade what agents say about their own work, and report on it
    Reflect {
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: ReflectAction,
    },
}

/// Actions on the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Check the configuration and report all errors at once
    Check(Box<RunArgs>),
    /// Print every value and its source
    Show(Box<RunArgs>),
    /// Print a JSON Schema
    Schema {
        /// Which one
        #[arg(value_enum, default_value_t)]
        which: SchemaName,
    },
}

const COMPARE_EXITS: &str = "\
Exit codes:
  0    compared, whatever the result
  1    with --fail-if-worse: the second run, or the replay, is worse beyond chance
  2    wrong usage, no case is in both runs, or the cases cannot be run again
  4    nothing ran
  5    a model or the system under test could not be used
  130  interrupted";

const REPORT_EXITS: &str = "\
Exit codes:
  0  all of them are written, whatever the result of the run
  2  wrong usage, or there is no such run
  5  a report could not be written; the others are";

const LABEL_KEYS: &str = "\
Keys, one for each answer:
  g    good
  b    bad
  s    skip; it is asked again next time
  q    quit; what was labelled is kept";

/// The published schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SchemaName {
    /// Of config/selftest.yaml
    #[default]
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
    /// List local models and those that can be fetched
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
    /// Print the path of a model's file
    Path {
        /// Name, as in embedded/NAME
        #[arg(default_value = selftest_models::model_files::DEFAULT_MODEL)]
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
            "selftest judge model pull hf:a/b/c.gguf --sha256 00",
            "selftest grade latest 10 --source x --json",
            "selftest grade --agent codex summary --days 30",
            "selftest grade override abc --task-completed false --reason no",
            "selftest sessions list --since 30d",
            "selftest improve reflect grade - --project demo --exit-zero",
            "selftest --suite config/suites/a.yaml --repeats 5 --scenarios 2",
            "selftest suite freeze latest --output a.yaml",
            "selftest --scenarios=2 --report md=a.md,json=b.json --report github",
            "selftest report write latest --report md=a.md",
            "selftest compare a.json latest --fail-if-worse",
            "selftest suite check skills/a/evals/evals.json skills --json -v",
            "selftest compare latest --power --json",
            "selftest compare a.json latest --markdown",
            "selftest compare --self latest --json",
            "selftest compare --self --suite a.yaml --repeats 4 --seed 7",
            "selftest judge rejudge latest --judge-model ollama/x --format json --exit-zero",
            "selftest compare --replay latest --fail-if-worse --repeats 3 --seed 7",
            "selftest judge label latest --from labels.json --json",
            "selftest judge calibrate --runs latest,b.json --json",
            "selftest improve skills record --skill x --version 2 --status success --session s --time-ms 9",
            "selftest improve skills record --session s --message thanks --previous hello",
            "selftest improve skills record --from-sessions --source x --since 30d",
            "selftest improve skills promote x --file SKILL.md --json",
            "selftest worker --once --now 2026-11-22T04:00:00Z",
            "selftest worker --concurrency 4 --jobs run_weekly_digest,gradings",
            "selftest worker jobs --json",
            "selftest db backup a.db",
            "selftest db export --output a.jsonl",
            "selftest db prune --older-than 90d --dry-run --json",
            "selftest worker run run_weekly_digest",
            "selftest worker retry --all",
            "selftest improve skills experiment SKILL.md --suite a.yaml --repeats 5 --json",
        ] {
            Cli::read(line.split(' ')).unwrap();
        }
        let error = Cli::read(["selftest", "--scenarios=2", "doctor"]).unwrap_err().to_string();
        assert!(error.contains("`--scenarios <N|IDS>` is an option of `selftest run`"), "{error}");
        // A command has the flags that it uses and no others.
        for line in [
            "improve skills disable x --source y",
            "improve proposals list --since 3d",
            "serve --mcp --json",
        ] {
            let line = format!("selftest {line}");
            assert!(Cli::read(line.split(' ')).is_err(), "{line}");
        }
        assert!(Cli::read(["selftest", "--repeats=2"]).is_err());
        assert!(Cli::read(["selftest", "compare", "a"]).is_err());
        assert!(Cli::read(["selftest", "compare", "--self"]).is_err());
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
            let line = format!("selftest improve skills {line}");
            assert!(Cli::read(line.split(' ')).is_err(), "{line}");
        }
        // An override says something, in range, with a reason.
        for line in ["--reason x", "--response-quality 6 --reason x", "--task-completed true"] {
            let line = format!("selftest grade override abc {line}");
            assert!(Cli::read(line.split(' ')).is_err(), "{line}");
        }
    }
}
