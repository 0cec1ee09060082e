//! Sources of noise: differences between cases, between trials of a case, or between a judge's
//! verdicts on one answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{mean, real};

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
    use super::*;
    use crate::simulation::Noise;

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
