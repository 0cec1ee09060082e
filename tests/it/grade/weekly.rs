//! `selftest grade weekly`: the files of a report.

use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag};
use regex::Regex;

use super::recording::{Recording, id};
use crate::databases::on_each_database;
use crate::workspace::{Workspace, files};

on_each_database! {
    a_page_two_pictures_and_an_index,
    the_same_report_again,
    json_is_what_the_database_keeps,
}

const FOLDER: &str = "docs/reports/weekly";

/// Mondays of the four weeks before 2026-W47.
const MONDAYS: [&str; 4] = ["2026-10-19", "2026-10-26", "2026-11-02", "2026-11-09"];

/// Five good sessions in each of four weeks, twelve bad ones in 2026-W47.
pub(super) fn five_weeks() -> Workspace {
    five_weeks_in(Workspace::new())
}

pub(crate) fn five_weeks_in(mut workspace: Workspace) -> Workspace {
    for (week, monday) in (0..).zip(MONDAYS) {
        for number in 0..5 {
            let at = format!("{monday}T1{number}:00:00Z");
            workspace = workspace.session(&Recording::on(&id(10 * week + number), &at, true));
        }
    }
    for number in 0..12 {
        let at = format!("2026-11-1{}T{:02}:00:00Z", 6 + number % 4, 8 + number);
        workspace = workspace.session(&Recording::on(&id(100 + number), &at, false));
    }
    workspace
}

fn weekly(workspace: &Workspace, week: &str) -> Workspace {
    workspace.clone().grade(&["weekly", "--week", week])
}

/// Where the links and pictures of a page lead.
fn targets(page: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(page).unwrap();
    let links = Parser::new_ext(&text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
        _ => None,
    });
    links.map(|link| page.parent().unwrap().join(&*link)).collect()
}

