//! Detects clear frustration (docs/spec/skills-and-signals.md#frustration). Polite corrections do
//! not count.

use super::cue::{CueWord, WordContext, is_one_of};
use selftest_text::words::WordGap;

/// Returns true if the cue at this place expresses frustration.
pub(super) fn is_frustration_cue(cue: CueWord, place: &WordContext<'_>) -> bool {
    let looks_so = match cue {
        CueWord::Wrong => is_wrong(place),
        CueWord::Still => is_still_failing(place),
        CueWord::Asked | CueWord::Wanted => is_not_what_i(place),
        CueWord::Misunderstood => is_misunderstood(place),
        CueWord::Again => is_try_again(place),
        CueWord::No => is_no_that_is_not(place),
        CueWord::Come => is_come_on(place),
        CueWord::Hell => is_what_the(place),
        CueWord::Outcry => true,
        CueWord::Seriously => is_followed_by_question_mark(place),
        CueWord::Annoying => is_annoying(place),
        CueWord::Annoyed => is_annoyed(place),
        CueWord::Thanks | CueWord::Praise | CueWord::Job | CueWord::Appreciate | CueWord::Love => {
            false
        }
    };
    looks_so && place.stands_alone()
}

/// Matches *that's wrong* and *this is all wrong*, but not *the file that's wrong* or *tell me if
/// that's wrong*.
fn is_wrong(place: &WordContext<'_>) -> bool {
    if is_conditional(place) {
        return false;
    }
    let mut before = place.clause_before().skip_while(|word| is_adverb(word));
    let subject = match before.next() {
        Some(verb) if is_one_of(verb, "is was looks seems") => before.next(),
        Some(contracted) if is_one_of(contracted, "that's thats it's this's") => {
            return before.next().is_none_or(begins_clause);
        }
        _ => None,
    };
    subject.is_some_and(|word| is_one_of(word, "that this it"))
        && before.next().is_none_or(begins_clause)
}

/// Matches *still wrong*, *still doesn't work* and *still the same error*.
fn is_still_failing(place: &WordContext<'_>) -> bool {
    if is_conditional(place) {
        return false;
    }
    let mut after = place.clause_after().skip_while(|word| is_adverb(word));
    let Some(word) = after.next() else { return false };
    if is_one_of(word, "wrong incorrect broken failing fails failed crashing crashes") {
        return true;
    }
    let denied = is_one_of(
        word,
        "not doesn't doesnt isn't isnt don't dont won't wont can't cant didn't didnt",
    ) || (is_one_of(word, "does do did is") && after.next() == Some("not"));
    if denied {
        let mut what = after.skip_while(|word| is_one_of(word, "seem to quite really be"));
        return what.next().is_some_and(|word| {
            is_one_of(word, "work works working right correct fixed good it what")
        });
    }
    let has = is_one_of(word, "get getting gets gives seeing see have having has the");
    has && after
        .take(3)
        .any(|word| is_one_of(word, "same error errors issue issues problem problems"))
}

/// Matches *this is annoying*, but not *fix the annoying bug*.
fn is_annoying(place: &WordContext<'_>) -> bool {
    let holder = place.clause_before().find(|word| !is_degree(word));
    holder.is_none_or(|word| is_one_of(word, "is was it's its this's that's thats you're youre"))
        && !is_conditional(place)
}

/// Matches *I'm really unhappy with …*, but not *users are unhappy*.
fn is_annoyed(place: &WordContext<'_>) -> bool {
    let mut before = place.clause_before().skip_while(|word| is_degree(word));
    let by_me = before.next().is_some_and(|word| match word {
        "am" => before.next() == Some("i"),
        word => is_one_of(word, "i'm im"),
    });
    by_me && !is_conditional(place)
}

