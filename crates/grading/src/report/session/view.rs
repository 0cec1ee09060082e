//! View models for the events of a session: messages in parts, calls with their results, and
//! subagents grouped together. Produces plain text, which the templates escape.

use std::collections::{HashMap, HashSet};

use super::text_parts::{self, TextPart};
use crate::grade::spending::{TokenCost, TokenSpending};
use selftest_models::prices::ModelPrices;
use selftest_sessions::{Event, EventMark, EventOrigin, EventRole, Text, ToolOutcome, ToolResult};
use selftest_text::escape::{block, terminal};
use selftest_text::wording;

/// Maximum length in bytes of a name or a line.
const MAX_LINE: usize = 400;

/// Limits in bytes for one text on a page. The next smaller limit is tried if the page would be too
/// large.
const LIMITS: [usize; 4] = [40_000, 8000, 2000, 400];

/// Maximum size in bytes of all texts on a page.
const MAX_PAGE: usize = 2_000_000;

/// Options for showing events.
#[derive(Clone, Copy)]
pub struct ViewOptions<'a> {
    /// Prices of tokens.
    pub prices: &'a ModelPrices,
    /// Number of the requested event. Elements that contain it are unfolded.
    pub target: Option<u64>,
    /// Returns the link to the full view of an event. `None` if all texts are shown in full here.
    pub full_event_link: Option<&'a dyn Fn(u64) -> String>,
}

/// A top-level event, or a group of events from a subagent.
#[derive(Debug)]
pub enum SessionItem {
    /// A single event.
    One(EventView),
    /// Consecutive events of a subagent.
    Subagent {
        /// Call that started the subagent, if known; otherwise empty.
        name: String,
        /// Events of the subagent.
        events: Vec<EventView>,
        /// True if the group is unfolded.
        is_open: bool,
    },
}

/// View of an event.
#[derive(Debug)]
pub struct EventView {
    /// Number of the event in the session.
    pub number: u64,
    /// CSS class of the element.
    pub class: &'static str,
    /// Label of the speaker.
    pub speaker: &'static str,
    /// Time in UTC.
    pub time: Option<String>,
    /// Description of a special event.
    pub mark: Option<&'static str>,
    /// Reasoning of the model.
    pub thinking: String,
    /// True if the reasoning is unfolded.
    pub is_open: bool,
    /// Message text.
    pub parts: Vec<TextPart>,
    /// Tool calls with their results.
    pub calls: Vec<CallView>,
    /// Results that are not shown next to their calls.
    pub results: Vec<ResultView>,
    /// Tokens, model and cost of this model call.
    pub spent: Option<String>,
    /// Link to the full view, if texts are cut here.
    pub whole: Option<String>,
}

/// View of a tool call.
#[derive(Debug)]
pub struct CallView {
    /// Name of the tool.
    pub name: String,
    /// One-line summary of the arguments.
    pub brief: String,
    /// The arguments.
    pub parts: Vec<TextPart>,
    /// Result of the call, if it is among the events shown.
    pub result: Option<ResultView>,
    /// True if the call is unfolded.
    pub is_open: bool,
}

/// View of a tool result.
#[derive(Debug)]
pub struct ResultView {
    /// Number of the result's event.
    pub number: u64,
    /// True if this result represents its event and carries its anchor.
    pub is_event: bool,
    /// Name of the tool.
    pub tool: String,
    /// Outcome as text.
    pub outcome: &'static str,
    /// CSS class of the outcome.
    pub class: &'static str,
    /// Exit code of a program.
    pub exit_code: Option<i64>,
    /// Time in UTC.
    pub time: Option<String>,
    /// The output.
    pub parts: Vec<TextPart>,
    /// True if the result is unfolded.
    pub is_open: bool,
}

