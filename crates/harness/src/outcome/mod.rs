//! From steps to a case's status, from cases to a summary, from a summary to an outcome.
//! Pure: no clock, no files, no models.

pub mod agreement;
pub mod case;
pub mod judge_samples;
pub mod panel;
pub mod rejudged;
pub mod repeats;
pub mod summary;

pub use case::{CaseResult, CaseStatus, CheckResult, GenerationRecord, Step, StepKind, case_name};
pub use summary::{RunOutcome, Summary, gate};
