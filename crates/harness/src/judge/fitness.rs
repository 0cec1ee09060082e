//! A judge's fitness: how reliably it tells good answers from bad, as measured on known answers.
//! Plain data and its rules; the measuring is in `bench`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judge_settings::JudgeMethod;
use super::known_answers::AnswerSet;
use super::scale::JudgeScales;
use selftest_stats::score::{Score, Threshold};
use selftest_stats::wilson;

/// Minimum share of good answers, and of bad ones, that a judge has to get right, by the lower end
/// of the 95 % interval.
const MIN_RIGHT: f64 = 0.5;

/// A share or an area with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalEstimate {
    /// The value, 0 to 1.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl std::fmt::Display for IntervalEstimate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:.2} [{:.2}, {:.2}]", self.value, self.low, self.high)
    }
}

/// The measurement of a judge on known answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeFitness {
    /// Full name of the model.
    pub model: String,
    /// How it was asked.
    pub method: JudgeMethod,
    /// The set of answers that it was measured on.
    pub set: AnswerSet,
    /// Number of scored answers.
    pub scored: u32,
    /// Number of answers without a score.
    pub unscored: u32,
    /// Mean wall time per answer in seconds.
    pub seconds_per_answer: f64,
    /// Area under the ROC curve of the scores. Absent if it has no interval.
    pub auc: Option<IntervalEstimate>,
    /// AUC of the model alone, without rules. It decides whether the judge is fit. Absent if there
    /// are no rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_auc: Option<IntervalEstimate>,
    /// AUC of the model alone on the scale for cases without a reference, which decides for those
    /// cases. Absent if the scale is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare_auc: Option<IntervalEstimate>,
    /// Scales from readings to probabilities, fitted on the calibration set. Absent for a judge
    /// that gives verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scales: Option<JudgeScales>,
    /// Scores that decide in this run. Absent if all of them do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sure: Option<DecisionBand>,
    /// The reason why the judge is unfit by the requirements of this run. Absent if it is fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// The reason why it is unfit for cases without a reference. Absent if it is fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit_without_reference: Option<String>,
}

/// Minimum requirements for a judge to count.
#[derive(Debug, Clone, Copy)]
pub struct FitnessRequirement {
    /// Minimum lower end of its AUC's interval, `judge.min_auc`.
    pub min_auc: f64,
    /// Minimum overall score that passes.
    pub threshold: Threshold,
}

/// The band of scores in which a judge decides. An answer passes if its probability of being good
/// reaches the threshold, and fails if its probability of being bad does. In between, the judge
/// abstains (classification with a reject option: Chow, "On optimum recognition error and reject
/// tradeoff", 1970).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionBand {
    /// Minimum overall score that passes.
    pub passes_from: Threshold,
    /// Minimum overall score that does not fail: `1 - passes_from`.
    pub fails_below: f64,
}

impl DecisionBand {
    /// Returns the band for answers that pass at this threshold.
    pub fn from_threshold(passes_from: Threshold) -> Self {
        // With a threshold below 0.5 the two ends would cross.
        Self { passes_from, fails_below: (1.0 - passes_from.get()).min(passes_from.get()) }
    }

    /// Returns true if an answer passes, or `None` if the judge abstains. A rule against the answer
    /// decides even within the band.
    pub fn verdict(self, score: Score, rule_is_against: bool) -> Option<bool> {
        let passes = score.reaches(self.passes_from);
        let decides = passes || rule_is_against || score.get() < self.fails_below;
        decides.then_some(passes)
    }
}

/// The overall score of a known answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KnownScore {
    /// The score.
    pub score: Score,
    /// True if a rule counts against the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub against: bool,
}

/// The scores of all scored known answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownScores {
    /// Scores of the good answers.
    pub good: Vec<KnownScore>,
    /// Scores of the bad answers.
    pub bad: Vec<KnownScore>,
}

/// The number of decided answers of one kind, and of those decided correctly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecisionCounts {
    /// Decided correctly.
    pub right: u32,
    /// Decided in total.
    pub of: u32,
}

impl KnownScores {
    /// Returns the number of scores.
    pub fn count(&self) -> usize {
        self.good.len() + self.bad.len()
    }

    /// Counts the decided answers, good ones first, and those decided correctly. Without `sure` the
    /// threshold decides all of them.
    pub fn decided(&self, threshold: Threshold, sure: Option<DecisionBand>) -> [DecisionCounts; 2] {
        let verdict = |known: &KnownScore| match sure {
            Some(sure) => sure.verdict(known.score, known.against),
            None => Some(known.score.reaches(threshold)),
        };
        [(&self.good, true), (&self.bad, false)].map(|(all, should_pass)| {
            let verdicts: Vec<bool> = all.iter().filter_map(verdict).collect();
            let right = verdicts.iter().filter(|passes| **passes == should_pass).count();
            let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
            DecisionCounts { right: number(right), of: number(verdicts.len()) }
        })
    }
}

