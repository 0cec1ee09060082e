//! Shapes of suites in which public repositories state the same things differently.

use super::*;

fn named(name: &str, text: &Value) -> EvalsFile {
    read(name, text.to_string().as_bytes(), &()).unwrap()
}

fn prompts_of(file: &EvalsFile) -> Vec<(&str, bool, Vec<&str>)> {
    file.routing
        .iter()
        .map(|it| {
            (it.query.as_str(), it.should_trigger, it.skills.iter().map(String::as_str).collect())
        })
        .collect()
}

#[test]
fn prompts_about_loading_stand_in_lists_by_skill() {
    let by_name = json!({"_comment": "remark", "ferry": {"positive": ["When?"], "negative": ["Bake"]},
        "harbour": {"positive": ["Where?"]}});
    let file = named("triggers.json", &by_name);
    let wanted = [
        ("When?", true, vec!["ferry"]),
        ("Bake", false, vec!["ferry"]),
        ("Where?", true, vec!["harbour"]),
    ];
    assert_eq!(prompts_of(&file), wanted, "{file:?}");
    assert_eq!(file.warnings, ["not carried over: `_comment` (line 1)"]);
    let near = json!([{"skill": "ferry", "should": ["When?"], "near": [
        {"prompt": "Where?", "expect": "harbour"}, {"prompt": "Bake", "expect": null}]}]);
    let file = named("triggers.json", &near);
    let wanted = [
        ("When?", true, vec!["ferry"]),
        ("Where?", false, vec!["ferry"]),
        ("Where?", true, vec!["harbour"]),
        ("Bake", false, vec!["ferry"]),
    ];
    assert_eq!(prompts_of(&file), wanted, "{file:?}");
    let below =
        json!({"note": "x", "skills": {"ferry": {"should": ["When?"], "should_not": ["Bake"]}}});
    let file = named("triggers.json", &below);
    assert_eq!(prompts_of(&file), [("When?", true, vec!["ferry"]), ("Bake", false, vec!["ferry"])]);
    let lists = json!({"skill_name": "ferry", "should_activate": ["/ferry"],
        "should_not_activate": ["Bake"]});
    let file = named("triggers.json", &lists);
    assert_eq!(prompts_of(&file).len(), 2, "{file:?}");
    assert!(file.warnings.is_empty(), "{file:?}");
}

#[test]
fn prompts_name_the_skills_that_they_should_load_and_those_they_must_not() {
    let file = named(
        "routing.json",
        &json!([{"prompt": "When?", "expectedSkill": "ferry", "unexpectedSkills": ["harbour"]},
            {"prompt": "Bake", "expectedSkill": null}]),
    );
    let wanted = [
        ("When?", true, vec!["ferry"]),
        ("When?", false, vec!["harbour"]),
        ("Bake", false, vec![]),
    ];
    assert_eq!(prompts_of(&file), wanted, "{file:?}");
    // "None" is none of those that the file names.
    let denied = |_: &str| ShellPermission::Denied(String::new());
    let suite = file.suite(&[], &denied);
    assert_eq!(suite.suite.cases.len(), 3, "{suite:?}");
    let file =
        named("routing.json", &json!({"cases": [{"prompt": "When?", "expected": "ferry-times"}]}));
    assert_eq!(prompts_of(&file), [("When?", true, vec!["ferry-times"])], "{file:?}");
    for (item, wanted) in [
        (json!({"prompt": "When?", "expect": "ferry"}), true),
        (json!({"skill": "ferry", "positive": false, "query": "When?"}), false),
        (json!({"skill": "ferry", "should_trigger": true, "query": "When?"}), true),
    ] {
        let file = named("routing.json", &json!([item]));
        assert_eq!(prompts_of(&file), [("When?", wanted, vec!["ferry"])], "{file:?}");
    }
    let none = json!({"cases": [{"prompt": "When?", "expected": "ferry"}, {"prompt": "Hi", "expected": "none"}]});
    assert_eq!(prompts_of(&named("routing.json", &none))[1], ("Hi", false, vec![]));
    // In any other file one word is an answer.
    let file = named("evals.json", &json!({"cases": [{"prompt": "Who?", "expected": "me"}]}));
    assert!(file.routing.is_empty() && file.cases.len() == 1, "{file:?}");
    let file = named(
        "routing.json",
        &json!([{"prompt": "When?", "expected_skills": ["ferry", "harbour"]},
            {"prompt": "Bake", "expected_skills": []}]),
    );
    let wanted =
        [("When?", true, vec!["ferry"]), ("When?", true, vec!["harbour"]), ("Bake", false, vec![])];
    assert_eq!(prompts_of(&file), wanted, "{file:?}");
}

