"""Whether a sentence complains, by the rules of complaint.rs and languages.rs.

Most complaints can be told from a few words that they hold: whether a whole message has any of them
is asked before each of its sentences is searched for the patterns.
"""

import re

# Words that lead into a sentence without changing its meaning.
LEAD = r"^(?:(?:no+|nope|nah|ok|okay|but|and|so|sorry|hmm+|well|hey|hm|wait|man|dude|bro|omg|oh|argh|ugh|thanks|thank you|thx|great|nice|perfect|yeah|yes|also|again|now|seriously|unfortunately|actually|sadly|fyi)[,.! ]+)*"

# A complaint wherever it stands in a sentence that supposes nothing.
ANYWHERE = (
    r"\bi(?:'ve| have|'d)? (?:(?:already|just|clearly|specifically|explicitly|literally|never|repeatedly) )*(?:told|asked) you\b",
    r"\bi (?:already |clearly |specifically |explicitly |literally )*said (?:that |this |it )?(?:already|before|no|not|do not|don't)\b|\bi said [^.!?]{1,40}, not\b|\bas i(?:'ve| have)? (?:already )?said (?:before|already|twice|multiple)",
    r"\bi (?:didn't|did not|never|haven't) (?:ask|asked|want|wanted|tell|told|say|said) (?:you|for|to|that|this|it)\b",
    r"\bhow (?:many|often) (?:times )?(?:do|must|should|did) i\b|\b(?:second|third|fourth|fifth|\d+(?:nd|rd|th)) time (?:i|i'm|that|now|you|in)\b|\b(?:two|three|four|five|\d+|several|so many|multiple) times (?:now|already)\b|\btold you (?:this |that )?(?:already|before|twice|\w+ times)\b",
    r"\bread what i (?:wrote|said|asked)\b|\bnot what i (?:asked|wanted|meant|said|need|needed)\b",
    r"\byou (?:keep|kept) \w+ing\b|\byou(?:'re| are) (?:still |again |just |clearly |completely )*(?:not listening|going (?:around |round )?in circles|wrong|hallucinating|ignoring|wasting|lying|making (?:it|things|this) worse|useless|guessing)\b",
    r"\byou (?:never|didn't even|did not even|didn't actually|haven't even) \w+|\byou (?:didn't|did not) (?:do|read|listen|fix|follow|answer|change|understand|finish|run|test)\b|\byou (?:were|are) supposed to\b|\byou said (?:it|that|this|they)(?:'s| was| is| were| are| would)? (?:\w+ )?(?:fixed|done|working|work|passing|pass|tested|ready)\b",
    r"\byour (?:\w+ )?(?:fix|change|changes|code|edit|edits|version|solution|patch|refactor|commit|suggestion|answer) (?:broke|breaks|made|makes|doesn't|does not|didn't|did not|is wrong|is broken|fails|failed|causes?d?|introduced|crashes|is useless|makes no)\b",
    r"\bhallucinat(?:ed|ing|ion)\b|\byou made (?:that|this|it) up\b",
    r"\b(?:it's|its|that's|this is|is|made it|makes it|making it|it got|gets|got|even|much) (?:even |much |now )*worse\b",
    r"\bmakes? (?:absolutely )?no sense\b|\bwaste of (?:my |everyone's )?time\b|\blosing (?:my )?patience\b|\bi give up\b|\b(?:sick|tired) of (?:this|you|it)\b|\bfed up\b|\bin circles\b|\bfor the love of\b|\bkidding me\b|\bhow hard (?:can|is) (?:it|this)\b|\bwhat a (?:mess|waste|disaster|joke)\b|\bi can't believe\b",
    r"\b(?:this|that|it|that's|it's|this's|everything|the (?:code|answer|result|output|page|test|layout)) (?:is |was |looks )?(?:just |all |so |complete(?:ly)? |total(?:ly)? |absolute(?:ly)? |pure |really |such |a )*(?:garbage|trash|useless|terrible|horrible|awful|nonsense|ridiculous|absurd|unacceptable|a mess|a joke|pathetic|crap|rubbish|stupid|dumb|unusable)\b",
    r"\byou(?:'ve| have)? (?:just |also |again |now |completely |accidentally |somehow |literally |still |fucking )*(?:broke|broken|deleted|overwrote|overwritten|ignored|messed|ruined|lied|undid|undone|wrecked|destroyed|screwed|wasted|misread|reverted my|removed my|dropped the)\b",
    r"\byou(?:'ve| have)? (?:just |also |again |still )*(?:forgot|forgotten|missed|skipped)\b[^.?]*(?:\bagain\b|!|\bthe (?:whole )?point\b|\bhalf\b)",
    r"\bwhat (?:the \w+ )?(?:are|were) you (?:doing|thinking|talking)\b|\bhow did you (?:mess|break|manage|screw)\b|\bdid you (?:even|not|actually) (?:read|look|run|test|try|listen|check)\b|\bare you (?:kidding|serious|joking|even|blind|stupid|listening|dumb)\b",
    r"\b(?:makes|made) (?:it|things|everything) worse\b|\bthe same (?:mistake|error|bug) (?:again|over and over)\b|\bover and over\b",
    r"\bundo (?:that|this|it) (?:right )?now\b|\brevert everything\b|\bleave (?:it|that|this|my \w+|the \w+) alone\b",
)
# One of these stands in each of them, and in each of ASKED.
ANYWHERE_HINTS = (
    "you", "said ", "i didn't ", "i did not ", "i never ", "i haven't ", "how many ", "how often ",
    " time ", "times now", "times already", "what i ", "hallucinat", "worse", "sense", "waste of ",
    "losing ", "i give up", "sick of ", "tired of ", "fed up", "in circles", "for the love of",
    "kidding me", "how hard ", "what a ", "can't believe", "garbage", "trash", "useless",
    "terrible", "horrible", "awful", "ridiculous", "absurd", "unacceptable", "a mess", "a joke",
    "pathetic", "crap", "rubbish", "stupid", "dumb", "unusable", "the same ", "over and over",
    "undo ", "revert everything", "alone",
)

