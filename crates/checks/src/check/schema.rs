//! The JSON Schema of a check, for editors. It is flat because published schemas contain no
//! references; nested checks of `all`, `any` and `not` are validated when parsed.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use strum::VariantNames as _;

use super::bounds::{MAX, MAX_SECONDS};
use super::parameters::{MAX_ITEMS, MAX_TEXT, MAX_TIMEOUT};
use super::pattern::MAX_PATTERN;
use super::read::MAX_NAME;
use super::{
    Check, CheckKind, CheckPattern, CheckText, CheckWeight, CommandCheck, CommandRunCheck,
    CountBounds, DataFormat, DurationBounds, FileDataCheck, FilePatternCheck, FileTextCheck,
    JsonCheck, OccurrenceBounds, PathGlobs, SimilarityCheck, ToolCallCheck, ToolNames,
};
use crate::task_status::TaskStatus;

/// The value of a kind of check.
pub(super) trait CheckParameter: Serialize + DeserializeOwned {
    /// Returns the JSON Schema of the value in a file.
    fn value_schema() -> Value;
}

impl JsonSchema for Check {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Check".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        for (key, description, schema) in properties_of_check() {
            let mut property = Map::new();
            property.insert("description".to_owned(), json!(description));
            if let Value::Object(schema) = schema {
                property.extend(schema);
            }
            properties.insert(key.to_owned(), Value::Object(property));
        }
        json_schema!({
            "type": "object",
            "description": "One kind, with an optional name and weight.",
            "properties": properties,
            "minProperties": 1,
            "maxProperties": 3,
            "additionalProperties": false,
        })
    }
}

fn properties_of_check() -> Vec<(&'static str, String, Value)> {
    let name = json!({"type": "string", "minLength": 1, "maxLength": MAX_NAME});
    let weight = json!({"type": "number", "exclusiveMinimum": 0.0, "maximum": CheckWeight::MAX});
    let mut properties = vec![
        ("name", "Name displayed instead of the kind.".to_owned(), name),
        ("weight", "Weight in the score of the case, 1 by default.".to_owned(), weight),
    ];
    properties.extend(CheckKind::documented());
    properties
}

/// Returns the schema of a mapping that has these keys and no others.
pub(super) fn mapping(required: &[&str], properties: &Value) -> Value {
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

fn described_text(description: &str) -> Value {
    json!({"description": description, "type": "string", "minLength": 1})
}

const FILE_OR_GLOB: &str =
    "Path relative to the project root. With `*`, one matching file is enough.";

fn count_limit(description: &str) -> Value {
    json!({"description": description, "type": "integer", "minimum": 0, "maximum": MAX})
}

impl CheckParameter for CheckText {
    fn value_schema() -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": MAX_TEXT})
    }
}

impl CheckParameter for String {
    fn value_schema() -> Value {
        json!({"type": "string"})
    }
}

impl CheckParameter for CheckPattern {
    fn value_schema() -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": MAX_PATTERN})
    }
}

impl CheckParameter for CountBounds {
    fn value_schema() -> Value {
        let limits = json!({"min": count_limit("Minimum."), "max": count_limit("Maximum.")});
        json!({"anyOf": [
            {"type": "integer", "minimum": 0, "maximum": MAX},
            {"type": "object", "minProperties": 1, "additionalProperties": false,
                "properties": limits},
        ]})
    }
}

impl CheckParameter for DurationBounds {
    fn value_schema() -> Value {
        let seconds = |description: &str| json!({"description": description, "type": "number", "minimum": 0.0, "maximum": MAX_SECONDS});
        mapping(&[], &json!({"min": seconds("Minimum."), "max": seconds("Maximum.")}))
    }
}

impl CheckParameter for TaskStatus {
    fn value_schema() -> Value {
        json!({"type": "string", "enum": ["AWAITING_RESPONSE", "COMPLETE", "ERROR"]})
    }
}

impl CheckParameter for SimilarityCheck {
    fn value_schema() -> Value {
        let at_least = json!({
            "description": "Minimum similarity: 1 minus the normalised Levenshtein distance.",
            "type": "number", "minimum": 0.0, "maximum": 1.0,
        });
        let properties = json!({"to": described_text("The text."), "at_least": at_least});
        mapping(&["to", "at_least"], &properties)
    }
}

