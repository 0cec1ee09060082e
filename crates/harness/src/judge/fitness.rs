//! How well a judge tells good answers from bad ones, as measured on known answers. Plain data and
//! its rules; measures nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judge_settings::JudgeMethod;
use super::known_answers::AnswerSet;
use super::probability::Scale;

/// A share or an area with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The value, 0 to 1.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl std::fmt::Display for Estimate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:.2} [{:.2}, {:.2}]", self.value, self.low, self.high)
    }
}

/// A judge measured on known answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fitness {
    /// Full name of the model.
    pub model: String,
    /// How it was asked.
    pub method: JudgeMethod,
    /// What it was measured on.
    pub set: AnswerSet,
    /// Answers that got a score.
    pub scored: u32,
    /// Answers that got none.
    pub unscored: u32,
    /// Mean wall time of an answer, in seconds.
    pub seconds_per_answer: f64,
    /// Area under the ROC curve of the scores; absent where no interval can be given.
    pub auc: Option<Estimate>,
    /// Log-odds to probability, fitted on the calibration set; absent of a judge that gives
    /// verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

impl Fitness {
    /// Whether the judge may count: the lower end of the interval reaches the bar. Too few answers
    /// for an interval say nothing against it.
    pub fn is_fit(&self, min_auc: f64) -> bool {
        self.auc.is_none_or(|auc| auc.low >= min_auc)
    }

    /// For reports: `AUC 0.90 [0.83, 0.95] on 160 known answers`.
    pub fn sentence(&self) -> String {
        let unscored = match self.unscored {
            0 => String::new(),
            count => format!(", {count} more without a score"),
        };
        match self.auc {
            Some(auc) => format!("AUC {auc} on {} known answers{unscored}", self.scored),
            None => format!("too few scores on known answers ({}{unscored})", self.scored),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_end_decides() {
        let fitness = |low| Fitness {
            model: "m".into(),
            method: JudgeMethod::Probability,
            set: AnswerSet::Calibration,
            scored: 158,
            unscored: 2,
            seconds_per_answer: 1.0,
            auc: Some(Estimate { value: 0.8, low, high: 0.9 }),
            scale: None,
        };
        assert!(fitness(0.7).is_fit(0.7) && !fitness(0.69).is_fit(0.7));
        assert!(Fitness { auc: None, ..fitness(0.1) }.is_fit(0.7));
        assert_eq!(
            fitness(0.7).sentence(),
            "AUC 0.80 [0.70, 0.90] on 158 known answers, 2 more without a score"
        );
    }
}
