//! Names and values of the `SELFTEST_*` variables; the names are derived from the schema.
//!
//! Reads only the pairs it is given.

use std::cell::LazyCell;

use serde_json::{Number, Value};

use super::diagnostics::{Diagnostic, DiagnosticTarget};
use super::document::schema;
use super::shape::{self, ValueKind};

/// Prefix of all names.
pub const PREFIX: &str = "SELFTEST_";

/// Sets one model for generator, judge and chat assistant.
const MODEL_VARIABLE: &str = "SELFTEST_MODEL";

/// Sets the owner of the skills.
const USER_VARIABLE: &str = "SELFTEST_USER";

/// Variables that are not derived from a key of the file.
const OTHER_VARIABLES: [&str; 12] = [
    MODEL_VARIABLE,
    USER_VARIABLE,
    "SELFTEST_BIN",
    "SELFTEST_CACHE",
    "SELFTEST_CONFIG",
    "SELFTEST_LOG",
    "SELFTEST_MODEL_FILE",
    selftest_clock::NOW_VARIABLE,
    "SELFTEST_OFFLINE",
    "SELFTEST_PROFILE",
    "SELFTEST_SESSION_ID",
    "SELFTEST_SKILL_FILE",
];

/// Returns name and JSON Pointer of every variable that sets a key of the file.
pub fn names() -> Vec<(String, String)> {
    let settable = shape::scalars().iter().filter(|(pointer, _)| pointer != "/version");
    settable.map(|(pointer, _)| (name(pointer), pointer.clone())).collect()
}

fn name(pointer: &str) -> String {
    format!("{PREFIX}{}", pointer[1..].replace('/', "_").to_uppercase())
}

/// Settings from variables, least specific first.
#[derive(Debug, Default)]
pub(super) struct VariableSettings {
    pub(super) overlays: Vec<ValueOverlay>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) warnings: Vec<String>,
}

/// Reads the pairs whose names start with [`PREFIX`]. An empty value counts as unset, because CI
/// systems leave such variables behind.
pub(super) fn read(environment: &[(String, String)]) -> VariableSettings {
    // Lazy: deriving the names from the complete schema is only needed if a variable is set.
    let names = LazyCell::new(names);
    let mut read = VariableSettings::default();
    let mut pairs: Vec<_> = environment
        .iter()
        .filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty())
        .collect();
    let general: [(&str, &[&str]); 2] = [
        (MODEL_VARIABLE, &["/generator/model", "/judge/model", "/sut/chat/model"]),
        (USER_VARIABLE, &["/skills/user_id"]),
    ];
    let general = |name: &str| general.into_iter().find(|(known, _)| *known == name);
    // General names come first, so that specific ones override them.
    pairs.sort_by_key(|(name, _)| (general(name).is_none(), name));
    for (name, text) in pairs {
        let origin = ValueOrigin::Environment { name: name.clone() };
        if let Some((_, pointers)) = general(name) {
            for &pointer in pointers {
                let (pointer, value) = (pointer.to_owned(), text.as_str().into());
                read.overlays.push(ValueOverlay { pointer, value, origin: origin.clone() });
            }
        } else if let Some((_, pointer)) = names.iter().find(|(known, _)| known == name) {
            match parse_value(text, pointer) {
                Ok(value) => {
                    read.overlays.push(ValueOverlay { pointer: pointer.clone(), value, origin });
                }
                Err(error) => read.diagnostics.push(Diagnostic {
                    label: format!("found {}", shape::description(&text.as_str().into())),
                    ..Diagnostic::at(DiagnosticTarget::Variable(name.clone()), error.to_string())
                }),
            }
        } else if !OTHER_VARIABLES.contains(&name.as_str()) {
            let known: Vec<&str> =
                names.iter().map(|(name, _)| name.as_str()).chain(OTHER_VARIABLES).collect();
            let name = selftest_text::one_line(name, 80);
            read.warnings.push(match shape::nearest(&name, &known) {
                Some(near) => {
                    format!("the variable {name} sets nothing; did you mean {near}?")
                }
                None => format!("the variable {name} sets nothing"),
            });
        }
    }
    read
}

/// The text of a variable is not of the type of its key.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("`{key}` must be {expected}")]
struct VariableValueError {
    key: String,
    expected: String,
}

