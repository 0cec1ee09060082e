//! Checks by an external program: interprets its result. Starts nothing.

use super::{FactStatement, quote_name, quote_text};
use crate::check::{CheckObservation, CommandCheck, CommandOutcome};

pub(in crate::check) fn decide_command(
    command: &CommandCheck,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let program = quote_name(command.run.program());
    let Some(run) = seen.commands.iter().find(|run| run.command == *command) else {
        return FactStatement::undecided(format!("the command {program} was not run"));
    };
    match &run.end {
        CommandOutcome::NotStarted { why } => FactStatement::undecided(format!(
            "the command {program} did not start: {}",
            quote_text(why)
        )),
        CommandOutcome::Killed { signal } => {
            FactStatement::new(false, format!("the command {program} was ended by signal {signal}"))
        }
        CommandOutcome::TimedOut => {
            let limit = command.timeout_seconds.seconds();
            FactStatement::new(false, format!("the command {program} did not end within {limit} s"))
        }
        CommandOutcome::TooMuchOutput => {
            FactStatement::new(false, format!("the command {program} printed without end"))
        }
        CommandOutcome::Exited { code, stdout } => decide_exit(command, *code, stdout),
    }
}

fn decide_exit(command: &CommandCheck, code: i32, stdout: &str) -> FactStatement {
    let program = quote_name(command.run.program());
    let first = stdout.lines().next().unwrap_or_default().trim();
    let says = if first.is_empty() { String::new() } else { format!(": {}", quote_text(first)) };
    if command.undecided_exit.is_some_and(|exit| code == i32::from(exit)) {
        return FactStatement::undecided(format!("the command {program} could not decide{says}"));
    }
    if code != i32::from(command.exit_code) {
        let wanted = command.exit_code;
        let fact = format!("the command {program} ended with exit code {code}{says}");
        return FactStatement::new(false, fact).with_demand(format!("{wanted} expected"));
    }
    if let Some(wanted) = &command.first_line
        && wanted.trim() != first
    {
        let fact = format!("the command {program} printed {}", quote_text(first));
        return FactStatement::new(false, fact)
            .with_demand(format!("{} expected", quote_text(wanted)));
    }
    if let Some(wanted) = &command.prints
        && !stdout.contains(wanted.as_str())
    {
        let fact = format!("the command {program} did not print {}", quote_text(wanted.as_str()));
        return FactStatement::new(false, fact);
    }
    if let Some(pattern) = &command.matches {
        let shown = quote_name(pattern.as_str());
        let fact = || format!("the output of the command {program} does not match {shown}");
        match pattern.find(stdout) {
            Ok(Some(_)) => {}
            Ok(None) => return FactStatement::new(false, fact()),
            Err(error) => return FactStatement::undecided(format!("{shown}: {error}")),
        }
    }
    FactStatement::new(true, format!("the command {program} ended with exit code {code}{says}"))
}
