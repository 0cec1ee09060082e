//! Detects reports of faults: what the person met (*i get this error*), and, after a turn of work,
//! what is wrong with it (*the toggle is missing*). English only.
//!
//! A fault is told from a new task that is phrased as a problem by what ties it to the work: a
//! pronoun, *now* and *still*, a word of the request, or that the message says nothing else. After
//! an order, a fault is its reason (*add a cache, it is slow*), and needs a tie of time.
//!
//! Comments name sentences that a pattern must not match; tests hold them.

use std::sync::LazyLock;

use regex::Regex;

use super::request::AgentTurn;
use super::request::RequestWords;
use super::vocabulary::{self, ADVERBS, LEAD, Mood, anywhere, at_start, mood};
use super::{
    CueWord, MessageEnd, WordContext, complaint, frustration, good_news, sentences, without_quotes,
};
use crate::english;

/// Longest report and longest message that is nothing but a report, in words.
const MAX_REPORT: usize = 45;
const MAX_BARE: usize = 14;

/// What work may be too much of: *too small*, but not *too good*.
const EXCESS: &str = "(?:small|big|large|long|short|slow|fast|wide|narrow|high|low|dark|bright|light|pale|much|many|few|little|complicated|complex|verbose|wordy|loud|quiet|early|late|close|far|tall|thin|thick|vague|strict|aggressive|generic|noisy|tight|cramped|heavy|crowded|busy|tiny|huge|formal|technical|hard|easy|bold)";
/// Verbs of what programs do wrong by themselves.
const FAILS: &str = "(?:fails?|failed|crash(?:es|ed)?|breaks?|broke|hangs?|freezes?|froze|throws|errors|errors out|times out|timed out|timeouts?|disappears?|disappeared|overlaps?|flickers?|vanish(?:es|ed)?|panics|panicked|segfaults?|deadlocks?|leaks|stopped working|complains?|never (?:stops|ends|finishes|returns|loads|shows|fires|runs|happens|works|updates))";
/// Verbs of what programs do that nobody wants, with an object.
const SPOILS: &str = "(?:ignores|skips|loses|resets|overwrites|wipes|deletes|duplicates|truncates|swallows|misses|drops|jumps|refreshes|reloads|kicks|logs|doubles|cuts|covers|blocks|hides|evicts|removes|reformatted|deleted|removed|overwrote|wiped|lost|duplicated|broke|erased|killed|dropped|ruined|undid|messed)";
/// Verbs of what programs do, which describe a fault where nothing else is said.
const DOES: &str = "(?:posts|sends|calls|points|goes|went|opens|closes|loads|redirects|scrolls|returns|prints|shows|displays|says|gives|puts|adds|creates|writes|replaces|renames|reformats|loops|repeats|picks|asks|counts|rounds|sorts|filters|matches|includes|excludes|renders|moves|changes|changed|triggers|fires|stays)";
/// Verbs of what work does not do, in any form.
const WORKS: &str = r"(?:work|show|updat|load|appear|render|display|respond|chang|sav|match|fit|compil|build|start|open|clos|activat|submit|send|play|fill|align|refresh|redirect|persist|react|mov|toggl|stick|line up|add up|exist|pass|print|visible|there|clickable|applied|appl|reflected|includ|connect|scroll|click|look|go through|went through|help|let|prompt|follow|pick|get|got|take|took|rotat|translat|handl|trigger|fir|run|ran|us|cover|support my|contain|address|return|respect|account|centered|made|fixed|done|happen|find|see|pulled|picked|called|read|written|registered|sorted|saved|updated|escap|valid|correct|right|what i|how i)";

