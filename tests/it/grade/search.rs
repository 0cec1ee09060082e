//! `selftest sessions search`: what is new is graded and indexed first.

use super::recording::{Recording, id};
use crate::databases::on_each_database;
use crate::workspace::Workspace;

on_each_database! {
    what_is_new_is_found_at_once,
    what_changes_or_goes_is_found_no_more,
    a_search_is_narrowed,
}

fn recorded(workspace: Workspace) -> Workspace {
    workspace.session(&Recording::on(&id(1), "2026-11-16T10:00:00Z", true)).session(&Recording::on(
        &id(2),
        "2026-11-17T10:00:00Z",
        false,
    ))
}

fn search(workspace: &Workspace, words: &[&str]) -> Workspace {
    workspace.clone().args([&["sessions", "search"], words, &["--source", "sessions"]].concat())
}

fn ids(workspace: &Workspace, words: &[&str]) -> Vec<String> {
    let json = search(workspace, &[words, &["--json"]].concat()).run().exit(0).json();
    let items = json["items"].as_array().unwrap();
    items.iter().map(|item| item["session_id"].as_str().unwrap().to_owned()).collect()
}

fn what_is_new_is_found_at_once(workspace: Workspace) {
    let workspace = recorded(workspace);
    let run = search(&workspace, &["\"connection refused\""]).run().exit(0);
    let _ = run.snapshot("sessions_search");
    let workspace = workspace.session(&Recording::on(&id(3), "2026-11-18T10:00:00Z", true));
    assert_eq!(ids(&workspace, &["parser", "--no-scan"]), [id(1)]);
    assert_eq!(ids(&workspace, &["parser"]), [id(3), id(1)]);
    let nothing = search(&workspace, &["absent"]).run().exit(0);
    assert_eq!(nothing.stdout, "nothing was found\n");
    let run = search(&workspace, &["\"\" *"]).run().exit(2);
    let _ = run.one_error(&["no word to search for"]);
    let run = search(&workspace, &["x", "--cursor", "y"]).run().exit(2);
    let _ = run.one_error(&["--cursor"]);
}

fn what_changes_or_goes_is_found_no_more(workspace: Workspace) {
    let workspace = recorded(workspace);
    assert_eq!(ids(&workspace, &["parser"]), [id(1)]);
    let changed = Recording::new(&id(1)).at("2026-11-16T10:00:00Z").asks("Fix the renderer");
    let workspace = workspace.session(&changed.says("Done: the renderer draws again."));
    assert_eq!(ids(&workspace, &["parser"]), Vec::<String>::new());
    assert_eq!(ids(&workspace, &["renderer"]), [id(1)]);
    workspace.sql(&format!("DELETE FROM session_grades WHERE session_id = '{}'", id(1)));
    assert_eq!(ids(&workspace, &["renderer", "--no-scan"]), Vec::<String>::new());
    // A secret is in no index.
    let key = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
    let secret = Recording::new(&id(4)).asks(&format!("the key is {key}")).says("Noted, done.");
    let workspace = workspace.session(&secret);
    assert_eq!(ids(&workspace, &["noted"]), [id(4)]);
    let run = search(&workspace, &["\"the key is\""]).run().exit(0);
    assert!(!run.stdout.contains("a1B2c3D4") && run.stdout.contains("redacted"), "{}", run.stdout);
    assert_eq!(ids(&workspace, &["a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"]), Vec::<String>::new());
}

fn a_search_is_narrowed(workspace: Workspace) {
    let workspace = recorded(workspace);
    assert_eq!(ids(&workspace, &["the"]).len(), 2);
    for (words, expected) in [
        (&["the"][..], &[2, 1][..]),
        (&["the", "--agent=claude-code"], &[2, 1]),
        (&["the", "--agent=codex"], &[]),
        (&["the", "--project=app", "--model=opus"], &[2, 1]),
        (&["the", "--until=2026-11-17"], &[1]),
        (&["refused", "--tool=Bash", "--errors"], &[2]),
        (&["refused", "--tool=Read"], &[]),
        (&["passed", "--errors"], &[]),
    ] {
        let expected: Vec<String> = expected.iter().map(|&number| id(number)).collect();
        let words = [words, &["--no-scan"]].concat();
        assert_eq!(ids(&workspace, &words), expected, "{words:?}");
    }
}
