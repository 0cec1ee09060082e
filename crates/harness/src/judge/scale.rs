//! Converts the readings of an answer to the probability that it is good. Pure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

use super::probability::{QuestionAnswer, ReadingKind};
use selftest_stats::{RidgeLogistic, mean, sigmoid};

/// The weights of a model's readings. The log-odds of each kind are added with weights fitted on
/// answers of known quality (Platt, "Probabilistic outputs for support vector machines", 1999, with
/// several inputs).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbabilityScale {
    /// The log-odds of an answer whose readings are all zero.
    pub intercept: f64,
    /// Weights by kind. A missing kind adds no information to the others and is not read.
    pub weights: BTreeMap<ReadingKind, ReadingWeight>,
}

/// The weight of one kind of reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadingWeight {
    /// Log-odds for each unit of the reading; above 0.
    pub slope: f64,
    /// The neutral reading: for likelihoods, the mean over known answers.
    pub zero: f64,
}

/// The scales of a judge, which differ by the evidence that a case provides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeScales {
    /// For cases with a reference answer.
    pub with_reference: ProbabilityScale,
    /// For cases without a reference answer.
    pub without_reference: ProbabilityScale,
}

impl Default for ProbabilityScale {
    /// Returns the scale that leaves the log-odds of yes unchanged.
    fn default() -> Self {
        let weight = ReadingWeight { slope: 1.0, zero: 0.0 };
        Self { intercept: 0.0, weights: BTreeMap::from([(ReadingKind::Model, weight)]) }
    }
}

impl ProbabilityScale {
    /// Returns a scale that gives every rule the same weight, for answers of which only the readings
    /// matter.
    pub(super) fn of_rules() -> Self {
        let rules = ReadingKind::VARIANTS.iter().filter(|kind| kind.is_rule());
        let weight = ReadingWeight { slope: 1.0, zero: 0.0 };
        Self { intercept: 0.0, weights: rules.map(|kind| (*kind, weight)).collect() }
    }
}

impl JudgeScales {
    /// Fits the scales on answers of known quality. Returns `None` without both good and bad
    /// answers with and without a reference.
    pub fn fit(known: &[KnownReading]) -> Option<Self> {
        Some(Self {
            with_reference: ProbabilityScale::fit(&rows(known, true, ALL))?,
            without_reference: ProbabilityScale::fit(&rows(known, false, ALL))?,
        })
    }

    /// Returns the scale for a case with or without a reference.
    pub fn of(&self, has_reference: bool) -> &ProbabilityScale {
        if has_reference { &self.with_reference } else { &self.without_reference }
    }
}

/// Which kinds of readings a fit may use.
pub type ReadingFilter = fn(ReadingKind) -> bool;

/// All readings.
pub const ALL: ReadingFilter = |_| true;

/// Those of the model alone.
pub const MODEL_ONLY: ReadingFilter = |kind| !kind.is_rule();

/// Returns the readings of the answers to cases with a reference, or of all answers as they are
/// without one.
fn rows(known: &[KnownReading], with_reference: bool, filter: ReadingFilter) -> Vec<KnownRow<'_>> {
    let each = known.iter().filter_map(|one| {
        let read = if with_reference { &one.with_reference } else { &one.bare };
        let read = read.as_ref()?.iter().filter(|(kind, _)| filter(**kind));
        let read: BTreeMap<_, _> = read.map(|(kind, value)| (*kind, *value)).collect();
        // An answer that the model was not asked about says nothing of the model.
        let is_asked = read.keys().any(|kind| !kind.is_rule());
        let concerns_model = filter(ReadingKind::Model);
        let concerns_rules = filter(ReadingKind::NumberChanged);
        if concerns_model && !concerns_rules && !is_asked {
            return None;
        }
        Some(KnownRow { case: &one.case, read, is_good: one.is_good })
    });
    each.collect()
}

/// The readings of an answer to a case.
struct KnownRow<'a> {
    case: &'a str,
    read: BTreeMap<ReadingKind, f64>,
    is_good: bool,
}

impl ProbabilityScale {
    /// Returns the contribution of a reading to the log-odds that the answer is good. A reading
    /// without a weight adds nothing.
    pub fn log_odds_of(&self, answer: &QuestionAnswer) -> f64 {
        self.contribution(answer.by, answer.relative)
    }

    fn contribution(&self, kind: ReadingKind, value: f64) -> f64 {
        let weight = self.weights.get(&kind);
        weight.map_or(0.0, |weight| weight.slope * (bounded(value) - weight.zero))
    }

    /// Returns the probability of yes by this answer alone, 0 to 1; 0.5 if it says nothing.
    pub fn probability_of(&self, answer: &QuestionAnswer) -> f64 {
        match answer.by {
            ReadingKind::Model => sigmoid(self.intercept + self.log_odds_of(answer)),
            _ => sigmoid(self.log_odds_of(answer)),
        }
    }

