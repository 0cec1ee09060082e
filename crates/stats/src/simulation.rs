//! Random numbers for simulations in tests. Not part of the library.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng as _, SeedableRng as _};

/// A seeded source of noise.
pub(crate) struct Noise(Xoshiro256PlusPlus);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a number from 0 up to, but excluding, 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        f64::from(u32::try_from(self.0.next_u64() >> 32).unwrap()) / 4_294_967_296.0
    }

    /// Returns a standard normal number by the method of Box and Muller (1958).
    pub(crate) fn normal(&mut self) -> f64 {
        // `1 - uniform` is never 0, whose logarithm is infinite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }
}
