//! `selftest skills test`: a repository of skills, tested without them, as on another branch, and as
//! they are here.

use std::process::Command;

use serde_json::{Value, json};

use crate::workspace::{NOBODY, Workspace};

/// The skill makes the agent say this.
const RIGHT: &str = "10:40";

/// A skill that is loaded at requests with this word, and what the agent then says.
fn skill(word: &str, answer: &str) -> String {
    format!("---\nname: {word}\ndescription: Knows the {word}\n---\nANSWER: {answer}\n")
}

/// Eight tasks that are right if the answer has the time.
fn tasks(word: &str, count: u32) -> String {
    let case = |id: u32| {
        json!({
            "id": id,
            "prompt": format!("When does {word} number {id} come?"),
            "expectations": [format!("The answer contains \"{RIGHT}\"")],
        })
    };
    json!({ "skill_name": word, "evals": (1..=count).map(case).collect::<Vec<_>>() }).to_string()
}

/// Two requests at which the skill should be loaded, and two at which it should not.
fn prompts(word: &str) -> String {
    let query = |query: String, wanted: bool| json!({ "query": query, "should_trigger": wanted });
    json!([
        query(format!("Tell me about the {word}"), true),
        query(format!("One {word}, please"), true),
        query("Bake a cake".to_owned(), false),
        query("Sing a song".to_owned(), false),
    ])
    .to_string()
}

/// A repository whose agent says this where no skill helps it.
fn repository(own_answer: &str) -> Workspace {
    let run = json!(["python3", "agent.py", own_answer]);
    Workspace::new()
        .config(format!(
            "version: 1\nsut:\n  command:\n    run: {run}\n    protocol: json_lines\n    \
             work_folder: copy\n"
        ))
        .file("agent.py", include_str!("fixtures/skill_agent.py"))
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("OLLAMA_HOST", NOBODY)
}

fn with_skill(workspace: Workspace, word: &str, answer: &str) -> Workspace {
    workspace.file(&format!("skills/{word}/SKILL.md"), skill(word, answer))
}

/// The repository of docs/test-skills.md: a branch that adds to one skill of three and breaks another.
pub(crate) fn example(workspace: Workspace) -> Workspace {
    let mut workspace = workspace
        .config(
            "version: 1\nsut:\n  command:\n    run: [python3, agent.py, no idea]\n    protocol: \
             json_lines\n    work_folder: copy\n",
        )
        .file("agent.py", include_str!("fixtures/skill_agent.py"))
        .env("OLLAMA_HOST", NOBODY);
    for word in ["ferry", "gull", "tide"] {
        let first_two: Vec<Value> =
            parsed(&prompts(word)).as_array().unwrap().iter().skip(1).take(2).cloned().collect();
        workspace = with_skill(workspace, word, RIGHT)
            .file(&format!("skills/{word}/evals/evals.json"), tasks(word, 4))
            .file(&format!("skills/{word}/evals/trigger-evals.json"), json!(first_two).to_string());
    }
    git(&workspace, &["init", "-q"]);
    git(&workspace, &["add", "-A"]);
    git(&workspace, &["commit", "-qm", "one"]);
    git(&workspace, &["checkout", "-qb", "work"]);
    workspace
        .file("skills/ferry/SKILL.md", skill("ferry", "at 10:40 from pier 2"))
        .file("skills/tide/SKILL.md", skill("tide", "in the afternoon"))
}

