//! Checks by an external program: interprets its result. Starts nothing.

use super::{Statement, named, quoted};
use crate::check::{CommandCheck, CommandEnd, Observation};

pub(super) fn ended(command: &CommandCheck, seen: &Observation<'_>) -> Statement {
    let program = named(command.run.program());
    let Some(run) = seen.commands.iter().find(|run| run.command == *command) else {
        return Statement::undecided(format!("the command {program} was not run"));
    };
    match &run.end {
        CommandEnd::NotStarted { why } => {
            Statement::undecided(format!("the command {program} did not start: {}", quoted(why)))
        }
        CommandEnd::Killed { signal } => {
            Statement::new(false, format!("the command {program} was ended by signal {signal}"))
        }
        CommandEnd::TimedOut => {
            let limit = command.timeout_seconds.seconds();
            Statement::new(false, format!("the command {program} did not end within {limit} s"))
        }
        CommandEnd::TooMuchOutput => {
            Statement::new(false, format!("the command {program} printed without end"))
        }
        CommandEnd::Exited { code, stdout } => exited(command, *code, stdout),
    }
}

fn exited(command: &CommandCheck, code: i32, stdout: &str) -> Statement {
    let program = named(command.run.program());
    let first = stdout.lines().next().unwrap_or_default().trim();
    let says = if first.is_empty() { String::new() } else { format!(": {}", quoted(first)) };
    if code != i32::from(command.exit_code) {
        let wanted = command.exit_code;
        let fact = format!("the command {program} ended with exit code {code}{says}");
        return Statement::new(false, fact).demanding(format!("{wanted} expected"));
    }
    if let Some(wanted) = &command.first_line
        && wanted.trim() != first
    {
        let fact = format!("the command {program} printed {}", quoted(first));
        return Statement::new(false, fact).demanding(format!("{} expected", quoted(wanted)));
    }
    if let Some(wanted) = &command.prints
        && !stdout.contains(wanted.as_str())
    {
        let fact = format!("the command {program} did not print {}", quoted(wanted.as_str()));
        return Statement::new(false, fact);
    }
    Statement::new(true, format!("the command {program} ended with exit code {code}{says}"))
}
