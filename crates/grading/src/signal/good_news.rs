//! Detects praise and faults that are gone: *the error is gone now, thanks*. What a sentence says of
//! a fault is then no objection to the work, unless it takes the thanks back.

use std::sync::LazyLock;

use regex::Regex;

use super::languages;
use super::vocabulary::{PRAISE, anywhere, takes_back};
use crate::english;

static PRAISES: LazyLock<Regex> = LazyLock::new(|| english::regex(PRAISE));
/// Words right before praise that deny it or only wish for it.
static DENIED: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"(?:\b(?:not|no|never|isn't|aren't|wasn't|doesn't|don't|didn't|less|be|make it|than) |\b(?:look|work) )(?:[a-z]+ ){0,2}$",
    )
});
/// Faults that are gone, and work that is better than it was.
static FAULT_IS_GONE: LazyLock<Regex> = LazyLock::new(|| {
    let fault = r"(?:errors?|warnings?|bugs?|flicker(?:s|ing)?|crash(?:es|ing)?|exceptions?|problems?|issues?|failures?|leaks?|glitch(?:es)?|lags?|stutter(?:ing)?|regressions?|deadlocks?|panics?|timeouts?|conflicts?)";
    let faults = r"(?:errors|warnings|bugs|crashes|exceptions|problems|issues|failures|leaks|glitches|timeouts|conflicts|flickering|lag)";
    anywhere(&[
        &format!(
            r"\b{fault}(?: (?:in|on|from|of|with|at) (?:the |my |our )?[a-z-]+(?: [a-z-]+)?)?(?:'s)?(?: (?:is|are|has|have|was|were|seems?|to|be|been|all|now|also|finally|really|completely|just))* (?:gone|disappeared|vanished|fixed|solved|resolved)\b"
        ),
        r"\bno longer (?:[a-z]+ )?(?:crash|fail|flicker|break|throw|hang|freez|leak|error|panic|overlap|lag|stutter)[a-z]*\b",
        r"\b(?:doesn't|does not|don't|isn't|not) (?:crash|fail|flicker|break|throw|hang|freez|leak|panic|overlap|lag|stutter)[a-z]*(?: errors)? (?:any ?more|now)\b",
        &format!(
            r"\b(?:don't|do not|can't|cannot|can not|couldn't|didn't) (?:see|find|get|spot|notice) (?:any )?(?:other |more |further )?{faults}\b"
        ),
        // A fault that did not come.
        r"^(?:it |this |that |the [a-z]+ )?(?:didn't|did not|doesn't|never) (?:crash|fail|break|hang|flicker|freeze|leak)(?:es|ed|s)?(?: (?:any ?more|now|once|at all|so far|yet))*[.! ]*$|^(?:nothing|no [a-z]+)(?: is| are)? (?:broke|broken|failed|failing|crashed)[.! ]*$",
        &format!(
            r"\b(?:no|without|zero)(?: more| any| further| new| other)* (?:[a-z]+ )?(?:{faults}(?:[,.!;]|\s*$| (?:now|any ?more|at all|so far|left|and|again|in|on)\b)|{fault}(?:[,.!;]|\s*$| (?:now|any ?more)\b))"
        ),
        r"\b(?:faster|quicker|smoother|cleaner|better) (?:than (?:before|it was)|now|after|since|with)\b",
        r"\b(?:works?|pass|passes|runs?|builds?|compiles?) (?:fine |now |again )*(?:after|since|with) your\b",
        // What is as it should be.
        r"\b(?:works?|working|passes|passed|pass|fixed|(?:is|are) (?:all |now |back |finally )*(?:fine|ok|okay|good|done|up|green|running|live|online|deployed|merged|clear|clearer|ready|pushed|back|available|installed|fixed)|all (?:good|fine|green|done)|looks (?:good|fine|ok|right|correct))(?: (?:now|again|fine|too|here|for me|everywhere))*[.!,; ]*$",
        r"\b(?:right|correct|expected|proper) \w+ (?:instead|now)\b|\bnothing (?:is|was|else) (?:missing|broken|wrong|failing|to)\b",
    ])
});
/// Words outside such a statement that report another fault.
static DENIES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:not|nothing|none|never|cannot|[a-z]+n't|fails?|failed|crash(?:es)?|missing|broken|blank|empty|stuck|wrong|instead|gone|lost|worse|slower|should)\b",
    )
});

/// Returns true if a folded sentence thanks, praises, or says that a fault is gone, in any language.
pub(super) fn is_good_news(sentence: &str) -> bool {
    let is_fault_gone = || {
        !takes_back(sentence)
            && FAULT_IS_GONE.find(sentence).is_some_and(|gone| {
                !DENIES.is_match(&sentence[..gone.start()])
                    && !DENIES.is_match(&sentence[gone.end()..])
            })
    };
    praises(sentence) || is_fault_gone() || languages::is_good_news(sentence)
}

/// Returns true if a folded sentence thanks or praises in English.
pub(super) fn praises(sentence: &str) -> bool {
    !takes_back(sentence)
        && PRAISES.find_iter(sentence).any(|praise| !DENIED.is_match(&sentence[..praise.start()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thanks_count_unless_they_are_taken_back() {
        for (sentence, expected) in [
            ("the error is gone now", true),
            ("it no longer crashes", true),
            ("it runs without errors", true),
            ("works, thanks", true),
            ("it works now", true),
            ("the error is gone, but the page is blank", false),
            ("nothing happens, no errors in the console", false),
            ("the bug is not fixed", false),
            ("it is not great", false),
            ("thanks, it still crashes", false),
            ("no error message", false),
            ("der fehler ist weg", true),
            ("danke, aber der knopf fehlt", false),
            ("der knopf ist weg", false),
            ("谢谢，但是还是报错", false),
            ("super, but it fails", false),
        ] {
            assert_eq!(is_good_news(sentence), expected, "{sentence}");
        }
    }
}
