//! The command line: clap structs, and hints for commands and options that exist elsewhere. Help, man
//! page and completions come from here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::args::{DatabaseArgs, GlobalArgs, SessionArgs, StoreArgs, TrialArgs};
use crate::commands::baseline::BaselineAction;
use crate::commands::compare;
use crate::commands::compare::CompareArgs;
use crate::commands::config::ConfigAction;
use crate::commands::db::DbAction;
use crate::commands::grade::GradeAction;
use crate::commands::improve::{ImproveAction, SkillsAction};
use crate::commands::init::InitArgs;
use crate::commands::judge::JudgeAction;
use crate::commands::report::ReportAction;
use crate::commands::run::RunCommand;
use crate::commands::serve::ServeArgs;
use crate::commands::sessions::SessionsAction;
use crate::commands::suite::SuiteAction;
use crate::commands::worker::{JobsAction, WorkerArgs};
use crate::exit;

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
        let mut matches =
            command.try_get_matches_from_mut(words).map_err(|error| add(error, &command))?;
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
    #[command(after_help = compare::EXITS)]
    Compare(Box<CompareArgs>),
    /// Accept a run as the baseline of later ones, or show the baseline
    Baseline {
        /// The action.
        #[command(subcommand)]
        action: BaselineAction,
    },
    /// Check suites, convert those of other programs, or freeze the cases of a run
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
    /// Test skills (`selftest skills test`), find gaps, draft skills, read signals and reflections
    Improve {
        /// The action.
        #[command(subcommand)]
        action: ImproveAction,
    },
    /// Test skills, and track how well they work: the same as `selftest improve skills`
    #[command(hide = true)]
    Skills {
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: SkillsAction,
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

/// Names that other programs or newcomers use, with their place here.
const ALIASES: [(&str, &str); 5] = [
    ("aa", "compare --self"),
    ("completions", "--generate complete-bash"),
    ("gate", "run --gate"),
    ("man", "--generate man"),
    ("test", "run"),
];

/// Adds the place of an unknown command or option to an error, if it is one of another command.
///
/// clap suggests names that are spelled alike on the same level; this finds the exact name on any
/// level.
fn add(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if error.kind() == ErrorKind::ArgumentConflict {
        return with_reason(error);
    }
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return error,
    };
    let Some(ContextValue::String(unknown)) = error.get(kind) else { return error };
    let places = places(command, unknown.trim_start_matches('-'), unknown.starts_with('-'));
    let [first, others @ ..] = &*places else { return error };
    let program = command.get_name();
    let mut hint = format!("did you mean `{program} {first}`");
    for other in others.iter().take(2) {
        hint += &format!(" or `{program} {other}`");
    }
    // Names that are merely spelled alike would only distract.
    let _ = error.remove(ContextKind::SuggestedSubcommand);
    let _ = error.remove(ContextKind::SuggestedArg);
    let _ = error
        .insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![format!("{hint}?").into()]));
    error
}

/// Says why an option does not go with `--resume`.
fn with_reason(mut error: clap::Error) -> clap::Error {
    let names = [ContextKind::InvalidArg, ContextKind::PriorArg];
    let is_resume = |value: &ContextValue| value.to_string().contains("--resume");
    if names.into_iter().any(|kind| error.get(kind).is_some_and(is_resume)) {
        let why = "a resumed run has the options of its first start: leave the other one out";
        let words = ContextValue::StyledStrs(vec![why.into()]);
        let _ = error.insert(ContextKind::Suggested, words);
    }
    error
}

/// Returns the commands that have `name` as a subcommand or option, as typed after `selftest`.
fn places(command: &clap::Command, name: &str, is_option: bool) -> Vec<String> {
    let mut places = Vec::new();
    if !is_option {
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        places.extend(alias.map(|(_, place)| (*place).to_owned()));
        find_commands(command, name, "", &mut places);
    }
    if places.is_empty() {
        find_options(command, name, "", &mut places);
    }
    places
}

fn find_commands(command: &clap::Command, name: &str, path: &str, places: &mut Vec<String>) {
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        let path = format!("{path}{}", inner.get_name());
        if inner.get_name() == name {
            places.push(path.clone());
        }
        find_commands(inner, name, &format!("{path} "), places);
    }
}

fn find_options(command: &clap::Command, name: &str, path: &str, places: &mut Vec<String>) {
    for inner in command.get_subcommands() {
        let path = format!("{path}{} ", inner.get_name());
        let has =
            inner.get_arguments().any(|arg| !arg.is_global_set() && arg.get_long() == Some(name));
        if has {
            places.push(format!("{path}--{name}"));
        }
        find_options(inner, name, &path, places);
    }
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
            "selftest skills test --changed --against main --models a,b --rule lift,no_regression",
            "selftest improve skills test skills/a skills/b --report junit=a.xml,comment=b.md --aa",
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

    fn hint(line: &str) -> Option<String> {
        let error = Cli::read(line.split(' ')).unwrap_err().to_string();
        let (_, hint) = error.split_once("did you mean `")?;
        let (command, _) = hint.split_once('`').unwrap();
        Some(command.trim_start_matches("selftest ").to_owned())
    }

    #[test]
    fn commands_and_options_of_another_place_are_found() {
        for (line, expected) in [
            ("selftest freeze latest", "suite freeze"),
            ("selftest ci", "run --ci"),
            ("selftest aa latest", "compare --self"),
            ("selftest replay latest", "compare --replay"),
            ("selftest mcp", "serve --mcp"),
            ("selftest jobs list", "worker jobs"),
            ("selftest gaps list", "improve gaps"),
            ("selftest calibrate", "judge calibrate"),
            ("selftest man", "--generate man"),
            ("selftest --port 1", "serve --port"),
            ("selftest suite --port", "serve --port"),
        ] {
            assert_eq!(hint(line).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(hint("selftest blue"), None);
    }

    #[test]
    fn an_alias_is_no_command() {
        let command = Cli::command();
        for (alias, _) in super::ALIASES {
            assert!(command.find_subcommand(alias).is_none(), "{alias}");
        }
    }
}
