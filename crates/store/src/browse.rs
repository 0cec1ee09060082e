//! Lists of graded sessions, sorted, filtered and paged by the database.
//!
//! Reads only the columns of the index `idx_session_grades_browse`, never `details_json`, which is
//! most of a row: whatever the order and the filters, a page costs at most one pass over that index.

use jiff::Timestamp;
use serde::Serialize;
use sqlx::AssertSqlSafe;
use utoipa::ToSchema;

use super::insert::AnyQuery;
use super::page::{Cursor, Page};
use super::row::Columns;
use super::sort::{Kind, SessionSort, Value};
use super::{Store, StoreError, bound};
use selftest_grading::grade::{Level, TaskType};

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
    /// Only those with at least this average overall score of the models.
    pub min_quality: Option<f64>,
    /// Only those with this text in the summary of the task or in the id; the case of ASCII
    /// letters does not count.
    pub search: Option<String>,
    /// Most rows of a page.
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
            min_quality: None,
            search: None,
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
    /// What kind of task it was.
    #[schema(value_type = Option<String>)]
    pub task_type: Option<TaskType>,
    /// The beginning of the request.
    pub task_summary: Option<String>,
    /// When it counts; `None` in rows of other programs.
    pub counts_at: Option<Timestamp>,
    /// How long it took.
    pub duration_seconds: Option<f64>,
    /// Whether the task was completed.
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

/// By what rows without a value are sorted. Not by the column itself: SQLite would take the index
/// of the ids for it, and read every row.
const NULLS_BY: &str = "COALESCE(session_id, '')";

/// The columns of a row beside those that depend on the reader's rubric.
const ROW: &str = "session_id, agent, model, task_type, task_summary, counts_at, \
                   duration_seconds, task_completed, tool_calls_efficient, response_quality, \
                   total_errors, total_api_calls";

fn read(row: &Columns<'_>) -> Result<SessionRow, String> {
    let level = |name: &str| {
        let level = row.number(name)?;
        Level::new(level).map(Level::get).ok_or_else(|| format!("{name} is {level}, not 1 to 5"))
    };
    Ok(SessionRow {
        session_id: row.text("session_id")?,
        agent: row.optional_text("agent"),
        model: row.optional_text("model"),
        task_type: row.optional_text("task_type").and_then(|name| TaskType::from_name(&name)),
        task_summary: row.optional_text("task_summary"),
        counts_at: row.optional_time("counts_at"),
        duration_seconds: row.optional_float("duration_seconds"),
        task_completed: row.flag("task_completed")?,
        tool_calls_efficient: level("tool_calls_efficient")?,
        response_quality: level("response_quality")?,
        total_errors: row.number("total_errors")?,
        total_api_calls: row.number("total_api_calls")?,
        quality: row.optional_float("quality"),
        quality_graded: row.flag("quality_graded")?,
    })
}

/// Conditions that all hold, and the values in them.
#[derive(Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// The place of a value in the statement.
    fn bind(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn of(query: &SessionQuery) -> Self {
        let mut all = Self::default();
        if let Some(agent) = &query.agent {
            let place = all.bind(Value::Text(bound::text(agent, bound::NAME)));
            all.sql.push(format!("agent = {place}"));
        }
        if let Some(task_type) = query.task_type {
            let place = all.bind(Value::Text(task_type.name().to_owned()));
            all.sql.push(format!("task_type = {place}"));
        }
        if let Some(completed) = query.completed {
            let operator = if completed { "<>" } else { "=" };
            all.sql.push(format!("task_completed {operator} 0"));
        }
        if let Some(least) = query.min_quality {
            let place = all.bind(Value::Real(least));
            all.sql.push(format!("quality >= {place}"));
        }
        if let Some(words) = &query.search {
            let mut pattern = String::from("%");
            for c in bound::text(words, bound::NAME).to_ascii_lowercase().chars() {
                if matches!(c, '%' | '_' | '!') {
                    pattern.push('!');
                }
                pattern.push(c);
            }
            pattern.push('%');
            let place = all.bind(Value::Text(pattern));
            let like = |column| format!("LOWER({column}) LIKE {place} ESCAPE '!'");
            all.sql.push(format!("({} OR {})", like("task_summary"), like("session_id")));
        }
        all
    }

    fn sql(&self) -> String {
        if self.sql.is_empty() {
            return String::new();
        }
        format!(" WHERE {}", self.sql.join(" AND "))
    }

    fn apply<'q>(&self, query: AnyQuery<'q>) -> AnyQuery<'q> {
        self.values.iter().fold(query, |query, value| match value {
            Value::Integer(value) => query.bind(*value),
            Value::Real(value) => query.bind(*value),
            Value::Text(value) => query.bind(value.clone()),
        })
    }
}

/// A row and its place in the list; no row where it holds what selftest does not write.
type Placed = (Cursor, Option<SessionRow>);

