//! Recorded sessions.

use crate::grade::recording::{Recording, id};
use crate::workspace::Workspace;

const AT: &str = "2026-11-17T10:00:00Z";

fn recorded() -> Workspace {
    let one = Recording::new(&id(1))
        .at(AT)
        .asks("Sort the table by date")
        .says("Sorted by name.")
        .asks("That's wrong. Sort the table by date")
        .says("Sorted by date.")
        .asks("perfect, thanks!")
        .says("You are welcome. That's wrong, ugh.");
    let two = Recording::new(&id(2))
        .at("2026-11-15T10:00:00Z")
        .asks("<command-name>/thanks</command-name>")
        .asks("Rename the column")
        .says("Done.")
        .asks("rename the column please! ghp_0123456789abcdefghijABCDEFGHIJ012345");
    Workspace::new()
        .old_session(&one, 1)
        .old_session(&two, 3)
        .file("sessions/notes.json", r#"{"shopping": ["thanks"]}"#)
}

fn scan(workspace: &Workspace, words: &[&str]) -> Workspace {
    workspace.clone().args([&["improve", "signals", "scan", "--source=sessions"], words].concat())
}

#[test]
fn what_people_said() {
    let workspace = recorded();
    let run = scan(&workspace, &[]).run().exit(0).snapshot("signals_scan");
    assert!(!run.stdout.contains("ghp_0123456789"), "{}", run.stdout);
    let json = scan(&workspace, &["--json"]).run().exit(0).json();
    for (name, count) in [
        ("sessions", 2),
        ("messages", 5),
        ("with_previous", 3),
        ("gratitude", 1),
        ("repetition", 2),
        ("frustration", 1),
    ] {
        assert_eq!(json[name], count, "{name}: {json:#}");
    }
    let found = json["found"].as_array().unwrap();
    let places: Vec<(&str, u64)> = found
        .iter()
        .map(|one| (one["session_id"].as_str().unwrap(), one["event"].as_u64().unwrap()))
        .collect();
    assert_eq!(places, [(&*id(1), 2), (&*id(1), 4), (&*id(2), 3)]);
    assert_eq!((&found[0]["frustration"], &found[0]["repetition"]), (&true.into(), &true.into()));
    assert!(!json.to_string().contains("ghp_0123456789"), "{json:#}");
}

#[test]
fn less_of_it() {
    let workspace = recorded();
    for (words, messages, listed) in [
        (&["--limit=1"][..], 5, 1),
        (&["--limit=0"], 5, 3),
        (&["--since=2026-11-16"], 3, 2),
        (&["--agent=claude-code"], 5, 3),
    ] {
        let json = scan(&workspace, &[words, &["--json"]].concat()).run().exit(0).json();
        assert_eq!(json["messages"], messages, "{words:?}");
        assert_eq!(json["found"].as_array().unwrap().len(), listed, "{words:?}");
    }
    let run = scan(&workspace, &["--limit=1"]).run().exit(0);
    let _ = run.stdout_contains("and 2 more: --limit 0 prints all");
}

#[test]
fn a_copy_of_a_session_counts_once_where_it_is_longest() {
    let short = Recording::new(&id(1)).at(AT).asks("Sort it").says("Done.");
    let long = short.clone().asks("thanks").says("Welcome.");
    let workspace = Workspace::new()
        .file("sessions/short.jsonl", short.text())
        .aged("sessions/short.jsonl", 1)
        .file("sessions/long.jsonl", long.text())
        .aged("sessions/long.jsonl", 2);
    let json = scan(&workspace, &["--json"]).run().exit(0).json();
    assert_eq!((&json["messages"], &json["sessions"]), (&2.into(), &1.into()), "{json:#}");
    assert_eq!(json["found"][0]["file"].as_str().unwrap().matches("long.jsonl").count(), 1);
}

#[test]
fn nothing_in_a_message_steers_the_terminal() {
    let evil = "thanks \u{1b}[2J\u{9b}31m\u{202e}\r\u{8}y";
    let workspace = Workspace::new()
        .file("sessions/evil.jsonl", Recording::new(&format!("0000{evil}")).asks(evil).text());
    let run = scan(&workspace, &[]).run().exit(0).stdout_contains("gratitude");
    let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!run.stdout.contains(obeyed), "{:?}", run.stdout);
}

#[test]
fn nothing_to_look_through() {
    let workspace = Workspace::new().file("sessions/notes.json", "{}");
    let _ = scan(&workspace, &[]).run().exit(4).stderr_contains("no recorded session");
    let run = scan(&workspace, &["--json"]).run().exit(4);
    assert_eq!(run.json()["messages"], 0);
    let run = scan(&workspace, &["--source=none"]).run().exit(2);
    let _ = run.one_error(&["--source none"]);
    let _ = scan(&recorded(), &["--agent=codex"]).run().exit(4);
    let _ = scan(&recorded(), &["--since=soon"]).run().exit(2).one_error(&["--since"]);
}
