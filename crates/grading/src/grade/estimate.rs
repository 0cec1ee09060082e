//! An estimate of whether tasks succeeded, fitted on the labels of one project: regularised
//! logistic regression on facts of the grades by rules, held against labels that it has not seen.
//!
//! There are no weights for all projects: fitted on one benchmark they are worse than chance on
//! another. Where there are too few labels there is no estimate, and that is said. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use super::grade_record::{GradeRecord, Point};
use super::outcome::{OutcomeSign, TaskOutcome};
use selftest_stats::{
    Interval, ReliabilityBin, RidgeLogistic, auc, brier_score, constant_brier, leave_one_group_out,
    reliability,
};

/// Labels below which nothing is fitted, and of either kind.
pub const MIN_LABELS: usize = 40;
/// Labels of either kind.
pub const MIN_EACH: usize = 10;
/// The penalty on weights of standardised facts.
const PENALTY: f64 = 3.0;
/// Bins of the calibration curve.
const BINS: u32 = 5;

/// A fact of a grade, as a number.
type Fact = (&'static str, fn(&GradeRecord) -> f64);

/// The facts, few for the number of labels: about one for five.
const FACTS: [Fact; 9] = [
    ("verified", |grade| is_found(grade, TaskOutcome::Verified)),
    ("contradicted", |grade| is_found(grade, TaskOutcome::Contradicted)),
    ("claims to be done", |grade| {
        let signs = &grade.details.outcome_evidence;
        flag(signs.iter().any(|one| one.sign == OutcomeSign::Claims))
    }),
    ("says that it failed", |grade| has(grade, Point::SaysFailed)),
    ("short final message", |grade| has(grade, Point::ShortResponse)),
    ("model calls (log)", |grade| logged(grade.total_api_calls)),
    ("failed calls (log)", |grade| logged(grade.total_errors)),
    ("errors in a row (log)", |grade| logged(grade.details.longest_error_run)),
    ("corrections by the person (log)", |grade| logged(grade.details.corrections)),
];

/// Whether the session itself says so. What a verifier said is a label, which would foretell
/// itself.
fn is_found(grade: &GradeRecord, outcome: TaskOutcome) -> f64 {
    flag(grade.outcome == outcome && grade.verdict().is_none())
}

fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn has(grade: &GradeRecord, point: Point) -> f64 {
    flag(grade.details.evidence.iter().any(|one| one.point == point))
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn logged(count: u64) -> f64 {
    (count as f64).ln_1p()
}

fn row(grade: &GradeRecord) -> Vec<f64> {
    FACTS.iter().map(|(_, fact)| fact(grade)).collect()
}

/// A graded session with its label.
#[derive(Debug, Clone)]
pub struct Labelled<'a> {
    /// Its grade.
    pub grade: &'a GradeRecord,
    /// Whether its task succeeded.
    pub success: bool,
    /// The task: sessions of one task are held out together.
    pub task: &'a str,
}

/// An estimate, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SuccessEstimate {
    /// There are too few labels.
    NotEnoughLabels {
        /// Of graded sessions of the project.
        labels: usize,
        /// Of them successes.
        successes: usize,
        /// How many are needed.
        needed: usize,
        /// How many of either kind.
        needed_of_each: usize,
    },
    /// It was fitted.
    Fitted(Fit),
}

/// A fitted estimate, and how good it is on sessions of tasks that it has not seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// Labels.
    pub labels: usize,
    /// Of them successes.
    pub successes: usize,
    /// Tasks among them.
    pub tasks: usize,
    /// The chance that a success gets the higher probability than a failure.
    pub auc: f64,
    /// Its 95 % interval; absent where there is none.
    pub auc_interval: Option<Interval>,
    /// The mean squared error of its probabilities; 0 is perfect.
    pub brier: f64,
    /// The same of the mere share of successes: what the estimate must beat.
    pub brier_of_share: f64,
    /// Probabilities against what was so.
    pub calibration: Vec<ReliabilityBin>,
    /// The facts and their weights, by their names.
    pub weights: BTreeMap<&'static str, f64>,
    #[serde(skip)]
    model: RidgeLogistic,
}

impl Fit {
    /// Whether it tells successes from failures better than chance, and its probabilities are
    /// better than the share: otherwise nothing is said of single sessions.
    pub fn is_useful(&self) -> bool {
        let beats_chance = self.auc_interval.is_none_or(|interval| interval.low > 0.5);
        self.auc > 0.5 && beats_chance && self.brier < self.brier_of_share
    }

    /// The probability that the task of a session succeeded; `None` where the estimate is of no
    /// use.
    pub fn probability(&self, grade: &GradeRecord) -> Option<f64> {
        self.is_useful().then(|| self.model.probability(&row(grade)))
    }
}

/// Fits an estimate on the labels of one project.
pub fn estimate(labelled: &[Labelled<'_>]) -> SuccessEstimate {
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
    let rows: Vec<Vec<f64>> = labelled.iter().map(|one| row(one.grade)).collect();
    let tasks: Vec<&str> = labelled.iter().map(|one| one.task).collect();
    fit(&rows, &labels, &tasks).map_or(not_enough, SuccessEstimate::Fitted)
}

/// `None` where all labels of one kind are of a single task: then nothing can be held out.
fn fit(rows: &[Vec<f64>], labels: &[bool], tasks: &[&str]) -> Option<Fit> {
    let model = RidgeLogistic::fit(rows, labels, PENALTY)?;
    let held_out = leave_one_group_out(rows, labels, tasks, PENALTY)?;
    let forecasts: Vec<(f64, bool)> = held_out.into_iter().zip(labels.iter().copied()).collect();
    let area = auc(&forecasts)?;
    let names = FACTS.iter().map(|(name, _)| *name);
    let distinct: std::collections::BTreeSet<&&str> = tasks.iter().collect();
    Some(Fit {
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
        let labelled = sessions.iter().map(|(grade, success, task)| Labelled {
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
