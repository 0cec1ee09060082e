//! skill-up: `evals/eval.yaml`, which lists its cases, and a file for each case. Texts of the answer
//! respect case there.

use serde_json::{Value, json};

use super::{DialectEntry, SuiteSource};
use crate::evals::case::CaseReader;
use crate::evals::dialect::EvalsDialect;
use crate::evals::source::{Fields, SourceText};
use crate::evals::{CaseDemand, EvalCase, FileLookup, MAX_CASES, ShellLine, ShellUse};
use crate::yaml::YamlSchema;
use selftest_text::escape::terminal;

/// yaml.v3 of Go keeps `yes` and `no` as text where a text is wanted.
const YAML: YamlSchema = YamlSchema::V1_2;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::SkillUp,
    title: "skill-up",
    files: "`evals/eval.yaml` with `cases/*.yaml`",
    yaml: Some(YAML),
    carries: "prompts, turns, fixtures, `expect`, judges by rules and by criteria",
    refuses: "simulated users, captures, Git histories, judges by script",
    is_file_name: |name| name == "eval.yaml" || name == "eval.yml",
    marks: &[],
    recognises: |source| {
        let document = source.text.value();
        let has = |key: &str| document.get(key).is_some_and(Value::is_object);
        has("cases") && document["cases"]["files"].is_array()
            || has("input") && (has("expect") || has("judge") || document.get("id").is_some())
    },
    read,
};

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let Some(root) = source.text.root() else { return };
    // A file with an input is a case of its own, without a suite around it.
    if root.members().contains_key("input") {
        return read_case(&root, &CaseDefaults::default(), source.name, reader);
    }
    root.describes(&["schema_version", "skills"]);
    let judge = root.fields("judge");
    let mut defaults = CaseDefaults { judge: judge.as_ref(), ..CaseDefaults::default() };
    let settings = root.fields("environment");
    if let Some(settings) = &settings {
        // The sandbox stands in for any environment that only isolates.
        settings.describes(&["type"]);
        for step in settings.list("setup_steps").into_iter().flatten() {
            defaults.setup.extend(step.text("run").map(ToOwned::to_owned));
        }
    }
    let Some(cases) = root.fields("cases") else { return };
    if let Some(limits) = cases.fields("defaults") {
        defaults.timeout = limits.get("timeout_seconds").and_then(Value::as_f64);
    }
    for path in cases.texts("files").into_iter().take(MAX_CASES) {
        read_case_file(path, &defaults, reader);
    }
}

/// What holds for all cases of a suite.
#[derive(Default)]
struct CaseDefaults<'a, 'f> {
    timeout: Option<f64>,
    setup: Vec<String>,
    judge: Option<&'a Fields<'f>>,
}

fn read_case_file(path: &str, defaults: &CaseDefaults<'_, '_>, reader: &mut CaseReader<'_>) {
    let shown = terminal(path, 200);
    let Some(text) = text_of(path, reader.lookup) else {
        if !reader.file.missing_files.contains(&path.to_owned()) {
            reader.file.missing_files.push(path.to_owned());
        }
        reader.file.refused.push(format!("{shown}: there is no such file of cases"));
        return;
    };
    let parsed = text.map_err(|why| format!("{shown}: {why}")).and_then(|text| {
        SourceText::yaml(path, &text, YAML, 0).map_err(|error| format!("{shown}: {error}"))
    });
    let source = match parsed {
        Ok(source) => source,
        Err(why) => return reader.file.refused.push(why),
    };
    match source.root() {
        Some(fields) => read_case(&fields, defaults, path, reader),
        None => reader.file.refused.push(format!("{shown}: it is not a mapping")),
    }
    reader.file.warnings.extend(source.unread_warnings());
}

/// Finds a file that a suite names from the folder of the skill, or from its own.
fn text_of(path: &str, lookup: &dyn FileLookup) -> Option<std::io::Result<String>> {
    lookup.text(path, lookup.find(path)?)
}

