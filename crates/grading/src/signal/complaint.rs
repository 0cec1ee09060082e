//! Detects plain complaints in English: *doesn't work*, *still broken*, *why did you …*, *I told
//! you …*, profanity. These come on top of the specification's patterns, which are in
//! `frustration.rs`.
//!
//! Works sentence by sentence. A sentence that supposes, asks for or quotes something is not a
//! complaint.

use std::sync::LazyLock;

use regex::Regex;

use super::vocabulary::{Mood, at_start, mood};
use crate::english;

/// Complaints that match anywhere in an unconditional sentence.
const ANYWHERE: [&str; 17] = [
    // The user has said it before.
    r"\bi(?:'ve| have|'d)? (?:(?:already|just|clearly|specifically|explicitly|literally|never|repeatedly) )*(?:told|asked) you\b",
    r"\bi (?:already |clearly |specifically |explicitly |literally )*said (?:that |this |it )?(?:already|before|no|not|do not|don't)\b|\bi said [^.!?]{1,40}, not\b|\bas i(?:'ve| have)? (?:already )?said (?:before|already|twice|multiple)",
    r"\bi (?:didn't|did not|never|haven't) (?:ask|asked|want|wanted|tell|told|say|said) (?:you|for|to|that|this|it)\b",
    r"\bhow (?:many|often) (?:times )?(?:do|must|should|did) i\b|\b(?:second|third|fourth|fifth|\d+(?:nd|rd|th)) time (?:i|i'm|that|now|you|in)\b|\b(?:two|three|four|five|\d+|several|so many|multiple) times (?:now|already)\b|\btold you (?:this |that )?(?:already|before|twice|\w+ times)\b",
    r"\bread what i (?:wrote|said|asked)\b|\bnot what i (?:asked|wanted|meant|said|need|needed)\b",
    // What the agent did.
    r"\byou (?:keep|kept) \w+ing\b|\byou(?:'re| are) (?:still |again |just |clearly |completely )*(?:not listening|going (?:around |round )?in circles|wrong|hallucinating|ignoring|wasting|lying|making (?:it|things|this) worse|useless|guessing)\b",
    r"\byou (?:never|didn't even|did not even|didn't actually|haven't even) \w+|\byou (?:didn't|did not) (?:do|read|listen|fix|follow|answer|change|understand|finish|run|test)\b|\byou (?:were|are) supposed to\b|\byou said (?:it|that|this|they)(?:'s| was| is| were| are| would)? (?:\w+ )?(?:fixed|done|working|work|passing|pass|tested|ready)\b",
    r"\byour (?:\w+ )?(?:fix|change|changes|code|edit|edits|version|solution|patch|refactor|commit|suggestion|answer) (?:broke|breaks|made|makes|doesn't|does not|didn't|did not|is wrong|is broken|fails|failed|causes?d?|introduced|crashes|is useless|makes no)\b",
    r"\bhallucinat(?:ed|ing|ion)\b|\byou made (?:that|this|it) up\b",
    // How the work is going.
    r"\b(?:it's|its|that's|this is|is|made it|makes it|making it|it got|gets|got|even|much) (?:even |much |now )*worse\b",
    r"\bmakes? (?:absolutely )?no sense\b|\bwaste of (?:my |everyone's )?time\b|\blosing (?:my )?patience\b|\bi give up\b|\b(?:sick|tired) of (?:this|you|it)\b|\bfed up\b|\bin circles\b|\bfor the love of\b|\bkidding me\b|\bhow hard (?:can|is) (?:it|this)\b|\bwhat a (?:mess|waste|disaster|joke)\b|\bi can't believe\b",
    r"\b(?:this|that|it|that's|it's|this's|everything|the (?:code|answer|result|output|page|test|layout)) (?:is |was |looks )?(?:just |all |so |complete(?:ly)? |total(?:ly)? |absolute(?:ly)? |pure |really |such |a )*(?:garbage|trash|useless|terrible|horrible|awful|nonsense|ridiculous|absurd|unacceptable|a mess|a joke|pathetic|crap|rubbish|stupid|dumb|unusable)\b",
    r"\byou(?:'ve| have)? (?:just |also |again |now |completely |accidentally |somehow |literally |still |fucking )*(?:broke|broken|deleted|overwrote|overwritten|ignored|messed|ruined|lied|undid|undone|wrecked|destroyed|screwed|wasted|misread|reverted my|removed my|dropped the)\b",
    r"\byou(?:'ve| have)? (?:just |also |again |still )*(?:forgot|forgotten|missed|skipped)\b[^.?]*(?:\bagain\b|!|\bthe (?:whole )?point\b|\bhalf\b)",
    r"\bwhat (?:the \w+ )?(?:are|were) you (?:doing|thinking|talking)\b|\bhow did you (?:mess|break|manage|screw)\b|\bdid you (?:even|not|actually) (?:read|look|run|test|try|listen|check)\b|\bare you (?:kidding|serious|joking|even|blind|stupid|listening|dumb)\b",
    r"\b(?:makes|made) (?:it|things|everything) worse\b|\bthe same (?:mistake|error|bug) (?:again|over and over)\b|\bover and over\b",
    r"\bundo (?:that|this|it) (?:right )?now\b|\brevert everything\b|\bleave (?:it|that|this|my \w+|the \w+) alone\b",
];

