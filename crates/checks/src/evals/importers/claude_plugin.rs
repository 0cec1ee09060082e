//! Cases of `claude plugin eval`: a folder with `prompt.md`, `case.yaml` or both, and graders in
//! either or in `graders/*.md`. The suites of Trail of Bits are of this kind.

use serde_json::{Map, Value, json};

use super::{DialectEntry, SuiteSource};
use crate::evals::case::CaseReader;
use crate::evals::dialect::EvalsDialect;
use crate::evals::source::{Fields, SourceText};
use crate::evals::{CaseDemand, EvalCase, EvalsReadError, FileLocation, ShellLine, ShellUse};
use crate::yaml::YamlSchema;
use selftest_text::escape::terminal;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::ClaudePlugin,
    title: "`claude plugin eval`, Trail of Bits",
    files: "`evals/*/prompt.md` or `case.yaml`, with `graders/*.md`",
    yaml: Some(YamlSchema::V1_2),
    carries: "prompt, time limit, `regex`, `tool_used`, `tool_order`, `file_exists`, `llm`; the \
              scaffold script as a set-up",
    refuses: "replayed histories, mocks of MCP servers, graders of the trace or against a \
              transcript, cases without a grader",
    is_file_name: |name| matches!(name, "case.yaml" | "case.yml" | "prompt.md"),
    marks: &[],
    recognises: |source| {
        let document = source.text.value();
        let has_prompt = document["execution"].get("prompt").is_some();
        let is_case = source.name.starts_with("case.") && document.get("schema_version").is_some();
        source.name == "prompt.md"
            || is_case
            || has_prompt && ["graders", "context"].iter().any(|key| document.get(*key).is_some())
    },
    read,
};

/// The front matter and the body of a Markdown file.
pub(in crate::evals) fn front_matter<'t>(
    name: &str,
    text: &'t str,
) -> Result<(SourceText, &'t str), EvalsReadError> {
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
        return Ok((SourceText::parsed(name, Value::Object(Map::new()), ""), text));
    };
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let head = &rest[..end];
            let body = &rest[end + line.len()..];
            let source = if head.trim().is_empty() {
                SourceText::parsed(name, Value::Object(Map::new()), "")
            } else {
                // The line with `---` comes before the text.
                SourceText::yaml(name, head, YamlSchema::V1_2, 1)?
            };
            return Ok((source, body));
        }
        end += line.len();
    }
    Err(EvalsReadError("line 1: the front matter does not end with `---`".to_owned()))
}

/// Keys of a run that have no counterpart but do not change what is asked.
const DESCRIPTIONS: [&str; 5] = ["description", "tags", "schema_version", "runs", "plugins"];

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let beside =
        |name: &str, reader: &CaseReader<'_>| reader.lookup.text(name, FileLocation::Evals);
    let is_prompt = source.name == "prompt.md";
    // A case of both files is one case, which the file in YAML stands for.
    if is_prompt && beside("case.yaml", reader).is_some() {
        return;
    }
    let prompt_file = if is_prompt {
        Some(source.whole.to_owned())
    } else {
        beside("prompt.md", reader).and_then(Result::ok)
    };
    let prompt = match prompt_file
        .as_deref()
        .map(|text| front_matter(if is_prompt { "" } else { "prompt.md" }, text))
    {
        None => None,
        Some(Ok(prompt)) => Some(prompt),
        Some(Err(error)) => return reader.file.refused.push(error.to_string()),
    };
    let mut case = EvalCase::default();
    let mut refused = None;
    let folder = reader.lookup.folder_name();
    let mut name = folder;
    if let Some((head, body)) = &prompt {
        body.trim().clone_into(&mut case.prompt);
        if let Some(fields) = head.root() {
            name = fields.text("name").map(ToOwned::to_owned).or(name);
            refused = read_run(&fields, &mut case, reader).or(refused);
        }
        // A prompt of its own is the text of the suite, which warns itself.
        if !is_prompt {
            reader.file.warnings.extend(head.unread_warnings());
        }
    }
    if let Some(root) = (!is_prompt).then(|| source.text.root()).flatten() {
        name = root.text("name").map(ToOwned::to_owned).or(name);
        // What a grader checks is stated by the graders; this only describes it.
        root.describes(&["expected_outcome"]);
        refused = read_run(&root, &mut case, reader).or(refused);
        // The innermost statement wins: `execution` over the file, the file over the prompt's head.
        if let Some(execution) = root.fields("execution") {
            if let Some(text) = execution.text("prompt") {
                text.clone_into(&mut case.prompt);
            }
            refused = read_run(&execution, &mut case, reader).or(refused);
        }
        for grader in root.list("graders").into_iter().flatten() {
            read_grader(&grader, None, &mut case);
        }
    }
    if let Some((head, _)) = prompt.as_ref().filter(|_| is_prompt) {
        reader.file.warnings.extend(head.unread_warnings());
    }
    let graders = reader.lookup.list("graders", FileLocation::Evals);
    for file in graders.iter().filter(|file| file.ends_with(".md")) {
        let path = format!("graders/{file}");
        let Some(text) = reader.lookup.text(&path, FileLocation::Evals) else { continue };
        let read = text.map_err(|error| EvalsReadError(error.to_string())).and_then(|text| {
            let (head, body) = front_matter(&path, &text)?;
            if let Some(fields) = head.root() {
                read_grader(&fields, Some(body.trim()), &mut case);
            }
            Ok(head.unread_warnings())
        });
        match read {
            Ok(warnings) => reader.file.warnings.extend(warnings),
            Err(error) => {
                case.demands.push(CaseDemand::unknown(&path, &error.to_string()));
            }
        }
    }
    case.id = reader.unique(&name.unwrap_or_else(|| "case".to_owned()));
    if case.prompt.trim().is_empty() {
        refused = Some("it has no prompt".to_owned());
    } else if case.demands.is_empty() {
        refused = refused.or(Some("it has no grader".to_owned()));
    }
    match refused {
        Some(why) => reader.refuse(&case.id, &why),
        None => reader.add(case),
    }
}

