//! Activates and deactivates versions of skills, keeps who did it and why, and tells the hook of
//! the configuration, so that a program can load what is in use now.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::SkillTracker;
use crate::grader::deliver::{receivers, tell_all};
use selftest_grading::improve::disabling::{DisableRule, Reason};
use selftest_grading::improve::effectiveness::Effectiveness;
use selftest_grading::improve::skill::{
    AuditAction, AuditEntry, DisabledSkill, SkillChange, SkillScore, SkillStatus, SkillVersion,
};
use selftest_store::{NewSkill, StoreError};
use selftest_text::digest::uuid_of;
use selftest_text::{clip, one_line};

/// Characters of a name that people give.
const MAX_NAME: usize = 200;
/// Bytes of words that are kept with a change.
const MAX_WORDS: usize = 1000;
/// A hook that takes longer is given up: somebody waits for the change.
const MAX_REFRESH: Duration = Duration::from_secs(10);

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nobody made the skill or the version known.
    #[error("there is no skill {0}")]
    Unknown(String),
    /// The version has no name that can be used.
    #[error("{0}")]
    Name(String),
    /// There is a version of that name.
    #[error("the skill {0} has that version already")]
    Taken(String),
    /// It is in use.
    #[error("{0} is in use already")]
    Active(String),
    /// It is not in use.
    #[error("{0} is not in use")]
    Inactive(String),
    /// A rollback needs an earlier version that was not disabled.
    #[error("there is no version before {0} that was not disabled")]
    NothingBefore(String),
}

impl ChangeError {
    /// One thing that the reader can do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ChangeError::Store(error) => error.hint(),
            ChangeError::Unknown(_) => Some("`selftest improve skills list` shows the skills"),
            ChangeError::Taken(_) => Some("leave --version out to get the next number"),
            ChangeError::NothingBefore(_) => {
                Some("`selftest improve skills promote NAME --version V` puts any version to use")
            }
            ChangeError::Name(_) | ChangeError::Active(_) | ChangeError::Inactive(_) => None,
        }
    }
}

impl SkillTracker {
    /// The version of that id.
    pub async fn by_id(&self, id: &str) -> Result<SkillVersion, ChangeError> {
        let found = self.store().skill(id).await?.filter(|skill| skill.user_id == self.user_id());
        found.ok_or_else(|| ChangeError::Unknown(format!("with the id {}", one_line(id, 80))))
    }

