//! Detects objections to what the agent has just done: complaints, corrections, requests to revert,
//! and repeated requests. English only.
//!
//! This is wider than frustration, since a correction may be polite. The first message of a session
//! cannot object to anything, but only the caller can tell that it is the first.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    MAX_EXAMINED_BYTES, MessageEnd, comparison_words, comparison_words_of_text, is_frustrated,
    is_repeated, message_ends,
};
use crate::english;
use selftest_text::words::WordSet;

/// Form of an objection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objection {
    /// The message is clearly dissatisfied.
    Complains,
    /// The message says that something else was asked for.
    Corrects,
    /// The message asks to undo the work.
    Reverts,
    /// The message repeats the previous request.
    AsksAgain,
}

/// Matches an order to undo work at the start of a message.
static REVERTS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:(?:no|nope|please|pls|ok|okay|just|then|actually|so|wait|stop|hmm)[,.! ]+){0,3}(?:revert|undo|roll ?back|take (?:that|it|this) back|put (?:it|that|this) back)\b",
    )
});

/// Matches a correction at the start of a message.
static CORRECTS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:(?:no|nope|wait|hmm|hey|stop|ok|okay|but|sorry|well)[,.! ]+){0,3}(?:no[,.! ]+(?:you (?:should|need|have to|must|forgot|missed)|i (?:meant|said|asked|want|wanted|told|need)|it(?:'s| is) (?:not|still|wrong)|use|don't|do not|instead|stop|not (?:that|this|like|the)|(?:that's|that is|this is) (?:not|wrong))\b|not (?:that|this|like (?:that|this)|the|in|there|what)\b|that's not|that is not|this is not|it's not|it is not|i (?:meant|said|asked|told|wanted)\b|you (?:forgot|missed|didn't|did not|haven't|have not|broke|removed|deleted|changed the wrong|misread|ignored|skipped|used the wrong|put it)|why (?:did|didn't|are|aren't|have|would) you\b|actually,? i (?:meant|wanted)|wrong (?:file|place|one|branch|folder|function|line)|stop\b|don't do (?:that|this)|there(?:'s| is| are) still\b|still (?:not|doesn't|broken|failing|wrong|the same|get|see)|it (?:doesn't|does not|didn't|still|isn't|is still|crashes|fails)\b)",
    )
});

/// Words of a user's message, kept to detect that a later message repeats it.
#[derive(Debug, Clone, Default)]
pub struct RequestWords {
    words: WordSet,
}

impl RequestWords {
    /// Records a message without a preceding answer, which therefore cannot object to anything.
    pub fn from_message(message: &str) -> Self {
        // A later message is compared with the start of this one.
        let end = message.floor_char_boundary(2 * MAX_EXAMINED_BYTES);
        Self { words: comparison_words_of_text(&message[..end]) }
    }
}

/// Returns the objection in a message, if any, and the request to pass in with the next message.
/// `previous` is the preceding message by the same user.
pub fn classify_objection(
    message: &str,
    previous: Option<&RequestWords>,
) -> (Option<Objection>, RequestWords) {
    let texts = message_ends(message);
    let parts = texts.each_ref().map(|text| MessageEnd::new(text));
    let words = comparison_words(&parts);
    let objection = classify_objection_in(&parts, &words, previous);
    // The end of a long message counts only in the comparison with the previous one.
    let is_long = message.len() > 2 * MAX_EXAMINED_BYTES;
    (objection, if is_long { RequestWords::from_message(message) } else { RequestWords { words } })
}

fn classify_objection_in(
    parts: &[MessageEnd<'_>; 2],
    words: &WordSet,
    previous: Option<&RequestWords>,
) -> Option<Objection> {
    if is_frustrated(parts) {
        return Some(Objection::Complains);
    }
    let beginning = parts[0].text.trim_start();
    if REVERTS.is_match(beginning) {
        Some(Objection::Reverts)
    } else if CORRECTS.is_match(beginning) {
        Some(Objection::Corrects)
    } else {
        previous
            .is_some_and(|previous| is_repeated(parts, words, &previous.words))
            .then_some(Objection::AsksAgain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind() {
        for (message, previous, expected) in [
            ("still broken", None, Some(Objection::Complains)),
            ("No, I meant the other file", None, Some(Objection::Corrects)),
            ("you forgot the tests", None, Some(Objection::Corrects)),
            ("Why did you delete it?", None, Some(Objection::Complains)),
            ("you forgot the index", None, Some(Objection::Corrects)),
            ("please revert that", None, Some(Objection::Reverts)),
            ("undo", None, Some(Objection::Reverts)),
            ("add an undo button", None, None),
            ("no, thanks", None, None),
            ("No, that's all for now. Thanks for your help!", None, None),
            ("No, that's okay.", None, None),
            ("No, I don't have it", None, None),
            ("Thanks again! Will do.", None, None),
            ("No", None, None),
            ("yes, do it", None, None),
            ("now the other one", None, None),
            ("run the tests", Some("run the tests!"), Some(Objection::AsksAgain)),
            ("yes, run the tests", Some("run the tests!"), None),
        ] {
            let previous = previous.map(RequestWords::from_message);
            assert_eq!(classify_objection(message, previous.as_ref()).0, expected, "{message}");
        }
    }
}
