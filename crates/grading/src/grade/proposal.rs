//! Proposes weights that would agree better with people. Nothing here applies them.
//!
//! A coordinate search on a grid of half points, regularised towards the current weights and judged
//! by cross-validation. Weights that fit only the sessions they were fitted to are not proposed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grade_record::{GradeField, GradeOverride, GradePoint, GradeRecord};
use super::grade_settings::GradeWeights;

/// Minimum number of judged sessions. Fewer say nothing about seven weights.
pub const MIN_SESSIONS: usize = 20;
/// Number of cross-validation folds.
const FOLDS: usize = 5;
/// Regularisation cost per half point away from the current weights, in units of the loss.
const PULL: f64 = 0.002;
/// Step and maximum absolute value of the grid, in points.
const STEP: f64 = 0.5;
const REACH: f64 = 4.0;
const MAX_SWEEPS: usize = 20;

/// Proposed weights and their effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WeightProposal {
    /// Section of the weights: `completion` or `quality`.
    pub section: String,
    /// Number of sessions judged by a person.
    pub sessions: usize,
    /// Mean loss with the current weights: the share of wrong answers (completion) or the distance
    /// in levels (quality).
    pub loss_now: f64,
    /// Cross-validated mean loss of the fitted weights.
    pub loss_proposed: f64,
    /// Weights that would change. Empty if no change is proposed.
    pub changes: Vec<WeightChange>,
}

/// Proposed change of a weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WeightChange {
    /// Key of the weight in its section.
    pub weight: String,
    /// Current value.
    pub now: f64,
    /// Proposed value.
    pub proposed: f64,
}

/// A judged session: the points that apply, and the person's grade.
#[derive(Debug, Clone)]
struct JudgedSession {
    applies: Vec<bool>,
    judged: f64,
}

/// A grade computed as a sum of points, and the loss to minimise.
struct PointModel {
    section: &'static str,
    /// Points with their keys in the settings and their current weights.
    points: Vec<(GradePoint, &'static str, f64)>,
    base: f64,
    loss: fn(predicted: f64, judged: f64) -> f64,
}

/// Returns proposals for both sections, leaving out sections with too few judged sessions.
pub fn proposals(
    records: &[GradeRecord],
    overrides: &[GradeOverride],
    weights: &GradeWeights,
) -> Vec<WeightProposal> {
    let completed = PointModel {
        section: "completion",
        points: weights.completion.points(),
        base: 0.0,
        // A wrong grade costs 1, whatever the sum: only its sign decides.
        loss: |sum, judged| f64::from(u8::from((sum > 0.0) != (judged > 0.5))),
    };
    let response = PointModel {
        section: "quality",
        points: weights.quality.points(),
        base: weights.quality.base,
        // Not rounded to a level, because a rounded loss is flat and a search finds no way down.
        loss: |sum, judged| (sum.clamp(1.0, 5.0) - judged).abs(),
    };
    [(completed, GradeField::TaskCompleted), (response, GradeField::ResponseQuality)]
        .into_iter()
        .filter_map(|(model, field)| {
            let examples = examples(records, overrides, field, &model.points);
            (examples.len() >= MIN_SESSIONS).then(|| model.propose(&examples))
        })
        .collect()
}

/// Returns the judged sessions ordered by ID, so that the folds are reproducible.
fn examples(
    records: &[GradeRecord],
    overrides: &[GradeOverride],
    field: GradeField,
    points: &[(GradePoint, &str, f64)],
) -> Vec<JudgedSession> {
    let mut records: Vec<&GradeRecord> = records.iter().collect();
    // In a fixed order, so that the folds and with them the proposal are the same each time.
    records.sort_by(|a, b| a.session_id.cmp(&b.session_id));
    let judged = |record: &GradeRecord| {
        overrides
            .iter()
            .filter(|one| one.field == field && one.session_id == record.session_id)
            .max_by_key(|one| one.made_at)
            .map(|one| f64::from(one.human_value))
    };
    let example = |record: &GradeRecord| {
        let applies = |(point, _, _): &(GradePoint, &str, f64)| {
            record.details.evidence.iter().any(|evidence| evidence.point == *point)
        };
        Some(JudgedSession {
            applies: points.iter().map(applies).collect(),
            judged: judged(record)?,
        })
    };
    records.into_iter().filter_map(example).collect()
}

impl PointModel {
    fn propose(&self, examples: &[JudgedSession]) -> WeightProposal {
        let now: Vec<f64> = self.points.iter().map(|(_, _, weight)| *weight).collect();
        let all: Vec<&JudgedSession> = examples.iter().collect();
        let loss_now = self.mean_loss(&now, &all);
        let mut left_out = 0.0;
        for fold in 0..FOLDS {
            let part = |inside: bool| -> Vec<&JudgedSession> {
                let is_inside = |at: usize| (at % FOLDS == fold) == inside;
                let picked = examples.iter().enumerate().filter(|(at, _)| is_inside(*at));
                picked.map(|(_, example)| example).collect()
            };
            let fitted = self.fit(&now, &part(false));
            let rest = part(true);
            // Folds may differ in size by one session, so each counts by its sessions.
            left_out += self.mean_loss(&fitted, &rest) * count(rest.len());
        }
        let loss_proposed = left_out / count(examples.len());
        // Fit all sessions only if cross-validation showed an improvement.
        let fitted = if loss_proposed < loss_now { self.fit(&now, &all) } else { now.clone() };
        let changes = self.points.iter().zip(&fitted);
        let changes = changes.filter(|((_, _, now), proposed)| now != *proposed);
        let changes = changes.map(|((_, key, now), proposed)| WeightChange {
            weight: (*key).to_owned(),
            now: *now,
            proposed: *proposed,
        });
        WeightProposal {
            section: self.section.to_owned(),
            sessions: examples.len(),
            loss_now,
            loss_proposed,
            changes: changes.collect(),
        }
    }

