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

use super::{ALPHA, Arms, ExperimentAnalysis, MeasureComparison, WithinCaseTests};
use selftest_stats::{Interval, PermutationTest};

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

/// Minimum number of differing cases for a conclusion on cases like these: 2 · (1/2)^7, doubled by
/// Holm's correction, is the first value below 0.05.
pub const MIN_CASES: u32 = 7;
/// The same if there are no scores, so that one test is made and nothing is corrected.
const MIN_CASES_OF_CHECKS: u32 = 6;

/// Names of the arms in a sentence, such as `B` and `A`.
pub type ArmNames<'a> = Arms<&'a str>;

impl ExperimentAnalysis {
    /// Returns the conclusion as one sentence, with a second one if it covers only the cases that
    /// were run.
    pub fn sentence(&self, names: ArmNames<'_>) -> String {
        let Arms { control, treatment } = names;
        let comparative = match self.conclusion {
            Conclusion::Helps => "better",
            Conclusion::Harms => "worse",
            // The reason of a block is not in the numbers; the caller has it.
            Conclusion::NotEnoughEvidence | Conclusion::Blocked => {
                return format!("Not enough evidence: {}.", self.missing_evidence());
            }
        };
        if self.scope == Some(ConclusionScope::TheseCases) {
            return format!(
                "{treatment} is {comparative} than {control} on these cases, beyond chance: {}. \
                 For cases like these there is not enough evidence: {}.",
                self.significant_within_cases(),
                self.missing_evidence()
            );
        }
        let by_score = self.score.direction() != Ordering::Equal;
        let (comparison, numbers) = if by_score {
            (&self.score, scores(&self.score))
        } else {
            (&self.pass_rate, passes(&self.pass_rate))
        };
        format!(
            "{treatment} is {comparative} than {control} beyond chance, on these cases and on cases \
             like these: {numbers}, {} ({}).",
            record(comparison),
            format_p_value(comparison.p_value)
        )
    }

    /// Returns the permutation tests that are significant: `overall +0.10 (p = 0.004), passes +10
    /// points (p = 0.012)`.
    fn significant_within_cases(&self) -> String {
        let WithinCaseTests { score, pass_rate } = self.these_cases;
        let [by_score, by_passes] = self.these_cases.directions();
        let score = score.filter(|_| by_score != Ordering::Equal);
        let pass_rate = pass_rate.filter(|_| by_passes != Ordering::Equal);
        format_tests(score, "overall", pass_rate, "passes")
    }

    /// Returns the permutation test in one line, or `None` if no case was tested.
    pub fn within_cases(&self) -> Option<String> {
        let WithinCaseTests { score, pass_rate } = self.these_cases;
        score.or(pass_rate)?;
        let tested = format_tests(score, "score", pass_rate, "passed");
        Some(format!("on these cases, by permutation of their trials: {tested}"))
    }

    fn missing_evidence(&self) -> String {
        let (score, pass_rate) = (&self.score, &self.pass_rate);
        let opposed =
            |[one, other]: [Ordering; 2]| one != Ordering::Equal && one.reverse() == other;
        let of_cases = [score.direction(), pass_rate.direction()];
        if opposed(of_cases) || opposed(self.these_cases.directions()) {
            return format!(
                "scores and passes contradict each other: {}; {}",
                scores(score),
                passes(pass_rate)
            );
        }
        if score.measure.cases.max(pass_rate.measure.cases) == 0 {
            return "no case has a verdict in both".to_owned();
        }
        // Checks alone give no scores, and a few scores say nothing about the other cases.
        let (main, numbers) = if score.measure.cases < pass_rate.measure.cases {
            (pass_rate, passes(pass_rate))
        } else {
            (score, scores(score))
        };
        let least = match score.measure.cases {
            0 => MIN_CASES_OF_CHECKS,
            _ => MIN_CASES,
        };
        let differ = |comparison: &MeasureComparison| comparison.wins + comparison.losses;
        let most = differ(score).max(differ(pass_rate));
        if most == 0 {
            return format!("none of {} differs", cases(main.measure.cases));
        }
        if most < least {
            let verb = if most == 1 { "differs" } else { "differ" };
            // More repeats help only on these cases.
            let repeats = match self.conclusion {
                Conclusion::NotEnoughEvidence => ", or more repeats of each,",
                Conclusion::Helps | Conclusion::Harms | Conclusion::Blocked => "",
            };
            return format!(
                "{} {verb}, and it takes at least {least}{repeats} to tell a difference from \
                 chance: {}",
                cases(most),
                numbers
            );
        }
        format!(
            "a difference like this can be chance: {numbers}, {} ({})",
            record(main),
            format_p_value(main.p_value)
        )
    }
}

fn format_tests(
    score: Option<PermutationTest>,
    score_name: &str,
    pass_rate: Option<PermutationTest>,
    pass_name: &str,
) -> String {
    let score = score.map(|PermutationTest { difference, p_value: p, .. }| {
        format!("{score_name} {} ({})", format_signed(difference, 2), format_p_value(p))
    });
    let pass_rate = pass_rate.map(|PermutationTest { difference, p_value: p, .. }| {
        format!(
            "{pass_name} {} points ({})",
            format_signed(100.0 * difference, 0),
            format_p_value(p)
        )
    });
    score.into_iter().chain(pass_rate).collect::<Vec<_>>().join(", ")
}

/// Formats scores: `overall +0.12, 95 % interval +0.05 to +0.19`.
fn scores(comparison: &MeasureComparison) -> String {
    let measure = &comparison.measure;
    let difference = format_signed(measure.difference.unwrap_or_default(), 2);
    let ends = measure.interval.map(|Interval { low, high }| {
        format!(", 95 % interval {} to {}", format_signed(low, 2), format_signed(high, 2))
    });
    format!("overall {difference}{}", ends.unwrap_or_default())
}

/// Formats passes: `passes +40 points, 95 % interval +12 to +68`.
fn passes(comparison: &MeasureComparison) -> String {
    let measure = &comparison.measure;
    let difference = format_signed(100.0 * measure.difference.unwrap_or_default(), 0);
    let ends = measure.interval.map(|Interval { low, high }| {
        format!(
            ", 95 % interval {} to {}",
            format_signed(100.0 * low, 0),
            format_signed(100.0 * high, 0)
        )
    });
    format!("passes {difference} points{}", ends.unwrap_or_default())
}

fn record(comparison: &MeasureComparison) -> String {
    let MeasureComparison { wins, ties, losses, .. } = comparison;
    format!("{} won, {ties} tied, {losses} lost", cases(*wins))
}

fn cases(count: u32) -> String {
    if count == 1 { "1 case".to_owned() } else { format!("{count} cases") }
}

/// Formats a p-value: `p = 0.012`, or `p < 0.001`.
pub fn format_p_value(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// Formats a number with its sign; zero has none.
pub fn format_signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    // `-0.00` would look like a loss.
    let is_zero = text.bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0');
    if is_zero { text[1..].to_owned() } else { text }
}
