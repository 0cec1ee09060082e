//! The table `grade_overrides`: human grades beside those of the rules. Rows are only added.

use super::row::{Record as _, Rows, read_from, record};
use super::statement::{params, stored_as};
use super::{Store, StoreError, bound};
use selftest_grading::grade::{Field, Override};

record!(Override, "grade_overrides", {
    session_id,
    field,
    rule_value,
    human_value,
    reason [bound::TEXT],
    made_at,
});

stored_as! { Text: Field => |field, _limit| field.name().to_owned() }
read_from! { |row, name| Field => row.named(name, Field::from_name) }

impl Store {
    /// Adds an override; earlier ones of the same field stay.
    pub async fn add_override(&self, made: &Override) -> Result<(), StoreError> {
        self.execute(Override::insert(), made.values()).await.map(drop)
    }

    /// Returns all overrides, oldest first.
    pub async fn overrides(&self) -> Result<Rows<Override>, StoreError> {
        self.find("ORDER BY made_at, id", []).await
    }

    /// Returns the overrides of one session, oldest first.
    pub async fn overrides_of(&self, session_id: &str) -> Result<Rows<Override>, StoreError> {
        self.find("WHERE session_id = $1 ORDER BY made_at, id", params![session_id]).await
    }
}
