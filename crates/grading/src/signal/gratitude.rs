//! Detects thanks and praise (docs/spec/skills-and-signals.md#gratitude), and rules out what only
//! looks like them.

use super::cue::{CueWord, WordContext, is_one_of};
use selftest_text::words::WordGap;

/// Number of words after thanks in which a *but* takes them back.
const TAKEN_BACK_WITHIN: usize = 12;

/// Returns true if the cue at this place expresses thanks or praise.
pub(super) fn is_gratitude_cue(cue: CueWord, place: &WordContext<'_>) -> bool {
    let looks_so = match cue {
        CueWord::Thanks => is_thanks(place),
        CueWord::Praise => is_praise(place, 0),
        CueWord::Job => place.clause_before().next() == Some("good") && is_praise(place, 1),
        CueWord::Appreciate => is_appreciation(place),
        CueWord::Love => is_love(place),
        CueWord::Wanted => is_what_i_needed(place),
        _ => false,
    };
    looks_so && is_genuine(place)
}

/// Returns true if the remark is neither a mention nor taken back.
fn is_genuine(place: &WordContext<'_>) -> bool {
    place.stands_alone() && !is_taken_back(place)
}

/// Matches *Thanks but …*, *Thanks for the fix, however …* and *Nice! But …*.
fn is_taken_back(place: &WordContext<'_>) -> bool {
    for (word, gap) in place.after().take(TAKEN_BACK_WITHIN) {
        if is_one_of(word, "but however except although though unfortunately sadly") {
            return true;
        }
        if gap == WordGap::Sentence {
            return false;
        }
    }
    false
}

fn is_thanks(place: &WordContext<'_>) -> bool {
    let mut before = place.before();
    let refused = before.next().is_some_and(|(word, gap)| match gap {
        WordGap::Word => is_one_of(word, "no nope nah not never don't dont without a an the"),
        WordGap::Clause => is_one_of(word, "no nope nah"),
        WordGap::Sentence => false,
    });
    if refused {
        return false;
    }
    let mut after = place.clause_after();
    if place.word().text == "thank" {
        // *Thank them* is an instruction; only *thank you*, *thank god* and the like count.
        let whom = after.next();
        if !whom.is_some_and(|word| is_one_of(word, "you u ya god goodness")) {
            return false;
        }
    }
    let Some(next) = after.next() else { return true };
    let then = after.next();
    if next == "to" {
        // *Thanks to the cache it is fast*.
        return then.is_some_and(|word| is_one_of(word, "you u ya all everyone"));
    }
    if next == "for" {
        return then != Some("nothing");
    }
    // Thanks in advance say nothing about what was done.
    let in_advance = next == "in" && then == Some("advance");
    let is_thing = is_one_of(
        next,
        "page pages note notes email emails message messages card cards letter screen popup modal",
    );
    !in_advance && !is_thing
}

/// Matches *exactly what I needed*.
fn is_what_i_needed(place: &WordContext<'_>) -> bool {
    let mut before = place.clause_before();
    before.next().is_some_and(|word| is_one_of(word, "i we"))
        && before.next() == Some("what")
        && before.next().is_some_and(|word| is_one_of(word, "exactly just precisely"))
        && is_praise(place, 3)
}

/// Matches *I appreciate your help* and *much appreciated*, but not *I would appreciate a log*.
fn is_appreciation(place: &WordContext<'_>) -> bool {
    if place.word().text == "appreciated" {
        let mut before = place.clause_before();
        // Nothing may stand before it: *it would be much appreciated if …* is a request.
        return before.next().is_some_and(|word| is_one_of(word, "much greatly really"))
            && before.next().is_none();
    }
    let mut before = place.clause_before().skip_while(|word| is_intensifier(word));
    before.next().is_none_or(|word| is_one_of(word, "i we"))
        && place
            .clause_after()
            .next()
            .is_some_and(|word| is_one_of(word, "it you your the that this all"))
}

/// Matches *I love it*, but not *I'd love it if* or *they don't love it*.
fn is_love(place: &WordContext<'_>) -> bool {
    let mut after = place.clause_after();
    if after.next() != Some("it") {
        return false;
    }
    // *I'd love it if …* is a wish.
    let conditional = after.next().is_some_and(|word| is_one_of(word, "if when"));
    let mut before = place.clause_before().skip_while(|word| is_intensifier(word));
    let by_us = before.next().is_none_or(|word| is_one_of(word, "i we and do"));
    !conditional && by_us
}

/// Returns true if an adjective says that something *is* good. `words` is the number of words of
/// the remark itself between the adjective and this place.
///
/// The adjective counts in a clause of its own (*Perfect, now …*) and after words such as *is* and
/// *looks*. Anywhere else it is a wish (*make it nice*, *it would be nice*) or a denial (*not
/// perfect*).
fn is_praise(place: &WordContext<'_>, words: usize) -> bool {
    let mut before = place
        .before()
        .skip(words)
        .skip_while(|&(word, gap)| gap == WordGap::Word && is_intensifier(word));
    let Some((word, gap)) = before.next() else { return !is_wish(place) };
    if gap != WordGap::Word || is_interjection(word) {
        return has_no_noun(place);
    }
    let before = before.take_while(|&(_, gap)| gap == WordGap::Word).map(|(word, _)| word);
    let mut before = std::iter::once(word).chain(before);
    let Some(mut verb) = before.next() else { return false };
    let has_article = is_one_of(verb, "a an the such");
    if has_article {
        let Some(word) = before.next() else { return false };
        verb = word;
    }
    let says_so = is_one_of(verb, "is was that's thats it's its this's what such")
        || (has_article && is_one_of(verb, "did done doing"))
        || (!has_article
            && is_one_of(
                verb,
                "are were they're looks looked seems sounds feels works worked working runs fits \
                 you're",
            ));
    let is_supposed = before.any(|word| is_one_of(word, "if until unless whether sure ensure so"));
    says_so && !is_supposed && !place.is_in_question()
}

/// Matches *nice to have*, *nice try* and *nice looking* at the start of a message, which are not
/// praise.
fn is_wish(place: &WordContext<'_>) -> bool {
    let mut after = place.clause_after();
    let Some(next) = after.next() else { return false };
    is_one_of(next, "try looking")
        || (next == "to" && after.next().is_some_and(|word| is_one_of(word, "have haves")))
}

/// Returns true if the clause ends here or continues without a noun for the adjective: *perfect now
/// add …*, but not *nice buttons*.
fn has_no_noun(place: &WordContext<'_>) -> bool {
    place.clause_after().next().is_none_or(|next| {
        is_one_of(
            next,
            "and now thanks thank thx that that's thats this it it's its i i'm i'll we let's lets \
             let can could so work job one catch fix find stuff touch progress start you your \
             please next then go ok okay looks works for",
        )
    })
}

fn is_intensifier(word: &str) -> bool {
    is_one_of(
        word,
        "so very really pretty quite super absolutely just totally simply truly all looking \
         fucking damn always",
    )
}

fn is_interjection(word: &str) -> bool {
    is_one_of(
        word,
        "oh ok okay yes yeah yep yup wow cool great haha ah aha well and good awesome perfect \
         nice alright right hey man dude bro how thanks you",
    )
}
