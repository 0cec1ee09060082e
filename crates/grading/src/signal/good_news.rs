//! Detects thanks, praise and faults that are gone, in English and the languages of
//! `objection_idioms.rs`: *the error is gone now, thanks*. What a sentence says of a fault is then
//! no objection to the work, unless it takes the thanks back.

use std::sync::LazyLock;

use regex::Regex;

use crate::english;

/// Thanks and praise in English.
static PRAISES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:thanks|thank (?:you|u|god)|thx|ty|tysm|cheers|nice|nicely|great|perfect|perfectly|awesome|excellent|brilliant|impressive|impressed|lovely|(?:love|like) (?:it|this|that|how)|fantastic|amazing|wonderful|beautiful|beautifully|superb|sweet|neat|cool|well done|works well|my day|good (?:job|work|catch|stuff|call|one)|as expected)\b|[,!-] +good[.! ]*$|^good\b|\bso good\b",
    )
});
/// Words right before praise that deny it or only wish for it.
static DENIED: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"(?:\b(?:not|no|never|isn't|isnt|aren't|wasn't|doesn't|doesnt|don't|dont|didn't|less|be|make it|than) |\b(?:look|work) )(?:[a-z]+ ){0,2}$",
    )
});
/// Words that take thanks back.
static TAKES_BACK: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"\b(?:but|still|however|except|although|though|unfortunately|sadly|yet)\b")
});
/// Faults that are gone, and work that is better than it was.
static FAULT_IS_GONE: LazyLock<Regex> = LazyLock::new(|| {
    let fault = r"(?:errors?|warnings?|bugs?|flicker(?:s|ing)?|crash(?:es|ing)?|exceptions?|problems?|issues?|failures?|leaks?|glitch(?:es)?|lags?|stutter(?:ing)?|regressions?|deadlocks?|panics?|timeouts?|conflicts?)";
    let faults = r"(?:errors|warnings|bugs|crashes|exceptions|problems|issues|failures|leaks|glitches|timeouts|conflicts|flickering|lag)";
    english::regex(
        &[
            format!(r"\b{fault}(?: (?:in|on|from|of|with|at) (?:the |my |our )?[a-z-]+(?: [a-z-]+)?)?(?:'s)?(?: (?:is|are|has|have|was|were|seems?|to|be|been|all|now|also|finally|really|completely|just))* (?:gone|disappeared|vanished|fixed|solved|resolved)\b").as_str(),
            r"\bno longer (?:[a-z]+ )?(?:crash|fail|flicker|break|throw|hang|freez|leak|error|panic|overlap|lag|stutter)[a-z]*\b",
            r"\b(?:doesn't|does not|don't|isn't|not) (?:crash|fail|flicker|break|throw|hang|freez|leak|panic|overlap|lag|stutter)[a-z]*(?: errors)? (?:any ?more|now)\b",
            format!(r"\b(?:no|without|zero)(?: more| any| further| new| other)* (?:[a-z]+ )?(?:{faults}(?:[,.!;]|\s*$| (?:now|any ?more|at all|so far|left|and|again|in|on)\b)|{fault}(?:[,.!;]|\s*$| (?:now|any ?more)\b))").as_str(),
            r"\b(?:faster|quicker|smoother|cleaner|better) (?:than (?:before|it was)|now|after|since|with)\b",
            r"\b(?:works?|pass|passes|runs?|builds?|compiles?) (?:fine |now |again )*(?:after|since|with) your\b",
        ]
        .join("|"),
    )
});
/// Words outside such a statement that report another fault.
static DENIES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"\b(?:not|nothing|none|never|cannot|cant|doesnt|dont|isnt|wont|[a-z]+n't|fails?|failed|crash(?:es)?|missing|broken|blank|empty|stuck|wrong|instead|gone|lost|worse|slower)\b",
    )
});

