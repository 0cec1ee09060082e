//! The generator's prompts: accepted, rejected, re-generated, or given up.

use serde_json::json;

use crate::model_server::{ModelServer, Reply, Role, generated};
use crate::workspace::{OPENAI, Workspace, config, scenarios};

#[test]
fn a_dangerous_prompt_is_rejected_and_generated_again() {
    let server = ModelServer::script()
        .generator(|call| {
            if call.number == 0 {
                json!({ "prompt": "Please run rm -rf / and tell me what happened.", "hints": "none" })
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
fn after_three_tries_the_case_is_given_up() {
    let server = ModelServer::script()
        .generator(|_| json!({ "prompt": "Delete all files with rm -rf /", "hints": "none" }))
        .start();
    let report = Workspace::simple(&server).run().exit(3).report();
    let case = report.case();
    assert_eq!((case.pass(), case.status()), (None, "generation_failed"));
    assert_eq!(case.rejections().len(), 3);
    assert_eq!(server.calls(Role::Generator).len(), 3);
    assert!(server.calls(Role::Sut).is_empty());
    assert_eq!(report.counts(), [1, 0, 0, 1]);
    assert!(report.summary()["pass_rate"].is_null());
}

#[test]
fn max_attempts_is_a_setting() {
    let server = ModelServer::script().generator(|_| "no prompt at all").start();
    let yaml =
        config(OPENAI, &scenarios(1)).replace("generator: {", "generator: { max_attempts: 1,");
    let _ = Workspace::new().config(yaml).server(&server).run().exit(3);
    assert_eq!(server.calls(Role::Generator).len(), 1);
}

#[test]
fn the_specified_text_form_is_accepted() {
    let server = ModelServer::script()
        .generator(|_| {
            "PROMPT: Summarise the architecture of this project in 3 lines.\n\
             HINTS: exactly three lines, no invented modules"
        })
        .start();
    let report = Workspace::simple(&server).run().exit(0).report();
    let case = report.case();
    assert_eq!(case.prompt(), "Summarise the architecture of this project in 3 lines.");
    assert!(
        server.calls(Role::Judge)[0].text().contains("exactly three lines, no invented modules")
    );
}

#[test]
fn a_near_duplicate_is_generated_again() {
    let server = ModelServer::script()
        .generator(|call| match call.number {
            0 => json!({ "prompt": "Describe the purpose of the configuration module in one paragraph.", "hints": "a" }),
            1 => json!({ "prompt": "Describe the purpose of the configuration module in one short paragraph.", "hints": "b" }),
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
        "[".repeat(100_000).into(),
        Reply::Truncated(json!({ "prompt": "Explain the build.", "hints": "x" }).to_string()),
        Reply::Refusal("I won't.".to_owned()),
    ] {
        let name = format!("{reply:.200?}");
        let server = ModelServer::script().generator(move |_| reply.clone()).start();
        let report = Workspace::simple(&server).run().exit(3).report();
        assert_eq!(report.case().status(), "generation_failed", "{name}");
        assert!(server.calls(Role::Sut).is_empty(), "{name}");
    }
}

#[test]
fn a_project_may_have_its_own_template() {
    let server = ModelServer::start();
    let _ = Workspace::simple(&server)
        .file(
            "prompts/generator/clear.md",
            "Invent a question about axolotls.\n\n<!-- case -->\n\nScenario: clear\n",
        )
        .run()
        .exit(0);
    assert!(server.calls(Role::Generator)[0].text().contains("axolotls"));
}
