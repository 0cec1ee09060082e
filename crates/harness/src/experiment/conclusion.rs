//! The conclusion of an experiment, and how far it generalises.
//!
//! Two questions are asked in sequence. First, on *these cases*: does the mean difference exceed
//! the noise of their trials? This is a permutation test within cases. If so, on *cases like
//! these*: do the cases themselves agree? This is the exact sign test on the cases won and lost,
//! together with the interval of the mean difference, which must exclude zero. The test guards
//! against few cases and lucky scores; the interval guards against many small gains that one large
//! loss cancels. Both questions are asked for scores and for passes, with Holm's correction. If the
//! two contradict each other, there is no conclusion. Since the second question is asked only after
//! the first, the whole procedure raises a false alarm in at most one experiment of twenty.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ALPHA;
use super::comparison::MeasureComparison;
use super::within_cases::WithinCaseTests;
use selftest_stats::Interval;

/// The conclusion of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Results are better with the change, beyond chance.
    Helps,
    /// Results are worse with the change, beyond chance.
    Harms,
    /// Neither has been shown. That does not prove that the change has no effect.
    NotEnoughEvidence,
    /// The arms were not what they should have been, so nothing can be concluded: the change did
    /// not reach the system, or reached both.
    Blocked,
}

/// How far a conclusion generalises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConclusionScope {
    /// Only to the cases that were run.
    TheseCases,
    /// Also to other cases of the same kind.
    CasesLikeThese,
}

impl MeasureComparison {
    /// Returns the direction in which the arms differ beyond chance; `Equal` if no difference is
    /// shown.
    pub(super) fn direction(&self) -> Ordering {
        let Some(Interval { low, high }) = self.measure.interval else { return Ordering::Equal };
        // Significance, the majority of cases and the interval have to agree.
        match self.wins.cmp(&self.losses) {
            _ if self.p_value > ALPHA => Ordering::Equal,
            Ordering::Greater if low > 0.0 => Ordering::Greater,
            Ordering::Less if high < 0.0 => Ordering::Less,
            _ => Ordering::Equal,
        }
    }
}

/// Combines the directions of scores and passes; `Equal` if they contradict each other.
fn combine(directions: [Ordering; 2]) -> Ordering {
    match directions {
        [Ordering::Equal, other] | [other, Ordering::Equal] => other,
        [one, other] if one == other => one,
        _ => Ordering::Equal,
    }
}

/// Returns the conclusion with its scope, which is absent without evidence.
pub(super) fn conclude(
    these: &WithinCaseTests,
    score: &MeasureComparison,
    pass_rate: &MeasureComparison,
) -> (Conclusion, Option<ConclusionScope>) {
    let on_these = combine(these.directions());
    let conclusion = match on_these {
        Ordering::Greater => Conclusion::Helps,
        Ordering::Less => Conclusion::Harms,
        Ordering::Equal => return (Conclusion::NotEnoughEvidence, None),
    };
    let like_these = combine([score.direction(), pass_rate.direction()]);
    match like_these {
        _ if like_these == on_these => (conclusion, Some(ConclusionScope::CasesLikeThese)),
        Ordering::Equal => (conclusion, Some(ConclusionScope::TheseCases)),
        // Contradicting directions leave no conclusion at all.
        _ => (Conclusion::NotEnoughEvidence, None),
    }
}
