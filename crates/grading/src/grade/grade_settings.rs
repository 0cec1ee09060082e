//! The `grade` section of the configuration. Reads nothing itself.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calibration;
use super::quality::QualitySettings;
use super::reflection::ReflectionSettings;
use super::{AlertSettings, SuggestionRules, Weights};

/// The `grade` section: recorded sessions and how they are graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GradeSettings {
    /// Folders or files with recorded sessions. Empty: where the known agents keep theirs.
    #[schemars(length(max = 1000))]
    pub sources: Vec<PathBuf>,
    /// Folder of the weekly reports and their index.
    #[schemars(length(min = 1))]
    pub weekly_folder: PathBuf,
    /// The weight of each point.
    pub weights: Weights,
    /// When a weekly report suggests something.
    pub suggestions: SuggestionRules,
    /// When to raise an alert, and whom to tell.
    pub alerts: AlertSettings,
    /// Share of a grade's range by which two raters may differ on average before they count as out
    /// of calibration.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discrepancy: f64,
    /// Grading by a language model.
    pub quality: QualitySettings,
    /// Grading of what agents say of their own work.
    pub reflection: ReflectionSettings,
}

impl Default for GradeSettings {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            weekly_folder: PathBuf::from("docs/reports/weekly"),
            weights: Weights::default(),
            suggestions: SuggestionRules::default(),
            alerts: AlertSettings::default(),
            discrepancy: calibration::DISCREPANCY,
            quality: QualitySettings::default(),
            reflection: ReflectionSettings::default(),
        }
    }
}
