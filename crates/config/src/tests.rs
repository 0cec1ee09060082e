//! Tests of the public interface: files, variables and flags in, settings or complete error messages
//! out; and of the commented configuration, which describes every key.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use strum::VariantArray as _;

use super::{
    Config, ConfigErrors, ConfigSources, DEFAULT_PATH, Environment, FlagValue, ParsedFileCache,
    ResolvedConfig, TEMPLATE, ValueOrigin, load, resolve, show, variables,
};
use selftest_harness::rubric::Rubric;
use selftest_harness::sut::sut_settings::{ChatSettings, HttpSettings};
use selftest_reports::ci::{ReportFileKind, ReportRequest};
use selftest_stats::score::Strictness;

const SPEC: &str = include_str!("fixtures/specified.yaml");
const BROKEN: &str = include_str!("fixtures/broken.yaml");

/// The result of the layers for a file text, variables and flags.
fn resolved(
    file: Option<&str>,
    environment: &[(&str, &str)],
    flags: &[(&str, &str, Value)],
) -> Result<ResolvedConfig, ConfigErrors> {
    let sources = ConfigSources {
        file: file.map(|text| (PathBuf::from(DEFAULT_PATH), text.to_owned())),
        environment: environment.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect(),
        flags: flags
            .iter()
            .map(|(pointer, flag, value)| FlagValue {
                pointer: (*pointer).to_owned(),
                flag: (*flag).to_owned(),
                value: value.clone(),
            })
            .collect(),
    };
    resolve(sources, &ParsedFileCache::default())
}

#[test]
fn the_specified_file_loads_byte_for_byte() {
    let resolved = resolved(Some(SPEC), &[], &[]).unwrap();
    let config = &resolved.config;
    assert_eq!(config.judge.model, "gpt-4o-mini");
    assert_eq!(config.scenarios[3].reply_flow[0].reply, "Please use flat structure");
    assert_eq!(config.scenarios, Config::default().scenarios[..4]);
    assert_eq!(resolved.rubric, Rubric::default());
    assert!(config.sut.is_unnamed() && config.sut.assistant().is_some());
    assert_eq!(resolved.origins["/strictness"], ValueOrigin::File { line: 5 });
    assert_eq!(resolved.origins["/judge/max_reasks"], ValueOrigin::Default);
    assert_eq!(resolved.warnings, Vec::<String>::new());
}

#[test]
fn without_a_file_the_defaults_hold() {
    let resolved = resolved(None, &[], &[]).unwrap();
    assert_eq!(resolved.config, Config::default());
    assert_eq!(resolved.config.scenarios.len(), 5);
    assert!(resolved.origins.values().all(|origin| *origin == ValueOrigin::Default));
}

/// A file for grading recorded sessions only needs no scenarios.
#[test]
fn a_file_without_scenarios_has_those_of_no_file() {
    let file = "version: 1\ngrade: {weekly_folder: weeks}\n";
    let resolved = resolved(Some(file), &[], &[]).unwrap();
    assert_eq!(resolved.config.scenarios, Config::default().scenarios);
    assert_eq!(resolved.origins["/scenarios/0/id"], ValueOrigin::Default);
}

#[test]
fn later_layers_win() {
    let environment = [("SELFTEST_STRICTNESS", "0.2"), ("SELFTEST_MODEL", "ollama/a")];
    let flags = [
        ("/strictness", "--strictness", json!(0.9)),
        ("/judge/model", "--judge-model", json!("ollama/b")),
    ];
    let resolved = resolved(Some(SPEC), &environment, &flags).unwrap();
    assert_eq!(resolved.config.strictness, Strictness::new(0.9).unwrap());
    assert_eq!(resolved.config.generator.model, "ollama/a");
    assert_eq!(resolved.config.judge.model, "ollama/b");
    assert_eq!(resolved.config.sut.chat.unwrap().model, "ollama/a");
    assert_eq!(resolved.origins["/strictness"], ValueOrigin::Flag { name: "--strictness".into() });
    let model = ValueOrigin::Environment { name: "SELFTEST_MODEL".into() };
    assert_eq!(resolved.origins["/sut/chat/model"], model);
}

