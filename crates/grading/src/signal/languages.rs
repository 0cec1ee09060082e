//! Detects complaints and thanks in German, French, Spanish, Chinese and Japanese by idiom.
//!
//! The language is not detected, since each idiom belongs to one language. A conditional sentence
//! is not a complaint, and declining something (*no, thanks*) is not thanks.

use std::sync::LazyLock;

use regex::Regex;

use super::unquoted::{sentences, without_quotes};

/// Complaints in German, French, Spanish, Chinese and Japanese.
const COMPLAINTS: [&str; 30] = [
    // German
    r"\b(?:geht|funktioniert|klappt|läuft|tut|hilft|stimmt)\b(?: (?:das|es|aber|leider|so|doch|noch|immer|weiterhin|trotzdem|auch|jetzt|gar|überhaupt|schon|wieder))* (?:nicht|nix|net)\b",
    r"\bimmer noch (?:nicht|kaputt|falsch|de[rn] (?:gleiche|selbe)|derselbe|ein fehler|fehler|nix|kein)|\bnoch immer (?:nicht|kaputt|falsch)\b",
    r"\bschon wieder\b|\b(?:nochmal|wieder) falsch\b|^(?:nein[, ]+)?falsch\b",
    r"\b(?:das|es|alles) (?:ist|war) (?:aber |doch |leider |jetzt |immer noch |komplett |völlig |total |ein |kompletter |totaler )*(?:falsch|kaputt|unsinn|quatsch|mist|blödsinn|müll|scheiße|schrott)\b|\balles kaputt\b",
    r"\b(?:ich )?hab(?:e|s|'s)?(?: ich)?(?: es| dir| doch| schon| bereits| ja| mehrfach| dreimal| das)* (?:gesagt|geschrieben|erklärt)\b.*|\bich sagte (?:doch|schon|bereits|nicht)\b",
    r"\b(?:warum|wieso|weshalb) (?:hast|löschst|änderst|machst|fasst|nimmst|baust|ignorierst|entfernst|fügst|tust) du\b|\bwas (?:soll|machst du da|zum)\b.*(?:scheiß|denn|teufel|mist|der|das)",
    r"\b(?:schei(?:ß|ss)\w*|verdammt\w*|so ein mist|mist|kacke|verflucht|herrgott|zum teufel|blödsinn|spinnst du|echt jetzt)\b|\bnicht(?: das)?,? was ich (?:wollte|gesagt|gemeint|verlangt|brauche)\b|\bdu (?:hast|hörst)\b.*\b(?:nicht zu|kaputt|gelöscht|ignoriert|zerstört|falsche[ns]?|vergessen)\b|\b(?:gleiche|selbe)r? fehler\b|\bderselbe fehler\b",
    // French
    r"\b(?:ça|ca|cela|il|elle|rien|le \w+|la \w+)? ?(?:ne )?(?:marche|fonctionne|compile|démarre|passe|sert)\b(?: \w+)? (?:toujours pas|encore pas|pas|plus|à rien|jamais)\b|\brien ne (?:marche|fonctionne)\b",
    r"\btoujours (?:pas|la même erreur|le même|cassé|faux|rien|une erreur|l'erreur)|\bla même erreur\b|\bencore (?:faux|une erreur|cassé|raté|le même|la même)\b|\b(?:plante|échoue|bug(?:ue)?) (?:encore|toujours)\b",
    r"\bje (?:t'|te |vous )?(?:ai|avais|l'ai)?(?: déjà| bien)* ?dit\b|\bje t'(?:ai|avais) (?:déjà |bien )*(?:dit|demandé)\b|\bcombien de fois\b|\brelis\b",
    r"\bpourquoi (?:tu (?:as|fais|changes|supprimes|modifies|touches|enlèves|continues|ajoutes)|as-tu|avez-vous|vous avez|fais-tu)\b",
    r"\b(?:putain|merde|bordel|fait chier|n'importe quoi|c'est nul|nul à chier|foutu|foutre|conneries?|quelle merde|sérieux \?)",
    r"\b(?:tu as|t'as|vous avez) (?:tout |encore |complètement )*(?:cassé|supprimé|effacé|ignoré|oublié|détruit|écrasé|foiré)\b|\b(?:tout|c'est)(?: est)? (?:encore |complètement |toujours )*cassé\b|\b(?:c'est|ce n'est|c'était) (?:pas )?(?:complètement |totalement |encore |toujours )*(?:faux|pas ce que j|nul|mauvais|pire)|\bce n'est pas (?:ça|ce que)|\bc'est pas (?:ça|ce que)",
    // Spanish
    r"\b(?:no|nada|sigue sin|tampoco|todavía no|aún no) (?:me )?(?:funciona|funcionar|compila|compilar|sirve|anda|va bien|carga|arranca)\b",
    r"\bsigue (?:sin|fallando|dando|roto|igual|mal|estando|saliendo|el mismo)|\b(?:el )?mismo error\b|\botra vez (?:mal|lo mismo|el mismo|roto|el error|falla)|\bmal otra vez\b|\bde nuevo (?:mal|el mismo)",
    r"\bte (?:lo )?(?:dije|he dicho|había dicho|pedí)\b|\bya (?:te )?(?:lo )?(?:dije|he dicho|expliqué)\b|\bcuántas veces\b",
    r"\bpor ?qu[eé] (?:borraste|cambiaste|eliminaste|hiciste|has |haces|tocaste|quitaste|modificaste|sigues|ignoras|no (?:leíste|hiciste))",
    r"\b(?:joder|mierda|coño|carajo|puta|hostia|cojones|qué asco|qué desastre|no sirve|basura|inútil)\b",
    r"\b(?:lo |la |todo )?(?:rompiste|has roto|arruinaste|estropeaste|borraste)\b(?: (?:todo|mi|el|la|los|las))|\b(?:lo|la) (?:rompiste|has roto|arruinaste)\b|\b(?:eso|esto|todo) (?:está|es|sigue) (?:\w+ )?(?:mal|roto|incorrecto|peor|equivocado)\b|\bno es lo que (?:pedí|quería|dije)|\bestá (?:todo )?(?:roto|mal)\b",
    // Chinese
    r"还是(?:不行|不对|不能|报错|错|没|有(?:问题|错|bug)|一样|失败|老样子|崩)|仍然(?:不|报错|有|没|失败)|依然(?:不|报错|有|没|失败)",
    r"又(?:错|报错|坏|崩|失败|改|来|不|挂|忘)|(?:一直|总是|老是)(?:报错|错|失败|不)",
    r"(?:我|已经|早就|不是)(?:已经|都|早就|刚才|刚刚)?(?:说|讲|告诉)(?:过|了|你)|说了(?:多少|几)遍|跟你说",
    r"为什么(?:你)?(?:又|要|把|没|不听|总|老|删|改了|擅自)|你(?:为什么|干嘛|怎么|到底|在干)(?:把|又|删|改|在|什么|不|没|嘛|搞|能)",
    r"什么鬼|妈的|他妈|卧槽|我靠|操|狗屎|垃圾|傻|废物|有病|无语|气死|服了|离谱|扯淡|胡说|瞎(?:改|写|搞|编)|乱(?:改|写|搞|来)|搞什么",
    r"(?:完全|根本|全|都|全都)(?:没用|不对|错|坏|不能用|不行|不工作|没有用|崩)|没(?:用|解决|修好|生效|效果|反应)|(?:弄|搞|改)(?:坏|砸|错|崩)|^(?:不对|不行|错了|不是这样)|(?:不能|没法|无法)用了?$|不是我(?:要|想|说)|没(?:看|读|听)",
    // Japanese
    r"まだ(?:動|直|だめ|ダメ|駄目|エラー|同じ|壊|失敗|治|解決|おかし)|(?:相変わらず|依然)",
    r"また(?:同じ|エラー|間違|壊|失敗|だめ|ダメ|落ち)|同じ(?:エラー|ミス|間違い|問題)(?:が|です|だ|を|$)",
    r"(?:さっき|前に|何度も|だから|もう|すでに|既に)[^。？?]{0,14}(?:言|伝え)(?:っ|い|え|た)|って言(?:った|って|いました|ってる)|何回(?:言|も)|話を聞",
    r"(?:なんで|なぜ|どうして|何で)[^。]{0,24}(?:消し|変え|変更し|触|削除し|壊し|勝手|無視|いじ|やっ)",
    r"全然(?:違|だめ|ダメ|駄目|動|使え|直)|(?:違います|違う|ちがう|違うよ|違うって)(?:$|[。！!、])|ふざけ|くそ|クソ|ひどい|最悪|使えない|役に立た|意味(?:が)?(?:わから|不明)|いい加減|勝手に|壊れ(?:た|てる|ました|てしま)|(?:動|直)(?:か|き|って)(?:ない|ません|いない|いません)|うまくいか|できていません|頼んでいない",
];

