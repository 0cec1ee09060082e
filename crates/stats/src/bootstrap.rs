//! Bootstrap intervals of means, without distributional assumptions.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng as _, SeedableRng as _};

use super::permutation::scale_to_index;
use super::{Interval, mean, real};

/// Returns the 95 % percentile interval of the mean, from `resamples` samples drawn with
/// replacement. Pass one value per case. Returns `None` with fewer than two values or a value that
/// is not finite. If all values are equal, the interval is a point and says nothing about chance.
///
/// Efron, "Bootstrap methods: another look at the jackknife" (1979). Like any bootstrap it is too
/// narrow for few cases: use [`mean_interval`](super::mean_interval) below thirty.
pub fn bootstrap_mean(values: &[f64], seed: u64, resamples: u32) -> Option<Interval> {
    mean(values).filter(|_| values.len() > 1 && resamples > 0)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Noise;

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
}
