//! `selftest db`: copies, exports and retention.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::databases::on_each_database;
use crate::grade::recording::id;
use crate::server::site::{Site, graded, graded_in};
use crate::workspace::Workspace;

on_each_database! {
    everything_is_exported_as_lines,
    what_is_old_is_counted_and_deleted,
}

impl Workspace {
    fn db(&self, words: &[&str]) -> Self {
        self.clone().args([&["db"], words].concat())
    }
}

#[test]
fn a_copy_is_made_while_the_server_writes() {
    let site = Site::start(graded());
    let workspace = &site.workspace;
    let run = workspace.db(&["backup", "copy.db"]).run().exit(0);
    let size = fs::metadata(workspace.path("copy.db")).unwrap().len();
    let said = format!(
        ".selftest/selftest.db copied to {}: {size} bytes\n",
        workspace.path("copy.db").display()
    );
    assert!(run.stdout.ends_with(&said), "{} is not {said}", run.stdout);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(workspace.path("copy.db")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let original = workspace.sql("SELECT session_id, details_json FROM session_grades ORDER BY 1");
    let copied = "SELECT session_id, details_json FROM session_grades ORDER BY 1";
    assert_eq!(workspace.sql_in("copy.db", copied), original);
    assert_eq!(original.len(), 4);
    // It is a database like any other.
    let words = ["grade", "recent", "--json", "--db", "copy.db"];
    let grades = workspace.clone().args(words).run().exit(0).json();
    assert_eq!(grades.as_array().unwrap().len(), 3);
    let before = fs::read(workspace.path("copy.db")).unwrap();
    let again = workspace.db(&["backup", "copy.db"]).run().exit(2);
    let _ = again.one_error(&["cannot write", "copy.db"]).stderr_contains("hint: name a new file");
    assert_eq!(fs::read(workspace.path("copy.db")).unwrap(), before);
    let nowhere = workspace.db(&["backup", "no/such/folder/copy.db", "--json"]).run().exit(2);
    let _ = nowhere.one_error(&["cannot write", "no/such/folder/copy.db"]);
}

/// The words of the hint are a command that works.
#[cfg(all(unix, feature = "postgres"))]
#[test]
fn of_postgresql_it_is_said_how() {
    let Some(workspace) = Workspace::on_postgres() else { return };
    let workspace = graded_in(workspace);
    let run = workspace.db(&["backup", "copy.dump"]).run().exit(2);
    let run = run.one_error(&["is copied by PostgreSQL's own program"]);
    let hint = run.stderr.lines().find_map(|line| line.trim().strip_prefix("hint: ")).unwrap();
    assert!(hint.starts_with("pg_dump --format=custom --schema='it_"), "{hint}");
    // The hint shows no password; as the manual says, it is in the environment.
    let server = std::env::var("SELFTEST_TEST_POSTGRES").unwrap();
    let user = server.split('@').next().unwrap();
    let password = user.rsplit_once(':').map_or("", |(_, password)| password);
    let mut command = std::process::Command::new("sh");
    let done = command.args(["-c", hint]).env("PGPASSWORD", password).output().unwrap();
    if !done.status.success() && String::from_utf8_lossy(&done.stderr).contains("not found") {
        crate::require::skip("there is no pg_dump");
        return;
    }
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(fs::read(workspace.path("copy.dump")).unwrap().starts_with(b"PGDMP"));
}

/// The rows of an export, by table.
fn rows(text: &str) -> BTreeMap<String, Vec<Value>> {
    let mut rows = BTreeMap::<String, Vec<Value>>::new();
    for line in text.lines() {
        let mut value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value.as_object().unwrap().len(), 2, "{line}");
        let table = value["table"].as_str().unwrap().to_owned();
        rows.entry(table).or_default().push(value["row"].take());
    }
    rows
}

fn everything_is_exported_as_lines(workspace: Workspace) {
    let workspace = graded_in(workspace).promoted("pr", "# PR");
    let reason = "it \"works\"\nnow";
    let words = ["override", &id(1), "--task-completed", "false", "--reason", reason];
    let _ = workspace.clone().grade(&words).run().exit(0);
    let run = workspace.db(&["export"]).run().exit(0);
    let rows = rows(&run.stdout);
    let count = |table: &str| rows.get(table).map_or(0, Vec::len);
    assert_eq!(count("session_grades"), 4);
    assert_eq!(count("session_quality_grades"), 3);
    assert_eq!((count("skill_versions"), count("skill_audit")), (1, 1));
    assert!(!rows.contains_key("job_leases") && !rows.contains_key("selftest_migrations"));
    let first = &rows["session_grades"][0];
    assert_eq!(first["session_id"], id(1));
    assert!(first["task_completed"].is_u64() && first["duration_seconds"].is_number(), "{first}");
    assert!(first["details_json"].is_object(), "JSON is JSON: {first}");
    assert_eq!(rows["session_quality_grades"][0]["overall"], 0.25);
    let made = &rows["grade_overrides"][0];
    assert_eq!((&made["reason"], &made["human_value"]), (&json!(reason), &json!(0)));
    let written = workspace.db(&["export", "--output", "all.jsonl"]).run().exit(0);
    let _ = written.stderr_contains("rows written to ");
    assert_eq!(fs::read_to_string(workspace.path("all.jsonl")).unwrap(), run.stdout);
    let again = workspace.db(&["export", "--output", "all.jsonl"]).run().exit(2);
    let _ = again.one_error(&["cannot write", "all.jsonl"]);
}

