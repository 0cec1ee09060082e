//! Which layer a value came from.

use serde_json::Value;

/// Which layer a value came from.
#[derive(Debug, Clone, PartialEq, Eq, strum::Display)]
pub enum Origin {
    /// Nobody set it.
    #[strum(to_string = "default")]
    Default,
    /// The file.
    #[strum(to_string = "file, line {line}")]
    File {
        /// Line of the value, from 1.
        line: usize,
    },
    /// A variable.
    #[strum(to_string = "environment, {name}")]
    Environment {
        /// Its name.
        name: String,
    },
    /// A flag.
    #[strum(to_string = "flag, {name}")]
    Flag {
        /// As typed.
        name: String,
    },
}

/// A value that a layer above the file sets.
#[derive(Debug, Clone)]
pub(super) struct Overlay {
    pub(super) pointer: String,
    pub(super) value: Value,
    pub(super) origin: Origin,
}
