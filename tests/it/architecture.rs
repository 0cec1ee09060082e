//! The layout of the source: crates as ARCHITECTURE.md lists them, files that say what they are
//! for. Which crate may import which is the compiler's business.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::workspace::files;

/// Lines of a file that still holds one idea.
const MAX_LINES: usize = 800;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] =
    ["common", "helper", "helpers", "imp", "misc", "shared", "util", "utils"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Path below the root, and text, of every source file that is not a test of its own.
fn sources() -> Vec<(PathBuf, String)> {
    let mut sources: Vec<_> = ["src", "crates"]
        .iter()
        .flat_map(|folder| files(&root().join(folder)))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root()).unwrap().to_owned(), text)
        })
        .collect();
    sources.sort();
    assert!(sources.len() > 100, "only {} files", sources.len());
    sources
}

#[test]
fn the_map_lists_the_crates_that_there_are() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let row = Regex::new(r"(?m)^\| `crates/([a-z]+)` ").unwrap();
    let mut listed: Vec<String> = row.captures_iter(&map).map(|row| row[1].to_owned()).collect();
    let mut there: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    listed.sort();
    there.sort();
    assert_eq!(listed, there);
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!") && !text.starts_with("#![doc = include_str!"))
        .map(|(path, _)| path)
        .collect();
    assert!(silent.is_empty(), "no `//!` at the top of {silent:?}");
}

#[test]
fn no_file_grows_without_end() {
    let long: Vec<_> = sources()
        .into_iter()
        .map(|(path, text)| (text.lines().count(), path))
        .filter(|(lines, _)| *lines > MAX_LINES)
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
