//! Events of a run, warnings that are shown before its numbers, and the traits of observers.
//!
//! This module is the boundary between execution and presentation: it depends neither on how events
//! are produced nor on how they are rendered.

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
use crate::judge::fitness::JudgeFitness;
use crate::judge::{JudgeMethod, template_of};
use crate::outcome::usage::ModelPrices;
use crate::outcome::{CaseResult, RunOutcome, RunSummary};
use crate::rubric::{Rubric, RubricCategory};
use crate::sut::Isolation;
use crate::sut::namespace::{RunId, TaskGroupId};
use selftest_stats::score::{Score, Strictness, Threshold};

/// An event of a run.
#[derive(Debug, Clone)]
pub struct RunEvent {
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// The event itself.
    pub kind: RunEventKind,
}

/// The kinds of events.
#[derive(Debug, Clone)]
pub enum RunEventKind {
    /// First event.
    RunStarted(Arc<RunHeader>),
    /// The run resumes with these cases, which finished before it was interrupted.
    CasesRecalled(Arc<[Arc<CaseResult>]>),
    /// A case entered a phase. `step` counts replies from 1; 0 is the first answer.
    PhaseStarted {
        /// Position of the case.
        index: usize,
        /// Id of its scenario.
        scenario_id: String,
        /// The phase that starts.
        phase: CasePhase,
    },
    /// A generated prompt was rejected.
    PromptRejected {
        /// Position of the case.
        index: usize,
        /// Id of its scenario.
        scenario_id: String,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// Reason for the rejection.
        reason: String,
    },
    /// A case finished.
    CaseFinished(Arc<CaseResult>),
    /// A finished case was run again; its result includes the new trial.
    CaseRunAgain(Arc<CaseResult>),
    /// A problem that the user should see but that does not stop the run.
    Warning(String),
    /// Last event.
    RunFinished {
        /// Counts over all cases.
        summary: RunSummary,
        /// The outcome of the run.
        outcome: RunOutcome,
        /// Time when the run ended.
        at: Timestamp,
        /// Files of the project that changed during the run.
        changed_files: Vec<String>,
        /// The comparison with the baseline, if the run has one.
        gate: Option<Arc<GateFinding>>,
    },
}

/// The phase of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum CasePhase {
    /// The generator is writing the prompt.
    Generating,
    /// The system under test is answering.
    Running,
    /// The judge is scoring the answer.
    Judging,
}

/// Name recorded as the generator of a run whose cases the harness built without a model.
pub const NO_GENERATOR: &str = "templates";

/// Name recorded as the judge of a run that needs none.
pub const NO_JUDGE: &str = "none";

/// The models of a run, by role, with the reasons for choosing them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunModels {
    /// Writes prompts; `templates` if the harness does, without a model. Absent if the cases come from
    /// a suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<String>,
    /// Judges answers; `none` if the cases are decided by checks alone.
    pub judge: String,
    /// The judge's measured ability to tell good answers from bad. Absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_fitness: Option<JudgeFitness>,
    /// Digest of the judge's weights, or the model's name if no digest is available. Absent in
    /// reports of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_weights: Option<String>,
    /// How the judge was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_method: Option<JudgeMethod>,
    /// The members of the panel, if several judges score every answer; `judge` then names them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel: Vec<PanelMember>,
    /// Produces the answers, for the `chat` adapter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sut: Option<String>,
    /// How names such as `auto` were resolved, one line each.
    pub chosen: Vec<String>,
    /// SHA-256 of the weights by full name of the model, if the machine or the server reports it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, String>,
}

impl RunModels {
    /// Returns the identity of the judge, or `None` if the run had no judge.
    pub fn judge_identity(
        &self,
        prompt_digests: &BTreeMap<String, String>,
        rubric_digest: &str,
    ) -> Option<JudgeIdentity> {
        (self.judge != NO_JUDGE).then(|| JudgeIdentity {
            model: self.judge.clone(),
            weights: self.judge_weights.clone(),
            method: self.judge_method,
            prompt_digest: prompt_digests.get(template_of(self.judge_method)).cloned(),
            rubric_digest: rubric_digest.to_owned(),
        })
    }
}

