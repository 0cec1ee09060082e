//! Checks on files: on how they changed, and on their content by pattern or as data.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::answer::{compare_count, equal};
use super::{FactStatement, any_of, quote_name, quote_text};
use crate::check::{
    CheckObservation, CheckText, DataFormat, FileChanges, FileContent, FileDataCheck,
    FilePatternCheck, FileTextCheck, PathGlobs, is_glob, normalize_path,
};
use crate::yaml::{self, YamlFileKind, YamlSchema};
use selftest_text::one_line;
use selftest_text::wording::plural;

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
    // A list that was not asked for proves that a file is there, and never that none is.
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
                    // Beside it no file that was read can make the check fail; one that holds still
                    // decides.
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
            // What the case is decided by is no longer its author's, whatever it says.
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

/// Maximum size of a YAML file, in bytes. The harness reads no more of any file.
const MAX_YAML: usize = 1 << 20;

pub(in crate::check) fn matches(
    wanted: &FilePatternCheck,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let shown = quote_name(wanted.pattern.as_str());
    with_text(&wanted.path, seen, |content, path| {
        let path = quote_name(path);
        match wanted.pattern.find(content) {
            Ok(Some(found)) => {
                let found = quote_text(found);
                FactStatement::new(true, format!("{path} matches {shown} with {found}"))
            }
            Ok(None) => FactStatement::new(false, format!("{path} does not match {shown}")),
            Err(error) => FactStatement::undecided(format!("{shown} in {path}: {error}")),
        }
    })
}

pub(in crate::check) fn data(wanted: &FileDataCheck, seen: &CheckObservation<'_>) -> FactStatement {
    with_text(&wanted.path, seen, |content, path| match parse(wanted.format, content) {
        Ok(data) => decide_data(wanted, &data, &quote_name(path)),
        Err(why) => {
            let format: &str = wanted.format.into();
            let path = quote_name(path);
            let why = one_line(&why.to_string(), 200);
            FactStatement::new(false, format!("{path} is not {}: {why}", format.to_uppercase()))
        }
    })
}

fn decide_data(wanted: &FileDataCheck, data: &Value, path: &str) -> FactStatement {
    let pointer = wanted.pointer.as_ref().map_or("", |pointer| pointer.as_str());
    let place = if pointer.is_empty() {
        path.to_owned()
    } else {
        format!("{} of {path}", quote_name(pointer))
    };
    let Some(value) = data.pointer(pointer) else {
        return FactStatement::new(wanted.absent, format!("there is no {place}"));
    };
    let shown = quote_text(&value.to_string());
    if wanted.absent {
        return FactStatement::new(false, format!("{place} is {shown}"))
            .with_demand("none expected".to_owned());
    }
    if let Some(equals) = &wanted.equals {
        // A cell of a table is always text; `80` in it equals the number.
        let is_cell = matches!(wanted.format, DataFormat::Csv | DataFormat::Tsv);
        let is_equal = equal(value, equals) || is_cell && cell_equals(value, equals);
        if !is_equal {
            return FactStatement::new(false, format!("{place} is {shown}"))
                .with_demand(format!("{} expected", quote_text(&equals.to_string())));
        }
    }
    if let Some(pattern) = &wanted.matches {
        let text = match value {
            Value::String(text) => Some(text.clone()),
            // As they are written, so that a pattern such as `^8` fits the number 80.
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        };
        let found = pattern.find_in(text.as_deref());
        let pattern = quote_name(pattern.as_str());
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                return FactStatement::undecided(format!("{pattern} in {place}: {error}"));
            }
        };
        if found.is_none() {
            return FactStatement::new(false, format!("{place} is {shown}"))
                .with_demand(format!("a match of {pattern} expected"));
        }
    }
    if let Some(bounds) = wanted.count {
        let (count, noun) = match value {
            Value::Array(items) => (items.len(), "item"),
            Value::Object(members) => (members.len(), "member"),
            Value::String(text) => (text.chars().count(), "character"),
            _ => return FactStatement::new(false, format!("{place} is {shown}, not a list")),
        };
        let fact = format!("{place} has {}", plural(count as u64, noun));
        if !bounds.contains(count as u64) {
            return compare_count(count as u64, bounds, fact);
        }
    }
    if let Some(fault) = wanted.schema.as_ref().and_then(|schema| schema.first_fault(value)) {
        return FactStatement::new(false, format!("{place} violates the schema: {fault}"));
    }
    FactStatement::new(true, format!("{place} is as expected: {shown}"))
}

