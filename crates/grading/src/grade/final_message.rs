//! Text of the last model call, with the event that each part came from. One call may be recorded
//! as several messages.

use std::cell::OnceCell;

use selftest_sessions::Text;

/// A text joined from the texts of several events.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FinalMessage {
    text: String,
    /// Byte offset and event number of each part, in order.
    parts: Vec<(usize, u64)>,
}

impl FinalMessage {
    /// Creates a message from a single event.
    #[cfg(test)]
    pub(super) fn new(event: u64, text: &str) -> Self {
        let mut message = Self::default();
        message.add(event, text);
        message
    }

    /// Removes all text.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.parts.clear();
    }

    /// Appends the text of an event as a paragraph. If the text grows too long, its middle is
    /// removed.
    pub(super) fn add(&mut self, event: u64, text: &str) {
        if text.is_empty() {
            return;
        }
        let is_first = self.text.is_empty();
        if !is_first {
            self.text.push('\n');
        }
        self.parts.push((self.text.len(), event));
        self.text.push_str(text);
        if is_first {
            // Session readers already limit the text of a single event.
            return;
        }
        let bounded = Text::new(self.text.as_str());
        if bounded.cut_bytes() > 0 {
            let bounded = bounded.to_string();
            self.shift_parts(&bounded);
            self.text = bounded;
        }
    }

    /// Adjusts the offsets after the middle was removed. Parts behind the cut move forward with
    /// their text; of the parts within the cut, only the last remains.
    fn shift_parts(&mut self, bounded: &str) {
        let same = self.text.bytes().zip(bounded.bytes()).take_while(|(old, new)| old == new);
        let (cut_at, shorter) = (same.count(), self.text.len().saturating_sub(bounded.len()));
        for (start, _) in self.parts.iter_mut().filter(|(start, _)| *start > cut_at) {
            *start = start.saturating_sub(shorter).max(cut_at);
        }
        // Of parts with the same start, only the last is kept.
        self.parts.reverse();
        self.parts.dedup_by_key(|(start, _)| *start);
        self.parts.reverse();
    }

    /// Returns the text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the event that contains the byte at this offset, or `None` if the text is empty.
    pub(super) fn event_at(&self, byte: usize) -> Option<u64> {
        let (_, event) = self.parts.iter().rev().find(|(start, _)| *start <= byte)?;
        Some(*event)
    }
}

/// The message as it may be displayed. It is redacted lazily and only once.
pub(super) struct RedactedMessage<'a> {
    message: &'a FinalMessage,
    redact: &'a dyn Fn(&str) -> String,
    text: OnceCell<String>,
}

impl<'a> RedactedMessage<'a> {
    pub(super) fn new(message: &'a FinalMessage, redact: &'a dyn Fn(&str) -> String) -> Self {
        Self { message, redact, text: OnceCell::new() }
    }

    pub(super) fn text(&self) -> &str {
        self.text.get_or_init(|| (self.redact)(self.message.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_knows_its_event() {
        let mut message = FinalMessage::default();
        assert_eq!(message.event_at(0), None);
        for (event, text) in [(3, "Looking at it."), (4, ""), (5, "All done.")] {
            message.add(event, text);
        }
        assert_eq!(message.text(), "Looking at it.\nAll done.");
        let at = |word| message.event_at(message.text().find(word).unwrap());
        assert_eq!(
            (at("Looking"), at("it."), at("All"), at("done")),
            (Some(3), Some(3), Some(5), Some(5))
        );
        assert_eq!(message.event_at(usize::MAX), Some(5));
    }

    #[test]
    fn a_cut_moves_the_events_with_their_words() {
        let mut message = FinalMessage::default();
        for event in 0..100 {
            message.add(event, &format!("word{event:02} {}", "é".repeat(500)));
        }
        assert!(message.text().len() < 40_000 && message.parts.len() < 50, "{message:?}");
        for (event, word) in [(0, "word00"), (5, "word05"), (95, "word95"), (99, "word99")] {
            assert_eq!(message.event_at(message.text().find(word).unwrap()), Some(event));
        }
    }
}
