//! Estimates the probability that a task succeeded, using ridge-regularised logistic regression on
//! facts from the rules' grades.
//!
//! The model is fitted on the labels of one project and validated on held-out tasks. There are no
//! weights for all projects: a model fitted on one benchmark is worse than chance on another. With
//! too few labels there is no estimate, and the result says so.

use std::collections::BTreeMap;

use serde::Serialize;

use super::grade_record::{GradePoint, GradeRecord};
use super::outcome::{OutcomeSign, TaskOutcome};
use selftest_stats::{
    Interval, ReliabilityBin, RidgeLogistic, auc, brier_score, constant_brier, leave_one_group_out,
    reliability,
};

/// Minimum number of labels for a fit.
pub const MIN_LABELS: usize = 40;
/// Minimum number of labels of each kind, success and failure.
pub const MIN_EACH: usize = 10;
/// Ridge penalty on the weights of standardised facts.
const PENALTY: f64 = 3.0;
/// Number of bins of the calibration curve.
const BINS: u32 = 5;

/// Name of a fact, and a function that returns it as a number.
type FeatureFn = (&'static str, fn(&GradeRecord) -> f64);

/// Facts used as features. There are few of them for the number of labels, about one for every
/// five.
const FACTS: [FeatureFn; 9] = [
    ("checks_passed", |grade| shows_outcome(grade, TaskOutcome::ChecksPassed)),
    ("contradicted", |grade| shows_outcome(grade, TaskOutcome::Contradicted)),
    ("claims to be done", |grade| {
        let signs = &grade.details.outcome_evidence;
        bool_to_f64(signs.iter().any(|one| one.sign == OutcomeSign::Claims))
    }),
    ("says that it failed", |grade| has_point(grade, GradePoint::SaysFailed)),
    ("short final message", |grade| has_point(grade, GradePoint::ShortResponse)),
    ("model calls (log)", |grade| log_count(grade.total_api_calls)),
    ("failed calls (log)", |grade| log_count(grade.total_errors)),
    ("errors in a row (log)", |grade| log_count(grade.details.longest_error_run)),
    ("corrections by the person (log)", |grade| log_count(grade.details.corrections)),
];

/// Returns 1 if the session itself shows the outcome. A verifier's verdict is excluded: it is a
/// label, and would predict itself.
fn shows_outcome(grade: &GradeRecord, outcome: TaskOutcome) -> f64 {
    // A verdict often is the label itself, and would predict it perfectly.
    bool_to_f64(grade.outcome == outcome && grade.verdict().is_none())
}

fn bool_to_f64(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn has_point(grade: &GradeRecord, point: GradePoint) -> f64 {
    bool_to_f64(grade.details.evidence.iter().any(|one| one.point == point))
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn log_count(count: u64) -> f64 {
    // The tenth failed call says less than the first, and 0 has a logarithm this way.
    (count as f64).ln_1p()
}

fn features(grade: &GradeRecord) -> Vec<f64> {
    FACTS.iter().map(|(_, fact)| fact(grade)).collect()
}

/// A graded session with its label.
#[derive(Debug, Clone)]
pub struct LabelledGrade<'a> {
    /// Grade of the session.
    pub grade: &'a GradeRecord,
    /// True if the task succeeded.
    pub success: bool,
    /// The task. Sessions of the same task are held out together.
    pub task: &'a str,
}

/// An estimate, or the reason for its absence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SuccessEstimate {
    /// There are too few labels.
    NotEnoughLabels {
        /// Number of labelled graded sessions in the project.
        labels: usize,
        /// Number of successes among them.
        successes: usize,
        /// Minimum number of labels.
        needed: usize,
        /// Minimum number of labels of each kind.
        needed_of_each: usize,
    },
    /// The model was fitted.
    Fitted(FittedEstimate),
}

/// A fitted model and its quality on sessions of held-out tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedEstimate {
    /// Number of labels.
    pub labels: usize,
    /// Number of successes among them.
    pub successes: usize,
    /// Number of distinct tasks.
    pub tasks: usize,
    /// Probability that a success is rated higher than a failure (area under the ROC curve).
    pub auc: f64,
    /// 95 % interval of the AUC, if it can be computed.
    pub auc_interval: Option<Interval>,
    /// Mean squared error of the probabilities (Brier score); 0 is perfect.
    pub brier: f64,
    /// Brier score of always predicting the share of successes, which the model must beat.
    pub brier_of_share: f64,
    /// Calibration curve: predicted probabilities and observed shares.
    pub calibration: Vec<ReliabilityBin>,
    /// Weights by name of the fact.
    pub weights: BTreeMap<&'static str, f64>,
    #[serde(skip)]
    model: RidgeLogistic,
}

impl FittedEstimate {
    /// Returns true if the model separates successes from failures better than chance and its
    /// probabilities beat the plain share. Otherwise no probability is given for single sessions.
    pub fn is_useful(&self) -> bool {
        let beats_chance = self.auc_interval.is_none_or(|interval| interval.low > 0.5);
        self.auc > 0.5 && beats_chance && self.brier < self.brier_of_share
    }