/// What a person says of work that is wrong, after *is*, *looks* and the like.
static IS_WRONG: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"(?:\b(?:is|are|was|were|am|looks?|seems?|feels?|sounds?|got|gets|stays?|comes out|came out|appears?|became)|'s|'re)(?: to be)?(?: {ADVERBS})*? (?:missing|gone|lost|empty|blank|broken|misaligned|unaligned|cut off|clipped|cropped|overlapping|off|weird|ugly|(?:the|all the) (?:same|wrong)|identical|unchanged|untouched|not there|nowhere|all over the place|a mess|duplicated?s?|doubled|stuck|frozen|unreadable|illegible|hidden|invisible|invalid|malformed|insecure|unsafe|dangerous|too {EXCESS}|slower|worse|wrong|false|incorrect|inaccurate|incomplete|inconsistent|reversed|swapped|mixed up|upside down|unusable|useless|pointless|failing|crashing|flickering|warped|stretched|squashed|squished|distorted|detached|blurry|blurred|pixelated|garbled|truncated|mangled|messed up|screwed up|ignored|outdated|made up|invented|hallucinated|fake|commented out|hard to (?:read|see)|still (?:in|on|at|there|using|visible|showing|listed|present|not)|in the wrong|out of (?:order|place|sync))\b"
    ))
});
/// What the work does wrong, said without *is*.
static DOES_WRONG: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"\b{FAILS}(?: (?:on|for|in|at|when|if|with|as|every|after|now|here|again|immediately|completely|from|under|to|about|that|because|randomly|my|the)\b|[.,!;]|\s*$)|\b(?:doesn't|does not|don't|do not|didn't|did not|isn't|is not|aren't|are not|won't|will not|can't|weren't|were not|wasn't|was not|hasn't|haven't|not|never)(?: {ADVERBS}| seem to| seem| been| be)* {WORKS}[a-z]*\b|\b(?:does|do|did) nothing\b|\bkeeps? (?:on )?[a-z]+ing\b|\bhas (?:no|the wrong|zero)\b|\b{SPOILS} (?:the|my|our|all|every|everything|me|it|them|when|if|on|to|out|off|half|old|in|wrong)\b|\b(?:forever|endlessly|infinitely|constantly|for no reason|randomly|out of nowhere|by itself|multiple times|twice)\b|\bin the wrong (?:order|place|column|file|folder|direction)\b|\bthe wrong [a-z]+\b|\b(?:gets?|got) (?:lost|cut|stuck|duplicated|overwritten|deleted|truncated|ignored|reset|stretched)\b|\bmade (?:it|that|this|the [a-z]+|everything)(?: \w+)? (?:(?:to be |even |way |much )*(?:slower|worse|invisible|bigger|smaller|uglier|disappear|unreadable|longer|harder|crash|fail|broken))\b"
    ))
});
/// What only describes the work: *it posts to localhost*. Not *it runs on node 20* as an answer, or
/// with anything else in the message.
static DESCRIBES: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        &format!(
            r"(?:(?:it|this|that|which)(?: {ADVERBS})* )?{DOES} [a-z0-9/'.]|(?:it|this|that) only [a-z]+s\b"
        ),
        r"there(?:'s| is| are)(?: still| now)* (?:a|an|two|three|no|not|too|only|some|still)\b",
        r"i (?:only|now) (?:see|get|have|got)\b|i (?:see|notice) (?:an?|two|three|some|the same|nothing|no)\b",
        r"that(?:'s| is) (?:\w+ )?(?:two|three|four|five|six|seven|eight|nine|ten|\d+|step \d+)\b",
        r"(?:that|this|it)(?:'s| is) (?:about|for|from|of|in) (?:an?|the) (?:different|other|wrong|old|another)\b|that(?:'s| is) (?:just|only|the (?:old|wrong|other|same|previous|original|[a-z]+ (?:test|page|file|button|version|one)))\b",
        r"(?:[a-z0-9-]+ ){1,3}errors?[.! ]*$|no [a-z]+ (?:on|in|for|at) (?:it|this|that|them)\b|(?:half|most|none|some|only \w+|one|two|three|\d+) (?:of )?(?:the|them|it|these|those|my) .*(?:missing|untouched|wrong|broken|still|not|unchanged|gone|fail\w*|empty|in english)\b",
        r"(?:the )?[a-z-]+(?: [a-z-]+){0,2} missing[.! ]*$|.*\b(?:(?:has|have) changed|used to (?:be|work|have|show|try)|before (?:it|that|this|they) (?:was|were|had))\b|(?:everything|all [a-z ]+|it|there|the [a-z-]+(?: [a-z-]+)?)(?:'s| is| are| has| have) .*\bnow\b",
        r"[a-z]+ (?:did|do|does|didn't|don't|doesn't|never)(?: not)? (?:say|said|claim|state|mention|write) (?:that|this|it|so)\b|the [a-z]+ (?:don't|doesn't|didn't|do not|does not|never) (?:say|claim|state|mention) (?:that|this|it|so)\b",
    ])
});
/// Words that make a wish or a plan of it: *the error page should have a link*.
static IS_WISHED: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"\b(?:should|must|needs?|next|can|could|would|will|may)\b"));
/// A statement about a thing. Where it is all that is said after the work, and the request named the
/// thing, the person would rather say so than go on: *the footer floats in the middle of the page*.
static IS_SAID_OF: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"(?:the|my|every) [a-z'-]+(?: [a-z'-]+){0,2} (?:is|are|has|have|gets?|[a-z]{2,}[a-rt-z]s|did|became|turned) (?:not |still |all |now |only )*[a-z]+",
    ])
});
/// Words that tie a fault to what was just done, in time or by name.
static TIE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:now|still|again|anymore|any more|no longer|than before|as before|after (?:your|the|that|this)|since (?:your|the|that)|even with|you|your)\b",
    )
});
/// Words that stand for the work.
static STANDS_FOR_WORK: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"\b(?:it|its|it's|this|that|that's|they|them|these|those|either)\b")
});

