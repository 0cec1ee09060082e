//! Calibrates a judge: fits a penalised logistic regression from its scores to human labels, and
//! measures its quality on held-out labels.
//!
//! The regression's features are the log-odds of every category, and of the question with the lowest
//! probability.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judge::{JudgeMethod, Scorecard, Verdict, template_of};
use crate::outcome::CaseStep;
use selftest_stats::{
    Interval, ReliabilityBin, RidgeLogistic, brier_score, cohen_kappa, constant_brier,
    is_separable, leave_one_out, reliability,
};

/// Version of the file. Incremented when a key changes its meaning or is removed.
pub const CALIBRATION_VERSION: u32 = 1;

/// Minimum number of labels for a calibration, and minimum number of each kind.
pub const MIN_LABELS: usize = 20;
const MIN_OF_A_KIND: usize = 3;

/// Ridge penalty on the weights, in standard deviations: that of a prior with deviation 1.
const PENALTY: f64 = 1.0;

/// Target accuracy outside the abstain band, and maximum share of answers within it.
const WANTED_ACCURACY: f64 = 0.9;
const MAX_ABSTAINED: f64 = 0.5;

/// Identity of a judge. A calibration is valid for this judge only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibratedJudge {
    /// Full name of the model.
    pub model: String,
    /// Digest of its weights, or its name if no digest is available.
    pub weights: String,
    /// How it was asked.
    pub method: Option<JudgeMethod>,
    /// Digest of its prompt.
    pub prompt_digest: String,
    /// Digest of the rubric.
    pub rubric_digest: String,
}

impl CalibratedJudge {
    /// Creates the identity of a judge that is asked by this method. Of the prompts, only the one
    /// that the method uses counts; without digest of the weights, the model's name stands for it.
    pub fn new(
        model: &str,
        weights: Option<&str>,
        method: Option<JudgeMethod>,
        prompt_digests: &BTreeMap<String, String>,
        rubric_digest: &str,
    ) -> Self {
        Self {
            model: model.to_owned(),
            weights: weights.unwrap_or(model).to_owned(),
            method,
            prompt_digest: prompt_digests.get(template_of(method)).cloned().unwrap_or_default(),
            rubric_digest: rubric_digest.to_owned(),
        }
    }

    /// Returns the first difference from another judge in one word, or `None` if they are the same.
    pub fn difference_from(&self, now: &Self) -> Option<&'static str> {
        if self.model != now.model || self.weights != now.weights {
            Some("model")
        } else if self.method != now.method {
            Some("method")
        } else if self.prompt_digest != now.prompt_digest {
            Some("prompt")
        } else if self.rubric_digest != now.rubric_digest {
            Some("rubric")
        } else {
            None
        }
    }
}

/// An answer with its label and the judge's scores.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledAnswer {
    /// Id of the run.
    pub run_id: String,
    /// Name of the case.
    pub case: String,
    /// True if the label is good.
    pub is_good: bool,
    /// True if the judge passed it.
    pub passed: bool,
    /// Features of the judge's verdict.
    pub features: Vec<f64>,
}

/// A labelled answer as stored in the calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOutAnswer {
    /// Id of the run.
    pub run_id: String,
    /// Name of the case.
    pub case: String,
    /// True if the label is good.
    pub is_good: bool,
    /// Probability of a good label, from a fit on all other labels.
    pub probability: f64,
}

/// An agreement with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelAgreement {
    /// Cohen's kappa.
    pub kappa: f64,
    /// Its 95 % interval.
    pub interval: Interval,
}

