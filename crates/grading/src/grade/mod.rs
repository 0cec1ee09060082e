//! Grades of recorded sessions by rules (docs/spec/session-grades.md), patterns across many grades,
//! and grades of reflections (docs/spec/reflections.md).
//!
//! These are pure functions from sessions and grades to grades, patterns and reports. They read no
//! file, clock or database.

pub mod agreement;
pub mod alerts;
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
mod outcome;
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
mod week;
pub mod weekly;
pub mod weights;

#[cfg(test)]
pub(crate) mod fixture;

pub use alerts::{Alert, AlertSettings, Alerts, Metric};
pub use difference::{Difference, Measure, Verdict};
pub use error_cause::ErrorCause;
pub use error_class::ErrorClass;
pub use findings::{Finding, Findings};
pub use grade_record::{Details, ErrorCount, Evidence, GradeRecord, Point, ToolUse};
pub use grade_settings::GradeSettings;
pub use level::Level;
pub use outcome::{OutcomeEvidence, OutcomeSign, TaskOutcome};
pub use overrides::{Field, Override};
pub use pattern_tally::PatternTally;
pub use patterns::Patterns;
pub use quality::QualityGrade;
pub use session_kind::SessionKind;
pub use session_label::{LabelSource, SessionLabel, read_labels};
pub use share::{Listed, Share};
pub use spending::{Cost, CostSummary};
pub use suggestions::{Suggestion, SuggestionRules, Suggestions};
pub use summary::{GradeSummary, NotTasks, OutcomeShares, Spent};
pub use task_type::{TaskType, TaskWork};
pub use week::{Week, WeekError};
pub use weekly::{Coverage, ReportRules, WeeklyReport};
pub use weights::Weights;
