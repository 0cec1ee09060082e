//! Statistics: confidence intervals, tests, agreement. Pure arithmetic, without decisions.
//!
//! ```
//! let interval = selftest_stats::wilson(4, 5).expect("five trials");
//! assert!(interval.low < 0.4 && interval.high > 0.95);
//! ```

pub mod plot;
pub mod score;

mod agreement;
mod exact;
mod holm;
mod interval;
mod label_shift;
mod mean;
mod paired;
mod pass_at_k;
mod permutation;
mod power;
mod ppi;
mod quantile;
mod ranks;
mod reliability;
mod ridge;
mod risk;
mod sequential;
#[cfg(test)]
mod simulation;
mod variance;

pub use agreement::{Kappa, cohen_kappa, quadratic_kappa};
pub use exact::{binomial_tail, fisher_exact, unlikely_count, upper_bound};
pub use holm::holm;
pub use interval::{Interval, proportion_difference, wilson, wilson_clustered};
pub use label_shift::shifted_rate;
pub use mean::{bootstrap_mean, mean, mean_interval, standard_deviation};
pub use paired::{PairedDifference, paired_difference, sign_test};
pub use pass_at_k::{MeanShare, PassAtK, pass_at_k};
pub use permutation::{CaseTrials, MIN_DRAWS, PermutationTest, permutation_test};
pub use power::{PlannedEffect, TARGET_POWER, detectable_difference};
pub use ppi::{CorrectedRate, MIN_CORRECTION_LABELS, corrected_rate};
pub use quantile::{QuantileEstimate, quantile};
pub use ranks::{Auc, auc, mann_whitney};
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
