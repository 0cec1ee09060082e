//! Reports for CI: `--report`, the `reports` section and `selftest report`. No model server anywhere:
//! checks decide.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::model_server::{ModelServer, verdict};
use crate::report::Report;
use crate::require::{self, Part};
use crate::workspace::{CLEAR, NOBODY, OPENAI, Workspace, config};

const SUITE: &str = "config/suites/ci.yaml";

/// Says how many lines it was asked for, and what it can read of an earlier report.
const AGENT: &str = r#"
import json, sys
prompt = json.loads(sys.stdin.readline())["prompt"]
output = "one\ntwo"
if "three" in prompt:
    output += "\nthree"
if "report" in prompt:
    try:
        output = open("ci.md").read()
    except OSError:
        output = "there is none"
answer = {"type": "result", "status": "COMPLETE", "output": output, "tokens": 120}
print(json.dumps(answer), flush=True)
"#;

const CASES: &str = "version: 1
cases:
  - scenario: { id: good, description: d, expected_status: COMPLETE }
    prompt: Say three lines.
    checks: [{ lines: 3 }]
  - scenario:
      id: bad
      description: d
      expected_status: COMPLETE
    prompt: \"Say <b>two</b> lines: 100%, ::error::no\"
    checks: [{ lines: 3 }]
  - scenario: { id: unknown, description: d, expected_status: COMPLETE }
    prompt: Read something.
    checks: [{ tool_called: Read }]
  - scenario: { id: secret, description: d, expected_status: COMPLETE }
    prompt: Show me the report.
    checks: [{ contains: there is none }]
";

fn python() -> String {
    let python = std::process::Command::new("sh").args(["-c", "command -v python3"]).output();
    String::from_utf8(python.unwrap().stdout).unwrap().trim().to_owned()
}

/// A project whose agent passes two cases of four, fails one, and leaves one undecided.
pub(crate) fn workspace(more_config: &str) -> Workspace {
    let sut =
        format!("sut: {{ command: {{ run: [\"{}\", agent.py], work_folder: copy }} }}\n", python());
    Workspace::new()
        .config(format!("version: 1\n{sut}{more_config}"))
        .file("agent.py", AGENT)
        .file(SUITE, CASES)
        .env("OLLAMA_HOST", NOBODY)
        .args(["--suite", SUITE])
}

/// The same run with further arguments.
fn with(workspace: &Workspace, more: &[&str]) -> Workspace {
    workspace.clone().args(["--suite", SUITE].iter().chain(more))
}

#[test]
fn reports_are_written_beside_those_of_every_run() {
    let workspace = workspace("");
    let args = ["--report", "md=out/ci.md,json=out/ci.json", "--format=json"];
    let run = with(&workspace, &args).run().exit(1);
    let own = run.report();
    let json = fs::read_to_string(workspace.path("out/ci.json")).unwrap();
    assert_eq!(json, run.stdout, "the copy is the report");
    let markdown = fs::read_to_string(workspace.path("out/ci.md")).unwrap();
    let link = |prefix: &str| format!("({prefix}reports/selftest/{}.json)", own.run_id());
    assert_eq!(markdown, run.markdown().replace(&link("../../../"), &link("../")));
    assert_eq!(fs::read_dir(workspace.path("out")).unwrap().count(), 2, "nothing else is left");

    // The same again, from the report that was kept.
    let report = ["report", "write", "latest", "--report=md=again.md", "--report=json=again.json"];
    let told = workspace.clone().args(report).run().exit(0);
    assert_eq!((told.stdout.as_str(), told.stderr.as_str()), ("", ""));
    assert_eq!(fs::read_to_string(workspace.path("again.json")).unwrap(), json);
    let again = fs::read_to_string(workspace.path("again.md")).unwrap();
    assert_eq!(again, markdown.replace(&link("../"), &link("")));
}

#[test]
fn the_configuration_names_reports_and_flags_win() {
    let workspace = workspace("reports: { md: ci.md, json: ci.json }\n");
    let _ = with(&workspace, &["--report=json=flag.json"]).run().exit(1);
    let is_there = |path| workspace.path(path).is_file();
    assert!(is_there("ci.md") && is_there("flag.json") && !is_there("ci.json"));
    let told = workspace.clone().args(["report", "write", "latest"]).run().exit(0);
    assert_eq!(told.stderr, "");
    assert!(is_there("ci.json"));
    fs::remove_file(workspace.path("ci.md")).unwrap();
    let only = ["report", "write", "latest", "--report=json=x.json"];
    let _ = workspace.clone().args(only).run().exit(0);
    assert!(!is_there("ci.md"), "what is named is all that is written");
}

