//! Names of project files in scenarios and suites, and why such a file cannot be used.

use std::path::{Component, Path};

/// Why a named file cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamedFileFault {
    /// It begins at the root of the file system.
    #[error("the path is absolute")]
    Absolute,
    /// It leads out of the project, by `..` or by a link.
    #[error("the path leaves the project")]
    Outside,
    /// There is none.
    #[error("there is no such file")]
    Missing,
    /// It is hidden from the system under test, or from everybody.
    #[error("the file is hidden from the system under test")]
    Hidden,
    /// It has bytes that are no text.
    #[error("the file is not text")]
    Binary,
    /// It has no text.
    #[error("the file is empty")]
    Empty,
    /// It is there and cannot be read.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
}

/// The fault of a path whatever the project holds.
pub fn path_fault(path: &str) -> Option<NamedFileFault> {
    if Path::new(path).has_root() {
        return Some(NamedFileFault::Absolute);
    }
    let mut depth = 0;
    for component in Path::new(path).components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Some(NamedFileFault::Outside);
            }
        }
    }
    (depth == 0).then_some(NamedFileFault::Missing)
}
