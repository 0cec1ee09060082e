//! What an experiment amounts to, and the sentence that says so.
//!
//! A change helps or harms where two things agree: the exact sign test on the cases that were
//! won and lost, and the interval of the mean difference, which must leave out zero. The test
//! guards against few cases and lucky scores, the interval against many small gains that one
//! great loss eats up. Both are asked of scores and of passes; where these contradict each
//! other, there is no conclusion.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Arms;
use super::analysis::{Analysis, Comparison};
use crate::stats::Interval;

/// Chance of a conclusion where the change does nothing.
const ALPHA: f64 = 0.05;

/// With fewer cases that differ, no result is beyond chance: 2 · (1/2)^7, twice for Holm's
/// correction, is the first below [`ALPHA`].
const FEWEST: u32 = 7;

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

/// What the arms are called in a sentence, such as `B` and `A`.
pub type Names<'a> = Arms<&'a str>;

impl Comparison {
    /// Which way the arms differ beyond chance; `Equal` where that is not shown.
    fn direction(&self) -> Ordering {
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

impl Analysis {
    /// The conclusion in one plain sentence.
    pub fn sentence(&self, names: Names<'_>) -> String {
        let Arms { control, treatment } = names;
        let comparative = match self.conclusion {
            Conclusion::Helps => "better",
            Conclusion::Harms => "worse",
            Conclusion::NotEnoughEvidence => {
                return format!("Not enough evidence: {}.", self.why_not());
            }
        };
        let by_score = self.score.direction() != Ordering::Equal;
        let (comparison, numbers) = if by_score {
            (&self.score, scores(&self.score))
        } else {
            (&self.pass_rate, passes(&self.pass_rate))
        };
        format!(
            "{treatment} is {comparative} than {control} beyond chance: {numbers}, {} ({}).",
            record(comparison),
            p_value(comparison.p_value)
        )
    }

    fn why_not(&self) -> String {
        let (score, pass_rate) = (&self.score, &self.pass_rate);
        let opposed = score.direction().reverse() == pass_rate.direction();
        if score.direction() != Ordering::Equal && opposed {
            return format!(
                "scores and passes contradict each other: {}; {}",
                scores(score),
                passes(pass_rate)
            );
        }
        if score.measure.cases == 0 {
            return "no case has a score in both".to_owned();
        }
        let differ = |comparison: &Comparison| comparison.wins + comparison.losses;
        let most = differ(score).max(differ(pass_rate));
        if most == 0 {
            return format!("none of {} differs", cases(score.measure.cases));
        }
        if most < FEWEST {
            let verb = if most == 1 { "differs" } else { "differ" };
            return format!(
                "{} {verb}, and it takes at least {FEWEST} to tell a difference from chance: {}",
                cases(most),
                scores(score)
            );
        }
        format!(
            "a difference like this can be chance: {}, {} ({})",
            scores(score),
            record(score),
            p_value(score.p_value)
        )
    }
}

/// `overall +0.12, 95 % interval +0.05 to +0.19`.
fn scores(comparison: &Comparison) -> String {
    let measure = &comparison.measure;
    let difference = signed(measure.difference.unwrap_or_default(), 2);
    let ends = measure.interval.map(|Interval { low, high }| {
        format!(", 95 % interval {} to {}", signed(low, 2), signed(high, 2))
    });
    format!("overall {difference}{}", ends.unwrap_or_default())
}

/// `passes +40 points, 95 % interval +12 to +68`.
fn passes(comparison: &Comparison) -> String {
    let measure = &comparison.measure;
    let difference = signed(100.0 * measure.difference.unwrap_or_default(), 0);
    let ends = measure.interval.map(|Interval { low, high }| {
        format!(", 95 % interval {} to {}", signed(100.0 * low, 0), signed(100.0 * high, 0))
    });
    format!("passes {difference} points{}", ends.unwrap_or_default())
}

fn record(comparison: &Comparison) -> String {
    let Comparison { wins, ties, losses, .. } = comparison;
    format!("{} won, {ties} tied, {losses} lost", cases(*wins))
}

fn cases(count: u32) -> String {
    if count == 1 { "1 case".to_owned() } else { format!("{count} cases") }
}

fn p_value(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// A number with its sign; zero has none.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    let is_zero = text.bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0');
    if is_zero { text[1..].to_owned() } else { text }
}
