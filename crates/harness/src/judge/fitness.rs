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
    /// The set of answers it was measured on.
    pub set: AnswerSet,
    /// Answers that got a score.
    pub scored: u32,
    /// Answers that got none.
    pub unscored: u32,
    /// Mean wall time of an answer, in seconds.
    pub seconds_per_answer: f64,
    /// Area under the ROC curve of the scores; absent where no interval can be given.
    pub auc: Option<Estimate>,
    /// The same of what the model alone says, without the rules that speak beside it. It decides
    /// whether the judge may count; absent where there are no rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_auc: Option<Estimate>,
    /// Log-odds to probability, fitted on the calibration set; absent of a judge that gives
    /// verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

/// The first impression of a judge, from a few known answers. It says something to people and
/// decides nothing: so few answers have no interval worth the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Impression {
    /// Pairs of a good and a bad answer to the same request in which the good one scores higher.
    pub right: u32,
    /// All pairs of which it scored both.
    pub pairs: u32,
}

impl std::fmt::Display for Impression {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { right, pairs } = self;
        if *pairs == 0 {
            return formatter.write_str("scores no pair of a good and a bad answer in time");
        }
        write!(formatter, "tells {right} of {pairs} pairs of a good and a bad answer apart")
    }
}

impl Fitness {
    /// Whether the judge may count: the lower end of the interval reaches the bar. Too few answers
    /// for an interval say nothing against it. Rules do not count: a model that guesses must not
    /// be taken for a judge because of them.
    pub fn is_fit(&self, min_auc: f64) -> bool {
        self.own_auc().is_none_or(|auc| auc.low >= min_auc)
    }

    /// How well the model alone tells good from bad.
    pub fn own_auc(&self) -> Option<Estimate> {
        self.model_auc.or(self.auc)
    }

    /// For reports: `AUC 0.85 [0.80, 0.91] on 160 known answers, 0.90 [0.83, 0.95] with rules`.
    /// The model's own number comes first, because it is the one that decides.
    pub fn sentence(&self) -> String {
        match (self.model_auc, self.auc) {
            (Some(_), Some(with_rules)) => {
                format!("{}, {with_rules} with rules", self.own_sentence())
            }
            _ => self.own_sentence(),
        }
    }

    /// The same of the model alone: where a judge is called unfit, what rules add only puzzles.
    pub fn own_sentence(&self) -> String {
        let unscored = match self.unscored {
            0 => String::new(),
            count => format!(" ({count} more without a score)"),
        };
        match self.own_auc() {
            Some(auc) => format!("AUC {auc} on {} known answers{unscored}", self.scored),
            None => format!("too few scores on known answers: {}{unscored}", self.scored),
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
            model_auc: None,
            scale: None,
        };
        assert!(fitness(0.7).is_fit(0.7) && !fitness(0.69).is_fit(0.7));
        let model_auc = Some(Estimate { value: 0.5, low: 0.4, high: 0.6 });
        let guessing = Fitness { model_auc, ..fitness(0.7) };
        assert!(!guessing.is_fit(0.7), "rules make no judge");
        assert_eq!(
            guessing.sentence(),
            "AUC 0.50 [0.40, 0.60] on 158 known answers (2 more without a score), \
             0.80 [0.70, 0.90] with rules"
        );
        assert!(Fitness { auc: None, ..fitness(0.1) }.is_fit(0.7));
        assert_eq!(
            fitness(0.7).sentence(),
            "AUC 0.80 [0.70, 0.90] on 158 known answers (2 more without a score)"
        );
    }
}
