//! The hook that runs with what is in use after a promotion, a disabling and a rollback
//! (docs/spec/skills-and-signals.md#registry-refresh); a failure is a warning.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::model_server::wire::Connection;
use crate::workspace::{NOBODY, Workspace};

const APPEND: &str = r#"{ refresh: { command: [sh, -c, "cat >> told.json; echo >> told.json"] } }"#;

fn told(workspace: &Workspace) -> Vec<Value> {
    let text = std::fs::read_to_string(workspace.path("told.json")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// docs/spec/skills-and-signals.md#registry-refresh: after each of the three.
#[test]
fn a_command_is_told_of_every_change() {
    let workspace = Workspace::new().skills_config(APPEND);
    let workspace = workspace.promoted("pr", "# PR").promoted("pr", "# A better PR");
    let _ = workspace.skills(&["rollback", "pr"]).run().exit(0);
    let _ = workspace.skills(&["disable", "pr"]).run().exit(0);
    let workspace = workspace.promoted("bad", "# Bad").used("bad", "error", 10);
    let _ = workspace.skills(&["score", "--auto-disable"]).run().exit(0);
    let news = told(&workspace);
    let line = |news: &Value| {
        let active = &news["active"];
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        [
            &news["action"],
            &news["skill_name"],
            &news["version"],
            &active["version"],
            &active["content"],
        ]
        .map(text)
        .join(" ")
    };
    let lines: Vec<String> = news.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "promote pr 1 1 # PR",
            "promote pr 2 2 # A better PR",
            "rollback pr 2 1 # PR",
            "disable pr 1 - -",
            "promote bad 1 1 # Bad",
            "auto_disable bad 1 - -",
        ]
    );
    assert_eq!(
        (&news[0]["kind"], &news[0]["user_id"]),
        (&json!("selftest.skills"), &json!("local"))
    );
    assert_eq!(workspace.actions("bad"), ["promote", "auto_disable"]);
}

/// docs/spec/skills-and-signals.md#registry-refresh: a failed refresh is a warning.
#[test]
fn a_hook_that_fails_is_noted_and_the_change_is_made() {
    for (refresh, words) in [
        (r#"command: [sh, -c, "exit 3"]"#.to_owned(), "the refresh command \"sh\" failed"),
        ("command: [no-such-program-here]".to_owned(), "\"no-such-program-here\" failed"),
        (
            format!("webhook: \"http://{NOBODY}/?token=t0p-s3cret\""),
            "the refresh webhook at http://127.0.0.1:1 failed",
        ),
    ] {
        let workspace = Workspace::new().skills_config(&format!("{{ refresh: {{ {refresh} }} }}"));
        let workspace = workspace.file("SKILL.md", "# PR");
        let run = workspace.skills(&["promote", "pr", "--file", "SKILL.md"]).run().exit(0);
        let run = run.stderr_contains("warning: the refresh ").stderr_contains(words);
        assert!(!run.stderr.contains("t0p-s3cret"), "{}", run.stderr);
        assert_eq!(workspace.statuses("pr"), ["1 active"]);
        assert_eq!(workspace.actions("pr"), ["promote", "refresh_failed"]);
        let run = workspace.skills(&["history", "pr"]).run().exit(0);
        let _ = run.stdout_contains(words);
    }
}

#[test]
fn a_webhook_gets_the_change() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/skills", listener.local_addr().unwrap());
    let bodies = Arc::<Mutex<Vec<Value>>>::default();
    let received = Arc::clone(&bodies);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut connection = Connection::new(stream.unwrap());
            if let Some(request) = connection.read() {
                received.lock().unwrap().push(serde_json::from_slice(&request.body).unwrap());
                connection.write(204, &[], b"");
            }
        }
    });
    let section = format!("{{ refresh: {{ webhook: \"{address}\" }} }}");
    let workspace = Workspace::new().skills_config(&section).promoted("pr", "# PR");
    let bodies = bodies.lock().unwrap();
    let [body] = &bodies[..] else { panic!("{bodies:?}") };
    assert_eq!((&body["action"], &body["active"]["content"]), (&json!("promote"), &json!("# PR")));
    assert_eq!(workspace.actions("pr"), ["promote"]);
}
