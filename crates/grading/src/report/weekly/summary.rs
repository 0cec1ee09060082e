//! Summarizes the grades of recent days for a terminal (docs/spec/session-grades.md#library,
//! `get_grades_summary`).

use super::format;
use crate::grade::{GradePatterns, GradeSummary, Proportion};
use selftest_text::escape;
use selftest_text::wording::plural;

/// Maximum number of rows in a table.
const MAX_ROWS: usize = 5;
/// Maximum length in bytes of a tool's name.
const MAX_NAME: usize = 40;

/// Renders the summary of the last `days` days: numbers with intervals, the weakest task types, the
/// tools with the most errors and the causes of errors. The text ends with a newline.
pub fn summary_text(days: u32, summary: &GradeSummary, patterns: &GradePatterns) -> String {
    let mut blocks = vec![format!(
        "{} graded in the last {}",
        plural(summary.sessions, "session"),
        plural(days, "day")
    )];
    if summary.sessions > 0 {
        blocks.push(table(&[], numbers(summary)));
        blocks.extend(format::not_tasks(summary.not_tasks));
        blocks.push(table(
            &["Weakest task types", "Sessions", "Checks passed", "Contradicted", "Score"],
            task_types(patterns),
        ));
        let tools = tools(patterns);
        if !tools.is_empty() {
            blocks.push(table(&["Tools with most errors", "Errors", "Calls", "Failed"], tools));
            let causes = error_causes(patterns);
            blocks.push(table(&["Causes of errors", "Count", "Share", "Sessions"], causes));
        }
    }
    blocks.join("\n\n") + "\n"
}

fn numbers(summary: &GradeSummary) -> Vec<Vec<String>> {
    let share = |name: &str, share: &Proportion| {
        let interval = share.interval.map(|_| format!("95 % interval {}", format::interval(share)));
        vec![name.to_owned(), format::share(share), interval.unwrap_or_default()]
    };
    let mean = |name: &str, mean| {
        vec![name.to_owned(), format!("{} of 5", format::mean(mean)), String::new()]
    };
    vec![
        share("Checks passed", &summary.outcomes.checks_passed),
        share("Contradicted", &summary.outcomes.contradicted),
        share("Only claimed", &summary.outcomes.claimed),
        share("Outcome unknown", &summary.outcomes.unknown),
        share("Appear completed", &summary.completion_rate),
        mean("Tool efficiency", summary.avg_tool_efficiency),
        mean("Answer quality", summary.avg_response_quality),
        share("Recovered from errors", &summary.error_recovery_rate),
        vec!["Tool calls failed".to_owned(), format::failed_calls(summary), String::new()],
    ]
}

fn task_types(patterns: &GradePatterns) -> Vec<Vec<String>> {
    let rows = patterns.task_types.iter().take(MAX_ROWS).map(|pattern| {
        vec![
            pattern.task_type.to_string(),
            pattern.sessions.to_string(),
            format::rate(pattern.outcomes.checks_passed.rate),
            format::rate(pattern.outcomes.contradicted.rate),
            format::mean(Some(pattern.score)),
        ]
    });
    rows.collect()
}

fn tools(patterns: &GradePatterns) -> Vec<Vec<String>> {
    let rows = patterns.tools_with_errors().take(MAX_ROWS).map(|tool| {
        vec![
            escape::terminal(&tool.tool, MAX_NAME),
            tool.errors.to_string(),
            tool.calls.to_string(),
            format::rate(tool.error_rate),
        ]
    });
    rows.collect()
}

fn error_causes(patterns: &GradePatterns) -> Vec<Vec<String>> {
    let rows = patterns.error_causes.iter().take(MAX_ROWS).map(|pattern| {
        vec![
            pattern.cause.to_string(),
            pattern.count.to_string(),
            format::rate(Some(pattern.share)),
            pattern.sessions.total().to_string(),
        ]
    });
    rows.collect()
}

/// Aligns rows in columns. The first column is left-aligned; the others are right-aligned if the
/// table has a header and left-aligned if not.
fn table(head: &[&str], mut rows: Vec<Vec<String>>) -> String {
    let is_headed = !head.is_empty();
    if is_headed {
        rows.insert(0, head.iter().map(ToString::to_string).collect());
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = width(column).unwrap_or(0);
            if is_headed && column > 0 {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}
