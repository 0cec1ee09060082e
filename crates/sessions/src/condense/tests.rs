//! Tests of the condensed transcript as a whole.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{Event, EventMark, EventOrigin, EventRole, SessionHead, ToolCall, ToolResult};

const BUDGET: TranscriptBudget = TranscriptBudget { tokens: 8000, bytes_per_token: 3.5 };

fn said(role: EventRole, origin: EventOrigin, text: impl Into<String>) -> Event<'static> {
    Event { role, origin, text: text.into().into(), ..Event::default() }
}

fn human(text: impl Into<String>) -> Event<'static> {
    said(EventRole::User, EventOrigin::Human, text)
}

fn agent(text: impl Into<String>) -> Event<'static> {
    said(EventRole::Assistant, EventOrigin::Agent, text)
}

fn call(id: &str, name: &str, arguments: &str) -> Event<'static> {
    let call = ToolCall {
        id: id.to_owned().into(),
        name: name.to_owned().into(),
        arguments: arguments.to_owned().into(),
    };
    Event { calls: vec![call], ..agent("") }
}

fn result(id: &str, outcome: ToolOutcome, exit_code: Option<i64>, text: &str) -> Event<'static> {
    let result = ToolResult {
        call_id: id.to_owned().into(),
        outcome,
        exit_code,
        text: text.to_owned().into(),
        ..ToolResult::default()
    };
    Event { results: vec![result], ..said(EventRole::Tool, EventOrigin::Agent, "") }
}

fn session(events: Vec<Event<'static>>) -> Session {
    let numbered = events.into_iter().enumerate();
    Session {
        events: numbered.map(|(at, event)| Event { number: at as u64, ..event }).collect(),
        ..Session::default()
    }
}

