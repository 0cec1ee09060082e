//! Means, paired differences and their intervals: by the t distribution for small samples, by
//! bootstrap without distributional assumptions; the sign test, which assumes no scale either; and
//! the sources of noise in a mean: differences between cases, between trials of a case, or between
//! a judge's verdicts on one answer.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng as _, SeedableRng as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};
use statrs::function::factorial::ln_binomial;

use crate::permutation::scale_to_index;
use crate::{Interval, real};

/// Returns the mean; `None` if there are no values or one is not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / real(values.len());
    // The mean of no values is NaN, and one infinite value makes it infinite.
    mean.is_finite().then_some(mean)
}

/// Returns the median; `None` if there are no values or one is not a number.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The two middle values, which are the same one if their number is odd.
    let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    Some(f64::midpoint(*sorted.get(low)?, *sorted.get(high)?))
}

/// Returns the sample standard deviation, with denominator `n - 1`; `None` with fewer than two
/// values or one that is not finite.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    Some((squares / (real(values.len()) - 1.0)).sqrt()).filter(|deviation| deviation.is_finite())
}

/// Returns the 95 % interval of the population mean. Returns `None` with fewer than two values or
/// one that is not finite, and also if all values are equal: an interval of width 0 would be
/// meaningless.
///
/// Student, "The probable error of a mean" (1908).
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    // Not 0, because the mean of 0.1, 0.1 and 0.1 is not 0.1 in floating point.
    t_interval(values).filter(|interval| interval.high - interval.low > 1e-9)
}

/// Returns `mean ± t(0.975; n - 1) · s / √n` with `s` the standard deviation. It is a point if all
/// values are equal. Returns `None` with fewer than two values or one that is not finite.
pub(super) fn t_interval(values: &[f64]) -> Option<Interval> {
    let centre = mean(values).filter(|_| values.len() > 1)?;
    let n = real(values.len());
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    // The t quantile instead of 1.96: with five cases it is 2.78, and a normal interval would miss
    // the mean far more often than stated.
    let half = t_quantile(n - 1.0) * (squares / (n - 1.0) / n).sqrt();
    half.is_finite().then_some(Interval { low: centre - half, high: centre + half })
}

/// Returns the 0.975 quantile of Student's t distribution for at least 1 degree of freedom. Uses
/// bisection, because statrs's own inverse is off by several percent at two degrees.
fn t_quantile(freedom: f64) -> f64 {
    let Ok(t) = StudentsT::new(0.0, 1.0, freedom) else { return f64::INFINITY };
    // At one degree of freedom the quantile is 12.7, and it decreases from there.
    let (mut low, mut high) = (0.0, 16.0);
    // 16 / 2^60 is below the spacing of doubles around 12, so more halvings would change nothing.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if t.cdf(middle) < 0.975 { low = middle } else { high = middle }
    }
    high
}

/// Returns the 95 % percentile interval of the mean, from `resamples` samples drawn with
/// replacement. Pass one value per case. Returns `None` with fewer than two values or a value that
/// is not finite. If all values are equal, the interval is a point and says nothing about chance.
///
/// Efron, "Bootstrap methods: another look at the jackknife" (1979). Like any bootstrap it is too
/// narrow for few cases: use [`mean_interval`](super::mean_interval) below thirty.
pub fn bootstrap_mean(values: &[f64], seed: u64, resamples: u32) -> Option<Interval> {
    mean(values).filter(|_| values.len() > 1 && resamples > 0)?;
    // A fixed generator instead of the default one, which may change between versions of `rand`:
    // the same seed has to give the same interval in later reports.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let mut sum = 0.0;
            for drawn in 0..values.len().div_ceil(2) {
                // One 64-bit number yields two positions.
                let bits = random.next_u64();
                sum += values[scale_to_index(bits >> 32, values.len())];
                if 2 * drawn + 1 < values.len() {
                    sum += values[scale_to_index(bits & 0xffff_ffff, values.len())];
                }
            }
            sum / real(values.len())
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    // 95 % leaves out 2.5 %, one fortieth, at each end.
    let out = means.len() / 40;
    Some(Interval { low: means[out], high: means[means.len() - 1 - out] })
}

