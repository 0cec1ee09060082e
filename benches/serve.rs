//! How fast the server answers: `cargo bench --bench serve`.
//!
//! Fills a database with 100,000 sessions, each graded by rules and by a model, 10,000 of them
//! indexed for the search, and a file with one session of 50,000 events; starts the real binary
//! and asks it by `wrk`, which shares the processors with it. Ends with an error when a limit is
//! passed; without `wrk` (Debian: `apt-get install wrk`) only single requests are timed.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

mod measurements;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use measurements::Measurements;
use selftest_service::grader::tally_days;
use selftest_store::{FileToIndex, IndexedEvent, IndexedSession, SessionSort, Store};
use selftest_text::search::index_text;
use sqlx::{Connection as _, SqliteConnection};

const SELFTEST: &str = env!("CARGO_BIN_EXE_selftest");

/// Requests a second of the newest grades.
const MIN_RATE: f64 = 5_000.0;
/// Milliseconds in which 99 % of them are answered.
const MOST_P99: f64 = 20.0;
/// Megabytes of memory while they are.
const MAX_MEMORY: f64 = 50.0;
/// Milliseconds for a page that was not asked for before.
const MAX_PAGE: f64 = 100.0;
/// Milliseconds for a page of a session of 50,000 events that was not asked for before.
const MAX_TRANSCRIPT: f64 = 300.0;
/// Megabytes of memory after all of that.
const MAX_MEMORY_OF_PAGES: f64 = 100.0;

/// Sessions that can be searched, and the events of each.
const SEARCHED: [u64; 2] = [10_000, 20];
/// Events of the long session.
const EVENTS: usize = 50_000;
/// Its id.
const LONG: &str = "long-session";

const SESSIONS: [&str; 2] = [
    "INSERT INTO session_grades (session_id, session_file, graded_at, task_completed, \
     tool_calls_efficient, response_quality, errors_recovered, total_api_calls, model, \
     duration_seconds, task_summary, total_errors, error_types, tools_with_errors, \
     had_repeated_errors, had_infinite_loop_risk, had_user_clarification, agent, task_type, \
     counts_at, messages, details_json, quality) \
     WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) \
     SELECT printf('%08x-0000-4000-8000-00000000c0de', i), '/sessions/' || i || '.jsonl', \
     '2026-11-22T10:00:00.000000000Z', i % 3 > 0, 1 + i % 5, 1 + i % 4, 0, i % 211, 'opus', \
     i % 9973 / 7.0, 'Fix the parser of file ' || i || ', its test is red since last week', \
     i % 17, '[]', '[]', 0, 0, 0, CASE i % 3 WHEN 0 THEN 'codex' WHEN 1 THEN 'claude-code' \
     ELSE 'pi' END, CASE i % 2 WHEN 0 THEN 'debugging' ELSE 'testing' END, \
     strftime('%Y-%m-%dT%H:%M:%S', 1795000000 - i * 60, 'unixepoch') || '.000000000Z', 40, \
     printf('{\"agent\":\"pi\",\"task_type\":\"testing\",\"counts_at\":\"2026-11-22T10:00:00Z\",\
     \"messages\":40,\"tool_calls\":30,\"rejected_calls\":0,\"pending_calls\":0,\"tools\":{\
     \"Bash\":{\"calls\":%d,\"errors\":%d},\"Edit\":{\"calls\":9,\"errors\":1},\
     \"tool%d\":{\"calls\":3,\"errors\":0}},\"errors\":[{\"class\":\"command_failed\",\
     \"cause\":\"test_failure\",\"template\":\"step%d failed in <path>\",\"tool\":\"Bash\",\
     \"count\":%d,\"first_event\":3,\"example\":\"step failed in %d.rs\"},{\"class\":\"unknown\",\
     \"cause\":\"edit_mismatch\",\"template\":\"String to replace not found in file.\",\
     \"tool\":\"Edit\",\"count\":1,\"first_event\":5,\"example\":\"String to replace not found\"}],\
     \"longest_error_run\":1,\"tokens\":{\"input\":9,\"output\":9,\"cached\":0},\"evidence\":[],\
     \"filler\":\"%s\"}', 9 + i % 7, i % 3, i % 40, i % 25, i % 3, i, hex(zeroblob(600))), \
     CASE WHEN i % 10 > 0 THEN i % 20 / 20.0 END FROM n",
    "INSERT INTO session_quality_grades (session_id, grader_model, rubric_version, ts, \
     problem_solved, tests_added, code_clean, edge_cases, overall, reasoning, details_json) \
     SELECT session_id, 'ollama/qwen2.5-coder:7b', 1, counts_at, 0.9, 0.5, 0.75, NULL, \
     id % 20 / 20.0, 'The parser was fixed and its test is green; edge cases were not looked at.', \
     '{\"weights\":{\"problem_solved\":0.4}}' FROM session_grades",
];

