//! The table `grade_overrides`: people's grades beside those of the rules. Rows are only added.

use sqlx::AssertSqlSafe;

use super::insert::AnyQuery;
use super::row::{Columns, Rows, time};
use super::{Store, StoreError, bound};
use selftest_grading::grade::{Field, Override};

const COLUMNS: &str = "session_id, field, rule_value, human_value, reason, made_at";

fn select(rest: &str) -> AnyQuery<'static> {
    sqlx::query(AssertSqlSafe(format!("SELECT {COLUMNS} FROM grade_overrides {rest}")))
}

fn read(row: &Columns<'_>) -> Result<Override, String> {
    let field = row.text("field")?;
    Ok(Override {
        session_id: row.text("session_id")?,
        field: Field::from_name(&field).ok_or_else(|| format!("field is {field:?}"))?,
        rule_value: row.number("rule_value")?,
        human_value: row.number("human_value")?,
        reason: row.text("reason")?,
        made_at: row.time("made_at")?,
    })
}

impl Store {
    /// Adds an override; earlier ones of the same field stay.
    pub async fn add_override(&self, made: &Override) -> Result<(), StoreError> {
        let query =
            format!("INSERT INTO grade_overrides ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)");
        sqlx::query(AssertSqlSafe(query))
            .bind(bound::text(&made.session_id, bound::NAME))
            .bind(made.field.name())
            .bind(i16::from(made.rule_value))
            .bind(i16::from(made.human_value))
            .bind(bound::text(&made.reason, bound::TEXT))
            .bind(time(made.made_at))
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|error| self.failed(error))
    }

    /// Every override, in the order in which they were made.
    pub async fn overrides(&self) -> Result<Rows<Override>, StoreError> {
        self.fetch(select("ORDER BY made_at, id"), read).await
    }

    /// Those of one session, in the order in which they were made.
    pub async fn overrides_of(&self, session_id: &str) -> Result<Rows<Override>, StoreError> {
        let query = select("WHERE session_id = $1 ORDER BY made_at, id");
        self.fetch(query.bind(bound::text(session_id, bound::NAME)), read).await
    }
}
