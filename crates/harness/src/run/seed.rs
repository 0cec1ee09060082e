//! Derives sampling seeds from the run's seed, so that a run can be repeated. Pure.

use crate::scenario::draw::mix;

/// A part of a case that samples.
#[derive(Debug, Clone, Copy)]
pub enum SeedPurpose {
    /// The system under test, if it accepts a seed.
    Sut,
    /// An attempt of the generator.
    Generate,
    /// A call to the judge, by step.
    Judge(u32),
}

/// Derives the seed of one call. It has at most 53 bits, so that JSON readers that use doubles keep
/// it exact.
pub fn derive_seed(run: u64, case: usize, purpose: SeedPurpose, number: u32) -> u64 {
    let purpose = match purpose {
        SeedPurpose::Sut => 0,
        SeedPurpose::Generate => 1,
        SeedPurpose::Judge(step) => 2 + u64::from(step),
    };
    [case as u64, purpose, u64::from(number)]
        .into_iter()
        .fold(run, |state, part| mix(state ^ mix(part)))
        >> 11
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn calls_differ_and_repeat() {
        let mut seeds = HashSet::new();
        for case in 0..50 {
            for number in 0..3 {
                for purpose in [
                    SeedPurpose::Sut,
                    SeedPurpose::Generate,
                    SeedPurpose::Judge(0),
                    SeedPurpose::Judge(1),
                ] {
                    assert!(seeds.insert(derive_seed(7, case, purpose, number)));
                }
            }
        }
        assert!(seeds.iter().all(|seed| *seed < 1 << 53));
        assert!(seeds.contains(&derive_seed(7, 3, SeedPurpose::Judge(1), 2)));
    }
}