struct Server {
    process: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(folder: &std::path::Path) -> Self {
        let mut process = Command::new(SELFTEST)
            .args(["serve", "--addr", "127.0.0.1:0"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().to_owned();
        Self { process, address }
    }

    /// Milliseconds for one request.
    fn time(&self, path: &str) -> f64 {
        let started = Instant::now();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        milliseconds(started.elapsed())
    }

    /// Most memory that it had so far, in megabytes.
    fn memory(&self) -> Option<f64> {
        self.status("VmHWM:")
    }

    /// A line of its status, in megabytes.
    fn status(&self, name: &str) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with(name))?;
        let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes / 1024.0)
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Text of an event, from a small vocabulary: common words are in most events, rare ones in
/// one of ten thousand.
fn said(session: u64, event: u64) -> String {
    const WORDS: [&str; 12] = [
        "the", "parser", "fails", "on", "empty", "lines", "because", "of", "a", "missing", "check",
        "here",
    ];
    let mut state = session * 1000 + event;
    let words = (0..40).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        match state >> 40 {
            rare if rare % 50 == 0 => format!("name{}", rare % 10_000),
            common => WORDS[usize::try_from(common % 12).unwrap()].to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Makes some of the sessions to be found by what was said in them.
async fn index(store: &Store) {
    for session in 0..SEARCHED[0] {
        let events = (0..SEARCHED[1]).map(|number| {
            let text = said(session, number);
            IndexedEvent { number, words: index_text(&text), text }
        });
        let indexed = IndexedSession {
            session_id: format!("{session:08x}-0000-4000-8000-00000000c0de"),
            counts_at: "2026-11-22T10:00:00Z".parse().ok(),
            events: events.collect(),
        };
        let path = format!("/sessions/{session}.jsonl");
        let file = FileToIndex { path, digest: String::new(), graded: 1 };
        store.index_file(&file, &[indexed]).await.unwrap();
    }
}

/// Writes a session of many events as Claude Code does.
fn write_long(path: &std::path::Path) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let time = "2026-11-22T10:00:00Z";
    let line = |role: &str, uuid: usize, message: serde_json::Value| {
        serde_json::json!({
            "type": role, "uuid": format!("u{uuid}"), "sessionId": LONG, "timestamp": time,
            "parentUuid": uuid.checked_sub(1).map(|parent| format!("u{parent}")),
            "message": message,
        })
    };
    for at in 0..EVENTS {
        let said = said(0, at as u64);
        let line = match at % 4 {
            0 => line("user", at, serde_json::json!({ "role": "user", "content": said })),
            1 => line(
                "assistant",
                at,
                serde_json::json!({
                    "id": format!("m{at}"), "model": "claude-sonnet-4-5",
                    "content": [{ "type": "text", "text": said }],
                    "usage": { "input_tokens": 10, "output_tokens": 20 },
                }),
            ),
            2 => line(
                "assistant",
                at,
                serde_json::json!({
                    "id": format!("m{at}"), "model": "claude-sonnet-4-5",
                    "content": [{ "type": "tool_use", "id": format!("t{at}"), "name": "Bash",
                                  "input": { "command": said } }],
                    "usage": { "input_tokens": 10, "output_tokens": 20 },
                }),
            ),
            _ => line(
                "user",
                at,
                serde_json::json!({ "role": "user", "content": [{
                "type": "tool_result", "tool_use_id": format!("t{}", at - 1), "content": said,
            }] }),
            ),
        };
        writeln!(file, "{line}").unwrap();
    }
}

async fn fill(database: &str, long: &std::path::Path) {
    Store::open(database).await.unwrap().close().await;
    let mut connection = SqliteConnection::connect(&format!("sqlite:{database}")).await.unwrap();
    for statement in SESSIONS {
        sqlx::query(statement).execute(&mut connection).await.unwrap();
    }
    write_long(long);
    sqlx::query("UPDATE session_grades SET session_id = $1, session_file = $2 WHERE id = 99999")
        .bind(LONG)
        .bind(long.to_str().unwrap())
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let store = Store::open(database).await.unwrap();
    index(&store).await;
    // As a server that runs does by itself.
    tally_days(&store).await.unwrap();
    store.close().await;
}

/// Requests a second, and the milliseconds of the slowest hundredth.
fn parse(said: &str) -> Option<(f64, f64)> {
    let value = |name: &str| {
        said.lines().find_map(|line| Some(line.trim().strip_prefix(name)?.trim().to_owned()))
    };
    let p99 = value("99%")?;
    let unit = p99.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number: f64 = p99.strip_suffix(unit)?.parse().ok()?;
    let factor = match unit {
        "us" => 0.001,
        "ms" => 1.0,
        "s" => 1000.0,
        _ => return None,
    };
    Some((value("Requests/sec:")?.parse().ok()?, number * factor))
}

/// A path as the table of benches/README.md shows it.
fn code(path: &str) -> String {
    format!("`{path}`")
}

fn main() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".selftest")).unwrap();
    let database = folder.path().join(".selftest/selftest.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let long = folder.path().join("long.jsonl");
    runtime.block_on(fill(database.to_str().unwrap(), &long));
    let mut rows = Measurements::of("serve");

    let server = Server::start(folder.path());
    let path = "/api/grades/recent?min_overall=0.7";
    rows.add("first answer", server.time(path), "ms", ..);
    let url = format!("http://{}{path}", server.address);
    let wrk = Command::new("wrk").args(["-t1", "-c32", "-d10s", "--latency", &url]).output();
    match wrk {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            let (rate, p99) = parse(&said).unwrap_or_else(|| panic!("{said}"));
            assert!(!said.contains("Non-2xx"), "{said}");
            rows.add("newest grades, 32 connections", rate, "a second", MIN_RATE..);
            rows.add("newest grades, 99 % within", p99, "ms", ..=MOST_P99);
            if let Some(memory) = server.memory() {
                rows.add("memory meanwhile", memory, "MB", ..=MAX_MEMORY);
            }
        }
        Err(error) => println!("SKIPPED: wrk cannot be run ({error}); apt-get install wrk"),
    }

    let mut slowest = (0.0, String::new());
    for &sort in SessionSort::ALL {
        for filter in ["", "&agent=pi&completed=true", "&min_quality=0.95", "&search=file+99999"] {
            for order in ["asc", "desc"] {
                let path = format!("/api/sessions?sort={sort}&order={order}{filter}");
                let time = server.time(&path);
                if time > slowest.0 {
                    slowest = (time, path);
                }
            }
        }
    }
    rows.add("slowest list of sessions", slowest.0, "ms", ..=MAX_PAGE);
    println!("  {}", slowest.1);
    // Each as a person would ask for it, once.
    for path in [
        "/sessions",
        "/sessions?sort=worst",
        "/sessions?sort=quality&dir=asc",
        "/sessions?agent=pi&completed=yes",
        "/sessions?q=file+99999&sort=errors",
        "/sessions?min_quality=0.5&task_type=testing",
        "/sessions/0000c350-0000-4000-8000-00000000c0de",
        "/sessions/0000c351-0000-4000-8000-00000000c0de/panel",
        "/gaps",
        "/skills",
        "/reflections",
        "/weekly",
        "/jobs",
        "/selftests",
        "/api/routing",
        "/api/patterns",
        "/api/patterns?days=3650",
        "/api/gaps",
        "/api/sessions/0000c352-0000-4000-8000-00000000c0de",
        "/metrics",
        "/search?q=parser",
        "/search?q=name4711",
        "/search?q=%22missing+check%22+name1*",
        "/search?q=parser+nosuchword",
        "/search?q=n*",
        "/api/search?q=parser+fails+lines",
        "/api/search?q=parser&limit=500",
    ] {
        rows.add(&code(path), server.time(path), "ms", ..=MAX_PAGE);
    }
    for path in ["/transcript", "/transcript?from=49800", "/transcript?event=25000"] {
        let path = format!("/sessions/{LONG}{path}");
        rows.add(&code(&path), server.time(&path), "ms", ..=MAX_TRANSCRIPT);
    }
    if let Some(memory) = server.memory() {
        rows.add("memory after all pages", memory, "MB", ..=MAX_MEMORY_OF_PAGES);
    }
    // Of the program's own file the system may show as much as it has at hand.
    for (name, what) in [("RssAnon:", "of it the process's own"), ("RssFile:", "of files")] {
        println!("  {what:<50} {:>10.1}", server.status(name).unwrap_or_default());
    }
    rows.finish()
}
