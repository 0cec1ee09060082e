//! Records the layer that a configuration value came from.

use serde_json::Value;

/// Layer that a value came from.
#[derive(Debug, Clone, PartialEq, Eq, strum::Display)]
pub enum ValueOrigin {
    /// Not set in any layer.
    #[strum(to_string = "default")]
    Default,
    /// Set in the file.
    #[strum(to_string = "file, line {line}")]
    File {
        /// Line of the value, counted from 1.
        line: usize,
    },
    /// Set by an environment variable.
    #[strum(to_string = "environment, {name}")]
    Environment {
        /// Name of the variable.
        name: String,
    },
    /// Set by a flag.
    #[strum(to_string = "flag, {name}")]
    Flag {
        /// The flag as typed.
        name: String,
    },
}

/// A value set by a layer above the file.
#[derive(Debug, Clone)]
pub(super) struct ValueOverlay {
    pub(super) pointer: String,
    pub(super) value: Value,
    pub(super) origin: ValueOrigin,
}
