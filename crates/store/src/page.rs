//! Pages of long lists, and their order. A cursor holds the last row instead of an offset, so rows
//! added in between cause no duplicates or gaps.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use super::row::{Columns, Record as _, record};
use super::statement::{SqlStatement, Value};
use super::{ColumnError, Store, StoreError, bound};
use selftest_grading::grade::{GradeLevel, SessionKind, TaskOutcome, TaskType};

/// Maximum length of a cursor's text form in bytes.
const MAX_LENGTH: usize = 4096;

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultPage<T> {
    /// Rows of the page.
    pub items: Vec<T>,
    /// Start of the next page; `None` on the last one.
    pub next: Option<Cursor>,
}

/// A position in a sorted list, after the row with this value and id. Its text form is opaque:
/// clients pass it back unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cursor {
    /// Sort value as text; `None` for null.
    pub value: Option<String>,
    /// Id that distinguishes rows with the same value.
    pub id: String,
    /// Sort order, if the list has several: a cursor of one order is invalid in another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

impl Cursor {
    /// Returns the position of a row in a list with a single order, by a column that may be null.
    pub(super) fn of(row: &Columns<'_>, value: &str, id: &str) -> Result<Self, ColumnError> {
        Ok(Self { value: row.get(value)?, id: row.get(id)?, order: None })
    }

    /// Returns the position of a row in a list sorted by a numeric id.
    pub(super) fn of_id(row: &Columns<'_>) -> Result<Self, ColumnError> {
        let id = row.get::<i64>("id")?.to_string();
        Ok(Self { value: None, id, order: None })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        json.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected the `next` of the page before";
        // Cursors come from clients. The ASCII check makes the byte slicing below safe.
        if text.len() > MAX_LENGTH || !text.is_ascii() || !text.len().is_multiple_of(2) {
            return Err(EXPECTED);
        }
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).ok();
        let json: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
        json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or(EXPECTED)
    }
}

/// Sort key of a list of sessions. Sessions without a value come last in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SessionSort {
    /// Time under which the session is counted.
    Time,
    /// Average overall score given by models.
    Quality,
    /// Outcome of the task, by name.
    Outcome,
    /// Completion of the task.
    Completed,
    /// Efficiency of tool calls.
    Efficiency,
    /// Quality of responses.
    Response,
    /// Number of errors.
    Errors,
    /// Number of model calls.
    Calls,
    /// Duration of the session.
    Duration,
    /// Agent name.
    Agent,
    /// Task type, by name.
    TaskType,
    /// Worst results: tasks by outcome, contradicted ones highest, then by number of errors.
    /// Sessions that are not tasks come lowest.
    Worst,
}

selftest_text::named!(SessionSort);

/// Type of a column.
#[derive(Clone, Copy)]
pub(super) enum ColumnType {
    Integer,
    Real,
    Text,
}

impl SessionSort {
    /// Returns true if a list in this order can continue after `cursor`. Cursors of other orders do
    /// not fit.
    pub fn fits(self, descending: bool, cursor: &Cursor) -> bool {
        let (_, kind, nullable) = self.column();
        cursor.order.as_deref() == Some(&*self.order(descending))
            && cursor.value.as_ref().map_or(nullable, |value| kind.parse(value).is_some())
    }

    /// Returns the name of the order in cursors.
    pub(super) fn order(self, descending: bool) -> String {
        format!("{self}.{}", if descending { "desc" } else { "asc" })
    }

    /// Returns the column, its type, and whether it may be null.
    pub(super) fn column(self) -> (&'static str, ColumnType, bool) {
        match self {
            SessionSort::Time => ("counts_at", ColumnType::Text, true),
            SessionSort::Quality => ("quality", ColumnType::Real, true),
            SessionSort::Outcome => ("outcome", ColumnType::Text, true),
            SessionSort::Completed => ("task_completed", ColumnType::Integer, false),
            SessionSort::Efficiency => ("tool_calls_efficient", ColumnType::Integer, false),
            SessionSort::Response => ("response_quality", ColumnType::Integer, false),
            SessionSort::Errors => ("total_errors", ColumnType::Integer, false),
            SessionSort::Calls => ("total_api_calls", ColumnType::Integer, false),
            SessionSort::Duration => ("duration_seconds", ColumnType::Real, true),
            SessionSort::Agent => ("agent", ColumnType::Text, true),
            SessionSort::TaskType => ("task_type", ColumnType::Text, true),
            SessionSort::Worst => ("worst", ColumnType::Integer, false),
        }
    }
}