#[test]
fn what_is_tested_cannot_read_the_reports_of_an_earlier_run() {
    let workspace = workspace("reports: { md: ci.md, json: ci.json }\n");
    for _ in 0..2 {
        let _ = workspace.run().exit(1);
        let report = Report::parse(&fs::read_to_string(workspace.path("ci.json")).unwrap());
        assert_eq!(report.case_of("secret").status(), "passed");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_before_the_run() {
    for (report, exit, words) in [
        ("pdf=x", 2, "unknown report `pdf`, expected one of: "),
        ("md", 2, "`md` needs a path: md=PATH"),
        ("md=a,md=b", 2, "error: --report names `md` twice"),
        ("md=config", 5, "error: cannot write the md report to config: it is a folder"),
        ("md=agent.py/x/y.md", 5, "error: cannot write the md report to agent.py/x/y.md: "),
        ("md=a/b,json=a/./b", 5, "error: reports md and json would write to the same file: a/"),
    ] {
        let workspace = workspace("");
        let run = with(&workspace, &["--report", report]).run().exit(exit);
        assert!(run.stderr.contains(words), "{report}: {}", run.stderr);
        assert_eq!(run.stdout, "");
        let kept = fs::read_dir(workspace.path("reports/selftest"));
        assert_eq!(kept.map_or(0, Iterator::count), 0, "{report}: nothing has run");
    }
}

#[test]
fn an_earlier_run_needs_a_report_to_write() {
    let workspace = workspace("");
    let _ = workspace.run().exit(1);
    let run = workspace.clone().args(["report", "write", "latest"]).run().exit(2);
    assert_eq!(
        run.stderr,
        "error: nothing to write: neither --report nor `reports` names a report\n\
         hint: for example --report md=selftest.md\n"
    );
    let args = ["report", "write", "selftest-19990101-0000-none", "--report=md=x.md"];
    let run = workspace.clone().args(args).run().exit(2);
    assert!(run.stderr.contains("there is no run `selftest-19990101-0000-none`"), "{}", run.stderr);
    assert!(!workspace.path("x.md").exists());
}

#[test]
fn github_gets_annotations_at_the_lines_of_the_cases_and_a_summary() {
    let workspace = workspace("");
    let summary = workspace.path("summary.md");
    fs::write(&summary, "An earlier step.\n").unwrap();
    let github = with(&workspace, &["--report=github", "--format=json"])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", &summary)
        .env("GITHUB_WORKSPACE", workspace.project());
    let run = github.run().exit(1);
    serde_json::from_str::<Value>(&run.stdout).unwrap();
    let annotations: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("::")).collect();
    let start = "file=config/suites/ci.yaml,line=";
    assert_eq!(annotations.len(), 2, "{annotations:?}");
    let error = format!("::error {start}7,title=FAIL bad::check “");
    assert!(annotations[0].starts_with(&error), "{annotations:?}");
    let warning = format!("::warning {start}12,title=UNSCORED unknown::undecided: ");
    assert!(annotations[1].starts_with(&warning), "{annotations:?}");
    let text = fs::read_to_string(&summary).unwrap();
    assert!(text.starts_with("An earlier step.\n## Selftest: failed (2/3 (67%))\n"), "{text}");
    assert!(text.contains("Say <b>two</b> lines: 100%, ::error::no\n```\n"), "{text}");

    // Those of an earlier run, where the summary cannot be written.
    let args = ["report", "write", "latest", "--report=github"];
    let env = [("GITHUB_ACTIONS", "true"), ("GITHUB_STEP_SUMMARY", "/proc/nowhere/summary.md")];
    let again = env.into_iter().fold(workspace.clone(), |it, (name, value)| it.env(name, value));
    let run = again.args(args).run().exit(5);
    assert!(run.stderr.contains(&error), "{}", run.stderr);
    assert!(run.stderr.contains("error: cannot write the step summary to /proc/nowhere/"));
}

#[test]
fn outside_of_github_there_are_no_annotations() {
    let run = with(&workspace(""), &["--report=github"]).run().exit(1);
    let note = "note: no annotations: GITHUB_ACTIONS is not `true`, so this is not GitHub\n";
    assert!(run.stderr.contains(note), "{}", run.stderr);
    assert!(!run.stderr.contains("::"), "{}", run.stderr);
}

/// Python of the tests' virtual environment with the libraries that read test reports.
fn test_report_readers() -> Option<std::path::PathBuf> {
    let find = || {
        let venv = std::path::PathBuf::from(std::env::var_os("SELFTEST_TEST_VENV")?);
        let python = venv.join("bin/python");
        let mut import = std::process::Command::new(&python);
        let status = import.args(["-c", "import junitparser, lxml"]).status().ok()?;
        status.success().then_some(python)
    };
    let why = "no $SELFTEST_TEST_VENV/bin/python that can `import junitparser, lxml`; \
               scripts/test installs them";
    require::part(Part::Venv, find().ok_or(why))
}

#[test]
fn other_peoples_programs_read_the_junit_report() {
    let Some(python) = test_report_readers() else { return };
    let workspace = workspace("");
    let _ = with(&workspace, &["--repeats=2", "--report=junit=junit.xml"]).run().exit(1);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    let output = std::process::Command::new(python)
        .arg(folder.join("read_junit.py"))
        .arg(workspace.path("junit.xml"))
        .arg(folder.join("junit.xsd"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(read["faults"], json!([]), "by the schema");
    let totals = ["tests", "failures", "errors", "skipped"].map(|key| read[key].as_u64().unwrap());
    assert_eq!(totals, [8, 2, 2, 0]);
    let cases = read["cases"].as_array().unwrap();
    let results: Vec<[&str; 2]> = cases
        .iter()
        .map(|case| ["name", "result"].map(|key| case[key].as_str().unwrap()))
        .collect();
    let of_trial = |trial: u32| {
        let all =
            [("good", "passed"), ("bad", "Failure"), ("unknown", "Error"), ("secret", "passed")];
        all.map(|(id, result)| (format!("{id} #{trial}"), result))
    };
    for (name, result) in [1, 2].into_iter().flat_map(of_trial) {
        assert!(results.contains(&[&name, result]), "{name}: {result} in {results:?}");
    }
    let bad = cases.iter().find(|case| case["name"] == "bad #1").unwrap();
    assert!(bad["message"].as_str().unwrap().starts_with("check “"), "{bad}");
    assert!(bad["text"].as_str().unwrap().contains("Say <b>two</b> lines: 100%"), "{bad}");
    assert_eq!((&bad["file"], &bad["line"]), (&json!(SUITE), &json!("7")));
    assert_eq!(read["properties"]["judge"], "none");
    assert!(read["properties"]["seed"].as_str().unwrap().parse::<u64>().is_ok(), "{read}");
}

#[test]
fn the_common_test_report_format_has_every_case() {
    let workspace = workspace("");
    let _ = with(&workspace, &["--report=ctrf=ctrf.json"]).run().exit(1);
    let text = fs::read_to_string(workspace.path("ctrf.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let tests = report["results"]["tests"].as_array().unwrap();
    let results: Vec<String> =
        tests.iter().map(|test| format!("{} {}", test["name"], test["status"])).collect();
    let expected = ["good passed", "bad failed", "unknown other", "secret passed"];
    assert_eq!(results.join("\n").replace('"', ""), expected.join("\n"));
    assert_eq!((&tests[1]["filePath"], &tests[1]["line"]), (&json!(SUITE), &json!(7)));
}

/// An agent that says that it read the suite.
const CURIOUS: &str = r#"
import json, sys
prompt = json.loads(sys.stdin.readline())["prompt"]
calls = [{"name": "Read", "arguments": {"file_path": "config/suites/ci.yaml"}}] if "two" in prompt else []
answer = {"type": "result", "status": "COMPLETE", "output": "one\ntwo", "tool_calls": calls}
print(json.dumps(answer), flush=True)
"#;

/// An agent that tries what it is not granted.
const BOLD: &str = r#"
import json, sys
prompt = json.loads(sys.stdin.readline())["prompt"]
if "two" in prompt:
    files = [("PROJECT/config/suites/ci.yaml", "r"), ("PROJECT/.env", "r"), ("PROJECT/new", "w")]
    for path, mode in files:
        try:
            open(path, mode)
        except OSError:
            pass
print(json.dumps({"type": "result", "status": "COMPLETE", "output": "one\ntwo"}), flush=True)
"#;

/// The harness's findings about isolation, as SARIF.
fn sarif(workspace: &Workspace) -> Value {
    let _ = with(workspace, &["--report=sarif=out.sarif"]).run().exit(1);
    serde_json::from_str(&fs::read_to_string(workspace.path("out.sarif")).unwrap()).unwrap()
}

#[test]
fn sarif_has_what_an_agent_did_beside_answering_and_nothing_else() {
    let log = sarif(&workspace(""));
    assert_eq!(log["runs"][0]["results"], json!([]), "failed cases are no findings");
    let log = sarif(&workspace("").file("agent.py", CURIOUS));
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "{log:#}");
    assert_eq!(results[0]["ruleId"], "selftest/answer-key-read");
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], SUITE);
    assert_eq!(place["region"]["startLine"], 7);
    let message = results[0]["message"]["text"].as_str().unwrap();
    assert_eq!(
        message,
        "case bad: called Read with config/suites/ci.yaml, which holds expected answers"
    );
}

#[test]
fn sarif_has_what_the_sandbox_refused() {
    if !crate::hostile::has_namespaces() {
        return;
    }
    let workspace = workspace("").file(".env", "TOKEN=1\n");
    let agent = BOLD.replace("PROJECT", &workspace.path("").display().to_string());
    let log = sarif(&workspace.file("agent.py", &agent));
    let results = log["runs"][0]["results"].as_array().unwrap();
    let found: Vec<String> =
        results.iter().map(|it| format!("{} {}", it["ruleId"], it["level"])).collect();
    let expected = [
        "\"selftest/answer-key-read\" \"error\"",
        "\"selftest/secret-read\" \"error\"",
        "\"selftest/refused\" \"warning\"",
    ];
    assert_eq!(found, expected, "{log:#}");
}

#[test]
fn sarif_keeps_to_the_schema_of_its_standard() {
    let path = "@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json";
    let Some(schema) = require::node_module(path) else { return };
    // A bracket alone, which JavaScript takes for itself in a pattern and Rust does not.
    let text = fs::read_to_string(schema).unwrap().replace("{2}]?$", "{2}\\\\]?$");
    let schema: Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for workspace in [workspace(""), workspace("").file("agent.py", CURIOUS)] {
        let log = sarif(&workspace);
        let faults: Vec<String> =
            validator.iter_errors(&log).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?} in {log:#}");
        for pointer in ["/version", "/runs/0/tool/driver/name"] {
            let mut wrong = log.clone();
            *wrong.pointer_mut(pointer).unwrap() = json!(1);
            assert!(!validator.is_valid(&wrong), "{pointer}");
        }
    }
}

#[test]
fn other_runs_write_reports_too_and_an_experiment_says_why_not() {
    let server = ModelServer::script().judge(|call| verdict(call, 0.9)).start();
    let workspace = Workspace::simple(&server);
    let _ = workspace.run().exit(0);
    let args = |args: &[&str]| workspace.clone().args(args).run();
    let _ = args(&["judge", "rejudge", "latest", "--report=junit=judged.xml,md=judged.md"]).exit(0);
    let is_there = |path: &str| workspace.path(path).is_file();
    assert!(is_there("judged.xml") && is_there("judged.md"));
    let text = fs::read_to_string(workspace.path("judged.md")).unwrap();
    assert!(text.contains("## Rejudged"), "{text}");
    let _ = args(&["judge", "rejudge", "latest", "--report=md=a,md=b"])
        .exit(2)
        .one_error(&["`md` twice"]);
    let _ = args(&["judge", "rejudge", "latest", "--report=md=config"])
        .exit(5)
        .one_error(&["it is a folder"]);
    let _ = args(&["suite", "freeze", "latest", "--output=suite.yaml"]).exit(0);
    let _ = args(&["compare", "--replay", "latest", "--report=ctrf=again.json"]).exit(0);
    assert!(is_there("again.json"));
    let _ =
        args(&["compare", "--self", "--suite=suite.yaml", "--repeats=1", "--report=junit=aa.xml"])
            .exit(0);
    let text = fs::read_to_string(workspace.path("aa.xml")).unwrap();
    assert!(text.contains("name=\"clear #2\""), "both halves: {text}");
    let run = args(&["compare", "--self", "latest", "--report=junit=b.xml"]).exit(2);
    assert!(run.stderr.contains("--suite"), "{}", run.stderr);
    let experiment =
        ["improve", "skills", "experiment", "mine", "--suite=suite.yaml", "--report=md=a.md"];
    let run = args(&experiment).exit(2).one_error(&["--report names one file", "is two runs"]);
    let _ = run.stderr_contains(
        "hint: write reports of either arm afterwards: `selftest report write RUN",
    );
}

#[test]
fn tokens_time_and_money_are_in_every_report() {
    let server = ModelServer::script().judge(|call| verdict(call, 0.9)).start();
    let prices = format!(
        "prices: {{ currency: EUR, models: {{ \"{OPENAI}\": {{ input: 1000, output: 2000 }} }} }}\n"
    );
    let workspace =
        Workspace::new().config(format!("{}{prices}", config(OPENAI, CLEAR))).server(&server);
    let names = "junit=a.xml,html=a.html,md=a.md,ctrf=a.json";
    let run = workspace.clone().args(["--report", names]).run().exit(0);
    let report = run.report();
    let usage = &report.0["usage"];
    assert_eq!(usage["prices"]["currency"], "EUR");
    let mut sum = 0.0;
    for role in ["generator", "sut", "judge"] {
        let role = &usage[role];
        let tokens = |key: &str| role[key].as_f64().unwrap();
        let money = tokens("prompt_tokens") / 1e3 + tokens("completion_tokens") * 2.0 / 1e3;
        assert!((role["cost"].as_f64().unwrap() - money).abs() < 1e-9, "{usage}");
        assert!(
            role["calls"].as_u64() >= Some(1) && role.get("unpriced_calls").is_none(),
            "{usage}"
        );
        sum += money;
    }
    assert!((usage["total"]["cost"].as_f64().unwrap() - sum).abs() < 1e-9, "{usage}");
    assert_eq!(report.case().0["usage"]["total"]["cost"], usage["total"]["cost"]);
    // Of the sum as the program has it: one in another order may round another way.
    let words = format!("{:.2} EUR", usage["total"]["cost"].as_f64().unwrap());
    assert!(run.stdout.contains(&format!(" of model time, {words}\n")), "{}", run.stdout);
    assert!(run.markdown().contains(&format!(" {words} |\n")), "{}", run.markdown());
    for (file, text) in [
        ("a.xml", format!("<property name=\"cost\" value=\"{words}\"/>")),
        ("a.html", format!("<td class=\"n\">{words}</td>")),
        ("a.md", format!(" {words} |\n")),
        ("a.json", "\"currency\": \"EUR\"".to_owned()),
    ] {
        let report = fs::read_to_string(workspace.path(file)).unwrap();
        assert!(report.contains(&text), "{text} in {report}");
    }
}

#[test]
fn without_a_price_there_is_no_money() {
    let server = ModelServer::script().judge(|call| verdict(call, 0.9)).start();
    let run = Workspace::simple(&server).run().exit(0);
    let usage = &run.report().0["usage"];
    assert!(usage["total"]["prompt_tokens"].as_u64() > Some(0), "{usage}");
    assert!(usage["total"].get("cost").is_none() && usage.get("prices").is_none(), "{usage}");
    assert!(
        run.stdout.contains(" of model time\n") && !run.stdout.contains("USD"),
        "{}",
        run.stdout
    );
}

#[test]
fn prices_that_are_no_prices_are_refused() {
    for (prices, words) in [
        ("models: { a/b: { input: -1, output: 1 } }", "prices.models.a/b.input"),
        ("models: { a/b: { input: 1 } }", "output"),
        ("models: { a/b: { input: .nan, output: 1 } }", "input"),
        ("currency: \"\"", "prices.currency"),
        ("model: {}", "model"),
    ] {
        let text = format!("version: 1\nprices: {{ {prices} }}\nscenarios:\n{CLEAR}");
        let run = Workspace::new().config(text).args(["config", "check"]).run().exit(2);
        assert!(run.stderr.contains(words), "{prices}: {}", run.stderr);
    }
}

/// The fenced blocks of a language in the section of docs/gate-in-ci.md about reports.
fn blocks(language: &str) -> Vec<String> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/gate-in-ci.md"))
        .unwrap();
    let (_, section) = page.split_once("\n## Reports for CI\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let begin = format!("```{language}\n");
    let rest = section.split(&begin).skip(1);
    rest.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_page_about_reports_tells_the_truth() {
    let workspace = workspace("");
    for block in blocks("bash") {
        let (command, exit) = block.trim().split_once("  # exit ").unwrap();
        let arguments = command.strip_prefix("selftest ").unwrap().split(' ');
        let _ = workspace.clone().args(arguments).run().exit(exit.parse().unwrap());
    }
    for file in ["junit.xml", "report.html", "ctrf.json", "again.html"] {
        assert!(workspace.path("out").join(file).is_file(), "{file}");
    }
    let of_config = |block: &&String| !block.starts_with("jobs:");
    let config: Vec<String> = blocks("yaml").iter().filter(of_config).cloned().collect();
    let config = format!("version: 1\n{}scenarios:\n{CLEAR}", config.concat());
    let _ = Workspace::new().config(config).args(["config", "check"]).run().exit(0);
}

/// Answers with everything that a CI system might obey, and with characters that XML does not have.
const COMMANDING_AGENT: &str = r#"
import json, sys
text = ("::stop-commands::pwned\n  ::error file=x::forged\n##[error]forged ##vso[task.complete]x\n"
        "\r::add-mask::a\r\n#\u200d#[group]x :\u2060:notice::y \ufffe\uffff\U0001ffff\u0000 "
        + " ".join(["padding"] * 40 + ["::warning::wrapped"] * 40))
sys.stdin.readline()
print(text, file=sys.stderr, flush=True)
print(json.dumps({"type": "result", "status": "COMPLETE", "output": text}), flush=True)
"#;

/// Lines that the runner of GitHub Actions or the agent of Azure Pipelines would obey, except the
/// harness's own annotations.
fn obeyed(log: &str) -> Vec<&str> {
    let is_obeyed = |line: &&str| {
        let seen: String =
            line.chars().filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}')).collect();
        let is_own = ["::error ", "::warning "].iter().any(|own| {
            line.strip_prefix(own)
                .is_some_and(|rest| rest.starts_with("file=config/suites/ci.yaml,"))
        });
        !is_own
            && (seen.trim_start().starts_with("::")
                || seen.contains("##[")
                || seen.contains("##vso["))
    };
    log.split(['\n', '\r']).filter(is_obeyed).collect()
}

#[test]
fn a_program_commands_neither_the_log_nor_the_readers_of_reports() {
    let workspace = workspace("");
    let workspace = workspace.file("agent.py", COMMANDING_AGENT);
    let summary = workspace.path("summary.md");
    let github = |args: &[&str]| {
        let ran = workspace.clone().args(args.iter().copied());
        ran.env("GITHUB_ACTIONS", "true")
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("GITHUB_WORKSPACE", workspace.project())
    };
    let commands: [&[&str]; 7] = [
        &["run", "--ci", "--suite", SUITE],
        &["run", "--suite", SUITE, "-vv", "--report=junit=junit.xml"],
        &["run", "--suite", SUITE, "--format=json"],
        &["report", "show", "latest"],
        &["report", "list"],
        &["compare", "latest", "latest"],
        &["::stop-commands::x"],
    ];
    for command in commands {
        let run = github(command).run();
        assert!(!run.stderr.contains("panicked"), "{command:?}: {}", run.stderr);
        for log in [&run.stdout, &run.stderr] {
            assert_eq!(obeyed(log), [] as [&str; 0], "{command:?}: {log}");
        }
    }
    let json = github(commands[2]).run();
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(report.to_string().contains("##[error]forged"), "the value is the same");
    let xml = fs::read_to_string(workspace.path("junit.xml")).unwrap();
    let is_xml = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(xml.chars().all(is_xml) && xml.contains("U+FFFE"), "{xml}");
}