/// Result of a quick check of a judge on a few known answers. It is informational and decides
/// nothing, because a sample this small has no useful interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuickCheck {
    /// Pairs of a good and a bad answer to the same request in which the good one scores higher.
    pub right: u32,
    /// Number of pairs with two scores.
    pub pairs: u32,
}

impl std::fmt::Display for QuickCheck {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { right, pairs } = self;
        if *pairs == 0 {
            return formatter.write_str("scores no pair of a good and a bad answer in time");
        }
        write!(formatter, "tells {right} of {pairs} pairs of a good and a bad answer apart")
    }
}

impl JudgeFitness {
    /// Evaluates the measurement against the requirements of this run.
    ///
    /// The lower end of the model's own AUC has to reach the minimum; rules do not count, so that a
    /// guessing model cannot qualify through them. At this threshold, the judge must also be right
    /// about most of the good and most of the bad answers that it decides: correctly ordered scores
    /// that are all on one side of the threshold decide nothing. Too few answers for an interval do
    /// not disqualify a judge. With `min_auc` 0 every judge counts, with all its scores.
    #[must_use]
    pub fn evaluate(self, bar: FitnessRequirement, scores: &KnownScores) -> Self {
        let is_calibrated = self.scales.is_some() && bar.min_auc > 0.0;
        let sure = is_calibrated.then(|| DecisionBand::from_threshold(bar.threshold));
        let unfit = self.unfit_reason(bar, sure, scores);
        let bare = self.bare_auc.filter(|auc| auc.low < bar.min_auc).map(|auc| {
            format!("AUC {auc} without a reference; judge.min_auc is {:.2}", bar.min_auc)
        });
        let unfit_without_reference = unfit.clone().or(bare);
        Self { sure, unfit, unfit_without_reference, ..self }
    }

    /// Returns the reason why the judge is unfit for such a case.
    pub fn unfit_reason_for(&self, has_reference: bool) -> Option<&str> {
        if has_reference { self.unfit.as_deref() } else { self.unfit_without_reference.as_deref() }
    }

    fn unfit_reason(
        &self,
        bar: FitnessRequirement,
        sure: Option<DecisionBand>,
        scores: &KnownScores,
    ) -> Option<String> {
        let FitnessRequirement { min_auc, threshold } = bar;
        if min_auc <= 0.0 {
            return None;
        }
        let auc = self.model_only_auc()?;
        if auc.low < min_auc {
            return Some(format!("{}; judge.min_auc is {min_auc:.2}", self.model_only_sentence()));
        }
        let decided = scores.decided(threshold, sure);
        let kinds = decided.into_iter().zip([("good", "pass"), ("bad", "fail")]);
        kinds.into_iter().find_map(|(DecisionCounts { right, of }, (kind, what))| {
            let is_doubtful = wilson(right, of).is_none_or(|share| share.low < MIN_RIGHT);
            (is_doubtful && scores.count() > 0).then(|| {
                let about = if sure.is_some() { " about which it is sure" } else { "" };
                let least = threshold.get();
                format!("only {right} of {of} {kind} known answers{about} {what} at {least:.2}")
            })
        })
    }

    /// Returns the AUC of the model alone.
    pub fn model_only_auc(&self) -> Option<IntervalEstimate> {
        self.model_auc.or(self.auc)
    }

    /// Returns a sentence for reports: `AUC 0.85 [0.80, 0.91] on 160 known answers, 0.90 [0.83,
    /// 0.95] with rules`. The model's own AUC comes first, because it decides.
    pub fn sentence(&self) -> String {
        match (self.model_auc, self.auc) {
            (Some(_), Some(with_rules)) => {
                format!("{}, {with_rules} with rules", self.model_only_sentence())
            }
            _ => self.model_only_sentence(),
        }
    }

