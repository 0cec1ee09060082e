//! Comparison of an experiment's two arms, for programs and for a terminal. Pure.

use serde::{Deserialize, Serialize};

use super::text::{ArmLabels, analysis_text, verdict};
use super::trials;
use crate::document::{CaseDocument, ReportDocument};
use crate::terminal::{StatusColour, TerminalStyle};
use crate::wording;
use selftest_checks::check::{
    Check, CheckKind, CheckObservation, CheckOutcome, CheckText, decide, is_blank,
};
use selftest_checks::scenario::TaskStatus;
use selftest_harness::event::SuiteRun;
use selftest_harness::experiment::{Arm, Arms, Conclusion, ExperimentAnalysis, analyse};
use selftest_harness::outcome::CaseStatus;
use selftest_text::escape::terminal;
use selftest_text::wording::plural;

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
    /// Evidence that the skill reached one arm and not the other.
    pub treatment: TreatmentEvidence,
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
        let mut analysis = analyse(&all);
        let experiment = treatment.experiment.as_ref();
        let skill = experiment.map(|experiment| experiment.skill.clone()).unwrap_or_default();
        let evidence = TreatmentEvidence::of(&skill, control.cases.iter(), treatment.cases.iter());
        let blocked = evidence.blocked();
        if blocked.is_some() {
            // The numbers stay for a reader, but they are about no skill.
            (analysis.conclusion, analysis.scope) = (Conclusion::Blocked, None);
        }
        let names =
            Arms { control: "the system without it", treatment: "The system with the skill" };
        Self {
            skill,
            skill_digest: experiment.map(|it| it.skill_digest.clone()).unwrap_or_default(),
            suite: treatment.suite.clone(),
            seed: treatment.seed,
            run_ids: Arms { control, treatment }.map(|report| report.run_id.to_string()),
            sentence: blocked.unwrap_or_else(|| analysis.sentence(names)),
            treatment: evidence,
            analysis,
            order,
        }
    }
}

/// Evidence that a skill reached the system under test in one arm, and not in the other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreatmentEvidence {
    /// Where the skill was put: `in .claude/skills/ferry`. Absent if it was put nowhere.
    pub offered: Option<String>,
    /// Number of trials with the skill that gave an answer.
    pub trials: u32,
    /// Number of those in which the system read or loaded the skill.
    pub used: u32,
    /// Number of those in which the system loaded the skill by a call of a tool. Absent if no trial
    /// reports calls. A file may also be read by a system that looks for skills and loads none.
    #[serde(default)]
    pub loaded: Option<u32>,
    /// Number of those in which neither can be known.
    pub unknown: u32,
    /// Number of trials without the skill in which the system loaded it all the same.
    pub leaked: u32,
    /// Number of trials with the skill, and without it, of an arm in which none gave an answer.
    #[serde(default, skip_serializing_if = "Silence::is_none")]
    pub silent: Silence,
}

/// Arms of which no trial gave an answer, with the number of their trials. An arm that answered has
/// none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// Trials without the skill.
    pub control: u32,
    /// Trials with the skill.
    pub treatment: u32,
}

impl Silence {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl TreatmentEvidence {
    /// Collects the evidence from the cases without the skill and from those with it.
    pub(crate) fn of<'a>(
        skill: &str,
        control: impl Iterator<Item = &'a CaseDocument>,
        treatment: impl Iterator<Item = &'a CaseDocument>,
    ) -> Self {
        let mut evidence = Self::default();
        // Agents name a skill by its folder.
        let name = skill.rsplit(['/', '\\']).next().unwrap_or_default();
        let Ok(name) = CheckText::new(name) else { return evidence };
        let check = Check::new(CheckKind::SkillLoaded(name));
        let mut silent = Silence::default();
        let was_run =
            |case: &&CaseDocument| !matches!(case.status, CaseStatus::NotRun | CaseStatus::Skipped);
        for case in treatment.filter(was_run) {
            if !has_answer(case) {
                silent.treatment += 1;
                continue;
            }
            evidence.trials += 1;
            let delivery = case.evidence.skill.as_ref();
            if let Some(delivery) = delivery {
                evidence.offered.get_or_insert_with(|| delivery.offered.clone());
            }
            let has_loaded = loads(&check, case);
            if reports_calls(case) {
                *evidence.loaded.get_or_insert(0) += u32::from(has_loaded);
            }
            match delivery.and_then(|delivery| delivery.read) {
                // A call that loads it is surer than the access time of a file.
                _ if has_loaded => evidence.used += 1,
                Some(true) => evidence.used += 1,
                Some(false) => {}
                None => evidence.unknown += 1,
            }
        }
        let mut has_control = false;
        for case in control.filter(was_run) {
            // An error without a word may follow calls that loaded the skill.
            evidence.leaked += u32::from(loads(&check, case));
            if has_answer(case) {
                has_control = true;
            } else {
                silent.control += 1;
            }
        }
        // Single trials without an answer are results; only an arm without any blocks.
        evidence.silent = Silence {
            control: if has_control { 0 } else { silent.control },
            treatment: if evidence.trials > 0 { 0 } else { silent.treatment },
        };
        evidence
    }

