//! Each dialect, with counts determined by hand.

mod calls;
mod shapes;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::check::{self, CheckKind};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/evals")
}

fn fixture(path: &str) -> EvalsFile {
    folder::read_file(&fixtures().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn parse(text: &str) -> EvalsFile {
    read("evals.json", text.as_bytes(), &()).unwrap()
}

/// Dialect, cases, routing, cases without checks, `[typed, rule, judge, unknown]`, missing files,
/// refused.
type Counts = (EvalsDialect, usize, usize, usize, [usize; 4], usize, usize);

const BY_HAND: [(&str, Counts); 16] = [
    ("skill-creator/evals/evals.json", (EvalsDialect::Evals, 3, 0, 1, [0, 3, 2, 0], 1, 0)),
    ("typed-assertions/evals/evals.json", (EvalsDialect::Evals, 3, 0, 0, [14, 1, 6, 1], 0, 0)),
    ("wrapped-sentences/evals/evals.json", (EvalsDialect::Evals, 2, 0, 0, [0, 2, 6, 0], 0, 3)),
    ("cases-key/evals/evals.json", (EvalsDialect::Cases, 2, 0, 0, [5, 0, 2, 0], 0, 0)),
    ("tests-key/evals/evals.json", (EvalsDialect::Tests, 2, 0, 0, [1, 0, 2, 0], 0, 0)),
    ("test-cases-key/evals/evals.json", (EvalsDialect::TestCases, 1, 0, 0, [1, 0, 2, 0], 0, 0)),
    ("iterations-key/evals/evals.json", (EvalsDialect::Iterations, 2, 0, 0, [0, 0, 2, 0], 0, 0)),
    ("bare-array/evals/evals.json", (EvalsDialect::Array, 2, 3, 0, [1, 1, 2, 0], 0, 0)),
    ("lone-case/evals/evals.json", (EvalsDialect::Case, 1, 0, 0, [0, 1, 2, 0], 0, 0)),
    ("trigger-array/evals/trigger-evals.json", (EvalsDialect::Trigger, 0, 3, 0, [0; 4], 0, 0)),
    ("trigger-queries/evals/trigger-eval.json", (EvalsDialect::Trigger, 0, 1, 0, [0; 4], 0, 1)),
    ("trigger-lists/evals/trigger_evals.json", (EvalsDialect::Trigger, 0, 3, 0, [0; 4], 0, 0)),
    ("empty-list/evals/evals.json", (EvalsDialect::Evals, 0, 0, 0, [0; 4], 0, 0)),
    ("sloppy/evals/evals.json", (EvalsDialect::Evals, 2, 0, 0, [0, 0, 2, 0], 0, 1)),
    ("other/promptfooconfig.yaml", (EvalsDialect::Promptfoo, 2, 0, 0, [9, 0, 1, 2], 0, 0)),
    ("other/samples.jsonl", (EvalsDialect::Inspect, 4, 0, 1, [0, 0, 3, 0], 0, 2)),
];

#[test]
fn every_dialect_is_read_as_it_was_counted_by_hand() {
    for (path, by_hand) in BY_HAND {
        let file = fixture(path);
        let DemandCounts { typed, rule, judge, unknown } = file.counts();
        let counts = (
            file.dialect,
            file.cases.len(),
            file.routing.len(),
            file.without_checks(),
            [typed, rule, judge, unknown],
            file.missing_files.len(),
            file.refused.len(),
        );
        assert_eq!(counts, by_hand, "{path}: {file:#?}");
        let ids: std::collections::BTreeSet<_> = file.cases.iter().map(|case| &case.id).collect();
        assert_eq!(ids.len(), file.cases.len(), "{path}: ids are unique");
    }
    let found = folder::find(&fixtures());
    assert_eq!(found.len(), 16, "{found:?}");
}

fn texts<'a>(file: &'a EvalsFile, decider: &DemandDecider) -> Vec<&'a str> {
    let demands = file.cases.iter().flat_map(|case| &case.demands);
    demands.filter(|demand| demand.decider == *decider).map(|demand| &*demand.text).collect()
}

