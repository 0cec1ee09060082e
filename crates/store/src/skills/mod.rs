//! The tables of skills (docs/spec/skills-and-signals.md#skill-effectiveness): versions here, their
//! executions and what was done with them in the files beside this one.

mod change;
mod executions;
mod recording;

pub use change::NewSkill;
pub use executions::DayCount;
pub use recording::{Recorded, SkillRecord, SkillRef};

use super::page::{Cursor, Page};
use super::row::{Columns, Rows};
use super::{Store, StoreError, bound};
use selftest_grading::improve::disabling::Reason;
use selftest_grading::improve::skill::{AuditAction, AuditEntry, SkillStatus, SkillVersion};

/// Everything but the text of the skill, which may be long.
const COLUMNS: &str = "id, user_id, skill_name, version, is_active, created_at, promoted_at, \
    disabled_at, effectiveness_score, total_executions, last_scored_at, \
    (SELECT reasons_json FROM skill_audit AS audit \
    WHERE audit.skill_version_id = skill_versions.id \
    AND audit.action IN ('disable', 'auto_disable', 'rollback') \
    ORDER BY audit.made_at DESC, audit.id DESC LIMIT 1) AS reasons_json";

fn read(row: &Columns<'_>) -> Result<SkillVersion, String> {
    let disabled_at = row.optional_time("disabled_at");
    let status = match (row.flag("is_active")?, disabled_at) {
        (true, _) => SkillStatus::Active,
        (false, Some(_)) => SkillStatus::Disabled,
        (false, None) => SkillStatus::Superseded,
    };
    let score = row.optional_float("effectiveness_score");
    let is_disabled = status == SkillStatus::Disabled;
    let why = row.optional_text("reasons_json").filter(|_| is_disabled);
    Ok(SkillVersion {
        id: row.text("id")?,
        user_id: row.text("user_id")?,
        skill_name: row.text("skill_name")?,
        version: row.text("version")?,
        status,
        created_at: row.time("created_at")?,
        promoted_at: row.optional_time("promoted_at"),
        disabled_at,
        effectiveness_score: score.filter(|score| (0.0..=1.0).contains(score)),
        total_executions: row.optional_number("total_executions").unwrap_or_default(),
        last_scored_at: row.optional_time("last_scored_at"),
        reasons: reasons(why),
    })
}

fn read_audit(row: &Columns<'_>) -> Result<AuditEntry, String> {
    let action = row.text("action")?;
    Ok(AuditEntry {
        time: row.time("made_at")?,
        skill_version_id: row.text("skill_version_id")?,
        action: AuditAction::from_name(&action).ok_or_else(|| format!("action is {action:?}"))?,
        reasons: reasons(Some(row.text("reasons_json")?)),
        actor: row.text("actor")?,
    })
}

/// A count as columns of 32 bits hold it.
fn integer(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The reasons in a JSON text; none where it holds something else.
fn reasons(json: Option<String>) -> Vec<Reason> {
    json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default()
}

impl Store {
    /// A version by its id.
    pub async fn skill(&self, id: &str) -> Result<Option<SkillVersion>, StoreError> {
        let id = bound::text(id, bound::NAME);
        let query = format!("SELECT {COLUMNS} FROM skill_versions WHERE id = $1");
        let query = sqlx::query(sqlx::AssertSqlSafe(query)).bind(id.clone());
        self.fetch_one(query, || format!("the skill {id}"), read).await
    }

    /// Every version of a skill, the one that was put to use last first.
    pub async fn skill_versions(
        &self,
        user_id: &str,
        skill_name: &str,
    ) -> Result<Vec<SkillVersion>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM skill_versions WHERE user_id = $1 AND skill_name = $2 \
             ORDER BY COALESCE(promoted_at, created_at) DESC, id DESC"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(bound::text(user_id, bound::NAME))
            .bind(bound::text(skill_name, bound::NAME));
        Ok(self.fetch(query, read).await?.items)
    }

    /// A page of the versions of all skills of a user, by name; of one skill the newest first.
    pub async fn skills(
        &self,
        user_id: &str,
        limit: u32,
        after: Option<&Cursor>,
    ) -> Result<Page<SkillVersion>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM skill_versions WHERE user_id = $1 \
             AND (CAST($2 AS TEXT) IS NULL OR skill_name > $2 \
             OR (skill_name = $2 AND (created_at, id) < \
             (SELECT place.created_at, place.id FROM skill_versions AS place WHERE place.id = $3))) \
             ORDER BY skill_name, created_at DESC, id DESC LIMIT $4"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(bound::text(user_id, bound::NAME))
            .bind(after.and_then(|cursor| bound::optional(cursor.value.as_deref(), bound::NAME)))
            .bind(after.map(|cursor| bound::text(&cursor.id, bound::NAME)))
            .bind(i64::from(limit) + 1);
        // What is left out as unreadable is still a row that the next page begins behind.
        let rows = self.fetch(query, |row| {
            let (value, id) = (Some(row.text("skill_name")?), row.text("id")?);
            let place = Cursor { value, id, order: None };
            Ok((place, read(row).ok()))
        });
        let page = Page::of(rows.await?.items, limit, |(place, _)| place.clone());
        let items = page.items.into_iter().filter_map(|(_, skill)| skill).collect();
        Ok(Page { items, next: page.next })
    }

    /// The text of a version; `None` also where it was only seen in use.
    pub async fn skill_content(&self, id: &str) -> Result<Option<String>, StoreError> {
        let query = sqlx::query("SELECT content FROM skill_versions WHERE id = $1");
        let query = query.bind(bound::text(id, bound::NAME));
        let what = || "the text of a skill".to_owned();
        let found = self.fetch_one(query, what, |row| Ok(row.optional_text("content"))).await?;
        Ok(found.flatten())
    }

    /// What was done with the versions of a skill, oldest first.
    pub async fn skill_audit(
        &self,
        user_id: &str,
        skill_name: &str,
    ) -> Result<Rows<AuditEntry>, StoreError> {
        let query = "SELECT audit.* FROM skill_audit AS audit JOIN skill_versions AS skill \
                     ON skill.id = audit.skill_version_id \
                     WHERE skill.user_id = $1 AND skill.skill_name = $2 \
                     ORDER BY audit.made_at, audit.id";
        let query = sqlx::query(query)
            .bind(bound::text(user_id, bound::NAME))
            .bind(bound::text(skill_name, bound::NAME));
        self.fetch(query, read_audit).await
    }
}
