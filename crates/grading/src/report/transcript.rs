//! Renders a recorded session as a readable transcript, with events numbered as in evidence.
//!
//! Session texts are untrusted: secrets are redacted, terminal control characters are escaped and
//! lengths are limited.

use std::fmt::Write as _;

use super::session::{SessionOverview, format_usage};
use selftest_models::prices::ModelPrices;
use selftest_sessions::{Event, EventMark, EventOrigin, EventRole, Session, Text, ToolOutcome};
use selftest_text::escape::{terminal, visible};
use selftest_text::redact::Redactor;

/// Maximum length in bytes of a text, unless printed in full.
const MAX_BEGINNING: usize = 400;
/// Maximum length in bytes of a call's arguments.
const MAX_ARGUMENTS: usize = 200;
/// Maximum length in bytes of arguments and results of the requested event.
const MAX_TARGET: usize = 4000;

/// Print options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TranscriptOptions {
    /// Prints messages in full, with all their lines.
    pub full: bool,
    /// Number of the requested event, which is highlighted.
    pub target: Option<u64>,
}

/// Renders the events that `session` contains, which may be only part of it. The overview covers
/// the whole session.
pub fn transcript(
    session: &Session,
    overview: &SessionOverview,
    prices: &ModelPrices,
    redactor: &Redactor,
    printing: TranscriptOptions,
) -> String {
    let head = &session.head;
    let mut text = String::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let _ =
                writeln!(text, "{name:<10} {}", terminal(&redactor.apply(&value), MAX_BEGINNING));
        }
    };
    fact("session", Some(head.id.clone()));
    let version = head.agent_version.as_ref().map(|version| format!(" {version}"));
    fact("agent", Some(head.agent.clone() + version.unwrap_or_default().as_str()));
    fact("models", Some(head.models.join(", ")));
    fact("platform", head.platform.clone());
    fact("folder", head.cwd.clone());
    fact("parent", head.parent.clone());
    fact("start", head.start.map(|time| time.to_string()));
    fact("end", head.end.map(|time| time.to_string()));
    let usage = head.usage.map(|usage| {
        format!("{} in, {} out, {} from cache", usage.input, usage.output, usage.cached)
    });
    fact("tokens", usage);
    fact("unread", head.unknown_blocks.describe());
    fact("cost", Some(overview.cost(head, prices).words()));
    for event in &session.events {
        add_event(&mut text, event, prices, redactor, printing);
    }
    let ends = session.events.first().zip(session.events.last());
    if let Some((first, last)) = ends.map(|(first, last)| (first.number, last.number))
        && (first > 0 || last + 1 < overview.events)
        && session.left_out == 0
    {
        let _ = writeln!(text, "\nevents {first} to {last} of 0 to {}", overview.events - 1);
    }
    if session.left_out > 0 {
        let _ = writeln!(text, "\n{} further events are not shown", session.left_out);
    }
    text
}

