//! The `grade` section of the configuration, and the weights of the grading points.
//!
//! The defaults are the numbers of docs/spec/session-grades.md. A project may change them, for
//! instance to what `selftest grade agreement` proposes.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quality::QualitySettings;
use super::reflection::ReflectionSettings;
use super::{AlertSettings, GradePoint, SuggestionRules};
use selftest_text::digest;

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
            discrepancy: DISCREPANCY,
            quality: QualitySettings::default(),
            reflection: ReflectionSettings::default(),
        }
    }
}

/// Accepted discrepancy, as a share of a grade's range. The specification gives no value; this one
/// is ours.
const DISCREPANCY: f64 = 0.2;

/// Revision of the rules, incremented when they change without a new version of the program.
const REVISION: u32 = 4;

/// Weights of the two grades that are sums of points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GradeWeights {
    /// Weights for task completion. The task counts as completed if the sum is above 0.
    pub completion: CompletionWeights,
    /// Weights for the quality of the final response: base plus sum, rounded and clamped to 1 to 5.
    pub quality: ResponseWeights,
}

impl GradeWeights {
    /// Returns a digest that identifies the rules. It differs for other weights and other versions
    /// of the program; grades made by other rules are redone.
    pub fn rules_digest(&self) -> String {
        let weights = serde_json::to_string(self).unwrap_or_default();
        let rules = format!("{} {REVISION} {weights}", env!("CARGO_PKG_VERSION"));
        digest::sha256_hex(rules.as_bytes()).chars().take(16).collect()
    }
}

/// Weights of the completion indicators. The specification lists them without numbers, so each
/// counts one point, for or against.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompletionWeights {
    /// The final message says done, completed, success or finished.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub says_done: f64,
    /// The final message says "saved to", "here is" or "output:".
    #[schemars(range(min = -10.0, max = 10.0))]
    pub names_output: f64,
    /// At most 10 % of the calls had errors.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub few_errors: f64,
    /// The final message says failed, unable to or could not.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub says_failed: f64,
    /// More than 30 % of the calls had errors.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub many_errors: f64,
    /// The final message is empty or shorter than 20 characters.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub short_response: f64,
}

impl Default for CompletionWeights {
    fn default() -> Self {
        Self {
            says_done: 1.0,
            names_output: 1.0,
            few_errors: 1.0,
            says_failed: -1.0,
            many_errors: -1.0,
            short_response: -1.0,
        }
    }
}

/// Additions and penalties of response quality.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResponseWeights {
    /// Starting value for every session.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub base: f64,
    /// The final message is longer than 500 characters.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub over_500: f64,
    /// The final message is longer than 1000 characters; added to `over_500`.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub over_1000: f64,
    /// The final message contains code blocks.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub has_code: f64,
    /// The final message contains links or references.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub has_links: f64,
    /// There were 3 or more errors in a row.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub repeated_errors: f64,
    /// There were more than 5 errors.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub over_5_errors: f64,
    /// There were 5 or more errors in a row, or more than 50 calls.
    #[schemars(range(min = -10.0, max = 10.0))]
    pub loop_risk: f64,
}

impl Default for ResponseWeights {
    fn default() -> Self {
        Self {
            base: 3.0,
            over_500: 1.0,
            over_1000: 1.0,
            has_code: 1.0,
            has_links: 0.5,
            repeated_errors: -1.0,
            over_5_errors: -1.0,
            loop_risk: -2.0,
        }
    }
}

impl CompletionWeights {
    /// Returns the weighted points, each with its key in the settings and its weight.
    pub fn points(&self) -> Vec<(GradePoint, &'static str, f64)> {
        vec![
            (GradePoint::SaysDone, "says_done", self.says_done),
            (GradePoint::NamesOutput, "names_output", self.names_output),
            (GradePoint::FewErrors, "few_errors", self.few_errors),
            (GradePoint::SaysFailed, "says_failed", self.says_failed),
            (GradePoint::ManyErrors, "many_errors", self.many_errors),
            (GradePoint::ShortResponse, "short_response", self.short_response),
        ]
    }
}

impl ResponseWeights {
    /// Returns the weighted points, each with its key in the settings and its weight.
    pub fn points(&self) -> Vec<(GradePoint, &'static str, f64)> {
        vec![
            (GradePoint::Over500, "over_500", self.over_500),
            (GradePoint::Over1000, "over_1000", self.over_1000),
            (GradePoint::HasCode, "has_code", self.has_code),
            (GradePoint::HasLinks, "has_links", self.has_links),
            (GradePoint::RepeatedErrors, "repeated_errors", self.repeated_errors),
            (GradePoint::Over5Errors, "over_5_errors", self.over_5_errors),
            (GradePoint::LoopRisk, "loop_risk", self.loop_risk),
        ]
    }
}