    /// Returns why the experiment says nothing about the skill; `None` if the arms are what they
    /// should be.
    pub(crate) fn blocked(&self) -> Option<String> {
        let Self { trials, used, unknown, leaked, silent, .. } = *self;
        if leaked > 0 {
            let trials = plural(leaked, "trial");
            return Some(format!(
                "Blocked: in {trials} without the skill the agent loaded it all the same, so there \
                 is no control. Take it out of the agent's own folders."
            ));
        }
        if silent.treatment > 0 {
            let trials = plural(silent.treatment, "trial");
            return Some(format!(
                "Blocked: the agent gave no complete answer in any of {trials} with the skill, so this says \
                 nothing about it."
            ));
        }
        if silent.control > 0 {
            let trials = plural(silent.control, "trial");
            return Some(format!(
                "Blocked: the agent gave no complete answer in any of {trials} without the skill, so there is \
                 no control."
            ));
        }
        // Read once, the skill was in reach: not to read it is then the agent's choice, and its
        // effect.
        if trials == 0 || used > 0 {
            return None;
        }
        let place = self.offered.as_deref().unwrap_or("nowhere");
        let of = plural(trials, "trial");
        Some(if unknown == trials {
            format!(
                "Blocked: nothing shows whether the agent read the skill (it lay {place}) in any of \
                 {of}: it reports no tool calls, and this file system keeps no access times."
            )
        } else {
            format!(
                "Blocked: the agent read the skill in none of {of} (it lay {place}), so this says \
                 nothing about it. Does the agent look for skills there, and do the cases call for \
                 this one?"
            )
        })
    }

    /// Returns the evidence in one line: `read in 14 of 16 trials, it lay in .claude/skills/ferry`.
    pub(crate) fn line(&self) -> String {
        let Self { trials, used, .. } = self;
        let place = self.offered.as_ref().map(|place| format!(", it lay {}", terminal(place, 300)));
        let loaded = self.loaded.filter(|loaded| loaded < used);
        let loaded = loaded.map(|loaded| format!(", loaded by a tool in {loaded}"));
        let (loaded, place) = (loaded.unwrap_or_default(), place.unwrap_or_default());
        format!("read in {used} of {}{loaded}{place}", plural(*trials, "trial"))
    }
}

/// Returns true if the system under test answered in the case at all. An error without a word is no
/// answer: so ends every trial of an agent that cannot work, with the skill or without it.
pub(crate) fn has_answer(case: &CaseDocument) -> bool {
    case.steps
        .iter()
        .filter_map(|step| step.reply.as_ref())
        .any(|reply| reply.status != TaskStatus::Error || !is_blank(&reply.output))
}

fn reports_calls(case: &CaseDocument) -> bool {
    case.steps.iter().filter_map(|step| step.reply.as_ref()).any(|reply| reply.tool_calls.is_some())
}

/// Returns true if tool calls of the case load the skill.
fn loads(check: &Check, case: &CaseDocument) -> bool {
    case.steps.iter().filter_map(|step| step.reply.as_ref()?.tool_calls.as_deref()).any(|calls| {
        let seen = CheckObservation { tool_calls: Some(calls), ..CheckObservation::default() };
        decide(check, &seen).outcome == CheckOutcome::Held
    })
}

/// Formats the setup, one line per case, the differences with their intervals, and the conclusion.
pub fn text(found: &SkillExperiment, style: TerminalStyle) -> String {
    let digest: String = found.skill_digest.chars().take(12).collect();
    let mut text = format!("skill {} (digest {digest})\n", terminal(&found.skill, 300));
    if let Some(suite) = &found.suite {
        text += &format!("suite {}\n", terminal(&wording::suite(suite), 600));
    }
    text += &format!(
        "without: {}\nwith: {}, {}\n",
        found.run_ids.control,
        found.run_ids.treatment,
        found.treatment.line()
    );
    text += &style.paint(StatusColour::Faint, &format!("seed {}", found.seed));
    text += "\n\n";
    text += &analysis_text(&found.analysis, LABELS, style);
    text + verdict(&found.analysis, &found.sentence, style).as_str()
}
