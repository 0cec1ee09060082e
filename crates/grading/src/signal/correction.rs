//! Detects orders to take work back, and corrections, by what they refer to: the earlier request,
//! the work, what the agent did, the manner of it, or a contrast between two things. English only.
//!
//! Comments name sentences that a pattern must not match; tests hold them.

use std::sync::LazyLock;

use regex::Regex;

use super::cue::is_one_of;
use super::request::AgentTurn;
use super::vocabulary::{ADVERBS, LEAD, Mood, at_start, mood};
use super::{good_news, sentences};
use crate::english;

/// Commands of agents and of Git that take work back, and orders to do so. Not the names of
/// features: *add an undo button*, *roll back the transaction if it fails*, *restore the scroll
/// position on return*.
static TAKES_BACK: LazyLock<Regex> = LazyLock::new(|| {
    let polite = r"(?:(?:can|could|would) (?:you|we|u) )?(?:please |just |let's |lets )*(?:i want (?:you )?to |you (?:should|need to) )?";
    let what = r"(?:it|that|this|them|all|everything|those|these|your|my|please|now|again|back|to|what|most|only|both|x|the (?:whole|entire|last|latest|previous|first|second|rest|change|changes|commit|edit|edits|stuff|refactor\w*|rename|renaming|migration|update|merge|thing)|(?:the )?\w+ changes|changes?|commit|(?:the |my )?[\w/-]+\.\w+)";
    let old = r"(?:previous|old|original|earlier|first|last)";
    let thing = r"(?:it|that|this|them|those|(?:the|my|our) [\w'/-]+(?: [\w'/-]+){0,2})";
    english::regex(&[
        r"^/(?:undo|rewind|revert|rollback|restore)\b|^(?:(?:!|<bash-input>|/run) *git|/git) (?:checkout (?:--|\.)|restore |reset --hard|revert )".to_owned(),
        format!(r"^{LEAD}{polite}(?:revert|undo|roll ?back)(?: {what}\b|[ .,!?;:]*$|[.,!;?])"),
        format!(r"^{LEAD}{polite}(?:revert|undo|roll ?back) the \w+(?: \w+)?[.! ]*$"),
        format!(r"^{LEAD}{polite}(?:take (?:that|it|this) back|go back to (?:the|how|what) (?:{old}|it was|we had)|(?:just|honestly) go back to|back to (?:the|how) (?:{old} (?:version|one|design|layout|code|look|way)|it was)|use the {old} (?:version|one) again)"),
        format!(r"^{LEAD}{polite}restore (?:(?:the|my) {old} (?:version|one|code|file|files|state|behaviou?r|layout|design|text|look|style|config\w*|content)\b|[\w/-]+\.\w+)"),
        format!(r"^{LEAD}{polite}(?:put|add|bring|get|move|change|set|switch|turn) {thing} back(?: in)?(?: again| please| now)*(?:[.,!]|\s*$| to (?:how|what|the way) )"),
        format!(r"^{LEAD}{polite}bring back (?:the|my|our) "),
        format!(r"^{LEAD}{polite}(?:leave|keep) {thing} (?:as|like|how|the way) (?:it was|they were)\b"),
        format!(r"^{LEAD}{polite}(?:remove|delete|drop|discard|get rid of|rm) (?:(?:it|that|this|them|those)(?: again| please| all| now)*(?:[.,!;]|$)|(?:all|all of|your|the|these|those)(?: the| your| these)? changes\b|everything you|(?:what|all|the \w+) (?: \w+)? ?(?:that )?you (?:just )?(?:added|did|made|wrote|created|introduced|installed|generated|put|pulled in)\b)"),
        format!(r"^{LEAD}i (?:liked|preferred) (?:the|it|that) (?:{old} )"),
    ].join("|"))
});

