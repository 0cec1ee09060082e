//! Hints for commands and options that exist elsewhere on the command line.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

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
pub(super) fn add(mut error: clap::Error, command: &Command) -> clap::Error {
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
fn places(command: &Command, name: &str, is_option: bool) -> Vec<String> {
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

fn find_commands(command: &Command, name: &str, path: &str, places: &mut Vec<String>) {
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        let path = format!("{path}{}", inner.get_name());
        if inner.get_name() == name {
            places.push(path.clone());
        }
        find_commands(inner, name, &format!("{path} "), places);
    }
}

fn find_options(command: &Command, name: &str, path: &str, places: &mut Vec<String>) {
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
    use clap::CommandFactory as _;

    use crate::cli::Cli;

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
