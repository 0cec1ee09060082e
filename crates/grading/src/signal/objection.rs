//! Detects objections to what the agent has just done: reverts, corrections, reports that it does
//! not work, and the same request again. English has the most rules; `objection_idioms.rs` has those
//! of other languages, `after_work.rs` those that count only after a turn in which the agent worked.
//!
//! What the person does or says about the work decides. Tone does not: people swear in good spirits
//! and correct politely. The first message of a session cannot object to anything, but only the
//! caller can tell that it is the first.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{
    CueWord, MAX_EXAMINED_BYTES, MessageEnd, WordContext, after_work, complaint, frustration,
    good_news, is_answer, message_ends, objection_idioms, sentences, without_quotes,
};
use crate::english;

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

/// Words before an objection that do not change it.
const LEAD: &str = r"^(?:(?:no+|nope|nah|wait|hmm+|hm|hey|ok|okay|but|oh|so|sorry|well|actually|please|pls|just|then|and|ah|uh|argh|ugh|again|fgs|ffs|wtf|jesus|damn)[,.! :]+){0,4}";

/// Commands of agents and of Git that take work back, and orders to do so.
static REVERTS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"^/(?:undo|rewind|revert|rollback|restore)\b|^(?:(?:!|<bash-input>|/run) *git|/git) (?:checkout (?:--|\.)|restore |reset --hard|revert )|{LEAD}(?:(?:can|could) you (?:please )?)?(?:revert|undo|roll ?back|take (?:that|it|this) back|put (?:it|that|this|them) back|go back to (?:the|how|what) (?:previous|old|original|it was|we had|last|earlier)|restore (?:the|my) (?:previous|old|original))\b|{LEAD}(?:remove|delete|drop|discard|get rid of) (?:(?:it|that|this|them|those)(?: again| please| all| now)*(?:[.,!;]|$)|(?:all|all of|your|the|these|those)(?: the| your| these)? changes\b|everything you)"
    ))
});

/// Corrections at the start of a message.
static CORRECTS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"{LEAD}(?:i (?:meant|said|told you|asked (?:you|for)|wanted (?:you|it|the|a|an|this|that|them)|(?:didn't|did not|never) (?:mean|ask|say|want|tell))\b|not (?:that|this|like (?:that|this)|the|in|there|what|here|a|an|on)\b|(?:it |that )?(?:looks|seems) like you (?:forgot|missed|broke|removed|deleted|skipped|misunderstood)\b|(?:i think )?you(?:'ve| have)? (?:still |also |just )*(?:forgot|forgotten|missed|didn't|did not|haven't|have not|broke|broken|removed|deleted|changed the wrong|misread|misunderstood|ignored|skipped|used the wrong|put it|put the)\b|why (?:did|didn't|are|aren't|have|would) you (?:not |even |just )*(?:delet|remov|chang|add|skip|mock|creat|ignor|rewr|replac|comment|disabl|break|hardcod|touch|revert|do that|do this|run|stop|renam|mov|push|commit)\w*|wrong (?:file|place|one|branch|folder|function|line|directory|button|page|test|table|column|repo|version)\b|(?:that's|that is|this is|it's|it is) (?:still |also |just |really |simply |completely |totally )*(?:not (?:what|how|right|correct|it|the|quite|working|where|true)|wrong|incorrect|backwards|the wrong)\b|that(?: isn't| is not|'s not) (?:what|how|right|correct|it|the|quite|where|true)\b|stop (?:doing|adding|using|changing|making|that|this|trying|editing|creating|mocking|guessing|touching|rewriting|deleting|removing)\b|stop[.! ]*$)"
    ))
});

/// *i mean, …* at the beginning, *… i meant …*, and orders to do it again.
static CLARIFIES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(
        r"{LEAD}i mean,? (?:you|the|that|this|it|not|i|don't|to|for|in|on|as)\b|^.{{0,40}}\bi meant\b|^(?:and |but |so )*why (?:are you |aren't you |is it |isn't it )?not \w+ing\b"
    ))
});
static AGAIN: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:please |pls |no,? |just )*(?:check|look|read (?:it|that)) again\b|^(?:please |pls |no,? |ok,? |let's )*(?:start over|start again|redo (?:it|this|that))\b",
    )
});