    /// A version of that name: the one that is asked for, else the one in use, else the one that
    /// was in use last.
    pub async fn by_name(
        &self,
        skill_name: &str,
        version: Option<&str>,
    ) -> Result<SkillVersion, ChangeError> {
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
            ChangeError::Unknown(format!("{name:?}{}", version.unwrap_or_default()))
        })
    }

    /// Makes a new version known and puts it to use. Without a name for the version it gets the
    /// next whole number.
    pub async fn promote_new(
        &self,
        skill_name: &str,
        version: Option<&str>,
        content: &str,
        actor: &str,
    ) -> Result<SkillChange, ChangeError> {
        let skill_name = checked("the name of the skill", skill_name)?;
        let version = version.map(|version| checked("the version", version)).transpose()?;
        let skill = NewSkill {
            id: uuid_of(&format!("{:032x}", rand::random::<u128>())),
            user_id: self.user_id().to_owned(),
            skill_name: skill_name.clone(),
            version,
            content: content.to_owned(),
        };
        let audit = entry(&skill.id, AuditAction::Promote, Vec::new(), actor);
        if !self.store().add_skill(&skill, &audit).await? {
            return Err(ChangeError::Taken(skill_name));
        }
        self.changed(&skill.id, audit.action, actor).await
    }

    /// Puts a known version to use.
    pub async fn promote(
        &self,
        skill: &SkillVersion,
        actor: &str,
    ) -> Result<SkillChange, ChangeError> {
        if skill.status == SkillStatus::Active {
            return Err(ChangeError::Active(label(skill)));
        }
        let audit = entry(&skill.id, AuditAction::Promote, Vec::new(), actor);
        self.store().activate_skill(skill, &audit).await?;
        self.changed(&skill.id, audit.action, actor).await
    }

    /// Deactivates a version; `why` in a person's words.
    pub async fn disable(
        &self,
        skill: &SkillVersion,
        why: Option<&str>,
        actor: &str,
    ) -> Result<SkillChange, ChangeError> {
        let words = why.map(str::trim).filter(|why| !why.is_empty());
        let words = words.map(|why| clip(&self.redactor.apply(why), MAX_WORDS));
        let reasons = words.map(|words| Reason::Words { words }).into_iter().collect();
        self.take_out(skill, AuditAction::Disable, reasons, actor).await
    }

    /// Takes the version in use out of it, and puts the one before it to use.
    pub async fn rollback(
        &self,
        skill: &SkillVersion,
        actor: &str,
    ) -> Result<SkillChange, ChangeError> {
        if skill.status != SkillStatus::Active {
            return Err(ChangeError::Inactive(label(skill)));
        }
        let all = self.store().skill_versions(&skill.user_id, &skill.skill_name).await?;
        let earlier = all.into_iter().find(|other| other.status == SkillStatus::Superseded);
        let earlier = earlier.ok_or_else(|| ChangeError::NothingBefore(label(skill)))?;
        let (from, to) = (skill.version.clone(), earlier.version.clone());
        let reasons = vec![Reason::Rollback { from, to }];
        let out = entry(&skill.id, AuditAction::Rollback, reasons.clone(), actor);
        let back = entry(&earlier.id, AuditAction::Promote, reasons, actor);
        if !self.store().replace_skill(&out, &earlier, &back).await? {
            return Err(ChangeError::Inactive(label(skill)));
        }
        self.changed(&skill.id, out.action, actor).await
    }

    /// Disables every version in use to which a rule applies, by its executions of the days
    /// before `now`.
    pub async fn auto_disable_underperformers(
        &self,
        actor: &str,
        now: Timestamp,
    ) -> Result<Vec<DisabledSkill>, ChangeError> {
        let since = self.lookback(now);
        let mut disabled = Vec::new();
        for (skill, counts) in self.store().active_skills(self.user_id(), since).await? {
            let reasons = DisableRule::reasons(&counts, &self.settings.disable);
            if reasons.is_empty() {
                continue;
            }
            let done =
                self.take_out(&skill, AuditAction::AutoDisable, reasons.clone(), actor).await;
            let done = match done {
                // Somebody else was faster.
                Err(ChangeError::Inactive(_)) => continue,
                done => done?,
            };
            let scored = SkillScore {
                skill_name: skill.skill_name,
                version: skill.version,
                score: Effectiveness::of(&counts).score(),
                total_executions: counts.executions,
            };
            let refresh_faults = done.refresh_faults;
            disabled.push(DisabledSkill { scored, reasons, refresh_faults });
        }
        Ok(disabled)
    }

    async fn take_out(
        &self,
        skill: &SkillVersion,
        action: AuditAction,
        reasons: Vec<Reason>,
        actor: &str,
    ) -> Result<SkillChange, ChangeError> {
        let audit = entry(&skill.id, action, reasons, actor);
        if !self.store().disable_skill(&audit).await? {
            return Err(ChangeError::Inactive(label(skill)));
        }
        self.changed(&skill.id, action, actor).await
    }

    /// Tells the hook of a change that was made. Where it fails, that is noted and no error.
    async fn changed(
        &self,
        id: &str,
        action: AuditAction,
        actor: &str,
    ) -> Result<SkillChange, ChangeError> {
        let skill = self.by_id(id).await?;
        let all = self.store().skill_versions(&skill.user_id, &skill.skill_name).await?;
        let active = all.into_iter().find(|other| other.status == SkillStatus::Active);
        let mut change = SkillChange { action, skill, active, refresh_faults: Vec::new() };
        change.refresh_faults = self.refresh(&change).await?;
        if !change.refresh_faults.is_empty() {
            let words = change.refresh_faults.iter();
            let words = words
                .map(|words| Reason::Words { words: clip(&self.redactor.apply(words), MAX_WORDS) });
            let audit = entry(id, AuditAction::RefreshFailed, words.collect(), actor);
            self.store().add_skill_audit(&audit).await?;
        }
        Ok(change)
    }

    async fn refresh(&self, change: &SkillChange) -> Result<Vec<String>, StoreError> {
        let settings = &self.settings.refresh;
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
        Ok(tell_all(&receivers, &news).await)
    }
}

fn entry(id: &str, action: AuditAction, reasons: Vec<Reason>, actor: &str) -> AuditEntry {
    let (skill_version_id, actor) = (id.to_owned(), actor.to_owned());
    AuditEntry { time: selftest_clock::now(), skill_version_id, action, reasons, actor }
}

/// Skill and version, for messages.
fn label(skill: &SkillVersion) -> String {
    let [name, version] = [&skill.skill_name, &skill.version].map(|text| one_line(text, 80));
    format!("{name:?}, version {version:?},")
}

/// A name without white space around it.
fn checked(what: &str, name: &str) -> Result<String, ChangeError> {
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
    Err(ChangeError::Name(format!("{what} {fault}")))
}
