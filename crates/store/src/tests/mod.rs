//! Tests of the store's public interface on SQLite, in memory and on disk, and on PostgreSQL. Their
//! databases are temporary and removed after each test.

mod browsing;
mod opening;
mod other_tables;
mod reflections;
mod saving;
mod schema;
mod search;
mod skills;

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once};

use jiff::Timestamp;
use sqlx::any::AnyConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};
use tempfile::TempDir;

use super::statement::DatabaseEngine;
use super::{FileOutcome, FileRecord, FileResult, KnownFile, Store, StoreError};
use selftest_grading::grade::{
    ErrorCause, ErrorClass, ErrorCount, GradeDetails, GradeEvidence, GradeLevel, GradePoint,
    GradeRecord, OutcomeEvidence, OutcomeSign, OutcomeState, SessionKind, TaskOutcome, TaskType,
    ToolUse,
};
use selftest_sessions::{SessionFormat, SessionLineage, TokenCounts};

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn level(level: u8) -> GradeLevel {
    GradeLevel::new(level).unwrap()
}

/// A grade with something in every field.
fn grade(session_id: &str, file: &str, messages: u64) -> GradeRecord {
    GradeRecord {
        session_id: session_id.to_owned(),
        session_file: file.to_owned(),
        graded_at: at("2026-11-22T10:00:00.123456789Z"),
        task_completed: true,
        tool_calls_efficient: level(4),
        response_quality: level(2),
        errors_recovered: false,
        total_api_calls: 12,
        model: Some("some-model".to_owned()),
        platform: None,
        session_start: Some(at("2026-11-20T08:00:00Z")),
        duration_seconds: Some(61.5),
        task_summary: Some("fix the bug".to_owned()),
        total_errors: 2,
        error_types: vec![ErrorClass::Timeout, ErrorClass::ApiError],
        tools_with_errors: vec!["bash".to_owned()],
        had_repeated_errors: false,
        had_infinite_loop_risk: true,
        had_user_clarification: false,
        outcome: TaskOutcome::ChecksPassed,
        session_kind: SessionKind::Subagent,
        parent_session: Some("main".to_owned()),
        details: GradeDetails {
            agent: "pi".to_owned(),
            project: Some("/work/site".to_owned()),
            task_type: TaskType::Debugging,
            counts_at: Some(at("2026-11-20T08:00:00Z")),
            messages,
            tool_calls: 7,
            rejected_calls: 1,
            pending_calls: 0,
            tools: BTreeMap::from([("bash".to_owned(), ToolUse { calls: 7, errors: 2 })]),
            errors: vec![ErrorCount {
                class: ErrorClass::Timeout,
                cause: ErrorCause::Timeout,
                template: "timed out".to_owned(),
                tool: "bash".to_owned(),
                count: 2,
                first_event: 3,
                example: "timed out".to_owned(),
            }],
            longest_error_run: 1,
            tokens: TokenCounts { input: 100, output: 20, cached: 5 },
            evidence: vec![GradeEvidence {
                point: GradePoint::SaysDone,
                worth: 1.0,
                event: Some(9),
                words: "done".to_owned(),
            }],
            state: OutcomeState::Unknown,
            own_state: None,
            own_outcome: None,
            outcome_evidence: vec![OutcomeEvidence {
                sign: OutcomeSign::TestsPassed,
                event: 8,
                words: "cargo test".to_owned(),
            }],
            results: Vec::new(),
            corrections: 1,
            lineage: SessionLineage::default(),
            foreign_edits: 0,
            rewinds: 2,
            spent: Vec::new(),
            copied: Vec::new(),
            copied_from: None,
            stated_cost: None,
        },
    }
}

/// A grade counted at that time.
fn grade_at(session_id: &str, time: &str) -> GradeRecord {
    let mut grade = grade(session_id, &format!("/s/{session_id}.json"), 3);
    grade.details.counts_at = Some(at(time));
    grade.session_kind = SessionKind::Task;
    grade.session_start = Some(at(time));
    grade
}

/// The rules that graded every file.
impl Store {
    /// Collects the rows of [`Store::for_each_known_file`].
    async fn known_files(&self, rules: &str) -> Result<HashMap<String, KnownFile>, StoreError> {
        let mut known = HashMap::new();
        let each = |path, row| {
            known.insert(path, row);
        };
        self.for_each_known_file(rules, each).await?;
        Ok(known)
    }
}

const RULES: &str = "rules of today";

