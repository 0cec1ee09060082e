//! Activates and deactivates skill versions, records actor and reasons, and notifies the configured
//! hook so that another program can load the active version.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::SkillTracker;
use crate::grader::deliver::{receivers, send_all};
use selftest_grading::improve::effectiveness::{ChangeReason, DisableRule, Effectiveness};
use selftest_grading::improve::skill::{
    AuditAction, AuditEntry, DisabledSkill, SkillChange, SkillScore, SkillStatus, SkillVersion,
};
use selftest_store::{NewSkill, StoreError};
use selftest_text::digest::uuid_from_name;
use selftest_text::{clip, one_line};

/// Maximum characters of a user-provided name.
const MAX_NAME: usize = 200;
/// Maximum bytes of a comment stored with a change.
const MAX_WORDS: usize = 1000;
/// Time after which the hook is given up, since the user is waiting for the change.
const MAX_REFRESH: Duration = Duration::from_secs(10);

/// Error while changing a skill.
#[derive(Debug, thiserror::Error)]
pub enum SkillChangeError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The skill or version does not exist.
    #[error("there is no skill {0}")]
    Unknown(String),
    /// The name of the skill or version is invalid.
    #[error("{0}")]
    Name(String),
    /// A version with that name exists.
    #[error("the skill {0} has that version already")]
    Taken(String),
    /// The version is already active.
    #[error("{0} is in use already")]
    Active(String),
    /// The version is not active.
    #[error("{0} is not in use")]
    Inactive(String),
    /// There is no earlier version that was not disabled, which a rollback needs.
    #[error("there is no version before {0} that was not disabled")]
    NothingBefore(String),
}

impl SkillChangeError {
    /// Suggests one thing that the user can do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            SkillChangeError::Store(error) => error.hint(),
            SkillChangeError::Unknown(_) => Some("`selftest improve skills list` shows the skills"),
            SkillChangeError::Taken(_) => Some("leave --version out to get the next number"),
            SkillChangeError::NothingBefore(_) => {
                Some("`selftest improve skills promote NAME --version V` puts any version to use")
            }
            SkillChangeError::Name(_)
            | SkillChangeError::Active(_)
            | SkillChangeError::Inactive(_) => None,
        }
    }
}

impl SkillTracker {
    /// Returns the version with that id.
    pub async fn find_by_id(&self, id: &str) -> Result<SkillVersion, SkillChangeError> {
        // A skill of somebody else is as unknown as one that does not exist.
        let found = self.store().skill(id).await?.filter(|skill| skill.user_id == self.user_id());
        found.ok_or_else(|| SkillChangeError::Unknown(format!("with the id {}", one_line(id, 80))))
    }

    /// Returns the requested version of a skill; by default the active one, else the one that was
    /// active last.
    pub async fn find_by_name(
        &self,
        skill_name: &str,
        version: Option<&str>,
    ) -> Result<SkillVersion, SkillChangeError> {
        let mut all = self.store().skill_versions(self.user_id(), skill_name).await?;
        let is_wanted = |skill: &SkillVersion| match version {
            Some(version) => skill.version == version,
            None => skill.status == SkillStatus::Active,
        };
        let place = all.iter().position(is_wanted);
        let place = place.or((version.is_none() && !all.is_empty()).then_some(0));
        place.map(|place| all.swap_remove(place)).ok_or_else(|| {
            let version = version.map(|version| format!(" in version {:?}", one_line(version, 80)));
            let name = one_line(skill_name, 80);
            SkillChangeError::Unknown(format!("{name:?}{}", version.unwrap_or_default()))
        })
    }

