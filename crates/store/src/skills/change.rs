//! Putting versions of skills to use and out of it. Each change and its audit row are one
//! transaction; whether a change is wanted is decided elsewhere.

use jiff::Timestamp;
use sqlx::{AnyConnection, Row as _};

use crate::row::time;
use crate::{Store, StoreError, bound};
use selftest_grading::improve::skill::{AuditEntry, SkillVersion};

/// A version that is not in the database yet.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSkill {
    /// Unique.
    pub id: String,
    /// Whose it is.
    pub user_id: String,
    /// The skill.
    pub skill_name: String,
    /// Its name among the versions of the skill; without one it gets the next whole number.
    pub version: Option<String>,
    /// The text of the skill.
    pub content: String,
}

impl Store {
    /// Adds a version and puts it to use in place of the one before. Whether there was no version
    /// of that name yet: else nothing is changed.
    pub async fn add_skill(
        &self,
        skill: &NewSkill,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        if skill.content.len() > bound::JSON {
            return Err(StoreError::TooLarge {
                what: format!("the skill {}", selftest_text::one_line(&skill.skill_name, 80)),
                bytes: skill.content.len(),
                limit: bound::JSON,
            });
        }
        let mut writing = self.begin().await?;
        let added = add(&mut writing, skill, audit).await.map_err(|error| self.failed(error))?;
        if added {
            self.commit(writing).await?;
        } else {
            self.roll_back(writing).await?;
        }
        Ok(added)
    }

    /// Puts a version to use in place of the one that is.
    pub async fn activate_skill(
        &self,
        skill: &SkillVersion,
        audit: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        let done = activate(&mut writing, skill, audit).await;
        done.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }

    /// Takes a version out of use. Whether it was in use: else nothing is changed.
    pub async fn disable_skill(&self, audit: &AuditEntry) -> Result<bool, StoreError> {
        let mut writing = self.begin().await?;
        let disabled = disable(&mut writing, audit).await.map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(disabled)
    }

    /// Takes a version out of use and puts an earlier one to use. Whether the first was in use:
    /// else nothing is changed.
    pub async fn replace_skill(
        &self,
        out: &AuditEntry,
        earlier: &SkillVersion,
        back: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut writing = self.begin().await?;
        let disabled = disable(&mut writing, out).await.map_err(|error| self.failed(error))?;
        if disabled {
            let done = activate(&mut writing, earlier, back).await;
            done.map_err(|error| self.failed(error))?;
            self.commit(writing).await?;
        }
        Ok(disabled)
    }

    /// Notes something that was done with a version.
    pub async fn add_skill_audit(&self, audit: &AuditEntry) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        note(&mut writing, audit).await.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }

    /// Keeps scores of versions: id, score where there are enough executions, executions.
    pub async fn save_skill_scores(
        &self,
        scores: &[(String, Option<f64>, u32)],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let query = "UPDATE skill_versions SET effectiveness_score = $2, total_executions = $3, \
                     last_scored_at = $4 WHERE id = $1";
        let mut writing = self.begin().await?;
        for (id, score, executions) in scores {
            let query = sqlx::query(query)
                .bind(bound::text(id, bound::NAME))
                .bind(*score)
                .bind(super::integer(*executions))
                .bind(time(at));
            query.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        }
        self.commit(writing).await
    }
}

async fn add(
    connection: &mut AnyConnection,
    skill: &NewSkill,
    audit: &AuditEntry,
) -> Result<bool, sqlx::Error> {
    let user_id = bound::text(&skill.user_id, bound::NAME);
    let skill_name = bound::text(&skill.skill_name, bound::NAME);
    let query = "SELECT version FROM skill_versions WHERE user_id = $1 AND skill_name = $2";
    let query = sqlx::query(query).bind(user_id.clone()).bind(skill_name.clone());
    let known = query.fetch_all(&mut *connection).await?;
    let known: Vec<String> = known.iter().filter_map(|row| row.try_get(0).ok()).collect();
    let version = bound::optional(skill.version.as_deref(), bound::NAME).unwrap_or_else(|| {
        let numbers = known.iter().filter_map(|version| version.parse::<u32>().ok());
        numbers.max().unwrap_or_default().saturating_add(1).to_string()
    });
    if known.contains(&version) {
        return Ok(false);
    }
    supersede(connection, &user_id, &skill_name).await?;
    let query = "INSERT INTO skill_versions (id, user_id, skill_name, version, is_active, content, \
                 created_at, promoted_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)";
    sqlx::query(query)
        .bind(bound::text(&skill.id, bound::NAME))
        .bind(user_id)
        .bind(skill_name)
        .bind(version)
        .bind(1_i16)
        .bind(bound::text(&skill.content, bound::JSON))
        .bind(time(audit.time))
        .execute(&mut *connection)
        .await?;
    note(connection, audit).await?;
    Ok(true)
}

async fn activate(
    connection: &mut AnyConnection,
    skill: &SkillVersion,
    audit: &AuditEntry,
) -> Result<(), sqlx::Error> {
    supersede(connection, &skill.user_id, &skill.skill_name).await?;
    let query = "UPDATE skill_versions SET is_active = $2, promoted_at = $3, disabled_at = NULL \
                 WHERE id = $1";
    let query = sqlx::query(query).bind(skill.id.clone()).bind(1_i16).bind(time(audit.time));
    query.execute(&mut *connection).await?;
    note(connection, audit).await
}

/// Takes the version in use out of it, for another one.
async fn supersede(
    connection: &mut AnyConnection,
    user_id: &str,
    skill_name: &str,
) -> Result<(), sqlx::Error> {
    let query = "UPDATE skill_versions SET is_active = $3 \
                 WHERE user_id = $1 AND skill_name = $2 AND is_active <> 0";
    let query = sqlx::query(query).bind(user_id.to_owned()).bind(skill_name.to_owned()).bind(0_i16);
    query.execute(connection).await.map(drop)
}

async fn disable(connection: &mut AnyConnection, audit: &AuditEntry) -> Result<bool, sqlx::Error> {
    let query = "UPDATE skill_versions SET is_active = $2, disabled_at = $3 \
                 WHERE id = $1 AND is_active <> 0";
    let query = sqlx::query(query)
        .bind(bound::text(&audit.skill_version_id, bound::NAME))
        .bind(0_i16)
        .bind(time(audit.time));
    let disabled = query.execute(&mut *connection).await?.rows_affected() > 0;
    if disabled {
        note(connection, audit).await?;
    }
    Ok(disabled)
}

async fn note(connection: &mut AnyConnection, audit: &AuditEntry) -> Result<(), sqlx::Error> {
    // Plain data: writing cannot fail.
    let reasons = serde_json::to_string(&audit.reasons).ok();
    let query = "INSERT INTO skill_audit (made_at, skill_version_id, action, reasons_json, actor) \
                 VALUES ($1, $2, $3, $4, $5)";
    sqlx::query(query)
        .bind(time(audit.time))
        .bind(bound::text(&audit.skill_version_id, bound::NAME))
        .bind(audit.action.name())
        .bind(bound::json(reasons.as_deref()).unwrap_or_else(|| "[]".to_owned()))
        .bind(bound::text(&audit.actor, bound::NAME))
        .execute(connection)
        .await
        .map(drop)
}
