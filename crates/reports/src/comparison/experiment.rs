//! Comparison of an experiment's two arms, for programs and for a terminal. Pure.

use serde::Serialize;

use super::text::{ArmLabels, analysis_text, verdict};
use super::trials;
use crate::document::ReportDocument;
use crate::terminal::{StatusColour, TerminalStyle};
use crate::wording;
use selftest_harness::event::SuiteRun;
use selftest_harness::experiment::{Arm, Arms, ExperimentAnalysis, analyse};
use selftest_text::escape::terminal;

/// Names of the arms in tables and lines.
pub const LABELS: ArmLabels<'static> = Arms { control: "without", treatment: "with" };

/// The result of an experiment with a skill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillExperiment {
    /// Name of the skill.
    pub skill: String,
    /// SHA-256 of its text.
    pub skill_digest: String,
    /// The suite it was tested on.
    pub suite: Option<SuiteRun>,
    /// Seed of the order and of all sampling.
    pub seed: u64,
    /// IDs of the arms' runs, each with its own report.
    pub run_ids: Arms<String>,
    /// The conclusion in one sentence.
    pub sentence: String,
    /// The complete statistics.
    #[serde(flatten)]
    pub analysis: ExperimentAnalysis,
    /// The trials in the order in which they started.
    pub order: Vec<PlannedTrial>,
}

/// A trial in the planned order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedTrial {
    /// ID of the scenario.
    pub case: String,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Arm of the trial.
    pub arm: Arm,
}

impl SkillExperiment {
    /// Compares the reports of the arms.
    pub fn new(
        control: &ReportDocument,
        treatment: &ReportDocument,
        order: Vec<PlannedTrial>,
    ) -> Self {
        let mut all = trials(control, Arm::Control);
        all.extend(trials(treatment, Arm::Treatment));
        let analysis = analyse(&all);
        let experiment = treatment.experiment.as_ref();
        let names =
            Arms { control: "the system without it", treatment: "The system with the skill" };
        Self {
            skill: experiment.map(|experiment| experiment.skill.clone()).unwrap_or_default(),
            skill_digest: experiment.map(|it| it.skill_digest.clone()).unwrap_or_default(),
            suite: treatment.suite.clone(),
            seed: treatment.seed,
            run_ids: Arms { control, treatment }.map(|report| report.run_id.to_string()),
            sentence: analysis.sentence(names),
            analysis,
            order,
        }
    }
}

/// Formats the setup, one line per case, the differences with their intervals, and the conclusion.
pub fn text(found: &SkillExperiment, style: TerminalStyle) -> String {
    let digest: String = found.skill_digest.chars().take(12).collect();
    let mut text = format!("skill {} (digest {digest})\n", terminal(&found.skill, 300));
    if let Some(suite) = &found.suite {
        text += &format!("suite {}\n", terminal(&wording::suite(suite), 600));
    }
    text += &format!("without: {}\nwith: {}\n", found.run_ids.control, found.run_ids.treatment);
    text += &style.paint(StatusColour::Faint, &format!("seed {}", found.seed));
    text += "\n\n";
    text += &analysis_text(&found.analysis, LABELS, style);
    text + verdict(&found.analysis, &found.sentence, style).as_str()
}