fn add_event(
    text: &mut String,
    event: &Event<'_>,
    prices: &ModelPrices,
    redactor: &Redactor,
    printing: TranscriptOptions,
) {
    let is_target = printing.target == Some(event.number);
    let sign = if is_target { "=> " } else { "" };
    let full = printing.full || is_target;
    let _ = write!(text, "\n{sign}#{} {}", event.number, speaker(event));
    if let Some(time) = event.time {
        let _ = write!(text, "  {time}");
    }
    let mark = match event.mark {
        Some(EventMark::Interrupted) => "  [interrupted]",
        Some(EventMark::Compacted) => "  [context summarised]",
        Some(EventMark::ApiError) => "  [the model's provider failed]",
        Some(EventMark::FileEdited) => "  [a file was changed by other hands]",
        Some(EventMark::EditUndone) => "  [a person undid a change]",
        Some(EventMark::VerifierPassed) => "  [a verifier found it done]",
        Some(EventMark::VerifierFailed) => "  [a verifier found it not done]",
        None => "",
    };
    text.push_str(mark);
    text.push('\n');
    let mut body = |label: &str, words: &Text<'_>| {
        if words.is_empty() {
            return;
        }
        let words = redactor.apply(words);
        if full {
            for line in words.lines() {
                let _ = writeln!(text, "  {label}{}", visible(line));
            }
        } else {
            let _ = writeln!(text, "  {label}{}", terminal(&words, MAX_BEGINNING));
        }
    };
    body("(thinks) ", &event.reasoning);
    body("", &event.text);
    for call in &event.calls {
        let limit = if is_target { MAX_TARGET } else { MAX_ARGUMENTS };
        let arguments = terminal(&redactor.apply(&call.arguments), limit);
        let _ = writeln!(text, "  -> {} {arguments}", terminal(&call.name, 80));
    }
    for result in &event.results {
        let code = result.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
        let _ =
            write!(text, "  <- {} {}{code}", terminal(&result.tool, 80), outcome(result.outcome));
        let words = if result.error.is_empty() { &result.text } else { &result.error };
        let limit = if is_target { MAX_TARGET } else { MAX_BEGINNING };
        let words = terminal(&redactor.apply(words), limit);
        let _ = if words.is_empty() { writeln!(text) } else { writeln!(text, ": {words}") };
    }
    if let Some(spent) = format_usage(event, prices) {
        let _ = writeln!(text, "  ({})", redactor.apply(&spent));
    }
}

fn speaker(event: &Event<'_>) -> &'static str {
    match (event.role, event.origin) {
        (EventRole::User, EventOrigin::Human) => "human",
        (
            EventRole::User | EventRole::System,
            EventOrigin::Agent | EventOrigin::Harness | EventOrigin::Human,
        ) => "harness",
        (EventRole::Assistant, EventOrigin::Subagent) => "subagent",
        (EventRole::Assistant, _) => "agent",
        (EventRole::Tool, EventOrigin::Subagent) => "subagent's tool",
        (EventRole::Tool, _) => "tool",
        (EventRole::User | EventRole::System, EventOrigin::Subagent) => "to subagent",
    }
}

fn outcome(outcome: ToolOutcome) -> &'static str {
    match outcome {
        ToolOutcome::Ok => "ok",
        ToolOutcome::Failed => "FAILED",
        ToolOutcome::Rejected => "rejected",
        ToolOutcome::Pending => "no result",
        ToolOutcome::Unknown => "returned",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::{SessionCollector, SessionSource, read};

    #[test]
    fn a_session_reads_well_and_harmless() {
        let json = r#"{"id":"demo","model":"gpt-x","messages":[
          {"role":"user","content":"Find the\nuser \u001b[31m please, password=hunter2secret99"},
          {"role":"assistant","content":"I look.","reasoning":"where?","tool_calls":[
            {"id":"c1","function":{"name":"find","arguments":"{\"name\":\"mia\"}"}}]},
          {"role":"tool","tool_call_id":"c1","content":"Error: user not found"},
          {"role":"assistant","tool_calls":[{"id":"c2","function":{"name":"find","arguments":"{}"}}]}]}"#;
        let mut collector = SessionCollector::default();
        read(&SessionSource::bytes("demo.json", json), &mut collector).unwrap();
        let session = &collector.into_sessions()[0];
        let prices = ModelPrices::default();
        let overview = SessionOverview::from_session(session);
        let print =
            |printing| transcript(session, &overview, &prices, &Redactor::default(), printing);
        insta::assert_snapshot!(print(TranscriptOptions::default()));
        let full = print(TranscriptOptions { full: true, target: Some(1) });
        assert!(full.contains("\n=> #1 agent") && !full.contains("events 0 to"), "{full}");
        assert!(full.contains("  Find the\n  user"));
        assert!(!full.contains('\u{1b}') && !full.contains("hunter2"));
    }
}
