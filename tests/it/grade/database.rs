//! The database: its place, its columns, and files that are none.

use super::recording::{Recording, id};
use super::sqlite::DATABASE;
use crate::databases::on_each_database;
use crate::workspace::{Workspace, files};

on_each_database! {
    several_processes_may_use_it_at_once,
}

/// docs/spec/session-grades.md#tables: name, type and whether it must be there. The first column is
/// the key.
const SESSION_GRADES: [(&str, &str, bool); 20] = [
    ("id", "INTEGER", false),
    ("session_id", "TEXT", true),
    ("session_file", "TEXT", true),
    ("graded_at", "TEXT", true),
    ("task_completed", "INTEGER", true),
    ("tool_calls_efficient", "INTEGER", true),
    ("response_quality", "INTEGER", true),
    ("errors_recovered", "INTEGER", true),
    ("total_api_calls", "INTEGER", true),
    ("model", "TEXT", false),
    ("platform", "TEXT", false),
    ("session_start", "TEXT", false),
    ("duration_seconds", "REAL", false),
    ("task_summary", "TEXT", false),
    ("total_errors", "INTEGER", true),
    ("error_types", "TEXT", false),
    ("tools_with_errors", "TEXT", false),
    ("had_repeated_errors", "INTEGER", true),
    ("had_infinite_loop_risk", "INTEGER", true),
    ("had_user_clarification", "INTEGER", true),
];

const WEEKLY_REPORTS: [(&str, &str, bool); 5] = [
    ("id", "INTEGER", false),
    ("week_start", "TEXT", true),
    ("week_end", "TEXT", true),
    ("generated_at", "TEXT", true),
    ("report_json", "TEXT", true),
];

fn one_session() -> Workspace {
    Workspace::new().session(&Recording::on(&id(1), "2026-11-17T10:00:00Z", false))
}

/// Columns of a table, as `PRAGMA table_info` has them.
fn columns(workspace: &Workspace, table: &str) -> Vec<(String, String, bool)> {
    let rows = workspace.sql(&format!("PRAGMA table_info({table})"));
    rows.into_iter().map(|row| (row[1].clone(), row[2].clone(), row[3] == "1")).collect()
}

#[test]
fn the_specified_columns_and_others_only_if_they_may_be_empty() {
    let workspace = one_session().grade(&["latest"]);
    let _ = workspace.run().exit(0);
    for (table, expected) in
        [("session_grades", &SESSION_GRADES[..]), ("weekly_reports", &WEEKLY_REPORTS)]
    {
        let found = columns(&workspace, table);
        let specified: Vec<(&str, &str, bool)> =
            found.iter().map(|(name, kind, must)| (&**name, &**kind, *must)).collect();
        assert_eq!(specified[..expected.len()], *expected, "{table}");
        let more = &found[expected.len()..];
        assert!(more.iter().all(|(_, _, must)| !must), "{table}: {more:?}");
    }
    let row = workspace.sql(
        "SELECT session_id, task_completed, total_api_calls, session_start, duration_seconds, \
         total_errors, error_types, tools_with_errors, had_repeated_errors FROM session_grades",
    );
    let expected = [
        &*id(1),
        "0",
        "4",
        "2026-11-17T10:00:00.000000000Z",
        "7.0",
        "3",
        r#"["network_error"]"#,
        r#"["Bash"]"#,
        "1",
    ];
    assert_eq!(row, [expected]);
}

#[test]
fn another_place() {
    let workspace = one_session();
    let latest = |words: &[&str]| workspace.clone().grade(&[&["latest"], words].concat());
    let _ = latest(&["--db", "deep/down/grades.db"]).run().exit(0).stdout_contains(&id(1));
    assert_eq!(workspace.sql_in("deep/down/grades.db", "SELECT id FROM session_grades"), [["1"]]);
    assert!(!workspace.path(DATABASE).exists());
    let address = format!("sqlite:{}", workspace.path("by url.db").display());
    let _ = latest(&[]).env("DATABASE_URL", &address).run().exit(0).stdout_contains(&id(1));
    assert!(workspace.path("by url.db").is_file());
    let both = latest(&["--db", "flag.db"]).env("DATABASE_URL", "sqlite:unused.db");
    let _ = both.run().exit(0).stdout_contains(&id(1));
    assert!(workspace.path("flag.db").is_file() && !workspace.path("unused.db").exists());
}