/// Complaints that match only at the start of a sentence.
const AT_THE_BEGINNING: [&str; 16] = [
    r"(?:(?:it|this|that|they|these|both|which|the \w+(?: \w+)?)(?:'s)? )?(?:(?:is|are|was|just|also|still|now|really|simply|seem to|seems to) )*(?:(?:does|did|do|is|are|has|have|was|were)(?:n't|nt| not)|won't|wont|not|never) (?:(?:even|really|seem to|seem|actually|quite) )*(?:working|work|works|worked|helping|help|helped|compiling|compile|running|loading|fixed|solved|solve|fix|building|build|done|there yet|better)\b[^?]{0,60}$",
    r"(?:(?:it|this|that|they|i|we|the \w+(?: \w+)?|and)(?:'s|'m|'re)? (?:is |are |am |was )?)*still (?:(?:just|completely|totally|also) )*(?:broken|fail\w*|crash\w*|wrong|red|blank|empty|nothing|there|the same|throw\w*|error\w*|get|getting|gets|see|seeing|no|not|doesn't|doesnt|don't|isn't|isnt|does nothing|does not|can't|won't|hang\w*|stuck|slow|missing|incorrect)\b",
    r"(?:(?:it's|its|with|and|the|exactly|still|gives|getting|get) )*same (?:exact )?(?:error|issue|problem|crash|thing|result|mistake|bug|failure|output)s?\b(?: (?:as|again|still|here|happens|every)\b|\s*[.!,;:]|\s*$)",
    r"(?:(?:and|but|seriously|wait) )*why (?:the \w+ )?(?:did|do|are|have|would|were|must|can't|don't|didn't|won't|haven't|aren't) (?:you|u)\b",
    r"why (?:is|does) (?:it|this|that|the \w+) (?:still|again)\b",
    r"(?:please |just |can you )?stop(?:\s*$| it\b| that\b| this\b| now\b| just\b| doing\b| apologi\w+| \w+ing (?:my|the|things|that|this|files|comments|emojis|code|me|so|up|to)\b| adding\b| changing\b| making\b| using\b| trying\b)",
    r"(?:still |completely |totally |just |all |plain |also |the )*wrong\b(?:\s*[.!,;:]|\s*$| again\b| (?:file|branch|folder|place|directory|line|answer|function|one|test|repo|version)\b)",
    r"(?:that's|thats|that is|this is|it's|its|it is|that was|this was) (?:still |also |just |really |simply |completely |totally |all |plain )*(?:not (?:it|what|right|correct|how|even|working|true|good enough|acceptable|fixed|the (?:point|problem|issue|file|one))|wrong|broken|incorrect|worse|bad)\b",
    r"(?:that|this|it) (?:isn't|isnt|wasn't|is not|was not) (?:it|what|right|correct|how|even|true|fixed|good enough|acceptable)\b",
    r"(?:it|this) (?:isn't|is not|wasn't|doesn't|does not|didn't)\s*[.!]*$",
    r"nothing (?:works|worked|changed|happens|happened|loads|is working|shows)\b|(?:now )?nothing (?:works|loads)\b|everything (?:is|got|just) (?:broken|gone|wrong|broke|worse)\b|all (?:the )?tests (?:fail|are failing|are broken|are red)",
    r"(?:now )?(?:it|that|this|they|the \w+(?: \w+)?) (?:just |always |now |also |even )*(?:fails?|failed|crashe[sd]|breaks|broke|hangs|throws|errors out|times out|is gone|is broken|are broken|is blank|does nothing|did nothing)\b[^?]{0,30}$",
    r"now (?:the \w+(?: \w+)?|it|everything|nothing|they) (?:\w+ )?(?:doesn't|don't|does not|isn't|aren't|is broken|are broken|fails?|crashes|won't|can't|loads|works)\b",
    r"(?:this|that|it|the \w+)(?:'s| is| was)? (?:\w+ )?(?:wrong|broken|failing|failed|crashing|crashed|error)\b.{0,20}\bagain\b|again the (?:wrong|same)\b|again\s*\?+|not again\b",
    r"(?:completely |totally |absolutely |utterly )*(?:useless|terrible|horrible|awful|garbage|trash|nonsense|ridiculous|unacceptable|rubbish|pathetic|unbelievable|disappointing)(?: (?:answer|response|result|work|output|code|fix|job))?\s*(?:[.!,;]|$)",
    r"(?:no luck|no change|not fixed|not solved|not helpful|not good|didn't help|doesn't help|no it (?:doesn't|isn't|didn't)|don't (?:ever )?(?:touch|do that|change) \w+.*\b(?:again|already)\b)\b",
];

