//! Checks on the content of files after the run: by pattern, and as data (JSON, YAML, TOML, CSV).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json::JsonPointerCheck;
use super::{CheckPattern, CheckText, CheckValueError, CountBounds, JsonSchemaCheck};

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
        deserialize_with = "super::json::deserialize_present"
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
