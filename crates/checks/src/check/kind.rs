//! The table of the kinds of checks, one entry each. The enum, its keys, its JSON Schema and the
//! decisions come from this table. Parameters are in `parameters.rs`, decisions in `decide/`.
//!
//! The schema, for editors, is flat because published schemas contain no references; nested checks of
//! `all`, `any` and `not` are validated when parsed.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::VariantNames as _;

use super::decide::{FactStatement, agent, all, answer, any, calls, files};
use super::parameters::{MAX, MAX_ITEMS, MAX_SECONDS, MAX_TEXT, MAX_TIMEOUT};
use super::pattern::MAX_PATTERN;
use super::read::MAX_NAME;
use super::{
    CallOrder, Check, CheckObservation, CheckPattern, CheckText, CheckWeight, CommandCheck,
    CommandRunCheck, CountBounds, DataFormat, DurationBounds, FileDataCheck, FilePatternCheck,
    FileTextCheck, JsonCheck, OccurrenceBounds, PathGlobs, SimilarityCheck, ToolCallCheck,
    ToolNames, decide,
};
use crate::check::TaskStatus;

/// Defines the kinds of checks. An entry has a description, a name whose `snake_case` is the key in
/// suites, the type of its value, and the function that decides it. Marks: `workspace` for kinds
/// that inspect the agent's files or run a program; `deed` for kinds that find what the agent did,
/// and `fact` for others that do not read the text of the answer.
macro_rules! check_kinds {
    ($(
        $(#[doc = $doc:literal])+
        $(#[cfg($($cfg:tt)+)])?
        $name:ident($parameter:ty) $($mark:ident)* => $decide:expr,
    )+) => {
        /// A requirement that is checked without a model. "The answer" is the last answer of the
        /// case.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[derive(strum::IntoStaticStr, strum::VariantNames)]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        pub enum CheckKind {
            $(
                $(#[doc = $doc])+
                $(#[cfg($($cfg)+)])?
                $name($parameter),
            )+
            /// All of these checks hold.
            All(Vec<Check>),
            /// At least one of these checks holds.
            Any(Vec<Check>),
            /// This check does not hold.
            Not(Box<Check>),
        }

        impl CheckKind {
            /// Returns true if the kind inspects the agent's files or runs a program, so the
            /// answers alone do not decide it. Nested checks are not considered.
            pub const fn needs_workspace(&self) -> bool {
                match self {
                    $(
                        $(#[cfg($($cfg)+)])?
                        Self::$name(_) => is_workspace!($($mark)*),
                    )+
                    Self::All(_) | Self::Any(_) | Self::Not(_) => false,
                }
            }

            /// Returns true if the kind decides by the text of the last answer. Nested checks are
            /// not considered.
            pub(super) const fn reads_answer(&self) -> bool {
                match self {
                    $(
                        $(#[cfg($($cfg)+)])?
                        Self::$name(_) => is_text!($($mark)*),
                    )+
                    Self::All(_) | Self::Any(_) | Self::Not(_) => false,
                }
            }

            /// Returns true if the kind finds something that the agent did, which needs no words.
            /// Nested checks are not considered.
            pub(super) const fn finds_deed(&self) -> bool {
                match self {
                    $(
                        $(#[cfg($($cfg)+)])?
                        Self::$name(_) => is_deed!($($mark)*),
                    )+
                    Self::All(_) | Self::Any(_) | Self::Not(_) => false,
                }
            }

            /// Returns the observed fact and whether it satisfies the kind.
            pub(super) fn decide(&self, seen: &CheckObservation<'_>) -> FactStatement {
                match self {
                    $(
                        $(#[cfg($($cfg)+)])?
                        Self::$name(parameter) => {
                            let decide: fn(&$parameter, &CheckObservation<'_>) -> FactStatement =
                                $decide;
                            decide(parameter, seen)
                        }
                    )+
                    Self::All(checks) => all(checks, seen),
                    Self::Any(checks) => any(checks, seen),
                    Self::Not(check) => check.kind.decide(seen).negated(),
                }
            }
        }

        /// Returns the descriptions of all kinds and the JSON Schemas of their values, in the order
        /// of [`CheckKind::NAMES`].
        fn schemas() -> Vec<(&'static str, Value)> {
            let checks = || json!({"type": "array", "minItems": 1, "items": {"type": "object"}});
            vec![
                $(
                    $(#[cfg($($cfg)+)])?
                    (concat!($($doc),+), <$parameter>::value_schema()),
                )+
                ("All of these checks hold.", checks()),
                ("At least one of these checks holds.", checks()),
                ("This check does not hold.", json!({"type": "object"})),
            ]
        }
    };
}

/// Expands to true if `workspace` is among the marks.
macro_rules! is_workspace {
    () => {
        false
    };
    (workspace $($rest:ident)*) => {
        true
    };
    ($other:ident $($rest:ident)*) => {
        is_workspace!($($rest)*)
    };
}

/// Expands to true if `deed` is among the marks.
macro_rules! is_deed {
    () => {
        false
    };
    (deed $($rest:ident)*) => {
        true
    };
    ($other:ident $($rest:ident)*) => {
        is_deed!($($rest)*)
    };
}

/// Expands to true if no mark says that something else than the text of the answer decides.
macro_rules! is_text {
    () => {
        true
    };
    (deed $($rest:ident)*) => {
        false
    };
    (fact $($rest:ident)*) => {
        false
    };
    ($other:ident $($rest:ident)*) => {
        is_text!($($rest)*)
    };
}

check_kinds! {
    /// The answer contains this text exactly.
    Contains(CheckText) => answer::contains,
    /// The answer does not contain this text.
    NotContains(CheckText) => |text, seen| answer::contains(text, seen).negated(),
    /// The pattern matches somewhere in the answer.
    Regex(CheckPattern) => answer::matches,
    /// The pattern matches nowhere in the answer.
    NotRegex(CheckPattern) => |pattern, seen| answer::matches(pattern, seen).negated(),
    /// The answer equals this text, ignoring surrounding whitespace.
    Equals(String) => |text, seen| answer::equals(text, seen),
    /// The answer is similar to a text.
    Similar(SimilarityCheck) => answer::similar,
    /// Number of occurrences of a text in the answer.
    Occurrences(OccurrenceBounds) => answer::occurrences,
    /// The answer is JSON, or contains JSON in a fenced block.
    Json(JsonCheck) => answer::json,
    /// Number of non-empty lines in the answer.
    Lines(CountBounds) => answer::lines,
    /// Number of items in the lists of the answer, without those of nested lists.
    Items(CountBounds) => answer::items,
    /// Number of words in the answer.
    Words(CountBounds) => answer::words,
    /// Number of questions in the answer.
    Questions(CountBounds) => answer::questions,
    /// Number of characters in the answer, without surrounding whitespace.
    Characters(CountBounds) => answer::characters,
    /// Status of the task after the last answer.
    Status(TaskStatus) fact => |status, seen| agent::status(*status, seen),
    /// Number of answers by the system under test.
    Turns(CountBounds) fact => agent::turns,
    /// Number of input and output tokens of the case.
    Tokens(CountBounds) fact => agent::tokens,
    /// Duration of the case in seconds.
    Seconds(DurationBounds) fact => agent::seconds,
    /// A program that reads the answer on stdin and decides by its exit code and output.
    Command(CommandCheck) workspace deed => decide::decide_command,
    /// The pattern matches in an answer or in a tool call, written as `name {arguments}`.
    TranscriptRegex(CheckPattern) deed => agent::transcript,
    /// A tool was called.
    ToolCalled(ToolCallCheck) deed => agent::tool_called,
    /// A tool was not called.
    ToolNotCalled(CheckText) fact => agent::tool_not_called,
    /// Tools were called in this order, possibly with others in between.
    ToolsInOrder(ToolNames) deed => agent::tools_in_order,
    /// The first of these calls came in this order.
    FirstCalls(CallOrder) deed => agent::first_calls,
    /// The agent loaded the skill of this name, with a skill tool or by reading its `SKILL.md`.
    SkillLoaded(CheckText) deed => calls::loaded,
    /// A shell command of the agent matches a pattern.
    CommandRun(CommandRunCheck) deed => calls::command_run,
    /// The agent read a file, with a tool that reads or a program that shows it.
    FileRead(CheckText) deed => calls::file_read,
    /// A file was created.
    FileCreated(CheckText) workspace deed => files::created,
    /// An existing file was changed.
    FileChanged(CheckText) workspace deed => files::changed,
    /// A file was deleted.
    FileDeleted(CheckText) workspace deed => files::deleted,
    /// A file is unchanged.
    FileUnchanged(CheckText) workspace fact => files::unchanged,
    /// A file exists after the run.
    FileExists(CheckText) workspace deed => files::exists,
    /// A file contains a text after the run.
    FileContains(FileTextCheck) workspace deed => files::contains,
    /// A file matches a pattern after the run.
    FileMatches(FilePatternCheck) workspace deed => files::matches,
    /// The data in a JSON, YAML, TOML or CSV file after the run.
    FileData(FileDataCheck) workspace deed => files::data,
    /// No other files were created, changed or deleted.
    OnlyChanges(PathGlobs) workspace fact => files::only_changes,
    /// These files are as they were: tests, graders, CI. If one was changed or deleted, the case is
    /// tainted: it neither passes nor fails.
    Untouched(PathGlobs) workspace fact => files::untouched,
    /// The share of letters in the answer that are capitals: the example of docs/extending.md.
    #[cfg(test)]
    Capitals(super::example::CapitalShare) => super::example::capitals,
    /// A requirement in its author's words that cannot be decided: neither met nor missed.
    Unknown(CheckText) fact => |_, _| FactStatement::undecided("no check can decide it"),
}

impl CheckKind {
    /// The keys of all kinds.
    pub const NAMES: &'static [&'static str] = CheckKind::VARIANTS;

    /// Parses the value of a key in a file; `None` if no kind has this key.
    pub(super) fn parse(key: &str, value: &Value) -> Option<serde_json::Result<Self>> {
        let is_known = Self::NAMES.contains(&key);
        // The enum is a map with the key of its kind.
        is_known.then(|| Self::deserialize(json!({ key: value })))
    }

    /// Returns the key, the description and the JSON Schema of the value of each kind.
    pub(super) fn documented() -> impl Iterator<Item = (&'static str, String, Value)> {
        let described = Self::NAMES.iter().zip(schemas());
        described.map(|(name, (doc, schema))| (*name, doc.trim().to_owned(), schema))
    }

    /// Returns the key of this kind in a file.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Returns the value of this kind in a file.
    pub fn value(&self) -> Value {
        let whole = serde_json::to_value(self).unwrap_or_default();
        whole.get(self.name()).cloned().unwrap_or_default()
    }
}

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

impl CheckParameter for CallOrder {
    fn value_schema() -> Value {
        let properties = json!({
            "name": described_text("Name of the tool."),
            "arguments": {"description": "Arguments that a call must have to count.",
                "type": "object"},
            "matches": described_text("Pattern that a call must match to count: in a text among its arguments, or in the arguments as JSON."),
        });
        let call = json!({"anyOf": [CheckText::value_schema(), mapping(&["name"], &properties)]});
        json!({"type": "array", "minItems": 1, "maxItems": MAX_ITEMS, "items": call})
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
