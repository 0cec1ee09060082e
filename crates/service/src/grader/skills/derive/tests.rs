//! Tests of skill uses in sessions recorded by Claude Code and Hermes.

use serde_json::{Value, json};

use super::{SkillUse, SkillUseCollector};
use selftest_grading::improve::skill::ExecutionStatus;
use selftest_sessions::{SessionSource, read};

/// Returns the uses in one Claude Code session, given as speaker and content.
fn claude(records: &[(&str, Value)]) -> Vec<SkillUse> {
    let lines = records.iter().enumerate().map(|(number, (kind, content))| {
        let is_meta = content.as_str().is_some_and(|text| text.starts_with("Base directory"));
        let mut record = json!({
            "type": kind, "uuid": format!("u{number}"),
            "parentUuid": number.checked_sub(1).map(|before| format!("u{before}")),
            "sessionId": "s", "version": "2.1.3", "isMeta": is_meta,
            "timestamp": format!("2026-11-20T10:00:{number:02}Z"),
            "message": { "role": kind, "content": content },
        });
        if *kind == "assistant" {
            record["message"]["id"] = format!("m{number}").into();
        }
        record.to_string() + "\n"
    });
    uses("s.jsonl", &lines.collect::<String>())
}

/// Returns the uses in one Hermes snapshot.
fn hermes(messages: &Value) -> Vec<SkillUse> {
    let snapshot = json!({
        "session_id": "s", "session_start": "2026-11-20T10:00:00", "messages": messages,
    });
    uses("session_s.json", &snapshot.to_string())
}

fn uses(name: &str, text: &str) -> Vec<SkillUse> {
    let mut uses = SkillUseCollector::default();
    read(&SessionSource::bytes(name, text.to_owned()), &mut uses).unwrap();
    let sessions = uses.into_sessions();
    assert!(sessions.len() < 2, "{sessions:?}");
    sessions.into_iter().flat_map(|(_, uses)| uses).collect()
}

fn call(id: &str, skill: &str) -> (&'static str, Value) {
    let input = json!({ "skill": skill });
    ("assistant", json!([{ "type": "tool_use", "id": id, "name": "Skill", "input": input }]))
}

fn result(id: &str, words: &str, is_error: bool) -> (&'static str, Value) {
    let block = json!({
        "type": "tool_result", "tool_use_id": id, "content": words, "is_error": is_error,
    });
    ("user", json!([block]))
}

fn says(text: &str) -> (&'static str, Value) {
    ("assistant", json!([{ "type": "text", "text": text }]))
}

fn asks(text: &str) -> (&'static str, Value) {
    ("user", json!(text))
}

fn text_of(skill: &str) -> (&'static str, Value) {
    asks(&format!("Base directory for this skill: /home/me/.claude/skills/{skill}\n\n# Do it"))
}

/// docs/spec/skills-and-signals.md#next-message: a skill that was used in a turn is an execution.
#[test]
fn a_skill_called_by_the_model_is_one_execution_with_the_next_message() {
    let uses = claude(&[
        asks("release 1.2"),
        call("t1", "kit:release"),
        result("t1", "Launching skill: kit:release", false),
        text_of("release"),
        says("Reading the changelog."),
        says("Released."),
        asks("thanks, perfect"),
        says("You are welcome."),
        asks("now the docs"),
    ]);
    let [one] = &uses[..] else { panic!("{uses:?}") };
    assert_eq!((one.skill.as_str(), one.key.as_str()), ("kit:release", "t1"));
    assert_eq!(
        (one.status, one.turns, one.milliseconds),
        (ExecutionStatus::Success, 2, Some(4000))
    );
    assert_eq!(one.at.unwrap().to_string(), "2026-11-20T10:00:01Z");
    assert_eq!(one.next, Some(("thanks, perfect".to_owned(), Some("release 1.2".to_owned()))));
}

