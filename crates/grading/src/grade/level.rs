//! A grade from 1 to 5, with the range enforced by its constructors.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A grade from 1 (very poor) to 5 (perfect).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct GradeLevel(u8);

impl GradeLevel {
    /// The lowest level.
    pub const LOWEST: GradeLevel = GradeLevel(1);
    /// The highest level.
    pub const HIGHEST: GradeLevel = GradeLevel(5);

    /// Creates a level, or returns `None` outside of 1 to 5.
    pub fn new(level: u8) -> Option<Self> {
        (1..=5).contains(&level).then_some(Self(level))
    }

    /// Returns the nearest level, rounding halves up and clamping to 1 to 5.
    ///
    /// docs/spec/session-grades.md#response-quality specifies the clamping but not the rounding;
    /// the column is an integer.
    pub fn nearest(points: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 1..=5; NaN becomes 0 and then 1"
        )]
        let level = (points + 0.5).floor().clamp(1.0, 5.0) as u8;
        Self(level.max(1))
    }

    /// Returns the level as a number.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// A number that is not a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not in 1 to 5")]
pub struct LevelRangeError(u8);

impl TryFrom<u8> for GradeLevel {
    type Error = LevelRangeError;

    fn try_from(level: u8) -> Result<Self, LevelRangeError> {
        Self::new(level).ok_or(LevelRangeError(level))
    }
}

impl From<GradeLevel> for u8 {
    fn from(level: GradeLevel) -> u8 {
        level.0
    }
}

impl fmt::Display for GradeLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_and_clamping() {
        for (points, level) in [(3.5, 4), (3.49, 3), (-2.0, 1), (6.5, 5), (f64::NAN, 1)] {
            assert_eq!(GradeLevel::nearest(points).get(), level, "{points}");
        }
        assert_eq!(GradeLevel::new(0), None);
        assert!(serde_json::from_str::<GradeLevel>("6").is_err());
    }
}