    /// Returns the probability that the task of a session succeeded, or `None` if the model is not
    /// useful.
    pub fn probability(&self, grade: &GradeRecord) -> Option<f64> {
        self.is_useful().then(|| self.model.probability(&features(grade)))
    }
}

/// Fits a model on the labels of one project.
pub fn estimate(labelled: &[LabelledGrade<'_>]) -> SuccessEstimate {
    let labels: Vec<bool> = labelled.iter().map(|one| one.success).collect();
    let successes = labels.iter().filter(|success| **success).count();
    let not_enough = SuccessEstimate::NotEnoughLabels {
        labels: labels.len(),
        successes,
        needed: MIN_LABELS,
        needed_of_each: MIN_EACH,
    };
    let failures = labels.len() - successes;
    if labels.len() < MIN_LABELS || successes.min(failures) < MIN_EACH {
        return not_enough;
    }
    let rows: Vec<Vec<f64>> = labelled.iter().map(|one| features(one.grade)).collect();
    let tasks: Vec<&str> = labelled.iter().map(|one| one.task).collect();
    fit(&rows, &labels, &tasks).map_or(not_enough, SuccessEstimate::Fitted)
}

/// Returns `None` if all labels of one kind belong to a single task, since then nothing can be held
/// out.
fn fit(rows: &[Vec<f64>], labels: &[bool], tasks: &[&str]) -> Option<FittedEstimate> {
    let model = RidgeLogistic::fit(rows, labels, PENALTY)?;
    // Quality is measured on tasks that the fit has not seen; the model of all labels is only for
    // sessions without one.
    let held_out = leave_one_group_out(rows, labels, tasks, PENALTY)?;
    let forecasts: Vec<(f64, bool)> = held_out.into_iter().zip(labels.iter().copied()).collect();
    let area = auc(&forecasts)?;
    let names = FACTS.iter().map(|(name, _)| *name);
    let distinct: std::collections::BTreeSet<&&str> = tasks.iter().collect();
    Some(FittedEstimate {
        labels: labels.len(),
        successes: labels.iter().filter(|success| **success).count(),
        tasks: distinct.len(),
        auc: area.area,
        auc_interval: area.interval,
        brier: brier_score(&forecasts)?,
        brier_of_share: constant_brier(labels)?,
        calibration: reliability(&forecasts, BINS),
        weights: names.zip(model.weights.iter().copied()).collect(),
        model,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::grade_record::sample;

    /// Sessions that succeed the less often the more calls fail; every third task twice.
    fn sessions(count: u64, is_told: bool) -> Vec<(GradeRecord, bool, String)> {
        let session = |number: u64| {
            let mut grade = sample(&number.to_string());
            let success = number.is_multiple_of(2);
            let errors =
                if is_told && !number.is_multiple_of(5) { u64::from(!success) * 6 } else { 2 };
            grade.total_errors = errors + number % 3;
            (grade, success, format!("task {}", number - u64::from(number % 3 == 2)))
        };
        (0..count).map(session).collect()
    }

    fn of(sessions: &[(GradeRecord, bool, String)]) -> SuccessEstimate {
        let labelled = sessions.iter().map(|(grade, success, task)| LabelledGrade {
            grade,
            success: *success,
            task,
        });
        estimate(&labelled.collect::<Vec<_>>())
    }

    #[test]
    fn too_few_labels_are_a_state() {
        let expected = |labels, successes| SuccessEstimate::NotEnoughLabels {
            labels,
            successes,
            needed: MIN_LABELS,
            needed_of_each: MIN_EACH,
        };
        assert_eq!(of(&[]), expected(0, 0));
        assert_eq!(of(&sessions(12, true)), expected(12, 6));
        let mut rare = sessions(60, true);
        for (grade, success, _) in &mut rare {
            *success = grade.session_id == "4";
        }
        assert_eq!(of(&rare), expected(60, 1));
    }

    #[test]
    fn what_tells_is_found() {
        let sessions = sessions(90, true);
        let SuccessEstimate::Fitted(fit) = of(&sessions) else { panic!("not fitted") };
        assert!(fit.auc > 0.8 && fit.is_useful(), "{fit:?}");
        assert_eq!((fit.labels, fit.tasks), (90, 60));
        assert!(fit.weights["failed calls (log)"] < -0.5, "{fit:?}");
        assert_eq!(fit.calibration.iter().map(|bin| bin.count).sum::<u32>(), 90);
        let mut failing = sample("x");
        failing.total_errors = 8;
        let (good, bad) = (fit.probability(&sample("y")), fit.probability(&failing));
        assert!(good > bad && bad < Some(0.5), "{good:?} {bad:?}");
    }

    #[test]
    fn what_tells_nothing_says_nothing_of_sessions() {
        let sessions = sessions(90, false);
        let SuccessEstimate::Fitted(fit) = of(&sessions) else { panic!("not fitted") };
        assert!(!fit.is_useful(), "{fit:?}");
        assert_eq!(fit.probability(&sample("y")), None);
    }
}
