//! The random order in which an experiment runs its trials, so that no arm is always first and
//! changes over time favour none. Pure.

use crate::scenario::draw::mix;

/// One trial of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrialSlot {
    /// Position of the case, from 0.
    pub case: usize,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Position of the arm, from 0.
    pub arm: usize,
}

impl TrialSlot {
    /// Returns the trial's index in a plan of `cases` cases that is repeated in rounds.
    pub fn position(&self, cases: usize) -> usize {
        (self.repeat.saturating_sub(1) as usize).saturating_mul(cases).saturating_add(self.case)
    }
}

/// Returns the order of all trials: in each round, every case once in every arm, in a fresh random
/// order. The trials of a case are adjacent. Each arm comes first in an equal share of a round's
/// cases; the shares are drawn anew each round. The same seed gives the same order.
pub fn interleave(cases: usize, repeats: u32, arms: usize, seed: u64) -> Vec<TrialSlot> {
    if arms == 0 {
        return Vec::new();
    }
    let mut random = ShuffleRng(seed);
    // Where the cases cannot be shared equally, decides which arm leads in one more.
    let coin = random.below(arms);
    let mut slots = Vec::with_capacity(cases.saturating_mul(repeats as usize).saturating_mul(arms));
    for (round, repeat) in (1..=repeats).enumerate() {
        let mut order: Vec<usize> = (0..cases).collect();
        random.shuffle(&mut order);
        // Which arm is first is shuffled independently of the position in the round.
        let mut firsts: Vec<usize> = (0..cases).map(|at| (at + round + coin) % arms).collect();
        random.shuffle(&mut firsts);
        for (case, first) in order.into_iter().zip(firsts) {
            let turned = (0..arms).map(|place| (first + place) % arms);
            slots.extend(turned.map(|arm| TrialSlot { case, repeat, arm }));
        }
    }
    slots
}

struct ShuffleRng(u64);

impl ShuffleRng {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let wide = u128::from(mix(self.0)) * limit as u128;
        // The high half of the product distributes values evenly, up to a bias of limit / 2^64.
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Fisher–Yates shuffle.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_case_alternates() {
        for seed in 0..20 {
            let slots = interleave(1, 4, 2, seed);
            let firsts: Vec<usize> = slots.chunks(2).map(|pair| pair[0].arm).collect();
            assert!(firsts.windows(2).all(|pair| pair[0] != pair[1]), "{firsts:?}");
        }
        for arms in [2, 3] {
            let firsts: HashSet<usize> =
                (0..40).map(|seed| interleave(1, 1, arms, seed)[0].arm).collect();
            assert_eq!(firsts.len(), arms);
        }
        assert_eq!(interleave(0, 5, 2, 1), []);
        assert_eq!(interleave(5, 5, 0, 1), []);
    }

    #[test]
    fn every_case_is_first_and_last_at_some_time() {
        let firsts: HashSet<usize> =
            (0..200).map(|seed| interleave(5, 1, 2, seed)[0].case).collect();
        let lasts: HashSet<usize> =
            (0..200).map(|seed| interleave(5, 1, 2, seed)[9].case).collect();
        assert_eq!((firsts.len(), lasts.len()), (5, 5));
        assert_ne!(interleave(20, 1, 2, 1), interleave(20, 1, 2, 2));
    }

    proptest! {
        #[test]
        fn each_trial_once_and_no_arm_favoured(
            cases in 1..30_usize,
            repeats in 1..6_u32,
            arms in 1..5_usize,
            seed: u64,
        ) {
            let slots = interleave(cases, repeats, arms, seed);
            prop_assert_eq!(&slots, &interleave(cases, repeats, arms, seed));
            prop_assert_eq!(slots.len(), arms * cases * repeats as usize);
            let distinct: HashSet<TrialSlot> = slots.iter().copied().collect();
            prop_assert_eq!(distinct.len(), slots.len());
            for round in slots.chunks(arms * cases) {
                prop_assert!(round.iter().all(|slot| slot.repeat == round[0].repeat));
                let groups = round.chunks(arms);
                prop_assert!(groups.clone().all(|group| group.iter().all(|s| s.case == group[0].case)));
                let firsts: Vec<usize> = (0..arms)
                    .map(|arm| groups.clone().filter(|group| group[0].arm == arm).count())
                    .collect();
                let least = firsts.iter().min().unwrap();
                prop_assert!(firsts.iter().all(|count| count - least <= 1), "{:?}", firsts);
            }
        }
    }
}
