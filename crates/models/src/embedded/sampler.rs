//! Selects the next token from logits, greedily or by seeded top-p sampling. The result must not
//! change between versions: reports state the seed so that runs can be reproduced.

use toktrie::SimpleVob;

use crate::SamplingParameters;

/// Cumulative probability to sample from.
const TOP_P: f64 = 0.95;
/// Tokens less probable than this fraction of the best one are never sampled, which avoids sorting
/// the whole vocabulary.
const MIN_P: f64 = 0.001;

/// The sampler of one call.
pub(super) struct TokenSampler {
    temperature: f64,
    random: SplitMix64,
}

impl TokenSampler {
    /// Creates a sampler with the request's parameters.
    pub(super) fn new(sampling: &SamplingParameters) -> Self {
        Self { temperature: sampling.temperature, random: SplitMix64(sampling.seed) }
    }

    /// Selects a token allowed by the mask. Returns `None` if the mask allows none.
    pub(super) fn pick(&mut self, logits: &[f32], mask: Option<&SimpleVob>) -> Option<u32> {
        let best = best(logits, mask)?;
        if self.temperature <= 0.0 {
            return Some(best.0);
        }
        let top = f64::from(best.1);
        // At this logit, a token has `MIN_P` times the probability of the best one.
        let cutoff = top + self.temperature * MIN_P.ln();
        let mut candidates = Vec::new();
        for_each_allowed(logits, mask, |token, logit| {
            let logit = f64::from(logit);
            if logit >= cutoff {
                candidates.push((token, ((logit - top) / self.temperature).exp()));
            }
        });
        // Ties are broken by token, so that results repeat.
        candidates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let total: f64 = candidates.iter().map(|(_, weight)| weight).sum();
        let mut kept = 0.0;
        let count = candidates.iter().take_while(|(_, weight)| {
            let more = kept < TOP_P * total;
            kept += if more { *weight } else { 0.0 };
            more
        });
        candidates.truncate(count.count());
        let mut left = self.random.next_unit() * kept;
        let chosen = candidates.iter().find(|(_, weight)| {
            left -= weight;
            left < 0.0
        });
        // Rounding can leave a remainder after the last candidate.
        Some(chosen.or(candidates.last()).unwrap_or(&(best.0, 1.0)).0)
    }
}

fn best(logits: &[f32], mask: Option<&SimpleVob>) -> Option<(u32, f32)> {
    let mut best: Option<(u32, f32)> = None;
    for_each_allowed(logits, mask, |token, logit| {
        // Also skips NaN, which never compares greater.
        if logit > best.map_or(f32::NEG_INFINITY, |(_, top)| top) {
            best = Some((token, logit));
        }
    });
    best
}

fn for_each_allowed(logits: &[f32], mask: Option<&SimpleVob>, mut visit: impl FnMut(u32, f32)) {
    match mask {
        None => (0_u32..).zip(logits).for_each(|(token, logit)| visit(token, *logit)),
        Some(mask) => mask.iter_set_entries(|place| {
            if let (Some(logit), Ok(token)) = (logits.get(place), u32::try_from(place)) {
                visit(token, *logit);
            }
        }),
    }
}

/// `SplitMix64` by Steele, Lea and Flood (2014). Implemented here because a library's generator may
/// change between versions.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number in 0.0..1.0.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what an f64 holds")]
    fn next_unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(temperature: f64, seed: u64) -> TokenSampler {
        TokenSampler::new(&SamplingParameters { temperature, max_tokens: 1, seed })
    }

    #[test]
    fn the_generator_gives_the_published_values() {
        let mut random = SplitMix64(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn greedy_takes_the_best_allowed_token() {
        let logits = [1.0, 5.0, f32::NAN, 3.0];
        assert_eq!(sampler(0.0, 0).pick(&logits, None), Some(1));
        let mask = SimpleVob::from_slice(&[true, false, true, true]);
        assert_eq!(sampler(0.0, 0).pick(&logits, Some(&mask)), Some(3));
        let nothing = SimpleVob::from_slice(&[false; 4]);
        assert_eq!(sampler(0.0, 0).pick(&logits, Some(&nothing)), None);
        assert_eq!(sampler(1.0, 0).pick(&[f32::NAN], None), None);
    }

    #[test]
    fn sampling_follows_the_probabilities_and_the_seed() {
        // Probabilities 0.6, 0.3, 0.1 and one far below MIN_P.
        let logits = [0.6_f32.ln(), 0.3_f32.ln(), 0.1_f32.ln(), -20.0];
        let mut counts = [0_u32; 4];
        let mut all = sampler(1.0, 7);
        for _ in 0..10_000 {
            counts[all.pick(&logits, None).unwrap() as usize] += 1;
        }
        assert!((5_800..6_200).contains(&counts[0]), "{counts:?}");
        assert!((2_800..3_200).contains(&counts[1]), "{counts:?}");
        assert_eq!(counts[3], 0);
        let draw = |seed| {
            let mut sampler = sampler(1.0, seed);
            (0..40).map(|_| sampler.pick(&logits, None).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn masked_tokens_are_never_sampled() {
        let mask = SimpleVob::from_slice(&[false, true, true]);
        let mut sampler = sampler(2.0, 1);
        for _ in 0..1_000 {
            assert_ne!(sampler.pick(&[9.0, 1.0, 1.0], Some(&mask)), Some(0));
        }
    }
}