/// What the person met when trying the work, or advice: *i still get the error*, *now i have this
/// error*, *it still shows the old title*. Not *can you check that i get an error without a token*.
static MET: LazyLock<Regex> = LazyLock::new(|| {
    let cannot = r"(?:don't|do not|can't|can not|cannot|couldn't|could not|(?:am |'m )(?:not able|unable) to)";
    let subject = r"(?:it|this|that|they|there|(?:the|my|your) \w+(?: \w+){0,4})";
    anywhere(&[
        &format!(
            r"^{LEAD}i (?:still |now |also )*{cannot} (?:even |still |actually )*(?:see|find|open|load|run|access|reach|click|hit)\b"
        ),
        r"\b(?:won't|doesn't|does not|not) (?:let|allow|allowing|letting) me\b",
        r"\b(?:i|we)(?:'m| am|'ve)? (?:now |still |also |just |keep )*(?:have|get|got|getting|having|see|seeing)(?: (?:this|that|an?|the|these|some|another|same|new))*(?: \w+)? errors?\b",
        &format!(
            r"^{LEAD}an error (?:pops?|popped|appears?|appeared|occurs?|occurred|comes|came|shows?|is|was)\b"
        ),
        r"\berror is (?:being )?thrown\b|\bsays? (?:that )?(?:it )?(?:has )?(?:failed|error)\b",
        &format!(
            r"^{LEAD}{subject}(?:'s| is| are| does| do| did| has)?(?: {ADVERBS})* (?:not|isn't|doesn't|don't|didn't|aren't|won't)(?: {ADVERBS})* (?:work|updat|load|show|appear|render|display|respond|chang|sav|match|fit\b|compil|build|start|open|activat|look (?:like|right|good|the same))\w*"
        ),
        r"\bhere(?:'s| is) (?:an?|another) (?:\w+ ){0,2}(?:bug|glitch)\b|\bbug (?:that )?i(?:'m| am) (?:still )?seeing\b",
        r"\b(?:tests?|build|ci|lint|pipeline|types?)\b.{0,30}\b(?:fail|fails|failed|failing|broken|broke|unhappy|red)\b.{0,20}\b(?:now|again|still)\b|\b(?:now|still)\b.{0,20}\b(?:tests?|build|ci)\b.{0,20}\b(?:fail|fails|failing|broken|red)\b",
        r"\bi tried (?:to |it|that|this|your|the|with|running|again).{0,80}\b(?:but|and) (?:it|that|i|nothing|there|the|still|now|no)\b",
    ])
});
/// *the logo is still white*. Not *the dockerfile still uses node 16, upgrade it*, unless the request
/// was about it.
static STILL: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"(?:it|this|that|they|there|(?:the|my|your) \w+(?: \w+){0,4})(?:'s| is| are| was)? still \w+",
    ])
});
/// Statements of the same form that report nothing: *i don't see why*, *it is still running*.
static MEETS_NOTHING: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:build|ci|pipeline|everything|tests?) (?:is|are) still green\b|\b(?:see|find) (?:how|why|what|where|any (?:\w+ )?(?:reasons?|point|need|problems?|issues?|errors?|bugs?|warnings?|faults?|failures?|mistakes?)|(?:errors|bugs|warnings|problems|issues)|the (?:point|need|reason))\b|\bstill (?:running|in progress|open|pending|an?|on|valid|needed|useful|fine|ok|okay|good|to|being|waiting|building|the plan|true|possible|going|works?|working|passes|passing(?:[.!,]|$)|pass|fast|compatible|used|required|supported|maintained|don't get|don't understand|need|have to|want|think)\b",
    )
});

