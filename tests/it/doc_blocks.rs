//! Fenced blocks of the documents show what the program prints and what the code says.
//!
//! A block after `<!-- source: PATH -->` is part of that file, whose code is compiled and tested. The
//! output in a `console` block after `<!-- snapshot: NAME -->` is that snapshot of a real run. A block
//! after `<!-- output: COMMAND -->` is what this command of the page prints; the tests that run the
//! page compare it ([`compare_outputs`]).
//!
//! A `console` block is compared if the line above it is `<!-- console: FOLDER -->`, where FOLDER is
//! one of the prepared folders in [`prepare`]. A block after `<!-- file: PATH -->` is a file of that
//! folder. All commands of a page with the same FOLDER run in it, from top to bottom. A line with only
//! `…` stands for any number of lines; durations, dates and the folder's path are not compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use regex::Regex;

use crate::improve::routing::two_task_types;
use crate::improve::{detect, four_gaps};
use crate::run::Run;
use crate::skill_test;
use crate::workspace::{Workspace, files};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a folder in which blocks of this name run.
fn prepare(name: &str) -> Workspace {
    let workspace = Workspace::new();
    match name {
        "empty" => workspace,
        "examples" => {
            let examples = files(&root().join("examples"));
            examples.iter().fold(workspace, |workspace, file| {
                let path = file.strip_prefix(root()).unwrap().to_str().unwrap();
                workspace.file(path, fs::read(file).unwrap())
            })
        }
        "skill gaps" => {
            let workspace = four_gaps(workspace);
            let _ = detect(&workspace).run().exit(0);
            workspace
        }
        "skills repository" => skill_test::example(workspace),
        "two task types" => two_task_types(workspace),
        other => panic!("no prepared folder is called {other:?}"),
    }
}

/// A fenced block after a comment such as `<!-- console: empty -->`.
struct MarkedBlock {
    line: usize,
    key: String,
    value: String,
    lines: Vec<String>,
}

fn marked_blocks(page: &str) -> Vec<MarkedBlock> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().zip(1..);
    let mut mark = None;
    while let Some((line, number)) = lines.next() {
        if line.starts_with("```") {
            let inside = lines.by_ref().map(|(line, _)| line).take_while(|line| *line != "```");
            let inside: Vec<String> = inside.map(str::to_owned).collect();
            if let Some((key, value)) = mark.take() {
                blocks.push(MarkedBlock { line: number, key, value, lines: inside });
            }
        } else if !line.is_empty() {
            let comment = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
            mark = comment.and_then(|comment| comment.split_once(": ")).and_then(|(key, value)| {
                let is_known = ["console", "file", "output", "snapshot", "source"].contains(&key);
                is_known.then(|| (key.to_owned(), value.to_owned()))
            });
        }
    }
    blocks
}

/// Replaces what differs from run to run.
fn normalize(text: &str, folder: &Path) -> Vec<String> {
    let filters = [
        (r"selftest-\d{8}-\d{4}-\w{6}", "RUN"),
        // A column is as wide as its longest time.
        (r" +(Time|\d+(\.\d+)? (ms|s|min))$", " TIME"),
        (r"\d{4}-\d\d-\d\d(T[\d:.]+Z?| \d\d:\d\d(:\d\d)?)?", "DATE"),
        (r"\b\d+(\.\d+)? (ms|s|min)\b", "TIME"),
        (r"[ \t]+$", ""),
    ];
    let text = text.replace(&*folder.to_string_lossy(), ".");
    let replace = |line: &str| {
        filters.iter().fold(line.to_owned(), |line, (pattern, with)| {
            Regex::new(pattern).unwrap().replace_all(&line, *with).into_owned()
        })
    };
    text.lines().map(replace).collect()
}

/// Returns true if the lines are the expected ones, of which `…` stands for any number.
fn matches(expected: &[String], found: &[String]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=found.len()).any(|skipped| matches(rest, &found[skipped..]))
        }
        Some((line, rest)) => {
            found.split_first().is_some_and(|(own, found)| own == line && matches(rest, found))
        }
    }
}

/// Splits a command line at spaces outside of quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in command.chars() {
        match letter {
            '"' | '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn run(workspace: &Workspace, command: &str) -> Run {
    let words = words(command);
    assert_eq!(words[0], "selftest", "only `selftest` can be compared: {command}");
    workspace.clone().args(&words[1..]).run()
}