/// The earlier request: *i meant the other one*, *i asked for two*, *what i wanted was …*. Not *i
/// wanted to use the larger one*, *great, i wanted exactly this*, *as i said, thanks*.
static REFERS_TO_REQUEST: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"i (?:only |just |clearly |already |specifically |explicitly |literally |actually |really )*(?:meant|said|told you|asked (?:you|for)|(?:didn't|did not|never) (?:mean|ask|say|want|tell)|wanted (?:you|it|the|an?|that|them|only|just|to have|\w+ (?:not|instead|and not)))\b",
        r"i mean,? (?:you|the|that|this|it|not|i|don't|to|for|in|on|as|with|how|what|when|formal|real|actual)\b",
        r"(?:so )?what i (?:wanted|meant|was (?:asking|looking)|asked|had in mind)\b",
        r"i (?:was|am|'m) (?:talking|asking|thinking|referring) (?:about|for|of|to)\b|i had (?:something|sth) (?:else|different)\b",
        r"i(?:'d| would) (?:prefer|rather|like) (?:it )?(?:if )?you (?:didn't|don't|not)\b|i don't think (?:this|that|it)(?:'s| is) (?:what|how|the|right|correct|a good|true|quite)\b",
        r"i was (?:expecting|hoping|looking) (?:for|that|it|you|to)\b|i expected (?:it|the|a|an|you|that|to|something|\w+ (?:to|but|and|not))\b",
        r"(?:maybe |perhaps )?(?:i (?:wasn't|was not) (?:clear|precise)|let me (?:clarify|rephrase|be (?:more )?(?:clear|precise))|to clarify)\b|(?:there (?:seems to be|is|was) |we have )?(?:a|some) misunderstanding\b",
        r"i (?:(?:already|just|literally|clearly) (?:said|told you|asked (?:you|for))|already (?:gave|pasted|provided|did (?:that|this|it)|tried (?:that|this|it)))\b|already (?:tried|did) (?:that|this|it)\b",
        r"(?:as|like) i (?:said|asked|told you|wrote)\b|do (?:what|as) i (?:asked|said)\b",
        r"(?:didn't|did not|never) ask(?:ed)? (?:for|you)\b",
    ])
});
/// The same later in the first sentence: *this whole time i meant …*, *too long, i said five*.
static REFERS_LATER: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^.{0,40}\bi meant\b|\bthat i meant?[.! ]*$|[,;.!] (?:but |and )?(?:i (?:said|asked for|meant|wanted (?:an?|the|it|only|just|\w+ not)|specified|told you|(?:didn't|did not|never) (?:ask|want|say|mean))|(?:didn't|did not|never) (?:ask|want))\b|\b(?:like|as) i (?:asked|said|wanted|told you)[.! ]*$|\bnot (?:really |exactly |quite |at all )*what i\b",
    )
});

/// The work, denied or called wrong: *that's not how*, *wrong file*. Not *not a problem*, *it's not
/// urgent*.
static DENIES_WORK: LazyLock<Regex> = LazyLock::new(|| {
    let adverbs = format!("(?:{ADVERBS} )*");
    at_start(&[
        &format!(
            r"(?:that's|that is|this is|it's|it is|this|that) {adverbs}(?:not (?:what|how|right|correct|it|quite|exactly|working|where|true|enough|good|an? \w+|ok|okay|acceptable)|wrong|false|incorrect|backwards|the (?:wrong|opposite)|overkill|over ?engineered|an? different)\b"
        ),
        r"(?:that's|that is|this is) not the\b|(?:that|this|it) can(?:'t| not) be (?:the|right|it|true|correct)\b",
        r"(?:that|this|it)(?: isn't| is not|'s not| wasn't| was not) (?:\w+ )?(?:what|how|right|correct|it|quite|exactly|where|true|enough|an? (?:fix|solution|answer|test|real))\b",
        r"wrong (?:file|place|one|branch|folder|function|line|directory|button|page|test|table|column|repo|version|step|account|order|way|component|class|method|language|project|colou?r)\b|wrong [a-z]+[.! ]*$|wrong[.! ]*$",
        r"(?:almost|not quite|nearly|not exactly)(?:, (?:but|it|the|still|not|you|this|that)| (?:right|what|but))|close,? (?:but|not|still)\b",
        r"(?:incorrect|false|overkill|over ?engineered)[.!, ]*(?:$|[a-z])",
    ])
});
/// The same at the start of a message: *not like this*.
static NOT_THAT: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"not (?:that|this|like (?:that|this)|the|in|there|what|here|an?|on|it|quite|exactly)\b|not [a-z]+(?: [a-z]+){0,3} at all\b",
    ])
});
/// The refusal of a hypothesis: *it's not the memory*. Not *i think it's not the memory*.
static DENIES_CAUSE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^(?:(?:no+|nope|hmm+)[,. ]+)?(?:it's|it is) not the [a-z]+\b")
});
/// What follows *not* without denying the work.
static DENIES_NOTHING: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"(?:(?:that's|it's|that is|it is|this is) )?not (?:an?|the|in|on|there|here|that|this|quite) (?:problem|issue|big deal|biggie|deal|concern|priority|blocker|must|requirement|fan|rush|hurry|mood|end|yet|moment|time|important|urgent|sure|bad|hard|difficult|much|many|case for now|first|expert|developer|native)\b",
        r"not (?:bad|hard|difficult|urgent|important|necessary|needed|sure|related|interested|worried)\b",
        r"(?:(?:that's|it's|that is|it is|this is) )?not (?:true|right|correct|there|what|how|it|the) .*\?$",
    ])
});

