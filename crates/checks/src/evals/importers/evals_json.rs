//! `evals.json` of skills, in every shape found in public repositories, and trigger sets.

use serde_json::Value;

use super::{DialectEntry, SuiteSource};
use crate::evals::case::CaseReader;
use crate::evals::dialect::{self, EvalsDialect};
use crate::evals::source::Fields;
use crate::evals::{MAX_CASES, RoutingCase};
use selftest_text::escape::terminal;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::Evals,
    title: "`evals.json`, skill-creator",
    files: "`evals.json`: `evals`, `cases`, `tests`, `test_cases`, `iterations`, a list or one case",
    yaml: Some(crate::yaml::YamlSchema::V1_2),
    carries: "prompts, messages, files, sentences, typed assertions, references, `setup`, skills to load",
    refuses: "cases without a prompt, paths that leave the skill",
    is_file_name: |name| name == "evals.json",
    marks: &[],
    // Whatever is left.
    recognises: |_| true,
    read,
};

pub(super) const TRIGGERS: DialectEntry = DialectEntry {
    dialect: EvalsDialect::Trigger,
    title: "Trigger sets",
    files: "`trigger-evals.json`, `evals/routing.json`: `query` with `should_trigger`, or two lists; `expected` with a skill or null",
    yaml: Some(crate::yaml::YamlSchema::V1_2),
    carries: "prompts, and whether which skill should be loaded",
    refuses: "prompts that do not say so",
    is_file_name: |name| {
        let name = name.replace('_', "-");
        matches!(
            name.as_str(),
            "trigger-evals.json"
                | "trigger-eval.json"
                | "triggers.json"
                | "routing.json"
                | "routing-evals.json"
        )
    },
    marks: &[],
    recognises: |source| {
        let (dialect, _) = dialect::locate(source.text.value());
        dialect == EvalsDialect::Trigger
    },
    read,
};

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let document = source.text.value();
    let (dialect, items) = dialect::locate(document);
    reader.file.dialect = dialect;
    let root = source.text.root();
    if dialect == EvalsDialect::Unknown {
        return root.iter().for_each(Fields::reads_all);
    }
    if items.len() > MAX_CASES {
        let words = format!("{} cases: more than {MAX_CASES} are not read", items.len());
        reader.file.refused.push(words);
    }
    let is_lone = matches!(dialect, EvalsDialect::Case)
        || items.iter().any(|(pointer, _)| pointer.is_empty());
    if is_lone {
        // The item below is the same mapping, and names what it does not read.
        root.iter().for_each(Fields::reads_all);
    }
    let mut root = root.filter(|_| !is_lone);
    if let Some(root) = &root {
        let skill = root.first(&["skill_name", "skill"]).and_then(|(_, skill)| skill.as_str());
        reader.file.skill = skill.map(ToOwned::to_owned);
        root.describes(&dialect::LIST_KEYS);
        root.describes(&["$schema", "description", "version"]);
    } else {
        let skill = ["skill_name", "skill"].iter().find_map(|key| document.get(*key)?.as_str());
        reader.file.skill = skill.map(ToOwned::to_owned);
    }
    for ((pointer, item), position) in items.into_iter().take(MAX_CASES).zip(1..) {
        let Some(fields) = Fields::of(source.text, pointer, item) else {
            reader.file.refused.push(format!("case {position} is not an object"));
            continue;
        };
        if dialect == EvalsDialect::Trigger {
            trigger(&fields, reader);
        } else {
            reader.case(&fields, position);
        }
    }
    drop(root.take());
}

/// Adds one item of a trigger set: a prompt, a list of prompts, or two lists.
fn trigger(item: &Fields<'_>, reader: &mut CaseReader<'_>) {
    item.describes(&[
        "skill_name",
        "skill",
        "id",
        "name",
        "note",
        "notes",
        "reason",
        "description",
    ]);
    let mut is_list = false;
    for (key, should_trigger) in [("should_trigger", true), ("should_not_trigger", false)] {
        for query in item.get(key).and_then(Value::as_array).into_iter().flatten() {
            is_list = true;
            let text = query.as_str().or_else(|| query_of(query)).unwrap_or_default();
            add_query(text, Some(should_trigger), Vec::new(), reader);
        }
    }
    if item.get("queries").is_some_and(Value::is_array) {
        for query in item.list("queries") {
            match query {
                Some(query) => trigger_query(&query, reader),
                None => add_query("", None, Vec::new(), reader),
            }
        }
    } else if !is_list {
        trigger_query(item, reader);
    }
}

fn trigger_query(query: &Fields<'_>, reader: &mut CaseReader<'_>) {
    query.describes(&["id", "name", "note", "notes", "reason"]);
    let keys: Vec<&str> = dialect::PROMPT_KEYS.into_iter().chain(["text"]).collect();
    let text = query.first(&keys).and_then(|(_, text)| text.as_str()).unwrap_or_default();
    if let Some(expected) =
        query.members().get("expected").filter(|_| query.get("should_trigger").is_none())
    {
        // Marks the key as read, which looking into the mapping does not.
        let _ = query.get("expected");
        let skill = expected.as_str().map(ToOwned::to_owned);
        return add_query(text, Some(skill.is_some()), skill.into_iter().collect(), reader);
    }
    let should_trigger = query.get("should_trigger").and_then(Value::as_bool);
    add_query(text, should_trigger, Vec::new(), reader);
}

fn query_of(query: &Value) -> Option<&str> {
    dialect::PROMPT_KEYS.iter().chain(&["text"]).find_map(|key| query.get(*key)?.as_str())
}

fn add_query(
    query: &str,
    should_trigger: Option<bool>,
    skills: Vec<String>,
    reader: &mut CaseReader<'_>,
) {
    let file = &mut *reader.file;
    match should_trigger {
        Some(should_trigger) if !query.trim().is_empty() => {
            file.routing.push(RoutingCase { query: query.to_owned(), should_trigger, skills });
        }
        Some(_) => file.refused.push("a query without words".to_owned()),
        None => {
            let words =
                format!("\"{}\" does not say whether it should trigger", terminal(query, 80));
            file.refused.push(words);
        }
    }
}
