//! Signals in a user's message about the answer before it: thanks, a repeated request, frustration
//! (docs/spec/skills-and-signals.md#signals).
//!
//! Words and what stands around them, in English and, with fewer, in German, French, Spanish,
//! Chinese and Japanese. Pure; asks no model and stores nothing.

mod bare;
mod complaint;
mod cue;
mod frustration;
mod gratitude;
mod languages;
mod objection;
mod place;

use serde::{Deserialize, Serialize};

use bare::{sentences, without_quotes};
use cue::{Cue, cue};
pub use objection::{Objection, Request, objection};
use place::{Place, is_one_of};
use selftest_text::words::{Word, WordSet, Words, fold};

/// Bytes at each end of a message that are looked at; a message of up to twice as many is looked
/// at whole. People thank and complain at either end, and what is in between was pasted.
pub const LOOKED_AT: usize = 256;

/// The signals of a message about the answer before it.
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
    let texts = ends(current);
    let parts = texts.each_ref().map(|text| Part::of(text));
    let frustration = is_frustrated(&parts);
    // Thanks before a complaint are manners.
    let gratitude = !frustration
        && parts
            .iter()
            .any(|part| part.any_remark(gratitude::is_said) || languages::thanks(part.text));
    Signals {
        gratitude,
        repetition: previous
            .map(|previous| is_repeated(&parts, &words(&parts), &words_of(previous))),
        frustration,
        skill_version_id: skill_version_id.map(str::to_owned),
    }
}

/// Whether the message thanks or praises, and does not take it back.
pub fn classify_gratitude(message: &str) -> bool {
    classify_signals(message, None, None).gratitude
}

/// Whether the message asks in other words, or the same, what the one before it asked.
pub fn classify_repetition(current: &str, previous: &str) -> bool {
    classify_signals(current, Some(previous), None).repetition == Some(true)
}

/// Whether the message is clearly dissatisfied. A polite correction is not.
pub fn classify_frustration(message: &str) -> bool {
    classify_signals(message, None, None).frustration
}

fn is_frustrated(parts: &[Part<'_>; 2]) -> bool {
    parts.iter().any(|part| part.any_remark(frustration::is_said) || complains(part.text))
}

/// Whether a sentence of a folded text complains, in any of the languages. Quotes, code and pasted
/// logs are not looked at.
fn complains(text: &str) -> bool {
    let bare = without_quotes(text);
    sentences(&bare)
        .any(|sentence| complaint::is_said(sentence) || languages::is_complaint(sentence))
}

/// A part of a message, folded.
struct Part<'t> {
    text: &'t str,
    words: Vec<Word<'t>>,
    /// The cues among its words, with their numbers.
    cues: Vec<(usize, Cue)>,
}

impl<'t> Part<'t> {
    fn of(text: &'t str) -> Self {
        let words: Vec<Word> = Words::of(text).collect();
        let cues = words.iter().enumerate();
        let cues = cues.filter_map(|(at, word)| Some((at, cue(word.text)?))).collect();
        Self { text, words, cues }
    }

    fn any_remark(&self, is_said: fn(Cue, &Place<'_>) -> bool) -> bool {
        let Self { text, words, cues } = self;
        cues.iter().any(|&(at, cue)| is_said(cue, &Place { text, words, at }))
    }
}

/// Whether a message asks for the same as the one before it
/// (docs/spec/skills-and-signals.md#repetition).
///
/// Two messages are the same request when at least half of their words are. The specification has
/// *more than* half; its own first example, without contractions and possessives, has exactly half.
fn is_repeated(parts: &[Part<'_>; 2], words: &WordSet, previous: &WordSet) -> bool {
    const MIN_SIMILARITY: f64 = 0.5;
    words.jaccard(previous) >= MIN_SIMILARITY && !is_answer(&parts[0])
}

/// The words of a message by which it is compared with another.
fn words(parts: &[Part<'_>; 2]) -> WordSet {
    parts.iter().flat_map(|part| part.words.iter().copied()).collect()
}

/// The same of a message that is not looked at otherwise.
fn words_of(message: &str) -> WordSet {
    ends(message).iter().flat_map(|text| Words::of(text)).collect()
}

/// Whether a message begins with a yes or an order to go on: it answers what the agent asked, and
/// says again what it agrees to.
fn is_answer(beginning: &Part<'_>) -> bool {
    let answers = "yes yeah yep yup y sure ok okay correct continue proceed";
    beginning.words.first().is_some_and(|word| is_one_of(word.text, answers))
}

/// Both ends of a message, as far as they are looked at, folded, without the halves of words.
fn ends(message: &str) -> [String; 2] {
    if message.len() <= 2 * LOOKED_AT {
        return [fold(message), String::new()];
    }
    let head = &message[..message.floor_char_boundary(LOOKED_AT)];
    let tail = &message[message.ceil_char_boundary(message.len() - LOOKED_AT)..];
    let of_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’');
    [fold(head.trim_end_matches(of_word)), fold(tail.trim_start_matches(of_word))]
}

#[cfg(test)]
mod labelled;
#[cfg(test)]
mod tests;