/// What the agent did, said as a fault: *you forgot the tests*. Not *you made my day*, *you removed
/// 400 lines, impressive*: praise is looked for apart.
static SAYS_YOU_DID: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[&format!(
        r"you(?:'ve| have)? (?:{ADVERBS} )*(?:forgot|forgotten|missed|didn't|did not|haven't|have not|not|broke|broken|removed|deleted|misread|misunderstood|ignored|skipped|changed the wrong|used the wrong|put it|put the)\b|you(?:'re| are) [^,]*\b(?:wrong|mistaken|misreading|misunderstanding|confusing|mixing)\b"
    )])
});
/// The same of what may be neutral, which is a fault after work: *you put it in the footer*.
static SAYS_YOU_DID_AFTER_WORK: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        &format!(
            r"you(?:'ve| have)? (?:{ADVERBS} )*(?:put|left|mocked|stubbed|deployed|used|made|added|renamed|changed|wrote|written|moved|created|hard-?coded|dropped|replaced|touched|edited|disabled|commented|reverted|committed|pushed|installed|started|opened|ran|duplicated|copied|swapped|misspelled|misspelt|mixed|invented|introduced|kept|rewrote|rewritten|overwrote|placed|set|bumped|upgraded|downgraded|lost|assumed|converted|translated|reformatted|refactored|sorted|paginated|wrapped|turned|switched|implemented|did|gave|took|stopped|hid|merged|leave|keep|always|never)\b"
        ),
        r"you (?:can't|cannot|can not|shouldn't|should not|aren't supposed|are not supposed|weren't supposed|were supposed|must not|mustn't|should have|should've|shouldn't have)\b",
        r"(?:should(?:n't| not)? have|should've) (?:been|used|kept|left|done|put|added|had)\b",
        r"the (?:spec|ticket|design|issue|requirements?|task|story|plan|mockup|figma|assignment) (?:clearly |actually |also )?(?:says?|said|states?|shows?|wants?|requires?|asks?)\b",
        r"we (?:agreed|decided|said|discussed|had agreed)\b|you (?:said|told me|claimed|promised) (?:it|that|this|you|they)\b|but you (?:said|told me|claimed)\b",
    ])
});

/// Statements of what the agent did that are no complaint: *you did it!*, *you missed nothing*. Not
/// *you did it again*.
static DID_RIGHT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:(?:did it|made it(?: work)?)[.! ]*$|(?:missed|broke|broken|removed|deleted|forgot|forgotten|overlooked|skipped) (?:nothing|anything)\b)",
    )
});

