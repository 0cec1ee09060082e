//! Compares a judge with human labels: labels of answers, a regression from the judge's scores to
//! the label, and the corrected pass rate.
//!
//! Calls no model and opens no file. A calibration estimates how reliable verdicts are; it never
//! changes one. What labels change is the bounds within which a judge decides.

pub mod fit;
pub mod labels;

use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcome::{CaseStatus, CaseStep};
pub use fit::{CalibrateError, CalibratedJudge, LabelCalibration, LabelledAnswer, calibrate};
pub use labels::{Label, LabelError, LabelFile, MIN_OWN_LABELS, OwnScores};
use selftest_stats::{Interval, MIN_CORRECTION_LABELS, corrected_rate, shifted_rate};
use selftest_text::wording::percent;

/// The calibration of a run's judge, known before the run.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum JudgeCalibration {
    /// There are no labels.
    #[default]
    None,
    /// A calibration exists but belongs to another judge; contains the difference.
    OtherJudge(String),
    /// A calibration of this judge.
    Known(Arc<LabelCalibration>),
}

/// The pass rate after correction by labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum RunCalibration {
    /// Corrected by prediction-powered inference.
    Calibrated {
        /// The corrected pass rate, 0 to 1.
        pass_rate: f64,
        /// Its 95 % interval, over cases like these.
        pass_rate_interval: Interval,
        /// Number of labels used.
        labels: u32,
        /// Number of labels from this run. Without any, the judge is assumed to err as in the
        /// labelled runs.
        own_labels: u32,
        /// Weight given to the judge's predictions, 0 to 1.
        lambda: f64,
    },
    /// Not corrected.
    Uncalibrated {
        /// The reason, in one line.
        reason: String,
    },
}

impl RunCalibration {
    /// Returns one line for reports.
    pub fn sentence(&self) -> String {
        match self {
            Self::Calibrated { pass_rate, pass_rate_interval, labels, own_labels, .. } => {
                let Interval { low, high } = pass_rate_interval;
                let of_whom = match own_labels {
                    0 => {
                        ", all of other runs: the judge is taken to err as it did there".to_owned()
                    }
                    own if own == labels => String::new(),
                    own => format!(", {own} of them of this run"),
                };
                format!(
                    "pass rate corrected by {labels} labels{of_whom}: {} %, 95 % interval {:.0} % \
                     to {:.0} %",
                    percent(*pass_rate),
                    100.0 * low,
                    100.0 * high
                )
            }
            Self::Uncalibrated { reason } => format!("pass rate uncalibrated: {reason}"),
        }
    }
}

/// A finished case: its name, its status and the judged steps.
pub type FinishedCase<'a> = (String, CaseStatus, &'a [CaseStep]);