/// Matches *not what I asked for* and *you didn't do what I wanted*.
fn is_not_what_i(place: &WordContext<'_>) -> bool {
    let mut before = place.clause_before();
    before.next() == Some("i")
        && before.next() == Some("what")
        && before.find(|word| !is_one_of(word, "do really quite exactly even at all")).is_some_and(
            |word| is_one_of(word, "not isn't isnt wasn't wasnt didn't didnt don't doesn't"),
        )
        && !is_conditional(place)
}

fn is_misunderstood(place: &WordContext<'_>) -> bool {
    let mut before = place.clause_before().skip_while(|word| is_adverb(word));
    let by_you = match before.next() {
        Some(word) if is_one_of(word, "you u you've youve you're youre") => true,
        Some(word) if is_one_of(word, "have are") => {
            before.next().is_some_and(|word| is_one_of(word, "you u"))
        }
        _ => false,
    };
    by_you && !is_conditional(place)
}

/// Matches an order to the agent, but not *let it try again* or *please try again later*.
fn is_try_again(place: &WordContext<'_>) -> bool {
    let mut before = place.clause_before();
    let is_order = before.next() == Some("try")
        && before.next().is_none_or(|word| {
            is_one_of(word, "please pls plz and now just then no nope so but ok okay")
        });
    is_order
        && place
            .clause_after()
            .next()
            .is_none_or(|word| !is_one_of(word, "later in after when once until if tomorrow"))
}

/// Matches *no, that's not …*, but not *no, that's not necessary*.
fn is_no_that_is_not(place: &WordContext<'_>) -> bool {
    let mut after = place.after();
    let mut next = || after.next().map(|(word, _)| word);
    let Some(subject) = next() else { return false };
    let Some(verb) = next() else { return false };
    let denied = if is_one_of(subject, "that's thats") {
        verb == "not"
    } else if subject == "that" {
        is_one_of(verb, "isn't isnt wasn't wasnt")
            || (is_one_of(verb, "is was") && next() == Some("not"))
    } else {
        false
    };
    let (mut what, gap) = after.next().unwrap_or(("", WordGap::Sentence));
    // The article is skipped: *no, that's not a problem*.
    if gap == WordGap::Word && is_one_of(what, "a an") {
        what = after.next().map_or(what, |(word, _)| word);
    }
    denied
        && !is_one_of(
            what,
            "necessary needed required important problem issue concern blocker priority",
        )
}

fn is_come_on(place: &WordContext<'_>) -> bool {
    let is_whole =
        is_one_of(place.word().text, "c'mon cmon") || place.clause_after().next() == Some("on");
    is_whole && place.clause_before().next().is_none_or(begins_clause)
}

/// Matches *what the hell*.
fn is_what_the(place: &WordContext<'_>) -> bool {
    let mut before = place.clause_before();
    before.next() == Some("the") && before.next() == Some("what")
}

/// Matches *seriously?* and *seriously?!*, but not *seriously consider it*.
fn is_followed_by_question_mark(place: &WordContext<'_>) -> bool {
    let after = place.text[place.word().end()..].chars();
    after.take_while(|c| matches!(c, '!' | '?' | '？')).any(|c| c != '!')
}

/// Returns true for words after which a remark can start, as it can at the start of a clause.
fn begins_clause(word: &str) -> bool {
    is_one_of(
        word,
        "no nope nah but and so because cause since ok okay well hmm sorry think believe again \
         wait yeah yes oh actually dude man bro hey still please ugh",
    )
}

fn is_adverb(word: &str) -> bool {
    is_one_of(
        word,
        "just completely totally all so also plain clearly simply obviously entirely very \
         absolutely even still definitely",
    )
}

/// Returns true for words that grade the strength of a feeling.
fn is_degree(word: &str) -> bool {
    is_adverb(word) || is_one_of(word, "really being getting pretty extremely super quite")
}

/// Returns true if the clause is conditional.
fn is_conditional(place: &WordContext<'_>) -> bool {
    place.clause_before().any(|word| is_one_of(word, "if unless whether when whenever"))
}