/// *no, i mean …* and other corrections that need a refusal first.
static AFTER_NO: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:wait|hmm+|hey|ok|okay|oh|sorry|well|uh|ah)?[,.! ]*(?:no+|nope|nah)[,.!\- ]+(?:i mean|i meant|i want|i need|i was (?:talking|asking)|you (?:should|need|have to|must)|it(?:'s| is| should| needs| has)|use|don't|do not|dont|instead|not|the other|that's (?:not|wrong)|that is (?:not|wrong)|this is (?:not|wrong)|make it|keep|leave|just|only|put|we (?:need|want|should|don't)|there(?:'s| is| are| should))\b",
    )
});

/// An order not to do what was just done: *don't mock*.
static DO_NOT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(&format!(r"{LEAD}(?:don't|do not|dont|never|quit) (?:ever )?([a-z]+)\b"))
});
/// Verbs after *don't* that forbid nothing.
const HARMLESS: &str = "worry forget bother hesitate know think mind care have need see understand remember believe like want get feel stop be commit push merge deploy start do implement proceed continue write make give answer tell show ask if seem appear";

/// *get, not post*: at most a few words around *not*.
static NOT_THIS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:(?:no|nope|use|make it|it's|should be|must be|with|in|on|the)[, ]+)*([a-z0-9_./'`-]+(?: [a-z0-9_./'`-]+){0,3}),? (?:not|instead of|rather than) (?:(?:the|a|an|in|on|as|for|with|from|to|by|at|via|using|into) )*([a-z0-9_./'`-]+)(?: [a-z0-9_./'`-]+){0,3}[.! ]*$",
    )
});
/// Words before or after *not* that make a statement of it: *is not*, *if not*, *not sure*.
const STATES: &str = "is are was were am do does did can could should would will may might must has have had or if why but and i it this that maybe probably sure yet now because certainly definitely there i'm im it's that's they we you looks seems absolutely of course perhaps better ok yes sorry let's";
const STATED: &str = "sure yet bad necessary needed working required important possible so too really much only just all everything anything be have been";

/// A report that something does not work now, in a short sentence.
static REPORTS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:is|are|'s|'re|was|were|am|still|it|does|do|do(?:es)?n't|isn't|aren't|not) (?:still |even |just |now )*(?:not |never )?(?:working|loading|showing|rendering|updating|appearing|compiling|building|displaying|visible|respond|responding|work|load|show|render|update|appear|compile|seeing|blocked)\b|^no \w+(?: \w+){0,4} (?:is|are) (?:being )?(?:showing|loading|load(?:ed)?|appearing|rendered|displayed|visible|returned)|^nothing (?:happens|shows|loads|works|changed|happened|appears)|\bi(?:'m| am)? (?:still |now )*(?:not see|don't see|can't see|cannot see|do not see|not seeing|not getting|get|getting|see|seeing) (?:an? |the |this |that |any )?(?:\w+ )?(?:error|errors|crash|exception|change|changes|difference|warning)\b",
    )
});
static DENIES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:not|no|never|nothing|doesn't|don't|isn't|aren't|can't|cannot|error|errors|crash|exception|blocked)\b",
    )
});
/// *it still shows the old title*
static STILL: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:but |and |now )?(?:it|this|that|they|there|(?:the|my) \w+(?: \w+){0,3})(?:'s| is| are)? still (?:shows?|says?|uses?|has|have|looks?|returns?|prints?|gives?|points?|goes|runs?|opens?|fails?|throws?|crash\w*|not|no|missing|wrong|broken|there|the (?:same|old))\b",
    )
});
/// What the person meets in a statement about the work: *i don't see the button*, *it won't let me
/// save*, *i have this error*, *the logo is still white*, *its not updating*, *here is a bug*.
static MEETS: LazyLock<Regex> = LazyLock::new(|| {
    let also = r"^(?:and |but |now |so |also |well,? |ok,? |hmm,? )*";
    let not = r"(?:not|isn't|doesn't|don't|didn't|aren't|isnt|doesnt|dont|didnt|arent|won't|wont)";
    let cannot = r"(?:don't|dont|do not|can't|cant|can not|cannot|couldn't|could not|(?:am |'m )(?:not able|unable) to)";
    let works = r"(?:work\w*|update\w*|updating|load\w*|show\w*|appear\w*|render\w*|display\w*|respond\w*|change\w*|changing|saves?|saved|saving|look (?:like|right|good|the same)|match\w*|fit\b|compil\w*|build\w*|start\w*|open\w*|activat\w*)";
    let subject = r"(?:it|this|that|they|(?:the|my|your) \w+(?: \w+){0,4})";
    english::regex(
        &[
            format!(r"{also}i (?:still |now |also )*{cannot} (?:even |still |actually )*(?:see|find|open|load|run|access|reach|click|hit)\b").as_str(),
            r"\b(?:won't|wont|doesn't|doesnt|does not|not) (?:let|allow|allowing|letting) me\b",
            r"\b(?:i|we)(?:'m| am|'ve)? (?:now |still |also |just )*(?:have|get|got|getting|having|see|seeing)(?: (?:this|that|an?|the|these|some|another|same|new))*(?: \w+)? errors?\b",
            format!(r"{also}an error (?:pops?|popped|appears?|appeared|occurs?|occurred|comes|came|shows?|is|was)\b").as_str(),
            format!(r"{also}i (?:now )?(?:have|get|got): .*(?:error|not found)").as_str(),
            r"\berror is (?:being )?thrown\b|\bsays? (?:that )?(?:it )?(?:has )?(?:failed|error)\b",
            format!(r"{also}{subject}(?:'s| is| are) still \w+").as_str(),
            format!(r"{also}(?:its|thats|it's|that's|{subject})(?: is| are| does| do| did| has)? (?:still |just |also |even )*{not}(?: even| really| still| actually)? {works}").as_str(),
            r"\b(?:there(?:'s| is| are)|here(?:'s| is)|i (?:found|see|noticed)|(?:i'm|i am) seeing) (?:still |also |now )?(?:an?|another|the same|some) (?:\w+ ){0,2}(?:bug|glitch)(?:es|s)?\b",
        ]
        .join("|"),
    )
});
/// Statements of the same form that report nothing: *i don't see why*, *it is still running*.
static MEETS_NOTHING: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:see|find) (?:how|why|what|where|any (?:reason|point|need|problem|issue)|the (?:point|need|reason))\b|\bstill (?:running|in progress|open|pending|an?|on|valid|needed|useful|fine|ok|okay|good|to|being|waiting|building|the plan|true|possible|going)\b",
    )
});

/// Words that tie a report to the work that was just done.
static JUST_NOW: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:now|still|again|anymore|any more|either|after (?:your|the|that|this)|since (?:your|the|that)|no longer|even with)\b",
    )
});
/// *tests are failing now*, *a couple of tests are unhappy now*.
static TESTS_FAIL: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:tests?|build|ci|lint|pipeline|types?)\b.{0,30}\b(?:fail|fails|failed|failing|broken|broke|unhappy|red)\b.{0,20}\b(?:now|again|still)\b|\b(?:now|still)\b.{0,20}\b(?:tests?|build|ci)\b.{0,20}\b(?:fail|fails|failing|broken|red)\b",
    )
});
/// Suppositions and plain questions, in which nothing is reported.
static SUPPOSES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:if|when|whenever|unless|suppose|should|what|how|where|which|who|can|could|would|will|is|are|does|do|did|was|were|has|have|make sure|ensure|check|add|write|create|fix the|implement|please (?:add|make|check|fix|write)|let's|i(?:'d| would) like|i want|next|also|yes|yeah|great|perfect)\b",
    )
});
/// Questions, suppositions and wishes.
static ASKS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:if|when|whenever|unless|suppose|should|what|how|where|which|who|can|could|would|will|is|are|does|do|did|was|were|has|have|make sure|ensure|let's|i(?:'d| would) like|next)\b",
    )
});
/// Output of programs that failed.
static FAILED_OUTPUT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"(?m)^ *(?:npm err(?:or|!)|error(?:\[\w+\])?: |fatal: |traceback \(most recent call last\)|panic: |failed to |\S*(?:error|exception): |e  +\S|assertionerror|failed \S+::)|\bexit code:? [1-9]|\bloading failed for\b|\bwas blocked because\b|uncaught (?:\(in promise\) )?\w*error",
    )
});

/// Words after a refused call by which the person does it alone: *i'll push it myself*.
static LEAVES_IT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"\b(?:i'll|i will|i'm going to|i am going to|let me|myself)\b")
});

/// Longest report, in words.
const MAX_REPORT: usize = 30;

/// Words that do not change a request.
const FILLERS: &str = "please pls again still now just the a an to can could you i said ok okay so and it then once more hey would this that really already one time";
/// First words of messages that are said again in the course of work.
const ROUTINE: &str = "continue proceed resume next go commit push yes no ok okay keep carry retry hi hello thanks thank";

/// First words of questions.
const QUESTIONS: &str = "what how why when where which who is are does do did can could would should will has have was were";
/// Long words that tie nothing to a request.
const COMMON: &str = "should would could there their about still after again please every where which these those thing things other another first before between because really using based above below following create update change write while since until maybe right actually working works doing going looks looking needs wants makes being everything something anything nothing";

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

    /// Returns true if a folded sentence has a word of the request, in any form of it.
    pub(super) fn mentions(&self, sentence: &str) -> bool {
        let stem = |word: &str| word.get(..5).unwrap_or(word).to_owned();
        let counts = |word: &str| word.len() >= 4 && !is_one(word, COMMON);
        let stems: BTreeSet<String> =
            self.words.iter().filter(|word| counts(word)).map(|word| stem(word)).collect();
        content_words(sentence).iter().any(|word| counts(word) && stems.contains(&stem(word)))
    }
}

/// Returns the words of a folded text that make the request, numbers and names included: in a
/// series of requests just these differ.
fn content_words(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '\'')))
        .map(|word| word.trim_matches(['.', '-', '\'', '/']))
        .filter(|word| !word.is_empty() && !is_one(word, FILLERS))
        .map(str::to_owned)
        .collect()
}

/// Returns the objection in a message, if any, and the request to pass in with the next message.
/// `previous` is the preceding message by the same user, `turn` what the agent did since.
pub fn classify_objection(
    message: &str,
    previous: Option<&RequestWords>,
    turn: AgentTurn,
) -> (Option<Objection>, RequestWords) {
    let texts = message_ends(message);
    let parts = texts.each_ref().map(|text| MessageEnd::new(text));
    let request = RequestWords::from_message(message);
    let is_repeated = previous.is_some_and(|previous| {
        is_same_request(&request, previous, &parts)
            || (turn.has_worked && is_mostly_again(&request, previous, &parts))
    });
    let first = parts[0].words.first().map_or("", |word| word.text);
    // Who refuses a call and then says what to do corrects it, in whatever words.
    let redirects = turn.was_refused
        && !is_answer(&parts[0])
        && !is_one(first, ROUTINE)
        && !LEAVES_IT.is_match(parts[0].text)
        && !message.trim_end().ends_with(['?', '？'])
        && !sentences(parts[0].text).any(good_news::praises);
    let objection = objection_in(message, &parts, previous, turn)
        .or(is_repeated.then_some(Objection::AsksAgain))
        .or(redirects.then_some(Objection::Corrects));
    (objection, request)
}

/// Returns true if the message, or its first sentence, asks for most of the previous request again
/// and for nothing else.
fn is_mostly_again(
    request: &RequestWords,
    previous: &RequestWords,
    parts: &[MessageEnd<'_>; 2],
) -> bool {
    const MIN_WORDS: usize = 3;
    let first = parts[0].words.first().map_or("", |word| word.text);
    if is_answer(&parts[0]) || is_one(first, ROUTINE) || is_one(first, QUESTIONS) {
        return false;
    }
    let bare = without_quotes(parts[0].text);
    let mut lines = sentences(&bare);
    let beginning = lines.next().unwrap_or_default();
    if beginning.ends_with('?') {
        return false;
    }
    let beginning = RequestWords { words: content_words(beginning).into_iter().collect() };
    [request, &beginning].iter().any(|part| {
        part.words.len() >= MIN_WORDS
            && part.words.is_subset(&previous.words)
            && 3 * part.words.len() > 2 * previous.words.len()
    })
}

/// Returns the command of the agent's program, or of its shell, by which the person takes work back,
/// if the text is one. Programs write these in the person's place.
pub fn command_that_takes_back(text: &str) -> Option<&str> {
    let text = &text[..text.floor_char_boundary(MAX_EXAMINED_BYTES)];
    let named = text.strip_prefix("<command-name>").unwrap_or(text);
    // The shell's commands keep their tag for the pattern, which asks for it.
    let shell = text.strip_prefix("<bash-input>");
    let is_command = named.starts_with('/') || shell.is_some();
    let takes_back = is_command && REVERTS.is_match(&named.to_lowercase());
    let command = shell.unwrap_or(named);
    takes_back.then(|| command.split_once('<').map_or(command, |(command, _)| command).trim())
}

/// Returns true if nothing but fillers differs.
fn is_same_request(
    request: &RequestWords,
    previous: &RequestWords,
    parts: &[MessageEnd<'_>; 2],
) -> bool {
    let first = parts[0].words.first().map_or("", |word| word.text);
    request.words.len() >= 2
        && request.words == previous.words
        && !is_answer(&parts[0])
        && !is_one(first, ROUTINE)
}

fn objection_in(
    message: &str,
    parts: &[MessageEnd<'_>; 2],
    previous: Option<&RequestWords>,
    turn: AgentTurn,
) -> Option<Objection> {
    let beginning = without_attachments(parts[0].text);
    if REVERTS.is_match(beginning) {
        return Some(Objection::Reverts);
    }
    let bare = without_quotes(beginning);
    let first = sentences(&bare).next().unwrap_or_default();
    let is_praise = first.starts_with("you ") && good_news::praises(first);
    if !is_praise && is_correction(&bare, first) {
        return Some(Objection::Corrects);
    }
    if let Some(objection) = objection_idioms::objection(&bare, turn) {
        return Some(objection);
    }
    let states_fault = parts.iter().any(|part| {
        let bare = without_quotes(part.text);
        let states_fault = |sentence: &str| {
            complaint::states_fault(sentence) && !good_news::is_good_news(sentence)
        };
        part.has_remark(is_about_work) || sentences(&bare).any(states_fault)
    });
    let reports = sentences(&bare)
        .take(4)
        .filter(|sentence| !good_news::is_good_news(sentence))
        .any(|sentence| is_report(sentence) || meets(sentence));
    let objects_to_work =
        || turn.has_worked && after_work::objects(message, &bare, previous, turn.has_asked);
    (states_fault || reports || is_failed_output(message, beginning) || objects_to_work())
        .then_some(Objection::Complains)
}

/// Returns the text after the notes that stand for attached pictures and pasted texts.
fn without_attachments(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some((_, after)) = rest
        .strip_prefix('[')
        .filter(|rest| rest.starts_with("image") || rest.starts_with("pasted text"))
        .and_then(|rest| rest.split_once(']'))
    {
        rest = after.trim_start();
    }
    rest
}

fn is_about_work(cue: CueWord, place: &WordContext<'_>) -> bool {
    cue.is_about_work() && frustration::is_frustration_cue(cue, place)
}

fn is_correction(beginning: &str, first: &str) -> bool {
    const POLITE: [&str; 9] = [
        "no thanks",
        "no, thanks",
        "no thank you",
        "no, thank you",
        "no problem",
        "no worries",
        "no rush",
        "no need",
        "not the end",
    ];
    if POLITE.iter().any(|polite| beginning.starts_with(polite)) {
        return false;
    }
    if CLARIFIES.is_match(beginning) || AGAIN.is_match(first) {
        return true;
    }
    if CORRECTS.is_match(beginning) || AFTER_NO.is_match(beginning) {
        // *no, that's all* and the like are answers.
        return !beginning.starts_with("no, that's all") && !beginning.starts_with("no that's all");
    }
    if let Some(found) = DO_NOT.captures(beginning) {
        return !is_one(&found[1], HARMLESS);
    }
    NOT_THIS.captures(first).is_some_and(|found| {
        let before = found[1].split(' ');
        before.clone().all(|word| !is_one(word, STATES)) && !is_one(&found[2], STATED)
    })
}

/// Returns true if a sentence reports that something does not work after the agent's change.
fn is_report(sentence: &str) -> bool {
    let words = sentence.split_whitespace().count();
    if words > MAX_REPORT || SUPPOSES.is_match(sentence) {
        return false;
    }
    TESTS_FAIL.is_match(sentence)
        || STILL.is_match(sentence)
        || (REPORTS.is_match(sentence)
            && DENIES.is_match(sentence)
            && (JUST_NOW.is_match(sentence)
                || sentence.starts_with("i ")
                || sentence.starts_with("i'm ")))
}

/// Returns true if a sentence, or a clause that gives its reason, says what is wrong with the work.
fn meets(sentence: &str) -> bool {
    const MAX_WORDS: usize = 45;
    let clauses = [" because ", " but "].into_iter();
    let clauses = clauses.filter_map(|word| Some(sentence.split_once(word)?.1));
    sentence.split_whitespace().count() <= MAX_WORDS
        && std::iter::once(sentence).chain(clauses).any(|clause| {
            !ASKS.is_match(clause) && MEETS.is_match(clause) && !MEETS_NOTHING.is_match(clause)
        })
}

/// Returns true if the message is the output of a program that failed, with at most a few words
/// before it.
fn is_failed_output(message: &str, beginning: &str) -> bool {
    const MAX_INTRODUCTION: usize = 8;
    let first = beginning.lines().next().unwrap_or_default();
    let has_lines = message.lines().filter(|line| !line.trim().is_empty()).count() > 2;
    let tail = &message[message.ceil_char_boundary(message.len().saturating_sub(2000))..];
    has_lines
        && first.split_whitespace().count() <= MAX_INTRODUCTION
        && !after_work::ends_in_question(message)
        && !SUPPOSES.is_match(first)
        && FAILED_OUTPUT.is_match(&tail.to_lowercase())
}

fn is_one(word: &str, words: &str) -> bool {
    super::is_one_of(word, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify(message: &str, previous: Option<&str>) -> Option<Objection> {
        classify_after(message, previous, AgentTurn::default())
    }

    fn classify_after(message: &str, previous: Option<&str>, turn: AgentTurn) -> Option<Objection> {
        let previous = previous.map(RequestWords::from_message);
        classify_objection(message, previous.as_ref(), turn).0
    }

    #[test]
    fn commands_that_take_work_back() {
        for (text, expected) in [
            ("<bash-input>git checkout -- a.css</bash-input>", Some("git checkout -- a.css")),
            ("<bash-input> git reset --hard HEAD~1</bash-input>", Some("git reset --hard HEAD~1")),
            ("<command-name>/rewind</command-name>\n<command-args>", Some("/rewind")),
            ("/undo", Some("/undo")),
            ("/git reset --hard HEAD^", Some("/git reset --hard HEAD^")),
            ("/run pytest", None),
            ("<bash-input>git checkout main</bash-input>", None),
            ("<command-name>/clear</command-name>", None),
            ("revert that", None),
        ] {
            assert_eq!(command_that_takes_back(text), expected, "{text}");
        }
    }

    #[test]
    fn some_objections_need_work_before_them() {
        let request = "add a dark mode toggle to the header and to the settings";
        for (message, is_objection) in [
            ("the toggle is missing on mobile", true),
            ("looks exactly the same to me", true),
            ("none of the changes are showing", true),
            ("now the sidebar is empty", true),
            ("where did the search box go?", true),
            ("nice, but it only works on chrome", true),
            ("you mocked the header", true),
            ("add a dark mode toggle to the header", true),
            ("use the icon of the theme instead", true),
            ("no, in the header", true),
            ("❯ npm run dev\nsh: vite: command not found", true),
            ("slower than before", true),
            ("why is there a new dependency", true),
            ("the footer should get the same treatment", false),
            ("the old server is still running, leave it", false),
            ("is the cache empty after a restart?", false),
            ("what is missing for other themes?", false),
            ("the readme is outdated, update it", false),
            ("you made my day", false),
            ("in the error page, check the message too", false),
            ("now the settings page", false),
            ("no problem, later", false),
        ] {
            let message = message.replace("\\n", "\n");
            let found = |has_worked| {
                let turn = AgentTurn { has_worked, ..AgentTurn::default() };
                classify_after(&message, Some(request), turn).is_some()
            };
            assert_eq!((found(true), found(false)), (is_objection, false), "{message}");
        }
        let asked = AgentTurn { has_worked: true, has_asked: true, was_refused: false };
        assert_eq!(classify_after("no, in the header", Some(request), asked), None);
        let refused = AgentTurn { has_worked: true, has_asked: false, was_refused: true };
        let redirected = classify_after("look into the other folder first", None, refused);
        assert_eq!(redirected, Some(Objection::Corrects));
        for message in [
            "continue",
            "what does that command do?",
            "great work, i'll push it myself",
            "i will run it myself",
        ] {
            assert_eq!(classify_after(message, None, refused), None, "{message}");
        }
    }

    #[test]
    fn each_kind() {
        use Objection::{AsksAgain, Complains, Corrects, Reverts};
        for (message, previous, expected) in [
            ("it is broken again", None, Some(Complains)),
            ("No, I meant the other file", None, Some(Corrects)),
            ("no, i mean the second one", None, Some(Corrects)),
            ("you forgot the tests", None, Some(Corrects)),
            ("Why did you delete it?", None, Some(Corrects)),
            ("don't mock", None, Some(Corrects)),
            ("Don't mock the database, use the real one", None, Some(Corrects)),
            ("get not post", None, Some(Corrects)),
            ("use GET, not POST", None, Some(Corrects)),
            ("in the header, not the footer", None, Some(Corrects)),
            ("not the new button. this one", None, Some(Corrects)),
            ("please revert that", None, Some(Reverts)),
            ("undo", None, Some(Reverts)),
            ("/undo", None, Some(Reverts)),
            ("/rewind", None, Some(Reverts)),
            ("! git checkout -- src/a.py", None, Some(Reverts)),
            ("it still shows the old title, nothing changed", None, Some(Complains)),
            ("the list is not loading now", None, Some(Complains)),
            (
                "$ npm ci\nnpm error code 1\nnpm error missing lock file\nexit code: 1",
                None,
                Some(Complains),
            ),
            ("I loaded it but now I don't see the toolbar.", None, Some(Complains)),
            ("[Image #3] the logo text is still white", None, Some(Complains)),
            ("its not updating on the site", None, Some(Corrects)),
            ("it lets me pick one but won't let me save", None, Some(Complains)),
            ("i have this error : Failed to compile.", None, Some(Complains)),
            ("Here is a bug that I am seeing in all of the pages.", None, Some(Complains)),
            ("I mean, you don't have to write all of them yet.", None, Some(Corrects)),
            ("this whole time I meant the other project", None, Some(Corrects)),
            ("why not using the server?", None, Some(Corrects)),
            ("check again", None, Some(Corrects)),
            ("just remove it. I want to edit it myself", None, Some(Reverts)),
            ("delete all changes", None, Some(Reverts)),
            ("run the tests", Some("run the tests!"), Some(AsksAgain)),
            ("again: run the tests please", Some("run the tests!"), Some(AsksAgain)),
        ] {
            assert_eq!(classify(message, previous), expected, "{message}");
        }
    }

    #[test]
    fn tone_series_and_answers_are_no_objection() {
        for (message, previous) in [
            ("jesus, everything works, you are a monster", None),
            ("holy shit that's fast", None),
            ("wtf this is so good lol", None),
            ("damn, nice", None),
            ("what the hell, it just works!", None),
            ("ugh, mondays. ok next: the footer", None),
            (
                "please change module 2 so that it handles case 2",
                Some("please change module 1 so that it handles case 1"),
            ),
            ("now add a test for b.py", Some("now add a test for a.py")),
            ("continue", Some("continue")),
            ("add an undo button", None),
            ("no, thanks", None),
            ("No, that's all for now. Thanks for your help!", None),
            ("No, that's okay.", None),
            ("No, I don't have it", None),
            ("Thanks again! Will do.", None),
            ("No", None),
            ("yes, do it", None),
            ("now the other one", None),
            ("yes, run the tests", Some("run the tests!")),
            ("don't worry about the docs", None),
            ("I'm not sure", None),
            ("it is not urgent", None),
            ("I wanted to use the larger certificate for part of it", None),
            ("if it does not work now, tell me", None),
            ("why did you choose sqlite?", None),
            ("i don't see why not", None),
            ("the build is still running", None),
            ("can you check that i get an error without a token?", None),
            ("remove the old parser", None),
            ("why not use sqlite?", None),
        ] {
            assert_eq!(classify(message, previous), None, "{message}");
        }
    }
}
