//! Bounded numbers: scores, thresholds, weights, strictness.
//!
//! Each type only holds finite numbers in its range, including when deserialised. Independent of
//! rubrics, models and reports.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A number outside the range of its type.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{what} must be a number from {min} to {max}, got {value}")]
pub struct OutOfRangeError {
    what: &'static str,
    min: f64,
    max: f64,
    value: f64,
}

macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident, $what:literal, $min:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// Creates a value; fails for NaN, infinities and values out of range.
            pub fn new(value: f64) -> Result<Self, OutOfRangeError> {
                // NaN is in no range, so that this rejects it too.
                if ($min..=1.0).contains(&value) {
                    Ok(Self(value))
                } else {
                    Err(OutOfRangeError { what: $what, min: $min, max: 1.0, value })
                }
            }

            /// Returns the plain number.
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = OutOfRangeError;
            fn try_from(value: f64) -> Result<Self, OutOfRangeError> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:.2}", self.0)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "number", "minimum": $min, "maximum": 1.0 })
            }
        }
    };
}

bounded!(
    /// A judged quality from 0.0 (worst) to 1.0 (best).
    Score, "a score", 0.0
);
bounded!(
    /// The minimum passing [`Score`].
    Threshold, "a threshold", 0.0
);
bounded!(
    /// Strictness of judging: 0.0 lenient, 1.0 strict.
    Strictness, "strictness", 0.0
);
bounded!(
    /// The weight of one rubric category in the overall score; above zero.
    Weight, "a weight", 0.000_001
);

/// Tolerance when comparing scores with thresholds: sums of weighted twentieths are inexact in
/// binary floating point, and their last bit must not fail a case.
const EPSILON: f64 = 1e-9;

impl Score {
    /// The worst score.
    pub const ZERO: Score = Score(0.0);

    /// Returns true if this score reaches the threshold.
    pub fn reaches(self, threshold: Threshold) -> bool {
        self.0 + EPSILON >= threshold.0
    }

    /// Returns `Σ weight · score`, rounded to nine decimals. The weights must sum to 1, so that the
    /// sum is a score again (docs/spec/selftest.md#overall-score).
    pub fn weighted(parts: impl IntoIterator<Item = (Weight, Score)>) -> Score {
        let sum: f64 = parts.into_iter().map(|(weight, score)| weight.0 * score.0).sum();
        // Rounding makes 0.7000000000000001 print and compare as 0.7, in JSON as well.
        Score(((sum * 1e9).round() / 1e9).clamp(0.0, 1.0))
    }
}

impl Threshold {
    /// Returns `min_score_to_pass + 0.2 · strictness`, at most 1.0
    /// (docs/spec/selftest.md#strictness-adjustment).
    pub fn effective(min_score_to_pass: Score, strictness: Strictness) -> Threshold {
        let sum = min_score_to_pass.0 + 0.2 * strictness.0;
        Threshold(((sum * 1e9).round() / 1e9).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_specified_strictness_table() {
        let min = Score::new(0.6).unwrap();
        for (strictness, expected) in [(0.0, 0.6), (0.5, 0.7), (0.7, 0.74), (1.0, 0.8)] {
            let threshold = Threshold::effective(min, Strictness::new(strictness).unwrap());
            assert_eq!(threshold.get(), expected);
        }
    }

    #[test]
    fn a_threshold_never_passes_one() {
        let threshold =
            Threshold::effective(Score::new(0.95).unwrap(), Strictness::new(1.0).unwrap());
        assert_eq!(threshold.get(), 1.0);
    }

    #[test]
    fn weird_numbers_are_refused() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, 1.1, 1e300] {
            assert!(Score::new(value).is_err());
            assert!(Weight::new(value).is_err());
        }
        assert!(Weight::new(0.0).is_err());
        assert!(serde_json::from_str::<Score>("1.7").is_err());
        assert!(serde_json::from_str::<Score>("\"0.5\"").is_err());
    }

    #[test]
    fn equal_in_decimal_is_equal() {
        // 0.2·0.7 + 0.3·0.7 + 0.3·0.75 + 0.2·0.825 in binary misses 0.74 by one bit.
        let sum = 0.1 + 0.2 + 0.44;
        assert!(Score(sum - 1e-16).reaches(Threshold(0.74)));
        assert!(!Score(0.739).reaches(Threshold(0.74)));
    }

    proptest! {
        #[test]
        fn a_higher_score_never_turns_a_pass_into_a_fail(a in 0.0..=1.0f64, b in 0.0..=1.0f64, t in 0.0..=1.0f64) {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            let threshold = Threshold::new(t).unwrap();
            prop_assert!(!Score::new(low).unwrap().reaches(threshold) || Score::new(high).unwrap().reaches(threshold));
        }
    }
}