/// A calibration with its quality measures, all computed by leave-one-out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelCalibration {
    /// Version of this format; 1.
    pub version: u32,
    /// The judge that it is valid for.
    pub judge: CalibratedJudge,
    /// Names of the features that the fit takes.
    pub features: Vec<String>,
    /// The fit on all labels.
    pub fit: RidgeLogistic,
    /// The penalty on its weights.
    pub penalty: f64,
    /// Number of labels.
    pub labels: u32,
    /// Number of good labels.
    pub good: u32,
    /// True if a weighted sum of the features separates all labels. Then only the penalty bounds
    /// the weights, and the probabilities are no more than a guess.
    pub is_separable: bool,
    /// Mean squared error of the probabilities; 0 is perfect.
    pub brier: f64,
    /// Brier score of a constant prediction, which a useful judge must beat.
    pub constant_brier: f64,
    /// Minimum probability of an answer that counts as good, chosen to minimise both kinds of
    /// errors.
    pub threshold: f64,
    /// Band of probabilities in which the judge should abstain. Absent if no band with at most half
    /// of the answers leaves nine of ten correct.
    pub abstain: Option<Interval>,
    /// Share of labelled answers within the band.
    pub abstained: f64,
    /// Share of correct answers outside the band.
    pub accuracy: f64,
    /// Agreement with the labels at that threshold. Absent if chance explains all of it.
    pub agreement: Option<LabelAgreement>,
    /// Agreement of the judge without calibration.
    pub raw_agreement: Option<LabelAgreement>,
    /// Observed share of good answers, binned by predicted probability.
    pub reliability: Vec<ReliabilityBin>,
    /// The labelled answers.
    pub answers: Vec<HeldOutAnswer>,
}

/// The judge cannot be calibrated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalibrateError {
    /// There are too few labels.
    #[error("{0} labels are too few to calibrate a judge, expected {MIN_LABELS} or more")]
    TooFew(usize),
    /// All labels are the same.
    #[error("all {labels} labels are {word}: nothing tells good answers from bad ones")]
    AllEqual {
        /// Number of labels.
        labels: usize,
        /// `good` or `bad`.
        word: &'static str,
    },
    /// Nearly all labels are the same.
    #[error("only {found} of {labels} labels are {word}, expected {MIN_OF_A_KIND} or more")]
    TooFewOfAKind {
        /// Number of labels of the rarer kind.
        found: usize,
        /// Number of labels.
        labels: usize,
        /// `good` or `bad`.
        word: &'static str,
    },
    /// The answers have different features.
    #[error("the judge's scores cannot be put side by side: {0}")]
    Unlike(&'static str),
}

/// Calibrates a judge on labelled answers.
pub fn calibrate(
    judge: CalibratedJudge,
    features: Vec<String>,
    answers: &[LabelledAnswer],
) -> Result<LabelCalibration, CalibrateError> {
    let total = answers.len();
    let good = answers.iter().filter(|answer| answer.is_good).count();
    // The rarer label limits what a fit can learn, however many there are of the other.
    let (found, word) = if good < total - good { (good, "good") } else { (total - good, "bad") };
    let other = if word == "good" { "bad" } else { "good" };
    match found {
        0 if total > 0 => return Err(CalibrateError::AllEqual { labels: total, word: other }),
        _ if total < MIN_LABELS => return Err(CalibrateError::TooFew(total)),
        _ if found < MIN_OF_A_KIND => {
            return Err(CalibrateError::TooFewOfAKind { found, labels: total, word });
        }
        _ => {}
    }
    let rows: Vec<Vec<f64>> = answers.iter().map(|answer| answer.features.clone()).collect();
    let labels: Vec<bool> = answers.iter().map(|answer| answer.is_good).collect();
    // Answers judged by different rubrics have different features.
    if rows.iter().any(|row| row.len() != features.len()) {
        return Err(CalibrateError::Unlike("they have other categories"));
    }
    let unlike = CalibrateError::Unlike("a score is not a number");
    // The fit on all labels is what runs apply. Its quality is measured on probabilities that each
    // come from a fit without the answer itself; on its own answers every fit looks good.
    let fit = RidgeLogistic::fit(&rows, &labels, PENALTY).ok_or_else(|| unlike.clone())?;
    let held_out = leave_one_out(&rows, &labels, PENALTY).ok_or_else(|| unlike.clone())?;
    let forecasts: Vec<(f64, bool)> =
        held_out.iter().copied().zip(labels.iter().copied()).collect();
    let threshold = best_threshold(&forecasts);
    let band = abstain_band(&forecasts, threshold);
    // Accuracy is that of the answers on which the judge does not abstain.
    let outside: Vec<&(f64, bool)> =
        forecasts.iter().filter(|(p, _)| band.is_none_or(|band| is_outside(*p, band))).collect();
    let right = outside.iter().filter(|(p, label)| (*p >= threshold) == *label).count();
    let pairs = |said: &dyn Fn(usize) -> bool| -> Vec<(u8, u8)> {
        labels.iter().enumerate().map(|(i, label)| (u8::from(said(i)), u8::from(*label))).collect()
    };
    let agreement = |pairs: &[(u8, u8)]| {
        cohen_kappa(pairs)
            .map(|found| LabelAgreement { kappa: found.kappa, interval: found.interval })
    };
    let (brier, constant) =
        brier_score(&forecasts).zip(constant_brier(&labels)).ok_or_else(|| unlike.clone())?;
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let share = |part: usize, of: usize| f64::from(count(part)) / f64::from(count(of).max(1));
    Ok(LabelCalibration {
        version: CALIBRATION_VERSION,
        judge,
        features,
        fit,
        penalty: PENALTY,
        labels: count(total),
        good: count(good),
        is_separable: is_separable(&rows, &labels),
        brier,
        constant_brier: constant,
        threshold,
        abstain: band,
        abstained: share(total - outside.len(), total),
        accuracy: share(right, outside.len()),
        agreement: agreement(&pairs(&|i| forecasts[i].0 >= threshold)),
        raw_agreement: agreement(&pairs(&|i| answers[i].passed)),
        // Fewer bins for few labels, so that each has enough answers for its interval.
        reliability: reliability(&forecasts, if total < 100 { 5 } else { 10 }),
        answers: answers
            .iter()
            .zip(&held_out)
            .map(|(answer, probability)| HeldOutAnswer {
                run_id: answer.run_id.clone(),
                case: answer.case.clone(),
                is_good: answer.is_good,
                probability: *probability,
            })
            .collect(),
    })
}