/// Compares a cell, which is a text, with a number or a boolean.
fn cell_equals(cell: &Value, wanted: &Value) -> bool {
    let Some(text) = cell.as_str().map(str::trim) else { return false };
    serde_json::from_str::<Value>(text).is_ok_and(|parsed| equal(&parsed, wanted))
}

/// A file is not of its format. Messages may have several lines.
#[derive(Debug, thiserror::Error)]
enum DataSyntaxError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("line {line}: {source}")]
    JsonLine { line: usize, source: serde_json::Error },
    #[error("{0}")]
    Yaml(String),
    #[error("line {line}: `{key}` is there twice")]
    DuplicateKey { line: usize, key: String },
    #[error("{}", .0.message())]
    Toml(#[from] toml::de::Error),
    #[error(transparent)]
    Table(#[from] csv::Error),
}

/// Parses a file.
fn parse(format: DataFormat, text: &str) -> Result<Value, DataSyntaxError> {
    // Spreadsheets and editors on Windows begin files with a byte order mark, which no format
    // allows.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        DataFormat::Json => Ok(serde_json::from_str(text)?),
        DataFormat::Jsonl => {
            let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
            let values = lines.map(|(text, line)| {
                serde_json::from_str(text)
                    .map_err(|source| DataSyntaxError::JsonLine { line, source })
            });
            values.collect::<Result<_, _>>().map(Value::Array)
        }
        DataFormat::Yaml => {
            let kind = YamlFileKind { max_bytes: MAX_YAML, hint: "", schema: YamlSchema::V1_2 };
            let document =
                yaml::parse(text, kind).map_err(|error| DataSyntaxError::Yaml(error.message))?;
            match document.duplicates.first() {
                // A reader of the file would take one of the two, and which one differs between
                // programs.
                Some(twice) => {
                    let before = text.get(..twice.second.start).unwrap_or(text);
                    let line = before.matches('\n').count() + 1;
                    Err(DataSyntaxError::DuplicateKey { line, key: one_line(&twice.key, 60) })
                }
                None => Ok(document.value),
            }
        }
        DataFormat::Toml => Ok(toml::from_str(text)?),
        DataFormat::Csv => rows(text, b','),
        DataFormat::Tsv => rows(text, b'\t'),
    }
}