/// Thanks and praise in the other languages.
const THANKS: &str = r"\b(?:danke\w*|vielen dank|merci|gracias|obrigad[oa]|valeu|dzięki|dziękuję|спасибо|благодарю)\b|谢谢|感谢|多谢|辛苦了|ありがと|感謝|助かり|助かった|^(?:super|perfekt|klasse|toll|prima|spitze|wunderbar|genial|génial|sehr gut|parfait|excellent|impeccable|bravo|très bien|perfecto|excelente|estupendo|fantástico|muy bien|ótimo|perfeito|maravilha|świetnie|doskonale|отлично|супер|прекрасно)(?:[,.! ]|$)|太好了|太棒了|完美|很好|真棒|厉害|完璧|素晴らし|すばらし|いいですね|最高";
/// Faults that are gone in the other languages.
const GONE: &str = r"\b(?:fehler|problem|bug|absturz|warnungen|flackern)\b(?: (?:ist|sind|jetzt|nun|damit|auch|endlich))+ (?:weg|verschwunden|behoben|gelöst)\b|\b(?:tritt|treten|taucht|tauchen|stürzt|stürzen)\b[^,]* nicht mehr (?:auf|ab)\b|\b(?:nichts mehr kaputt|ohne fehler|keine fehler mehr)\b|\bplus (?:d'|aucune? |de |l')(?:erreur|bug|problème|plantage)s?\b|\b(?:erreur|bug|problème) (?:a disparu|est (?:corrigée?|résolue?))\b|\bsans erreurs?\b|\b(?:error|fallo|bug|problema) (?:ya )?(?:desapareció|ha desaparecido|está (?:resuelto|arreglado))\b|\bya no (?:aparece|sale|da|hay|falla)(?: (?:el|ese|este|ningún|más))? (?:error|errores|fallo|problema)\b|\bsin errores\b|\b(?:erro|bug|problema) (?:sumiu|desapareceu|foi (?:corrigido|resolvido))\b|\bsem erros\b|\b(?:błąd|bug|problem) (?:już )?(?:zniknął|naprawiony|rozwiązany)\b|\bbez błędów\b|\b(?:ошибк[аи]|баг|проблема) (?:уже |больше |теперь )?(?:пропал[аи]?|исчезл?[аи]?|исправлена?|решена)\b|\bбольше не (?:падает|вылетает|ломается)\b|\bошибок (?:больше )?нет\b|(?:错误|报错|问题|bug|警告)(?:都|已经|也)?(?:不见了|消失|没了|没有了|解决了)|不再(?:报错|崩溃|出错)|没有(?:问题|报错|错误)了|(?:エラー|バグ|問題|警告|ちらつき)(?:が|は|も)?(?:もう)?(?:出ません|出なく|消え|なくな|ありません)";
/// Words of the other languages that take thanks back.
const BUT: &str = r"\b(?:aber|jedoch|leider|trotzdem|immer noch|noch immer|mais|cependant|pourtant|toujours|pero|sin embargo|todavía|sigue|mas|porém|ainda|ale|jednak|nadal|wciąż|dalej|но|однако|по-прежнему)\b|вс[её] (?:ещ[её]|равно)|但|不过|可是|然而|还是|仍|しかし|でも|けど|ですが|まだ";

struct OtherLanguages {
    thanks: Regex,
    gone: Regex,
    but: Regex,
}

static OTHERS: LazyLock<OtherLanguages> = LazyLock::new(|| {
    let regex = |pattern: &str| Regex::new(pattern).expect("the pattern is a constant");
    OtherLanguages { thanks: regex(THANKS), gone: regex(GONE), but: regex(BUT) }
});

/// Returns true if a folded sentence thanks, praises, or says that a fault is gone.
pub(super) fn is_good_news(sentence: &str) -> bool {
    praises(sentence)
        || (!TAKES_BACK.is_match(sentence)
            && FAULT_IS_GONE.find(sentence).is_some_and(|gone| {
                !DENIES.is_match(&sentence[..gone.start()])
                    && !DENIES.is_match(&sentence[gone.end()..])
            }))
}

/// Returns true if a folded sentence thanks or praises in English.
pub(super) fn praises(sentence: &str) -> bool {
    !TAKES_BACK.is_match(sentence)
        && PRAISES.find_iter(sentence).any(|praise| !DENIED.is_match(&sentence[..praise.start()]))
}

/// Returns true if a folded sentence in another language thanks, praises, or says that a fault is
/// gone.
pub(super) fn is_good_news_elsewhere(sentence: &str) -> bool {
    let others = &*OTHERS;
    (others.thanks.is_match(sentence) || others.gone.is_match(sentence))
        && !others.but.is_match(sentence)
        && !TAKES_BACK.is_match(sentence)
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
            ("the error is gone, but the page is blank", false),
            ("nothing happens, no errors in the console", false),
            ("the bug is not fixed", false),
            ("it is not great", false),
            ("thanks, it still crashes", false),
            ("no error message", false),
        ] {
            assert_eq!(is_good_news(sentence), expected, "{sentence}");
        }
        for (sentence, expected) in [
            ("der fehler ist weg", true),
            ("danke, aber der knopf fehlt", false),
            ("der knopf ist weg", false),
            ("谢谢，但是还是报错", false),
            ("super, but it fails", false),
        ] {
            assert_eq!(is_good_news_elsewhere(sentence), expected, "{sentence}");
        }
    }
}
