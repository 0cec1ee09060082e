//! JSON Schemas: compiled once, and the faults of a value by them. Fetches nothing, and says nothing
//! of what follows from a fault.
//!
//! The one crate that uses `jsonschema`: its code is generic, and would be compiled and optimised
//! again in each crate that calls it.
//!
//! ```
//! use selftest_schema::Schema;
//! use serde_json::json;
//!
//! let schema = Schema::compile(&json!({ "type": "object", "required": ["score"] }))?;
//! assert!(schema.is_met_by(&json!({ "score": 1 })));
//! assert_eq!(schema.faults(&json!([])).next().unwrap().masked, r#"the value is not of type "object""#);
//! # Ok::<(), selftest_schema::SchemaFault>(())
//! ```

use std::fmt;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// Bytes that a compiled pattern of a schema may have, and its automaton.
const MAX_PATTERN: usize = 1 << 20;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(Validator);

/// A fault of a value by a schema, or of a schema as such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFault {
    /// JSON pointer of the value at fault; empty for the whole.
    pub place: String,
    /// The fault.
    pub kind: FaultKind,
    /// The fault in words, with the value in them, which may be foreign and long.
    pub words: String,
    /// The same with `the value` in its place.
    pub masked: String,
}

/// The kind of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// An object has keys that it must not have.
    UnknownKeys(Vec<String>),
    /// An object lacks a key.
    MissingKey(String),
    /// Any other.
    WrongValue,
}

impl Schema {
    /// Compiles a schema: of the draft that it names, else of 2020-12. Patterns take time in
    /// proportion to the text, whatever the text is, and references lead to nothing outside.
    pub fn compile(schema: &Value) -> Result<Self, SchemaFault> {
        let patterns = PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
        let options = jsonschema::options().with_pattern_options(patterns).offline();
        options.build(schema).map(Self).map_err(|error| SchemaFault::of(&error))
    }

    /// The faults of a value, each found when it is asked for.
    pub fn faults<'v>(&'v self, value: &'v Value) -> Box<dyn Iterator<Item = SchemaFault> + 'v> {
        Box::new(self.0.iter_errors(value).map(|error| SchemaFault::of(&error)))
    }

    /// Whether a value has no faults.
    pub fn is_met_by(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }
}

impl SchemaFault {
    fn of(error: &ValidationError<'_>) -> Self {
        Self {
            place: error.instance_path().to_string(),
            kind: match error.kind() {
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    FaultKind::UnknownKeys(unexpected.clone())
                }
                ValidationErrorKind::Required { property } => {
                    FaultKind::MissingKey(property.as_str().unwrap_or_default().to_owned())
                }
                _ => FaultKind::WrongValue,
            },
            words: error.to_string(),
            masked: error.masked_with("the value").to_string(),
        }
    }
}

impl fmt::Display for SchemaFault {
    /// The place and the words without the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => f.write_str(&self.masked),
            place => write!(f, "{place}: {}", self.masked),
        }
    }
}

impl std::error::Error for SchemaFault {}

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
        assert!(schema.is_met_by(&json!({ "a": 1, "b": "xy" })));
        let faults = |value: &Value| -> Vec<(FaultKind, String)> {
            schema.faults(value).map(|fault| (fault.kind.clone(), fault.to_string())).collect()
        };
        let unknown = FaultKind::UnknownKeys(vec!["c".to_owned()]);
        assert_eq!(faults(&json!({ "a": 1, "c": 2 }))[0].0, unknown);
        assert_eq!(faults(&json!({}))[0].0, FaultKind::MissingKey("a".to_owned()));
        let wrong = faults(&json!({ "a": "secret", "b": "no" }));
        assert_eq!(wrong.len(), 2);
        assert_eq!(wrong[0].1, "/a: the value is not of type \"integer\"");
        assert!(wrong.iter().all(|(kind, _)| *kind == FaultKind::WrongValue));
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        let fault = Schema::compile(&json!({ "type": "no type" })).unwrap_err();
        assert_eq!(fault.place, "/type");
        assert!(Schema::compile(&json!({ "$ref": "https://example.org/x.json" })).is_err());
        assert!(Schema::compile(&json!({ "pattern": "(?=ahead)" })).is_err());
    }
}
