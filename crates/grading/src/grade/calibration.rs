//! Discrepancies between the graders (docs/spec/session-grades.md#calibration, #human-overrides):
//! the rules, each model, and people. Reports only; changes nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::agreement::{latest_quality, newest_overrides, to_rule_grades};
use super::share::rounded;
use super::{GradeField, GradeOverride, GradeRecord, Proportion, QualityGrade};
use selftest_stats::{
    Interval, PairedDifference, cohen_kappa, paired_difference, quadratic_kappa, sign_test,
};

/// Accepted discrepancy, as a share of a grade's range. The specification gives no value; this one
/// is ours.
pub const DISCREPANCY: f64 = 0.2;

/// A grader. Each is compared with the ones after it in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Rater {
    Rules,
    Model(String),
    People,
}

impl Rater {
    fn name(&self) -> &str {
        match self {
            Rater::Rules => "rules",
            Rater::Model(name) => name,
            Rater::People => "people",
        }
    }
}

/// The discrepancies between all graders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraderCalibration {
    /// Number of sessions with a grade by the rules.
    pub sessions: u64,
    /// Maximum accepted mean difference, as a share of a grade's range.
    pub threshold: f64,
    /// One entry per field and pair of graders with sessions in common.
    pub discrepancies: Vec<GraderDiscrepancy>,
}

/// Comparison of two graders on one field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraderDiscrepancy {
    /// Field compared.
    pub field: GradeField,
    /// `rules`, or the model.
    pub rater: String,
    /// The model, or `people`.
    pub against: String,
    /// Number of sessions that both graded, and how many of them have the same grade.
    pub agreeing: Proportion,
    /// Cohen's kappa, with quadratic weights for grades of 1 to 5. Absent if chance agreement is
    /// complete.
    pub kappa: Option<f64>,
    /// 95 % interval of kappa; absent if it cannot be computed.
    pub kappa_interval: Option<Interval>,
    /// Mean of `against` minus `rater`, in grades: -1 to 1 for yes and no, -4 to 4 for levels.
    pub mean_difference: f64,
    /// 95 % interval of the mean difference; absent with fewer than two sessions.
    pub interval: Option<Interval>,
    /// `|mean_difference|` as a share of the grade's range, 0 to 1 (`discrepancy` in the
    /// specification).
    pub discrepancy: f64,
    /// True if the discrepancy is above the threshold and significant.
    pub exceeds: bool,
}

impl GraderCalibration {
    /// Compares all graders. `records` are the rules' grades before overrides.
    ///
    /// Models and people are read as in [`super::agreement::GraderAgreement::compare`]. Only sessions with a
    /// grade by the rules count.
    pub fn compare(
        records: &[GradeRecord],
        overrides: &[GradeOverride],
        quality: &[QualityGrade],
        threshold: f64,
    ) -> Self {
        let mut said: BTreeMap<(GradeField, Rater), BTreeMap<&str, u8>> = BTreeMap::new();
        for &field in GradeField::ALL {
            let values = records.iter().map(|one| (one.session_id.as_str(), field.value(one)));
            said.insert((field, Rater::Rules), values.collect());
        }
        for ((model, session_id), grade) in latest_quality(quality) {
            for (field, value) in to_rule_grades(grade) {
                if let Some(value) = value {
                    let rater = (field, Rater::Model(model.to_owned()));
                    said.entry(rater).or_default().insert(session_id, value);
                }
            }
        }
        for ((field, session_id), one) in newest_overrides(overrides) {
            let values = said.entry((field, Rater::People)).or_default();
            values.insert(session_id, one.human_value);
        }
        let mut discrepancies = Vec::new();
        for ((field, rater), values) in &said {
            let rules = &said[&(*field, Rater::Rules)];
            let others = said.iter().filter(|((other_field, other), _)| {
                // Models are compared with rules and people, but not with each other.
                let both_models = matches!((rater, other), (Rater::Model(_), Rater::Model(_)));
                other_field == field && other > rater && !both_models
            });
            for ((_, other), other_values) in others {
                let both = values.iter().filter(|(session, _)| rules.contains_key(*session));
                let pairs: Vec<(u8, u8)> = both
                    .filter_map(|(session, value)| Some((*value, *other_values.get(session)?)))
                    .collect();
                let names = (rater.name(), other.name());
                discrepancies
                    .extend(GraderDiscrepancy::from_pairs(*field, names, &pairs, threshold));
            }
        }
        Self { sessions: records.len() as u64, threshold, discrepancies }
    }
}

