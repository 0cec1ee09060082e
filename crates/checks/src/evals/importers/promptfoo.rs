//! promptfoo tests: deterministic assertions become checks, rubrics go to the judge, and everything
//! that cannot be imported is reported.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::{DialectEntry, SuiteSource};
use crate::check;
use crate::evals::case::{CaseReader, deduplicate};
use crate::evals::dialect::{EvalsDialect, is_promptfoo};
use crate::evals::source::{Fields, SourceText};
use crate::evals::{CaseDemand, DemandDecider, EvalCase, FileLocation, FileLookup, MAX_CASES};
use crate::yaml::YamlSchema;
use selftest_text::escape::terminal;
use selftest_text::one_line;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::Promptfoo,
    title: "promptfoo",
    files: "`promptfooconfig.yaml`: `prompts` and `tests`",
    yaml: Some(YamlSchema::V1_2),
    carries: "prompts with their variables, also in text files and as lists of values, tests in \
              other YAML or JSON files, deterministic assertions, rubrics",
    refuses: "prompts of several messages or with conditions, tests and variables by programs, the \
              provider `echo`, thresholds of a test; assertions by similarity, by code or on a \
              changed answer are unknown",
    is_file_name: |name| {
        name.starts_with("promptfooconfig") && (name.ends_with(".yaml") || name.ends_with(".yml"))
    },
    marks: &[],
    recognises: |source| is_promptfoo(source.text.value()),
    read,
};

/// Keys of a configuration that say how it is run and what it is called.
const DESCRIPTIONS: [&str; 6] =
    ["description", "$schema", "tags", "metadata", "sharing", "outputPath"];
/// Keys of an assertion that are read, or that only say which model grades.
const ASSERT_KEYS: [&str; 10] = [
    "type",
    "value",
    "threshold",
    "weight",
    "metric",
    "assert",
    "description",
    "provider",
    "rubricPrompt",
    "transform",
];
/// Endings of programs, whose output promptfoo takes.
const PROGRAMS: [&str; 9] = [".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py", ".rb", ".go"];
/// Endings of files whose text promptfoo does not take as it is.
const NO_TEXT: [&str; 10] =
    [".json", ".yaml", ".yml", ".pdf", ".png", ".jpg", ".jpeg", ".csv", ".mp3", ".wav"];

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let Some(root) = source.text.root() else { return };
    root.describes(&DESCRIPTIONS);
    let templates = templates(&root, reader);
    let defaults = root.fields("defaultTest");
    let mut tests = PromptfooTests {
        templates,
        defaults,
        is_echo: is_echo(&root),
        has_own_provider: has_own_provider(&root),
        number: 0,
    };
    match root.get("tests") {
        Some(Value::Array(items)) => {
            for (item, fields) in items.iter().zip(root.list("tests")) {
                match (fields, item.as_str()) {
                    (Some(test), _) => tests.add(&test, reader),
                    (None, Some(path)) => tests.add_file(path, reader),
                    (None, None) => reader.file.refused.push("a test is no mapping".to_owned()),
                }
            }
        }
        Some(Value::String(path)) => tests.add_file(path, reader),
        _ => reader.file.refused.push("its tests are made by a program".to_owned()),
    }
    if tests.number == 0 {
        // Nothing is read that they could change.
        tests.defaults.iter().for_each(Fields::reads_all);
    }
}

/// Returns the providers of a configuration, which are also called targets.
fn providers<'a>(root: &Fields<'a>) -> &'a [Value] {
    match root.members().get("providers").or(root.members().get("targets")) {
        Some(Value::Array(all)) => all,
        Some(one) => std::slice::from_ref(one),
        None => &[],
    }
}

fn name_of_provider(provider: &Value) -> &str {
    provider.as_str().or_else(|| provider.get("id")?.as_str()).unwrap_or_default()
}

/// Returns true if nothing answers but promptfoo's echo of the prompt.
fn is_echo(root: &Fields<'_>) -> bool {
    let all = providers(root);
    let is_echo = !all.is_empty() && all.iter().all(|one| name_of_provider(one) == "echo");
    if is_echo {
        root.describes(&["providers", "targets"]);
    }
    is_echo
}

