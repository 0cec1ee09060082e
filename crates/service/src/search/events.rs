//! Converts session events to bounded, redacted texts and index words.

use std::collections::HashMap;

use jiff::Timestamp;

use selftest_sessions::{Event, SessionHead, SessionSink, ToolOutcome};
use selftest_store::{Facet, IndexedEvent, IndexedSession};
use selftest_text::redact::Redactor;
use selftest_text::search::index_text;
use selftest_text::{clip, one_line};

/// Maximum bytes of a message text.
const MAX_MESSAGE: usize = 2000;

/// Maximum bytes of reasoning, of the arguments of a call and of a tool output.
const MAX_DETAIL: usize = 600;

/// Maximum bytes of all texts of an event.
const MAX_EVENT: usize = 3000;

/// Maximum bytes of all texts of a session; further events are not indexed.
const MAX_SESSION: usize = 8 * 1024 * 1024;

/// Bytes read beyond a limit to recognize a secret that starts before it.
const MARGIN: usize = 1000;

/// Facts about a session from the store.
#[derive(Debug, Clone)]
pub(super) struct IndexFacts {
    pub(super) agent: String,
    pub(super) project: Option<String>,
}

/// Builds index entries for the requested sessions.
pub(super) struct SessionIndexer<'w> {
    wanted: &'w HashMap<String, (Option<Timestamp>, IndexFacts)>,
    redactor: &'w Redactor,
    events: Vec<IndexedEvent>,
    bytes: usize,
    sessions: Vec<IndexedSession>,
}

impl<'w> SessionIndexer<'w> {
    /// Creates an indexer for the sessions with these ids.
    pub(super) fn new(
        wanted: &'w HashMap<String, (Option<Timestamp>, IndexFacts)>,
        redactor: &'w Redactor,
    ) -> Self {
        Self { wanted, redactor, events: Vec::new(), bytes: 0, sessions: Vec::new() }
    }

    pub(super) fn into_sessions(self) -> Vec<IndexedSession> {
        self.sessions
    }

    /// Truncates a text and redacts its secrets.
    fn bounded(&self, text: &str, limit: usize) -> String {
        // Redact before cutting, so that a secret across the limit is still recognized.
        let margin = &text[..text.floor_char_boundary(limit + MARGIN)];
        let redacted = self.redactor.apply(margin);
        redacted[..redacted.floor_char_boundary(limit)].to_owned()
    }

    fn text(&self, event: &Event<'_>) -> String {
        let mut parts = vec![
            self.bounded(&event.text, MAX_MESSAGE),
            self.bounded(&event.reasoning, MAX_DETAIL),
        ];
        for call in &event.calls {
            let arguments = self.bounded(&call.arguments, MAX_DETAIL);
            parts.push(format!("{} {arguments}", one_line(&call.name, 80)));
        }
        for result in &event.results {
            parts.push(self.bounded(&result.text, MAX_DETAIL));
            if !result.text.contains(result.error.as_str()) {
                parts.push(self.bounded(&result.error, MAX_DETAIL));
            }
        }
        parts.retain(|part| !part.trim().is_empty());
        clip(&parts.join("\n"), MAX_EVENT)
    }
}

