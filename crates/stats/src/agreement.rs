//! Agreement of two raters beyond chance.

use super::{Interval, Z, real};

/// A kappa coefficient with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kappa {
    /// 1.0 is perfect agreement, 0.0 is chance, negative is worse than chance.
    pub kappa: f64,
    /// Large-sample standard error.
    pub standard_error: f64,
    /// 95 % confidence interval, within -1.0 to 1.0.
    pub interval: Interval,
}

/// Computes Cohen's kappa of pairs of categories. Returns `None` without pairs, or if both raters
/// always choose the same category, so that agreement by chance is already complete.
///
/// Cohen, "A coefficient of agreement for nominal scales" (1960).
pub fn cohen_kappa(pairs: &[(u8, u8)]) -> Option<Kappa> {
    kappa(pairs, |a, b| if a == b { 1.0 } else { 0.0 })
}

/// Computes Cohen's kappa with quadratic weights, for ordinal grades such as 1 to 5: a difference
/// of two counts four times as much as a difference of one. Returns `None` in the same cases as
/// [`cohen_kappa`].
///
/// Cohen, "Weighted kappa" (1968).
pub fn quadratic_kappa(pairs: &[(u8, u8)]) -> Option<Kappa> {
    // At least 1, so that raters who always agree do not divide by 0.
    let widest = pairs.iter().map(|(a, b)| a.abs_diff(*b)).max()?.max(1);
    let widest = f64::from(widest).powi(2);
    kappa(pairs, |a, b| 1.0 - f64::from(a.abs_diff(b)).powi(2) / widest)
}

/// Computes kappa and its standard error as in Fleiss, Cohen and Everitt, "Large sample standard
/// errors of kappa and weighted kappa" (1969). The scale of the weights cancels out.
fn kappa(pairs: &[(u8, u8)], weight: impl Fn(u8, u8) -> f64) -> Option<Kappa> {
    let n = real(pairs.len());
    // A category is a byte, so a table of all of them needs no map. Unused ones have a share of 0.
    let mut first = [0.0; 256];
    let mut second = [0.0; 256];
    for &(a, b) in pairs {
        first[usize::from(a)] += 1.0 / n;
        second[usize::from(b)] += 1.0 / n;
    }
    // Mean weight of a category against the other rater's categories.
    let against = |own: u8, other: &[f64; 256], flip: bool| -> f64 {
        (0..=u8::MAX)
            .filter(|category| other[usize::from(*category)] > 0.0)
            .map(|category| {
                let (a, b) = if flip { (category, own) } else { (own, category) };
                weight(a, b) * other[usize::from(category)]
            })
            .sum()
    };
    let first_mean: Vec<f64> = (0..=u8::MAX).map(|own| against(own, &second, false)).collect();
    let second_mean: Vec<f64> = (0..=u8::MAX).map(|own| against(own, &first, true)).collect();
    let observed = pairs.iter().map(|&(a, b)| weight(a, b)).sum::<f64>() / n;
    let by_chance: f64 = first.iter().zip(&first_mean).map(|(share, mean)| share * mean).sum();
    let room = 1.0 - by_chance;
    // Division by `1 - chance`: the threshold also catches rounding in a sum that should be 1.
    if pairs.is_empty() || room < 1e-12 {
        return None;
    }
    let kappa = (observed - by_chance) / room;
    // The paper's formula for the variance when kappa is not 0. The simpler one for kappa = 0 tests
    // against chance, and its interval would be wrong everywhere else.
    let spread = pairs.iter().map(|&(a, b)| {
        let mean = first_mean[usize::from(a)] + second_mean[usize::from(b)];
        (weight(a, b) - mean * (1.0 - kappa)).powi(2)
    });
    let spread = spread.sum::<f64>() / n - (kappa - by_chance * (1.0 - kappa)).powi(2);
    // Rounding can make a variance of 0 slightly negative.
    let standard_error = (spread.max(0.0) / n).sqrt() / room;
    let interval = Interval {
        low: (kappa - Z * standard_error).max(-1.0),
        high: (kappa + Z * standard_error).min(1.0),
    };
    Some(Kappa { kappa, standard_error, interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(cells: &[(u8, u8, usize)]) -> Vec<(u8, u8)> {
        cells.iter().flat_map(|&(a, b, count)| vec![(a, b); count]).collect()
    }

    #[test]
    fn published_values() {
        // Fleiss, Levin and Paik, "Statistical methods for rates and proportions" (2003), table
        // 18.1: kappa 0.676, standard error 0.087.
        let diagnoses =
            pairs(&[(1, 1, 75), (1, 2, 1), (1, 3, 4), (2, 1, 5), (2, 2, 4), (2, 3, 1), (3, 3, 10)]);
        let found = cohen_kappa(&diagnoses).unwrap();
        assert!((found.kappa - 0.676).abs() < 5e-4, "{found:?}");
        assert!((found.standard_error - 0.087).abs() < 1e-3, "{found:?}");
        // Artstein and Poesio (2008), as in scikit-learn's tests: 0.348.
        let found = cohen_kappa(&pairs(&[(0, 0, 20), (0, 1, 20), (1, 0, 10), (1, 1, 50)])).unwrap();
        assert!((found.kappa - 0.348).abs() < 5e-4, "{found:?}");
    }

    #[test]
    fn quadratic_weights_as_published() {
        // scikit-learn's tests of `cohen_kappa_score`: 0.9315 without, 0.9541 with weights.
        let grades = pairs(&[(1, 1, 46), (2, 1, 4), (2, 2, 40), (3, 3, 10)]);
        let (plain, weighted) = (cohen_kappa(&grades).unwrap(), quadratic_kappa(&grades).unwrap());
        assert!((plain.kappa - 0.9315).abs() < 5e-5, "{plain:?}");
        assert!((weighted.kappa - 0.9541).abs() < 5e-5, "{weighted:?}");
        assert!(weighted.standard_error > 0.0 && weighted.interval.high <= 1.0);
    }

    #[test]
    fn edges() {
        assert_eq!(cohen_kappa(&[]), None);
        assert_eq!(cohen_kappa(&[(1, 1), (1, 1)]), None);
        let perfect = quadratic_kappa(&[(1, 1), (5, 5)]).unwrap();
        assert!((perfect.kappa - 1.0).abs() < 1e-9 && perfect.standard_error < 1e-6);
    }
}