/// Words that make a sentence conditional.
const SUPPOSED: &str = r"\b(?:wenn|falls|ob|sobald|si|s'il|cuando|lorsque|quand|en cas)\b|如果|要是|假如|万一|的话|(?:場合|たら|なら|もし|れば|とき|時)(?:は|、|に|$|の|どう)|もし";

/// Thanks and praise.
const THANKS: [&str; 7] = [
    r"\b(?:danke(?:schön|sehr)?|dank(?:e)? dir|vielen dank|besten dank|herzlichen dank)\b|^(?:super|perfekt|klasse|toll|prima|spitze|wunderbar|genial|sehr gut|passt|gut gemacht)(?:[,.! ]|$)|\bgenau (?:so|richtig)\b|\bpasst so\b",
    r"\bmerci\b|^(?:parfait|super|génial|excellent|impeccable|nickel|bravo|top|très bien)(?:[,.! ]|$)|\bc'est (?:parfait|génial|exactement ça|super|nickel)\b|\bbon (?:travail|boulot)\b",
    r"\bgracias\b|^(?:perfecto|genial|excelente|estupendo|fantástico|muy bien|buen[ií]simo|bien hecho)(?:[,.! ]|$)|\b(?:buen|gran) trabajo\b|\bexactamente lo que\b",
    r"谢谢|感谢|多谢|辛苦了|太(?:好|棒|赞)了|完美|很好|棒|赞(?:$|[！!。])|厉害|牛(?:$|[！!。逼])",
    r"ありがと|感謝|助かり(?:ました|ます)|助かった|完璧|素晴らし|すばらし|いいですね|最高|お疲れ様|グッド|ばっちり|バッチリ",
    r"^(?:完璧|いいね|良い感じ)",
    r"^\s*(?:thx|merci|danke|gracias)\s*[!.]*$",
];

