//! Does a change help? Paired trials of the same cases with and without it.
//!
//! A case is the unit: its trials are averaged first, because they are not independent of each
//! other. A trial without a score is counted and never taken for a zero. Runs nothing.

mod analysis;
mod comparison;
mod conclusion;
pub mod power;
mod sentence;
mod these_cases;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_stats::score::Score;

pub use analysis::{Analysis, PairedCase, analyse};
pub use comparison::{Comparison, Decided, Measure};
pub use conclusion::{Conclusion, Scope};
pub use sentence::{MIN_CASES, Names, p_value, signed};
pub use these_cases::TheseCases;

/// Chance of a conclusion where the change does nothing.
const ALPHA: f64 = 0.05;

/// Which side of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// Without the change: without the skill, or the first of two runs.
    Control,
    /// With the change: with the skill, or the second of two runs.
    Treatment,
}

impl Arm {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Control => Self::Treatment,
            Self::Treatment => Self::Control,
        }
    }
}

/// The same thing of both arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Arms<T> {
    /// Without the change.
    pub control: T,
    /// With it.
    pub treatment: T,
}

impl<T> Arms<T> {
    /// That of one arm.
    pub fn of(&self, arm: Arm) -> &T {
        match arm {
            Arm::Control => &self.control,
            Arm::Treatment => &self.treatment,
        }
    }

    /// That of one arm, to be changed.
    pub fn of_mut(&mut self, arm: Arm) -> &mut T {
        match arm {
            Arm::Control => &mut self.control,
            Arm::Treatment => &mut self.treatment,
        }
    }

    /// Something else for both arms.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Arms<U> {
        Arms { control: make(self.control), treatment: make(self.treatment) }
    }

    /// A view of both.
    pub fn as_ref(&self) -> Arms<&T> {
        Arms { control: &self.control, treatment: &self.treatment }
    }
}

impl<T> Arms<Option<T>> {
    /// Both, where both are there.
    pub fn both(self) -> Option<Arms<T>> {
        Some(Arms { control: self.control?, treatment: self.treatment? })
    }
}

/// One trial of a case in one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Identity of the case: the same in both arms.
    pub case: String,
    /// Which arm.
    pub arm: Arm,
    /// The overall score; `None` where there is none, which is no zero.
    pub overall: Option<Score>,
    /// Whether it passed; `None` without a verdict. A trial may fail without a score, as by a
    /// timeout.
    pub pass: Option<bool>,
    /// Wall time of the system under test in milliseconds.
    pub duration_ms: Option<u64>,
    /// Tokens that the system under test took in and gave out, where it says.
    pub tokens: Option<u64>,
}

#[cfg(test)]
mod tests;
