//! Agreement of the rules' grades with people and with models
//! (docs/spec/session-grades.md#calibration, #human-overrides). Reports and proposes; changes
//! nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::overrides::{GradeField, GradeOverride};
use super::proposal::{WeightProposal, proposals};
use super::{GradeLevel, GradeRecord, GradeWeights, Proportion, QualityGrade};
use selftest_stats::{Interval, cohen_kappa, quadratic_kappa};

/// Maximum number of disagreements to list.
const MAX_NAMED: usize = 20;

/// Agreement over all graded sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraderAgreement {
    /// One comparison per field and rater, people first.
    pub comparisons: Vec<RaterComparison>,
    /// Proposed weights that would agree better with people.
    pub proposals: Vec<WeightProposal>,
    /// Number of sessions with a grade by the rules.
    pub sessions: u64,
}

/// Comparison of the rules with one rater on one field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RaterComparison {
    /// Field compared.
    pub field: GradeField,
    /// `people`, or the model that graded.
    pub against: String,
    /// Number of sessions that both graded, and how many of them have the same grade.
    pub agreeing: Proportion,
    /// Cohen's kappa, with quadratic weights for grades of 1 to 5. Absent if chance agreement is
    /// complete.
    pub kappa: Option<f64>,
    /// 95 % interval of kappa; absent if it cannot be computed.
    pub kappa_interval: Option<Interval>,
    /// Mean difference of the rater's grade minus that of the rules.
    pub mean_difference: f64,
    /// Sessions with the largest differences; at most 20.
    pub disagreements: Vec<RaterDisagreement>,
}

/// A session on which the rules and a rater differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaterDisagreement {
    /// ID of the session.
    pub session_id: String,
    /// Grade by the rules: 0 or 1, or 1 to 5.
    pub rules: u8,
    /// Grade by the rater.
    pub rater: u8,
    /// Reason given by the rater.
    pub reason: Option<String>,
}

impl GraderAgreement {
    /// Compares the rules with people and models. `records` are the rules' grades before overrides.
    ///
    /// People only count for the fields they overrode, so their rate covers sessions that someone
    /// disputed or confirmed, not all sessions. A model's `problem_solved` of at least 0.5 counts
    /// as a completed task, and its `overall` of 0 to 1 as a quality of 1 to 5.
    pub fn compare(
        records: &[GradeRecord],
        overrides: &[GradeOverride],
        quality: &[QualityGrade],
        weights: &GradeWeights,
    ) -> Self {
        let by_id: BTreeMap<&str, &GradeRecord> =
            records.iter().map(|record| (record.session_id.as_str(), record)).collect();
        let mut raters: BTreeMap<(bool, GradeField, &str), Vec<RaterDisagreement>> =
            BTreeMap::new();
        for ((field, session_id), one) in newest_overrides(overrides) {
            if let Some(record) = by_id.get(session_id) {
                let reason = Some(one.reason.clone());
                let pair = grade_pair(field, record, one.human_value, reason);
                raters.entry((false, field, "people")).or_default().push(pair);
            }
        }
        for ((model, session_id), grade) in latest_quality(quality) {
            let Some(record) = by_id.get(session_id) else { continue };
            for (field, value) in to_rule_grades(grade) {
                if let Some(value) = value {
                    let pair = grade_pair(field, record, value, grade.reasoning.clone());
                    raters.entry((true, field, model)).or_default().push(pair);
                }
            }
        }
        let comparisons = raters
            .into_iter()
            .map(|((_, field, rater), pairs)| RaterComparison::from_pairs(field, rater, pairs))
            .collect();
        Self {
            comparisons,
            proposals: proposals(records, overrides, weights),
            sessions: records.len() as u64,
        }
    }
}

/// Returns the newest override for each field of each session.
pub(super) fn newest_overrides(
    overrides: &[GradeOverride],
) -> BTreeMap<(GradeField, &str), &GradeOverride> {
    let mut newest: BTreeMap<(GradeField, &str), &GradeOverride> = BTreeMap::new();
    for one in overrides {
        let slot = newest.entry((one.field, &one.session_id)).or_insert(one);
        // If the times are equal, the later entry wins.
        if one.made_at >= slot.made_at {
            *slot = one;
        }
    }
    newest
}

/// Returns the grade of each model for each session, using the newest rubric version.
pub(super) fn latest_quality(quality: &[QualityGrade]) -> BTreeMap<(&str, &str), &QualityGrade> {
    let mut latest: BTreeMap<(&str, &str), &QualityGrade> = BTreeMap::new();
    for grade in quality {
        let slot = latest.entry((&grade.model, &grade.session_id)).or_insert(grade);
        if grade.rubric_version >= slot.rubric_version {
            *slot = grade;
        }
    }
    latest
}

