//! Intervals of means: how far a mean of few values can be trusted.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::{Interval, real};

/// The mean of some values and its 95 % interval by Student's t; no interval of fewer than two
/// values, `None` of none or where one is not finite.
///
/// Student, "The probable error of a mean" (1908).
pub fn mean_interval(values: &[f64]) -> Option<(f64, Option<Interval>)> {
    let n = real(values.len());
    let mean = values.iter().sum::<f64>() / n;
    if !mean.is_finite() {
        return None;
    }
    let interval = (values.len() > 1).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (n - 1.0) / n).sqrt();
        let t = StudentsT::new(0.0, 1.0, n - 1.0).map_or(f64::NAN, |t| t.inverse_cdf(0.975));
        Interval { low: mean - t * error, high: mean + t * error }
    });
    Some((mean, interval.filter(|one| one.low.is_finite() && one.high.is_finite())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        // Student's sleep data, second drug; R's help page of `t.test` and `sleep`: mean 2.33,
        // 95 % interval 0.8976775 to 3.7623225.
        let hours = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let (mean, interval) = mean_interval(&hours).unwrap();
        let interval = interval.unwrap();
        assert!((mean - 2.33).abs() < 1e-9, "{mean}");
        assert!((interval.low - 0.897_677_5).abs() < 1e-6, "{interval:?}");
        assert!((interval.high - 3.762_322_5).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn little_says_little() {
        assert_eq!(mean_interval(&[]), None);
        assert_eq!(mean_interval(&[f64::NAN, 1.0]), None);
        assert_eq!(mean_interval(&[3.0]), Some((3.0, None)));
        let same = Interval { low: 2.0, high: 2.0 };
        assert_eq!(mean_interval(&[2.0, 2.0]), Some((2.0, Some(same))));
    }
}
