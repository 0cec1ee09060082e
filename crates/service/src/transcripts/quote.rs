//! Matches a quote against the events of a session.

use selftest_grading::report::session::texts;
use selftest_sessions::Event;
use selftest_text::redact::REDACTED;

/// A shorter quote occurs in too many events to identify one.
const MIN_CHARS: usize = 4;

/// The normalized text of a quote.
#[derive(Debug)]
pub struct NormalizedQuote(String);

impl NormalizedQuote {
    /// Normalizes a quote; returns `None` if it is too short. Transcript labels that models see,
    /// such as `[13 call bash]`, are removed because they are not part of the session.
    pub fn new(quote: &str) -> Option<Self> {
        let mut words = quote.trim();
        while let Some((label, rest)) =
            words.strip_prefix('[').and_then(|rest| rest.split_once(']'))
            && label.split(' ').next().is_some_and(|number| number.parse::<u64>().is_ok())
        {
            words = rest.trim_start();
        }
        let folded = fold_whitespace(words.trim_end_matches('…'));
        (folded.chars().count() >= MIN_CHARS).then_some(Self(folded))
    }

    /// Returns true if a secret was redacted in it.
    pub(super) fn has_redaction(&self) -> bool {
        self.0.contains(REDACTED)
    }

    /// Returns true if a text or the call arguments of an event contain the quote.
    pub(super) fn occurs_in(&self, event: &Event<'_>) -> bool {
        texts(event).any(|text| {
            // Most texts are too short to match, and folding is expensive.
            text.len() >= self.0.len() / 2 && self.occurs_in_text(text)
        })
    }

    fn occurs_in_text(&self, text: &str) -> bool {
        let said = fold_whitespace(text);
        // JSON escapes quotes and line breaks.
        said.contains(&self.0)
            || text.contains('\\')
                && fold_whitespace(&text.replace("\\n", " ").replace("\\\"", "\""))
                    .contains(&self.0)
    }
}

/// Collapses white space to single spaces and removes control characters.
fn fold_whitespace(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if !word.is_empty() {
            if !folded.is_empty() {
                folded.push(' ');
            }
            folded.push_str(word);
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::ToolCall;

    #[test]
    fn a_quote_is_found_whatever_its_white_space_and_label() {
        let event = Event { text: "All tests\n  pass now.".into(), ..Event::default() };
        for quote in ["All tests pass", "[13 assistant] All tests\tpass now.", "tests pass now…"]
        {
            assert!(NormalizedQuote::new(quote).unwrap().occurs_in(&event), "{quote}");
        }
        assert!(!NormalizedQuote::new("All tests fail").unwrap().occurs_in(&event));
        assert!(NormalizedQuote::new(" [3 user] ok").is_none());
        let arguments = r#"{"command":"echo \"a\"\nls -l"}"#.into();
        let calls = vec![ToolCall { arguments, ..ToolCall::default() }];
        let event = Event { calls, ..Event::default() };
        assert!(NormalizedQuote::new("echo \"a\" ls -l").unwrap().occurs_in(&event));
    }
}
