//! The skill tables (docs/spec/skills-and-signals.md#skill-effectiveness). This file reads versions
//! and executions; the submodules handle recording and audit entries.

mod recording;

use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::Row as _;

use super::page::{Cursor, ResultPage};
use super::row::{Columns, Record as _, Rows, read_from, record};
use super::statement::{params, stored_as};
use super::{ColumnError, Store, StoreError, bound};
use crate::statement::ToValue as _;
use crate::transaction::WriteTransaction;
use selftest_grading::improve::effectiveness::{ChangeReason, ExecutionCounts};
use selftest_grading::improve::skill::{
    AuditAction, AuditEntry, ExecutionStatus, SkillExecution, SkillStatus, SkillVersion,
};

pub use recording::{RequestKey, SkillRecord, SkillRecordCounts, SkillRef, SkillRequest};

/// All columns except the skill text, which may be long.
const COLUMNS: &str = "id, user_id, skill_name, version, is_active, created_at, promoted_at, \
    disabled_at, effectiveness_score, total_executions, last_scored_at, \
    (SELECT reasons_json FROM skill_audit AS audit \
    WHERE audit.skill_version_id = skill_versions.id \
    AND audit.action IN ('disable', 'auto_disable', 'rollback') \
    ORDER BY audit.made_at DESC, audit.id DESC LIMIT 1) AS reasons_json";

fn read(row: &Columns<'_>) -> Result<SkillVersion, ColumnError> {
    let disabled_at = row.get("disabled_at")?;
    let status = match (row.get("is_active")?, disabled_at) {
        (true, _) => SkillStatus::Active,
        (false, Some(_)) => SkillStatus::Disabled,
        (false, None) => SkillStatus::Superseded,
    };
    let is_disabled = status == SkillStatus::Disabled;
    // A later activation makes the reasons obsolete.
    let reasons = if is_disabled { row.optional("reasons_json") } else { None };
    Ok(SkillVersion {
        id: row.get("id")?,
        user_id: row.get("user_id")?,
        skill_name: row.get("skill_name")?,
        version: row.get("version")?,
        status,
        created_at: row.get("created_at")?,
        promoted_at: row.get("promoted_at")?,
        disabled_at,
        effectiveness_score: row
            .optional("effectiveness_score")
            .filter(|score| (0.0..=1.0).contains(score)),
        total_executions: row.optional("total_executions").unwrap_or_default(),
        last_scored_at: row.get("last_scored_at")?,
        reasons: reasons.unwrap_or_default(),
    })
}

record!(AuditEntry, "skill_audit", {
    time as "made_at",
    skill_version_id,
    action,
    reasons as "reasons_json",
    actor,
});

stored_as! { Text:
    AuditAction => |action, _limit| action.name().to_owned(),
    Vec<ChangeReason> => |reasons, _limit| bound::json(reasons).unwrap_or_else(|| "[]".to_owned()),
}
read_from! { |row, name|
    AuditAction => row.named(name, AuditAction::from_name),
    // Empty if the column contains anything else.
    Vec<ChangeReason> => {
        let json: String = row.get(name)?;
        Ok(serde_json::from_str(&json).unwrap_or_default())
    },
}

