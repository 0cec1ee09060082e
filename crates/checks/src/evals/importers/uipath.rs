//! Tasks of `coder_eval`, as `UiPath`'s skills have them: one YAML file for each task, or for each row of
//! a data set.

use serde_json::{Value, json};

use super::{DialectEntry, SuiteSource};
use crate::evals::case::CaseReader;
use crate::evals::dialect::EvalsDialect;
use crate::evals::source::Fields;
use crate::evals::{CaseDemand, EvalCase, FileLocation, MAX_CASES, ShellLine, ShellUse};
use crate::yaml::YamlSchema;
use selftest_text::escape::terminal;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::UiPath,
    title: "coder_eval, UiPath",
    files: "task YAML with `task_id` and `success_criteria`",
    yaml: Some(YamlSchema::V1_1),
    carries: "prompt, starter files, data sets, `pre_run`, criteria about files, JSON, commands, \
              tool calls and skills, judges as questions",
    refuses: "skipped tasks, simulated users, tasks without an agent, repositories to clone, scores \
              by similarity or economy",
    is_file_name: |_| false,
    marks: &["task_id:", "success_criteria:"],
    recognises: |source| {
        let document = source.text.value();
        document.get("task_id").is_some() && document.get("success_criteria").is_some()
    },
    read,
};

/// Variables that only `coder_eval` sets.
const VARIABLES: [&str; 4] = ["TASK_DIR", "SKILLS_REPO_PATH", "REFERENCE_DIR", "EVAL_DIR"];

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let Some(root) = source.text.root() else { return };
    let id = root.text("task_id").unwrap_or("task").to_owned();
    root.describes(&["description", "tags"]);
    let mut refused = None;
    if root.get("skip").and_then(Value::as_bool) == Some(true) {
        refused = Some("its author skips it".to_owned());
    }
    let agent = root.fields("agent");
    if agent.as_ref().is_some_and(|agent| agent.text("type") == Some("none")) {
        refused = Some("no agent runs in it".to_owned());
    }
    if let Some(simulation) = root.get("simulation")
        && simulation.get("enabled").and_then(Value::as_bool) != Some(false)
    {
        refused = Some("a model plays the user in it".to_owned());
    }
    let mut base = EvalCase::default();
    let prompt = match (root.text("initial_prompt"), root.text("initial_prompt_file")) {
        (Some(prompt), _) => Some(prompt.to_owned()),
        (None, Some(path)) => {
            let text =
                path_of(path, reader).and_then(|(path, place)| reader.lookup.text(&path, place));
            text.and_then(Result::ok)
        }
        (None, None) => None,
    };
    match prompt {
        Some(prompt) => base.prompt = prompt,
        None => refused = refused.or(Some("it has no prompt".to_owned())),
    }
    if let Some(limits) = root.fields("run_limits") {
        let limit = limits.first(&["task_timeout", "turn_timeout"]);
        base.timeout_seconds = limit.and_then(|(_, limit)| limit.as_f64());
        limits.describes(&["turn_timeout", "expected_turns"]);
    }
    if let Some(sandbox) = root.fields("sandbox") {
        sandbox.describes(&["driver"]);
        refused = read_templates(&sandbox, &mut base, reader).or(refused);
    }
    for (key, purpose) in [("pre_run", ShellUse::SetUp), ("post_run", ShellUse::NeverRun)] {
        for step in root.list(key).into_iter().flatten() {
            if let Some(line) = step.text("command") {
                base.shell.push(ShellLine::new(purpose, key, line));
            }
        }
    }
    let criteria = root.list("success_criteria");
    let rows = match rows(&root, reader) {
        Ok(rows) => rows,
        Err(why) => {
            refused = Some(why);
            Vec::new()
        }
    };
    if let Some(why) = refused {
        // The case is refused as a whole; its criteria need no remark each.
        for fields in criteria.iter().flatten() {
            fields.reads_all();
        }
        let id = reader.unique(&id);
        return reader.refuse(&id, &why);
    }
    if rows.is_empty() {
        let case = with_criteria(base, &criteria, None);
        let id = reader.unique(&id);
        return reader.add(EvalCase { id, ..case });
    }
    for (name, row) in rows.into_iter().take(MAX_CASES) {
        let mut case = with_criteria(base.clone(), &criteria, Some(&row));
        case.prompt = fill(&case.prompt, &row);
        case.id = reader.unique(&format!("{id}-{name}"));
        if case.prompt.trim().is_empty() {
            let id = case.id;
            reader.refuse(&id, "it has no prompt");
        } else {
            reader.add(case);
        }
    }
}

