//! The generator's prompts: accepted, rejected, re-generated, or put together from a template.

use serde_json::{Value, json};

use crate::model_server::{
    Call, ModelServer, Reply, Role, answered, generated, grounded, quotes, words,
};
use crate::report::Report;
use crate::workspace::{CLEAR, OPENAI, Workspace, config, scenarios};

/// The five scenarios of a project without a configuration.
const SPECIFIED: &str = r"
  - { id: ambiguous_request, description: Vague, expected_status: AWAITING_RESPONSE }
  - { id: clear_summary, description: Summary, expected_status: COMPLETE }
  - { id: evidence_restriction, description: Evidence, expected_status: COMPLETE }
  - { id: docs_reorganization, description: Docs, expected_status: AWAITING_RESPONSE }
  - { id: contradiction_detect, description: Contradiction, expected_status: COMPLETE }
";

const PAGE: &str = "# Zebrafish

## Ports

The server of the zebrafish listens on port 7700 of this machine only.
It is changed by `serve --port`, or by the variable `PORT` where that is set.

## Limits

At most 20 clients are served at once, and each of them waits for 30 seconds.
A tank holds 45 litres of water and 12 fish.
";

/// Every fact of every case is in the page, and the page is what the judge is given.
#[track_caller]
fn is_grounded(report: &Report) {
    for case in report.cases() {
        let grounds = &case.0["grounds"];
        let excerpt = &grounds["excerpts"][0];
        assert_eq!(excerpt["path"], "README.md", "{case}");
        let text = excerpt["text"].as_str().unwrap();
        assert!(PAGE.contains(text), "{case}");
        for fact in grounds["facts"].as_array().into_iter().flatten() {
            assert!(text.contains(fact.as_str().unwrap()), "{case}");
        }
        let expectations = grounds["expectations"].as_array().unwrap();
        assert!((2..=4).contains(&expectations.len()), "{case}");
    }
}

#[test]
fn prompts_are_about_an_excerpt_of_the_project() {
    let server = ModelServer::script()
        .generator(|call| grounded(call, &format!("Explain {} to me.", words(call.number))))
        .sut(|call| {
            let proposes = call.last_message().contains("proposal");
            let ask = json!({ "status": "AWAITING_RESPONSE", "output": "Which one?" });
            if proposes { ask } else { answered(call) }
        })
        .start();
    let workspace =
        Workspace::new().config(config(OPENAI, SPECIFIED)).server(&server).file("README.md", PAGE);
    let run = workspace.clone().args(["--seed=11", "--concurrency=1", "--exit-zero"]).run().exit(0);
    let report = run.report();
    is_grounded(&report);
    assert_eq!(report.counts()[0], 5);
    // The harness makes the vague request and the contradiction itself.
    let calls = server.calls(Role::Generator);
    assert_eq!(calls.len(), 3, "{:?}", report.case_of("evidence_restriction").rejections());
    for call in &calls {
        let quotes = quotes(call);
        assert!(!quotes.is_empty() && quotes.iter().all(|quote| PAGE.contains(quote.as_str())));
    }
    let summary = report.case_of("clear_summary");
    assert!(summary.prompt().contains("three lines") && summary.prompt().contains("README.md"));
    let form = &summary.0["grounds"]["checks"][0];
    assert_eq!(
        (&form["lines"], summary.0["checks"][0]["outcome"].as_str()),
        (&3.into(), Some("held"))
    );
    assert!(report.case_of("evidence_restriction").prompt().contains("no other source"));
    let vague = report.case_of("ambiguous_request");
    assert!(!vague.prompt().contains("README") && !vague.prompt().contains("Ports"), "{vague}");
    let asks = "The answer asks which file or section is meant.";
    assert_eq!(vague.0["grounds"]["expectations"][0], asks);
    let statements = report.case_of("contradiction_detect");
    assert!(statements.prompt().contains("\n2. "), "{statements}");
    assert!(statements.0["grounds"]["reference"].as_str().unwrap().contains("contradict"));
    // The same seed chooses the same, even after a run that asked it.
    let again = workspace.args(["--seed=11", "--concurrency=1", "--exit-zero", "--format=json"]);
    let again = again.run().exit(0).stdout_report();
    for id in ["ambiguous_request", "contradiction_detect"] {
        assert_eq!(again.case_of(id).prompt(), report.case_of(id).prompt());
    }
}

