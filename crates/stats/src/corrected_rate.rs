//! Pass rates of answers without labels, from a few human labels and many verdicts of a judge whose
//! errors the labels reveal: by prediction-powered inference if the labels are of the same answers,
//! and by the rates of its errors (label shift) if they are of others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Interval, Z, mean, real};

/// Minimum number of labels for a corrected pass rate. From here on the interval has its nominal
/// coverage, below it does not: simulated for judges from perfect to useless, see the tests.
pub const MIN_CORRECTION_LABELS: usize = 80;

/// Minimum number of labels of each kind.
const MIN_OF_A_KIND: usize = 2;

/// A pass rate corrected by labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectedRate {
    /// Corrected pass rate, 0 to 1.
    pub rate: f64,
    /// 95 % confidence interval, over similar cases.
    pub interval: Interval,
    /// Weight of the judge: 0 uses only the labels, 1 treats its verdicts like labels.
    pub lambda: f64,
    /// Number of labels.
    pub labels: u32,
    /// Number of verdicts without a label.
    pub unlabelled: u32,
}

/// Corrects the pass rate of a judge. `labelled` contains pairs of a label and the judge's verdict,
/// 0 to 1, for a random sample of answers; `unlabelled` contains the verdicts on the others.
/// Returns `None` ("uncalibrated") with fewer than [`MIN_CORRECTION_LABELS`] labels, with fewer
/// than two of either kind, or if a value is not finite.
///
/// Angelopoulos et al., "Prediction-powered inference" (2023, arXiv 2301.09633), with lambda chosen
/// as in "PPI++" (2023, arXiv 2311.01453). The paper's normal interval is too short if labels are
/// few or the judge is nearly perfect. Therefore the variance includes two additional labels on
/// which the judge had no information, and the interval is Wilson's (1927) for the number of cases
/// that would give this variance.
///
/// The labels have to be of the same answers: for labels of other answers see [`crate::shifted_rate`].
pub fn corrected_rate(labelled: &[(bool, f64)], unlabelled: &[f64]) -> Option<CorrectedRate> {
    let good = labelled.iter().filter(|(label, _)| *label).count();
    let is_enough =
        labelled.len() >= MIN_CORRECTION_LABELS && good.min(labelled.len() - good) >= MIN_OF_A_KIND;
    let said: Vec<f64> = labelled.iter().map(|(_, said)| *said).collect();
    let labels: Vec<f64> = labelled.iter().map(|(label, _)| f64::from(u8::from(*label))).collect();
    // The variance of the verdicts is estimated from labelled and unlabelled ones alike: both are
    // drawn from the same answers, and there are usually few labels.
    let all = [&said[..], unlabelled].concat();
    if !is_enough || all.iter().any(|said| !said.is_finite()) {
        return None;
    }
    let (n, others) = (real(labelled.len()), real(unlabelled.len()));
    let (label_mean, said_mean, all_mean) = (mean(&labels)?, mean(&said)?, mean(&all)?);
    let variance =
        all.iter().map(|said| (said - all_mean).powi(2)).sum::<f64>() / (real(all.len()) - 1.0);
    let pairs = || labels.iter().zip(&said).map(|(y, f)| (y - label_mean, f - said_mean));
    let covariance = pairs().map(|(y, f)| y * f).sum::<f64>() / (n - 1.0);
    // Without further verdicts, or if they are all equal, the judge adds no information.
    let lambda = if others == 0.0 || variance <= 1e-12 {
        0.0
    } else {
        // The lambda of least variance for a mean (PPI++, section 6). A negative one would mean
        // that the judge prefers bad answers; it is then ignored instead of inverted.
        (covariance / ((1.0 + n / others) * variance)).clamp(0.0, 1.0)
    };
    // How much higher the judge rates the rest than the labelled answers; the sample may have been
    // easy or hard by chance.
    let rest = mean(unlabelled).map_or(0.0, |rest| rest - said_mean);
    let rate = (label_mean + lambda * rest).clamp(0.0, 1.0);
    // Keeps the variance above 0 for a rate of 0 or 1.
    let inner = rate.clamp(0.5 / n, 1.0 - 0.5 / n);
    let bernoulli = inner * (1.0 - inner);
    let residuals: f64 = pairs().map(|(y, f)| (y - lambda * f).powi(2)).sum();
    // Estimating lambda costs a degree of freedom, as the slope of a regression does.
    let freedom = n - if lambda > 0.0 { 2.0 } else { 1.0 };
    // Two more labels with the variance of an uninformed judge. Without them a judge that happens
    // to agree with every label would have no variance at all.
    let of_labels = (residuals + 2.0 * bernoulli) / (freedom + 2.0) / n;
    let of_judge = if others > 0.0 { lambda * lambda * variance / others } else { 0.0 };
    // Never more cases than there are answers: a small sample of residuals can be zero by luck.
    let interval = wilson_of(inner, (bernoulli / (of_labels + of_judge)).min(n + others));
    // An estimate at the very edge must lie within its interval.
    let interval = Interval { low: interval.low.min(rate), high: interval.high.max(rate) };
    let count = |values: usize| u32::try_from(values).unwrap_or(u32::MAX);
    let (labels, unlabelled) = (count(labelled.len()), count(unlabelled.len()));
    Some(CorrectedRate { rate, interval, lambda, labels, unlabelled })
}