#[test]
fn a_list_of_what_must_not_be_may_state_it_as_a_negation() {
    let case = json!({"cases": [{"prompt": "Review", "anti_expectations": ["Does not edit a.md", "Edits b.md"],
        "fail_if": ["Does not answer"], "must_do": ["read the guide first"], "must_not_do": ["guess a time"]}]});
    let file = named("evals.json", &case);
    let words: Vec<&str> = file.cases[0].demands.iter().map(|it| it.text.as_str()).collect();
    for wanted in [
        "Does not edit a.md",
        "This does not hold: Edits b.md",
        "This does not hold: Does not answer",
        "read the guide first",
        "This does not hold: guess a time",
    ] {
        assert!(words.contains(&wanted), "{wanted}: {words:?}");
    }
    assert!(file.warnings.iter().any(|it| it.contains("read as it stands")), "{file:?}");
}

#[test]
fn an_expected_list_of_sentences_is_a_list_of_demands() {
    let of = |expected: Value| {
        decided(&named(
            "evals.json",
            &json!({"cases": [{"prompt": "Sum up", "expected": expected}]}),
        ))
    };
    let sentences = json!(["States the cost of both options", "Keeps the two claims apart"]);
    assert_eq!(of(sentences).len(), 2);
    for unclear in [json!(["Rome", "Roma"]), json!({"team": "billing"}), json!(true)] {
        assert!(of(unclear)[0].starts_with("unknown"), "neither dropped nor guessed");
    }
}

#[test]
fn a_word_of_code_is_no_question() {
    let case = json!({"cases": [{"prompt": "Why is it slow?",
        "assertions": ["metro.config", "windowSize\\|getItemLayout", "concise", "FlatList", "Is brief."]}]});
    let kinds: Vec<bool> =
        decided(&named("evals.json", &case)).iter().map(|it| it.starts_with("unknown")).collect();
    assert_eq!(kinds, [true, true, false, true, false]);
}

#[test]
fn a_path_in_the_place_of_a_text_is_read_or_refused() {
    let files = MemoryFiles(vec![
        ("prompts/a.md", "When does it leave?\n"),
        ("expected/a.md", "At seven."),
        ("fixtures/quay/times.csv", "7"),
    ]);
    let text = "evals:\n  - { name: a, prompt: prompts/a.md, expected: expected/a.md, fixture: fixtures/quay }\n\
                \x20 - { name: b, prompt: prompts/b.md }\n";
    let file = read("eval.yaml", text.as_bytes(), &files).unwrap();
    assert_eq!(file.cases[0].prompt, "When does it leave?");
    assert_eq!(decided(&file), ["judge The answer is as expected: At seven."]);
    assert_eq!(file.cases[0].files[0].path, "times.csv");
    assert!(file.refused[0].contains("`prompts/b.md`, which is not there"), "{:?}", file.refused);
    assert!(
        read_is_foreign("evals:\n  - prompt: x\n") && !read_is_foreign("version: 1\ncases: []\n")
    );
}

fn read_is_foreign(text: &str) -> bool {
    is_foreign("eval.yaml", text)
}

#[test]
fn a_file_of_no_known_dialect_is_named_as_such() {
    let text = "name: a\nversion: 3\ntasks:\n  - id: one\n    file: tasks/one.yaml\n";
    assert!(is_foreign("eval.yaml", text));
    let file = read("eval.yaml", text.as_bytes(), &()).unwrap();
    let wanted = "it is of no dialect that is known here: its keys are `name`, `version`, `tasks`";
    assert_eq!(file.refused, [wanted]);
}

const PROMPTFOO: &str = "promptfooconfig.yaml";