/// Converts a model's grade to the scales of the rules; `None` for fields the model could not
/// judge.
pub(super) fn to_rule_grades(grade: &QualityGrade) -> [(GradeField, Option<u8>); 2] {
    let solved = grade.problem_solved.map(|score| u8::from(score >= 0.5));
    let level = grade.overall.map(|score| GradeLevel::nearest(1.0 + 4.0 * score).get());
    [(GradeField::TaskCompleted, solved), (GradeField::ResponseQuality, level)]
}

fn grade_pair(
    field: GradeField,
    record: &GradeRecord,
    rater: u8,
    reason: Option<String>,
) -> RaterDisagreement {
    let session_id = record.session_id.clone();
    RaterDisagreement { session_id, rules: field.value(record), rater, reason }
}

impl RaterComparison {
    fn from_pairs(field: GradeField, against: &str, mut pairs: Vec<RaterDisagreement>) -> Self {
        let numbers: Vec<(u8, u8)> = pairs.iter().map(|pair| (pair.rules, pair.rater)).collect();
        let kappa =
            if field.is_boolean() { cohen_kappa(&numbers) } else { quadratic_kappa(&numbers) };
        let same = numbers.iter().filter(|(rules, rater)| rules == rater).count();
        let difference: f64 =
            numbers.iter().map(|(rules, rater)| f64::from(*rater) - f64::from(*rules)).sum();
        #[expect(clippy::cast_precision_loss, reason = "counts of sessions are small")]
        let mean_difference = difference / numbers.len().max(1) as f64;
        pairs.retain(|pair| pair.rules != pair.rater);
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.rules.abs_diff(pair.rater)));
        pairs.truncate(MAX_NAMED);
        Self {
            field,
            against: against.to_owned(),
            agreeing: Proportion::new(same as u64, numbers.len() as u64),
            kappa: kappa.map(|kappa| kappa.kappa),
            // If a rater is constant, the formula gives an error of 0, which is meaningless.
            kappa_interval: kappa.filter(|k| k.standard_error > 0.0).map(|k| k.interval),
            mean_difference,
            disagreements: pairs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::grade_record::sample;

    fn says(session: &str, field: GradeField, human_value: u8, at: &str) -> GradeOverride {
        GradeOverride {
            session_id: session.to_owned(),
            field,
            rule_value: 1,
            human_value,
            reason: "seen".to_owned(),
            made_at: at.parse().unwrap(),
        }
    }

    #[test]
    fn people_and_models_are_compared_apart() {
        let records: Vec<_> = ["a", "b", "c", "d"].map(sample).into();
        let (early, late) = ("2026-11-17T00:00:00Z", "2026-11-18T00:00:00Z");
        let overrides = [
            says("a", GradeField::TaskCompleted, 1, early),
            says("b", GradeField::TaskCompleted, 1, early),
            // The newest word counts.
            says("b", GradeField::TaskCompleted, 0, late),
            says("c", GradeField::ResponseQuality, 5, early),
            says("gone", GradeField::TaskCompleted, 0, early),
        ];
        let by_model = |session: &str, version, problem_solved, overall| QualityGrade {
            session_id: session.to_owned(),
            model: "m".to_owned(),
            rubric_version: version,
            ts: late.parse().unwrap(),
            problem_solved,
            tests_added: None,
            code_clean: None,
            edge_cases: None,
            overall,
            reasoning: None,
            details: None,
        };
        let quality = [
            by_model("a", 2, Some(0.2), Some(0.5)),
            by_model("a", 1, Some(0.9), None),
            by_model("b", 1, None, None),
        ];
        let found =
            GraderAgreement::compare(&records, &overrides, &quality, &GradeWeights::default());
        let shown: Vec<_> = found
            .comparisons
            .iter()
            .map(|one| (one.against.as_str(), one.field, one.agreeing.count, one.agreeing.of))
            .collect();
        assert_eq!(
            shown,
            [
                ("people", GradeField::TaskCompleted, 1, 2),
                ("people", GradeField::ResponseQuality, 0, 1),
                ("m", GradeField::TaskCompleted, 0, 1),
                // 0.5 of the way from 1 to 5 is 3, as the sample has it.
                ("m", GradeField::ResponseQuality, 1, 1),
            ]
        );
        assert_eq!(found.comparisons[0].mean_difference, -0.5);
        assert_eq!(found.comparisons[0].disagreements[0].session_id, "b");
        assert_eq!(found.comparisons[1].mean_difference, 2.0);
        assert_eq!((found.sessions, found.proposals.len()), (4, 0));
    }
}