/// One judge of a panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PanelMember {
    /// Full name of the model.
    pub model: String,
    /// Digest of its weights, or its name if no digest is available.
    pub weights: String,
    /// How it was asked.
    pub method: JudgeMethod,
    /// Its measured ability to tell good answers from bad. Absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitness: Option<JudgeFitness>,
}

/// The suite whose cases a run executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteRun {
    /// Path of the suite file, as the user gave it.
    pub path: String,
    /// SHA-256 of its cases. Runs with the same digest executed the same cases.
    pub digest: String,
    /// The run that the suite was frozen from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Number of times each case is run.
    pub repeats: u32,
    /// True if `path` is the report of a replayed run instead of a suite.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// The skills and cases whose shell lines the user allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_commands: Vec<String>,
}

/// The part of the cases that a run executes, if several machines divide them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShardRun {
    /// Number of this shard, from 1.
    pub number: usize,
    /// Number of shards.
    pub of: usize,
    /// Ids of the planned scenarios of all shards in order; with repeats, each occurs once per
    /// repeat.
    pub scenarios: Vec<String>,
}

/// The experiment that a run is one arm of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentRun {
    /// Arm of this run; `treatment` had the skill.
    pub arm: Arm,
    /// The run of the other arm.
    #[schemars(with = "String")]
    pub other_run_id: RunId,
    /// The skill under test.
    pub skill: String,
    /// SHA-256 of the skill's text.
    pub skill_digest: String,
}

/// The run whose answers are judged again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejudgedRun {
    /// Id of the original run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The model that judged the original run.
    pub judge: String,
}

/// The settings that decide a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunConfig {
    /// Strictness from 0.0 (lenient) to 1.0 (strict).
    pub strictness: Strictness,
    /// Minimum overall score, before strictness is added.
    pub min_score_to_pass: Score,
    /// `min_score_to_pass + 0.2 * strictness`, at most 1.0.
    pub effective_threshold: Threshold,
    /// Minimum safety score, whatever the overall score.
    pub safety_floor: Score,
    /// True if minor format deviations cost nothing.
    pub allow_minor_format_deviation: bool,
    /// Maximum number of questions in an answer that asks back.
    pub max_questions_allowed: u32,
    /// Time limit of the system under test per case, in seconds.
    pub timeout_seconds: f64,
    /// Maximum number of cases in flight.
    pub concurrency: usize,
}

/// Summary of the rubric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RubricDocument {
    /// SHA-256 over all categories with their descriptions and anchors.
    pub digest: String,
    /// The categories in the rubric's order.
    pub categories: Vec<CategoryWeight>,
}

impl From<&Rubric> for RubricDocument {
    fn from(rubric: &Rubric) -> Self {
        let weight = |category: &RubricCategory| CategoryWeight {
            id: category.id.clone(),
            weight: category.weight.get(),
        };
        Self {
            digest: rubric.digest(),
            categories: rubric.categories().iter().map(weight).collect(),
        }
    }
}

/// A category and its share of the overall score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryWeight {
    /// Id, such as `format_score`.
    pub id: String,
    /// Share of the overall score.
    pub weight: f64,
}

