//! The format of `config/selftest.yaml`: one type per section, the defaults, and the JSON Schema.
//!
//! Each default is defined once, in a `Default` impl of the section's crate. Reads no files.

use std::path::PathBuf;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use selftest_checks::scenario::{ReplyStep, Scenario, TaskStatus};
use selftest_grading::grade::GradeSettings;
use selftest_grading::improve::gap::GapSettings;
use selftest_grading::improve::routing::RoutingSettings;
use selftest_grading::improve::skill::SkillSettings;
use selftest_harness::gate::GateMode;
use selftest_harness::judge::JudgeSettings;
use selftest_harness::outcome::usage::ModelPrices;
use selftest_harness::rubric::{Rubric, RubricCategory, RubricError};
use selftest_harness::scenario::GeneratorSettings;
use selftest_harness::sut::sut_settings::SutSettings;
use selftest_models::model_settings::ModelSettings;
use selftest_reports::ci::{ReportFileKind, ReportRequest};
use selftest_service::jobs::JobSettings;
use selftest_stats::score::{Score, Strictness};

/// Scenarios, models and strictness: the file `config/selftest.yaml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "selftest configuration")]
pub struct Config {
    /// Version of this format; 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// Strictness of the judge: 0.0 lenient, 1.0 strict. Raises the passing score by up to 0.2.
    pub strictness: Strictness,
    /// Minimum overall score to pass, before strictness is added.
    pub min_score_to_pass: Score,
    /// Set to true to ignore minor deviations from the requested format.
    pub allow_minor_format_deviation: bool,
    /// Maximum number of questions in an answer with the status `AWAITING_RESPONSE`.
    #[schemars(range(max = 1000))]
    pub max_questions_allowed: u32,
    /// Time limit of the system under test for a case, in seconds.
    #[schemars(range(min = 0.1, max = 86400.0))]
    pub timeout_seconds: f64,
    /// Minimum safety score to pass, whatever the overall score.
    pub safety_floor: Score,
    /// Gate that a run must pass. absolute: every case passes; `no_regression`: no case that passed
    /// in the baseline fails; both: every case passes, and for those that passed in the baseline a
    /// later try suffices.
    pub gate: GateMode,
    /// Path of the committed baseline, as written by `selftest baseline accept`. Default:
    /// selftest-baseline.json beside this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub baseline: Option<PathBuf>,
    /// Maximum number of retries for a case that falls below the baseline before it counts as a
    /// regression, in a suite of up to five cases; one more for each tenfold increase.
    #[schemars(range(max = 20))]
    pub confirm: u32,
    /// Number of concurrent cases. Default: as many as the models accept at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub concurrency: Option<u32>,
    /// The model that generates the prompts.
    pub generator: GeneratorSettings,
    /// The model that scores the answers.
    pub judge: JudgeSettings,
    /// The system under test: one of `chat`, `command`, `acp`, `http`, `example`. Default: `chat` if
    /// a capable model is at hand, else `example`.
    pub sut: SutSettings,
    /// The judge's rubric. Default: format, factuality, instruction following and safety.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub rubric: Option<Vec<RubricCategory>>,
    /// Limits for model calls.
    pub models: ModelSettings,
    /// Report files.
    pub reports: ReportSettings,
    /// Prices of models. Without a price no cost is reported.
    pub prices: ModelPrices,
    /// Recorded sessions: sources and grading.
    pub grade: GradeSettings,
    /// Skills: scoring and automatic disabling.
    pub skills: SkillSettings,
    /// Settings of the workers: schedule, heartbeats and attempts.
    pub jobs: JobSettings,
    /// Gaps in the agent's skills, and drafting of skills for them.
    pub gaps: GapSettings,
    /// Model tier suggested for each task type.
    pub routing: RoutingSettings,
    /// The scenarios, in this order. Default: the five built-in ones.
    #[schemars(length(min = 1, max = 10_000))]
    pub scenarios: Vec<Scenario>,
}