/// Thanks that decline an offer.
const REFUSED: &str =
    r"\b(?:nein|non|no)[, ]+(?:danke|merci|gracias)\b|不用|不必|结构|結構です|いいえ|大丈夫です";

struct LanguagePatterns {
    complaints: Regex,
    supposed: Regex,
    thanks: Regex,
    refused: Regex,
}

static PATTERNS: LazyLock<LanguagePatterns> = LazyLock::new(|| {
    let regex = |pattern: &str| Regex::new(pattern).expect("the pattern is a constant");
    LanguagePatterns {
        complaints: regex(&COMPLAINTS.join("|")),
        supposed: regex(SUPPOSED),
        thanks: regex(&THANKS.join("|")),
        refused: regex(REFUSED),
    }
});

/// The complaint patterns without word boundaries, which match a superset. With Unicode boundaries
/// the engine takes several times as long on text that is not all ASCII.
static PREFILTER: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = COMPLAINTS.join("|").replace(r"\b", "");
    Regex::new(&pattern).expect("the pattern is a constant")
});

/// Returns true if a folded sentence complains in one of the languages.
pub(super) fn is_complaint(sentence: &str) -> bool {
    // The engine is fast on ASCII text anyway.
    let may_complain = sentence.is_ascii() || PREFILTER.is_match(sentence);
    may_complain && PATTERNS.complaints.is_match(sentence) && !PATTERNS.supposed.is_match(sentence)
}

/// Returns true if a folded text thanks or praises in one of the languages.
pub(super) fn is_gratitude(text: &str) -> bool {
    let bare = without_quotes(text);
    sentences(&bare)
        .any(|sentence| PATTERNS.thanks.is_match(sentence) && !PATTERNS.refused.is_match(sentence))
}