/// Reads a table whose first line has the names of the columns.
fn rows(text: &str, delimiter: u8) -> Result<Value, DataSyntaxError> {
    // Not flexible: the cells of a row of another length would stand under wrong names.
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
    let names = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let cells = names.iter().zip(&record);
        let row: Map<String, Value> =
            cells.map(|(name, cell)| (name.trim().to_owned(), json!(cell))).collect();
        rows.push(Value::Object(row));
    }
    Ok(Value::Array(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CheckOutcome, FileChanges, FileContent, decide, read};

    fn outcome(check: &Value, files: &[(&str, &str)]) -> (CheckOutcome, String) {
        let after = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), FileContent::Text((*text).to_owned())));
        let changes = FileChanges {
            after: after.collect(),
            listed: ["out/*.json".to_owned()].into(),
            ..FileChanges::default()
        };
        let seen = CheckObservation {
            output: "done",
            files: Some(&changes),
            ..CheckObservation::default()
        };
        let finding = decide(&read(check).unwrap(), &seen);
        (finding.outcome, finding.sentence)
    }

    #[test]
    fn values_are_found_by_pointer_in_every_format() {
        use CheckOutcome::{Failed, Held};
        let files = [
            ("a.json", r#"{"version": "27.0.0", "list": [1, 2], "id": "case-1"}"#),
            ("a.jsonl", "{\"a\": 1}\n\n{\"a\": 2}\n"),
            ("a.yaml", "on: push\njobs: {build: {steps: [x]}}\n"),
            ("a.toml", "[package]\nname = \"x\"\n"),
            ("a.csv", "name,price\nApple,1.50\n\"Pear, big\",2\n"),
            ("broken.json", "{"),
            ("twice.yaml", "a: 1\na: 2\n"),
        ];
        for (check, wanted) in [
            (json!({"path": "a.json", "pointer": "/version", "equals": "27.0.0"}), Held),
            (json!({"path": "a.json", "pointer": "/version", "equals": "27.0.1"}), Failed),
            (json!({"path": "a.json", "pointer": "/id", "matches": "^case-[0-9]$"}), Held),
            (json!({"path": "a.json", "pointer": "/root", "absent": true}), Held),
            (json!({"path": "a.json", "pointer": "/id", "absent": true}), Failed),
            (json!({"path": "a.json", "pointer": "/list", "count": 2}), Held),
            (json!({"path": "a.json", "pointer": "/list", "count": {"min": 3}}), Failed),
            (json!({"path": "a.json", "schema": {"required": ["id"]}}), Held),
            (json!({"path": "a.json", "schema": {"required": ["no"]}}), Failed),
            (json!({"path": "a.jsonl", "pointer": "/1/a", "equals": 2}), Held),
            (json!({"path": "a.yaml", "pointer": "/on", "equals": "push"}), Held),
            (json!({"path": "a.toml", "pointer": "/package/name", "equals": "x"}), Held),
            (json!({"path": "a.csv", "pointer": "/1/name", "equals": "Pear, big"}), Held),
            (json!({"path": "a.csv", "pointer": "/0/price", "equals": 1.5}), Held),
            (json!({"path": "a.csv", "count": 2}), Held),
            (json!({"path": "broken.json"}), Failed),
            (json!({"path": "twice.yaml"}), Failed),
            (json!({"path": "a.*", "format": "json", "pointer": "/id"}), Held),
            (json!({"path": "out/*.json"}), Failed),
        ] {
            let (found, sentence) = outcome(&json!({ "file_data": check }), &files);
            assert_eq!(found, wanted, "{check}: {sentence}");
        }
        let pattern = json!({"file_matches": {"path": "a.toml", "pattern": "(?m)^name = "}});
        assert_eq!(outcome(&pattern, &files).0, Held);
        let twice = outcome(&json!({"file_data": {"path": "twice.yaml"}}), &files);
        assert!(twice.1.contains("line 2: `a` is there twice"), "{twice:?}");
        let unseen = json!({"file_data": {"path": "b.json"}});
        assert_eq!(outcome(&unseen, &files).0, CheckOutcome::Undecided);
        let unlisted = json!({"file_exists": "in/*.json"});
        assert_eq!(outcome(&unlisted, &files).0, CheckOutcome::Undecided);
        assert_eq!(outcome(&json!({"file_exists": "a.*"}), &files).0, Held);
        assert_eq!(outcome(&json!({"file_exists": "out/*.json"}), &files).0, Failed);
    }

    #[test]
    fn a_check_of_data_says_what_it_lacks() {
        for (value, why) in [
            (json!({"path": "a.txt"}), "expected `format`"),
            (json!({"path": "a.json", "absent": true}), "`absent` needs `pointer`"),
            (json!({"path": "a.json", "pointer": "a"}), "must be a JSON pointer"),
        ] {
            let faults = read(&json!({ "file_data": value })).unwrap_err();
            assert!(faults[0].message.contains(why), "{faults:?}");
        }
        let short = json!({"file_data": {"path": "a.yml", "pointer": "/a", "equals": null}});
        assert_eq!(serde_json::to_value(read(&short).unwrap()).unwrap(), short);
    }
}