/// Returns Wilson's interval of a rate observed in `n` cases, which need not be an integer.
fn wilson_of(rate: f64, n: f64) -> Interval {
    let scale = 1.0 + Z * Z / n;
    let centre = (rate + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    Interval { low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
}

/// Minimum number of labels of each kind.
const MIN_SHIFT_OF_A_KIND: usize = 10;

/// Minimum distance of the judge's mean verdicts on good and on bad labels, in standard errors. Nearer
/// to 0 any rate would explain the verdicts.
const MIN_DISTANCE: f64 = 3.0;

/// Estimates the share of good answers among those without a label, from the judge's verdicts, 0 to 1.
/// `labelled` holds pairs of a label and the verdict on it, for answers of any origin.
///
/// The judge is taken to err alike on good and on bad answers of both origins; the share of good ones
/// may differ (label shift). With the mean verdicts `a` on good labels, `b` on bad ones and `m` on the
/// others, the share is `(m - b) / (a - b)`: Rogan and Gladen, "Estimating prevalence from the results
/// of a screening test" (1978), for verdicts that may be probabilities. The interval is Fieller's
/// (1954): all shares `p` for which `m - p a - (1 - p) b` is no further from 0 than chance allows. It
/// is wide where labels are few.
///
/// Returns `None` with fewer than [`MIN_CORRECTION_LABELS`] labels or ten of either kind, without
/// unlabelled verdicts, if a value is not finite, or if the verdicts on good and bad labels hardly
/// differ: `TPR + TNR` is near 1, and the verdicts say nothing.
pub fn shifted_rate(labelled: &[(bool, f64)], unlabelled: &[f64]) -> Option<CorrectedRate> {
    let of = |kind: bool| -> Vec<f64> {
        labelled.iter().filter(|(label, _)| *label == kind).map(|(_, said)| *said).collect()
    };
    let (good, bad) = (of(true), of(false));
    let is_enough = labelled.len() >= MIN_CORRECTION_LABELS
        && good.len().min(bad.len()) >= MIN_SHIFT_OF_A_KIND
        && !unlabelled.is_empty();
    let all = good.iter().chain(&bad).chain(unlabelled);
    if !is_enough || all.clone().any(|said| !said.is_finite()) {
        return None;
    }
    let (a, a_variance) = mean_and_variance(&good)?;
    let (b, b_variance) = mean_and_variance(&bad)?;
    let (m, m_variance) = mean_and_variance(unlabelled)?;
    // The estimate divides by `a - b`. Near 0 it explodes, and Fieller's set is no longer an
    // interval but everything outside of one.
    if a - b < MIN_DISTANCE * (a_variance + b_variance).sqrt() {
        return None;
    }
    // The estimate uses the plain means; the pseudo-labels are only for the variance.
    let rate = (mean(unlabelled)? - mean(&bad)?) / (mean(&good)? - mean(&bad)?);
    let rate = rate.clamp(0.0, 1.0);
    let is_likely = |m: f64, share: f64| {
        let distance = m - share * a - (1.0 - share) * b;
        let variance = m_variance + share.powi(2) * a_variance + (1.0 - share).powi(2) * b_variance;
        distance.powi(2) <= Z * Z * variance
    };
    // The likely shares are an interval, because the labels differ by several standard errors.
    let likely_at = |m: f64| -> Vec<f64> {
        // A grid instead of the quadratic formula: it needs no cases for its discriminant, and
        // 1/2000 is far below any width that reports show.
        let steps = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS));
        steps.filter(|share| is_likely(m, *share)).collect()
    };
    let mut likely = likely_at(m);
    // Verdicts beyond all on labels fit no share: they count as the nearest that do.
    if likely.is_empty() {
        likely = likely_at(m.clamp(b, a));
    }
    // The pseudo-labels pull the interval towards the middle, so that the plain estimate may lie
    // just outside of it.
    let low = likely.first().copied().unwrap_or(rate).min(rate);
    let high = likely.last().copied().unwrap_or(rate).max(rate);
    let count = |values: usize| u32::try_from(values).unwrap_or(u32::MAX);
    Some(CorrectedRate {
        rate,
        interval: Interval { low, high },
        lambda: 1.0,
        labels: count(labelled.len()),
        unlabelled: count(unlabelled.len()),
    })
}

