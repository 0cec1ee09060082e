//! OpenAI Evals: samples, which are JSON lines with `input` messages and an `ideal` answer, and the
//! files of its registry, which say how the samples are graded. For samples alone the judge compares.

use serde_json::{Value, json};

use super::inspect::{SampleForm, agrees, read_lines};
use super::{DialectEntry, SuiteSource};
use crate::evals::case::CaseReader;
use crate::evals::dialect::{EvalsDialect, lfs_pointer};
use crate::evals::source::Fields;
use crate::evals::{CaseDemand, FileLocation};
use crate::yaml::YamlSchema;
use selftest_text::escape::terminal;

pub(super) const SAMPLES: DialectEntry = DialectEntry {
    dialect: EvalsDialect::OpenAiEvals,
    title: "OpenAI Evals, samples",
    files: "`*.jsonl` with `input` and `ideal`",
    yaml: None,
    carries: "requests, system messages as part of them, ideal answers",
    refuses: "conversations with answers of the assistant",
    is_file_name: |_| false,
    marks: &[],
    recognises: |source| {
        let lines = source.text.value().as_array().filter(|_| source.is_lines);
        lines
            .and_then(|lines| lines.first())
            .is_some_and(|first| first.get("input").is_some() && first.get("ideal").is_some())
    },
    read: |source: &SuiteSource<'_>, reader: &mut CaseReader<'_>| {
        let form = SampleForm { answer: "ideal", prefix: None, demands: &agrees };
        read_lines(source.whole, &form, reader);
    },
};

pub(super) const REGISTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::OpenAiEvals,
    title: "OpenAI Evals, registry",
    files: "`registry/evals/*.yaml`: `class` with `samples_jsonl`, which is read from `registry/data`",
    yaml: Some(YamlSchema::V1_1),
    carries: "`Match`, `Includes`, `JsonMatch` and `JsonValidator` as checks; `FuzzyMatch` and the graders \
              `closedqa` and `fact` as questions for the judge",
    refuses: "other classes and graders, examples before each request, samples that are not there",
    is_file_name: |_| false,
    marks: &["samples_jsonl:", "class:"],
    recognises: |source| {
        let members = source.text.value().as_object();
        members.is_some_and(|members| members.values().any(|entry| class_of(entry).is_some()))
    },
    read: read_registry,
};

/// Returns the class of an entry that grades samples.
fn class_of(entry: &Value) -> Option<&str> {
    let class = entry.get("class")?.as_str()?;
    (class.contains(':') && entry["args"].get("samples_jsonl").is_some()).then_some(class)
}

fn read_registry(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let Some(root) = source.text.root() else { return };
    for (name, entry) in root.members() {
        let Some(fields) = root.fields(name) else { continue };
        // An entry without a class is a name for another.
        let Some(class) = class_of(entry) else {
            if entry.get("class").is_some() {
                fields.reads_all();
                reader.refuse(name, "it names no samples");
                continue;
            }
            fields.describes(&["id", "metrics", "description", "disclaimer"]);
            continue;
        };
        // Marks the key as read, which `class_of` does not.
        let _ = fields.get("class");
        let Some(arguments) = fields.fields("args") else { continue };
        if let Err(why) = read_eval(name, class, &arguments, reader) {
            arguments.reads_all();
            reader.refuse(name, &why);
        }
    }
}

fn read_eval(
    name: &str,
    class: &str,
    arguments: &Fields<'_>,
    reader: &mut CaseReader<'_>,
) -> Result<(), String> {
    let grader = grader(class, arguments)?;
    if let Some(count) = arguments.get("num_few_shot").and_then(Value::as_u64).filter(|it| *it > 0)
    {
        return Err(format!("it puts {count} examples of another file before each request"));
    }
    let path = arguments.text("samples_jsonl").ok_or("it names no samples")?;
    // The registry keeps samples in `data`, beside the folder of this file.
    let place = reader.lookup.find_in_repository(&format!("../data/{path}"));
    let place = place.ok_or_else(|| {
        let path = terminal(path, 200);
        format!("its samples `{path}` are looked for in a repository, of which this is no part")
    })?;
    let text = match reader.lookup.text(&place, FileLocation::Repository) {
        Some(text) => text.map_err(|error| format!("{place}: {error}"))?,
        None => return Err(format!("there is no file {place}")),
    };
    if let Some(why) = lfs_pointer(&text) {
        return Err(format!("{place}: {why}"));
    }
    let demands = |ideal: &[String]| grader.demands(ideal);
    let form = SampleForm { answer: "ideal", prefix: Some(name), demands: &demands };
    read_lines(&text, &form, reader);
    Ok(())
}

