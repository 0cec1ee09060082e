//! The conclusion of an experiment.
//!
//! A change helps or harms where two things agree: the exact sign test on the cases that were
//! won and lost, and the interval of the mean difference, which must leave out zero. The test
//! guards against few cases and lucky scores, the interval against many small gains that one
//! great loss eats up. Both are asked of scores and of passes; where these contradict each
//! other, there is no conclusion.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::Comparison;
use selftest_stats::Interval;

/// Chance of a conclusion where the change does nothing.
const ALPHA: f64 = 0.05;

/// What an experiment amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// It is better with the change, beyond chance.
    Helps,
    /// It is worse with the change, beyond chance.
    Harms,
    /// Neither has been shown. That does not show that the change does nothing.
    NotEnoughEvidence,
}

impl Comparison {
    /// Which way the arms differ beyond chance; `Equal` where that is not shown.
    pub(super) fn direction(&self) -> Ordering {
        let Some(Interval { low, high }) = self.measure.interval else { return Ordering::Equal };
        match self.wins.cmp(&self.losses) {
            _ if self.p_value > ALPHA => Ordering::Equal,
            Ordering::Greater if low > 0.0 => Ordering::Greater,
            Ordering::Less if high < 0.0 => Ordering::Less,
            _ => Ordering::Equal,
        }
    }
}

pub(super) fn conclude(score: &Comparison, pass_rate: &Comparison) -> Conclusion {
    match (score.direction(), pass_rate.direction()) {
        (Ordering::Greater, Ordering::Less)
        | (Ordering::Less, Ordering::Greater)
        | (Ordering::Equal, Ordering::Equal) => Conclusion::NotEnoughEvidence,
        (Ordering::Less, _) | (_, Ordering::Less) => Conclusion::Harms,
        (Ordering::Greater, _) | (_, Ordering::Greater) => Conclusion::Helps,
    }
}