/// Reports that need no further tie, after work.
static REPORTS: LazyLock<Regex> = LazyLock::new(|| {
    let subject = r"(?:it|they|this|that|the [a-z'-]+(?: [a-z'-]+){0,2}|nothing|there(?:'s| is| are| was| were))";
    at_start(&[
        // None of the changes are showing; no effect; it looks the same.
        r"(?:none|neither|nothing|not one|not a single one)\b(?: of)?(?: [a-z']+){0,5} (?:show|appl|work|chang|visible|happen|load|sav|updat|appear|different|there|render|fixed|done|new|linted|run)[a-z]*\b",
        r"(?:i (?:see|notice|get) )?no (?:difference|effect|change|improvement|changes|visible changes?|output|response|result)\b",
        &format!(
            r"(?:still |it |this |they |all |everything |that |ui |the ui )*(?:looks?|sounds?|seems?|feels?|behaves?) (?:{ADVERBS} )*(?:the same|identical|unchanged|off|wrong|weird|broken|terrible|ugly|worse|empty|blank|bad|like (?:shit|crap|garbage|before|nothing))\b"
        ),
        // What the change has spoiled.
        r"(?:it|that|this|which|you|your (?:change|fix|commit|edit|migration|refactor|update)) (?:just |also |completely |now |has |have |still )*(?:lost|broke|broken|deleted|removed|wiped|killed|dropped|overwrote|erased|ruined|undid|duplicated|messed|hides|hid|breaks|deletes|removes|overwrites|duplicates)\b",
        r"(?:the |your )(?:changes?|edits?|fix|patch|update)(?: you \w+)? (?:weren't|wasn't|didn't|haven't|hasn't|aren't|isn't|doesn't|don't|did not|were not|was not|has no|have no)\b",
        r"i only (?:see|get|have|got)\b|i(?:'m| am) (?:still |now )*getting +x\b",
        r"(?:\d+x|\d+ times|much|way|far|even|still|a lot)? ?(?:slower|worse|uglier|longer) than\b",
        r"(?:i |we )?still (?:see|seeing|get|getting|shows?|says?|fails?|there|no|not|have (?:the|an?|this|that|some|all)|having|\d)",
        r"i can no longer\b|i(?:'m| am) no longer able\b",
        r"(?:i )?(?:still )?(?:can't|cannot|can not|couldn't|unable to) (?:even |still |now )?(?:see|find|open|load|run|access|reach|click|hit|log|login|sign|scroll|select|edit|save|build|start|install|connect|use|type|close|submit|drag|get)\b",
        // Errors that the person meets.
        r"(?:i'm |i am |i |we |we're |it |this |that |still |always )*(?:getting|got|get|gets|seeing|gives?|gave|throws?|threw|returns?|returned|shows?|says?|having)(?: me| us)?\b.{0,60}\b(?:errors?|exception|crash|[45]\d\ds?|undefined|null|nan|traceback|failed|blank page|white screen|nothing)\b",
        r"(?:(?:new|another|different|same|now an?|some) )?errors? (?:when|on|in|after|while|again|still|now|during|at)\b",
        r"(?:http )?[45]\d\d(?: error| errors)?(?: (?:on|for|when|every|from|now|in|at|again|after)\b|[.!,]|\s*$)",
        r"(?:another|new|same|different) (?:[a-z]+ )?(?:errors?(?::|[.,!]|\s*$)|(?:errors?|issue|problem|bug)(?:[.,!]|\s*$| (?:now|again|when|on|in|after|with|here)\b))",
        r"now (?:the |my |our |it |it's |its |there |there's |i |we |all |every|some |none |nothing )(?:.*\b)?(?:fails|crash(?:es|ed)|no longer|doesn't|isn't|can't|won't|don't|aren't|(?:is|are|it's|its|gets?|got|looks?|shows?|seems?|has|have|was|there's) (?:[a-z']+ ){0,3}?(?:failing|broken|nothing|wrong|missing|gone|not|no|stuck|empty|blank|twice|duplicated?)|(?:gives?|throws?|gets?|getting|see|seeing|returns?) (?:me |us )?(?:an? |the same |this |these |another |new |lots of )?(?:[a-z]+ ){0,2}?errors?)\b",
        r"there(?:'s| is| are| was| were)(?: still| now| also)* (?:nothing|not (?:much|any)|missing|an? (?:error|bug|typo|gap|problem|issue) (?:in (?:it|your|this|that|line)|when|now|with (?:it|this|that|your)))\b",
        // What it should have been.
        r"(?:you )?should(?:n't| not)? have\b|(?:should've|shouldn't've)\b",
        r"(?:i|we) (?:don't|do not|didn't|did not) (?:(?:want|need) (?:the|that|this|an?|it|any|you|your|these|those|them)|like (?:that|this|it|how|your|these|those|them))\b",
        &format!(
            r"(?:way |far |much |still |a bit |a little |kinda )*too (?:{EXCESS}(?:[,.!]|\s*$| (?:now|still|for|on)\b)|(?:many|much) [a-z]+[.! ]*$)"
        ),
        // Lost in a subjectless sentence: *doesn't follow the style*.
        r"(?:doesn't|does not|isn't|didn't|won't|can't) (?:work|compile|build|run|follow|look|match|handle|start|load|show|use|respect|include|cover|support|pass|render|fit|update|save|return|apply|help|do|contain|open|close|even|seem to)\b",
        &format!(
            r"(?:clippy|eslint|tsc|mypy|ruff|ci|the (?:linter|compiler|build|pipeline)|pylint|typescript|prettier|sonar|it|lint) (?:still |now )*(?:complains?|complaining|screams|fails|errors|{SPOILS})\b"
        ),
        &format!(
            r"(?:when(?:ever)?|if|after|every time|as soon as|each time) (?:the )?(?:i|we)\b.*\b(?:nothing (?:happens|shows|changes)|errors?|crash(?:es|ed)?|fails?|doesn't|does not|isn't|is not|won't|goes (?:blank|back|away|to)|disappears?|stays?|freezes?|hangs?|breaks?|[45]\d\d|undefined|it (?:still|just|only|shows|says|goes|gives|jumps|opens|closes|takes|redirects|{SPOILS})|gets? (?:stuck|lost|cut)|missing|gone|empty|blank|wrong)\b"
        ),
        &format!(
            r"but (?:now )?{subject} (?:still |just |also |now |only )*(?:stays?|remains?|keeps?|no|not|has no|have no)\b"
        ),
    ])
});
/// The same anywhere in a sentence.
static REPORTS_ANYWHERE: LazyLock<Regex> = LazyLock::new(|| {
    let subject = r"(?:it|they|this|that|the [a-z'-]+(?: [a-z'-]+){0,2}|nothing|there(?:'s| is| are| was| were))";
    anywhere(&[
        r"\b(?:slower|worse|longer|uglier) than (?:before|it was)\b|\b(?:same|exactly) as before[.! ]*$|\btwice as (?:long|slow)\b|\b(?:back|like|as) (?:to )?(?:square one|it was before)\b",
        r"\b(?:since|after|because of|with) your (?:last |latest |recent )?(?:commit|change|changes|fix|edit|edits|update|patch|refactor|refactoring|migration)\b",
        r"\bno longer (?:works?|shows?|loads?|builds?|compiles?|runs?|starts?|opens?|appears?|renders?|responds?|passes|there|visible|possible)\b",
        r"\b(?:builds?|ci|pipelines?|tests?) (?:is|are|went|goes|turned|gone) (?:all |still |now |completely )*red\b",
        // Good so far, but …
        &format!(
            r"\bbut (?:now )?{subject}(?:'s|'re)? (?:still |just |also |now |only )*(?:stays?|remains?|keeps?|doesn't|does not|don't|do not|didn't|isn't|is not|aren't|are not|wasn't|won't|can't|cannot|no|not|has no|have no|no longer|never|nothing|missing|only|looks?|overlaps?|fails?|failed|crashes|breaks?|disappears?|(?:is|are) (?:still|too|missing|gone|wrong|empty|broken|now|off|not))\b"
        ),
        r"\bbut (?:now )?i (?:still |now )*(?:can't|cannot|can not|couldn't|don't see|do not see|get (?:an?|the|this)|see (?:no|the same))\b",
        r"\b(?:shows?|showing|says?|goes|uses?|using|displays?|opens?|returns?|returned|gives?|points?|prints?|is|are|it's|its|got) [^.?]*\binstead of\b",
        r"\b(?:that's|that is|that was|this is|it's|its|is) only (?:half|part|some|one|a part|a quarter) of\b|\bwhich is (?:wrong|not|bad|annoying|weird|incorrect|useless)\b",
        r"\b(?:more|longer|bigger|complicated) .{0,20}\bthan (?:necessary|needed|i (?:asked|wanted))\b|\bway too \w+",
        r"\bso (?:that )?it (?:doesn't|does not|stops?|won't) (?:do (?:that|this)|doing)\b",
    ])
});
/// What the work should be, said first: *it should be sorted*. After an order it describes the order.
static SHOULD_BE: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"(?:it|this|that|they|there|these|those) (?:should(?:n't| not|nt)|(?:was|were|is|are)(?:n't| not)? supposed to|should have|should've|must not|mustn't)\b",
        r"(?:no,? )?(?:should|must) (?:be|have been|say|use|not) ",
    ])
});
/// Main clauses that order or announce something: *if i find errors, fix them*.
static MAIN_ORDERS: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"(?:i'll|i will|we'll|we will|we can|i can|i'd|retry|restart|stop|log|it should)\b",
    ])
});