/// The comparison of an answer with the ideal ones.
enum SampleGrader {
    /// It begins with one of them.
    Match,
    /// It contains one of them.
    Includes { ignores_case: bool },
    /// It is the JSON of one of them.
    JsonMatch,
    /// It is JSON.
    JsonValidator,
    /// The judge says whether it agrees with one of them.
    Agrees,
    /// The judge answers this.
    Question(String),
}

fn grader(class: &str, arguments: &Fields<'_>) -> Result<SampleGrader, String> {
    let name = class.rsplit(':').next().unwrap_or(class);
    Ok(match name {
        "Match" => SampleGrader::Match,
        "Includes" => {
            let ignores = arguments.get("ignore_case").and_then(Value::as_bool);
            SampleGrader::Includes { ignores_case: ignores == Some(true) }
        }
        // It compares normalised texts, for which there is no check.
        "FuzzyMatch" => SampleGrader::Agrees,
        "JsonMatch" => SampleGrader::JsonMatch,
        "JsonValidator" => SampleGrader::JsonValidator,
        "ModelBasedClassify" => {
            let given = arguments.fields("modelgraded_spec_args");
            let criteria = given.as_ref().and_then(|given| given.text("criteria"));
            match (arguments.text("modelgraded_spec"), criteria) {
                (Some("closedqa"), Some(criteria)) => SampleGrader::Question(criteria.to_owned()),
                (Some("fact"), _) => SampleGrader::Agrees,
                (spec, _) => {
                    let spec = terminal(spec.unwrap_or("none"), 60);
                    return Err(format!("the grader `{spec}` cannot be carried over"));
                }
            }
        }
        // A class of somebody's own is Python code, which is not run.
        _ => return Err(format!("it is graded by the program `{}`", terminal(class, 100))),
    })
}

impl SampleGrader {
    fn demands(&self, ideal: &[String]) -> Vec<CaseDemand> {
        let any = |words: &str, check: &dyn Fn(&String) -> Value| {
            let text = format!("{words}: {}", ideal.join("; "));
            let mut checks: Vec<Value> = ideal.iter().map(check).collect();
            match checks.len() {
                0 => vec![CaseDemand::unknown(words, "the sample has no ideal answer")],
                1 => vec![CaseDemand::typed(&text, &checks.remove(0))],
                // Each ideal answer is as good as the others.
                _ => vec![CaseDemand::typed(&text, &json!({ "any": checks }))],
            }
        };
        match self {
            Self::Match => any(
                "begins with the ideal answer",
                &|text| json!({"regex": format!("\\A\\s*{}", regex::escape(text))}),
            ),
            Self::Includes { ignores_case: false } => {
                any("contains the ideal answer", &|text| json!({ "contains": text }))
            }
            Self::Includes { ignores_case: true } => any(
                "contains the ideal answer",
                &|text| json!({"regex": format!("(?i){}", regex::escape(text))}),
            ),
            Self::JsonMatch => {
                any("is the JSON of the ideal answer", &|text| match serde_json::from_str::<Value>(
                    text,
                ) {
                    Ok(value) => json!({"json": {"schema": {"const": value}}}),
                    Err(_) => json!({"unknown": "the ideal answer is not JSON"}),
                })
            }
            Self::JsonValidator => vec![CaseDemand::typed("is JSON", &json!({"json": {}}))],
            Self::Agrees => agrees(ideal),
            Self::Question(criteria) => vec![CaseDemand::judged(criteria)],
        }
    }
}
