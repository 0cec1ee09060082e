//! Detects objections that only a turn of work before them makes clear: what is missing or looks
//! wrong in it, the output of a program that the person ran, and a part of the request asked for
//! again. The same words after mere talk are questions and new tasks. English only.

use std::sync::LazyLock;

use regex::Regex;

use super::objection::RequestWords;
use super::{good_news, sentences};
use crate::english;

/// Maximum lengths in words: of a report, and of an order in passing.
const MAX_REPORT: usize = 40;
const MAX_ORDER: usize = 10;

/// Words before a report that do not change it.
const ALSO: &str = r"^(?:(?:and|but|now|so|also|well|ok|okay|hmm+|hm|no|nope|ah|oh|uh|ugh|argh|wait|hey|yeah|yes|thanks|nice|great|sorry|unfortunately|sadly|weird|strange|just|fyi|however|wtf|ffs|fgs)[,.! ]+){0,3}";
/// Adverbs between a verb and what it says.
const ADVERBS: &str = r"(?:still|now|just|all|also|completely|totally|a bit|a little|kind of|kinda|really|slightly|way|far|even|again|always|only|pretty much|exactly|basically|suddenly|currently)";

/// What work may be too much of: *too small*, but not *too good*.
const EXCESS: &str = "(?:small|big|large|long|short|slow|fast|wide|narrow|high|low|dark|bright|light|pale|much|many|few|little|complicated|complex|verbose|wordy|loud|quiet|early|late|close|far|tall|thin|thick|vague|strict|aggressive|generic|noisy|tight|cramped|heavy|crowded|busy|tiny|huge|formal|technical|hard|easy)";

/// What a person says of work that is wrong, after *is*, *looks* and the like.
static IS_WRONG: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"(?:\b(?:is|are|was|were|am|looks?|seems?|feels?|sounds?|got|gets|stays?|comes out|came out|appears?|became)|'s|'re)(?: to be)?(?: {ADVERBS})*? (?:missing|gone|lost|empty|blank|broken|misaligned|cut off|clipped|cropped|overlapping|off|weird|ugly|(?:the|all the) (?:same|wrong)|identical|unchanged|not there|nowhere|duplicated|doubled|stuck|frozen|unreadable|hidden|invisible|too {EXCESS}|slower|worse|wrong|incorrect|incomplete|inconsistent|reversed|upside down|unusable|failing|crashing|flickering|hard to (?:read|see)|still (?:in|on|at|there|using|visible|showing|listed|present|not)|in the wrong|out of (?:order|place|sync))\b"
    ))
});
/// What the work does wrong, said without *is*.
static DOES_WRONG: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"\b(?:fails?|failed|crash(?:es|ed)?|breaks?|hangs?|freezes?|throws|errors out|times out|disappears?|disappeared|overlaps?|flickers?|vanish(?:es|ed)?|stopped working)\b(?: (?:on|for|in|at|when|if|with|as|every|after|now|here|again|immediately|completely|from|under|to)\b|[.,!;]|\s*$)|\b(?:doesn't|doesnt|does not|don't|dont|do not|didn't|didnt|did not|isn't|isnt|is not|aren't|arent|are not|won't|wont|will not|not)(?: {ADVERBS}| seem to| seem| quite)* (?:work|show|updat|load|appear|render|display|respond|chang|sav|match|fit|compil|build|start|open|clos|activat|submit|send|play|fill|align|refresh|redirect|persist|react|mov|toggl|stick|line up|add up|exist|pass|print|visible|there|clickable|applied|reflected|includ|connect|scroll|click|look (?:like|right|good|the same))[a-z]*\b|\b(?:does|do|did) nothing\b|\bkeeps? (?:on )?[a-z]+ing\b|{ALSO}there(?:'s| is| are| was| were)(?: {ADVERBS})* (?:no|nothing|not any|missing|an? (?:error|bug|typo|gap|problem|issue))\b"
    ))
});
/// Words that tie a sentence to the work that was just done.
static TIE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:it|its|it's|this|that|thats|that's|they|them|these|those|now|still|again|anymore|any more|either|no longer|than before|as before|after (?:your|the|that|this)|since (?:your|the|that)|even with|your)\b",
    )
});

