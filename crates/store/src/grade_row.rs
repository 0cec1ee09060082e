//! One row of `session_grades`: writing a grade, and reading what we or another program wrote.

use std::collections::BTreeMap;

use sqlx::{AnyConnection, AssertSqlSafe};

use super::bound;
use super::insert::{AnyQuery, Insert};
use super::row::{Columns, Double, count, time};
use selftest_grading::grade::{
    Details, ErrorClass, ErrorCount, GradeRecord, Level, TaskType, ToolUse,
};
use selftest_sessions::Usage;

/// The agent of a row that names none.
const UNKNOWN_AGENT: &str = "unknown";

/// Inserts a grade, or replaces that of the same session.
const INSERT: Insert<'_> = Insert {
    table: "session_grades",
    key: "session_id",
    columns: &[
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
    ],
};

/// A grade and the file that it is graded from.
pub(super) type Graded<'a> = (&'a GradeRecord, String);

/// A query for whole rows. It names their columns: a prepared `SELECT *` fails in PostgreSQL when
/// a newer version of selftest adds one.
pub(super) fn select(rest: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("SELECT {} FROM session_grades {rest}", INSERT.columns.join(", ")))
}

/// Inserts grades of different sessions, each in place of what was there of its session.
pub(super) async fn write(
    connection: &mut AnyConnection,
    grades: &[Graded<'_>],
) -> Result<(), sqlx::Error> {
    INSERT.run(connection, grades, bind).await
}

fn bind<'q>(query: AnyQuery<'q>, (grade, file): &Graded<'_>) -> AnyQuery<'q> {
    let classes: Vec<&str> = grade.error_types.iter().map(|class| class.name()).collect();
    let tools = grade.tools_with_errors.iter().take(bound::NAMES);
    let tools: Vec<String> = tools.map(|tool| bound::text(tool, bound::NAME)).collect();
    query
        .bind(session_id(grade))
        .bind(file.to_owned())
        .bind(time(grade.graded_at))
        .bind(i16::from(grade.task_completed))
        .bind(i16::from(grade.tool_calls_efficient.get()))
        .bind(i16::from(grade.response_quality.get()))
        .bind(i16::from(grade.errors_recovered))
        .bind(count(grade.total_api_calls))
        .bind(bound::optional(grade.model.as_deref(), bound::NAME))
        .bind(bound::optional(grade.platform.as_deref(), bound::NAME))
        .bind(grade.session_start.map(time))
        .bind(Double(grade.duration_seconds.filter(|seconds| seconds.is_finite())))
        .bind(bound::optional(grade.task_summary.as_deref(), bound::TEXT))
        .bind(count(grade.total_errors))
        .bind(json_list(&classes))
        .bind(json_list(&tools))
        .bind(i16::from(grade.had_repeated_errors))
        .bind(i16::from(grade.had_infinite_loop_risk))
        .bind(i16::from(grade.had_user_clarification))
        .bind(bound::text(&grade.details.agent, bound::NAME))
        .bind(grade.details.task_type.name())
        .bind(time(grade.details.counts_at))
        .bind(count(grade.details.messages))
        .bind(bound::details(grade))
}

/// The session's id as it is stored.
pub(super) fn session_id(grade: &GradeRecord) -> String {
    bound::text(&grade.session_id, bound::NAME)
}

fn json_list<T: Into<serde_json::Value> + Clone>(items: &[T]) -> String {
    serde_json::Value::from(items).to_string()
}

/// The grade of a row.
///
/// A row counts only if everything that averages are made of is there and in range: the id, the
/// time of grading, both levels, flags and counts. What is odd elsewhere becomes what its absence
/// would be: no list, no time, an unknown class, the task type of the summary.
pub(super) fn read(row: &Columns<'_>) -> Result<GradeRecord, String> {
    let level = |name: &str| {
        let level = row.integer(name)?;
        let found = u8::try_from(level).ok().and_then(Level::new);
        found.ok_or_else(|| format!("{name} is {level}, not 1 to 5"))
    };
    let graded_at = row.time("graded_at")?;
    let session_start = row.optional_time("session_start");
    let class = |name: &String| ErrorClass::from_name(name).unwrap_or(ErrorClass::Unknown);
    let mut record = GradeRecord {
        session_id: row.text("session_id")?,
        session_file: row.text("session_file")?,
        graded_at,
        task_completed: row.flag("task_completed")?,
        tool_calls_efficient: level("tool_calls_efficient")?,
        response_quality: level("response_quality")?,
        errors_recovered: row.flag("errors_recovered")?,
        total_api_calls: row.number("total_api_calls")?,
        model: row.optional_text("model"),
        platform: row.optional_text("platform"),
        session_start,
        duration_seconds: row.optional_float("duration_seconds"),
        task_summary: row.optional_text("task_summary"),
        total_errors: row.number("total_errors")?,
        error_types: names(row, "error_types").iter().map(class).collect(),
        tools_with_errors: names(row, "tools_with_errors"),
        had_repeated_errors: row.flag("had_repeated_errors")?,
        had_infinite_loop_risk: row.flag("had_infinite_loop_risk")?,
        had_user_clarification: row.flag("had_user_clarification")?,
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
    let kept = row.optional_text("details_json");
    match kept.and_then(|json| serde_json::from_str(&json).ok()) {
        Some(details) => record.details = details,
        None => from_columns(&mut record),
    }
    // The columns are what is searched, and what others can change.
    let details = &mut record.details;
    if let Some(agent) = row.optional_text("agent") {
        details.agent = agent;
    }
    if let Some(kind) = row.optional_text("task_type").and_then(|name| TaskType::from_name(&name)) {
        details.task_type = kind;
    }
    if let Some(counts_at) = row.optional_time("counts_at") {
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
    let list = row.optional_text(column).and_then(|json| serde_json::from_str(&json).ok());
    let list: Vec<serde_json::Value> = list.unwrap_or_default();
    list.into_iter().filter_map(|name| name.as_str().map(ToOwned::to_owned)).collect()
}
