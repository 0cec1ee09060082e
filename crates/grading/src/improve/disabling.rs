//! Rules that disable skills (docs/spec/skills-and-signals.md#disabling).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::effectiveness::{Effectiveness, ExecutionCounts};
use super::skill_settings::DisableSettings;
use selftest_stats::wilson;

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
    use serde_json::json;

    use super::*;

    fn counts([executions, successes, edited, repeated, thanked]: [u32; 5]) -> ExecutionCounts {
        ExecutionCounts { executions, successes, edited, repeated, thanked }
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
