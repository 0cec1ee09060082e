//! Sessions as they should not be, through the real binary: what can be read is, and what cannot is
//! said. Formats that are damaged byte by byte are tested beside their readers.

use std::fs;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;

use super::recording::{Recording, id};
use crate::server::site::Site;
use crate::workspace::Workspace;

const AT: &str = "2026-11-16T10:00:00Z";

/// The JSON of `sessions show` for the only session of a file.
fn shown(workspace: &Workspace, file: &str) -> serde_json::Value {
    let run = workspace.clone().args(["sessions", "show", file, "--json"]).run().exit(0);
    let json = run.json();
    assert_eq!(json.as_array().unwrap().len(), 1, "{json}");
    json[0].clone()
}

fn calls(session: &serde_json::Value) -> usize {
    let events = session["events"].as_array().unwrap().iter();
    events.map(|event| event["calls"].as_array().map_or(0, Vec::len)).sum()
}

#[test]
fn a_session_that_grows_while_it_is_read() {
    let input = json!({ "command": "ls" });
    let grown = (0..200).fold(Recording::new(&id(1)).at(AT).asks("Count the files"), |one, _| {
        one.calls("Bash", &input, Ok("a file"))
    });
    let text = grown.says("Done.").text();
    let workspace = Workspace::new().file("sessions/grows.jsonl", "");
    let path = workspace.path("sessions/grows.jsonl");
    let is_written = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::File::options().append(true).open(&path).unwrap();
            // In pieces that end within lines, as a reader may meet them.
            for piece in text.as_bytes().chunks(777) {
                file.write_all(piece).unwrap();
                thread::yield_now();
            }
            is_written.store(true, Ordering::Release);
        });
        // Whatever part of it is there: graded, or too little of it.
        loop {
            let was_written = is_written.load(Ordering::Acquire);
            let run = workspace.clone().grade(&["latest", "--json"]).run();
            assert!(run.ended_with(0) || run.ended_with(4), "{}", run.stderr);
            if was_written {
                break;
            }
        }
    });
    let _ = workspace.clone().grade(&["latest"]).run();
    let grade = workspace.clone().args(["grade", "show", "00000001", "--json"]).run().exit(0);
    let json = grade.json();
    assert_eq!(json["by_rules"]["details"]["tool_calls"], 200, "{json}");
    assert!(!grade.stderr.contains("lost"), "{}", grade.stderr);
}

#[test]
fn two_agents_that_write_one_file() {
    let input = json!({ "command": "ls" });
    let one = Recording::new(&id(1)).at(AT).asks("one").calls("Bash", &input, Ok("1")).says("Ok.");
    let two = Recording::new(&id(2)).at(AT).asks("two").calls("Read", &input, Ok("2")).says("Ok.");
    let (one, two) = (one.text(), two.text());
    let mixed: Vec<&str> = one.lines().zip(two.lines()).flat_map(|(a, b)| [a, b]).collect();
    let workspace = Workspace::new().file("sessions/both.jsonl", mixed.join("\n"));
    let run = workspace.clone().args(["sessions", "show", "sessions/both.jsonl", "--json"]);
    let json = run.run().exit(0).json();
    let found: usize = json.as_array().unwrap().iter().map(calls).sum();
    assert_eq!(found, 2, "no call is lost: {json}");
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    // A line that one of them tore for the other is counted, and the rest is read.
    let torn = format!("{}{}\n{}", &one[..one.len() / 3], two, one);
    let workspace = workspace.file("sessions/torn.jsonl", torn);
    let run = workspace.args(["sessions", "show", "sessions/torn.jsonl"]).run().exit(0);
    assert!(run.stderr.contains("1 record cannot be parsed"), "{}", run.stderr);
}

/// A session of `OpenCode` that another one is said to have started.
fn exported(own: &str, parent: &str) -> String {
    let message = |role: &str, at: u64, text: &str| {
        json!({
            "info": { "role": role, "modelID": "m", "time": { "created": at } },
            "parts": [{ "type": "text", "text": text }],
        })
    };
    let time = json!({ "created": 1_763_287_200_000_u64, "updated": 1_763_287_300_000_u64 });
    let info = json!({ "id": own, "parentID": parent, "directory": "/w", "time": time });
    let said = [
        message("user", 1_763_287_200_000, &format!("look at {own}")),
        message("assistant", 1_763_287_201_000, "It is well."),
    ];
    json!({ "info": info, "messages": said }).to_string()
}

