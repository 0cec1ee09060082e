//! Results of checks: of one, and of all of a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_stats::score::Score;

/// Most bytes of the sentence of a finding.
pub(super) const MAX_SENTENCE: usize = 400;

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum CheckOutcome {
    /// It holds.
    Held,
    /// It does not hold.
    Failed,
    /// Nobody knows: neither a pass nor a fail.
    Undecided,
}

impl CheckOutcome {
    /// Held or failed.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::Held } else { Self::Failed }
    }

    /// The outcome of the opposite check.
    #[must_use]
    pub const fn negated(self) -> Self {
        match self {
            Self::Held => Self::Failed,
            Self::Failed => Self::Held,
            Self::Undecided => Self::Undecided,
        }
    }

    /// Of several that must all hold: one failure decides, else one that is undecided.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            (Self::Held, Self::Held) => Self::Held,
        }
    }
}

/// The outcome of a check, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The outcome.
    pub outcome: CheckOutcome,
    /// One line that names what happened, safe to show.
    pub sentence: String,
}

/// The outcome of all checks of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckSummary {
    /// One failed check fails the case; `None` where there is no check, which is never a pass.
    pub outcome: Option<CheckOutcome>,
    /// The weighted share that held of those that were decided; `None` where none was.
    pub score: Option<Score>,
    /// One for each check, in order.
    pub findings: Vec<Finding>,
}