#[test]
fn files_are_looked_for_and_never_outside() {
    let file = fixture("skill-creator/evals/evals.json");
    let places: Vec<_> = file.cases[0].files.iter().map(|file| file.place).collect();
    assert_eq!(places, [Some(FileLocation::Skill), None]);
    assert_eq!(file.missing_files, ["evals/files/absent.csv"]);
    let file = fixture("wrapped-sentences/evals/evals.json");
    assert_eq!(file.cases[1].files[0].content.as_deref(), Some("inline"));
    for path in ["/etc/passwd", "../a", "a/../../b", "C:\\a", "a\\..\\b", "~/a", ""] {
        let text = json!({"evals": [{"id": 1, "prompt": "p", "expectations": ["x y"], "files": [path, "ok.txt"]}]});
        let file = parse(&text.to_string());
        assert!(file.cases[0].files.iter().all(|file| file.path == "ok.txt"), "{path}");
    }
}

#[test]
fn traps_and_repetitions() {
    let file = fixture("typed-assertions/evals/evals.json");
    let judged = texts(&file, &DemandDecider::Judge);
    assert!(judged.contains(&"the agent names the version it released"), "{judged:?}");
    assert!(
        file.warnings
            .iter()
            .any(|words| words.contains("`file_exists` is described as \"tests pass\""))
    );
    let CheckKind::All(all) = &file.cases[2].demands[0].decider.check().unwrap().kind else {
        panic!()
    };
    assert_eq!(all.len(), 7);
    let CheckKind::Command(command) = &file.cases[2].demands[1].decider.check().unwrap().kind
    else {
        panic!()
    };
    assert_eq!(command.run.words(), ["sh", "-c", "test -f NOTES.md"]);
    let file = fixture("wrapped-sentences/evals/evals.json");
    let judged = texts(&file, &DemandDecider::Judge);
    assert_eq!(judged.iter().filter(|text| text.starts_with("The old folder")).count(), 1);
    let CheckKind::Not(_) = file.cases[1].demands.last().unwrap().decider.check().unwrap().kind
    else {
        panic!()
    };
    assert_eq!(file.cases[1].shell[0].line, "rm -rf build && make");
    for words in [
        "a placeholder is left in the prompt: `{{PROJECT_DIR}}`",
        "a path of somebody's computer is left in the prompt: `/home/alice`",
        "the id 0 is there twice: the second is `0-2`",
        "ids are mixed: 2 integers, 1 text",
        "the shell line `rm -rf build && make` of `setup` is not run",
    ] {
        assert!(
            file.warnings.iter().any(|warning| warning.contains(words)),
            "{words}: {:?}",
            file.warnings
        );
    }
}

#[test]
fn no_check_is_lost_among_those_in_the_same_words() {
    let text = json!({"evals": [{"id": 1, "prompt": "p", "expectations": ["It is so", "It is short."], "assertions": [
        {"type": "contains", "value": "a", "text": "It is so"},
        {"type": "contains", "value": "A", "text": "It is so"},
        {"type": "contains", "value": "A", "text": "It is so"},
        {"type": "contains", "value": "b"},
        {"type": "contains", "value": "B"},
        "It is  short",
    ]}]});
    let file = parse(&text.to_string());
    let texts: Vec<&str> = file.cases[0].demands.iter().map(|demand| &*demand.text).collect();
    let expected = ["It is so", "It is short.", "It is so (2)", "contains: b", "contains: B"];
    assert_eq!(texts, expected);
    assert_eq!(file.counts(), DemandCounts { typed: 4, rule: 0, judge: 1, unknown: 0 });
}

#[test]
fn tests_of_promptfoo_in_other_files_are_named() {
    for tests in [json!("file://tests.yaml"), json!(["file://a.yaml"])] {
        let file = parse(&json!({"prompts": ["p {{x}}"], "tests": tests}).to_string());
        assert_eq!((file.dialect, file.refused.len()), (EvalsDialect::Promptfoo, 1), "{file:?}");
    }
}

