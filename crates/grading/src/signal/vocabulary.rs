//! Lists of English words that several rules share, each in one place, and what they make of a
//! sentence: a question, an order, a supposition or a statement.

use std::sync::LazyLock;

use regex::Regex;

use crate::english;

/// Words before a remark that do not change it.
pub(super) const LEAD: &str = r"(?:(?:no+|nope|nah|yes|yeah|ok|okay|well|hmm+|hm|oh|ah|uh|ugh|argh|hey|wait|whoa|but|and|so|then|now|also|just|please|pls|actually|again|sorry|thanks|thank you|thx|nice|great|perfect|cool|close|closer|better|seriously|unfortunately|sadly|honestly|somehow|apparently|strange|weird|however|fyi|btw|man|dude|bro|omg|wtf|ffs|fgs|jesus|damn|i think|i believe|i guess|(?:it )?(?:looks|seems|feels)(?: to me)?(?: like| that)?)[,.!? :-]+)*";

/// Adverbs between a verb and what it says.
pub(super) const ADVERBS: &str = r"(?:still|now|just|all|also|both|even|only|again|always|once|then|completely|totally|entirely|partly|a bit|a little|kind of|kinda|really|slightly|way|far|pretty much|exactly|basically|suddenly|currently|actually|simply|somehow|clearly|obviously|probably|apparently|accidentally|accidently|literally|seriously|correctly|properly|quite|much|being|getting|fully|already|so|very|too)";

/// First words of questions.
const QUESTIONS: &str = r"(?:what|which|who|whose|how|can|could|would|will|shall|may|is|are|am|does|do|did|was|were|has|have|should (?:i|we|it|this|that|the|there|they)|where (?:is|are|do|does|should|can|will)|any (?:idea|reason|chance|way)|wondering|curious)";

/// First words of suppositions.
const SUPPOSITIONS: &str = r"(?:if|when|whenever|unless|until|once|as soon as|every time|suppose|imagine|assume|in case|after|before|while)";

/// First words of orders, wishes and plans.
const ORDERS: &str = r"(?:(?:can|could|would|will) (?:you|we|u)|please|pls|let's|lets|let|i(?:'d| would) (?:like|love|want)|i (?:want|need|wanna)|we (?:need|want|should|could)|you (?:can|could|should|need|may)|help|add|adapt|adjust|allow|apply|archive|ask|assert|audit|autofix|bench|bring|build|call|catch|center|change|check|clean|close|comment|commit|compare|configure|connect|continue|convert|copy|create|cut|debug|delete|deploy|describe|disable|do|document|don't|draft|drop|encrypt|enable|ensure|explain|export|extend|extract|feel|find|fix|follow|format|generate|get|give|go|handle|hide|ignore|implement|import|improve|include|increase|install|investigate|keep|kill|label|launch|leave|limit|list|load|log|look|make|mark|measure|merge|migrate|mind|mock|move|name|never|open|optimi[sz]e|pause|pick|ping|print|proceed|push|put|read|rebase|reduce|refactor|reformat|release|remind|remove|rename|render|replace|report|rerun|re-run|resume|restore|retry|return|revert|review|rewrite|run|save|search|see|send|set|ship|show|simplify|skip|sort|split|squash|start|store|summari[sz]e|support|take|tell|test|think|translate|treat|try|turn|undo|update|upgrade|use|validate|verify|wait|wrap|write|errors? [a-z ]*(?:should|must|need)|for (?:each|every|all|now)|maybe|perhaps|rather|next|same for|what about|how about)";

/// Words that make praise of a sentence.
pub(super) const PRAISE: &str = r"\b(?:thanks|thank (?:you|u|god)|thx|ty|tysm|cheers|nice|nicely|great|perfect|perfectly|awesome|excellent|brilliant|impressive|impressed|lovely|(?:love|like) (?:it|this|that|how)|fantastic|amazing|wonderful|beautiful|beautifully|superb|sweet|neat|cool|wow|happy|helpful|well done|works well|my day|good (?:job|work|catch|stuff|call|one|enough|point|idea|summary)|as expected|makes sense|exactly what)\b|[,!-] +good[.! ]*$|^good\b|\bso good\b";

/// Words that take praise back.
const TAKES_BACK: &str =
    r"\b(?:but|still|however|except|although|though|unfortunately|sadly|yet)\b";

/// What a sentence does, by its first words and its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    /// It asks something.
    Asks,
    /// It orders, wishes or announces something.
    Orders,
    /// It supposes something.
    Supposes,
    /// It states something.
    States,
}

/// Returns a pattern of any of the alternatives at the start of a sentence, after words that change
/// nothing.
pub(super) fn at_start(alternatives: &[&str]) -> Regex {
    english::regex(&format!("^{LEAD}(?:{})", alternatives.join("|")))
}

/// Returns a pattern of any of the alternatives.
pub(super) fn anywhere(alternatives: &[&str]) -> Regex {
    english::regex(&alternatives.join("|"))
}

static TAKEN_BACK: LazyLock<Regex> = LazyLock::new(|| english::regex(TAKES_BACK));

/// Returns true if a folded sentence has words that take praise back.
pub(super) fn takes_back(sentence: &str) -> bool {
    TAKEN_BACK.is_match(sentence)
}

/// Words by which a person does something alone: *i'll push it myself*.
static LEAVES_IT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"\b(?:i'll|i will|i'm going to|i am going to|let me|myself)\b")
});

/// Returns true if a folded text says that the person does something alone.
pub(super) fn leaves_it(text: &str) -> bool {
    LEAVES_IT.is_match(text)
}

struct MoodPatterns {
    asks: Regex,
    supposes: Regex,
    orders: Regex,
    names: Regex,
}

static MOODS: LazyLock<MoodPatterns> = LazyLock::new(|| MoodPatterns {
    asks: at_start(&[&format!(r"{QUESTIONS}\b")]),
    supposes: at_start(&[&format!(r"{SUPPOSITIONS}\b")]),
    orders: at_start(&[&format!(r"{ORDERS}\b")]),
    // *Build is red*, *submit does nothing*: the verb is the name of a thing.
    names: at_start(&[
        r"(?:the )?[a-z]+ (?:is|are|was|were|has|still|now|fails?|failed|crash(?:es|ed)?|does|doesn't|isn't|aren't|wasn't|never|button|page|tab|icon|menu|errors?$)\b",
    ]),
});

/// Returns what a folded sentence does.
pub(super) fn mood(sentence: &str) -> Mood {
    let moods = &*MOODS;
    if moods.supposes.is_match(sentence) {
        return Mood::Supposes;
    }
    // A doubled mark is astonishment: *only one page??*
    let end = sentence.trim_end();
    let is_question = end.ends_with(['?', '？']) && !end.ends_with("??");
    if moods.orders.is_match(sentence) && !moods.names.is_match(sentence) {
        return Mood::Orders;
    }
    if is_question || moods.asks.is_match(sentence) {
        return Mood::Asks;
    }
    Mood::States
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moods_follow_from_the_first_words() {
        for (sentence, expected) in [
            ("is it done", Mood::Asks),
            ("the cache is empty?", Mood::Asks),
            ("ok, can you add it?", Mood::Orders),
            ("now add a test", Mood::Orders),
            ("build is red", Mood::States),
            ("if it fails, retry", Mood::Supposes),
            ("it is empty", Mood::States),
        ] {
            assert_eq!(mood(sentence), expected, "{sentence}");
        }
    }
}
