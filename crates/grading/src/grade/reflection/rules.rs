//! The criteria for reflections: the `grade.reflection` section of the configuration, and its
//! patterns and schemas compiled, for all agents and for agents with their own criteria.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use selftest_schema::{Schema, SchemaError};
use selftest_stats::score::{Score, Threshold};
use selftest_text::one_line;

/// The `grade.reflection` section: how reflections of agents are graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReflectionSettings {
    /// Score below which a reflection is weak.
    pub weak_threshold: Threshold,
    /// Use of the threshold proposed from past scores.
    pub adaptive: AdaptiveThreshold,
    /// Requirements for the reflections of all agents.
    pub criteria: ReflectionCriteria,
    /// Additional requirements per agent, by name; case-insensitive.
    pub agents: BTreeMap<String, AgentCriteria>,
    /// Alert for a weak reflection.
    pub hook: HookSettings,
}

impl Default for ReflectionSettings {
    fn default() -> Self {
        Self {
            weak_threshold: Threshold::new(0.6).expect("0.6 is in range"),
            adaptive: AdaptiveThreshold::default(),
            criteria: ReflectionCriteria::default(),
            agents: BTreeMap::new(),
            hook: HookSettings::default(),
        }
    }
}

/// Use of the threshold proposed from past scores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdaptiveThreshold {
    /// The proposal is only shown.
    #[default]
    Propose,
    /// The proposal is used if it is above `weak_threshold`.
    Apply,
}

/// Requirements for a reflection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReflectionCriteria {
    /// Minimum confidence without a deduction.
    pub min_confidence: Score,
    /// Minimum number of characters in a summary; below it is too brief.
    #[schemars(range(max = 1_000_000))]
    pub summary_min_chars: u32,
    /// Maximum number of characters in a summary; above it is too long.
    #[schemars(range(max = 1_000_000))]
    pub summary_max_chars: u32,
    /// Regular expression that a tag must match to refer to a loop.
    #[schemars(length(min = 1))]
    pub tag_pattern: String,
    /// Minimum share of the goal's words that the summary must use; 0.0 disables the check.
    pub min_goal_overlap: Score,
    /// JSON Schema of a reflection. If `schema_file` is absent too, goal, summary, confidence and
    /// tags are required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// File that contains the schema, relative to the project folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub schema_file: Option<PathBuf>,
}

impl Default for ReflectionCriteria {
    fn default() -> Self {
        Self {
            min_confidence: Score::new(0.6).expect("0.6 is in range"),
            summary_min_chars: 50,
            summary_max_chars: 1000,
            tag_pattern: r"(?i)^#?loop([ :_#-]+\w|\d)".to_owned(),
            min_goal_overlap: Score::new(0.25).expect("0.25 is in range"),
            schema: None,
            schema_file: None,
        }
    }
}

/// Requirements for one agent. Absent values default to those for all agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentCriteria {
    /// Minimum confidence without a deduction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_confidence: Option<Score>,
    /// Minimum number of characters in a summary; below it is too brief.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub summary_min_chars: Option<u32>,
    /// Maximum number of characters in a summary; above it is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub summary_max_chars: Option<u32>,
    /// Regular expression that a tag must match to refer to a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tag_pattern: Option<String>,
    /// Minimum share of the goal's words that the summary must use; 0.0 disables the check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_goal_overlap: Option<Score>,
    /// JSON Schema of a reflection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// File that contains the schema, relative to the project folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub schema_file: Option<PathBuf>,
}

impl AgentCriteria {
    /// Merges the agent's requirements with those for all agents.
    pub fn merge_with(&self, all: &ReflectionCriteria) -> ReflectionCriteria {
        let own = self.clone();
        // A schema of the agent in either form replaces both forms of the general one.
        let (schema, schema_file) = match (own.schema, own.schema_file) {
            (None, None) => (all.schema.clone(), all.schema_file.clone()),
            own => own,
        };
        ReflectionCriteria {
            min_confidence: own.min_confidence.unwrap_or(all.min_confidence),
            summary_min_chars: own.summary_min_chars.unwrap_or(all.summary_min_chars),
            summary_max_chars: own.summary_max_chars.unwrap_or(all.summary_max_chars),
            tag_pattern: own.tag_pattern.unwrap_or_else(|| all.tag_pattern.clone()),
            min_goal_overlap: own.min_goal_overlap.unwrap_or(all.min_goal_overlap),
            schema,
            schema_file,
        }
    }
}

/// Hooks that receive a weak reflection, so that it can be handled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HookSettings {
    /// Program and arguments that receive the reflection. Absent: no program is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// URL that the reflection is posted to. Absent: nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub webhook: Option<String>,
}

/// Maximum number of schema errors listed in an issue.
const MAX_NAMED: usize = 3;

/// Error for criteria that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`grade.reflection.{}` {why}", .key.replace('/', "."))]
pub struct CriteriaError {
    /// Key below `grade.reflection`, separated by slashes, such as `criteria/tag_pattern`.
    pub key: String,
    /// Description of the problem, phrased to follow the key.
    pub why: String,
}

