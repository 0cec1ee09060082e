//! Costs of recorded sessions, as commands show them.

use serde_json::json;

use crate::server::site::Site;
use crate::workspace::Workspace;

/// A session of two calls of a model, the second beyond 200,000 tokens.
fn recorded(model: &str) -> Workspace {
    let line = |role: &str, id: &str, message: &serde_json::Value| {
        json!({
            "type": role, "uuid": id, "sessionId": "spent", "cwd": "/work/shop",
            "timestamp": "2026-11-17T10:00:00Z", "message": message,
        })
        .to_string()
    };
    let said = |id: &str, input: u64| {
        let usage = json!({
            "input_tokens": input, "cache_creation_input_tokens": 10_000,
            "cache_read_input_tokens": 100_000, "output_tokens": 1000,
        });
        let content = [json!({ "type": "text", "text": "Done." })];
        line(
            "assistant",
            id,
            &json!({ "id": id, "model": model, "content": content, "usage": usage }),
        )
    };
    let asked = line("user", "u1", &json!({ "role": "user", "content": "count the stock" }));
    let lines = [asked, said("a1", 1000), said("a2", 300_000)];
    Workspace::new().file("sessions/spent.jsonl", lines.join("\n"))
}

/// The cost that `sessions show` and `grade show` print.
fn costs(workspace: &Workspace) -> [String; 2] {
    let line = |words: &[&str]| {
        let shown = workspace.clone().args(words).run().exit(0).stdout;
        let line = shown.lines().find_map(|line| line.strip_prefix("cost "));
        line.unwrap_or_else(|| panic!("{shown}")).trim().to_owned()
    };
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    [
        line(&["sessions", "show", "spent", "--source", "sessions"]),
        line(&["grade", "show", "spent"]),
    ]
}

#[test]
fn each_kind_of_tokens_has_its_price() {
    // 201,000 read at 3 and 100,000 beyond 200,000 at 6, 20,000 into the cache at 3.75, 200,000
    // from it at 0.3, 2,000 written at 15.
    let workspace = recorded("claude-sonnet-4-5-20250929");
    assert_eq!(costs(&workspace), ["1.37 USD", "1.37 USD"]);
    let json = workspace.clone().args(["grade", "show", "spent", "--json"]).run().exit(0).json();
    assert_eq!(json["cost"]["amount"], 1.368);
    let page = workspace.grade(&["weekly", "--week=2026-W47"]).run().exit(0);
    let page = page.read("docs/reports/weekly/2026-W47.md");
    assert!(page.contains("Cost: 1.37 USD for 1 task (median 1.37 USD)."), "{page}");
}

#[test]
fn what_has_no_price_is_unknown_until_one_is_stated() {
    let workspace = recorded("house-model");
    assert_eq!(costs(&workspace), ["unknown: no price for house-model"; 2]);
    let stated =
        "version: 1\nprices: { currency: EUR, models: { house-*: { input: 1, output: 10 } } }\n";
    // No file is read again: what a grade keeps are tokens.
    assert_eq!(costs(&workspace.config(stated)), ["0.54 EUR", "0.54 EUR"]);
    let listed = recorded("claude-sonnet-4-5").config("version: 1\nprices: { list: false }\n");
    assert_eq!(costs(&listed)[0], "unknown: no price for claude-sonnet-4-5");
}

#[test]
fn readers_and_pages_tell_it_too() {
    let workspace = recorded("claude-sonnet-4-5");
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    let words = ["sessions", "show", "spent", "--source", "sessions"];
    let shown = workspace.clone().args(words).run().exit(0).stdout;
    let first = "(11000 in, 1000 out, 100000 from cache tokens · claude-sonnet-4-5 · 0.0855 USD)";
    assert!(shown.contains(first), "{shown}");
    let site = Site::start(workspace);
    let page = site.get("/sessions/spent").status(200).text();
    assert!(page.contains("<dt>Cost</dt><dd>1.37 USD</dd>"), "{page}");
    let json = site.get("/api/sessions/spent").status(200).json();
    assert_eq!(
        (&json["cost"]["amount"], &json["cost"]["currency"]),
        (&json!(1.368), &json!("USD"))
    );
}

#[test]
fn a_cost_that_the_agent_states_comes_first() {
    let session = json!({
        "info": { "id": "ses_1", "directory": "/w", "version": "1.0",
                  "time": { "created": 1_763_373_600_000_i64 } },
        "messages": [
            { "info": { "id": "msg_1", "role": "user", "time": { "created": 1_763_373_600_000_i64 } },
              "parts": [{ "type": "text", "text": "count the stock" }] },
            { "info": { "id": "msg_2", "role": "assistant", "modelID": "claude-sonnet-4-5",
                        "cost": 0.5, "time": { "created": 1_763_373_601_000_i64 },
                        "tokens": { "input": 1000, "output": 100 } },
              "parts": [{ "type": "text", "text": "Done: it is counted." }] },
        ],
    });
    let workspace = Workspace::new().file("sessions/spent.json", session.to_string());
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    let words = "0.50 USD as the agent states, 0.0045 USD by prices";
    for command in
        [&["sessions", "show", "ses_1", "--source", "sessions"][..], &["grade", "show", "ses_1"]]
    {
        let _ = workspace.clone().args(command).run().exit(0).stdout_contains(words);
    }
    let json = workspace.clone().args(["grade", "show", "ses_1", "--json"]).run().exit(0).json();
    assert_eq!(
        (&json["cost"]["amount"], &json["cost"]["by_prices"]),
        (&json!(0.5), &json!(0.0045))
    );
}

/// A session that went on in two files: the second begins with a copy of the first answer.
#[test]
fn copied_calls_count_once_across_files() {
    let record = |session: &str, role: &str, id: &str, message: &serde_json::Value| {
        json!({
            "type": role, "uuid": id, "sessionId": session, "cwd": "/work/shop",
            "timestamp": "2026-11-17T10:00:00Z", "requestId": format!("r-{id}"), "message": message,
        })
        .to_string()
    };
    let asked = |session: &str, id: &str, text: &str| {
        record(session, "user", id, &json!({ "role": "user", "content": text }))
    };
    let said = |session: &str, id: &str| {
        let content = [json!({ "type": "text", "text": format!("Done: {id}.") })];
        let usage = json!({ "input_tokens": 1_000_000, "output_tokens": 0 });
        let model = "claude-haiku-4-5";
        record(
            session,
            "assistant",
            id,
            &json!({ "id": id, "model": model, "content": content, "usage": usage }),
        )
    };
    let first = [asked("one", "u1", "count the stock"), said("one", "a1")];
    let went_on = [asked("one", "u2", "and the orders"), said("one", "a2")];
    let forked = [asked("two", "u3", "and the customers"), said("two", "a3")];
    let workspace = Workspace::new()
        .file("sessions/one.jsonl", [&first[..], &went_on].concat().join("\n"))
        .file("sessions/two.jsonl", [&first[..], &forked].concat().join("\n"));
    let run = workspace.grade(&["weekly", "--week=2026-W47"]).run().exit(0);
    let page = run.read("docs/reports/weekly/2026-W47.md");
    // Three calls, though the files hold four.
    assert!(page.contains("Cost: 3.00 USD for 2 tasks"), "{page}");
}
