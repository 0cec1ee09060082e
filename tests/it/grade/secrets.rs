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

/// A message of a session, with the words that must be gone and those that must stay.
const ESCAPED: [(&str, &[&str], &str); 6] = [
    ("DB_PASSWORD=letmein\nthen go on", &["letmein"], "then go on"),
    ("password: \"hunter2secret\" is set", &["hunter2"], "is set"),
    ("{\"api_key\": \"abcdefg77\", \"user\": \"me\"}", &["abcdefg77"], "\"user\": \"me\""),
    ("-d '{\"client_secret\":\"othersecret9\"}' sent", &["othersecret9"], "sent"),
    ("token is a\"b\\c-12345-zzz there", &["12345", "a\"b"], "there"),
    ("last -----BEGIN PRIVATE KEY-----\nMIIEabcdef", &["MIIE"], "last"),
];

/// Quotes, line breaks and backslashes in and around secrets: what is said is redacted, and then
/// serialised.
#[test]
fn escapes_hide_no_secret_and_spoil_no_json() {
    let mut recording = Recording::new(&id(1)).asks("Say it.");
    for (said, ..) in ESCAPED {
        let nested = json!({ "command": format!("echo {}", json!({ "said": said })) });
        recording = recording.calls("Bash", &nested, Ok(said)).says(said);
    }
    let workspace = Workspace::new()
        .file("../leaky/a.jsonl", recording.says("Done.").text())
        .env("MY_TOKEN", "a\"b\\c-12345-zzz");
    for words in [
        &["sessions", "show", "../leaky/a.jsonl"][..],
        &["sessions", "show", "../leaky/a.jsonl", "--full"],
        &["sessions", "show", "../leaky/a.jsonl", "--json"],
    ] {
        let mut run = workspace.clone().args(words).run().exit(0);
        if words.contains(&"--json") {
            let events = run.json()[0]["events"].clone();
            let said: Vec<_> = events.as_array().unwrap().iter().collect();
            for (.., kept) in ESCAPED {
                let is_kept = |event: &&&serde_json::Value| {
                    event["text"].as_str().is_some_and(|text| text.contains(kept))
                };
                assert!(said.iter().any(|event| is_kept(&event)), "{kept} in {said:#?}");
            }
        }
        for secret in ESCAPED.iter().flat_map(|(_, secrets, _)| *secrets) {
            run = run.nowhere(secret);
        }
    }
}
