//! Grades of what agents say of their own work: reflections, scored by the six deductions of
//! docs/spec/reflections.md#scoring.
//!
//! Pure: documents come in, scores, trends and proposed thresholds go out. Reads no file, no clock
//! and no database, and calls nobody; that is for `grader`.

mod alignment;
mod document;
mod issue;
mod record;
mod rules;
mod score;
mod settings;
mod threshold;
mod trend;

#[cfg(test)]
mod tests;

pub use document::{Reflection, UnreadableReflections, read_all};
pub use issue::{Issue, IssueCode};
pub use record::{
    ProjectReflections, ReflectionScore, ReflectionScores, StoredReflection, WeakReflection,
    WeakReflections,
};
pub use rules::{AgentRules, CriteriaFault, ReflectionRules};
pub use score::{ReflectionGrade, grade};
pub use settings::{
    AdaptiveThreshold, AgentCriteria, HookSettings, ReflectionCriteria, ReflectionSettings,
};
pub use threshold::{HISTORY, LEAST_SCORES, ThresholdProposal, in_force};
pub use trend::{ReflectionWeek, ScoredAt, trend};