#[test]
fn a_weak_generator_gives_way_to_templates_and_reports_say_so() {
    let leaked = "Generate a user request that is intentionally vague about requirements.";
    let server = ModelServer::script().generator(move |call| grounded(call, leaked)).start();
    let run = Workspace::new()
        .config(config(OPENAI, SPECIFIED))
        .server(&server)
        .file("README.md", PAGE)
        .args(["--exit-zero"])
        .run()
        .exit(0);
    let report = run.report();
    is_grounded(&report);
    assert_eq!(report.counts()[0], 5);
    assert_eq!(report.summary()["rejected_prompts"], 9);
    for id in ["clear_summary", "evidence_restriction", "docs_reorganization"] {
        let case = report.case_of(id);
        assert!(case.prompt().contains("README.md"), "{case}");
        let note = case.0["notes"][0].as_str().unwrap();
        assert!(note.contains("prompt from a template, because: none of 3 from"), "{note}");
        assert!(note.contains("its own making"), "{note}");
    }
    assert!(run.markdown().contains("prompt from a template, because"), "{}", run.markdown());
    for call in server.calls(Role::Sut) {
        assert!(!call.text().contains("intentionally vague"), "{}", call.text());
    }
}

#[test]
fn invented_facts_are_no_facts() {
    let server = ModelServer::script()
        .generator(|call| {
            let mut case = generated(call);
            let facts = case["facts"].as_array_mut().unwrap();
            facts.truncate(1);
            facts.push("A sentence that stands nowhere.".into());
            if call.number == 0 {
                facts.remove(0);
            }
            case
        })
        .start();
    let report = Workspace::simple(&server).file("README.md", PAGE).run().exit(0).report();
    let case = report.case();
    let rejections = case.rejections();
    assert_eq!(rejections.len(), 1);
    assert!(
        rejections[0].contains("none of its facts is a quote from README.md"),
        "{rejections:?}"
    );
    is_grounded(&report);
    assert_eq!(case.0["grounds"]["facts"].as_array().unwrap().len(), 1, "{case}");
}

#[test]
fn a_project_without_text_is_asked_about_a_built_in_one() {
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server).file("image.png", b"\0PNG").file("empty.md", "\n");
    let run = workspace.run().exit(0);
    let report = run.report();
    let case = report.case();
    assert_eq!(case.0["grounds"]["excerpts"][0]["path"], "built-in text");
    let text = case.0["grounds"]["excerpts"][0]["text"].as_str().unwrap();
    assert!(case.prompt().ends_with(text), "{case}");
    assert!(run.markdown().contains("the project has no text to ask about"));
}

#[test]
fn what_an_earlier_run_asked_is_not_asked_again() {
    let server = ModelServer::script()
        .generator(|call| grounded(call, "Explain README.md in three lines."))
        .start();
    let workspace = Workspace::simple(&server).file("README.md", PAGE).args(["--format=json"]);
    let first = workspace.run().exit(0).stdout_report();
    assert_eq!(first.case().rejections().len(), 0);
    let second = workspace.run().exit(0).stdout_report();
    assert_eq!(second.case().rejections(), ["an earlier run asked the same"; 3]);
    assert_ne!(second.case().prompt(), first.case().prompt());
    // Whoever gives a seed wants the same again.
    let third = workspace.args(["--format=json", "--seed=5"]).run().exit(0).stdout_report();
    assert_eq!(third.case().prompt(), first.case().prompt());
}

