//! The grades of some days for a terminal (docs/spec/session-grades.md#library,
//! `get_grades_summary`). Returns text and prints nothing.

use super::format;
use crate::grade::{GradeSummary, Patterns, Share};
use selftest_text::escape;
use selftest_text::wording::plural;

/// Rows of a table.
const ROWS: usize = 5;
/// Bytes of a tool's name.
const NAME: usize = 40;

/// The summary of the sessions of the last `days` days, with intervals, the weakest task types, the
/// tools with most errors and the classes of errors. Ends with a line feed.
pub fn summary_text(days: u32, summary: &GradeSummary, patterns: &Patterns) -> String {
    let mut blocks = vec![format!(
        "{} graded in the last {}",
        plural(summary.sessions, "session"),
        plural(days, "day")
    )];
    if summary.sessions > 0 {
        blocks.push(table(&[], &numbers(summary)));
        blocks.push(table(
            &["Weakest task types", "Sessions", "Completed", "Score"],
            &task_types(patterns),
        ));
        let tools = tools(patterns);
        if !tools.is_empty() {
            blocks.push(table(&["Tools with most errors", "Errors", "Calls", "Failed"], &tools));
            let classes = error_classes(patterns);
            blocks.push(table(&["Errors", "Count", "Share", "Sessions"], &classes));
        }
    }
    blocks.join("\n\n") + "\n"
}

fn numbers(summary: &GradeSummary) -> Vec<[String; 4]> {
    let share = |name: &str, share: &Share| {
        let interval = match share.interval {
            Some(_) => format!("95 % interval {}", format::interval(share)),
            None => String::new(),
        };
        [name.to_owned(), format::share(share), interval, String::new()]
    };
    let mean = |name: &str, mean| {
        [name.to_owned(), format!("{} of 5", format::mean(mean)), String::new(), String::new()]
    };
    vec![
        share("Task completed", &summary.completion_rate),
        mean("Tool efficiency", summary.avg_tool_efficiency),
        mean("Answer quality", summary.avg_response_quality),
        share("Recovered from errors", &summary.error_recovery_rate),
        [
            "Tool calls failed".to_owned(),
            format::failed_calls(summary),
            String::new(),
            String::new(),
        ],
    ]
}

fn task_types(patterns: &Patterns) -> Vec<[String; 4]> {
    let rows = patterns.task_types.iter().take(ROWS).map(|pattern| {
        [
            pattern.task_type.to_string(),
            pattern.sessions.to_string(),
            format::rate(pattern.completion_rate.rate),
            format::mean(Some(pattern.score)),
        ]
    });
    rows.collect()
}

fn tools(patterns: &Patterns) -> Vec<[String; 4]> {
    let erring = patterns.tools_with_errors().take(ROWS);
    let rows = erring.map(|tool| {
        [
            escape::terminal(&tool.tool, NAME),
            tool.errors.to_string(),
            tool.calls.to_string(),
            format::rate(tool.error_rate),
        ]
    });
    rows.collect()
}

fn error_classes(patterns: &Patterns) -> Vec<[String; 4]> {
    let rows = patterns.error_classes.iter().take(ROWS).map(|pattern| {
        [
            pattern.class.to_string(),
            pattern.count.to_string(),
            format::rate(Some(pattern.share)),
            pattern.sessions.to_string(),
        ]
    });
    rows.collect()
}

/// Columns under their heads: the first to the left, the others to the right under heads, to
/// the left without.
fn table(head: &[&str], rows: &[[String; 4]]) -> String {
    let mut all: Vec<[String; 4]> = Vec::new();
    if let Ok(head) = <[&str; 4]>::try_from(head) {
        all.push(head.map(str::to_owned));
    }
    all.extend_from_slice(rows);
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 4] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let lines = all.iter().map(|row| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 || head.is_empty() {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}
