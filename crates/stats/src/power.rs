//! Power analysis before a run: the chance to detect a difference, and the number of cases and
//! repeats that this takes.

use statrs::distribution::{ContinuousCDF as _, Normal};
use statrs::function::factorial::ln_binomial;

use super::{real, sign_test};

/// Power that a plan should have: the probability of detecting an existing difference.
pub const TARGET_POWER: f64 = 0.8;

/// Maximum number of cases in a plan.
const MAX_CASES: usize = 10_000;

/// The difference to be detected and the noise around it, in the unit of the scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedEffect {
    /// Mean over the cases of the true differences.
    pub difference: f64,
    /// Standard deviation of the trials of one case.
    pub within: f64,
    /// Standard deviation of the cases' true differences around their mean.
    pub between: f64,
    /// Accepted probability of a false alarm per test.
    pub alpha: f64,
}

impl PlannedEffect {
    /// Returns the power of the permutation test over trials, for these cases. Uses the normal
    /// approximation, which is within two percent of simulations from eight cases on.
    ///
    /// Relabelled trials vary more than the trials themselves, because of the difference itself.
    pub fn power_for_same_cases(&self, cases: usize, repeats: usize) -> f64 {
        let trials = real(cases * repeats);
        let arm = real(repeats);
        // With so few labellings even the most extreme one is not significant, whatever the
        // difference.
        if trials < 1.0 || min_permutation_p(cases, repeats) > self.alpha {
            return 0.0;
        }
        let error = (2.0 * self.within.powi(2) / trials).sqrt();
        // Under relabelling, trials of both arms are mixed: their variance is that within an arm
        // plus that between the two arm means of a case, which lie half a difference from their
        // centre. The last factor is the finite population correction for 2n values of which n are
        // drawn.
        let shift = (self.difference.powi(2) + self.between.powi(2)) / 4.0;
        let pooled = self.within.powi(2) + shift * 2.0 * arm / (2.0 * arm - 1.0);
        let bar = quantile(1.0 - self.alpha / 2.0) * (2.0 * pooled / trials).sqrt();
        // The other tail is left out: with any power worth planning for, a significant difference
        // in the wrong direction has a negligible probability.
        let beyond = self.difference.abs() - bar;
        if error < 1e-12 { f64::from(u8::from(beyond > 0.0)) } else { cdf(beyond / error) }
    }

    /// Returns the power of the sign test over cases, for similar cases; exact for normal noise.
    /// Requiring the interval to agree as well is left out, since the sign test is stricter.
    pub fn power_for_new_cases(&self, cases: usize, repeats: usize) -> f64 {
        let error =
            (self.between.powi(2) + 2.0 * self.within.powi(2) / real(repeats.max(1))).sqrt();
        // The chance that a case's observed difference has the right sign.
        let win = if error < 1e-12 { 1.0 } else { cdf(self.difference.abs() / error) };
        let n = cases as u64;
        let chance = |wins: u64| {
            let (won, lost) = (real_of(wins), real_of(n - wins));
            // 0 · ln 0 is 0 here and NaN in floating point, which happens without noise (`win` is
            // 1).
            let ln = |share: f64, count: f64| if count > 0.0 { count * share.ln() } else { 0.0 };
            (ln_binomial(n, wins) + ln(win, won) + ln(1.0 - win, lost)).exp()
        };
        let is_found = |wins: u64| {
            let counts = u32::try_from(wins).ok().zip(u32::try_from(n - wins).ok());
            counts.is_some_and(|(wins, lost)| sign_test(wins, lost) <= self.alpha)
        };
        // If even a win in every case is not significant, nothing is.
        if n == 0 || !is_found(n) {
            return 0.0;
        }
        // The p-value decreases with the number of wins, so the threshold can be found by
        // bisection.
        let (mut missed, mut found) = (n / 2, n);
        while found - missed > 1 {
            let middle = u64::midpoint(missed, found);
            if is_found(middle) { found = middle } else { missed = middle }
        }
        (found..=n).map(chance).sum::<f64>().min(1.0)
    }

    /// Returns the minimum number of cases for [`TARGET_POWER`] in the permutation test; `None` if
    /// ten thousand are not enough.
    pub fn min_same_cases(&self, repeats: usize) -> Option<usize> {
        min_cases(|cases| self.power_for_same_cases(cases, repeats))
    }

    /// Returns the minimum number of cases for [`TARGET_POWER`] in the sign test; `None` if ten
    /// thousand are not enough.
    pub fn min_new_cases(&self, repeats: usize) -> Option<usize> {
        min_cases(|cases| self.power_for_new_cases(cases, repeats))
    }
}

