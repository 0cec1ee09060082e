//! The files of the weekly reports: the only place of this folder that touches the disk.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::paths::{WeeklyPaths, page_file};
use super::{errors, index, page, trend};
use crate::grade::WeeklyReport;
use selftest_text::file::replace;

/// Why a weekly report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WeeklyFilesError {
    /// The folder cannot be made, or something else is in its place.
    #[error("cannot use {} as a folder for weekly reports: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
    /// A file cannot be replaced.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
    /// A template failed.
    #[error("cannot render the weekly report: {0}")]
    Render(#[from] askama::Error),
}

/// Writes the report of a week with its pictures, and the index of it and all `others` (in any
/// order; one of the same week is left aside). Each file is replaced as a whole.
pub fn write(
    folder: &Path,
    report: &WeeklyReport,
    others: &[WeeklyReport],
) -> Result<WeeklyPaths, WeeklyFilesError> {
    let paths = WeeklyPaths::new(folder, report.week);
    fs::create_dir_all(folder)
        .map_err(|cause| WeeklyFilesError::Folder { path: folder.to_owned(), cause })?;
    let writer = std::process::id().to_string();
    let put = |path: &Path, text: &str| {
        replace(path, &writer, text)
            .map_err(|cause| WeeklyFilesError::Write { path: path.to_owned(), cause })
    };
    // The pictures first, so that no page shows one that is not there.
    put(&paths.trend, &trend::render(report)?)?;
    put(&paths.errors, &errors::render(report)?)?;
    put(&paths.page, &page::render(report)?)?;
    let mut all: Vec<&WeeklyReport> =
        others.iter().filter(|other| other.week != report.week).chain([report]).collect();
    all.sort_by_key(|report| std::cmp::Reverse(report.week));
    let has_page = |report: &WeeklyReport| folder.join(page_file(report.week)).is_file();
    put(&paths.index, &index::render(&all, has_page)?)?;
    Ok(paths)
}