/// Error for a schema file that cannot be used. The message follows the key that names the file.
#[derive(Debug, thiserror::Error)]
pub enum SchemaFileError {
    /// It cannot be read.
    #[error("names {}, which cannot be read: {source}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// It is not JSON.
    #[error("names {}: not JSON: {source}", .file.display())]
    NotJson {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
}

impl CriteriaError {
    fn is_same(&self, other: &Self) -> bool {
        let name = |key: &str| key.rsplit('/').next().map(ToOwned::to_owned);
        name(&self.key) == name(&other.key) && self.why == other.why
    }
}

/// The criteria for all agents.
#[derive(Debug)]
pub struct ReflectionRules {
    all: AgentRules,
    /// Criteria of individual agents, by lower-case name.
    agents: HashMap<String, AgentRules>,
}

impl ReflectionRules {
    /// Compiles the criteria and collects all errors, not only the first. `read` returns the
    /// content of a schema file; this crate opens no files.
    pub fn new(
        settings: &ReflectionSettings,
        read: impl Fn(&Path) -> Result<Value, SchemaFileError>,
    ) -> Result<Self, Vec<CriteriaError>> {
        let mut faults: Vec<CriteriaError> = Vec::new();
        let mut compile = |key: &str, criteria: ReflectionCriteria| {
            let rules = AgentRules::new(key, criteria, &read);
            rules
                .map_err(|mut found| {
                    // Errors that an agent inherits from the general criteria are reported only
                    // once.
                    found.retain(|fault| !faults.iter().any(|said| said.is_same(fault)));
                    faults.append(&mut found);
                })
                .ok()
        };
        let all = compile("criteria", settings.criteria.clone());
        let mut agents = HashMap::new();
        for (name, own) in &settings.agents {
            let criteria = own.merge_with(&settings.criteria);
            if let Some(rules) = compile(&format!("agents/{name}"), criteria) {
                agents.insert(name.to_lowercase(), rules);
            }
        }
        all.filter(|_| faults.is_empty()).map(|all| Self { all, agents }).ok_or(faults)
    }

    /// Returns the criteria for an agent.
    pub fn for_agent(&self, agent: Option<&str>) -> &AgentRules {
        let own = agent.and_then(|agent| self.agents.get(&agent.to_lowercase()));
        own.unwrap_or(&self.all)
    }
}

/// The compiled criteria for one agent.
#[derive(Debug)]
pub struct AgentRules {
    pub(super) criteria: ReflectionCriteria,
    tag: Regex,
    schema: Schema,
}

impl AgentRules {
    fn new(
        key: &str,
        criteria: ReflectionCriteria,
        read: impl Fn(&Path) -> Result<Value, SchemaFileError>,
    ) -> Result<Self, Vec<CriteriaError>> {
        let mut faults = Vec::new();
        let mut fault = |name: &str, why: String| {
            faults.push(CriteriaError { key: format!("{key}/{name}"), why });
        };
        if criteria.summary_min_chars > criteria.summary_max_chars {
            let (least, most) = (criteria.summary_min_chars, criteria.summary_max_chars);
            fault("summary_min_chars", format!("is {least}, above `summary_max_chars` ({most})"));
        }
        let tag = Regex::new(&criteria.tag_pattern);
        let tag = tag.map_err(|error| {
            let words = error.to_string();
            // The last line has the reason; the others show the pattern.
            let last = words.lines().last().unwrap_or_default();
            fault(
                "tag_pattern",
                format!("is no regular expression: {}", last.trim_start_matches("error: ")),
            );
        });
        let (name, schema) = match (&criteria.schema, &criteria.schema_file) {
            (Some(_), Some(_)) => ("schema_file", Err("excludes `schema`".to_owned())),
            (Some(schema), None) => ("schema", Ok(Value::Object(schema.clone()))),
            (None, Some(file)) => ("schema_file", read(file).map_err(|error| error.to_string())),
            (None, None) => ("schema", Ok(default_schema())),
        };
        let schema = schema
            .and_then(|schema| Schema::compile(&schema).map_err(|error| describe_fault(&error)))
            .map_err(|why| fault(name, why));
        match (tag, schema) {
            (Ok(tag), Ok(schema)) if faults.is_empty() => Ok(Self { criteria, tag, schema }),
            _ => Err(faults),
        }
    }

    /// Returns true if a tag refers to a loop.
    pub fn is_loop_tag(&self, tag: &str) -> bool {
        self.tag.is_match(tag)
    }

    /// Returns the loop number in the tags, such as 3 for `loop_3`.
    pub fn loop_number(&self, tags: &[String]) -> Option<u64> {
        let named = tags.iter().find(|tag| self.is_loop_tag(tag))?;
        let digits = named.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?;
        digits.parse().ok()
    }

    /// Describes how a document differs from the expected schema, or returns `None` if it matches.
    pub(super) fn schema_fault(&self, document: &Value) -> Option<String> {
        let mut faults = self.schema.errors(document);
        // The values are left out, since they are untrusted and may be long.
        let named: Vec<String> = faults
            .by_ref()
            .take(MAX_NAMED)
            .map(|fault| one_line(&fault.to_string(), 160))
            .collect();
        let more = if faults.next().is_some() { "; and more" } else { "" };
        (!named.is_empty()).then(|| format!("{}{more}", named.join("; ")))
    }
}

/// Default schema. docs/spec/reflections.md#criteria mentions a structure without showing it, so
/// this requires what its criteria examine.
fn default_schema() -> Value {
    json!({
        "type": "object",
        "required": ["goal", "summary", "confidence", "tags"],
        "properties": {
            "goal": { "type": "string" },
            "summary": { "type": "string" },
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "tags": { "type": "array", "items": { "type": "string" } },
        },
    })
}

/// Describes the fault of a schema, phrased to follow the key.
fn describe_fault(SchemaError { pointer, masked_message, .. }: &SchemaError) -> String {
    let at = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") };
    format!("is no JSON Schema{at}: {}", one_line(masked_message, 200))
}