/// Strong words, which are complaints unless they praise.
const OUTCRIES: &str = r"\b(?:wtf|wth|omfg|ffs|jfc|fgs|bullshit|bs|fuck(?:ing|ed|s|in)?|fck|shit(?:ty|s)?|crap(?:py)?|damn(?: ?it)?|dammit|goddamn(?:it)?|bloody hell|jesus(?: christ)?|christ|omg no|grr+|idiot|idiotic|moron|what the (?:hell|heck|fuck|actual))\b";
const PRAISED: &str = r"\b(?:fuck(?:ing|in)?|damn|holy (?:shit|crap|fuck)|hot damn|hell)[,! ]+(?:yes|yeah|great|good|nice|awesome|amazing|cool|perfect|brilliant|love|beautiful|that works|it works|this is (?:great|good|amazing|awesome)|that's (?:great|good|amazing|awesome|nice|fast))\b|\bno shit\b";

/// Words that make a wish, a supposition or a subject of the work of what follows.
const SUPPOSES: &str = r"\b(?:if|unless|whether|in case|suppose|when(?:ever)?|so that|such that|until|where|users?|customers?|people|should|could|would be|might|tests? that|case|message|text|word)\b";
/// Questions about a reason, as opposed to *why on earth*.
const ASKS_FOR_REASONS: &str = r"\bwhy (?:did|do|are|have|would|were|must|don't|didn't|won't|haven't|aren't) (?:you|u) (?:\w+ )?(?:choose|chose|chosen|pick|picked|think|recommend|prefer|need|suggest|suggesting|believe|want|use|using|went|go with|going with|decide|decided|say|expect|consider|call it|do it this way|assume)\b";

struct ComplaintPatterns {
    /// Alternation of [`OUTCRIES`], [`ANYWHERE`] and [`ASKED`], matched anywhere in a sentence.
    any: Regex,
    anywhere: Regex,
    at_the_beginning: Regex,
    outcries: Regex,
    praised: Regex,
    supposes: Regex,
    asks_for_reasons: Regex,
}

static PATTERNS: LazyLock<ComplaintPatterns> = LazyLock::new(|| ComplaintPatterns {
    any: english::regex(&[OUTCRIES, &ANYWHERE.join("|"), &ASKED.join("|")].join("|")),
    anywhere: english::regex(&ANYWHERE.join("|")),
    at_the_beginning: at_start(&AT_THE_BEGINNING),
    outcries: english::regex(OUTCRIES),
    praised: english::regex(PRAISED),
    supposes: english::regex(SUPPOSES),
    asks_for_reasons: english::regex(ASKS_FOR_REASONS),
});

/// Returns true if a folded sentence complains, by what it says or by its tone.
pub(super) fn is_complaint(sentence: &str) -> bool {
    let patterns = &*PATTERNS;
    // Most sentences are not complaints; one search rules them out instead of several.
    let may_complain = patterns.any.is_match(sentence);
    if !may_complain && !patterns.at_the_beginning.is_match(sentence) {
        return false;
    }
    // A strong word within a path or an identifier is no outcry.
    let is_name = |hit: regex::Match<'_>| {
        let mut after = sentence[hit.end()..].chars();
        let joins = |c: Option<char>| c.is_some_and(|c| "._-/\\=@".contains(c));
        joins(sentence[..hit.start()].chars().next_back())
            || (joins(after.next()) && after.next().is_some_and(char::is_alphanumeric))
    };
    if patterns.outcries.find_iter(sentence).any(|hit| !is_name(hit)) {
        return !patterns.praised.is_match(sentence);
    }
    states_fault(sentence)
}

/// Returns true if a folded sentence says that something is wrong with the agent's work, in
/// whatever tone.
pub(super) fn states_fault(sentence: &str) -> bool {
    let patterns = &*PATTERNS;
    if patterns.at_the_beginning.is_match(sentence) && !patterns.asks_for_reasons.is_match(sentence)
    {
        // A plain statement of the agent's fault. A condition later in the sentence is part of it.
        let starts = patterns.supposes.find(sentence).is_some_and(|hit| hit.start() < 12);
        if !starts {
            return true;
        }
    }
    patterns.anywhere.is_match(sentence)
        && !patterns.supposes.is_match(sentence)
        && !matches!(mood(sentence), Mood::Orders | Mood::Asks)
        || is_accusation(sentence)
}

/// Rhetorical questions.
const ASKED: [&str; 7] = [
    "what are you doing",
    "how did you mess",
    "how did you break",
    "did you even ",
    "are you kidding",
    "are you serious",
    "how many times",
];

fn is_accusation(sentence: &str) -> bool {
    ASKED.iter().any(|words| sentence.contains(words))
}