/// Returns a path beside the file, or the same from the root of the repository.
fn path_of(path: &str, reader: &CaseReader<'_>) -> Option<(String, FileLocation)> {
    if crate::scenario::path_error(path).is_none() {
        return Some((path.to_owned(), FileLocation::Evals));
    }
    Some((reader.lookup.find_in_repository(path)?, FileLocation::Repository))
}

fn read_templates(
    sandbox: &Fields<'_>,
    case: &mut EvalCase,
    reader: &mut CaseReader<'_>,
) -> Option<String> {
    let mut refused = None;
    for source in sandbox.list("template_sources").into_iter().flatten() {
        match source.text("type").unwrap_or_default() {
            "starter_files" => {
                for file in source.list("files").into_iter().flatten() {
                    let content = file.get("content").and_then(Value::as_str).unwrap_or_default();
                    match file.text("path") {
                        Some(path) => reader.file_of(case, path, None, Some(content)),
                        None => refused = Some("a starter file has no path".to_owned()),
                    }
                }
            }
            "template_dir" => {
                let folder = source.text("path").unwrap_or_default().trim_end_matches('/');
                let mount = source.text("mount_point").unwrap_or(".").trim_matches(['.', '/']);
                let Some((folder, place)) = path_of(folder, reader) else {
                    refused = Some(format!(
                        "the template `{}` is not in the repository",
                        terminal(folder, 100)
                    ));
                    continue;
                };
                let names = reader.lookup.list(&folder, place);
                if names.is_empty() {
                    refused =
                        Some(format!("the template `{}` is not there", terminal(&folder, 100)));
                }
                for name in names {
                    let name = name.trim_end_matches('/');
                    let to =
                        if mount.is_empty() { name.to_owned() } else { format!("{mount}/{name}") };
                    reader.file_at(case, &to, &format!("{folder}/{name}"), place);
                }
            }
            other => {
                source.reads_all();
                refused = Some(format!("its template is of the type `{}`", terminal(other, 60)));
            }
        }
    }
    if let Some(python) = sandbox.get("python")
        && python.get("env_packages").and_then(Value::as_array).is_some_and(|all| !all.is_empty())
    {
        refused = Some("it needs Python packages to be installed".to_owned());
    }
    refused
}

/// Returns the rows of the data set, by their name.
fn rows(root: &Fields<'_>, reader: &CaseReader<'_>) -> Result<Vec<(String, Value)>, String> {
    let Some(dataset) = root.fields("dataset") else { return Ok(Vec::new()) };
    let field = dataset.text("id_field").unwrap_or("id");
    let mut rows: Vec<Value> =
        dataset.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
    for path in dataset.texts("paths") {
        let shown = terminal(path, 100);
        let text = path_of(path, reader).and_then(|(path, place)| reader.lookup.text(&path, place));
        let text = match text {
            Some(Ok(text)) => text,
            Some(Err(why)) => return Err(format!("its data set {shown}: {why}")),
            None => return Err(format!("its data set {shown} is not there")),
        };
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            let row = serde_json::from_str(line)
                .map_err(|_| format!("its data set {shown}: line {number} is not JSON"))?;
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err("its data set is empty".to_owned());
    }
    let named = rows.into_iter().zip(1..).map(|(row, number): (Value, usize)| {
        let name = row
            .get(field)
            .map(|name| name.as_str().map_or_else(|| name.to_string(), ToOwned::to_owned));
        (name.unwrap_or_else(|| number.to_string()), row)
    });
    Ok(named.collect())
}