# A complaint at the beginning of a sentence.
AT_THE_BEGINNING = (
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
)

# Strong words, which are complaints unless they praise.
OUTCRIES = r"\b(?:wtf|wth|omfg|ffs|jfc|fgs|bullshit|bs|fuck(?:ing|ed|s|in)?|fck|shit(?:ty|s)?|crap(?:py)?|damn(?: ?it)?|dammit|goddamn(?:it)?|bloody hell|jesus(?: christ)?|christ|omg no|grr+|idiot|idiotic|moron|what the (?:hell|heck|fuck|actual))\b"
OUTCRY_HINTS = (
    "wtf", "wth", "omfg", "ffs", "jfc", "fgs", "bullshit", "bs", "fuck", "fck", "shit", "crap",
    "damn", "dammit", "bloody hell", "jesus", "christ", "omg no", "grr", "idiot", "moron",
    "what the ",
)
PRAISED = r"\b(?:fuck(?:ing|in)?|damn|holy (?:shit|crap|fuck)|hot damn|hell)[,! ]+(?:yes|yeah|great|good|nice|awesome|amazing|cool|perfect|brilliant|love|beautiful|that works|it works|this is (?:great|good|amazing|awesome)|that's (?:great|good|amazing|awesome|nice|fast))\b|\bno shit\b"

# Sentences that suppose, ask for work, or ask what is so.
SUPPOSES = r"\b(?:if|unless|whether|in case|suppose|when(?:ever)?|so that|such that|until|where|users?|customers?|people|should|could|would be|might|tests? that|case|message|text|word)\b"
ORDERS = r"^(?:(?:please|pls|now|then|also|and|ok|okay|so|next|can you|could you|would you|let's|i want you to|i need you to|we need to|you can|try to)[, ]+)*(?:add|write|make|fix|implement|create|change|update|handle|show|explain|check|test|ensure|remove|let|tell|find|use|rename|move|run|build|describe|list|document|replace|set|give|look|see|review|investigate|debug|help|try|keep|put|return|print|log|catch|rerun|re-run|remind|drop|delete|label|call|name|read|do not|don't|does|is|are|was|were|do|has|have|can|could|will|would|what|where|which|who|how|when)\b"
# Reasons that somebody asks for, in place of *why on earth*.
ASKS_FOR_REASONS = r"\bwhy (?:did|do|are|have|would|were|must|don't|didn't|won't|haven't|aren't) (?:you|u) (?:\w+ )?(?:choose|chose|chosen|pick|picked|think|recommend|prefer|need|suggest|suggesting|believe|want|use|using|went|go with|going with|decide|decided|say|expect|consider|call it|do it this way|assume)\b"
# Questions that are none.
ASKED = (
    "what are you doing", "how did you mess", "how did you break", "did you even ",
    "are you kidding", "are you serious", "how many times",
)

