//! `eval.yaml` of dotnet/skills, in both forms: `scenarios` with assertions, and `stimuli` with
//! graders, which is the form of Vally. Texts and patterns of the answer ignore case there.

use serde_json::{Value, json};

use super::{DialectEntry, SuiteSource};
use crate::evals::case::CaseReader;
use crate::evals::dialect::EvalsDialect;
use crate::evals::source::Fields;
use crate::evals::{CaseDemand, EvalCase, FileLocation, RoutingCase, ShellLine, ShellUse};
use crate::yaml::YamlSchema;
use selftest_text::escape::terminal;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::Dotnet,
    title: "dotnet/skills, Vally",
    files: "`eval.yaml`: `scenarios` with `assertions`, or `stimuli` with `graders`",
    yaml: Some(YamlSchema::V1_2),
    carries: "prompts, files, set-up, assertions, graders, rubrics, expected and forbidden tools, \
              activation",
    refuses: "further skills or agents; graders by plugins, by comparison or of standard error",
    is_file_name: |name| {
        name == "eval.yaml"
            || name == "eval.yml"
            || name.ends_with(".eval.yaml")
            || (name.starts_with("eval.") && name.ends_with(".yaml"))
    },
    marks: &[],
    recognises: |source| {
        let document = source.text.value();
        ["scenarios", "stimuli"].iter().any(|key| {
            let items = document.get(*key).and_then(Value::as_array);
            items.is_some_and(|items| {
                items.iter().any(|one| one.get("prompt").or_else(|| one.get("input")).is_some())
            })
        })
    },
    read,
};

fn read(source: &SuiteSource<'_>, reader: &mut CaseReader<'_>) {
    let Some(root) = source.text.root() else { return };
    root.describes(&["name", "description", "type", "version"]);
    if let Some(skill) = root.text("skill") {
        let name = skill.trim_end_matches('/').rsplit('/').next().unwrap_or(skill);
        reader.file.skill = Some(name.to_owned());
    }
    let required = root.texts("required_skills");
    if let ([only], None) = (required.as_slice(), &reader.file.skill) {
        reader.file.skill = Some((*only).to_owned());
    }
    // The harness puts the skill under test before the agent, and no other one.
    let missing = (required.len() > 1).then(|| {
        let others = terminal(&required.join(", "), 200);
        format!("it needs more than the skill under test: required_skills: {others}")
    });
    let defaults = root.fields("defaults").or_else(|| root.fields("config"));
    let timeout = defaults.as_ref().and_then(|defaults| seconds(defaults.get("timeout")?));
    for (key, form) in [("scenarios", Form::Scenario), ("stimuli", Form::Stimulus)] {
        for (item, number) in root.list(key).into_iter().zip(1..) {
            match (item, &missing) {
                (Some(item), Some(why)) => {
                    let name = item.first(&["name", "id"]).and_then(|(_, name)| name.as_str());
                    let id = reader.unique(name.unwrap_or(&format!("case-{number}")));
                    item.reads_all();
                    reader.refuse(&id, why);
                }
                (Some(item), None) => read_case(&item, form, timeout, &root, number, reader),
                (None, _) => reader.file.refused.push(format!("case {number} is not a mapping")),
            }
        }
    }
}

/// The two forms of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Scenario,
    Stimulus,
}

/// Returns the seconds of `120`, `90s`, `5m` or `1h`.
fn seconds(value: &Value) -> Option<f64> {
    if let Some(number) = value.as_f64() {
        return Some(number);
    }
    let text = value.as_str()?.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * unit)
}

