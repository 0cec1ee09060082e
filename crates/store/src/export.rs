//! Exports the database as JSON rows for other programs. Only one row is in memory at a time.

use futures_util::StreamExt as _;
use serde_json::{Map, Number, Value};
use sqlx::any::{AnyRow, AnyTypeInfoKind};
use sqlx::{AssertSqlSafe, Column as _, Row as _, ValueRef as _};

use super::dialect::DatabaseEngine;
use super::{Store, StoreError};

/// Exported tables with their sort columns. Tables that only contain the state of running programs
/// are left out.
const TABLES: [(&str, &str); 14] = [
    ("session_grades", "session_id"),
    ("session_quality_grades", "id"),
    ("grade_overrides", "id"),
    ("session_labels", "session_id"),
    ("session_files", "path"),
    ("reflections", "id"),
    ("reflection_scores", "reflection"),
    ("skill_versions", "id"),
    ("skill_executions", "id"),
    ("skill_signals", "execution_id"),
    ("skill_audit", "id"),
    ("skill_gaps", "id"),
    ("skill_proposals", "id"),
    ("weekly_reports", "week_start"),
];

/// Suffix of columns whose text is JSON.
const JSON: &str = "_json";

impl Store {
    /// Passes all rows to `each`, table by table, from one consistent snapshot. Stops early if
    /// `each` returns an error. Returns the number of rows.
    pub async fn export<E>(
        &self,
        mut each: impl FnMut(&'static str, Map<String, Value>) -> Result<(), E>,
    ) -> Result<Result<u64, E>, StoreError> {
        // All reads in such a transaction see the same snapshot.
        let begin = match self.engine {
            DatabaseEngine::Sqlite => "BEGIN",
            DatabaseEngine::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        let begun = self.pool.begin_with(begin).await;
        let mut reading = begun.map_err(|error| self.to_store_error(error))?;
        let mut count = 0;
        for (table, order) in TABLES {
            let query = format!("SELECT * FROM {table} ORDER BY {order}");
            let query = sqlx::query(AssertSqlSafe(query));
            let mut rows = query.fetch(&mut *reading);
            while let Some(row) = rows.next().await {
                let row = row.map_err(|error| self.to_store_error(error))?;
                if let Err(error) = each(table, object(&row)) {
                    return Ok(Err(error));
                }
                count += 1;
            }
        }
        reading.rollback().await.map_err(|error| self.to_store_error(error))?;
        Ok(Ok(count))
    }
}

/// Converts a row to an object keyed by column name.
fn object(row: &AnyRow) -> Map<String, Value> {
    let columns = row.columns().iter();
    columns.map(|column| (column.name().to_owned(), value(row, column.name()))).collect()
}

/// Converts a value to JSON; null if JSON cannot represent it.
fn value(row: &AnyRow, name: &str) -> Value {
    let kind = row.try_get_raw(name).ok().filter(|value| !value.is_null());
    match kind.map(|value| value.type_info().kind()) {
        Some(AnyTypeInfoKind::SmallInt | AnyTypeInfoKind::Integer | AnyTypeInfoKind::BigInt) => {
            row.try_get::<i64, _>(name).map_or(Value::Null, Value::from)
        }
        Some(AnyTypeInfoKind::Real | AnyTypeInfoKind::Double) => {
            let number = row.try_get::<f64, _>(name).ok().and_then(Number::from_f64);
            number.map_or(Value::Null, Value::Number)
        }
        Some(AnyTypeInfoKind::Bool) => {
            row.try_get::<bool, _>(name).map_or(Value::Null, Value::from)
        }
        Some(AnyTypeInfoKind::Text) => {
            let text: String = row.try_get(name).unwrap_or_default();
            let json = name.ends_with(JSON).then(|| serde_json::from_str(&text).ok()).flatten();
            json.unwrap_or(Value::String(text))
        }
        Some(AnyTypeInfoKind::Null | AnyTypeInfoKind::Blob) | None => Value::Null,
    }
}
