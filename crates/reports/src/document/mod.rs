//! The JSON report: the fields of docs/spec/selftest.md#json-report under their names there, plus
//! everything else that is known. Types and conversions only, including deserialisation and the
//! published schema.

pub mod case;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use case::{CaseDocument, CaseScores};

use selftest_harness::calibration::{JudgeCalibration, RunCalibration};
pub use selftest_harness::event::{CategoryWeight, RubricDocument, RunConfig};
use selftest_harness::event::{
    ExperimentRun, RejudgedRun, RunHeader, RunModels, RunNotice, ShardRun, SuiteRun,
};
use selftest_harness::gate::finding::GateFinding;
use selftest_harness::outcome::agreement::{JudgeSamples, PanelAgreement, VerdictChanges};
use selftest_harness::outcome::repeats::RepeatSummary;
use selftest_harness::outcome::usage::RunUsage;
use selftest_harness::outcome::{LoadingRates, RunOutcome, RunSummary, SkillResult};
use selftest_harness::sut::Isolation;
use selftest_harness::sut::namespace::{RunId, TaskGroupId};

/// Version of the report format. Increases when a field changes its meaning or is removed.
pub const SCHEMA_VERSION: u32 = 1;

/// One run: `reports/selftest/<run_id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportDocument {
    /// Version of this format.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// ID of the run.
    #[schemars(with = "String", regex(pattern = "^selftest-[0-9]{8}-[0-9]{4}-[a-z0-9]+$"))]
    pub run_id: RunId,
    /// Start time in UTC.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub timestamp: Timestamp,
    /// End time; null while the run is in progress, and permanently if it was killed.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub ended_at: Option<Timestamp>,
    /// True if the run finished. Otherwise summary and cases contain what has finished so far.
    pub complete: bool,
    /// Outcome of the run; null until it has ended.
    pub outcome: Option<RunOutcome>,
    /// Group of all tasks of the run.
    #[schemars(with = "String")]
    pub task_group_id: TaskGroupId,
    /// Settings by which the run was judged.
    pub config: RunConfig,
    /// The suite whose cases were run; absent if they were generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<SuiteRun>,
    /// The shard, if the run executed a part of the cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardRun>,
    /// The experiment that the run is one arm of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<ExperimentRun>,
    /// The run whose answers were judged again; absent if the run produced its own answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejudged: Option<RejudgeResult>,
    /// Counts over the cases.
    pub summary: RunSummary,
    /// Calls, tokens, time and cost by role; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<RunUsage>,
    /// Repeated cases over all their trials; absent in a run without repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<RepeatSummary>,
    /// Agreement of a panel's judges; absent for a single judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<PanelAgreement>,
    /// Consistency of a judge that was sampled several times per answer; absent if it was sampled
    /// once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_samples: Option<JudgeSamples>,
    /// Results by skill, if the cases belong to skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillResult>,
    /// Rates of correct skill loading; absent if no case checks that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading: Option<LoadingRates>,
    /// Pass rate corrected by labels; absent without labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<RunCalibration>,
    /// Comparison with the baseline; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateFinding>,
    /// Warnings that must precede the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<RunNotice>,
    /// Models by role.
    pub models: RunModels,
    /// Short description of the system under test.
    pub sut: String,
    /// Enforced protections.
    pub isolation: Isolation,
    /// Project files that changed during the run.
    pub changed_files: Vec<String>,
    /// Seed from which all sampling seeds are derived.
    pub seed: u64,
    /// The rubric.
    pub rubric: RubricDocument,
    /// SHA-256 of each prompt template by path.
    pub prompt_digests: BTreeMap<String, String>,
    /// IDs of the planned scenarios in order; with repeats, each occurs once per repeat.
    pub scenarios: Vec<String>,
    /// Warnings that did not stop the run.
    pub warnings: Vec<String>,
    /// Version of the program.
    pub selftest_version: String,
    /// The machine on which it ran.
    pub host: HostMachine,
    /// One entry per finished case, in plan order. The last field, so that a reader who only needs
    /// the head can stop here.
    pub cases: Vec<CaseDocument>,
}