/// Returns the threshold that maximises the sum of sensitivity and specificity (Youden, "Index for
/// rating diagnostic tests", 1950); in a tie, the one nearest to one half.
fn best_threshold(forecasts: &[(f64, bool)]) -> f64 {
    let mut sorted: Vec<f64> = forecasts.iter().map(|(p, _)| *p).collect();
    sorted.sort_by(f64::total_cmp);
    // Sensitivity and specificity change only between two neighbouring forecasts.
    let between = sorted.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
    let share = |label: bool, threshold: f64| {
        let own = forecasts.iter().filter(|(_, is_good)| *is_good == label);
        let (right, all) = own.fold((0_u32, 0_u32), |(right, all), (p, _)| {
            (right + u32::from((*p >= threshold) == label), all + 1)
        });
        f64::from(right) / f64::from(all.max(1))
    };
    let rated = between.map(|at| (share(true, at) + share(false, at), at));
    let better = |a: &(f64, f64), b: &(f64, f64)| {
        a.0.total_cmp(&b.0).then((b.1 - 0.5).abs().total_cmp(&(a.1 - 0.5).abs()))
    };
    rated.max_by(better).map_or(0.5, |(_, at)| at)
}

/// Returns the narrowest band around the threshold that leaves the target accuracy outside of it.
fn abstain_band(forecasts: &[(f64, bool)], threshold: f64) -> Option<Interval> {
    let mut nearest: Vec<(f64, bool)> = forecasts
        .iter()
        .map(|(p, label)| ((p - threshold).abs(), (*p >= threshold) == *label))
        .collect();
    nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all = nearest.len();
    // Abstaining on the answers nearest to the threshold first gives the narrowest band of each
    // size.
    let most = (0..=all).take_while(|out| ratio(*out, all) <= MAX_ABSTAINED);
    for abstained in most {
        let rest = &nearest[abstained..];
        let right = rest.iter().filter(|(_, right)| *right).count();
        if ratio(right, rest.len()) >= WANTED_ACCURACY {
            // Without an answer to abstain on the band is empty, which is another result than no
            // band.
            let half = if abstained == 0 { 0.0 } else { nearest[abstained - 1].0 };
            return Some(Interval {
                low: (threshold - half).max(0.0),
                high: (threshold + half).min(1.0),
            });
        }
    }
    None
}

fn is_outside(probability: f64, band: Interval) -> bool {
    // An empty band contains nothing.
    band.high <= band.low || probability < band.low || probability > band.high
}

fn ratio(part: usize, all: usize) -> f64 {
    let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    count(part) / count(all.max(1))
}

impl LabelCalibration {
    /// Returns true if the judge, with this calibration, predicts labels better than a constant.
    pub fn beats_constant(&self) -> bool {
        self.brier < self.constant_brier
    }

