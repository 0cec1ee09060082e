//! Converts the readings of an answer to the probability that it is good. Pure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::probability::{AnsweredBy, QuestionAnswer};
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
    pub weights: BTreeMap<AnsweredBy, ReadingWeight>,
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
        Self { intercept: 0.0, weights: BTreeMap::from([(AnsweredBy::Model, weight)]) }
    }
}

impl JudgeScales {
    /// Fits the scales on answers of known quality. Returns `None` without both good and bad
    /// answers.
    pub fn fit(known: &[KnownReading]) -> Option<Self> {
        let fitted = |third| {
            let kinds = [AnsweredBy::Model, AnsweredBy::Description, third];
            ProbabilityScale::fit(known, &kinds)
        };
        Some(Self {
            with_reference: fitted(AnsweredBy::Reference)?,
            without_reference: fitted(AnsweredBy::Facts)?,
        })
    }

    /// Returns the scale for a case with or without a reference.
    pub fn of(&self, has_reference: bool) -> &ProbabilityScale {
        if has_reference { &self.with_reference } else { &self.without_reference }
    }
}

impl ProbabilityScale {
    /// Returns the contribution of a reading to the log-odds that the answer is good. A reading
    /// without a weight adds nothing.
    pub fn log_odds_of(&self, answer: &QuestionAnswer) -> f64 {
        match (answer.by, self.weights.get(&answer.by)) {
            (AnsweredBy::Rule, _) => answer.relative,
            (_, Some(weight)) => weight.slope * (answer.relative - weight.zero),
            (_, None) => 0.0,
        }
    }

    /// Returns the probability of yes by this answer alone, 0 to 1.
    pub fn probability_of(&self, answer: &QuestionAnswer) -> f64 {
        match answer.by {
            AnsweredBy::Rule => answer.raw,
            AnsweredBy::Model => sigmoid(self.intercept + self.log_odds_of(answer)),
            _ => sigmoid(self.log_odds_of(answer)),
        }
    }

    /// Returns the log-odds of a good answer by the model alone, in one category or in all. This is
    /// the mean over the category's yes/no questions plus the likelihood readings, which concern
    /// the answer as a whole. Returns `None` if nothing with a weight was read. Rules do not count.
    pub fn log_odds(&self, answers: &[&QuestionAnswer], category: Option<&str>) -> Option<f64> {
        let of = |by: AnsweredBy| {
            let own = answers.iter().filter(|answer| {
                // Only yes/no questions belong to a category; likelihoods concern the whole answer.
                let is_asked = by != AnsweredBy::Model
                    || category.is_none_or(|category| answer.question.category == category);
                answer.by == by && is_asked
            });
            mean(&own.map(|answer| self.log_odds_of(answer)).collect::<Vec<_>>())
        };
        let read = self.weights.keys().filter_map(|by| of(*by));
        read.reduce(|sum, one| sum + one).map(|sum| sum + self.intercept)
    }
}

/// The mean readings, by kind, of an answer of known quality.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownReading {
    /// Readings by kind; missing if not read.
    pub read: BTreeMap<AnsweredBy, f64>,
    /// True if it is a good answer.
    pub is_good: bool,
}

/// Ridge penalty that keeps weights small if there are few known answers, in standard deviations of
/// the readings.
const PENALTY: f64 = 1.0;

/// Minimum number of standard errors by which a weight has to exceed 0 if there are others: by
/// chance alone, one in twenty does.
const MIN_CERTAINTY: f64 = 1.645;

impl ProbabilityScale {
    /// Fits a scale on answers of known quality, from these kinds of readings. Kinds that add no
    /// information to the others, or that favour bad answers, are removed one by one: they would be
    /// noise, cost time and be hard to explain. Returns `None` without both good and bad answers.
    fn fit(known: &[KnownReading], kinds: &[AnsweredBy]) -> Option<Self> {
        let labels: Vec<bool> = known.iter().map(|one| one.is_good).collect();
        let with_zero = |by: &AnsweredBy| {
            let all: Vec<f64> = known.iter().filter_map(|one| one.read.get(by).copied()).collect();
            let mean = mean(&all)?;
            // A yes/no question is neutral at even odds, while likelihoods have no natural zero.
            Some((*by, if *by == AnsweredBy::Model { 0.0 } else { mean }))
        };
        let mut kept: Vec<(AnsweredBy, f64)> = kinds.iter().filter_map(with_zero).collect();
        loop {
            // A missing reading counts as neutral.
            let row = |one: &KnownReading| {
                let of = |(by, zero): &(AnsweredBy, f64)| {
                    one.read.get(by).map_or(0.0, |value| value - zero)
                };
                kept.iter().map(of).collect()
            };
            let rows: Vec<Vec<f64>> = known.iter().map(row).collect();
            let (fit, certainty) = RidgeLogistic::fit_with_certainty(&rows, &labels, PENALTY)?;
            let least = if kept.len() > 1 { MIN_CERTAINTY } else { 0.0 };
            let weakest = (0..kept.len()).min_by(|a, b| certainty[*a].total_cmp(&certainty[*b]));
            if let Some(weakest) = weakest.filter(|at| certainty[*at] <= least) {
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

    fn known(readings: &[(AnsweredBy, f64)], is_good: bool) -> KnownReading {
        KnownReading { read: readings.iter().copied().collect(), is_good }
    }

    /// Yes and no are noise, descriptions speak for bad answers, references tell good from bad.
    fn forty() -> Vec<KnownReading> {
        let mut all = Vec::new();
        for step in 0..40 {
            let (noise, is_good) = (f64::from(step % 5) - 2.0, step % 2 == 0);
            let gain = if is_good { 0.6 } else { 0.2 } + 0.05 * noise;
            let readings = [
                (AnsweredBy::Model, noise),
                (AnsweredBy::Description, -gain),
                (AnsweredBy::Reference, gain),
                (AnsweredBy::Facts, 0.5 * gain + noise),
            ];
            all.push(known(&readings, is_good));
        }
        all
    }

    #[test]
    fn readings_are_weighed_together_and_what_adds_nothing_goes() {
        let mut all = forty();
        all.push(known(&[(AnsweredBy::Model, 0.1)], true));
        let scales = JudgeScales::fit(&all).unwrap();
        let kinds: Vec<_> = scales.with_reference.weights.keys().copied().collect();
        assert_eq!(kinds, [AnsweredBy::Reference]);
        let reference = scales.with_reference.weights[&AnsweredBy::Reference];
        assert!(reference.slope > 1.0 && (reference.zero - 0.4).abs() < 1e-9, "{scales:?}");
        let one_kind: Vec<KnownReading> = all.into_iter().filter(|one| one.is_good).collect();
        assert_eq!(JudgeScales::fit(&one_kind), None);
    }

    #[test]
    fn the_last_reading_stays_unless_it_speaks_for_bad_answers() {
        let of = |sign: f64| -> Vec<KnownReading> {
            let each = (0..40).map(|step| {
                let value = sign * f64::from(step % 4 / 2) * 0.1 + f64::from(step % 5);
                known(&[(AnsweredBy::Model, value)], step % 4 / 2 == 1)
            });
            each.collect()
        };
        let weak = JudgeScales::fit(&of(1.0)).unwrap().with_reference;
        assert!(weak.weights[&AnsweredBy::Model].slope > 0.0, "{weak:?}");
        let wrong = JudgeScales::fit(&of(-1.0)).unwrap().with_reference;
        assert!(wrong.weights.is_empty(), "{wrong:?}");
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
