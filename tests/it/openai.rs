//! The protocol of OpenAI and of everything that speaks it: structured output, fallbacks, keys.

use serde_json::Value;

use crate::model_server::{Endpoint, ModelServer, Reply, Role, verdict};
use crate::workspace::{OPENAI, Workspace, config, scenarios};

#[test]
fn the_schema_is_asked_for_strictly() {
    let server = ModelServer::start();
    let _ = Workspace::simple(&server).run().exit(0);
    // But for the one question that finds out whether the server returns probabilities.
    for call in server.all_calls().into_iter().filter(|call| call.role != Role::Question) {
        assert_eq!(call.endpoint, Endpoint::OpenAi);
        let format = &call.body["response_format"];
        assert_eq!(format["type"], "json_schema");
        assert_eq!(format["json_schema"]["strict"], true);
        assert!(format["json_schema"]["name"].is_string(), "{format}");
        assert_every_object_is_closed(&format["json_schema"]["schema"]);
        assert_ne!(call.body["stream"], true);
    }
}

/// The demands of OpenAI's strict mode.
fn assert_every_object_is_closed(schema: &Value) {
    assert_eq!(schema["additionalProperties"], false, "{schema}");
    let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    let required: Vec<&str> =
        schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(fields, required, "{schema}");
}

#[test]
fn the_judge_explains_before_it_scores() {
    let server = ModelServer::start();
    let _ = Workspace::simple(&server).run().exit(0);
    let judge = &server.calls(Role::Judge)[0];
    let fields: Vec<&String> =
        judge.schema().unwrap()["properties"].as_object().unwrap().keys().collect();
    assert_eq!(fields[0], "explanation");
    assert!(
        !fields.iter().any(|field| *field == "pass" || *field == "overall_score"),
        "{fields:?}"
    );
}

#[test]
fn a_server_without_schemas_gets_json_object_and_that_is_remembered() {
    let server = ModelServer::script().refuse_schema().start();
    let report = Workspace::new()
        .config(config(OPENAI, &scenarios(5)))
        .server(&server)
        .args(["--concurrency=1"])
        .run()
        .exit(0)
        .report();
    let mut calls = server.all_calls();
    calls.retain(|call| call.role != Role::Question);
    assert_eq!(calls.len(), 15);
    assert!(calls.iter().all(|call| call.body["response_format"]["type"] == "json_object"));
    // At most once for each role.
    assert!(server.refused() <= 3, "{} calls were refused", server.refused());
    assert_eq!(report.cases()[0].judge_calls()[0]["structured"], "json_object");
}

#[test]
fn a_server_without_response_format_is_asked_in_words() {
    let server = ModelServer::script().refuse_response_format().start();
    let report = Workspace::new()
        .config(config(OPENAI, &scenarios(5)))
        .server(&server)
        .args(["--concurrency=1"])
        .run()
        .exit(0)
        .report();
    assert!(server.all_calls().iter().all(|call| call.body.get("response_format").is_none()));
    assert!(server.refused() <= 6, "{} calls were refused", server.refused());
    assert_eq!(report.cases()[0].judge_calls()[0]["structured"], "prompt");
}

#[test]
fn the_key_goes_into_the_header() {
    let server = ModelServer::start();
    let _ = Workspace::simple(&server).run().exit(0);
    let header = server.all_calls()[0].header("authorization").map(str::to_owned);
    assert_eq!(header.as_deref(), Some("Bearer sk-test-0123456789abcdef"));
}

#[test]
fn a_local_server_needs_no_key() {
    let server = ModelServer::start();
    let _ = Workspace::simple(&server).env_remove("OPENAI_API_KEY").run().exit(0);
    assert_eq!(server.all_calls()[0].header("authorization"), None);
}

#[test]
fn the_base_address_may_end_in_a_slash() {
    let server = ModelServer::start();
    let url = server.openai_url() + "/";
    let _ = Workspace::simple(&server).env("OPENAI_BASE_URL", url).run().exit(0);
}

#[test]
fn inline_thinking_is_never_taken_for_the_verdict() {
    let server = ModelServer::script()
        .judge(|call| format!("<think>{}</think>", verdict(call, 1.0)))
        .start();
    let report = Workspace::simple(&server).run().exit(3).report();
    assert_eq!(report.case().unscored_reason(), Some("malformed"));
}

#[test]
fn thinking_beside_the_reply_is_left_alone() {
    let server = ModelServer::script()
        .judge(|call| Reply::Thinking {
            thinking: verdict(call, 0.0).to_string(),
            text: verdict(call, 0.9).to_string(),
        })
        .start();
    let report = Workspace::simple(&server).run().exit(0).report();
    assert_eq!(report.case().overall(), Some(0.9));
}