impl CheckParameter for OccurrenceBounds {
    fn value_schema() -> Value {
        let properties = json!({
            "of": described_text("The text."),
            "min": count_limit("Minimum number of occurrences."),
            "max": count_limit("Maximum number of occurrences."),
        });
        mapping(&["of"], &properties)
    }
}

impl CheckParameter for JsonCheck {
    fn value_schema() -> Value {
        let properties = json!({
            "schema": {"description": "JSON Schema that the JSON must satisfy.", "type": "object"},
            "pointer": {"description": "JSON Pointer of a value that must exist.",
                "type": "string"},
            "equals": {"description": "Expected value at `pointer`, or of the whole document."},
        });
        mapping(&[], &properties)
    }
}

impl CheckParameter for CommandCheck {
    fn value_schema() -> Value {
        let properties = json!({
            "run": {
                "description": "Program and arguments.",
                "type": "array", "minItems": 1, "maxItems": MAX_ITEMS, "items": {"type": "string"},
            },
            "exit_code": {
                "description": "Exit code that means success, 0 by default.",
                "type": "integer", "minimum": 0, "maximum": 255,
            },
            "first_line": {"description": "First line that it must print.", "type": "string"},
            "prints": described_text("Text that its output must contain."),
            "matches": described_text("Pattern that its output must match."),
            "undecided_exit": {
                "description": "Exit code by which the program says that it could not decide.",
                "type": "integer", "minimum": 0, "maximum": 255,
            },
            "timeout_seconds": {
                "description": "Maximum duration in seconds, 10 by default.",
                "type": "number", "exclusiveMinimum": 0.0, "maximum": MAX_TIMEOUT,
            },
        });
        mapping(&["run"], &properties)
    }
}

impl CheckParameter for ToolCallCheck {
    fn value_schema() -> Value {
        let properties = json!({
            "name": described_text("Name of the tool."),
            "arguments": {"description": "Arguments that a call must have to count.",
                "type": "object"},
            "matches": described_text("Pattern that a call must match to count: in a text among its arguments, or in the arguments as JSON."),
            "min": count_limit("Minimum number of calls, 1 if neither is given."),
            "max": count_limit("Maximum number of calls."),
        });
        json!({"anyOf": [CheckText::value_schema(), mapping(&["name"], &properties)]})
    }
}

impl CheckParameter for CommandRunCheck {
    fn value_schema() -> Value {
        let properties = json!({
            "matches": described_text("Pattern that a command must match to count."),
            "min": count_limit("Minimum number of commands, 1 if neither is given."),
            "max": count_limit("Maximum number of commands."),
        });
        json!({"anyOf": [CheckPattern::value_schema(), mapping(&["matches"], &properties)]})
    }
}

impl CheckParameter for ToolNames {
    fn value_schema() -> Value {
        let name = CheckText::value_schema();
        json!({"type": "array", "minItems": 1, "maxItems": MAX_ITEMS, "items": name})
    }
}

impl CheckParameter for FileTextCheck {
    fn value_schema() -> Value {
        let properties = json!({
            "path": described_text(FILE_OR_GLOB),
            "text": described_text("The text."),
        });
        mapping(&["path", "text"], &properties)
    }
}

impl CheckParameter for FilePatternCheck {
    fn value_schema() -> Value {
        let properties = json!({
            "path": described_text(FILE_OR_GLOB),
            "pattern": described_text("The pattern."),
        });
        mapping(&["path", "pattern"], &properties)
    }
}

impl CheckParameter for FileDataCheck {
    fn value_schema() -> Value {
        let mut count = CountBounds::value_schema();
        count["description"] = "Number of items, members or characters.".into();
        let properties = json!({
            "path": described_text(FILE_OR_GLOB),
            "format": {"description": "Format of the file, by its extension if absent.",
                "type": "string", "enum": DataFormat::VARIANTS},
            "pointer": {"description": "JSON Pointer of the value; the whole file if absent.",
                "type": "string"},
            "absent": {"description": "There is no such value.", "type": "boolean"},
            "equals": {"description": "Expected value."},
            "matches": described_text("Pattern that the value matches."),
            "count": count,
            "schema": {"description": "JSON Schema that the value satisfies.", "type": "object"},
        });
        mapping(&["path"], &properties)
    }
}

impl CheckParameter for PathGlobs {
    fn value_schema() -> Value {
        json!({"type": "array", "maxItems": MAX_ITEMS, "items": CheckText::value_schema()})
    }
}
