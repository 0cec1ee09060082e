//! Whole sessions, from events to grades. The edge cases (docs/spec/session-grades.md#edge-cases)
//! are at the end.

use std::collections::BTreeSet;

use super::*;
use crate::grade::ErrorClass;
use selftest_sessions::{EventRole, ToolCall, ToolOutcome, ToolResult};

/// A session under construction.
struct Script {
    head: SessionHead,
    events: Vec<Event<'static>>,
}

fn session() -> Script {
    let time = |text: &str| Some(text.parse().unwrap());
    let head = SessionHead {
        id: "s1".to_owned(),
        agent: "test".to_owned(),
        models: vec!["m1".to_owned(), "m2".to_owned()],
        start: time("2026-11-16T10:00:00Z"),
        end: time("2026-11-16T10:01:30Z"),
        ..SessionHead::default()
    };
    Script { head, events: Vec::new() }
}

impl Script {
    fn event(mut self, event: Event<'static>) -> Self {
        let number = self.events.len() as u64;
        self.events.push(Event { number, ..event });
        self
    }

    fn say(self, role: EventRole, origin: EventOrigin, text: &str) -> Self {
        let text = text.to_owned().into();
        self.event(Event { role, origin, text, ..Event::default() })
    }

    fn asks(self, text: &str) -> Self {
        self.say(EventRole::User, EventOrigin::Human, text)
    }

    fn answers(self, text: &str) -> Self {
        self.say(EventRole::Assistant, EventOrigin::Agent, text)
    }

    fn calls(self, tool: &str, outcome: ToolOutcome, output: &str) -> Self {
        let name: selftest_sessions::Text<'static> = tool.to_owned().into();
        let call = ToolCall { id: "c".into(), name: name.clone(), ..ToolCall::default() };
        let text = output.to_owned().into();
        let result = ToolResult { tool: name, text, outcome, ..ToolResult::default() };
        let (role, origin) = (EventRole::Assistant, EventOrigin::Agent);
        self.event(Event { role, origin, calls: vec![call], ..Event::default() }).event(Event {
            role: EventRole::Tool,
            origin,
            results: vec![result],
            ..Event::default()
        })
    }

    /// A tool's result, in a file that does not hold the call.
    fn gives(self, tool: &str, outcome: ToolOutcome) -> Self {
        let (tool, role) = (tool.to_owned().into(), EventRole::Tool);
        let result = ToolResult { tool, outcome, ..ToolResult::default() };
        self.event(Event { role, results: vec![result], ..Event::default() })
    }

    fn grading(self) -> GradingResult {
        let context = GradingContext {
            session_file: "/s/s1.jsonl",
            graded_at: "2026-11-18T00:00:00Z".parse().unwrap(),
        };
        let redactor = Redactor::default();
        let mut heuristic = RuleGrader::new(context, GradeWeights::default(), &redactor);
        self.events.into_iter().for_each(|event| heuristic.event(event));
        heuristic.end(self.head);
        heuristic.into_gradings().remove(0)
    }

    fn grade(self) -> GradeRecord {
        match self.grading() {
            GradingResult::Graded(record) => *record,
            GradingResult::NotGradable { reason, .. } => panic!("not gradable: {reason}"),
        }
    }
}

fn evidence(record: &GradeRecord, point: GradePoint) -> &GradeEvidence {
    record.details.evidence.iter().find(|evidence| evidence.point == point).unwrap()
}

#[test]
fn a_plain_success() {
    let record = session()
        .asks("Please fix the login bug")
        .calls("bash", ToolOutcome::Ok, "fine")
        .answers("All done: see https://example.org/1 for details.")
        .grade();
    assert!(record.task_completed && record.errors_recovered);
    assert_eq!(record.tool_calls_efficient.get(), 5);
    assert_eq!(record.response_quality.get(), 4);
    assert_eq!((record.total_api_calls, record.total_errors), (2, 0));
    assert_eq!(record.model.as_deref(), Some("m1"));
    assert_eq!(record.duration_seconds, Some(90.0));
    assert_eq!(record.task_summary.as_deref(), Some("Please fix the login bug"));
    assert_eq!(record.details.task_type, TaskType::Debugging);
    assert_eq!(record.started_at().unwrap().to_string(), "2026-11-16T10:00:00Z");
    let done = evidence(&record, GradePoint::SaysDone);
    assert_eq!((done.event, done.worth), (Some(3), 1.0));
    assert!(done.words.starts_with("All done"));
    assert_eq!(
        evidence(&record, GradePoint::Efficiency).words,
        "1 tool calls, 0 errors in 2 model calls"
    );
}

