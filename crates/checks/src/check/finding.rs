//! Results of checks: of a single check, and of all checks of a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_stats::score::Score;

/// Maximum length of a finding's sentence, in bytes.
pub(super) const MAX_SENTENCE: usize = 400;

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum CheckOutcome {
    /// The check holds.
    Held,
    /// The check does not hold.
    Failed,
    /// Cannot be decided: neither a pass nor a failure.
    Undecided,
}

impl CheckOutcome {
    /// Returns `Held` or `Failed`.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::Held } else { Self::Failed }
    }

    /// Returns the outcome of the opposite check.
    #[must_use]
    pub const fn negated(self) -> Self {
        match self {
            Self::Held => Self::Failed,
            Self::Failed => Self::Held,
            Self::Undecided => Self::Undecided,
        }
    }

    /// Combines outcomes that must all hold: a failure wins, then an undecided one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            (Self::Held, Self::Held) => Self::Held,
        }
    }
}

/// The outcome of a check and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckFinding {
    /// The outcome.
    pub outcome: CheckOutcome,
    /// One line that names what happened, safe to display.
    pub sentence: String,
}

/// The combined result of all checks of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckSummary {
    /// Combined outcome: one failed check fails the case. `None` without any checks, which is never
    /// a pass.
    pub outcome: Option<CheckOutcome>,
    /// Weighted share of the decided checks that hold; `None` if none was decided.
    pub score: Option<Score>,
    /// One finding per check, in order.
    pub findings: Vec<CheckFinding>,
}
