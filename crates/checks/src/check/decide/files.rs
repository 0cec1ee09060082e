//! Checks on changes to files.

use std::collections::BTreeSet;

use super::{FactStatement, any_of, quote_name, quote_text};
use crate::check::{
    CheckObservation, CheckText, FileChanges, FileContent, FileTextCheck, PathGlobs, is_glob,
    normalize_path,
};

/// Maximum number of paths named in a sentence.
const MAX_PATHS: usize = 3;

/// Describes how a file changed, if it did.
fn describe_change(report: &FileChanges, path: &str) -> Option<&'static str> {
    let lists = [
        (&report.created, "was created"),
        (&report.changed, "was changed"),
        (&report.deleted, "was deleted"),
    ];
    lists.iter().find(|(paths, _)| paths.contains(path)).map(|&(_, done)| done)
}

/// Returns the paths that match a glob. An invalid one matches nothing.
fn matching<'a>(
    paths: impl IntoIterator<Item = &'a String>,
    glob: &str,
) -> impl Iterator<Item = &'a String> {
    let globs = PathGlobs::new(vec![glob.to_owned()]).ok();
    paths
        .into_iter()
        .filter(move |path| globs.as_ref().is_some_and(|globs| globs.matches_path(path)))
}

/// Returns the files after the run that match a glob; `None` if not all were looked for and none is
/// known.
fn existing<'a>(report: &'a FileChanges, glob: &str) -> Option<BTreeSet<&'a String>> {
    let read = report.after.iter().filter(|(_, content)| **content != FileContent::Missing);
    let known = read.map(|(path, _)| path).chain(&report.created).chain(&report.changed);
    let found: BTreeSet<&String> = matching(known, glob).collect();
    (!found.is_empty() || report.listed.contains(glob)).then_some(found)
}

/// Decides by the text of a file, or of any file that matches a glob.
pub(super) fn with_text(
    path: &CheckText,
    seen: &CheckObservation<'_>,
    decide: impl Fn(&str, &str) -> FactStatement,
) -> FactStatement {
    let of_file = |report: &FileChanges, path: &str| {
        let shown = quote_name(path);
        match report.after.get(path) {
            Some(FileContent::Text(content)) => decide(content, path),
            Some(FileContent::Missing) => {
                FactStatement::new(false, format!("there is no file {shown}"))
            }
            Some(FileContent::Unreadable(why)) => {
                FactStatement::undecided(format!("{shown} cannot be read: {}", quote_text(why)))
            }
            None => FactStatement::undecided(format!("{shown} was not read")),
        }
    };
    with_report(path, seen, |report, path| {
        if !is_glob(path) {
            return of_file(report, path);
        }
        let shown = quote_name(path);
        match existing(report, path) {
            None => FactStatement::undecided(format!("{shown} was not looked for")),
            Some(found) if found.is_empty() => {
                FactStatement::new(false, format!("there is no file {shown}"))
            }
            Some(found) => {
                let mut all: Vec<FactStatement> =
                    found.into_iter().map(|path| of_file(report, path)).collect();
                if !report.listed.contains(path) {
                    all.push(FactStatement::undecided(format!("not all of {shown} was read")));
                }
                any_of(&all)
            }
        }
    })
}

fn with_report(
    path: &CheckText,
    seen: &CheckObservation<'_>,
    decide: impl FnOnce(&FileChanges, &str) -> FactStatement,
) -> FactStatement {
    match seen.files {
        Some(report) => decide(report, normalize_path(path)),
        None => FactStatement::not_reported("what happened to files"),
    }
}

/// Checks that a file changed in one way. If it changed in another way instead, the sentence names
/// that.
fn decide_change(
    path: &CheckText,
    seen: &CheckObservation<'_>,
    wanted: &'static str,
    list: fn(&FileChanges) -> &BTreeSet<String>,
) -> FactStatement {
    with_report(path, seen, |report, path| {
        if is_glob(path) {
            let fact = match matching(list(report), path).next() {
                Some(found) => format!("{} {wanted}", quote_name(found)),
                None => format!("no file {} {wanted}", quote_name(path)),
            };
            let done = matching(list(report), path).next().is_some();
            return FactStatement::new(done, fact);
        }
        let done = list(report).contains(path);
        let fact = match describe_change(report, path) {
            Some(change) => format!("{} {change}", quote_name(path)),
            None => format!("{} {}", quote_name(path), wanted.replacen("was", "was not", 1)),
        };
        FactStatement::new(done, fact).with_demand(format!("expected: {wanted}"))
    })
}

pub(in crate::check) fn created(path: &CheckText, seen: &CheckObservation<'_>) -> FactStatement {
    decide_change(path, seen, "was created", |report| &report.created)
}

pub(in crate::check) fn changed(path: &CheckText, seen: &CheckObservation<'_>) -> FactStatement {
    decide_change(path, seen, "was changed", |report| &report.changed)
}

