//! Permutation test: is the difference between two arms more than the noise of their trials, on
//! exactly the cases that were run? It does not generalise to other cases. And Holm's correction
//! for several such tests.

use std::cmp::Ordering;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng as _, SeedableRng as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::real;

/// Minimum number of random relabellings.
pub const MIN_DRAWS: u32 = 10_000;

/// Maximum number of relabellings that are enumerated exhaustively.
const MAX_EXACT: usize = 50_000;
/// Maximum number of sums in a lookup table, so that it fits into the fastest cache.
const MAX_TABLE: usize = 1024;

/// The trials of one case in both arms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CaseTrials {
    /// Results without the change.
    pub control: Vec<f64>,
    /// Results with the change.
    pub treatment: Vec<f64>,
}

/// The difference between two arms, and the probability of one at least as large by chance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermutationTest {
    /// Mean over the cases of treatment minus control.
    pub difference: f64,
    /// Share of relabellings of each case's trials that give a difference at least as large in
    /// either direction. Never 0.
    pub p_value: f64,
    /// Number of compared cases.
    pub cases: u32,
    /// Number of relabellings examined.
    pub relabellings: u32,
    /// True if these are all that exist; otherwise they were drawn at random.
    pub exact: bool,
}

/// Runs a two-sided permutation test within cases. If the arms do not differ, the labels of a
/// case's trials are arbitrary, and every labelling was equally likely. Cases without trials in
/// both arms are skipped. Returns `None` if none is left or a value is not finite.
///
/// If there are few relabellings, all are examined; otherwise `draws` random ones, at least
/// [`MIN_DRAWS`]. The observed labelling counts among them.
///
/// Fisher, "The design of experiments" (1935); Phipson and Smyth, "Permutation p-values should
/// never be zero" (2010).
pub fn permutation_test(cases: &[CaseTrials], seed: u64, draws: u32) -> Option<PermutationTest> {
    test(cases, seed, draws.max(MIN_DRAWS))
}

fn test(cases: &[CaseTrials], seed: u64, draws: u32) -> Option<PermutationTest> {
    let cases: Vec<&CaseTrials> = cases
        .iter()
        .filter(|case| !case.control.is_empty() && !case.treatment.is_empty())
        .collect();
    let values = |case: &&CaseTrials| [case.control.clone(), case.treatment.clone()].concat();
    if cases.is_empty() || cases.iter().flat_map(values).any(|value| !value.is_finite()) {
        return None;
    }
    // A case whose trials are all equal has a difference of zero under every labelling.
    let varied = cases.iter().filter(|case| {
        let mut values = case.control.iter().chain(&case.treatment);
        values.next().is_some_and(|first| values.any(|value| value != first))
    });
    let mut pools: Vec<TrialPool> = varied.map(|case| TrialPool::new(case)).collect();
    // Makes the random labellings independent of the order of cases and trials, and of which arm is
    // which.
    pools.sort_by(|a, b| order(&a.values, &b.values).then(a.smaller_arm.cmp(&b.smaller_arm)));
    let observed: f64 = pools.iter().map(|pool| pool.difference).sum();
    let reach: f64 = pools.iter().map(|pool| pool.difference.abs() + pool.spread()).sum();
    // Floating-point sums in a different order differ in their last bits.
    // Without the tolerance the observed labelling itself could count as less extreme than
    // observed.
    let bar = observed.abs() - 1e-9 * reach;
    let (blocks, shuffled) = blocks(pools);
    let (p_value, relabellings, exact) = match (&blocks[..], &shuffled[..]) {
        ([], []) => (1.0, 1, true),
        ([all], []) => {
            let extreme = all.iter().filter(|sum| sum.abs() >= bar).count();
            (real(extreme) / real(all.len()), u32::try_from(all.len()).ok()?, true)
        }
        _ => {
            // Too many labellings to enumerate: several blocks, or a case that is shuffled.
            let sums = draw(&blocks, shuffled, seed, draws as usize);
            let extreme = sums.iter().filter(|sum| sum.abs() >= bar).count();
            // The observed labelling counts as a draw, which keeps the p-value above 0 (Phipson and
            // Smyth).
            (real(extreme + 1) / real(sums.len() + 1), draws, false)
        }
    };
    let count = u32::try_from(cases.len()).unwrap_or(u32::MAX);
    let difference = observed / real(cases.len());
    Some(PermutationTest { difference, p_value, cases: count, relabellings, exact })
}