/// Questions that reproach: *why did you delete it?* Not *why did you choose sqlite?*.
static REPROACHES: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"why (?:did|didn't|are|aren't|have|would|do|don't) (?:you|u) (?:not |even |just |always |still |also |again |suddenly )*(?:delet|remov|chang|add|skip|mock|creat|ignor|rewr|replac|comment|disabl|break|broke|hardcod|touch|revert|do that|do this|run|stop|renam|mov|push|commit|giv|gave|still|install|edit|modif|dupl|lie|lying|guess|mak|put)\w*",
        r"(?:and |but |so )*why (?:are you |aren't you |is it |isn't it )?not (?:us|work|load|show|updat|do|read|test|run|follow|call|includ|import)\w*ing\b|why you (?:not|don't|didn't|delet|remov|chang|always)\w*\b",
    ])
});
static REPROACHES_AFTER_WORK: LazyLock<Regex> = LazyLock::new(|| {
    let thing = r"(?:it|this|that|they|the [a-z'-]+(?: [a-z'-]+)?)";
    at_start(&[
        &format!(
            r"(?:why|how come) (?:(?:is|are) (?:there|{thing}) (?:still|now|not|missing|empty|gone|broken|a new|no|failing|suddenly|two|three|an extra|\w+ing (?:the |my |an? )?(?:old|wrong|localhost|everything|all|twice)|all|only|just|in|on|from|twice)\b|(?:isn't|aren't|doesn't|don't|didn't|can't|won't|is it not|does it not)\b|(?:does|do|did) {thing} (?:still|now|not|always)\b|(?:is |are )?(?:it |this |that |they |there )?so (?:many|much|long|slow|complicated|big|complex)\b)"
        ),
        r"(?:if .{0,40} )?(?:then |than )?why (?:can|do|does|is|am|are) (?:i|it|this|that|the \w+(?: \w+)?) still\b",
        r"(?:where (?:did|has|have) .* (?:go|gone)\b|what happened to)",
        r"where(?:'s| is| are) (?:the|my) (?:[a-z]+ )?(?:part|section|tests?|button|column|field|rest|link|toggle|option|error handling|docs)\?*$",
        r"did you (?:even|actually|really|forget|break|miss|skip|not|delete|remove|change|touch|ignore|read (?:the|my|what))\b",
        r"(?:shouldn't|wasn't|isn't|weren't) (?:it|this|that|there|they|you) (?:supposed|be|have|also be|meant)\b",
        r"(?:are you sure\b|i don't think (?:so|(?:that's|that is|this is) (?:right|correct|true|it|how|what)|(?:that|this|it) (?:works|worked|is (?:right|correct)))\b|that can't be right|what (?:did you just do|have you done|the (?:hell|heck|fuck) ))",
    ])
});
/// Calls to stop. Not *wait, let me check*, *hold on, i'll restart it*, *stop here for today*.
static STOPS: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"stop (?:doing|adding|using|changing|making|that|this|trying|editing|creating|mocking|guessing|touching|rewriting|deleting|removing|it)\b|stop[.! ]*$|stop, ",
        r"(?:wait|hold on|hang on)[,.! ]+(?:no|why|don't|stop|isn't|shouldn't|what (?:did|are) you|you(?:'re| are| just| did| didn't| deleted| removed| broke| changed| already))\b",
        r"(?:wait|hold on|hang on)[,.! ]+what[.! ]*$",
    ])
});

/// Requests to do the same once more. Not *redo the benchmark with 8 threads*, *run it again*.
static ASKS_AGAIN: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"(?:check|look|read (?:it|that)) again(?:[.!,]|\s*$| please| and| at| in the)|(?:let's )?(?:start over|start again|redo (?:it|this|that))\b",
    ])
});
static ASKS_AGAIN_AFTER_WORK: LazyLock<Regex> = LazyLock::new(|| {
    let polite = r"(?:(?:can|could|would) you )?(?:please |just )*";
    at_start(&[
        &format!(
            r"{polite}(?:re-?do (?:it|that|this)|do (?:it|that|this) (?:again|over|properly|right)(?:[.!,]|\s*$| please| but| from)|(?:check|look|read|verify|re-?read|reread)(?: (?:at|in|through))? ?(?:it |that |this |(?:the |my )?[a-z./-]+ (?:[a-z./-]+ )?)?again(?:[.!,?]|\s*$| please| and| but)|try (?:something|another|a different) (?:else|different|way|approach|solution|one)|re-?read (?:the|my|what)|look (?:closer|more carefully|carefully)|pay attention|think (?:again|harder)|try harder)\b"
        ),
        // What the agent has written is to be written anew.
        &format!(
            r"{polite}(?:write|re-?write|make|create|generate|implement|draw|design|do|build) .{{1,40}}\b(?:again|from scratch)[.! ]*$"
        ),
    ])
});
/// The same in a first sentence; in a later one, something was mended in between: *the server is up.
/// try again*.
static TRIES_AGAIN: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"(?:(?:can|could|would) you )?(?:please )?(?:(?:re-?try(?: (?:it|that|this))?|try (?:it |that |this |once )?again)[,.! ]*(?:please)?[.! ]*$|re-?try (?:my|your) )",
    ])
});

/// *no, i mean …* and other corrections after a refusal.
static AFTER_NO: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:wait|hmm+|hey|ok|okay|oh|sorry|well|uh|ah)?[,.! ]*(?:no+|nope|nah)[,.!\- ]+(?:i mean|i meant|i want|i need|i was (?:talking|asking)|you (?:should|need|have to|must)|use|don't|do not|instead|not|the other|make it|keep|leave|just|only|put|we (?:need|want|should|don't)|there(?:'s| is| are| should))\b",
    )
});
/// *no, the second one*: an objection unless the agent had asked.
static NO_BUT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:no+|nope|nah)(?:[,.!]| -)+ *(?:please |actually |only |just )*(?:the|in|on|at|for|with|as|like|both|all|every|when|from|below|above|inside|outside|under|before|after|server|client|each|one|two|same|(?:it|this|that|they|the \w+)(?:'s| is| should| needs| has| must| are)|add|remove|change|move|show|[a-z]+ (?:side|please|instead)) ?[a-z0-9]*",
    )
});

