//! Counts and describes what a condensed transcript leaves out.

use std::fmt;

use serde::Serialize;

use super::items::{ItemKind, TranscriptItem};
use crate::Session;

/// Counts of what was left out or shortened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OmissionCounts {
    /// Events that are not shown at all, including those without text.
    pub events: u64,
    /// User texts.
    pub user_prompts: u64,
    /// Agent texts.
    pub answers: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tool results.
    pub results: u64,
    /// Texts that are shown, but shortened.
    pub shortened: u64,
}

impl OmissionCounts {
    /// Counts everything as left out.
    pub(super) fn all(session: &Session, items: &[TranscriptItem]) -> Self {
        // Events that the collector dropped are missing as well.
        let events = session.events.len() as u64 + session.left_out;
        let mut all = Self { events, ..Self::default() };
        for item in items {
            if let Some(count) = all.count(item.kind) {
                *count += 1;
            }
        }
        all
    }

    /// Removes one item from the counts.
    pub(super) fn count_shown(&mut self, kind: ItemKind, shortened: bool) {
        if let Some(count) = self.count(kind) {
            *count -= 1;
        }
        self.shortened += u64::from(shortened);
    }

    fn count(&mut self, kind: ItemKind) -> Option<&mut u64> {
        match kind {
            ItemKind::Prompt => Some(&mut self.user_prompts),
            ItemKind::Answer => Some(&mut self.answers),
            ItemKind::Call => Some(&mut self.tool_calls),
            ItemKind::Result => Some(&mut self.results),
            ItemKind::Notice => None,
        }
    }
}

impl fmt::Display for OmissionCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (count, what) in [
            (self.events, "events"),
            (self.user_prompts, "user prompts"),
            (self.answers, "answers"),
            (self.tool_calls, "tool calls"),
            (self.results, "results"),
        ] {
            if count > 0 {
                write!(formatter, "{separator}{count} {what}")?;
                separator = ", ";
            }
        }
        if separator.is_empty() {
            formatter.write_str("nothing")?;
        }
        if self.shortened > 0 {
            write!(formatter, "; {} texts are shortened", self.shortened)?;
        }
        Ok(())
    }
}