fn what_is_old_is_counted_and_deleted(workspace: Workspace) {
    // Sessions of 16 to 19 November; people have corrected the first.
    let workspace = graded_in(workspace).promoted("pr", "# PR");
    let words = ["override", &id(1), "--task-completed", "false", "--reason", "no"];
    let _ = workspace.clone().grade(&words).run().exit(0);
    for (slot, ended) in [("2026-11-01", 1), ("2026-11-08", 1)] {
        let _ = workspace.sql(&format!(
            "INSERT INTO job_runs (job, slot, worker, attempt, started_at, ended_at) VALUES \
             ('run_weekly_digest', '{slot}T03:30:00.000000000Z', 'w', {ended}, '{slot}', '{slot}')"
        ));
    }
    let of = |table: &str| {
        let count = workspace.sql(&format!("SELECT COUNT(*) FROM {table}"));
        count[0][0].parse::<u64>().unwrap()
    };
    let all =
        || ["session_grades", "session_quality_grades", "grade_overrides", "job_runs"].map(of);
    assert_eq!(all(), [4, 3, 1, 2]);
    let prune = |words: &[&str]| {
        let words = [&["prune", "--older-than", "2026-11-18T12:00:00Z", "--json"], words].concat();
        workspace.db(&words).run().exit(0).json()
    };
    let counted = prune(&["--dry-run"]);
    assert_eq!(counted["dry_run"], true);
    assert_eq!(all(), [4, 3, 1, 2], "only counted");
    // Sessions 2 and 3 go, and the grade by a model of session 2.
    assert_eq!(
        counted["rows"],
        json!({
            "model_grades": 1, "overrides": 0, "labels": 0, "sessions": 2,
            "reflection_scores": 0, "reflections": 0, "signals": 0, "executions": 0, "weekly_reports": 0, "job_runs": 1,
        })
    );
    assert_eq!(counted["kept_sessions"], 1);
    let deleted = prune(&[]);
    assert_eq!(deleted["rows"], counted["rows"]);
    assert_eq!(all(), [2, 2, 1, 1]);
    let left = workspace.sql("SELECT session_id FROM session_grades ORDER BY 1");
    assert_eq!(left, [[id(1)], [id(4)]]);
    let text = workspace.db(&["prune", "--older-than", "2026-11-18"]).run().exit(0).stdout;
    assert!(text.contains("        0  sessions\n"), "{text}");
    assert!(text.contains("1 session that people have corrected or labelled kept"), "{text}");
    assert!(text.ends_with("0 rows from before 2026-11-18 00:00 UTC deleted\n"), "{text}");
    // A label keeps a session too.
    let words = ["sessions", "label", &id(1), "--failure"];
    let _ = workspace.clone().args(words).run().exit(0);
    let _ = workspace.sql("DELETE FROM grade_overrides");
    assert_eq!(prune(&[])["kept_sessions"], 1);
    let words = ["override", &id(1), "--task-completed", "false", "--reason", "no"];
    let _ = workspace.clone().grade(&words).run().exit(0);
    let rows = &prune(&["--people"])["rows"];
    assert_eq!((&rows["overrides"], &rows["labels"]), (&json!(1), &json!(1)));
    assert_eq!(of("session_labels"), 0);
    assert_eq!(all(), [1, 0, 0, 1]);
    // What was pruned does not come back with the next look at the unchanged files.
    let _ = workspace.clone().grade(&["latest", "10"]).run().exit(0);
    assert_eq!(all()[0], 1);
    for (time, said) in [("2099-01-01", "lies in the future"), ("soon", "is not a valid time")] {
        let run = workspace.db(&["prune", "--older-than", time]).run().exit(2);
        let _ = run.one_error(&["--older-than", said]);
    }
    assert_eq!(all(), [1, 0, 0, 1]);
}