impl GraderDiscrepancy {
    /// Compares pairs of grades by the first grader and the other. Returns `None` without pairs.
    fn from_pairs(
        field: GradeField,
        (rater, against): (&str, &str),
        pairs: &[(u8, u8)],
        threshold: f64,
    ) -> Option<Self> {
        let differences: Vec<f64> =
            pairs.iter().map(|(first, other)| f64::from(*other) - f64::from(*first)).collect();
        let PairedDifference { mean, interval } = paired_difference(&differences)?;
        let kappa = if field.is_boolean() { cohen_kappa(pairs) } else { quadratic_kappa(pairs) };
        let same = pairs.iter().filter(|(first, other)| first == other).count();
        let range = if field.is_boolean() { 1.0 } else { 4.0 };
        let discrepancy = mean.abs() / range;
        // Identical differences give a zero-width interval, so significance comes from a sign test.
        let spread = interval.filter(|ends| ends.high - ends.low > 1e-9);
        let is_chance = match spread {
            Some(ends) => ends.low <= 0.0 && ends.high >= 0.0,
            None => sign_test(u32::try_from(pairs.len()).unwrap_or(u32::MAX), 0) >= 0.05,
        };
        let round = |Interval { low, high }| Interval { low: rounded(low), high: rounded(high) };
        Some(Self {
            field,
            rater: rater.to_owned(),
            against: against.to_owned(),
            agreeing: Proportion::new(same as u64, pairs.len() as u64),
            kappa: kappa.map(|kappa| rounded(kappa.kappa)),
            // If a rater is constant, the error is 0 up to rounding, which is meaningless.
            kappa_interval: kappa.filter(|k| k.standard_error > 1e-6).map(|k| round(k.interval)),
            mean_difference: rounded(mean),
            interval: interval.map(round),
            discrepancy: rounded(discrepancy),
            exceeds: discrepancy > threshold && !is_chance,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::grade_record::sample;

    /// So many sessions of quality 3, which a model finds worth `overall` and a person `level`.
    fn graded(count: usize, overall: &[f64], level: u8) -> GraderCalibration {
        let records: Vec<_> = (0..count).map(|id| sample(&id.to_string())).collect();
        let overrides: Vec<GradeOverride> = records
            .iter()
            .map(|record| GradeOverride {
                session_id: record.session_id.clone(),
                field: GradeField::ResponseQuality,
                rule_value: 3,
                human_value: level,
                reason: "read".to_owned(),
                made_at: record.graded_at,
            })
            .collect();
        let quality: Vec<QualityGrade> = records
            .iter()
            .zip(overall.iter().cycle())
            .map(|(record, overall)| QualityGrade {
                session_id: record.session_id.clone(),
                model: "m".to_owned(),
                rubric_version: 1,
                ts: record.graded_at,
                problem_solved: None,
                tests_added: None,
                code_clean: None,
                edge_cases: None,
                overall: Some(*overall),
                reasoning: None,
                details: None,
            })
            .collect();
        GraderCalibration::compare(&records, &overrides, &quality, DISCREPANCY)
    }

    /// docs/spec/session-grades.md#calibration: `discrepancy = abs(external_score - grader_score)`;
    /// #human-overrides: with human judgements.
    #[test]
    fn rules_models_and_people_each_against_each() {
        let found = graded(10, &[1.0, 0.75], 2);
        let shown: Vec<_> = found
            .discrepancies
            .iter()
            .map(|one| (one.rater.as_str(), one.against.as_str(), one.mean_difference))
            .collect();
        // The model says 5 and 4 in turn, people say 2, the rules 3.
        assert_eq!(shown, [("rules", "m", 1.5), ("rules", "people", -1.0), ("m", "people", -2.5)]);
        let model = &found.discrepancies[0];
        assert_eq!((model.discrepancy, model.exceeds), (0.375, true));
        assert_eq!((model.agreeing.count, model.agreeing.of), (0, 10));
        let interval = model.interval.unwrap();
        assert!(interval.low < 1.5 && 1.5 < interval.high && interval.low > 1.0, "{interval:?}");
        assert_eq!(found.sessions, 10);
    }

    /// docs/spec/session-grades.md#calibration: above a threshold; and not by chance.
    #[test]
    fn below_the_threshold_or_by_chance_is_calibrated() {
        // 4 instead of 3 in one of two: a mean of 0.5, an eighth of the range.
        let near = graded(10, &[0.75, 0.5], 3);
        assert_eq!(near.discrepancies[0].discrepancy, 0.125);
        assert!(near.discrepancies.iter().all(|one| !one.exceeds));
        // 5 and 3: a quarter of the range, of two sessions and of ten.
        let few = graded(2, &[1.0, 0.5], 3);
        assert_eq!((few.discrepancies[0].discrepancy, few.discrepancies[0].exceeds), (0.25, false));
        assert!(graded(10, &[1.0, 0.5], 3).discrepancies[0].exceeds);
        assert!(graded(0, &[1.0], 3).discrepancies.is_empty());
    }
}
