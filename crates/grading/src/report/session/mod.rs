//! Renders a recorded session for people: as Markdown, as a self-contained HTML page, or as the
//! events of a page.
//!
//! Session texts are untrusted. The templates escape them, so they can only appear as text. Secrets
//! must be redacted beforehand (`Session::rewrite`).

pub mod diff;
mod overview;
mod overview_collector;
pub mod text_parts;
mod view;

use askama::Template;
pub use overview::{SessionFact, SessionOverview};
pub use overview_collector::OverviewCollector;
use selftest_models::prices::ModelPrices;
use selftest_sessions::{Event, Session};
use selftest_text::escape::{fenced, inline};
use selftest_text::wording;
pub use view::{EventView, SessionItem, ViewOptions, event_views, format_usage, texts};

use text_parts::TextPart;

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
        let mut words = result.text.clone();
        words.append(&result.error);
        if words.is_empty() {
            *text += "\n";
        } else {
            *text += &format!(":\n\n{}\n", fenced(&words, MAX_TEXT));
        }
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
}