/// A run whose answers were judged again, and how its verdicts changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RejudgeResult {
    /// The run.
    #[serde(flatten)]
    pub run: RejudgedRun,
    /// Changes in its verdicts.
    pub changes: VerdictChanges,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostMachine {
    /// Operating system, such as `linux`.
    pub os: String,
    /// Processor architecture, such as `x86_64`.
    pub arch: String,
}

impl HostMachine {
    /// Returns the machine that this program runs on.
    pub fn this() -> Self {
        Self { os: std::env::consts::OS.to_owned(), arch: std::env::consts::ARCH.to_owned() }
    }
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// Its outcome.
    pub outcome: RunOutcome,
    /// Time of the end.
    pub at: Timestamp,
    /// Project files that changed.
    pub changed_files: Vec<String>,
    /// The comparison with the baseline.
    pub gate: Option<Arc<GateFinding>>,
}

impl ReportDocument {
    /// Creates a document without cases, from what is known about the run as a whole.
    pub fn head(
        header: &RunHeader,
        summary: &RunSummary,
        warnings: &[String],
        end: Option<&RunEnd>,
        host: HostMachine,
    ) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            run_id: header.run_id.clone(),
            timestamp: header.started_at,
            ended_at: end.map(|end| end.at),
            complete: end.is_some(),
            outcome: end.map(|end| end.outcome),
            task_group_id: header.task_group_id.clone(),
            config: header.config.clone(),
            suite: header.suite.clone(),
            shard: header.shard.clone(),
            experiment: header.experiment.clone(),
            rejudged: None,
            summary: summary.clone(),
            usage: None,
            repeats: None,
            panel: None,
            judge_samples: None,
            skills: Vec::new(),
            loading: None,
            calibration: None,
            gate: end.and_then(|end| end.gate.as_deref()).cloned(),
            notices: header.notices.clone(),
            models: header.models.clone(),
            sut: header.sut.clone(),
            isolation: header.isolation.clone(),
            changed_files: end.map(|end| end.changed_files.clone()).unwrap_or_default(),
            seed: header.seed,
            rubric: header.rubric.clone(),
            prompt_digests: header.prompt_digests.clone(),
            scenarios: header.scenario_ids.clone(),
            warnings: warnings.to_vec(),
            selftest_version: header.selftest_version.clone(),
            host,
            cases: Vec::new(),
        }
    }

    /// Returns the facts that were known before the first case. Labels are not among them; what
    /// follows from them is in [`ReportDocument::calibration`].
    pub fn header(&self) -> RunHeader {
        RunHeader {
            run_id: self.run_id.clone(),
            task_group_id: self.task_group_id.clone(),
            started_at: self.timestamp,
            selftest_version: self.selftest_version.clone(),
            config: self.config.clone(),
            seed: self.seed,
            models: self.models.clone(),
            sut: self.sut.clone(),
            isolation: self.isolation.clone(),
            rubric: self.rubric.clone(),
            prompt_digests: self.prompt_digests.clone(),
            calibration: JudgeCalibration::None,
            prices: self.usage.as_ref().and_then(|usage| usage.prices.clone()),
            suite: self.suite.clone(),
            shard: self.shard.clone(),
            experiment: self.experiment.clone(),
            rejudged: self.rejudged.as_ref().map(|rejudged| rejudged.run.clone()),
            notices: self.notices.clone(),
            // Already part of the report's warnings.
            remarks: Vec::new(),
            scenario_ids: self.scenarios.clone(),
        }
    }
}