#[test]
fn errors_are_counted_classed_and_traced() {
    let record = session()
        .asks("run it")
        .calls("bash", ToolOutcome::Failed, "cat: x: No such file or directory")
        .calls("bash", ToolOutcome::Failed, "cat: y: No such file or directory")
        .calls("fetch", ToolOutcome::Failed, "Connection refused, password=hunter2secret99")
        .calls("bash", ToolOutcome::Rejected, "the user said no")
        .calls("bash", ToolOutcome::Ok, "fine")
        .answers("I was unable to do the whole of it.")
        .grade();
    assert_eq!((record.total_errors, record.total_api_calls), (3, 6));
    assert_eq!(record.error_types, [ErrorClass::FileNotFound, ErrorClass::NetworkError]);
    assert_eq!(record.tools_with_errors, ["bash", "fetch"]);
    assert!(record.had_repeated_errors && !record.had_infinite_loop_risk);
    assert!(record.errors_recovered);
    assert!(!record.task_completed);
    assert_eq!(record.tool_calls_efficient.get(), 1);
    assert_eq!(record.response_quality.get(), 2);
    let first = &record.details.errors[0];
    assert_eq!((first.count, first.first_event, first.tool.as_str()), (2, 2, "bash"));
    assert!(!record.details.errors[1].example.contains("hunter2"));
    assert_eq!(record.details.tools["bash"].calls, 4);
    assert_eq!(record.details.rejected_calls, 1);
    assert_eq!(evidence(&record, GradePoint::Recovery).event, Some(10));
}

#[test]
fn every_class_is_named_however_many_kinds_of_errors_there_are() {
    const NAMES: [&str; 8] = ["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple"];
    let mut script = session().asks("run it");
    for (one, other) in NAMES.iter().flat_map(|one| NAMES.map(|other| (one, other))) {
        for _ in 0..2 {
            script =
                script.calls(&format!("{one}-{other}"), ToolOutcome::Failed, "No such file: x");
        }
    }
    let record =
        script.calls("fetch", ToolOutcome::Failed, "Connection refused").answers("No.").grade();
    assert_eq!((record.total_errors, record.details.errors.len()), (129, MAX_GROUPS));
    let found: BTreeSet<ErrorClass> = record.error_types.iter().copied().collect();
    assert!(found.contains(&ErrorClass::NetworkError), "{found:?}");
}

#[test]
fn a_result_without_its_call_is_a_call_of_its_tool() {
    let record = session()
        .asks("run it")
        .gives("terminal", ToolOutcome::Failed)
        .gives("terminal", ToolOutcome::Ok)
        .calls("bash", ToolOutcome::Ok, "fine")
        .calls("terminal", ToolOutcome::Ok, "fine")
        .calls("bash", ToolOutcome::Pending, "")
        .answers("That is how it is, and no more can be said.")
        .grade();
    let calls = |tool| record.details.tools[tool].calls;
    assert_eq!((calls("terminal"), calls("bash")), (3, 2));
    // The grade itself is by the calls that the file holds.
    assert_eq!((record.details.tool_calls, record.details.calls_of_tools()), (3, 5));
}

#[test]
fn the_example_of_an_error_is_the_exception_not_the_traceback() {
    let words = "Exit code 1\nTraceback (most recent call last):\n  File \"a.py\", line 5\n    \
                 d['id']\nKeyError: 'id', password=hunter2secret99";
    let script = session().asks("run it").calls("bash", ToolOutcome::Failed, words);
    let record = script.answers("That is how it is, and no more can be said.").grade();
    assert_eq!(record.details.errors[0].example, "KeyError: 'id', password=[redacted]");
}

#[test]
fn an_error_at_the_end_is_not_recovered_from() {
    let record = session()
        .asks("run it")
        .calls("bash", ToolOutcome::Ok, "fine")
        .calls("bash", ToolOutcome::Failed, "Permission denied")
        .answers("That is how it is, and no more can be said.")
        .grade();
    assert!(!record.errors_recovered);
    assert_eq!(evidence(&record, GradePoint::Recovery).event, Some(4));
}

#[test]
fn only_the_sessions_own_agent_counts() {
    let record = session()
        .say(EventRole::User, EventOrigin::Harness, "<environment>deploy</environment>")
        .asks("a poem, please")
        .say(EventRole::User, EventOrigin::Subagent, "fix everything")
        .say(EventRole::Assistant, EventOrigin::Subagent, "sub answer, failed")
        .answers("Roses are red, violets are blue.")
        .grade();
    assert_eq!(record.total_api_calls, 1);
    assert_eq!(record.task_summary.as_deref(), Some("a poem, please"));
    assert_eq!(record.details.task_type, TaskType::General);

    let alone = session()
        .say(EventRole::User, EventOrigin::Subagent, "fix everything")
        .say(EventRole::Assistant, EventOrigin::Subagent, "It is all finished by now.")
        .grade();
    assert!(alone.task_completed);
    let own_file = session()
        .say(EventRole::User, EventOrigin::Subagent, "fix everything")
        .answers("It is all finished by now.")
        .grade();
    assert_eq!(own_file.details.task_type, TaskType::Debugging);
}

