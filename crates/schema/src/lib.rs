//! JSON Schemas, compiled once, and validation of values against them. Never fetches remote
//! references.
//!
//! This is the only crate that uses `jsonschema`: its code is generic and would otherwise be
//! compiled and optimised again in each crate that calls it.
//!
//! ```
//! use selftest_schema::Schema;
//! use serde_json::json;
//!
//! let schema = Schema::compile(&json!({ "type": "object", "required": ["score"] }))?;
//! assert!(schema.is_valid(&json!({ "score": 1 })));
//! assert_eq!(schema.errors(&json!([])).next().unwrap().masked_message, r#"the value is not of type "object""#);
//! # Ok::<(), selftest_schema::SchemaError>(())
//! ```

use std::fmt;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// Maximum size in bytes of a compiled schema pattern, and of its automaton.
const MAX_PATTERN: usize = 1 << 20;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(Validator);

/// A validation error of a value, or an error in the schema itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// JSON pointer to the invalid value; empty for the root.
    pub pointer: String,
    /// Category of the error.
    pub kind: SchemaErrorKind,
    /// Error message that includes the value, which may be untrusted and long.
    pub message: String,
    /// The same message with `the value` in place of the value.
    pub masked_message: String,
}

/// Category of a validation error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaErrorKind {
    /// An object has keys that the schema does not allow.
    UnknownKeys(Vec<String>),
    /// An object lacks a required key.
    MissingKey(String),
    /// Any other error.
    WrongValue,
}

impl Schema {
    /// Compiles a schema for the draft that it names, or 2020-12 by default.
    ///
    /// Patterns match in linear time on any input, and external references are not resolved.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        // The linear-time `regex` engine: the default one backtracks, and both schemas and values
        // can be untrusted.
        let patterns = PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
        let options = jsonschema::options().with_pattern_options(patterns).offline();
        options.build(schema).map(Self).map_err(|error| SchemaError::from_validation(&error))
    }

    /// Validates a value and returns its errors, computed lazily.
    pub fn errors<'v>(&'v self, value: &'v Value) -> Box<dyn Iterator<Item = SchemaError> + 'v> {
        Box::new(self.0.iter_errors(value).map(|error| SchemaError::from_validation(&error)))
    }

    /// Returns true if a value is valid.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }
}

impl SchemaError {
    fn from_validation(error: &ValidationError<'_>) -> Self {
        Self {
            pointer: error.instance_path().to_string(),
            kind: match error.kind() {
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    SchemaErrorKind::UnknownKeys(unexpected.clone())
                }
                ValidationErrorKind::Required { property } => {
                    SchemaErrorKind::MissingKey(property.as_str().unwrap_or_default().to_owned())
                }
                _ => SchemaErrorKind::WrongValue,
            },
            message: error.to_string(),
            masked_message: error.masked_with("the value").to_string(),
        }
    }
}

impl fmt::Display for SchemaError {
    /// Writes the location and the message without the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.masked_message),
            place => write!(f, "{place}: {}", self.masked_message),
        }
    }
}

impl std::error::Error for SchemaError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_say_where_and_what() {
        let schema = Schema::compile(&json!({
            "type": "object",
            "required": ["a"],
            "properties": { "a": { "type": "integer" }, "b": { "pattern": "^x" } },
            "additionalProperties": false,
        }))
        .unwrap();
        assert!(schema.is_valid(&json!({ "a": 1, "b": "xy" })));
        let faults = |value: &Value| -> Vec<(SchemaErrorKind, String)> {
            schema.errors(value).map(|fault| (fault.kind.clone(), fault.to_string())).collect()
        };
        let unknown = SchemaErrorKind::UnknownKeys(vec!["c".to_owned()]);
        assert_eq!(faults(&json!({ "a": 1, "c": 2 }))[0].0, unknown);
        assert_eq!(faults(&json!({}))[0].0, SchemaErrorKind::MissingKey("a".to_owned()));
        let wrong = faults(&json!({ "a": "secret", "b": "no" }));
        assert_eq!(wrong.len(), 2);
        assert_eq!(wrong[0].1, "/a: the value is not of type \"integer\"");
        assert!(wrong.iter().all(|(kind, _)| *kind == SchemaErrorKind::WrongValue));
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        let fault = Schema::compile(&json!({ "type": "no type" })).unwrap_err();
        assert_eq!(fault.pointer, "/type");
        assert!(Schema::compile(&json!({ "$ref": "https://example.org/x.json" })).is_err());
        assert!(Schema::compile(&json!({ "pattern": "(?=ahead)" })).is_err());
    }
}
