//! Grades of reflections, in which agents describe their own work, scored with the six deductions
//! of docs/spec/reflections.md#scoring.
//!
//! These are pure functions from documents to scores, trends and proposed thresholds. Files, the
//! clock, the database and alerts are handled by `grader`.

mod document;
mod rules;
mod score;
mod trend;

#[cfg(test)]
mod tests;

pub use document::{
    IssueCode, ProjectReflections, ReadReflectionsError, Reflection, ReflectionIssue,
    ReflectionScore, ReflectionScores, StoredReflection, WeakReflection, WeakReflections,
    parse_reflections,
};
pub use rules::{
    AdaptiveThreshold, AgentCriteria, AgentRules, CriteriaError, HookSettings, ReflectionCriteria,
    ReflectionRules, ReflectionSettings, SchemaFileError,
};
pub use score::{ReflectionGrade, grade_reflection};
pub use trend::{
    HISTORY, MIN_SCORES, ReflectionWeek, ThresholdProposal, TimedScore, effective_threshold, trend,
};