/// Reports and corrections that need no further tie.
static REPORTS: LazyLock<Regex> = LazyLock::new(|| {
    let subject = r"(?:it|they|this|that|the [a-z'-]+(?: [a-z'-]+){0,2}|nothing|there(?:'s| is| are| was| were))";
    let alternatives = [
        // None of the changes are showing; no effect.
        format!(r"{ALSO}(?:none|neither|nothing|not one|not a single one)\b(?: of)?(?: [a-z']+){{0,5}} (?:show|appl|work|chang|visible|happen|load|sav|updat|appear|different|there|render|fixed|done|new)[a-z]*\b"),
        format!(r"{ALSO}(?:i (?:see|notice|get) )?no (?:difference|effect|change|improvement|changes|visible change|visible changes|output|response|result)\b"),
        // The same as before, or worse.
        r"\b(?:slower|worse|longer|uglier) than (?:before|it was)\b|\b(?:same|exactly) as before[.! ]*$|\btwice as (?:long|slow)\b|\b(?:back|like|as) (?:to )?(?:square one|it was before)\b".to_owned(),
        format!(r"{ALSO}(?:still |it |this |they |all |everything |that )*(?:looks?|sounds?|seems?|feels?|behaves?) (?:{ADVERBS} )*(?:the same|identical|unchanged|off|wrong|weird|broken|terrible|ugly|worse|empty|blank|bad|like (?:shit|crap|garbage|before))\b"),
        // What is lost.
        format!(r"{ALSO}(?:it|that|this|which|you|your (?:change|fix|commit|edit|migration|refactor|update)) (?:just |also |completely |now |has |have )*(?:lost|broke|broken|deleted|removed|wiped|killed|dropped|overwrote|erased|ruined|undid|duplicated|messed|hides|hid|breaks|deletes|removes|overwrites|duplicates)\b"),
        r"\b(?:since|after|because of|with) your (?:last |latest |recent )?(?:commit|change|changes|fix|edit|edits|update|patch|refactor|refactoring|migration)\b".to_owned(),
        format!(r"{ALSO}(?:i |we )?still (?:see|seeing|get|getting|shows?|says?|fails?|there|no|not|have (?:the|an?|this|that|some|all)|having)\b"),
        r"\bi can no longer\b|\bi(?:'m| am) no longer able\b|\bno longer (?:works?|shows?|loads?|builds?|compiles?|runs?|starts?|opens?|appears?|renders?|responds?|passes|there|visible|possible)\b".to_owned(),
        format!(r"{ALSO}(?:i )?(?:still )?(?:can't|cant|cannot|can not|couldn't|unable to) (?:even |still |now )?(?:see|find|open|load|run|access|reach|click|hit|log|login|sign|scroll|select|edit|save|build|start|install|connect|use|type|close|submit|drag|get)\b"),
        // Errors that the person meets.
        format!(r"{ALSO}(?:i'm |im |i am |i |we |we're |it |this |that |still |always )*(?:getting|got|get|gets|seeing|gives?|gave|throws?|threw|returns?|returned|shows?|says?|having)(?: me| us)?\b.{{0,60}}\b(?:errors?|exception|crash|[45]\d\d|undefined|null|nan|traceback|failed|blank page|white screen|nothing)\b"),
        format!(r"{ALSO}(?:(?:new|another|different|same|now an?|some) )?errors? (?:when|on|in|after|while|again|still|now|during|at)\b"),
        format!(r"{ALSO}(?:http )?[45]\d\d(?: error| errors)?(?: (?:on|for|when|every|from|now|in|at|again|after)\b|[.!,]|\s*$)"),
        format!(r"{ALSO}now (?:the |my |our |it |it's |its |there |there's |i |we |all |every|some |none |nothing )(?:.*\b)?(?:fails|crash(?:es|ed)|no longer|doesn't|isn't|can't|won't|don't|aren't|(?:is|are|it's|its|gets?|got|looks?|shows?|seems?|has|was|there's) (?:[a-z']+ ){{0,3}}?(?:failing|broken|nothing|wrong|missing|gone|not|no|stuck|empty|blank|twice|duplicated?)|(?:gives?|throws?|gets?|getting|see|seeing|returns?) (?:me |us )?(?:an? |the same |this |these |another |new |lots of )?(?:[a-z]+ ){{0,2}}?errors?)\b"),
        r"\b(?:builds?|ci|pipelines?|tests?) (?:is|are|went|goes|turned|gone) (?:all |still |now |completely )*red\b".to_owned(),
        // Good so far, but …
        format!(r"\bbut (?:now )?{subject} (?:still |just |also |now |only )*(?:stays?|remains?|keeps?|doesn't|doesnt|does not|don't|dont|do not|didn't|isn't|is not|aren't|are not|wasn't|won't|can't|cannot|no|not|has no|have no|no longer|never|nothing|missing|only|looks?|overlaps?|fails?|crashes|breaks?|disappears?|is (?:still|too|missing|gone|wrong|empty|broken|now)|are (?:still|too|missing|gone|wrong|empty|broken|now))\b"),
        r"\bbut (?:now )?i (?:still |now )*(?:can't|cant|cannot|can not|couldn't|don't see|do not see|dont see|get (?:an?|the|this)|see (?:no|the same))\b".to_owned(),
        r"\b(?:shows?|showing|says?|goes|uses?|using|displays?|opens?|returns?|returned|gives?|points?|prints?|is|are|it's|its|got) [^.?]*\binstead of\b".to_owned(),
        r"\b(?:that's|thats|that is|that was|this is|it's|its|is) only (?:half|part|some|one|a part|a quarter) of\b".to_owned(),
        // What it should have been.
        format!(r"{ALSO}(?:it|this|that|they|there|these|those) (?:should(?:n't| not|nt)|(?:was|were|is|are)(?:n't| not)? supposed to|should have|should've|must not|mustn't)\b"),
        format!(r"{ALSO}(?:you )?(?:should(?:n't| not)? have|should've|shouldn't've)\b"),
        format!(r"{ALSO}(?:i|we) (?:don't|do not|dont|didn't|did not) (?:want|need|like) (?:the|that|this|an?|it|any|you|your|these|those|them)\b"),
        format!(r"{ALSO}you (?:can't|cannot|can not|shouldn't|should not|aren't supposed|are not supposed|weren't supposed|must not|mustn't)\b"),
        format!(r"{ALSO}i (?:(?:already|just|literally|clearly) (?:said|told you|asked (?:you|for))|already (?:gave|pasted|provided|did (?:that|this|it)|tried (?:that|this|it)))\b"),
        format!(r"{ALSO}(?:another|new|same|different) (?:[a-z]+ )?(?:errors?(?::|[.,!]|\s*$)|(?:errors?|issue|problem|bug)(?:[.,!]|\s*$| (?:now|again|when|on|in|after|with|here)\b))"),
        r"[,;.] (?:but )?i (?:said|asked for|meant|specified|told you)\b".to_owned(),
        format!(r"{ALSO}(?:way |far |much |still |a bit |a little |kinda )*too (?:{EXCESS}(?:[,.!]|\s*$| (?:now|still|for|on)\b)|(?:many|much) [a-z]+[.! ]*$)"),
        format!(r"{ALSO}(?:(?:almost|not quite|nearly|not exactly)(?:, (?:but|it|the|still|not|you|this|that)| (?:right|what|but))|close, (?:but|not|still))\b"),
        format!(r"{ALSO}wrong [a-z]+[.! ]*$"),
    ];
    english::regex(&alternatives.join("|"))
});