impl ColumnType {
    pub(super) fn parse(self, text: &str) -> Option<Value> {
        Some(match self {
            ColumnType::Integer => Value::Integer(Some(text.parse().ok()?)),
            ColumnType::Real => {
                Value::Real(Some(text.parse().ok().filter(|real: &f64| real.is_finite())?))
            }
            ColumnType::Text => Value::Text(Some(bound::text(text, bound::NAME))),
        })
    }
}

/// Filters, order and page of a list of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionQuery {
    /// Sort key; ties are broken by session id.
    pub sort: SessionSort,
    /// Sort in descending order.
    pub descending: bool,
    /// Only sessions of this agent.
    pub agent: Option<String>,
    /// Only tasks of this type.
    pub task_type: Option<TaskType>,
    /// Only completed tasks, or only the others.
    pub completed: Option<bool>,
    /// Only tasks with this outcome.
    pub outcome: Option<TaskOutcome>,
    /// Minimum average overall score given by models.
    pub min_quality: Option<f64>,
    /// Only sessions with this text in the task summary or the id. ASCII letters match in either
    /// case.
    pub search: Option<String>,
    /// Only sessions that this session started or that continue it.
    pub parent: Option<String>,
    /// Number of rows per page.
    pub limit: u32,
    /// Position after which the page starts. A cursor from another order ([`SessionSort::fits`])
    /// yields an empty page.
    pub after: Option<Cursor>,
}

impl Default for SessionQuery {
    /// The newest 50 sessions.
    fn default() -> Self {
        Self {
            sort: SessionSort::Time,
            descending: true,
            agent: None,
            task_type: None,
            completed: None,
            outcome: None,
            min_quality: None,
            search: None,
            parent: None,
            limit: 50,
            after: None,
        }
    }
}

/// A session in a list, with a summary of its rule-based grade.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SessionRow {
    /// Session id.
    pub session_id: String,
    /// Name of the agent.
    pub agent: Option<String>,
    /// Model used by the agent.
    pub model: Option<String>,
    /// Task type.
    #[schema(value_type = Option<String>)]
    pub task_type: Option<TaskType>,
    /// Start of the request.
    pub task_summary: Option<String>,
    /// Date of the session; `None` if it is undated, and in rows of other programs.
    pub counts_at: Option<Timestamp>,
    /// Duration in seconds.
    pub duration_seconds: Option<f64>,
    /// Outcome of the task; null in rows of other programs and of earlier versions.
    pub outcome: Option<TaskOutcome>,
    /// Purpose of the session. Rates count only tasks.
    pub session_kind: SessionKind,
    /// True if the task appears to be completed.
    pub task_completed: bool,
    /// Efficiency of tool calls, 1 to 5.
    pub tool_calls_efficient: u8,
    /// Quality of responses, 1 to 5.
    pub response_quality: u8,
    /// Total number of errors.
    pub total_errors: u64,
    /// Total number of model calls.
    pub total_api_calls: u64,
    /// Average overall score given by models with the current rubric, 0 to 1. Null if no model has
    /// graded the session, or if none could decide; `quality_graded` distinguishes the two.
    pub quality: Option<f64>,
    /// True if a model has graded the session with the current rubric.
    pub quality_graded: bool,
}

/// Expression by which rows without a value are compared. With the plain column SQLite would choose
/// the index on ids and read every row.
const NULLS_BY: &str = "COALESCE(session_id, '')";