/// docs/spec/skills-and-signals.md#next-message: `execution_status` is "error" if the step has an
/// error.
#[test]
fn the_result_of_the_call_is_the_status() {
    let status = |words: &str, is_error| {
        let uses =
            claude(&[asks("go"), call("t1", "kit"), result("t1", words, is_error), says("Hm.")]);
        uses.into_iter().map(|one| (one.status, one.error)).next()
    };
    assert_eq!(status("Launching skill: kit", false), Some((ExecutionStatus::Success, None)));
    let failed = status("<tool_use_error>Unknown skill: kit</tool_use_error>", true);
    let words = Some("Unknown skill: kit".to_owned());
    assert_eq!(failed, Some((ExecutionStatus::Error, words)));
    let late = status("the skill timed out after 60 s", true).unwrap();
    assert_eq!(late.0, ExecutionStatus::Timeout);
    let refused = "The user doesn't want to proceed with this tool use.";
    assert_eq!(status(refused, true), None, "a call that was refused did not run");
    let pending = claude(&[asks("go"), call("t1", "kit")]);
    assert_eq!(pending, [], "nothing says how it ended");
}

/// docs/spec/skills-and-signals.md#next-message: skills requested by the user or by the model.
#[test]
fn a_skill_called_by_the_person_is_an_execution_too() {
    let command = "<command-message>kit:release is running…</command-message>\n\
                   <command-name>/kit:release</command-name>\n<command-args>1.2</command-args>";
    let uses = claude(&[
        asks("hello"),
        says("Hello."),
        asks(command),
        text_of("release"),
        says("Released."),
        asks("release 1.2 again"),
    ]);
    let [one] = &uses[..] else { panic!("{uses:?}") };
    assert_eq!((one.skill.as_str(), one.status), ("kit:release", ExecutionStatus::Success));
    assert_eq!(one.next.as_ref().unwrap().0, "release 1.2 again");
    let builtin = "<command-name>/clear</command-name>";
    assert_eq!(claude(&[asks("hello"), asks(builtin), says("Cleared.")]), []);
    // An earlier command with another name does not rename the skill.
    let other = claude(&[asks("hello"), asks(builtin), text_of("release"), says("Done.")]);
    assert_eq!(other[0].skill, "release");
    let unanswered = claude(&[asks("hello"), says("Hi."), asks(command), text_of("release")]);
    assert_eq!(unanswered, [], "the agent has not gone on");
}

/// docs/spec/skills-and-signals.md#next-message: the next message updates the execution before it.
#[test]
fn of_several_uses_before_a_message_the_last_one_gets_it() {
    let uses = claude(&[
        asks("go"),
        call("t1", "one"),
        result("t1", "Launching skill: one", false),
        call("t2", "two"),
        result("t2", "Launching skill: two", false),
        says("Done."),
        asks("thanks"),
    ]);
    let next: Vec<_> = uses.iter().map(|one| (one.skill.as_str(), one.next.is_some())).collect();
    assert_eq!(next, [("one", false), ("two", true)]);
}

#[test]
fn a_message_before_the_agent_went_on_is_not_about_the_use() {
    let uses = claude(&[
        asks("go"),
        call("t1", "kit"),
        asks("and hurry"),
        result("t1", "Launching skill: kit", false),
        says("Done."),
        asks("thanks"),
    ]);
    assert_eq!(uses[0].next, Some(("thanks".to_owned(), Some("and hurry".to_owned()))));
}

#[test]
fn a_provider_that_fails_to_the_end_fails_the_execution() {
    let broken = json!({
        "type": "assistant", "uuid": "x", "sessionId": "s", "isApiErrorMessage": true,
        "timestamp": "2026-11-20T10:01:00Z",
        "message": { "role": "assistant", "model": "<synthetic>",
                     "content": [{ "type": "text", "text": "API Error: 529" }] },
    });
    let mut lines = String::new();
    for (kind, content) in
        [asks("go"), call("t1", "kit"), result("t1", "Launching skill: kit", false)]
    {
        let message = json!({ "role": kind, "content": content });
        lines += &json!({ "type": kind, "sessionId": "s", "message": message }).to_string();
        lines.push('\n');
    }
    let uses = uses("s.jsonl", &format!("{lines}{broken}\n"));
    assert_eq!(uses[0].status, ExecutionStatus::Error);
    assert_eq!(uses[0].error.as_deref(), Some("the model's provider failed"));
}

