//! Activates and deactivates skill versions. Each change is saved together with its audit row in
//! one transaction; callers decide which changes to make.

use jiff::Timestamp;
use sqlx::Row as _;

use crate::row::Record as _;
use crate::statement::{ToValue as _, params};
use crate::transaction::WriteTransaction;
use crate::{Store, StoreError, bound};
use selftest_grading::improve::skill::{AuditEntry, SkillVersion};

/// A skill version that is not in the database yet.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSkill {
    /// Unique id.
    pub id: String,
    /// Owner of the skill.
    pub user_id: String,
    /// Name of the skill.
    pub skill_name: String,
    /// Version name; defaults to the next integer.
    pub version: Option<String>,
    /// Text of the skill.
    pub content: String,
}

impl Store {
    /// Adds a version and activates it in place of the previous one. Returns false, and changes
    /// nothing, if the version name already exists.
    pub async fn add_skill(
        &self,
        skill: &NewSkill,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let what = || format!("the skill {}", selftest_text::one_line(&skill.skill_name, 80));
        StoreError::check_size(what, &skill.content, bound::JSON)?;
        let mut writing = self.begin_write().await?;
        let added = insert_version(&mut writing, skill, audit).await?;
        if added {
            writing.commit().await?;
        } else {
            writing.roll_back().await?;
        }
        Ok(added)
    }

    /// Activates a version in place of the active one.
    pub async fn activate_skill(
        &self,
        skill: &SkillVersion,
        audit: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut writing = self.begin_write().await?;
        activate_version(&mut writing, skill, audit).await?;
        writing.commit().await
    }

    /// Deactivates a version. Returns false, and changes nothing, if it was not active.
    pub async fn disable_skill(&self, audit: &AuditEntry) -> Result<bool, StoreError> {
        let mut writing = self.begin_write().await?;
        let disabled = disable_version(&mut writing, audit).await?;
        writing.commit().await?;
        Ok(disabled)
    }

    /// Deactivates a version and activates an earlier one. Returns false, and changes nothing, if
    /// the first was not active.
    pub async fn replace_skill(
        &self,
        out: &AuditEntry,
        earlier: &SkillVersion,
        back: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut writing = self.begin_write().await?;
        // In one transaction, so that a failure leaves the first version active.
        let disabled = disable_version(&mut writing, out).await?;
        if disabled {
            activate_version(&mut writing, earlier, back).await?;
        }
        writing.commit().await?;
        Ok(disabled)
    }

    /// Adds an audit entry for a version.
    pub async fn add_skill_audit(&self, audit: &AuditEntry) -> Result<(), StoreError> {
        self.execute(AuditEntry::insert(), audit.values()).await.map(drop)
    }

    /// Saves the scores of versions. Each tuple is the id, the score if there are enough
    /// executions, and the number of executions.
    pub async fn save_skill_scores(
        &self,
        scores: &[(String, Option<f64>, u32)],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let query = "UPDATE skill_versions SET effectiveness_score = $2, total_executions = $3, \
                     last_scored_at = $4 WHERE id = $1";
        let mut writing = self.begin_write().await?;
        for (id, score, executions) in scores {
            writing.execute(query, params![id, score, executions, at]).await?;
        }
        writing.commit().await
    }
}

async fn insert_version(
    writing: &mut WriteTransaction,
    skill: &NewSkill,
    audit: &AuditEntry,
) -> Result<bool, StoreError> {
    let (user_id, skill_name) = (&skill.user_id, &skill.skill_name);
    let query = "SELECT version FROM skill_versions WHERE user_id = $1 AND skill_name = $2";
    let known = writing.fetch(query, params![user_id, skill_name]).await?;
    let known: Vec<String> = known.iter().filter_map(|row| row.try_get(0).ok()).collect();
    let version = skill.version.as_deref().map(|version| bound::text(version, bound::NAME));
    let version = version.unwrap_or_else(|| {
        let numbers = known.iter().filter_map(|version| version.parse::<u32>().ok());
        numbers.max().unwrap_or_default().saturating_add(1).to_string()
    });
    if known.contains(&version) {
        return Ok(false);
    }
    // At most one version of a skill is active.
    deactivate_current(writing, user_id, skill_name).await?;
    let query = "INSERT INTO skill_versions (id, user_id, skill_name, version, is_active, content, \
                 created_at, promoted_at) VALUES ($1, $2, $3, $4, 1, $5, $6, $6)";
    let content = skill.content.to_value(bound::JSON);
    let values = params![skill.id, user_id, skill_name, version, content, audit.time];
    writing.execute(query, values).await?;
    writing.execute(AuditEntry::insert(), audit.values()).await?;
    Ok(true)
}

async fn activate_version(
    writing: &mut WriteTransaction,
    skill: &SkillVersion,
    audit: &AuditEntry,
) -> Result<(), StoreError> {
    deactivate_current(writing, &skill.user_id, &skill.skill_name).await?;
    let query = "UPDATE skill_versions SET is_active = 1, promoted_at = $2, disabled_at = NULL \
                 WHERE id = $1";
    writing.execute(query, params![skill.id, audit.time]).await?;
    writing.execute(AuditEntry::insert(), audit.values()).await.map(drop)
}

/// Deactivates the active version of a skill before another one is activated.
async fn deactivate_current(
    writing: &mut WriteTransaction,
    user_id: &str,
    skill_name: &str,
) -> Result<(), StoreError> {
    let query = "UPDATE skill_versions SET is_active = 0 \
                 WHERE user_id = $1 AND skill_name = $2 AND is_active <> 0";
    writing.execute(query, params![user_id, skill_name]).await.map(drop)
}

async fn disable_version(
    writing: &mut WriteTransaction,
    audit: &AuditEntry,
) -> Result<bool, StoreError> {
    let query = "UPDATE skill_versions SET is_active = 0, disabled_at = $2 \
                 WHERE id = $1 AND is_active <> 0";
    let disabled = writing.execute(query, params![audit.skill_version_id, audit.time]).await? > 0;
    // No audit entry without a change.
    if disabled {
        writing.execute(AuditEntry::insert(), audit.values()).await?;
    }
    Ok(disabled)
}