/// A file with these grades.
fn file(path: &str, grades: Vec<GradeRecord>) -> FileResult {
    let count = grades.len() as u64;
    let file = FileRecord {
        path: path.to_owned(),
        size: 1000,
        modified_ns: 1_795_000_000_000_000_000,
        digest: "ab".repeat(32),
        scanned_at: at("2026-11-22T10:00:00Z"),
        outcome: if count > 0 { FileOutcome::Graded } else { FileOutcome::NoSession },
        reason: None,
        format: Some(SessionFormat::Pi),
        sessions: count,
        graded: count,
        notes_json: Some(r#"{"bad_records":1}"#.to_owned()),
        rules: Some(RULES.to_owned()),
    };
    FileResult { file, grades }
}

/// A file with one session.
fn session(path: &str, session_id: &str, messages: u64) -> FileResult {
    file(path, vec![grade(session_id, path, messages)])
}

async fn execute(store: &Store, sql: &str) {
    sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&store.pool).await.unwrap();
}

/// The variable with the address of a server; its user may create schemas.
const SERVER: &str = "SELFTEST_TEST_POSTGRES";

/// Defines each test twice: for SQLite, and for PostgreSQL if a server is configured.
macro_rules! on_every_engine {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(&super::Databases::sqlite()).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                if let Some(on) = super::Databases::postgres() {
                    super::$test(&on).await;
                }
            })+
        }
    };
}

use on_every_engine;

/// Location of the databases of a test.
enum Databases {
    Sqlite(TempDir),
    Postgres {
        server: String,
        /// Databases with these names, each with its own tables.
        schemas: Mutex<Vec<String>>,
    },
}

impl Databases {
    fn sqlite() -> Self {
        Databases::Sqlite(tempfile::tempdir().unwrap())
    }

    /// Returns `None` if no server is configured, and reports that once.
    fn postgres() -> Option<Self> {
        static SAID: Once = Once::new();
        let skip = |why: &str| {
            let required = std::env::var("SELFTEST_REQUIRE").unwrap_or_default();
            let is_required = required.split(',').any(|name| name.trim() == "postgres");
            assert!(!is_required, "SELFTEST_REQUIRE names postgres, which is missing: {why}");
            // Not with a macro such as `eprintln!`, whose output is hidden while tests pass.
            SAID.call_once(|| {
                let _ = writeln!(std::io::stderr(), "SKIPPED: tests on PostgreSQL: {why}");
            });
            None
        };
        if !cfg!(feature = "postgres") {
            return skip("this build has none");
        }
        match std::env::var(SERVER) {
            Ok(server) if !server.is_empty() => {
                Some(Databases::Postgres { server, schemas: Mutex::default() })
            }
            _ => skip(&format!("{SERVER} is not set; scripts/test starts a server")),
        }
    }

    fn engine(&self) -> DatabaseEngine {
        match self {
            Databases::Sqlite(_) => DatabaseEngine::Sqlite,
            Databases::Postgres { .. } => DatabaseEngine::Postgres,
        }
    }

    /// Returns the address of an empty database that several processes could use.
    async fn address(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        match self {
            Databases::Sqlite(folder) => {
                folder.path().join(format!("{number}.db")).to_str().unwrap().to_owned()
            }
            Databases::Postgres { server, schemas } => {
                let schema = format!("test_{}_{number}", std::process::id());
                run(server, &format!("CREATE SCHEMA {schema}")).await.unwrap();
                let sign = if server.contains('?') { '&' } else { '?' };
                let address = format!("{server}{sign}options=-csearch_path%3D{schema}");
                schemas.lock().unwrap().push(schema);
                address
            }
        }
    }

    /// Creates a new database; in memory for SQLite.
    async fn store(&self) -> Store {
        match self {
            Databases::Sqlite(_) => Store::open(":memory:").await.unwrap(),
            Databases::Postgres { .. } => Store::open(&self.address().await).await.unwrap(),
        }
    }
}

/// Runs a statement on a separate connection.
async fn run(server: &str, sql: &str) -> Result<(), sqlx::Error> {
    sqlx::any::install_default_drivers();
    let options: AnyConnectOptions = server.parse()?;
    let mut connection = options.connect().await?;
    connection.execute(AssertSqlSafe(sql.to_owned())).await?;
    connection.close().await
}

impl Drop for Databases {
    fn drop(&mut self) {
        let Databases::Postgres { server, schemas } = self else { return };
        let drops = schemas
            .get_mut()
            .unwrap()
            .iter()
            .fold("SET lock_timeout = '10s';".to_owned(), |sql, schema| {
                format!("{sql}DROP SCHEMA {schema} CASCADE;")
            });
        let server = server.clone();
        // The test's runtime cannot be awaited here. A connection that it still holds may lock a
        // table; then the schemas are removed with the server.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(run(&server, &drops))
        });
        if let Ok(Err(error)) = dropped.join() {
            let _ = writeln!(std::io::stderr(), "left behind on PostgreSQL: {error}");
        }
    }
}