/// SQL expression for [`SessionSort::Worst`].
const WORST: &str = "CASE WHEN COALESCE(session_kind, 'task') <> 'task' THEN -1 \
     ELSE 10000 * CASE outcome WHEN 'contradicted' THEN 3 WHEN 'claimed' THEN 1 \
     WHEN 'checks_passed' THEN 0 ELSE 2 END \
     + CASE WHEN total_errors > 9999 THEN 9999 ELSE total_errors END END";

record!(SessionRow, "session_grades", {
    session_id,
    agent,
    model,
    task_type,
    task_summary,
    counts_at,
    duration_seconds,
    outcome,
    session_kind,
    task_completed,
    tool_calls_efficient by level,
    response_quality by level,
    total_errors,
    total_api_calls,
    quality,
    quality_graded,
});

fn level(row: &Columns<'_>, name: &str) -> Result<u8, ColumnError> {
    row.get(name).map(GradeLevel::get)
}

impl Store {
    /// Selects `columns` of all sessions. An average counts only if it uses the reader's rubric.
    fn listed(&self, columns: &str) -> String {
        let mut stored = SessionRow::columns();
        stored.retain(|column| !matches!(*column, "agent" | "quality" | "quality_graded"));
        // `COALESCE` hides the agent column from SQLite's planner. Otherwise it would choose the
        // index that starts with the agent and read most of the table through it, although the
        // browse index covers the filter and the order.
        format!(
            "SELECT {columns} FROM (SELECT {stored}, COALESCE(agent, NULL) AS agent, \
             CASE WHEN quality_rubric = {rubric} THEN quality END AS quality, \
             CASE WHEN quality_rubric = {rubric} THEN 1 ELSE 0 END AS quality_graded, \
             {WORST} AS worst FROM session_grades) AS session WHERE ",
            stored = stored.join(", "),
            rubric = self.rubric
        )
    }

    /// Appends a query for `columns` of the rows that match the filters.
    fn filter(&self, sql: &mut SqlStatement, columns: &str, query: &SessionQuery) {
        sql.push(&self.listed(columns)).push("1 = 1");
        if let Some(agent) = &query.agent {
            sql.push(" AND agent = ").bind(agent);
        }
        if let Some(task_type) = query.task_type {
            sql.push(" AND task_type = ").bind(task_type.name());
        }
        if let Some(completed) = query.completed {
            sql.push(if completed {
                " AND task_completed <> 0"
            } else {
                " AND task_completed = 0"
            });
        }
        if let Some(outcome) = query.outcome {
            sql.push(" AND outcome = ").bind(outcome.name());
            sql.push(" AND COALESCE(session_kind, 'task') = 'task'");
        }
        if let Some(min_quality) = query.min_quality {
            sql.push(" AND quality >= ").bind(min_quality);
        }
        if let Some(parent) = &query.parent {
            sql.push(" AND session_id IN (SELECT session_id FROM session_grades AS started ");
            sql.push("WHERE started.parent_session = ").bind(parent).push(")");
        }
        if let Some(words) = &query.search {
            // `!` comes first: it is the escape character added for the other two.
            let mut pattern = bound::text(words, bound::NAME).to_ascii_lowercase();
            for special in ['!', '%', '_'] {
                pattern = pattern.replace(special, &format!("!{special}"));
            }
            let pattern = Value::Text(Some(format!("%{pattern}%")));
            let like = |sql: &mut SqlStatement, column: &str| {
                sql.push(&self.engine.like(column)).bind(&pattern).push(" ESCAPE '!'");
            };
            sql.push(" AND (");
            like(sql, "task_summary");
            sql.push(" OR ");
            like(sql, "session_id");
            sql.push(")");
        }
    }

