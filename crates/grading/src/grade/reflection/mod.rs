//! Grades of reflections, in which agents describe their own work, scored with the six deductions
//! of docs/spec/reflections.md#scoring.
//!
//! These are pure functions from documents to scores, trends and proposed thresholds. Files, the
//! clock, the database and alerts are handled by `grader`.

mod alignment;
mod document;
mod issue;
mod reflection_settings;
mod rules;
mod score;
mod stored;
mod threshold;
mod trend;

#[cfg(test)]
mod tests;

pub use document::{ReadReflectionsError, Reflection, parse_reflections};
pub use issue::{IssueCode, ReflectionIssue};
pub use reflection_settings::{
    AdaptiveThreshold, AgentCriteria, HookSettings, ReflectionCriteria, ReflectionSettings,
};
pub use rules::{AgentRules, CriteriaError, ReflectionRules, SchemaFileError};
pub use score::{ReflectionGrade, grade_reflection};
pub use stored::{
    ProjectReflections, ReflectionScore, ReflectionScores, StoredReflection, WeakReflection,
    WeakReflections,
};
pub use threshold::{HISTORY, MIN_SCORES, ThresholdProposal, effective_threshold};
pub use trend::{ReflectionWeek, TimedScore, trend};