/// Returns true if a provider is a program or a service of the author, and no model that gets only the
/// prompt.
fn has_own_provider(root: &Fields<'_>) -> bool {
    let is_own = |name: &str| {
        let starts = ["file://", "http", "exec:", "python:", "ws", "package:"];
        starts.iter().any(|start| name.starts_with(start))
            || PROGRAMS.iter().any(|end| name.ends_with(end))
    };
    providers(root).iter().map(name_of_provider).any(is_own)
}

/// The text of a prompt. The error is the reason why it has none.
type PromptTemplate = Result<String, String>;

fn templates(root: &Fields<'_>, reader: &CaseReader<'_>) -> Vec<PromptTemplate> {
    let prompts = match root.get("prompts") {
        Some(Value::Array(prompts)) => prompts.iter().collect(),
        None => Vec::new(),
        Some(other) => vec![other],
    };
    let mut found = Vec::new();
    for prompt in prompts {
        let Some(text) = prompt
            .as_str()
            .or_else(|| prompt["raw"].as_str())
            .or_else(|| prompt["file"].as_str())
            .or_else(|| prompt["id"].as_str().filter(|id| id.starts_with("file://")))
        else {
            found.push(Err("its prompt is no text".to_owned()));
            continue;
        };
        let Some(path) = path_of_prompt(text) else {
            found.push(plain_template(text));
            continue;
        };
        match text_of(path, reader.lookup) {
            // Several prompts may stand in a text file, apart from each other by this line.
            Ok(text) if path.ends_with(".txt") => {
                let parts = text.split("\n---\n").map(str::trim).filter(|it| !it.is_empty());
                found.extend(parts.map(plain_template));
            }
            Ok(text) => found.push(plain_template(text.trim())),
            Err(why) => found.push(Err(format!("its prompt {why}"))),
        }
    }
    found
}

/// Returns the path of a prompt that stands in a file; promptfoo takes bare paths too.
fn path_of_prompt(text: &str) -> Option<&str> {
    if let Some(path) = text.strip_prefix("file://") {
        return Some(path);
    }
    let ends = [".txt", ".md", ".json", ".yaml", ".yml"];
    let is_path = !text.contains(char::is_whitespace)
        && ends.iter().chain(&PROGRAMS).any(|end| text.ends_with(end));
    is_path.then_some(text)
}

/// Returns a prompt, unless it is more than a text with variables.
fn plain_template(text: &str) -> PromptTemplate {
    let trimmed = text.trim_start();
    if text.contains("{%") {
        return Err("its prompt is a template with conditions or loops".to_owned());
    }
    let is_list = trimmed.starts_with('[') && text.contains("\"role\"");
    if is_list || trimmed.starts_with("- role:") {
        return Err("its prompt is a list of messages".to_owned());
    }
    Ok(text.to_owned())
}

/// Returns the text of a file that a configuration names. The error is the reason why it is missing.
fn text_of(path: &str, lookup: &dyn FileLookup) -> Result<String, String> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let shown = format!("`{}`", terminal(path, 100));
    let file = path.split(".js:").next().and_then(|it| it.split(".py:").next()).unwrap_or(path);
    let ends = |ends: &[&str]| ends.iter().any(|end| file.to_lowercase().ends_with(end));
    if ends(&PROGRAMS) || file.len() < path.len() {
        return Err(format!("is made by a program, {shown}"));
    }
    if ends(&NO_TEXT) {
        return Err(format!("stands in {shown}, which promptfoo does not read as a text"));
    }
    any_text_of(path, lookup)
        .unwrap_or_else(|| Err(format!("stands in {shown}, which is not there")))
}

/// Returns the text of a file, or `None` if the file is missing.
fn any_text_of(path: &str, lookup: &dyn FileLookup) -> Option<Result<String, String>> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let text = if crate::scenario::path_error(path).is_none() {
        lookup.text(path, FileLocation::Evals)
    } else {
        lookup.text(&lookup.find_in_repository(path)?, FileLocation::Repository)
    };
    Some(text?.map_err(|why| format!("stands in `{}`: {why}", terminal(path, 100))))
}

