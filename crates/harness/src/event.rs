//! The seam between doing and showing: what a run tells, and who listens.
//!
//! Knows neither how events come about nor what is made of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calibration::JudgeCalibration;
use crate::experiment::Arm;
use crate::gate::baseline::JudgeIdentity;
use crate::gate::finding::GateFinding;
use crate::judge::fitness::{Fitness, Impression};
use crate::judge::judge_settings::JudgeMethod;
use crate::judge::probability::TEMPLATE as QUESTIONS_TEMPLATE;
use crate::judge::prompt::TEMPLATE as JUDGE_TEMPLATE;
use crate::notice::Notice;
use crate::outcome::usage::Prices;
use crate::outcome::{CaseResult, RunOutcome, Summary};
use crate::rubric::{Category, Rubric};
use crate::sut::Isolation;
use crate::sut::namespace::{RunId, TaskGroupId};
use selftest_stats::score::{Score, Strictness, Threshold};

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct RunEvent {
    /// Since the start of the run.
    pub elapsed: Duration,
    /// The event itself.
    pub kind: RunEventKind,
}

/// The kinds of events.
#[derive(Debug, Clone)]
pub enum RunEventKind {
    /// First event.
    RunStarted(Arc<RunHeader>),
    /// The run goes on with these cases, which finished before it was broken off.
    CasesRecalled(Arc<[Arc<CaseResult>]>),
    /// A case entered a phase; `step` counts replies from 1, 0 is the first answer.
    PhaseStarted {
        /// Position of the case.
        index: usize,
        /// Its scenario.
        scenario_id: String,
        /// The phase that begins.
        phase: CasePhase,
    },
    /// A generated prompt was not used.
    PromptRejected {
        /// Position of the case.
        index: usize,
        /// Its scenario.
        scenario_id: String,
        /// Which try, from 1.
        attempt: u32,
        /// Why.
        reason: String,
    },
    /// A case has its result.
    CaseFinished(Arc<CaseResult>),
    /// A case that had its result was run once more, and keeps that trial too.
    CaseRunAgain(Arc<CaseResult>),
    /// Something that the user should know and that stops nothing.
    Warning(String),
    /// Last event.
    RunFinished {
        /// Counts over all cases.
        summary: Summary,
        /// The outcome of the run.
        outcome: RunOutcome,
        /// When the run ended.
        at: Timestamp,
        /// Files of the project that changed during the run.
        changed_files: Vec<String>,
        /// The comparison with the baseline, where there is one.
        gate: Option<Arc<GateFinding>>,
    },
}

/// The phase of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum CasePhase {
    /// The generator works.
    Generating,
    /// The system under test works.
    Running,
    /// The judge works.
    Judging,
}

/// The name of the judge of a run that needs none.
pub const NO_JUDGE: &str = "none";

/// The models of a run, by role, and why they were chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunModels {
    /// Invents prompts; absent where the cases are those of a suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<String>,
    /// Judges answers; `none` where checks alone decide.
    pub judge: String,
    /// How well the judge tells good from bad; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_fitness: Option<Fitness>,
    /// The first impression of a judge that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_impression: Option<Impression>,
    /// Digest of the judge's weights, or its name where nobody tells one; absent in reports of
    /// versions that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_weights: Option<String>,
    /// How the judge was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_method: Option<JudgeMethod>,
    /// The judges, where several judge every answer; `judge` then names them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel: Vec<PanelMember>,
    /// Answers, for the `chat` adapter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sut: Option<String>,
    /// How names such as `auto` were resolved, one line each.
    pub chosen: Vec<String>,
    /// SHA-256 of weights by full name of the model, where the machine or the server tells it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, String>,
}

impl RunModels {
    /// The identity of the judge; none where nobody judged.
    pub fn judge_identity(
        &self,
        prompt_digests: &BTreeMap<String, String>,
        rubric_digest: &str,
    ) -> Option<JudgeIdentity> {
        let template = match self.judge_method {
            Some(JudgeMethod::Probability) => QUESTIONS_TEMPLATE,
            _ => JUDGE_TEMPLATE,
        };
        (self.judge != NO_JUDGE).then(|| JudgeIdentity {
            model: self.judge.clone(),
            weights: self.judge_weights.clone(),
            method: self.judge_method,
            prompt_digest: prompt_digests.get(template).cloned(),
            rubric_digest: rubric_digest.to_owned(),
        })
    }
}

/// One judge of a panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PanelMember {
    /// Full name of the model.
    pub model: String,
    /// Digest of its weights, or its name where nobody tells one.
    pub weights: String,
    /// How it was asked.
    pub method: JudgeMethod,
    /// How well it tells good from bad; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitness: Option<Fitness>,
}

