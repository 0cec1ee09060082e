//! Means, and what the mean of a small sample is worth.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::{Interval, real};

/// The mean; `None` of nothing, or where a value is not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / real(values.len());
    mean.is_finite().then_some(mean)
}

/// The sample's standard deviation, over `n - 1`; `None` with fewer than two values, or where one
/// is not finite.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    Some((squares / (real(values.len()) - 1.0)).sqrt()).filter(|deviation| deviation.is_finite())
}

/// The 95 % interval of the mean of the population that the values come from. `None` with fewer
/// than two values or one that is not finite, and where all are the same: the interval would have
/// no width and say nothing.
///
/// Student, "The probable error of a mean" (1908).
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    t_interval(values).filter(|interval| interval.high - interval.low > 1e-9)
}

/// `mean ± t(0.975; n - 1) · s / √n` with `s` the standard deviation: a point where all values
/// are the same. `None` with fewer than two values or one that is not finite.
pub(super) fn t_interval(values: &[f64]) -> Option<Interval> {
    let centre = mean(values).filter(|_| values.len() > 1)?;
    let n = real(values.len());
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let half = t_quantile(n - 1.0) * (squares / (n - 1.0) / n).sqrt();
    half.is_finite().then_some(Interval { low: centre - half, high: centre + half })
}

/// The 0.975 quantile of Student's t with so many degrees of freedom, at least 1. By halving:
/// the library's own inverse is off by per cents at two degrees.
fn t_quantile(freedom: f64) -> f64 {
    let Ok(t) = StudentsT::new(0.0, 1.0, freedom) else { return f64::INFINITY };
    // At one degree of freedom the quantile is 12.7, and it falls from there.
    let (mut low, mut high) = (0.0, 16.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if t.cdf(middle) < 0.975 { low = middle } else { high = middle }
    }
    high
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
}
