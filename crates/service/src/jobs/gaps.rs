//! The jobs that detect gaps in the agent's skills and draft skills for them (`run_gap_detection`
//! and `run_skill_generation_batch` of docs/spec/skills-and-signals.md#schedule).

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;

use super::JobContext;
use super::error::{JobError, JobModelError};
use super::summary::JobOutcome;
use crate::grader::proposals::{BatchSummary, SkillGenerator};
use selftest_text::one_line;

/// Finds the model that drafts skills, or returns the reason that there is none.
pub type FindGenerator =
    dyn Fn() -> BoxFuture<'static, Result<SkillGenerator, JobModelError>> + Send + Sync;

/// Grades new sessions by rules, then detects gaps in the sessions of the days before `at`.
pub(super) async fn detect(context: &JobContext, at: Timestamp) -> Result<JobOutcome, JobError> {
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
pub(super) async fn generate(context: &JobContext) -> Result<JobOutcome, JobError> {
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
