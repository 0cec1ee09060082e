//! Renders a recorded session for people: as Markdown, as a self-contained HTML page, or as the
//! events of a page; with a summary collected from all events without keeping them.
//!
//! Session texts are untrusted. The templates escape them, so they can only appear as text. Secrets
//! must be redacted beforehand (`Session::rewrite`).

pub mod text_parts;
mod view;

use askama::Template;

use crate::grade::spending::{TokenCost, TokenSpending};
use selftest_models::prices::ModelPrices;
use selftest_sessions::{
    Event, EventOrigin, EventRole, Session, SessionCollector, SessionHead, SessionSink, ToolOutcome,
};
use selftest_text::escape::{fenced, inline, terminal};
use selftest_text::wording;
use text_parts::TextPart;

pub use view::{EventView, SessionItem, ViewOptions, event_views, format_usage, texts};

/// Maximum length in bytes of a text in a document.
const MAX_TEXT: usize = 200_000;

/// Maximum length in bytes of a line.
const MAX_LINE: usize = 400;

#[derive(Template)]
#[template(path = "session/events.html")]
struct EventsFragment<'a> {
    shown: &'a [SessionItem],
}

#[derive(Template)]
#[template(path = "session/session.html")]
struct SessionDocument<'a> {
    title: String,
    facts: &'a [SessionFact],
    events: String,
    left_out: u64,
}

/// Renders events as a fragment of a page: escaped, and with an anchor `event-N` for each.
pub fn render_events_html(shown: &[SessionItem]) -> Result<String, askama::Error> {
    EventsFragment { shown }.render()
}

/// Renders the session as an HTML page.
pub fn render_html(session: &Session, prices: &ModelPrices) -> Result<String, askama::Error> {
    let overview = SessionOverview::from_session(session);
    let shown =
        event_views(&session.events, ViewOptions { prices, target: None, full_event_link: None });
    let facts = &overview.facts(&session.head);
    let title = overview.title(&session.head);
    SessionDocument {
        title,
        facts,
        events: render_events_html(&shown)?,
        left_out: session.left_out,
    }
    .render()
}

/// Renders the session as Markdown.
pub fn render_markdown(session: &Session) -> String {
    let overview = SessionOverview::from_session(session);
    let mut text = format!("# {}\n\n", inline(&overview.title(&session.head), MAX_LINE));
    for (name, value) in overview.facts(&session.head) {
        text += &format!("- {name}: {}\n", inline(&value, MAX_LINE));
    }
    for event in &session.events {
        add_event(&mut text, event);
    }
    if session.left_out > 0 {
        text += &format!("\n{} further events are left out.\n", session.left_out);
    }
    text
}

fn add_event(text: &mut String, event: &Event<'_>) {
    *text += &format!("\n## {} {}", event.number, view::speaker(event).1);
    let time = event.time.map(wording::date_time);
    for more in time.as_deref().into_iter().chain(event.mark.map(view::describe_mark)) {
        *text += &format!(", {}", inline(more, MAX_LINE));
    }
    *text += "\n";
    if !event.reasoning.is_empty() {
        *text += &format!("\nthinks:\n\n{}\n", fenced(&event.reasoning, MAX_TEXT));
    }
    if !event.text.is_empty() {
        *text += &format!("\n{}\n", fenced(&event.text, MAX_TEXT));
    }
    for call in &event.calls {
        let arguments = fenced(&call.arguments, MAX_TEXT);
        *text += &format!("\ncalls {}:\n\n{arguments}\n", inline(&call.name, MAX_LINE));
    }
    for result in &event.results {
        let (outcome, _) = view::describe_outcome(result.outcome);
        *text += &format!("\n{} {outcome}", inline(&result.tool, MAX_LINE));
        let words = view::result_words(result);
        if words.is_empty() {
            *text += "\n";
        } else {
            *text += &format!(":\n\n{}\n", fenced(&words, MAX_TEXT));
        }
    }
}

/// Maximum length in bytes of the stored request.
const MAX_REQUEST: usize = 2000;

