//! Where the cases of a run are written down, for annotations beside the lines. Reads nothing.

use std::collections::BTreeMap;

/// The file of the cases, with the line of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseSources {
    /// As a reader of the repository names it; absent where no one file holds the cases.
    file: Option<String>,
    /// Lines, counted from 1, by the id of the scenario.
    lines: BTreeMap<String, u32>,
}

/// The place of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseSource<'a> {
    /// The file.
    pub file: &'a str,
    /// The line, where it is known.
    pub line: Option<u32>,
}

impl CaseSources {
    /// Cases that one file holds.
    pub fn new(file: impl Into<String>, lines: BTreeMap<String, u32>) -> Self {
        Self { file: Some(file.into()), lines }
    }

    /// The place of the case of a scenario.
    pub fn of(&self, id: &str) -> Option<CaseSource<'_>> {
        let file = self.file.as_deref()?;
        Some(CaseSource { file, line: self.lines.get(id).copied() })
    }
}