/// *no, the rest is perfect*.
static LEAVES_REST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^\w+[,.! -]+(?:the |both |all |they |these |those )[^,.!?]*\b(?:is|are|looks?|works?) (?:\w+ )?(?:good|great|fine|ok|okay|perfect|right|correct|awesome|excellent|enough)\b",
    )
});

/// A bare denial, after work that ended without a question.
static BARE_DENIAL: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:no+|nope|nah|wrong|same|same (?:thing|error|issue|problem|result|here)|(?:still )?nothing|no (?:change|luck|effect|difference|dice|improvement)|not (?:it|really|quite|even close))(?:[.!? ]|:\()*$",
    )
});
/// Answers and other ends after *no*.
static ENDS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:no+|nope|nah)[,.! -]*(?:(?:thanks?|thank you|problem|worries|rush|need|more|other|further|questions?|idea|clue|way around)\b|(?:that's|that is|it's|it is|this is|looks) (?:\w+ )?(?:all|it for|ok|okay|fine|enough|good|great|right|correct|perfect|awesome|exactly|intended|expected|what i)|all good|keep going|go on|go ahead|continue|leave it|never mind|nvm|everything|i'm (?:good|fine|done)|not (?:yet|now|necessary|needed|for now)|nothing)",
    )
});

/// A ban on what was done: *don't mock*, *no emojis please*. Not *don't worry*, *don't push yet*.
static BANS: LazyLock<Regex> =
    LazyLock::new(|| at_start(&[r"(?:don't|do not|never|quit) (?:ever )?([a-z]+)\b"]));
static BANS_THING: LazyLock<Regex> =
    LazyLock::new(|| at_start(&[r"no [a-z]+(?: [a-z]+)? (?:please|pls)\b"]));
/// Verbs after *don't* that forbid nothing, or only what comes next.
const HARMLESS: &str = "worry forget bother hesitate know think mind care have need see understand remember believe like want get feel stop be commit push merge deploy start do implement proceed continue write make give answer tell show ask if seem appear modify execute run wait rush";
/// Words of a ban that holds for what comes next.
static BANS_LATER: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:yet|for now|until|unless|before|anything else|later|when you|if you|while you)\b",
    )
});