/// Questions about one's own work: *i get an error here, what is the proper way?*
static ASKS_ADVICE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"\b(?:proper|right|best|correct|recommended|usual|idiomatic) (?:[a-z]+ )?way\b")
});
/// Words before a fault that make a reason or a condition of it.
static SUBORDINATES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:as|since|because|if|where|which|whether|until|so that|in case|once|who)\b|\b(?:should|must|shall|may|might|could|would|will|to)(?: never)? *$",
    )
});
/// Statements about something else than the work, or about nothing bad.
static IS_ELSEWHERE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:still (?:running|in progress|open|pending|valid|needed|useful|fine|ok|okay|good|to|waiting|building|true|possible|going|works?)|is (?:fine|ok|okay)|that's (?:fine|ok|okay|good|great|expected|normal)|last (?:week|month|year|night)|yesterday|earlier today|today|tomorrow|by the way|btw|fyi|not sure|see why not|no (?:problem|complaints|worries|rush|objections?|hurry|issues?)|too (?:late|much trouble|early)|should be (?:fine|enough|ok)|wondering|in (?:case|theory)|nothing (?:else|more|left)|i(?:'m| am| was) (?:wrong|mistaken)|my (?:bad|mistake|fault)|(?:changes?|output|response|results?) (?:is |are )?(?:needed|required|necessary|please)|should(?:n't| not) (?:be (?:(?:an?|any) (?:problem|issue|big deal)|too (?:hard|bad|difficult|long))|cause|matter|take (?:too |very )?long)|(?:it|this|that|they) should (?:also|then)|but (?:fine|ok|okay|good enough)|another (?:ticket|issue|pr|story)|as well[,.]|(?:doesn't|does not|don't) (?:matter|have to|need|mean|hurt|mind|care)|pushed (?:a|the|my)|by hand|myself|somewhere in my|normal|as expected|that's because|for us|(?:isn't|aren't|not|no longer) (?:used|needed|required|relevant|maintained|necessary|important|urgent)|by design|different (?:ticket|issue|topic|story|bug)|i (?:just |already |have |'ve )*(?:changed|fixed|renamed|updated|corrected|moved|replaced|adjusted))\b",
    )
});
/// Statements about other people, and about what the person has or does.
static IS_OF_OTHERS: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"(?:i|i'm|i've|i'll|i'd|we|we're|we've|we'll|our|he|she|someone|somebody|(?:my|our|the|some) (?:colleague|boss|laptop|team|friend|manager|customer|client|users?|coworker|\w+ team|staging)s?|users|customers|clients|people)\b",
    ])
});

