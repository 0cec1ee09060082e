//! promptfoo tests: deterministic assertions become checks, rubrics go to the judge, and everything
//! that cannot be imported is reported.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{DialectEntry, SuiteSource};
use crate::check;
use crate::evals::case::{CaseReader, deduplicate};
use crate::evals::dialect::{EvalsDialect, is_promptfoo};
use crate::evals::source::Fields;
use crate::evals::{CaseDemand, DemandDecider, EvalCase, MAX_CASES};
use crate::yaml::YamlSchema;
use selftest_text::escape::terminal;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::Promptfoo,
    title: "promptfoo",
    files: "`promptfooconfig.yaml`: `prompts` and `tests`",
    yaml: Some(YamlSchema::V1_2),
    carries: "prompts with their variables, deterministic assertions, rubrics",
    refuses: "prompts and tests in other files or programs, assertions by similarity or by code",
    is_file_name: |name| {
        name.starts_with("promptfooconfig") && (name.ends_with(".yaml") || name.ends_with(".yml"))
    },
    marks: &[],
    recognises: |source| is_promptfoo(source.text.value()),
    read,
};

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let Some(root) = source.text.root() else { return };
    root.describes(&["description", "$schema", "tags", "metadata", "sharing"]);
    let templates: Vec<Option<&str>> = match root.get("prompts") {
        Some(Value::Array(prompts)) => prompts.iter().map(template).collect(),
        None => Vec::new(),
        Some(other) => vec![template(other)],
    };
    let defaults = root.fields("defaultTest");
    if !root.get("tests").is_some_and(Value::is_array) {
        reader.file.refused.push("its tests stand in another file, which is not read".to_owned());
    }
    for (test, number) in root.list("tests").into_iter().zip(1usize..).take(MAX_CASES) {
        let Some(test) = test else {
            reader
                .file
                .refused
                .push(format!("case {number} stands in another file, which is not read"));
            continue;
        };
        if templates.is_empty() {
            read_test(&test, defaults.as_ref(), None, number.to_string(), reader);
        }
        for (template, at) in templates.iter().zip(1usize..) {
            let id =
                if templates.len() == 1 { number.to_string() } else { format!("{number}-{at}") };
            if let Some(template) = template {
                read_test(&test, defaults.as_ref(), Some(template), id, reader);
            } else {
                // The case is refused as a whole, so that its keys need no warning each.
                test.reads_all();
                reader
                    .file
                    .refused
                    .push(format!("case {id}: its prompt is not text but a file or a program"));
            }
        }
    }
}

/// Returns the text of a prompt; files and programs are not read.
fn template(prompt: &Value) -> Option<&str> {
    let text = prompt.as_str().or_else(|| prompt["raw"].as_str())?;
    let ends = [".txt", ".json", ".yaml", ".yml", ".js", ".py", ".md", ".ts"];
    // promptfoo also accepts bare paths of prompt files.
    let is_file = text.starts_with("file://")
        || (!text.contains(char::is_whitespace) && ends.iter().any(|end| text.ends_with(end)));
    (!is_file).then_some(text)
}

fn read_test(
    test: &Fields<'_>,
    defaults: Option<&Fields<'_>>,
    template: Option<&str>,
    id: String,
    reader: &mut CaseReader<'_>,
) {
    let shown = terminal(&id, 60);
    let mut variables = BTreeMap::new();
    // The test comes last and overrides the defaults.
    for source in [defaults.and_then(|all| all.get("vars")), test.get("vars")] {
        for (name, value) in source.and_then(Value::as_object).into_iter().flatten() {
            let value = match value {
                // promptfoo would run the test once per value.
                Value::Array(items) => {
                    let words = format!(
                        "case {shown}: only the first value of `{}` is taken",
                        terminal(name, 60)
                    );
                    reader.file.warnings.push(words);
                    items.first().cloned().unwrap_or_default()
                }
                other => other.clone(),
            };
            let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            variables.insert(name.as_str(), text);
        }
    }
    let prompt = match template {
        Some(template) => fill_template(template, &variables),
        None => ["prompt", "query", "question", "input"]
            .iter()
            .find_map(|name| variables.get(name).cloned())
            .or_else(|| {
                (variables.len() == 1).then(|| variables.values().next().cloned()).flatten()
            })
            .unwrap_or_default(),
    };
    if prompt.trim().is_empty() {
        reader.file.refused.push(format!("case {shown} has no prompt"));
        return;
    }
    let asserts = [test.get("assert"), defaults.and_then(|all| all.get("assert"))];
    let asserts = asserts.into_iter().flatten().filter_map(Value::as_array).flatten();
    let mut demands = Vec::new();
    for assert in asserts {
        read_assert(assert, &variables, &mut demands);
    }
    let name = test.text("description").map(ToOwned::to_owned);
    reader.add(EvalCase { id, name, prompt, demands: deduplicate(demands), ..EvalCase::default() });
}

