//! URLs of pages. Untrusted parts are percent-encoded so that each stays a single path segment or
//! query value.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything except the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Encodes a name as a path segment or query value.
pub(super) fn encode(part: &str) -> String {
    utf8_percent_encode(part, ENCODED).to_string()
}

pub(super) fn session(session_id: &str) -> String {
    format!("/sessions/{}", encode(session_id))
}

/// Returns the link to an event of a session, or to the session itself without one.
pub(super) fn moment(session_id: &str, event: Option<u64>) -> String {
    let session = session(session_id);
    event.map_or(session.clone(), |event| format!("{session}#event-{event}"))
}

/// Returns the link to the recorded session, starting at an event.
pub(super) fn transcript(session_id: &str, from: u64) -> String {
    let path = format!("{}/transcript", session(session_id));
    if from == 0 { path } else { format!("{path}?from={from}") }
}

/// Returns the link to the page that contains an event.
pub(super) fn transcript_event(session_id: &str, event: u64) -> String {
    format!("{}/transcript?event={event}", session(session_id))
}

/// Like [`transcript_event`], with the event's anchor.
pub(super) fn shown_event(session_id: &str, event: u64) -> String {
    format!("{}#event-{event}", transcript_event(session_id, event))
}

/// Returns the link to a recorded event.
pub(super) fn event(session_id: &str, event: u64) -> String {
    format!("{}/events/{event}", session(session_id))
}

/// Returns the link to the event that contains a quote.
pub(super) fn quote(session_id: &str, quote: &str) -> String {
    query(&format!("{}/events", session(session_id)), &[("quote", quote)])
}

pub(super) fn skill(id: &str) -> String {
    format!("/skills/{}", encode(id))
}

pub(super) fn proposal(id: &str) -> String {
    format!("/proposals/{}", encode(id))
}

pub(super) fn case(run_id: &str, name: &str) -> String {
    format!("/selftests/{}/{}", encode(run_id), encode(name))
}

pub(super) fn run(run_id: &str) -> String {
    format!("/selftests/{}", encode(run_id))
}

pub(super) fn label(run_id: &str) -> String {
    format!("/label/{}", encode(run_id))
}

/// Builds a path with a query, without empty values.
pub(super) fn query(path: &str, pairs: &[(&str, &str)]) -> String {
    let given = pairs.iter().filter(|(_, value)| !value.is_empty());
    let parts: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    if parts.is_empty() { path.to_owned() } else { format!("{path}?{}", parts.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_parts_stay_parts() {
        assert_eq!(session("a/b c?d#é"), "/sessions/a%2Fb%20c%3Fd%23%C3%A9");
        assert_eq!(moment("a b", Some(7)), "/sessions/a%20b#event-7");
        assert_eq!(moment("a", None), "/sessions/a");
        assert_eq!(transcript("a b", 0), "/sessions/a%20b/transcript");
        assert_eq!(transcript("a", 200), "/sessions/a/transcript?from=200");
        assert_eq!(event("a/b", 7), "/sessions/a%2Fb/events/7");
        assert_eq!(shown_event("a", 7), "/sessions/a/transcript?event=7#event-7");
        assert_eq!(quote("a", "x&y"), "/sessions/a/events?quote=x%26y");
        assert_eq!(encode("a-1/../é?"), "a-1%2F..%2F%C3%A9%3F");
        assert_eq!(query("/", &[("q", "a&b=c"), ("agent", "")]), "/?q=a%26b%3Dc");
        assert_eq!(query("/", &[("q", "")]), "/");
    }
}