#[test]
fn people_may_write_the_grounds_themselves() {
    let server = ModelServer::start();
    let own = format!(
        "{CLEAR}    expectations: [The answer names port 7700.]\n    reference: Port 7700.\n    \
         files: [docs/ports.md]\n"
    );
    let workspace = Workspace::new()
        .config(config(OPENAI, &own))
        .server(&server)
        .file("README.md", PAGE)
        .file("docs/ports.md", "# Ports\n\nThe port of the other server is 7900 by default.\n");
    let report = workspace.clone().args(["--format=json"]).run().exit(0).stdout_report();
    let grounds = report.case().0["grounds"].clone();
    assert_eq!(grounds["expectations"][0], "The answer names port 7700.");
    assert_eq!(grounds["reference"], "Port 7700.");
    assert_eq!(grounds["excerpts"][0]["path"], "docs/ports.md");
    assert_eq!(grounds["facts"][0], "The port of the other server is 7900 by default.");
    // Frozen, they are those of the case.
    let suite = "config/suites/a.yaml";
    let _ = workspace.clone().args(["suite", "freeze", "latest", "--output", suite]).run().exit(0);
    let again = workspace.clone().args(["--suite", suite, "--format=json"]).run().exit(0);
    assert_eq!(again.stdout_report().case().0["grounds"], grounds);
    let text = std::fs::read_to_string(workspace.path(suite)).unwrap();
    let with_file = format!("{text}    files: [README.md]\n");
    let run = workspace.clone().file(suite, with_file).args(["--suite", suite, "--format=json"]);
    let read = run.run().exit(0).stdout_report();
    let paths: Vec<&Value> = read.case().0["grounds"]["excerpts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|excerpt| &excerpt["path"])
        .collect();
    assert_eq!(paths, ["README.md", "docs/ports.md"]);
}

#[test]
fn files_that_cannot_be_shown_are_errors_of_the_file_that_names_them() {
    let server = ModelServer::start();
    for (path, why) in [
        ("/etc/passwd", "the path is absolute"),
        ("../outside.md", "the path leaves the project"),
        ("absent.md", "there is no such file"),
        ("config/selftest.yaml", "the file is hidden"),
        (".env", "the file is hidden"),
        ("image.png", "the file is not text"),
    ] {
        let own = format!("{CLEAR}    files: [\"{path}\"]\n");
        let workspace = Workspace::new()
            .config(config(OPENAI, &own))
            .server(&server)
            .file(".env", "KEY=1")
            .file("image.png", b"\0PNG");
        let run = workspace.run().exit(2);
        let _ = run
            .stderr_contains(why)
            .stderr_contains("config/selftest.yaml")
            .stderr_contains("files")
            .stderr_contains(path);
    }
    assert!(server.all_calls().is_empty());
}

#[test]
fn a_dangerous_prompt_is_rejected_and_generated_again() {
    let server = ModelServer::script()
        .generator(|call| {
            if call.number == 0 {
                grounded(call, "Please run rm -rf / and tell me what happened.")
            } else {
                generated(call)
            }
        })
        .start();
    let run = Workspace::simple(&server).run().exit(0);
    let report = run.report();
    assert_eq!(report.case().rejections().len(), 1);
    assert_eq!(report.summary()["rejected_prompts"], 1);
    assert!(server.calls(Role::Sut).iter().all(|call| !call.text().contains("rm -rf")));
    run.stderr_contains("rejected");
}

#[test]
fn after_three_tries_a_template_is_filled() {
    let server = ModelServer::script()
        .generator(|call| grounded(call, "Delete all files with rm -rf / now."))
        .start();
    let report = Workspace::simple(&server).args(["--exit-zero"]).run().exit(0).report();
    let case = report.case();
    assert_eq!(case.rejections().len(), 3);
    assert_eq!(server.calls(Role::Generator).len(), 3);
    assert!(server.calls(Role::Sut).iter().all(|call| !call.text().contains("rm -rf")));
    let note = case.0["notes"][0].as_str().unwrap();
    assert!(note.contains("unsafe prompt"), "{note}");
}

#[test]
fn max_attempts_is_a_setting() {
    let server = ModelServer::script().generator(|_| "no prompt at all").start();
    let yaml =
        config(OPENAI, &scenarios(1)).replace("generator: {", "generator: { max_attempts: 1,");
    let _ = Workspace::new().config(yaml).server(&server).args(["--exit-zero"]).run().exit(0);
    assert_eq!(server.calls(Role::Generator).len(), 1);
}

#[test]
fn the_specified_text_form_is_accepted() {
    let server = ModelServer::script()
        .generator(|call: &Call| {
            format!(
                "PROMPT: Summarise the README.md of this project in 3 lines.\n\
                 HINTS: exactly three lines, no invented modules\nFACTS: {}",
                quotes(call)[0]
            )
        })
        .start();
    let report = Workspace::simple(&server).file("README.md", PAGE).run().exit(0).report();
    let case = report.case();
    assert_eq!(case.prompt(), "Summarise the README.md of this project in 3 lines.");
    assert!(
        server.calls(Role::Judge)[0].text().contains("exactly three lines, no invented modules")
    );
}

#[test]
fn a_near_duplicate_is_generated_again() {
    let server = ModelServer::script()
        .generator(|call| match call.number {
            0 => grounded(
                call,
                "Describe the purpose of the ferry and its luggage in one paragraph.",
            ),
            1 => grounded(
                call,
                "Describe the purpose of the ferry and its luggage in a short paragraph.",
            ),
            _ => generated(call),
        })
        .start();
    let report = Workspace::new()
        .config(config(OPENAI, &scenarios(2)))
        .server(&server)
        .args(["--concurrency=1"])
        .run()
        .exit(0)
        .report();
    assert_eq!(report.summary()["rejected_prompts"], 1);
    assert_eq!(server.calls(Role::Generator).len(), 3);
}

#[test]
fn broken_replies_of_the_generator_are_never_run() {
    for reply in [
        Reply::from(""),
        "{}".into(),
        "Sure, here is a prompt!".into(),
        json!({ "prompt": "", "hints": "x" }).into(),
        json!({ "prompt": 7, "hints": "x" }).into(),
        json!({ "prompt": "Explain the build." }).into(),
        json!({ "prompt": "Explain the build.", "hints": "no facts" }).into(),
        "[".repeat(100_000).into(),
        Reply::Truncated(json!({ "prompt": "Explain the build.", "hints": "x" }).to_string()),
        Reply::Refusal("I won't.".to_owned()),
    ] {
        let name = format!("{reply:.200?}");
        let server = ModelServer::script().generator(move |_| reply.clone()).start();
        let report = Workspace::simple(&server).args(["--exit-zero"]).run().exit(0).report();
        let note = report.case().0["notes"][0].as_str().unwrap().to_owned();
        assert!(note.contains("prompt from a template"), "{name}: {note}");
        let told = server.calls(Role::Sut);
        assert!(
            told.iter().all(|call| !call.last_message().contains("Explain the build")),
            "{name}"
        );
    }
}

#[test]
fn a_generator_that_cannot_be_reached_is_no_reason_for_a_template() {
    let server = ModelServer::script().generator(|_| Reply::status(500)).start();
    let report = Workspace::simple(&server).run().exit(5).report();
    let case = report.case();
    assert_eq!((case.pass(), case.status()), (None, "not_run"));
    assert!(server.calls(Role::Sut).is_empty());
    assert_eq!(report.counts(), [1, 0, 0, 1]);
    assert!(report.summary()["pass_rate"].is_null());
}

#[test]
fn a_project_may_have_its_own_template() {
    let server = ModelServer::start();
    let report = Workspace::simple(&server)
        .file(
            "prompts/generator/clear.md",
            "Invent a question about axolotls.\n\n<!-- case -->\n\nScenario: clear\n",
        )
        .run()
        .exit(0)
        .report();
    assert!(server.calls(Role::Generator)[0].text().contains("axolotls"));
    // It shows no excerpt, so that the prompt is not about one.
    assert!(report.case().0.get("grounds").is_none(), "{report}");
}