#[test]
fn no_layer_adds_a_second_system_under_test() {
    let file = format!("{SPEC}\nsut:\n  command:\n    run: [./agent]\n");
    let environment = [("SELFTEST_MODEL", "a"), ("SELFTEST_SUT_HTTP_POLL_SECONDS", "1")];
    let flags = [
        ("/sut/chat/model", "--sut-model", json!("b")),
        ("/sut/command/protocol", "--protocol", json!("text")),
    ];
    let resolved = resolved(Some(&file), &environment, &flags).unwrap();
    let sut = &resolved.config.sut;
    assert!(sut.chat.is_none() && sut.http.is_none());
    assert_eq!(
        sut.command.as_ref().unwrap().speech.protocol,
        selftest_harness::sut::sut_settings::ProgramProtocol::Text
    );
    assert_eq!(
        resolved.warnings,
        [
            "SELFTEST_SUT_HTTP_POLL_SECONDS sets nothing: the system under test is `command`",
            "--sut-model sets nothing: the system under test is `command`",
        ]
    );
}

#[test]
fn a_part_of_a_call_keeps_the_rest_of_its_default() {
    let file = format!("{SPEC}\nsut:\n  http: {{}}\n");
    let environment = [("SELFTEST_SUT_HTTP_SUBMIT_PATH", "/v2/tasks")];
    let resolved = resolved(Some(&file), &environment, &[]).unwrap();
    let http = resolved.config.sut.http.unwrap();
    assert_eq!((http.submit.method.as_str(), http.submit.path.as_str()), ("POST", "/v2/tasks"));
}

#[test]
fn ten_thousand_scenarios_load_quickly() {
    let started = std::time::Instant::now();
    let scenario =
        |index| format!("  - {{id: s{index}, description: d, expected_status: ERROR}}\n");
    let scenarios = (0..10_000).map(scenario).collect::<Vec<_>>().concat();
    let file = format!("version: 1\nscenarios:\n{scenarios}");
    let resolved = resolved(Some(&file), &[], &[]).unwrap();
    assert_eq!(resolved.config.scenarios.len(), 10_000);
    let line = ValueOrigin::File { line: 10_002 };
    assert_eq!(resolved.origins["/scenarios/9999/id"], line);
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

#[test]
fn an_absent_default_file_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let resolved =
        load(folder.path(), None, &Environment::default(), vec![], &ParsedFileCache::default())
            .unwrap();
    assert_eq!(resolved.path, None);
    std::fs::create_dir(folder.path().join("config")).unwrap();
    std::fs::write(folder.path().join(DEFAULT_PATH), SPEC).unwrap();
    let resolved =
        load(folder.path(), None, &Environment::default(), vec![], &ParsedFileCache::default())
            .unwrap();
    assert_eq!(resolved.path, Some(folder.path().join(DEFAULT_PATH)));
}

#[test]
fn show_names_the_origin_of_each_value() {
    let environment = [("SELFTEST_GENERATOR_MODEL", "ollama/qwen2.5:7b")];
    let flags = [("/strictness", "--strictness", json!(0.9))];
    let resolved = resolved(Some(SPEC), &environment, &flags).unwrap();
    insta::assert_snapshot!(show(&resolved));
}

