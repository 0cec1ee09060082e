//! A turn of an agent, fed with messages as agents send them.

use super::*;

fn told(updates: &[Value]) -> AgentTurn {
    let mut turn = AgentTurn::default();
    for update in updates {
        turn.update(serde_json::from_value(update.clone()).unwrap());
    }
    turn
}

fn end(reason: StopReason) -> TurnEnd {
    TurnEnd { reason, tokens: None }
}

fn chunk(text: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })
}

#[test]
fn the_last_thing_said_is_the_answer_and_calls_are_kept() {
    let turn = told(&[
        chunk("I look "),
        chunk("at it."),
        json!({ "sessionUpdate": "agent_thought_chunk",
                "content": { "type": "text", "text": "secret thoughts" } }),
        json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "Read a.md",
                "kind": "read", "locations": [{ "path": "/p/a.md" }] }),
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1",
                "rawInput": { "file_path": "/p/a.md", "api_key": "sk-abcdefgh1234567890xyz" },
                "_meta": { "claudeCode": { "toolName": "Read" } } }),
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "2", "title": "ls",
                "kind": "execute" }),
        json!({ "sessionUpdate": "agent_message_chunk",
                "content": { "type": "text", "text": "" },
                "_meta": { "usage": { "totalTokens": 10 } } }),
        chunk("It has "),
        chunk("3 lines."),
    ]);
    let reply = turn.reply(&end(StopReason::EndTurn), &Redactor::default()).unwrap();
    assert_eq!((reply.status, reply.output.as_str()), (TaskStatus::Complete, "It has 3 lines."));
    assert_eq!(reply.tokens, Some(10));
    let calls = reply.tool_calls.unwrap();
    assert_eq!((calls[0].name.as_str(), calls[1].name.as_str()), ("Read", "ls"));
    let expected = json!({ "file_path": "/p/a.md", "api_key": "[redacted]" });
    assert_eq!(calls[0].arguments, expected);
    assert_eq!(calls[1].arguments, json!({ "title": "ls", "kind": "execute" }));
}

#[test]
fn ends_of_turns() {
    let ended = |reason, text: &str| {
        told(&[chunk(text)]).reply(&end(reason), &Redactor::default()).map(|reply| reply.status)
    };
    assert_eq!(ended(StopReason::EndTurn, "Done.").unwrap(), TaskStatus::Complete);
    let asks = ended(StopReason::EndTurn, "Which file do you mean?");
    assert_eq!(asks.unwrap(), TaskStatus::AwaitingResponse);
    for reason in [StopReason::MaxTokens, StopReason::MaxTurnRequests, StopReason::Refusal] {
        assert_eq!(ended(reason, "").unwrap(), TaskStatus::Error);
    }
    assert!(ended(StopReason::EndTurn, " ").is_err());
    assert!(ended(StopReason::Cancelled, "x").is_err());
}

#[test]
fn an_agent_that_gives_up_after_a_refusal_has_answered_with_its_calls() {
    for (reason, words) in
        [(StopReason::EndTurn, "without a word"), (StopReason::Cancelled, "broke its turn off")]
    {
        let mut turn = told(&[
            json!({ "sessionUpdate": "tool_call", "toolCallId": "7", "title": "write",
                    "kind": "edit", "rawInput": {} }),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "7",
                    "rawInput": { "filePath": "/p/b.md" } }),
        ]);
        let call = json!({ "toolCallId": "7", "title": "/p/b.md", "kind": "edit",
                           "rawInput": { "diff": "+x" } });
        let request = json!({ "sessionId": "s", "toolCall": call, "options": [] });
        turn.answer_permission(&serde_json::from_value(request).unwrap());
        let reply = turn.reply(&end(reason), &Redactor::default()).unwrap();
        assert_eq!((reply.status, reply.output.as_str()), (TaskStatus::Error, ""));
        assert!(reply.status_rule.unwrap().contains(words));
        let calls = reply.tool_calls.unwrap();
        assert_eq!(calls[0].name, "write");
        assert_eq!(calls[0].arguments, json!({ "filePath": "/p/b.md" }));
        assert!(turn.notes()[0].ends_with("permission to edit /p/b.md"));
        // The next turn is another one.
        turn.begin();
        assert!(turn.reply(&end(reason), &Redactor::default()).is_err());
    }
}