/// Fills in `${row.name}` in all texts of a value.
fn fill_all(value: &Value, row: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, row)),
        Value::Array(items) => items.iter().map(|item| fill_all(item, row)).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(key, value)| (key.clone(), fill_all(value, row))).collect(),
        ),
        other => other.clone(),
    }
}

/// Fills in `${row.name}`.
fn fill(text: &str, row: &Value) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${row.") {
        filled.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            filled.push_str("${row.");
            rest = after;
            continue;
        };
        match row.get(name) {
            Some(Value::String(value)) => filled.push_str(value),
            Some(Value::Null) => {}
            Some(value) => filled.push_str(&value.to_string()),
            None => filled.push_str(&format!("${{row.{name}}}")),
        }
        rest = behind;
    }
    filled + rest
}

fn with_criteria(
    mut case: EvalCase,
    criteria: &[Option<Fields<'_>>],
    row: Option<&Value>,
) -> EvalCase {
    for criterion in criteria {
        match criterion {
            Some(fields) => {
                let Some(row) = row else {
                    read_criterion(fields, &mut case);
                    continue;
                };
                // As coder_eval does: every text of a criterion may name a value of the row.
                let filled = fill_all(&Value::Object(fields.members().clone()), row);
                let pointer = fields.pointer().to_owned();
                if let Some(filled) = Fields::of(fields.source(), pointer, &filled) {
                    read_criterion(&filled, &mut case);
                }
                fields.reads_all();
            }
            None => case.demands.push(CaseDemand::unknown("criterion", "it is not a mapping")),
        }
    }
    case
}

/// A check, or the reason why the criterion cannot be carried over.
type Decided = Result<Value, String>;

fn read_criterion(fields: &Fields<'_>, case: &mut EvalCase) {
    let kind = fields.text("type").unwrap_or_default();
    let filled = |key: &str| Some(fields.get(key)?.as_str()?.to_owned());
    let words = filled("description").unwrap_or_else(|| kind.to_owned());
    // They say when to stop, and what counts for a whole suite.
    fields.describes(&["stop_when", "stop_early", "suite_thresholds"]);
    let weight = fields.get("weight").and_then(Value::as_f64);
    let threshold = fields.get("pass_threshold").and_then(Value::as_f64).unwrap_or(0.9);
    // Such a criterion is only reported there, and a check has no weight of 0.
    if weight == Some(0.0) {
        fields.reads_all();
        return fields.source().leave_out(&format!("{}/weight", fields.pointer()));
    }
    let decided: Decided = match kind {
        "file_exists" => need(filled("path"), "path").map(|path| json!({ "file_exists": path })),
        "file_contains" | "file_check" => file_check(fields, threshold, &filled),
        "file_matches_regex" => file_regex(fields, &filled),
        "json_check" => json_check(fields, threshold, &filled),
        "run_command" => return command(fields, &words, weight, &filled, case),
        "command_executed" | "command_not_executed" => {
            executed(fields, kind == "command_executed", &filled)
        }
        // `expected_skill` names the skill that should win. For the others the criterion is
        // inverted.
        "skill_triggered" => match (filled("skill_name"), filled("expected_skill")) {
            (Some(skill), expected) => {
                let loaded = json!({ "skill_loaded": skill });
                let is_wanted = expected.is_none_or(|expected| expected == skill);
                Ok(if is_wanted { loaded } else { json!({ "not": loaded }) })
            }
            _ => Err("it lacks `skill_name`".to_owned()),
        },
        "llm_judge" | "agent_judge" => {
            let others = [
                "files",
                "model",
                "temperature",
                "max_tokens",
                "max_turns",
                "agent",
                "turn_timeout",
                "include_reference",
                "include_agent_output",
                "include_tool_calls",
                "include_dialog",
                "max_file_chars",
                "max_dialog_chars",
            ];
            fields.describes(&others);
            match filled("prompt") {
                Some(prompt) => {
                    // A sentence has no weight.
                    if weight.is_some_and(|weight| weight != 1.0) {
                        fields.source().leave_out(&format!("{}/weight", fields.pointer()));
                    }
                    let least = fields.get("pass_threshold").and_then(Value::as_f64).unwrap_or(0.9);
                    let sentence = format!(
                        "By these instructions the work deserves at least {least}: {prompt}"
                    );
                    return case.demands.push(CaseDemand::judged(&sentence));
                }
                None => Err("it has no prompt".to_owned()),
            }
        }
        other => Err(format!("the type `{}` cannot be carried over", terminal(other, 60))),
    };
    case.demands.push(match decided {
        Ok(mut check) => {
            if let Some(weight) = weight {
                check["weight"] = json!(weight);
            }
            CaseDemand::typed(&words, &check)
        }
        Err(why) => CaseDemand::unknown(&words, &why),
    });
}

fn need(value: Option<String>, key: &str) -> Result<String, String> {
    value.ok_or_else(|| format!("it lacks `{key}`"))
}

/// Returns an error if part of the demands is enough: a check holds or it does not.
fn all_needed(shares: &[usize], threshold: f64) -> Result<(), String> {
    let groups = shares.iter().filter(|count| **count > 0).count().max(1);
    let most = shares.iter().copied().max().unwrap_or(1).max(1);
    #[expect(clippy::cast_precision_loss, reason = "lists of a file are short")]
    // The best share that an answer can have without one of the demands.
    let without_one = 1.0 - 1.0 / (groups * most) as f64;
    if without_one >= threshold {
        return Err(format!("{threshold} of its demands are enough, which a check cannot say"));
    }
    Ok(())
}

fn file_check(
    fields: &Fields<'_>,
    threshold: f64,
    filled: &dyn Fn(&str) -> Option<String>,
) -> Decided {
    let path = need(filled("path"), "path")?;
    let (includes, excludes) = (fields.texts("includes"), fields.texts("excludes"));
    let mut checks = Vec::new();
    let contains = |text: &str| json!({"file_contains": {"path": path, "text": text}});
    checks.extend(includes.iter().map(|text| contains(text)));
    checks.extend(excludes.iter().map(|text| json!({ "not": contains(text) })));
    let patterns = fields.list("patterns");
    let count = patterns.len();
    for pattern in patterns {
        checks.push(pattern_check(&pattern.ok_or("a pattern is not a mapping")?, &path)?);
    }
    all_needed(&[includes.len(), excludes.len(), count], threshold)?;
    // An excluded text is missing from a missing file as well.
    checks.insert(0, json!({ "file_exists": path }));
    Ok(json!({ "all": checks }))
}

/// Returns the check of a pattern with the flags of Python's `re`.
fn pattern_check(fields: &Fields<'_>, path: &str) -> Decided {
    let pattern = fields.text("pattern").ok_or("it lacks `pattern`")?;
    let flags = fields.get("flags").and_then(Value::as_u64).unwrap_or(0);
    let mut names = String::new();
    // The values of re.IGNORECASE, re.MULTILINE, re.DOTALL and re.VERBOSE.
    for (bit, name) in [(2, 'i'), (8, 'm'), (16, 's'), (64, 'x')] {
        if flags & bit != 0 {
            names.push(name);
        }
    }
    let pattern =
        if names.is_empty() { pattern.to_owned() } else { format!("(?{names}){pattern}") };
    let check = json!({"file_matches": {"path": path, "pattern": pattern}});
    let is_wanted = fields.get("must_match").and_then(Value::as_bool) != Some(false);
    Ok(if is_wanted { check } else { json!({ "not": check }) })
}

fn file_regex(fields: &Fields<'_>, filled: &dyn Fn(&str) -> Option<String>) -> Decided {
    let path = need(filled("path"), "path")?;
    let check = pattern_check(fields, &path)?;
    // A pattern that must not match is not in a missing file either.
    Ok(json!({"all": [{"file_exists": path}, check]}))
}

fn json_check(
    fields: &Fields<'_>,
    threshold: f64,
    filled: &dyn Fn(&str) -> Option<String>,
) -> Decided {
    let path = need(filled("path"), "path")?;
    if let Some(schema) = fields.text("json_schema") {
        return Err(format!(
            "its schema {} lies in the folder of the agent",
            terminal(schema, 100)
        ));
    }
    let assertions = fields.list("assertions");
    all_needed(&[assertions.len()], threshold)?;
    // The file has to be JSON even if no assertion looks into it.
    let mut checks = vec![json!({"file_data": {"path": path, "format": "json"}})];
    for assertion in assertions {
        let assertion = assertion.ok_or("an assertion is not a mapping")?;
        let expression = assertion.text("expression").ok_or("an assertion lacks `expression`")?;
        let operator = assertion.text("operator").unwrap_or("equals");
        let expected = assertion.members().get("expected").cloned();
        // Read once more through `get`, which marks the key as used; null counts as a value.
        let _ = assertion.get("expected");
        checks.push(json_assertion(&path, expression, operator, expected)?);
    }
    Ok(json!({ "all": checks }))
}

/// Returns the check of a `JMESPath` expression that is a plain path, or its length.
fn json_assertion(
    path: &str,
    expression: &str,
    operator: &str,
    expected: Option<Value>,
) -> Decided {
    let no_path = || format!("`{}` is more than a path", terminal(expression, 100));
    let (inner, is_length) =
        match expression.strip_prefix("length(").and_then(|it| it.strip_suffix(')')) {
            Some(inner) => (inner, true),
            None => (expression, false),
        };
    let pointer = pointer_of(inner).ok_or_else(no_path)?;
    let expected = expected.unwrap_or(Value::Null);
    let mut data = json!({"path": path, "format": "json", "pointer": pointer});
    let unknown =
        || Err(format!("the operator `{}` cannot be carried over", terminal(operator, 60)));
    if is_length {
        let Some(count) = expected.as_u64() else { return unknown() };
        data["count"] = match operator {
            "equals" => json!(count),
            "gte" => json!({"min": count}),
            "gt" if count < u64::MAX => json!({"min": count + 1}),
            "lte" => json!({"max": count}),
            // Fewer than none is never true, and no count says so.
            "lt" if count > 0 => json!({"max": count - 1}),
            _ => return unknown(),
        };
        return Ok(json!({ "file_data": data }));
    }
    match operator {
        "equals" => data["equals"] = expected,
        "not_equals" => {
            data["equals"] = expected;
            return Ok(json!({"not": { "file_data": data }}));
        }
        // In JMESPath a missing value and null are the same.
        "exists" => data["schema"] = json!({"not": {"type": "null"}}),
        "regex" if expected.is_string() => data["matches"] = expected,
        "gte" if expected.is_number() => {
            data["schema"] = json!({"type": "number", "minimum": expected});
        }
        "lte" if expected.is_number() => {
            data["schema"] = json!({"type": "number", "maximum": expected});
        }
        "gt" if expected.is_number() => {
            data["schema"] = json!({"type": "number", "exclusiveMinimum": expected});
        }
        "lt" if expected.is_number() => {
            data["schema"] = json!({"type": "number", "exclusiveMaximum": expected});
        }
        "type" if expected.is_string() => data["schema"] = json!({ "type": expected }),
        "contains" if expected.is_string() => {
            let pattern = regex::escape(expected.as_str().unwrap_or_default());
            data["schema"] = json!({"anyOf": [
                {"type": "string", "pattern": pattern},
                {"type": "array", "contains": {"const": expected}},
            ]});
        }
        _ => return unknown(),
    }
    Ok(json!({ "file_data": data }))
}

/// Returns the JSON Pointer of `a.b[0]."c d"`, if the expression is no more than that.
fn pointer_of(expression: &str) -> Option<String> {
    let mut pointer = String::new();
    let mut rest = expression.trim();
    let mut is_first = true;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (number, behind) = after.split_once(']')?;
            // Negative indices and projections such as `[*]` have no pointer.
            let _: usize = number.parse().ok()?;
            pointer.push_str(&format!("/{number}"));
            rest = behind;
        } else {
            rest = if is_first { rest } else { rest.strip_prefix('.')? };
            let (name, behind) = match rest.strip_prefix('"') {
                Some(after) => after.split_once('"')?,
                None => rest.split_at(
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
                        .unwrap_or(rest.len()),
                ),
            };
            if name.is_empty() {
                return None;
            }
            pointer = crate::yaml::join(&pointer, name);
            rest = behind;
        }
        is_first = false;
    }
    (!pointer.is_empty()).then_some(pointer)
}

