//! Requests that a person repeats, what the agent did between them, and the forms of an objection.

use std::collections::BTreeSet;

use super::cue::is_one_of;
use super::vocabulary::{Mood, mood};
use super::{MAX_EXAMINED_BYTES, message_ends, sentences};

/// Form of an objection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objection {
    /// The message says that the work is wrong or does not work.
    Complains,
    /// The message says that something else was asked for.
    Corrects,
    /// The message undoes the work or asks to undo it.
    Reverts,
    /// The message repeats the previous request.
    AsksAgain,
}

/// What the agent did between two messages of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentTurn {
    /// It called a tool.
    pub has_worked: bool,
    /// Its last words were a question.
    pub has_asked: bool,
    /// Its last call was refused, and it has said nothing since.
    pub was_refused: bool,
}

/// Words that do not change a request.
const FILLERS: &str = "please pls again still now just the a an to can could you i said ok okay so and it then once more hey would this that really already one time";
/// First words of messages that are said again in the course of work, and of answers.
const ROUTINE: &str = "continue proceed resume next go commit push yes yeah yep yup y sure correct no ok okay keep carry retry hi hello thanks thank";
/// Long words that tie nothing to a request.
const COMMON: &str = "should would could there their about still after again please every where which these those thing things other another first before between because really using based above below following create update change write while since until maybe right actually working works doing going looks looking needs wants makes being everything something anything nothing with from into that this then than them they have some only also make your when what need want like does more";

/// Words of a user's message, kept to detect that a later message repeats it.
#[derive(Debug, Clone, Default)]
pub struct RequestWords {
    words: BTreeSet<String>,
}

impl RequestWords {
    /// Records a message.
    pub fn from_message(message: &str) -> Self {
        // A later message is compared with the start of this one.
        let [head, tail] =
            message_ends(&message[..message.floor_char_boundary(2 * MAX_EXAMINED_BYTES)]);
        let words = [head, tail].iter().flat_map(|text| content_words(text)).collect();
        Self { words }
    }

    /// Returns true if a folded text has a word of the request, in any form of it.
    pub(super) fn mentions(&self, text: &str) -> bool {
        let stem = |word: &str| word.get(..5).unwrap_or(word).to_owned();
        let counts = |word: &str| word.len() >= 4 && !is_one_of(word, COMMON);
        let stems: BTreeSet<String> =
            self.words.iter().filter(|word| counts(word)).map(|word| stem(word)).collect();
        content_words(text).iter().any(|word| counts(word) && stems.contains(&stem(word)))
    }

    /// Returns true if a later message makes the same request. After work, most of it is enough, or
    /// all of it with a few words more: in a series of requests (*the same for module 2*) words are
    /// exchanged. `beginning` is the start of the later message, folded and without quotes.
    pub(super) fn is_repeated_by(&self, later: &Self, beginning: &str, has_worked: bool) -> bool {
        const MIN_WORDS: usize = 3;
        const MIN_WORDS_OF_LONGER: usize = 5;
        if starts_routinely(beginning) {
            return false;
        }
        if later.words.len() >= 2 && later.words == self.words {
            return true;
        }
        let sentence = sentences(beginning).next().unwrap_or_default();
        if !has_worked || mood(sentence) == Mood::Asks {
            return false;
        }
        let is_longer = self.words.len() >= MIN_WORDS_OF_LONGER
            && self.words.is_subset(&later.words)
            && 2 * later.words.len() <= 3 * self.words.len();
        let sentence = Self { words: content_words(sentence).into_iter().collect() };
        let is_most = [later, &sentence].iter().any(|part| {
            part.words.len() >= MIN_WORDS
                && part.words.is_subset(&self.words)
                && 3 * part.words.len() > 2 * self.words.len()
        });
        is_longer || is_most
    }
}

/// Returns true if a folded message starts with an answer or a word of routine: *yes*, *continue*.
pub(super) fn starts_routinely(beginning: &str) -> bool {
    let first = beginning.trim_start().split(|c: char| !c.is_alphanumeric()).next();
    first.is_some_and(|first| is_one_of(first, ROUTINE))
}

/// Returns the words of a folded text that make the request, numbers and names included: in a
/// series of requests just these differ.
fn content_words(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '\'')))
        .map(|word| word.trim_matches(['.', '-', '\'', '/']))
        .filter(|word| !word.is_empty() && !is_one_of(word, FILLERS))
        .map(str::to_owned)
        .collect()
}
