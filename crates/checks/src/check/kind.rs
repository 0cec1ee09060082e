//! The kinds of checks. Their parameters are in `parameters.rs`, the decisions in `decide/`.

use serde::Serialize;
use serde_json::Value;
use strum::VariantNames as _;

use super::{
    Check, CheckPattern, CheckText, CommandCheck, CountBounds, DurationBounds, FileTextCheck,
    JsonCheck, OccurrenceBounds, PathGlobs, SimilarityCheck, ToolCallCheck, ToolNames,
};
use crate::task_status::TaskStatus;

/// A requirement that is checked without a model. "The answer" is the last answer of the case.
#[derive(Debug, Clone, PartialEq, Serialize, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CheckKind {
    /// The answer contains this text exactly.
    Contains(CheckText),
    /// The answer does not contain this text.
    NotContains(CheckText),
    /// The pattern matches somewhere in the answer.
    Regex(CheckPattern),
    /// The pattern matches nowhere in the answer.
    NotRegex(CheckPattern),
    /// The answer equals this text, ignoring surrounding whitespace.
    Equals(String),
    /// The answer is similar to a text.
    Similar(SimilarityCheck),
    /// Number of occurrences of a text in the answer.
    Occurrences(OccurrenceBounds),
    /// The answer is JSON, or contains JSON in a fenced block.
    Json(JsonCheck),
    /// Number of non-empty lines in the answer.
    Lines(CountBounds),
    /// Number of items in the lists of the answer, without those of nested lists.
    Items(CountBounds),
    /// Number of words in the answer.
    Words(CountBounds),
    /// Number of questions in the answer.
    Questions(CountBounds),
    /// Number of characters in the answer, without surrounding whitespace.
    Characters(CountBounds),
    /// Status of the task after the last answer.
    Status(TaskStatus),
    /// Number of answers by the system under test.
    Turns(CountBounds),
    /// Number of input and output tokens of the case.
    Tokens(CountBounds),
    /// Duration of the case in seconds.
    Seconds(DurationBounds),
    /// A program that reads the answer on stdin and decides by its exit code and output.
    Command(CommandCheck),
    /// The pattern matches in an answer or in a tool call, written as `name {arguments}`.
    TranscriptRegex(CheckPattern),
    /// A tool was called.
    ToolCalled(ToolCallCheck),
    /// A tool was not called.
    ToolNotCalled(CheckText),
    /// Tools were called in this order, possibly with others in between.
    ToolsInOrder(ToolNames),
    /// The agent loaded the skill of this name, with a skill tool or by reading its `SKILL.md`.
    SkillLoaded(CheckText),
    /// A file was created.
    FileCreated(CheckText),
    /// An existing file was changed.
    FileChanged(CheckText),
    /// A file was deleted.
    FileDeleted(CheckText),
    /// A file is unchanged.
    FileUnchanged(CheckText),
    /// A file exists after the run.
    FileExists(CheckText),
    /// A file contains a text after the run.
    FileContains(FileTextCheck),
    /// No other files were created, changed or deleted.
    OnlyChanges(PathGlobs),
    /// A requirement in its author's words that cannot be decided: neither met nor missed.
    Unknown(CheckText),
    /// All of these checks hold.
    All(Vec<Check>),
    /// At least one of these checks holds.
    Any(Vec<Check>),
    /// This check does not hold.
    Not(Box<Check>),
}

impl CheckKind {
    /// The keys of all kinds.
    pub const NAMES: &'static [&'static str] = CheckKind::VARIANTS;

    /// Returns true if the kind inspects the agent's files or runs a program, so the answers alone
    /// do not decide it. Nested checks are not considered.
    pub const fn needs_workspace(&self) -> bool {
        matches!(
            self,
            Self::Command(_)
                | Self::FileCreated(_)
                | Self::FileChanged(_)
                | Self::FileDeleted(_)
                | Self::FileUnchanged(_)
                | Self::FileExists(_)
                | Self::FileContains(_)
                | Self::OnlyChanges(_)
        )
    }

    /// Returns the key of this kind in a file.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Returns the value of this kind in a file.
    pub fn value(&self) -> Value {
        // The enum serialises as a map with the key of its kind.
        let whole = serde_json::to_value(self).unwrap_or_default();
        whole.get(self.name()).cloned().unwrap_or_default()
    }
}
