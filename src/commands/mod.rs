//! The commands: each reads its options, calls the application, and prints the result.

pub(crate) mod baseline;
pub(crate) mod compare;
pub(crate) mod config;
pub(crate) mod db;
pub(crate) mod doctor;
pub(crate) mod grade;
pub(crate) mod improve;
pub(crate) mod init;
pub(crate) mod judge;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod suite;
pub(crate) mod worker;

use std::io::IsTerminal as _;

use clap::CommandFactory as _;
use selftest_app::AppError;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::cli::{Cli, Command, Generated};
use crate::commands::worker::JobsAction;
use crate::exit::Exit;
use crate::runtime::block_on;
use crate::ui::{Stderr, detect_build_log, eprint, print_bytes};

/// Runs the command that was parsed.
pub fn execute(cli: Cli) -> Exit {
    detect_build_log();
    // Commands that work unattended log what they do.
    let talks = matches!(
        cli.command,
        Some(Command::Worker { action: None | Some(JobsAction::Run { .. }), .. })
    );
    start_log(cli.global.verbose.max(u8::from(talks)));
    let clock = selftest_clock::set_from_environment();
    match clock.map_err(|error| AppError::usage(error.into())).and_then(|()| dispatch(cli)) {
        Ok(exit) => exit,
        Err(failure) => {
            eprint(&failure.render(std::io::stderr().is_terminal()));
            failure.kind().into()
        }
    }
}

fn dispatch(cli: Cli) -> Result<Exit, AppError> {
    let global = cli.global;
    if let Some(kind) = cli.generate {
        return generate(kind);
    }
    let Some(command) = cli.command else { return run::execute(&cli.run, &global) };
    match command {
        Command::Init(args) => block_on(init::execute(&args, &global)),
        Command::Run(args) => run::execute(&args, &global),
        Command::Report { action } => block_on(report::execute(&action, &global)),
        Command::Compare(args) => compare::execute(*args, &global),
        Command::Baseline { action } => baseline::execute(&action, &global),
        Command::Suite { action } => suite::execute(&action, &global),
        Command::Judge { action } => judge::execute(action, &global),
        Command::Doctor { json } => block_on(doctor::execute(json, &global)),
        Command::Sessions { sessions, json, action } => {
            block_on(sessions::execute(&action, &sessions, json, &global))
        }
        Command::Grade { sessions, store, action } => {
            block_on(grade::execute(&action, &sessions, &store, &global))
        }
        Command::Improve { action } => improve::execute(action, &global),
        Command::Skills { store, action } => {
            improve::execute(improve::ImproveAction::Skills { store, action }, &global)
        }
        Command::Serve { database, serve } => serve::execute(&serve, &database, &global),
        Command::Worker { sessions, store, worker, action } => {
            block_on(worker::execute(&worker, action.as_ref(), &sessions, &store, &global))
        }
        Command::Db { store, action } => block_on(db::execute(&action, &store, &global)),
        Command::Config { action } => config::execute(&action, &global),
    }
}

/// Prints the man page or the completions of a shell.
fn generate(kind: Generated) -> Result<Exit, AppError> {
    use clap_complete::Shell;

    let mut text = Vec::new();
    let shell = match kind {
        Generated::Man => {
            clap_mangen::Man::new(Cli::command())
                .render(&mut text)
                .map_err(|error| AppError::setup(anyhow::anyhow!(error)))?;
            return print_bytes(&text).map(|()| Exit::Passed);
        }
        Generated::CompleteBash => Shell::Bash,
        Generated::CompleteElvish => Shell::Elvish,
        Generated::CompleteFish => Shell::Fish,
        Generated::CompletePowershell => Shell::PowerShell,
        Generated::CompleteZsh => Shell::Zsh,
    };
    clap_complete::generate(shell, &mut Cli::command(), "selftest", &mut text);
    print_bytes(&text).map(|()| Exit::Passed)
}

/// Warnings always, more with `-v`; on stderr, without times, which belong to log collectors.
fn start_log(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let own_only = tracing_subscriber::filter::Targets::new()
        .with_target("selftest", level)
        // What the MCP server cannot answer, such as a message that is too long.
        .with_target("rmcp", LevelFilter::ERROR);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(|| Stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time();
    let subscriber = tracing_subscriber::registry().with(own_only).with(layer);
    // An error means that a library user has a log already.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