/// Reads the settings of a run. Returns why it cannot be run here.
fn read_run(
    fields: &Fields<'_>,
    case: &mut EvalCase,
    reader: &mut CaseReader<'_>,
) -> Option<String> {
    fields.describes(&DESCRIPTIONS);
    if let Some(seconds) = fields.get("timeout_seconds").and_then(Value::as_f64) {
        case.timeout_seconds = Some(seconds);
    }
    let mut refused = None;
    let context = fields.fields("context");
    let place = context.as_ref().unwrap_or(fields);
    if let Some(script) = place.text("scaffold_script") {
        refused = scaffold(script, case, reader).or(refused);
    }
    if place.get("history_file").is_some() {
        refused = Some("it continues a recorded conversation".to_owned());
    }
    // Claude Code gives them to read; here they lie in the folder of the case.
    for folder in place.texts("add_dirs") {
        let folder = folder.trim_start_matches("./").trim_end_matches('/');
        match reader.lookup.find(folder) {
            Some(_) => reader.file_of(case, folder, Some(folder), None),
            None => refused = Some(format!("its folder `{}` is not there", terminal(folder, 100))),
        }
    }
    refused
}

/// Adds the script that makes the folder of a case ready.
fn scaffold(script: &str, case: &mut EvalCase, reader: &CaseReader<'_>) -> Option<String> {
    let shown = terminal(script, 100);
    let text = match reader.lookup.text(script, FileLocation::Evals) {
        // The script itself may stand in the file.
        None if script.contains('\n') => script.to_owned(),
        None => return Some(format!("its scaffold script `{shown}` is not there")),
        Some(Err(why)) => return Some(format!("its scaffold script `{shown}`: {why}")),
        Some(Ok(text)) => text,
    };
    // A set-up is run as text in the folder of the case, where the script's neighbours are missing.
    let around = ["$0", "${0", "BASH_SOURCE", "CLAUDE_PLUGIN_ROOT"];
    if let Some(name) = around.iter().find(|name| text.contains(**name)) {
        return Some(format!("its scaffold script `{shown}` reads files beside itself ({name})"));
    }
    let line = ShellLine::new(ShellUse::SetUp, "context.scaffold_script", &text);
    case.shell.push(ShellLine { program: "bash", ..line });
    None
}

