//! The work of the scheduled jobs: the weekly report, gaps in the agent's skills with drafts for
//! them, and the scores of skills (docs/spec/skills-and-signals.md#schedule).

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;

use super::JobContext;
use super::error::{JobError, JobModelError};
use super::summary::JobOutcome;
use crate::grader::WeeklyOutcome;
use crate::grader::proposals::{BatchSummary, SkillGenerator};
use crate::grader::skills::DeriveOptions;
use selftest_grading::grade::Week;
use selftest_grading::report::weekly::{WeeklyPaths, write};
use selftest_text::one_line;

/// Grades new sessions by rules, then writes the missing reports of finished weeks and that of the
/// week containing `at`.
pub(super) async fn write_weekly_report(
    context: &JobContext,
    at: Timestamp,
) -> Result<JobOutcome, JobError> {
    let scan = context.grader.grade_new_sessions(&mut ()).await?;
    let week = Week::containing(at);
    // The machine may have been off on Sunday. Reports of later weeks compare with these, so that
    // they are written first.
    let missed = context.grader.missed_weeks(week).await?;
    for &finished in &missed {
        // Alerts about weeks long past are of no use.
        if finished < week.weeks_earlier(1) {
            let report = context.grader.generate_weekly_report(Some(finished)).await?;
            write(&context.weekly_folder, &report, &[])?;
        } else {
            let published = context.grader.publish_weekly_report(Some(finished), None).await?;
            write_files(context, &published)?;
        }
    }
    let outcome = context.grader.publish_weekly_report(Some(week), Some(&scan)).await?;
    let paths = write_files(context, &outcome)?;
    let report = &outcome.report;
    let caught_up: Vec<String> = missed.iter().map(ToString::to_string).collect();
    Ok(JobOutcome::from_counts(&json!({
        "week": report.week,
        "caught_up": caught_up.join(" "),
        "sessions": report.summary.sessions,
        "sessions_graded": scan.sessions,
        "alerts": report.alerts.raised().count(),
        "alerts_delivered": outcome.delivered,
        "report": paths.page.display().to_string(),
    })))
}

/// Writes the files of a report and logs failures to deliver its alerts.
fn write_files(context: &JobContext, outcome: &WeeklyOutcome) -> Result<WeeklyPaths, JobError> {
    for fault in &outcome.faults {
        tracing::warn!("{fault}");
    }
    Ok(write(&context.weekly_folder, &outcome.report, &outcome.others)?)
}

/// Finds the model that drafts skills, or returns the reason why none can be used.
pub type FindGenerator =
    dyn Fn() -> BoxFuture<'static, Result<SkillGenerator, JobModelError>> + Send + Sync;

/// Grades new sessions by rules, then detects gaps in the sessions of the days before `at`.
pub(super) async fn detect_gaps(
    context: &JobContext,
    at: Timestamp,
) -> Result<JobOutcome, JobError> {
    let scan = context.grader.grade_new_sessions(&mut ()).await?;
    let detected = context.grader.detect_gaps(&context.gaps, at).await?;
    for problem in &detected.problems {
        tracing::warn!("{}", one_line(problem, 400));
    }
    Ok(JobOutcome::from_counts(&json!({
        "sessions": detected.sessions,
        "sessions_graded": scan.sessions,
        "repeated_requests": detected.repeated_requests,
        "gaps_found": detected.gaps.len(),
        "gaps_new": detected.new,
        "gaps_reopened": detected.reopened,
    })))
}

/// Drafts, tests and proposes skills for a few open gaps. Without open gaps, no model is loaded.
pub(super) async fn draft_skills(context: &JobContext) -> Result<JobOutcome, JobError> {
    let open = context.grader.store().open_gaps().await?;
    if open.items.is_empty() {
        return Ok(JobOutcome::from_counts(&json!({
            "gaps_found": 0,
            "gaps_processed": 0,
            "proposals_created": 0,
            "failures": 0,
        })));
    }
    let generator = (context.find_generator)().await?;
    let (summary, generated) = generator.run_skill_generation_batch().await;
    for one in &generated {
        if let Some(fault) = &one.fault {
            tracing::warn!("no proposal for {}: {fault}", one.gap_id);
        }
    }
    match summary {
        BatchSummary::Completed {
            gaps_found,
            gaps_processed,
            proposals_created,
            failures,
            elapsed_ms: _,
        } => Ok(JobOutcome::from_counts(&json!({
            "gaps_found": gaps_found,
            "gaps_processed": gaps_processed,
            "proposals_created": proposals_created,
            "failures": failures,
        }))),
        BatchSummary::Failed { error, elapsed_ms: _ } => Err(JobError::Batch(error)),
    }
}

/// Actor recorded in the audit entries of a skill.
const ACTOR: &str = "worker";

/// Records the skill executions found in sessions, scores the active skills by the days before
/// `at`, then disables those that match a rule.
pub(super) async fn score_skills(
    context: &JobContext,
    at: Timestamp,
) -> Result<JobOutcome, JobError> {
    let skills = &context.skills;
    let options = context.grader.options();
    let derived = skills.record_sessions(DeriveOptions {
        sources: options.sources.clone(),
        since: Some(skills.lookback(at)),
        agent: options.agent.clone(),
    });
    // Scores count executions, so that those since the last run have to be recorded before.
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
