//! Weekly report of graded sessions: Markdown pages with pictures, an index, and a summary for
//! terminals (docs/spec/session-grades.md#library, #weekly-report).
//!
//! Renderers return text; only [`write()`] touches the disk. Untrusted values (tools, sessions, error
//! messages) are escaped by the templates, or by `escape` for terminals.

pub mod finding;
pub mod format;
pub mod lead;
mod pictures;
pub mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::{fs, io};

use askama::Template;

use crate::grade::{GradePatterns, GradeSummary, Proportion, WeeklyReport};
use selftest_text::file::replace;
use selftest_text::wording::plural;
use selftest_text::{escape, wording};

pub use format::{alert_text, coverage_text};
pub use pictures::{errors_picture, trend_picture};

#[derive(Template)]
#[template(path = "weekly/report.md")]
struct WeeklyPage<'a> {
    report: &'a WeeklyReport,
}

/// Renders the report as Markdown. It embeds the pictures that [`write()`] stores next to it.
pub fn render(report: &WeeklyReport) -> Result<String, askama::Error> {
    WeeklyPage { report }.render().map(|text| format!("{}\n", text.trim_end()))
}

#[derive(Template)]
#[template(path = "weekly/index.md")]
struct WeeklyIndex<'a> {
    /// Reports, newest first, each with a flag that is true if its page exists and can be linked.
    reports: &'a [(&'a WeeklyReport, bool)],
}

/// Renders the index with one row per report, in the given order.
fn index(reports: &[(&WeeklyReport, bool)]) -> Result<String, askama::Error> {
    WeeklyIndex { reports }.render().map(|text| format!("{}\n", text.trim_end()))
}

/// Paths of the files intended for readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeeklyPaths {
    /// Page of the week, `<folder>/2026-W47.md`.
    pub page: PathBuf,
    /// Index, `<folder>/index.md`.
    pub index: PathBuf,
}

/// Errors of [`write()`].
#[derive(Debug, thiserror::Error)]
pub enum WeeklyFilesError {
    /// The folder cannot be created, or its path is taken by a file.
    #[error("cannot use {} as a folder for weekly reports: {cause}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// Error from the OS.
        cause: io::Error,
    },
    /// A file cannot be replaced.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error from the OS.
        cause: io::Error,
    },
    /// A template failed to render.
    #[error("cannot render the weekly report: {0}")]
    Render(#[from] askama::Error),
}

/// Writes the report of a week with its pictures, and the index of this report and all `others`.
///
/// `others` may be in any order; a report of the same week is ignored. Each file is replaced as a
/// whole.
pub fn write(
    folder: &Path,
    report: &WeeklyReport,
    others: &[WeeklyReport],
) -> Result<WeeklyPaths, WeeklyFilesError> {
    fs::create_dir_all(folder)
        .map_err(|cause| WeeklyFilesError::Folder { path: folder.to_owned(), cause })?;
    // Processes that write the same week at once need temporary files of different names.
    let writer = std::process::id().to_string();
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        match replace(&path, &writer, text) {
            Ok(()) => Ok(path),
            Err(cause) => Err(WeeklyFilesError::Write { path, cause }),
        }
    };
    let week = report.week;
    // Pictures are written first, so that a page never links to a missing one.
    put(&format!("{week}-trend.svg"), &trend_picture(report)?)?;
    put(&format!("{week}-errors.svg"), &errors_picture(report)?)?;
    let page = put(&format!("{week}.md"), &render(report)?)?;
    let mut all: Vec<&WeeklyReport> =
        others.iter().filter(|other| other.week != week).chain([report]).collect();
    all.sort_by_key(|report| std::cmp::Reverse(report.week));
    // Somebody may have deleted the page of an older week, and a link to it would lead nowhere.
    let has_page = |report: &WeeklyReport| folder.join(format!("{}.md", report.week)).is_file();
    let all: Vec<_> = all.into_iter().map(|report| (report, has_page(report))).collect();
    let index = put("index.md", &index(&all)?)?;
    Ok(WeeklyPaths { page, index })
}

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