/// What holds for all tests of a configuration.
struct PromptfooTests<'a> {
    templates: Vec<PromptTemplate>,
    defaults: Option<Fields<'a>>,
    is_echo: bool,
    /// True if a program or a service of the author takes the variables.
    has_own_provider: bool,
    /// Number of tests so far.
    number: usize,
}

impl PromptfooTests<'_> {
    /// Adds the tests of a file, or of all files that a pattern names.
    fn add_file(&mut self, path: &str, reader: &mut CaseReader<'_>) {
        let given = path;
        let path = path.strip_prefix("file://").unwrap_or(path);
        let path = path.strip_prefix("./").unwrap_or(path);
        let shown = format!("`{}`", terminal(given, 100));
        let Some((folder, pattern)) = split_pattern(path) else {
            let words = format!("its tests {shown} are not named by a pattern that is known");
            return reader.file.refused.push(words);
        };
        let names = match pattern {
            None => vec![path.to_owned()],
            Some((start, end)) => {
                let names = reader.lookup.list(folder, FileLocation::Evals);
                let fits = |name: &&String| {
                    name.len() >= start.len() + end.len()
                        && name.starts_with(start)
                        && name.ends_with(end)
                };
                let below = |name: &String| {
                    if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") }
                };
                names.iter().filter(fits).map(below).collect()
            }
        };
        if names.is_empty() {
            reader.file.refused.push(format!("its tests stand in {shown}: there is no such file"));
        }
        for name in names {
            self.add_tests_of(&name, reader);
        }
    }

    fn add_tests_of(&mut self, path: &str, reader: &mut CaseReader<'_>) {
        let shown = format!("`{}`", terminal(path, 100));
        let mut refuse = |why: String| reader.file.refused.push(format!("its tests {why}"));
        let is = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
        if !is(&[".yaml", ".yml", ".json", ".jsonl"]) {
            return refuse(format!("stand in {shown}, which is neither YAML nor JSON"));
        }
        let text = match any_text_of(path, reader.lookup) {
            Some(Ok(text)) => text,
            Some(Err(why)) => return refuse(why),
            None => return refuse(format!("stand in {shown}, which is not there")),
        };
        let read = if is(&[".jsonl"]) {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let lines: Result<Vec<Value>, _> =
                lines.take(MAX_CASES + 1).map(serde_json::from_str).collect();
            lines
                .map(|lines| SourceText::parsed(path, Value::Array(lines), ""))
                .map_err(|why| why.to_string())
        } else {
            // JSON is YAML.
            SourceText::yaml(path, &text, YamlSchema::V1_2, 0).map_err(|why| why.to_string())
        };
        let source = match read {
            Ok(source) => source,
            Err(why) => return refuse(format!("in {shown}: {}", one_line(&why, 200))),
        };
        let Some(items) = source.value().as_array() else {
            return refuse(format!("in {shown} are no list"));
        };
        for (item, at) in items.iter().zip(0usize..) {
            match Fields::of(&source, format!("/{at}"), item) {
                Some(test) => self.add(&test, reader),
                None => reader.file.refused.push(format!("{shown}: test {} is no mapping", at + 1)),
            }
        }
        reader.file.warnings.extend(source.unread_warnings());
    }

    /// Adds one test, once for each prompt and for each of several values of its variables.
    fn add(&mut self, test: &Fields<'_>, reader: &mut CaseReader<'_>) {
        self.number += 1;
        if self.number > MAX_CASES {
            return test.reads_all();
        }
        let number = self.number;
        if self.is_echo {
            test.reads_all();
            let why = "its provider `echo` gives back the prompt, so that no agent is tested";
            return reader.refuse(&number.to_string(), why);
        }
        let sets = match self.variables(test, reader.lookup) {
            Ok(sets) => sets,
            Err(why) => {
                test.reads_all();
                return reader.refuse(&number.to_string(), &why);
            }
        };
        if let Some(why) = self.hidden_variable(test) {
            test.reads_all();
            return reader.refuse(&number.to_string(), &why);
        }
        let none = [Err(String::new())];
        let templates = if self.templates.is_empty() { &none[..] } else { &self.templates[..] };
        for (template, at) in templates.iter().zip(1usize..) {
            for (variables, set) in sets.iter().zip(1usize..) {
                let mut id = number.to_string();
                if templates.len() > 1 {
                    id += &format!("-{at}");
                }
                if sets.len() > 1 {
                    id += &format!("-v{set}");
                }
                let prompt = match template {
                    Ok(template) => fill_prompt(template, variables),
                    Err(why) if !why.is_empty() => Err(why.clone()),
                    Err(_) => Ok(prompt_among(variables)),
                };
                match prompt {
                    Ok(prompt) => self.read_test(test, &prompt, variables, id, reader),
                    Err(why) => {
                        // The case is refused as a whole, so that its keys need no warning each.
                        test.reads_all();
                        reader.refuse(&id, &why);
                    }
                }
            }
        }
    }

    /// Returns why the agent would not get what a program of the author gets: a variable that is in no
    /// prompt.
    fn hidden_variable(&self, test: &Fields<'_>) -> Option<String> {
        let texts: Vec<&String> =
            self.templates.iter().filter_map(|template| template.as_ref().ok()).collect();
        if !self.has_own_provider || texts.is_empty() {
            return None;
        }
        let mut names = test.members().get("vars")?.as_object()?.keys();
        let is_asked = |name: &&String| texts.iter().any(|text| text.contains(name.as_str()));
        let hidden =
            names.next().filter(|first| !is_asked(first) && !names.any(|it| is_asked(&it)))?;
        Some(format!("its provider takes `{}`, which is not in the prompt", terminal(hidden, 60)))
    }

    /// Returns the values of the variables: one set for each combination of values in lists.
    fn variables(
        &self,
        test: &Fields<'_>,
        lookup: &dyn FileLookup,
    ) -> Result<Vec<BTreeMap<String, String>>, String> {
        let mut values: BTreeMap<&str, &Value> = BTreeMap::new();
        let given = [self.defaults.as_ref().and_then(|all| all.get("vars")), test.get("vars")];
        for vars in given.into_iter().flatten() {
            let Some(members) = vars.as_object() else {
                return Err("its variables stand in another file".to_owned());
            };
            // The test comes last and overrides the defaults.
            values.extend(members.iter().map(|(name, value)| (name.as_str(), value)));
        }
        let options = [Some(test.members()), self.defaults.as_ref().map(Fields::members)];
        let is_whole = options.into_iter().flatten().any(|it| {
            it.get("options").is_some_and(|options| options["disableVarExpansion"] == true)
        });
        let mut sets = vec![BTreeMap::new()];
        for (name, value) in values {
            let items = match value {
                // As promptfoo does: only a list of texts stands for several values.
                Value::Array(items) if !is_whole && items.first().is_some_and(Value::is_string) => {
                    items.as_slice()
                }
                one => std::slice::from_ref(one),
            };
            let mut texts = Vec::new();
            for item in items {
                let text = item.as_str().map_or_else(|| item.to_string(), ToOwned::to_owned);
                let Some(path) = text.strip_prefix("file://") else {
                    texts.push(text);
                    continue;
                };
                let text = text_of(path, lookup);
                let text =
                    text.map_err(|why| format!("its variable `{}` {why}", terminal(name, 60)));
                texts.push(text?.trim().to_owned());
            }
            if sets.len() * texts.len() > MAX_COMBINATIONS {
                return Err(format!(
                    "its variables have more than {MAX_COMBINATIONS} combinations"
                ));
            }
            let mut combined = Vec::new();
            for text in texts {
                combined.extend(sets.iter().cloned().map(|mut set: BTreeMap<String, String>| {
                    set.insert(name.to_owned(), text.clone());
                    set
                }));
            }
            sets = combined;
        }
        Ok(sets)
    }

    fn read_test(
        &self,
        test: &Fields<'_>,
        prompt: &str,
        variables: &BTreeMap<String, String>,
        id: String,
        reader: &mut CaseReader<'_>,
    ) {
        test.describes(&["metadata"]);
        if prompt.trim().is_empty() {
            reader.file.refused.push(format!("case {} has no prompt", terminal(&id, 60)));
            return;
        }
        let mut demands = Vec::new();
        read_asserts(test, variables, &mut demands);
        let mut options = vec![test.members().get("options")];
        if let Some(defaults) = &self.defaults {
            read_asserts(defaults, variables, &mut demands);
            options.push(defaults.members().get("options"));
        }
        // A program changes the answer before it is looked at.
        if options.into_iter().flatten().any(|it| it.get("transform").is_some()) {
            for demand in &mut demands {
                if !matches!(demand.decider, DemandDecider::Unknown { .. }) {
                    *demand =
                        CaseDemand::unknown(&demand.text, "a program changes the answer before");
                }
            }
        }
        let threshold = test.members().get("threshold").and_then(Value::as_f64);
        if let Some(threshold) = threshold.filter(|it| *it < 1.0 && demands.len() > 1) {
            test.reads_all();
            let why = format!("{threshold} of its assertions are enough, which checks cannot say");
            return reader.refuse(&id, &why);
        }
        test.describes(&["threshold"]);
        let name = test.text("description").map(ToOwned::to_owned);
        reader.add(EvalCase {
            id,
            name,
            prompt: prompt.to_owned(),
            demands: deduplicate(demands),
            ..EvalCase::default()
        });
    }
}

