//! Sampling seeds, derived from the run's one seed so that a run can be repeated. Pure.

/// Part of a case that samples.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// The system under test, where it samples by our seed.
    Sut,
    /// A try of the generator.
    Generate,
    /// A call to the judge, by step.
    Judge(u32),
}

/// The seed of one call: at most 53 bits, so that every reader of the JSON report keeps it whole.
pub fn derive(run: u64, case: usize, purpose: Purpose, number: u32) -> u64 {
    let purpose = match purpose {
        Purpose::Sut => 0,
        Purpose::Generate => 1,
        Purpose::Judge(step) => 2 + u64::from(step),
    };
    [case as u64, purpose, u64::from(number)]
        .into_iter()
        .fold(run, |state, part| mix(state ^ mix(part)))
        >> 11
}

/// One step of `SplitMix64` (Steele, Lea, Flood 2014): its values never change between versions.
pub(super) const fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn published_values_of_splitmix64() {
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(0x9E37_79B9_7F4A_7C15), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn calls_differ_and_repeat() {
        let mut seeds = HashSet::new();
        for case in 0..50 {
            for number in 0..3 {
                for purpose in
                    [Purpose::Sut, Purpose::Generate, Purpose::Judge(0), Purpose::Judge(1)]
                {
                    assert!(seeds.insert(derive(7, case, purpose, number)));
                }
            }
        }
        assert!(seeds.iter().all(|seed| *seed < 1 << 53));
        assert!(seeds.contains(&derive(7, 3, Purpose::Judge(1), 2)));
    }
}