impl JudgeCalibration {
    /// Returns the corrected pass rate over a run's cases so far, or `None` if there are no labels.
    pub fn apply(&self, run_id: &str, cases: &[FinishedCase<'_>]) -> Option<RunCalibration> {
        let uncalibrated = |reason: String| Some(RunCalibration::Uncalibrated { reason });
        let calibration = match self {
            Self::None => return None,
            Self::OtherJudge(reason) => return uncalibrated(reason.clone()),
            Self::Known(calibration) => calibration,
        };
        if (calibration.labels as usize) < MIN_CORRECTION_LABELS {
            return uncalibrated(format!(
                "{} labels, a corrected pass rate takes {MIN_CORRECTION_LABELS}",
                calibration.labels
            ));
        }
        let own: HashSet<&str> = calibration
            .answers
            .iter()
            .filter(|answer| answer.run_id == run_id)
            .map(|answer| answer.case.as_str())
            .collect();
        let labelled: Vec<(bool, f64)> =
            calibration.answers.iter().map(|answer| (answer.is_good, answer.probability)).collect();
        // If all labels belong to this run, they are a random sample of its answers. Labels of
        // other runs only show how the judge errs.
        let is_own = own.len() == labelled.len();
        let (mut predicted, mut broken) = (Vec::new(), 0_u32);
        for (name, status, steps) in cases {
            match (status.pass(), fit::deciding_card(steps).and_then(fit::feature_values)) {
                // A label is more reliable than a prediction.
                _ if is_own && own.contains(name.as_str()) => {}
                (Some(_), Some(values)) if values.len() == calibration.features.len() => {
                    predicted.push(calibration.fit.probability(&values));
                }
                // A case that failed without a judge is a certain failure.
                (Some(false), _) => broken += 1,
                _ => {}
            }
        }
        if !is_own && predicted.is_empty() {
            return uncalibrated("the run has no scored answer".to_owned());
        }
        // Of the answers of other runs another share may have been good.
        let found = if is_own {
            corrected_rate(&labelled, &predicted)
        } else {
            shifted_rate(&labelled, &predicted)
        };
        let Some(found) = found else {
            return uncalibrated(
                "the labels are nearly all the same, or the judge's verdicts on good and bad ones \
                 hardly differ"
                    .to_owned(),
            );
        };
        let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let scored = count(predicted.len()) + if is_own { count(own.len()) } else { 0.0 };
        // Failures without a score are certain, so the corrected rate is scaled to the scored
        // share.
        let share = scored / (scored + f64::from(broken));
        Some(RunCalibration::Calibrated {
            pass_rate: share * found.rate,
            pass_rate_interval: Interval {
                low: share * found.interval.low,
                high: share * found.interval.high,
            },
            labels: found.labels,
            own_labels: u32::try_from(own.len()).unwrap_or(u32::MAX),
            lambda: found.lambda,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::fit::tests::{calibrated, step};
    use super::*;

    /// A calibration that takes the five numbers of the default rubric.
    fn of_rubric(count: usize) -> LabelCalibration {
        let mut found = calibrated(count, 5);
        found.features = vec![String::new(); 5];
        found.fit.weights = vec![0.0, 0.0, 0.0, 0.0, 1.0];
        found
    }

    #[test]
    fn few_labels_are_uncalibrated() {
        assert_eq!(JudgeCalibration::None.apply("run", &[]), None);
        let few = JudgeCalibration::Known(Arc::new(of_rubric(40))).apply("run", &[]).unwrap();
        assert_eq!(
            few.sentence(),
            "pass rate uncalibrated: 40 labels, a corrected pass rate takes 80"
        );
        let dropped =
            JudgeCalibration::OtherJudge("its prompt changed".to_owned()).apply("run", &[]);
        assert!(dropped.unwrap().sentence().ends_with("uncalibrated: its prompt changed"));
    }

    #[test]
    fn a_pass_rate_is_corrected() {
        let good = [step([0.9; 4])];
        let cases: Vec<FinishedCase<'_>> = (0..50)
            .map(|number| (format!("new-{number}"), CaseStatus::Passed, &good[..]))
            .collect();
        let known = JudgeCalibration::Known(Arc::new(of_rubric(110)));
        let Some(RunCalibration::Calibrated {
            pass_rate,
            pass_rate_interval,
            labels,
            own_labels,
            ..
        }) = known.apply("another", &cases)
        else {
            panic!("uncalibrated")
        };
        assert_eq!((labels, own_labels), (110, 0));
        assert!(pass_rate_interval.low < pass_rate && pass_rate <= 1.0);
        // Half of the cases broke before they could be judged: they failed without a judge.
        let mut halved = cases.clone();
        halved.extend(vec![(String::new(), CaseStatus::SutTimeout, &[][..]); 50]);
        let Some(RunCalibration::Calibrated { pass_rate: half, .. }) =
            known.apply("another", &halved)
        else {
            panic!("uncalibrated")
        };
        assert!((half - pass_rate / 2.0).abs() < 1e-9, "{half} of {pass_rate}");
        // Labels of the run itself.
        let own = known.apply("run", &cases).unwrap();
        assert!(own.sentence().starts_with("pass rate corrected by 110 labels: "), "{own:?}");
        assert!(known.apply("another", &[]).unwrap().sentence().contains("no scored answer"));
    }
}