/// Number of shares that are tried.
const STEPS: u32 = 2_000;

/// Returns the mean and its variance, with a verdict of each kind added, so that a few equal verdicts
/// are not certain. Agresti and Coull, "Approximate is better than exact" (1998).
fn mean_and_variance(values: &[f64]) -> Option<(f64, f64)> {
    // Without these, ten equal verdicts would have a variance of 0 and fake certainty.
    let values = [values, &[0.0, 1.0]].concat();
    let n = real(values.len());
    let centre = mean(&values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    Some((centre, squares / n / n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Noise;

    /// A judge with known error rates.
    #[derive(Debug, Clone, Copy)]
    enum Simulated {
        /// Answers yes or no, with the rates of yes for good answers and of no for bad ones.
        Verdicts(f64, f64),
        /// Answers with probabilities whose log-odds are this far apart.
        Probabilities(f64),
    }

    impl Simulated {
        fn say(self, is_good: bool, noise: &mut Noise) -> f64 {
            match self {
                Self::Verdicts(yes_to_good, no_to_bad) => {
                    let yes = if is_good { yes_to_good } else { 1.0 - no_to_bad };
                    f64::from(u8::from(noise.chance(yes)))
                }
                Self::Probabilities(apart) => {
                    let shift = if is_good { apart } else { 0.0 };
                    1.0 / (1.0 + (-(shift - 0.5 + noise.normal())).exp())
                }
            }
        }
    }

    /// Returns how often the interval covers the truth in this many draws, and its mean width.
    fn coverage(judge: Simulated, truth: f64, sizes: (usize, usize), draws: u32) -> (f64, f64) {
        let mut noise = Noise::new(2023);
        let (mut covered, mut given, mut width) = (0_u32, 0_u32, 0.0);
        for _ in 0..draws {
            let mut answer = || {
                let is_good = noise.chance(truth);
                (is_good, judge.say(is_good, &mut noise))
            };
            let labelled: Vec<(bool, f64)> = (0..sizes.0).map(|_| answer()).collect();
            let others: Vec<f64> = (0..sizes.1).map(|_| answer().1).collect();
            let Some(found) = corrected_rate(&labelled, &others) else { continue };
            given += 1;
            covered += u32::from((found.interval.low..=found.interval.high).contains(&truth));
            width += found.interval.high - found.interval.low;
        }
        assert!(given > draws / 2, "too few draws are calibrated: {given}");
        (f64::from(covered) / f64::from(given), width / f64::from(given))
    }

    /// The requirement from the issue: 10,000 draws each, judges with known error rates, from the
    /// minimum number of labels on.
    #[test]
    fn the_interval_covers_the_truth() {
        use Simulated::{Probabilities, Verdicts};
        for judge in [
            // As published: nearly all good answers pass, and most of the bad ones.
            Verdicts(0.96, 0.25),
            Verdicts(0.9, 0.8),
            Verdicts(0.7, 0.6),
            Probabilities(2.0),
        ] {
            for truth in [0.5, 0.7, 0.85] {
                for sizes in
                    [(MIN_CORRECTION_LABELS, 100), (MIN_CORRECTION_LABELS, 500), (200, 500)]
                {
                    let (found, _) = coverage(judge, truth, sizes, 10_000);
                    let holds = (0.935..=0.965).contains(&found);
                    assert!(holds, "{judge:?}, {truth}, {sizes:?}: {found}");
                }
            }
        }
    }

    #[test]
    fn a_good_judge_makes_it_narrower_and_a_useless_one_no_wider() {
        let width = |judge| coverage(judge, 0.7, (100, 1_000), 200).1;
        let useless = width(Simulated::Verdicts(0.5, 0.5));
        assert!(width(Simulated::Verdicts(0.95, 0.9)) < 0.7 * useless);
        assert!((useless - 0.178).abs() < 0.005, "Wilson's of a hundred labels: {useless}");
    }

    #[test]
    fn a_biased_judge_is_corrected() {
        // Three quarters of the bad answers pass; 60 of 100 labels are good.
        let labelled = |good: usize, bad_yes: usize| {
            let mut pairs = vec![(true, 1.0); good];
            pairs.extend(vec![(false, 1.0); bad_yes]);
            pairs.extend(vec![(false, 0.0); 100 - good - bad_yes]);
            pairs
        };
        let others: Vec<f64> = (0..1_000).map(|index| f64::from(u8::from(index < 900))).collect();
        let found = corrected_rate(&labelled(60, 30), &others).unwrap();
        assert!((found.rate - 0.6).abs() < 1e-9, "{found:?}");
        assert!(found.lambda > 0.0 && found.interval.low > 0.5 && found.interval.high < 0.7);
    }

    #[test]
    fn too_little_is_uncalibrated() {
        let pair = |index: usize| (index.is_multiple_of(2), 1.0);
        let few: Vec<(bool, f64)> = (0..MIN_CORRECTION_LABELS - 1).map(pair).collect();
        assert_eq!(corrected_rate(&few, &[1.0]), None);
        assert_eq!(corrected_rate(&[], &[]), None);
        let equal = vec![(true, 1.0); 200];
        assert_eq!(corrected_rate(&equal, &[1.0; 9]), None);
        let enough: Vec<(bool, f64)> = (0..100).map(pair).collect();
        assert_eq!(corrected_rate(&enough, &[f64::NAN]), None);
        let constant = corrected_rate(&enough, &[1.0; 50]).unwrap();
        assert_eq!((constant.lambda, constant.rate), (0.0, 0.5));
        let alone = corrected_rate(&enough, &[]).unwrap();
        assert_eq!((alone.rate, alone.unlabelled), (0.5, 0));
    }

    /// Shares of good answers among labels and later, rates of yes and no, numbers of labels and
    /// answers: how often the interval covers the truth.
    fn coverage_of_label_shift(
        (labelled_share, truth): (f64, f64),
        (tpr, tnr): (f64, f64),
        (labels, answers): (usize, usize),
    ) -> f64 {
        let mut noise = Noise::new(1978);
        let (mut covered, mut given) = (0_u32, 0_u32);
        for _ in 0..2_000 {
            let mut answer = |share: f64| {
                let is_good = noise.chance(share);
                let yes = if is_good { tpr } else { 1.0 - tnr };
                (is_good, f64::from(u8::from(noise.chance(yes))))
            };
            let labelled: Vec<(bool, f64)> = (0..labels).map(|_| answer(labelled_share)).collect();
            let others: Vec<f64> = (0..answers).map(|_| answer(truth).1).collect();
            let Some(found) = shifted_rate(&labelled, &others) else { continue };
            given += 1;
            covered += u32::from((found.interval.low..=found.interval.high).contains(&truth));
        }
        assert!(given > 1_000, "too few draws are corrected: {given}");
        f64::from(covered) / f64::from(given)
    }

    #[test]
    fn the_interval_covers_the_truth_after_a_shift() {
        for shares in [(0.6, 0.9), (0.6, 0.3), (0.5, 0.6), (0.8, 0.8), (0.3, 0.7)] {
            for rates in [(0.85, 0.65), (0.95, 0.9), (0.7, 0.8), (0.9, 0.5)] {
                for sizes in [(100, 100), (100, 500), (300, 300)] {
                    let found = coverage_of_label_shift(shares, rates, sizes);
                    let holds = (0.93..=0.985).contains(&found);
                    assert!(holds, "{shares:?} {rates:?} {sizes:?}: {found}");
                }
            }
        }
    }

    #[test]
    fn labels_of_other_answers_do_not_pull_the_rate_towards_theirs() {
        let mut noise = Noise::new(5);
        let mut answer = |truth: f64| {
            let is_good = noise.chance(truth);
            (is_good, f64::from(u8::from(noise.chance(if is_good { 0.9 } else { 0.1 }))))
        };
        let labelled: Vec<(bool, f64)> = (0..20_000).map(|_| answer(0.5)).collect();
        let others: Vec<f64> = (0..20_000).map(|_| answer(0.6).1).collect();
        let found = shifted_rate(&labelled, &others).unwrap();
        assert!((found.rate - 0.6).abs() < 0.015, "{found:?}");
    }

    #[test]
    fn verdicts_that_say_nothing_correct_nothing() {
        let useless: Vec<(bool, f64)> =
            (0..400).map(|at: u32| (at.is_multiple_of(2), f64::from(at / 2 % 2))).collect();
        assert_eq!(shifted_rate(&useless, &[1.0; 50]), None);
        let good: Vec<(bool, f64)> = (0..100).map(|at| (at % 2 == 0, f64::from(at % 2))).collect();
        let good: Vec<(bool, f64)> =
            good.into_iter().map(|(label, said)| (label, 1.0 - said)).collect();
        assert!(shifted_rate(&good, &[1.0; 50]).is_some_and(|found| found.rate == 1.0));
        assert_eq!(shifted_rate(&good, &[]), None);
        assert_eq!(shifted_rate(&good, &[f64::NAN]), None);
        assert_eq!(shifted_rate(&good[..60], &[1.0; 50]), None);
    }
}
