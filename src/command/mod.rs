//! The commands: each reads its options, calls the application, and prints the result.

mod aa;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator;
mod baseline;
mod calibrate;
mod ci;
mod comment;
mod compare;
mod db;
mod doctor;
mod freeze;
mod grade;
mod improve;
mod init;
mod jobs;
mod judge;
mod label;
mod mcp;
mod model;
mod reflect;
mod rejudge;
mod report;
mod run;
mod schema;
mod serve;
mod sessions;
mod settings;
mod signals;
mod since;
mod skills;
mod sources;
mod suite;
mod watch;
mod worker;

use std::io::IsTerminal as _;

use clap::CommandFactory as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::cli::{
    Cli, Command, CompareArgs, Comparison, Generated, GlobalArgs, ImproveAction, JobsAction,
    JudgeAction, ReportAction, RunCommand, SuiteAction,
};
use crate::exit::Exit;
use crate::ui::{eprint, print_bytes};
use selftest_app::AppError;

/// Runs the command that was parsed.
pub fn execute(cli: Cli) -> Exit {
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
    let Some(command) = cli.command else { return run_command(&cli.run, &global) };
    match command {
        Command::Init(args) => runtime()?.block_on(init::execute(&args, &global)),
        Command::Run(args) => run_command(&args, &global),
        Command::Report { action: ReportAction::Write { run, report } } => {
            runtime()?.block_on(report::execute(&run, &report, &global))
        }
        Command::Report { action: ReportAction::Comment(args) } => {
            runtime()?.block_on(comment::execute(&args, &global))
        }
        Command::Compare(args) => compare_command(*args, &global),
        Command::Baseline { action } => baseline::execute(&action, &global),
        Command::Suite { action: SuiteAction::Check(args) } => suite::execute(&args, &global),
        Command::Suite { action: SuiteAction::Freeze { run, output } } => {
            freeze::execute(&run, output.as_deref(), &global)
        }
        Command::Judge { action } => judge_command(action, &global),
        Command::Doctor { json } => runtime()?.block_on(doctor::execute(json, &global)),
        Command::Sessions { sessions, json, action } => {
            runtime()?.block_on(sessions::execute(&action, &sessions, json, &global))
        }
        Command::Grade { sessions, store, action } => {
            runtime()?.block_on(grade::execute(&action, &sessions, &store, &global))
        }
        Command::Improve { action } => improve_command(action, &global),
        Command::Serve { database, serve } if serve.mcp => {
            let runtime = runtime()?;
            let done = runtime.block_on(mcp::execute(&database, &global));
            // A read of stdin cannot be cancelled, and must not keep the process after SIGTERM.
            runtime.shutdown_background();
            done
        }
        Command::Serve { database, serve } => {
            #[cfg(all(target_os = "linux", target_env = "gnu"))]
            allocator::share_memory();
            runtime()?.block_on(serve::execute(&serve, &database, &global))
        }
        Command::Worker { sessions, store, action: Some(action), .. } => {
            runtime()?.block_on(jobs::execute(&action, &sessions, &store, &global))
        }
        Command::Worker { sessions, store, worker, action: None } => {
            runtime()?.block_on(worker::execute(&worker, &sessions, &store, &global))
        }
        Command::Db { store, action } => runtime()?.block_on(db::execute(&action, &store, &global)),
        Command::Config { action } => settings::execute(&action, &global),
    }
}

fn run_command(args: &RunCommand, global: &GlobalArgs) -> Result<Exit, AppError> {
    let runtime = runtime()?;
    if args.watch {
        return runtime.block_on(watch::execute(&args.run, global));
    }
    if args.ci {
        return runtime.block_on(ci::execute(args, global));
    }
    runtime.block_on(run::execute(&args.run, global))
}

fn compare_command(args: CompareArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let (json, markdown, fail_if_worse) = (args.json, args.markdown, args.fail_if_worse);
    match args.comparison() {
        Comparison::Runs([a, b]) => {
            compare::execute([&a, &b], compare::format(json, markdown), fail_if_worse, global)
        }
        Comparison::Power(run) => compare::plan(&run, json, global),
        Comparison::Itself(args) => runtime()?.block_on(aa::execute(&args, global)),
        Comparison::Replay(args) => runtime()?.block_on(compare::replay_run(&args, global)),
    }
}

fn judge_command(action: JudgeAction, global: &GlobalArgs) -> Result<Exit, AppError> {
    match action {
        JudgeAction::Bench(args) => runtime()?.block_on(judge::bench(&args, global)),
        JudgeAction::Attack(args) => runtime()?.block_on(judge::attack(&args, global)),
        JudgeAction::Rejudge(args) => runtime()?.block_on(rejudge::execute(&args, global)),
        JudgeAction::Label(args) => label::execute(&args, global),
        JudgeAction::Calibrate(args) => calibrate::execute(&args, global),
        JudgeAction::Model { action } => runtime()?.block_on(model::execute(action, global)),
    }
}

fn improve_command(action: ImproveAction, global: &GlobalArgs) -> Result<Exit, AppError> {
    let runtime = runtime()?;
    match action {
        ImproveAction::Gaps { store, action } => {
            runtime.block_on(improve::gaps(&action, &store, global))
        }
        ImproveAction::Proposals { store, action } => {
            runtime.block_on(improve::proposals(&action, &store, global))
        }
        ImproveAction::Skills { store, action } => {
            runtime.block_on(skills::execute(&action, &store, global))
        }
        ImproveAction::Route { task_type, agent, store } => {
            runtime.block_on(improve::route(task_type, agent.as_deref(), &store, global))
        }
        ImproveAction::Signals { action } => signals::execute(&action, global),
        ImproveAction::Reflect { store, action } => {
            runtime.block_on(reflect::execute(&action, &store, global))
        }
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

fn runtime() -> Result<tokio::runtime::Runtime, AppError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    let runtime = has_descriptors().and_then(|()| builder.build());
    runtime.map_err(|error| AppError::setup(anyhow::anyhow!("cannot start threads: {error}")))
}

/// Checks that enough files can be open: tokio panics if no descriptor is left for signals.
#[cfg(unix)]
fn has_descriptors() -> std::io::Result<()> {
    let files = std::iter::repeat_with(|| std::fs::File::open("/dev/null"));
    files.take(16).collect::<Result<Vec<_>, _>>().map(drop)
}

#[cfg(not(unix))]
fn has_descriptors() -> std::io::Result<()> {
    Ok(())
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
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time();
    let subscriber = tracing_subscriber::registry().with(own_only).with(layer);
    // An error means that a library user has a log already.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