#[cfg(unix)]
#[test]
fn nobody_else_reads_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let workspace = one_session().grade(&["latest"]);
    let _ = workspace.run().exit(0);
    let mode = std::fs::metadata(workspace.path(DATABASE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[test]
fn a_file_that_is_no_database_of_ours_is_left_alone() {
    let words = "no database, but somebody's words ".repeat(99);
    let workspace = one_session().file("words.db", &words).file("other.db", "");
    let latest = |db: &str| workspace.clone().grade(&["latest", "--db", db]);
    let run = latest("words.db").run().exit(5).one_error(&["words.db is not a database"]);
    let run = run.stderr_contains("hint: choose another file with --db");
    assert_eq!(run.read("words.db"), words);

    let _ = workspace.sql_in("other.db", "CREATE TABLE customers (name TEXT)");
    let run = latest("other.db").run().exit(5).one_error(&["other.db", "of another program"]);
    drop(run);
    let tables = workspace.sql_in("other.db", "SELECT name FROM sqlite_master");
    assert_eq!(tables, [["customers"]]);
    let _ = latest("sessions").run().exit(5).one_error(&["sessions", "it is a folder"]);
}

#[test]
fn a_damaged_database_is_said_to_be_damaged() {
    let workspace = one_session().grade(&["latest"]);
    let _ = workspace.run().exit(0);
    let path = workspace.path(DATABASE);
    let beside = files(path.parent().unwrap());
    assert_eq!(
        beside,
        std::slice::from_ref(&path),
        "closed, so that a copy of the file is all of it"
    );
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let run = workspace.run().exit(5).one_error(&["selftest.db"]);
    assert!(!run.stdout.contains(&id(1)), "{}", run.stdout);
    let _ = run.stderr_contains("hint:");
}

fn several_processes_may_use_it_at_once(workspace: Workspace) {
    let workspace = (0..20)
        .fold(workspace, |workspace, number| workspace.session(&Recording::success(&id(number))));
    let workspace = workspace.grade(&["summary", "--json"]);
    let running: Vec<_> = (0..4).map(|_| workspace.spawn()).collect();
    for one in running {
        assert_eq!(one.wait().exit(0).json()["summary"]["sessions"], 20);
    }
    assert_eq!(workspace.sql("SELECT count(*) FROM session_grades"), [["20"]]);
    assert_eq!(workspace.sql("SELECT DISTINCT outcome FROM session_files"), [["graded"]]);
}

#[test]
fn addresses_that_are_refused_do_not_repeat_the_password() {
    let refused = |address: &str| {
        let workspace = one_session().grade(&["latest"]).env("DATABASE_URL", address);
        workspace.run().exit(5).nowhere("t0p-s3cret")
    };
    let run = refused("mysql://me:t0p-s3cret@db.example/grades");
    let run = run.one_error(&["mysql", "only SQLite and PostgreSQL are supported"]);
    let _ = run.stderr_contains("hint: give the path of a SQLite file");
    let run = refused("postgres://me:t0p-s3cret@127.0.0.1:1/grades");
    let _ = if cfg!(feature = "postgres") {
        run.one_error(&["cannot reach the database postgres://me@127.0.0.1:1/grades"])
            .stderr_contains("hint: check that the server runs")
    } else {
        run.one_error(&["this build has no PostgreSQL"]).stderr_contains("feature `postgres`")
    };
}

#[cfg(feature = "postgres")]
#[test]
fn a_server_that_lets_nobody_in_and_tables_of_another_program() {
    let Some(workspace) = Workspace::on_postgres() else { return };
    let _ = workspace.sql("CREATE TABLE customers (name TEXT)");
    let workspace = workspace.session(&Recording::success(&id(1))).grade(&["latest"]);
    let run = workspace.run().exit(5).one_error(&["is the database of another program"]);
    let run = run.stderr_contains("hint: create a database for selftest, or a schema");
    drop(run);
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()";
    assert_eq!(workspace.sql(tables), [["customers"]]);
}

#[cfg(feature = "postgres")]
#[test]
fn a_server_may_be_stopped_and_started_again() {
    use crate::databases::Server;

    let Some(server) = Server::new() else { return };
    let workspace = one_session().env("DATABASE_URL", &server.address);
    let latest = workspace.clone().grade(&["latest", "--json"]);
    assert_eq!(latest.run().exit(0).graded(), [id(1)]);
    let site = crate::server::site::Site::start(workspace);
    let found = |query: &str| {
        let page = site.get(&format!("/api/sessions?{query}")).status(200).json();
        page["items"].as_array().unwrap().len()
    };
    assert_eq!(found(""), 1);
    server.stop();
    let _ = latest.run().exit(5).one_error(&["cannot reach the database"]);
    std::thread::scope(|scope| {
        // Another page than that which is kept; it waits until the server is there again.
        let asked = scope.spawn(|| found("order=asc"));
        server.start_again();
        assert_eq!(asked.join().unwrap(), 1);
    });
    assert_eq!(latest.run().exit(0).json()["unchanged"], 1);
    server.stop();
    server.start_again();
    assert_eq!(found("limit=9"), 1);
}