/// The mean of paired differences and its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedDifference {
    /// Mean of the differences.
    pub mean: f64,
    /// 95 % confidence interval; absent with fewer than two pairs. If all differences are equal it
    /// is a point and says nothing about chance; use [`sign_test`] then.
    pub interval: Option<Interval>,
}

/// Returns the mean of the differences `d` and its 95 % interval by the paired t-test, `mean(d) ±
/// t(0.975; n - 1) · s / √n` with `s` their standard deviation. Returns `None` without differences
/// or if one is not finite.
///
/// Student, "The probable error of a mean" (1908). The differences must be independent: average
/// those from the same source first (Miller, "Adding error bars to evals", arXiv 2411.00640, on
/// clustered questions and on paired differences).
pub fn paired_difference(differences: &[f64]) -> Option<PairedDifference> {
    let mean = mean(differences)?;
    Some(PairedDifference { mean, interval: t_interval(differences) })
}

/// Returns the two-sided p-value of the exact sign test: the probability of a result at least this
/// lopsided if wins and losses are equally likely, or 1.0 without any. Leave out ties.
///
/// Dixon and Mood, "The statistical sign test" (1946). Assumes neither a scale nor a distribution,
/// which scores of language models do not have. A p-value below 0.05 takes at least six decided
/// pairs.
pub fn sign_test(wins: u32, losses: u32) -> f64 {
    let (fewer, all) = (u64::from(wins.min(losses)), u64::from(wins) + u64::from(losses));
    let nothing_but = f64::from(wins) + f64::from(losses);
    let one_side: f64 = (0..=fewer)
        // In logarithms, because binomials of many pairs overflow.
        .map(|count| (ln_binomial(all, count) - nothing_but * std::f64::consts::LN_2).exp())
        .sum();
    // With as many wins as losses both tails contain the middle, and twice one of them exceeds 1.
    (2.0 * one_side).min(1.0)
}

/// Variances that add up, each excluding the others. As estimates, negative ones are set to 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VarianceComponents {
    /// Variance of the cases around their mean; absent with fewer than two cases.
    pub cases: Option<f64>,
    /// Variance of a case's trials, without the judge's share; absent without repeats.
    pub repeats: Option<f64>,
    /// Variance of the judge's samples on one answer; absent if it was sampled once.
    pub judge: Option<f64>,
}

/// Estimates the components of scores by case, trial and judge sample. Without several samples, the
/// judge's variance is included in that of the trials; without repeats, that is included in the
/// cases'.
///
/// Nested analysis of variance by the method of moments: Searle et al., "Variance components"
/// (1992), chapter 3, with harmonic means for unequal counts.
pub fn variance_components(cases: &[Vec<Vec<f64>>]) -> VarianceComponents {
    let trials: Vec<&Vec<f64>> = cases.iter().flatten().filter(|trial| !trial.is_empty()).collect();
    // From the inside out: each level's observed variance contains that of the levels inside it.
    let judge = pooled(trials.iter().map(|trial| &trial[..]));
    let means: Vec<Vec<f64>> = cases
        .iter()
        .map(|case| case.iter().filter_map(|trial| mean(trial)).collect::<Vec<f64>>())
        .filter(|means| !means.is_empty())
        .collect();
    let samples = harmonic(trials.iter().map(|trial| trial.len()));
    let of_trials = pooled(means.iter().map(Vec::as_slice));
    // The trials' means still contain the judge's noise, reduced by averaging over the samples.
    // Subtracting a larger estimate gives a negative variance, which is then 0 by convention.
    let repeats = of_trials.map(|found| (found - judge.unwrap_or(0.0) / samples).max(0.0));
    let of_cases: Vec<f64> = means.iter().filter_map(|case| mean(case)).collect();
    let counts = harmonic(means.iter().map(Vec::len));
    let cases = pooled(std::iter::once(&of_cases[..]));
    // The cases' means still contain the noise of the trials, reduced by averaging over them.
    let cases = cases.map(|found| (found - of_trials.unwrap_or(0.0) / counts).max(0.0));
    VarianceComponents { cases, repeats, judge }
}

