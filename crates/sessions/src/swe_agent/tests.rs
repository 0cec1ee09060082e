//! Fixtures of SWE-agent, written and counted by hand. Must not hold anything of a real session.

use crate::mutation::survives_damage;
use crate::{
    EventOrigin, EventRole, Session, SessionCollector, SessionFormat, SessionSource, TokenCounts,
    ToolOutcome, read,
};

/// A run in both tellings: 3 steps, one asked for again without action, a demonstration, prompts
/// in the steps. Messages: 1 system and 1 user of the harness; 4 answers, 1 word of the harness,
/// 3 results (1 failed), 1 exit status. Calls: 3.
const RUN: &str = r#"{
  "environment": "main",
  "trajectory": [
    {"action": "open a.py\n", "observation": "[File: a.py (1 lines total)]\n1:x", "thought": "Look.",
     "response": "Look.\n```\nopen a.py\n```", "execution_time": 0.2,
     "state": "{\"open_file\": \"n/a\", \"working_dir\": \"/repo\"}",
     "query": [{"role": "user", "content": "all over again"}]},
    {"action": "", "observation": "Your output could not be parsed as a tool call.",
     "response": "I shall think.", "thought": "", "state": {"working_dir": "/other"}},
    {"action": "python a.py", "observation": "\nEXECUTION TIMED OUT", "thought": "Run it.",
     "response": "Run it.", "messages": [{"role": "system", "content": "again"}]},
    {"action": "submit", "observation": "diff --git a/a.py b/a.py", "thought": "Done.", "response": ""}
  ],
  "history": [
    {"role": "system", "content": "SETTING: rules", "agent": "main", "message_type": "system_prompt"},
    {"role": "user", "content": "Here is a demonstration", "agent": "main", "is_demo": true},
    {"role": "assistant", "content": "demo", "action": "ls", "agent": "main", "is_demo": true},
    {"role": "user", "content": [{"type": "text", "text": "ISSUE: it hangs"}], "agent": "main"},
    {"role": "assistant", "content": "Look.", "thought": "Look.", "action": "open a.py\n", "agent": "main"},
    {"role": "user", "content": "OBSERVATION:\n[File: a.py (1 lines total)]", "agent": "main"}
  ],
  "info": {"exit_status": "submitted (exit_cost)", "submission": "diff", "swe_agent_version": "1.1.0",
    "model_stats": {"instance_cost": 0.1, "tokens_sent": 700, "tokens_received": 24, "api_calls": 4}},
  "replay_config": "{\"agent\":{\"model\":{\"name\":\"gpt-x\"}},\"problem_statement\":{\"id\":\"repo-i1\"}}"
}"#;

fn session(json: &str) -> Session {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("run.traj", json), &mut collector).unwrap();
    assert_eq!(reading.format, SessionFormat::SweAgent);
    let mut sessions = collector.into_sessions();
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

fn roles(session: &Session) -> Vec<(EventRole, EventOrigin)> {
    session.events.iter().map(|event| (event.role, event.origin)).collect()
}

#[test]
fn steps_count_once_and_the_task_comes_first() {
    let session = session(RUN);
    let (system, user) =
        ((EventRole::System, EventOrigin::Harness), (EventRole::User, EventOrigin::Harness));
    let (answer, result) =
        ((EventRole::Assistant, EventOrigin::Agent), (EventRole::Tool, EventOrigin::Agent));
    assert_eq!(
        roles(&session),
        [system, user, answer, result, answer, system, answer, result, answer, result, system]
    );
    assert_eq!(session.events[1].text.as_str(), "ISSUE: it hangs");
    assert_eq!(session.events[2].text.as_str(), "Look.");
    let call = &session.events[2].calls[0];
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("open", "open a.py"));
    assert_eq!(session.events[4].text.as_str(), "I shall think.");
    let outcome = |number: usize| {
        let result = &session.events[number].results[0];
        (result.tool.as_str(), result.outcome)
    };
    assert_eq!(outcome(3), ("open", ToolOutcome::Unknown));
    assert_eq!(outcome(7), ("python", ToolOutcome::Failed));
    assert_eq!(outcome(9), ("submit", ToolOutcome::Unknown));
    assert_eq!(session.events[10].text.as_str(), "exit status: submitted (exit_cost)");
}

