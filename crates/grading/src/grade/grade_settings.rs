//! The `grade` section of the configuration.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calibration;
use super::quality::QualitySettings;
use super::reflection::ReflectionSettings;
use super::{AlertSettings, GradeWeights, SuggestionRules};

/// The `grade` section: recorded sessions and how they are graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GradeSettings {
    /// Folders or files with recorded sessions. Empty: the default locations of the known agents.
    #[schemars(length(max = 1000))]
    pub sources: Vec<PathBuf>,
    /// Folder for the weekly reports and their index.
    #[schemars(length(min = 1))]
    pub weekly_folder: PathBuf,
    /// Weights of the grading points.
    pub weights: GradeWeights,
    /// Thresholds for the suggestions in weekly reports.
    pub suggestions: SuggestionRules,
    /// Thresholds and receivers of alerts.
    pub alerts: AlertSettings,
    /// Share of a grade's range by which two raters may differ on average before they count as out
    /// of calibration.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discrepancy: f64,
    /// Grading by a language model.
    pub quality: QualitySettings,
    /// Grading of agents' reflections on their own work.
    pub reflection: ReflectionSettings,
}

impl Default for GradeSettings {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            weekly_folder: PathBuf::from("docs/reports/weekly"),
            weights: GradeWeights::default(),
            suggestions: SuggestionRules::default(),
            alerts: AlertSettings::default(),
            discrepancy: calibration::DISCREPANCY,
            quality: QualitySettings::default(),
            reflection: ReflectionSettings::default(),
        }
    }
}