/// Maximum number of cases that the values of one test make.
const MAX_COMBINATIONS: usize = 1_000;

/// Reads the assertions of a test, or those of all.
fn read_asserts(
    fields: &Fields<'_>,
    variables: &BTreeMap<String, String>,
    demands: &mut Vec<CaseDemand>,
) {
    for assert in fields.list("assert") {
        match assert {
            Some(assert) => read_assert(&assert, variables, demands),
            None => demands.push(CaseDemand::unknown("assert", "it is not an object")),
        }
    }
}

/// Splits a path with one `*` in its last part into the folder and what stands around the `*`.
fn split_pattern(path: &str) -> Option<(&str, Option<(&str, &str)>)> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if folder.contains(['*', '?', '{', '[']) || name.contains(['?', '{', '[']) {
        return None;
    }
    match name.matches('*').count() {
        0 => Some((folder, None)),
        1 => Some((folder, name.split_once('*'))),
        _ => None,
    }
}

/// Returns the prompt of a test without a template: the variable that is named so, or the only one.
fn prompt_among(variables: &BTreeMap<String, String>) -> String {
    let named = ["prompt", "query", "question", "input"].iter().find_map(|it| variables.get(*it));
    let only = || if variables.len() == 1 { variables.values().next() } else { None };
    named.or_else(only).cloned().unwrap_or_default()
}

