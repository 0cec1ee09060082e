//! Checks on changes to files.

use std::collections::BTreeSet;

use super::{Statement, named, quoted};
use crate::check::{FileContains, FileContent, FileReport, Globs, Observation, Text, plain};

/// Maximum number of paths named in a sentence.
const MAX_PATHS: usize = 3;

/// Describes how a file changed, if it did.
fn change(report: &FileReport, path: &str) -> Option<&'static str> {
    let lists = [
        (&report.created, "was created"),
        (&report.changed, "was changed"),
        (&report.deleted, "was deleted"),
    ];
    lists.iter().find(|(paths, _)| paths.contains(path)).map(|&(_, done)| done)
}

fn with_report(
    path: &Text,
    seen: &Observation<'_>,
    decide: impl FnOnce(&FileReport, &str) -> Statement,
) -> Statement {
    match seen.files {
        Some(report) => decide(report, plain(path)),
        None => Statement::not_reported("what happened to files"),
    }
}

/// Checks that a file changed in one way. If it changed in another way instead, the sentence names
/// that.
fn happened(
    path: &Text,
    seen: &Observation<'_>,
    wanted: &'static str,
    list: fn(&FileReport) -> &BTreeSet<String>,
) -> Statement {
    with_report(path, seen, |report, path| {
        let done = list(report).contains(path);
        let fact = match change(report, path) {
            Some(change) => format!("{} {change}", named(path)),
            None => format!("{} {}", named(path), wanted.replacen("was", "was not", 1)),
        };
        Statement::new(done, fact).demanding(format!("expected: {wanted}"))
    })
}

pub(super) fn created(path: &Text, seen: &Observation<'_>) -> Statement {
    happened(path, seen, "was created", |report| &report.created)
}

pub(super) fn changed(path: &Text, seen: &Observation<'_>) -> Statement {
    happened(path, seen, "was changed", |report| &report.changed)
}

pub(super) fn deleted(path: &Text, seen: &Observation<'_>) -> Statement {
    happened(path, seen, "was deleted", |report| &report.deleted)
}

pub(super) fn unchanged(path: &Text, seen: &Observation<'_>) -> Statement {
    with_report(path, seen, |report, path| match change(report, path) {
        Some(change) => Statement::new(false, format!("{} {change}", named(path))),
        // The check would always hold for a misspelt name.
        None if report.after.get(path) == Some(&FileContent::Missing) => {
            Statement::undecided(format!("there is no file {}, before or after", named(path)))
        }
        None => Statement::new(true, format!("{} was not changed", named(path))),
    })
}

pub(super) fn exists(path: &Text, seen: &Observation<'_>) -> Statement {
    with_report(path, seen, |report, path| {
        let there = match report.after.get(path) {
            Some(FileContent::Missing) => false,
            Some(_) => true,
            None if report.deleted.contains(path) => false,
            // The lists are complete, so a created or changed file exists afterwards.
            None if change(report, path).is_some() => true,
            None => return Statement::undecided(format!("nobody looked for {}", named(path))),
        };
        let is = if there { "there is a file" } else { "there is no file" };
        Statement::new(there, format!("{is} {}", named(path)))
    })
}

pub(super) fn contains(wanted: &FileContains, seen: &Observation<'_>) -> Statement {
    with_report(&wanted.path, seen, |report, path| {
        let path = named(path);
        let text = wanted.text.as_str();
        match report.after.get(plain(&wanted.path)) {
            Some(FileContent::Text(content)) if content.contains(text) => {
                Statement::new(true, format!("{path} contains {}", quoted(text)))
            }
            Some(FileContent::Text(_)) => {
                Statement::new(false, format!("{path} does not contain {}", quoted(text)))
            }
            Some(FileContent::Missing) => Statement::new(false, format!("there is no file {path}")),
            Some(FileContent::Unreadable(why)) => {
                Statement::undecided(format!("{path} cannot be read: {}", quoted(why)))
            }
            None => Statement::undecided(format!("nobody read {path}")),
        }
    })
}

pub(super) fn only_changes(globs: &Globs, seen: &Observation<'_>) -> Statement {
    let Some(report) = seen.files else {
        return Statement::not_reported("what happened to files");
    };
    let all = report.created.iter().chain(&report.changed).chain(&report.deleted);
    let others: Vec<&String> = all.filter(|path| !globs.match_path(path)).collect();
    if others.is_empty() {
        return Statement::new(true, "only what may be changed was changed");
    }
    let shown = others.iter().take(MAX_PATHS);
    let shown = shown
        .map(|path| format!("{} {}", named(path), change(report, path).unwrap_or_default()))
        .collect::<Vec<_>>()
        .join(", ");
    let more = match others.len().saturating_sub(MAX_PATHS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let allowed = globs.sources().iter().take(MAX_PATHS).map(|path| named(path));
    let allowed = allowed.collect::<Vec<_>>().join(", ");
    let demand = if allowed.is_empty() {
        "no change expected".to_owned()
    } else {
        format!("changes only in {allowed} expected")
    };
    Statement::new(false, format!("{shown}{more}")).demanding(demand)
}