fn command(
    fields: &Fields<'_>,
    words: &str,
    weight: Option<f64>,
    filled: &dyn Fn(&str) -> Option<String>,
    case: &mut EvalCase,
) {
    let Some(line) = filled("command") else {
        return case.demands.push(CaseDemand::unknown(words, "it lacks `command`"));
    };
    if let Some(name) = VARIABLES.iter().find(|name| line.contains(**name)) {
        let why = format!("its command reads ${name}, which only coder_eval sets");
        return case.demands.push(CaseDemand::unknown(words, &why));
    }
    let Some(code) = fields.get("expected_exit_code").map_or(Some(0), Value::as_u64) else {
        return case.demands.push(CaseDemand::unknown(words, "its exit code is not a number"));
    };
    let mut check = json!({
        "run": ["sh", "-c", line],
        "exit_code": code,
        "timeout_seconds": fields.get("timeout").and_then(Value::as_f64).unwrap_or(30.0),
    });
    if let Some(text) = filled("expected_stdout") {
        match fields.text("stdout_match").unwrap_or("exact") {
            "exact" => {
                check["matches"] = json!(format!("\\A\\s*{}\\s*\\z", regex::escape(text.trim())));
            }
            "contains" => check["prints"] = json!(text),
            _ => check["matches"] = json!(text),
        }
    }
    let mut check = json!({ "command": check });
    if let Some(weight) = weight {
        check["weight"] = json!(weight);
    }
    case.demands.push(CaseDemand::typed(words, &check));
    // With this line the suite asks for permission, without which the command never runs.
    case.shell.push(ShellLine::new(ShellUse::Check, "run_command", &line));
}

