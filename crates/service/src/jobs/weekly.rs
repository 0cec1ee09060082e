//! The job that writes the report of the week (`run_weekly_digest` of
//! docs/spec/skills-and-signals.md#schedule).

use jiff::Timestamp;
use serde_json::json;

use super::JobContext;
use super::summary::Done;
use selftest_grading::grade::Week;
use selftest_grading::report::weekly::write;

/// Grades new sessions by rules and writes the report of the week that the time is in.
pub(super) async fn run(context: &JobContext, at: Timestamp) -> Result<Done, String> {
    let scan = context.grader.grade_new_sessions(&mut ()).await.map_err(|e| e.to_string())?;
    let published = context.grader.publish_weekly_report(Some(Week::of(at)), Some(&scan)).await;
    let outcome = published.map_err(|error| error.to_string())?;
    let report = &outcome.report;
    let written = write(&context.weekly_folder, report, &outcome.others);
    let paths = written.map_err(|error| error.to_string())?;
    for fault in &outcome.faults {
        tracing::warn!("{fault}");
    }
    Ok(Done::counted(&json!({
        "week": report.week,
        "sessions": report.summary.sessions,
        "sessions_graded": scan.sessions,
        "alerts": report.alerts.raised().count(),
        "alerts_delivered": outcome.delivered,
        "report": paths.page.display().to_string(),
    })))
}