impl Store {
    /// Returns a version by its id.
    pub async fn skill(&self, id: &str) -> Result<Option<SkillVersion>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM skill_versions WHERE id = $1");
        self.fetch_one(&format!("the skill {id}"), query, params![id], read).await
    }

    /// Returns all versions of a skill, most recently activated first.
    pub async fn skill_versions(
        &self,
        user_id: &str,
        skill_name: &str,
    ) -> Result<Vec<SkillVersion>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM skill_versions WHERE user_id = $1 AND skill_name = $2 \
             ORDER BY COALESCE(promoted_at, created_at) DESC, id DESC"
        );
        Ok(self.fetch(query, params![user_id, skill_name], read).await?.items)
    }

    /// Returns a page of a user's skill versions, sorted by skill name, then newest first.
    pub async fn skills(
        &self,
        user_id: &str,
        limit: u32,
        after: Option<&Cursor>,
    ) -> Result<ResultPage<SkillVersion>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM skill_versions WHERE user_id = $1 \
             AND (CAST($2 AS TEXT) IS NULL OR skill_name > $2 \
             OR (skill_name = $2 AND (created_at, id) < \
             (SELECT place.created_at, place.id FROM skill_versions AS place WHERE place.id = $3))) \
             ORDER BY skill_name, created_at DESC, id DESC LIMIT $4"
        );
        let (name, id) = cursor_values(after);
        // One row more than asked for shows if there is another page.
        let values = params![user_id, name, id, i64::from(limit) + 1];
        let place = |row: &Columns<'_>| Cursor::of(row, "skill_name", "id");
        self.fetch_page(limit, query, values, place, read).await
    }

    /// Returns the text of a version; `None` if it was only observed in use.
    pub async fn skill_content(&self, id: &str) -> Result<Option<String>, StoreError> {
        let query = "SELECT content FROM skill_versions WHERE id = $1";
        let read = |row: &Columns<'_>| row.get("content");
        let found = self.fetch_one("the text of a skill", query, params![id], read).await?;
        Ok(found.flatten())
    }

    /// Returns the audit entries of a skill's versions, oldest first.
    pub async fn skill_audit(
        &self,
        user_id: &str,
        skill_name: &str,
    ) -> Result<Rows<AuditEntry>, StoreError> {
        let query = AuditEntry::select(
            "AS audit JOIN skill_versions AS skill ON skill.id = audit.skill_version_id \
             WHERE skill.user_id = $1 AND skill.skill_name = $2 ORDER BY audit.made_at, audit.id",
        );
        self.fetch(query, params![user_id, skill_name], AuditEntry::read).await
    }
}

/// Returns the value and id of a cursor, or nulls.
fn cursor_values(after: Option<&Cursor>) -> (Option<&str>, Option<&str>) {
    (after.and_then(|cursor| cursor.value.as_deref()), after.map(|cursor| cursor.id.as_str()))
}

/// Executions of a version on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDayCount {
    /// Skill version id.
    pub skill_version_id: String,
    /// Day in UTC.
    pub day: Date,
    /// Number of executions.
    pub executions: u32,
    /// Number of successful executions.
    pub successes: u32,
}

/// Sums over the joined executions, 0 without any.
const SUMS: &str = "COUNT(execution.id) AS executions, \
    COALESCE(SUM(CASE WHEN execution.execution_status = 'success' THEN 1 ELSE 0 END), 0) \
    AS successes, \
    COALESCE(SUM(CASE WHEN execution.user_edited_output <> 0 THEN 1 ELSE 0 END), 0) AS edited, \
    COALESCE(SUM(CASE WHEN execution.user_repeated_request <> 0 THEN 1 ELSE 0 END), 0) AS repeated, \
    COALESCE(SUM(CASE WHEN execution.user_sent_thank_you <> 0 THEN 1 ELSE 0 END), 0) AS thanked";

record!(ExecutionCounts, "skill_executions", { executions, successes, edited, repeated, thanked });
record!(SkillDayCount, "skill_executions", { skill_version_id, day, executions, successes });

fn read_execution(row: &Columns<'_>) -> Result<SkillExecution, ColumnError> {
    Ok(SkillExecution {
        id: row.get("id")?,
        skill_version_id: row.get("skill_version_id")?,
        user_id: row.get("user_id")?,
        session_id: row.get("session_id")?,
        execution_status: row.named("execution_status", ExecutionStatus::from_name)?,
        // Rows of other programs may have null, which counts as the default of the specification.
        user_edited_output: row.optional("user_edited_output").unwrap_or_default(),
        user_sent_thank_you: row.optional("user_sent_thank_you").unwrap_or_default(),
        user_repeated_request: row.optional("user_repeated_request").unwrap_or_default(),
        user_was_frustrated: row.get("frustration")?,
        conversation_turns: row.get("conversation_turns")?,
        execution_time_ms: row.get("execution_time_ms")?,
        error_message: row.get("error_message")?,
        created_at: row.get("created_at")?,
    })
}

