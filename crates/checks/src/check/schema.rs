//! The JSON Schema of a check, for editors. It is flat because published schemas contain no
//! references; nested checks of `all`, `any` and `not` are validated when parsed.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::bounds::{MAX, MAX_SECONDS};
use super::parameters::{MAX_ITEMS, MAX_TEXT, MAX_TIMEOUT};
use super::pattern::MAX_PATTERN;
use super::read::MAX_NAME;
use super::{Check, CheckWeight};

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

fn limit(description: &str) -> Value {
    json!({"description": description, "type": "integer", "minimum": 0, "maximum": MAX})
}

fn properties_of_check() -> Vec<(&'static str, &'static str, Value)> {
    let text = || json!({"type": "string", "minLength": 1, "maxLength": MAX_TEXT});
    let documented =
        |description: &str| json!({"description": description, "type": "string", "minLength": 1});
    let pattern = || json!({"type": "string", "minLength": 1, "maxLength": MAX_PATTERN});
    let bounds = || {
        json!({"anyOf": [
            {"type": "integer", "minimum": 0, "maximum": MAX},
            {"type": "object", "minProperties": 1, "additionalProperties": false, "properties": {
                "min": limit("At least so many."), "max": limit("At most so many.")}},
        ]})
    };
    let object = |required: Value, properties: Value| json!({"type": "object", "required": required, "additionalProperties": false, "properties": properties});
    let list = |items: Value| json!({"type": "array", "minItems": 1, "maxItems": MAX_ITEMS, "items": items});
    let checks = || json!({"type": "array", "minItems": 1, "items": {"type": "object"}});
    let seconds = |description: &str| json!({"description": description, "type": "number", "minimum": 0.0, "maximum": MAX_SECONDS});
    let tool = object(
        json!(["name"]),
        json!({
            "name": documented("The tool."),
            "arguments": {"description": "Arguments that a call must have to count.", "type": "object"},
            "min": limit("At least so many calls; 1 where neither is given."),
            "max": limit("At most so many calls."),
        }),
    );
    vec![
        (
            "name",
            "Shown instead of the kind.",
            json!({"type": "string", "minLength": 1, "maxLength": MAX_NAME}),
        ),
        (
            "weight",
            "Share in the score of the case; 1 where none is given.",
            json!({"type": "number", "exclusiveMinimum": 0.0, "maximum": CheckWeight::MAX}),
        ),
        ("contains", "The answer contains this text.", text()),
        ("not_contains", "The answer does not contain this text.", text()),
        ("regex", "The pattern matches somewhere in the answer.", pattern()),
        ("not_regex", "The pattern matches nowhere in the answer.", pattern()),
        (
            "equals",
            "The answer is this text, but for white space around it.",
            json!({"type": "string"}),
        ),
        (
            "similar",
            "The answer is close to a text.",
            object(
                json!(["to", "at_least"]),
                json!({
                    "to": documented("The text."),
                    "at_least": {
                        "description": "The least similarity: 1 less the normalised Levenshtein distance.",
                        "type": "number", "minimum": 0.0, "maximum": 1.0,
                    },
                }),
            ),
        ),
        (
            "occurrences",
            "How often a text occurs in the answer.",
            object(
                json!(["of"]),
                json!({
                    "of": documented("The text."),
                    "min": limit("At least so often."),
                    "max": limit("At most so often."),
                }),
            ),
        ),
        (
            "json",
            "The answer is JSON, or holds it in a fenced block.",
            object(
                json!([]),
                json!({
                    "schema": {"description": "The JSON Schema that it satisfies.", "type": "object"},
                    "pointer": {"description": "The JSON pointer of a value that is there.", "type": "string"},
                    "equals": {"description": "The value at `pointer`, or of the whole."},
                }),
            ),
        ),
        ("lines", "Lines of the answer that are not empty.", bounds()),
        ("items", "Items in the lists of the answer, without those of nested lists.", bounds()),
        ("words", "Words of the answer.", bounds()),
        ("questions", "Questions in the answer.", bounds()),
        ("characters", "Characters of the answer.", bounds()),
        (
            "status",
            "How the task stands after the last answer.",
            json!({"type": "string", "enum": ["AWAITING_RESPONSE", "COMPLETE", "ERROR"]}),
        ),
        ("turns", "How often the system under test answered.", bounds()),
        ("tokens", "Tokens that the case took.", bounds()),
        (
            "seconds",
            "Seconds that the case took.",
            object(
                json!([]),
                json!({"min": seconds("At least so many."), "max": seconds("At most so many.")}),
            ),
        ),
        (
            "command",
            "A program that reads the answer on stdin; its exit code and what it prints decide.",
            object(
                json!(["run"]),
                json!({
                    "run": {
                        "description": "Program and arguments.",
                        "type": "array", "minItems": 1, "maxItems": MAX_ITEMS, "items": {"type": "string"},
                    },
                    "exit_code": {
                        "description": "The exit code that holds; 0 where none is given.",
                        "type": "integer", "minimum": 0, "maximum": 255,
                    },
                    "first_line": {"description": "The first line that it must print.", "type": "string"},
                    "prints": documented("A text that must occur in what it prints."),
                    "timeout_seconds": {
                        "description": "Seconds that it has; 10 where none is given.",
                        "type": "number", "exclusiveMinimum": 0.0, "maximum": MAX_TIMEOUT,
                    },
                }),
            ),
        ),
        ("transcript_regex", "The pattern matches in an answer or in a tool call.", pattern()),
        ("tool_called", "A tool was called.", json!({"anyOf": [text(), tool]})),
        ("tool_not_called", "A tool was not called.", text()),
        ("tools_in_order", "Tools were called in this order.", list(text())),
        (
            "skill_loaded",
            "The agent loaded a skill: by a tool for skills, or by reading its SKILL.md.",
            text(),
        ),
        ("file_created", "A file was created.", text()),
        ("file_changed", "A file that was there was changed.", text()),
        ("file_deleted", "A file was deleted.", text()),
        ("file_unchanged", "A file is as it was before.", text()),
        ("file_exists", "There is a file after the run.", text()),
        (
            "file_contains",
            "A file holds a text after the run.",
            object(
                json!(["path", "text"]),
                json!({
                    "path": documented("Path from the project's root."),
                    "text": documented("The text."),
                }),
            ),
        ),
        (
            "only_changes",
            "Nothing but these files was created, changed or deleted.",
            json!({"type": "array", "maxItems": MAX_ITEMS, "items": text()}),
        ),
        ("unknown", "A demand that nobody can decide: never met, and never not.", text()),
        ("all", "Each of these checks holds.", checks()),
        ("any", "At least one of these checks holds.", checks()),
        ("not", "This check does not hold.", json!({"type": "object"})),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CheckKind;

    #[test]
    fn every_kind_is_in_the_schema() {
        let keys: Vec<&str> = properties_of_check().iter().map(|(key, ..)| *key).collect();
        let mut known = vec!["name", "weight"];
        known.extend(CheckKind::NAMES);
        let sorted = |mut all: Vec<&'static str>| {
            all.sort_unstable();
            all
        };
        assert_eq!(sorted(keys), sorted(known));
    }
}
