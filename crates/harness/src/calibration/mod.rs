//! Compares a judge with human labels: labels of answers, a regression from the judge's scores to
//! the label, and the corrected pass rate.
//!
//! Calls no model and opens no file. A calibration estimates how reliable verdicts are; it never
//! changes one.

pub mod features;
pub mod fit;
pub mod labels;
pub mod rate;

pub use fit::{CalibrateError, CalibratedJudge, LabelCalibration, LabelledAnswer, calibrate};
pub use labels::{Label, LabelError, LabelFile};
pub use rate::{JudgeCalibration, RunCalibration};