    /// Returns the log-odds of a good answer, in one category or in all: the intercept, and for each
    /// kind of reading with a weight the mean over its readings. Only yes/no questions belong to one
    /// category. Returns `None` if the model has a weight and was not read, or if nothing has one.
    pub fn log_odds(&self, answers: &[&QuestionAnswer], category: Option<&str>) -> Option<f64> {
        let of = |by: ReadingKind| {
            let all = answers.iter().filter(|answer| answer.by == by);
            let is_own = |answer: &&&QuestionAnswer| {
                by == ReadingKind::Model
                    && category.is_some_and(|category| answer.question.category == category)
            };
            // Without a question of its own, a category has the answers to all.
            let has_own = all.clone().any(|answer| is_own(&answer));
            let own = all.filter(|answer| !has_own || is_own(answer));
            // The mean and not the sum: a case with many expectations is not surer than one with
            // two.
            mean(&own.map(|answer| self.log_odds_of(answer)).collect::<Vec<_>>())
        };
        if self.weights.is_empty() {
            return None;
        }
        let mut sum = self.intercept;
        for kind in self.weights.keys() {
            match of(*kind) {
                Some(value) => sum += value,
                // A rule that finds nothing says so.
                None if kind.is_rule() => sum += self.contribution(*kind, 0.0),
                // The facts and the description may be absent from a case, which says nothing.
                None => {}
            }
        }
        // Rules must not stand in for a model that was meant to be asked.
        let models = self.weights.keys().filter(|kind| !kind.is_rule());
        let is_read = models.clone().any(|kind| of(*kind).is_some());
        (models.count() == 0 || is_read).then_some(sum)
    }

    /// Returns the log-odds of readings by kind.
    pub(super) fn log_odds_of_row(&self, read: &BTreeMap<ReadingKind, f64>) -> f64 {
        let each = self.weights.keys().map(|kind| match read.get(kind) {
            Some(value) => self.contribution(*kind, *value),
            None if kind.is_rule() => self.contribution(*kind, 0.0),
            None => 0.0,
        });
        self.intercept + each.sum::<f64>()
    }
}

/// Bounds a reading, so that no single one can outweigh all others.
fn bounded(value: f64) -> f64 {
    BOUND * (value / BOUND).tanh()
}

/// Largest absolute value of a reading. Gains in nats per token are below 1, differences of log-odds
/// mostly below 3.
const BOUND: f64 = 3.0;

/// The readings of an answer of known quality.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownReading {
    /// Id of its case. Answers to one case stay together in cross-validation.
    pub case: String,
    /// Mean readings by kind, if the case has a reference and a judge is needed.
    pub with_reference: Option<BTreeMap<ReadingKind, f64>>,
    /// The same as if it had none.
    pub bare: Option<BTreeMap<ReadingKind, f64>>,
    /// True if it is a good answer.
    pub is_good: bool,
}

/// Ridge penalty that keeps weights small if there are few known answers, in standard deviations of
/// the readings.
const PENALTY: f64 = 4.0;

/// Minimum number of standard errors by which the weight of a model's reading has to exceed 0: by
/// chance alone, one in twenty does. A reading costs time, a rule does not.
const MIN_CERTAINTY: f64 = 1.645;

/// Number of parts in cross-validation.
const FOLDS: usize = 10;

/// Returns the log-odds of each answer by a fit on the answers to other requests, with whether it is
/// good: what the judge says of answers that it was not fitted on. Returns `None` if a fit is not
/// possible.
pub fn cross_validated(
    known: &[KnownReading],
    with_reference: bool,
    filter: ReadingFilter,
) -> Option<Vec<(f64, bool)>> {
    let all = rows(known, with_reference, filter);
    let mut cases: Vec<&str> = all.iter().map(|row| row.case).collect();
    cases.dedup();
    let mut scored = Vec::with_capacity(all.len());
    // By case: answers to one request share their wording, and would tell on each other.
    let fold_of = |row: &KnownRow<'_>| {
        cases.iter().position(|case| *case == row.case).unwrap_or_default() % FOLDS
    };
    let (mut fits, mut others) = (Vec::new(), Vec::new());
    for fold in 0..FOLDS {
        others.clear();
        for row in rows(known, with_reference, filter) {
            if fold_of(&row) != fold {
                others.push(row);
            }
        }
        fits.push(ProbabilityScale::fit(&others)?);
    }
    for row in &all {
        scored.push((fits[fold_of(row)].log_odds_of_row(&row.read), row.is_good));
    }
    Some(scored)
}

