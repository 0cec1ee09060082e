//! One row of `session_grades`: writing a grade, and reading what we or another program wrote.

use std::collections::BTreeMap;

use super::bound;
use super::files::MAX_PATH;
use super::row::{Columns, Record};
use super::statement::{ToValue as _, Value, params};
use selftest_grading::grade::{
    Details, ErrorClass, ErrorCount, GradeRecord, Level, TaskType, ToolUse,
};
use selftest_sessions::Usage;

/// The agent of a row that names none.
const UNKNOWN_AGENT: &str = "unknown";

impl Record for GradeRecord {
    const TABLE: &'static str = "session_grades";
    const COLUMNS: &'static [&'static str] = &[
        "session_id",
        "session_file",
        "graded_at",
        "task_completed",
        "tool_calls_efficient",
        "response_quality",
        "errors_recovered",
        "total_api_calls",
        "model",
        "platform",
        "session_start",
        "duration_seconds",
        "task_summary",
        "total_errors",
        "error_types",
        "tools_with_errors",
        "had_repeated_errors",
        "had_infinite_loop_risk",
        "had_user_clarification",
        "agent",
        "task_type",
        "counts_at",
        "messages",
        "details_json",
    ];

    fn values(&self) -> Vec<Value> {
        values(self, &self.session_file)
    }

    fn read(row: &Columns<'_>) -> Result<Self, String> {
        read(row)
    }
}

/// The values of a grade from that file.
pub(super) fn values(grade: &GradeRecord, file: &str) -> Vec<Value> {
    let classes: Vec<&str> = grade.error_types.iter().map(|class| class.name()).collect();
    let tools = grade.tools_with_errors.iter().take(bound::NAMES);
    let tools: Vec<String> = tools.map(|tool| bound::text(tool, bound::NAME)).collect();
    let details = &grade.details;
    params![
        grade.session_id,
        file.to_value(MAX_PATH),
        grade.graded_at,
        grade.task_completed,
        grade.tool_calls_efficient.get(),
        grade.response_quality.get(),
        grade.errors_recovered,
        grade.total_api_calls,
        grade.model,
        grade.platform,
        grade.session_start,
        grade.duration_seconds.filter(|seconds| seconds.is_finite()),
        grade.task_summary.to_value(bound::TEXT),
        grade.total_errors,
        Value::Text(Some(serde_json::json!(classes).to_string())),
        Value::Text(Some(serde_json::json!(tools).to_string())),
        grade.had_repeated_errors,
        grade.had_infinite_loop_risk,
        grade.had_user_clarification,
        details.agent,
        details.task_type.name(),
        details.counts_at,
        details.messages,
        Value::Text(Some(bound::details(grade))),
    ]
    .into()
}

/// The session's id as it is stored.
pub(super) fn session_id(grade: &GradeRecord) -> String {
    bound::text(&grade.session_id, bound::NAME)
}

/// The grade of a row.
///
/// A row counts only if everything that averages are made of is there and in range: the id, the
/// time of grading, both levels, flags and counts. What is odd elsewhere becomes what its absence
/// would be: no list, no time, an unknown class, the task type of the summary.
fn read(row: &Columns<'_>) -> Result<GradeRecord, String> {
    let level = |name: &str| {
        let level: i64 = row.get(name)?;
        let found = u8::try_from(level).ok().and_then(Level::new);
        found.ok_or_else(|| format!("{name} is {level}, not 1 to 5"))
    };
    let graded_at = row.get("graded_at")?;
    let session_start = row.optional("session_start");
    let class = |name: &String| ErrorClass::from_name(name).unwrap_or(ErrorClass::Unknown);
    let mut record = GradeRecord {
        session_id: row.get("session_id")?,
        session_file: row.get("session_file")?,
        graded_at,
        task_completed: row.get("task_completed")?,
        tool_calls_efficient: level("tool_calls_efficient")?,
        response_quality: level("response_quality")?,
        errors_recovered: row.get("errors_recovered")?,
        total_api_calls: row.get("total_api_calls")?,
        model: row.get("model")?,
        platform: row.get("platform")?,
        session_start,
        duration_seconds: row.get("duration_seconds")?,
        task_summary: row.get("task_summary")?,
        total_errors: row.get("total_errors")?,
        error_types: names(row, "error_types").iter().map(class).collect(),
        tools_with_errors: names(row, "tools_with_errors"),
        had_repeated_errors: row.get("had_repeated_errors")?,
        had_infinite_loop_risk: row.get("had_infinite_loop_risk")?,
        had_user_clarification: row.get("had_user_clarification")?,
        details: Details {
            agent: UNKNOWN_AGENT.to_owned(),
            task_type: TaskType::General,
            counts_at: session_start.unwrap_or(graded_at),
            messages: 0,
            tool_calls: 0,
            rejected_calls: 0,
            pending_calls: 0,
            tools: BTreeMap::new(),
            errors: Vec::new(),
            longest_error_run: 0,
            tokens: Usage::default(),
            evidence: Vec::new(),
        },
    };
    let kept = row.optional::<String>("details_json");
    match kept.and_then(|json| serde_json::from_str(&json).ok()) {
        Some(details) => record.details = details,
        None => from_columns(&mut record),
    }
    // The columns are what is searched, and what others can change.
    let details = &mut record.details;
    if let Some(agent) = row.optional("agent") {
        details.agent = agent;
    }
    if let Some(kind) = row.named("task_type", TaskType::from_name).ok() {
        details.task_type = kind;
    }
    if let Some(counts_at) = row.optional("counts_at") {
        details.counts_at = counts_at;
    }
    Ok(record)
}

/// The details of a row that has none, as the rows of the original program. Each tool and each
/// class of error counts once, as that program counts them: a lower bound.
fn from_columns(record: &mut GradeRecord) {
    let details = &mut record.details;
    details.task_type = record.task_summary.as_deref().map_or(TaskType::General, TaskType::of);
    let one = ToolUse { calls: 1, errors: 1 };
    details.tools = record.tools_with_errors.iter().map(|tool| (tool.clone(), one)).collect();
    // Which tool made which error can only be told where there is one.
    let tool = match record.tools_with_errors.as_slice() {
        [tool] => tool.as_str(),
        _ => "unknown",
    };
    let error = |class: &ErrorClass| ErrorCount {
        class: *class,
        tool: tool.to_owned(),
        count: 1,
        first_event: 0,
        example: String::new(),
    };
    details.errors = record.error_types.iter().map(error).collect();
}

/// A JSON list of texts; what else is in it is left out.
fn names(row: &Columns<'_>, column: &str) -> Vec<String> {
    let list = row.optional::<String>(column).and_then(|json| serde_json::from_str(&json).ok());
    let list: Vec<serde_json::Value> = list.unwrap_or_default();
    list.into_iter().filter_map(|name| name.as_str().map(ToOwned::to_owned)).collect()
}
