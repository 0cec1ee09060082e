//! The recovery hook: who is handed a weak reflection, and how often
//! (docs/spec/reflections.md#automatic-recovery).

use serde_json::Value;

use super::made_up::{bad, good, with};
use crate::grade::receiver::Receiver;
use crate::run::Run;
use crate::workspace::{NOBODY, Workspace};

fn hooked(hook: &str) -> Workspace {
    let documents = [good(), with(bad(), "reflection_id", "weak-one")];
    Workspace::new().reflections(&documents).reflection_config(&format!("{{ hook: {{ {hook} }} }}"))
}

fn graded(workspace: &Workspace) -> Run {
    workspace.reflect(&["grade", "reflections.jsonl"]).exit(1)
}

#[track_caller]
fn is_the_weak_one(body: &[u8]) {
    let body: Value = serde_json::from_slice(body).unwrap();
    assert_eq!((&body["kind"], &body["score"]), (&"selftest.weak_reflection".into(), &0.45.into()));
    assert_eq!(body["reflection_id"], "weak-one");
    assert_eq!(body["issues"].as_array().unwrap().len(), 4);
    assert_eq!(body["reflection"]["summary"], "Did stuff");
}

/// docs/spec/reflections.md#automatic-recovery.
#[test]
fn section_future_enhancements_automatic_recovery_by_a_command() {
    let workspace = hooked(r#"command: [sh, -c, "cat >> told.json"]"#);
    is_the_weak_one(graded(&workspace).read("told.json").as_bytes());
    // Only once: the database records the delivery.
    is_the_weak_one(graded(&workspace).read("told.json").as_bytes());
}

/// docs/spec/reflections.md#automatic-recovery.
#[test]
fn section_future_enhancements_automatic_recovery_by_a_webhook() {
    let receiver = Receiver::answering(204);
    let workspace = hooked(&format!("webhook: \"{}\"", receiver.address));
    let _ = graded(&workspace);
    let _ = graded(&workspace);
    let requests = receiver.requests.lock().unwrap();
    let [request] = &requests[..] else { panic!("{} requests", requests.len()) };
    assert_eq!(&*request.method, "POST");
    is_the_weak_one(&request.body);
}

#[test]
fn what_did_not_arrive_is_a_warning_and_sent_again() {
    let workspace = hooked(r#"command: [sh, -c, "cat > told.json; test -e receiver-is-up"]"#);
    let run = graded(&workspace).stderr_contains("warning: the recovery command \"sh\" failed");
    is_the_weak_one(run.read("told.json").as_bytes());
    let workspace = workspace.file("told.json", "").file("receiver-is-up", "");
    is_the_weak_one(graded(&workspace).read("told.json").as_bytes());
    let workspace = workspace.file("told.json", "nothing");
    assert_eq!(graded(&workspace).read("told.json"), "nothing");
}

#[test]
fn addresses_are_not_repeated() {
    let run = graded(&hooked(&format!("webhook: \"http://{NOBODY}/hook?token=t0p-s3cret\"")));
    let run = run.stderr_contains("warning: the recovery webhook at http://127.0.0.1:1 failed");
    assert!(!run.stderr.contains("t0p-s3cret"), "{}", run.stderr);
}

#[test]
fn nobody_is_told_of_good_ones_or_in_a_dry_run() {
    let workspace = hooked(r#"command: [sh, -c, "cat > told.json"]"#);
    let _ = workspace.reflect(&["grade", "reflections.jsonl", "--dry-run"]).exit(1);
    let workspace = workspace.reflections(&[good()]);
    let _ = workspace.reflect(&["grade", "reflections.jsonl"]).exit(0);
    assert!(!workspace.path("told.json").exists());
}
