//! pi sessions, from hand-written files to counted totals.

use crate::mutation::survives_damage;
use crate::{
    EventMark, EventOrigin, EventRole, ReadNotes, Session, SessionCollector, SessionFormat,
    SessionSource, TokenCounts, ToolOutcome, read,
};

/// Counted by hand: 2 human messages; 2 of the harness (a command of the user, an extension's
/// text); 4 model calls; 4 tool calls: 1 ok, 2 failed, 1 pending; 1 compaction, 1 API error.
const FIXTURE: &str = r#"{"type":"session","version":3,"id":"0b6e-uuid","timestamp":"2026-02-01T09:00:00.000Z","cwd":"/work/site","parentSession":"/home/a/.pi/agent/sessions/--work--/2026-01-31T08-00-00-000Z_77aa-uuid.jsonl"}
{"type":"model_change","id":"a0","parentId":null,"timestamp":"2026-02-01T09:00:00.000Z","provider":"anthropic","modelId":"claude-x"}
{"type":"message","id":"a1","parentId":"a0","timestamp":"2026-02-01T09:00:01.000Z","message":{"role":"user","content":"fix the build","timestamp":1769936401000}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-02-01T09:00:02.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"look first","thinkingSignature":"x"},{"type":"text","text":"Looking."},{"type":"toolCall","id":"t1","name":"read","arguments":{"path":"a.ts"}},{"type":"toolCall","id":"t2","name":"bash","arguments":{"command":"make"}}],"api":"anthropic-messages","provider":"anthropic","model":"claude-x","usage":{"input":10,"output":5,"cacheRead":100,"cacheWrite":7,"totalTokens":122,"cost":{"total":0.1}},"stopReason":"toolUse","timestamp":1769936402000}}
{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-02-01T09:00:03.000Z","message":{"role":"toolResult","toolCallId":"t2","toolName":"bash","content":[{"type":"text","text":"no rule\n\nCommand exited with code 2"}],"isError":true,"timestamp":1769936403000}}
{"type":"message","id":"a4","parentId":"a3","timestamp":"2026-02-01T09:00:03.000Z","message":{"role":"toolResult","toolCallId":"t1","toolName":"read","content":[{"type":"text","text":"code"},{"type":"image","data":"QUJDRA==","mimeType":"image/png"}],"isError":false,"timestamp":1769936403000}}
{"type":"message","id":"a5","parentId":"a4","timestamp":"2026-02-01T09:00:04.000Z","message":{"role":"bashExecution","command":"ls","output":"a.ts","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1769936404000}}
{"type":"custom_message","id":"a6","parentId":"a5","timestamp":"2026-02-01T09:00:05.000Z","customType":"x","content":"be careful","display":true}
{"type":"compaction","id":"a7","parentId":"a6","timestamp":"2026-02-01T09:00:06.000Z","summary":"the build is broken","firstKeptEntryId":"a3","tokensBefore":50000}
{"type":"message","id":"a8","parentId":"a7","timestamp":"2026-02-01T09:00:07.000Z","message":{"role":"assistant","content":[],"model":"claude-x","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0},"stopReason":"error","errorMessage":"overloaded","timestamp":1769936407000}}
{"type":"message","id":"a9","parentId":"a8","timestamp":"2026-02-01T09:00:08.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"t3","name":"edit","arguments":{}}],"model":"claude-y","usage":{"input":3,"output":2,"cacheRead":1,"cacheWrite":0},"stopReason":"toolUse","timestamp":1769936408000}}
{"type":"message","id":"b1","parentId":"a9","timestamp":"2026-02-01T09:00:09.000Z","message":{"role":"toolResult","toolCallId":"t3","toolName":"edit","content":[{"type":"text","text":"Could not find the exact text"}],"isError":true,"timestamp":1769936409000}}
{"type":"message","id":"b2","parentId":"b1","timestamp":"2026-02-01T09:00:10.000Z","message":{"role":"user","content":[{"type":"text","text":"and the tests"}],"timestamp":1769936410000}}
{"type":"label","id":"b3","parentId":"b2","timestamp":"2026-02-01T09:00:10.000Z","targetId":"a1","label":"start"}
{"type":"message","id":"b4","parentId":"b3","timestamp":"2026-02-01T09:00:11.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"t4","name":"bash","arguments":{}}],"model":"claude-y","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0},"stopReason":"aborted","timestamp":1769936411000}}
"#;

fn session(lines: &str) -> (Session, ReadNotes) {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("pi.jsonl", lines), &mut collector).unwrap();
    assert_eq!(reading.format, SessionFormat::Pi);
    let mut sessions = collector.into_sessions();
    assert_eq!(sessions.len(), 1);
    (sessions.remove(0), reading.notes)
}

fn said(session: &Session, role: EventRole) -> Vec<&str> {
    let events = session.events.iter().filter(|event| event.role == role);
    events.map(|event| event.text.as_str()).collect()
}

fn outcomes(session: &Session) -> Vec<(&str, ToolOutcome, Option<i64>)> {
    let results = session.events.iter().flat_map(|event| &event.results);
    results.map(|result| (result.call_id.as_str(), result.outcome, result.exit_code)).collect()
}

#[test]
fn the_totals_of_a_session() {
    let (session, notes) = session(FIXTURE);
    let count = |role, origin| {
        session.events.iter().filter(|event| (event.role, event.origin) == (role, origin)).count()
    };
    assert_eq!(count(EventRole::User, EventOrigin::Human), 2);
    assert_eq!(count(EventRole::User, EventOrigin::Harness), 2);
    assert_eq!(count(EventRole::Assistant, EventOrigin::Agent), 4);
    assert!(!session.events.iter().any(|event| event.continues));
    assert_eq!(
        outcomes(&session),
        [
            ("t2", ToolOutcome::Failed, Some(2)),
            ("t1", ToolOutcome::Ok, None),
            ("t3", ToolOutcome::Failed, None),
            ("t4", ToolOutcome::Pending, None),
        ]
    );
    assert_eq!(session.events[1].reasoning.as_str(), "look first");
    assert_eq!(session.events[1].calls[0].arguments.as_str(), r#"{"path":"a.ts"}"#);
    assert_eq!(session.events[3].results[0].text.as_str(), "code\n[image 6 B]");
    let mut usage = TokenCounts::default();
    session.events.iter().filter_map(|event| event.usage).for_each(|more| usage += more);
    assert_eq!(usage, TokenCounts { input: 21, output: 8, cached: 101 });
    let marks: Vec<_> = session.events.iter().filter_map(|event| event.mark).collect();
    assert_eq!(marks, [EventMark::Compacted, EventMark::ApiError, EventMark::Interrupted]);

    let head = &session.head;
    assert_eq!((head.id.as_str(), head.agent.as_str()), ("0b6e-uuid", "pi"));
    assert_eq!(head.parent.as_deref(), Some("77aa-uuid"));
    assert_eq!(head.cwd.as_deref(), Some("/work/site"));
    assert_eq!(head.models, ["claude-x", "claude-y"]);
    assert_eq!(head.end.unwrap().to_string(), "2026-02-01T09:00:11Z");
    // The change of model and the label.
    assert_eq!((notes.ignored_records, notes.dropped_records), (2, 0));
}

fn entry(id: &str, parent: &str, role: &str, text: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-02-01T09:00:01Z","message":{{"role":"{role}","content":"{text}"}}}}"#
    )
}

const HEADER: &str =
    r#"{"type":"session","version":2,"id":"s","timestamp":"2026-02-01T09:00:00Z","cwd":"/"}"#;

#[test]
fn the_branch_of_the_last_entry_counts() {
    let lines = [
        HEADER.to_owned(),
        entry("1", "null", "user", "start"),
        entry("2", "\"1\"", "user", "wrong way"),
        entry("3", "\"2\"", "user", "further wrong"),
        entry("4", "\"1\"", "user", "right way"),
        entry("5", "\"4\"", "user", "done"),
    ];
    let (session, notes) = session(&lines.join("\n"));
    assert_eq!(said(&session, EventRole::User), ["start", "right way", "done"]);
    assert_eq!(session.head.id, "s");
    assert_eq!((notes.dropped_records, notes.bad_records), (2, 0));
}

#[test]
fn a_lost_parent_and_a_circle_lose_no_more() {
    let lines = [
        HEADER.to_owned(),
        entry("1", "null", "user", "a"),
        "{ broken".to_owned(),
        entry("3", "\"2\"", "user", "b"),
        entry("4", "\"4\"", "user", "c"),
    ];
    let (first, notes) = session(&lines.join("\n"));
    assert_eq!(said(&first, EventRole::User), ["a", "b", "c"]);
    assert_eq!(notes.bad_records, 1);
    let (restarted, _) = session(&[lines.join("\n"), entry("5", "null", "user", "d")].join("\n"));
    assert_eq!(said(&restarted, EventRole::User), ["d"]);
}

#[test]
fn version_1_is_a_plain_sequence() {
    let (session, _) = session(
        r#"{"type":"session","id":"v1","timestamp":"2025-11-01T09:00:00Z","cwd":"/","provider":"anthropic","modelId":"m","thinkingLevel":"off"}
{"type":"message","timestamp":"2025-11-01T09:00:01Z","message":{"role":"user","content":"hello"}}
{"type":"thinking_level_change","timestamp":"2025-11-01T09:00:01Z","thinkingLevel":"high"}
{"type":"message","timestamp":"2025-11-01T09:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":"hi"}],"stopReason":"stop"}}
{"type":"message","timestamp":"2025-11-01T09:00:03Z","message":{"role":"hookMessage","content":"note"}}"#,
    );
    assert_eq!(said(&session, EventRole::User), ["hello", "note"]);
    assert_eq!(session.events.len(), 3);
}

#[test]
fn refusals_are_no_failures_and_skills_are_not_typed() {
    let result = |text: &str, error: &str| {
        format!(
            r#"{{"type":"message","message":{{"role":"toolResult","toolCallId":"x","content":"{text}"{error}}}}}"#
        )
    };
    let lines = [
        HEADER.to_owned(),
        result("out\\nCommand aborted", r#","isError":true"#),
        result("Error: gone", ""),
        entry("1", "null", "user", "<skill name=x>long text</skill>\\n\\ndo it"),
    ];
    let (session, _) = session(&lines[..3].join("\n"));
    let found: Vec<_> = outcomes(&session).into_iter().map(|(_, outcome, _)| outcome).collect();
    assert_eq!(found, [ToolOutcome::Rejected, ToolOutcome::Failed]);
    let (session, _) = self::session(&[&lines[0], &lines[3]].map(String::as_str).join("\n"));
    assert_eq!(said(&session, EventRole::User), ["do it"]);
}

#[test]
fn damage_does_no_harm() {
    let fork = entry("z", "\"a2\"", "user", "again");
    survives_damage(SessionFormat::Pi, format!("{FIXTURE}{fork}").as_bytes());
}