/// What the agent did, as the person says it: *you put it in the footer*.
static YOU_DID: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"{ALSO}(?:i think |looks like |seems like |it looks like |it seems )?you(?:'ve| have)? (?:also |only |still |just |again |now |accidentally |even |apparently )*(?:put|left|mocked|stubbed|deployed|used|made|added|renamed|changed|wrote|written|moved|created|hard-?coded|forgot|forgotten|missed|removed|deleted|dropped|replaced|touched|edited|skipped|disabled|commented|broke|broken|reverted|committed|pushed|installed|started|opened|ran|duplicated|copied|swapped|misspelled|misspelt|mixed|invented|introduced|kept|rewrote|rewritten|overwrote|placed|set|bumped|upgraded|downgraded|lost)\b"
    ))
});
/// What makes of it praise, a question or a new request.
static PRAISES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:nice|nicely|great|good|well|love|loved|thanks|thank|perfect|perfectly|awesome|my day|excellent|brilliant|happy|cool|impressive|exactly what|sense|helpful|fantastic)\b",
    )
});

/// Questions that are reproaches.
static ASKS_WHY: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"{ALSO}(?:why|how come) (?:(?:is|are) (?:there|it|this|that|they|the [a-z'-]+(?: [a-z'-]+)?) (?:still|now|so|not|missing|empty|gone|broken|a new|no|failing)\b|(?:isn't|isnt|aren't|arent|doesn't|doesnt|don't|dont|didn't|can't|cant|won't|is it not|does it not)\b|(?:does|do|did) (?:it|this|that|they|the [a-z'-]+(?: [a-z'-]+)?) (?:still|now|not|always)\b)|{ALSO}(?:where (?:did|has|have) .* (?:go|gone)\b|what happened to)|{ALSO}did you (?:even|actually|really|forget|break|miss|skip|not)\b|{ALSO}(?:shouldn't|wasn't|isn't|weren't) (?:it|this|that|there|they|you) (?:supposed|be|have|also be|meant)\b"
    ))
});
/// What happens when the person tries it: *when i click save nothing happens*.
static WHEN_I: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"{ALSO}(?:when(?:ever)?|if|after|every time|as soon as) (?:i|we)\b.*\b(?:nothing (?:happens|shows|changes)|errors?|crash(?:es|ed)?|fails?|doesn't|doesnt|does not|isn't|is not|won't|goes (?:blank|back|away|to)|disappears?|stays?|freezes?|hangs?|breaks?|[45]\d\d|undefined|it (?:still|just|only|shows|says|goes|gives|jumps|resets|opens|closes)|gets? (?:stuck|lost|cut)|missing|gone|empty|blank|wrong)\b"
    ))
});
/// Main clauses that order or announce something: *if i find errors, fix them*.
static MAIN_ORDERS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:then |please |just |also )*(?:fix|commit|retry|restart|stop|log|skip|ignore|wait|tell|show|add|make|do|don't|run|rerun|use|write|report|open|close|remove|delete|continue|let|please|you can|you should|could you|can you|i'll|i will|we'll|we will|we can|i can|i'd|i want)\b",
    )
});
/// Doubt, and a call to stop.
static DOUBTS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"{ALSO}(?:are you sure|i don't think (?:so|(?:that's|that is|this is) (?:right|correct|true|it)|(?:that|this|it) (?:works|worked))\b|that can't be right|what (?:did you just do|have you done|is going on|the (?:hell|heck|fuck) ))\b|^(?:wait|hold on|hang on)[,.! ]+(?:no|why|don't|stop|isn't|shouldn't|what (?:did|are) you|you(?:'re| are| just| did| didn't| deleted| removed| broke| changed))\b|^(?:wait|hold on|hang on)[,.! ]+what[.! ]*$"
    ))
});
/// Requests to do the same once more.
static RETRIES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"{ALSO}(?:(?:can|could|would) you )?(?:please |pls )?(?:re-?do (?:it|that|this)|do (?:it|that|this) (?:again|over|properly|right)|(?:check|look|read|verify) (?:at )?(?:it |that |this |the [a-z]+ )?again|look closer|as i (?:said|asked|told you)|like i (?:said|asked|told you)|do (?:what|as) i (?:asked|said))\b"
    ))
});
/// The same in a first sentence; in a later one, something was mended in between.
static TRIES_AGAIN: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"{ALSO}(?:(?:can|could|would) you )?(?:please |pls )?(?:(?:re-?try(?: (?:it|that|this))?|try (?:it |that |this |once )?again)[,.! ]*(?:please)?[.! ]*$|re-?try (?:my|your) )"
    ))
});
/// A short order that ends in *instead* or *not just this*.
static INSTEAD: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:instead|instead of (?:that|this|it)|, not (?:just|only) (?:the |in |in the )?[a-z0-9_./-]+)[.! ]*$",
    )
});
/// *not pytest, we use unittest*: an objection unless the agent had asked.
static NOT_BUT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"{ALSO}not ([a-z0-9_./'-]+)(?: [a-z0-9_./'-]+){{0,2}}[,;.] (?:we|use|i|it|it's|the|just|please|that's|this|only)\b"
    ))
});
/// *no, the second one*: an objection unless the agent had asked.
static NO_BUT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:no+|nope|nah)[,.! -]+(?:the|in|on|at|for|with|only|as|like|both|all|every|when|from|below|above|inside|outside|under|before|after) [a-z0-9]",
    )
});
const NOT_HARMLESS: &str = "sure yet now bad really necessarily urgent important only that too much so a an the in if there until right today";

