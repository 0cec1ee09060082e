//! How well a judge tells good answers from bad ones, as measured on known answers. Plain data and
//! its rules; measures nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judge_settings::JudgeMethod;
use super::known_answers::AnswerSet;
use super::probability::Scale;
use selftest_stats::score::{Score, Threshold};
use selftest_stats::wilson;

/// Least share of the good answers, and of the bad ones, about which a judge has to be right: the lower
/// end of the 95 % interval.
const MIN_RIGHT: f64 = 0.5;

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
    /// The same as `model_auc` without what references add to likelihoods: it decides about cases that
    /// have no reference. Absent where nothing of that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare_auc: Option<Estimate>,
    /// Log-odds to probability, fitted on the calibration set; absent of a judge that gives
    /// verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// Why the judge does not count, at the bar of this run; absent where it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// Why it does not count for a case without a reference; absent where it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit_without_reference: Option<String>,
}

/// The least that a judge must reach to count.
#[derive(Debug, Clone, Copy)]
pub struct Bar {
    /// The least lower end of its AUC's interval, `judge.min_auc`.
    pub min_auc: f64,
    /// The least overall score that passes.
    pub threshold: Threshold,
}

/// The overall scores of the known answers that got one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownScores {
    /// Of good answers.
    pub good: Vec<Score>,
    /// Of bad ones.
    pub bad: Vec<Score>,
}

impl KnownScores {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.good.len() + self.bad.len()
    }

    /// How many good answers pass, and how many bad ones do not.
    pub fn right(&self, threshold: Threshold) -> [usize; 2] {
        let passing = |all: &[Score]| all.iter().filter(|one| one.reaches(threshold)).count();
        [passing(&self.good), self.bad.len() - passing(&self.bad)]
    }
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
    /// The same with whether the judge may count. The model's own AUC has to reach the bar with the
    /// lower end of its interval: rules do not count, so that a model that guesses is not taken for
    /// a judge because of them. And at this threshold it must be right about most good answers and
    /// most bad ones: scores in the right order that all lie on one side of the threshold decide
    /// nothing. Too few answers for an interval say nothing against it, and without a bar
    /// (`min_auc` 0) every judge counts.
    #[must_use]
    pub fn held_against(self, bar: Bar, scores: &KnownScores) -> Self {
        let unfit = self.fault(bar, scores);
        let bare = self.bare_auc.filter(|auc| auc.low < bar.min_auc).map(|auc| {
            format!("AUC {auc} without a reference; judge.min_auc is {:.2}", bar.min_auc)
        });
        let unfit_without_reference = unfit.clone().or(bare);
        Self { unfit, unfit_without_reference, ..self }
    }

    /// Why the judge does not count for such a case.
    pub fn unfit_for(&self, has_reference: bool) -> Option<&str> {
        if has_reference { self.unfit.as_deref() } else { self.unfit_without_reference.as_deref() }
    }

    fn fault(&self, bar: Bar, scores: &KnownScores) -> Option<String> {
        let Bar { min_auc, threshold } = bar;
        if min_auc <= 0.0 {
            return None;
        }
        let auc = self.own_auc()?;
        if auc.low < min_auc {
            return Some(format!("{}; judge.min_auc is {min_auc:.2}", self.own_sentence()));
        }
        let [good, bad] = scores.right(threshold);
        let kinds =
            [("good", "pass", good, scores.good.len()), ("bad", "fail", bad, scores.bad.len())];
        kinds.into_iter().find_map(|(kind, what, right, of)| {
            let (right, of) = (u32::try_from(right).ok()?, u32::try_from(of).ok()?);
            let is_doubtful = wilson(right, of)?.low < MIN_RIGHT;
            is_doubtful.then(|| {
                let least = threshold.get();
                format!("only {right} of {of} {kind} known answers {what} at {least:.2}")
            })
        })
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
    use selftest_stats::score::Strictness;

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
            bare_auc: None,
            unfit: None,
            unfit_without_reference: None,
        };
        let threshold =
            Threshold::effective(Score::new(0.6).unwrap(), Strictness::new(0.7).unwrap());
        let bar = Bar { min_auc: 0.7, threshold };
        let unfit = |fitness: Fitness, scores: &KnownScores| {
            fitness.held_against(bar, scores).unfit.unwrap_or_default()
        };
        let few = KnownScores::default();
        assert_eq!(unfit(fitness(0.7), &few), "");
        assert!(unfit(fitness(0.69), &few).ends_with("; judge.min_auc is 0.70"));
        let model_auc = Some(Estimate { value: 0.5, low: 0.4, high: 0.6 });
        let guessing = Fitness { model_auc, ..fitness(0.7) };
        assert!(!unfit(guessing.clone(), &few).is_empty(), "rules make no judge");
        assert_eq!(
            guessing.sentence(),
            "AUC 0.50 [0.40, 0.60] on 158 known answers (2 more without a score), \
             0.80 [0.70, 0.90] with rules"
        );
        assert_eq!(unfit(Fitness { auc: None, ..fitness(0.1) }, &few), "");
        assert_eq!(
            fitness(0.7).sentence(),
            "AUC 0.80 [0.70, 0.90] on 158 known answers (2 more without a score)"
        );

        let bare_auc = Some(Estimate { value: 0.7, low: 0.6, high: 0.8 });
        let leaning = Fitness { bare_auc, ..fitness(0.8) }.held_against(bar, &few);
        assert_eq!(leaning.unfit_for(true), None);
        let why = "AUC 0.70 [0.60, 0.80] without a reference; judge.min_auc is 0.70";
        assert_eq!(leaning.unfit_for(false), Some(why));

        let scores = |good: f64, bad: f64| KnownScores {
            good: vec![Score::new(good).unwrap(); 80],
            bad: vec![Score::new(bad).unwrap(); 80],
        };
        let at = threshold.get();
        assert_eq!(unfit(fitness(0.8), &scores(at, at - 0.1)), "");
        let least = format!("{at:.2}");
        assert_eq!(
            unfit(fitness(0.8), &scores(at - 0.1, at - 0.2)),
            format!("only 0 of 80 good known answers pass at {least}")
        );
        let no_bar = Bar { min_auc: 0.0, ..bar };
        let any = fitness(0.1).held_against(no_bar, &scores(0.0, 1.0));
        assert_eq!((any.unfit_for(true), any.unfit_for(false)), (None, None));
        assert_eq!(
            unfit(fitness(0.8), &scores(at + 0.1, at)),
            format!("only 0 of 80 bad known answers fail at {least}")
        );
    }
}
