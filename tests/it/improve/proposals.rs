//! From gaps to proposed skills (docs/spec/skills-and-signals.md#gaps-and-proposals), and what
//! people decide.

use serde_json::{Value, json};

use super::{detected, four_gaps};
use crate::databases::on_each_database;
use crate::model_server::{ModelServer, Role, drafted};
use crate::run::Run;
use crate::workspace::{OPENAI, Workspace, config, files, scenarios};

on_each_database! {
    a_batch_takes_three_open_gaps,
    a_failure_does_not_stop_the_batch,
    a_proposal_is_shown_and_accepted,
    a_rejected_proposal_dismisses_its_gap_or_opens_it_again,
}

fn propose(workspace: &Workspace) -> Run {
    workspace.clone().args(["improve", "gaps", "propose", "--json"]).run()
}

fn proposals(workspace: &Workspace) -> Vec<Value> {
    let run =
        workspace.clone().args(["improve", "proposals", "list", "--all", "--json"]).run().exit(0);
    run.json().as_array().unwrap().clone()
}

fn decide(workspace: &Workspace, words: &[&str]) -> Run {
    workspace.clone().args([&["improve", "proposals"], words].concat()).run()
}

/// docs/spec/skills-and-signals.md#skill-generation: at most three gaps; #job-results: the
/// summary's keys.
fn a_batch_takes_three_open_gaps(workspace: Workspace) {
    let server = ModelServer::start();
    let workspace = detected(workspace, &server);
    let batch = propose(&workspace).exit(0).json();
    let summary = batch["summary"].as_object().unwrap();
    let mut keys: Vec<&str> = summary.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        ["elapsed_ms", "failures", "gaps_found", "gaps_processed", "proposals_created", "status"]
    );
    assert_eq!(summary["status"], "completed");
    let counts = ["gaps_found", "gaps_processed", "proposals_created", "failures"];
    assert_eq!(counts.map(|name| summary[name].as_u64().unwrap()), [4, 3, 3, 0]);
    assert_eq!(server.calls(Role::Drafter).len(), 3);
    assert!(proposals(&workspace).iter().all(|one| one["status"] == "proposed"));

    // `test_batch_processes_open_gaps`: what has a proposal is not open any more.
    let summary = propose(&workspace).exit(0).json()["summary"].clone();
    assert_eq!(counts.map(|name| summary[name].as_u64().unwrap()), [1, 1, 1, 0]);
    let _ = propose(&workspace).exit(4).stderr_contains("no open gaps");
    assert_eq!(proposals(&workspace).len(), 4);
    let left = files(&workspace.path(".selftest"));
    assert!(left.iter().all(|path| !path.ends_with("SKILL.md")), "nothing is put to use: {left:?}");
}

/// docs/spec/skills-and-signals.md#skill-generation: one failure never stops the batch.
fn a_failure_does_not_stop_the_batch(workspace: Workspace) {
    let script = ModelServer::script().drafter(|call| {
        if call.number == 0 {
            json!({ "name": "../../x", "description": "d", "body": "b" })
        } else {
            drafted(call)
        }
    });
    let server = script.start();
    let settings = config(OPENAI, &scenarios(1)) + "gaps: { max_reasks: 0 }\n";
    let workspace = detected(workspace, &server).config(settings);
    let batch = propose(&workspace).exit(0).json();
    let summary = &batch["summary"];
    assert_eq!((&summary["proposals_created"], &summary["failures"]), (&json!(2), &json!(1)));
    let fault = batch["gaps"][0]["fault"].as_str().unwrap();
    assert!(fault.contains("/name: expected 1 to 64 lower-case letters"), "{fault}");
    assert_eq!(proposals(&workspace).len(), 2);
    // The one that failed comes last the next time, and says why it failed.
    let listed = workspace.clone().args(["improve", "gaps", "list"]).run().exit(0);
    let _ = listed.stdout_contains("1 draft failed: the model's reply is not a valid skill");
    let batch = propose(&workspace).exit(0).json();
    assert_eq!(batch["summary"]["proposals_created"], 2);
}

/// docs/spec/skills-and-signals.md#skill-generation: a gap without a proposal is a failure of the
/// batch, and no proposal.
#[test]
fn without_a_model_nothing_is_proposed() {
    let server = ModelServer::script().drafter(|_| "I cannot.").start();
    let workspace = detected(Workspace::new(), &server);
    let run = propose(&workspace).exit(3);
    assert_eq!(run.json()["summary"]["failures"], 3);
    assert!(proposals(&workspace).is_empty());
}

#[test]
fn the_model_is_shown_fenced_evidence_and_asked_again() {
    let script = ModelServer::script().drafter(|call| {
        if call.is_first_answer() {
            json!({ "name": "a", "description": "d", "body": "---\nname: b\n---" })
        } else {
            drafted(call)
        }
    });
    let server = script.start();
    let _ = propose(&detected(Workspace::new(), &server)).exit(0);
    let calls = server.calls(Role::Drafter);
    assert_eq!(calls.len(), 6);
    let first = calls[0].text();
    let evidence = first.split("[BEGIN EVIDENCE ").nth(1).unwrap();
    assert!(evidence.contains("failed with"), "{first}");
    assert!(calls[1].last_message().contains("/body: begins with front matter"));
}