/// What a message says besides a sentence of it.
struct Surroundings<'a> {
    previous: Option<&'a RequestWords>,
    turn: AgentTurn,
    /// The message says nothing else.
    is_bare: bool,
    /// The message gives an order.
    orders: bool,
}

impl Surroundings<'_> {
    /// Returns true if a clause stands for the work or has a word of the request.
    fn ties(&self, clause: &str) -> bool {
        STANDS_FOR_WORK.is_match(clause) || self.mentions(clause)
    }

    fn mentions(&self, clause: &str) -> bool {
        self.previous.is_some_and(|request| request.mentions(clause))
    }
}

/// Returns true if the beginning of a folded message, without quotes, reports a fault.
pub(super) fn reports(beginning: &str, previous: Option<&RequestWords>, turn: AgentTurn) -> bool {
    const MAX_SENTENCES: usize = 5;
    let moods = || sentences(beginning).flat_map(|sentence| sentence.split(", ")).map(mood);
    if ASKS_ADVICE.is_match(beginning) {
        return false;
    }
    let is_bare = beginning.split_whitespace().count() <= MAX_BARE
        && !turn.has_asked
        && moods().all(|mood| mood == Mood::States)
        && !sentences(beginning).any(good_news::is_good_news);
    let orders = moods().any(|mood| mood == Mood::Orders);
    let around = Surroundings { previous, turn, is_bare, orders };
    let mut has_ordered = false;
    for sentence in sentences(beginning).take(MAX_SENTENCES) {
        if is_report(sentence, has_ordered, &around) {
            return true;
        }
        if mood(sentence) == Mood::Orders {
            has_ordered = true;
            // What follows is what is ordered.
            if sentence.ends_with(':') {
                return false;
            }
        }
    }
    false
}