/// Returns the lowest possible p-value: two labellings, the observed one and its mirror image, out
/// of all of them.
fn min_permutation_p(cases: usize, repeats: usize) -> f64 {
    let repeats = repeats as u64;
    2.0 * (-real(cases) * ln_binomial(2 * repeats, repeats)).exp()
}

/// Returns a number of cases with the wanted power such that one case fewer does not have it. The
/// power of an exact test is not monotonic in the number of cases.
fn min_cases(power: impl Fn(usize) -> f64) -> Option<usize> {
    let is_enough = |cases: usize| power(cases) >= TARGET_POWER;
    // Doubling first: most plans need tens of cases, and each evaluation sums a binomial.
    let mut high = 1;
    while !is_enough(high) {
        high *= 2;
        if high > MAX_CASES {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Returns the smallest difference that the permutation test detects with [`TARGET_POWER`]; `None`
/// if it would not even detect a difference of 1.
pub fn detectable_difference(within: f64, alpha: f64, cases: usize, repeats: usize) -> Option<f64> {
    let power = |difference: f64| {
        PlannedEffect { difference, within, between: 0.0, alpha }
            .power_for_same_cases(cases, repeats)
    };
    if power(1.0) < TARGET_POWER {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    // 2^-40 is far below any score that is reported.
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if power(middle) < TARGET_POWER { low = middle } else { high = middle }
    }
    Some(high)
}

fn cdf(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

fn quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

#[expect(clippy::cast_precision_loss, reason = "counts of cases are far below 2^53")]
fn real_of(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: PlannedEffect =
        PlannedEffect { difference: 0.1, within: 0.1, between: 0.0, alpha: 0.05 };

    #[test]
    fn the_permutation_test_is_as_simulated() {
        // The figure for 8 cases of 3 trials, simulated: 0.88.
        let power = TENTH.power_for_same_cases(8, 3);
        assert!((power - 0.88).abs() < 0.02, "{power}");
        assert!(
            TENTH.power_for_same_cases(8, 6) > power && TENTH.power_for_same_cases(16, 3) > power
        );
        // Five cases of one trial have 32 labellings, two of which are extreme: 0.0625.
        assert_eq!(TENTH.power_for_same_cases(5, 1), 0.0);
        let none = PlannedEffect { difference: 0.0, ..TENTH };
        assert!((none.power_for_same_cases(1_000, 5) - 0.025).abs() < 1e-6);
    }

    #[test]
    fn the_sign_test_by_hand() {
        // P(win) = Φ(0.1 / √(0.02 / 1)) = 0.7602; 8 cases need 8 wins: 0.7602^8.
        let power = TENTH.power_for_new_cases(8, 1);
        let win = cdf(0.1 / 0.02_f64.sqrt());
        assert!((power - win.powi(8)).abs() < 1e-9, "{power}");
        // 9 cases: 8 or 9 wins, p = 0.039.
        let power = TENTH.power_for_new_cases(9, 1);
        assert!((power - (win.powi(9) + 9.0 * win.powi(8) * (1.0 - win))).abs() < 1e-9);
        // The figure for 8 × 3 by the present test, simulated with Holm: 0.42.
        let power = PlannedEffect { alpha: 0.025, ..TENTH }.power_for_new_cases(8, 3);
        assert!((power - 0.42).abs() < 0.05, "{power}");
        assert_eq!(TENTH.power_for_new_cases(0, 1), 0.0);
    }

    #[test]
    fn as_many_cases_as_it_takes() {
        let these = TENTH.min_same_cases(3).unwrap();
        assert!((6..=8).contains(&these), "{these}");
        assert!(TENTH.min_same_cases(1).unwrap() > these);
        let like_these = TENTH.min_new_cases(3).unwrap();
        assert!(like_these > these, "{like_these}");
        assert!(TENTH.power_for_new_cases(like_these, 3) >= TARGET_POWER);
        let nothing = PlannedEffect { difference: 0.0, ..TENTH };
        assert_eq!(nothing.min_same_cases(5), None);
        assert_eq!(nothing.min_new_cases(5), None);
        // More repeats do not help if the cases themselves differ.
        let uneven = PlannedEffect { between: 0.3, ..TENTH };
        assert!(uneven.min_new_cases(1_000).unwrap() > 40);
    }

    #[test]
    fn the_detectable_difference_is_detected() {
        let found = detectable_difference(0.1, 0.05, 8, 3).unwrap();
        let power = PlannedEffect { difference: found, ..TENTH }.power_for_same_cases(8, 3);
        assert!((power - TARGET_POWER).abs() < 1e-6, "{found}: {power}");
        assert_eq!(detectable_difference(0.1, 0.05, 1, 1), None);
    }
}