#[test]
fn the_head_comes_from_info_and_replay() {
    let session = session(RUN);
    let head = &session.head;
    assert_eq!((head.id.as_str(), head.agent.as_str()), ("repo-i1-fd5ca277", "swe-agent"));
    assert_eq!(head.models, ["gpt-x"]);
    assert_eq!(head.agent_version.as_deref(), Some("1.1.0"));
    assert_eq!(head.cwd.as_deref(), Some("/repo"));
    assert_eq!(head.usage, Some(TokenCounts { input: 700, output: 24, cached: 0 }));
    let calls = session.events.iter().filter(|event| event.role == EventRole::Assistant);
    assert_eq!(calls.count(), 4);
}

#[test]
fn demonstrations_are_counted_as_dropped() {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("run.traj", RUN), &mut collector).unwrap();
    assert_eq!(reading.notes.dropped_records, 2);
    assert_eq!(reading.notes.torn, None);
}

/// 1 system, 1 user, 2 answers with 1 call each (one by function call, one by action), 2 results.
const HISTORY: &str = r#"{"history": [
  {"role": "system", "content": "rules", "agent": "main"},
  {"role": "user", "content": "ISSUE: it hangs", "agent": "main"},
  {"role": "assistant", "content": "Look.", "thought": "Look.", "action": "ls -F", "agent": "main",
   "tool_calls": [{"id": "c1", "type": "function",
     "function": {"name": "bash", "arguments": "{\"command\":\"ls -F\"}"}}]},
  {"role": "tool", "content": "a.py", "agent": "main", "tool_call_ids": ["c1"]},
  {"role": "assistant", "content": "Run it.\n```\n./a.py\n```", "thought": "Run it.",
   "action": "./a.py", "agent": "main", "tool_calls": null},
  {"role": "user", "content": "bash: ./a.py: Permission denied\n(Open file: n/a)\nbash-$", "agent": "main"}
]}"#;

#[test]
fn a_file_with_nothing_but_history() {
    let session = session(HISTORY);
    assert_eq!(session.events.len(), 6);
    assert_eq!(session.head.id, "run-07a69e7b");
    let call = &session.events[2].calls[0];
    assert_eq!(call.arguments.as_str(), r#"{"command":"ls -F"}"#);
    assert_eq!(session.events[3].results[0].tool.as_str(), "bash");
    assert_eq!(session.events[4].text.as_str(), "Run it.");
    let failed = &session.events[5].results[0];
    assert_eq!((failed.tool.as_str(), failed.outcome), ("bash", ToolOutcome::Failed));
}

#[test]
fn an_empty_trajectory_leaves_the_history() {
    let json = HISTORY.replacen('{', r#"{"trajectory": [], "#, 1);
    assert_eq!(session(&json).events.len(), 6);
    let alone = r#"{"trajectory": [{"action": "ls", "observation": "a", "thought": "t"}]}"#;
    assert_eq!(session(alone).events.len(), 2);
}

#[test]
fn torn_in_the_history_and_in_the_steps() {
    let torn = |end: &str| {
        let at = RUN.find(end).unwrap();
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("run.traj", &RUN[..at]), &mut collector).unwrap();
        assert!(reading.notes.torn.is_some());
        collector.into_sessions().remove(0)
    };
    // The task, three steps with their results, and one answered by the harness.
    assert_eq!(torn("\"submission\"").events.len(), 10);
    // Two steps with their results and one answered by the harness; no task.
    assert_eq!(torn("\"submit\"").events.len(), 6);
}

#[test]
fn text_to_repair_keeps_the_task() {
    let session = session(&RUN.replace("Look.", "Look\\ud83d."));
    assert_eq!(session.events.len(), 11);
    assert_eq!(session.events[1].text.as_str(), "ISSUE: it hangs");
    assert_eq!(session.events[2].text.as_str(), "Look\u{fffd}.");
}

#[test]
fn damage_does_no_harm() {
    survives_damage(SessionFormat::SweAgent, RUN.as_bytes());
    survives_damage(SessionFormat::SweAgent, HISTORY.as_bytes());
}