/// Converts events to views, in order.
pub fn event_views(events: &[Event<'_>], showing: ViewOptions<'_>) -> Vec<SessionItem> {
    // Without a link to the full event, texts must not be cut.
    let limit = showing.full_event_link.map_or(usize::MAX, |_| text_limit(events));
    let mut paired = CallResults::match_results(events);
    let mut all: Vec<SessionItem> = Vec::new();
    for event in events {
        // An event whose results all stand at their calls has no view of its own.
        let Some(view) = event_view(event, &mut paired, showing, limit) else { continue };
        let is_subagent = event.origin == EventOrigin::Subagent;
        let is_target = showing.target.is_some_and(|target| view.contains_event(target));
        match all.last_mut() {
            Some(SessionItem::Subagent { events, is_open, .. }) if is_subagent => {
                events.push(view);
                *is_open |= is_target;
            }
            last if is_subagent => {
                // The call right before a subagent's events is taken as the one that started it.
                let starter = last.and_then(|last| match last {
                    SessionItem::One(before) => before.calls.last(),
                    SessionItem::Subagent { .. } => None,
                });
                let name = starter.map(|call| format!("{} {}", call.name, call.brief));
                let name = name.unwrap_or_default();
                all.push(SessionItem::Subagent { name, events: vec![view], is_open: is_target });
            }
            _ => all.push(SessionItem::One(view)),
        }
    }
    all
}

/// Returns the largest text limit at which the page stays below its maximum size.
fn text_limit(events: &[Event<'_>]) -> usize {
    // Markup is not counted: the limit keeps the page readable by a browser, and need not be exact.
    let size = |limit: usize| {
        let all = events.iter().flat_map(texts);
        all.map(|text| text.len().min(limit)).sum::<usize>()
    };
    let fitting = LIMITS.into_iter().find(|limit| size(*limit) <= MAX_PAGE);
    fitting.unwrap_or(LIMITS[LIMITS.len() - 1])
}

/// Returns all texts of an event.
pub fn texts<'e>(event: &'e Event<'_>) -> impl Iterator<Item = &'e str> {
    let calls = event.calls.iter().map(|call| &call.arguments);
    let results = event.results.iter().flat_map(|result| [&result.text, &result.error]);
    [&event.text, &event.reasoning].into_iter().chain(calls).chain(results).map(Text::as_str)
}

/// Position of a call or result: number of its event and index within it.
type CallPlace = (u64, usize);

/// Calls matched with their results among the events.
struct CallResults<'e> {
    /// Results by the position of their call.
    results: HashMap<CallPlace, (&'e Event<'e>, &'e ToolResult<'e>)>,
    /// Positions of results that are shown with their calls.
    with_calls: HashSet<CallPlace>,
}

impl<'e> CallResults<'e> {
    fn match_results(events: &'e [Event<'e>]) -> Self {
        let mut open: HashMap<&str, CallPlace> = HashMap::new();
        let mut paired = Self { results: HashMap::new(), with_calls: HashSet::new() };
        for event in events {
            for (at, call) in event.calls.iter().enumerate() {
                if !call.id.is_empty() {
                    // Without an ID, a result cannot be matched to its call.
                    open.insert(call.id.as_str(), (event.number, at));
                }
            }
            for (at, result) in event.results.iter().enumerate() {
                // Removed, so that a second result with the same ID is shown on its own.
                if let Some(call) = open.remove(result.call_id.as_str()) {
                    paired.results.insert(call, (event, result));
                    paired.with_calls.insert((event.number, at));
                }
            }
        }
        paired
    }

    /// Returns true if the event only contains results that are shown with their calls.
    fn covers_event(&self, event: &Event<'_>) -> bool {
        let says_more = !event.text.is_empty()
            || !event.reasoning.is_empty()
            || !event.calls.is_empty()
            || event.mark.is_some()
            || event.usage.is_some();
        !says_more
            && !event.results.is_empty()
            && (0..event.results.len()).all(|at| self.with_calls.contains(&(event.number, at)))
    }
}