#[test]
fn parents_in_a_circle_and_parents_that_are_nowhere() {
    let workspace = Workspace::new()
        .file("sessions/a.json", exported("ses_a", "ses_b"))
        .file("sessions/b.json", exported("ses_b", "ses_a"))
        .file("sessions/own.json", exported("ses_own", "ses_own"))
        .file("sessions/lost.json", exported("ses_lost", "ses_nowhere"));
    let run = workspace.clone().grade(&["latest", "10", "--json"]).run().exit(0);
    assert_eq!(run.json()["grades"].as_array().unwrap().len(), 4, "{}", run.stdout);
    let _ = workspace.clone().grade(&["summary", "--no-scan"]).run();
    let site = Site::start(workspace);
    for id in ["ses_a", "ses_b", "ses_own", "ses_lost"] {
        let _ = site.get(&format!("/sessions/{id}")).status(200);
        let _ = site.get(&format!("/sessions/{id}/transcript")).status(200);
    }
    let page = |id: &str| site.get(&format!("/sessions/{id}")).status(200).text();
    assert!(page("ses_a").contains("<a href=\"/sessions/ses_b\">"));
    let lost = page("ses_lost");
    assert!(lost.contains("ses_nowhere") && !lost.contains("href=\"/sessions/ses_nowhere\""));
    assert!(site.get("/sessions").status(200).text().contains("look at ses_lost"));
}

#[test]
fn a_subagent_whose_session_is_nowhere() {
    let text = Recording::new(&id(7)).at(AT).asks("Explore").says("Explored.").text();
    let sidechain = text.replace("\"type\":\"user\"", "\"isSidechain\":true,\"type\":\"user\"");
    let sidechain =
        sidechain.replace("\"type\":\"assistant\"", "\"isSidechain\":true,\"type\":\"assistant\"");
    let workspace = Workspace::new().file("sessions/agent-1.jsonl", sidechain);
    let run = workspace.clone().grade(&["latest", "--json"]).run().exit(0);
    let json = run.json();
    assert_eq!(json["grades"][0]["session_kind"], "subagent", "{json}");
    let site = Site::start(workspace);
    assert!(site.get("/sessions").status(200).text().contains("subagent"));
}

#[test]
fn an_image_of_fifty_megabytes() {
    let before = Recording::new(&id(1)).at(AT).asks("What is in the picture?").text();
    let data = "A".repeat(50 * 1024 * 1024 * 4 / 3);
    let image = json!([{
        "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data },
    }]);
    let line = json!({
        "type": "user", "uuid": "image", "parentUuid": format!("{}-0", id(1)), "sessionId": id(1),
        "timestamp": AT, "message": { "role": "user", "content": image },
    });
    let after = json!({
        "type": "assistant", "uuid": "after", "parentUuid": "image", "sessionId": id(1), "timestamp": AT,
        "message": { "role": "assistant", "content": [{ "type": "text", "text": "A house." }] },
    });
    let lines = format!("{before}{line}\n{after}\n");
    let chat = json!([
        { "role": "user", "content": image },
        { "role": "assistant", "content": "A house." },
    ]);
    let workspace = Workspace::new()
        .file("sessions/image.jsonl", lines)
        .file("sessions/chat.json", chat.to_string());
    // Of a long line all but the image is read.
    let run = workspace.clone().args(["sessions", "show", "sessions/image.jsonl"]).run().exit(0);
    assert!(run.stdout.contains("[image image/png over 198 kB]"), "{}", run.stdout);
    assert!(run.stdout.contains("A house."));
    assert!(
        run.stdout.len() < 10_000 && !run.stderr.contains("cannot be parsed"),
        "{}",
        run.stderr
    );
    // The same in one JSON document.
    let session = shown(&workspace, "sessions/chat.json");
    let text = session["events"][0]["text"].as_str().unwrap();
    assert_eq!(text, "[image image/png over 198 kB]");
    let _ = workspace.grade(&["latest"]).run().exit(0);
}
