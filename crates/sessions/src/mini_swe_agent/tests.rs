//! Fixtures of mini-swe-agent, written and counted by hand. Must not hold anything of a real session.

use crate::mutation::survives_damage;
use crate::{
    EventMark, EventOrigin, EventRole, Session, SessionCollector, SessionFormat, SessionSource,
    TokenCounts, ToolOutcome, read,
};

/// The old form. 1 system, 1 user of the harness, 4 answers (3 calls), 3 results: 1 failed, 1 ok,
/// 1 whose end is not stated; 1 refusal of an answer with two commands.
const OLD: &str = r#"[
  {"role": "system", "content": "Answer with one ```bash block.\n```bash\nyour command\n```"},
  {"role": "user", "content": "Please solve this issue: it hangs"},
  {"role": "assistant", "content": "I look.\n\n```bash\ncat a.py\n```"},
  {"role": "user", "content": "<returncode>1</returncode>\n<output>\ncat: a.py: No such file\n</output>"},
  {"role": "assistant", "content": "Two.\n```bash\nls\n```\n```bash\npwd\n```"},
  {"role": "user", "content": "Please always provide EXACTLY ONE action in triple backticks."},
  {"role": "assistant", "content": "```mswea_bash_command\nls -la\n```"},
  {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
  {"role": "assistant", "content": "Done.\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
  {"role": "user", "content": "diff --git a/a.py b/a.py"}
]"#;

/// The new form. 1 system, 1 user of the harness, 1 of a person; 3 answers (3 calls), 3 results:
/// 1 ok, 1 rejected, 1 ok by submission; 1 exit status.
const NEW: &str = r#"{
  "info": {"exit_status": "Submitted", "submission": "diff", "mini_version": "2.1.0",
    "model_stats": {"instance_cost": 0.1, "api_calls": 3},
    "config": {"model": {"model_name": "provider/model-x"}}},
  "messages": [
    {"role": "system", "content": "rules", "extra": {"timestamp": 1777493100.0}},
    {"role": "user", "content": "Please solve this issue: it hangs"},
    {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "c1", "type": "function",
      "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}}],
     "extra": {"actions": [{"command": "ls", "tool_call_id": "c1"}], "cost": 0.01,
       "response": {"id": "r1", "model": "model-x", "choices": [{"message": {"content": "I look."}}],
         "usage": {"prompt_tokens": 100, "completion_tokens": 10,
           "prompt_tokens_details": {"cached_tokens": 40}}}}},
    {"role": "tool", "tool_call_id": "c1", "content": "<returncode>0</returncode>\n<output>\na.py</output>",
     "extra": {"raw_output": "a.py", "returncode": 0, "timestamp": 1777493160.0}},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c2",
      "function": {"name": "bash", "arguments": "{\"command\": \"rm -r .\"}"}}]},
    {"role": "user", "content": "Command not executed. The user rejected your command with the following message: no",
     "extra": {"interrupt_type": "UserRejection"}},
    {"object": "response", "model": "model-x", "usage": {"input_tokens": 50, "output_tokens": 5},
     "output": [{"type": "reasoning", "summary": []},
       {"type": "message", "content": [{"type": "output_text", "text": "Done."}]},
       {"type": "function_call", "call_id": "c3", "name": "bash", "arguments": "{}"}],
     "extra": {"actions": [{"command": "echo COMPLETE", "tool_call_id": "c3"}]}},
    {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}}
  ],
  "trajectory_format": "mini-swe-agent-1.1"
}"#;

fn session(json: &str) -> Session {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("run.traj.json", json), &mut collector).unwrap();
    assert_eq!(reading.format, SessionFormat::MiniSweAgent);
    assert_eq!(reading.notes.bad_records, 0);
    collector.into_sessions().remove(0)
}

fn outcomes(session: &Session) -> Vec<(ToolOutcome, Option<i64>)> {
    let results = session.events.iter().flat_map(|event| &event.results);
    results.map(|result| (result.outcome, result.exit_code)).collect()
}

fn count(session: &Session, role: EventRole, origin: EventOrigin) -> usize {
    session.events.iter().filter(|event| event.role == role && event.origin == origin).count()
}