#[test]
fn flows_routing_and_negations() {
    let file = fixture("lone-case/evals/evals.json");
    let case = &file.cases[0];
    assert_eq!((&*case.prompt, &*case.replies[0]), ("Make a plan.", "Now write it."));
    assert_eq!(case.timeout_seconds, Some(90.0));
    let judged = texts(&file, &DemandDecider::Judge);
    assert!(judged.contains(&"This does not hold: Writes before it plans"), "{judged:?}");
    let file = fixture("bare-array/evals/evals.json");
    let triggers: Vec<bool> = file.routing.iter().map(|case| case.should_trigger).collect();
    assert_eq!(triggers, [true, false, false]);
    assert_eq!(file.routing[0].skills, ["resize", "cluster"]);
    assert_eq!(file.cases[1].demands[0].text, "The answer is as expected: Not known");
}

#[test]
fn what_other_programs_demand_and_cannot_be_carried_over_is_named() {
    let file = fixture("other/promptfooconfig.yaml");
    assert_eq!(file.cases[0].prompt, "Answer briefly: When does the first ferry leave?");
    let judged = texts(&file, &DemandDecider::Judge);
    assert_eq!(judged, ["Is polite about When does the first ferry leave?"]);
    for words in [
        "not carried over: `providers` (line ",
        "`javascript` of promptfoo",
        "`similar` of promptfoo",
    ] {
        assert!(
            file.warnings.iter().any(|warning| warning.contains(words)),
            "{words}: {:?}",
            file.warnings
        );
    }
    let file = fixture("other/samples.jsonl");
    assert_eq!(file.cases[1].prompt, "Which is a fruit?\nA) stone\nB) apple");
    assert_eq!(file.cases[1].demands[0].text, "The answer agrees with this: B) apple");
    assert!(
        file.warnings
            .iter()
            .any(|warning| warning.contains("not carried over: `sandbox` (line 2)")),
        "{:?}",
        file.warnings
    );
}

#[test]
fn what_cannot_be_read_is_refused() {
    for (text, why) in
        [(&b"{\"evals\": ["[..], "not JSON"), (b"\xff\xfe", "not UTF-8"), (b"", "not JSON")]
    {
        let error = read("evals.json", text, &()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let deep = "[".repeat(100_000);
    assert!(read("evals.json", deep.as_bytes(), &()).is_err());
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n".to_owned()
        + &"d: [*c, *c, *c]\n".repeat(2);
    let _ = read("promptfoo.yaml", bomb.as_bytes(), &());
    for text in
        ["3", "{}", "{\"evals\": 3}", "[1, null]", "{\"iterations\": [1]}", "{\"tests\": [null]}"]
    {
        let file = parse(text);
        assert!(file.cases.is_empty() && !file.warnings.is_empty(), "{text}: {file:?}");
    }
}

#[test]
fn five_thousand_cases_are_read_at_once() {
    let case = |id: usize| {
        json!({"id": id % 4000, "prompt": "Sum it up", "expectations": [
            "The answer contains \"a\"", "The answer is at most 50 words", "It is clear", "Names the author"]})
    };
    let text = json!({"evals": (0..5_000).map(case).collect::<Vec<_>>()}).to_string();
    let file = parse(&text);
    assert_eq!(file.counts(), DemandCounts { typed: 0, rule: 10_000, judge: 10_000, unknown: 0 });
}

/// Arbitrary JSON with meaningful keys.
fn any_document() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        (-3..3i64).prop_map(|value| json!(value)),
        "[a-z\"`{}./ ]{0,12}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let key = prop::sample::select(vec![
            "evals",
            "cases",
            "tests",
            "id",
            "prompt",
            "input",
            "query",
            "should_trigger",
            "queries",
            "files",
            "path",
            "expectations",
            "assertions",
            "checks",
            "type",
            "value",
            "check",
            "contains_any",
            "files_exist",
            "cmd",
            "must_have",
            "rubric",
            "expected_output",
            "expected_skill",
            "query_flow",
            "assert",
            "vars",
            "prompts",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| json!(items)),
            prop::collection::vec((key, inner), 0..6).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_document_is_read_or_refused(document in any_document()) {
        let file = parse(&document.to_string());
        let ids: std::collections::BTreeSet<_> = file.cases.iter().map(|case| &case.id).collect();
        prop_assert_eq!(ids.len(), file.cases.len());
        for case in &file.cases {
            prop_assert!(!case.prompt.trim().is_empty());
            prop_assert!(case.files.iter().all(|file| !file.path.starts_with('/') && !file.path.contains("..")
                || !file.path.split('/').any(|part| part == "..")));
        }
        for line in file.warnings.iter().chain(&file.refused) {
            prop_assert!(!line.contains('\n') && !line.contains('\u{1b}'), "{:?}", line);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), name in "a\\.(json|jsonl|yaml)") {
        let _ = read(&name, &bytes, &());
    }
}

