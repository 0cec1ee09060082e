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
        let is_golden = |item: &Value| {
            let has = |keys: &[&str]| keys.iter().any(|key| item.get(*key).is_some());
            has(&["input"]) && has(&OWN_KEYS) || has(&["scenario"]) && has(&["expected_outcome"])
        };
        items.is_some_and(|items| !items.is_empty() && items.iter().all(is_golden))
    },
    read,
};

/// Keys that no other dialect has beside `input`.
const OWN_KEYS: [&str; 6] = [
    "expected_tools",
    "retrieval_context",
    "actual_output",
    "tools_called",
    "additional_metadata",
    "source_file",
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
    golden.describes(&["comments", "source_file"]);
    if golden.get("scenario").is_some() {
        golden.reads_all();
        return reader.refuse(&id, "a model would play the user of its scenario");
    }
    let Some(prompt) = golden.text("input") else {
        golden.reads_all();
        return reader.refuse(&id, "it has no input");
    };
    let mut demands = Vec::new();
    for tool in golden.list("expected_tools").into_iter().flatten() {
        tool.describes(&["description", "reasoning"]);
        let Some(called) = tool.text("name") else { continue };
        let arguments = tool.first(&["input_parameters", "inputParameters"]);
        let check = match arguments
            .filter(|(_, given)| given.as_object().is_some_and(|it| !it.is_empty()))
        {
            Some((_, arguments)) => {
                json!({"tool_called": {"name": called, "arguments": arguments}})
            }
            None => json!({ "tool_called": called }),
        };
        demands.push(CaseDemand::typed(&format!("calls {}", terminal(called, 100)), &check));
    }
    let reference = golden.text("expected_output").map(ToOwned::to_owned);
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