/// Suppositions, questions and orders, in which nothing is reported.
static ASKS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:(?:and|also|then|next|now|ok|okay|please|pls|great|perfect|nice|cool|good|yes|yeah|thanks)[,.! ]+)*(?:if|when|whenever|unless|until|once|suppose|should|what|how|which|who|can|could|would|will|is|are|does|do|did|was|were|has|have|make|ensure|let's|let|lets|i(?:'d| would) like|i want|i need|we need|we want|add|write|create|implement|check|show|tell|explain|please|update|change|use|handle|move|rename|run|build|find|give|look|see|review|investigate|set|keep|put|return|print|test|document|describe|list|replace|try|help|ask|refactor|turn|allow|support|migrate|convert|next|errors? [a-z ]*(?:should|must|need)|go|commit|push|deploy|open|fix|remove|delete|do|for|to|maybe|perhaps|imagine|assume|where is|where are|in case|rather)\b",
    )
});
/// Statements about the work that begin like an order: *build is red*.
static STATES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:and |but |now |so |the )*[a-z]+ (?:is|are|was|were|has|still|now|fails?|failed|doesn't|isn't|aren't|don't work)\b",
    )
});
/// Words before a fault that make a reason or a condition of it.
static SUBORDINATES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"\b(?:as|since|because|if|where|which|whether|until|so that|in case|once)\b")
});
/// Statements about something else than the work.
static IS_ELSEWHERE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:still (?:running|in progress|open|pending|valid|needed|useful|fine|ok|okay|good|to|waiting|building|true|possible|going)|is (?:fine|ok|okay)|that's (?:fine|ok|okay|good|great)|last (?:week|month|year|night)|yesterday|earlier today|by the way|btw|not sure|see why not|no (?:problem|complaints|worries|rush|objections?|hurry|issues?)|too (?:late|much trouble|early)|should be (?:fine|enough|ok)|wondering|in (?:case|theory)|nothing (?:else|more|left)|i(?:'m| am| was) (?:wrong|mistaken)|my (?:bad|mistake|fault)|(?:changes?|output|response|results?) (?:is |are )?(?:needed|required|necessary|please)|should(?:n't| not) (?:be (?:(?:an?|any) (?:problem|issue|big deal)|too (?:hard|bad|difficult|long))|cause|matter|take (?:too |very )?long)|(?:it|this|that|they) should (?:also|then)|but (?:fine|ok|okay|good enough))\b",
    )
});