/// Returns true if a sentence reports a fault. `has_ordered` is true if one before it gave an order.
fn is_report(sentence: &str, has_ordered: bool, around: &Surroundings<'_>) -> bool {
    if sentence.split_whitespace().count() > MAX_REPORT
        || IS_ELSEWHERE.is_match(sentence)
        || good_news::is_good_news(sentence)
    {
        return false;
    }
    let mood = mood(sentence);
    let has_worked = around.turn.has_worked;
    if mood == Mood::Supposes {
        let orders = |(_, main): (&str, &str)| {
            MAIN_ORDERS.is_match(main) || vocabulary::mood(main) == Mood::Orders
        };
        return has_worked
            && REPORTS.is_match(sentence)
            && !sentence.contains("should")
            && !sentence.split_once(", ").is_some_and(orders);
    }
    if mood == Mood::States {
        if (complaint::states_fault(sentence) && !is_other(sentence)) || meets(sentence, around) {
            return true;
        }
        if has_worked
            && (REPORTS.is_match(sentence)
                || REPORTS_ANYWHERE.is_match(sentence)
                || (!has_ordered && SHOULD_BE.is_match(sentence)))
        {
            return true;
        }
    }
    let follows_order = has_ordered || mood != Mood::States;
    // *The cache is empty, right?*
    let is_asked_about = |at: usize| at == 0 && mood == Mood::Asks;
    clauses(sentence).enumerate().any(|(at, clause)| {
        if vocabulary::mood(clause) != Mood::States {
            return false;
        }
        meets(clause, around)
            || (has_worked && !is_asked_about(at) && is_fault(clause, follows_order, around))
    })
}

