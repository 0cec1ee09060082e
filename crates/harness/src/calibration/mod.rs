//! A judge held against the labels of the people it works for: labels of answers, a regression from
//! what the judge said to the label, and the pass rate that follows.
//!
//! Asks no model and opens no file. Never turns a verdict round: a calibration says what verdicts
//! are worth.

pub mod features;
pub mod fit;
pub mod labels;
pub mod rate;

pub use fit::{CalibrateError, CalibratedJudge, Calibration, LabelledAnswer, calibrate};
pub use labels::{Label, LabelFault, LabelFile};
pub use rate::{JudgeCalibration, RunCalibration};