fn dialect(path: &str) -> EvalsFile {
    let path = fixtures().parent().unwrap().join("dialects").join(path);
    folder::read_file(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The suites of other programs, with everything that is said about them, read by hand.
#[test]
fn suites_of_other_programs_keep_their_meaning() {
    for path in [
        "dotnet/tests/harbour/ferry/eval.yaml",
        "vally/eval.yaml",
        "skill-up/evals/eval.yaml",
        "claude-plugin/evals/late/prompt.md",
        "claude-plugin/evals/early/case.yaml",
        "claude-plugin/evals/bare/prompt.md",
        "uipath/first.yaml",
        "uipath/parked.yaml",
        "harbor/plain/task.toml",
        "harbor/packages/task.toml",
        "other/openai.jsonl",
        "other/goldens.json",
        "other/routing.json",
    ] {
        let file = dialect(path);
        let mut text = format!("{}\n", file.dialect.name());
        for case in &file.cases {
            text += &format!("case {}: {}\n", case.id, case.prompt.trim());
            for reply in &case.replies {
                text += &format!("  then: {reply}\n");
            }
            for file in &case.files {
                let place = file.place.map(|place| format!("{place:?}")).unwrap_or_default();
                let from = file.source.as_deref().unwrap_or("");
                text += &format!("  file: {} {place} {from}\n", file.path);
            }
            for line in &case.shell {
                let shown = selftest_text::one_line(&line.line, 60);
                text += &format!("  {:?}: {} {shown}\n", line.purpose, line.program);
            }
            if let Some(seconds) = case.timeout_seconds {
                text += &format!("  timeout: {seconds}\n");
            }
            for demand in &case.demands {
                let decider = match &demand.decider {
                    DemandDecider::Typed(check) | DemandDecider::Rule(check) => {
                        let check = serde_json::to_string(check).unwrap();
                        selftest_text::one_line(&check, 300)
                    }
                    DemandDecider::Judge => "judge".to_owned(),
                    DemandDecider::Unknown { why } => format!("unknown: {why}"),
                };
                let words = selftest_text::one_line(&demand.text, 100);
                text += &format!("  - {words} => {decider}\n");
            }
        }
        for routing in &file.routing {
            text += &format!(
                "routing: {} {} {:?}\n",
                routing.query, routing.should_trigger, routing.skills
            );
        }
        for (word, lines) in [
            ("missing", &file.missing_files),
            ("refused", &file.refused),
            ("warning", &file.warnings),
        ] {
            for line in lines {
                text += &format!("{word}: {line}\n");
            }
        }
        insta::assert_snapshot!(path.replace(['/', '.'], "-"), text);
    }
}

#[test]
fn the_page_about_suites_has_the_table_of_the_registry() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evals.md");
    let page = std::fs::read_to_string(page).unwrap();
    for entry in DIALECTS {
        let row = format!(
            "| `{}` | {} | {} | {} | {} | {} |",
            entry.dialect.name(),
            entry.title,
            entry.files,
            entry.yaml.map_or("–", crate::yaml::YamlSchema::version),
            entry.carries,
            entry.refuses,
        );
        assert!(page.contains(&row), "docs/evals.md lacks this row:\n{row}");
    }
}

/// Suites of strangers: bombs, links, huge files, names twice.
#[cfg(unix)]
#[test]
fn hostile_suites_are_refused_and_the_others_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &[u8]| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{before}]\n");
    }
    write("bomb/eval.yaml", format!("{bomb}scenarios: [{{prompt: x}}]\n").as_bytes());
    write("huge/evals.json", &vec![b' '; MAX_BYTES + 1]);
    write("twice/eval.yaml", b"scenarios:\n  - { name: a, prompt: x, rubric: [Is so] }\n  - { name: a, prompt: y, rubric: [Is so] }\n");
    write("secret.txt", b"secret");
    write("links/case/case.yaml", b"schema_version: '1.1'\nname: a\ncontext: { scaffold_script: out.sh }\nexecution: { prompt: x }\ngraders: [{ type: llm, criteria: Good }]\n");
    std::os::unix::fs::symlink(
        folder.path().join("secret.txt"),
        folder.path().join("links/case/out.sh"),
    )
    .unwrap();
    write("dots/first.yaml", b"task_id: a\ninitial_prompt: x\nsandbox:\n  template_sources: [{ type: template_dir, path: ../../../../etc }]\nsuccess_criteria: [{ type: file_exists, path: a, description: d }]\n");
    let found = folder::find(folder.path());
    assert_eq!(found.len(), 5, "{found:?}");
    let read = |path: &str| folder::read_file(&folder.path().join(path));
    let started = Instant::now();
    assert!(read("bomb/eval.yaml").is_err());
    assert!(read("huge/evals.json").unwrap_err().to_string().contains("larger than"));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let twice = read("twice/eval.yaml").unwrap();
    let ids: Vec<&str> = twice.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["a", "a-2"]);
    assert!(twice.warnings.iter().any(|line| line.contains("there twice")), "{twice:?}");
    let linked = read("links/case/case.yaml").unwrap();
    assert!(linked.cases.is_empty(), "a link that leads out is not read: {linked:?}");
    let dots = read("dots/first.yaml").unwrap();
    assert!(dots.cases.is_empty() && dots.refused[0].contains("not in the repository"), "{dots:?}");
}

