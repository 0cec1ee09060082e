//! View models for the events of a session: messages in parts, calls with their results, and
//! subagents grouped together. Produces plain text, which the templates escape.

use std::collections::{HashMap, HashSet};

use super::parts::{self, Part};
use crate::grade::spending::{Cost, Spending};
use selftest_models::prices::Prices;
use selftest_sessions::{Event, Mark, Origin, Outcome, Role, Text, ToolResult};
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
pub struct Showing<'a> {
    /// Prices of tokens.
    pub prices: &'a Prices,
    /// Number of the requested event. Elements that contain it are unfolded.
    pub target: Option<u64>,
    /// Returns the link to the full view of an event. `None` if all texts are shown in full here.
    pub alone: Option<&'a dyn Fn(u64) -> String>,
}

/// A top-level event, or a group of events from a subagent.
#[derive(Debug)]
pub enum Shown {
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
    pub parts: Vec<Part>,
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
    pub parts: Vec<Part>,
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
    pub parts: Vec<Part>,
    /// True if the result is unfolded.
    pub is_open: bool,
}

/// Converts events to views, in order.
pub fn shown(events: &[Event<'_>], showing: Showing<'_>) -> Vec<Shown> {
    // Without a link to the full event, texts must not be cut.
    let limit = showing.alone.map_or(usize::MAX, |_| limit(events));
    let mut paired = Paired::of(events);
    let mut all: Vec<Shown> = Vec::new();
    for event in events {
        let Some(view) = view(event, &mut paired, showing, limit) else { continue };
        let is_subagent = event.origin == Origin::Subagent;
        let is_target = showing.target.is_some_and(|target| view.holds(target));
        match all.last_mut() {
            Some(Shown::Subagent { events, is_open, .. }) if is_subagent => {
                events.push(view);
                *is_open |= is_target;
            }
            last if is_subagent => {
                // The call right before a subagent's events is taken as the one that started it.
                let starter = last.and_then(|last| match last {
                    Shown::One(before) => before.calls.last(),
                    Shown::Subagent { .. } => None,
                });
                let name = starter.map(|call| format!("{} {}", call.name, call.brief));
                let name = name.unwrap_or_default();
                all.push(Shown::Subagent { name, events: vec![view], is_open: is_target });
            }
            _ => all.push(Shown::One(view)),
        }
    }
    all
}

/// Returns the largest text limit at which the page stays below its maximum size.
fn limit(events: &[Event<'_>]) -> usize {
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
struct Paired<'e> {
    /// Results by the position of their call.
    results: HashMap<CallPlace, (&'e Event<'e>, &'e ToolResult<'e>)>,
    /// Positions of results that are shown with their calls.
    with_calls: HashSet<CallPlace>,
}

impl<'e> Paired<'e> {
    fn of(events: &'e [Event<'e>]) -> Self {
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
    fn has_all_of(&self, event: &Event<'_>) -> bool {
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
fn view(
    event: &Event<'_>,
    paired: &mut Paired<'_>,
    showing: Showing<'_>,
    limit: usize,
) -> Option<EventView> {
    if paired.has_all_of(event) {
        return None;
    }
    let target = showing.target;
    let is_target = target == Some(event.number);
    let mut is_cut = texts(event).any(|text| text.len() > limit);
    let calls = event.calls.iter().enumerate().map(|(at, call)| {
        let result = paired.results.get(&(event.number, at)).map(|(of, result)| {
            // If an event has several results, the first one represents it.
            let is_event = paired.has_all_of(of)
                && of.results.first().is_some_and(|first| std::ptr::eq(first, *result));
            is_cut |= result.text.len().max(result.error.len()) > limit;
            let of_target = target == Some(of.number);
            result_view(of, result, is_event, of_target, limit)
        });
        let (brief, parts) = parts::of_arguments(&call.arguments, limit);
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
        mark: event.mark.map(mark),
        thinking: block(&event.reasoning, limit),
        is_open: is_target,
        parts: parts::of_words(&event.text, limit),
        results: results.collect(),
        calls,
        spent: spent(event, showing.prices),
        whole: showing.alone.filter(|_| is_cut).map(|alone| alone(event.number)),
    })
}

impl EventView {
    /// Returns true if this view shows the event with that number.
    fn holds(&self, number: u64) -> bool {
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
    let mut words = result.text.clone();
    // Do not repeat an error that is part of the output.
    if !words.contains(result.error.as_str()) {
        words.join(&result.error);
    }
    let (outcome, class) = outcome(result.outcome);
    ResultView {
        number: event.number,
        is_event,
        tool: name(&result.tool),
        outcome,
        class,
        exit_code: result.exit_code,
        time: event.time.map(wording::date_time),
        parts: parts::of_result(&words, limit),
        is_open,
    }
}

fn name(tool: &str) -> String {
    if tool.trim().is_empty() { "a tool".to_owned() } else { terminal(tool, MAX_LINE) }
}

/// Formats the usage of a model call: `120 in, 30 out, 9000 from cache tokens · opus · 0.02 USD`.
/// Returns `None` if the file does not record it.
pub fn spent(event: &Event<'_>, prices: &Prices) -> Option<String> {
    let usage = event.usage?;
    let mut parts = vec![format!("{} in, {} out", usage.input, usage.output)];
    if usage.cached > 0 {
        parts.push(format!("{} from cache", usage.cached));
    }
    let mut words = parts.join(", ") + " tokens";
    if !event.model.is_empty() {
        words += &format!(" · {}", terminal(&event.model, MAX_LINE));
    }
    let mut spending = Spending::default();
    spending.add(event);
    let cost = Cost::of(&spending.end(&selftest_sessions::Head::default()), prices);
    if let Some(amount) = cost.amount {
        words += &format!(" · {}", crate::grade::spending::money(amount, &cost.currency));
    }
    Some(words)
}

/// Returns the CSS class and the label of the speaker.
pub(super) fn speaker(event: &Event<'_>) -> (&'static str, &'static str) {
    match (event.role, event.origin) {
        (Role::User, Origin::Human) => ("human", "person"),
        (Role::User | Role::System, Origin::Subagent) => ("harness", "to subagent"),
        (Role::User | Role::System, _) => ("harness", "program"),
        (Role::Assistant, Origin::Subagent) => ("agent", "subagent"),
        (Role::Assistant, _) => ("agent", "agent"),
        (Role::Tool, _) => ("tool", "tool"),
    }
}

/// Returns the description of a mark.
pub(super) fn mark(mark: Mark) -> &'static str {
    match mark {
        Mark::Interrupted => "interrupted by a person",
        Mark::Compacted => "the context was summarised",
        Mark::ApiError => "the model's provider failed",
        Mark::VerifierPassed => "a verifier found it done",
        Mark::VerifierFailed => "a verifier found it not done",
    }
}

/// Returns the outcome of a call as text, and its CSS class.
pub(super) fn outcome(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Ok => ("worked", "good"),
        Outcome::Failed => ("failed", "poor"),
        Outcome::Rejected => ("was refused", "fair"),
        Outcome::Pending => ("never answered", "fair"),
        Outcome::Unknown => ("answered", "none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::{Collector, Source, read};

    fn events(json: &str) -> Vec<Event<'static>> {
        let mut collector = Collector::default();
        read(&Source::bytes("demo.json", json), &mut collector).unwrap();
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
        let prices = Prices::default();
        let showing = Showing { prices: &prices, target: Some(3), alone: None };
        let all = shown(&events, showing);
        let [Shown::One(asked), Shown::One(agent), Shown::One(end)] = &all[..] else {
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
        let rest = shown(&events[3..], showing);
        let Shown::One(result) = &rest[0] else { panic!() };
        assert_eq!((result.number, result.results.len()), (3, 1));
    }

    #[test]
    fn a_page_is_bounded_and_says_where_the_whole_is() {
        let long = "word ".repeat(6000);
        let messages: Vec<String> =
            (0..200).map(|_| format!(r#"{{"role":"user","content":"{long}"}}"#)).collect();
        let events = events(&format!("[{}]", messages.join(",")));
        let prices = Prices::default();
        let alone = |number: u64| format!("/alone/{number}");
        let all = shown(&events, Showing { prices: &prices, target: None, alone: Some(&alone) });
        let mut bytes = 0;
        for one in &all {
            let Shown::One(event) = one else { panic!() };
            assert_eq!(event.whole, Some(format!("/alone/{}", event.number)));
            let Part::Prose(words) = &event.parts[0] else { panic!() };
            bytes += words.len();
        }
        assert!(bytes <= MAX_PAGE, "{bytes}");
        let whole = shown(&events[..1], Showing { prices: &prices, target: None, alone: None });
        let Shown::One(event) = &whole[0] else { panic!() };
        assert_eq!(event.whole, None);
    }

    #[test]
    fn what_a_subagent_does_stands_together_behind_its_call() {
        let mut events = events(SESSION);
        for event in &mut events[3..] {
            event.origin = Origin::Subagent;
        }
        let prices = Prices::default();
        let all = shown(&events[..], Showing { prices: &prices, target: Some(4), alone: None });
        let Shown::Subagent { name, events, is_open } = all.last().unwrap() else { panic!() };
        assert_eq!((name.as_str(), events.len(), *is_open), ("bash cat x", 1, true));
    }
}
