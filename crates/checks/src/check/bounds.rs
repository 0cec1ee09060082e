//! Bounds on counts and times, written as an exact number or `{min, max}`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::CheckValueError;

/// Largest value of a bound.
pub(super) const MAX: u64 = 1_000_000_000;

/// Bounds on a count. At least one limit is set, and `min` does not exceed `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct CountBounds {
    min: Option<u64>,
    max: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundsFields<T> {
    min: Option<T>,
    max: Option<T>,
}

impl CountBounds {
    /// Creates bounds; fails if they limit nothing or if no count can satisfy them.
    pub fn new(min: Option<u64>, max: Option<u64>) -> Result<Self, CheckValueError> {
        match (min, max) {
            (None, None) => Err(CheckValueError::NoCount),
            (Some(min), Some(max)) if min > max => {
                Err(CheckValueError::EmptyRange { min: min.to_string(), max: max.to_string() })
            }
            _ if min.max(max) > Some(MAX) => Err(CheckValueError::LargeBound),
            _ => Ok(Self { min, max }),
        }
    }

    /// Returns bounds that allow exactly this count.
    pub fn exactly(count: u64) -> Self {
        // Clamped, because this constructor cannot fail.
        let count = Some(count.min(MAX));
        Self { min: count, max: count }
    }

    /// Returns bounds with only a minimum.
    pub fn at_least(count: u64) -> Self {
        Self { min: Some(count.min(MAX)), max: None }
    }

    /// Returns bounds with only a maximum.
    pub fn at_most(count: u64) -> Self {
        Self { min: None, max: Some(count.min(MAX)) }
    }

    /// Returns the minimum and the maximum.
    pub const fn limits(self) -> (Option<u64>, Option<u64>) {
        (self.min, self.max)
    }

    /// Returns true if the count is within the bounds.
    pub fn contains(self, count: u64) -> bool {
        self.min.is_none_or(|min| count >= min) && self.max.is_none_or(|max| count <= max)
    }

    /// Returns true if no count satisfies both.
    pub fn is_disjoint(self, other: Self) -> bool {
        let apart =
            // Two ranges have nothing in common if one ends before the other starts.
            |low: Self, high: Self| matches!((low.max, high.min), (Some(a), Some(b)) if a < b);
        apart(self, other) || apart(other, self)
    }
}

impl TryFrom<Value> for CountBounds {
    type Error = CheckValueError;

    fn try_from(value: Value) -> Result<Self, CheckValueError> {
        // A bare number is shorthand for an exact count.
        if let Some(count) = value.as_u64() {
            return Self::new(Some(count), Some(count));
        }
        if !value.is_object() {
            return Err(CheckValueError::CountShape);
        }
        let limits: BoundsFields<u64> = serde_json::from_value(value)?;
        Self::new(limits.min, limits.max)
    }
}

impl From<CountBounds> for Value {
    fn from(bounds: CountBounds) -> Value {
        match (bounds.min, bounds.max) {
            // The short form parses to the same bounds.
            (Some(min), Some(max)) if min == max => json!(min),
            (Some(min), Some(max)) => json!({"min": min, "max": max}),
            (Some(min), None) => json!({ "min": min }),
            (None, max) => json!({ "max": max }),
        }
    }
}

impl fmt::Display for CountBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => write!(f, "{min}"),
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "at least {min}"),
            (None, Some(max)) => write!(f, "at most {max}"),
            (None, None) => f.write_str("any number"),
        }
    }
}

/// Bounds on the duration of a case. A duration is never exact, so a bare number is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct DurationBounds {
    min: Option<f64>,
    max: Option<f64>,
}

/// One day.
pub(super) const MAX_SECONDS: f64 = 86_400.0;

impl DurationBounds {
    /// Creates bounds; fails if they limit nothing or if no duration can satisfy them.
    pub fn new(min: Option<f64>, max: Option<f64>) -> Result<Self, CheckValueError> {
        let in_range =
            |limit: Option<f64>| limit.is_none_or(|it| (0.0..=MAX_SECONDS).contains(&it));
        if !in_range(min) || !in_range(max) {
            return Err(CheckValueError::Seconds);
        }
        match (min, max) {
            (None, None) => Err(CheckValueError::NoBounds),
            (Some(min), Some(max)) if min > max => {
                Err(CheckValueError::EmptyRange { min: min.to_string(), max: max.to_string() })
            }
            _ => Ok(Self { min, max }),
        }
    }

    /// Returns true if the duration is within the bounds.
    pub fn contains(self, seconds: f64) -> bool {
        self.min.is_none_or(|min| seconds >= min) && self.max.is_none_or(|max| seconds <= max)
    }
}

impl TryFrom<Value> for DurationBounds {
    type Error = CheckValueError;

    fn try_from(value: Value) -> Result<Self, CheckValueError> {
        if let Some(number) = value.as_f64() {
            return Err(CheckValueError::ExactDuration(number));
        }
        if !value.is_object() {
            return Err(CheckValueError::DurationShape);
        }
        let limits: BoundsFields<f64> = serde_json::from_value(value)?;
        Self::new(limits.min, limits.max)
    }
}

impl From<DurationBounds> for Value {
    fn from(seconds: DurationBounds) -> Value {
        match (seconds.min, seconds.max) {
            (Some(min), Some(max)) => json!({"min": min, "max": max}),
            (Some(min), None) => json!({ "min": min }),
            (None, max) => json!({ "max": max }),
        }
    }
}

impl fmt::Display for DurationBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(f, "{min} to {max} s"),
            (Some(min), None) => write!(f, "at least {min} s"),
            (None, Some(max)) => write!(f, "at most {max} s"),
            (None, None) => f.write_str("any time"),
        }
    }
}
