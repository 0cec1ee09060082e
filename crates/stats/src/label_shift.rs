//! The pass rate of answers without labels, from a judge whose errors the labels of other answers
//! reveal, of which another share may have been good.

use super::ppi::{CorrectedRate, MIN_CORRECTION_LABELS};
use super::{Interval, Z, mean, real};

/// Minimum number of labels of each kind.
const MIN_OF_A_KIND: usize = 10;

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
        && good.len().min(bad.len()) >= MIN_OF_A_KIND
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

    /// Shares of good answers among labels and later, rates of yes and no, numbers of labels and
    /// answers: how often the interval covers the truth.
    fn coverage(
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
                    let found = coverage(shares, rates, sizes);
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
