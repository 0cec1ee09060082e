//! A recorded session as a document for people: Markdown, or one HTML page that loads nothing.
//! Pure. The texts are foreign and can be nothing but text: the templates escape them. Secrets must
//! be taken out before (`Session::rewrite`).

use askama::Template;
use selftest_sessions::{Event, Mark, Origin, Outcome, Role, Session, Text};
use selftest_text::escape::{block, fenced, inline, terminal};

/// Bytes of a text in a document.
const TEXT: usize = 200_000;

/// Bytes of a line.
const LINE: usize = 400;

/// Lines of an output beyond which it is folded.
const FOLDED: usize = 12;

/// A fact about a session: what it is, and its value.
type Fact = (&'static str, String);

/// An event as it is shown.
struct View {
    number: u64,
    class: &'static str,
    speaker: &'static str,
    time: Option<String>,
    mark: Option<&'static str>,
    thinking: String,
    text: String,
    calls: Vec<(String, String)>,
    results: Vec<Answer>,
}

/// The result of a tool as it is shown.
struct Answer {
    tool: String,
    outcome: &'static str,
    is_failure: bool,
    words: String,
    is_long: bool,
}

#[derive(Template)]
#[template(path = "session/session.html")]
struct Page<'a> {
    title: String,
    facts: &'a [Fact],
    events: &'a [View],
    left_out: u64,
}

/// The session as a page.
pub fn html(session: &Session) -> Result<String, askama::Error> {
    let events: Vec<View> = session.events.iter().map(View::of).collect();
    let (title, left_out) = (title(session), session.left_out);
    Page { title, facts: &facts(session), events: &events, left_out }.render()
}

/// The session as Markdown.
pub fn markdown(session: &Session) -> String {
    let mut text = format!("# {}\n\n", inline(&title(session), LINE));
    for (name, value) in facts(session) {
        text += &format!("- {name}: {}\n", inline(&value, LINE));
    }
    for view in session.events.iter().map(View::of) {
        text += &format!("\n## {} {}", view.number, view.speaker);
        for more in view.time.iter().map(String::as_str).chain(view.mark) {
            text += &format!(", {}", inline(more, LINE));
        }
        text += "\n";
        if !view.thinking.is_empty() {
            text += &format!("\nthinks:\n\n{}\n", fenced(&view.thinking, TEXT));
        }
        if !view.text.is_empty() {
            text += &format!("\n{}\n", fenced(&view.text, TEXT));
        }
        for (name, arguments) in &view.calls {
            text += &format!("\ncalls {}:\n\n{}\n", inline(name, LINE), fenced(arguments, TEXT));
        }
        for answer in &view.results {
            text += &format!("\n{} {}", inline(&answer.tool, LINE), answer.outcome);
            text += &match answer.words.as_str() {
                "" => "\n".to_owned(),
                words => format!(":\n\n{}\n", fenced(words, TEXT)),
            };
        }
    }
    if session.left_out > 0 {
        text += &format!("\n{} further events are left out.\n", session.left_out);
    }
    text
}

/// What was asked first, else the id.
fn title(session: &Session) -> String {
    let is_asked = |event: &&Event<'_>| {
        event.role == Role::User && event.origin == Origin::Human && !event.text.is_empty()
    };
    let asked = session.events.iter().find(is_asked).map(|event| event.text.as_str());
    terminal(asked.unwrap_or(&session.head.id), 120)
}

fn facts(session: &Session) -> Vec<Fact> {
    let head = &session.head;
    let version = head.agent_version.as_ref().map(|version| format!(" {version}"));
    let usage = head.usage.map(|usage| {
        format!("{} in, {} out, {} from cache", usage.input, usage.output, usage.cached)
    });
    let events = |count: fn(&Event<'_>) -> usize| session.events.iter().map(count).sum::<usize>();
    let failed = events(|event| {
        event.results.iter().filter(|result| result.outcome == Outcome::Failed).count()
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
        ("tool calls", Some(format!("{}, {failed} failed", events(|event| event.calls.len())))),
        ("unread", head.unknown_blocks.words()),
    ];
    let present = all.into_iter().filter_map(|(name, value)| Some((name, terminal(&value?, LINE))));
    present.filter(|(_, value)| !value.is_empty()).collect()
}

impl View {
    fn of(event: &Event<'_>) -> Self {
        let (class, speaker) = speaker(event);
        let clean = |text: &Text<'_>| block(text, TEXT);
        Self {
            number: event.number,
            class,
            speaker,
            time: event.time.map(|time| time.to_string()),
            mark: event.mark.map(|mark| match mark {
                Mark::Interrupted => "interrupted by a person",
                Mark::Compacted => "the context was summarised",
                Mark::ApiError => "the model's provider failed",
            }),
            thinking: clean(&event.reasoning),
            text: clean(&event.text),
            calls: event
                .calls
                .iter()
                .map(|call| (terminal(&call.name, LINE), clean(&call.arguments)))
                .collect(),
            results: event
                .results
                .iter()
                .map(|result| {
                    let mut words = result.text.clone();
                    words.join(&result.error);
                    let words = clean(&words);
                    Answer {
                        tool: terminal(&result.tool, LINE),
                        outcome: outcome(result.outcome),
                        is_failure: result.outcome == Outcome::Failed,
                        is_long: words.lines().count() > FOLDED,
                        words,
                    }
                })
                .collect(),
        }
    }
}

fn speaker(event: &Event<'_>) -> (&'static str, &'static str) {
    match (event.role, event.origin) {
        (Role::User, Origin::Human) => ("human", "person"),
        (Role::User | Role::System, Origin::Subagent) => ("harness", "to subagent"),
        (Role::User | Role::System, _) => ("harness", "program"),
        (Role::Assistant, Origin::Subagent) => ("agent", "subagent"),
        (Role::Assistant, _) => ("agent", "agent"),
        (Role::Tool, _) => ("tool", "tool"),
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "worked",
        Outcome::Failed => "failed",
        Outcome::Rejected => "was refused",
        Outcome::Pending => "never answered",
        Outcome::Unknown => "answered",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::{Collector, Source, read};

    const HOSTILE: &str = r#"{"id":"demo","model":"gpt-x","messages":[
      {"role":"user","content":"<script>alert(1)</script>\u001b[31m [x](javascript:1)"},
      {"role":"assistant","content":"```\n# not a heading\n```` <img src=x onerror=y>","tool_calls":[
        {"id":"c1","function":{"name":"</summary><b>","arguments":"{\"name\":\"</pre>\"}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"Error: \u202e</details>"}]}"#;

    fn session() -> Session {
        let mut collector = Collector::default();
        read(&Source::bytes("demo.json", HOSTILE), &mut collector).unwrap();
        collector.into_sessions().remove(0)
    }

    #[test]
    fn hostile_words_are_words_in_a_page() {
        let page = html(&session()).unwrap();
        insta::assert_snapshot!(page);
        for markup in ["<script", "<img", "<b>", "\u{1b}", "\u{202e}"] {
            assert!(!page.contains(markup), "{markup}");
        }
        assert_eq!(page.matches("</details>").count(), page.matches("<details").count());
    }

    #[test]
    fn hostile_words_are_words_in_markdown() {
        let text = markdown(&session());
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