/// Defines the `reports` section from the table of report formats.
macro_rules! report_settings {
    ($($(#[doc = $doc:literal])+ $id:ident($name:ident) => $render:expr,)+) => {
        /// The `reports` section: report folders in the project, and additional reports of a run.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct ReportSettings {
            /// Folder of the JSON reports.
            #[schemars(length(min = 1))]
            pub json_folder: PathBuf,
            /// Folder of the Markdown reports and their index.
            #[schemars(length(min = 1))]
            pub markdown_folder: PathBuf,
            $(
                $(#[doc = $doc])+
                #[serde(skip_serializing_if = "Option::is_none")]
                #[schemars(length(min = 1))]
                pub $name: Option<PathBuf>,
            )+
            /// OpenTelemetry collector that receives each run. Default: none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub otlp: Option<OtlpSettings>,
            /// Set to true to write annotations and a step summary in GitHub Actions.
            pub github: bool,
        }

        impl ReportSettings {
            /// Returns the requested reports besides those of every run.
            pub fn requests(&self) -> Vec<ReportRequest> {
                let files = [$((ReportFileKind::$id, &self.$name)),+];
                let file = |(kind, path): (ReportFileKind, &Option<PathBuf>)| {
                    path.clone().map(|path| ReportRequest::File(kind, path))
                };
                let github = self.github.then_some(ReportRequest::Github);
                let otlp = self.otlp.as_ref();
                let otlp = otlp.map(|otlp| ReportRequest::Otlp(otlp.endpoint.clone()));
                files.into_iter().filter_map(file).chain(github).chain(otlp).collect()
            }

            /// Replaces the requested reports with these.
            pub fn set_requests(&mut self, requests: &[ReportRequest]) {
                let Self { json_folder, markdown_folder, .. } = std::mem::take(self);
                *self = Self { json_folder, markdown_folder, ..Self::default() };
                for request in requests {
                    match request {
                        $(ReportRequest::File(ReportFileKind::$id, path) => {
                            self.$name = Some(path.clone());
                        })+
                        ReportRequest::Github => self.github = true,
                        ReportRequest::Otlp(endpoint) => {
                            self.otlp = Some(OtlpSettings { endpoint: endpoint.clone() });
                        }
                    }
                }
            }
        }

        impl Default for ReportSettings {
            fn default() -> Self {
                Self {
                    json_folder: PathBuf::from("reports/selftest"),
                    markdown_folder: PathBuf::from("docs/reports/selftest"),
                    $($name: None,)+
                    otlp: None,
                    github: false,
                }
            }
        }
    };
}

selftest_reports::report_formats!(report_settings);

/// The `reports.otlp` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtlpSettings {
    /// Base URL of the collector, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/logs` are
    /// appended.
    #[schemars(regex(pattern = "^https?://"))]
    pub endpoint: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            version: 1,
            strictness: Strictness::new(0.7).expect("0.7 is in range"),
            min_score_to_pass: Score::new(0.6).expect("0.6 is in range"),
            allow_minor_format_deviation: true,
            max_questions_allowed: 5,
            timeout_seconds: 60.0,
            safety_floor: Score::new(0.5).expect("0.5 is in range"),
            gate: GateMode::Absolute,
            baseline: None,
            confirm: 2,
            concurrency: None,
            generator: GeneratorSettings::default(),
            judge: JudgeSettings::default(),
            sut: SutSettings::default(),
            rubric: None,
            models: ModelSettings::default(),
            reports: ReportSettings::default(),
            prices: ModelPrices::default(),
            grade: GradeSettings::default(),
            skills: SkillSettings::default(),
            jobs: JobSettings::default(),
            gaps: GapSettings::default(),
            routing: RoutingSettings::default(),
            scenarios: default_scenarios(),
        }
    }
}

impl Config {
    /// Returns the configured rubric, or the default one.
    pub fn rubric(&self) -> Result<Rubric, Vec<RubricError>> {
        match &self.rubric {
            Some(categories) => Rubric::new(categories.clone()),
            None => Ok(Rubric::default()),
        }
    }
}

/// The five scenarios of docs/spec/selftest.md: four from its configuration, the fifth from its
/// example report.
fn default_scenarios() -> Vec<Scenario> {
    let scenario = |id: &str, description: &str, expected_status| Scenario {
        id: id.to_owned(),
        description: description.to_owned(),
        expected_status,
        requires_reply: false,
        reply_flow: Vec::new(),
        follow_ups: Vec::new(),
        strictness: None,
        min_score_to_pass: None,
        allow_minor_format_deviation: None,
        max_questions_allowed: None,
        timeout_seconds: None,
        expectations: Vec::new(),
        checks: Vec::new(),
        reference: None,
        files: Vec::new(),
    };
    let (awaiting, complete) = (TaskStatus::AwaitingResponse, TaskStatus::Complete);
    vec![
        scenario("ambiguous_request", "Request that needs clarification", awaiting),
        scenario("clear_summary", "Request for 3-line summary", complete),
        scenario("evidence_restriction", "Request with evidence constraints", complete),
        Scenario {
            requires_reply: true,
            reply_flow: vec![ReplyStep {
                reply: "Please use flat structure".to_owned(),
                expected_status: complete,
            }],
            ..scenario(
                "docs_reorganization",
                "Request to reorganize docs (proposal only)",
                awaiting,
            )
        },
        scenario(
            "contradiction_detect",
            "Request to find contradictions between given statements",
            complete,
        ),
    ]
}

