//! The job that scores skills and disables those that do not work (seed 002,
//! `run_skill_effectiveness_scoring`).

use serde_json::json;

use super::summary::Done;
use crate::grader::skills::SkillTracker;

/// Who disables, for the history of a skill.
const ACTOR: &str = "worker";

/// Scores the skills in use, then disables those to which a rule applies.
pub(super) async fn run(skills: &SkillTracker) -> Result<Done, String> {
    let scores = skills.score_all_skills().await.map_err(|error| error.to_string())?;
    let disabled = skills.auto_disable_underperformers(ACTOR).await;
    let disabled = disabled.map_err(|error| error.to_string())?;
    for fault in disabled.iter().flat_map(|one| &one.refresh_faults) {
        tracing::warn!("{fault}");
    }
    let names: Vec<&str> = disabled.iter().map(|one| one.scored.skill_name.as_str()).collect();
    let counts = json!({
        "skills_scored": scores.len(),
        "skills_disabled": names.len(),
        "disabled_names": names,
    });
    Ok(Done::Completed(counts.as_object().cloned().unwrap_or_default()))
}
