//! The random order in which an experiment runs its trials, so that neither arm is always first and
//! changes over time favour neither. Pure.

use crate::experiment::Arm;
use crate::scenario::draw::mix;

/// One trial of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrialSlot {
    /// Position of the case, from 0.
    pub case: usize,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// The arm.
    pub arm: Arm,
}

impl TrialSlot {
    /// Returns the trial's index in a plan of `cases` cases that is repeated in rounds.
    pub fn position(&self, cases: usize) -> usize {
        (self.repeat.saturating_sub(1) as usize).saturating_mul(cases).saturating_add(self.case)
    }
}

/// Returns the order of all trials: in each round, every case once in both arms, in a fresh random
/// order. The two trials of a case are adjacent. In half of a round's cases the control comes
/// first, in the other half the treatment; the halves are drawn anew each round. The same seed
/// gives the same order.
pub fn interleave(cases: usize, repeats: u32, seed: u64) -> Vec<TrialSlot> {
    let mut random = ShuffleRng(seed);
    // With an odd number of cases, decides which arm leads in the larger half.
    let coin = usize::from(random.below(2) == 1);
    let mut slots = Vec::with_capacity(cases.saturating_mul(repeats as usize).saturating_mul(2));
    for (round, repeat) in (1..=repeats).enumerate() {
        let mut order: Vec<usize> = (0..cases).collect();
        random.shuffle(&mut order);
        // Which arm is first is shuffled independently of the position in the round.
        let mut firsts: Vec<usize> = (0..cases).map(|at| (at + round + coin) % 2).collect();
        random.shuffle(&mut firsts);
        for (case, first) in order.into_iter().zip(firsts) {
            let mut arms = [Arm::Control, Arm::Treatment];
            arms.rotate_left(first);
            slots.extend(arms.map(|arm| TrialSlot { case, repeat, arm }));
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
            let slots = interleave(1, 4, seed);
            let firsts: Vec<Arm> = slots.chunks(2).map(|pair| pair[0].arm).collect();
            assert!(firsts.windows(2).all(|pair| pair[0] != pair[1]), "{firsts:?}");
        }
        let first = |seed| interleave(1, 1, seed)[0].arm;
        assert!((0..20).any(|seed| first(seed) == Arm::Control));
        assert!((0..20).any(|seed| first(seed) == Arm::Treatment));
        assert_eq!(interleave(0, 5, 1), []);
    }

    #[test]
    fn every_case_is_first_and_last_at_some_time() {
        let firsts: HashSet<usize> = (0..200).map(|seed| interleave(5, 1, seed)[0].case).collect();
        let lasts: HashSet<usize> = (0..200).map(|seed| interleave(5, 1, seed)[9].case).collect();
        assert_eq!((firsts.len(), lasts.len()), (5, 5));
        assert_ne!(interleave(20, 1, 1), interleave(20, 1, 2));
    }

    proptest! {
        #[test]
        fn each_trial_once_and_no_arm_favoured(cases in 1..30_usize, repeats in 1..6_u32, seed: u64) {
            let slots = interleave(cases, repeats, seed);
            prop_assert_eq!(&slots, &interleave(cases, repeats, seed));
            prop_assert_eq!(slots.len(), 2 * cases * repeats as usize);
            let distinct: HashSet<TrialSlot> = slots.iter().copied().collect();
            prop_assert_eq!(distinct.len(), slots.len());
            for round in slots.chunks(2 * cases) {
                prop_assert!(round.iter().all(|slot| slot.repeat == round[0].repeat));
                let pairs = round.chunks(2);
                prop_assert!(pairs.clone().all(|pair| pair[0].case == pair[1].case));
                let control = pairs.filter(|pair| pair[0].arm == Arm::Control).count();
                prop_assert!(control.abs_diff(cases - control) <= 1, "{control} of {cases}");
            }
        }
    }
}
