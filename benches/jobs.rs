//! How many queued gradings workers get done: `cargo bench --bench jobs`.
//!
//! 1, 2, 4 and 8 worker processes, four sessions at once in each, and a model server that answers
//! every call after exactly 50 ms, all on this machine. On SQLite, and on PostgreSQL where
//! `SELFTEST_TEST_POSTGRES` names a server whose user may create schemas. Ends with an error when
//! a limit is passed.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

mod measurements;
mod model;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use measurements::Measurements;
use serde_json::{Value, json};

const SELFTEST: &str = env!("CARGO_BIN_EXE_selftest");

const DELAY: Duration = Duration::from_millis(50);
const WORKERS: [u32; 4] = [1, 2, 4, 8];
/// Sessions at once in each worker.
const CONCURRENCY: u32 = 4;
/// For each worker.
const SESSIONS: u32 = 400;
/// Of what the model would give one worker.
const MIN_RATE: f64 = 0.8;
/// Clock ticks of a second in `/proc`.
const TICKS: f64 = 100.0;

fn main() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let world = World::make(folder.path());
    let file = |number: u32, ending: &str| {
        let name = format!(".selftest/bench-{number}{ending}.db");
        world.folder.join(name).to_str().unwrap().to_owned()
    };
    let mut rows = Measurements::of("jobs");
    measure("SQLite", &mut rows, &world, |number| file(number, ""));
    let most = WORKERS[WORKERS.len() - 1];
    let size = |ending: &str| std::fs::metadata(file(most, ending)).unwrap().len();
    sizes(size(""), size("-jobs"));
    match postgres::Server::new() {
        Some(server) => {
            measure("PostgreSQL", &mut rows, &world, |number| server.schema(number));
            let (grades, queue) = server.sizes();
            sizes(grades, queue);
        }
        None => println!("PostgreSQL: not measured, SELFTEST_TEST_POSTGRES is not set"),
    }
    rows.finish()
}

fn measure(engine: &str, rows: &mut Measurements, world: &World, database: impl Fn(u32) -> String) {
    println!("\n{engine}: {CONCURRENCY} gradings at once in each worker, model 50 ms");
    for workers in WORKERS {
        let measured = world.run(workers, &database(workers));
        let ideal = f64::from(workers * CONCURRENCY) / DELAY.as_secs_f64();
        let share = measured.rate / ideal;
        let name = format!("{engine}, workers: {workers}, of the model's rate");
        if workers == 1 {
            rows.add(&name, share, "×", MIN_RATE..);
        } else {
            rows.add(&name, share, "×", ..);
        }
        let name = format!("{engine}, workers: {workers}, processor time a grading");
        rows.add(&name, measured.cpu_ms, "ms", ..);
    }
}

/// The database of the last run, in which every session has both grades.
fn sizes(grades: u64, queue: u64) {
    let sessions = u64::from(SESSIONS * WORKERS[WORKERS.len() - 1]);
    let (grades, queue) = (grades / sessions, queue / sessions);
    println!("bytes for each session: grades {grades}, queue {queue}");
}

struct World {
    folder: PathBuf,
    model: String,
}

struct Measured {
    /// Gradings a second, from the first to the last.
    rate: f64,
    /// Of the workers, for each grading.
    cpu_ms: f64,
}

/// Workers that end with the benchmark.
struct Workers(Vec<Child>);

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

impl Workers {
    /// Seconds of processor time so far.
    fn cpu(&self) -> f64 {
        let of = |worker: &Child| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", worker.id())).ok()?;
            let (_, fields) = stat.rsplit_once(')')?;
            let mut times = fields.split_whitespace().skip(11);
            let user: f64 = times.next()?.parse().ok()?;
            let system: f64 = times.next()?.parse().ok()?;
            Some((user + system) / TICKS)
        };
        self.0.iter().filter_map(of).sum()
    }
}

impl World {
    fn make(folder: &Path) -> Self {
        std::fs::create_dir_all(folder.join("sessions")).unwrap();
        std::fs::create_dir_all(folder.join("config")).unwrap();
        let most = SESSIONS * WORKERS.into_iter().max().unwrap();
        for number in 0..most {
            let id = format!("{number:08x}-0000-4000-8000-00000000c0de");
            std::fs::write(folder.join(format!("sessions/{id}.jsonl")), session(&id)).unwrap();
        }
        let config = "version: 1\ngrade: { quality: { model: openai/bench } }\n\
                      jobs: { heartbeat_seconds: 5 }\n\
                      scenarios: [{ id: a, description: b, expected_status: COMPLETE }]\n";
        std::fs::write(folder.join("config/selftest.yaml"), config).unwrap();
        Self { folder: folder.to_owned(), model: model::serve(DELAY, reply) }
    }

    fn command(&self, database: &str, words: &[&str]) -> Command {
        let mut command = Command::new(SELFTEST);
        command
            .args(words)
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", &self.folder)
            .env("CI", "1")
            .env("DATABASE_URL", database)
            .env("OPENAI_BASE_URL", format!("http://{}/v1", self.model));
        command
    }