#[test]
fn another_message_is_another_thing_that_is_said() {
    let of = |id: &str, text: &str| {
        let mut chunk = chunk(text);
        chunk["messageId"] = json!(id);
        chunk
    };
    let turn = told(&[
        chunk("Warning: no metadata."),
        of("m0", "I look."),
        of("m1", "It measures "),
        of("m1", "widgets."),
        chunk("Warning: your plan has changed."),
    ]);
    let meta = json!({ "quota": { "token_count": { "input_tokens": 5, "output_tokens": 6 } } });
    let response = json!({ "stopReason": "end_turn", "_meta": meta });
    let response: PromptResponse = serde_json::from_value(response).unwrap();
    let reply = turn.reply(&response.into(), &Redactor::default()).unwrap();
    assert_eq!((reply.output.as_str(), reply.tokens), ("It measures widgets.", Some(11)));
}

#[test]
fn a_call_has_failed_if_the_agent_said_so_last() {
    for (states, failed) in [
        (&["failed"][..], true),
        (&["pending", "failed"], true),
        (&["failed", "completed"], false),
        (&["completed"], false),
    ] {
        let mut turn = AgentTurn::default();
        for status in states {
            let update = json!({ "toolCallId": "1", "title": "skill", "status": status });
            turn.update_call(serde_json::from_value(update).unwrap());
        }
        turn.append("Done.");
        let reply = turn.reply(&end(StopReason::EndTurn), &Redactor::default()).unwrap();
        assert_eq!(reply.tool_calls.unwrap()[0].failed, failed, "{states:?}");
    }
}

#[test]
fn a_call_keeps_the_name_by_which_it_was_announced() {
    for (first, later, wanted) in [
        ("skill", "Loaded skill: ferry", "skill"),
        ("Writing to a.md", "Wrote a.md", "Wrote a.md"),
        ("read", "read", "read"),
    ] {
        let mut turn = AgentTurn::default();
        let call = json!({ "toolCallId": "1", "title": first, "kind": "other" });
        turn.call(serde_json::from_value(call).unwrap());
        let update = json!({ "toolCallId": "1", "title": later, "rawInput": { "a": 1 } });
        turn.update_call(serde_json::from_value(update).unwrap());
        turn.append("Done.");
        let reply = turn.reply(&end(StopReason::EndTurn), &Redactor::default()).unwrap();
        assert_eq!(reply.tool_calls.unwrap()[0].name, wanted, "{first}");
    }
}

#[test]
fn loading_a_skill_of_its_folder_is_the_only_thing_allowed() {
    let request = |call: Value| {
        let mut call = call;
        call["toolCallId"] = json!("7");
        let options = json!([
            { "optionId": "yes", "name": "x", "kind": "allow_once" },
            { "optionId": "no", "name": "x", "kind": "reject_once" },
        ]);
        let request = json!({ "sessionId": "s", "toolCall": call, "options": options });
        serde_json::from_value::<RequestPermissionRequest>(request).unwrap()
    };
    for (call, allowed) in [
        (json!({ "title": "\"ferry\": Knows the ferry", "kind": "other" }), true),
        (json!({ "title": "Skill", "kind": "other", "rawInput": { "name": "ferry" } }), true),
        (json!({ "title": "\"tide\": Knows the tide", "kind": "other" }), false),
        (json!({ "title": "\"ferry\": Knows the ferry", "kind": "execute" }), false),
        (json!({ "title": "\"ferry\": Knows the ferry", "kind": "edit" }), false),
        (json!({ "title": "load ferry", "kind": "other" }), false),
        (json!({ "title": "x", "rawInput": { "name": "ferry", "command": "rm" } }), false),
        (json!({ "title": "\"ferry\": x", "rawInput": { "command": "rm" } }), false),
        (json!({ "title": "\"ferry\": x", "rawInput": "rm -rf x" }), false),
        (json!({ "title": "\"ferry\": x", "rawInput": ["rm"] }), false),
        (json!({ "title": "\"ferry\": Knows the ferry", "rawInput": {} }), true),
        (json!({ "title": "delete_project", "rawInput": { "name": "ferry" } }), false),
        (
            json!({ "title": "\"ferry\": x", "content": [
                { "type": "diff", "path": "/a", "newText": "b" }
            ] }),
            false,
        ),
    ] {
        let mut turn = AgentTurn::default();
        turn.set_skills(vec!["ferry".to_owned()]);
        let outcome = turn.answer_permission(&request(call.clone()));
        let outcome = serde_json::to_value(outcome).unwrap();
        assert_eq!(outcome["optionId"], if allowed { "yes" } else { "no" }, "{call}");
        turn.append("It leaves.");
        let notes = turn.notes();
        let words = if allowed { "was allowed: to load the skill ferry" } else { "was refused" };
        assert!(notes[0].contains(words), "{notes:?}");
        if allowed {
            let reply = turn.reply(&end(StopReason::EndTurn), &Redactor::default()).unwrap();
            assert_eq!(reply.tool_calls.unwrap()[0].arguments, json!({ "name": "ferry" }));
        }
    }
}