fn read_case(
    item: &Fields<'_>,
    form: Form,
    timeout: Option<f64>,
    root: &Fields<'_>,
    number: usize,
    reader: &mut CaseReader<'_>,
) {
    let name = item.first(&["name", "id"]).and_then(|(_, name)| name.as_str());
    let wanted = name.map_or_else(|| format!("case-{number}"), ToOwned::to_owned);
    let prompt = item.first(&["prompt", "input"]).and_then(|(_, prompt)| prompt.as_str());
    item.describes(&["tags", "description"]);
    let mut case = EvalCase {
        name: name.map(ToOwned::to_owned),
        prompt: prompt.unwrap_or_default().to_owned(),
        timeout_seconds: item.get("timeout").and_then(seconds).or(timeout),
        ..EvalCase::default()
    };
    let mut refused = prompt.is_none().then(|| "it has no prompt".to_owned());
    let key = if form == Form::Scenario { "setup" } else { "environment" };
    // The set-up of the file comes first, and that of the case may add to it.
    if let Some(setting) = root.fields(key) {
        refused = read_setting(&setting, &mut case, reader).or(refused);
    }
    if let Some(setting) = item.fields(key) {
        refused = read_setting(&setting, &mut case, reader).or(refused);
    }
    for key in ["assertions", "graders"] {
        for grader in item.list(key) {
            match grader {
                Some(grader) => read_grader(&grader, &mut case),
                None => case.demands.push(CaseDemand::unknown(key, "it is not a mapping")),
            }
        }
    }
    for sentence in item.texts("rubric") {
        case.demands.push(CaseDemand::sentence_of(&case.prompt, sentence));
    }
    let limits = item.fields("constraints");
    let limits = limits.as_ref().unwrap_or(item);
    if let Some(limit) = limits.get("max_duration").and_then(seconds) {
        case.timeout_seconds = Some(limit);
    }
    for tool in limits.texts("expect_tools") {
        let check = json!({ "tool_called": tool });
        case.demands.push(CaseDemand::typed(&format!("uses the tool {tool}"), &check));
    }
    for tool in limits.texts("reject_tools") {
        let check = json!({ "tool_not_called": tool });
        case.demands.push(CaseDemand::typed(&format!("does not use the tool {tool}"), &check));
    }
    for skill in limits.texts("expect_skills") {
        let check = json!({ "skill_loaded": skill });
        case.demands.push(CaseDemand::typed(&format!("loads the skill {skill}"), &check));
    }
    for skill in limits.texts("reject_skills") {
        let check = json!({"not": { "skill_loaded": skill }});
        case.demands.push(CaseDemand::typed(&format!("does not load the skill {skill}"), &check));
    }
    if let Some(most) = limits.get("max_tokens").and_then(Value::as_u64) {
        let check = json!({"tokens": {"max": most}});
        case.demands.push(CaseDemand::typed(&format!("at most {most} tokens"), &check));
    }
    // Scenarios count it as an assertion; for stimuli it is a limit, which is named as not carried
    // over.
    if form == Form::Scenario
        && let Some(most) = item.get("max_turns")
    {
        let why = "turns of the model are not observed";
        case.demands.push(CaseDemand::unknown(&format!("at most {most} turns"), why));
    }
    let routing = item.get("expect_activation").and_then(Value::as_bool);
    case.id = reader.unique(&wanted);
    if let Some(why) = refused {
        reader.refuse(&case.id, &why);
        return;
    }
    let only_routing = case.demands.is_empty() && routing.is_some();
    reader.file.routing.extend(routing.map(|should_trigger| RoutingCase {
        query: case.prompt.clone(),
        should_trigger,
        skills: Vec::new(),
    }));
    if !only_routing {
        reader.add(case);
    }
}

