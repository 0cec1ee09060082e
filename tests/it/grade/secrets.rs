//! Secrets in a session get no further: not to stdout, not into the database, not into reports.

use serde_json::json;

use super::recording::{Recording, id};
use super::sqlite::DATABASE;
use crate::workspace::Workspace;

/// By its shape.
const KEY: &str = "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c";
/// By its name.
const PASSWORD: &str = "correct-horse-9battery";
/// By its value, which stands in the environment.
const TOKEN: &str = "quite ordinary words of a token";

/// A session outside the project that says every secret wherever it can.
fn leaky() -> Workspace {
    let said = format!("the key {KEY}, DB_PASSWORD={PASSWORD} and {TOKEN}");
    let command = json!({ "command": format!("deploy --note '{said}'") });
    let failed = format!("Exit code 1\nrefused with {said}");
    let mut recording = Recording::new(&id(1)).asks(&format!("Deploy with {said}"));
    for _ in 0..6 {
        recording = recording.calls("Bash", &command, Err(&failed));
    }
    let recording = recording.says(&format!("Done with {said}, saved to {said}, see {said}."));
    let workspace = Workspace::new().file("../leaky/a.jsonl", recording.text());
    let source = workspace.path("../leaky");
    workspace
        .grade_config(&format!("{{ sources: [\"{}\"] }}", source.display()))
        .env("DEPLOY_TOKEN", TOKEN)
}

#[test]
fn no_command_repeats_a_secret() {
    let workspace = leaky();
    for words in [
        &["grade", "latest"][..],
        &["grade", "latest", "--json"],
        &["grade", "show", "00000001"],
        &["grade", "show", "00000001", "--json"],
        &["grade", "summary"],
        &["grade", "weekly"],
        &["grade", "weekly", "--json"],
        &["sessions", "list"],
        &["sessions", "list", "--json"],
        &["sessions", "show", "00000001"],
        &["sessions", "show", "00000001", "--full"],
        &["sessions", "show", "00000001", "--json"],
    ] {
        let run = workspace.clone().args(words).run().exit(0);
        let _ = run.nowhere(KEY).nowhere(PASSWORD).nowhere(TOKEN);
    }
    assert!(workspace.path(DATABASE).is_file());
    let kept = workspace.sql("SELECT details_json FROM session_grades");
    assert!(kept[0][0].contains("[redacted]"), "{kept:?}");
}
