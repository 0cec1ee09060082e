//! Grades of recorded sessions by a language model (docs/spec/session-quality.md): rubric, prompt,
//! strict reading of the reply, and what the harness makes of it.
//!
//! Pure: calls no model, reads no clock and no database. The overall score is computed here and
//! never asked for.

mod combine;
mod grade;
mod prompt;
mod quality_settings;
mod reading;
mod rubric;

#[cfg(test)]
mod tests;

pub use combine::{Combined, Spread, combine};
pub use grade::{About, Note, QualityGrade};
pub use prompt::{TEMPLATE, render, rubric_version};
pub use quality_settings::{QualitySettings, QualityWeights};
pub use reading::{DimensionReading, QualityReader, QualityReading, reply_schema};
pub use rubric::{Dimension, FIRST_OWN_VERSION, RUBRIC_VERSION, rubric_name};
