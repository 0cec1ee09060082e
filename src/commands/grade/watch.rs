//! `selftest grade watch`: grades sessions that are no longer written to, and raises the
//! week's alerts as soon as they are due (docs/spec/session-grades.md#live-grading).

use std::time::Duration;

use anyhow::anyhow;
use jiff::{SignedDuration, Timestamp};
use selftest_app::AppError;
use selftest_grading::grade::{Alert, AlertMetric, Week};
use selftest_grading::report::grades;
use selftest_text::wording::plural;
use serde_json::json;

use super::Setup;
use crate::commands::grade::weekly::show_alerts;
use crate::exit::Exit;
use crate::ui::{eprint, print};

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
    if scan.grades.is_empty() {
        return Ok(());
    }
    let outcome = setup.grader.publish_weekly_report(None, Some(&scan)).await?;
    for fault in &outcome.faults {
        eprint(&format!("warning: {fault}\n"));
    }
    let report = &outcome.report;
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