impl ProbabilityScale {
    /// Fits a scale on answers of known quality. Readings that favour bad answers, and readings of
    /// the model that add nothing to the others, are removed one by one: they would be noise, cost
    /// time and be hard to explain. Returns `None` without both good and bad answers.
    fn fit(known: &[KnownRow<'_>]) -> Option<Self> {
        let labels: Vec<bool> = known.iter().map(|one| one.is_good).collect();
        let with_zero = |by: &ReadingKind| {
            let all: Vec<f64> = known
                .iter()
                .filter_map(|one| one.read.get(by).map(|value| bounded(*value)))
                .collect();
            let mean = mean(&all)?;
            // A yes/no question is neutral at even odds and a rule where it finds nothing, while
            // likelihoods have no natural zero.
            let is_neutral_at_zero = *by == ReadingKind::Model || by.is_rule();
            Some((*by, if is_neutral_at_zero { 0.0 } else { mean }))
        };
        let mut kept: Vec<(ReadingKind, f64)> =
            ReadingKind::VARIANTS.iter().filter_map(with_zero).collect();
        loop {
            // A missing reading counts as neutral.
            let row = |one: &KnownRow<'_>| {
                let of = |(by, zero): &(ReadingKind, f64)| {
                    one.read.get(by).map_or(0.0, |value| bounded(*value) - zero)
                };
                kept.iter().map(of).collect()
            };
            let rows: Vec<Vec<f64>> = known.iter().map(row).collect();
            let (fit, certainty) = RidgeLogistic::fit_with_certainty(&rows, &labels, PENALTY)?;
            // A rule costs no call of a model, so that it stays as long as it does not mislead.
            let excess =
                |at: usize| certainty[at] - if kept[at].0.is_rule() { 0.0 } else { MIN_CERTAINTY };
            let weakest = (0..kept.len()).min_by(|a, b| excess(*a).total_cmp(&excess(*b)));
            if let Some(weakest) = weakest.filter(|at| excess(*at) <= 0.0) {
                // Removed one at a time, because that changes the certainty of the others.
                kept.remove(weakest);
                continue;
            }
            let weights = kept.into_iter().zip(fit.weights);
            return Some(Self {
                intercept: fit.intercept,
                weights: weights
                    .map(|((by, zero), slope)| (by, ReadingWeight { slope, zero }))
                    .collect(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forty answers to twenty cases: the model is noise, descriptions speak for bad answers, and a
    /// changed number for bad ones.
    fn forty() -> Vec<KnownReading> {
        let each = (0..40).map(|step| {
            let (noise, is_good) = (f64::from(step % 5) - 2.0, step % 2 == 0);
            let gain = if is_good { 0.6 } else { 0.2 } + 0.05 * noise;
            let is_changed = !is_good && step % 4 == 1;
            let mut read =
                BTreeMap::from([(ReadingKind::Model, noise), (ReadingKind::Description, -gain)]);
            if is_changed {
                read.insert(ReadingKind::NumberChanged, -1.0);
            }
            KnownReading {
                case: (step / 2).to_string(),
                with_reference: Some(read.clone()),
                bare: Some(read),
                is_good,
            }
        });
        each.collect()
    }

    #[test]
    fn readings_are_weighed_together_and_what_misleads_goes() {
        let all = forty();
        let scales = JudgeScales::fit(&all).unwrap();
        let kinds: Vec<_> = scales.with_reference.weights.keys().copied().collect();
        assert_eq!(kinds, [ReadingKind::NumberChanged]);
        let weight = scales.with_reference.weights[&ReadingKind::NumberChanged];
        assert!(weight.slope > 0.5 && weight.zero == 0.0, "{scales:?}");
        let one_kind: Vec<KnownReading> = all.into_iter().filter(|one| one.is_good).collect();
        assert_eq!(JudgeScales::fit(&one_kind), None);
    }

    #[test]
    fn an_answer_is_scored_by_a_fit_on_other_cases() {
        let all = forty();
        let scored = cross_validated(&all, true, ALL).unwrap();
        assert_eq!(scored.len(), all.len());
        let area = selftest_stats::auc(&scored).unwrap().area;
        assert!(area > 0.6, "{area}");
        // The model alone is noise, and says nothing of answers to other cases.
        let model = cross_validated(&all, true, MODEL_ONLY).unwrap();
        assert!(selftest_stats::auc(&model).unwrap().area < 0.65);
    }

    #[test]
    fn a_scale_of_an_earlier_version_is_refused() {
        let old = r#"{"slope": 1.0, "intercept": 0.0, "weights": {}}"#;
        assert!(serde_json::from_str::<ProbabilityScale>(old).is_err());
        let scale = JudgeScales::fit(&forty()).unwrap().with_reference;
        let text = serde_json::to_string(&scale).unwrap();
        assert_eq!(serde_json::from_str::<ProbabilityScale>(&text).unwrap(), scale);
    }
}
