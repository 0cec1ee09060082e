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
    refuses: "cases without a prompt, or whose `context` or `source_text` is not in it; paths that leave the skill",
    is_file_name: |name| name == "evals.json",
    marks: &[],
    // Whatever is left.
    recognises: |_| true,
    read,
};

pub(super) const TRIGGERS: DialectEntry = DialectEntry {
    dialect: EvalsDialect::Trigger,
    title: "Trigger sets",
    files: "`trigger-evals.json`, `evals/routing.json`: `query` with `should_trigger`; two lists, also by skill; `expected_skill` or `expected` with a skill, several or null",
    yaml: Some(crate::yaml::YamlSchema::V1_2),
    carries: "prompts, and which skill should be loaded, and which not",
    refuses: "prompts that do not say so",
    is_file_name: dialect::is_routing_file,
    marks: &[],
    recognises: |source| {
        let (dialect, _) = dialect::locate(source.name, source.text.value());
        dialect == EvalsDialect::Trigger
    },
    read,
};

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let document = source.text.value();
    let (dialect, items) = dialect::locate(source.name, document);
    reader.file.dialect = dialect;
    let root = source.text.root();
    if dialect == EvalsDialect::Unknown {
        if let Some(root) = root.filter(|root| !root.members().is_empty()) {
            root.reads_all();
            let keys: Vec<String> = root
                .members()
                .keys()
                .take(8)
                .map(|key| format!("`{}`", terminal(key, 40)))
                .collect();
            let words =
                format!("it is of no dialect that is known here: its keys are {}", keys.join(", "));
            reader.file.refused.push(words);
        }
        return;
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
        for (pointer, _) in &items {
            let first = pointer.split('/').nth(1).unwrap_or_default();
            root.describes(&[&first.replace("~1", "/").replace("~0", "~")]);
        }
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
    let remarks = ["id", "name", "note", "notes", "reason", "rationale", "description", "policy"];
    item.describes(&remarks);
    item.describes(&["skill_name", "version"]);
    let own = item.text("skill").or(item.text("skill_name")).map(ToOwned::to_owned);
    // A group by skill has the name of its skill as its key.
    let key = item.pointer().rsplit('/').next().filter(|key| key.parse::<usize>().is_err());
    let key = key.filter(|key| !key.is_empty());
    let own = own.or(key.map(|key| key.replace("~1", "/").replace("~0", "~")));
    let own: Vec<String> = own.into_iter().collect();
    let mut is_list = false;
    let keys = dialect::LOADING_KEYS.iter().map(|key| (key, true));
    for (key, should_trigger) in keys.chain(dialect::OTHER_KEYS.iter().map(|key| (key, false))) {
        for query in item.get(key).and_then(Value::as_array).into_iter().flatten() {
            is_list = true;
            let text = query.as_str().or_else(|| query_of(query)).unwrap_or_default();
            add_query(text, Some(should_trigger), own.clone(), reader);
            // A near miss may say what it is of: another skill.
            let other =
                ["expect", "expected", "expected_skill"].iter().find_map(|key| query.get(*key));
            let other = other.and_then(Value::as_str).filter(|name| !dialect::is_no_skill(name));
            if let Some(other) = other.filter(|_| !should_trigger) {
                add_query(text, Some(true), vec![other.to_owned()], reader);
            }
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
        trigger_query_of(item, &own, reader);
    }
}

fn trigger_query(query: &Fields<'_>, reader: &mut CaseReader<'_>) {
    let own: Vec<String> = query.text("skill").map(ToOwned::to_owned).into_iter().collect();
    trigger_query_of(query, &own, reader);
}

/// Adds a prompt. `own` is the skill that it is about, if it names one.
fn trigger_query_of(query: &Fields<'_>, own: &[String], reader: &mut CaseReader<'_>) {
    query.describes(&["id", "name", "note", "notes", "reason", "rationale"]);
    let keys: Vec<&str> = dialect::PROMPT_KEYS.into_iter().chain(["text"]).collect();
    let text = query.first(&keys).and_then(|(_, text)| text.as_str()).unwrap_or_default();
    let names = |value: &Value| -> Vec<String> {
        let names = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let names = names.iter().filter_map(Value::as_str);
        names.filter(|name| !dialect::is_no_skill(name)).map(ToOwned::to_owned).collect()
    };
    let others: Vec<String> =
        dialect::OTHER_SKILL_KEYS.iter().filter_map(|key| query.get(key)).flat_map(names).collect();
    let word = || ["expected", "expect"].iter().find_map(|key| dialect::loads(query.get(key)?));
    let should_trigger =
        dialect::TRIGGER_KEYS.iter().find_map(|key| query.get(key)?.as_bool()).or_else(word);
    let expected = dialect::SKILL_KEYS.iter().filter(|_| should_trigger.is_none());
    let Some((key, expected)) =
        expected.clone().find_map(|key| Some((*key, query.get_or_null(key)?)))
    else {
        return add_query(text, should_trigger, own.to_vec(), reader);
    };
    let mut skills = names(expected);
    if key != "expected_skill" && skills.len() > 1 {
        // Each of a list should be loaded.
        for skill in skills {
            add_query(text, Some(true), vec![skill], reader);
        }
    } else {
        let should_trigger = !skills.is_empty();
        skills.extend(query.get("acceptable_skills").map(names).unwrap_or_default());
        add_query(text, Some(should_trigger), skills, reader);
    }
    if !others.is_empty() {
        add_query(text, Some(false), others, reader);
    }
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