fn read_grader(fields: &Fields<'_>, body: Option<&str>, case: &mut EvalCase) {
    let kind = fields.text("type").unwrap_or_default();
    let name = fields.text("name").unwrap_or(kind);
    fields.describes(&["description", "arm"]);
    // A grader of weight 0 only informs.
    if fields.members().get("weight").and_then(Value::as_f64) == Some(0.0) {
        fields.reads_all();
        fields.source().leave_out(&format!("{}/weight", fields.pointer()));
        return;
    }
    // A sentence has no weight.
    let weight = if kind == "llm" { None } else { fields.get("weight") };
    let demand = match kind {
        "regex" => regex(fields, body),
        "tool_used" => tool_used(fields),
        "tool_order" => match (ordered_call(fields, "before"), ordered_call(fields, "after")) {
            (Some(before), Some(after)) => Ok(json!({"first_calls": [before, after]})),
            _ => Err("it lacks `before` or `after`".to_owned()),
        },
        "file_exists" => match fields.text("path") {
            Some(path) => {
                let created = json!({ "file_created": path });
                let is_wanted = fields.get("exists").and_then(Value::as_bool) != Some(false);
                Ok(if is_wanted { created } else { json!({ "not": created }) })
            }
            None => Err("it lacks `path`".to_owned()),
        },
        "llm" => {
            let focus = fields.get("focus");
            let criteria = fields.text("criteria").or(body).unwrap_or_default().trim();
            let is_seen = focus.is_none_or(|focus| {
                focus == "last_message" || focus == "files" || focus == "trace"
            });
            if criteria.is_empty() {
                Err("it has no criteria".to_owned())
            } else if let Some(focus) = focus.filter(|_| !is_seen) {
                Err(format!("the judge is not shown {}", terminal(&focus.to_string(), 100)))
            } else {
                case.demands.push(CaseDemand::judged(criteria));
                return;
            }
        }
        other => Err(format!("the type `{}` cannot be carried over", terminal(other, 60))),
    };
    case.demands.push(match demand {
        Ok(mut check) => {
            if let Some(weight) = weight {
                check["weight"] = weight.clone();
            }
            CaseDemand::typed(name, &check)
        }
        Err(why) => CaseDemand::unknown(name, &why),
    });
}

/// Returns one side of an order: a tool, or a tool with a pattern of its input.
fn ordered_call(fields: &Fields<'_>, key: &str) -> Option<Value> {
    let Some(call) = fields.fields(key) else { return fields.text(key).map(|tool| json!(tool)) };
    let tool = call.text("tool")?;
    Some(match call.text("input_match") {
        Some(pattern) => json!({"name": tool, "matches": pattern}),
        None => json!(tool),
    })
}

fn regex(fields: &Fields<'_>, body: Option<&str>) -> Result<Value, String> {
    let pattern = fields.text("pattern").or(body.filter(|body| !body.is_empty()));
    let Some(pattern) = pattern else { return Err("it has no pattern".to_owned()) };
    let mut flags = String::new();
    for flag in fields.text("flags").unwrap_or_default().chars() {
        match flag {
            'i' | 'm' | 's' => flags.push(flag),
            // They change where a search starts, not whether it finds something.
            'g' | 'u' | 'd' => {}
            other => return Err(format!("the flag `{other}` cannot be carried over")),
        }
    }
    let pattern =
        if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
    let wanted = match fields.text("match").unwrap_or("contains") {
        "contains" => true,
        "not_contains" => false,
        other => return Err(format!("`match: {}` cannot be carried over", terminal(other, 60))),
    };
    let target = fields.get("target");
    let check = match target {
        None => json!({ "regex": pattern }),
        Some(Value::String(target)) if target == "last_message" => json!({ "regex": pattern }),
        Some(Value::Object(file)) if file.get("source") == Some(&json!("file")) => {
            json!({"file_matches": {"path": file.get("path"), "pattern": pattern}})
        }
        Some(other) => {
            return Err(format!(
                "the target {} is not observed",
                terminal(&other.to_string(), 100)
            ));
        }
    };
    Ok(if wanted { check } else { json!({ "not": check }) })
}

fn tool_used(fields: &Fields<'_>) -> Result<Value, String> {
    let Some(tool) = fields.text("tool") else { return Err("it lacks `tool`".to_owned()) };
    let pattern = fields.text("input_match");
    let limit = |key: &str| fields.get(key).and_then(Value::as_u64);
    let (min, max) = (limit("min").unwrap_or(1), limit("max"));
    let skill = pattern.filter(|_| tool == "Skill").and_then(skill_of);
    match (skill, min, max) {
        // Loading a skill has a check of its own, which knows every agent's tool for it.
        (Some(skill), 1, None) => return Ok(json!({ "skill_loaded": skill })),
        (Some(skill), 0, Some(0)) => return Ok(json!({"not": { "skill_loaded": skill }})),
        _ => {}
    }
    let mut call = json!({ "name": tool });
    if let Some(pattern) = pattern {
        call["matches"] = json!(pattern);
    }
    if min == 0 && max == Some(0) {
        return Ok(json!({"not": { "tool_called": call }}));
    }
    if min > 0 || max.is_none() {
        call["min"] = json!(min);
    }
    if let Some(max) = max {
        call["max"] = json!(max);
    }
    Ok(json!({ "tool_called": call }))
}

/// Returns the skill that a pattern of the input of the tool `Skill` means: the pattern that the
/// documentation recommends, or a bare name.
fn skill_of(pattern: &str) -> Option<&str> {
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
    };
    let rest = pattern.strip_prefix(r#""skill"\s*:\s*""#)?;
    let rest = rest.strip_prefix(r"(?:[\w-]+:)?").unwrap_or(rest);
    rest.strip_suffix('"').filter(|name| is_name(name))
}