/// Lines that programs begin like this when they fail.
static ERROR_LINE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"(?m)^\W*(?:\S+[:>] +){0,3}(?:(?:fatal |uncaught |unhandled |compile |build |runtime |server |internal |an? )?(?:[a-z.]*error|[a-z.]*exception|panic|failure)(?:[:\[({!]| [a-z-]*\d| at |\s*$)|fatal:|traceback\b|failed(?: to\b|:| with\b| [\w/.]+::|\s*$)|err!|npm err|cannot [a-z]+|could not [a-z]+|\S+: (?:command not found|no such file|permission denied))",
    )
});
/// What programs write when they fail, anywhere in a text.
static ERROR_OUTPUT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b[a-z.]*(?:error|exception)\b ?[:\[({]|command not found|no such file or directory|permission denied|returned error|exit(?:ed)?(?: with)? (?:code|status):? ?[1-9]|\berrno\b|econnrefused|enoent|module not found|cannot find|could not (?:find|resolve|connect|open|load)|undefined reference|segmentation fault|is not (?:recognized|a function|defined|assignable)|npm err|unexpected (?:token|identifier|end)|\bwarning in\b|unable to (?:resolve|locate|find|connect|open)|requires an argument|not found in\b",
    )
});
/// First lines of what is copied from a terminal, a log or a console.
static PASTED: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:[$%>#❯➜] ?\S|ps [a-z]:|\S+@\S+[ :].*[$%#>]|\(\w+\) \S+|last login:|\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\[\w+\]|[\w./-]+:\d+(?::\d+)?(?:: | - )|\s*at \S+ ?\(|\S+: (?:error|fatal|cannot|can't|could not|command|no such|warning|\(\d+\))|(?:uncaught |unhandled )?[a-z.]*(?:error|exception)(?:(?: [a-z-]+){0,3}:|[\[({]| [a-z-]*\d|\s*$)|fatal:|traceback|failed (?:to|with) |err!|npm (?:err|warn)|✗|✘|❌)",
    )
});

