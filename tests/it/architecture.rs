//! The imports of src/ against the table of rooms in ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::workspace::files;

/// Files that may be longer than [`LONGEST`], each with a reason. Empty is the aim.
const LONG_FILES: [(&str, &str); 0] = [];

const LONGEST: usize = 400;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] =
    ["common", "helper", "helpers", "imp", "misc", "shared", "util", "utils"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Path below src/, and text.
fn sources() -> Vec<(PathBuf, String)> {
    let src = root().join("src");
    let mut sources: Vec<_> = files(&src)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(&src).unwrap().to_owned(), text)
        })
        .collect();
    sources.sort();
    assert!(sources.len() > 20, "only {} files in {}", sources.len(), src.display());
    sources
}

/// Level of each room: rows of the form ``| `name` | 3 | … |``.
fn levels() -> BTreeMap<String, u32> {
    let table = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let row = Regex::new(r"(?m)^\|\s*`([a-z_]+)(?:/|\.rs)?`\s*\|\s*(\d+)\s*\|").unwrap();
    row.captures_iter(&table).map(|row| (row[1].to_owned(), row[2].parse().unwrap())).collect()
}

/// The first part of the path: `judge/ask.rs` and `judge.rs` are in `judge`.
fn room(path: &Path) -> String {
    let first = path.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// Every room named after `crate::`, in imports and in bodies, in groups too; with its line.
fn imports(text: &str) -> Vec<(usize, String)> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n")
        .collect();
    let path = Regex::new(r"\bcrate::(?:([a-z_0-9]+)|\{)").unwrap();
    let mut found = Vec::new();
    for hit in path.captures_iter(&code) {
        let whole = hit.get(0).unwrap();
        let line = code[..whole.start()].lines().count().max(1);
        match hit.get(1) {
            Some(room) => found.push((line, room.as_str().to_owned())),
            None => found.extend(group(&code[whole.end()..]).into_iter().map(|room| (line, room))),
        }
    }
    found
}

/// The first names of the entries of `{a::b, c::{d, e}, f}`, given what follows the `{`.
fn group(text: &str) -> Vec<String> {
    let (mut depth, mut at_start, mut names) = (0, true, Vec::new());
    for (position, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            _ if c.is_whitespace() => {}
            _ if at_start => {
                let rest = &text[position..];
                let end =
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                names.push(rest[..end].to_owned());
                at_start = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn a_room_imports_lower_rooms_only() {
    let levels = levels();
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let room = room(&path);
        // The crate's table of contents names all rooms.
        if room == "lib" {
            continue;
        }
        let Some(level) = levels.get(&room) else {
            continue;
        };
        for (line, target) in imports(&text) {
            if target == room {
                continue;
            }
            match levels.get(&target) {
                Some(below) if below < level => {}
                Some(other) => faults.push(format!(
                    "src/{}:{line}: `{room}` ({level}) imports `{target}` ({other})",
                    path.display()
                )),
                None => faults.push(format!(
                    "src/{}:{line}: `{target}` is no room of ARCHITECTURE.md",
                    path.display()
                )),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_table_lists_the_rooms_that_there_are() {
    let mut there: Vec<String> = sources().iter().map(|(path, _)| room(path)).collect();
    there.retain(|room| room != "lib" && room != "main");
    there.sort();
    there.dedup();
    let mut listed: Vec<String> = levels().into_keys().collect();
    listed.retain(|room| room != "lib" && room != "main");
    assert_eq!(listed, there);
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(silent.is_empty(), "no `//!` at the top of {silent:?}");
}

#[test]
fn no_file_grows_without_end() {
    let excused = |path: &Path| LONG_FILES.iter().any(|(name, _)| Path::new(name) == path);
    let long: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| text.lines().count() > LONGEST && !excused(path))
        .map(|(path, text)| format!("src/{}: {} lines", path.display(), text.lines().count()))
        .collect();
    assert!(long.is_empty(), "split by nouns: {long:#?}");
}

#[test]
fn every_name_says_something() {
    let empty: Vec<_> = sources()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| {
            path.with_extension("")
                .components()
                .any(|part| EMPTY_NAMES.contains(&part.as_os_str().to_string_lossy().as_ref()))
        })
        .collect();
    assert!(empty.is_empty(), "{empty:?}");
}

#[test]
fn groups_are_understood() {
    let text = "use crate::model::{self, Call};\n// crate::comment\npub(crate) use crate::{\n    \
                text::{clip, one_line}, score,\n    judge::Verdict,\n};\n";
    let found = imports(text);
    let rooms: Vec<&str> = found.iter().map(|(_, room)| room.as_str()).collect();
    assert_eq!(rooms, ["model", "text", "score", "judge"]);
    assert_eq!(found[0].0, 1);
}