    /// Reads a page from a query for `limit + 1` rows. An unreadable row is left out, but the
    /// cursor may still point at it.
    pub(super) async fn fetch_page<T>(
        &self,
        limit: u32,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
        place: impl Fn(&Columns<'_>) -> Result<Cursor, ColumnError>,
        read: impl Fn(&Columns<'_>) -> Result<T, ColumnError>,
    ) -> Result<ResultPage<T>, StoreError> {
        // Unreadable rows stay in the list as `None`, so that they count and can end a page.
        let rows = self.fetch(sql, values, |row| Ok((place(row)?, read(row).ok()))).await?;
        let (mut items, limit) = (rows.items, limit as usize);
        let more = items.len() as u64 + rows.unreadable > limit as u64;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|(place, _)| place.clone());
        Ok(ResultPage { items: items.into_iter().filter_map(|(_, item)| item).collect(), next })
    }

    /// Returns a page of sessions with a rule-based grade. Unreadable rows are left out.
    pub async fn sessions(
        &self,
        query: &SessionQuery,
    ) -> Result<ResultPage<SessionRow>, StoreError> {
        if query.after.as_ref().is_some_and(|cursor| !query.sort.fits(query.descending, cursor)) {
            return Ok(ResultPage { items: Vec::new(), next: None });
        }
        let (column, kind, nullable) = query.sort.column();
        let (operator, direction) = if query.descending { ("<", "DESC") } else { (">", "ASC") };
        let mut columns = SessionRow::columns();
        if !columns.contains(&column) {
            columns.push(column);
        }
        let order = format!(" ORDER BY {column} {direction} NULLS LAST, session_id {direction}");
        let mut sql = SqlStatement::default();
        // The inner query sorts ids, which it reads from indexes alone, and not whole rows.
        sql.push(&self.listed(&columns.join(", "))).push("session_id IN (");
        self.filter(&mut sql, "session_id", query);
        if let Some(Cursor { value, id, .. }) = &query.after {
            match value.as_deref().and_then(|value| kind.parse(value)) {
                Some(value) => {
                    sql.push(&format!(" AND (({column}, session_id) {operator} (")).bind(value);
                    sql.push(", ").bind(id).push(")");
                    // Nulls sort last in both directions, so they follow every row with a value.
                    sql.push(&if nullable { format!(" OR {column} IS NULL)") } else { ")".into() });
                }
                None => {
                    sql.push(&format!(" AND {column} IS NULL AND {NULLS_BY} {operator} ")).bind(id);
                }
            }
        }
        sql.push(&order).push(" LIMIT ").bind(u64::from(query.limit) + 1);
        sql.push(")").push(&order);
        let place = |row: &Columns<'_>| {
            let value = match kind {
                _ if row.is_null(column) => None,
                ColumnType::Integer => Some(row.get::<i64>(column)?.to_string()),
                ColumnType::Real => Some(row.get::<f64>(column)?.to_string()),
                ColumnType::Text => Some(row.get(column)?),
            };
            let order = Some(query.sort.order(query.descending));
            Ok(Cursor { value, id: row.get("session_id")?, order })
        };
        self.fetch_page(query.limit, sql.sql, sql.values, place, SessionRow::read).await
    }

    /// Counts the sessions that match the filters, on all pages.
    pub async fn count_sessions(&self, query: &SessionQuery) -> Result<u64, StoreError> {
        let mut sql = SqlStatement::default();
        self.filter(&mut sql, "COUNT(*) AS count", query);
        self.count(sql.sql, sql.values).await
    }

    /// Returns the names of all agents with sessions, sorted.
    pub async fn agents(&self) -> Result<Vec<String>, StoreError> {
        // Steps from each name to the next one: neither engine can skip equal index entries by
        // itself.
        let query = "WITH RECURSIVE known(agent) AS (SELECT MIN(agent) FROM session_grades \
                     UNION ALL SELECT (SELECT MIN(agent) FROM session_grades \
                     WHERE agent > known.agent) FROM known WHERE known.agent IS NOT NULL) \
                     SELECT agent FROM known WHERE agent IS NOT NULL";
        Ok(self.fetch(query, [], |row| row.get("agent")).await?.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text_form_and_nothing_else_is_one() {
        for cursor in [
            Cursor {
                value: Some("2026-11-20T10:00:00Z".into()),
                id: "é\"/?&".into(),
                order: Some("time.desc".into()),
            },
            Cursor { value: None, id: String::new(), order: None },
        ] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "x", "7b", "é0", "+1+1", &"00".repeat(MAX_LENGTH)] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
