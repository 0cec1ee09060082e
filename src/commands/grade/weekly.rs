//! `selftest grade summary` and `selftest grade weekly`.

use anyhow::anyhow;
use selftest_app::AppError;
use selftest_grading::grade::{Alert, Alerts, Week, WeeklyReport};
use selftest_grading::report::weekly::{alert_text, render, write};
use serde_json::json;

use super::Setup;
use crate::commands::grade::coverage_words;
use crate::exit::Exit;
use crate::ui::{eprint, print};

/// Sums up the last days.
pub(super) async fn summary(setup: &Setup<'_>, days: u32, no_scan: bool) -> Result<Exit, AppError> {
    if !no_scan {
        let scan = setup.scan().await?;
        eprint(&coverage_words(&scan));
    }
    let grader = &setup.grader;
    if setup.json {
        let patterns = grader.identify_patterns(days).await?;
        let summary = grader.grade_summary(days).await?;
        let undated = grader.store().undated_sessions().await?;
        let json =
            json!({ "days": days, "undated": undated, "summary": summary, "patterns": patterns });
        print(&format!("{json:#}\n"))?;
    } else {
        print(&grader.grades_summary(days).await?)?;
    }
    let newest = grader.store().newest_counts_at().await?;
    if grader.grade_summary(days).await?.sessions > 0 {
        return Ok(Exit::Passed);
    }
    let narrowed =
        [("--agent", setup.sessions.agent.is_some()), ("--since", setup.sessions.since.is_some())];
    let narrowed: Vec<&str> =
        narrowed.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect();
    if !narrowed.is_empty() {
        eprint(&format!("hint: no graded session fits {}\n", narrowed.join(" and ")));
    } else if let Some(newest) = newest {
        eprint(&format!("hint: the newest graded session is of {newest}; see --days\n"));
    }
    Ok(Exit::NothingRan)
}

/// Writes the report of a week; one of a single agent is only printed.
pub(super) async fn report(
    setup: &Setup<'_>,
    week: Option<&str>,
    no_scan: bool,
) -> Result<Exit, AppError> {
    let week = week.map(str::parse::<Week>).transpose().map_err(|error| {
        AppError::usage(anyhow!("--week: {error}")).hint(Some("an ISO week such as 2026-W47"))
    })?;
    let scan = if no_scan { None } else { Some(setup.scan().await?) };
    if let Some(scan) = &scan {
        eprint(&coverage_words(scan));
    }
    if setup.grader.options().agent.is_some() {
        let report = setup.grader.weekly_report(week, scan.as_ref()).await?;
        print_one_agents(setup, &report)?;
        return Ok(exit_of(&report, week));
    }
    let outcome = setup.grader.publish_weekly_report(week, scan.as_ref()).await?;
    let report = &outcome.report;
    let paths = write(&setup.weekly_folder, report, &outcome.others).map_err(|error| {
        AppError::setup(anyhow!(error))
            .hint(Some("set grade.weekly_folder to a folder that you can write to"))
    })?;
    if setup.json {
        print(&format!("{:#}\n", json!(outcome.report)))?;
    } else {
        print(&format!("{}\n", paths.page.display()))?;
        show_alerts(&report.alerts, report.alerts.raised())?;
    }
    for fault in &outcome.faults {
        eprint(&format!("warning: {fault}\n"));
    }
    Ok(exit_of(report, week))
}

/// A report of no session is no success. Early in a week that nobody asked for by its name, the
/// sessions are likely to be in the one before.
fn exit_of(report: &WeeklyReport, asked: Option<Week>) -> Exit {
    if report.summary.sessions > 0 {
        return Exit::Passed;
    }
    if asked.is_none() {
        let (week, before) = (report.week, report.week.weeks_earlier(1));
        eprint(&format!(
            "hint: {week} has no graded session yet; --week {before} is the one before\n"
        ));
    }
    Exit::NothingRan
}

/// The kept report, its files and its alerts are those of all sessions: this one leaves them alone.
fn print_one_agents(setup: &Setup<'_>, report: &WeeklyReport) -> Result<(), AppError> {
    if setup.json {
        print(&format!("{:#}\n", json!(report)))?;
    } else {
        print(&render(report).map_err(|error| AppError::setup(anyhow!(error)))?)?;
    }
    eprint("note: with --agent the report is only printed; the week's own is left as it is\n");
    Ok(())
}

/// Alerts are results: they go to stdout.
pub(super) fn show_alerts<'a>(
    all: &Alerts,
    raised: impl IntoIterator<Item = &'a Alert>,
) -> Result<(), AppError> {
    for alert in raised {
        print(&format!("ALERT: {}\n", alert_text(all, alert)))?;
    }
    Ok(())
}