/// The trials of a case without their labels.
struct TrialPool {
    values: Vec<f64>,
    /// Number of trials in the smaller arm.
    smaller_arm: usize,
    /// The difference between the arms is `slope · sum of the smaller arm + offset`.
    slope: f64,
    offset: f64,
    /// Difference under the observed labelling.
    difference: f64,
}

impl TrialPool {
    fn new(case: &CaseTrials) -> Self {
        let (control, treatment) = (real(case.control.len()), real(case.treatment.len()));
        let mut values = [&case.control[..], &case.treatment[..]].concat();
        // Sorted, so that the order in which trials finished does not change which labelling a seed
        // draws.
        values.sort_unstable_by(f64::total_cmp);
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        let (few, many) = (control.min(treatment), control.max(treatment));
        // Knowing the sum of one arm is enough, since the total is the same under every labelling.
        // The smaller arm has fewer values to choose.
        let sign = if treatment <= control { 1.0 } else { -1.0 };
        Self {
            smaller_arm: case.control.len().min(case.treatment.len()),
            slope: sign * (1.0 / few + 1.0 / many),
            offset: -sign * sum(&values) / many,
            difference: sum(&case.treatment) / treatment - sum(&case.control) / control,
            values,
        }
    }

    fn spread(&self) -> f64 {
        let most = self.values.iter().copied().fold(f64::MIN, f64::max);
        most - self.values.iter().copied().fold(f64::MAX, f64::min)
    }

    /// Returns the number of labellings, or `None` if it exceeds `most`.
    fn labellings(&self, most: usize) -> Option<usize> {
        let mut count = 1_usize;
        for chosen in 0..self.smaller_arm {
            // Multiplying first keeps the division exact: after each step this is a binomial.
            count = count * (self.values.len() - chosen) / (chosen + 1);
            // Binomials increase up to the middle, which the smaller arm does not exceed.
            if count > most {
                return None;
            }
        }
        Some(count)
    }

    /// Returns the difference under every labelling.
    fn table(&self) -> Vec<f64> {
        let mut sums = Vec::new();
        sums_of(&self.values, self.smaller_arm, 0.0, &mut sums);
        sums.into_iter().map(|sum| self.slope * sum + self.offset).collect()
    }
}

fn order(a: &[f64], b: &[f64]) -> Ordering {
    let differing = a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Appends the sums of all choices of `choose` values, each added to `sum`.
fn sums_of(values: &[f64], choose: usize, sum: f64, sums: &mut Vec<f64>) {
    if choose == 0 {
        sums.push(sum);
    } else if let Some((first, rest)) = values.split_first() {
        // Leaving the first value out is possible only while enough others are left.
        if rest.len() >= choose {
            sums_of(rest, choose, sum, sums);
        }
        sums_of(rest, choose - 1, sum + first, sums);
    }
}

/// Returns the cases as tables of equally likely differences, and the cases with too many
/// labellings for a table. Small cases are combined into one table; with few labellings in total,
/// all are.
fn blocks(pools: Vec<TrialPool>) -> (Vec<Vec<f64>>, Vec<TrialPool>) {
    let all = pools.iter().try_fold(1_usize, |product, pool| {
        product.checked_mul(pool.labellings(MAX_EXACT)?).filter(|product| *product <= MAX_EXACT)
    });
    // If the product of all tables fits, one block holds every labelling and the test is exact.
    // Otherwise small tables are better: a draw reads one entry of each, at random places.
    let most = if all.is_some() { MAX_EXACT } else { MAX_TABLE };
    let (mut blocks, mut shuffled) = (Vec::<Vec<f64>>::new(), Vec::new());
    for pool in pools {
        if pool.labellings(most).is_none() {
            shuffled.push(pool);
            continue;
        }
        // Combining two tables replaces two random reads per draw by one.
        let table = pool.table();
        match blocks.last_mut() {
            Some(last) if last.len() * table.len() <= most => {
                *last = last.iter().flat_map(|a| table.iter().map(move |b| a + b)).collect();
            }
            _ => blocks.push(table),
        }
    }
    (blocks, shuffled)
}

/// Returns differences under random labellings, summed over the cases.
fn draw(blocks: &[Vec<f64>], shuffled: Vec<TrialPool>, seed: u64, draws: usize) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut sums = vec![0.0; draws];
    for block in blocks {
        // Two positions per random number: scaling 32 bits to a thousand positions has a bias below
        // one millionth.
        for pair in sums.chunks_mut(2) {
            let bits = random.next_u64();
            for (sum, half) in pair.iter_mut().zip([bits >> 32, bits & 0xffff_ffff]) {
                *sum += block[scale_to_index(half, block.len())];
            }
        }
    }
    for mut pool in shuffled {
        for sum in &mut sums {
            // The pool is not put back in order between draws: a shuffle of any order is as random.
            let mut chosen = 0.0;
            // A partial Fisher-Yates shuffle: only the smaller arm has to be chosen.
            for place in 0..pool.smaller_arm {
                let other =
                    place + scale_to_index(random.next_u64() >> 32, pool.values.len() - place);
                pool.values.swap(place, other);
                chosen += pool.values[place];
            }
            *sum += pool.slope * chosen + pool.offset;
        }
    }
    sums
}