    /// Adds a new version and activates it. The version name defaults to the next integer.
    pub async fn promote_new(
        &self,
        skill_name: &str,
        version: Option<&str>,
        content: &str,
        actor: &str,
    ) -> Result<SkillChange, SkillChangeError> {
        let skill_name = validate_name("the name of the skill", skill_name)?;
        let version = version.map(|version| validate_name("the version", version)).transpose()?;
        let skill = NewSkill {
            id: uuid_from_name(&format!("{:032x}", rand::random::<u128>())),
            user_id: self.user_id().to_owned(),
            skill_name: skill_name.clone(),
            version,
            content: content.to_owned(),
        };
        let audit = audit_entry(&skill.id, AuditAction::Promote, Vec::new(), actor);
        if !self.store().add_skill(&skill, &audit).await? {
            return Err(SkillChangeError::Taken(skill_name));
        }
        self.finish_change(&skill.id, audit.action, actor).await
    }

    /// Activates an existing version.
    pub async fn promote(
        &self,
        skill: &SkillVersion,
        actor: &str,
    ) -> Result<SkillChange, SkillChangeError> {
        if skill.status == SkillStatus::Active {
            return Err(SkillChangeError::Active(label(skill)));
        }
        let audit = audit_entry(&skill.id, AuditAction::Promote, Vec::new(), actor);
        self.store().activate_skill(skill, &audit).await?;
        self.finish_change(&skill.id, audit.action, actor).await
    }

    /// Deactivates a version; `why` is a comment by the user.
    pub async fn disable(
        &self,
        skill: &SkillVersion,
        why: Option<&str>,
        actor: &str,
    ) -> Result<SkillChange, SkillChangeError> {
        let words = why.map(str::trim).filter(|why| !why.is_empty());
        let words = words.map(|why| clip(&self.redactor.apply(why), MAX_WORDS));
        let reasons = words.map(|words| ChangeReason::Words { words }).into_iter().collect();
        self.deactivate(skill, AuditAction::Disable, reasons, actor).await
    }

    /// Deactivates the active version and activates the one before it.
    pub async fn rollback(
        &self,
        skill: &SkillVersion,
        actor: &str,
    ) -> Result<SkillChange, SkillChangeError> {
        if skill.status != SkillStatus::Active {
            return Err(SkillChangeError::Inactive(label(skill)));
        }
        let all = self.store().skill_versions(&skill.user_id, &skill.skill_name).await?;
        // Disabled versions are skipped, since a rollback must not bring them back.
        let earlier = all.into_iter().find(|other| other.status == SkillStatus::Superseded);
        let earlier = earlier.ok_or_else(|| SkillChangeError::NothingBefore(label(skill)))?;
        let (from, to) = (skill.version.clone(), earlier.version.clone());
        let reasons = vec![ChangeReason::Rollback { from, to }];
        let out = audit_entry(&skill.id, AuditAction::Rollback, reasons.clone(), actor);
        let back = audit_entry(&earlier.id, AuditAction::Promote, reasons, actor);
        if !self.store().replace_skill(&out, &earlier, &back).await? {
            return Err(SkillChangeError::Inactive(label(skill)));
        }
        self.finish_change(&skill.id, out.action, actor).await
    }

    /// Disables every active version that matches a rule, by its executions in the days before
    /// `now`.
    pub async fn auto_disable_underperformers(
        &self,
        actor: &str,
        now: Timestamp,
    ) -> Result<Vec<DisabledSkill>, SkillChangeError> {
        let since = self.lookback(now);
        let mut disabled = Vec::new();
        for (skill, counts) in self.store().active_skills(self.user_id(), since).await? {
            let reasons = DisableRule::reasons(&counts, &self.settings.disable);
            if reasons.is_empty() {
                continue;
            }
            let done =
                self.deactivate(&skill, AuditAction::AutoDisable, reasons.clone(), actor).await;
            let done = match done {
                // Another process was faster.
                Err(SkillChangeError::Inactive(_)) => continue,
                done => done?,
            };
            let scored = SkillScore {
                skill_name: skill.skill_name,
                version: skill.version,
                score: Effectiveness::from_counts(&counts).score(),
                total_executions: counts.executions,
            };
            let refresh_faults = done.refresh_faults;
            disabled.push(DisabledSkill { scored, reasons, refresh_faults });
        }
        Ok(disabled)
    }