impl Store {
    /// Counts the executions of a version since a time.
    pub async fn skill_counts(
        &self,
        skill_version_id: &str,
        since: Timestamp,
    ) -> Result<ExecutionCounts, StoreError> {
        let query = format!(
            "SELECT {SUMS} FROM skill_executions AS execution \
             WHERE skill_version_id = $1 AND created_at >= $2"
        );
        let values = params![skill_version_id, since];
        let what = "the counts of a skill";
        let found = self.fetch_one(what, query, values, ExecutionCounts::read).await?;
        Ok(found.unwrap_or_default())
    }

    /// Returns all active versions, sorted by name, with their execution counts since a time.
    pub async fn active_skills(
        &self,
        user_id: &str,
        since: Timestamp,
    ) -> Result<Vec<(SkillVersion, ExecutionCounts)>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS}, executions, successes, edited, repeated, thanked \
             FROM skill_versions JOIN (SELECT skill.id AS skill_id, {SUMS} \
             FROM skill_versions AS skill LEFT JOIN skill_executions AS execution \
             ON execution.skill_version_id = skill.id AND execution.created_at >= $2 \
             WHERE skill.user_id = $1 AND skill.is_active <> 0 GROUP BY skill.id) AS sums \
             ON sums.skill_id = skill_versions.id ORDER BY skill_name"
        );
        let read = |row: &Columns<'_>| Ok((read(row)?, ExecutionCounts::read(row)?));
        Ok(self.fetch(query, params![user_id, since], read).await?.items)
    }

    /// Returns a page of the executions of a version, newest first.
    pub async fn skill_executions(
        &self,
        skill_version_id: &str,
        limit: u32,
        after: Option<&Cursor>,
    ) -> Result<ResultPage<SkillExecution>, StoreError> {
        // By name: PostgreSQL refuses a prepared `*` once a migration has added a column.
        let query = "SELECT id, skill_version_id, user_id, session_id, execution_status, \
                     user_edited_output, user_sent_thank_you, user_repeated_request, \
                     frustration, conversation_turns, execution_time_ms, error_message, \
                     created_at FROM skill_executions LEFT JOIN skill_signals ON execution_id = id WHERE skill_version_id = $1 \
                     AND (CAST($2 AS TEXT) IS NULL OR created_at < $2 \
                     OR (created_at = $2 AND id < $3)) \
                     ORDER BY created_at DESC, id DESC LIMIT $4";
        let (made_at, id) = cursor_values(after);
        let values = params![skill_version_id, made_at, id, i64::from(limit) + 1];
        let place = |row: &Columns<'_>| Cursor::of(row, "created_at", "id");
        self.fetch_page(limit, query, values, place, read_execution).await
    }

    /// Counts the executions of a user's skills by version and day, since a time.
    pub async fn skill_days(
        &self,
        user_id: &str,
        since: Timestamp,
    ) -> Result<Vec<SkillDayCount>, StoreError> {
        // Times are stored as text in UTC with a fixed width, so the first ten characters are the
        // day on both engines.
        let query = "SELECT skill_version_id, substr(created_at, 1, 10) AS day, \
                     COUNT(*) AS executions, \
                     SUM(CASE WHEN execution_status = 'success' THEN 1 ELSE 0 END) AS successes \
                     FROM skill_executions WHERE user_id = $1 AND created_at >= $2 \
                     GROUP BY skill_version_id, substr(created_at, 1, 10) ORDER BY day";
        Ok(self.fetch(query, params![user_id, since], SkillDayCount::read).await?.items)
    }
}

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
        // Binding cuts a text to its limit, and half a skill must not become active.
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
        // Versions may have any name; the next number follows those that are numbers.
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
    // Before the update: a unique index allows one active version per skill.
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
