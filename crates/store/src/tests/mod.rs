//! Tests of the store's public interface on SQLite, in memory and on disk, and on PostgreSQL.

mod databases;

mod browsing;
mod gaps;
mod opening;
mod other_tables;
mod pattern_days;
mod reflections;
mod saving;
mod schema;
mod search;
#[cfg(feature = "postgres")]
mod server;
mod skills;
mod writers;

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use databases::{Databases, on_every_engine};

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