/// Returns true if a message objects to the work before it. `beginning` is folded, without quotes.
pub(super) fn objects(
    message: &str,
    beginning: &str,
    previous: Option<&RequestWords>,
    has_asked: bool,
) -> bool {
    (!has_asked && NO_BUT.is_match(beginning))
        || sentences(beginning)
            .take(4)
            .enumerate()
            .any(|(at, sentence)| is_report(sentence, at == 0, previous, has_asked))
        || is_output(message, beginning)
}

/// Returns true if a sentence reports a fault of the work or asks for it once more.
fn is_report(
    sentence: &str,
    is_first: bool,
    previous: Option<&RequestWords>,
    has_asked: bool,
) -> bool {
    let words = sentence.split_whitespace().count();
    if words > MAX_REPORT
        || IS_ELSEWHERE.is_match(sentence)
        || good_news::is_good_news(sentence)
        || good_news::is_good_news_elsewhere(sentence)
    {
        return false;
    }
    if [&ASKS_WHY, &RETRIES, &DOUBTS].iter().any(|pattern| pattern.is_match(sentence)) {
        return true;
    }
    if is_first && TRIES_AGAIN.is_match(sentence) {
        return true;
    }
    if sentence.trim_end().ends_with('?') {
        return false;
    }
    if words <= MAX_ORDER && INSTEAD.is_match(sentence) {
        return true;
    }
    let is_other = |found: regex::Captures<'_>| !super::is_one_of(&found[1], NOT_HARMLESS);
    if !has_asked && NOT_BUT.captures(sentence).is_some_and(is_other) {
        return true;
    }
    let orders = |(_, main): (&str, &str)| MAIN_ORDERS.is_match(main);
    if WHEN_I.is_match(sentence) {
        return !sentence.contains("should") && !sentence.split_once(", ").is_some_and(orders);
    }
    let asks = ASKS.is_match(sentence) && !STATES.is_match(sentence);
    if !asks && REPORTS.is_match(sentence) {
        return true;
    }
    if YOU_DID.is_match(sentence) {
        return !PRAISES.is_match(sentence);
    }
    let forbids = ["don't ", "dont ", "do not ", "never "];
    let asks = asks || forbids.iter().any(|order| sentence.starts_with(order));
    let fault = IS_WRONG.find(sentence).or_else(|| DOES_WRONG.find(sentence));
    !asks
        && fault.is_some_and(|fault| !SUBORDINATES.is_match(&sentence[..fault.start()]))
        && (TIE.is_match(sentence) || previous.is_some_and(|request| request.mentions(sentence)))
}

/// Returns true if the last line asks something. Such output is shown to be explained.
pub(super) fn ends_in_question(message: &str) -> bool {
    let last = message.trim_end().lines().next_back().unwrap_or_default();
    last.ends_with('?') && !last.starts_with([' ', '\t'])
}

/// Returns true if the message is what a program wrote when it failed, with at most a few words of
/// the person before it.
fn is_output(message: &str, beginning: &str) -> bool {
    const MAX_INTRODUCTION: usize = 10;
    const MAX_EXAMINED: usize = 4000;
    let first = beginning.trim_start().lines().next().unwrap_or_default();
    let has_lines = message.lines().filter(|line| !line.trim().is_empty()).count() > 1;
    let is_pasted = PASTED.is_match(first);
    let is_introduced =
        has_lines && first.split_whitespace().count() <= MAX_INTRODUCTION && !ASKS.is_match(first);
    if !is_pasted && !is_introduced {
        return false;
    }
    if has_lines && ends_in_question(message) {
        return false;
    }
    // Under words of the person, a list holds requests, and only what begins like an error counts.
    let shows_error = |text: &str| {
        let text = text.to_lowercase();
        if is_pasted {
            return ERROR_LINE.is_match(&text) || ERROR_OUTPUT.is_match(&text);
        }
        text.lines().skip(1).any(|line| !is_list_item(line) && ERROR_LINE.is_match(line))
    };
    let [head, tail] = [
        &message[..message.floor_char_boundary(MAX_EXAMINED)],
        &message[message.ceil_char_boundary(message.len().saturating_sub(MAX_EXAMINED))..],
    ];
    [head, tail].into_iter().any(shows_error)
}

/// Returns true if a line is an item of a list: *- exit with code 2*, *3. fail*.
fn is_list_item(line: &str) -> bool {
    let line = line.trim_start();
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '•', '+'])
        || (after_number.len() < line.len() && after_number.starts_with(['.', ')']))
}