fn test(workspace: &Workspace, arguments: &[&str]) -> Workspace {
    workspace.clone().args(["skills", "test"].iter().chain(arguments))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[track_caller]
fn git(workspace: &Workspace, arguments: &[&str]) {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
    let done = Command::new("git")
        .args(who)
        .args(arguments)
        .current_dir(workspace.project())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_DATE", "2026-11-22T04:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-11-22T04:00:00Z")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[cfg(target_os = "linux")]
#[test]
fn a_skill_that_helps_is_found_in_sixteen_trials() {
    let workspace = with_skill(repository("never"), "ferry", RIGHT)
        .file("skills/ferry/evals/evals.json", tasks("ferry", 8));
    let arguments = ["--repeats=1", "--rule=lift,no_regression", "--json"];
    let run = test(&workspace, &arguments).run().exit(0);
    let report = parsed(&run.stdout);
    let skill = &report["skills"][0];
    assert_eq!(skill["lift"]["conclusion"], "helps", "{report:#}");
    assert_eq!(skill["lift"]["trials"], json!({ "control": 8, "treatment": 8 }));
    let p = skill["lift"]["these_cases"]["pass_rate"]["p_value"].as_f64().unwrap();
    assert!((p - 2.0 / 256.0).abs() < 1e-12, "checks alone make one test: {p}");
    assert_eq!(skill["evidence"]["used"], 8);
    assert_eq!(report["outcome"], "passed");
}

#[cfg(target_os = "linux")]
#[test]
fn a_skill_that_harms_is_found_and_an_inert_one_is_not() {
    let harmful = with_skill(repository(RIGHT), "ferry", "never")
        .file("skills/ferry/evals/evals.json", tasks("ferry", 8));
    let run = test(&harmful, &["--repeats=1"]).run().exit(1);
    let run = run.stdout_contains("no_regression missed: tasks are worse than without the skill");
    let _ = run.stdout_contains("1 of 1 skill tested: no_regression missed by ferry");

    let inert = with_skill(repository(RIGHT), "ferry", RIGHT)
        .file("skills/ferry/evals/evals.json", tasks("ferry", 8));
    let run = test(&inert, &["--repeats=1"]).run().exit(0);
    let _ = run.stdout_contains("lift     0 points");
    let run = test(&inert, &["--repeats=1", "--rule=lift"]).run().exit(1);
    let _ = run.stdout_contains("lift missed: no lift is shown");
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_that_breaks_in_every_trial_meets_no_rule() {
    let broken = Workspace::new()
        .config(
            "version: 1\nsut:\n  command:\n    run: [sh, -c, exit 3]\n    protocol: json_lines\n    \
             work_folder: copy\n",
        )
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("OLLAMA_HOST", NOBODY);
    let broken =
        with_skill(broken, "ferry", RIGHT).file("skills/ferry/evals/evals.json", tasks("ferry", 4));
    let run = test(&broken, &["--repeats=1"]).run().exit(3);
    let _ =
        run.stdout_contains("the agent gave no complete answer in any of 4 trials with the skill");

    // Only prompts about loading: nothing was answered either.
    let prompted = with_skill(
        Workspace::new()
            .config(
                "version: 1\nsut:\n  command:\n    run: [sh, -c, exit 3]\n    protocol: \
                 json_lines\n    work_folder: copy\n",
            )
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("OLLAMA_HOST", NOBODY),
        "ferry",
        RIGHT,
    )
    .file("skills/ferry/evals/trigger-evals.json", prompts("ferry"));
    let run = test(&prompted, &["--repeats=1"]).run().exit(3);
    let _ = run.stdout_contains("the agent answered no prompt about loading");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pull_request_that_changes_two_of_twenty_four_skills() {
    let mut workspace = repository("never");
    for number in 0..24 {
        // Words of letters alone, unlike each other.
        let letter = char::from(b'a' + number);
        let word = format!("boat{letter}{letter}");
        workspace = with_skill(workspace, &word, RIGHT)
            .file(&format!("skills/{word}/evals/evals.json"), tasks(&word, 8))
            .file(&format!("skills/{word}/evals/trigger-evals.json"), prompts(&word));
    }
    git(&workspace, &["init", "-q"]);
    git(&workspace, &["add", "-A"]);
    git(&workspace, &["commit", "-qm", "one"]);
    git(&workspace, &["checkout", "-qb", "work"]);
    let run = test(&workspace, &["--changed", "--against", "main"]).run().exit(0);
    let _ = run.stdout_contains("no skill with cases differs from main");

    // One works as before, and the other one gives a wrong answer.
    let changed = workspace
        .file("skills/boataa/SKILL.md", skill("boataa", "at 10:40 sharp"))
        .file("skills/boatbb/SKILL.md", skill("boatbb", "tomorrow"));
    git(&changed, &["commit", "-qam", "two"]);
    let reports = "junit=out/skills.xml,html=out/skills.html,md=out/skills.md,comment=out/body.md";
    let arguments = ["--changed", "--against=main", "--repeats=1", "--report", reports, "--json"];
    let run = test(&changed, &arguments).run().exit(1);
    let report = parsed(&run.stdout);
    assert_eq!(report["outcome"], "failed", "{report:#}");
    let skills = report["skills"].as_array().unwrap();
    let names: Vec<&str> = skills.iter().map(|skill| skill["skill"].as_str().unwrap()).collect();
    assert_eq!(names, ["boataa", "boatbb"]);
    for (skill, outcome, here) in [(&skills[0], "met", 8), (&skills[1], "missed", 0)] {
        assert_eq!(skill["difference"], "changed");
        let arms: Vec<(&Value, &Value)> = skill["arms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arm| (&arm["arm"], &arm["passed"]))
            .collect();
        let expected = [("without", 0), ("base", 8), ("here", here)];
        let expected: Vec<(Value, Value)> =
            expected.iter().map(|(arm, passed)| (json!(arm), json!(passed))).collect();
        let expected: Vec<(&Value, &Value)> = expected.iter().map(|(a, b)| (a, b)).collect();
        assert_eq!(arms, expected);
        assert_eq!(skill["rules"][0]["outcome"], outcome, "{skill:#}");
        let rates = &skill["arms"][2]["rates"];
        assert_eq!(
            (&rates["precision"]["share"], &rates["recall"]["share"]),
            (&json!(1.0), &json!(1.0))
        );
        assert!(skill["arms"][2]["mean_tokens"].as_f64().unwrap() > 100.0);
    }
    assert_eq!(skills[1]["change"]["conclusion"], "harms");
    let unchanged = report["not_tested"].as_array().unwrap().iter();
    assert_eq!(unchanged.filter(|skill| skill["reason"] == "unchanged").count(), 22);

    let junit = run.read("out/skills.xml");
    assert!(
        junit.contains(
            "<testsuite name=\"boatbb\" tests=\"1\" skipped=\"0\" errors=\"0\" failures=\"1\""
        ),
        "{junit}"
    );
    let comment = run.read("out/body.md");
    assert!(comment.starts_with("<!-- selftest:comment skills -->"), "{comment}");
    assert!(comment.contains("| boatbb | 0 of 8 | 8 of 8 | 0 of 8 |"), "{comment}");
    assert!(comment.contains("- 22 skills unchanged"), "{comment}");
    assert!(run.read("out/skills.md").contains("## boataa"));
    assert!(run.read("out/skills.html").contains("<h2>boatbb"));
    // The work tree was not touched.
    let status = Command::new("git")
        .args(["status", "--porcelain", "-uno"])
        .current_dir(changed.project())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(status.stdout).unwrap(), "");
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_of_the_operator_is_in_any_arm() {
    let workspace = with_skill(repository("never"), "ferry", RIGHT);
    let home = workspace.folder().join("home");
    let planted = home.join(".claude/skills/planted");
    std::fs::create_dir_all(&planted).unwrap();
    std::fs::write(planted.join("SKILL.md"), skill("planted", "leaked")).unwrap();
    let run = json!(["python3", "agent.py", "never", home.join(".claude/skills")]);
    let list = json!({ "skill_name": "ferry", "evals": [
        { "id": "list", "prompt": "List the skills", "expectations": ["The answer contains \"skills:\""] },
        { "id": "leak", "prompt": "What is planted here?", "expectations": ["The answer does not contain \"leaked\""] },
        { "id": "use", "prompt": "When does the ferry come?", "expectations": ["The answer contains \"10:40\""] },
    ] });
    let workspace = with_skill(workspace, "tide", "high")
        .config(format!(
            "version: 1\nsut:\n  command:\n    run: {run}\n    protocol: json_lines\n    \
             work_folder: copy\n"
        ))
        .file("skills/ferry/evals/evals.json", list.to_string())
        .file(".claude/settings.local.json", "{}");
    let run = test(&workspace, &["skills/ferry", "--repeats=2", "--json"]).run().exit(0);
    let report = parsed(&run.stdout);
    let outputs = |arm: usize| -> Vec<String> {
        let id = report["skills"][0]["arms"][arm]["run_id"].as_str().unwrap();
        let report = parsed(&run.read(&format!("reports/selftest/{id}.json")));
        let cases = report["cases"].as_array().unwrap();
        cases.iter().take(3).map(|case| case["output"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(outputs(0), ["skills: tide", "never", "never"]);
    assert_eq!(outputs(1), ["skills: ferry tide", "never", RIGHT]);

    // Settings that would hand over the operator's own are refused.
    let leaking = workspace.env("CLAUDE_CONFIG_DIR", home.join(".claude")).config(
        "version: 1\nsut:\n  command:\n    run: [python3, agent.py, x]\n    protocol: json_lines\n    \
         work_folder: copy\n    pass_environment: [CLAUDE_CONFIG_DIR]\n",
    );
    let run = test(&leaking, &[]).run().exit(5);
    let _ = run.one_error(&["pass_environment passes on CLAUDE_CONFIG_DIR"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_of_the_client_protocol_gets_whole_skills() {
    let workspace = repository("x")
        .config(
            "version: 1\nsut:\n  acp:\n    run: [python3, acp_agent.py, skills]\n    work_folder: copy\n",
        )
        .file("acp_agent.py", include_str!("fixtures/acp_agent.py"))
        .file("skills/ferry/SKILL.md", "---\nname: ferry\n---\nRead references/times.md.\n")
        .file("skills/ferry/references/times.md", "10:40 from the harbour\n")
        .file("skills/ferry/evals/evals.json", tasks("ferry", 8))
        .file("skills/tide/SKILL.md", "---\nname: tide\n---\nHigh.\n");
    let run = test(&workspace, &["--repeats=1", "--rule=lift", "--json"]).run().exit(0);
    let report = parsed(&run.stdout);
    let skill = &report["skills"][0];
    assert_eq!(skill["lift"]["conclusion"], "helps", "{report:#}");
    let output = |arm: usize| {
        let id = skill["arms"][arm]["run_id"].as_str().unwrap();
        let report = parsed(&run.read(&format!("reports/selftest/{id}.json")));
        report["cases"][0]["output"].as_str().unwrap().to_owned()
    };
    assert!(output(1).contains(".claude/skills/ferry/references/times.md: 10:40"), "{}", output(1));
    assert!(
        !output(0).contains("ferry") && output(0).contains("skills/tide/SKILL.md"),
        "{}",
        output(0)
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_skill_that_is_never_read_is_blocked() {
    let workspace = repository("never")
        .file("skills/ferry/SKILL.md", "---\nname: ferry\ndescription: x\n---\nANSWER: 10:40\n")
        .file(
            "agent.py",
            "import json\ninput()\nprint(json.dumps({'type': 'result', \
                           'status': 'COMPLETE', 'output': 'x', 'tool_calls': []}))\n",
        )
        .file("skills/ferry/evals/evals.json", tasks("ferry", 4));
    let run = test(&workspace, &["--repeats=1"]).run().exit(3);
    let run = run.stdout_contains("Blocked: ");
    let _ = run.stdout_contains("1 of 1 skill tested: undecided: ferry");
}

#[cfg(target_os = "linux")]
#[test]
fn a_hostile_skill_is_refused_by_name_and_the_others_run() {
    let workspace = with_skill(with_skill(repository("never"), "ferry", RIGHT), "tide", RIGHT)
        .file("skills/ferry/evals/evals.json", tasks("ferry", 8))
        .file("skills/tide/evals/evals.json", tasks("tide", 8))
        .file("skills/big/SKILL.md", "x".repeat(1 << 21));
    std::os::unix::fs::symlink("/etc/passwd", workspace.path("skills/tide/secret")).unwrap();
    let run = test(&workspace, &["--repeats=1", "--json"]).run().exit(3);
    let report = parsed(&run.stdout);
    assert_eq!(report["skills"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!(report["skills"][0]["rules"][0]["outcome"], "met");
    let refused = report["not_tested"].as_array().unwrap();
    let why = |skill: &str| {
        let found = refused.iter().find(|one| one["skill"] == skill).unwrap();
        assert_eq!(found["reason"], "refused");
        found["why"].as_str().unwrap().to_owned()
    };
    assert!(why("skills/big").contains("it is over 1048576 bytes"), "{report:#}");
    assert!(why("skills/tide").contains("the link `secret` leads out"), "{report:#}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_test_that_reaches_a_limit_is_resumed() {
    let workspace = with_skill(with_skill(repository("never"), "ferry", RIGHT), "tide", RIGHT)
        .file("skills/ferry/evals/evals.json", tasks("ferry", 8))
        .file("skills/tide/evals/evals.json", tasks("tide", 8));
    let arguments = ["--repeats=1", "--max-tokens=500", "--concurrency=1"];
    let run = test(&workspace, &arguments).run().exit(3);
    let _ = run.stdout_contains("not tested: tide: a limit of the test was reached");
    // Trials of other options do not belong to this test.
    let run = test(&workspace, &["--resume=latest", "--timeout=77"]).run().exit(2);
    let _ = run.stderr_contains("was started with another --timeout");
    let run = test(&workspace, &["--resume=latest", "--json"]).run().exit(0);
    let report = parsed(&run.stdout);
    let skills = report["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 2);
    for skill in skills {
        assert_eq!(skill["lift"]["trials"], json!({ "control": 8, "treatment": 8 }), "{skill:#}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn siblings_that_interfere_and_a_skill_against_itself() {
    // `aaa` comes first and is loaded instead.
    let workspace = with_skill(repository("never"), "ferry", RIGHT)
        .file("skills/aaa/SKILL.md", skill("ferry", "never"))
        .file("skills/tide/SKILL.md", skill("tide", "high"))
        .file("skills/ferry/evals/evals.json", tasks("ferry", 8));
    let arguments = ["skills/ferry", "--repeats=1", "--interference", "--aa", "--json"];
    let run = test(&workspace, &arguments).run().exit(0);
    let report = parsed(&run.stdout);
    let skill = &report["skills"][0];
    let siblings = skill["siblings"].as_array().unwrap();
    let found: Vec<(&str, bool)> = siblings
        .iter()
        .map(|one| (one["sibling"].as_str().unwrap(), one["interferes"].as_bool().unwrap()))
        .collect();
    assert_eq!(found, [("aaa", true), ("tide", false)], "{skill:#}");
    assert_eq!(skill["again"]["conclusion"], "not_enough_evidence");
}

#[cfg(target_os = "linux")]
#[test]
fn models_are_compared() {
    let workspace = with_skill(repository("{model}"), "ferry", RIGHT)
        .file("skills/ferry/evals/evals.json", tasks("ferry", 8));
    let arguments = ["--repeats=1", "--models=never,10:40", "--json"];
    let run = test(&workspace, &arguments).run().exit(0);
    let report = parsed(&run.stdout);
    let lift = |at: usize| report["skills"][at]["lift"]["conclusion"].clone();
    assert_eq!([lift(0), lift(1)], ["helps", "not_enough_evidence"], "{report:#}");
    assert_eq!(report["skills"][1]["model"], "10:40");
}

#[cfg(target_os = "linux")]
#[test]
fn the_plan_is_shown_and_a_rule_that_cannot_be_met_is_refused() {
    let workspace = with_skill(repository("never"), "ferry", RIGHT)
        .file("skills/ferry/evals/evals.json", tasks("ferry", 1))
        .file("skills/ferry/evals/trigger-evals.json", prompts("ferry"))
        .file("skills/tide/SKILL.md", skill("tide", "high"));
    let run = test(&workspace, &["--dry-run"]).run().exit(0);
    let run = run.stdout_contains("ferry: 1 task, 4 prompts, 5 trials each, in 2 arms");
    let run = run.stdout_contains("1 skill, 30 trials");
    let _ = run.stdout_contains("not tested: tide: no cases");
    let run = test(&workspace, &["--rule=lift", "--repeats=2"]).run().exit(2);
    let _ = run.one_error(&["it needs --repeats 4"]);
    let run = test(&workspace, &["--changed"]).run().exit(2);
    let _ = run.one_error(&["git rev-parse failed"]);
    let refused = workspace.config(
        "version: 1\nsut:\n  command:\n    run: [aider, --message, x]\n    work_folder: copy\n",
    );
    let bin = refused.path("bin/aider");
    std::fs::create_dir_all(bin.parent().unwrap()).unwrap();
    std::fs::write(&bin, "#!/bin/sh\n").unwrap();
    let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&bin, rights).unwrap();
    let refused = refused.env("PATH", bin.parent().unwrap());
    let run = test(&refused, &[]).run().exit(5);
    let run = run.one_error(&["aider looks for skills nowhere"]);
    let _ = run.stderr_contains("agents that do: claude, codex");
}

#[cfg(target_os = "linux")]
#[test]
fn one_workflow_file_gates_a_pull_request_that_changes_two_of_twenty_four_skills() {
    let mut workspace = repository("never");
    let configuration = std::fs::read_to_string(workspace.path("config/selftest.yaml")).unwrap();
    std::fs::remove_file(workspace.path("config/selftest.yaml")).unwrap();
    let word = |number: u8| {
        let letter = char::from(b'a' + number);
        format!("boat{letter}{letter}")
    };
    for number in 0..24 {
        let folder = if number < 20 { "skills" } else { "plugins/harbour/skills" };
        let text = format!(
            "---\nname: {0}\ndescription: Knows the {0}\n---\nANSWER: in `{0}.md`\n",
            word(number)
        );
        workspace = workspace.file(&format!("{folder}/{}/SKILL.md", word(number)), text);
    }
    let market =
        r#"{"name": "m", "plugins": [{"name": "harbour", "source": "./plugins/harbour"}]}"#;
    workspace = workspace
        .file(".claude-plugin/marketplace.json", market)
        .file("skills/boatcc/evals/evals.json", tasks("boatcc", 8));
    let run = workspace.clone().args(["init", "--yes"]).run().exit(0);
    let run = run.stdout_contains("skills: 20 skills");
    let run = run.stdout_contains("plugins/harbour/skills: 4 skills");
    let run = run.stdout_contains("cases for 1 of 24 skills, 23 without");
    // The agent takes the folder of its skills as an argument, which only the configuration below
    // gives.
    let _ = run.stdout_contains("next: `selftest doctor`");
    let workflow =
        std::fs::read_to_string(workspace.path(".github/workflows/selftest.yml")).unwrap();
    assert!(workflow.contains("fetch-depth: 0"), "{workflow}");
    let command =
        workflow.lines().find_map(|line| line.trim().strip_prefix("run: selftest skills test"));
    let arguments: Vec<&str> = command.unwrap().split_whitespace().collect();
    let scaffold =
        parsed(&std::fs::read_to_string(workspace.path("skills/boataa/evals/evals.json")).unwrap());
    assert_eq!(scaffold["evals"][0]["expectations"][0], "The answer contains \"boataa.md\"");

    // The agent that init found has no program here.
    let workspace = workspace.config(configuration);
    git(&workspace, &["init", "-q"]);
    git(&workspace, &["add", "-A"]);
    git(&workspace, &["commit", "-qm", "one"]);
    git(&workspace, &["checkout", "-qb", "work"]);
    let good = "---\nname: boataa\ndescription: Knows the boataa\n---\nANSWER: see `boataa.md`\n";
    let workspace = workspace.file("skills/boataa/SKILL.md", good);
    let bad = "---\nname: boatuu\ndescription: Knows the boatuu\n---\nANSWER: forgotten\n";
    let workspace = workspace.file("plugins/harbour/skills/boatuu/SKILL.md", bad);
    git(&workspace, &["commit", "-qam", "two"]);
    let workspace = workspace.env("GITHUB_BASE_REF", "main");
    let run = test(&workspace, &arguments).run().exit(1);
    let run = run.stdout_contains("compared with main");
    let run = run.stdout_contains("2 of 24 skills tested: no_regression missed by boatuu");
    let comment = run.read("reports/selftest/ci/comment.md");
    assert!(comment.contains("| boataa | 0 of 5 | 5 of 5 | 5 of 5 |"), "{comment}");
    assert!(comment.contains("| boatuu | 0 of 5 | 5 of 5 | 0 of 5 |"), "{comment}");
    let sent = ["report", "comment", "--file", "reports/selftest/ci/comment.md", "--dry-run"];
    let shown = workspace.clone().args(sent).run().exit(0);
    assert_eq!(shown.stdout, comment);
}
