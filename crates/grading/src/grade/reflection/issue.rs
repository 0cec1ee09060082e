//! Issues of reflections and their deductions (docs/spec/reflections.md#scoring).

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// Something that is wrong with a reflection. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum IssueCode {
    /// Not of the expected schema.
    SchemaMismatch,
    /// A confidence below the least one.
    LowConfidence,
    /// No confidence that is a number from 0 to 1. Costs nothing by itself: no number is made up.
    ConfidenceMissing,
    /// No tag refers to a loop.
    LoopTagMissing,
    /// No goal with which the summary could be compared. Costs nothing by itself.
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
    /// The deduction from a score of 1.0, in hundredths, so that sums are exact.
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

/// An issue of one reflection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Issue {
    /// Which one.
    pub code: IssueCode,
    /// In words, on one line. Parts of it may be foreign.
    pub text: String,
    /// Its deduction from the score; 0 where the specification deducts nothing.
    pub deduction: f64,
}

impl Issue {
    /// An issue with what it costs.
    pub fn new(code: IssueCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), deduction: f64::from(code.hundredths()) / 100.0 }
    }
}
