//! The table of the kinds of checks, one entry each. The enum, its keys, its JSON Schema and the
//! decisions come from this table. Parameters are in `parameters.rs`, decisions in `decide/`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strum::VariantNames as _;

use super::decide::{FactStatement, agent, all, answer, any, calls, command, data, files, skill};
use super::schema::CheckParameter;
use super::{
    Check, CheckObservation, CheckPattern, CheckText, CommandCheck, CommandRunCheck, CountBounds,
    DurationBounds, FileDataCheck, FilePatternCheck, FileTextCheck, JsonCheck, OccurrenceBounds,
    PathGlobs, SimilarityCheck, ToolCallCheck, ToolNames,
};
use crate::task_status::TaskStatus;

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
    Command(CommandCheck) workspace deed => command::decide_command,
    /// The pattern matches in an answer or in a tool call, written as `name {arguments}`.
    TranscriptRegex(CheckPattern) deed => agent::transcript,
    /// A tool was called.
    ToolCalled(ToolCallCheck) deed => agent::tool_called,
    /// A tool was not called.
    ToolNotCalled(CheckText) fact => agent::tool_not_called,
    /// Tools were called in this order, possibly with others in between.
    ToolsInOrder(ToolNames) deed => agent::tools_in_order,
    /// The first calls of these tools came in this order.
    FirstCalls(ToolNames) deed => agent::first_calls,
    /// The agent loaded the skill of this name, with a skill tool or by reading its `SKILL.md`.
    SkillLoaded(CheckText) deed => skill::loaded,
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
    FileMatches(FilePatternCheck) workspace deed => data::matches,
    /// The data in a JSON, YAML, TOML or CSV file after the run.
    FileData(FileDataCheck) workspace deed => data::data,
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
