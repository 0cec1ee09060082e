//! Grades of recorded sessions by a language model (docs/spec/session-quality.md): rubric, prompt,
//! strict reader for the reply, and the resulting grade.
//!
//! Nothing here calls a model or uses the clock or the database. The overall score is computed
//! here; the model is never asked for it.

mod combine;
mod grade;
mod prompt;
mod quality_settings;
mod reading;
mod rubric;

#[cfg(test)]
mod tests;

pub use combine::{CombinedQuality, ScoreSpread, combine_grades};
pub use grade::{DimensionNote, QualityContext, QualityGrade};
pub use prompt::{TEMPLATE, render, rubric_version};
pub use quality_settings::{QualitySettings, QualityWeights};
pub use reading::{DimensionReading, QualityReader, QualityReading, reply_schema};
pub use rubric::{FIRST_OWN_VERSION, QualityDimension, RUBRIC_VERSION, rubric_name};