/// Fills in a template's variables; those without a value are left as they are.
fn fill_template(template: &str, variables: &BTreeMap<&str, String>) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let Some((name, behind)) = after.split_once("}}") else {
            text.push_str("{{");
            rest = after;
            continue;
        };
        match variables.get(name.trim()) {
            Some(value) => text.push_str(value),
            None => text.push_str(&format!("{{{{{name}}}}}")),
        }
        rest = behind;
    }
    text + rest
}

fn read_assert(assert: &Value, variables: &BTreeMap<&str, String>, demands: &mut Vec<CaseDemand>) {
    let Some(members) = assert.as_object() else {
        let why = "it is not an object".to_owned();
        demands
            .push(CaseDemand { text: assert.to_string(), decider: DemandDecider::Unknown { why } });
        return;
    };
    let given = members.get("type").and_then(Value::as_str).unwrap_or_default();
    // Without a threshold, all assertions of a set must hold, as they would outside of it.
    if given == "assert-set" && members.get("threshold").is_none() {
        for inner in members.get("assert").and_then(Value::as_array).into_iter().flatten() {
            read_assert(inner, variables, demands);
        }
        return;
    }
    let value = fill_value(members.get("value").unwrap_or(&Value::Null), variables);
    let shown = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let text = match members.get("metric").and_then(Value::as_str) {
        Some(metric) => format!("{metric}: {given}: {shown}"),
        None => format!("{given}: {shown}"),
    };
    // promptfoo negates any type with this prefix.
    let (kind, negated) = match given.strip_prefix("not-") {
        Some(kind) => (kind, true),
        None => (given, false),
    };
    if is_rubric(kind) && value.is_string() {
        let text = if negated { format!("This does not hold: {shown}") } else { shown };
        demands.push(CaseDemand { text, decider: DemandDecider::Judge });
        return;
    }
    // promptfoo would load the value from this file; nothing outside the suite is read here.
    let is_reference = value.as_str().is_some_and(|text| text.starts_with("file://"));
    let decider = match check_of_type(kind, &value, members).filter(|_| !is_reference) {
        None => DemandDecider::Unknown {
            why: format!("`{}` of promptfoo cannot be carried over", terminal(given, 60)),
        },
        Some(mut check) => {
            if negated {
                check = json!({ "not": check });
            }
            if let Some(weight) = members.get("weight") {
                check["weight"] = weight.clone();
            }
            match check::read(&check) {
                Ok(check) => DemandDecider::Typed(check),
                Err(faults) => {
                    let why: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
                    DemandDecider::Unknown { why: why.join("; ") }
                }
            }
        }
    };
    demands.push(CaseDemand { text, decider });
}

fn fill_value(value: &Value, variables: &BTreeMap<&str, String>) -> Value {
    match value {
        Value::String(text) => Value::String(fill_template(text, variables)),
        Value::Array(items) => items.iter().map(|item| fill_value(item, variables)).collect(),
        other => other.clone(),
    }
}

/// Returns true for types in which a model grades by a sentence in `value`.
fn is_rubric(kind: &str) -> bool {
    matches!(kind, "llm-rubric" | "model-graded-closedqa" | "g-eval" | "agent-rubric")
}

fn check_of_type(kind: &str, value: &Value, members: &Map<String, Value>) -> Option<Value> {
    let text = value.as_str();
    let threshold = members.get("threshold").and_then(Value::as_f64);
    let ignoring_case = |text: &str| json!({"regex": format!("(?i){}", regex::escape(text))});
    let each = |one: &dyn Fn(&str) -> Value| -> Vec<Value> {
        match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).map(one).collect(),
            // promptfoo also accepts a comma-separated list.
            other => other
                .as_str()
                .into_iter()
                .flat_map(|text| text.split(','))
                .map(|text| one(text.trim()))
                .collect(),
        }
    };
    let contains = |text: &str| json!({ "contains": text });
    Some(match kind {
        "equals" => match value {
            Value::String(text) => json!({ "equals": text }),
            Value::Null => return None,
            // Anything but a string is compared as JSON.
            other => json!({"json": {"equals": other}}),
        },
        "contains" => contains(text?),
        "icontains" => ignoring_case(text?),
        "contains-all" => json!({"all": each(&contains)}),
        "contains-any" => json!({"any": each(&contains)}),
        "icontains-all" => json!({"all": each(&ignoring_case)}),
        "icontains-any" => json!({"any": each(&ignoring_case)}),
        "regex" => json!({"regex": text?}),
        "starts-with" => json!({"regex": format!("\\A{}", regex::escape(text?))}),
        "is-json" | "contains-json" if value.is_object() => json!({"json": {"schema": value}}),
        "is-json" | "contains-json" if value.is_null() => json!({"json": {}}),
        "word-count" => json!({ "words": value }),
        // promptfoo states latency in milliseconds.
        "latency" => json!({"seconds": {"max": threshold? / 1000.0}}),
        _ => return None,
    })
}