/// Returns the facet words of an event: its tools, and if one of them failed.
fn facets(event: &Event<'_>) -> Vec<String> {
    let calls = event.calls.iter().map(|call| &call.name);
    let results = event.results.iter().map(|result| &result.tool);
    let tools = calls.chain(results).filter(|name| !name.is_empty());
    let mut words: Vec<String> = tools.map(|name| Facet::Tool.word(name)).collect();
    let has_failed = event.results.iter().any(|result| result.outcome == ToolOutcome::Failed);
    words.extend(has_failed.then(|| Facet::Error.word("")));
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns the facet words that all events of a session share.
fn facets_of_session(head: &SessionHead, details: &IndexFacts) -> String {
    let mut words = vec![Facet::Agent.word(&details.agent)];
    words.extend(head.models.iter().map(|model| Facet::Model.word(model)));
    if let Some(project) = &details.project {
        words.push(Facet::Project.word(project));
        // The last component of the path can be searched too.
        let name = project.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
        words.extend(name.map(|name| Facet::Project.word(name)));
    }
    words.sort_unstable();
    words.dedup();
    words.join(" ")
}

impl SessionSink for SessionIndexer<'_> {
    fn event(&mut self, event: Event<'_>) {
        if self.bytes > MAX_SESSION {
            return;
        }
        let text = self.text(&event);
        if text.is_empty() {
            return;
        }
        self.bytes += text.len();
        let words = format!("{} {}", index_text(&text), facets(&event).join(" "));
        self.events.push(IndexedEvent { number: event.number, text, words });
    }

    fn end(&mut self, head: SessionHead) {
        self.bytes = 0;
        let mut events = std::mem::take(&mut self.events);
        // If several runs have the same id, each has its own name.
        let name = head.lineage.run_name(&head.id);
        let known =
            self.wanted.get_key_value(&name).or_else(|| self.wanted.get_key_value(&head.id));
        let Some((session_id, (counts_at, details))) = known else { return };
        let session_id = session_id.clone();
        let facets = facets_of_session(&head, details);
        for event in &mut events {
            event.words = format!("{} {facets}", event.words);
        }
        // If a file contains a session twice, the reader shows the first one.
        if !self.sessions.iter().any(|session| session.session_id == session_id) {
            self.sessions.push(IndexedSession { session_id, counts_at: *counts_at, events });
        }
    }

    fn restart(&mut self) {
        self.events.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::{SessionSource, read};

    /// Gives every session the id that is wanted.
    struct Renamed<'i, 'w>(&'i mut SessionIndexer<'w>);
    impl SessionSink for Renamed<'_, '_> {
        fn event(&mut self, event: Event<'_>) {
            self.0.event(event);
        }
        fn end(&mut self, head: SessionHead) {
            self.0.end(SessionHead { id: "demo".to_owned(), ..head });
        }
        fn restart(&mut self) {
            self.0.restart();
        }
    }

    #[test]
    fn events_are_bounded_texts_without_secrets() {
        let secret = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
        // The secret lies across the limit.
        let long = format!("{} {secret} tail", "x ".repeat(MAX_MESSAGE / 2 - 10));
        let session = format!(
            r#"[{{"role":"user","content":"{long}"}},
            {{"role":"assistant","tool_calls":[{{"id":"c","function":{{"name":"bash",
              "arguments":"{{\"command\":\"cargo test\"}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c","content":"Error: no such command"}}]"#
        );
        let details =
            IndexFacts { agent: "chat".to_owned(), project: Some("/work/shop".to_owned()) };
        let wanted = HashMap::from([("demo".to_owned(), (Some(Timestamp::UNIX_EPOCH), details))]);
        let redactor = Redactor::default();
        let mut indexer = SessionIndexer::new(&wanted, &redactor);
        read(&SessionSource::bytes("demo.json", session), &mut Renamed(&mut indexer)).unwrap();
        let sessions = indexer.into_sessions();
        let events = &sessions[0].events;
        assert_eq!(events.len(), 3);
        assert!(!events[0].text.contains("sk-proj"), "{}", events[0].text);
        assert!(events[0].text.len() <= MAX_MESSAGE);
        assert_eq!(events[1].text, r#"bash {"command":"cargo test"}"#);
        assert!(events[1].words.starts_with("bash command cargo test "), "{}", events[1].words);
        for (event, facet, value, has) in [
            (1, Facet::Tool, "bash", true),
            (2, Facet::Tool, "bash", true),
            (2, Facet::Error, "", true),
            (1, Facet::Error, "", false),
            (0, Facet::Project, "shop", true),
            (0, Facet::Project, "/work/shop", true),
            (0, Facet::Agent, "chat", true),
        ] {
            let has_it = events[event].words.contains(&facet.word(value));
            assert_eq!(has_it, has, "{event} {facet:?} {}", events[event].words);
        }
    }
}