    /// Moves one weight at a time to its best grid value until nothing improves.
    fn fit(&self, now: &[f64], examples: &[&JudgedSession]) -> Vec<f64> {
        let cost = |weights: &[f64]| {
            let pull: f64 = weights.iter().zip(now).map(|(a, b)| (a - b).abs() / STEP).sum();
            self.mean_loss(weights, examples) + PULL * pull
        };
        let mut weights = now.to_vec();
        let mut best = cost(&weights);
        for _ in 0..MAX_SWEEPS {
            let before = best;
            for at in 0..weights.len() {
                let kept = weights[at];
                let mut chosen = kept;
                let mut value = -REACH;
                while value <= REACH {
                    weights[at] = value;
                    let this = cost(&weights);
                    // Rounding noise must not count as an improvement.
                    if this < best - 1e-12 {
                        (best, chosen) = (this, value);
                    }
                    value += STEP;
                }
                weights[at] = chosen;
            }
            // A sweep without an improvement is a local minimum.
            if best >= before {
                break;
            }
        }
        weights
    }

    fn mean_loss(&self, weights: &[f64], examples: &[&JudgedSession]) -> f64 {
        if examples.is_empty() {
            return 0.0;
        }
        let loss = |example: &&JudgedSession| {
            let points = example.applies.iter().zip(weights).filter(|(applies, _)| **applies);
            let sum: f64 = points.map(|(_, weight)| weight).sum();
            (self.loss)(self.base + sum, example.judged)
        };
        examples.iter().map(loss).sum::<f64>() / count(examples.len())
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of sessions are small")]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::{GradeEvidence, GradeLevel};

    fn judged(
        number: usize,
        points: &[GradePoint],
        field: GradeField,
        value: u8,
    ) -> (GradeRecord, GradeOverride) {
        let evidence = points.iter().map(|point| GradeEvidence {
            point: *point,
            worth: 0.0,
            event: None,
            words: String::new(),
        });
        let mut record = crate::grade::grade_record::sample(&format!("s{number:03}"));
        record.details.evidence = evidence.collect();
        let one = GradeOverride {
            session_id: record.session_id.clone(),
            field,
            rule_value: 0,
            human_value: value,
            reason: "seen".to_owned(),
            made_at: record.graded_at,
        };
        (record, one)
    }

    fn proposal(examples: Vec<(GradeRecord, GradeOverride)>) -> Vec<WeightProposal> {
        let (records, overrides): (Vec<_>, Vec<_>) = examples.into_iter().unzip();
        proposals(&records, &overrides, &GradeWeights::default())
    }

    #[test]
    fn a_misleading_phrase_loses_its_weight() {
        // People say that "done" without a named output was never done.
        let example = |number: usize| {
            let truth = number.is_multiple_of(2);
            let points: &[GradePoint] =
                if truth { &[GradePoint::NamesOutput] } else { &[GradePoint::SaysDone] };
            judged(number, points, GradeField::TaskCompleted, truth.into())
        };
        let found = proposal((0..40).map(example).collect());
        assert_eq!(found.len(), 1);
        assert!((found[0].loss_now - 0.5).abs() < 1e-9);
        assert!(found[0].loss_proposed < 1e-9);
        assert_eq!(found[0].changes.len(), 1);
        assert_eq!(found[0].changes[0].weight, "says_done");
        assert!(found[0].changes[0].proposed <= 0.0);
    }

    #[test]
    fn where_people_agree_or_are_too_few_nothing_is_proposed() {
        let agreeing = |number: usize| {
            let truth = number.is_multiple_of(2);
            let points: &[GradePoint] =
                if truth { &[GradePoint::SaysDone] } else { &[GradePoint::SaysFailed] };
            judged(number, points, GradeField::TaskCompleted, truth.into())
        };
        let found = proposal((0..40).map(agreeing).collect());
        assert_eq!(found[0].changes, []);
        assert_eq!(proposal((0..MIN_SESSIONS - 1).map(agreeing).collect()), []);
    }

    #[test]
    fn quality_is_fitted_by_distance() {
        // Long answers were judged to be worth nothing extra.
        let example = |number: usize| {
            let points: &[GradePoint] = if number.is_multiple_of(2) {
                &[GradePoint::Over500, GradePoint::Over1000]
            } else {
                &[]
            };
            judged(number, points, GradeField::ResponseQuality, GradeLevel::new(3).unwrap().get())
        };
        let found = proposal((0..30).map(example).collect());
        assert_eq!(found[0].section, "quality");
        assert!((found[0].loss_now - 1.0).abs() < 1e-9);
        assert!(found[0].loss_proposed < 0.1);
        let change: f64 = found[0].changes.iter().map(|c| c.proposed - c.now).sum();
        assert!((change + 2.0).abs() < 1e-9, "{:?}", found[0].changes);
    }

    #[test]
    fn names_are_keys_of_the_settings() {
        let weights = serde_json::to_value(GradeWeights::default()).unwrap();
        let GradeWeights { completion, quality } = GradeWeights::default();
        for (section, points) in
            [("completion", completion.points()), ("quality", quality.points())]
        {
            for (_, key, weight) in points {
                assert_eq!(weights[section][key], weight, "{key}");
            }
        }
    }
}