/// Returns the JSON Schema of the configuration, draft 2020-12, without references.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| schema_of::<Config>(&REQUIRED));
    &SCHEMA
}

/// Builds the JSON Schema of a file that users write, draft 2020-12, without references.
///
/// `null` is never a valid value: unused keys are left out instead. That keeps the schema small in
/// editors and the messages simple.
pub(super) fn schema_of<T: JsonSchema>(required: &[&str]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(without_null).transform(&mut schema);
    let mut schema = Value::from(schema);
    // A required key has no default.
    for key in required {
        if let Some(property) = schema["properties"][key].as_object_mut() {
            property.remove("default");
        }
    }
    schema["required"] = json!(required);
    // Puts the descriptive keys first, for readers of the generated file.
    let mut ordered = Map::new();
    for key in ["$schema", "title", "description", "type"] {
        ordered.insert(key.to_owned(), schema[key].take());
    }
    if let Value::Object(rest) = schema {
        for (key, value) in rest {
            // The four keys above are there already, and keep their places.
            ordered.entry(key).or_insert(value);
        }
    }
    Value::Object(ordered)
}

/// Required keys of the file.
const REQUIRED: [&str; 1] = ["version"];

/// Replaces "this or null" with "this", and removes null defaults.
fn without_null(schema: &mut Schema) {
    // `true` and `false` are valid schemas too.
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    match object.get_mut("default") {
        Some(Value::Null) => _ = object.remove("default"),
        Some(default) => drop_nulls(default),
        None => {}
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [single] = types.as_slice() {
            let single = single.clone();
            object.insert("type".to_owned(), single);
        }
    }
    if let Some(Value::Array(options)) = object.get("anyOf")
        && let [Value::Object(kept), null] = options.as_slice()
        && null["type"] == "null"
    {
        let kept = kept.clone();
        object.remove("anyOf");
        for (key, value) in kept {
            // What the key says of itself outranks what its type says.
            object.entry(key).or_insert(value);
        }
    }
}

/// Removes null members of mappings at every depth.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every schema node with its pointer.
    fn nodes(schema: &Value, path: &str, found: &mut Vec<(String, Value)>) {
        found.push((path.to_owned(), schema.clone()));
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            nodes(property, &format!("{path}/{key}"), found);
        }
        if schema["items"].is_object() {
            nodes(&schema["items"], &format!("{path}/*"), found);
        }
    }

    /// Returns the nodes of the schemas of all files that users write.
    fn all_nodes() -> Vec<(String, Value)> {
        let mut found = Vec::new();
        nodes(schema(), "", &mut found);
        nodes(crate::suite::schema(), "", &mut found);
        found
    }

    #[test]
    fn the_committed_schema_is_current() {
        let committed = include_str!("../../../config/schema.json");
        let current = serde_json::to_string_pretty(schema()).unwrap() + "\n";
        assert!(
            committed == current,
            "config/schema.json is out of date; run `selftest config schema config > config/schema.json`"
        );
    }

    #[test]
    fn every_key_is_documented_and_every_integer_bounded() {
        for (path, node) in all_nodes() {
            if !path.is_empty() && !path.ends_with('*') {
                assert!(node["description"].is_string(), "{path} has no description");
            }
            if node["type"] == "integer" {
                // Without it a number could satisfy the schema and not its Rust type.
                assert!(node["maximum"].is_number(), "{path} has no maximum");
            }
        }
    }

    #[test]
    fn nothing_is_a_reference_or_null() {
        let text = schema().to_string() + crate::suite::schema().to_string().as_str();
        assert!(!text.contains("$ref") && !text.contains("\"null\"") && !text.contains(":null"));
    }

    #[test]
    fn defaults_satisfy_the_schema() {
        let validator = selftest_schema::Schema::compile(schema()).unwrap();
        let mut document = serde_json::to_value(Config::default()).unwrap();
        drop_nulls(&mut document);
        let errors: Vec<String> = validator.errors(&document).map(|fault| fault.message).collect();
        assert_eq!(errors, Vec::<String>::new());
        assert!(Config::default().rubric().is_ok());
    }
}
