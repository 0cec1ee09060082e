//! Issues of reflections and their deductions (docs/spec/reflections.md#scoring).

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// A kind of issue with a reflection. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum IssueCode {
    /// The document does not match the expected schema.
    SchemaMismatch,
    /// The confidence is below the minimum.
    LowConfidence,
    /// There is no confidence between 0 and 1. Deducts nothing by itself, since no number is made
    /// up.
    ConfidenceMissing,
    /// No tag refers to a loop.
    LoopTagMissing,
    /// There is no goal to compare the summary with. Deducts nothing by itself.
    GoalMissing,
    /// The summary does not align with the goal.
    GoalMisaligned,
    /// The summary is too brief.
    SummaryTooBrief,
    /// The summary is excessively verbose.
    SummaryTooLong,
}

selftest_text::named!(IssueCode);

impl IssueCode {
    /// Returns the deduction from a score of 1.0 in hundredths, so that sums are exact.
    pub const fn hundredths(self) -> u8 {
        match self {
            IssueCode::SchemaMismatch => 30,
            IssueCode::LowConfidence => 20,
            IssueCode::LoopTagMissing | IssueCode::SummaryTooBrief => 10,
            IssueCode::GoalMisaligned => 15,
            IssueCode::SummaryTooLong => 5,
            IssueCode::ConfidenceMissing | IssueCode::GoalMissing => 0,
        }
    }
}

/// An issue with a reflection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReflectionIssue {
    /// Kind of issue.
    pub code: IssueCode,
    /// Description on one line. Parts of it may be untrusted.
    pub text: String,
    /// Deduction from the score; 0 if the specification deducts nothing.
    pub deduction: f64,
}

impl ReflectionIssue {
    /// Creates an issue with the deduction of its code.
    pub fn new(code: IssueCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), deduction: f64::from(code.hundredths()) / 100.0 }
    }
}
