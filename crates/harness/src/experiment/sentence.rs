//! The conclusion of an experiment in one plain sentence.

use std::cmp::Ordering;

use super::Arms;
use super::analysis::Analysis;
use super::comparison::Comparison;
use super::conclusion::Conclusion;
use selftest_stats::Interval;

/// With fewer cases that differ, no result is beyond chance: 2 · (1/2)^7, twice for Holm's
/// correction, is the first below 0.05.
const MIN_CASES: u32 = 7;

/// Names of the arms in a sentence, such as `B` and `A`.
pub type Names<'a> = Arms<&'a str>;

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
        if most < MIN_CASES {
            let verb = if most == 1 { "differs" } else { "differ" };
            return format!(
                "{} {verb}, and it takes at least {MIN_CASES} to tell a difference from chance: {}",
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