/// Reads what is made ready before a case. Returns why the case cannot be run.
fn read_setting(
    setting: &Fields<'_>,
    case: &mut EvalCase,
    reader: &mut CaseReader<'_>,
) -> Option<String> {
    let mut refused = None;
    for file in setting.list("files").into_iter().flatten() {
        let to = file.first(&["path", "dest"]).and_then(|(_, path)| path.as_str());
        let from = file.first(&["source", "src"]).and_then(|(_, path)| path.as_str());
        let content = file.get("content").and_then(Value::as_str);
        match to.or(from) {
            Some(to) => reader.file_of(case, to, from, content),
            None => refused = Some("a file of its set-up has no path".to_owned()),
        }
    }
    if setting.get("copy_test_files").and_then(Value::as_bool) == Some(true) {
        for name in reader.lookup.list("", FileLocation::Evals) {
            let name = name.trim_end_matches('/');
            // The suite itself is an answer key.
            if !name.starts_with("eval.") && !name.ends_with(".eval.yaml") {
                reader.file_of(case, name, Some(name), None);
            }
        }
    }
    for line in setting.texts("commands") {
        case.shell.push(ShellLine::new(ShellUse::SetUp, "setup.commands", line));
    }
    let keys = ["skills", "agents", "additional_required_skills", "additional_required_agents"];
    for key in keys {
        let others = setting.texts(key);
        // The skill under test may be named too.
        if !(others.is_empty() || key == "skills" && others.len() == 1) {
            let others = terminal(&others.join(", "), 200);
            refused = Some(format!("it needs more than the skill under test: {key}: {others}"));
        }
    }
    refused
}

/// Reads an assertion of a scenario or a grader of a stimulus.
fn read_grader(grader: &Fields<'_>, case: &mut EvalCase) {
    let given = grader.text("type").unwrap_or_default();
    let kind = given.replace('-', "_");
    let config = grader.fields("config");
    let config = config.as_ref().unwrap_or(grader);
    grader.describes(&["name", "description"]);
    let weight = grader.get("weight");
    let value = ["value", "substring", "text", "content"];
    let value = || config.first(&value).and_then(|(_, value)| value.as_str());
    let pattern = || config.get("pattern").and_then(Value::as_str);
    let path =
        || config.get("path").and_then(Value::as_str).map(|path| path.trim_start_matches("./"));
    // A missing value is reported like an unknown type.
    let ignoring_case = |text: &str| format!("(?i){}", regex::escape(text));
    if path().is_some_and(|path| path.split('/').any(|part| part == "..")) {
        let words = format!("{given}: {}", path().unwrap_or_default());
        let why = "the path leaves the folder in which the agent works";
        case.demands.push(CaseDemand::unknown(&words, why));
        config.reads_all();
        return;
    }
    let check = match kind.as_str() {
        "output_contains" => value().map(|text| json!({"regex": ignoring_case(text)})),
        "output_not_contains" => value().map(|text| json!({"not_regex": ignoring_case(text)})),
        "output_matches" => pattern().map(|text| json!({"regex": format!("(?i){text}")})),
        "output_not_matches" => pattern().map(|text| json!({"not_regex": format!("(?i){text}")})),
        "file_exists" => path().map(|path| json!({"file_exists": path})),
        "file_not_exists" => path().map(|path| json!({"not": {"file_exists": path}})),
        "file_contains" => path()
            .zip(value())
            .map(|(path, text)| json!({"file_contains": {"path": path, "text": text}})),
        // Without the file it fails there too.
        "file_not_contains" => path().zip(value()).map(|(path, text)| {
            json!({"all": [{"file_exists": path},
                {"not": {"file_contains": {"path": path, "text": text}}}]})
        }),
        "file_matches" => path()
            .zip(pattern())
            .map(|(path, pattern)| json!({"file_matches": {"path": path, "pattern": pattern}})),
        "file_not_matches" => path().zip(pattern()).map(|(path, pattern)| {
            json!({"all": [{"file_exists": path},
                {"not": {"file_matches": {"path": path, "pattern": pattern}}}]})
        }),
        // The exit code of an agent is not observed as such: an answer without an error stands for
        // it.
        "exit_success" | "completed" => {
            Some(json!({"all": [{"regex": "\\S"}, {"not": {"status": "ERROR"}}]}))
        }
        "run_command" | "run_command_and_assert" => {
            return read_command(config, case);
        }
        // Stands for the rubric of the stimulus, or has a question of its own.
        "prompt" => {
            if let Some(sentence) = config.text("prompt") {
                case.demands.push(CaseDemand::sentence_of(&case.prompt, sentence));
            }
            return;
        }
        _ => {
            let why = format!("the type `{}` cannot be carried over", terminal(given, 60));
            case.demands.push(CaseDemand::unknown(given, &why));
            return;
        }
    };
    let shown = value().or_else(pattern).or_else(path).unwrap_or_default();
    let text = format!("{given}: {shown}");
    let Some(mut check) = check else {
        case.demands.push(CaseDemand::unknown(given, "it lacks a value"));
        return;
    };
    if let Some(weight) = weight {
        check["weight"] = weight.clone();
    }
    case.demands.push(CaseDemand::typed(&text, &check));
}