fn read_case(
    fields: &Fields<'_>,
    defaults: &CaseDefaults<'_, '_>,
    file: &str,
    reader: &mut CaseReader<'_>,
) {
    // `cases/first.case.yaml` is the case `first`.
    let stem = file.rsplit('/').next().unwrap_or(file).split('.').next().unwrap_or_default();
    let id = fields.text("id").unwrap_or(stem);
    fields.describes(&["description", "tag"]);
    let mut case = EvalCase {
        id: reader.unique(id),
        name: fields.text("title").map(ToOwned::to_owned),
        timeout_seconds: defaults.timeout,
        ..EvalCase::default()
    };
    for line in &defaults.setup {
        case.shell.push(ShellLine::new(ShellUse::SetUp, "environment.setup_steps", line));
    }
    let mut refused = read_input(fields, &mut case);
    if let Some(limits) = fields.fields("constraints")
        && let Some(limit) = limits.get("timeout_seconds").and_then(Value::as_f64)
    {
        case.timeout_seconds = Some(limit);
    }
    if let Some(context) = fields.fields("context") {
        refused = read_context(&context, &mut case, reader).or(refused);
    }
    if let Some(expect) = fields.fields("expect") {
        read_expect(&expect, &mut case, reader);
    }
    // A case's own judge replaces the suite's.
    match (fields.fields("judge"), defaults.judge) {
        (Some(judge), _) => read_judge(&judge, &mut case),
        (None, Some(judge)) => read_judge(judge, &mut case),
        (None, None) => {}
    }
    match refused {
        Some(why) => reader.refuse(&case.id, &why),
        None => reader.add(case),
    }
}

/// Reads the messages to the agent. Returns why they cannot be played.
fn read_input(fields: &Fields<'_>, case: &mut EvalCase) -> Option<String> {
    let Some(input) = fields.fields("input") else { return Some("it has no input".to_owned()) };
    let mut messages: Vec<String> =
        input.text("prompt").map(ToOwned::to_owned).into_iter().collect();
    let mut refused = None;
    let turns = input.list("turns");
    // Our checks see the last answer only.
    let last = turns.len();
    for (turn, number) in turns.into_iter().zip(1..) {
        let Some(turn) = turn else { continue };
        if !turn.list("capture").is_empty() {
            refused = Some("a turn takes a value out of the answer before".to_owned());
        }
        match (turn.get("role").and_then(Value::as_str).unwrap_or("user"), turn.text("content")) {
            ("user", Some(text)) => messages.push(text.to_owned()),
            _ => refused = Some("a turn is not a message of a user".to_owned()),
        }
        if let Some(condition) = turn.fields("post_condition") {
            let demands = texts_demanded(
                &condition,
                ["must_contain_all", "must_contain_any", "must_not_contain"],
            );
            condition.describes(&["on_fail"]);
            let keys = ["must_contain_all", "must_contain_any", "must_not_contain"];
            case.demands.extend(not_texts(&condition, &keys));
            for (text, check) in demands {
                case.demands.push(if number == last {
                    CaseDemand::typed(&text, &check)
                } else {
                    CaseDemand::unknown(&text, "only the last answer is checked")
                });
            }
        }
    }
    if messages.is_empty() {
        return Some(refused.unwrap_or_else(|| "it has no prompt".to_owned()));
    }
    case.prompt = messages.remove(0);
    case.replies = messages;
    refused
}

/// Returns a demand for each item of these lists that is no text. What it looked like in the file is
/// not known any more: `1.0` and `1` are one number.
fn not_texts(fields: &Fields<'_>, keys: &[&str]) -> Vec<CaseDemand> {
    let values = keys.iter().filter_map(|key| Some((*key, fields.members().get(*key)?)));
    let items = values.flat_map(|(key, value)| {
        let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        items.iter().map(move |item| (key, item))
    });
    let others = items.filter(|(_, item)| !item.is_string() && !item.is_null());
    let why = "it is no text in YAML, and how it was written is not known; put it in quotes";
    others.map(|(key, item)| CaseDemand::unknown(&format!("{key}: {item}"), why)).collect()
}

