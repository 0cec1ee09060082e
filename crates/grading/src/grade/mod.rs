//! Grades of recorded sessions by rules (docs/spec/session-grades.md), patterns across many grades,
//! and grades of reflections (docs/spec/reflections.md).
//!
//! These are pure functions from sessions and grades to grades, patterns and reports. They read no
//! file, clock or database.

pub mod agreement;
pub mod beside;
pub mod breakdown;
pub mod difference;
mod error_cause;
mod error_message;
pub mod estimate;
pub mod findings;
mod grade_record;
mod grade_settings;
pub mod heuristic;
pub mod notable;
mod outcome;
mod pattern_tally;
pub mod patterns;
pub mod proposal;
pub mod quality;
pub mod reflection;
mod rule_scores;
pub mod session_label;
pub(crate) mod share;
pub mod spending;
pub mod suggestions;
mod tally;
mod task_type;
mod week;
pub mod weekly;

#[cfg(test)]
pub(crate) mod fixture;

pub use difference::{
    Alert, AlertMetric, AlertSettings, Alerts, DifferenceVerdict, GroupDifference, TaskMeasure,
};
pub use error_cause::ErrorCause;
pub use error_message::ErrorClass;
pub use findings::{ErrorFinding, ErrorFindings, TypeFinding};
pub use grade_record::{
    ErrorCount, GradeDetails, GradeEvidence, GradeField, GradeLevel, GradeOverride, GradePoint,
    GradeRecord, LevelRangeError, SessionKind, ToolUse, apply_overrides,
};
pub use grade_settings::{GradeSettings, GradeWeights};
pub use outcome::{
    ElsewhereResult, OutcomeEvidence, OutcomeSign, OutcomeState, ResultSource, StateName,
    TaskOutcome, TestCounts, TestScope,
};
pub use pattern_tally::PatternTally;
pub use patterns::GradePatterns;
pub use quality::QualityGrade;
pub use session_label::{LabelFault, LabelFileError, LabelSource, SessionLabel, read_labels};
pub use share::{Proportion, TruncatedList};
pub use spending::{CostSummary, TokenCost};
pub use suggestions::{Suggestion, SuggestionRules, Suggestions};
pub use task_type::{TaskType, TaskWork};
pub use week::{Week, WeekError};
pub use weekly::{
    ExcludedSessions, GradeSummary, OutcomeShares, ReportRules, ScanCoverage, TaskDurations,
    UndecidedTests, WeeklyReport,
};