/// Returns the published JSON Schema of a report, draft 2020-12, without references.
pub fn schema() -> Value {
    // Inlined, because published schemas contain no references.
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .for_serialize();
    settings.into_generator().into_root_schema_for::<ReportDocument>().to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::state::RunState;

    fn assert_whole(state: &RunState) -> ReportDocument {
        let text = state.json().unwrap().unwrap();
        let document: ReportDocument = serde_json::from_str(&text).unwrap();
        let pretty = serde_json::to_string_pretty(&document).unwrap() + "\n";
        assert_eq!(text, pretty, "the text of the parts is not the text of the whole");
        let value: Value = serde_json::from_str(&text).unwrap();
        let schema = selftest_schema::Schema::compile(&schema()).unwrap();
        let faults: Vec<String> = schema.errors(&value).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}");
        document
    }

    #[test]
    fn composed_text_is_the_whole_document() {
        let document = assert_whole(&fixture::rich_run());
        let ids: Vec<&str> = document.cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids, document.scenarios, "cases are in the order of the plan");
        assert_whole(&fixture::state(&fixture::events(&[])));
        assert_whole(&fixture::state(&fixture::rich_events()[..1]));
        assert_whole(&fixture::state(&fixture::rich_events()[..2]));
        let panel = assert_whole(&fixture::state(&fixture::events(&fixture::cases_of_a_panel())));
        let found = panel.panel.unwrap();
        assert_eq!((found.cases, found.unanimous), (3, 2), "silence is no vote");
        assert_eq!(found.disputed, ["case-1"]);
        assert_eq!([0, 1].map(|judge| found.judges[judge].unscored), [1, 0]);
        assert_eq!(found.pairs[0].agreement.map(|found| found.same), Some(2));
        assert_eq!([0, 1].map(|case| panel.cases[case].disputed), [false, true]);
        let (cases, header) = fixture::rejudged();
        let again = assert_whole(&fixture::state(&fixture::events_of(header, &cases)));
        let changes = again.rejudged.unwrap().changes;
        assert_eq!((changes.cases, changes.fail_to_pass, changes.gained), (4, 1, 1));
    }

    #[test]
    fn json_of_a_rich_run() {
        insta::assert_snapshot!(fixture::rich_run().json().unwrap().unwrap());
    }

    #[test]
    fn the_specified_fields() {
        let text = fixture::rich_run().json().unwrap().unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        for field in [
            "/run_id",
            "/timestamp",
            "/config/strictness",
            "/config/min_score_to_pass",
            "/summary/total",
            "/summary/passed",
            "/summary/failed",
            "/summary/pass_rate",
            "/cases/0/id",
            "/cases/0/prompt",
            "/cases/0/output",
            "/cases/0/expected_status",
            "/cases/0/actual_status",
            "/cases/0/scores/format_score",
            "/cases/0/scores/factuality_score",
            "/cases/0/scores/instruction_following_score",
            "/cases/0/scores/safety_score",
            "/cases/0/scores/overall_score",
            "/cases/0/pass",
            "/cases/0/duration_ms",
        ] {
            assert!(value.pointer(field).is_some_and(|found| !found.is_null()), "{field}");
        }
        assert_eq!(value["timestamp"], "2026-02-06T12:34:56Z");
        assert_eq!(value["cases"][0]["scores"]["overall_score"], 0.935);
        let unscored = &value["cases"][9];
        assert!(unscored["pass"].is_null() && unscored["scores"]["overall_score"].is_null());
        assert!(unscored["scores"]["format_score"].is_null());
    }

    #[test]
    fn the_schema_refuses_what_is_no_report() {
        let schema = schema();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(!schema.to_string().contains("$ref"));
        let text = fixture::rich_run().json().unwrap().unwrap();
        let good: Value = serde_json::from_str(&text).unwrap();
        let schema = selftest_schema::Schema::compile(&schema).unwrap();
        let faults: [(&str, Value); 6] = [
            ("/schema_version", 2.into()),
            ("/run_id", "prod-1".into()),
            ("/summary/pass_rate", "high".into()),
            ("/cases/0/status", "great".into()),
            ("/cases/0/scores/overall_score", 1.7.into()),
            ("/cases/0/pass", "yes".into()),
        ];
        for (pointer, wrong) in faults {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = wrong;
            assert!(!schema.is_valid(&bad), "{pointer}");
        }
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().shift_remove("summary");
        assert!(!schema.is_valid(&bad));
    }
}