/// Returns the view of an event, or `None` if it is shown entirely with the calls it answers.
fn event_view(
    event: &Event<'_>,
    paired: &mut CallResults<'_>,
    showing: ViewOptions<'_>,
    limit: usize,
) -> Option<EventView> {
    if paired.covers_event(event) {
        return None;
    }
    let target = showing.target;
    let is_target = target == Some(event.number);
    let mut is_cut = texts(event).any(|text| text.len() > limit);
    let calls = event.calls.iter().enumerate().map(|(at, call)| {
        let result = paired.results.get(&(event.number, at)).map(|(of, result)| {
            // If an event has several results, the first one represents it.
            let is_event = paired.covers_event(of)
                && of.results.first().is_some_and(|first| std::ptr::eq(first, *result));
            is_cut |= result.text.len().max(result.error.len()) > limit;
            let of_target = target == Some(of.number);
            // The result's own event has no view, so that its anchor must be here.
            result_view(of, result, is_event, of_target, limit)
        });
        let (brief, parts) = text_parts::argument_parts(&call.arguments, limit);
        let is_open = is_target || result.as_ref().is_some_and(|result| result.is_open);
        CallView { name: name(&call.name), brief, parts, result, is_open }
    });
    let calls: Vec<CallView> = calls.collect();
    let results = event.results.iter().enumerate();
    let results = results.filter(|(at, _)| !paired.with_calls.contains(&(event.number, *at)));
    let results = results.map(|(_, result)| result_view(event, result, false, is_target, limit));
    let (class, speaker) = speaker(event);
    Some(EventView {
        number: event.number,
        class,
        speaker,
        time: event.time.map(wording::date_time),
        mark: event.mark.map(describe_mark),
        thinking: block(&event.reasoning, limit),
        is_open: is_target,
        parts: text_parts::split_message(&event.text, limit),
        results: results.collect(),
        calls,
        spent: format_usage(event, showing.prices),
        whole: showing.full_event_link.filter(|_| is_cut).map(|alone| alone(event.number)),
    })
}

impl EventView {
    /// Returns true if this view shows the event with that number.
    fn contains_event(&self, number: u64) -> bool {
        let mut results = self.calls.iter().filter_map(|call| call.result.as_ref());
        self.number == number || results.any(|result| result.number == number)
    }
}

fn result_view(
    event: &Event<'_>,
    result: &ToolResult<'_>,
    is_event: bool,
    is_open: bool,
    limit: usize,
) -> ResultView {
    let words = result_words(result);
    let (outcome, class) = describe_outcome(result.outcome);
    ResultView {
        number: event.number,
        is_event,
        tool: name(&result.tool),
        outcome,
        class,
        exit_code: result.exit_code,
        time: event.time.map(wording::date_time),
        parts: text_parts::result_parts(&words, limit),
        is_open,
    }
}

/// Returns the output of a tool with its error.
pub(super) fn result_words<'e>(result: &ToolResult<'e>) -> Text<'e> {
    let mut words = result.text.clone();
    // Some agents state an error twice: in the output, and in a field of its own.
    if !words.contains(result.error.as_str()) {
        words.append(&result.error);
    }
    words
}

fn name(tool: &str) -> String {
    if tool.trim().is_empty() { "a tool".to_owned() } else { terminal(tool, MAX_LINE) }
}

/// Formats the usage of a model call: `120 in, 30 out, 9000 from cache tokens · opus · 0.02 USD`.
/// Returns `None` if the file does not record it.
pub fn format_usage(event: &Event<'_>, prices: &ModelPrices) -> Option<String> {
    let usage = event.usage?;
    let mut parts = vec![format!("{} in, {} out", usage.input, usage.output)];
    if usage.cached > 0 {
        parts.push(format!("{} from cache", usage.cached));
    }
    let mut words = parts.join(", ") + " tokens";
    if !event.model.is_empty() {
        words += &format!(" · {}", terminal(&event.model, MAX_LINE));
    }
    let mut spending = TokenSpending::default();
    spending.add(event);
    let cost = TokenCost::compute(
        &spending.into_model_tokens(&selftest_sessions::SessionHead::default()),
        prices,
    );
    if let Some(amount) = cost.amount {
        words += &format!(" · {}", crate::grade::spending::format_money(amount, &cost.currency));
    }
    Some(words)
}

/// Returns the CSS class and the label of the speaker.
pub(super) fn speaker(event: &Event<'_>) -> (&'static str, &'static str) {
    match (event.role, event.origin) {
        (EventRole::User, EventOrigin::Human) => ("human", "person"),
        (EventRole::User | EventRole::System, EventOrigin::Subagent) => ("harness", "to subagent"),
        (EventRole::User | EventRole::System, _) => ("harness", "program"),
        (EventRole::Assistant, EventOrigin::Subagent) => ("agent", "subagent"),
        (EventRole::Assistant, _) => ("agent", "agent"),
        (EventRole::Tool, _) => ("tool", "tool"),
    }
}

