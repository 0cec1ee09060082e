//! Numbers of grades in words. Pure; what is foreign stays as it is and is escaped by those who
//! show it.

use crate::grade::suggestions::RuleId;
use crate::grade::{Alert, Alerts, Coverage, Listed, Metric, Share, Suggestion};
use selftest_text::wording::{percent, plural};

/// Shown where there was nothing to count.
pub(super) const ABSENT: &str = "–";

/// `58 % (7 of 12)`.
pub(super) fn share(share: &Share) -> String {
    let Share { count, of, rate, .. } = share;
    rate.map_or(ABSENT.to_owned(), |rate| format!("{} % ({count} of {of})", percent(rate)))
}

/// `58 %`.
pub(super) fn rate(rate: Option<f64>) -> String {
    rate.map_or(ABSENT.to_owned(), |rate| format!("{} %", percent(rate)))
}

/// `32 % to 81 %`.
pub(super) fn interval(share: &Share) -> String {
    share.interval.map_or(ABSENT.to_owned(), |ends| {
        format!("{:.0} % to {:.0} %", ends.low * 100.0, ends.high * 100.0)
    })
}

/// A mean of grades: `3.4`.
pub(super) fn mean(mean: Option<f64>) -> String {
    mean.map_or(ABSENT.to_owned(), |mean| format!("{mean:.1}"))
}

/// A change of a rate: `down 35 points`.
pub(super) fn points(change: Option<f64>) -> String {
    change.map_or(ABSENT.to_owned(), |change| direction(change * 100.0, 0, " point"))
}

/// A change of a mean: `up 0.3`.
pub(super) fn change(change: Option<f64>) -> String {
    change.map_or(ABSENT.to_owned(), |change| direction(change, 1, ""))
}

/// In words, because a sign at the beginning would be escaped: it could begin a list.
fn direction(value: f64, places: usize, unit: &str) -> String {
    let size = format!("{:.places$}", value.abs());
    if size.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return "none".to_owned();
    }
    let more = if unit.is_empty() || size == "1" { "" } else { "s" };
    format!("{} {size}{unit}{more}", if value < 0.0 { "down" } else { "up" })
}

/// The first of a list, and how many more there are: `a, b and 3 more`.
pub(super) fn some_of(list: &Listed<String>, most: usize) -> String {
    let shown: Vec<&str> = list.items.iter().take(most).map(String::as_str).collect();
    let more = list.total() - shown.len() as u64;
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn all_of(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

pub(super) fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::CompletionRate => "completion rate",
        Metric::ToolEfficiency => "tool efficiency",
        Metric::ErrorRate => "error rate",
    }
}

/// What became of the files, in one line: `412 files found, 398 read, 377 sessions graded, 14
/// skipped: …. The database holds 377 graded sessions.` Without a scan it says so.
pub fn coverage_text(coverage: &Coverage) -> String {
    let &Coverage { found, read, graded, unchanged, left_out, .. } = coverage;
    let held = if coverage.scanned { coverage.stored } else { graded };
    let holds = format!("The database holds {}", plural(held, "graded session"));
    let unchanged = match unchanged {
        0 => String::new(),
        count => format!(" ({count} of them unchanged since the last scan)"),
    };
    let reasons: Vec<(u64, String)> = [
        (coverage.not_gradable, format!("{} with too little to grade", coverage.not_gradable)),
        (coverage.no_session, format!("{} without a session", coverage.no_session)),
        (coverage.duplicate, format!("{} duplicate", coverage.duplicate)),
        (coverage.unreadable, format!("{} unreadable", coverage.unreadable)),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .collect();
    let skipped: u64 = reasons.iter().map(|(count, _)| count).sum();
    let reasons: Vec<String> = reasons.into_iter().map(|(_, words)| words).collect();
    let why = if skipped > 0 { format!(": {}", all_of(&reasons)) } else { String::new() };
    let files = plural(found, "file");
    if !coverage.scanned {
        return format!(
            "No scan was made for this report. {holds}, and knows {files}, some of which may be gone \
             by now; {skipped} skipped{why}."
        );
    }
    let left_out = match left_out {
        0 => String::new(),
        count => format!("; {count} left out: too old, of another agent or still being written"),
    };
    format!(
        "{files} found{unchanged}, {read} read, {} graded, {skipped} skipped{why}{left_out}. \
         {holds}.",
        plural(graded, "session"),
    )
}

/// One check of the alerts in one sentence, without a full stop.
pub fn alert_text(alerts: &Alerts, alert: &Alert) -> String {
    let shown = |value: Option<f64>| match alert.metric {
        Metric::ToolEfficiency => mean(value),
        Metric::CompletionRate => rate(value),
        // Small rates differ behind the point.
        Metric::ErrorRate => {
            value.map_or(ABSENT.to_owned(), |value| format!("{:.1} %", value * 100.0))
        }
    };
    let name = match alert.metric {
        Metric::CompletionRate => "Completion rate",
        Metric::ToolEfficiency => "Tool efficiency",
        // The numbers have that of all calls together.
        Metric::ErrorRate => "Error rate of a session, on average",
    };
    let Alert { n_now, n_before, test, .. } = alert;
    let Some(p) = alert.p_corrected else {
        let needed = alerts.min_sessions;
        return format!(
            "{name}: not tested, {n_now} sessions this week and {n_before} before; {needed} are \
             needed on each side"
        );
    };
    let (now, before) = (shown(alert.now), shown(alert.before));
    let p = if p < 0.001 { "p below 0.001".to_owned() } else { format!("p = {p:.3}") };
    let verdict = if alert.raised { "worse than before" } else { "not worse beyond chance" };
    format!(
        "{name}: {verdict}, {now} this week ({}), {before} in the four weeks before ({}); {test}, \
         {p} after Holm's correction",
        plural(*n_now, "session"),
        plural(*n_before, "session"),
    )
}

/// The numbers behind a suggestion.
pub(super) fn reason(suggestion: &Suggestion) -> String {
    let Suggestion { measured, threshold, n, .. } = suggestion;
    let count = suggestion.count.unwrap_or(0);
    let limit = percent(*threshold);
    // Both rounded to the same number would look like a mistake.
    let share = match percent(*measured) {
        same if same == limit => format!("{:.2} %", measured * 100.0),
        other => format!("{other} %"),
    };
    match suggestion.rule {
        RuleId::LowCompletionRate => {
            format!("{count} of {n} sessions completed ({share}), below {limit} %")
        }
        RuleId::LowErrorRecoveryRate => {
            format!("{count} of {n} sessions with errors recovered ({share}), below {limit} %")
        }
        RuleId::LowToolEfficiency => {
            format!("mean efficiency {measured:.2} of 5 over {n} sessions, below {threshold}")
        }
        RuleId::LowTaskType => {
            format!("mean score {measured:.2} of 5 over {n} sessions, below {threshold}")
        }
        RuleId::HighToolErrors => {
            format!("{count} of {n} calls failed ({share}), more than {limit} %")
        }
        RuleId::CommonError => {
            format!("{count} of {n} errors ({share}), at least {limit} %")
        }
    }
}
