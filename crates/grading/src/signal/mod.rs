//! What a user's message says about the answer before it: thanks, a repeated request, frustration
//! (docs/spec/skills-and-signals.md#signals).
//!
//! Words and what stands around them, English only. Pure; asks no model and stores nothing.

mod cue;
mod frustration;
mod gratitude;
mod place;
mod repetition;

use serde::{Deserialize, Serialize};

use cue::{CUES, Cue};
use place::{Place, Recent};
use selftest_text::words::{Sketch, Word, Words};

/// Bytes at each end of a message that are looked at; a message of up to twice as many is looked
/// at whole. People thank and complain at either end, and what is in between was pasted.
pub const LOOKED_AT: usize = 256;

/// What a message says about the answer before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signals {
    /// It thanks or praises.
    pub gratitude: bool,
    /// It asks the same as the message before it; `None` without one.
    pub repetition: Option<bool>,
    /// It is clearly dissatisfied.
    pub frustration: bool,
    /// The skill that was used for the answer, as given.
    pub skill_version_id: Option<String>,
}

impl Signals {
    /// Whether there is one.
    pub fn any(&self) -> bool {
        self.gratitude || self.frustration || self.repetition == Some(true)
    }
}

/// All signals of a message. `previous` is what the same person said before it, and
/// `skill_version_id` is handed through.
///
/// ```
/// use selftest_grading::signal::classify_signals;
///
/// let signals = classify_signals("No, that’s not what I asked", Some("sort by date"), None);
/// assert!(signals.frustration && !signals.gratitude);
/// assert_eq!(signals.repetition, Some(false));
/// ```
pub fn classify_signals(
    current: &str,
    previous: Option<&str>,
    skill_version_id: Option<&str>,
) -> Signals {
    let parts = ends(current);
    let (mut gratitude, mut frustration) = (false, false);
    let mut look = |cue, place: &Place<'_, '_>| {
        gratitude = gratitude || gratitude::is_said(cue, place);
        frustration = frustration || frustration::is_said(cue, place);
        false
    };
    let repetition = if let Some(previous) = previous {
        let mut sketch = Sketch::default();
        for part in parts {
            each_cue(part, &mut look, |word| sketch.add(word, part));
        }
        Some(repetition::is_repeated(parts, &sketch, ends(previous)))
    } else {
        for part in parts {
            each_cue(part, &mut look, |_| {});
        }
        None
    };
    let skill_version_id = skill_version_id.map(str::to_owned);
    Signals { gratitude, repetition, frustration, skill_version_id }
}

/// Whether the message thanks or praises, and does not take it back.
pub fn classify_gratitude(message: &str) -> bool {
    ends(message).into_iter().any(|part| each_cue(part, gratitude::is_said, |_| {}))
}

/// Whether the message asks in other words, or the same, what the one before it asked.
pub fn classify_repetition(current: &str, previous: &str) -> bool {
    let parts = ends(current);
    let mut sketch = Sketch::default();
    for part in parts {
        Words::of(part).for_each(|word| sketch.add(&word, part));
    }
    repetition::is_repeated(parts, &sketch, ends(previous))
}

/// Whether the message is clearly dissatisfied. A polite correction is not.
pub fn classify_frustration(message: &str) -> bool {
    ends(message).into_iter().any(|part| each_cue(part, frustration::is_said, |_| {}))
}

/// Looks at each cue of a text until `is_enough`, and at each word up to there.
#[inline]
fn each_cue(
    text: &str,
    mut is_enough: impl FnMut(Cue, &Place<'_, '_>) -> bool,
    mut each: impl FnMut(&Word),
) -> bool {
    let (mut words, mut recent) = (Words::of(text), Recent::new());
    while let Some(word) = words.next() {
        each(&word);
        if let Some(cue) = CUES.get(word.key)
            && is_enough(cue, &Place { word, recent: &recent, rest: &words })
        {
            return true;
        }
        recent.push(word);
    }
    false
}

/// Both ends of a message, as far as they are looked at, without the halves of words.
fn ends(message: &str) -> [&str; 2] {
    if message.len() <= 2 * LOOKED_AT {
        return [message, ""];
    }
    let head = &message[..message.floor_char_boundary(LOOKED_AT)];
    let tail = &message[message.ceil_char_boundary(message.len() - LOOKED_AT)..];
    let of_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’');
    [head.trim_end_matches(of_word), tail.trim_start_matches(of_word)]
}

#[cfg(test)]
mod tests;