    /// Renders the calibration as text.
    pub fn text(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let kappa = |agreement: Option<LabelAgreement>| match agreement {
            Some(LabelAgreement { kappa, interval: Interval { low, high } }) => {
                format!("{kappa:.2} [{low:.2}, {high:.2}]")
            }
            None => "none, chance explains it all".to_owned(),
        };
        let mut text = format!(
            "{} labels of answers that {} judged, {} good\n",
            self.labels,
            selftest_text::escape::terminal(&self.judge.model, 200),
            self.good
        );
        let better = if self.beats_constant() { "" } else { ": the judge is of no use here" };
        text += &format!(
            "  Brier score      {:.3}; a constant prediction has {:.3}{better}\n",
            self.brier, self.constant_brier
        );
        text += &format!(
            "  kappa            {}; without calibration {}\n",
            kappa(self.agreement),
            kappa(self.raw_agreement)
        );
        text += &format!("  threshold        {:.2}\n", self.threshold);
        text += &match self.abstain {
            Some(Interval { low, high }) if high > low => format!(
                "  abstain          between {low:.2} and {high:.2}: {} of the answers; {} of the \
                 others are right\n",
                percent(self.abstained),
                percent(self.accuracy)
            ),
            Some(_) => {
                format!("  abstain          never: {} of all are right\n", percent(self.accuracy))
            }
            None => format!(
                "  abstain          no band leaves nine of ten right; {} of all are\n",
                percent(self.accuracy)
            ),
        };
        if self.is_separable {
            text += "  note: the judge's scores tell all labels apart; the penalty alone keeps the \
                     weights finite, more labels would say more\n";
        }
        for bin in &self.reliability {
            text += &format!(
                "  from {:.1}: {} answers, predicted {}, good {} ({} to {})\n",
                bin.from,
                bin.count,
                percent(bin.forecast),
                percent(bin.observed),
                percent(bin.interval.low),
                percent(bin.interval.high)
            );
        }
        text
    }
}

/// Minimum distance of probabilities from 0 and 1: a judge that says 1.00 is not infinitely sure.
const EDGE: f64 = 0.02;

/// Name of the feature for the lowest probability.
const LEAST: &str = "least";

/// Returns the names of the features, in order.
pub fn feature_names(card: &Scorecard) -> Vec<String> {
    let categories = card.categories.iter().map(|entry| entry.category.clone());
    categories.chain([LEAST.to_owned()]).collect()
}

/// Returns the features of a score card, or `None` if a category has no score.
pub fn feature_values(card: &Scorecard) -> Option<Vec<f64>> {
    let categories: Vec<f64> =
        card.categories.iter().map(|entry| Some(entry.score?.get())).collect::<Option<_>>()?;
    // A judge that gives verdicts asks no questions: its lowest score is used instead.
    let questions = card.questions.iter().map(|asked| asked.probability.get());
    let least = questions.chain(categories.iter().copied()).fold(1.0, f64::min);
    Some(categories.into_iter().chain([least]).map(log_odds).collect())
}

/// Returns the score card of the step that decides a case: the one with the lowest overall score. What
/// form decided says nothing of the judge.
pub fn deciding_card(steps: &[CaseStep]) -> Option<&Scorecard> {
    let cards = steps.iter().filter_map(|step| match &step.judgement.as_ref()?.verdict {
        Verdict::Scored(card) => Some(card).filter(|card| !card.is_certain),
        Verdict::Unscored { .. } => None,
    });
    cards.min_by(|a, b| a.overall.get().total_cmp(&b.overall.get()))
}

