//! The job that writes the weekly report (`run_weekly_digest` of
//! docs/spec/skills-and-signals.md#schedule).
//!
//! It runs on a Sunday, before the week is over. It therefore writes the reports of all finished
//! weeks without a final one, and then that of the current week so far.

use jiff::Timestamp;
use serde_json::json;

use super::JobContext;
use super::error::JobError;
use super::summary::JobOutcome;
use crate::grader::WeeklyOutcome;
use selftest_grading::grade::Week;
use selftest_grading::report::weekly::{WeeklyPaths, write};

/// Grades new sessions by rules, then writes the missing reports of finished weeks and that of the
/// week containing `at`.
pub(super) async fn run(context: &JobContext, at: Timestamp) -> Result<JobOutcome, JobError> {
    let scan = context.grader.grade_new_sessions(&mut ()).await?;
    let week = Week::containing(at);
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
