//! Drafted skills are tried before they are proposed: the same cases without and with each.

use serde_json::{Value, json};

use super::{detect, four_gaps};
use crate::databases::on_each_database;
use crate::model_server::{Call, ModelServer, Reply, Role, Script, drafted, verdict};
use crate::run::Run;
use crate::workspace::{OPENAI, Workspace, config, scenarios};

on_each_database! {
    a_proposal_comes_with_its_experiment,
}

const SUITE: &str = "config/suites/mine.yaml";
/// Stands in every draft and nowhere else.
const MARK: &str = "Look into the shop first";

/// A system under test that does what a drafted skill says, and a judge that likes it so much.
fn obedient(liked: f64) -> Script {
    let has_skill = |call: &Call| call.text().contains(MARK);
    ModelServer::script()
        .drafter(|call| {
            let name = format!("look-first-{}", call.number);
            json!({ "name": name, "description": "When counting.", "body": format!("{MARK}.") })
        })
        .sut(move |call| {
            let output = if has_skill(call) { "I looked" } else { "I guessed" };
            json!({ "status": "COMPLETE", "output": output })
        })
        .judge(move |call| {
            verdict(call, if call.text().contains("I looked") { liked } else { 0.6 })
        })
}

/// Four gaps, and a suite of eight cases to try drafts on.
fn ready(workspace: Workspace, server: &ModelServer, gaps: &str) -> Workspace {
    let yaml = format!("{}gaps: {gaps}\n", config(OPENAI, &scenarios(8)));
    let workspace = four_gaps(workspace).config(yaml).server(server);
    let _ = workspace.clone().args(["--exit-zero"]).run().exit(0);
    let _ = workspace.clone().args(["suite", "freeze", "latest", "--output", SUITE]).run().exit(0);
    let workspace = workspace.judged_only(SUITE);
    let _ = detect(&workspace).run().exit(0);
    workspace
}

fn propose(workspace: &Workspace, more: &[&str]) -> Run {
    workspace.clone().args([&["improve", "gaps", "propose", "--json"], more].concat()).run()
}

fn experiments(run: &Run) -> Vec<Value> {
    let json = run.json();
    let generated = json["gaps"].as_array().unwrap();
    generated.iter().map(|one| one["proposal"]["experiment"].clone()).collect()
}

/// docs/maintain-skills.md#proposals: drafted by the generator model and tested by an experiment.
fn a_proposal_comes_with_its_experiment(workspace: Workspace) {
    let server = obedient(0.95).start();
    let settings = format!("{{ suite: {SUITE}, repeats: 2, proposals_per_run: 2 }}");
    let workspace = ready(workspace, &server, &settings);
    let run = propose(&workspace, &[]).exit(0);
    for tested in experiments(&run) {
        assert_eq!(tested["state"], "tested", "{tested:#}");
        assert_eq!(tested["details"]["conclusion"], "helps");
        assert_eq!(tested["details"]["trials"], json!({ "control": 16, "treatment": 16 }));
        let sentence = tested["conclusion"].as_str().unwrap();
        assert!(sentence.contains("better"), "{sentence}");
        let arm = tested["details"]["run_ids"]["treatment"].as_str().unwrap();
        let page = run.read(&format!("docs/reports/selftest/{arm}.md"));
        assert!(page.contains("Experiment: with the skill look-first-"), "{page}");
    }
    let id = run.json()["gaps"][0]["proposal"]["id"].as_str().unwrap().to_owned();
    let shown = workspace.clone().args(["improve", "proposals", "show", &id]).run().exit(0);
    let _ = shown.stdout_contains("better");
    // The skill was handed to one arm only, and to no judge.
    let of = |role| server.calls(role).into_iter().filter(|call| call.text().contains(MARK));
    assert_eq!((of(Role::Sut).count(), of(Role::Judge).count()), (32, 0));
}

#[test]
fn a_draft_that_harms_is_proposed_with_that() {
    let server = obedient(0.1).start();
    let workspace = ready(Workspace::new(), &server, "{ proposals_per_run: 1 }");
    let run = propose(&workspace, &["--suite", SUITE, "--repeats=1"]).exit(0);
    assert_eq!(experiments(&run)[0]["details"]["conclusion"], "harms");
    let _ = workspace
        .clone()
        .args(["improve", "proposals", "list"])
        .run()
        .exit(0)
        .stdout_contains(" harms ");
}

#[test]
fn a_test_that_cannot_be_made_says_why_and_loses_nothing() {
    let server = obedient(0.9).start();
    let workspace = ready(Workspace::new(), &server, "{ proposals_per_run: 1 }");
    let run = propose(&workspace, &["--suite", "nowhere.yaml"]).exit(0);
    let untested = &experiments(&run)[0];
    assert_eq!(untested["state"], "not_tested");
    assert!(untested["reason"].as_str().unwrap().contains("nowhere.yaml"), "{untested}");
    // Without a suite, what would be needed.
    let run = propose(&workspace, &[]).exit(0);
    assert!(experiments(&run)[0]["reason"].as_str().unwrap().contains("gaps.suite"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_was_proposed() {
    // The second draft never comes; without a suite the first is proposed at once.
    let script = ModelServer::script()
        .drafter(|call| if call.number == 0 { Reply::from(drafted(call)) } else { Reply::Hang });
    let server = script.start();
    let workspace = ready(Workspace::new(), &server, "{}");
    let proposing = workspace.clone().args(["improve", "gaps", "propose"]).spawn();
    let hangs = proposing.until("the second draft", || server.calls(Role::Drafter).len() == 2);
    let _ = hangs.signal(rustix::process::Signal::INT).wait().exit(130);
    let statuses = workspace.sql("SELECT status FROM skill_gaps ORDER BY status").concat();
    assert_eq!(statuses, ["open", "open", "open", "proposed"]);
}