/// Compares the blocks of a page, and returns how many commands were compared.
fn compare(name: &str) -> usize {
    let page = fs::read_to_string(root().join(name)).unwrap();
    let blocks = marked_blocks(&page);
    let mut folders: BTreeMap<&str, Workspace> = BTreeMap::new();
    let mut compared = 0;
    for MarkedBlock { line, value, lines, .. } in blocks.iter().filter(|it| it.key == "console") {
        let workspace = folders.entry(value).or_insert_with(|| {
            let files = blocks.iter().filter(|block| block.key == "file");
            files.fold(prepare(value), |workspace, file| {
                workspace.file(&file.value, file.lines.join("\n") + "\n")
            })
        });
        let mut lines = lines.iter().peekable();
        while let Some(prompt) = lines.next() {
            let command = prompt.strip_prefix("$ ");
            let command = command.unwrap_or_else(|| panic!("{name}:{line}: no prompt: {prompt}"));
            let output = std::iter::from_fn(|| lines.next_if(|line| !line.starts_with("$ ")));
            let output: Vec<&str> = output.map(String::as_str).collect();
            let run = run(workspace, command);
            let expected = normalize(&output.join("\n"), &workspace.project());
            let found = normalize(&run.stdout, &workspace.project());
            assert!(
                matches(&expected, &found),
                "{name}:{line}: `{command}` prints\n{}\n{}",
                run.stdout,
                run.stderr
            );
            compared += 1;
        }
    }
    compared
}

/// Compares the blocks of a page after `<!-- output: COMMAND -->` with what these commands printed
/// in a folder, and returns how many there are.
pub(crate) fn compare_outputs(
    name: &str,
    printed: &BTreeMap<String, String>,
    folder: &Path,
) -> usize {
    let page = fs::read_to_string(root().join(name)).unwrap();
    let blocks = marked_blocks(&page).into_iter().filter(|block| block.key == "output");
    blocks
        .map(|MarkedBlock { line, value, lines, .. }| {
            let printed = printed.get(&value);
            let printed = printed.unwrap_or_else(|| panic!("{name}:{line}: not run: {value}"));
            let expected = normalize(&lines.join("\n"), folder);
            let is_printed = matches(&expected, &normalize(printed, folder));
            assert!(is_printed, "{name}:{line}: `{value}` prints\n{printed}");
        })
        .count()
}

fn pages() -> Vec<String> {
    let docs = fs::read_dir(root().join("docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages = names
        .filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "md"))
        .map(|name| format!("docs/{name}"));
    pages.chain(["README.md".to_owned()]).collect()
}

#[test]
fn console_blocks_show_what_is_printed() {
    let compared: usize = pages().iter().map(|page| compare(page)).sum();
    assert!(compared >= 4, "{compared}");
}

#[test]
fn console_blocks_show_what_other_tests_print() {
    let mut compared = 0;
    for name in pages() {
        let page = fs::read_to_string(root().join(&name)).unwrap();
        for MarkedBlock { line, key, value, lines } in marked_blocks(&page) {
            if key != "snapshot" {
                continue;
            }
            let snapshot = root().join("tests/it/snapshots").join(format!("{value}.snap"));
            let snapshot = fs::read_to_string(snapshot).unwrap();
            let (_, printed) = snapshot[4..].split_once("---\n").unwrap();
            let printed: Vec<String> = printed.lines().map(str::to_owned).collect();
            assert!(matches(&lines[1..], &printed), "{name}:{line}: expected\n{printed:#?}");
            compared += 1;
        }
    }
    assert!(compared >= 2, "{compared}");
}

#[test]
fn code_blocks_are_part_of_the_code() {
    let mut compared = 0;
    for name in pages() {
        let page = fs::read_to_string(root().join(&name)).unwrap();
        for MarkedBlock { line, key, value, lines } in marked_blocks(&page) {
            if key != "source" {
                continue;
            }
            let code = fs::read_to_string(root().join(&value));
            let code = code.unwrap_or_else(|error| panic!("{name}:{line}: {value}: {error}"));
            // Code in a macro or a function is indented there.
            let code: Vec<&str> = code.lines().map(str::trim_start).collect();
            let lines: Vec<&str> = lines.iter().map(|line| line.trim_start()).collect();
            assert!(
                code.windows(lines.len()).any(|window| window == lines),
                "{name}:{line}: {value} says something else"
            );
            compared += 1;
        }
    }
    assert!(compared >= 6, "{compared}");
}

#[test]
fn omitted_lines_match_any_number() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (expected, found, is_match) in [
        ("a\n…\nb", "a\nb", true),
        ("a\n…\nb", "a\nx\ny\nb", true),
        ("a\n…", "a\nx", true),
        ("a\n…\nb", "a\nx", false),
        ("a", "a\nb", false),
        ("a b …", "a b …", true),
    ] {
        assert_eq!(matches(&lines(expected), &lines(found)), is_match, "{expected} {found}");
    }
    assert_eq!(words("selftest a 'b c' \"d\""), ["selftest", "a", "b c", "d"]);
}