/// A fact about a session: name and value.
pub type SessionFact = (&'static str, String);

/// Counts over the events of a session.
#[derive(Debug, Clone, Default)]
pub struct SessionOverview {
    /// Total number of events.
    pub events: u64,
    /// Number of tool calls.
    pub calls: u64,
    /// Number of failed tool results.
    pub failed: u64,
    /// Start of the user's first request.
    pub request: String,
    /// Tokens spent by the events.
    pub spending: TokenSpending,
}

impl SessionOverview {
    /// Summarizes all events of a session.
    pub fn from_session(session: &Session) -> Self {
        let mut overview = Self::default();
        session.events.iter().for_each(|event| overview.add(event));
        overview
    }

    /// Adds an event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.calls += event.calls.len() as u64;
        let failed = event.results.iter().filter(|result| result.outcome == ToolOutcome::Failed);
        self.failed += failed.count() as u64;
        let is_asked = event.role == EventRole::User && event.origin == EventOrigin::Human;
        if self.request.is_empty() && is_asked {
            self.request = selftest_text::clip(&event.text, MAX_REQUEST);
        }
        self.spending.add(event);
    }

    /// Returns the cost of the session.
    pub fn cost(&self, head: &SessionHead, prices: &ModelPrices) -> TokenCost {
        TokenCost::compute(&self.spending.clone().into_model_tokens(head), prices)
            .with_stated(head.whole_stated_cost())
    }

    /// Returns the first request, or the ID if there is no request.
    pub fn title(&self, head: &SessionHead) -> String {
        terminal(if self.request.is_empty() { &head.id } else { &self.request }, 120)
    }

    /// Returns all known facts as text.
    pub fn facts(&self, head: &SessionHead) -> Vec<SessionFact> {
        let version = head.agent_version.as_ref().map(|version| format!(" {version}"));
        let usage = head.usage.map(|usage| {
            format!("{} in, {} out, {} from cache", usage.input, usage.output, usage.cached)
        });
        let all = [
            ("session", Some(head.id.clone())),
            ("agent", Some(format!("{}{}", head.agent, version.unwrap_or_default()))),
            ("models", Some(head.models.join(", "))),
            ("platform", head.platform.clone()),
            ("folder", head.cwd.clone()),
            ("parent", head.parent.clone()),
            ("start", head.start.map(|time| time.to_string())),
            ("end", head.end.map(|time| time.to_string())),
            ("tokens", usage),
            ("tool calls", Some(format!("{}, {} failed", self.calls, self.failed))),
            ("unread", head.unknown_blocks.describe()),
        ];
        let present =
            all.into_iter().filter_map(|(name, value)| Some((name, terminal(&value?, MAX_LINE))));
        present.filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// A sink that passes events to a collector and builds an [`SessionOverview`] of each collected session.
#[derive(Debug, Default)]
pub struct OverviewCollector {
    collector: SessionCollector,
    current: SessionOverview,
    overviews: Vec<SessionOverview>,
}

impl OverviewCollector {
    /// Wraps a collector.
    pub fn new(collector: SessionCollector) -> Self {
        Self { collector, ..Self::default() }
    }

    /// Returns the sessions with their overviews, in the order of the source.
    pub fn into_sessions(self) -> impl Iterator<Item = (Session, SessionOverview)> {
        self.collector.into_sessions().into_iter().zip(self.overviews)
    }
}

impl SessionSink for OverviewCollector {
    fn event(&mut self, event: Event<'_>) {
        self.current.add(&event);
        self.collector.event(event);
    }

    fn end(&mut self, head: SessionHead) {
        let overview = std::mem::take(&mut self.current);
        let before = self.collector.session_count();
        self.collector.end(head);
        // The collector may discard a session; its overview is discarded too.
        if self.collector.session_count() > before {
            self.overviews.push(overview);
        }
    }

    fn restart(&mut self) {
        self.current = SessionOverview::default();
        self.collector.restart();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::{SessionCollector, SessionSource, read};

    const HOSTILE: &str = r#"{"id":"demo","model":"gpt-x","messages":[
      {"role":"user","content":"<script>alert(1)</script>\u001b[31m [x](javascript:1)"},
      {"role":"assistant","content":"```\n# not a heading\n```` <img src=x onerror=y>","tool_calls":[
        {"id":"c1","function":{"name":"</summary><b>","arguments":"{\"name\":\"</pre>\"}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"Error: \u202e</details>"}]}"#;

    fn session() -> Session {
        let mut collector = SessionCollector::default();
        read(&SessionSource::bytes("demo.json", HOSTILE), &mut collector).unwrap();
        collector.into_sessions().remove(0)
    }

    #[test]
    fn hostile_words_are_words_in_a_page() {
        let page = render_html(&session(), &ModelPrices::default()).unwrap();
        insta::assert_snapshot!(page);
        for markup in ["<script", "<img", "<b>", "\u{1b}", "\u{202e}"] {
            assert!(!page.contains(markup), "{markup}");
        }
        assert_eq!(page.matches("</details>").count(), page.matches("<details").count());
    }

    #[test]
    fn hostile_words_are_words_in_markdown() {
        let text = render_markdown(&session());
        insta::assert_snapshot!(text);
        let mut markup = Vec::new();
        for event in pulldown_cmark::Parser::new(&text) {
            match event {
                pulldown_cmark::Event::Html(html) | pulldown_cmark::Event::InlineHtml(html) => {
                    markup.push(html.to_string());
                }
                pulldown_cmark::Event::Start(pulldown_cmark::Tag::Link { dest_url, .. }) => {
                    markup.push(dest_url.to_string());
                }
                _ => {}
            }
        }
        assert!(markup.is_empty(), "{markup:?}");
    }

    #[test]
    fn an_error_that_is_part_of_the_output_is_shown_once() {
        let mut session = session();
        let expected = render_markdown(&session);
        let result = &mut session.events[2].results[0];
        result.error = result.text.clone();
        assert_eq!(render_markdown(&session), expected);
    }

    #[test]
    fn a_part_is_kept_and_all_of_it_is_counted() {
        let messages: Vec<String> = (0..10)
            .map(|at| {
                format!(r#"{{"role":"{}","content":"words {at}"}}"#, ["user", "assistant"][at % 2])
            })
            .collect();
        let text = format!("[{}]", messages.join(","));
        let mut counted = OverviewCollector::new(SessionCollector::default().with_events(4..7));
        read(&SessionSource::bytes("demo.json", text), &mut counted).unwrap();
        let (session, overview) = counted.into_sessions().next().unwrap();
        let numbers: Vec<u64> = session.events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, [4, 5, 6]);
        assert_eq!((overview.events, session.left_out), (10, 0));
        assert_eq!(overview.request, "words 0");
    }
}
