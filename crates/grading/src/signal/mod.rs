//! Signals in a user's message about the previous answer: thanks, a repeated request, frustration
//! (docs/spec/skills-and-signals.md#signals).
//!
//! Detection looks at words and their surroundings. English has the most rules; German, French,
//! Spanish, Chinese and Japanese have fewer. Calls no model and stores nothing.

mod complaint;
mod correction;
mod cue;
mod fault;
mod frustration;
mod good_news;
mod gratitude;
mod languages;
pub mod measure;
mod message_text;
mod objection;
mod output;
mod request;
mod vocabulary;

use serde::{Deserialize, Serialize};

use cue::{CueWord, WordContext, cue, is_one_of};
use message_text::{sentences, without_quotes};
pub use objection::{classify_objection, command_that_takes_back};
pub use request::RequestWords;
pub use request::{AgentTurn, Objection};
use selftest_text::words::{TextWord, WordIter, WordSet, fold};

/// Number of bytes examined at each end of a message; messages up to twice this long are examined
/// whole. People thank and complain at either end, and what is in between was pasted.
pub const MAX_EXAMINED_BYTES: usize = 256;

/// Signals in a message about the previous answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSignals {
    /// True if the message thanks or praises.
    pub gratitude: bool,
    /// True if the message asks the same as the previous one; `None` without a previous message.
    pub repetition: Option<bool>,
    /// True if the message is clearly dissatisfied.
    pub frustration: bool,
    /// Skill version used for the answer, as passed in.
    pub skill_version_id: Option<String>,
}

impl MessageSignals {
    /// Returns true if at least one signal is set.
    pub fn has_any(&self) -> bool {
        self.gratitude || self.frustration || self.repetition == Some(true)
    }
}

/// Detects all signals in a message.
///
/// `previous` is the preceding message by the same user. `skill_version_id` is passed through
/// unchanged.
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
) -> MessageSignals {
    let texts = message_ends(current);
    let parts = texts.each_ref().map(|text| MessageEnd::new(text));
    let frustration = is_frustrated(&parts);
    // Thanks before a complaint are only politeness.
    let gratitude = !frustration
        && parts.iter().any(|part| {
            part.has_remark(gratitude::is_gratitude_cue) || languages::is_gratitude(part.text)
        });
    MessageSignals {
        gratitude,
        repetition: previous.map(|previous| {
            is_repeated(&parts, &comparison_words(&parts), &comparison_words_of_text(previous))
        }),
        frustration,
        skill_version_id: skill_version_id.map(str::to_owned),
    }
}

/// Returns true if the message thanks or praises without taking it back.
pub fn classify_gratitude(message: &str) -> bool {
    classify_signals(message, None, None).gratitude
}

/// Returns true if the message repeats the request of the previous one, reworded or not.
pub fn classify_repetition(current: &str, previous: &str) -> bool {
    classify_signals(current, Some(previous), None).repetition == Some(true)
}

/// Returns true if the message is clearly dissatisfied. A polite correction does not count.
pub fn classify_frustration(message: &str) -> bool {
    classify_signals(message, None, None).frustration
}

fn is_frustrated(parts: &[MessageEnd<'_>; 2]) -> bool {
    parts
        .iter()
        .any(|part| part.has_remark(frustration::is_frustration_cue) || complains(part.text))
}

/// Returns true if a sentence of a folded text complains, in any supported language. Ignores
/// quotes, code and pasted logs.
fn complains(text: &str) -> bool {
    let bare = without_quotes(text);
    sentences(&bare)
        .any(|sentence| complaint::is_complaint(sentence) || languages::is_complaint(sentence))
}

/// One end of a message, folded and split into words.
struct MessageEnd<'t> {
    text: &'t str,
    words: Vec<TextWord<'t>>,
    /// Cue words with their indexes in `words`.
    cues: Vec<(usize, CueWord)>,
}

impl<'t> MessageEnd<'t> {
    fn new(text: &'t str) -> Self {
        let words: Vec<TextWord> = WordIter::new(text).collect();
        let cues = words.iter().enumerate();
        let cues = cues.filter_map(|(at, word)| Some((at, cue(word.text)?))).collect();
        Self { text, words, cues }
    }

    fn has_remark(&self, is_said: fn(CueWord, &WordContext<'_>) -> bool) -> bool {
        let Self { text, words, cues } = self;
        cues.iter().any(|&(at, cue)| is_said(cue, &WordContext { text, words, at }))
    }
}

/// Returns true if a message makes the same request as the previous one
/// (docs/spec/skills-and-signals.md#repetition).
///
/// Two messages are the same request if they share at least half of their words. The specification
/// says *more than* half, but its own first example shares exactly half once contractions and
/// possessives are removed.
fn is_repeated(parts: &[MessageEnd<'_>; 2], words: &WordSet, previous: &WordSet) -> bool {
    const MIN_SIMILARITY: f64 = 0.5;
    words.jaccard(previous) >= MIN_SIMILARITY && !is_answer(&parts[0])
}

/// Collects the words by which two messages are compared.
fn comparison_words(parts: &[MessageEnd<'_>; 2]) -> WordSet {
    parts.iter().flat_map(|part| part.words.iter().copied()).collect()
}

/// Collects the comparison words of a message that needs no other analysis.
fn comparison_words_of_text(message: &str) -> WordSet {
    message_ends(message).iter().flat_map(|text| WordIter::new(text)).collect()
}

/// Returns true if a message starts with a yes or an order to continue. Such a message answers the
/// agent's question and repeats what it agrees to.
fn is_answer(beginning: &MessageEnd<'_>) -> bool {
    let answers = "yes yeah yep yup y sure ok okay correct continue proceed";
    beginning.words.first().is_some_and(|word| is_one_of(word.text, answers))
}

/// Returns both examined ends of a message, folded, without words cut in half.
fn message_ends(message: &str) -> [String; 2] {
    if message.len() <= 2 * MAX_EXAMINED_BYTES {
        return [fold(message), String::new()];
    }
    let head = &message[..message.floor_char_boundary(MAX_EXAMINED_BYTES)];
    let tail = &message[message.ceil_char_boundary(message.len() - MAX_EXAMINED_BYTES)..];
    let of_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’');
    // A cut word could match by itself, such as the `ty` of `type`.
    [fold(head.trim_end_matches(of_word)), fold(tail.trim_start_matches(of_word))]
}

#[cfg(test)]
mod labelled;
#[cfg(test)]
mod tests;