#[test]
fn every_permission_is_refused_and_kept() {
    let request = |kinds: &[&str]| {
        let options: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({ "optionId": format!("id-{kind}"), "name": "x", "kind": kind }))
            .collect();
        let call = json!({ "toolCallId": "7", "title": "Write b.md", "kind": "edit" });
        let request = json!({ "sessionId": "s", "toolCall": call, "options": options });
        serde_json::from_value::<RequestPermissionRequest>(request).unwrap()
    };
    let mut turn = AgentTurn::default();
    for (kinds, expected) in [
        (&["allow_once", "reject_always", "reject_once"][..], json!("id-reject_once")),
        (&["allow_always", "reject_always"][..], json!("id-reject_always")),
    ] {
        let outcome = serde_json::to_value(turn.answer_permission(&request(kinds))).unwrap();
        assert_eq!(outcome["optionId"], expected);
    }
    let outcome = turn.answer_permission(&request(&["allow_once"]));
    assert_eq!(outcome, RequestPermissionOutcome::Cancelled);
    assert_eq!(turn.notes().len(), 3);
    assert!(turn.notes()[0].ends_with("permission to Write b.md"));
    turn.append("I could not.");
    let reply = turn.reply(&end(StopReason::EndTurn), &Redactor::default()).unwrap();
    assert_eq!(reply.tool_calls.unwrap()[0].name, "Write b.md");
}

#[test]
fn what_is_for_another_session_is_no_part_of_the_answer() {
    let of = |session: &str, text: &str| {
        let update = json!({ "sessionId": session, "update": chunk(text) });
        serde_json::from_value::<SessionNotification>(update).unwrap()
    };
    let id = |id: &str| serde_json::from_value::<SessionId>(json!(id)).unwrap();
    let mut turn = AgentTurn::default();
    turn.receive(of("own", "It has "));
    turn.open(id("own"));
    turn.receive(of("own", "3 lines."));
    assert_eq!(turn.take_violation(), None);
    turn.receive(of("other", " And this is of somebody else."));
    let rule = turn.take_violation().unwrap();
    assert_eq!(rule, "it sent an update for the session `other`, and not for its own, `own`");
    assert!(!turn.is_own("a request", &id("other")) && turn.take_violation().is_some());
    let reply = turn.reply(&end(StopReason::EndTurn), &Redactor::default()).unwrap();
    assert_eq!(reply.output, "It has 3 lines.");

    let line = |session: &str, text: &str| {
        let params = json!({ "sessionId": session, "update": chunk(text) });
        format!("{}\n", json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    };
    assert_eq!(turn.violation_in_unread(b"bye\n{}\n"), None);
    let foreign = turn.violation_in_unread(line("other", "x").as_bytes());
    assert!(foreign.unwrap().contains("`other`"));
    let late = turn.violation_in_unread(line("own", "More.").as_bytes());
    assert!(late.unwrap().contains("after it had ended its turn"));

    let mut turn = AgentTurn::default();
    turn.receive(of("other", "early"));
    turn.open(id("own"));
    assert!(turn.take_violation().is_some());
}

#[test]
fn a_flood_is_bounded() {
    let mut turn = AgentTurn::default();
    for _ in 0..3 {
        turn.append(&"ä".repeat(MAX_SAID / 2));
    }
    assert!(turn.said_bytes <= MAX_SAID);
    for _ in 0..MAX_REFUSALS + 2 {
        turn.record_refusal("x");
    }
    assert_eq!(turn.notes().last().unwrap(), "2 more refusals");
}
