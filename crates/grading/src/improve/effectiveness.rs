//! Effectiveness score of a promoted skill, computed from counts over its executions
//! (docs/spec/skills-and-signals.md#skill-effectiveness), and the rules that disable skills
//! (#disabling).

use std::fmt;

use schemars::JsonSchema;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};

use selftest_stats::wilson;

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
        // Rows of other programs may count more successes than executions.
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

/// Rules for disabling a skill automatically.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DisableSettings {
    /// Score below which a skill is disabled.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: f64,
    /// Minimum number of executions before a skill can be disabled.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_executions: u32,
    /// A skill is also disabled if the upper end of the 95 % interval of its success rate is below
    /// this; 0.0 turns this rule off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub success_rate: f64,
}

impl Default for DisableSettings {
    /// Values from docs/spec/skills-and-signals.md#disabling. The success rate is not specified.
    fn default() -> Self {
        Self { threshold: 0.3, min_executions: 10, success_rate: 0.5 }
    }
}

/// A rule that disables a skill automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisableRule {
    /// The score is below the threshold. Part of the specification.
    LowScore,
    /// The success rate is significantly low. Not part of the specification.
    ///
    /// A skill that always fails while users stay silent still scores 0.45, so the score alone
    /// could never disable it.
    RareSuccess,
}

impl DisableRule {
    /// All rules.
    pub const ALL: [DisableRule; 2] = [DisableRule::LowScore, DisableRule::RareSuccess];

    /// Returns the reason why this rule disables a skill with these executions, if it does. No rule
    /// applies below the minimum number of executions.
    pub fn reason(
        self,
        counts: &ExecutionCounts,
        settings: &DisableSettings,
    ) -> Option<ChangeReason> {
        let ExecutionCounts { executions, successes, .. } = *counts;
        if executions < settings.min_executions {
            return None;
        }
        match self {
            DisableRule::LowScore => {
                let score = Effectiveness::from_counts(counts).score()?;
                let threshold = settings.threshold;
                (score < threshold).then_some(ChangeReason::LowScore {
                    score,
                    threshold,
                    executions,
                })
            }
            DisableRule::RareSuccess => {
                // The upper end of the interval: a skill is not disabled for a few unlucky
                // executions.
                let upper = wilson(successes.min(executions), executions)?.high;
                let limit = settings.success_rate;
                let reason = ChangeReason::RareSuccess { successes, executions, upper, limit };
                (upper < limit).then_some(reason)
            }
        }
    }

    /// Returns the reasons to disable a skill under all rules; empty if it stays enabled.
    pub fn reasons(counts: &ExecutionCounts, settings: &DisableSettings) -> Vec<ChangeReason> {
        Self::ALL.into_iter().filter_map(|rule| rule.reason(counts, settings)).collect()
    }
}

/// Reason for a change to a skill, stored as JSON with the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum ChangeReason {
    /// [`DisableRule::LowScore`] applied.
    LowScore {
        /// Score of the skill.
        score: f64,
        /// Threshold that the score is below.
        threshold: f64,
        /// Executions behind the score.
        executions: u32,
    },
    /// [`DisableRule::RareSuccess`] applied.
    RareSuccess {
        /// Number of successful executions.
        successes: u32,
        /// Total number of executions.
        executions: u32,
        /// Upper end of the 95 % interval of the success rate.
        upper: f64,
        /// Limit that the upper end is below.
        limit: f64,
    },
    /// A rollback replaced one version by another.
    Rollback {
        /// Version that was in use before.
        from: String,
        /// Version now in use.
        to: String,
    },
    /// Free text: a user's reason, or an error message.
    Words {
        /// The text.
        words: String,
    },
}

impl fmt::Display for ChangeReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeReason::LowScore { score, threshold, executions } => write!(
                formatter,
                "score {score:.2} over {executions} executions, below {threshold:.2}"
            ),
            ChangeReason::RareSuccess { successes, executions, upper, limit } => write!(
                formatter,
                "{successes} of {executions} executions succeeded: at most {:.0} % (95 % \
                 interval), below {:.0} %",
                100.0 * upper,
                100.0 * limit
            ),
            ChangeReason::Rollback { from, to } => {
                write!(formatter, "rollback from version {from} to version {to}")
            }
            ChangeReason::Words { words } => formatter.write_str(words),
        }
    }
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

    fn reasons(numbers: [u32; 5]) -> Vec<ChangeReason> {
        DisableRule::reasons(&counts(numbers), &DisableSettings::default())
    }

    /// docs/spec/skills-and-signals.md#disabling: below 0.3, 10 executions.
    #[test]
    fn a_low_score_over_ten_executions_disables() {
        // 0.4 * 0.6 + 0.25 * 0.1 + 0.2 * 0.1 = 0.285; the success rate alone would not do it.
        let low = ChangeReason::LowScore { score: 0.285, threshold: 0.3, executions: 10 };
        assert_eq!(reasons([10, 6, 9, 9, 0]), [low]);
        // 0.3 exactly is not below 0.3: 0.4 * 0.7 + 0.2 * 0.1.
        assert_eq!(reasons([10, 7, 10, 9, 0]), []);
        assert_eq!(reasons([9, 5, 9, 9, 0]), [], "nine executions are too few");
        assert_eq!(reasons([10, 10, 0, 0, 0]), []);
    }

    /// docs/spec/skills-and-signals.md#differences-skills: always failing while users stay silent
    /// scores 0.45.
    #[test]
    fn a_skill_that_always_fails_is_disabled_though_users_stay_silent() {
        let failing = counts([10, 0, 0, 0, 0]);
        assert_eq!(Effectiveness::from_counts(&failing).score(), Some(0.45));
        let [ChangeReason::RareSuccess { successes: 0, executions: 10, upper, limit: 0.5 }] =
            reasons([10, 0, 0, 0, 0])[..]
        else {
            panic!("{:?}", reasons([10, 0, 0, 0, 0]));
        };
        // Wilson's interval of 0 of 10: 0 to z² / (10 + z²).
        assert!((upper - 0.277_5).abs() < 5e-5, "{upper}");
        assert_eq!(reasons([9, 0, 0, 0, 0]), [], "nine executions are too few");
        // 1 of 10 ends at 0.404, 2 of 10 at 0.510.
        assert_eq!(reasons([10, 1, 0, 0, 0]).len(), 1);
        assert_eq!(reasons([10, 2, 0, 0, 0]), []);
        // Half of many is not below half beyond chance.
        assert_eq!(reasons([1000, 480, 0, 0, 0]), []);
        assert_eq!(reasons([1000, 460, 0, 0, 0]).len(), 1);
        let off = DisableSettings { success_rate: 0.0, ..DisableSettings::default() };
        assert_eq!(DisableRule::reasons(&failing, &off), []);
    }

    #[test]
    fn both_rules_give_their_reasons_in_words_and_in_json() {
        let both = reasons([20, 0, 20, 20, 0]);
        let words: Vec<String> = both.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "score 0.00 over 20 executions, below 0.30",
                "0 of 20 executions succeeded: at most 16 % (95 % interval), below 50 %",
            ]
        );
        let json = json!(both);
        assert_eq!(
            json[0],
            json!({
                "rule": "low_score", "score": 0.0, "threshold": 0.3, "executions": 20,
            })
        );
        assert_eq!(serde_json::from_value::<Vec<ChangeReason>>(json).unwrap(), both);
    }
}
