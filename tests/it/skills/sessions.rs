//! Executions out of recorded sessions, and what the next message says
//! (docs/spec/skills-and-signals.md#next-message).

use serde_json::json;

use crate::grade::recording::{Recording, id};
use crate::workspace::Workspace;

/// A session in which a skill is used and the person says something next.
fn session(number: u32, skill: &str, result: Result<&str, &str>, next: &str) -> Recording {
    Recording::on(&id(number), "2026-11-16T10:00:00Z", true)
        .asks("open the pull request for the parser")
        .calls("Skill", &json!({ "skill": skill }), result)
        .says("It is open.")
        .asks(next)
}

fn launched(number: u32, next: &str) -> Recording {
    session(number, "pr", Ok("Launching skill: pr"), next)
}

fn derived(workspace: &Workspace, more: &[&str]) -> Workspace {
    let words = ["record", "--from-sessions", "--source", "sessions", "--json"];
    workspace.skills(&[&words[..], more].concat())
}

const ROWS: &str = "SELECT session_id, execution_status, user_sent_thank_you, \
                    user_repeated_request, conversation_turns, execution_time_ms, error_message, \
                    created_at FROM skill_executions ORDER BY session_id";

/// docs/spec/skills-and-signals.md#next-message: executions and what the next message says.
#[test]
fn uses_in_sessions_become_executions_with_signals() {
    let failed = Err("<tool_use_error>Unknown skill: pr</tool_use_error>");
    let workspace = Workspace::new()
        .session(&launched(1, "Thank you!"))
        .session(&launched(2, "open the pull request for the parser"))
        .session(&session(3, "pr", failed, "Now the docs."))
        .session(&Recording::success(&id(4)));
    let json = derived(&workspace, &[]).run().exit(0).json();
    let counts = ["files", "sessions", "executions", "answered"].map(|name| json[name].as_u64());
    assert_eq!(counts, [4, 3, 3, 3].map(Some));
    let rows = workspace.sql(ROWS);
    let at = "2026-11-16T10:00:05.000000000Z";
    assert_eq!(
        rows,
        [
            [&*id(1), "success", "1", "0", "1", "2000", "", at],
            [&*id(2), "success", "0", "1", "1", "2000", "", at],
            [&*id(3), "error", "0", "0", "1", "2000", "Unknown skill: pr", at],
        ]
    );
    assert_eq!(workspace.statuses("pr"), ["unversioned active"]);
    let run =
        workspace.skills(&["record", "--from-sessions", "--source", "sessions"]).run().exit(0);
    let _ = run.stdout_contains("4 files read: 3 executions of skills in 3 sessions");
    // Nothing of what people wrote is kept.
    let run = derived(&workspace, &[]).run().exit(0);
    assert_eq!(workspace.sql(ROWS), rows, "reading again changes nothing");
    let database = std::fs::read(workspace.path(".selftest/selftest.db")).unwrap();
    let database = String::from_utf8_lossy(&database);
    assert!(!database.contains("Thank you!") && run.stderr.is_empty(), "{}", run.stderr);
}

/// docs/spec/skills-and-signals.md#next-message: the next message comes later.
#[test]
fn a_session_that_goes_on_gets_its_next_message() {
    let begun = Recording::on(&id(1), "2026-11-16T10:00:00Z", true)
        .calls("Skill", &json!({ "skill": "pr" }), Ok("Launching skill: pr"))
        .says("It is open.");
    let workspace = Workspace::new().session(&begun);
    let _ = derived(&workspace, &[]).run().exit(0);
    assert_eq!(workspace.sql(ROWS)[0][2], "0");
    let workspace = workspace.session(&begun.says("And merged.").asks("thanks a lot"));
    let _ = derived(&workspace, &[]).run().exit(0);
    let rows = workspace.sql(ROWS);
    assert_eq!((rows.len(), &*rows[0][2], &*rows[0][4]), (1, "1", "2"));
}

#[test]
fn a_promoted_skill_gets_the_uses_since_then() {
    let workspace = Workspace::new().promoted("pr", "# PR");
    workspace.sql("UPDATE skill_audit SET made_at = '2026-11-01T00:00:00.000000000Z'");
    let workspace = workspace.session(&launched(1, "thanks"));
    let _ = derived(&workspace, &[]).run().exit(0);
    assert_eq!(workspace.statuses("pr"), ["1 active"]);
    let uses = workspace.sql(
        "SELECT version, COUNT(*) FROM skill_executions JOIN skill_versions \
         ON skill_versions.id = skill_version_id GROUP BY version",
    );
    assert_eq!(uses, [["1", "1"]]);
}

#[test]
fn only_what_is_asked_for_is_read() {
    let workspace = Workspace::new()
        .old_session(&launched(1, "thanks"), 24 * 40)
        .session(&launched(2, "thanks"))
        .file("sessions/notes.json", "{}")
        .file("sessions/torn.jsonl", launched(3, "thanks").torn());
    let count = |more: &[&str], code| {
        let json = derived(&workspace, more).run().exit(code).json();
        json["executions"].as_u64().unwrap()
    };
    assert_eq!(count(&["--agent", "codex"], 4), 0);
    assert_eq!(count(&["--since", "30d"], 0), 2);
    assert_eq!(count(&[], 0), 3);
    let nothing = Workspace::new().file("sessions/readme.txt", "x");
    let run = derived(&nothing, &[]).run().exit(4);
    let _ = run.stderr_contains("no recorded session was found in");
}
