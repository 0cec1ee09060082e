//! The table `grade_overrides`: human grades beside those of the rules. Rows are only added.

use super::row::{Record as _, Rows, read_from, record};
use super::statement::{params, stored_as};
use super::{Store, StoreError, bound};
use selftest_grading::grade::{GradeField, GradeOverride};

record!(GradeOverride, "grade_overrides", {
    session_id,
    field,
    rule_value,
    human_value,
    reason [bound::TEXT],
    made_at,
});

stored_as! { Text: GradeField => |field, _limit| field.name().to_owned() }
read_from! { |row, name| GradeField => row.named(name, GradeField::from_name) }

impl Store {
    /// Adds an override; earlier ones of the same field stay.
    pub async fn add_override(&self, made: &GradeOverride) -> Result<(), StoreError> {
        self.execute(GradeOverride::insert(), made.values()).await.map(drop)
    }

    /// Returns all overrides, oldest first.
    pub async fn overrides(&self) -> Result<Rows<GradeOverride>, StoreError> {
        self.find("ORDER BY made_at, id", []).await
    }

    /// Returns the overrides of one session, oldest first.
    pub async fn session_overrides(
        &self,
        session_id: &str,
    ) -> Result<Rows<GradeOverride>, StoreError> {
        self.find("WHERE session_id = $1 ORDER BY made_at, id", params![session_id]).await
    }
}