/// Returns the description of a mark.
pub(super) fn describe_mark(mark: EventMark) -> &'static str {
    match mark {
        EventMark::Interrupted => "interrupted by a person",
        EventMark::Compacted => "the context was summarised",
        EventMark::ApiError => "the model's provider failed",
        EventMark::FileEdited => "a file was changed by other hands",
        EventMark::EditUndone => "a person undid a change",
        EventMark::VerifierPassed => "a verifier found it done",
        EventMark::VerifierFailed => "a verifier found it not done",
    }
}

/// Returns the outcome of a call as text, and its CSS class.
pub(super) fn describe_outcome(outcome: ToolOutcome) -> (&'static str, &'static str) {
    match outcome {
        ToolOutcome::Ok => ("worked", "good"),
        ToolOutcome::Failed => ("failed", "poor"),
        ToolOutcome::Rejected => ("was refused", "fair"),
        ToolOutcome::Pending => ("never answered", "fair"),
        ToolOutcome::Unknown => ("answered", "none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::{SessionCollector, SessionSource, read};

    fn events(json: &str) -> Vec<Event<'static>> {
        let mut collector = SessionCollector::default();
        read(&SessionSource::bytes("demo.json", json), &mut collector).unwrap();
        collector.into_sessions().remove(0).events
    }

    const SESSION: &str = r#"[
      {"role":"user","content":"fix it"},
      {"role":"assistant","content":"I look.","tool_calls":[
        {"id":"c1","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},
        {"id":"c2","function":{"name":"bash","arguments":"{\"command\":\"cat x\"}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"a\nb"},
      {"role":"tool","tool_call_id":"c2","content":"Error: no such file"},
      {"role":"assistant","content":"There is no x."}]"#;

    #[test]
    fn a_result_stands_with_its_call_and_keeps_its_number() {
        let events = events(SESSION);
        let prices = ModelPrices::default();
        let showing = ViewOptions { prices: &prices, target: Some(3), full_event_link: None };
        let all = event_views(&events, showing);
        let [SessionItem::One(asked), SessionItem::One(agent), SessionItem::One(end)] = &all[..]
        else {
            panic!("{all:?}");
        };
        assert_eq!((asked.number, agent.number, end.number), (0, 1, 4));
        let results: Vec<_> =
            agent.calls.iter().map(|call| call.result.as_ref().unwrap()).collect();
        assert_eq!((results[0].number, results[1].number), (2, 3));
        assert!(results.iter().all(|result| result.is_event));
        // Only what holds the event that is looked for is open.
        assert_eq!((agent.calls[0].is_open, agent.calls[1].is_open), (false, true));
        // A result whose call is on another page is shown on its own.
        let rest = event_views(&events[3..], showing);
        let SessionItem::One(result) = &rest[0] else { panic!() };
        assert_eq!((result.number, result.results.len()), (3, 1));
    }

    #[test]
    fn a_page_is_bounded_and_says_where_the_whole_is() {
        let long = "word ".repeat(6000);
        let messages: Vec<String> =
            (0..200).map(|_| format!(r#"{{"role":"user","content":"{long}"}}"#)).collect();
        let events = events(&format!("[{}]", messages.join(",")));
        let prices = ModelPrices::default();
        let alone = |number: u64| format!("/alone/{number}");
        let all = event_views(
            &events,
            ViewOptions { prices: &prices, target: None, full_event_link: Some(&alone) },
        );
        let mut bytes = 0;
        for one in &all {
            let SessionItem::One(event) = one else { panic!() };
            assert_eq!(event.whole, Some(format!("/alone/{}", event.number)));
            let TextPart::Prose(words) = &event.parts[0] else { panic!() };
            bytes += words.len();
        }
        assert!(bytes <= MAX_PAGE, "{bytes}");
        let whole = event_views(
            &events[..1],
            ViewOptions { prices: &prices, target: None, full_event_link: None },
        );
        let SessionItem::One(event) = &whole[0] else { panic!() };
        assert_eq!(event.whole, None);
    }

    #[test]
    fn what_a_subagent_does_stands_together_behind_its_call() {
        let mut events = events(SESSION);
        for event in &mut events[3..] {
            event.origin = EventOrigin::Subagent;
        }
        let prices = ModelPrices::default();
        let all = event_views(
            &events[..],
            ViewOptions { prices: &prices, target: Some(4), full_event_link: None },
        );
        let SessionItem::Subagent { name, events, is_open } = all.last().unwrap() else { panic!() };
        assert_eq!((name.as_str(), events.len(), *is_open), ("bash cat x", 1, true));
    }
}
