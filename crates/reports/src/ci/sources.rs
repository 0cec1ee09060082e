//! Source locations of a run's cases, for annotations next to the lines. Reads no files.

use std::collections::BTreeMap;

/// The file of the cases, with the line of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseSources {
    /// File name relative to the repository; absent unless a single file contains the cases.
    file: Option<String>,
    /// Lines, counted from 1, by scenario ID.
    lines: BTreeMap<String, u32>,
}

/// The source location of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseSource<'a> {
    /// The file.
    pub file: &'a str,
    /// The line, if known.
    pub line: Option<u32>,
}

impl CaseSources {
    /// Creates the locations of cases in one file.
    pub fn new(file: impl Into<String>, lines: BTreeMap<String, u32>) -> Self {
        Self { file: Some(file.into()), lines }
    }

    /// Returns the location of a scenario's case.
    pub fn of(&self, id: &str) -> Option<CaseSource<'_>> {
        let file = self.file.as_deref()?;
        Some(CaseSource { file, line: self.lines.get(id).copied() })
    }
}
