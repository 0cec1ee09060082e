//! Grades of recorded sessions by rules (docs/spec/session-grades.md), patterns across many grades,
//! and grades of reflections (docs/spec/reflections.md).
//!
//! These are pure functions from sessions and grades to grades, patterns and reports. They read no
//! file, clock or database.

pub mod agreement;
pub mod alerts;
pub mod beside;
pub mod breakdown;
pub mod calibration;
mod completion;
pub mod difference;
mod error_cause;
mod error_class;
pub mod estimate;
mod final_message;
pub mod findings;
mod grade_record;
mod grade_settings;
pub mod heuristic;
mod level;
pub mod notable;
mod outcome;
pub mod outcome_table;
pub mod overrides;
mod pattern_tally;
pub mod patterns;
pub mod proposal;
pub mod quality;
pub mod reflection;
mod response;
mod session_kind;
pub mod session_label;
pub(crate) mod share;
pub mod spending;
pub mod suggestions;
mod summary;
mod tally;
mod task_type;
mod template;
mod traceback;
pub mod type_findings;
mod week;
pub mod weekly;
pub mod weights;

#[cfg(test)]
pub(crate) mod fixture;

pub use alerts::{Alert, AlertMetric, AlertSettings, Alerts};
pub use difference::{DifferenceVerdict, GroupDifference, TaskMeasure};
pub use error_cause::ErrorCause;
pub use error_class::ErrorClass;
pub use findings::{ErrorFinding, ErrorFindings};
pub use grade_record::{ErrorCount, GradeDetails, GradeEvidence, GradePoint, GradeRecord, ToolUse};
pub use grade_settings::GradeSettings;
pub use level::{GradeLevel, LevelRangeError};
pub use outcome::{
    ElsewhereResult, OutcomeEvidence, OutcomeSign, OutcomeState, ResultSource, StateName,
    TaskOutcome, TestCounts, TestScope,
};
pub use overrides::{GradeField, GradeOverride};
pub use pattern_tally::PatternTally;
pub use patterns::GradePatterns;
pub use quality::QualityGrade;
pub use session_kind::SessionKind;
pub use session_label::{LabelFault, LabelFileError, LabelSource, SessionLabel, read_labels};
pub use share::{Proportion, TruncatedList};
pub use spending::{CostSummary, TokenCost};
pub use suggestions::{Suggestion, SuggestionRules, Suggestions};
pub use summary::{ExcludedSessions, GradeSummary, OutcomeShares, TaskDurations};
pub use task_type::{TaskType, TaskWork};
pub use type_findings::TypeFinding;
pub use week::{Week, WeekError};
pub use weekly::{ReportRules, ScanCoverage, WeeklyReport};
pub use weights::GradeWeights;
