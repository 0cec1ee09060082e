//! The table `session_grades`: one row per session, ours or another program's.

use std::collections::BTreeMap;

use super::files::MAX_PATH;
use super::row::{Columns, Record, read_from, record};
use super::statement::{ToValue as _, Value, params, stored_as};
use super::{ColumnError, bound, lineage};
use selftest_grading::grade::{
    ErrorCause, ErrorClass, ErrorCount, GradeDetails, GradeLevel, GradeRecord, OutcomeState,
    SessionKind, TaskOutcome, TaskType, ToolUse,
};
use selftest_sessions::{SessionLineage, TokenCounts};

/// Agent name for rows without one.
const UNKNOWN_AGENT: &str = "unknown";

// A row counts only if everything that averages need is present and in range: id, grading time,
// both levels, flags and counts. Invalid values elsewhere are read as if they were missing: no
// list, no time, an unknown class, the task type derived from the summary.
record!(GradeRecord, "session_grades", {
    session_id,
    session_file [MAX_PATH],
    graded_at,
    task_completed,
    tool_calls_efficient,
    response_quality,
    errors_recovered,
    total_api_calls,
    model,
    platform,
    session_start,
    duration_seconds,
    task_summary [bound::TEXT],
    total_errors,
    error_types,
    tools_with_errors,
    had_repeated_errors,
    had_infinite_loop_risk,
    had_user_clarification,
    outcome by outcome,
    session_kind,
    parent_session,
} + details: GradeDetails);

/// Reads the outcome of a task; unknown in rows of other programs and of earlier versions.
#[expect(clippy::unnecessary_wraps, reason = "the form of every reader of a column")]
fn outcome(row: &Columns<'_>, name: &str) -> Result<TaskOutcome, ColumnError> {
    Ok(row.named(name, TaskOutcome::from_name).unwrap_or_default())
}

stored_as! { Integer: GradeLevel => |level, _limit| i64::from(level.get()) }
stored_as! { Text:
    TaskType => |task_type, _limit| task_type.name().to_owned(),
    TaskOutcome => |outcome, _limit| outcome.name().to_owned(),
    SessionKind => |kind, _limit| kind.name().to_owned(),
    Vec<ErrorClass> => |classes, _limit| {
        bound::json(&classes.iter().map(|class| class.name()).collect::<Vec<_>>())
    },
    Vec<String> => |names, limit| {
        let names = names.iter().take(bound::NAMES);
        bound::json(&names.map(|name| bound::text(name, limit)).collect::<Vec<_>>())
    },
}
read_from! { |row, name|
    GradeLevel => {
        let level: i64 = row.get(name)?;
        let found = u8::try_from(level).ok().and_then(GradeLevel::new);
        found.ok_or_else(|| ColumnError::value(name, format_args!("{level}, not 1 to 5")))
    },
    TaskType => row.named(name, TaskType::from_name),
    TaskOutcome => row.named(name, TaskOutcome::from_name),
    // Rows of other programs and of earlier versions are tasks.
    SessionKind => Ok(row.named(name, SessionKind::from_name).unwrap_or_default()),
    Vec<ErrorClass> => {
        let names: Vec<String> = row.get(name)?;
        let class = |name: &String| ErrorClass::from_name(name).unwrap_or(ErrorClass::Unknown);
        Ok(names.iter().map(class).collect())
    },
    Vec<String> => {
        let list: Vec<serde_json::Value> = row.json(name).unwrap_or_default();
        Ok(list.into_iter().filter_map(|name| name.as_str().map(ToOwned::to_owned)).collect())
    },
}

impl Record for GradeDetails {
    const TABLE: &'static str = GradeRecord::TABLE;

    fn columns() -> Vec<&'static str> {
        vec![
            "agent",
            "task_type",
            "counts_at",
            "messages",
            "details_json",
            "claimed_id",
            "beginning",
            "lineage",
        ]
    }

    fn values(&self) -> Vec<Value> {
        let json = Value::Text(Some(bound::details(self)));
        let known = Some(&self.lineage).filter(|lineage| !lineage.id.is_empty());
        let claimed = known.map(|lineage| lineage.id.clone());
        let lineage = Value::Text(known.and_then(|lineage| serde_json::to_string(lineage).ok()));
        let mut values: Vec<Value> =
            params![self.agent, self.task_type, self.counts_at, self.messages].into();
        values.extend([json, claimed.to_value(bound::NAME)]);
        values.extend([known.and_then(lineage::beginning).to_value(bound::NAME), lineage]);
        values
    }

    fn read(row: &Columns<'_>) -> Result<Self, ColumnError> {
        let mut details = row.json("details_json").or_else(|_| details_of_columns(row))?;
        // Columns take precedence: queries filter by them, and other programs may update them.
        if let Some(agent) = row.optional("agent") {
            details.agent = agent;
        }
        if let Some(task_type) = row.optional("task_type") {
            details.task_type = task_type;
        }
        // Rows of other programs have only the start.
        details.counts_at = row.optional("counts_at").or_else(|| row.optional("session_start"));
        details.lineage = row.json("lineage").unwrap_or_default();
        Ok(details)
    }
}

/// Builds details for a row without them, such as those of the original program. Each tool and
/// error class counts once, as that program counts them: a lower bound.
fn details_of_columns(row: &Columns<'_>) -> Result<GradeDetails, ColumnError> {
    let tools: Vec<String> = row.get("tools_with_errors")?;
    let summary: Option<String> = row.get("task_summary")?;
    // Errors can only be attributed if there is exactly one tool.
    let tool = match tools.as_slice() {
        [tool] => tool.as_str(),
        _ => "unknown",
    };
    let error = |class: ErrorClass| ErrorCount {
        class,
        cause: ErrorCause::from_name(class.name()).unwrap_or_default(),
        template: String::new(),
        tool: tool.to_owned(),
        count: 1,
        first_event: 0,
        example: String::new(),
    };
    let errors = row.get::<Vec<ErrorClass>>("error_types")?.into_iter().map(error).collect();
    let one = ToolUse { calls: 1, errors: 1 };
    Ok(GradeDetails {
        agent: UNKNOWN_AGENT.to_owned(),
        project: None,
        task_type: summary.as_deref().map_or(TaskType::General, TaskType::from_request),
        counts_at: row.optional("session_start"),
        messages: 0,
        tool_calls: 0,
        rejected_calls: 0,
        pending_calls: 0,
        tools: tools.iter().map(|tool| (tool.clone(), one)).collect::<BTreeMap<_, _>>(),
        errors,
        longest_error_run: 0,
        tokens: TokenCounts::default(),
        evidence: Vec::new(),
        state: OutcomeState::Unknown,
        own_state: None,
        own_outcome: None,
        outcome_evidence: Vec::new(),
        results: Vec::new(),
        corrections: 0,
        lineage: SessionLineage::default(),
        foreign_edits: 0,
        rewinds: 0,
        spent: Vec::new(),
        copied: Vec::new(),
        copied_from: None,
        stated_cost: None,
    })
}
