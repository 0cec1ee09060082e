//! Renders what labels show for a terminal: how often tasks had succeeded by what was seen of them,
//! and an estimate of success, with its quality and the sessions that look doubtful.

use std::fmt::Write as _;

use crate::grade::Proportion;
use crate::grade::estimate::{FittedEstimate, SuccessEstimate};
use crate::grade::session_label::{LastMessage, OutcomeRow, OutcomeTable};
use selftest_stats::Interval;
use selftest_text::one_line;

/// Renders the table under an indent. Empty without labelled sessions.
pub fn render_outcomes(table: &OutcomeTable) -> String {
    let mut text = String::new();
    let Some((rate, interval)) = table.all.rate.zip(table.all.interval) else { return text };
    let _ = writeln!(
        text,
        "  {:<20} {:>5}  {:<18} {:<21} {:<13} of failures",
        "seen", "runs", "succeeded", "lift, in points", "of successes"
    );
    let mut add = |name: &str, line: Option<String>| {
        let _ =
            writeln!(text, "  {name:<20} {}", line.unwrap_or_else(|| "    0  not measured".into()));
    };
    for row in &table.outcomes {
        add(row.seen.name(), cells(row));
    }
    for row in &table.states {
        add(&format!("  {}", row.seen.name()), cells(row));
    }
    for row in &table.baseline {
        let name = match row.seen {
            LastMessage::SaysDone => "last words: done",
            LastMessage::SaysNothing => "last words: not",
        };
        add(name, cells(row));
    }
    let _ =
        writeln!(text, "  {:<20} {:>5}  {}", "all", table.all.of, share_and_ends(rate, interval));
    text
}

fn cells<T>(row: &OutcomeRow<T>) -> Option<String> {
    let (rate, interval) = row.succeeded.rate.zip(row.succeeded.interval)?;
    let lift = row.lift.unwrap_or_default() * 100.0;
    let lift = match row.lift_interval {
        Some(Interval { low, high }) => {
            let beyond = if row.raises() || row.lowers() { " *" } else { "" };
            format!("{lift:+.0} [{:+.0}, {:+.0}]{beyond}", low * 100.0, high * 100.0)
        }
        None => format!("{lift:+.0}"),
    };
    Some(format!(
        "{:>5}  {:<18} {lift:<21} {:<13} {}",
        row.succeeded.of,
        share_and_ends(rate, interval),
        counted(&row.of_successes),
        counted(&row.of_failures)
    ))
}

fn share_and_ends(rate: f64, Interval { low, high }: Interval) -> String {
    format!("{:.0} % [{:.0}, {:.0}]", rate * 100.0, low * 100.0, high * 100.0)
}

fn counted(share: &Proportion) -> String {
    match share.rate {
        Some(rate) => format!("{:.0} %", rate * 100.0),
        None => "–".to_owned(),
    }
}

/// Renders the estimate for a project, followed by the least probable sessions as (ID, title,
/// probability).
pub fn render_estimate(
    project: Option<&str>,
    estimate: &SuccessEstimate,
    seen: &OutcomeTable,
    doubtful: &[(&str, &str, f64)],
) -> String {
    let mut text = match project {
        Some(project) => format!("{}\n", one_line(project, 200)),
        None => "sessions without a project\n".to_owned(),
    };
    match estimate {
        SuccessEstimate::NotEnoughLabels { labels, successes, needed, needed_of_each } => {
            let failures = labels - successes;
            let _ = writeln!(text, "  not enough labels ({labels} of {needed})");
            // Enough in all, so that it is labels of one kind, or of several tasks, that are
            // missing.
            if *labels >= *needed {
                let _ = writeln!(
                    text,
                    "  {successes} of success and {failures} of failure, {needed_of_each} of either \
                     are needed, of several tasks"
                );
            }
        }
        SuccessEstimate::Fitted(fit) => render_fit(&mut text, fit),
    }
    text += &render_outcomes(seen);
    if !doubtful.is_empty() {
        text += "  least probable successes without a label:\n";
    }
    for (session, title, probability) in doubtful {
        let _ = writeln!(
            text,
            "    {:>3.0} %  {}  {}",
            probability * 100.0,
            one_line(session, 40),
            one_line(title, 60)
        );
    }
    text
}

fn render_fit(text: &mut String, fit: &FittedEstimate) {
    let FittedEstimate { labels, successes, tasks, auc, brier, brier_of_share, .. } = fit;
    let _ = writeln!(text, "  {labels} labels of {tasks} tasks, {successes} of success");
    let interval = fit.auc_interval.map(|it| format!(" [{:.2}, {:.2}]", it.low, it.high));
    let _ = writeln!(
        text,
        "  AUC {auc:.2}{} on tasks that were held out; Brier score {brier:.3}, {brier_of_share:.3} \
         by the share of successes alone",
        interval.unwrap_or_default()
    );
    if !fit.is_useful() {
        *text += "  no better than chance on these labels: nothing is said of single sessions\n";
    }
    *text += "  estimated   observed   sessions\n";
    for bin in &fit.calibration {
        let _ = writeln!(
            text,
            "  {:>7.0} %  {:>7.0} % [{:.0}, {:.0}]   {}",
            bin.forecast * 100.0,
            bin.observed * 100.0,
            bin.interval.low * 100.0,
            bin.interval.high * 100.0,
            bin.count
        );
    }
}