/// Every element is closed by its own end, and nothing but names and quoted values is in a tag.
fn assert_xml(text: &str) {
    let tag = Regex::new(r#"<(/?)([A-Za-z][\w:-]*)((?:\s+[\w:-]+="[^"<]*")*)\s*(/?)>"#).unwrap();
    let entity = Regex::new(r"&(amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);").unwrap();
    let mut open = Vec::new();
    let mut end = 0;
    let check_text = |text: &str| {
        assert!(!text.contains(['<', '>']), "a stray bracket in {text:?}");
        assert!(!entity.replace_all(text, "").contains('&'), "a stray & in {text:?}");
    };
    for found in tag.captures_iter(text) {
        let whole = found.get(0).unwrap();
        check_text(&text[end..whole.start()]);
        end = whole.end();
        match (&found[1], &found[4]) {
            ("/", _) => assert_eq!(open.pop(), Some(found[2].to_owned()), "{text}"),
            (_, "") => open.push(found[2].to_owned()),
            _ => {}
        }
    }
    check_text(&text[end..]);
    assert!(open.is_empty() && text.starts_with("<svg"), "open: {open:?} in {text}");
}

fn a_page_two_pictures_and_an_index(workspace: Workspace) {
    let workspace = five_weeks_in(workspace);
    let run = weekly(&workspace, "2026-W47").run().exit(0);
    assert!(run.stdout.starts_with(&format!("{FOLDER}/2026-W47.md\n")), "{}", run.stdout);
    let _ = weekly(&workspace, "2026-W46").run().exit(0);

    let mut names: Vec<String> = files(&workspace.path(FOLDER))
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let of = |week: &str| {
        [format!("{week}-errors.svg"), format!("{week}-trend.svg"), format!("{week}.md")]
    };
    let expected = [&of("2026-W46")[..], &of("2026-W47"), &["index.md".to_owned()]].concat();
    assert_eq!(names, expected);

    for path in files(&workspace.path(FOLDER)) {
        if path.extension().is_some_and(|extension| extension == "svg") {
            assert_xml(&fs::read_to_string(&path).unwrap());
            continue;
        }
        let targets = targets(&path);
        assert!(!targets.is_empty(), "{}", path.display());
        for target in targets {
            assert!(target.is_file(), "{} leads to {}", path.display(), target.display());
        }
    }
    let page = run.read(&format!("{FOLDER}/2026-W47.md"));
    for part in ["2026-W47", "0 % (0 of 12)", "32 files found, 32 read, 32 sessions graded", "Bash"]
    {
        assert!(page.contains(part), "no `{part}` in {page}");
    }
    let index = run.read(&format!("{FOLDER}/index.md"));
    let newest = index.find("2026-W47.md").unwrap();
    assert!(newest < index.find("2026-W46.md").unwrap(), "{index}");
}

fn the_same_report_again(workspace: Workspace) {
    let workspace = five_weeks_in(workspace);
    let told = |run: &crate::run::Run| {
        let page = run.read(&format!("{FOLDER}/2026-W47.md"));
        // When it was made, and how many files the last scan did not read again.
        let changing = Regex::new(r"(?m)^.*(files found|Made|made|UTC).*$").unwrap();
        let pictures = ["trend", "errors"].map(|name| format!("{FOLDER}/2026-W47-{name}.svg"));
        let pictures = pictures.map(|path| run.read(&path)).concat();
        (changing.replace_all(&page, "").into_owned(), pictures)
    };
    let first = told(&weekly(&workspace, "2026-W47").run().exit(0));
    assert!(first.0.len() > 500, "{}", first.0);
    assert_eq!(first, told(&weekly(&workspace, "2026-W47").run().exit(0)));
    assert_eq!(files(&workspace.path(FOLDER)).len(), 4, "no file is left behind");
    let kept = workspace.sql("SELECT week_start, week_end FROM weekly_reports");
    assert_eq!(kept, [["2026-11-16", "2026-11-22"]]);
}

fn json_is_what_the_database_keeps(workspace: Workspace) {
    let workspace = five_weeks_in(workspace);
    let run = workspace.clone().grade(&["weekly", "--week=2026-W47", "--json"]).run().exit(0);
    let kept = &workspace.sql("SELECT report_json FROM weekly_reports")[0][0];
    assert_eq!(run.json(), serde_json::from_str::<serde_json::Value>(kept).unwrap());
    assert_eq!(run.json()["summary"]["sessions"], 12);
    assert_eq!(run.json()["coverage"]["found"], 32);
    assert!(workspace.path(FOLDER).join("2026-W47.md").is_file());
}

/// A session of another agent in 2026-W47.
const HERMES: &str = r#"{"session_id": "h1", "session_start": "2026-11-17T10:00:00Z", "messages": [
    {"role": "user", "content": "fix the login"},
    {"role": "assistant", "content": "Done: the login works again."}]}"#;