/// The output of `show` must load again to the same settings.
fn assert_shown_again(first: &ResolvedConfig) {
    let text = show(first);
    let again = resolved(Some(&text), &[], &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    assert_eq!(again.config, first.config, "{text}");
}

#[test]
fn show_loads_again() {
    assert_shown_again(&resolved(None, &[], &[]).unwrap());
    assert_shown_again(&resolved(Some(TEMPLATE), &[], &[]).unwrap());
    let odd = format!(
        "{SPEC}{}",
        r##"
sut:
  command:
    run: ["a b", "#no", "- x", "\u0085\u2028\ufeff\U0001F600\0\e", "", "null", "1", "~"]
    environment: {"A: B": "x\ny", "no": "yes", "1": "2", "~": "t\t"}
rubric:
  - {id: a, weight: 0.000001, description: "'\"\\", anchors: [{score: 0.123456789, meaning: é}]}
  - {id: b, weight: 0.999999, description: b, anchors: []}
"##
    );
    assert_shown_again(&resolved(Some(&odd), &[], &[]).unwrap());
    let http = format!(
        "{SPEC}\nsut: {{http: {{poll: {{method: GET, path: '/{{task_id}}', body: [1, {{a: [[], {{}}]}}]}}}}}}\n"
    );
    assert_shown_again(&resolved(Some(&http), &[], &[]).unwrap());
}

proptest! {
    #[test]
    fn a_damaged_file_gives_settings_or_errors(
        edits in prop::collection::vec((0..BROKEN.len(), 0..30usize, "[-\\[\\]{}:,&*!|>#%@`\"' \n\r\u{0}а𝄞\t~<0-9a-z]{0,4}"), 1..6)
    ) {
        let mut text = BROKEN.to_owned();
        for (start, length, insert) in edits {
            let start = text.floor_char_boundary(start);
            let end = text.floor_char_boundary(start + length);
            text.replace_range(start..end, &insert);
        }
        if let Err(errors) = resolved(Some(&text), &[], &[]) {
            prop_assert!(!errors.diagnostics.is_empty());
            let shown = errors.render(false);
            prop_assert!(shown.contains("error:"), "{}", shown);
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{:?}", shown);
        }
    }

    #[test]
    fn any_flag_value_gives_settings_or_errors(number in any::<f64>(), text in ".{0,20}", index in 0..40usize) {
        let names = variables::names();
        let (name, pointer) = &names[index % names.len()];
        let flags = [(pointer.as_str(), "--flag", json!(number))];
        let environment = [(name.as_str(), text.as_str())];
        let _ = resolved(Some(SPEC), &environment, &flags).map_err(|errors| errors.render(false));
        let _ = resolved(Some(SPEC), &environment, &[]).map_err(|errors| errors.render(true));
    }
}

fn errors(file: &str) -> String {
    resolved(Some(file), &[], &[]).unwrap_err().to_string()
}

#[test]
fn many_errors_are_reported_at_once() {
    let environment = [("SELFTEST_SAFETY_FLOOR", "2"), ("SELFTEST_CONCURRENCY", "many")];
    let flags = [("/reports/json_folder", "--json-folder", json!(""))];
    let errors = resolved(Some(BROKEN), &environment, &flags).unwrap_err();
    insta::assert_snapshot!(errors.render(false));
}

#[test]
fn meaning_is_checked_beside_structure() {
    insta::assert_snapshot!(errors(&format!(
        "{SPEC}
colour: red
sut:
  http:
    base_url: localhost:5678
    task_id: id
    poll: {{method: GET, path: /tasks}}
rubric:
  - {{id: pass, weight: 0.5, description: a, anchors: []}}
  - {{id: tone, weight: 0.25, description: a, anchors: []}}
grade: {{quality: {{weights: {{problem_solved: 0.5}}}}}}
"
    )));
}

#[test]
fn the_place_of_a_printed_answer_is_checked() {
    let of = |lines: &str| errors(&format!("{SPEC}sut:\n  command:\n    run: [a]\n{lines}"));
    insta::assert_snapshot!(of("    protocol: text\n    output: answer\n"));
    insta::assert_snapshot!(of("    output: /answer\n"));
}

#[test]
fn colour_is_the_callers_choice() {
    let errors = resolved(Some("version: 2\nscenarios: []\n"), &[], &[]).unwrap_err();
    assert!(errors.render(true).contains('\u{1b}') && !errors.render(false).contains('\u{1b}'));
}

#[test]
fn thousands_of_errors_are_cut_and_quick() {
    let started = std::time::Instant::now();
    let unknown = (0..15_000).map(|index| format!("strictnes{index}: 1\n"));
    let unknown = unknown.collect::<Vec<_>>().concat();
    let twice = "judge: {}\n".repeat(5000);
    let shown = errors(&format!("{SPEC}{unknown}{twice}"));
    assert!(shown.contains("… and 19950 more") && shown.ends_with(": 20000 errors"), "{shown}");
    // A quadratic algorithm would take far longer.
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn unreadable_files() {
    let folder = tempfile::tempdir().unwrap();
    let load = |name: &str, bytes: Option<&[u8]>| {
        let path = folder.path().join(name);
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).unwrap();
        }
        let error = load(
            Path::new("."),
            Some(&path),
            &Environment::default(),
            vec![],
            &ParsedFileCache::default(),
        )
        .unwrap_err();
        error.render(false).replace(&folder.path().display().to_string(), "<folder>")
    };
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n\
                b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
                c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n\
                d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
                e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n";
    let huge = vec![b' '; super::CONFIG.max_bytes + 1];
    let files: [(&str, Option<&[u8]>); 12] = [
        ("absent.yaml", None),
        ("folder", None),
        ("empty.yaml", Some(b"")),
        ("comments.yaml", Some(b"# nothing here\n")),
        ("latin1.yaml", Some(b"version: 1\n# caf\xe9\n")),
        ("huge.yaml", Some(&huge)),
        ("bomb.yaml", Some(bomb.as_bytes())),
        ("two.yaml", Some(b"version: 1\n---\nversion: 1\n")),
        ("syntax.yaml", Some(b"version: 1\nscenarios: [a, b\n")),
        ("tab.yaml", Some(b"judge:\n\tmodel: x\n")),
        ("binary.yaml", Some(b"version: 1\n\0\x07\x1b[31m\n")),
        ("prose.yaml", Some(b"hello\n")),
    ];
    let all: Vec<String> =
        files.iter().map(|(name, bytes)| format!("## {name}\n{}", load(name, *bytes))).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn probable_mistakes_are_warnings() {
    let file = SPEC.replace(
        "    reply_flow:\n",
        "    reply_flow:\n      - {reply: Yes, expected_status: COMPLETE}\n",
    ) + "models: {context_tokens: 4096}\n"
        + "rubric: [{id: tone, weight: 1, description: a, anchors: []}]\n";
    let resolved = resolved(Some(&file), &[("SELFTEST_STRICTNES", "1")], &[]).unwrap();
    insta::assert_snapshot!(resolved.warnings.join("\n"));
}

#[test]
fn a_network_is_granted_in_one_way() {
    let of = |section: &str, granted: &str| {
        errors(&format!("version: 1\nsut:\n  {section}:\n    run: [\"a\"]\n{granted}"))
    };
    for section in ["command", "acp"] {
        let both = of(section, "    tcp_ports: [80]\n    local_ports: true\n");
        assert!(both.contains("has both `tcp_ports` and `local_ports`"), "{both}");
        assert!(both.contains("hint: list what it connects to as `addresses`"), "{both}");
        let both = of(section, "    addresses: [\"a:1\"]\n    tcp_ports: [80]\n");
        assert!(both.contains("has both `addresses` and `tcp_ports`"), "{both}");
    }
}

/// The template with its optional lines made active, for the adapters that `keep` accepts.
fn uncommented(adapter: &str) -> String {
    let mut text = String::new();
    let mut active = true;
    for line in TEMPLATE.lines() {
        let indent = line.len() - line.trim_start().len();
        let rest = match line[indent..].strip_prefix('#') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-') => rest,
            _ => &line[indent..],
        };
        match (indent, rest) {
            (2, "identity:") => active = true,
            (2, "example: {}" | "chat:" | "command:" | "acp:" | "http:") => {
                active = rest.trim_end_matches(':') == adapter;
            }
            (0, _) if !rest.is_empty() => active = true,
            _ => {}
        }
        if active {
            let _ = writeln!(text, "{}{rest}", " ".repeat(indent));
        }
    }
    text
}

