//! Statistics: confidence intervals, tests, agreement. Pure arithmetic, without decisions.
//!
//! ```
//! let interval = selftest_stats::wilson(4, 5).expect("five trials");
//! assert!(interval.low < 0.4 && interval.high > 0.95);
//! ```

pub mod plot;
pub mod score;

mod agreement;
mod corrected_rate;
mod holm;
mod mean;
mod pass_at_k;
mod permutation;
mod power;
mod proportion;
mod ranks;
mod reliability;
mod ridge;
mod risk;
mod sequential;
#[cfg(test)]
mod simulation;
mod variance;

pub use agreement::{Kappa, cohen_kappa, quadratic_kappa};
pub use corrected_rate::{CorrectedRate, MIN_CORRECTION_LABELS, corrected_rate, shifted_rate};
pub use holm::holm;
pub use mean::{
    PairedDifference, bootstrap_mean, mean, mean_interval, paired_difference, sign_test,
    standard_deviation,
};
pub use pass_at_k::{MeanShare, PassAtK, pass_at_k};
pub use permutation::{CaseTrials, MIN_DRAWS, PermutationTest, permutation_test};
pub use power::{PlannedEffect, TARGET_POWER, detectable_difference};
pub use proportion::{
    Interval, binomial_tail, fisher_exact, proportion_difference, unlikely_count, upper_bound,
    wilson, wilson_clustered,
};
pub use ranks::{Auc, QuantileEstimate, auc, mann_whitney, quantile};
pub use reliability::{ReliabilityBin, brier_score, constant_brier, reliability};
pub use ridge::{RidgeLogistic, is_separable, leave_one_group_out, leave_one_out, sigmoid};
pub use risk::{RISK_CONFIDENCE, RiskBounds};
pub use sequential::{SequentialDecision, SequentialTest, multiplied_odds};
pub use variance::{VarianceComponents, variance_components};

/// Half the width of a two-sided 95 % interval, in standard errors.
const Z: f64 = 1.959_963_984_540_054;

/// The direction of a one-sided test: the alternative hypothesis about the first sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestTail {
    /// The first sample tends to be lower than the second.
    Less,
    /// The first sample tends to be higher than the second.
    Greater,
}

#[expect(clippy::cast_precision_loss, reason = "counts of sessions and cases are far below 2^53")]
fn real(count: usize) -> f64 {
    count as f64
}
