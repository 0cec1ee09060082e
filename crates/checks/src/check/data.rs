//! Checks on data: JSON in an answer, and files after the run as text or as JSON, YAML, TOML or CSV.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decide::{equal, json_values};
use super::{CheckPattern, CheckText, CheckValueError, CountBounds};
use selftest_schema::Schema;

/// Maximum size of a schema, in bytes.
pub(super) const MAX_SCHEMA: usize = 64 << 10;
/// Maximum nesting depth of a schema.
pub(super) const MAX_SCHEMA_DEPTH: usize = 64;

/// Requirements on the JSON of an answer. If empty, the answer only has to be JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonCheck {
    /// Schema that the JSON must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<JsonSchemaCheck>,
    /// JSON Pointer of a value that must exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<JsonPointerCheck>,
    /// Expected value at `pointer`, or of the whole document. Numbers compare by value.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_present"
    )]
    pub equals: Option<Value>,
}

impl JsonCheck {
    /// Returns the expected value and that of the answer as indented text, with the members of the
    /// latter in the order of the former. `None` if they are equal, or one is missing.
    pub fn sides(&self, answer: &str) -> Option<[String; 2]> {
        let wanted = self.equals.as_ref()?;
        let whole = json_values(answer).into_iter().next()?;
        let found = whole.pointer(self.pointer.as_ref().map_or("", JsonPointerCheck::as_str))?;
        let sides = [wanted, &in_order_of(found, wanted)].map(|value| format!("{value:#}"));
        (!equal(found, wanted)).then_some(sides)
    }
}

/// Returns a value with the members of its objects in the order of another value.
fn in_order_of(value: &Value, other: &Value) -> Value {
    match (value, other) {
        (Value::Object(value), Value::Object(other)) => {
            let known = other.iter().filter_map(|(key, other)| {
                Some((key.clone(), in_order_of(value.get(key)?, other)))
            });
            let rest = value.iter().filter(|(key, _)| !other.contains_key(*key));
            known.chain(rest.map(|(key, value)| (key.clone(), value.clone()))).collect()
        }
        (Value::Array(value), Value::Array(other)) => {
            // The answer's list may be the longer one, and no item of it may be lost.
            let others = other.iter().chain(std::iter::repeat(&Value::Null));
            value.iter().zip(others).map(|(value, other)| in_order_of(value, other)).collect()
        }
        (value, _) => value.clone(),
    }
}

