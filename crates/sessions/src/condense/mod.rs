//! Condenses a session to a short transcript for a language model
//! (docs/spec/session-quality.md#transcript). It contains the first and last prompts, a sample of
//! the middle, key tool calls, errors, reverts, thanks, the outcome, and counts of what was left
//! out. The result is deterministic and contains no grades.

mod arguments;
mod calibration;
mod choose;
mod items;
mod left_out;
mod line;
mod signals;

#[cfg(test)]
mod tests;

pub use calibration::TokenCalibration;
pub use left_out::OmissionCounts;

use std::fmt::Write as _;

use super::{Session, ToolOutcome};
use items::{ItemKind, TranscriptItem};
use selftest_text::one_line;

/// Maximum length of a transcript.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TranscriptBudget {
    /// Length in tokens.
    pub tokens: u32,
    /// Assumed bytes per token; see [`TokenCalibration`].
    pub bytes_per_token: f64,
}

impl TranscriptBudget {
    /// Returns the length in bytes; 0 if `bytes_per_token` is not a positive number.
    pub fn bytes(self) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "casts of floats saturate, NaN is 0"
        )]
        let bytes = (f64::from(self.tokens) * self.bytes_per_token) as usize;
        bytes
    }
}

/// A transcript within its budget.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionTranscript {
    /// Text of at most [`TranscriptBudget::bytes`]. Foreign text never starts a line.
    pub text: String,
    /// Number of tokens, estimated from the length.
    pub tokens: u32,
    /// Counts of what is missing.
    pub left_out: OmissionCounts,
}

/// Condenses a session to a transcript within the budget.
///
/// Each line starts with the event number and the speaker, such as `[13 call bash] cargo test`;
/// further lines of a text are indented. A line with a count replaces missing events.
pub fn condense(session: &Session, budget: TranscriptBudget) -> SessionTranscript {
    let items = items::collect_items(session);
    let all = OmissionCounts::all(session, &items);
    let mut text = header(session, &items);
    // The final counts are not larger than these, so the sentence cannot become longer.
    let most = OmissionCounts { shortened: items.len() as u64, ..all };
    let events = session.events.len() as u64 + session.left_out;
    // The longest possible gap line.
    let gap = gap_line(events).len();
    let reserved = text.len() + omission_line(&most).len() + gap;
    let limit = budget.bytes();
    let chosen = choose::choose_lengths(session, &items, limit.saturating_sub(reserved), gap);

    let mut left_out = all;
    let mut body = String::new();
    // First event that is neither shown nor counted as missing.
    let mut next = 0;
    for (item, cap) in items.iter().zip(&chosen) {
        let Some(cap) = cap else { continue };
        if item.event > next {
            body.push_str(&gap_line((item.event - next) as u64));
        }
        if item.event >= next {
            left_out.events -= 1;
        }
        next = item.event + 1;
        let whole = line::item_text(session, item);
        let said = line::clip(&whole, *cap);
        left_out.count_shown(item.kind, said.len() < whole.len());
        let label = line::label(session, item);
        let _ = writeln!(body, "{}", format!("{label} {said}").trim_end());
    }
    let rest = session.events.len().saturating_sub(next) as u64 + session.left_out;
    if rest > 0 {
        body.push_str(&gap_line(rest));
    }
    text.push_str(&omission_line(&left_out));
    text.push_str(&body);
    // The header alone may exceed a tiny budget.
    text.truncate(text.floor_char_boundary(limit));
    SessionTranscript { tokens: tokens(&text, budget), text, left_out }
}

/// Formats the first lines: agent, models, duration and counts.
fn header(session: &Session, items: &[TranscriptItem]) -> String {
    let head = &session.head;
    let mut text = String::from("Session");
    let mut add = |before: &str, words: &str| {
        let words = one_line(words, 60);
        if !words.is_empty() {
            let _ = write!(text, "{before}{words}");
        }
    };
    add(" of ", &head.agent);
    add(" with ", &head.models.iter().take(3).cloned().collect::<Vec<_>>().join(", "));
    if let (Some(start), Some(end)) = (head.start, head.end) {
        add(" lasting ", &duration(end.duration_since(start).as_secs()));
    }
    let count = |kind: ItemKind| items.iter().filter(|item| item.kind == kind).count();
    let failed = session.events.iter().flat_map(|event| &event.results);
    let failed = failed.filter(|result| result.outcome == ToolOutcome::Failed).count();
    let _ = writeln!(
        text,
        ".\n{} events: {} user prompts, {} answers, {} tool calls, {failed} failed.",
        session.events.len() as u64 + session.left_out,
        count(ItemKind::Prompt),
        count(ItemKind::Answer),
        count(ItemKind::Call),
    );
    text
}

/// Formats a duration in its two largest units, such as `2 h 5 min`.
fn duration(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{} s", seconds.max(0)),
        60..3600 => format!("{} min", seconds / 60),
        3600..86400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86400, seconds / 3600 % 24),
    }
}

fn omission_line(left_out: &OmissionCounts) -> String {
    format!("Left out: {left_out}.\n")
}

fn gap_line(events: u64) -> String {
    let s = if events == 1 { "" } else { "s" };
    format!("[… {events} event{s} left out]\n")
}

fn tokens(text: &str, budget: TranscriptBudget) -> u32 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate; casts of floats saturate"
    )]
    let tokens = (text.len() as f64 / budget.bytes_per_token).ceil() as u32;
    tokens
}