#[test]
fn continued_calls_are_one_call_and_one_response() {
    let text = |text: &'static str, continues| Event {
        role: EventRole::Assistant,
        origin: EventOrigin::Agent,
        text: text.into(),
        continues,
        ..Event::default()
    };
    let record = session()
        .asks("go")
        .event(text("The first half", false))
        .event(text("is done", true))
        .grade();
    assert_eq!(record.total_api_calls, 1);
    let done = evidence(&record, GradePoint::SaysDone);
    assert!(done.words.contains("is done"));
    assert_eq!(done.event, Some(2), "the message that says it");
    let record = session()
        .asks("go")
        .event(text("Here is the first half, which says so in some words", false))
        .event(text("and this is the second: see https://example.org", true))
        .event(text("```\ncode\n```", true))
        .grade();
    assert_eq!(evidence(&record, GradePoint::NamesOutput).event, Some(1));
    assert_eq!(evidence(&record, GradePoint::HasLinks).event, Some(2));
    assert_eq!(evidence(&record, GradePoint::HasCode).event, Some(3));
}

#[test]
fn asking_back_is_noted_when_a_person_answers() {
    let record = session()
        .asks("make it better")
        .answers("I can do that.\nWhich file do you mean?")
        .asks("main.rs")
        .answers("Now it is better than before.")
        .grade();
    assert!(record.had_user_clarification);
    let asked = evidence(&record, GradePoint::Clarification);
    assert_eq!((asked.event, asked.words.as_str()), (Some(1), "Which file do you mean?"));

    let at_end = session().asks("make it better").answers("Anything else?").grade();
    assert!(!at_end.had_user_clarification);
    let tool =
        session().asks("go").calls("AskUserQuestion", ToolOutcome::Ok, "yes").answers("ok").grade();
    assert!(tool.had_user_clarification);
}

#[test]
fn the_end_decides_not_the_middle() {
    let record = session()
        .asks("go")
        .answers("Step one is done, on we go to the next.")
        .calls("bash", ToolOutcome::Pending, "")
        .grade();
    assert_eq!(record.details.pending_calls, 1);
    assert!(!record.task_completed);
    assert_eq!(evidence(&record, GradePoint::ShortResponse).event, None);
}

#[test]
fn an_empty_session_is_not_gradable() {
    let reason = |script: Script| match script.grading() {
        GradingResult::NotGradable { reason, .. } => reason,
        GradingResult::Graded(_) => "graded",
    };
    assert_eq!(reason(session()), "no user request");
    assert_eq!(reason(session().answers("hello")), "no user request");
    assert_eq!(reason(session().asks("hello")), "no answer of the agent");
    assert_eq!(reason(session().asks("hello").answers("")), "no answer of the agent");
    let blank = session().asks("hello").answers(" \n").asks("are you there?").answers("");
    assert_eq!(reason(blank), "no answer of the agent");
    assert_eq!(reason(session().asks("hello").answers("hi")), "graded");
    assert_eq!(reason(session().asks("hello").answers("hi").answers("")), "graded");
    assert_eq!(reason(session().asks("hello").calls("bash", ToolOutcome::Ok, "")), "graded");
}

#[test]
fn an_infinite_loop_is_seen() {
    let mut script = session().asks("loop");
    for _ in 0..60 {
        script = script.calls("bash", ToolOutcome::Failed, "Request timed out");
    }
    let record = script.grade();
    assert!(record.had_repeated_errors && record.had_infinite_loop_risk);
    assert_eq!(record.details.longest_error_run, 60);
    assert_eq!((record.tool_calls_efficient.get(), record.response_quality.get()), (1, 1));
    assert!(!record.task_completed && !record.errors_recovered);

    let mut long = session().asks("long");
    for _ in 0..51 {
        long = long.calls("bash", ToolOutcome::Ok, "fine");
    }
    assert!(long.grade().had_infinite_loop_risk);
}

#[test]
fn a_tool_name_for_each_call_fills_no_memory() {
    let mut script = session().asks("go");
    for number in 0..700 {
        script = script.calls(&format!("tool{number}"), ToolOutcome::Ok, "");
    }
    let record = script.grade();
    assert_eq!(record.details.tools.len(), 501);
    assert_eq!(record.details.tools["(other tools)"].calls, 200);
}

#[test]
fn no_cut_bares_a_secret() {
    // Near the phrase stands the value alone, and in the beginning of the link no `@`.
    let said = "I set DB_PASSWORD=correct-horse-9 for the whole of the shop, the work is done";
    let linked = format!("see https://shop:{}@shop.example/", "correct-horse-".repeat(8));
    for text in [said, &linked] {
        let record = session().asks("set it").answers(text).grade();
        let words: Vec<_> = record.details.evidence.iter().map(|one| &*one.words).collect();
        assert!(words.iter().all(|words| !words.contains("horse")), "{words:?}");
        assert!(words.iter().any(|words| words.contains("[redacted]")), "{words:?}");
    }
}

#[test]
fn the_sample_triggers_most_rules() {
    let [GradingResult::Graded(grade)] = &grade_sample()[..] else { panic!("no grade") };
    assert_eq!((grade.total_errors, grade.details.corrections), (1, 1));
    assert_eq!(grade.outcome, crate::grade::TaskOutcome::Contradicted);
}