impl Store {
    /// The rows of which lists are made: an average counts when it is of the reader's rubric.
    fn rows(&self) -> String {
        format!(
            "(SELECT {ROW}, CASE WHEN quality_rubric = {rubric} THEN quality END AS quality, \
             CASE WHEN quality_rubric = {rubric} THEN 1 ELSE 0 END AS quality_graded \
             FROM session_grades)",
            rubric = self.rubric
        )
    }

    /// A page of the sessions that have a grade by rules. Rows that cannot be read are left out.
    pub async fn sessions(&self, query: &SessionQuery) -> Result<Page<SessionRow>, StoreError> {
        let nullable = query.sort.column().2;
        if query.after.as_ref().is_some_and(|cursor| !query.sort.fits(query.descending, cursor)) {
            return Ok(Page { items: Vec::new(), next: None });
        }
        let among_nulls = query.after.as_ref().is_some_and(|cursor| cursor.value.is_none());
        let wanted = u64::from(query.limit) + 1;
        let (mut rows, mut unreadable) = (Vec::new(), 0);
        if !among_nulls {
            (rows, unreadable) = self.part(query, false, query.after.as_ref(), wanted).await?;
        }
        let rest = wanted.saturating_sub(rows.len() as u64 + unreadable);
        if nullable && rest > 0 {
            let after = query.after.as_ref().filter(|_| among_nulls);
            let (more, others) = self.part(query, true, after, rest).await?;
            rows.extend(more);
            unreadable += others;
        }
        // A row whose place cannot be read is still one that the database counted.
        let more = rows.len() as u64 + unreadable >= wanted;
        rows.truncate(query.limit as usize);
        let next = rows.last().filter(|_| more).map(|(place, _)| place.clone());
        Ok(Page { items: rows.into_iter().filter_map(|(_, row)| row).collect(), next })
    }

    /// Up to `limit` rows with or without a value to sort by, and how many have no place.
    async fn part(
        &self,
        query: &SessionQuery,
        nulls: bool,
        after: Option<&Cursor>,
        limit: u64,
    ) -> Result<(Vec<Placed>, u64), StoreError> {
        let (column, kind, nullable) = query.sort.column();
        let (operator, direction) = if query.descending { ("<", "DESC") } else { (">", "ASC") };
        let mut conditions = Conditions::of(query);
        if nullable {
            conditions.sql.push(format!("{column} IS {}NULL", if nulls { "" } else { "NOT " }));
        }
        if let Some(cursor) = after {
            let id = Value::Text(bound::text(&cursor.id, bound::NAME));
            let sql = match cursor.value.as_deref().and_then(|value| kind.parse(value)) {
                Some(value) => {
                    let (value, id) = (conditions.bind(value), conditions.bind(id));
                    format!("({column}, session_id) {operator} ({value}, {id})")
                }
                None => format!("{NULLS_BY} {operator} {}", conditions.bind(id)),
            };
            conditions.sql.push(sql);
        }
        let order = if nulls {
            format!("{NULLS_BY} {direction}")
        } else {
            format!("{column} {direction}, session_id {direction}")
        };
        let place = conditions.bind(Value::Integer(super::row::count(limit)));
        let sql = format!(
            "SELECT {ROW}, quality, quality_graded FROM {} AS session{} ORDER BY {order} LIMIT {place}",
            self.rows(),
            conditions.sql()
        );
        let found = self
            .fetch(conditions.apply(sqlx::query(AssertSqlSafe(sql))), |row| {
                let value = match kind {
                    _ if nulls => None,
                    Kind::Integer => Some(row.integer(column)?.to_string()),
                    Kind::Real => row.optional_float(column).map(|value| value.to_string()),
                    Kind::Text => Some(row.text(column)?),
                };
                if value.is_none() && !nulls {
                    return Err(format!("{column} is no number"));
                }
                let order = Some(query.sort.order(query.descending));
                Ok((Cursor { value, id: row.text("session_id")?, order }, read(row).ok()))
            })
            .await?;
        Ok((found.items, found.unreadable))
    }

    /// How many sessions the filters of a query let through, on all pages.
    pub async fn count_sessions(&self, query: &SessionQuery) -> Result<u64, StoreError> {
        let conditions = Conditions::of(query);
        let sql = format!(
            "SELECT COUNT(*) AS sessions FROM {} AS session{}",
            self.rows(),
            conditions.sql()
        );
        let query = conditions.apply(sqlx::query(AssertSqlSafe(sql)));
        let what = || "the number of sessions".to_owned();
        Ok(self.fetch_one(query, what, |row| row.number("sessions")).await?.unwrap_or_default())
    }

    /// The names of the agents that have sessions, sorted.
    pub async fn agents(&self) -> Result<Vec<String>, StoreError> {
        let query = "SELECT DISTINCT agent FROM session_grades WHERE agent IS NOT NULL \
                     ORDER BY agent";
        Ok(self.fetch(sqlx::query(query), |row| row.text("agent")).await?.items)
    }
}
