//! The conclusion of an experiment, and how far it reaches.
//!
//! Two questions, asked one after the other. On *these cases*: is the mean difference more than
//! the noise of their trials? A permutation test within cases. Only where it says yes, on *cases
//! like these*: do the cases themselves agree? The exact sign test on the cases that were won and
//! lost, and the interval of the mean difference, which must leave out zero; the test guards
//! against few cases and lucky scores, the interval against many small gains that one great loss
//! eats up. Each question is asked of scores and of passes, with Holm's correction; where these
//! contradict each other, there is no conclusion. Since the second question waits for the first,
//! all of it together raises a false alarm in at most one experiment of twenty.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ALPHA;
use super::comparison::Comparison;
use super::these_cases::TheseCases;
use selftest_stats::Interval;

/// The conclusion of an experiment.
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

/// How far a conclusion reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The cases that were run, and no others.
    TheseCases,
    /// Other cases of the same kind too.
    CasesLikeThese,
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

/// The direction of scores and passes together; `Equal` where they contradict each other.
fn together(directions: [Ordering; 2]) -> Ordering {
    match directions {
        [Ordering::Equal, other] | [other, Ordering::Equal] => other,
        [one, other] if one == other => one,
        _ => Ordering::Equal,
    }
}

/// The conclusion with its reach, which is absent without evidence.
pub(super) fn conclude(
    these: &TheseCases,
    score: &Comparison,
    pass_rate: &Comparison,
) -> (Conclusion, Option<Scope>) {
    let on_these = together(these.directions());
    let conclusion = match on_these {
        Ordering::Greater => Conclusion::Helps,
        Ordering::Less => Conclusion::Harms,
        Ordering::Equal => return (Conclusion::NotEnoughEvidence, None),
    };
    let like_these = together([score.direction(), pass_rate.direction()]);
    match like_these {
        _ if like_these == on_these => (conclusion, Some(Scope::CasesLikeThese)),
        Ordering::Equal => (conclusion, Some(Scope::TheseCases)),
        _ => (Conclusion::NotEnoughEvidence, None),
    }
}
