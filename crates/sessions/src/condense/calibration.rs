//! Learns the number of bytes per token from the counts of a model's server.

/// A running estimate of the bytes per token. It starts low, as for code, because a transcript that
/// is too short loses less than a prompt that is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenCalibration {
    bytes_per_token: f64,
    /// Number of prompts counted so far, up to [`MAX_PROMPTS`].
    seen: f64,
}

/// Estimate before the first prompt.
const INITIAL_RATIO: f64 = 3.0;
/// Range of tokenizers, from dense scripts to plain words.
const MIN_RATIO: f64 = 1.5;
const MAX_RATIO: f64 = 8.0;
/// Number of prompts that the estimate averages; older ones fade.
const MAX_PROMPTS: f64 = 8.0;

impl Default for TokenCalibration {
    fn default() -> Self {
        Self { bytes_per_token: INITIAL_RATIO, seen: 0.0 }
    }
}

impl TokenCalibration {
    /// Records a prompt of this many bytes and the server's token count. A count of 0, or lower
    /// than any tokenizer produces, is ignored: the prompt was cut or served from a cache.
    pub fn observe(&mut self, bytes: usize, tokens: u64) {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let ratio = bytes as f64 / tokens as f64;
        if tokens == 0 || bytes == 0 || ratio > MAX_RATIO {
            return;
        }
        // The first count weighs as much as the initial guess.
        self.seen = (self.seen + 1.0).min(MAX_PROMPTS);
        self.bytes_per_token += (ratio.max(MIN_RATIO) - self.bytes_per_token) / (self.seen + 1.0);
    }

    /// Returns the estimate, between 1.5 and 8.0.
    pub fn bytes_per_token(&self) -> f64 {
        self.bytes_per_token.clamp(MIN_RATIO, MAX_RATIO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_learns_and_ignores_what_cannot_be() {
        let mut calibration = TokenCalibration::default();
        assert_eq!(calibration.bytes_per_token(), 3.0);
        for (bytes, tokens) in [(1000, 0), (0, 10), (100_000, 3)] {
            calibration.observe(bytes, tokens);
        }
        assert_eq!(calibration, TokenCalibration::default());
        calibration.observe(4500, 1000);
        assert_eq!(calibration.bytes_per_token(), 3.75);
        for _ in 0..60 {
            calibration.observe(28_000, 10_000);
        }
        assert!((calibration.bytes_per_token() - 2.8).abs() < 0.01);
    }

    proptest! {
        #[test]
        fn it_stays_in_bounds(counts in prop::collection::vec((any::<usize>(), any::<u64>()), 0..40)) {
            let mut calibration = TokenCalibration::default();
            for (bytes, tokens) in counts {
                calibration.observe(bytes, tokens);
                prop_assert!((MIN_RATIO..=MAX_RATIO).contains(&calibration.bytes_per_token()));
            }
        }
    }
}