/// Facts of a run that are known before the first case.
#[derive(Debug, Clone, PartialEq)]
pub struct RunHeader {
    /// Id of the run.
    pub run_id: RunId,
    /// Group of all its tasks.
    pub task_group_id: TaskGroupId,
    /// Time when it started.
    pub started_at: Timestamp,
    /// Version of this program.
    pub selftest_version: String,
    /// Settings used for judging.
    pub config: RunConfig,
    /// Seed from which all sampling seeds are derived.
    pub seed: u64,
    /// Models by role.
    pub models: RunModels,
    /// Short description of the system under test.
    pub sut: String,
    /// The isolation measures applied to the system under test.
    pub isolation: Isolation,
    /// The scored categories.
    pub rubric: RubricDocument,
    /// SHA-256 of each prompt template, by path.
    pub prompt_digests: BTreeMap<String, String>,
    /// Comparison of the judge with human labels, if there are any.
    pub calibration: JudgeCalibration,
    /// Prices of models, if the configuration states them.
    pub prices: Option<ModelPrices>,
    /// The suite. Absent if a generator writes the cases.
    pub suite: Option<SuiteRun>,
    /// The shard, if the run executes a part of the cases.
    pub shard: Option<ShardRun>,
    /// The experiment that the run is part of.
    pub experiment: Option<ExperimentRun>,
    /// The run whose answers are judged again. Absent if the system under test is asked.
    pub rejudged: Option<RejudgedRun>,
    /// Warnings shown before the numbers.
    pub notices: Vec<RunNotice>,
    /// Parts of the suite that are not run, one line each, collected when the suite was read.
    pub remarks: Vec<String>,
    /// Ids of the planned scenarios in order; with repeats, each id occurs once per repeat.
    pub scenario_ids: Vec<String>,
}

/// A durable log that records each event before observers receive it. It is called synchronously
/// and must be fast.
pub trait EventLog: Send + Sync {
    /// Records one event. A log that fails reports this elsewhere.
    fn record(&self, event: &RunEventKind);
}

/// An observer failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ObserverError(pub String);

/// An observer of a run. If one fails, the failure is reported and the others continue.
pub trait Observer: Send {
    /// Receives one event. Must be cheap: files are written in [`Observer::flush`].
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ObserverError>;

    /// Called often, whenever no event is waiting, and at the end with `last` set. An observer that
    /// writes files may skip a call to bound its own cost, but never the last one.
    fn flush(&mut self, last: bool) -> Result<(), ObserverError> {
        let _ = last;
        Ok(())
    }
}

/// A caveat without which a reader could misinterpret the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunNotice {
    /// The run tested the built-in assistant and not the user's own agent.
    BuiltInAssistant {
        /// The configuration file, if there is one.
        config: Option<String>,
    },
    /// The run tested the example agent and not the user's own.
    ExampleAgent {
        /// The configuration file, if there is one.
        config: Option<String>,
    },
    /// Programs under test ran without a sandbox, or with only part of it.
    Unsandboxed {
        /// The reason.
        why: String,
    },
    /// The judge cannot tell good answers from bad ones.
    UnfitJudge {
        /// Full name of the model.
        model: String,
        /// Result of the judge's fitness measurement.
        measured: String,
    },
    /// The judge measured as unfit for cases without a reference answer, and the run has such
    /// cases.
    UnfitWithoutReference {
        /// Full name of the model.
        model: String,
        /// Result of the judge's fitness measurement.
        measured: String,
    },
}

impl RunNotice {
    /// Returns the notice as one sentence for the user.
    pub fn sentence(&self) -> String {
        match self {
            Self::BuiltInAssistant { config } => {
                let how = match config {
                    Some(config) => format!("name yours under `sut` in {config}"),
                    None => "`selftest init` sets yours up".to_owned(),
                };
                format!("this run tested the built-in assistant, not your agent: {how}")
            }
            Self::ExampleAgent { config } => {
                let file = config.as_deref().unwrap_or("config/selftest.yaml");
                format!(
                    "this run tests the example agent inside selftest, which has two planted faults \
                     (docs/example-agent.md); test your own: `selftest init`, `--sut \"COMMAND\"`, or \
                     `sut` in {file}"
                )
            }
            Self::Unsandboxed { why } => format!("UNSANDBOXED: {why}"),
            Self::UnfitJudge { model, measured } => format!(
                "{model} is unfit to judge ({measured}): only what needs no judge was decided"
            ),
            Self::UnfitWithoutReference { model, measured } => format!(
                "{model} is unfit to judge cases without a reference answer ({measured}): of those \
                 only what needs no judge was decided"
            ),
        }
    }
}
