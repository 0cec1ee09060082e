//! Effectiveness score of a promoted skill, computed from counts over its executions
//! (docs/spec/skills-and-signals.md#skill-effectiveness). `disabling.rs` decides whether the skill
//! stays in use.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// Minimum number of executions for a score (`compute_effectiveness`).
pub const MIN_EXECUTIONS: u32 = 5;

/// Weights of the dopamine score (`compute_effectiveness`); they sum to 1.
const SUCCESS: f64 = 0.40;
const NOT_EDITED: f64 = 0.25;
const NOT_REPEATED: f64 = 0.20;
const GRATITUDE: f64 = 0.15;

/// Counts over the executions of a skill in the lookback window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExecutionCounts {
    /// Total number of executions.
    pub executions: u32,
    /// Successful executions.
    pub successes: u32,
    /// Executions whose result the user changed.
    pub edited: u32,
    /// Executions after which the user repeated the request.
    pub repeated: u32,
    /// Executions after which the user said thank you.
    pub thanked: u32,
}

impl ExecutionCounts {
    /// Returns `part` as a share of all executions, 0.0 to 1.0; 0.0 without executions.
    fn rate(&self, part: u32) -> f64 {
        let whole = self.executions.max(1);
        f64::from(part.min(whole)) / f64::from(whole)
    }
}

/// Effectiveness of a skill. Serializes with the keys of
/// docs/spec/skills-and-signals.md#effectiveness-score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Effectiveness {
    /// Enough executions for a score.
    Scored {
        /// Dopamine score, 0.0 to 1.0, rounded to nine decimals.
        score: f64,
        /// Number of executions scored.
        total_executions: u32,
        /// Share of successful executions.
        success_rate: f64,
        /// Share of executions whose result the user changed.
        edit_rate: f64,
        /// Share of executions after which the user repeated the request.
        repeat_rate: f64,
        /// Share of executions after which the user said thank you.
        gratitude_rate: f64,
    },
    /// Fewer than [`MIN_EXECUTIONS`] executions.
    #[serde(serialize_with = "insufficient_data")]
    InsufficientData {
        /// Number of executions.
        total_executions: u32,
    },
}

impl Effectiveness {
    /// Computes the score of docs/spec/skills-and-signals.md#effectiveness-score:
    ///
    /// ```text
    /// 0.40 * success_rate + 0.25 * (1 - edit_rate) + 0.20 * (1 - repeat_rate) + 0.15 *
    /// gratitude_rate
    /// ```
    pub fn from_counts(counts: &ExecutionCounts) -> Self {
        let total_executions = counts.executions;
        if total_executions < MIN_EXECUTIONS {
            return Effectiveness::InsufficientData { total_executions };
        }
        let [success_rate, edit_rate, repeat_rate, gratitude_rate] =
            [counts.successes, counts.edited, counts.repeated, counts.thanked]
                .map(|part| counts.rate(part));
        let score = SUCCESS * success_rate
            + NOT_EDITED * (1.0 - edit_rate)
            + NOT_REPEATED * (1.0 - repeat_rate)
            + GRATITUDE * gratitude_rate;
        // Rounded so that a score of exactly a threshold does not fall below it by a rounding
        // error.
        let score = ((score * 1e9).round() / 1e9).clamp(0.0, 1.0);
        Effectiveness::Scored {
            score,
            total_executions,
            success_rate,
            edit_rate,
            repeat_rate,
            gratitude_rate,
        }
    }

    /// Returns the score if there are enough executions.
    pub fn score(&self) -> Option<f64> {
        match self {
            Effectiveness::Scored { score, .. } => Some(*score),
            Effectiveness::InsufficientData { .. } => None,
        }
    }

    /// Returns the number of executions.
    pub fn total_executions(&self) -> u32 {
        let (Effectiveness::Scored { total_executions, .. }
        | Effectiveness::InsufficientData { total_executions }) = self;
        *total_executions
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn insufficient_data<S: Serializer>(total: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(3))?;
    map.serialize_entry("score", &None::<f64>)?;
    map.serialize_entry("reason", "insufficient_data")?;
    map.serialize_entry("total_executions", total)?;
    map.end()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn counts([executions, successes, edited, repeated, thanked]: [u32; 5]) -> ExecutionCounts {
        ExecutionCounts { executions, successes, edited, repeated, thanked }
    }

    fn score(numbers: [u32; 5]) -> Option<f64> {
        Effectiveness::from_counts(&counts(numbers)).score()
    }

    /// docs/spec/skills-and-signals.md#effectiveness-score: combinations of signals.
    #[test]
    fn the_score_is_weighted_as_specified() {
        for (numbers, expected) in [
            // Everything right, and thanks each time.
            ([10, 10, 0, 0, 10], 1.0),
            // Flawless without thanks.
            ([10, 10, 0, 0, 0], 0.85),
            // Nothing right: edited, repeated, no thanks.
            ([10, 0, 10, 10, 0], 0.0),
            // Always fails while users stay silent.
            ([10, 0, 0, 0, 0], 0.45),
            // One weight each.
            ([10, 10, 10, 10, 0], 0.40),
            ([10, 0, 0, 10, 0], 0.25),
            ([10, 0, 10, 0, 0], 0.20),
            ([10, 0, 10, 10, 10], 0.15),
            // 0.4 * 0.8 + 0.25 * 0.9 + 0.2 * 0.7 + 0.15 * 0.2
            ([10, 8, 1, 3, 2], 0.715),
        ] {
            assert_eq!(score(numbers), Some(expected), "{numbers:?}");
        }
    }

    /// docs/spec/skills-and-signals.md#effectiveness-score: insufficient data have no score.
    #[test]
    fn fewer_than_five_executions_make_no_score() {
        for executions in 0..MIN_EXECUTIONS {
            let total_executions = executions;
            let none = Effectiveness::from_counts(&counts([executions, executions, 0, 0, 0]));
            assert_eq!(none, Effectiveness::InsufficientData { total_executions });
        }
        assert_eq!(score([5, 5, 0, 0, 0]), Some(0.85));
    }

    /// docs/spec/skills-and-signals.md#effectiveness-score: the keys.
    #[test]
    fn the_json_has_the_specified_keys() {
        let scored = json!(Effectiveness::from_counts(&counts([10, 8, 1, 3, 2])));
        assert_eq!(
            scored,
            json!({
                "score": 0.715, "total_executions": 10, "success_rate": 0.8, "edit_rate": 0.1,
                "repeat_rate": 0.3, "gratitude_rate": 0.2,
            })
        );
        let none = json!(Effectiveness::from_counts(&counts([4, 4, 0, 0, 0])));
        assert_eq!(
            none,
            json!({ "score": null, "reason": "insufficient_data", "total_executions": 4 })
        );
    }

    proptest! {
        #[test]
        fn whatever_is_counted_the_score_is_a_share(numbers in any::<[u32; 5]>()) {
            let effectiveness = Effectiveness::from_counts(&counts(numbers));
            prop_assert_eq!(effectiveness.total_executions(), numbers[0]);
            prop_assert_eq!(effectiveness.score().is_some(), numbers[0] >= MIN_EXECUTIONS);
            prop_assert!(effectiveness.score().is_none_or(|score| (0.0..=1.0).contains(&score)));
        }

        #[test]
        fn one_more_success_never_lowers_it(total in 5..50_u32, good in 0..49_u32) {
            let good = good.min(total - 1);
            prop_assert!(score([total, good, 0, 0, 0]) < score([total, good + 1, 0, 0, 0]));
        }
    }
}