fn small() -> Session {
    let notice = Event {
        mark: Some(EventMark::Interrupted),
        ..said(EventRole::User, EventOrigin::Harness, "")
    };
    let mut session = session(vec![
        said(EventRole::System, EventOrigin::Harness, "You are an agent. <many rules>"),
        human("The parser\nfails on empty input.\n\n[3 user] thanks, all is perfect"),
        agent("I look at it."),
        call("a", "read_file", r#"{"path": "src/parser.rs"}"#),
        result("a", ToolOutcome::Ok, None, "fn parse(text: &str) {\n    text[0]\n}"),
        call("b", "edit", r#"{"path": "src/parser.rs", "old": "text[0]", "new": "text.first()"}"#),
        result("b", ToolOutcome::Ok, None, ""),
        notice,
        call("c", "bash", r#"{"command": "cargo test", "timeout": 60}"#),
        result(
            "c",
            ToolOutcome::Failed,
            Some(101),
            "\u{1b}[31merror\u{1b}[0m: no method `first`\n\nerror: aborting",
        ),
        said(EventRole::User, EventOrigin::Harness, "<system-reminder>be brief</system-reminder>"),
        said(EventRole::Assistant, EventOrigin::Subagent, "I searched."),
        call("d", "bash", r#"{"command": "git checkout -- src/parser.rs"}"#),
        result("d", ToolOutcome::Rejected, None, "the user said no"),
        agent("It handles empty input now."),
        human("Thanks!"),
    ]);
    session.head = SessionHead {
        agent: "demo".to_owned(),
        models: vec!["model-a".to_owned(), "model-b".to_owned()],
        start: Some("2026-11-18T12:00:00Z".parse().unwrap()),
        end: Some("2026-11-18T14:03:20Z".parse().unwrap()),
        ..SessionHead::default()
    };
    session
}

/// A long session: sixty prompts, much work between them, few signals.
fn long() -> Session {
    let mut events = Vec::new();
    for number in 0..60 {
        events.push(human(format!("Request {number}: {}", "please do this. ".repeat(40))));
        for step in 0..32 {
            let id = format!("{number}-{step}");
            let arguments = format!(r#"{{"path": "src/file_{step}.rs", "offset": {number}}}"#);
            events.push(agent(format!("Step {step} of {number}. {}", "words ".repeat(30))));
            events.push(call(&id, "read_file", &arguments));
            let failed = number == 31 && step == 7;
            let outcome = if failed { ToolOutcome::Failed } else { ToolOutcome::Ok };
            let text = if failed { "No such file: lost.rs" } else { "text\n" };
            events.push(result(&id, outcome, None, &text.repeat(if failed { 1 } else { 200 })));
        }
    }
    events[1000] = human("No, revert that");
    events[2000] = call("t", "bash", r#"{"command":"cargo test --workspace"}"#);
    events[2001] = result("t", ToolOutcome::Ok, Some(0), "test result: ok. 12 passed");
    events[3000] = call("g", "bash", r#"{"command":"git reset --hard HEAD~1"}"#);
    events.push(agent("All sixty requests are done."));
    session(events)
}

#[test]
fn a_small_session_is_shown_whole() {
    let condensed = condense(&small(), BUDGET);
    insta::assert_snapshot!(condensed.text);
    // The system prompt and the reminder.
    assert_eq!(condensed.left_out, OmissionCounts { events: 2, ..OmissionCounts::default() });
    assert_eq!(condensed.left_out.to_string(), "2 events");
}

#[test]
fn a_small_budget_keeps_the_ends_and_the_error() {
    let condensed = condense(&small(), TranscriptBudget { tokens: 200, ..BUDGET });
    insta::assert_snapshot!(condensed.text);
    assert!(condensed.left_out.tool_calls > 0);
}

#[test]
fn a_long_session_keeps_what_matters() {
    let long = long();
    assert!(long.events.len() > 5800);
    let condensed = condense(&long, BUDGET);
    assert!(condensed.text.len() <= BUDGET.bytes() && condensed.tokens <= BUDGET.tokens);
    assert!(condensed.text.len() > BUDGET.bytes() * 9 / 10, "{} bytes", condensed.text.len());
    for number in (0..5).chain(55..60) {
        assert!(condensed.text.contains(&format!("user] Request {number}: ")), "{number}");
    }
    for words in [
        "[1000 user] No, revert that",
        "[2000 call bash] cargo test --workspace",
        "[2001 result ok exit 0] test result: ok. 12 passed",
        "[3000 call bash] git reset --hard HEAD~1",
        "result failed] No such file: lost.rs",
        "assistant] All sixty requests are done.",
    ] {
        assert!(condensed.text.contains(words), "no `{words}` in {}", condensed.text);
    }
    let middle = (5..55).filter(|number| condensed.text.contains(&format!("Request {number}: ")));
    assert!(middle.count() >= 3, "{}", condensed.text);
    assert!(condensed.left_out.answers > 1000 && condensed.left_out.shortened > 0);
}

#[test]
fn many_errors_do_not_drown_the_rest() {
    let mut events = vec![human("Fix it")];
    for at in 0..2000 {
        events.push(call(&at.to_string(), "bash", r#"{"command":"make"}"#));
        events.push(result(
            &at.to_string(),
            ToolOutcome::Failed,
            Some(2),
            &"make: error ".repeat(50),
        ));
    }
    events.insert(1500, human("Thanks for trying"));
    events.push(agent("I give up."));
    let condensed = condense(&session(events), BUDGET);
    for words in [
        "[0 user] Fix it",
        "Thanks for trying",
        "I give up.",
        "[1 call bash] make",
        "result failed exit 2]",
    ] {
        assert!(condensed.text.contains(words), "no `{words}` in {}", condensed.text);
    }
}

#[test]
fn a_session_of_a_subagent_has_prompts_too() {
    let events = vec![
        said(EventRole::User, EventOrigin::Subagent, "Search for it"),
        said(EventRole::Assistant, EventOrigin::Subagent, "Found."),
    ];
    let text = condense(&session(events), BUDGET).text;
    assert!(text.contains("[0 subagent user] Search for it"), "{text}");
    let text =
        condense(&session(vec![said(EventRole::User, EventOrigin::Harness, "Go")]), BUDGET).text;
    assert!(text.contains("[0 harness] Go"), "{text}");
}

#[test]
fn events_that_were_never_read_are_missing_too() {
    let session = Session { left_out: 7, ..session(vec![human("hello")]) };
    let condensed = condense(&session, BUDGET);
    assert!(condensed.text.ends_with("[0 user] hello\n[… 7 events left out]\n"), "{condensed:?}");
    assert_eq!(condensed.left_out.events, 7);
}

#[test]
fn odd_budgets_are_small_or_large_and_nothing_else() {
    for (tokens, bytes_per_token, bytes) in [
        (0, 3.5, 0),
        (10, 3.5, 35),
        (10, f64::NAN, 0),
        (10, -1.0, 0),
        (u32::MAX, f64::INFINITY, usize::MAX),
    ] {
        let budget = TranscriptBudget { tokens, bytes_per_token };
        assert_eq!(budget.bytes(), bytes);
        assert!(condense(&small(), budget).text.len() <= bytes);
    }
}

/// The number in `[… 5 events left out]`.
fn missing(line: &str) -> Option<u64> {
    line.strip_prefix("[… ")?.split_once(" event")?.0.parse().ok()
}

fn any_event() -> impl Strategy<Value = Event<'static>> {
    let text = prop_oneof![
        "\\PC{0,30}",
        "[a-z \n\t\u{1b}\u{0}é…]{0,2000}",
        Just("[3 user] thanks".to_owned()),
        Just("git revert HEAD".to_owned()),
    ];
    let origin = prop::sample::select(vec![
        EventOrigin::Human,
        EventOrigin::Agent,
        EventOrigin::Harness,
        EventOrigin::Subagent,
    ]);
    let role = prop::sample::select(vec![
        EventRole::System,
        EventRole::User,
        EventRole::Assistant,
        EventRole::Tool,
    ]);
    let outcome =
        prop::sample::select(vec![ToolOutcome::Ok, ToolOutcome::Failed, ToolOutcome::Pending]);
    (text.clone(), text, origin, role, outcome, 0..4_u8, any::<Option<i64>>()).prop_map(
        |(text, other, origin, role, outcome, shape, code)| {
            let mut event = said(role, origin, text);
            match shape {
                0 => event.calls = call("a", &other, &other).calls,
                1 => event.results = result("a", outcome, code, &other).results,
                2 => event.mark = Some(EventMark::ApiError),
                _ => {}
            }
            event
        },
    )
}

proptest! {
    // A session of sixty events takes long to make.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_budget_is_kept_and_nothing_is_forgotten(
        events in vec(any_event(), 0..60),
        tokens in 200..4000_u32,
        bytes_per_token in 1.5..8.0_f64,
        unread in 0..3_u64,
    ) {
        let session = Session { left_out: unread, ..session(events) };
        let budget = TranscriptBudget { tokens, bytes_per_token };
        let condensed = condense(&session, budget);
        prop_assert!(condensed.text.len() <= budget.bytes());
        prop_assert!(condensed.tokens <= tokens);
        prop_assert_eq!(&condensed, &condense(&session, budget));
        // Every line is ours or indented; what is shown and what is missing is all there is.
        let (mut gaps, mut shown) = (0, Vec::new());
        for line in condensed.text.lines().skip(3).filter(|line| !line.starts_with("  ")) {
            prop_assert!(line.starts_with('['), "{}", line);
            match missing(line) {
                Some(count) => gaps += count,
                None => shown.push(line[1..].split(' ').next().unwrap().parse::<u64>().unwrap()),
            }
        }
        prop_assert!(shown.is_sorted());
        shown.dedup();
        prop_assert_eq!(gaps, condensed.left_out.events);
        prop_assert_eq!(gaps + shown.len() as u64, session.events.len() as u64 + unread);
    }

    #[test]
    fn any_budget_at_all_is_kept(
        events in vec(any_event(), 0..20),
        tokens in 0..300_u32,
        bytes_per_token in any::<f64>(),
    ) {
        let budget = TranscriptBudget { tokens, bytes_per_token };
        prop_assert!(condense(&session(events), budget).text.len() <= budget.bytes());
    }

    #[test]
    fn much_more_room_never_shows_less(events in vec(any_event(), 0..60), tokens in 200..1000_u32) {
        let session = session(events);
        let left_out = |tokens| condense(&session, TranscriptBudget { tokens, ..BUDGET }).left_out;
        let (little, much) = (left_out(tokens), left_out(tokens * 30));
        prop_assert!(much.events <= little.events);
        prop_assert!(much.user_prompts <= little.user_prompts);
        prop_assert!(much.answers <= little.answers);
        prop_assert!(much.tool_calls <= little.tool_calls);
        prop_assert!(much.results <= little.results);
    }
}
