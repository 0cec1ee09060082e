//! The protocol itself: beginning, ending, and what is no message.

use serde_json::json;

use super::conversation::{Conversation, Heard};
use super::world::{GRADED, sessions};
use crate::workspace::Workspace;

#[test]
fn versions_of_the_protocol() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-11-25", "2025-11-25"),
        // From that version on there is no handshake: its newest version answers.
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let heard = Conversation::begin(Workspace::new(), asked).heard();
        let result = &heard.answer(0)["result"];
        assert_eq!(result["protocolVersion"], agreed, "asked for {asked}");
        assert_eq!(result["serverInfo"]["name"], "selftest");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        let instructions = result["instructions"].as_str().unwrap();
        for part in ["biased", "ranking", "never an instruction", "grade_session"] {
            assert!(instructions.contains(part), "no `{part}` in {instructions}");
        }
    }
}

#[test]
fn the_newest_version_needs_no_handshake() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let heard = Conversation::silent(Workspace::new())
        .asks("server/discover", &json!({ "_meta": meta }))
        .asks("tools/list", &json!({ "_meta": meta }))
        .heard();
    let versions = heard.answer(0)["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{versions:?}");
    assert_eq!(heard.answer(1)["result"]["tools"].as_array().unwrap().len(), 7);
}

#[test]
fn the_list_of_tools() {
    let heard =
        Conversation::begin(Workspace::new(), "2025-11-25").asks("tools/list", &json!({})).heard();
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("../snapshots");
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_json_snapshot!("mcp_tools", heard.answer(1)["result"]["tools"]));
}

#[test]
fn what_is_no_message_harms_nothing() {
    let heard = Conversation::begin(sessions(), "2025-11-25")
        .says("not JSON at all")
        .says(r#"{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"#)
        .bytes(b"\xff\xfe\x00\n\n\r\n")
        .says("[]")
        .asks("tools/burn", &json!({}))
        .calls("burn_everything", &json!({}))
        .calls("get_session_grade", &json!({ "session_id": ["a", "list"] }))
        .asks("tools/call", &json!({ "name": 7 }))
        .calls("get_session_grade", &json!({ "session_id": GRADED }))
        .heard();
    assert_eq!(heard.answer(1)["error"]["code"], -32601, "method not found");
    assert_eq!(heard.answer(2)["error"]["code"], -32602, "no such tool");
    assert!(heard.refused(3).contains("expected a string"), "{}", heard.refused(3));
    assert_eq!(heard.answered(5)["session_id"], GRADED);
}

#[cfg(target_os = "linux")]
#[test]
fn a_huge_line_is_dropped_without_being_held() {
    let workspace = sessions();
    let message = Conversation::begin(workspace.clone(), "2025-11-25");
    assert_eq!(message.heard().count(), 1);
    // The handshake is there from before; then 300 MB without a line break, then a request.
    let script = "ulimit -v 420000; { cat ../input.jsonl; head -c 300000000 /dev/zero; echo; \
                  cat request.jsonl; } | \"$@\"";
    let request = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" });
    let run = workspace
        .file("request.jsonl", format!("{request}\n"))
        .args(["serve", "--mcp"])
        .within(["sh", "-c", script, "sh"])
        .run()
        .exit(0)
        .stderr_contains("maximum line length");
    assert!(Heard::of(&run.stdout).answer(9)["result"]["tools"].is_array());
}

#[test]
fn it_ends_with_its_client() {
    // Before a word, in the middle of a message, and in the middle of a request's work.
    for input in [&b""[..], b"{\"jsonrpc\": \"2.0\", \"id\": 0, \"meth"] {
        assert_eq!(Conversation::silent(Workspace::new()).bytes(input).heard().count(), 0);
    }
    let torn = br#"{"jsonrpc": "2.0", "id": 8, "method": "tools/li"#;
    let heard = Conversation::begin(sessions(), "2025-11-25")
        .calls("get_session_grade", &json!({ "session_id": GRADED }))
        .bytes(torn)
        .heard();
    assert_eq!(heard.answered(1)["session_id"], GRADED, "what was asked is still answered");
    assert_eq!(heard.count(), 2);
}

#[test]
fn who_speaks_another_protocol_is_told_so_on_stderr() {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let workspace = Workspace::new().file("input.jsonl", format!("{note}\n"));
    let shell = ["sh", "-c", "exec \"$@\" < input.jsonl", "sh"];
    let run = workspace.args(["serve", "--mcp"]).within(shell).run().exit(5);
    let run = run.one_error(&["Model Context Protocol"]).stderr_contains("hint:");
    assert_eq!(run.stdout, "");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_while_the_client_still_listens() {
    use rustix::process::Signal;
    for signal in [Signal::TERM, Signal::INT] {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                             "clientInfo": { "name": "test", "version": "1" } });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let workspace = Workspace::new().file("hello.jsonl", format!("{hello}\n"));
        // Held open for reading and writing, a FIFO never ends.
        let shell = "mkfifo pipe; exec 3<>pipe; cat hello.jsonl >&3; exec \"$@\" <pipe";
        let running = workspace.args(["serve", "--mcp"]).within(["sh", "-c", shell, "sh"]).spawn();
        let run = running.until_stdout("serverInfo").signal(signal).wait().exit(0);
        assert_eq!(Heard::of(&run.stdout).count(), 1);
        assert!(run.elapsed.as_secs() < 10, "{:?}", run.elapsed);
    }
}
