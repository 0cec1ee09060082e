//! Renders how often tasks had succeeded by what was seen of them.

use std::fmt::Write as _;

use selftest_stats::Interval;

use crate::grade::Proportion;
use crate::grade::outcome_table::{LastMessage, OutcomeRow, OutcomeTable};

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
