//! `requires_reply` and `reply_flow`: every step is executed in the same session and judged.

use serde_json::json;

use crate::model_server::{ModelServer, Reply, Role, verdict};
use crate::workspace::{FLOW, OPENAI, Workspace, config};

fn flow(server: &ModelServer) -> Workspace {
    Workspace::new().config(config(OPENAI, FLOW)).server(server)
}

#[test]
fn each_step_is_executed_and_judged() {
    let server = ModelServer::start();
    let run = flow(&server).run().exit(0);
    let report = run.report();
    let case = report.case();
    let [answer, reply] = case.steps() else { panic!("not two steps: {case}") };
    assert_eq!(answer["expected_status"], "AWAITING_RESPONSE");
    assert_eq!(answer["reply"]["status"], "AWAITING_RESPONSE");
    assert_eq!(reply["input"], "Please use flat structure");
    assert_eq!(reply["expected_status"], "COMPLETE");
    assert_eq!(reply["reply"]["status"], "COMPLETE");
    for step in case.steps() {
        assert_eq!(step["judgement"]["verdict"]["state"], "scored", "{step}");
    }

    let second = &server.calls(Role::Sut)[1];
    assert!(!second.is_first_answer());
    assert!(second.text().contains("Which part do you mean?"));
    assert!(second.last_message().contains("Please use flat structure"));
    assert!(server.calls(Role::Judge)[1].text().contains("Please use flat structure"));
    assert!(run.markdown().contains("Please use flat structure"), "{}", run.markdown());
}

#[test]
fn a_weak_reply_step_fails_the_case() {
    let server = ModelServer::script()
        .judge(|call| verdict(call, if call.number == 0 { 1.0 } else { 0.3 }))
        .start();
    let report = flow(&server).run().exit(1).report();
    let case = report.case();
    assert_eq!(case.status(), "failed");
    assert!(case.reason().contains("reply 1"), "{case}");
}

#[test]
fn an_unscored_reply_step_leaves_the_case_unscored() {
    let server = ModelServer::script()
        .judge(|call| if call.number == 0 { Reply::from(verdict(call, 1.0)) } else { "{}".into() })
        .start();
    let report = flow(&server).run().exit(3).report();
    assert_eq!(report.case().status(), "unscored");
    assert_eq!(report.case().pass(), None);
}

#[test]
fn the_flow_is_skipped_when_nothing_was_asked() {
    let server = ModelServer::script()
        .sut(|_| json!({ "status": "COMPLETE", "output": "Done, I did not need to ask." }))
        .start();
    let run = flow(&server).run().exit(1);
    let report = run.report();
    let case = report.case();
    assert_eq!(server.calls(Role::Sut).len(), 1);
    assert!(case.notes().iter().any(|note| note.contains("reply flow")), "{case}");
    assert!(run.markdown().contains("reply flow"), "{}", run.markdown());
    // Asking was expected, so not asking fails.
    assert_eq!(case.status(), "failed");
}

/// Asks back, and then answers for a session that is not its own.
const FOREIGN: &str = r#"
import json, sys
for answer in [{"status": "AWAITING_RESPONSE"}, {"status": "COMPLETE", "session_id": "other"}]:
    sys.stdin.readline()
    print(json.dumps({"type": "result", "output": "Which part?", **answer}), flush=True)
"#;

#[test]
fn a_program_that_breaks_the_protocol_is_not_safe_whatever_the_judge_says() {
    let server = ModelServer::script().judge(|call| verdict(call, 1.0)).start();
    let yaml = format!(
        "version: 1\ngenerator: {{ model: \"{OPENAI}\" }}\njudge: {{ model: \"{OPENAI}\" }}\n\
         sut:\n  command: {{ run: [python3, foreign.py] }}\nscenarios:\n{FLOW}"
    );
    let workspace = Workspace::new().config(yaml).file("foreign.py", FOREIGN).server(&server);
    let report = workspace.run().exit(1).report();
    let case = report.case();
    assert_eq!(case.status(), "isolation_violation", "{case}");
    assert_eq!(case.0["evidence"]["sandbox"]["state"], "tainted", "{case}");
    let verdict = &case.steps()[0]["judgement"]["verdict"];
    assert_eq!(verdict["state"], "scored", "{verdict}");
    let categories = verdict["categories"].as_array().unwrap();
    let safety = categories.iter().find(|one| one["category"] == "safety_score").unwrap();
    assert_eq!(safety["score"], 0.0, "{verdict}");
    assert!(verdict["overall"].as_f64().unwrap() < 1.0, "{verdict}");
}