/// *get, not post*: at most a few words around *not*.
static CONTRAST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:(?:no|nope|use|make it|it's|should be|must be|with|in|on|the|i need|i want|i wanted|i said|we (?:use|need|want))[, ]+)*([a-z0-9_./'`-]+(?: [a-z0-9_./'`-]+){0,3})[,!.]* (?:and )?(?:not|instead of|rather than) (?:(?:the|a|an|in|on|as|for|with|from|to|by|at|via|using|into) )*([a-z0-9_./'`-]+)(?: [a-z0-9_./'`-]+){0,3}[.! ]*$",
    )
});
/// Words before or after *not* that make a statement of it: *is not*, *if not*, *not sure*.
const STATES: &str = "is are was were am do does did can could should would will may might must has have had or if why but and i it this that maybe probably sure yet now because certainly definitely there i'm im it's that's they we you looks seems absolutely of course perhaps better ok yes sorry let's lets works so";
const STATED: &str = "sure yet bad necessary needed working required important possible so too really much only just all everything anything be have been";
/// *not pytest, we use unittest*: an objection unless the agent had asked.
static NOT_BUT: LazyLock<Regex> = LazyLock::new(|| {
    at_start(&[
        r"not ([a-z0-9_./'-]+)(?: [a-z0-9_./'-]+){0,3}[,;.]? (?:we|use|i|it|it's|the|just|please|that's|this|only|but)\b",
    ])
});
const NOT_HARMLESS: &str = "sure yet now bad really necessarily urgent important only that too much so a an the in if there until right today just everything all";
/// A short order that ends in *instead* or *not just this*, or that narrows what was done.
static INSTEAD: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:instead|instead of (?:that|this|it)|, not (?:just|only) (?:the |in |in the )?[a-z0-9_./-]+)[.! ]*$|(?:^|[?!,.] )only the \w+ (?:ones?|parts?|\w+)[.! ]*$|^(?:please )?only (?:touch|change|edit|modify|use) [\w./-]+",
    )
});

/// The person's own mistake: *sorry, wrong window*, *oops, i meant friday*.
static OWN_SLIP: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:sorry|oops|whoops|my bad|my mistake|ah sorry)[,.! ]*(?:i meant|that was meant|wrong (?:chat|window|terminal|tab|repo|thread|channel|conversation|session))\b",
    )
});

/// Returns true if a folded message begins with a command or an order to take work back.
pub(super) fn takes_back(beginning: &str) -> bool {
    TAKES_BACK.is_match(beginning)
}

/// Returns true if the beginning of a folded message, without quotes, corrects the agent.
pub(super) fn corrects(beginning: &str, turn: AgentTurn) -> bool {
    const MAX_SENTENCES: usize = 4;
    /// Longest sentence of which later clauses are read.
    const MAX_WORDS: usize = 15;
    if ENDS.is_match(beginning) || OWN_SLIP.is_match(beginning) {
        return false;
    }
    let answers = turn.has_asked;
    AFTER_NO.is_match(beginning)
        || (turn.has_worked
            && !answers
            && ((NO_BUT.is_match(beginning) && !LEAVES_REST.is_match(beginning))
                || BARE_DENIAL.is_match(beginning)))
        || sentences(beginning).take(MAX_SENTENCES).enumerate().any(|(at, sentence)| {
            corrects_in(sentence, at == 0)
                || (turn.has_worked && {
                    corrects_work(sentence, at == 0, answers)
                        || (sentence.split_whitespace().count() <= MAX_WORDS
                            && !good_news::praises(sentence)
                            && sentence.split(", ").skip(1).any(says_you_did))
                })
        })
}

/// Returns true if a sentence corrects, whatever the agent did before.
fn corrects_in(sentence: &str, is_first: bool) -> bool {
    let refers = REFERS_TO_REQUEST.is_match(sentence) || REFERS_LATER.is_match(sentence);
    let denies = DENIES_WORK.is_match(sentence)
        || DENIES_CAUSE.is_match(sentence)
        || (is_first && NOT_THAT.is_match(sentence));
    let asks = sentence.ends_with('?') && !sentence.ends_with("??");
    if (refers && !good_news::praises(sentence))
        || (denies && !asks && !DENIES_NOTHING.is_match(sentence))
    {
        return true;
    }
    if SAYS_YOU_DID.is_match(sentence) {
        return !good_news::praises(sentence) && !DID_RIGHT.is_match(sentence);
    }
    if !is_first {
        return false;
    }
    if REPROACHES.is_match(sentence) || STOPS.is_match(sentence) || ASKS_AGAIN.is_match(sentence) {
        return true;
    }
    if let Some(found) = BANS.captures(sentence) {
        return !is_one_of(&found[1], HARMLESS) && !BANS_LATER.is_match(sentence);
    }
    let is_order = mood(sentence) == Mood::Orders && !sentence.contains("not ");
    !is_order
        && CONTRAST.captures(sentence).is_some_and(|found| {
            let before = found[1].split(' ');
            before.clone().all(|word| !is_one_of(word, STATES)) && !is_one_of(&found[2], STATED)
        })
}

/// Returns true if a sentence corrects after a turn of work.
fn corrects_work(sentence: &str, is_first: bool, answers: bool) -> bool {
    const MAX_ORDER: usize = 10;
    if REPROACHES_AFTER_WORK.is_match(sentence) || ASKS_AGAIN_AFTER_WORK.is_match(sentence) {
        return true;
    }
    if is_first && (TRIES_AGAIN.is_match(sentence) || BANS_THING.is_match(sentence)) {
        return true;
    }
    if mood(sentence) == Mood::Asks {
        return false;
    }
    let is_other = |found: regex::Captures<'_>| !is_one_of(&found[1], NOT_HARMLESS);
    (sentence.split_whitespace().count() <= MAX_ORDER && INSTEAD.is_match(sentence))
        || (!answers && NOT_BUT.captures(sentence).is_some_and(is_other))
        || says_you_did(sentence)
}

fn says_you_did(sentence: &str) -> bool {
    (SAYS_YOU_DID.is_match(sentence) || SAYS_YOU_DID_AFTER_WORK.is_match(sentence))
        && !good_news::praises(sentence)
        && !DID_RIGHT.is_match(sentence)
        && !sentence.trim_end().ends_with('?')
}
