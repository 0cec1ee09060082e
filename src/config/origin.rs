//! Which layer a value came from.

use std::fmt;

use serde_json::Value;

/// Which layer a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The file.
    File {
        /// Line of the value, from 1.
        line: usize,
    },
    /// A variable.
    Environment {
        /// Its name.
        name: String,
    },
    /// A flag.
    Flag {
        /// As typed.
        name: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { line } => write!(f, "file, line {line}"),
            Origin::Environment { name } => write!(f, "environment, {name}"),
            Origin::Flag { name } => write!(f, "flag, {name}"),
        }
    }
}

/// A value that a layer above the file sets.
#[derive(Debug, Clone)]
pub(super) struct Overlay {
    pub(super) pointer: String,
    pub(super) value: Value,
    pub(super) origin: Origin,
}
