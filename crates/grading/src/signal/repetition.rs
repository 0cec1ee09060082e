//! A request that is made again (docs/spec/skills-and-signals.md#repetition). Pure.
//!
//! Two messages are the same request when at least half of their words are. The specification has
//! *more than* half; its own first example, without contractions and possessives, has exactly half.

use super::place::is;
use selftest_text::words::{Sketch, WordSet, Words};

/// Least Jaccard similarity.
const ALIKE: f64 = 0.5;

/// Whether a message repeats the one before it. `sketch` is that of the message.
pub(super) fn is_repeated(message: [&str; 2], sketch: &Sketch, previous: [&str; 2]) -> bool {
    !sketch.is_unlike(&previous)
        && WordSet::of_parts(&message).jaccard(&WordSet::of_parts(&previous)) >= ALIKE
        && !is_answer(message[0])
}

/// Whether a message begins with a yes or an order to go on: it answers what the agent asked, and
/// says again what it agrees to.
fn is_answer(beginning: &str) -> bool {
    Words::of(beginning).next().is_some_and(|word| {
        is!(word.key, "yes" "yeah" "yep" "yup" "y" "sure" "ok" "okay" "correct" "continue"
            "proceed")
    })
}