fn log_odds(probability: f64) -> f64 {
    let inner = probability.clamp(EDGE, 1.0 - EDGE);
    (inner / (1.0 - inner)).ln()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    pub(crate) use crate::fixtures::{answers, calibrated, judge};
    use crate::judge::{CategoryScore, Judgement};
    use crate::outcome::StepKind;
    use crate::rubric::Rubric;
    use selftest_checks::scenario::TaskStatus;
    use selftest_stats::score::Score;

    #[test]
    fn a_judge_of_use_beats_the_constant() {
        let found = calibrated(110, 10);
        assert!(found.beats_constant() && !found.is_separable, "{found:?}");
        let (own, raw) = (found.agreement.unwrap(), found.raw_agreement.unwrap());
        assert!(own.kappa > raw.kappa && own.interval.low > 0.5, "{own:?} {raw:?}");
        assert!((0.3..0.7).contains(&found.threshold), "{}", found.threshold);
        assert!(found.fit.weights[0] > 0.0 && found.fit.weights[1] == 0.0);
        assert_eq!(found.reliability.iter().map(|bin| bin.count).sum::<u32>(), 110);
        insta::assert_snapshot!(found.text());
    }

    #[test]
    fn a_separable_set_is_told() {
        let found = calibrated(40, 0);
        assert!(found.is_separable && found.fit.weights[0].is_finite());
        assert!(found.text().contains("tell all labels apart"));
        assert!(found.abstain.is_some_and(|band| band.low >= band.high), "{:?}", found.abstain);
        assert_eq!(found.accuracy, 1.0);
    }

    #[test]
    fn what_cannot_be_calibrated_says_why() {
        let with = |answers: Vec<LabelledAnswer>| {
            let features = vec!["score".to_owned(), "least".to_owned()];
            calibrate(judge(), features, &answers).unwrap_err()
        };
        assert_eq!(with(answers(MIN_LABELS - 1, 0)), CalibrateError::TooFew(MIN_LABELS - 1));
        assert_eq!(with(Vec::new()), CalibrateError::TooFew(0));
        let mut equal = answers(30, 0);
        for answer in &mut equal {
            answer.is_good = true;
        }
        assert_eq!(with(equal.clone()), CalibrateError::AllEqual { labels: 30, word: "good" });
        equal[0].is_good = false;
        let few = CalibrateError::TooFewOfAKind { found: 1, labels: 30, word: "bad" };
        assert_eq!(with(equal), few);
        let mut ragged = answers(30, 5);
        ragged[3].features.pop();
        assert!(matches!(with(ragged), CalibrateError::Unlike(_)));
    }

    type Change = fn(&mut CalibratedJudge);

    #[test]
    fn another_judge_is_noticed() {
        let changes: [(&str, Change); 4] = [
            ("model", |judge| judge.weights.push('x')),
            ("method", |judge| judge.method = Some(JudgeMethod::Probability)),
            ("prompt", |judge| judge.prompt_digest.push('x')),
            ("rubric", |judge| judge.rubric_digest.push('x')),
        ];
        for (what, change) in changes {
            let mut other = judge();
            change(&mut other);
            assert_eq!(judge().difference_from(&other), Some(what));
        }
        assert_eq!(judge().difference_from(&judge()), None);
    }

    fn card(scores: [f64; 4]) -> Scorecard {
        let rubric = Rubric::default();
        let categories = rubric.categories().iter().zip(scores).map(|(category, score)| {
            CategoryScore { category: category.id.clone(), score: Score::new(score).ok() }
        });
        Scorecard {
            categories: categories.collect(),
            overall: Score::new(scores.into_iter().fold(1.0, f64::min)).unwrap(),
            reasoning: String::new(),
            questions: Vec::new(),
            expectations: Vec::new(),
            is_certain: false,
        }
    }

    /// A step with these scores.
    pub(in crate::calibration) fn step(scores: [f64; 4]) -> CaseStep {
        let verdict = Verdict::Scored(card(scores));
        CaseStep {
            kind: StepKind::Answer,
            input: "Explain x".to_owned(),
            expected_status: TaskStatus::Complete,
            reply: None,
            written: Vec::new(),
            judgement: Some(Judgement {
                verdict,
                samples: Vec::new(),
                panel: Vec::new(),
                question_count: 0,
                calls: Vec::new(),
            }),
            duration_ms: 1,
        }
    }

    #[test]
    fn a_verdict_in_numbers() {
        let card = card([0.5, 1.0, 0.9, 0.2]);
        let found = feature_values(&card).unwrap();
        assert_eq!(found.len(), feature_names(&card).len());
        assert_eq!(found[0], 0.0);
        assert!((found[1] - (0.98_f64 / 0.02).ln()).abs() < 1e-12, "{found:?}");
        assert_eq!(found[4], found[3], "the lowest score is the greatest doubt");
        assert_eq!(feature_names(&card)[4], LEAST);
    }

    #[test]
    fn the_weakest_step_decides() {
        let steps = [step([0.9; 4]), step([0.3; 4]), step([0.7; 4])];
        assert_eq!(deciding_card(&steps).unwrap().overall.get(), 0.3);
        assert_eq!(deciding_card(&[]), None);
    }
}
