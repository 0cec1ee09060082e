//! Lists of graded sessions, sorted, filtered and paged by the database.
//!
//! First the ids of a page are found, from indexes alone, then its rows are read by them: whatever
//! the order and the filters, a page costs at most one pass over the index
//! `idx_session_grades_browse`, and what is sorted are ids.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::page::{Cursor, Page};
use super::row::{Columns, Record as _, record};
use super::sort::{Kind, SessionSort};
use super::statement::{Statement, Value};
use super::{Store, StoreError, bound};
use selftest_grading::grade::{Level, SessionKind, TaskOutcome, TaskType};

/// Which sessions, and in which order.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionQuery {
    /// By what they are sorted; sessions with the same value by their ids.
    pub sort: SessionSort,
    /// From the greatest to the least.
    pub descending: bool,
    /// Only those of this agent.
    pub agent: Option<String>,
    /// Only tasks of this type.
    pub task_type: Option<TaskType>,
    /// Only completed tasks, or only others.
    pub completed: Option<bool>,
    /// Only tasks of which this became.
    pub outcome: Option<TaskOutcome>,
    /// Only those with at least this average overall score of the models.
    pub min_quality: Option<f64>,
    /// Only those with this text in the summary of the task or in the id; the case of ASCII
    /// letters does not count.
    pub search: Option<String>,
    /// Only those that were started by this session or go on from it.
    pub parent: Option<String>,
    /// Rows of a page.
    pub limit: u32,
    /// The place behind which the page begins. Nothing is behind one that does not fit
    /// ([`SessionSort::fits`]).
    pub after: Option<Cursor>,
}

impl Default for SessionQuery {
    /// The newest 50.
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

/// A session in a list: what its grade by rules says, in short.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SessionRow {
    /// The session.
    pub session_id: String,
    /// Who worked in it.
    pub agent: Option<String>,
    /// The agent's model.
    pub model: Option<String>,
    /// The type of the task.
    #[schema(value_type = Option<String>)]
    pub task_type: Option<TaskType>,
    /// The beginning of the request.
    pub task_summary: Option<String>,
    /// When it counts; `None` in rows of other programs.
    pub counts_at: Option<Timestamp>,
    /// How long it took.
    pub duration_seconds: Option<f64>,
    /// Outcome of the task: null in rows of other programs and of earlier versions.
    pub outcome: Option<TaskOutcome>,
    /// Why the session was held: rates count tasks only.
    pub session_kind: SessionKind,
    /// Whether the task appears to have been completed.
    pub task_completed: bool,
    /// 1 to 5.
    pub tool_calls_efficient: u8,
    /// 1 to 5.
    pub response_quality: u8,
    /// Errors in all.
    pub total_errors: u64,
    /// Calls of the model in all.
    pub total_api_calls: u64,
    /// Average overall score of the models by the rubric of now, 0 to 1; null where none has
    /// graded the session, and where none could tell: `quality_graded` tells these apart.
    pub quality: Option<f64>,
    /// Whether a model has graded the session by the rubric of now.
    pub quality_graded: bool,
}

/// By what rows without a value are compared. Not by the column itself: SQLite would take the index
/// of the ids for it, and read every row.
const NULLS_BY: &str = "COALESCE(session_id, '')";

/// [`SessionSort::Worst`].
const WORST: &str = "CASE WHEN COALESCE(session_kind, 'task') <> 'task' THEN -1 \
     ELSE 10000 * CASE outcome WHEN 'contradicted' THEN 3 WHEN 'claimed' THEN 1 \
     WHEN 'verified' THEN 0 ELSE 2 END \
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

fn level(row: &Columns<'_>, name: &str) -> Result<u8, String> {
    row.get(name).map(Level::get)
}