#[test]
fn the_skill_of_a_suite_that_lies_apart_is_found() {
    let base = fixtures().parent().unwrap().join("dialects");
    let skill = |path: &str| folder::SkillFolder::locate(&base.join(path)).skill;
    let plugin = skill("claude-plugin/evals/late/prompt.md");
    assert!(plugin.ends_with("claude-plugin/skills/ferry"), "{plugin:?}");
    let own = skill("skill-up/evals/eval.yaml");
    assert!(own.ends_with("skill-up"), "{own:?}");
}

/// Wherever a key that nothing reads is put, a warning names it.
#[test]
fn every_key_that_is_not_read_is_named() {
    for path in [
        "dotnet/tests/harbour/ferry/eval.yaml",
        "vally/eval.yaml",
        "skill-up/evals/eval.yaml",
        "claude-plugin/evals/early/case.yaml",
        "uipath/first.yaml",
    ] {
        let path = fixtures().parent().unwrap().join("dialects").join(path);
        let text = std::fs::read_to_string(&path).unwrap();
        let kind = crate::yaml::YamlFileKind {
            max_bytes: 1 << 20,
            hint: "",
            schema: crate::yaml::YamlSchema::V1_2,
        };
        let document = crate::yaml::parse(&text, kind).unwrap().value;
        let mut places = Vec::new();
        mappings(&document, String::new(), &mut places);
        let name = path.file_name().unwrap().to_str().unwrap();
        let around = folder::SkillFolder::locate(&path);
        for pointer in places {
            let mut changed = document.clone();
            let Some(Value::Object(members)) = changed.pointer_mut(&pointer) else { panic!() };
            members.insert("zz_unheard".to_owned(), json!("x"));
            // JSON is YAML.
            let bytes = changed.to_string();
            let Ok(file) = read(name, bytes.as_bytes(), &around) else { panic!("{pointer}") };
            let parent = pointer.rsplit('/').find(|part| part.parse::<usize>().is_err());
            let is_named = file.warnings.iter().any(|warning| {
                warning.contains("not carried over")
                    && (warning.contains("zz_unheard")
                        || parent.is_some_and(|parent| {
                            !parent.is_empty() && warning.contains(&format!("{parent}`"))
                        }))
            });
            let is_refused = !file.refused.is_empty() || !file.warnings.is_empty();
            // Inside of free-form values a key is part of the value.
            let is_value = ["args", "row", "rows", "target", "schema"]
                .iter()
                .any(|part| pointer.contains(part));
            assert!(is_named || is_value && is_refused, "{path:?} {pointer}: {:?}", file.warnings);
        }
    }
}

