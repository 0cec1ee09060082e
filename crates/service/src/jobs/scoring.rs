//! The job that scores skills and disables ineffective ones (`run_skill_effectiveness_scoring` of
//! docs/spec/skills-and-signals.md#schedule).

use jiff::Timestamp;
use serde_json::json;

use super::JobContext;
use super::error::JobError;
use super::summary::JobOutcome;
use crate::grader::skills::DeriveOptions;
use selftest_text::one_line;

/// Actor recorded in the audit entries of a skill.
const ACTOR: &str = "worker";

/// Records the skill executions found in sessions, scores the active skills by the days before
/// `at`, then disables those that match a rule.
pub(super) async fn run(context: &JobContext, at: Timestamp) -> Result<JobOutcome, JobError> {
    let skills = &context.skills;
    let options = context.grader.options();
    let derived = skills.record_sessions(DeriveOptions {
        sources: options.sources.clone(),
        since: Some(skills.lookback(at)),
        agent: options.agent.clone(),
    });
    let derived = derived.await?;
    for problem in &derived.problems {
        tracing::warn!("{}", one_line(problem, 400));
    }
    let scores = skills.score_all_skills(at).await?;
    let disabled = skills.auto_disable_underperformers(ACTOR, at).await?;
    for fault in disabled.iter().flat_map(|one| &one.refresh_faults) {
        tracing::warn!("{fault}");
    }
    let names: Vec<&str> = disabled.iter().map(|one| one.scored.skill_name.as_str()).collect();
    Ok(JobOutcome::from_counts(&json!({
        "executions_recorded": derived.executions,
        "skills_scored": scores.len(),
        "skills_disabled": names.len(),
        "disabled_names": names,
    })))
}