fn meets(statement: &str, around: &Surroundings<'_>) -> bool {
    let is_still_so = || STILL.is_match(statement) && (!around.orders || around.ties(statement));
    (MET.is_match(statement) || is_still_so()) && !MEETS_NOTHING.is_match(statement)
}

/// Returns true if a statement names a fault and is tied to the work.
fn is_fault(clause: &str, follows_order: bool, around: &Surroundings<'_>) -> bool {
    if follows_order && (REPORTS.is_match(clause) && TIE.is_match(clause)) {
        return true;
    }
    if IS_OF_OTHERS.is_match(clause) && !DESCRIBES.is_match(clause) {
        return false;
    }
    let fault = IS_WRONG.find(clause).or_else(|| DOES_WRONG.find(clause));
    let Some(fault) = fault else {
        return around.is_bare
            && (DESCRIBES.is_match(clause)
                || (IS_SAID_OF.is_match(clause)
                    && !IS_WISHED.is_match(clause)
                    && around.mentions(clause)));
    };
    if SUBORDINATES.is_match(&clause[..fault.start()]) {
        return false;
    }
    around.is_bare
        || TIE.is_match(clause)
        || (!follows_order && around.ties(clause))
        || (clause.contains("right now") && around.mentions(clause))
}

/// Returns true if an end of a folded message says in plain words that the work is wrong.
pub(super) fn is_called_wrong(text: &str) -> bool {
    let end = MessageEnd::new(text);
    let bare = without_quotes(text);
    end.has_remark(is_about_work)
        || sentences(&bare).any(|sentence| complaint::states_fault(sentence) && !is_other(sentence))
}

fn is_about_work(cue: CueWord, place: &WordContext<'_>) -> bool {
    cue.is_about_work() && frustration::is_frustration_cue(cue, place)
}

/// Returns true if a sentence says nothing bad of the work.
fn is_other(sentence: &str) -> bool {
    IS_ELSEWHERE.is_match(sentence)
        || MEETS_NOTHING.is_match(sentence)
        || good_news::is_good_news(sentence)
}

/// Returns the clauses of a sentence.
fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    static SEPARATORS: LazyLock<Regex> = LazyLock::new(|| {
        english::regex(
            r"[,:;] (?:and |but |so |because |since |as )?| - | -- |\.\.+ ?| (?:and|because|but|cause|though|although) ",
        )
    });
    SEPARATORS.split(sentence).map(str::trim).filter(|clause| !clause.is_empty())
}
