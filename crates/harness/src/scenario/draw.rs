//! Seeded choices that are stable across versions of the program. Pure.

/// Performs one step of `SplitMix64` (Steele, Lea, Flood 2014). Its values never change between
/// versions.
pub(crate) const fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A seeded sequence of choices.
#[derive(Debug, Clone)]
pub struct SeededDraw {
    state: u64,
}

impl SeededDraw {
    /// Creates the sequence for this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.state = mix(self.state);
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from((self.state >> 11) % bound).unwrap_or(0)
    }

    /// Picks one item, or `None` from an empty slice.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.below(of.len());
        of.get(at)
    }

    /// Draws up to `count` items without replacement, in random order.
    pub fn sample<T: Clone>(&mut self, of: &[T], count: usize) -> Vec<T> {
        let mut left = of.to_vec();
        let mut drawn = Vec::new();
        while drawn.len() < count && !left.is_empty() {
            drawn.push(left.remove(self.below(left.len())));
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_of_splitmix64() {
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(0x9E37_79B9_7F4A_7C15), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn a_seed_decides_everything() {
        let row = |seed| {
            let mut draw = SeededDraw::new(seed);
            (0..20).map(|_| draw.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(row(7), row(7));
        assert_ne!(row(7), row(8));
        assert_eq!(SeededDraw::new(1).below(0), 0);
        assert_eq!(SeededDraw::new(1).pick::<u8>(&[]), None);
        let mut sample = SeededDraw::new(3).sample(&[1, 2, 3], 9);
        sample.sort_unstable();
        assert_eq!(sample, [1, 2, 3]);
    }
}