/// Fills in a prompt, in which each variable must have a value.
fn fill_prompt(template: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut rest = template;
    while let Some((_, after)) = rest.split_once("{{") {
        let Some((name, behind)) = after.split_once("}}") else { break };
        if !variables.contains_key(name.trim()) {
            return Err(format!(
                "its prompt needs `{}`, which is no variable of the test",
                terminal(name.trim(), 60)
            ));
        }
        rest = behind;
    }
    Ok(fill_template(template, variables))
}

/// Fills in a template's variables; those without a value are left as they are.
fn fill_template(template: &str, variables: &BTreeMap<String, String>) -> String {
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

fn read_assert(
    fields: &Fields<'_>,
    variables: &BTreeMap<String, String>,
    demands: &mut Vec<CaseDemand>,
) {
    fields.describes(&ASSERT_KEYS);
    let members = fields.members();
    let given = members.get("type").and_then(Value::as_str).unwrap_or_default();
    // Without a threshold, all assertions of a set must hold, as they would outside of it.
    if given == "assert-set" && members.get("threshold").is_none() {
        for inner in fields.list("assert").into_iter().flatten() {
            read_assert(&inner, variables, demands);
        }
        return;
    }
    // Such an assertion is only reported there.
    if members.get("weight").and_then(Value::as_f64) == Some(0.0) {
        fields.reads_all();
        return fields.source().leave_out(&format!("{}/weight", fields.pointer()));
    }
    let value = fill_value(members.get("value").unwrap_or(&Value::Null), variables);
    let shown = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let text = match members.get("metric").and_then(Value::as_str) {
        Some(metric) => format!("{metric}: {given}: {shown}"),
        None => format!("{given}: {shown}"),
    };
    let mut unknown = |why: &str| demands.push(CaseDemand::unknown(&text, why));
    if members.get("transform").is_some() {
        return unknown("a program changes the answer before");
    }
    // promptfoo negates any type with this prefix.
    let (kind, negated) = match given.strip_prefix("not-") {
        Some(kind) => (kind, true),
        None => (given, false),
    };
    // promptfoo would load the value from this file; nothing outside the suite is read here.
    if value.as_str().is_some_and(|text| text.starts_with("file://")) {
        return unknown(&format!("the value of `{}` stands in another file", terminal(given, 60)));
    }
    // Braces in a schema or in a pattern are no variables.
    let is_template = |text: &str| {
        text.split_once("{{").is_some_and(|(_, rest)| rest.contains("}}")) || text.contains("{%")
    };
    if value.as_str().is_some_and(is_template) && kind != "regex" {
        return unknown("it needs a variable that the test does not have");
    }
    if is_rubric(kind) && value.is_string() {
        let text = if negated { format!("This does not hold: {shown}") } else { shown };
        if let Some(key) = ["threshold", "weight"].iter().find(|key| members.contains_key(**key)) {
            fields.source().leave_out(&format!("{}/{key}", fields.pointer()));
        }
        demands.push(CaseDemand { text, decider: DemandDecider::Judge });
        return;
    }
    let Some(mut check) = check_of_type(kind, &value, members) else {
        return unknown(&format!("`{}` of promptfoo cannot be carried over", terminal(given, 60)));
    };
    if negated {
        check = json!({ "not": check });
    }
    if let Some(weight) = members.get("weight") {
        check["weight"] = weight.clone();
    }
    demands.push(match check::read(&check) {
        Ok(check) => CaseDemand { text, decider: DemandDecider::Typed(check) },
        Err(faults) => {
            let why: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
            CaseDemand::unknown(&text, &why.join("; "))
        }
    });
}

/// Returns the check of a line of JavaScript that compares one value of the answer, read as JSON.
fn javascript(line: &str) -> Option<Value> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| {
        let literal = r#"'[^'\\]*'|"[^"\\]*"|true|false|null|-?[0-9]+(?:\.[0-9]+)?"#;
        let path = r"(?:\.[A-Za-z_$][A-Za-z0-9_$]*|\[[0-9]+\])+";
        let form = format!(
            r"^(?:return\s+)?JSON\.parse\(output\)(?P<path>{path})\s*===\s*(?P<literal>{literal});?$"
        );
        Regex::new(&form).expect("a constant that a test uses")
    });
    let found = FORM.captures(line.trim())?;
    let pointer = found["path"].replace('[', "/").replace(']', "").replace('.', "/");
    let literal = &found["literal"];
    let inner = ['\'', '"'].iter().find_map(|c| literal.strip_prefix(*c)?.strip_suffix(*c));
    let value = match inner {
        Some(text) => Value::from(text),
        None => serde_json::from_str(literal).ok()?,
    };
    Some(json!({"json": {"pointer": pointer, "equals": value}}))
}

/// Returns true for a JSON Schema. A mapping of expected values is none, and would demand nothing.
fn is_schema(value: &Value) -> bool {
    const KEYWORDS: [&str; 40] = [
        "$schema",
        "$id",
        "$ref",
        "$defs",
        "$comment",
        "definitions",
        "title",
        "description",
        "default",
        "examples",
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "items",
        "prefixItems",
        "additionalItems",
        "contains",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
    ];
    value.as_object().is_some_and(|members| {
        !members.is_empty() && members.keys().all(|key| KEYWORDS.contains(&key.as_str()))
    })
}

fn fill_value(value: &Value, variables: &BTreeMap<String, String>) -> Value {
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
        "is-json" | "contains-json" if is_schema(value) => json!({"json": {"schema": value}}),
        "is-json" | "contains-json" if value.is_null() => json!({"json": {}}),
        "javascript" => javascript(text?)?,
        "skill-used" => json!({"skill_loaded": text?}),
        "word-count" => json!({ "words": value }),
        // promptfoo states latency in milliseconds.
        "latency" => json!({"seconds": {"max": threshold? / 1000.0}}),
        _ => return None,
    })
}
