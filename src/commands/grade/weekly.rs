//! `selftest grade summary`, `selftest grade weekly`, and `selftest grade watch`, which grades
//! sessions that are no longer written to, and raises the week's alerts as soon as they are due
//! (docs/spec/session-grades.md#live-grading).

use std::time::Duration;

use anyhow::anyhow;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::Setup;
use crate::commands::grade::coverage_words;
use crate::exit::Exit;
use crate::ui::{eprint, print};
use selftest_app::AppError;
use selftest_grading::grade::{Alert, AlertMetric, Alerts, Week, WeeklyReport};
use selftest_grading::report::grades;
use selftest_grading::report::weekly::{alert_text, render, write};
use selftest_text::wording::plural;

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

/// A report of no session is no success. Early in a week that was not named, the
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

/// Looks every `interval` seconds for sessions without a write for `quiet` seconds.
pub(super) async fn watch(
    setup: &Setup<'_>,
    quiet: f64,
    interval: f64,
    once: bool,
) -> Result<Exit, AppError> {
    let seconds = |name: &str, value: f64| {
        Duration::try_from_secs_f64(value)
            .ok()
            .filter(|duration| *duration <= Duration::from_hours(24))
            .ok_or_else(|| {
                AppError::usage(anyhow!("--{name} {value}: expected 0 to 86400 seconds"))
            })
    };
    let quiet = seconds("quiet", quiet)?;
    // Never a busy loop.
    let interval = seconds("interval", interval)?.max(Duration::from_millis(100));
    let quiet = SignedDuration::try_from(quiet).unwrap_or(SignedDuration::ZERO);
    if !once {
        let places = plural(setup.roots.len() as u64, "place");
        eprint(&format!("watching {places}; Ctrl-C ends it\n"));
    }
    let mut shown = Shown::default();
    // One for all looks: between two of them no interrupt is lost.
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    loop {
        let look = look(setup, quiet, &mut shown);
        tokio::select! {
            result = look => result?,
            _ = &mut interrupt => return Ok(Exit::Passed),
        }
        if once {
            return Ok(Exit::Passed);
        }
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            _ = &mut interrupt => return Ok(Exit::Passed),
        }
    }
}

/// Alerts that this watch has printed before.
#[derive(Default)]
struct Shown {
    has_heading: bool,
    alerts: Vec<(Week, AlertMetric)>,
}

async fn look(setup: &Setup<'_>, quiet: SignedDuration, shown: &mut Shown) -> Result<(), AppError> {
    let moment = selftest_clock::now().checked_sub(quiet).unwrap_or(Timestamp::MIN);
    let scan = setup.grader.grade_finished_sessions(moment, &mut ()).await?;
    for grade in &scan.grades {
        if setup.json {
            print(&format!("{}\n", json!(grade)))?;
            continue;
        }
        if !std::mem::replace(&mut shown.has_heading, true) {
            print(&grades::heading())?;
        }
        print(&grades::line(grade))?;
    }
    // Alerts are computed from grades, so that a look without a new one can raise none.
    if scan.grades.is_empty() {
        return Ok(());
    }
    let outcome = setup.grader.publish_weekly_report(None, Some(&scan)).await?;
    for fault in &outcome.faults {
        eprint(&format!("warning: {fault}\n"));
    }
    let report = &outcome.report;
    // By week too: in the next one, the same measure may raise an alert anew.
    let is_shown = |alert: &Alert| shown.alerts.contains(&(report.week, alert.metric));
    let new: Vec<&Alert> = report.alerts.raised().filter(|alert| !is_shown(alert)).collect();
    shown.alerts.extend(new.iter().map(|alert| (report.week, alert.metric)));
    if setup.json {
        for alert in new {
            print(&format!("{}\n", json!({ "alert": alert })))?;
        }
        return Ok(());
    }
    show_alerts(&report.alerts, new)
}