fn executed(
    fields: &Fields<'_>,
    is_wanted: bool,
    filled: &dyn Fn(&str) -> Option<String>,
) -> Decided {
    if fields.get("require_success").and_then(Value::as_bool) == Some(true) {
        return Err("whether a call succeeded is not observed".to_owned());
    }
    if fields.text("exclude_pattern").is_some() {
        return Err("`exclude_pattern` cannot be carried over".to_owned());
    }
    let limit = |key: &str| fields.get(key).and_then(Value::as_u64);
    let (min, max) = (limit("min_count"), limit("max_count"));
    let pattern = filled("command_pattern");
    let Some(tool) = fields.text("tool_name") else {
        let pattern = pattern.ok_or("it names neither a tool nor a pattern")?;
        if !is_wanted || max == Some(0) {
            return Ok(json!({"not": { "command_run": pattern }}));
        }
        let mut run = json!({ "matches": pattern, "min": min.unwrap_or(1) });
        if let Some(max) = max {
            run["max"] = json!(max);
        }
        return Ok(json!({ "command_run": run }));
    };
    let mut call = json!({ "name": tool });
    if let Some(pattern) = pattern {
        call["matches"] = json!(pattern);
    }
    if !is_wanted || max == Some(0) {
        return Ok(json!({"not": { "tool_called": call }}));
    }
    call["min"] = json!(min.unwrap_or(1));
    if let Some(max) = max {
        call["max"] = json!(max);
    }
    Ok(json!({ "tool_called": call }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_beyond_all_counts_are_not_carried_over() {
        let data = |operator: &str, expected: u64| {
            json_assertion("a.json", "length(rows)", operator, Some(json!(expected)))
                .map(|check| check["file_data"]["count"].clone())
        };
        assert_eq!(data("lt", 3), Ok(json!({"max": 2})));
        assert_eq!(data("gt", 3), Ok(json!({"min": 4})));
        assert!(data("lt", 0).is_err() && data("gt", u64::MAX).is_err());
    }
}