    async fn deactivate(
        &self,
        skill: &SkillVersion,
        action: AuditAction,
        reasons: Vec<ChangeReason>,
        actor: &str,
    ) -> Result<SkillChange, SkillChangeError> {
        let audit = audit_entry(&skill.id, action, reasons, actor);
        if !self.store().disable_skill(&audit).await? {
            return Err(SkillChangeError::Inactive(label(skill)));
        }
        self.finish_change(&skill.id, action, actor).await
    }

    /// Notifies the hook after a change. A failure is recorded but is not an error.
    async fn finish_change(
        &self,
        id: &str,
        action: AuditAction,
        actor: &str,
    ) -> Result<SkillChange, SkillChangeError> {
        let skill = self.find_by_id(id).await?;
        let all = self.store().skill_versions(&skill.user_id, &skill.skill_name).await?;
        let active = all.into_iter().find(|other| other.status == SkillStatus::Active);
        let mut change = SkillChange { action, skill, active, refresh_faults: Vec::new() };
        change.refresh_faults = self.notify_hook(&change).await?;
        if !change.refresh_faults.is_empty() {
            let words = change.refresh_faults.iter();
            let words = words.map(|words| ChangeReason::Words {
                words: clip(&self.redactor.apply(words), MAX_WORDS),
            });
            let audit = audit_entry(id, AuditAction::RefreshFailed, words.collect(), actor);
            // The change stands: a hook that failed is reported, which is no reason to take the
            // change back.
            self.store().add_skill_audit(&audit).await?;
        }
        Ok(change)
    }

    async fn notify_hook(&self, change: &SkillChange) -> Result<Vec<String>, StoreError> {
        let settings = &self.settings.refresh;
        // Without a receiver the content is not loaded either.
        if settings.command.is_none() && settings.webhook.is_none() {
            return Ok(Vec::new());
        }
        let active = match &change.active {
            Some(active) => {
                let content = self.store().skill_content(&active.id).await?;
                let (id, version) = (&active.id, &active.version);
                Some(json!({ "id": id, "version": version, "content": content }))
            }
            None => None,
        };
        let skill = &change.skill;
        let news = json!({
            "kind": "selftest.skills",
            "action": change.action,
            "user_id": skill.user_id,
            "skill_name": skill.skill_name,
            "version": skill.version,
            "active": active,
        });
        let (command, webhook) = (settings.command.as_deref(), settings.webhook.as_deref());
        let receivers = receivers("refresh", command, webhook, MAX_REFRESH);
        Ok(send_all(&receivers, &news).await)
    }
}

fn audit_entry(
    id: &str,
    action: AuditAction,
    reasons: Vec<ChangeReason>,
    actor: &str,
) -> AuditEntry {
    let (skill_version_id, actor) = (id.to_owned(), actor.to_owned());
    AuditEntry { time: selftest_clock::now(), skill_version_id, action, reasons, actor }
}

/// Formats skill and version for messages.
fn label(skill: &SkillVersion) -> String {
    let [name, version] = [&skill.skill_name, &skill.version].map(|text| one_line(text, 80));
    format!("{name:?}, version {version:?},")
}

/// Trims and validates a name.
fn validate_name(what: &str, name: &str) -> Result<String, SkillChangeError> {
    let name = name.trim();
    let fault = if name.is_empty() {
        "is empty".to_owned()
    } else if name.chars().count() > MAX_NAME {
        format!("has more than {MAX_NAME} characters")
    } else if name.chars().any(char::is_control) {
        "holds control characters".to_owned()
    } else {
        return Ok(name.to_owned());
    };
    Err(SkillChangeError::Name(format!("{what} {fault}")))
}
