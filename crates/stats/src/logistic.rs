//! A logistic curve through labelled numbers.

use super::real;

/// `P(label) = σ(slope · x + intercept)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Logistic {
    /// Above 0 where greater numbers go with the label.
    pub slope: f64,
    /// The log-odds of the label at 0.
    pub intercept: f64,
}

impl Logistic {
    /// The probability of the label at `x`.
    pub fn probability(self, x: f64) -> f64 {
        1.0 / (1.0 + (-(self.slope * x + self.intercept)).exp())
    }
}

/// The curve of the greatest likelihood, by Newton's method with Platt's targets, which keep it
/// finite for a perfect separation (Platt, "Probabilistic outputs for support vector machines",
/// 1999). `None` without both labels, or with a number that is not finite.
pub fn logistic(labelled: &[(f64, bool)]) -> Option<Logistic> {
    let count = |label| real(labelled.iter().filter(|(_, is)| *is == label).count());
    let (positives, negatives) = (count(true), count(false));
    if positives == 0.0 || negatives == 0.0 {
        return None;
    }
    let target = |label: bool| {
        if label { (positives + 1.0) / (positives + 2.0) } else { 1.0 / (negatives + 2.0) }
    };
    let mut curve =
        Logistic { slope: 0.0, intercept: ((positives + 1.0) / (negatives + 1.0)).ln() };
    for _ in 0..100 {
        // Gradient and Hessian of the negative log-likelihood, with a hair of ridge.
        let (mut g_slope, mut g_intercept) = (1e-6 * curve.slope, 0.0);
        let (mut h_ss, mut h_si, mut h_ii) = (1e-6, 0.0, 1e-9);
        for (x, label) in labelled {
            let p = curve.probability(*x);
            let (difference, weight) = (p - target(*label), p * (1.0 - p));
            g_slope += difference * x;
            g_intercept += difference;
            h_ss += weight * x * x;
            h_si += weight * x;
            h_ii += weight;
        }
        let determinant = h_ss * h_ii - h_si * h_si;
        if determinant.abs() < 1e-12 {
            break;
        }
        let step_slope = (h_ii * g_slope - h_si * g_intercept) / determinant;
        let step_intercept = (h_ss * g_intercept - h_si * g_slope) / determinant;
        curve.slope -= step_slope;
        curve.intercept -= step_intercept;
        if step_slope.abs() < 1e-9 && step_intercept.abs() < 1e-9 {
            break;
        }
    }
    (curve.slope.is_finite() && curve.intercept.is_finite()).then_some(curve)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_curve_is_found() {
        let truth = Logistic { slope: 2.0, intercept: -1.0 };
        let mut labelled = Vec::new();
        for step in -20..=20 {
            let x = f64::from(step) / 10.0;
            let share = truth.probability(x);
            labelled.extend((0..100).map(|number| (x, f64::from(number) + 0.5 < share * 100.0)));
        }
        let found = logistic(&labelled).unwrap();
        assert!((found.slope - 2.0).abs() < 0.05, "{found:?}");
        assert!((found.intercept + 1.0).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn what_says_little_stays_finite() {
        let separated = logistic(&[(-1.0, false), (-2.0, false), (1.0, true)]).unwrap();
        assert!(separated.slope > 0.0 && separated.slope.is_finite());
        assert!(logistic(&[(0.0, true), (0.0, false)]).unwrap().slope.abs() < 1e-6);
        assert_eq!(logistic(&[(1.0, true)]), None);
        assert_eq!(logistic(&[(f64::NAN, true), (1.0, false)]), None);
    }
}
