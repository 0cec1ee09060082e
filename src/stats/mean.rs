//! What the mean of a small sample is worth.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::{Interval, real};

/// The 95 % interval of the mean of the population that the values come from. `None` with fewer
/// than two values or one that is not finite, and where all are the same: the interval would have
/// no width and say nothing.
///
/// Student, "The probable error of a mean" (1908).
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    let n = real(values.len());
    let centre = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    // NaN is neither above nor below.
    if values.len() < 2 || !(1e-18..f64::INFINITY).contains(&squares) {
        return None;
    }
    let error = (squares / (n - 1.0) / n).sqrt();
    let width = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.975) * error;
    Some(Interval { low: centre - width, high: centre + width })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        // Student (1908), the additional hours of sleep gained by ten patients; R's help page of
        // `t.test`, paired: mean 1.58, 95 % interval 0.7001142 to 2.4598858.
        let gained = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let found = mean_interval(&gained).unwrap();
        assert!((found.low - 0.700_114_2).abs() < 5e-6, "{found:?}");
        assert!((found.high - 2.459_885_8).abs() < 5e-6, "{found:?}");
    }

    #[test]
    fn too_little_says_nothing() {
        for values in [&[][..], &[0.5], &[0.7, 0.7, 0.7], &[f64::NAN, 1.0], &[f64::INFINITY, 1.0]] {
            assert_eq!(mean_interval(values), None, "{values:?}");
        }
    }
}
