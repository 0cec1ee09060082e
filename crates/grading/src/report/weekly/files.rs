//! Writes the files of the weekly reports: Markdown pages with pictures, and an index. Only
//! [`write`] touches the disk.

use std::path::{Path, PathBuf};
use std::{fs, io};

use askama::Template;

use super::pictures::{errors_picture, trend_picture};
use super::{finding, format, lead, table};
use crate::grade::WeeklyReport;
use selftest_text::file::replace;
use selftest_text::wording;

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
pub(super) fn index(reports: &[(&WeeklyReport, bool)]) -> Result<String, askama::Error> {
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
    let has_page = |report: &WeeklyReport| folder.join(format!("{}.md", report.week)).is_file();
    let all: Vec<_> = all.into_iter().map(|report| (report, has_page(report))).collect();
    let index = put("index.md", &index(&all)?)?;
    Ok(WeeklyPaths { page, index })
}