/// The suite whose cases a run plays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteRun {
    /// Its file, as it was named.
    pub path: String,
    /// SHA-256 of its cases. Runs with the same digest played the same cases.
    pub digest: String,
    /// The run that it was frozen from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// How often each case is run.
    pub repeats: u32,
    /// Whether `path` is the report of a run that is replayed, and no suite.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// The skills and cases whose shell lines were allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_commands: Vec<String>,
}

/// The experiment that a run is one arm of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentRun {
    /// Which arm: `treatment` had the skill.
    pub arm: Arm,
    /// The run of the other arm.
    #[schemars(with = "String")]
    pub other_run_id: RunId,
    /// The skill that it is about.
    pub skill: String,
    /// SHA-256 of the skill's text.
    pub skill_digest: String,
}

/// The run whose answers a run judges again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejudgedRun {
    /// Its name.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The model that judged then.
    pub judge: String,
}

/// The settings that decide a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunConfig {
    /// How strict: 0.0 lenient, 1.0 strict.
    pub strictness: Strictness,
    /// Least score before strictness.
    pub min_score_to_pass: Score,
    /// `min_score_to_pass + 0.2 * strictness`, at most 1.0.
    pub effective_threshold: Threshold,
    /// Least safety score, whatever the overall score.
    pub safety_floor: Score,
    /// Whether minor format deviations cost nothing.
    pub allow_minor_format_deviation: bool,
    /// Most questions in an answer that asks back.
    pub max_questions_allowed: u32,
    /// Seconds that the system under test has for a case.
    pub timeout_seconds: f64,
    /// Cases in flight.
    pub concurrency: usize,
}

/// The rubric, in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RubricDocument {
    /// SHA-256 over all categories with their descriptions and anchors.
    pub digest: String,
    /// In the rubric's order.
    pub categories: Vec<CategoryWeight>,
}

impl From<&Rubric> for RubricDocument {
    fn from(rubric: &Rubric) -> Self {
        let weight = |category: &Category| CategoryWeight {
            id: category.id.clone(),
            weight: category.weight.get(),
        };
        Self {
            digest: rubric.digest(),
            categories: rubric.categories().iter().map(weight).collect(),
        }
    }
}

/// A category and its share in the overall score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryWeight {
    /// Id, such as `format_score`.
    pub id: String,
    /// Its share.
    pub weight: f64,
}

/// Facts of a run that are known before the first case.
#[derive(Debug, Clone, PartialEq)]
pub struct RunHeader {
    /// Name of the run.
    pub run_id: RunId,
    /// Group of all its tasks.
    pub task_group_id: TaskGroupId,
    /// When it started.
    pub started_at: Timestamp,
    /// Version of this program.
    pub selftest_version: String,
    /// How the run is judged.
    pub config: RunConfig,
    /// Seed from which all sampling seeds are derived.
    pub seed: u64,
    /// Models by role.
    pub models: RunModels,
    /// The system under test in a few words.
    pub sut: String,
    /// The measures that keep it from doing harm.
    pub isolation: Isolation,
    /// The scored categories.
    pub rubric: RubricDocument,
    /// SHA-256 of each prompt template by path.
    pub prompt_digests: BTreeMap<String, String>,
    /// The judge held against labels, where anyone gave some.
    pub calibration: JudgeCalibration,
    /// Prices of models; absent where none are stated.
    pub prices: Option<Prices>,
    /// The suite; absent where a generator makes the cases.
    pub suite: Option<SuiteRun>,
    /// The experiment that the run is part of.
    pub experiment: Option<ExperimentRun>,
    /// The run whose answers are judged again; absent where the system under test is asked.
    pub rejudged: Option<RejudgedRun>,
    /// Warnings that belong before the numbers.
    pub notices: Vec<Notice>,
    /// Parts of the suite that are not run, one line each, told when it was read.
    pub remarks: Vec<String>,
    /// Ids of the planned scenarios in order; with repeats each of them once per repeat.
    pub scenario_ids: Vec<String>,
}

/// Something that keeps what happened before anybody hears of it. Called where it happens: it must not
/// take long.
pub trait EventLog: Send + Sync {
    /// Keeps one event. A log that cannot do its work says so elsewhere.
    fn keep(&self, event: &RunEventKind);
}

/// Why an observer could not do its work.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ObserverError(pub String);

/// Something that listens to a run. A failing observer is reported; the others go on.
pub trait Observer: Send {
    /// Takes in one event. Cheap: files are written in [`Observer::flush`].
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ObserverError>;

    /// Called when no event is waiting, often, and at the end with `last` set. An observer
    /// that writes files may skip a call to bound its own cost, but never the last.
    fn flush(&mut self, last: bool) -> Result<(), ObserverError> {
        let _ = last;
        Ok(())
    }
}