/// Parses the text as the kind of value that the schema expects at the pointer.
fn parse_value(text: &str, pointer: &str) -> Result<Value, VariableValueError> {
    let node = shape::at(schema(), pointer).unwrap_or(&Value::Null);
    let trimmed = text.trim();
    let value = match shape::kind(node) {
        ValueKind::Integer => trimmed.parse::<i64>().ok().map(Value::from),
        // Rust reads `inf` and `NaN` too. JSON has neither, and `from_f64` refuses them.
        ValueKind::Number => trimmed
            .parse::<f64>()
            .ok()
            .and_then(|number| Number::from_f64(number).map(Value::Number)),
        ValueKind::Boolean => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(true.into()),
            "false" | "0" => Some(false.into()),
            _ => None,
        },
        _ => Some(text.into()),
    };
    value.ok_or_else(|| VariableValueError {
        key: shape::path(pointer),
        expected: shape::expectation(node),
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn names_are_unique_and_clash_with_no_other_use() {
        let names = names();
        let unique: std::collections::BTreeSet<_> = names.iter().map(|(name, _)| name).collect();
        assert_eq!(unique.len(), names.len());
        assert!(OTHER_VARIABLES.iter().all(|&other| !unique.contains(&other.to_owned())));
        for known in
            ["SELFTEST_STRICTNESS", "SELFTEST_GENERATOR_MAX_ATTEMPTS", "SELFTEST_JUDGE_MODEL"]
        {
            assert!(unique.contains(&known.to_owned()), "{known}");
        }
        assert!(!unique.contains(&"SELFTEST_VERSION".to_owned()));
    }

    #[test]
    fn values_have_the_kind_of_their_key() {
        assert_eq!(parse_value(" 0.5 ", "/strictness"), Ok(0.5.into()));
        assert_eq!(parse_value("4", "/generator/max_attempts"), Ok(4.into()));
        assert_eq!(parse_value("False", "/allow_minor_format_deviation"), Ok(false.into()));
        assert_eq!(parse_value("7", "/judge/model"), Ok("7".into()));
        assert_eq!(parse_value("text", "/sut/command/protocol"), Ok("text".into()));
        for (text, pointer) in [
            ("NaN", "/strictness"),
            ("1e999", "/strictness"),
            ("4.5", "/generator/max_attempts"),
            ("maybe", "/allow_minor_format_deviation"),
        ] {
            assert!(parse_value(text, pointer).is_err(), "{text}");
        }
    }

    #[test]
    fn unknown_names_are_told_and_other_uses_are_not() {
        let read = read(&pairs(&[
            ("SELFTEST_STRICTNES", "1"),
            ("SELFTEST_ELEPHANT_IN_THE_ROOM", "1"),
            ("SELFTEST_LOG", "debug"),
            ("SELFTEST_STRICTNESS", ""),
            ("PATH", "/bin"),
        ]));
        assert_eq!(
            read.warnings,
            [
                "the variable SELFTEST_ELEPHANT_IN_THE_ROOM sets nothing",
                "the variable SELFTEST_STRICTNES sets nothing; did you mean SELFTEST_STRICTNESS?",
            ]
        );
        assert!(read.overlays.is_empty() && read.diagnostics.is_empty());
    }

    #[test]
    fn a_specific_user_wins_over_the_general_one() {
        let read = read(&pairs(&[("SELFTEST_SKILLS_USER_ID", "b"), ("SELFTEST_USER", "a")]));
        let set: Vec<_> = read.overlays.iter().map(|overlay| overlay.value.as_str()).collect();
        assert_eq!(set, [Some("a"), Some("b")]);
        assert!(read.overlays.iter().all(|overlay| overlay.pointer == "/skills/user_id"));
    }

    #[test]
    fn a_specific_model_wins_over_the_general_one() {
        let read = read(&pairs(&[("SELFTEST_JUDGE_MODEL", "b"), ("SELFTEST_MODEL", "a")]));
        let set: Vec<_> = read
            .overlays
            .iter()
            .map(|overlay| (overlay.pointer.as_str(), overlay.value.as_str().unwrap()))
            .collect();
        assert_eq!(set.last(), Some(&("/judge/model", "b")));
        assert_eq!(set.len(), 4);
    }
}
