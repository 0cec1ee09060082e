//! Agreement of the rules' grades with people and with models, and the discrepancies between them
//! (docs/spec/session-grades.md#calibration, #human-overrides). Reports and proposes; changes
//! nothing. Of an overridden grade both values are stored, and the human one counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::proposal::{WeightProposal, proposals};
use super::share::rounded;
use super::{
    GradeField, GradeLevel, GradeOverride, GradeRecord, GradeWeights, Proportion, QualityGrade,
};
use selftest_stats::{
    Interval, PairedDifference, cohen_kappa, paired_difference, quadratic_kappa, sign_test,
};

/// Maximum number of disagreements to list.
const MAX_NAMED: usize = 20;

/// Standard error of kappa up to which it is 0 but for rounding, because a rater is constant. Its
/// interval is then meaningless.
const MIN_KAPPA_ERROR: f64 = 1e-6;

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
                // `false` sorts people before the models.
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
    // 0 to 1 is stretched to the five levels.
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
            // On a scale of five, being off by one is less wrong than being off by four.
            if field.is_boolean() { cohen_kappa(&numbers) } else { quadratic_kappa(&numbers) };
        let same = numbers.iter().filter(|(rules, rater)| rules == rater).count();
        let difference: f64 =
            numbers.iter().map(|(rules, rater)| f64::from(*rater) - f64::from(*rules)).sum();
        #[expect(clippy::cast_precision_loss, reason = "counts of sessions are small")]
        let mean_difference = difference / numbers.len().max(1) as f64;
        pairs.retain(|pair| pair.rules != pair.rater);
        // A stable sort keeps sessions with the same difference in order of their ids.
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.rules.abs_diff(pair.rater)));
        pairs.truncate(MAX_NAMED);
        Self {
            field,
            against: against.to_owned(),
            agreeing: Proportion::new(same as u64, numbers.len() as u64),
            kappa: kappa.map(|kappa| kappa.kappa),
            kappa_interval: kappa
                .filter(|k| k.standard_error > MIN_KAPPA_ERROR)
                .map(|k| k.interval),
            mean_difference,
            disagreements: pairs,
        }
    }
}

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
    /// Models and people are read as in [`GraderAgreement::compare`]. Only sessions with a
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
            // Inserted above for every field, so the index exists.
            let rules = &said[&(*field, Rater::Rules)];
            let others = said.iter().filter(|((other_field, other), _)| {
                // Models are compared with rules and people, but not with each other.
                let both_models = matches!((rater, other), (Rater::Model(_), Rater::Model(_)));
                // Each pair once, with rules before models before people.
                other_field == field && other > rater && !both_models
            });
            for ((_, other), other_values) in others {
                // Grades by models and overrides may outlive the rules' grade of their session.
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
            kappa_interval: kappa
                .filter(|k| k.standard_error > MIN_KAPPA_ERROR)
                .map(|k| round(k.interval)),
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
        GraderCalibration::compare(&records, &overrides, &quality, 0.2)
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