# German, French, Spanish, Chinese, Japanese.
FOREIGN = (
    r"\b(?:geht|funktioniert|klappt|läuft|tut|hilft|stimmt)\b(?: (?:das|es|aber|leider|so|doch|noch|immer|weiterhin|trotzdem|auch|jetzt|gar|überhaupt|schon|wieder))* (?:nicht|nix|net)\b",
    r"\bimmer noch (?:nicht|kaputt|falsch|de[rn] (?:gleiche|selbe)|derselbe|ein fehler|fehler|nix|kein)|\bnoch immer (?:nicht|kaputt|falsch)\b",
    r"\bschon wieder\b|\b(?:nochmal|wieder) falsch\b|^(?:nein[, ]+)?falsch\b",
    r"\b(?:das|es|alles) (?:ist|war) (?:aber |doch |leider |jetzt |immer noch |komplett |völlig |total |ein |kompletter |totaler )*(?:falsch|kaputt|unsinn|quatsch|mist|blödsinn|müll|scheiße|schrott)\b|\balles kaputt\b",
    r"\b(?:ich )?hab(?:e|s|'s)?(?: ich)?(?: es| dir| doch| schon| bereits| ja| mehrfach| dreimal| das)* (?:gesagt|geschrieben|erklärt)\b.*|\bich sagte (?:doch|schon|bereits|nicht)\b",
    r"\b(?:warum|wieso|weshalb) (?:hast|löschst|änderst|machst|fasst|nimmst|baust|ignorierst|entfernst|fügst|tust) du\b|\bwas (?:soll|machst du da|zum)\b.*(?:scheiß|denn|teufel|mist|der|das)",
    r"\b(?:schei(?:ß|ss)\w*|verdammt\w*|so ein mist|mist|kacke|verflucht|herrgott|zum teufel|blödsinn|spinnst du|echt jetzt)\b|\bnicht(?: das)?,? was ich (?:wollte|gesagt|gemeint|verlangt|brauche)\b|\bdu (?:hast|hörst)\b.*\b(?:nicht zu|kaputt|gelöscht|ignoriert|zerstört|falsche[ns]?|vergessen)\b|\b(?:gleiche|selbe)r? fehler\b|\bderselbe fehler\b",
    r"\b(?:ça|ca|cela|il|elle|rien|le \w+|la \w+)? ?(?:ne )?(?:marche|fonctionne|compile|démarre|passe|sert)\b(?: \w+)? (?:toujours pas|encore pas|pas|plus|à rien|jamais)\b|\brien ne (?:marche|fonctionne)\b",
    r"\btoujours (?:pas|la même erreur|le même|cassé|faux|rien|une erreur|l'erreur)|\bla même erreur\b|\bencore (?:faux|une erreur|cassé|raté|le même|la même)\b|\b(?:plante|échoue|bug(?:ue)?) (?:encore|toujours)\b",
    r"\bje (?:t'|te |vous )?(?:ai|avais|l'ai)?(?: déjà| bien)* ?dit\b|\bje t'(?:ai|avais) (?:déjà |bien )*(?:dit|demandé)\b|\bcombien de fois\b|\brelis\b",
    r"\bpourquoi (?:tu (?:as|fais|changes|supprimes|modifies|touches|enlèves|continues|ajoutes)|as-tu|avez-vous|vous avez|fais-tu)\b",
    r"\b(?:putain|merde|bordel|fait chier|n'importe quoi|c'est nul|nul à chier|foutu|foutre|conneries?|quelle merde|sérieux \?)",
    r"\b(?:tu as|t'as|vous avez) (?:tout |encore |complètement )*(?:cassé|supprimé|effacé|ignoré|oublié|détruit|écrasé|foiré)\b|\b(?:tout|c'est)(?: est)? (?:encore |complètement |toujours )*cassé\b|\b(?:c'est|ce n'est|c'était) (?:pas )?(?:complètement |totalement |encore |toujours )*(?:faux|pas ce que j|nul|mauvais|pire)|\bce n'est pas (?:ça|ce que)|\bc'est pas (?:ça|ce que)",
    r"\b(?:no|nada|sigue sin|tampoco|todavía no|aún no) (?:me )?(?:funciona|funcionar|compila|compilar|sirve|anda|va bien|carga|arranca)\b",
    r"\bsigue (?:sin|fallando|dando|roto|igual|mal|estando|saliendo|el mismo)|\b(?:el )?mismo error\b|\botra vez (?:mal|lo mismo|el mismo|roto|el error|falla)|\bmal otra vez\b|\bde nuevo (?:mal|el mismo)",
    r"\bte (?:lo )?(?:dije|he dicho|había dicho|pedí)\b|\bya (?:te )?(?:lo )?(?:dije|he dicho|expliqué)\b|\bcuántas veces\b",
    r"\bpor ?qu[eé] (?:borraste|cambiaste|eliminaste|hiciste|has |haces|tocaste|quitaste|modificaste|sigues|ignoras|no (?:leíste|hiciste))",
    r"\b(?:joder|mierda|coño|carajo|puta|hostia|cojones|qué asco|qué desastre|no sirve|basura|inútil)\b",
    r"\b(?:lo |la |todo )?(?:rompiste|has roto|arruinaste|estropeaste|borraste)\b(?: (?:todo|mi|el|la|los|las))|\b(?:lo|la) (?:rompiste|has roto|arruinaste)\b|\b(?:eso|esto|todo) (?:está|es|sigue) (?:\w+ )?(?:mal|roto|incorrecto|peor|equivocado)\b|\bno es lo que (?:pedí|quería|dije)|\bestá (?:todo )?(?:roto|mal)\b",
    r"还是(?:不行|不对|不能|报错|错|没|有(?:问题|错|bug)|一样|失败|老样子|崩)|仍然(?:不|报错|有|没|失败)|依然(?:不|报错|有|没|失败)",
    r"又(?:错|报错|坏|崩|失败|改|来|不|挂|忘)|(?:一直|总是|老是)(?:报错|错|失败|不)",
    r"(?:我|已经|早就|不是)(?:已经|都|早就|刚才|刚刚)?(?:说|讲|告诉)(?:过|了|你)|说了(?:多少|几)遍|跟你说",
    r"为什么(?:你)?(?:又|要|把|没|不听|总|老|删|改了|擅自)|你(?:为什么|干嘛|怎么|到底|在干)(?:把|又|删|改|在|什么|不|没|嘛|搞|能)",
    r"什么鬼|妈的|他妈|卧槽|我靠|操|狗屎|垃圾|傻|废物|有病|无语|气死|服了|离谱|扯淡|胡说|瞎(?:改|写|搞|编)|乱(?:改|写|搞|来)|搞什么",
    r"(?:完全|根本|全|都|全都)(?:没用|不对|错|坏|不能用|不行|不工作|没有用|崩)|没(?:用|解决|修好|生效|效果|反应)|(?:弄|搞|改)(?:坏|砸|错|崩)|^(?:不对|不行|错了|不是这样)|(?:不能|没法|无法)用了?$|不是我(?:要|想|说)|没(?:看|读|听)",
    r"まだ(?:動|直|だめ|ダメ|駄目|エラー|同じ|壊|失敗|治|解決|おかし)|(?:相変わらず|依然)",
    r"また(?:同じ|エラー|間違|壊|失敗|だめ|ダメ|落ち)|同じ(?:エラー|ミス|間違い|問題)(?:が|です|だ|を|$)",
    r"(?:さっき|前に|何度も|だから|もう|すでに|既に)[^。？?]{0,14}(?:言|伝え)(?:っ|い|え|た)|って言(?:った|って|いました|ってる)|何回(?:言|も)|話を聞",
    r"(?:なんで|なぜ|どうして|何で)[^。]{0,24}(?:消し|変え|変更し|触|削除し|壊し|勝手|無視|いじ|やっ)",
    r"全然(?:違|だめ|ダメ|駄目|動|使え|直)|(?:違います|違う|ちがう|違うよ|違うって)(?:$|[。！!、])|ふざけ|くそ|クソ|ひどい|最悪|使えない|役に立た|意味(?:が)?(?:わから|不明)|いい加減|勝手に|壊れ(?:た|てる|ました|てしま)|(?:動|直)(?:か|き|って)(?:ない|ません|いない|いません)|うまくいか|できていません|頼んでいない",
)
FOREIGN_HINTS = (
    "nicht", "nix", " net", "immer noch", "noch immer", "schon wieder", "falsch", "kaputt",
    "unsinn", "quatsch", "mist", "blödsinn", "müll", "schei", "schrott", "gesagt", "geschrieben",
    "erklärt", "ich sagte", "warum", "wieso", "weshalb", "was soll", "was machst", "was zum",
    "verdammt", "kacke", "verflucht", "herrgott", "zum teufel", "spinnst du", "echt jetzt",
    "du hast", "du hörst", "fehler",
    "marche", "fonctionne", "compile", "démarre", "passe ", "sert ", "rien", "toujours",
    "même erreur", "encore", "je ", "combien de fois", "relis", "pourquoi", "putain", "merde",
    "bordel", "fait chier", "n'importe quoi", "nul à", "foutu", "foutre", "connerie", "sérieux ?",
    "tu as", "t'as", "vous avez", "cassé", "c'est", "ce n'est", "c'était",
    "funciona", "compila", "sirve", " anda", "va bien", " carga", "arranca", "sigue ",
    "mismo error", "otra vez", "de nuevo", "dije", "dicho", "pedí", "expliqué", "cuántas veces",
    "porqu", "por qu", "joder", "mierda", "coño", "carajo", "puta", "hostia", "cojones",
    "qué asco", "qué desastre", "basura", "inútil", "rompiste", "has roto", "arruinaste",
    "estropeaste", "borraste", "eso ", "esto ", "todo ", "no es lo que", "está ",
)
FAR_EASTERN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
SUPPOSED = r"\b(?:wenn|falls|ob|sobald|si|s'il|cuando|lorsque|quand|en cas)\b|如果|要是|假如|万一|的话|(?:場合|たら|なら|もし|れば|とき|時)(?:は|、|に|$|の|どう)|もし"

