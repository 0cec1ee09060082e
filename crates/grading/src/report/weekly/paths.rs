//! What the files of the weekly reports are called. Touches no disk.

use std::path::{Path, PathBuf};

use crate::grade::Week;

/// Where the report of a week is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeeklyPaths {
    /// `<folder>/2026-W47.md`.
    pub page: PathBuf,
    /// `<folder>/2026-W47-trend.svg`.
    pub trend: PathBuf,
    /// `<folder>/2026-W47-errors.svg`.
    pub errors: PathBuf,
    /// `<folder>/index.md`.
    pub index: PathBuf,
}

impl WeeklyPaths {
    pub(super) fn new(folder: &Path, week: Week) -> Self {
        Self {
            page: folder.join(page_file(week)),
            trend: folder.join(trend_file(week)),
            errors: folder.join(errors_file(week)),
            index: folder.join("index.md"),
        }
    }
}

pub(super) fn page_file(week: Week) -> String {
    format!("{week}.md")
}

pub(super) fn trend_file(week: Week) -> String {
    format!("{week}-trend.svg")
}

pub(super) fn errors_file(week: Week) -> String {
    format!("{week}-errors.svg")
}
