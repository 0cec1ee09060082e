//! Sessions of the formats in SQLite, written by hand. None of a real session.

use super::{Contents, FormatCase, REQUEST};

fn database(
    format: &'static str,
    agent: &'static str,
    id: &'static str,
    [home, file]: [&'static str; 2],
    statements: &[&str],
) -> FormatCase {
    let statements = statements.iter().map(|text| text.replace("REQUEST", REQUEST));
    let contents = Contents::Database(statements.collect());
    FormatCase { format, agent, id, home, file, contents, beside: None, is_gradable: true }
}

/// Writes bytes as SQLite does.
fn blob(text: &str) -> String {
    text.bytes().fold(String::new(), |hex, byte| hex + format!("{byte:02x}").as_str())
}

pub(super) fn cases() -> Vec<FormatCase> {
    vec![
        cursor_store(),
        database(
            "cursor-state",
            "cursor",
            "cursor-state-1",
            [".config/Cursor/User/globalStorage", "state.vscdb"],
            &[
                "CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)",
                r#"INSERT INTO cursorDiskKV VALUES
                 ('composerData:cursor-state-1','{"composerId":"cursor-state-1","createdAt":1795084800000,"fullConversationHeadersOnly":[{"bubbleId":"b1","type":1},{"bubbleId":"b2","type":2}]}'),
                 ('bubbleId:cursor-state-1:b1','{"type":1,"text":"REQUEST","createdAt":"2026-11-17T10:00:00Z"}'),
                 ('bubbleId:cursor-state-1:b2','{"type":2,"text":"Done: it shines again."}')"#,
            ],
        ),
        database(
            "open-code",
            "opencode",
            "open-code-1",
            [".local/share/opencode", "opencode.db"],
            &[
                "CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, version TEXT, time_created INTEGER, time_updated INTEGER)",
                "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)",
                "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)",
                "INSERT INTO session VALUES ('open-code-1', NULL, '/w', '1.0', 1795084800000, 1795084801000)",
                r#"INSERT INTO message VALUES ('m1','open-code-1',1,'{"id":"m1","role":"user","time":{"created":1795084800000}}'),
                 ('m2','open-code-1',2,'{"id":"m2","role":"assistant","modelID":"m","time":{"created":1795084801000}}')"#,
                r#"INSERT INTO part VALUES ('p1','m1','open-code-1','{"type":"text","text":"REQUEST"}'),
                 ('p2','m2','open-code-1','{"type":"text","text":"Done: it shines again."}')"#,
            ],
        ),
        database(
            "goose",
            "goose",
            "goose-1",
            [".local/share/goose/sessions", "sessions.db"],
            &[
                "CREATE TABLE sessions (id TEXT, working_dir TEXT, created_at TEXT, updated_at TEXT)",
                "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER)",
                "INSERT INTO sessions VALUES ('goose-1', '/w', '2026-11-17 10:00:00', '2026-11-17 10:01:00')",
                r#"INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES
                 ('goose-1','user','[{"type":"text","text":"REQUEST"}]',1795084800),
                 ('goose-1','assistant','[{"type":"text","text":"Done: it shines again."}]',1795084801)"#,
            ],
        ),
        database(
            "crush",
            "crush",
            "crush-1",
            ["", "crush.db"],
            &[
                "CREATE TABLE sessions (id TEXT, parent_session_id TEXT, title TEXT, prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, created_at INTEGER, updated_at INTEGER)",
                "CREATE TABLE messages (id TEXT, session_id TEXT, role TEXT, parts TEXT, model TEXT, created_at INTEGER)",
                "INSERT INTO sessions VALUES ('crush-1', NULL, 't', 10, 5, 0.25, 1795084800, 1795084801)",
                r#"INSERT INTO messages VALUES ('m1','crush-1','user','[{"type":"text","data":{"text":"REQUEST"}}]','',1795084800),
                 ('m2','crush-1','assistant','[{"type":"text","data":{"text":"Done: it shines again."}}]','m',1795084801)"#,
            ],
        ),
        database(
            "zed",
            "zed",
            "zed-1",
            [".local/share/zed/threads", "threads.db"],
            &[
                "CREATE TABLE threads (id TEXT PRIMARY KEY, parent_id TEXT, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB)",
                r#"INSERT INTO threads VALUES ('zed-1', NULL, 't', '2026-11-17T10:00:00Z', 'json', '{"version":"0.3.0","updated_at":"2026-11-17T10:00:00Z","messages":[{"User":{"id":"u1","content":[{"Text":"REQUEST"}]}},{"Agent":{"content":[{"Text":"Done: it shines again."}],"tool_results":{}}}]}')"#,
            ],
        ),
        database(
            "hermes-state",
            "hermes",
            "hermes-state-1",
            [".hermes", "state.db"],
            &[
                "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, parent_session_id TEXT, started_at REAL, ended_at REAL)",
                "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL)",
                "INSERT INTO sessions VALUES ('hermes-state-1', 'cli', 'm-1', NULL, 1795084800.0, 1795084801.5)",
                "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('hermes-state-1', 'user', 'REQUEST and the fog horn', 1795084800.0), ('hermes-state-1', 'assistant', 'Done: it shines again.', 1795084801.0)",
            ],
        ),
    ]
}

fn cursor_store() -> FormatCase {
    let messages = [
        r#"{"role":"user","content":[{"type":"text","text":"<user_query>\nREQUEST\n</user_query>"}]}"#,
        r#"{"role":"assistant","id":"1","content":[{"type":"text","text":"Done: it shines again."}]}"#,
    ];
    let mut statements = vec![
        "CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)".to_owned(),
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)".to_owned(),
    ];
    let mut root = String::new();
    for (number, message) in messages.iter().enumerate() {
        let id = format!("{number:02x}").repeat(32);
        root += &format!("0a20{id}");
        let message = blob(&message.replace("REQUEST", REQUEST));
        statements.push(format!("INSERT INTO blobs VALUES ('{id}', x'{message}')"));
    }
    statements.push(format!("INSERT INTO blobs VALUES ('root', x'{root}')"));
    let about =
        r#"{"agentId":"cursor-store-1","latestRootBlobId":"root","createdAt":1795084800000}"#;
    statements.push(format!("INSERT INTO meta VALUES ('0', '{}')", blob(about)));
    FormatCase {
        format: "cursor-store",
        agent: "cursor",
        id: "cursor-store-1",
        home: ".cursor/chats/w",
        file: "cursor-store-1/store.db",
        contents: Contents::Database(statements),
        beside: None,
        is_gradable: true,
    }
}