ANYWHERE = re.compile("|".join(ANYWHERE), re.A)
AT_THE_BEGINNING = re.compile(f"{LEAD}(?:{'|'.join(AT_THE_BEGINNING)})", re.A)
OUTCRIES, PRAISED = re.compile(OUTCRIES, re.A), re.compile(PRAISED, re.A)
SUPPOSES, ORDERS = re.compile(SUPPOSES, re.A), re.compile(ORDERS, re.A)
ASKS_FOR_REASONS = re.compile(ASKS_FOR_REASONS, re.A)
FOREIGN, SUPPOSED = re.compile("|".join(FOREIGN)), re.compile(SUPPOSED)

QUOTES = re.compile("[`\"“„«]")
CLOSING = {"“": "”", "„": "“", "«": "»"}
SENTENCE = re.compile(r"[^!?;…。！？.:]*(?:[.:](?=[^\W_])[^!?;…。！？.:]*)*(?:[!?;…。！？.:]|\Z)")
PASTED = (
    "error:", "error[", "warning:", "traceback", "at ", "  at ", 'file "', "fatal:", "e  ",
    "[error", "$ ", "npm err",
)
JOINS = set("._-/\\=@")


def has_any(text, hints):
    for hint in hints:
        if hint in text:
            return True
    return False