#[test]
fn a_report_of_one_agent_is_only_printed() {
    let workspace = five_weeks()
        .file("sessions/h1.json", HERMES)
        .grade_config(r#"{ alerts: { command: [sh, -c, "cat >> told.json"] } }"#);
    let of = |agent: &str, words: &[&str]| {
        let all = [&["weekly", "--week=2026-W47", "--agent", agent], words].concat();
        workspace.clone().grade(&all).run()
    };
    let run = of("claude-code", &[]).exit(0).stderr_contains("note: with --agent");
    let run = run.stdout_contains("Only sessions of claude-code. 12 tasks of this week");
    let _ = run.stdout_contains("Tool efficiency: worse than before");
    assert!(!workspace.path(FOLDER).exists() && !workspace.path("told.json").exists());
    assert!(workspace.sql("SELECT report_json FROM weekly_reports").is_empty());

    let whole = weekly(&workspace, "2026-W47").run().exit(0);
    let page = whole.read(&format!("{FOLDER}/2026-W47.md"));
    assert!(page.contains("\n13 tasks of this week") && !page.contains("Only sessions"));
    let told = whole.read("told.json");
    let kept = workspace.sql("SELECT * FROM weekly_reports");

    let json = of("hermes", &["--json", "--no-scan"]).exit(0).json();
    assert_eq!((&json["agent"], &json["summary"]["sessions"]), (&"hermes".into(), &1.into()));
    let _ = of("nobody", &[]).exit(4).stdout_contains("Only sessions of nobody. No task");
    assert_eq!(workspace.sql("SELECT * FROM weekly_reports"), kept);
    assert_eq!(whole.read(&format!("{FOLDER}/2026-W47.md")), page);
    assert_eq!(whole.read("told.json"), told);
}

#[test]
fn a_week_without_sessions_is_no_success() {
    let workspace = five_weeks();
    let run = weekly(&workspace, "2026-W30").run().exit(4);
    let _ = run.stdout_contains("2026-W30.md").read(&format!("{FOLDER}/2026-W30.md"));
}

#[test]
fn a_week_that_has_just_begun_points_to_the_one_before() {
    let workspace = five_weeks().env("SELFTEST_NOW", "2026-11-23T00:10:00Z");
    let hint = "hint: 2026-W48 has no graded session yet; --week 2026-W47 is the one before";
    for words in [&["weekly"][..], &["-r"], &["weekly", "--agent", "claude-code"]] {
        let _ = workspace.clone().grade(words).run().exit(4).stderr_contains(hint);
    }
    let _ = workspace.env("SELFTEST_NOW", "2026-11-22T23:50:00Z").grade(&["-r"]).run().exit(0);
}

#[test]
fn the_coverage_is_that_of_the_scan() {
    let workspace = five_weeks();
    let coverage = |words: &[&str]| {
        let words = [&["grade", "weekly", "--week=2026-W47"], words].concat();
        let run = workspace.clone().args(words).run();
        let page = run.read(&format!("{FOLDER}/2026-W47.md"));
        let line = page.lines().find(|line| line.starts_with("**Coverage of the scan:**"));
        let (_, text) = line.unwrap().split_once("** ").unwrap();
        text.to_owned()
    };
    let sessions = ["--source", "sessions"];
    let holds = "The database holds 32 graded sessions";
    let first = format!("32 files found, 32 read, 32 sessions graded, 0 skipped. {holds}.");
    assert_eq!(coverage(&sessions), first);

    for number in 0..5 {
        fs::remove_file(workspace.path(&format!("sessions/{}.jsonl", id(number)))).unwrap();
    }
    let again = "27 files found (27 of them unchanged since the last scan), 0 read, 0 sessions \
                 graded, 0 skipped.";
    assert_eq!(coverage(&sessions), format!("{again} {holds}."));

    let _ = workspace.clone().file("other/notes.jsonl", "{\"nothing\": 1}\n");
    let other = "1 file found, 1 read, 0 sessions graded, 1 skipped: 1 without a session.";
    assert_eq!(coverage(&["--source", "other"]), format!("{other} {holds}."));
    let recent = "27 files found, 0 read, 0 sessions graded, 0 skipped; 27 left out: too old, of \
                  another agent or still being written.";
    let since = [&sessions[..], &["--since", "2099-01-01"]].concat();
    assert_eq!(coverage(&since), format!("{recent} {holds}."));

    let without = "No scan was made for this report.";
    let knows = "and knows 33 files, some of which may be gone by now; 1 skipped: 1 without a \
                 session.";
    assert_eq!(coverage(&["--no-scan"]), format!("{without} {holds}, {knows}"));
}

#[test]
fn without_a_scan() {
    let workspace = five_weeks();
    let run = workspace.grade(&["weekly", "--week=2026-W47", "--no-scan"]).run().exit(4);
    assert!(!run.stderr.contains("files found"), "{}", run.stderr);
}

#[test]
fn weeks_that_are_none() {
    for week in ["2026-47", "2026-W54", "2025-W53", "soon"] {
        let run = Workspace::new().args(["grade", "weekly", "--week", week]).run().exit(2);
        let run = run.one_error(&["--week", week]);
        let _ = run.stderr_contains("hint: an ISO week such as 2026-W47");
    }
}

#[test]
fn a_folder_that_cannot_be_written() {
    let workspace =
        five_weeks().file("taken", "a file").grade_config("{ weekly_folder: taken/weekly }");
    let run = weekly(&workspace, "2026-W47").run().exit(5).one_error(&["taken/weekly"]);
    let _ = run.stderr_contains("hint: set grade.weekly_folder");
}