pub(in crate::check) fn deleted(path: &CheckText, seen: &CheckObservation<'_>) -> FactStatement {
    decide_change(path, seen, "was deleted", |report| &report.deleted)
}

pub(in crate::check) fn unchanged(path: &CheckText, seen: &CheckObservation<'_>) -> FactStatement {
    with_report(path, seen, |report, path| match describe_change(report, path) {
        _ if is_glob(path) => {
            let lists = report.created.iter().chain(&report.changed).chain(&report.deleted);
            match matching(lists, path).next() {
                Some(found) => {
                    let change = describe_change(report, found).unwrap_or_default();
                    FactStatement::new(false, format!("{} {change}", quote_name(found)))
                }
                // The check would always hold for a misspelt name.
                None if existing(report, path).is_none_or(|found| found.is_empty()) => {
                    let path = quote_name(path);
                    FactStatement::undecided(format!("there is no file {path}, before or after"))
                }
                None => FactStatement::new(true, format!("no {} was changed", quote_name(path))),
            }
        }
        Some(change) => FactStatement::new(false, format!("{} {change}", quote_name(path))),
        // The check would always hold for a misspelt name.
        None if report.after.get(path) == Some(&FileContent::Missing) => FactStatement::undecided(
            format!("there is no file {}, before or after", quote_name(path)),
        ),
        None => FactStatement::new(true, format!("{} was not changed", quote_name(path))),
    })
}

pub(in crate::check) fn exists(path: &CheckText, seen: &CheckObservation<'_>) -> FactStatement {
    with_report(path, seen, |report, path| {
        if is_glob(path) {
            let shown = quote_name(path);
            return match existing(report, path) {
                None => FactStatement::undecided(format!("{shown} was not looked for")),
                Some(found) => match found.first() {
                    Some(found) => {
                        FactStatement::new(true, format!("there is a file {}", quote_name(found)))
                    }
                    None => FactStatement::new(false, format!("there is no file {shown}")),
                },
            };
        }
        let there = match report.after.get(path) {
            Some(FileContent::Missing) => false,
            Some(_) => true,
            None if report.deleted.contains(path) => false,
            // The lists are complete, so a created or changed file exists afterwards.
            None if describe_change(report, path).is_some() => true,
            None => {
                return FactStatement::undecided(format!(
                    "{} was not looked for",
                    quote_name(path)
                ));
            }
        };
        let is = if there { "there is a file" } else { "there is no file" };
        FactStatement::new(there, format!("{is} {}", quote_name(path)))
    })
}

pub(in crate::check) fn contains(
    wanted: &FileTextCheck,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let text = wanted.text.as_str();
    with_text(&wanted.path, seen, |content, path| {
        let path = quote_name(path);
        if content.contains(text) {
            FactStatement::new(true, format!("{path} contains {}", quote_text(text)))
        } else {
            FactStatement::new(false, format!("{path} does not contain {}", quote_text(text)))
        }
    })
}

/// A changed verifier proves nothing: the case is undecided, not failed.
pub(in crate::check) fn untouched(globs: &PathGlobs, seen: &CheckObservation<'_>) -> FactStatement {
    let Some(report) = seen.files else {
        return FactStatement::not_reported("what happened to files");
    };
    let touched = report.changed.iter().chain(&report.deleted);
    match touched.into_iter().find(|path| globs.matches_path(path)) {
        Some(path) => {
            let change = describe_change(report, path).unwrap_or_default();
            FactStatement::undecided(format!("tainted: {} {change}", quote_name(path)))
        }
        None => FactStatement::new(true, "what the case is decided by was not changed"),
    }
}

pub(in crate::check) fn only_changes(
    globs: &PathGlobs,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let Some(report) = seen.files else {
        return FactStatement::not_reported("what happened to files");
    };
    let all = report.created.iter().chain(&report.changed).chain(&report.deleted);
    let others: Vec<&String> = all.filter(|path| !globs.matches_path(path)).collect();
    if others.is_empty() {
        return FactStatement::new(true, "only what may be changed was changed");
    }
    let shown = others.iter().take(MAX_PATHS);
    let shown = shown
        .map(|path| {
            format!("{} {}", quote_name(path), describe_change(report, path).unwrap_or_default())
        })
        .collect::<Vec<_>>()
        .join(", ");
    let more = match others.len().saturating_sub(MAX_PATHS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let allowed = globs.sources().iter().take(MAX_PATHS).map(|path| quote_name(path));
    let allowed = allowed.collect::<Vec<_>>().join(", ");
    let demand = if allowed.is_empty() {
        "no change expected".to_owned()
    } else {
        format!("changes only in {allowed} expected")
    };
    FactStatement::new(false, format!("{shown}{more}")).with_demand(demand)
}