/// Returns the pooled variance within groups; `None` if no group has two values.
fn pooled<'a>(groups: impl Iterator<Item = &'a [f64]>) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0);
    // A group of one value has no variance of its own and no degrees of freedom.
    for group in groups.filter(|group| group.len() > 1) {
        let centre = mean(group)?;
        squares += group.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
        freedom += group.len() - 1;
    }
    (freedom > 0).then(|| squares / real(freedom))
}

/// Returns the harmonic mean, or 1 if there are no counts.
fn harmonic(counts: impl Iterator<Item = usize>) -> f64 {
    let counts: Vec<f64> = counts.map(real).collect();
    let inverse: f64 = counts.iter().map(|count| 1.0 / count).sum();
    if counts.is_empty() { 1.0 } else { real(counts.len()) / inverse }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulation::Noise;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!((median(&[]), median(&[1.0, f64::NAN])), (None, None));
    }

    #[test]
    fn published_values() {
        // Student (1908), the additional hours of sleep gained by ten patients; R's help page of
        // `t.test`, paired: mean 1.58, 95 % interval 0.7001142 to 2.4598858.
        let gained = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let found = mean_interval(&gained).unwrap();
        assert!((found.low - 0.700_114_2).abs() < 5e-8, "{found:?}");
        assert!((found.high - 2.459_885_8).abs() < 5e-8, "{found:?}");
    }

    #[test]
    fn quantiles_of_the_printed_table() {
        for (freedom, expected) in
            [(1.0, 12.706_205), (2.0, 4.302_653), (4.0, 2.776_445), (9.0, 2.262_157)]
        {
            assert!((t_quantile(freedom) - expected).abs() < 1e-6, "{freedom}");
        }
    }

    #[test]
    fn too_little_says_nothing() {
        for values in [&[][..], &[0.5], &[0.7, 0.7, 0.7], &[f64::NAN, 1.0], &[f64::INFINITY, 1.0]] {
            assert_eq!(mean_interval(values), None, "{values:?}");
        }
    }

    #[test]
    fn of_many_values_it_is_the_normal_interval() {
        let values: Vec<f64> = (0..400).map(|value| f64::from(value % 2)).collect();
        let found = bootstrap_mean(&values, 1, 20_000).unwrap();
        let half = 1.96 * 0.5 / 20.0;
        assert!((found.low - (0.5 - half)).abs() < 0.003, "{found:?}");
        assert!((found.high - (0.5 + half)).abs() < 0.003, "{found:?}");
        assert_eq!(bootstrap_mean(&values, 1, 20_000).unwrap(), found, "a seed repeats it");
    }

    #[test]
    fn a_skewed_mean_is_covered() {
        let mut noise = Noise::new(3);
        let covered = (0..1_000).filter(|seed| {
            let values: Vec<f64> =
                (0..60).map(|_| f64::from(u8::from(noise.chance(0.2)))).collect();
            let found = bootstrap_mean(&values, *seed, 1_000).unwrap();
            found.low <= 0.2 && 0.2 <= found.high
        });
        let covered = covered.count();
        assert!((920..=970).contains(&covered), "{covered} of 1000");
    }

    #[test]
    fn edges() {
        assert_eq!(bootstrap_mean(&[], 1, 100), None);
        assert_eq!(bootstrap_mean(&[1.0], 1, 100), None);
        assert_eq!(bootstrap_mean(&[1.0, f64::NAN], 1, 100), None);
        assert_eq!(bootstrap_mean(&[1.0, 0.0], 1, 0), None);
        let point = bootstrap_mean(&[0.5; 3], 1, 100).unwrap();
        assert_eq!((point.low, point.high), (0.5, 0.5));
    }

    #[test]
    fn published_values_of_paired() {
        // Student (1908), hours of sleep gained by two drugs in ten patients; R's help page of
        // `sleep`: mean -1.58, 95 % interval -2.4598858 to -0.7001142.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        let found = paired_difference(&differences).unwrap();
        assert!((found.mean + 1.58).abs() < 1e-12, "{found:?}");
        let Interval { low, high } = found.interval.unwrap();
        assert!((low + 2.459_885_8).abs() < 5e-8 && (high + 0.700_114_2).abs() < 5e-8, "{found:?}");
    }

    #[test]
    fn sign_tests_by_hand() {
        for (wins, losses, expected) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (3, 3, 1.0),
            (5, 0, 2.0 / 32.0),
            (6, 0, 2.0 / 64.0),
            // 2 · (1 + 10 + 45) / 1024
            (8, 2, 0.109_375),
        ] {
            for p in [sign_test(wins, losses), sign_test(losses, wins)] {
                assert!((p - expected).abs() < 1e-12, "{wins} to {losses}: {p}");
            }
        }
        assert!(sign_test(u32::MAX, 0) < 1e-300);
    }

    #[test]
    fn edges_of_paired() {
        assert_eq!(paired_difference(&[]), None);
        assert_eq!(paired_difference(&[0.1, f64::NAN]), None);
        assert_eq!(paired_difference(&[0.1]).unwrap().interval, None);
        let equal = paired_difference(&[0.25; 4]).unwrap().interval;
        assert_eq!(equal, Some(Interval { low: 0.25, high: 0.25 }));
    }

    proptest! {
        #[test]
        fn the_other_way_round_is_the_mirror_image(
            differences in prop::collection::vec(-1.0..1.0f64, 2..40),
        ) {
            let mirrored: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            let one = paired_difference(&differences).unwrap();
            let other = paired_difference(&mirrored).unwrap();
            let (one_ends, other_ends) = (one.interval.unwrap(), other.interval.unwrap());
            prop_assert!((one.mean + other.mean).abs() < 1e-12);
            prop_assert!((one_ends.low + other_ends.high).abs() < 1e-12);
            prop_assert!(one_ends.low <= one.mean && one.mean <= one_ends.high);
        }
    }

    #[test]
    fn known_components_are_told_apart() {
        let mut noise = Noise::new(11);
        let scores: Vec<Vec<Vec<f64>>> = (0..3_000)
            .map(|_| {
                let case = 0.2 * noise.normal();
                let mut trial = || {
                    let trial = case + 0.1 * noise.normal();
                    (0..3).map(|_| trial + 0.05 * noise.normal()).collect()
                };
                (0..4).map(|_| trial()).collect()
            })
            .collect();
        let found = variance_components(&scores);
        for (found, expected) in [(found.cases, 0.04), (found.repeats, 0.01), (found.judge, 0.0025)]
        {
            let found = found.unwrap();
            assert!((found / expected - 1.0).abs() < 0.08, "{found} for {expected}");
        }
    }

    #[test]
    fn what_was_not_varied_is_absent() {
        let once = variance_components(&[vec![vec![0.2]], vec![vec![0.4]]]);
        assert_eq!((once.repeats, once.judge), (None, None));
        assert!((once.cases.unwrap() - 0.02).abs() < 1e-12);
        assert_eq!(variance_components(&[]), VarianceComponents::default());
        let one = variance_components(&[vec![vec![0.2], vec![0.4], vec![]]]);
        assert!(one.cases.is_none() && (one.repeats.unwrap() - 0.02).abs() < 1e-12);
        let judge_only = variance_components(&[vec![vec![0.2, 0.4]]]);
        assert!(judge_only.repeats.is_none() && judge_only.judge.is_some());
    }
}