/// docs/spec/skills-and-signals.md#next-message, in sessions of Hermes.
#[test]
fn hermes_looks_at_a_skill_with_its_tool() {
    let view = |id: &str, arguments: &Value, content: &Value| {
        let function = json!({ "name": "skill_view", "arguments": arguments.to_string() });
        [
            json!({ "role": "assistant", "tool_calls": [{ "id": id, "function": function }] }),
            json!({ "role": "tool", "tool_call_id": id, "content": content.to_string() }),
        ]
    };
    let good = json!({ "success": true, "name": "plan", "content": "# Plan" });
    let bad = json!({ "success": false, "error": "Skill 'pln' not found." });
    let said = |role: &str, text: &str| json!({ "role": role, "content": text });
    let mut messages = vec![said("user", "plan it")];
    messages.extend(view("c1", &json!({ "name": "plan" }), &good));
    messages.extend(view("c2", &json!({ "name": "plan", "file_path": "a.md" }), &good));
    messages.extend(view("c3", &json!({ "name": "pln" }), &bad));
    messages.extend([said("assistant", "Planned."), said("user", "thank you")]);
    let uses = hermes(&json!(messages));
    let found: Vec<_> = uses.iter().map(|one| (one.skill.as_str(), one.status)).collect();
    assert_eq!(found, [("plan", ExecutionStatus::Success), ("pln", ExecutionStatus::Error)]);
    assert_eq!(uses[1].error.as_deref(), Some("Skill 'pln' not found."));
}

/// docs/spec/skills-and-signals.md#next-message, in sessions of Hermes.
#[test]
fn hermes_is_told_to_use_skills_by_name() {
    let single = "[IMPORTANT: The user has invoked the \"pr\" skill, indicating they want you to \
        follow its instructions. The full skill content is loaded below.]\n\n# PR\n\nThe user has \
        provided the following instruction alongside the skill invocation: open one";
    let old = single.replace("[IMPORTANT:", "[SYSTEM:");
    let several = "[IMPORTANT: The user has invoked the \"/pr /tests\" skill bundle, loading 2.]\n\
        User instruction: open one\n\n[Loaded as part of the bundle]\n# PR";
    let loaded = "[IMPORTANT: The \"ops\" skill is auto-loaded. Follow its instructions for this \
        session.]\n\nbody\nResolve, then run them with the terminal tool using the absolute path.\n\
        \nis it up?";
    for (text, skills) in
        [(single, &["pr"][..]), (&old, &["pr"]), (several, &["pr", "tests"]), (loaded, &["ops"])]
    {
        let uses = hermes(&json!([
            { "role": "user", "content": text },
            { "role": "assistant", "content": "Opened." },
            { "role": "user", "content": "thanks" },
        ]));
        let found: Vec<_> = uses.iter().map(|one| one.skill.as_str()).collect();
        assert_eq!(found, skills, "{text}");
        // Text typed together with the command is the request, not a reaction to the skill.
        let (next, previous) = uses.last().unwrap().next.clone().unwrap();
        assert_eq!(next, "thanks");
        assert!(previous.is_some_and(|said| said == "open one" || said == "is it up?"), "{text}");
    }
    let notice = json!([
        { "role": "user", "content": "[IMPORTANT: The \"x\" is down.]\n\nhello" },
        { "role": "assistant", "content": "Hi." },
    ]);
    assert_eq!(hermes(&notice), []);
}

#[test]
fn what_is_no_skill_is_no_use() {
    let tool = |name: &str, input: Value| {
        let block = json!([{ "type": "tool_use", "id": "t", "name": name, "input": input }]);
        claude(&[asks("go"), ("assistant", block), result("t", "ok", false), says("Done.")])
    };
    assert_eq!(tool("Bash", json!({ "skill": "x" })), []);
    assert_eq!(tool("Skill", json!({ "skill": "  / " })), []);
    assert_eq!(tool("Skill", json!({ "skill": 7 })), []);
    assert_eq!(tool("Skill", json!("x")), []);
    assert_eq!(tool("Skill", json!({ "command": "old-form" }))[0].skill, "old-form");
}