fn mappings(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                mappings(member, format!("{pointer}/{key}"), found);
            }
            found.push(pointer);
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                mappings(item, format!("{pointer}/{at}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn yaml_is_read_by_its_core_schema() {
    let text = "prompts: [\"{{lang}} {{word}} {{id}} {{n}}\"]\ntests:\n  - vars: { lang: NO, word: on, id: 007, n: 1e3 }\n    \
                assert: [{ type: contains, value: off }, { type: equals, value: Yes }]\n";
    let file = read("promptfooconfig.yaml", text.as_bytes(), &()).unwrap();
    assert_eq!(file.cases[0].prompt, "NO on 7 1000");
    let checks: Vec<_> =
        file.cases[0].demands.iter().filter_map(|one| one.decider.check()).cloned().collect();
    let wanted = check::read_list(&json!([{"contains": "off"}, {"equals": "Yes"}])).unwrap();
    assert_eq!(checks, wanted);
}

#[test]
fn skills_that_should_be_loaded_are_checks() {
    let text = json!({"cases": [{
        "id": "a", "prompt": "When does the ferry leave?", "assertions": ["names a time"],
        "skills_expected_to_activate": ["ferry", "harbour"],
    }]});
    let file = read("evals.json", text.to_string().as_bytes(), &()).unwrap();
    let checks: Vec<_> =
        file.cases[0].demands.iter().filter_map(|one| one.decider.check()).collect();
    let kinds: Vec<_> = checks.iter().map(|check| check.kind.value()).collect();
    assert_eq!(kinds, [json!("ferry"), json!("harbour")]);
}

/// Files in memory, all of one repository whose suites lie in `registry/evals`.
struct MemoryFiles(Vec<(&'static str, &'static str)>);

impl FileLookup for MemoryFiles {
    fn find(&self, path: &str) -> Option<FileLocation> {
        let is_in = |name: &str| {
            name.strip_prefix(path).is_some_and(|it| it.is_empty() || it.starts_with('/'))
        };
        self.0.iter().any(|(name, _)| is_in(name)).then_some(FileLocation::Evals)
    }

    fn text(&self, path: &str, _: FileLocation) -> Option<std::io::Result<String>> {
        let found = self.0.iter().find(|(name, _)| *name == path)?;
        Some(Ok(found.1.to_owned()))
    }

    fn list(&self, path: &str, _: FileLocation) -> Vec<String> {
        let start = format!("{path}/");
        self.0
            .iter()
            .filter_map(|(name, _)| name.strip_prefix(&*start))
            .map(ToOwned::to_owned)
            .collect()
    }

    fn find_in_repository(&self, path: &str) -> Option<String> {
        Some(format!("registry/{}", path.strip_prefix("../")?))
    }

    fn folder_name(&self) -> Option<String> {
        Some("scenario-0".to_owned())
    }
}

fn decided(file: &EvalsFile) -> Vec<String> {
    let demands = file.cases.iter().flat_map(|case| &case.demands);
    let shown = demands.map(|demand| match &demand.decider {
        DemandDecider::Typed(check) | DemandDecider::Rule(check) => {
            json!({ check.kind.name(): check.kind.value() }).to_string()
        }
        DemandDecider::Judge => format!("judge {}", demand.text),
        DemandDecider::Unknown { why } => format!("unknown {why}"),
    });
    shown.collect()
}

#[test]
fn the_registry_of_openai_evals_says_how_samples_are_graded() {
    let yaml = "a:\n  id: a.dev.v0\n  metrics: [accuracy]\na.dev.v0:\n  class: evals.elsuite.basic.match:Match\n  args:\n    samples_jsonl: a/s.jsonl\n\
        b.dev.v0:\n  class: evals.elsuite.basic.includes:Includes\n  args:\n    samples_jsonl: b/s.jsonl\n\
        c.dev.v0:\n  class: mine:Own\n  args:\n    samples_jsonl: a/s.jsonl\n\
        d.dev.v0:\n  class: evals.elsuite.basic.match:Match\n  args:\n    samples_jsonl: lfs.jsonl\n\
        e.dev.v0:\n  class: evals.elsuite.basic.match:Match\n  args: {}\n";
    let files = MemoryFiles(vec![
        (
            "registry/data/a/s.jsonl",
            r#"{"input": [{"role": "system", "content": "Only the name."}, {"role": "user", "content": "Which?"}], "ideal": "a_b"}"#,
        ),
        ("registry/data/b/s.jsonl", r#"{"input": "Where?", "ideal": ["Rome", "Roma"]}"#),
        ("registry/data/lfs.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
    ]);
    let file = read("a.yaml", yaml.as_bytes(), &files).unwrap();
    assert_eq!(file.dialect, EvalsDialect::OpenAiEvals);
    assert_eq!(file.cases[0].prompt, "Only the name.\n\nWhich?");
    assert_eq!(
        decided(&file),
        [r#"{"regex":"\\A\\s*a_b"}"#, r#"{"any":[{"contains":"Rome"},{"contains":"Roma"}]}"#]
    );
    assert_eq!(file.refused.len(), 3, "{:?}", file.refused);
    assert!(file.refused[2].contains("it names no samples"), "{:?}", file.refused);
    assert!(file.refused[0].contains("graded by the program `mine:Own`"), "{:?}", file.refused);
    assert!(file.refused[1].contains("git lfs pull"), "{:?}", file.refused);
}

#[test]
fn a_scenario_of_tessl_is_read_with_its_task_and_files() {
    let criteria = json!({"context": "c", "type": "weighted_checklist", "checklist": [
        {"name": "there", "description": "A file named report.md exists under out/", "max_score": 8},
        {"name": "meaning", "description": "report.md warns of copy numbers", "max_score": 2}]});
    let files = MemoryFiles(vec![
        ("task.md", "Write a report to `out/`.\n"),
        ("scenario.json", r#"{"description": "d", "include": ["./inputs"]}"#),
        ("inputs/a.txt", "a"),
    ]);
    let file = read("criteria.json", criteria.to_string().as_bytes(), &files).unwrap();
    assert_eq!((file.dialect, &*file.cases[0].id), (EvalsDialect::Tessl, "scenario-0"));
    assert_eq!(file.cases[0].files[0].path, "inputs/a.txt");
    assert_eq!(
        decided(&file),
        [r#"{"file_exists":"out/**/report.md"}"#, "judge report.md warns of copy numbers"]
    );
    assert!(file.warnings[0].contains("max_score"), "{:?}", file.warnings);
}

#[test]
fn a_scenario_of_tessl_does_not_hand_out_its_criteria() {
    let criteria =
        json!({"checklist": [{"name": "a", "description": "It is clear", "max_score": 8}]});
    let read_with = |include: Value| {
        let scenario = json!({ "include": include }).to_string();
        let files = MemoryFiles(vec![
            ("task.md", "Write a report.\n"),
            ("criteria.json", "{}"),
            ("scenario.json", &*scenario.leak()),
            ("inputs/a.txt", "a"),
        ]);
        read("criteria.json", criteria.to_string().as_bytes(), &files).unwrap()
    };
    let file = read_with(json!(["./criteria.json", "task.md", "inputs"]));
    let paths: Vec<&str> = file.cases[0].files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["inputs/a.txt"]);
    for include in [".", "./", ""] {
        let file = read_with(json!([include]));
        assert!(file.cases.is_empty(), "{file:?}");
        assert!(file.refused[0].contains("its own folder"), "{:?}", file.refused);
    }
}

#[test]
fn a_named_sentence_is_not_read_as_its_opposite() {
    let of = |assertion: Value| {
        let text =
            json!({"evals": [{"id": 1, "prompt": "What is it?", "assertions": [assertion]}]});
        parse(&text.to_string())
    };
    let file = of(json!({"forbidden": "The agent deletes other files"}));
    assert_eq!(decided(&file), ["judge This does not hold: The agent deletes other files"]);
    assert!(file.warnings.iter().any(|line| line.contains("1 named sentence is read as demands")));
    let file = of(json!({"must_not": "mention the budget"}));
    assert!(decided(&file)[0].starts_with("unknown"), "{file:?}");
    let file = of(json!({"grep": "TODO in src"}));
    assert!(decided(&file)[0].starts_with("unknown"), "{file:?}");
}

#[test]
fn goldens_of_deepeval_are_read_in_both_spellings() {
    let goldens = json!([
        {"input": "a", "expectedOutput": "b", "actualOutput": "c", "retrievalContext": []},
        {"input": "d", "expected_tools": ["search", {"name": "read", "input_parameters": {"path": "x"}}, 7]},
        {"turns": [], "input": "e"}]);
    let file = read("goldens.json", goldens.to_string().as_bytes(), &()).unwrap();
    assert_eq!(
        decided(&file),
        [
            "judge The answer is as expected: b",
            r#"{"tool_called":"search"}"#,
            r#"{"tool_called":{"name":"read","arguments":{"path":"x"},"min":1}}"#,
            "unknown it names no tool",
        ]
    );
    assert_eq!(file.refused.len(), 1);
}

#[test]
fn a_conversation_that_cannot_be_played_is_refused() {
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let sample = |input: Value| {
        let text = json!({"input": input, "target": "Monday"}).to_string();
        read("samples.jsonl", text.as_bytes(), &()).unwrap()
    };
    let whole = json!([
        message("system", "Be brief"),
        message("user", "Hi"),
        message("assistant", "Hello"),
        message("user", "Which day is it?"),
    ]);
    let file = sample(whole);
    assert!(file.cases.is_empty(), "{:?}", file.cases);
    assert!(file.refused[0].contains("line-1"), "{:?}", file.refused);
    let file = sample(json!([message("system", "Be brief"), message("user", "Hi")]));
    assert_eq!(file.cases[0].prompt, "Be brief\n\nHi");
    assert!(file.warnings[0].contains("as part of the request: 1 case"), "{file:?}");
    let alone = sample(json!([message("system", "Which day is it?")]));
    assert_eq!(alone.cases[0].prompt, "Which day is it?");
    assert_eq!(sample(json!([message("user", "Which day is it?")])).cases.len(), 1);
}

#[test]
fn a_file_about_routing_is_found_beside_a_skill() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["skills/a/evals/routing.json", "src/routing.json"] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "[{\"prompt\": \"weather?\", \"expected\": \"a\"}]").unwrap();
    }
    let found = super::folder::find(folder.path());
    assert_eq!(found, [folder.path().join("skills/a/evals/routing.json")]);
}