/// Keeps an explicit `equals: null` apart from a missing key; it requires null.
pub(super) fn deserialize_present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A JSON Pointer: empty, or beginning with `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JsonPointerCheck(String);

impl JsonPointerCheck {
    /// Returns the pointer.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for JsonPointerCheck {
    type Error = CheckValueError;

    fn try_from(pointer: String) -> Result<Self, CheckValueError> {
        if pointer.is_empty() || pointer.starts_with('/') {
            Ok(Self(pointer))
        } else {
            Err(CheckValueError::JsonPointer(selftest_text::one_line(&pointer, 60)))
        }
    }
}

impl From<JsonPointerCheck> for String {
    fn from(pointer: JsonPointerCheck) -> Self {
        pointer.0
    }
}

/// A JSON Schema without external references.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct JsonSchemaCheck {
    source: Value,
    schema: Arc<Schema>,
}

impl JsonSchemaCheck {
    /// Compiles a schema; fails on external references and invalid schemas. Fetches nothing.
    pub fn new(source: Value) -> Result<Self, CheckValueError> {
        if !source.is_object() {
            return Err(CheckValueError::SchemaShape);
        }
        if source.to_string().len() > MAX_SCHEMA {
            return Err(CheckValueError::LargeSchema);
        }
        check_references(&source, 0)?;
        if is_circular(&source) {
            return Err(CheckValueError::CircularSchema);
        }
        let schema = Schema::compile(&source).map_err(|fault| {
            CheckValueError::Schema(selftest_text::one_line(&fault.message, 200))
        })?;
        Ok(Self { source, schema: Arc::new(schema) })
    }

    /// Returns the first violation in a value, or `None` if it satisfies the schema.
    pub fn first_fault(&self, value: &Value) -> Option<String> {
        let fault = self.schema.errors(value).next()?;
        let place = if fault.pointer.is_empty() { "the whole" } else { &fault.pointer };
        Some(format!("{place}: {}", fault.masked_message))
    }
}

/// Rejects external references, and nested `$id`s, which change what references resolve to.
fn check_references(node: &Value, depth: usize) -> Result<(), CheckValueError> {
    if depth > MAX_SCHEMA_DEPTH {
        return Err(CheckValueError::DeepSchema);
    }
    match node {
        Value::Array(items) => items.iter().try_for_each(|item| check_references(item, depth + 1)),
        Value::Object(members) => members.iter().try_for_each(|(key, member)| {
            if let Value::String(target) = member
                && is_reference(key)
                && !target.starts_with('#')
            {
                let shown = selftest_text::escape::terminal(target, 80);
                return Err(CheckValueError::ExternalReference(shown));
            }
            // A nested `$id` changes the base that references below it are resolved against.
            if key == "$id" && depth > 0 && member.is_string() {
                return Err(CheckValueError::NestedId);
            }
            check_references(member, depth + 1)
        }),
        _ => Ok(()),
    }
}

/// Keywords whose subschemas apply to the same value as the schema itself.
const IN_PLACE: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// Returns true if a chain of references returns to its start without descending into the value.
/// Validation would then recurse forever.
fn is_circular(root: &Value) -> bool {
    // A cycle contains the root or the target of some reference.
    let mut starts = vec![String::from("#")];
    references(root, &mut starts);
    starts.iter().any(|start| {
        let (mut open, mut seen) = (vec![start.clone()], BTreeSet::new());
        while let Some(reference) = open.pop() {
            let mut next = Vec::new();
            in_place(resolve(root, &reference), &mut next);
            for reference in next {
                if reference == *start {
                    return true;
                }
                if seen.insert(reference.clone()) {
                    open.push(reference);
                }
            }
        }
        false
    })
}

/// Collects every reference in a schema.
fn references(node: &Value, found: &mut Vec<String>) {
    match node {
        Value::Array(items) => {
            for item in items {
                references(item, found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(target) if is_reference(key) => found.push(target.clone()),
                    _ => references(member, found),
                }
            }
        }
        _ => {}
    }
}

/// Collects the references that apply to the same value as the schema.
fn in_place(node: &Value, found: &mut Vec<String>) {
    for (key, member) in node.as_object().into_iter().flatten() {
        match member {
            Value::String(target) if is_reference(key) => found.push(target.clone()),
            Value::Array(items) if IN_PLACE.contains(&key.as_str()) => {
                for item in items {
                    in_place(item, found);
                }
            }
            // `dependentSchemas` maps property names to schemas; the names are not keywords.
            Value::Object(schemas) if key == "dependentSchemas" => {
                for schema in schemas.values() {
                    in_place(schema, found);
                }
            }
            Value::Object(_) if IN_PLACE.contains(&key.as_str()) => in_place(member, found),
            _ => {}
        }
    }
}

fn is_reference(key: &str) -> bool {
    matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef")
}

/// Resolves a reference to a schema. Anchors and encoded pointers resolve to the root, which errs
/// on the side of rejecting.
fn resolve<'a>(root: &'a Value, reference: &str) -> &'a Value {
    let pointer = reference.strip_prefix('#').filter(|pointer| pointer.starts_with('/'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(root)
}

impl TryFrom<Value> for JsonSchemaCheck {
    type Error = CheckValueError;
    fn try_from(source: Value) -> Result<Self, CheckValueError> {
        Self::new(source)
    }
}

impl From<JsonSchemaCheck> for Value {
    fn from(schema: JsonSchemaCheck) -> Value {
        schema.source
    }
}

impl PartialEq for JsonSchemaCheck {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for JsonSchemaCheck {}

impl fmt::Debug for JsonSchemaCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonSchemaCheck({})", self.source)
    }
}

/// A pattern that a file must match after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilePatternCheck {
    /// Path relative to the project root. With `*`, one matching file is enough.
    pub path: CheckText,
    /// The pattern.
    pub pattern: CheckPattern,
}

/// The format of a file with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum DataFormat {
    /// JSON.
    Json,
    /// JSON values, one per line, read as a list.
    Jsonl,
    /// YAML by the core schema of version 1.2.
    Yaml,
    /// TOML.
    Toml,
    /// Comma-separated values, read as a list of rows: mappings from the names of the first line to
    /// texts.
    Csv,
    /// The same, separated by tabs.
    Tsv,
}

impl DataFormat {
    /// Returns the format of a file with this name.
    pub fn of_path(path: &str) -> Option<Self> {
        let extension = path.rsplit_once('.')?.1.to_lowercase();
        match extension.as_str() {
            "yml" => Some(Self::Yaml),
            "ndjson" => Some(Self::Jsonl),
            other => other.parse().ok(),
        }
    }
}

/// Requirements on the data in a file. If only `path` is given, the file has to be well-formed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "FileDataFields", into = "FileDataFields")]
pub struct FileDataCheck {
    /// Path relative to the project root. With `*`, one matching file is enough.
    pub path: CheckText,
    /// Format of the file.
    pub format: DataFormat,
    /// JSON Pointer of the value that the other requirements are about; the whole file if absent.
    pub pointer: Option<JsonPointerCheck>,
    /// There is no such value.
    pub absent: bool,
    /// Expected value. Numbers compare by value; texts of CSV files compare with numbers too.
    pub equals: Option<Value>,
    /// Pattern that the value matches: a text, a number or a boolean.
    pub matches: Option<CheckPattern>,
    /// Bounds on the number of items, members or characters.
    pub count: Option<CountBounds>,
    /// Schema that the value satisfies.
    pub schema: Option<JsonSchemaCheck>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDataFields {
    path: CheckText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<DataFormat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pointer: Option<JsonPointerCheck>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    absent: bool,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_present"
    )]
    equals: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    matches: Option<CheckPattern>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<CountBounds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<JsonSchemaCheck>,
}

impl TryFrom<FileDataFields> for FileDataCheck {
    type Error = CheckValueError;

    fn try_from(fields: FileDataFields) -> Result<Self, CheckValueError> {
        let FileDataFields { path, format, pointer, absent, equals, matches, count, schema } =
            fields;
        let format = format
            .or_else(|| DataFormat::of_path(path.as_str()))
            .ok_or(CheckValueError::DataFormat)?;
        let has_value =
            equals.is_some() || matches.is_some() || count.is_some() || schema.is_some();
        if absent && (has_value || pointer.is_none()) {
            return Err(CheckValueError::AbsentValue);
        }
        Ok(Self { path, format, pointer, absent, equals, matches, count, schema })
    }
}

impl From<FileDataCheck> for FileDataFields {
    fn from(check: FileDataCheck) -> Self {
        let FileDataCheck { path, format, pointer, absent, equals, matches, count, schema } = check;
        // The short form parses to the same check.
        let format = Some(format).filter(|_| DataFormat::of_path(path.as_str()) != Some(format));
        Self { path, format, pointer, absent, equals, matches, count, schema }
    }
}