    fn say(&self, database: &str, words: &[&str]) -> Output {
        let output = self.command(database, words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {}\n{said}", output.status);
        output
    }

    /// Grades by rules, queues a part for each worker, and lets them work.
    fn run(&self, workers: u32, database: &str) -> Measured {
        self.say(database, &["grade", "summary", "--days=36500", "--source", "sessions"]);
        let concurrency = format!("--concurrency={CONCURRENCY}");
        let worker = || {
            let words = ["worker", "--no-schedule", "--source", "sessions", &concurrency];
            self.command(database, &words).stderr(Stdio::null()).spawn().unwrap()
        };
        let running = Workers((0..workers).map(|_| worker()).collect());
        let sessions = SESSIONS * workers;
        let limit = format!("--limit={sessions}");
        self.say(database, &["grade", "backfill", "--queue", "--no-scan", &limit]);
        let started = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let listing = self.say(database, &["jobs", "list", "--json"]);
            let listing: Value = serde_json::from_slice(&listing.stdout).unwrap();
            assert_eq!(listing["gradings"]["failed"], 0, "{listing}");
            if listing["gradings"]["done"] == sessions {
                break;
            }
            assert!(started.elapsed() < Duration::from_mins(5), "{listing}");
        }
        let cpu_ms = 1000.0 * running.cpu() / f64::from(sessions);
        drop(running);
        let recent = self.say(database, &["grade", "recent", "--limit=10000", "--json"]);
        let recent: Value = serde_json::from_slice(&recent.stdout).unwrap();
        let times: Vec<Timestamp> = recent
            .as_array()
            .unwrap()
            .iter()
            .map(|grade| grade["ts"].as_str().unwrap().parse().unwrap())
            .collect();
        assert_eq!(times.len(), sessions as usize, "one grade for each session");
        let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        let seconds = last.duration_since(*first).as_secs_f64();
        Measured { rate: f64::from(sessions - 1) / seconds, cpu_ms }
    }
}

/// A session of Claude Code with a few calls.
fn session(id: &str) -> String {
    let mut lines = String::new();
    let mut number = 0;
    let mut record = |kind: &str, content: Value| {
        let record = json!({
            "type": kind, "uuid": format!("{id}-{number}"), "sessionId": id, "cwd": "/work/app",
            "version": "2.1.3", "entrypoint": "cli",
            "parentUuid": (number > 0).then(|| format!("{id}-{}", number - 1)),
            "timestamp": format!("2026-11-20T10:00:{:02}.000Z", number % 60),
            "message": { "role": kind, "id": format!("msg_{number}"), "content": content },
        });
        number += 1;
        lines += &format!("{record}\n");
    };
    record("user", json!("Fix the parser, a part of it is red since last week"));
    for call in 0..20 {
        let words = "cargo test parser::reads_empty_lines -- --nocapture ".repeat(4);
        let call_id = format!("toolu_{call}");
        let input = json!({ "command": words });
        record(
            "assistant",
            json!([{ "type": "tool_use", "id": call_id, "name": "Bash", "input": input }]),
        );
        record(
            "user",
            json!([{ "type": "tool_result", "tool_use_id": call_id, "content": words.repeat(4) }]),
        );
    }
    record("assistant", json!([{ "type": "text", "text": "Done: the parser reads empty lines." }]));
    lines
}

fn reply(_: &str) -> String {
    let names = ["problem_solved", "tests_added", "code_clean", "edge_cases_handled"];
    let dimensions: String = names
        .map(|name| format!(r#""{name}":{{"evidence":"part","reasoning":"Seen.","score":0.5}},"#))
        .concat();
    format!(r#"{{{dimensions}"summary":"It went well."}}"#)
}

#[cfg(feature = "postgres")]
mod postgres {
    use sqlx::postgres::PgRow;
    use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

    /// Schemas of a server, which are gone with the benchmark.
    pub(super) struct Server {
        address: String,
        schemas: std::cell::RefCell<Vec<String>>,
    }

    impl Server {
        pub(super) fn new() -> Option<Self> {
            let address = std::env::var("SELFTEST_TEST_POSTGRES").ok()?;
            Some(Self { address, schemas: std::cell::RefCell::default() })
        }

        fn sql(&self, statement: String) -> Vec<PgRow> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut connection = PgConnection::connect(&self.address).await.unwrap();
                let statement = sqlx::raw_sql(AssertSqlSafe(statement));
                let rows = statement.fetch_all(&mut connection).await.unwrap();
                connection.close().await.unwrap();
                rows
            })
        }

        /// Bytes of the newest schema, and its share of the queue's table.
        pub(super) fn sizes(&self) -> (u64, u64) {
            let schemas = self.schemas.borrow();
            let schema = schemas.last().unwrap();
            let row = self.sql(format!(
                "SELECT CAST(SUM(pg_total_relation_size(oid)) AS BIGINT), (SELECT \
                 CAST(pg_total_relation_size('apalis.jobs') * COUNT(*) FILTER (WHERE job_type = \
                 'selftest gradings {schema}') / COUNT(*) AS BIGINT) FROM apalis.jobs) \
                 FROM pg_class WHERE relkind = 'r' AND relnamespace = '{schema}'::regnamespace"
            ));
            let bytes = |column: usize| row[0].get::<i64, _>(column).unsigned_abs();
            (bytes(0), bytes(1))
        }

        /// The address of a new schema.
        pub(super) fn schema(&self, number: u32) -> String {
            let name = format!("bench_{}_{number}", std::process::id());
            self.sql(format!("CREATE SCHEMA {name}"));
            let address = format!("{}?options=-csearch_path%3D{name}", self.address);
            self.schemas.borrow_mut().push(name);
            address
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            for schema in self.schemas.borrow().iter() {
                self.sql(format!(
                    "DROP SCHEMA {schema} CASCADE; DELETE FROM apalis.jobs WHERE job_type = \
                     'selftest gradings {schema}'"
                ));
            }
        }
    }
}

#[cfg(not(feature = "postgres"))]
mod postgres {
    /// A build without PostgreSQL has none.
    pub(super) enum Server {}

    impl Server {
        pub(super) fn new() -> Option<Self> {
            None
        }

        pub(super) fn schema(&self, _: u32) -> String {
            match *self {}
        }

        pub(super) fn sizes(&self) -> (u64, u64) {
            match *self {}
        }
    }
}
