//! The kinds of checks. What each of them needs is in `parameters.rs`, how it is decided in
//! `decide/`.

use serde::Serialize;
use serde_json::Value;
use strum::VariantNames as _;

use super::{
    Bounds, Check, CommandCheck, FileContains, Globs, JsonCheck, Occurrences, Pattern, Seconds,
    Similar, Text, ToolCalled, Tools,
};
use crate::task_status::TaskStatus;

/// A demand that needs no model. "The answer" is the last one of the case.
#[derive(Debug, Clone, PartialEq, Serialize, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CheckKind {
    /// The answer contains this text, letter by letter.
    Contains(Text),
    /// The answer does not contain this text.
    NotContains(Text),
    /// The pattern matches somewhere in the answer.
    Regex(Pattern),
    /// The pattern matches nowhere in the answer.
    NotRegex(Pattern),
    /// The answer is this text, but for white space around it.
    Equals(String),
    /// The answer is close to a text.
    Similar(Similar),
    /// How often a text occurs in the answer.
    Occurrences(Occurrences),
    /// The answer is JSON, or holds it in a fenced block.
    Json(JsonCheck),
    /// Lines of the answer that are not empty.
    Lines(Bounds),
    /// Words of the answer.
    Words(Bounds),
    /// Questions in the answer.
    Questions(Bounds),
    /// Characters of the answer, without white space around it.
    Characters(Bounds),
    /// How the task stands after the last answer.
    Status(TaskStatus),
    /// How often the system under test answered.
    Turns(Bounds),
    /// Tokens that the case took, read and written.
    Tokens(Bounds),
    /// Seconds that the case took.
    Seconds(Seconds),
    /// A program that reads the answer on stdin; its exit code and what it prints decide.
    Command(CommandCheck),
    /// The pattern matches in an answer or in a tool call, written `name {arguments}`.
    TranscriptRegex(Pattern),
    /// A tool was called.
    ToolCalled(ToolCalled),
    /// A tool was not called.
    ToolNotCalled(Text),
    /// Tools were called in this order; others may stand between them.
    ToolsInOrder(Tools),
    /// The agent loaded a skill of this name: by a tool for skills, or by reading its `SKILL.md`.
    SkillLoaded(Text),
    /// A file was created.
    FileCreated(Text),
    /// A file that was there was changed.
    FileChanged(Text),
    /// A file was deleted.
    FileDeleted(Text),
    /// A file is as it was before.
    FileUnchanged(Text),
    /// There is a file after the run.
    FileExists(Text),
    /// A file holds a text after the run.
    FileContains(FileContains),
    /// Nothing but these files was created, changed or deleted.
    OnlyChanges(Globs),
    /// A demand that nobody can decide, in its author's words: it is never met, and never not.
    Unknown(Text),
    /// Each of these holds.
    All(Vec<Check>),
    /// At least one of these holds.
    Any(Vec<Check>),
    /// This does not hold.
    Not(Box<Check>),
}

impl CheckKind {
    /// The keys of every kind.
    pub const NAMES: &'static [&'static str] = CheckKind::VARIANTS;

    /// Whether it is about files of the agent or runs a program, so that the answers alone do not
    /// decide it: what is nested in it is not looked at.
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

    /// The key in a file.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// The value behind the key in a file.
    pub fn value(&self) -> Value {
        let whole = serde_json::to_value(self).unwrap_or_default();
        whole.get(self.name()).cloned().unwrap_or_default()
    }
}