/// Reads a command that decides.
fn read_command(config: &Fields<'_>, case: &mut EvalCase) {
    let line = config.first(&["command", "command_to_run"]).and_then(|(_, line)| line.as_str());
    let Some(line) = line else {
        case.demands.push(CaseDemand::unknown("run-command", "it has no command"));
        return;
    };
    let arguments: Vec<&str> = config.texts("args");
    let of_text = config.text("command_arguments");
    let run: Vec<String> = match (arguments.as_slice(), of_text) {
        ([], None) if config.get("command_to_run").is_none() => {
            ["sh", "-c", line].map(ToOwned::to_owned).into()
        }
        ([], text) => {
            std::iter::once(line.to_owned()).chain(split(text.unwrap_or_default())).collect()
        }
        (all, _) => {
            std::iter::once(line).chain(all.iter().copied()).map(ToOwned::to_owned).collect()
        }
    };
    let mut check = json!({ "run": run });
    let Some(code) = config.get("expected_exit_code").map_or(Some(0), Value::as_u64) else {
        case.demands.push(CaseDemand::unknown(line, "its exit code is not a number"));
        return;
    };
    check["exit_code"] = json!(code);
    if let Some(limit) = config.first(&["timeout", "command_timeout"]) {
        check["timeout_seconds"] = json!(seconds(limit.1));
    } else {
        check["timeout_seconds"] = json!(120);
    }
    let contains = ["expected_std_output_contains", "stdout_contains"];
    let matches = ["expected_std_output_matches", "stdout_matches"];
    let contains = config.first(&contains).and_then(|(key, text)| Some((key, text.as_str()?)));
    let matches = config.first(&matches).and_then(|(key, text)| Some((key, text.as_str()?)));
    match (contains, matches) {
        (Some(_), Some(_)) => {
            let why = "it demands two things of the output";
            case.demands.push(CaseDemand::unknown(line, why));
            return;
        }
        // The older form ignores case.
        (Some(("stdout_contains", text)), None) => check["prints"] = json!(text),
        (Some((_, text)), None) => check["matches"] = json!(format!("(?i){}", regex::escape(text))),
        (None, Some(("stdout_matches", text))) => check["matches"] = json!(text),
        (None, Some((_, text))) => check["matches"] = json!(format!("(?i){text}")),
        (None, None) => {}
    }
    let unseen = [
        "expected_std_error_contains",
        "expected_std_error_matches",
        "stderr_contains",
        "stdout_not_matches",
        "sub_path",
    ];
    if let Some((key, _)) = config.first(&unseen) {
        let why = format!("`{key}` cannot be carried over");
        case.demands.push(CaseDemand::unknown(line, &why));
        return;
    }
    case.demands
        .push(CaseDemand::typed(&format!("run-command: {line}"), &json!({"command": check})));
    case.shell.push(ShellLine::new(ShellUse::Check, "run-command", line));
}

/// Splits arguments at white space outside of double quotes, as .NET does.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut open) = (Vec::new(), String::new(), false, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' if rest.peek() == Some(&'"') => word.extend(rest.next()),
            '"' => (quoted, open) = (!quoted, true),
            c if c.is_whitespace() && !quoted => {
                // `""` is an empty word.
                if open || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            c => word.push(c),
        }
    }
    if open || !word.is_empty() {
        words.push(word);
    }
    words
}