#[test]
fn a_bare_list_with_fences() {
    let session = session(OLD);
    assert_eq!(session.head.id, "run-ea82411e");
    assert_eq!(count(&session, EventRole::System, EventOrigin::Harness), 1);
    assert_eq!(count(&session, EventRole::User, EventOrigin::Harness), 2);
    assert_eq!(count(&session, EventRole::User, EventOrigin::Human), 0);
    assert_eq!(count(&session, EventRole::Assistant, EventOrigin::Agent), 4);
    let expected =
        [(ToolOutcome::Failed, Some(1)), (ToolOutcome::Ok, Some(0)), (ToolOutcome::Unknown, None)];
    assert_eq!(outcomes(&session), expected);
    let answer = &session.events[2];
    assert_eq!(answer.text.as_str(), "I look.");
    assert_eq!(answer.calls[0].name.as_str(), "bash");
    assert_eq!(answer.calls[0].arguments.as_str(), "cat a.py");
    let result = &session.events[3].results[0];
    assert_eq!((result.tool.as_str(), result.text.as_str()), ("bash", "cat: a.py: No such file"));
    assert!(session.events[4].calls.is_empty());
    assert!(session.events[4].text.contains("pwd"));
}

#[test]
fn the_new_form_with_calls_and_extras() {
    let session = session(NEW);
    assert_eq!(count(&session, EventRole::User, EventOrigin::Harness), 1);
    assert_eq!(count(&session, EventRole::User, EventOrigin::Human), 1);
    assert_eq!(count(&session, EventRole::Assistant, EventOrigin::Agent), 3);
    let expected =
        [(ToolOutcome::Ok, Some(0)), (ToolOutcome::Rejected, None), (ToolOutcome::Ok, None)];
    assert_eq!(outcomes(&session), expected);
    let commands: Vec<_> = session
        .events
        .iter()
        .flat_map(|event| &event.calls)
        .map(|call| call.arguments.as_str())
        .collect();
    assert_eq!(commands, ["ls", "rm -r .", "echo COMPLETE"]);
    assert_eq!(session.head.models, ["model-x"]);
    assert_eq!(session.head.agent_version.as_deref(), Some("2.1.0"));
    assert_eq!(session.events[2].usage, Some(TokenCounts { input: 60, output: 10, cached: 40 }));
    let last = &session.events[session.events.len() - 1];
    assert_eq!(last.text.as_str(), "exit status: Submitted");
    let text = session.events.iter().find(|event| event.text.as_str() == "Done.");
    assert_eq!(text.unwrap().usage, Some(TokenCounts { input: 50, output: 5, cached: 0 }));
    assert_eq!(session.head.start.unwrap().to_string(), "2026-04-29T20:05:00Z");
}

#[test]
fn the_format_may_stand_out_of_sight_and_the_model_in_the_configuration() {
    let json = r#"{"info": {"exit_status": "LimitsExceeded", "config": {"model": {"model_name": "m"}}},
      "messages": [{"role": "user", "content": "task"}, {"role": "assistant", "content": "x"},
        {"role": "user", "content": "Interrupted by user: stop"}]}"#;
    let session = session(json);
    assert_eq!(session.head.models, ["m"]);
    assert_eq!(session.events.len(), 4);
    assert_eq!(session.events[2].mark, Some(EventMark::Interrupted));
    assert_eq!(session.events[2].origin, EventOrigin::Human);
    assert_eq!(session.events[3].text.as_str(), "exit status: LimitsExceeded");
}

#[test]
fn timeouts_and_exceptions_are_failures() {
    let json = r#"[{"role": "user", "content": "Fix it, then echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"},
      {"role": "assistant", "content": "```bash\nsleep 99\n```"},
      {"role": "user", "content": "The last command <command>sleep 99</command> timed out and has been killed."},
      {"role": "assistant", "content": "```bash\nls\n```"},
      {"role": "user", "content": "<exception>x</exception>\n<returncode>-1</returncode>\n<output>\n</output>",
       "extra": {"returncode": -1, "exception_info": "docker died"}},
      {"role": "assistant", "content": "```bash\ncat\n```"}]"#;
    let session = session(json);
    let expected = [
        (ToolOutcome::Failed, None),
        (ToolOutcome::Failed, Some(-1)),
        (ToolOutcome::Pending, None),
    ];
    assert_eq!(outcomes(&session), expected);
    assert_eq!(session.events[4].results[0].error.as_str(), "docker died");
}

#[test]
fn a_chat_about_a_shell_is_a_chat() {
    let json = r#"[{"role": "user", "content": "How do I list files?"},
      {"role": "assistant", "content": "So:\n```bash\nls\n```"}]"#;
    let reading =
        read(&SessionSource::bytes("chat.json", json), &mut SessionCollector::default()).unwrap();
    assert_eq!(reading.format, SessionFormat::Chat);
}

#[test]
fn damage_does_no_harm() {
    survives_damage(SessionFormat::MiniSweAgent, OLD.as_bytes());
    survives_damage(SessionFormat::MiniSweAgent, NEW.as_bytes());
}