/// Returns a check for each text of these lists: all of the first, one of the second, none of the
/// third.
fn texts_demanded(fields: &Fields<'_>, [all, any, not]: [&str; 3]) -> Vec<(String, Value)> {
    let mut demands = Vec::new();
    for text in fields.texts(all) {
        demands.push((format!("contains: {text}"), json!({ "contains": text })));
    }
    let texts = fields.texts(any);
    if !texts.is_empty() {
        let each: Vec<Value> = texts.iter().map(|text| json!({ "contains": text })).collect();
        demands.push((format!("contains one of: {}", texts.join(", ")), json!({ "any": each })));
    }
    for text in fields.texts(not) {
        demands.push((format!("does not contain: {text}"), json!({ "not_contains": text })));
    }
    demands
}

/// Returns a check for each regular expression of a rule: all of `all`, one of `any`, none of `not`.
fn patterns_demanded(fields: &Fields<'_>) -> Vec<Value> {
    let each = |key: &str| -> Vec<Value> {
        fields.texts(key).iter().map(|pattern| json!({ "regex": pattern })).collect()
    };
    let mut checks = each("all");
    let any = each("any");
    if !any.is_empty() {
        checks.push(json!({ "any": any }));
    }
    checks.extend(each("not").into_iter().map(|check| json!({ "not": check })));
    checks
}

fn read_context(
    context: &Fields<'_>,
    case: &mut EvalCase,
    reader: &mut CaseReader<'_>,
) -> Option<String> {
    let mut refused = None;
    if let Some(folder) = context.text("repo_fixture") {
        let folder = folder.trim_end_matches('/');
        match reader.lookup.find(folder) {
            Some(place) => {
                for name in reader.lookup.list(folder, place) {
                    let name = name.trim_end_matches('/');
                    reader.file_of(case, name, Some(&format!("{folder}/{name}")), None);
                }
            }
            None => reader.file_of(case, folder, None, None),
        }
    }
    if let Some(git) =
        context.get("git").filter(|git| git.as_object().is_some_and(|it| !it.is_empty()))
    {
        refused = Some(format!("it needs a Git repository: {}", terminal(&git.to_string(), 100)));
    }
    if let Some(files) = context.get("files").and_then(Value::as_object) {
        for (path, content) in files {
            reader.file_of(case, path, None, content.as_str());
        }
    }
    refused
}

fn read_expect(expect: &Fields<'_>, case: &mut EvalCase, reader: &mut CaseReader<'_>) {
    let keys = ["must_contain", "must_not_contain", "files_exist", "files_not_exist"];
    case.demands.extend(not_texts(expect, &keys));
    // `expect` has no list of alternatives, which `""` stands for.
    for (text, check) in texts_demanded(expect, ["must_contain", "", "must_not_contain"]) {
        case.demands.push(CaseDemand::typed(&text, &check));
    }
    for path in expect.texts("files_exist") {
        let check = json!({ "file_exists": path });
        case.demands.push(CaseDemand::typed(&format!("file exists: {path}"), &check));
    }
    for path in expect.texts("files_not_exist") {
        let check = json!({"not": { "file_exists": path }});
        case.demands.push(CaseDemand::typed(&format!("file does not exist: {path}"), &check));
    }
    for item in expect.list("file_contains").into_iter().flatten() {
        let (path, text) = (item.text("path"), item.text("content"));
        let check = json!({"file_contains": {"path": path, "text": text}});
        let words = format!("file contains: {}", path.unwrap_or_default());
        case.demands.push(CaseDemand::typed(&words, &check));
    }
    exit_code(expect, case);
    if let Some(path) = expect.text("golden_file") {
        let text = text_of(path, reader.lookup).and_then(Result::ok);
        case.demands.push(match text {
            Some(text) => CaseDemand::typed(&format!("equals {path}"), &json!({ "equals": text })),
            None => CaseDemand::unknown(&format!("equals {path}"), "the file cannot be read"),
        });
    }
}

/// The exit code of an agent is not observed as such: 0 stands for an end without an error.
fn exit_code(fields: &Fields<'_>, case: &mut EvalCase) {
    match fields.get("exit_code").and_then(Value::as_i64) {
        Some(0) => {
            let check = json!({"not": {"status": "ERROR"}});
            case.demands.push(CaseDemand::typed("exit code 0", &check));
        }
        Some(code) => {
            let why = "the exit code of an agent is not observed";
            case.demands.push(CaseDemand::unknown(&format!("exit code {code}"), why));
        }
        None => {}
    }
}

