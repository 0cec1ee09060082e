//! A measure over paired cases: means, their difference, and the numbers of wins and losses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Arms;
use selftest_stats::{Interval, paired_difference, sign_test};

/// Shares closer than this are a tie: sums in binary floating point differ in their last bits.
pub(super) const SHARE_TIE: f64 = 1e-9;

/// Scores closer than this are a tie: reports show two decimals, and a difference that they do not
/// show is none.
pub(super) const SCORE_TIE: f64 = 0.005;

/// A measure over the cases that have it in both arms.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PairedMeasure {
    /// Number of cases that have it in both arms. The other fields cover only these.
    pub cases: u32,
    /// Mean over the cases, without and with the change. Absent if there are no cases.
    pub mean: Arms<Option<f64>>,
    /// Mean of treatment minus control. Absent if there are no cases.
    pub difference: Option<f64>,
    /// 95 % interval of the difference by the paired t-test. Absent with fewer than two cases.
    pub interval: Option<Interval>,
}

/// A measure for which higher is better, with the numbers of wins and losses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasureComparison {
    /// The averages and their difference.
    #[serde(flatten)]
    pub measure: PairedMeasure,
    /// Cases that are better with the change.
    pub wins: u32,
    /// Cases that are equal.
    pub ties: u32,
    /// Cases that are worse.
    pub losses: u32,
    /// Two-sided p-value of the exact sign test on wins and losses. If there are both scores and
    /// passes, after Holm's correction for the two tests.
    pub p_value: f64,
}

/// Result of a case with the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    /// Better.
    Win,
    /// Equal.
    Tie,
    /// Worse.
    Loss,
    /// The score is better and fewer trials pass, or the other way round.
    Mixed,
}

impl PairOutcome {
    /// Compares two means. Those closer than `tie` are equal.
    pub(super) fn of(means: Arms<f64>, tie: f64) -> Self {
        match means.treatment - means.control {
            difference if difference.abs() < tie => Self::Tie,
            difference if difference > 0.0 => Self::Win,
            _ => Self::Loss,
        }
    }

    /// Combines the outcomes by passes and by scores; `None` if both are absent.
    pub(super) fn combined(passes: Option<Self>, scores: Option<Self>) -> Option<Self> {
        Some(match (passes, scores) {
            (None, outcome) | (outcome, None) => return outcome,
            (Some(Self::Tie), Some(outcome)) | (Some(outcome), Some(Self::Tie)) => outcome,
            (Some(one), Some(other)) if one == other => one,
            (Some(_), Some(_)) => Self::Mixed,
        })
    }
}

impl PairedMeasure {
    /// Computes the measure from the means of each case.
    pub(super) fn of(cases: &[Arms<f64>]) -> Self {
        let differences: Vec<f64> =
            cases.iter().map(|case| case.treatment - case.control).collect();
        let difference = paired_difference(&differences);
        Self {
            cases: u32::try_from(cases.len()).unwrap_or(u32::MAX),
            mean: Arms {
                control: mean(cases.iter().map(|case| case.control)),
                treatment: mean(cases.iter().map(|case| case.treatment)),
            },
            difference: difference.map(|difference| difference.mean),
            interval: difference.and_then(|difference| difference.interval),
        }
    }
}

impl MeasureComparison {
    /// Compares the means of each case, 0.0 to 1.0. Those closer than `tie` are equal. The p-value
    /// is not corrected yet.
    pub(super) fn of(cases: &[Arms<f64>], tie: f64) -> Self {
        let count = |wanted: PairOutcome| {
            let found = cases.iter().filter(|case| PairOutcome::of(**case, tie) == wanted).count();
            u32::try_from(found).unwrap_or(u32::MAX)
        };
        let (wins, losses) = (count(PairOutcome::Win), count(PairOutcome::Loss));
        let measure = PairedMeasure::of(cases);
        // A difference of shares cannot exceed 1.
        let cut = |Interval { low, high }| Interval { low: low.max(-1.0), high: high.min(1.0) };
        Self {
            measure: PairedMeasure { interval: measure.interval.map(cut), ..measure },
            wins,
            ties: count(PairOutcome::Tie),
            losses,
            p_value: sign_test(wins, losses),
        }
    }
}

/// Returns the mean, or `None` if there are no values.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}