    /// Returns the sentence for the model alone. For an unfit judge, the number with rules would
    /// only confuse.
    pub fn model_only_sentence(&self) -> String {
        let unscored = match self.unscored {
            0 => String::new(),
            count => format!(" ({count} more without a score)"),
        };
        match self.model_only_auc() {
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
        let fitness = |low| JudgeFitness {
            model: "m".into(),
            method: JudgeMethod::Probability,
            set: AnswerSet::Calibration,
            scored: 158,
            unscored: 2,
            seconds_per_answer: 1.0,
            auc: Some(IntervalEstimate { value: 0.8, low, high: 0.9 }),
            model_auc: None,
            scales: None,
            bare_auc: None,
            sure: None,
            unfit: None,
            unfit_without_reference: None,
        };
        let threshold =
            Threshold::effective(Score::new(0.6).unwrap(), Strictness::new(0.7).unwrap());
        let bar = FitnessRequirement { min_auc: 0.7, threshold };
        let unfit = |fitness: JudgeFitness, scores: &KnownScores| {
            fitness.evaluate(bar, scores).unfit.unwrap_or_default()
        };
        let few = KnownScores::default();
        assert_eq!(unfit(fitness(0.7), &few), "");
        assert!(unfit(fitness(0.69), &few).ends_with("; judge.min_auc is 0.70"));
        let model_auc = Some(IntervalEstimate { value: 0.5, low: 0.4, high: 0.6 });
        let guessing = JudgeFitness { model_auc, ..fitness(0.7) };
        assert!(!unfit(guessing.clone(), &few).is_empty(), "rules make no judge");
        assert_eq!(
            guessing.sentence(),
            "AUC 0.50 [0.40, 0.60] on 158 known answers (2 more without a score), \
             0.80 [0.70, 0.90] with rules"
        );
        assert_eq!(unfit(JudgeFitness { auc: None, ..fitness(0.1) }, &few), "");
        assert_eq!(
            fitness(0.7).sentence(),
            "AUC 0.80 [0.70, 0.90] on 158 known answers (2 more without a score)"
        );

        let bare_auc = Some(IntervalEstimate { value: 0.7, low: 0.6, high: 0.8 });
        let leaning = JudgeFitness { bare_auc, ..fitness(0.8) }.evaluate(bar, &few);
        assert_eq!(leaning.unfit_reason_for(true), None);
        let why = "AUC 0.70 [0.60, 0.80] without a reference; judge.min_auc is 0.70";
        assert_eq!(leaning.unfit_reason_for(false), Some(why));

        let known = |score, against| KnownScore { score: Score::new(score).unwrap(), against };
        let scores = |good: f64, bad: f64| KnownScores {
            good: vec![known(good, false); 80],
            bad: vec![known(bad, false); 80],
        };
        let at = threshold.get();
        assert_eq!(unfit(fitness(0.8), &scores(at, at - 0.1)), "");
        let least = format!("{at:.2}");
        assert_eq!(
            unfit(fitness(0.8), &scores(at - 0.1, at - 0.2)),
            format!("only 0 of 80 good known answers pass at {least}")
        );
        let no_bar = FitnessRequirement { min_auc: 0.0, ..bar };
        let any = fitness(0.1).evaluate(no_bar, &scores(0.0, 1.0));
        assert_eq!((any.unfit_reason_for(true), any.unfit_reason_for(false)), (None, None));
        assert_eq!(
            unfit(fitness(0.8), &scores(at + 0.1, at)),
            format!("only 0 of 80 bad known answers fail at {least}")
        );
    }

    #[test]
    fn between_good_and_bad_a_judge_cannot_tell() {
        let threshold =
            Threshold::effective(Score::new(0.6).unwrap(), Strictness::new(0.7).unwrap());
        let sure = DecisionBand::from_threshold(threshold);
        let known = |score, against| KnownScore { score: Score::new(score).unwrap(), against };
        let expected = [
            (known(0.74, false), Some(true)),
            (known(0.73, false), None),
            (known(0.27, false), None),
            (known(0.25, false), Some(false)),
            (known(0.5, true), Some(false)),
            (known(0.8, true), Some(true)),
        ];
        for (known, verdict) in expected {
            assert_eq!(sure.verdict(known.score, known.against), verdict, "{known:?}");
        }
        let all = KnownScores {
            good: [0.9, 0.5, 0.1].map(|score| known(score, false)).to_vec(),
            bad: vec![known(0.2, false), known(0.6, false)],
        };
        let both = |right: [u32; 2], of: [u32; 2]| {
            [
                DecisionCounts { right: right[0], of: of[0] },
                DecisionCounts { right: right[1], of: of[1] },
            ]
        };
        assert_eq!(all.decided(threshold, Some(sure)), both([1, 1], [2, 1]));
        assert_eq!(all.decided(threshold, None), both([1, 2], [3, 2]));
        // A low threshold leaves nothing between.
        let low = Threshold::effective(Score::new(0.3).unwrap(), Strictness::new(0.0).unwrap());
        assert_eq!(
            DecisionBand::from_threshold(low).verdict(Score::new(0.4).unwrap(), false),
            Some(true)
        );
        assert_eq!(
            DecisionBand::from_threshold(low).verdict(Score::new(0.29).unwrap(), false),
            Some(false)
        );
    }
}
