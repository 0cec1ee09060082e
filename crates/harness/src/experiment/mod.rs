//! Evaluates whether a change helps, from paired trials of the same cases with and without it.
//!
//! The unit is the case: its trials are averaged first, because they are not independent of each
//! other. A trial without a score is counted separately and never treated as zero. Runs nothing.

mod analysis;
mod comparison;
mod conclusion;
pub mod power;
mod sentence;
mod within_cases;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_stats::score::Score;

pub use analysis::{ExperimentAnalysis, PairedCase, analyse};
pub use comparison::{MeasureComparison, PairOutcome, PairedMeasure};
pub use conclusion::{Conclusion, ConclusionScope};
pub use sentence::{ArmNames, MIN_CASES, format_p_value, format_signed};
pub use within_cases::WithinCaseTests;

/// Probability of a false conclusion if the change has no effect.
pub const ALPHA: f64 = 0.05;

/// One side of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// Without the change: without the skill, or the first of two runs.
    Control,
    /// With the change: with the skill, or the second of two runs.
    Treatment,
}

impl Arm {
    /// Both arms, in the order in which they are numbered.
    pub const BOTH: [Self; 2] = [Self::Control, Self::Treatment];

    /// Returns the other arm.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Control => Self::Treatment,
            Self::Treatment => Self::Control,
        }
    }
}

/// A pair of values, one for each arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Arms<T> {
    /// Without the change.
    pub control: T,
    /// With the change.
    pub treatment: T,
}

impl<T> Arms<T> {
    /// Returns the value of one arm.
    pub fn of(&self, arm: Arm) -> &T {
        match arm {
            Arm::Control => &self.control,
            Arm::Treatment => &self.treatment,
        }
    }

    /// Returns the value of one arm mutably.
    pub fn of_mut(&mut self, arm: Arm) -> &mut T {
        match arm {
            Arm::Control => &mut self.control,
            Arm::Treatment => &mut self.treatment,
        }
    }

    /// Maps the values of both arms.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Arms<U> {
        Arms { control: make(self.control), treatment: make(self.treatment) }
    }

    /// Borrows both values.
    pub fn as_ref(&self) -> Arms<&T> {
        Arms { control: &self.control, treatment: &self.treatment }
    }
}

impl<T> Arms<Option<T>> {
    /// Returns both values if both are present.
    pub fn both(self) -> Option<Arms<T>> {
        Some(Arms { control: self.control?, treatment: self.treatment? })
    }
}

/// One trial of a case in one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentTrial {
    /// Id of the case; the same in both arms.
    pub case: String,
    /// The arm.
    pub arm: Arm,
    /// The overall score. `None` means no score, which is not zero.
    pub overall: Option<Score>,
    /// True if it passed; `None` without a verdict. A trial may fail without a score, for example
    /// by a timeout.
    pub pass: Option<bool>,
    /// Wall time of the system under test in milliseconds.
    pub duration_ms: Option<u64>,
    /// Input and output tokens of the system under test, if it reports them.
    pub tokens: Option<u64>,
}

#[cfg(test)]
mod tests;
