//! Compares a judge with human labels: labels of answers, a regression from the judge's scores to
//! the label, and the corrected pass rate.
//!
//! Calls no model and opens no file. A calibration estimates how reliable verdicts are; it never
//! changes one. What labels change is the bounds within which a judge decides.

pub mod features;
pub mod fit;
pub mod labels;
mod own_scores;
pub mod rate;

pub use fit::{CalibrateError, CalibratedJudge, LabelCalibration, LabelledAnswer, calibrate};
pub use labels::{Label, LabelError, LabelFile};
pub use own_scores::{MIN_OWN_LABELS, OwnScores};
pub use rate::{JudgeCalibration, RunCalibration};