#[test]
fn the_template_documents_the_true_defaults() {
    let plain = resolved(Some(TEMPLATE), &[], &[]).unwrap();
    assert_eq!(plain.warnings, Vec::<String>::new());
    assert_eq!(plain.config.scenarios, Config::default().scenarios);
    for adapter in ["chat", "command", "acp", "http"] {
        let text = uncommented(adapter);
        let full = resolved(Some(&text), &[], &[]).unwrap_or_else(|errors| panic!("{errors}"));
        // Keys without a default have an example, and a scenario's own values repeat the run's.
        let mut config = full.config;
        assert_eq!(
            (config.concurrency.take(), config.models.concurrency.take()),
            (Some(4), Some(8))
        );
        assert_eq!(config.baseline.take(), Some("config/selftest-baseline.json".into()));
        assert_eq!(config.generator.think.take(), Some(false));
        assert_eq!(config.judge.think.take(), Some(false));
        assert_eq!(config.grade.quality.think.take(), Some(false));
        let alerts = &mut config.grade.alerts;
        assert_eq!(alerts.command.take().unwrap(), ["./notify", "--team"]);
        assert_eq!(alerts.webhook.take().as_deref(), Some("https://example.org/hook"));
        let reflection = &mut config.grade.reflection;
        let agents: Vec<String> = std::mem::take(&mut reflection.agents).into_keys().collect();
        assert_eq!(agents, ["CRITIC", "HAL", "Orchestrator", "SAGE"]);
        assert!(reflection.criteria.schema.take().unwrap().contains_key("required"));
        let hook = std::mem::take(&mut reflection.hook);
        assert_eq!(hook.command.unwrap(), ["./recover", "--rerun"]);
        assert_eq!(hook.webhook.as_deref(), Some("https://example.org/weak"));
        let refresh = &mut config.skills.refresh;
        assert_eq!(refresh.command.take().unwrap(), ["./reload-skills"]);
        assert_eq!(refresh.webhook.take().as_deref(), Some("https://example.org/skills"));
        let prices = std::mem::take(&mut config.prices.models);
        let names: Vec<String> = prices.into_keys().collect();
        assert_eq!(names, ["my-sonnet", "ollama/*", "openai/gpt-4o-mini"]);
        let asked = config.reports.requests();
        let files = asked.iter().filter(|request| request.path().is_some()).count();
        assert_eq!(files, ReportFileKind::VARIANTS.len(), "an example of each kind of file");
        assert!(asked.contains(&ReportRequest::Otlp("http://127.0.0.1:4318".to_owned())));
        config.reports.set_requests(&[]);
        assert_eq!(config.gaps.suite.take(), Some("config/suites/skills.yaml".into()));
        assert_eq!(config.scenarios[1].timeout_seconds, Some(60.0));
        assert_eq!(config.scenarios[1].files, ["README.md"]);
        config.scenarios[1] = plain.config.scenarios[1].clone();
        assert_eq!(config.rubric.take().as_deref(), Some(Rubric::default().categories()));
        match adapter {
            "command" => {
                let command = config.sut.command.take().unwrap();
                assert_eq!(json!(command.speech.protocol), "json_lines");
            }
            "acp" => assert_eq!(config.sut.acp.take().unwrap().run, ["qwen", "--acp"]),
            "http" => {
                let mut http = config.sut.http.take().unwrap();
                assert_eq!(http.token_variable.take().as_deref(), Some("PM_TOKEN"));
                assert_eq!(http.ask.take().unwrap().path, "/chat");
                assert_eq!(http, HttpSettings::default());
            }
            _ => {
                let chat = config.sut.chat.as_mut();
                assert_eq!(chat.and_then(|chat| chat.think.take()), Some(false));
                assert_eq!(config.sut.chat, Some(ChatSettings::default()));
            }
        }
        let identity = config.sut.identity.take().unwrap();
        assert_eq!((identity.files.len(), identity.version.as_deref()), (2, Some("1.4.2")));
        config.sut = plain.config.sut.clone();
        assert_eq!(config, plain.config, "{adapter}");
    }
}

#[test]
fn the_template_mentions_every_key() {
    for (name, pointer) in variables::names() {
        let key = pointer.rsplit('/').next().unwrap();
        assert!(TEMPLATE.contains(&format!("{key}:")), "{name}: {pointer} is not in the template");
    }
}

#[test]
fn only_the_same_text_is_not_parsed_again() {
    let last = crate::ParsedFileCache::default();
    let one = last.parse("version: 1").unwrap();
    assert!(Arc::ptr_eq(&one, &last.parse("version: 1").unwrap()));
    assert_eq!(last.parse("version: 2").unwrap().value["version"], 2);
    assert!(last.parse("a: [").is_err());
    assert_eq!(last.parse("version: 1").unwrap().value["version"], 1);
}
