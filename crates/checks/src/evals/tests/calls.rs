//! Demanded calls of tools and commands, with their arguments and exit codes.

use super::*;

#[test]
fn calls_of_tools_keep_their_arguments() {
    let typed = |assertion: Value| {
        let case = json!({ "id": 1, "prompt": "Go.", "assertions": [assertion] });
        let file = parse(&json!({ "evals": [case] }).to_string());
        let demand = &file.cases[0].demands[0];
        demand.decider.check().map(|check| json!({ check.kind.name(): check.kind.value() }))
    };
    let with = |more: Value| {
        let mut assertion = json!({ "type": "tool_called", "tool": "get" });
        assertion.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assertion
    };
    let arguments = json!({ "city": "Rome" });
    let call = json!({"tool_called": { "name": "get", "arguments": arguments, "min": 1 }});
    assert_eq!(typed(with(json!({ "arguments": { "city": "Rome" } }))), Some(call.clone()));
    assert_eq!(typed(with(json!({ "arguments": "{\"city\": \"Rome\"}" }))), Some(call.clone()));
    assert_eq!(typed(with(json!({}))), Some(json!({ "tool_called": "get" })));
    assert_eq!(
        typed(with(json!({ "count": 2 }))),
        Some(json!({"tool_called": { "name": "get", "min": 2, "max": 2 }}))
    );
    // What cannot be read is not left out.
    assert_eq!(typed(with(json!({ "arguments": "city=Rome" }))), None);
    assert_eq!(typed(with(json!({ "arguments": ["Rome"] }))), None);
    assert_eq!(typed(with(json!({ "arguments": 0 }))), None);
    // An empty value is no arguments, and hides none under another key.
    let empty = [json!(null), json!(""), json!(" "), json!([]), json!("null"), json!({})];
    for empty in &empty {
        let bare = typed(with(json!({ "arguments": empty })));
        assert_eq!(bare, Some(json!({ "tool_called": "get" })), "{empty}");
        let hidden = json!({ "arguments": empty, "input": { "city": "Rome" } });
        assert_eq!(typed(with(hidden)), Some(call.clone()), "{empty}");
    }
    let forbidden = json!({ "type": "tool_not_called", "tool": "get", "args": { "city": "Rome" } });
    assert_eq!(typed(forbidden), Some(json!({ "not": call })));

    // No call at all, said twice: the limit is not inverted with the call.
    let none = Some(json!({ "tool_not_called": "get" }));
    let never = Some(json!({ "not": call }));
    let without = |more: Value| {
        let mut assertion = with(more);
        assertion["type"] = json!("tool_not_called");
        assertion
    };
    for limit in ["count", "times", "min", "max"] {
        assert_eq!(typed(without(json!({ limit: 0 }))), none, "{limit}");
        let both = json!({ limit: 0, "args": { "city": "Rome" } });
        assert_eq!(typed(without(both)), never, "{limit}");
    }
    assert_eq!(
        typed(without(json!({ "count": 2 }))),
        Some(json!({ "not": { "tool_called": { "name": "get", "min": 2, "max": 2 } } }))
    );
    for limit in ["count", "times", "max"] {
        assert_eq!(typed(with(json!({ limit: 0 }))), none, "{limit}");
        let both = json!({ limit: 0, "args": { "city": "Rome" } });
        assert_eq!(typed(with(both)), never, "{limit}");
    }
    assert_eq!(
        typed(with(json!({ "min": 0, "max": 1 }))),
        Some(json!({ "tool_called": { "name": "get", "min": 0, "max": 1 } }))
    );
    assert_eq!(typed(with(json!({ "min": 1, "max": 0 }))), None, "neither");

    let case = json!({ "id": 1, "prompt": "Go.", "expected_calls": [
        { "name": "get", "arguments": "{\"city\": \"Rome\"}" }, { "name": "put", "arguments": "x" },
    ] });
    let file = parse(&json!({ "evals": [case] }).to_string());
    let demands = &file.cases[0].demands;
    let check = demands[0].decider.check().unwrap();
    assert_eq!(json!({ check.kind.name(): check.kind.value() }), call);
    assert!(matches!(demands[1].decider, DemandDecider::Unknown { .. }), "{demands:?}");

    for empty in &empty {
        let case = json!({ "id": 1, "prompt": "Go.", "expected_calls": [
            { "name": "get", "arguments": empty },
        ] });
        let file = parse(&json!({ "evals": [case] }).to_string());
        assert_eq!(decided(&file), [r#"{"tool_called":"get"}"#], "{empty}");
    }
    let case = json!({ "id": 1, "prompt": "Go.", "expected_calls": [
        { "name": "get", "arguments": ["Rome"] },
    ] });
    let file = parse(&json!({ "evals": [case] }).to_string());
    assert_eq!(decided(&file), ["unknown its arguments are no mapping"]);
}

#[test]
fn an_exit_code_that_is_no_number_is_not_taken_for_0() {
    for (code, is_known) in [
        (json!(3), true),
        (json!(null), true),
        (json!("non-zero"), false),
        (json!("1"), false),
        (json!(-1), false),
    ] {
        let command = json!({ "type": "cmd", "cmd": "make", "expect_exit": code });
        let case = json!({ "id": 1, "prompt": "Go.", "assertions": [command] });
        let file = parse(&json!({ "evals": [case] }).to_string());
        let decider = &file.cases[0].demands[0].decider;
        assert_eq!(decider.check().is_some(), is_known, "{code}: {decider:?}");
        let dotnet = format!(
            "scenarios:\n- name: a\n  prompt: Go.\n  assertions:\n  - type: run_command\n    command: make\n    expected_exit_code: {code}\n"
        );
        let file = read("eval.yaml", dotnet.as_bytes(), &()).unwrap();
        let decider = &file.cases[0].demands[0].decider;
        assert_eq!(decider.check().is_some(), is_known, "{code}: {decider:?}");
        let uipath = format!(
            "task_id: a\ninitial_prompt: Go.\nsuccess_criteria:\n- type: run_command\n  command: make\n  expected_exit_code: {code}\n"
        );
        let file = read("a.yaml", uipath.as_bytes(), &()).unwrap();
        let decider = &file.cases[0].demands[0].decider;
        assert_eq!(decider.check().is_some(), is_known, "{code}: {decider:?}");
    }
}
