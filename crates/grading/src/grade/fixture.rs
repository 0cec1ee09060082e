//! Hand-made records for the tests of patterns and reports.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    ErrorCause, ErrorClass, ErrorCount, GradeDetails, GradeLevel, GradeRecord, OutcomeState,
    SessionKind, TaskOutcome, TaskType,
};
use selftest_sessions::TokenCounts;

/// Time of [`record`].
const NOON: &str = "2026-11-18T12:00:00Z";

/// Returns a session without tool calls on the Wednesday of 2026-W47.
pub(crate) fn record(
    id: &str,
    task_type: TaskType,
    completed: bool,
    efficiency: u8,
    quality: u8,
) -> GradeRecord {
    let at: Timestamp = NOON.parse().unwrap();
    GradeRecord {
        session_id: id.to_owned(),
        session_file: format!("/sessions/{id}.jsonl"),
        graded_at: at,
        task_completed: completed,
        tool_calls_efficient: GradeLevel::new(efficiency).unwrap(),
        response_quality: GradeLevel::new(quality).unwrap(),
        errors_recovered: true,
        total_api_calls: 10,
        model: Some("model-a".to_owned()),
        platform: None,
        session_start: Some(at),
        duration_seconds: Some(60.0),
        task_summary: Some("do something".to_owned()),
        total_errors: 0,
        error_types: Vec::new(),
        tools_with_errors: Vec::new(),
        had_repeated_errors: false,
        had_infinite_loop_risk: false,
        had_user_clarification: false,
        outcome: if completed { TaskOutcome::ChecksPassed } else { TaskOutcome::Contradicted },
        session_kind: SessionKind::Task,
        parent_session: None,
        details: GradeDetails {
            agent: "agent".to_owned(),
            project: Some("/work/site".to_owned()),
            task_type,
            counts_at: Some(at),
            messages: 4,
            tool_calls: 0,
            rejected_calls: 0,
            pending_calls: 0,
            tools: BTreeMap::new(),
            errors: Vec::new(),
            longest_error_run: 0,
            tokens: TokenCounts::default(),
            evidence: Vec::new(),
            state: OutcomeState::Unknown,
            own_state: None,
            own_outcome: None,
            outcome_evidence: Vec::new(),
            results: Vec::new(),
            corrections: 0,
            lineage: selftest_sessions::SessionLineage::default(),
            foreign_edits: 0,
            rewinds: 0,
            spent: Vec::new(),
            copied: Vec::new(),
            copied_from: None,
            stated_cost: None,
        },
    }
}

impl GradeRecord {
    /// Adds successful calls of a tool.
    pub(crate) fn used(mut self, tool: &str, calls: u64) -> Self {
        self.details.tools.entry(tool.to_owned()).or_default().calls += calls;
        self.details.tool_calls += calls;
        self
    }

    /// Adds failed calls of a tool.
    pub(crate) fn failed(
        mut self,
        tool: &str,
        class: ErrorClass,
        count: u64,
        example: &str,
    ) -> Self {
        self.total_errors += count;
        self.details.tools.entry(tool.to_owned()).or_default().errors += count;
        self.details.errors.push(ErrorCount {
            class,
            cause: ErrorCause::from_name(class.name()).unwrap_or_default(),
            template: String::new(),
            tool: tool.to_owned(),
            count,
            first_event: 0,
            example: example.to_owned(),
        });
        self.used(tool, count)
    }

    /// Marks the session as not recovered from its errors.
    pub(crate) fn stuck(mut self) -> Self {
        self.errors_recovered = false;
        self
    }

    /// Moves the session to another time.
    pub(crate) fn at(mut self, at: &str) -> Self {
        self.details.counts_at = Some(at.parse().unwrap());
        self.session_start = self.details.counts_at;
        self
    }
}

/// Returns a week of twelve sessions that trigger every rule, and the two months before it.
/// 2026-W47 is worse than the previous four weeks, and 2026-W45 has no session.
pub(crate) fn two_months() -> Vec<GradeRecord> {
    let mut records = Vec::new();
    for (week, monday) in
        ["2026-09-28", "2026-10-05", "2026-10-12", "2026-10-19", "2026-10-26", "2026-11-09"]
            .into_iter()
            .enumerate()
    {
        for number in 0..10 + week {
            let id = format!("w{week}-{number:02}");
            let task = TaskType::ALL[number % 4];
            let one = record(&id, task, number != 3, 4, if number % 2 == 0 { 4 } else { 3 })
                .used("bash", 8)
                .used("read_file", 4)
                .at(&format!("{monday}T10:00:00Z"));
            let failed = |one: GradeRecord| {
                one.failed("bash", ErrorClass::CommandFailed, 1, "exit code 1: 2 tests failed")
            };
            records.push(if number % 5 == 0 { failed(one) } else { one });
        }
    }
    let missing = "cat: src/mian.rs: No such file or directory";
    for number in 0..12 {
        let id = format!("now-{number:02}");
        let one =
            match number {
                0..5 => record(&id, TaskType::Debugging, number == 0, 2, 2)
                    .used("bash", 12)
                    .failed("read_file", ErrorClass::FileNotFound, 3, missing)
                    .failed("bash", ErrorClass::CommandFailed, 2, "exit code 101")
                    .stuck(),
                5..8 => record(&id, TaskType::CodeReview, true, 4, 4).used("read_file", 6).failed(
                    "read_file",
                    ErrorClass::FileNotFound,
                    1,
                    missing,
                ),
                _ => record(&id, TaskType::FeatureImpl, number != 11, 3, 4)
                    .used("bash", 10)
                    .failed("browser|nav", ErrorClass::Timeout, 1, "page timed out after 30 s"),
            };
        records.push(one.at(&format!("2026-11-{:02}T09:30:00Z", 16 + number % 7)));
    }
    records
}

/// Returns sessions in which every untrusted text tries to break the report.
pub(crate) fn hostile() -> Vec<GradeRecord> {
    let evil = "| x |\n# Forged <script>alert(1)</script> ![i](http://evil.example/p.png) \u{202e}";
    let tool = "<svg onload=alert(1)>\" ]]> | `tool`\u{1b}[31m";
    (0..6)
        .map(|number| {
            record(&format!("{evil}{number}"), TaskType::Testing, false, 1, 1)
                .failed(tool, ErrorClass::Unknown, 2, evil)
                .failed(&"x".repeat(5000), ErrorClass::ApiError, 1, &"y ".repeat(5000))
                .stuck()
        })
        .collect()
}