#[test]
fn promptfoo_reads_prompts_variables_and_tests_of_other_files() {
    let files = MemoryFiles(vec![
        ("prompts/ask.txt", "Say {{what}}\n---\nTell {{what}}"),
        ("what.md", "hello\n"),
        (
            "cases/a.yaml",
            "- vars: { what: [one, two] }\n  assert: [{ type: contains, value: \"{{what}}\" }]\n",
        ),
        (
            "cases/b.yaml",
            "- vars: { what: file://what.md }\n  assert: [{ type: icontains, value: HELLO }]\n",
        ),
    ]);
    let text = "prompts: [file://prompts/ask.txt]\ntests: file://cases/*.yaml\n";
    let file = read(PROMPTFOO, text.as_bytes(), &files).unwrap();
    let asked: Vec<(&str, &str)> =
        file.cases.iter().map(|case| (&*case.id, &*case.prompt)).collect();
    let wanted = [
        ("1-1-v1", "Say one"),
        ("1-1-v2", "Say two"),
        ("1-2-v1", "Tell one"),
        ("1-2-v2", "Tell two"),
        ("2-1", "Say hello"),
        ("2-2", "Tell hello"),
    ];
    assert_eq!(asked, wanted, "{file:?}");
    assert_eq!(decided(&file)[1], r#"{"contains":"two"}"#);
}

#[test]
fn promptfoo_refuses_what_a_prompt_cannot_say() {
    for (prompt, why) in [
        ("{{ topic | upper }}", "needs `topic | upper`"),
        ("{% for x in y %}{{ x }}{% endfor %}", "conditions or loops"),
        ("[{\"role\": \"system\", \"content\": \"{{ a }}\"}]", "a list of messages"),
        ("file://prompt.js", "made by a program"),
        ("file://prompt.json", "does not read as a text"),
        ("file://none.txt", "not there"),
    ] {
        let config = json!({"prompts": [prompt], "tests": [{"vars": {"topic": "x"}}]});
        let file = named(PROMPTFOO, &config);
        assert!(file.cases.is_empty() && file.refused[0].contains(why), "{prompt}: {file:?}");
    }
    let of = |config: Value| named(PROMPTFOO, &config).refused;
    let hidden = of(json!({"prompts": ["classify it"], "providers": [{"id": "http"}],
        "tests": [{"vars": {"message": "Hi"}, "assert": []}]}));
    assert!(hidden[0].contains("takes `message`, which is not in the prompt"), "{hidden:?}");
    let echo = of(json!({"prompts": ["a"], "providers": ["echo"], "tests": [{"assert": []}]}));
    assert!(echo[0].contains("no agent is tested"), "{echo:?}");
    let part = of(json!({"prompts": ["a"], "tests": [{"threshold": 0.5, "assert": [
        {"type": "contains", "value": "a"}, {"type": "contains", "value": "b"}]}]}));
    assert!(part[0].contains("0.5 of its assertions are enough"), "{part:?}");
}

#[test]
fn promptfoo_checks_only_the_answer_as_it_is() {
    let config = json!({"prompts": ["a"], "tests": [{"assert": [
        {"type": "contains", "value": "x", "transform": "output.industry"},
        {"type": "javascript", "value": "JSON.parse(output).rows[0].kind === 'a b'"},
        {"type": "javascript", "value": "JSON.parse(output).ok === true;"},
        {"type": "javascript", "value": "output.length > 3"},
        {"type": "contains", "value": "{{missing}}"},
        {"type": "contains", "value": "y", "weight": 0},
        {"type": "equals", "value": "z", "config": {"a": 1}},
        {"type": "skill-used", "value": "wiki"},
        {"type": "contains-json", "value": {"intent": "billing"}}]}]});
    let file = named(PROMPTFOO, &config);
    let wanted = [
        "unknown a program changes the answer before",
        r#"{"json":{"pointer":"/rows/0/kind","equals":"a b"}}"#,
        r#"{"json":{"pointer":"/ok","equals":true}}"#,
        "unknown `javascript` of promptfoo cannot be carried over",
        "unknown it needs a variable that the test does not have",
        r#"{"equals":"z"}"#,
        r#"{"skill_loaded":"wiki"}"#,
        "unknown `contains-json` of promptfoo cannot be carried over",
    ];
    assert_eq!(decided(&file), wanted);
    for key in ["weight", "config"] {
        let words = format!("not carried over: `tests[].assert[].{key}`");
        assert!(file.warnings.iter().any(|it| it.starts_with(&words)), "{:?}", file.warnings);
    }
    let changed = json!({"prompts": ["a"], "defaultTest": {"options": {"transform": "output.x"}},
        "tests": [{"assert": [{"type": "contains", "value": "x"}]}]});
    assert!(decided(&named(PROMPTFOO, &changed))[0].starts_with("unknown"));
}

#[test]
fn rows_of_coder_eval_fill_every_text_of_a_criterion() {
    let text = "task_id: a\ninitial_prompt: \"Write ${row.word}\"\ndataset: { rows: [{ id: x, word: alpha }] }\n\
        success_criteria:\n  - { type: file_check, path: out.txt, includes: [\"${row.word}\"] }\n";
    let file = read("task.yaml", text.as_bytes(), &()).unwrap();
    assert!(decided(&file)[0].contains(r#""text":"alpha""#), "{:?}", decided(&file));
}

#[test]
fn an_order_of_calls_has_patterns_of_their_input() {
    let files = MemoryFiles(vec![(
        "graders/a.md",
        "---\ntype: tool_order\nbefore: { tool: Bash, input_match: 'checkout -b' }\nafter: Edit\n---\n",
    )]);
    let file = read("prompt.md", b"Fix it", &files).unwrap();
    assert_eq!(
        decided(&file),
        [r#"{"first_calls":[{"name":"Bash","matches":"checkout -b"},"Edit"]}"#]
    );
    let call = |name: &str, arguments: Value| check::ObservedToolCall {
        name: name.to_owned(),
        arguments,
        failed: false,
    };
    let Some(order) = file.cases[0].demands[0].decider.check() else { panic!("a check") };
    let calls = [
        call("Bash", json!({"command": "ls"})),
        call("Edit", json!({"file_path": "a"})),
        call("Bash", json!({"command": "git checkout -b x"})),
    ];
    let held = |calls: &[check::ObservedToolCall]| {
        let seen = check::CheckObservation { tool_calls: Some(calls), ..Default::default() };
        check::decide(order, &seen)
    };
    let text = format!("{:?}", held(&calls));
    assert!(text.contains("before"), "the first edit comes before the branch: {text}");
    let text = format!("{:?}", held(&calls[1..2]));
    assert!(text.contains("does not call the tool `Bash` with `checkout -b`"), "{text}");
    let with_number = json!({"first_calls": [{"name": "Bash", "max": 2}]});
    assert!(check::read(&with_number).is_err());
}

/// A machine with some programs, on which a task of Harbor lies.
struct Machine {
    files: MemoryFiles,
    programs: &'static [&'static str],
    python_packages: &'static [(&'static str, &'static str)],
}

impl FileLookup for Machine {
    fn find(&self, path: &str) -> Option<FileLocation> {
        self.files.find(path)
    }

    fn text(&self, path: &str, place: FileLocation) -> Option<std::io::Result<String>> {
        self.files.text(path, place)
    }

    fn list(&self, path: &str, place: FileLocation) -> Vec<String> {
        self.files.list(path, place)
    }

    fn has_program(&self, name: &str) -> bool {
        self.programs.contains(&name)
    }

    fn has_python_package(&self, python: Option<&str>, name: &str, version: Option<&str>) -> bool {
        python == Some("3.12")
            && self.python_packages.iter().any(|(found, there)| {
                *found == name && version.is_none_or(|version| version == *there)
            })
    }
}

#[test]
fn a_task_of_harbor_runs_where_the_machine_has_what_its_image_installs() {
    let of = |dockerfile: &'static str, programs: &'static [&'static str]| {
        let files = MemoryFiles(vec![
            ("environment/Dockerfile", dockerfile),
            ("environment/sum.py", "print(1)"),
            ("instruction.md", "Mend /app/sum.py"),
            ("tests/test.sh", "python -m pytest /tests/t.py && echo 1 >/logs/verifier/reward.txt"),
        ]);
        let machine = Machine { files, programs, python_packages: &[("pytest", "8.4.1")] };
        read("task.toml", b"version = \"1.0\"\n[environment]\n", &machine).unwrap()
    };
    let image = "FROM python:3.12-slim\nRUN apt-get update && apt-get install -y --no-install-recommends \\\n  procps curl \\\n  && rm -rf /var/lib/apt/lists/*\n\
        RUN pip install --no-cache-dir pytest==8.4.1\nENV PYTHONUNBUFFERED=1\nWORKDIR /app\nCOPY sum.py /app/\n";
    let all = &["python3.12", "python3", "python", "ps", "curl"];
    let file = of(image, all);
    assert_eq!(file.cases.len(), 1, "{file:?}");
    assert_eq!(file.cases[0].files[0].path, "sum.py");
    let file = of(image, &["python3", "python3.13", "python", "ps"]);
    let why = &file.refused[0];
    assert!(why.contains("`python3.12`, which this machine lacks"), "{why}");
    assert!(why.contains("`curl`") && !why.contains("`procps`"), "{why}");
    for (line, why) in [
        ("RUN pip install pytest==9.0.0", "`pytest==9.0.0`, which this machine lacks"),
        ("RUN pip install -r requirements.txt", "runs a command"),
        ("RUN apt-get install -y curl=7.88", "runs a command"),
        ("RUN curl -LsSf https://example.org | sh", "runs a command"),
        ("ENV API_KEY=x", "needs more than files"),
    ] {
        let image = Box::leak(format!("FROM python:3.12\n{line}\n").into_boxed_str());
        let file = of(image, all);
        assert!(file.refused[0].contains(why), "{line}: {:?}", file.refused);
    }
}

#[test]
fn rules_of_skill_up_match_patterns_and_no_condition_is_lost() {
    let file = named(
        "eval.yaml",
        &json!({"id": "ferry", "input": {"prompt": "Describe the harbour."},
            "judge": {"type": "rule_based", "success": [
                {"output_matches": {"all": ["(?i)fer+y"], "any": ["pier", "quay"], "not": ["^No"]}},
                {"command_sequence": ["ls"]}],
              "failure": [{"exit_code": 1, "output_contains": {"any": ["refund"]}}]}}),
    );
    let demands = &file.cases[0].demands;
    assert_eq!(demands.len(), 3, "{file:?}");
    let pattern = |text: &str| json!({ "regex": text });
    let wanted = json!({"all": [pattern("(?i)fer+y"), {"any": [pattern("pier"), pattern("quay")]},
        {"not": pattern("^No")}]});
    let check = CaseDemand::typed(&demands[0].text, &wanted);
    assert_eq!(demands[0], check);
    for (demand, key) in demands[1..].iter().zip(["command_sequence", "exit_code"]) {
        let DemandDecider::Unknown { why } = &demand.decider else { panic!("{demand:?}") };
        assert!(why.contains(key), "{why}");
    }
}

#[test]
fn a_prompt_that_lacks_what_it_is_about_is_refused() {
    let file = named(
        "cases.json",
        &json!({"cases": [
            {"id": "a", "request": "Is the quay open?", "context": "The quay was measured once.",
             "expected": ["Says that it is not known"]},
            {"id": "b", "prompt": "Polish this text.", "source_text": "The ferry leaves.",
             "assertions": ["Keeps the name of the ferry"]},
            {"id": "c", "prompt": "Polish the text.", "fixture": {"body": "The ferry leaves."},
             "assertions": ["Keeps the name of the ferry"]},
            {"id": "d", "prompt": "Is the quay open?", "context": "",
             "assertions": ["Says that it is not known"]}]}),
    );
    assert_eq!(file.cases.len(), 1, "{file:?}");
    assert_eq!(file.refused.len(), 3, "{file:?}");
    for (why, key) in file.refused.iter().zip(["context", "source_text", "fixture"]) {
        assert!(why.contains(&format!("`{key}` is not part of its prompt")), "{why}");
    }
}

#[test]
fn what_must_not_be_has_many_names() {
    let file = named(
        "cases.json",
        &json!([{"id": "a", "prompt": "Describe the harbour.",
            "failure_conditions": ["Invents a ferry of its own"],
            "failure_modes": ["Does not name the quay", "refund"],
            "banned_behavior": ["Claims to have seen the harbour"],
            "forbidden": ["Promises a refund to the guest"]}]),
    );
    let demands = &file.cases[0].demands;
    let texts: Vec<&str> = demands.iter().map(|it| it.text.as_str()).collect();
    let wanted = [
        "This does not hold: Promises a refund to the guest",
        "This does not hold: Invents a ferry of its own",
        "This does not hold: Does not name the quay",
        "failure_modes: \"refund\"",
        "This does not hold: Claims to have seen the harbour",
    ];
    assert_eq!(texts, wanted, "{file:?}");
    assert!(matches!(demands[3].decider, DemandDecider::Unknown { .. }), "{file:?}");
}

#[test]
fn a_word_may_say_whether_a_prompt_loads_the_skill() {
    let list = json!([{"id": "a", "expect": "trigger", "prompt": "When?"},
        {"id": "b", "expect": "no-trigger", "prompt": "Bake"}]);
    let file = named("prompts.json", &list);
    assert_eq!(prompts_of(&file), [("When?", true, vec![]), ("Bake", false, vec![])], "{file:?}");
}