fn read_judge(judge: &Fields<'_>, case: &mut EvalCase) {
    judge.describes(&["model", "context"]);
    match judge.text("type").unwrap_or_default() {
        "rule_based" => {
            for (key, wanted) in [("success", true), ("failure", false)] {
                for rule in judge.list(key).into_iter().flatten() {
                    read_rule(&rule, wanted, case);
                }
            }
        }
        "agent_judge" => {
            case.demands.extend(not_texts(judge, &["criteria"]));
            for sentence in judge.texts("criteria") {
                case.demands.push(CaseDemand::sentence_of(&case.prompt, sentence));
            }
        }
        "script" => {
            let script = judge.text("script_path").unwrap_or_default();
            let why = "judges by script read a transcript that only skill-up writes";
            case.demands.push(CaseDemand::unknown(&format!("script: {script}"), why));
            judge.describes(&["timeout_seconds"]);
        }
        other => {
            let why = format!("the judge `{}` is not known", terminal(other, 60));
            case.demands.push(CaseDemand::unknown("judge", &why));
        }
    }
}

fn read_rule(rule: &Fields<'_>, wanted: bool, case: &mut EvalCase) {
    let mut checks: Vec<Value> = Vec::new();
    if let Some(texts) = rule.fields("output_contains") {
        case.demands.extend(not_texts(&texts, &["all", "any", "not"]));
        let demands = texts_demanded(&texts, ["all", "any", "not"]);
        checks.extend(demands.into_iter().map(|(_, check)| check));
    }
    if let Some(patterns) = rule.fields("output_matches") {
        case.demands.extend(not_texts(&patterns, &["all", "any", "not"]));
        checks.extend(patterns_demanded(&patterns));
    }
    if let Some(call) = rule.fields("tool_called") {
        let (name, arguments) = (call.text("name"), call.get("args"));
        checks.push(match arguments {
            Some(arguments) => json!({"tool_called": {"name": name, "arguments": arguments}}),
            None => json!({ "tool_called": name }),
        });
    }
    checks.extend(rule.texts("files_exist").iter().map(|path| json!({ "file_exists": path })));
    case.demands.extend(not_texts(rule, &["files_exist", "files_not_exist"]));
    let absent = rule.texts("files_not_exist");
    checks.extend(absent.iter().map(|path| json!({"not": { "file_exists": path }})));
    if wanted {
        exit_code(rule, case);
    }
    let known = [
        "output_contains",
        "output_matches",
        "tool_called",
        "files_exist",
        "files_not_exist",
        "exit_code",
    ];
    let others = [
        "turn_response_contains",
        "turn_response_not_contains",
        "tool_called_in_turn",
        "tool_not_called_in_turn",
    ];
    let words = Value::Object(rule.members().clone()).to_string();
    if let Some((key, _)) = rule.first(&others) {
        let why = format!("`{key}` is about one turn; only the whole is checked");
        case.demands.push(CaseDemand::unknown(&words, &why));
    }
    // A condition that is not known may be the whole of a rule.
    let unknown: Vec<&str> = rule
        .members()
        .iter()
        .filter(|(key, value)| {
            let key = key.as_str();
            let is_read = match key {
                "exit_code" => wanted && value.is_i64(),
                "output_contains" | "output_matches" | "tool_called" => value.is_object(),
                _ => known.contains(&key) || others.contains(&key),
            };
            !is_read && !value.is_null()
        })
        .map(|(key, _)| key.as_str())
        .collect();
    if let Some(key) = unknown.first() {
        rule.describes(&unknown);
        let why = format!("the condition `{}` is not known in this form", terminal(key, 60));
        return case.demands.push(CaseDemand::unknown(&words, &why));
    }
    if checks.is_empty() {
        return;
    }
    let check = json!({ "all": checks });
    // A failure rule fails the case if all of its conditions hold.
    let check = if wanted { check } else { json!({ "not": check }) };
    case.demands.push(CaseDemand::typed(&words, &check));
}
