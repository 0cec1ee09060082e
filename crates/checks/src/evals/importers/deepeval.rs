//! Data sets of `DeepEval`: goldens, which have an input and what is expected.

use serde_json::{Value, json};

use super::{DialectEntry, SuiteSource};
use crate::evals::case::{CaseReader, deduplicate};
use crate::evals::dialect::EvalsDialect;
use crate::evals::source::Fields;
use crate::evals::{CaseDemand, EvalCase};
use selftest_text::escape::terminal;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::DeepEval,
    title: "DeepEval data sets",
    files: "JSON with `input` beside `expected_tools`, `retrieval_context` or `actual_output`",
    yaml: None,
    carries: "inputs, expected outputs as references, expected tools",
    refuses: "conversations, which a model plays from a scenario",
    is_file_name: |name| matches!(name, "goldens.json" | "goldens.jsonl"),
    marks: &[],
    recognises: |source| {
        let items = match source.text.value() {
            Value::Array(items) => Some(items),
            other => other.get("goldens").and_then(Value::as_array),
        };
        let has = |item: &Value, keys: &[&str]| keys.iter().any(|key| item.get(*key).is_some());
        let is_conversation = |item: &Value| {
            has(item, &["scenario"]) && has(item, &["expected_outcome", "expectedOutcome"])
        };
        let is_golden = |item: &Value| has(item, &["input"]) || is_conversation(item);
        let is_own = |item: &Value| has(item, &OWN_KEYS) || is_conversation(item);
        // Keys without a value may be left out of some goldens.
        items.is_some_and(|items| items.iter().all(is_golden) && items.iter().any(is_own))
    },
    read,
};

/// Keys that no other dialect has beside `input`, as they are in files and in the API.
const OWN_KEYS: [&str; 12] = [
    "expected_tools",
    "expectedTools",
    "retrieval_context",
    "retrievalContext",
    "actual_output",
    "actualOutput",
    "tools_called",
    "toolsCalled",
    "additional_metadata",
    "additionalMetadata",
    "source_file",
    "sourceFile",
];

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let value = source.text.value();
    let (base, items) = match value {
        Value::Array(items) => ("", items.iter()),
        other => ("/goldens", other["goldens"].as_array().map_or([].iter(), |items| items.iter())),
    };
    let _root = source.text.root().inspect(|root| root.describes(&["goldens"]));
    for (at, item) in items.enumerate() {
        match Fields::of(source.text, format!("{base}/{at}"), item) {
            Some(golden) => read_golden(&golden, at + 1, reader),
            None => reader.file.refused.push(format!("case {} is not a mapping", at + 1)),
        }
    }
}

fn read_golden(golden: &Fields<'_>, number: usize, reader: &mut CaseReader<'_>) {
    let name = golden.text("name");
    let id = reader.unique(name.unwrap_or(&format!("golden-{number}")));
    // What was once answered is no demand.
    golden.describes(&["comments", "source_file", "sourceFile", "id"]);
    golden.describes(&["actual_output", "actualOutput", "tools_called", "toolsCalled"]);
    if golden.get("scenario").is_some() || golden.get("turns").is_some_and(|it| !it.is_null()) {
        golden.reads_all();
        return reader.refuse(&id, "a model would play the user of its scenario");
    }
    let Some(prompt) = golden.text("input") else {
        golden.reads_all();
        return reader.refuse(&id, "it has no input");
    };
    let mut demands = Vec::new();
    let key = ["expected_tools", "expectedTools"].into_iter().find(|key| golden.get(key).is_some());
    let tools = key.and_then(|key| golden.get(key)).and_then(Value::as_array);
    let fields = key.map(|key| golden.list(key)).unwrap_or_default();
    for (tool, fields) in tools.into_iter().flatten().zip(fields) {
        let arguments = fields.as_ref().and_then(|fields| {
            fields.describes(&["description", "reasoning", "output"]);
            let (_, given) = fields.first(&["input_parameters", "inputParameters"])?;
            given.as_object().filter(|it| !it.is_empty())
        });
        let name = fields.as_ref().and_then(|fields| fields.text("name"));
        let Some(called) = name.or_else(|| tool.as_str()) else {
            demands.push(CaseDemand::unknown("expected_tools", "it names no tool"));
            continue;
        };
        let check = match arguments {
            Some(arguments) => json!({"tool_called": {"name": called, "arguments": arguments}}),
            None => json!({ "tool_called": called }),
        };
        demands.push(CaseDemand::typed(&format!("calls {}", terminal(called, 100)), &check));
    }
    let reference = golden.first(&["expected_output", "expectedOutput"]);
    let reference = reference.and_then(|(_, text)| text.as_str()).map(ToOwned::to_owned);
    if let Some(reference) = &reference {
        demands.push(CaseDemand::judged(&format!("The answer is as expected: {reference}")));
    }
    reader.add(EvalCase {
        id,
        name: name.map(ToOwned::to_owned),
        prompt: prompt.to_owned(),
        reference,
        demands: deduplicate(demands),
        ..EvalCase::default()
    });
}