/// docs/spec/skills-and-signals.md#skill-generation, #differences-gaps: a proposal is stored as
/// `proposed` and never promoted by itself, and an honest test.
fn a_proposal_is_shown_and_accepted(workspace: Workspace) {
    let server = ModelServer::start();
    let workspace = detected(workspace, &server);
    let _ = propose(&workspace).exit(0);
    let all = proposals(&workspace);
    let id = all[0]["id"].as_str().unwrap();
    assert_eq!(all[0]["experiment"]["state"], "not_tested");
    assert_eq!(all[0]["model"], OPENAI);
    let shown = decide(&workspace, &["show", id]).exit(0);
    let shown = shown.stdout_contains("not tested: ").stdout_contains("name: check-first-");
    assert!(shown.stdout.contains("status       proposed"), "{}", shown.stdout);

    let name = all[0]["skill_name"].as_str().unwrap();
    let run = decide(&workspace, &["accept", id, "--reason", "reads well"]).exit(0);
    let text = run.read(&format!(".selftest/skills/{name}/SKILL.md"));
    assert_eq!(text, all[0]["skill_md"].as_str().unwrap());
    assert!(text.starts_with(&format!("---\nname: {name}\ndescription: ")), "{text}");
    let gap = all[0]["gap_id"].as_str().unwrap();
    let status = |id: &str| {
        workspace.sql(&format!("SELECT status FROM skill_gaps WHERE id = '{id}'"))[0][0].clone()
    };
    assert_eq!(status(gap), "closed");
    let again = decide(&workspace, &["reject", id, "--reason", "no"]).exit(2);
    let _ = again.one_error(&[id, "accepted already"]);

    // Another file, and nothing is written over.
    let other = all[1]["id"].as_str().unwrap();
    let workspace = workspace.file("mine.md", "mine");
    let run = decide(&workspace, &["accept", other, "--output", "mine.md"]).exit(2);
    let _ = run.one_error(&["mine.md"]).stderr_contains("--output");
    assert_eq!(
        workspace.sql(&format!("SELECT status FROM skill_proposals WHERE id = '{other}'"))[0][0],
        "proposed"
    );
    let run = decide(&workspace, &["accept", other, "--output", "new/skill.md"]).exit(0);
    assert!(run.read("new/skill.md").starts_with("---\nname: "));
    assert_eq!(run.read("mine.md"), "mine");
}

fn a_rejected_proposal_dismisses_its_gap_or_opens_it_again(workspace: Workspace) {
    let server = ModelServer::start();
    let workspace = detected(workspace, &server);
    let _ = propose(&workspace).exit(0);
    let all = proposals(&workspace);
    let id = |at: usize| all[at]["id"].as_str().unwrap();
    let _ = decide(&workspace, &["reject", id(0), "--reason", "we do not want it"]).exit(0);
    let _ = decide(&workspace, &["reject", id(1), "--reason", "too long", "--again"]).exit(0);
    let statuses = workspace.sql("SELECT status FROM skill_gaps ORDER BY status");
    assert_eq!(statuses.concat(), ["dismissed", "open", "open", "proposed"]);
    let _ =
        decide(&workspace, &["reject", id(2), "--reason", " "]).exit(2).one_error(&["--reason"]);
    let _ = decide(&workspace, &["show", "proposal-x"]).exit(2).one_error(&["proposal-x"]);

    // A dismissed gap is drafted for when somebody asks by name.
    let gap = all[0]["gap_id"].as_str().unwrap();
    let run = workspace.clone().args(["improve", "gaps", "propose", gap]).run().exit(0);
    let _ = run.stdout_contains("is proposed for gap-").stdout_contains("not tested");
    let run = workspace.clone().args(["improve", "gaps", "propose", gap]).run().exit(3);
    let _ = run.stderr_contains("waits for a decision already");
}

#[test]
fn secrets_do_not_come_back_from_the_model() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let script = ModelServer::script().drafter(move |call| {
        let mut draft = drafted(call);
        draft["body"] = format!("Use {secret} to log in.").into();
        draft
    });
    let server = script.start();
    let workspace = detected(Workspace::new(), &server);
    let _ = propose(&workspace).exit(0).nowhere(secret);
    assert!(!proposals(&workspace)[0]["skill_md"].as_str().unwrap().contains(secret));
}

#[test]
fn no_gap_is_read_without_a_database_of_ours() {
    let workspace = four_gaps(Workspace::new()).file(".selftest/selftest.db", "no database");
    let run = workspace.args(["improve", "gaps", "list"]).run().exit(5);
    let _ = run.one_error(&["selftest.db"]);
}
