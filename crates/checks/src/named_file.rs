//! Validation of project file names in scenarios and suites.

use std::path::{Component, Path};

/// A reason why a named file cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamedFileError {
    /// The path is absolute.
    #[error("the path is absolute")]
    Absolute,
    /// The path leaves the project, through `..` or a symlink.
    #[error("the path leaves the project")]
    Outside,
    /// The file is missing.
    #[error("there is no such file")]
    Missing,
    /// The file is hidden from the system under test, or from everything.
    #[error("the file is hidden from the system under test")]
    Hidden,
    /// The file contains bytes that are not text.
    #[error("the file is not text")]
    Binary,
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file exists but cannot be read.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
}

/// Checks a path for faults that do not depend on the project's contents.
pub fn path_error(path: &str) -> Option<NamedFileError> {
    if Path::new(path).has_root() {
        return Some(NamedFileError::Absolute);
    }
    let mut depth = 0;
    for component in Path::new(path).components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Some(NamedFileError::Outside);
            }
        }
    }
    // An empty path, or only dots, names no file.
    (depth == 0).then_some(NamedFileError::Missing)
}