impl Store {
    /// Selects `columns` of all sessions: an average counts when it is of the reader's rubric.
    fn listed(&self, columns: &str) -> String {
        let mut stored = SessionRow::columns();
        stored.retain(|column| !matches!(*column, "agent" | "quality" | "quality_graded"));
        // Not the bare agent: SQLite would take the index that begins with it, and read most of
        // the table by it, for a filter or an order that the other index has within.
        format!(
            "SELECT {columns} FROM (SELECT {stored}, COALESCE(agent, NULL) AS agent, \
             CASE WHEN quality_rubric = {rubric} THEN quality END AS quality, \
             CASE WHEN quality_rubric = {rubric} THEN 1 ELSE 0 END AS quality_graded, \
             {WORST} AS worst FROM session_grades) AS session WHERE ",
            stored = stored.join(", "),
            rubric = self.rubric
        )
    }

    /// Adds what selects `columns` of the rows that the filters of a query let through.
    fn filter(&self, sql: &mut Statement, columns: &str, query: &SessionQuery) {
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
            let mut pattern = bound::text(words, bound::NAME).to_ascii_lowercase();
            for special in ['!', '%', '_'] {
                pattern = pattern.replace(special, &format!("!{special}"));
            }
            let pattern = Value::Text(Some(format!("%{pattern}%")));
            let like = |sql: &mut Statement, column: &str| {
                sql.push(&self.engine.like(column)).bind(&pattern).push(" ESCAPE '!'");
            };
            sql.push(" AND (");
            like(sql, "task_summary");
            sql.push(" OR ");
            like(sql, "session_id");
            sql.push(")");
        }
    }

    /// A page of the sessions that have a grade by rules. Rows that cannot be read are left out.
    pub async fn sessions(&self, query: &SessionQuery) -> Result<Page<SessionRow>, StoreError> {
        if query.after.as_ref().is_some_and(|cursor| !query.sort.fits(query.descending, cursor)) {
            return Ok(Page { items: Vec::new(), next: None });
        }
        let (column, kind, nullable) = query.sort.column();
        let (operator, direction) = if query.descending { ("<", "DESC") } else { (">", "ASC") };
        let mut columns = SessionRow::columns();
        if !columns.contains(&column) {
            columns.push(column);
        }
        let order = format!(" ORDER BY {column} {direction} NULLS LAST, session_id {direction}");
        let mut sql = Statement::default();
        sql.push(&self.listed(&columns.join(", "))).push("session_id IN (");
        self.filter(&mut sql, "session_id", query);
        if let Some(Cursor { value, id, .. }) = &query.after {
            match value.as_deref().and_then(|value| kind.parse(value)) {
                Some(value) => {
                    sql.push(&format!(" AND (({column}, session_id) {operator} (")).bind(value);
                    sql.push(", ").bind(id).push(")");
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
                Kind::Integer => Some(row.get::<i64>(column)?.to_string()),
                Kind::Real => Some(row.get::<f64>(column)?.to_string()),
                Kind::Text => Some(row.get(column)?),
            };
            let order = Some(query.sort.order(query.descending));
            Ok(Cursor { value, id: row.get("session_id")?, order })
        };
        self.fetch_page(query.limit, sql.sql, sql.values, place, SessionRow::read).await
    }

    /// How many sessions the filters of a query let through, on all pages.
    pub async fn count_sessions(&self, query: &SessionQuery) -> Result<u64, StoreError> {
        let mut sql = Statement::default();
        self.filter(&mut sql, "COUNT(*) AS count", query);
        self.count(sql.sql, sql.values).await
    }

    /// The names of the agents that have sessions, sorted.
    pub async fn agents(&self) -> Result<Vec<String>, StoreError> {
        // From each to the next one: neither engine skips equal entries of an index by itself.
        let query = "WITH RECURSIVE known(agent) AS (SELECT MIN(agent) FROM session_grades \
                     UNION ALL SELECT (SELECT MIN(agent) FROM session_grades \
                     WHERE agent > known.agent) FROM known WHERE known.agent IS NOT NULL) \
                     SELECT agent FROM known WHERE agent IS NOT NULL";
        Ok(self.fetch(query, [], |row| row.get("agent")).await?.items)
    }
}