def complains(text):
    """Whether a sentence of a folded text complains, in any of the languages."""
    text = without_quotes(text)
    anywhere, outcries = has_any(text, ANYWHERE_HINTS), has_any(text, OUTCRY_HINTS)
    foreign = has_any(text, FOREIGN_HINTS) or (not text.isascii() and FAR_EASTERN.search(text))
    for sentence in sentences(text):
        if is_said(sentence, anywhere, outcries):
            return True
        if foreign and FOREIGN.search(sentence) and not SUPPOSED.search(sentence):
            return True
    return False


def is_said(sentence, anywhere, outcries):
    if outcries and any(not is_name(sentence, hit) for hit in OUTCRIES.finditer(sentence)):
        return not PRAISED.search(sentence)
    if AT_THE_BEGINNING.match(sentence) and not ASKS_FOR_REASONS.search(sentence):
        # A plain statement of the agent's fault; what is supposed behind it belongs to it.
        supposes = SUPPOSES.search(sentence)
        if not supposes or len(sentence[: supposes.start()].encode(errors="replace")) >= 12:
            return True
    if not anywhere:
        return False
    says_so = ANYWHERE.search(sentence)
    if says_so and not SUPPOSES.search(sentence) and not ORDERS.match(sentence):
        return True
    return has_any(sentence, ASKED)


def is_name(sentence, hit):
    start, end = hit.span()
    before, after = sentence[max(start - 1, 0) : start], sentence[end : end + 2]
    return before in JOINS or (after[:1] in JOINS and after[1:].isalnum())


def without_quotes(text):
    """The text without code and what stands in double quotes."""
    hit = QUOTES.search(text)
    if not hit:
        return text
    parts, start = [], 0
    while hit:
        at, opens = hit.start(), hit[0]
        if text.startswith("```", at):
            opens = "```"
        parts += (text[start:at], " x ")
        start = at + len(opens)
        closes = CLOSING.get(opens, opens)
        end = text.find(closes, start)
        if end >= 0:
            start = end + len(closes)
        elif opens == "```":
            # A fence that is not closed is code to the end; another mark is a mark.
            start = len(text)
        hit = QUOTES.search(text, start)
    parts.append(text[start:])
    return "".join(parts)


def sentences(text):
    """The sentences of a text. Lines that look like a log or code are none."""
    for line in text.split("\n"):
        if line.startswith("    ") or line.lstrip("\t").startswith(PASTED):
            continue
        for sentence in SENTENCE.findall(line):
            sentence = sentence.strip().lstrip("-*>(,").lstrip()
            if sentence:
                yield sentence