/// Maps 32 random bits to a position below `count`.
pub(super) fn scale_to_index(bits: u64, count: usize) -> usize {
    usize::try_from((bits * count as u64) >> 32).unwrap_or(0)
}

/// Returns the p-values after Holm's correction, in the given order, each at most 1.0.
///
/// Holm, "A simple sequentially rejective multiple test procedure" (1979). Comparing them with
/// alpha keeps the probability of any false alarm below alpha.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    // The k-th smallest of m p-values is multiplied by m - k + 1: once the smaller ones are
    // rejected, only the remaining hypotheses can still be false alarms.
    let mut corrected = vec![1.0; p_values.len()];
    let mut highest = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        // Taking the running maximum keeps the corrected values in the order of the original ones.
        highest = highest.max(p_values[at] * super::real(p_values.len() - rank)).min(1.0);
        corrected[at] = highest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulation::Noise;

    fn case(control: &[f64], treatment: &[f64]) -> CaseTrials {
        CaseTrials { control: control.to_vec(), treatment: treatment.to_vec() }
    }

    /// The permutation test of two groups is the same as one case: Fisher's exact test where the
    /// values are 0 and 1.
    #[test]
    fn one_case_of_passes_is_fishers_exact_test() {
        // The lady tasting tea, all eight cups right: 2 of 70 labellings.
        let found = permutation_test(&[case(&[0.0; 4], &[1.0; 4])], 1, 0).unwrap();
        assert!(found.exact && found.relabellings == 70, "{found:?}");
        assert!((found.p_value - 2.0 / 70.0).abs() < 1e-12, "{found:?}");
        assert_eq!(found.difference, 1.0);
        // Six of eight right: 2 · (1 + 16) of 70.
        let tea = case(&[1.0, 0.0, 0.0, 0.0], &[1.0, 1.0, 1.0, 0.0]);
        let found = permutation_test(&[tea], 1, 0).unwrap();
        assert!((found.p_value - 34.0 / 70.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn one_trial_each_is_the_sign_flip_test() {
        // Darwin's 15 pairs of maize, in eighths of an inch; Fisher (1935), section 21: 1,726 of
        // 32,768 labellings sum to 314 or more either way.
        let differences: [f64; 15] = [
            49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0,
            -48.0,
        ];
        let cases: Vec<CaseTrials> = differences.iter().map(|d| case(&[0.0], &[*d])).collect();
        let found = permutation_test(&cases, 1, 0).unwrap();
        assert_eq!(found.relabellings, 32_768);
        assert!((found.p_value - 1_726.0 / 32_768.0).abs() < 1e-12, "{found:?}");
        // Drawn, it comes near.
        let mut more = cases.clone();
        more.extend(vec![case(&[0.0], &[1e-7]); 3]);
        let drawn = permutation_test(&more, 7, 100_000).unwrap();
        assert!(!drawn.exact && (drawn.p_value - found.p_value).abs() < 0.003, "{drawn:?}");
    }

    #[test]
    fn five_cases_of_twenty_repeats_conclude() {
        let cases = vec![case(&[0.0; 20], &[1.0; 20]); 5];
        let found = permutation_test(&cases, 1, MIN_DRAWS).unwrap();
        assert_eq!(found.difference, 1.0);
        assert!(found.p_value > 0.0 && found.p_value < 0.001, "{found:?}");
    }

    #[test]
    fn edges() {
        assert_eq!(permutation_test(&[], 1, 0), None);
        assert_eq!(permutation_test(&[case(&[1.0], &[])], 1, 0), None);
        assert_eq!(permutation_test(&[case(&[f64::NAN], &[1.0])], 1, 0), None);
        assert_eq!(permutation_test(&[case(&[f64::INFINITY], &[1.0])], 1, 0), None);
        let same = permutation_test(&[case(&[0.3; 3], &[0.3; 9])], 1, 0).unwrap();
        assert_eq!((same.p_value, same.difference, same.exact), (1.0, 0.0, true));
        // Unlike arms: of three trials the one in the smaller arm is the low one.
        let found = permutation_test(&[case(&[0.0], &[1.0, 1.0])], 1, 0).unwrap();
        assert_eq!((found.relabellings, found.difference), (3, 1.0));
        assert!((found.p_value - 1.0 / 3.0).abs() < 1e-12, "{found:?}");
        let found = permutation_test(&[case(&[1.0, 1.0], &[0.0])], 1, 0).unwrap();
        assert!((found.p_value - 1.0 / 3.0).abs() < 1e-12 && found.difference == -1.0, "{found:?}");
    }

    /// Experiments of eight cases and three trials in each arm that are found at 0.05, of 1,000.
    fn found_of(experiments: u32, difference: f64) -> f64 {
        let mut noise = Noise::new(15);
        let found = (0..experiments).filter(|number| {
            let cases: Vec<CaseTrials> = (0..8)
                .map(|_| {
                    let level = 0.3 + 0.4 * noise.uniform();
                    let mut arm = |mean: f64| (0..3).map(|_| mean + 0.1 * noise.normal()).collect();
                    CaseTrials { control: arm(level), treatment: arm(level + difference) }
                })
                .collect();
            // Fewer draws than users get: the power is no greater for it.
            test(&cases, u64::from(*number), 999).unwrap().p_value <= 0.05
        });
        real(found.count()) / f64::from(experiments)
    }

    #[test]
    fn a_tenth_is_found_in_eight_cases_of_three_trials() {
        let power = found_of(2_000, 0.1);
        assert!(power >= 0.85, "power {power}");
    }

    #[test]
    fn one_comparison_of_twenty_is_a_false_alarm() {
        // The test is exact: it uses up its five percent, give or take three standard errors of
        // the simulation. What is concluded from it stays below, by Holm's correction.
        let alarms = found_of(20_000, 0.0);
        assert!((alarms - 0.05).abs() < 0.0047, "false alarms {alarms}");
    }

    proptest! {
        #[test]
        fn changing_the_arms_mirrors_the_difference(
            values in prop::collection::vec(
                (prop::collection::vec(0..=4_u8, 1..4), prop::collection::vec(0..=4_u8, 1..4)),
                1..5,
            ),
        ) {
            let arm = |values: &Vec<u8>| values.iter().map(|v| f64::from(*v) / 4.0).collect();
            let cases: Vec<CaseTrials> = values
                .iter()
                .map(|(a, b)| CaseTrials { control: arm(a), treatment: arm(b) })
                .collect();
            let mirrored: Vec<CaseTrials> = values
                .iter()
                .map(|(a, b)| CaseTrials { control: arm(b), treatment: arm(a) })
                .collect();
            let one = permutation_test(&cases, 3, 0).unwrap();
            let other = permutation_test(&mirrored, 3, 0).unwrap();
            prop_assert!(one.p_value > 0.0 && one.p_value <= 1.0);
            prop_assert!((one.difference + other.difference).abs() < 1e-12);
            // Drawn relabellings of unequal arms are not the mirrored ones: five standard errors of
            // the difference of two shares.
            let error = if one.exact { 1e-12 } else { 5.0 * (0.5 / f64::from(one.relabellings)).sqrt() };
            prop_assert!((one.p_value - other.p_value).abs() < error, "{one:?} {other:?}");
        }
    }

    #[test]
    fn published_values() {
        // Wikipedia, "Holm-Bonferroni method", example: only the first and the last are rejected
        // at 0.05. The corrected values are those of R's `p.adjust`.
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
