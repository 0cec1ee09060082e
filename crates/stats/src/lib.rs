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
mod mean;
mod permutation;
mod power;
mod proportion;
mod ranks;
mod reliability;
mod ridge;

pub use agreement::{Kappa, cohen_kappa, quadratic_kappa};
pub use corrected_rate::{CorrectedRate, MIN_CORRECTION_LABELS, corrected_rate, shifted_rate};
pub use mean::{
    PairedDifference, VarianceComponents, bootstrap_mean, mean, mean_interval, median,
    paired_difference, sign_test, standard_deviation, variance_components,
};
pub use permutation::{CaseTrials, MIN_DRAWS, PermutationTest, holm, permutation_test};
pub use power::{PlannedEffect, TARGET_POWER, detectable_difference};
pub use proportion::{
    Interval, MeanShare, PassAtK, SequentialDecision, SequentialTest, binomial_tail, fisher_exact,
    multiplied_odds, pass_at_k, proportion_difference, unlikely_count, upper_bound, wilson,
    wilson_clustered,
};
pub use ranks::{Auc, QuantileEstimate, auc, mann_whitney, quantile};
pub use reliability::{
    RISK_CONFIDENCE, ReliabilityBin, RiskBounds, brier_score, constant_brier, reliability,
};
pub use ridge::{RidgeLogistic, is_separable, leave_one_group_out, leave_one_out, sigmoid};

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

/// Random numbers for simulations in tests.
#[cfg(test)]
mod simulation {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{Rng as _, SeedableRng as _};

    /// A seeded source of noise.
    pub(crate) struct Noise(Xoshiro256PlusPlus);

    impl Noise {
        pub(crate) fn new(seed: u64) -> Self {
            Self(Xoshiro256PlusPlus::seed_from_u64(seed))
        }

        /// Returns a number from 0 up to, but excluding, 1.
        pub(crate) fn uniform(&mut self) -> f64 {
            f64::from(u32::try_from(self.0.next_u64() >> 32).unwrap()) / 4_294_967_296.0
        }

        /// Returns a standard normal number by the method of Box and Muller (1958).
        pub(crate) fn normal(&mut self) -> f64 {
            // `1 - uniform` is never 0, whose logarithm is infinite.
            let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
            radius * (std::f64::consts::TAU * self.uniform()).cos()
        }

        pub(crate) fn chance(&mut self, probability: f64) -> bool {
            self.uniform() < probability
        }
    }
}
