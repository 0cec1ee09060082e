//! Compiled criteria: patterns and schemas for all agents, and for agents with their own criteria.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Value, json};

use super::reflection_settings::{ReflectionCriteria, ReflectionSettings};
use selftest_schema::{Schema, SchemaError};
use selftest_text::one_line;

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
