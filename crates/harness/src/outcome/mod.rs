//! Derives a case's status from its steps, a summary from the cases, and the outcome of a run from
//! the summary. Pure: no clock, no files, no models.

pub mod agreement;
pub mod case;
pub mod isolation;
pub mod rejudged;
pub mod repeats;
pub mod skills;
pub mod summary;
pub mod usage;

#[cfg(test)]
mod tests;

pub use case::{
    CaseResult, CaseStatus, CaseStep, CheckResult, GenerationRecord, Rerun, StepKind, case_name,
};
pub use skills::{LoadingRates, SkillResult};
pub use summary::{RunEnding, RunOutcome, RunSummary, absolute_outcome};
