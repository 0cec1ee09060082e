//! Thanks, complaints and objections in German, French, Spanish, Portuguese, Polish, Russian,
//! Chinese and Japanese, by idiom.
//!
//! The language is not detected, since each idiom belongs to one language.

use std::sync::LazyLock;

use regex::Regex;

use super::message_text::{sentences, without_quotes};
use super::request::{AgentTurn, Objection};
use super::vocabulary;

/// Idioms of a language. An empty pattern stands for none.
struct Language {
    /// Thanks and praise.
    thanks: &'static str,
    /// Thanks that decline an offer, and refusals that end the work: *nein, das war alles*.
    declines: &'static str,
    /// Faults that are gone.
    gone: &'static str,
    /// Words that take thanks back.
    but: &'static str,
    /// Plain complaints about the work. They are frustration, and objections after work.
    complaints: &'static str,
    /// Strong words, which are frustration only.
    outcries: &'static str,
    /// Polite corrections and reports of faults, which are objections only.
    corrections: &'static str,
    /// Refusals at the beginning that correct the work, unless the agent had asked.
    refusals: &'static str,
    /// Orders to take work back. Each names it by a pronoun or ends with the verb, since programs
    /// have orders of the same words: *верни 404*, *撤销功能*.
    reverts: &'static str,
    /// Words around an idiom that make praise or a plan of it: *encore mieux*.
    harmless: &'static str,
    /// Words that make a supposition of a sentence.
    supposed: &'static str,
    /// Words that make a request of a sentence.
    requests: &'static str,
}

const GERMAN: Language = Language {
    thanks: r"\b(?:danke\w*|dank(?:e)? dir|vielen dank|besten dank|herzlichen dank)\b|^(?:super|perfekt|klasse|toll|prima|spitze|wunderbar|genial|sehr gut|gut gemacht)(?:[,.! ]|$)|^passt(?:[,.!]|$)|\bgenau (?:so|richtig)\b|\bpasst so\b",
    declines: r"\bnein[, ]+danke\b|^[^ ]+ (?:das (?:war|ist|wär\w*|reicht|passt)(?: \w+)? (?:alles|es|ok|okay|gut|genug|so)|das (?:reicht|passt|wars|war's)|nicht nötig)",
    gone: r"\b(?:fehler|problem|bug|absturz|warnungen|flackern)\b(?: (?:ist|sind|jetzt|nun|damit|auch|endlich))+ (?:weg|verschwunden|behoben|gelöst)\b|\b(?:tritt|treten|taucht|tauchen|stürzt|stürzen)\b[^,]* nicht mehr (?:auf|ab)\b|\b(?:nichts mehr kaputt|ohne fehler|keine fehler mehr)\b",
    but: r"\b(?:aber|jedoch|leider|trotzdem|immer noch|noch immer)\b",
    complaints: r"\b(?:geht|funktioniert|klappt|läuft|tut|hilft|stimmt|lädt|baut|kompiliert)\b(?: (?:das|es|aber|leider|so|doch|noch|immer|weiterhin|trotzdem|auch|jetzt|gar|überhaupt|schon|wieder))* (?:nicht|nix|net)\b|\bimmer noch (?:nicht|kaputt|falsch|de[rn] (?:gleiche|selbe)|derselbe|ein fehler|fehler|nix|kein)|\bnoch immer (?:nicht|kaputt|falsch)\b|\bschon wieder\b|\b(?:nochmal|wieder) falsch\b|^(?:nein[, ]+)?falsch\b|\b(?:das|es|alles) (?:ist|war) (?:aber |doch |leider |jetzt |immer noch |komplett |völlig |total |ein |kompletter |totaler )*(?:falsch|kaputt|unsinn|quatsch|mist|blödsinn|müll|scheiße|schrott)\b|\balles kaputt\b|\b(?:ich )?hab(?:e|s|'s)?(?: ich)?(?: es| dir| doch| schon| bereits| ja| mehrfach| dreimal| das)* (?:gesagt|geschrieben|erklärt)\b.*|\bich sagte (?:doch|schon|bereits|nicht)\b|\b(?:warum|wieso|weshalb) (?:löschst|änderst|machst|fasst|baust|ignorierst|entfernst|fügst|tust) du\b|\bnicht(?: das)?,? was ich (?:wollte|gesagt|gemeint|verlangt|brauche)\b|\bdu (?:hast|hörst)\b.*\b(?:nicht zu|kaputt|gelöscht|ignoriert|zerstört|falsche[ns]?|vergessen)\b|\b(?:gleiche|selbe)r? fehler\b|\bderselbe fehler\b",
    outcries: r"\b(?:warum|wieso|weshalb) (?:hast|nimmst) du\b|\bwas (?:soll|machst du da|zum)\b.*(?:scheiß|denn|teufel|mist|der|das)|\b(?:schei(?:ß|ss)\w*|verdammt\w*|so ein mist|mist|kacke|verflucht|herrgott|zum teufel|blödsinn|spinnst du|echt jetzt)\b",
    corrections: r"\bich (?:meinte|hatte .*gesagt|wollte (?:doch|ja|nicht|eigentlich|einen?|die|das|den))\b|\bso war das nicht\b|^(?:nein[, ]+)?(?:so nicht|nicht so)\b|\bdu (?:hast|solltest)\b.*\b(?:übersehen|entfernt|geändert|überschrieben|falsche?r?|nicht|nur)\b|\b(?:immer noch|noch immer|weiterhin)\b.*\b(?:falsch|fehler|kaputt|englisch|alte?[nrs]?|leer|gleiche?[nrs]?|zu)\b|\bist (?:immer noch|noch immer)\b|\b(?:fehlt|fehlen)\b|\b(?:war|ist|sind) (?:\w+ )?(?:falsch|kaputt|leer|weg|verschwunden|zu (?:lang|kurz|groß|klein|langsam|hell|dunkel|kompliziert|technisch))\b|\bstürzt (?:\w+ )?ab\b|\b(?:geht|funktioniert|klappt|läuft|passt|stimmt)\b(?: \w+){0,2} nicht\b|\bwarum (?:fehlt|geht|funktioniert)\b|\bwarum (?:ist|sind) .*\b(?:noch|nicht|weg|leer|falsch|kaputt|kein\w*)\b|\bwarum hast du .*\b(?:gelöscht|entfernt|geändert|überschrieben|nicht)\b|\b(?:kommt|bekomme|kriege|wirft) (?:jetzt |immer noch |noch |nun )*(?:ein|einen|den|'nen) (?:\w+)?fehler\b|^(?:nein[, ]+)?nicht [^,]{1,40},? sondern\b|\b(?:langsamer|schlechter|schlimmer) als (?:vorher|zuvor|davor)\b",
    refusals: r"^(?:nein|nee|ne|halt|stopp|moment)[,.! ]+(?:ich (?:mein|woll|hab|sag)|nur|nicht|das|die|der|den|in|auf|es|wir|du|lieber|mach|lass|erst|sondern)\b",
    reverts: r"\bmach(?:e|t)? (?:das|es|dies|alles)(?: bitte| wieder| jetzt)* (?:rückgängig|weg)\b|^(?:bitte )?(?:rückgängig(?: machen)?|zurücksetzen)[ ,.!]*$|\bsetz(?:e)? (?:das|es|alles)(?: bitte| wieder)* zurück\b|\bnimm (?:das|es)(?: bitte| wieder)* zurück\b",
    harmless: r"\bnur noch\b|\bfehlt nichts\b|\bnichts (?:fehlt|übersehen|vergessen)\b|\bimmer noch (?:schnell|grün|gut)\b|^nein,? .*\b(?:sind|ist) (?:gut|perfekt|ok|okay|super)\b|^(?:mach|macht) weiter\b",
    supposed: r"\b(?:wenn|falls|ob|sobald|bevor|damit)\b",
    requests: r"\b(?:bitte|prüfe|füge)\b",
};

const FRENCH: Language = Language {
    thanks: r"\b(?:merci|valeu)\b|^(?:parfait|super|génial|excellent|impeccable|nickel|bravo|top|très bien)(?:[,.! ]|$)|\bc'est (?:parfait|génial|exactement ça|super|nickel)\b|\bbon (?:travail|boulot)\b",
    declines: r"\bnon[, ]+merci\b|^[^ ]+ (?:c'est (?:tout|bon|parfait|très bien)|pas (?:besoin|la peine|maintenant))",
    gone: r"\bplus (?:d'|aucune? |de |l')(?:erreur|bug|problème|plantage)s?\b|\b(?:erreur|bug|problème) (?:a disparu|est (?:corrigée?|résolue?))\b|\bsans erreurs?\b",
    but: r"\b(?:mais|cependant|pourtant|toujours)\b",
    complaints: r"\b(?:ça|ca|cela|il|elle|rien|le \w+|la \w+)? ?(?:ne )?(?:marche|fonctionne|compile|démarre|passe|sert)\b(?: \w+)? (?:toujours pas|encore pas|pas|plus|à rien|jamais)\b|\brien ne (?:marche|fonctionne)\b|\btoujours (?:pas|la même erreur|le même|cassé|faux|rien|une erreur|l'erreur)|\bla même erreur\b|\bencore (?:faux|une erreur|cassé|raté|le même|la même)\b|\b(?:plante|échoue|bug(?:ue)?) (?:encore|toujours)\b|\bje (?:t'|te |vous )?(?:ai|avais|l'ai)?(?: déjà| bien)* ?dit\b|\bje t'(?:ai|avais) (?:déjà |bien )*(?:dit|demandé)\b|\bcombien de fois\b|\brelis\b|\bpourquoi (?:tu (?:as|fais|changes|supprimes|modifies|touches|enlèves|continues|ajoutes)|as-tu|avez-vous|vous avez|fais-tu)\b|\b(?:tu as|t'as|vous avez) (?:tout |encore |complètement )*(?:cassé|supprimé|effacé|ignoré|oublié|détruit|écrasé|foiré)\b|\b(?:tout|c'est)(?: est)? (?:encore |complètement |toujours )*cassé\b|\b(?:c'est|ce n'est|c'était) (?:pas )?(?:complètement |totalement |encore |toujours )*(?:faux|pas ce que j|nul|mauvais|pire)|\bce n'est pas (?:ça|ce que)|\bc'est pas (?:ça|ce que)",
    outcries: r"\b(?:putain|merde|bordel|fait chier|n'importe quoi|c'est nul|nul à chier|foutu|foutre|conneries?|quelle merde|sérieux \?)",
    corrections: r"\bje (?:voulais|parlais)\b|\bce (?:n'est|que tu as fait n'est) pas\b|\bc'est pas (?:bon|le|la)\b|^(?:non[, ]+)?pas comme ça\b|\btu (?:as|n'as) (?:\w+ )?(?:changé|enlevé|modifié|mis|pas)\b|\b(?:ne |n')(?:\w+ )?(?:fait|marche|fonctionne|affiche|passe|compile|charge|démarre|sert|voit|vois|répond|s'affiche|s'ouvre|s'enregistre|a) (?:\w+ )?(?:rien|pas|plus)\b|\bça (?:plante|bugge|bug|casse)\b|\b(?:est|sont|affiche|y a) (?:encore|toujours)\b|\bil manque\b|\bmême erreur\b|\b(?:est|sont) (?:vide|cassée?s?|faux|fausse|manquante?s?|trop (?:long|longue|court|grande?|petite?|lente?)s?)\b|\b(?:j'ai|il y a|y a|j'obtiens) (?:encore |maintenant |toujours )*(?:une|cette|l')? ?erreur\b|\bplus lent qu'avant\b",
    refusals: r"^(?:non|nan|attends|stop)[,.! ]+(?:(?:je|pas|en|dans|le|la|les|c'est|il|elle|juste|seulement|sur|au|à|plutôt)\b|l')",
    reverts: r"^(?:non[,. ]+|stop[,. ]+)?(?:annulez?(?: (?:ça|cela|tout|(?:tes|ces|les) (?:derni[eè]re?s )?(?:changements|modifications|modifs))\b|[ ,.!]*$)|reviens en arrière|remets (?:tout |ça |la |le |les ).*(?:avant|comme|état))",
    harmless: r"\bce n'est pas (?:grave|urgent|la peine)\b|\btoujours (?:verts?|vertes?|rapides?)\b|^non,? .*\b(?:est|sont) (?:parfaite?s?|bons?|bonnes?|bien)\b|\bencore (?:mieux|plus)\b|\bmanque (?:plus|juste|seulement) (?:que|les?|la)\b",
    supposed: r"\b(?:si|lorsque|quand|en cas|pour que)\b|\bs'ils? (?:[a-suw-zéêà]|t[^e]|v[^o])",
    requests: r"\bajoute\b",
};

const SPANISH: Language = Language {
    thanks: r"\bgracias\b|^(?:perfecto|genial|excelente|estupendo|fantástico|muy bien|buen[ií]simo|bien hecho)(?:[,.! ]|$)|\b(?:buen|gran) trabajo\b|\bexactamente lo que\b",
    declines: r"\bno[, ]+gracias\b|^[^ ]+ (?:eso es todo|así está bien)",
    gone: r"\b(?:error|fallo|bug|problema) (?:ya )?(?:desapareció|ha desaparecido|está (?:resuelto|arreglado))\b|\bya no (?:aparece|sale|da|hay|falla)(?: (?:el|ese|este|ningún|más))? (?:error|errores|fallo|problema)\b|\bsin errores\b",
    but: r"\b(?:pero|sin embargo|todavía|sigue)\b",
    complaints: r"\b(?:no|nada|sigue sin|tampoco|todavía no|aún no) (?:me )?(?:funciona|funcionar|compila|compilar|sirve|anda|va bien|carga|arranca)\b|\bsigue (?:sin|fallando|dando|roto|igual|mal|estando|saliendo|el mismo)|\b(?:el )?mismo error\b|\botra vez (?:mal|lo mismo|el mismo|roto|el error|falla)|\bmal otra vez\b|\bde nuevo (?:mal|el mismo)|\bte (?:lo )?(?:dije|he dicho|había dicho|pedí)\b|\bya (?:te )?(?:lo )?(?:dije|he dicho|expliqué)\b|\bcuántas veces\b|\bpor ?qu[eé] (?:borraste|cambiaste|eliminaste|hiciste|has |haces|tocaste|quitaste|modificaste|sigues|ignoras|no (?:leíste|hiciste))|\b(?:lo |la |todo )?(?:rompiste|has roto|arruinaste|estropeaste|borraste)\b(?: (?:todo|mi|el|la|los|las))|\b(?:lo|la) (?:rompiste|has roto|arruinaste)\b|\b(?:eso|esto|todo) (?:está|es|sigue) (?:\w+ )?(?:mal|roto|incorrecto|peor|equivocado)\b|\bno es lo que (?:pedí|quería|dije)|\bestá (?:todo )?(?:roto|mal)\b",
    outcries: r"\b(?:joder|mierda|coño|carajo|puta|hostia|cojones|qué asco|qué desastre|no sirve|basura|inútil)\b",
    corrections: r"\bsigue (?:rota|apareciendo|mostrando|el|la)\b|\bno (?:me )?(?:aparece|muestra|guarda|envía|abre|hace nada|se ve|era eso|es eso|cambió|ha cambiado)\b|^(?:no[, ]+)?así no\b|\bfaltan? (?:el|la|los|las|un|una|algo)\b|\bse (?:rompió|perdió|borró|cayó|ve mal)\b|\b(?:te )?(?:olvidaste|equivocaste)\b|\bquería decir\b|\bme refería\b|\b(?:me )?(?:sale|da|tira) (?:un|el|este|ese|otro) error\b|\bdemasiado (?:larg|cort|grande|pequeñ|lent|complicad)\w*",
    refusals: r"^(?:no|espera)[,.! ]+(?:el|la|los|las|en|solo|sólo|quiero|quería|me refer\w+|digo|eso|así|usa|haz|lo) \w+",
    reverts: r"^(?:no[,. ]+)?(?:(?:deshaz(?:lo)?|deshacer|revierte(?:lo)?|revertir)(?: (?:eso|esto|todo|(?:los|tus) (?:últimos )?cambios|el (?:último )?cambio)\b|[ ,.!]*$)|vuelve (?:atrás|a como)|déjalo como estaba\b)",
    harmless: r"^no,? .*\best(?:á|án) (?:perfect[oa]s?|bien|genial)\b|^sigue (?:el|la|con)\b|\b(?:solo|sólo) falta\b",
    supposed: r"\b(?:si|cuando|en cas[oe]|para que)\b",
    requests: r"\b(?:añade|agrega)\b",
};

const PORTUGUESE: Language = Language {
    thanks: r"\bobrigad[oa]\b|^(?:perfeito|excelente|ótimo|maravilha|muito bem)(?:[,.! ]|$)",
    declines: r"\bnão[, ]+obrigad[oa]\b|^[^ ]+ (?:(?:é )?só (?:é )?(?:isso|isto)|isso é tudo)",
    gone: r"\b(?:erro|bug|problema) (?:sumiu|desapareceu|foi (?:corrigido|resolvido))\b|\bsem erros\b",
    but: r"\b(?:mas|porém|ainda)\b",
    complaints: "",
    outcries: "",
    corrections: r"\bnão (?:funciona|funcionou|carrega|compila|aparece|abre|salva|mudou|era isso|foi isso|é isso|era o que|foi o que|é o que|deu certo)\b|\bcontinua (?:dando|sem|igual|errado|errada|quebrado|quebrada|aparecendo|mostrando)\b|\bvocê (?:esqueceu|apagou|quebrou|removeu|mudou|deletou)\b|\beu (?:pedi|disse|quis dizer|queria (?:dizer|que))\b|\bainda (?:não|está|dá|aparece|mostra)\b|\b(?:falta|faltou|faltam) (?:o|a|os|as|um|uma)\b|\bmesmo erro\b|\b(?:está|tá|ficou) (?:tudo )?(?:errad|quebrad|torto|ruim|pior)\w*|\b(?:dá|deu|está dando|tá dando) (?:um |o |esse )?erro\b|\bpor ?que você\b",
    refusals: r"^não[,.! ]+(?:o|a|os|as|em|no|na|só|quero|eu|isso|é|usa|use) \w+",
    reverts: r"^(?:não[,. ]+)?(?:(?:desfa[zç]\w*|reverta|reverte)(?: (?:isso|isto|tudo|(?:as|essas) (?:últimas )?(?:mudanças|alterações))\b|[ ,.!]*$)|volt[ae] (?:como|atrás|ao que)\b)",
    harmless: r"\bsó falta\b",
    supposed: r"\b(?:quando|caso|para que)\b",
    requests: r"\b(?:adiciona|adicione)\b",
};

const POLISH: Language = Language {
    thanks: r"\b(?:dzięki|dziękuję)\b|^(?:świetnie|doskonale|super)(?:[,.! ]|$)",
    declines: r"^[^ ]+ to (?:wszystko|wystarczy)",
    gone: r"\b(?:błąd|bug|problem) (?:już )?(?:zniknął|naprawiony|rozwiązany)\b|\bbez błędów\b",
    but: r"\b(?:ale|jednak|nadal|wciąż|dalej)\b",
    complaints: "",
    outcries: "",
    corrections: r"\bnie (?:działa|dziala|kompiluje|ładuje|widać|pokazuje|zapisuje|otwiera|o to|tak)\b|\bto nie (?:to|tak|jest to)\b|\bzapomnia\w+ (?:o|że|dodać|zmienić|usunąć)\b|\b(?:usunąłeś|usunęłaś|zepsułeś|zepsułaś|zmieniłeś|zmieniłaś)\b|\b(?:dalej|nadal|wciąż) (?:nie|jest|pokazuje|ten sam|ta sama|błąd|się|brakuje|mam)\b|\b(?:prosiłem|prosiłam|miałem na myśli|miałam na myśli|mówiłem|mówiłam)\b|\bbrakuje\b|\bten sam błąd\b|^(?:to )?(?:jest )?źle\b|\b(?:mam|wyskakuje|jest) (?:teraz )?(?:błąd|inny błąd)\b",
    refusals: r"^nie[,.! ]+(?:chodzi|chodziło|to|tylko|w|na|ten|ta|tę|tamten) ",
    reverts: r"^(?:nie[,. ]+)?(?:cofnij|przywróć|wycofaj)(?: (?:to|wszystko|(?:te|swoje|ostatnie) zmiany|poprzedni\w+)\b|[ ,.!]*$)",
    harmless: r"\bnic\w* nie brakuje\b|\bbrakuje (?:już )?tylko\b",
    supposed: r"\b(?:jeśli|jeżeli|gdy|kiedy|czy)\b",
    requests: r"\b(?:dodaj|sprawdź)\b",
};

const RUSSIAN: Language = Language {
    thanks: r"\b(?:спасибо|благодарю)\b|^(?:отлично|супер|прекрасно)(?:[,.! ]|$)",
    declines: r"^[^ ]+ (?:(?:это )?вс[её]|(?:это )?не (?:надо|нужно))",
    gone: r"\b(?:ошибк[аи]|баг|проблема) (?:уже |больше |теперь )?(?:пропал[аи]?|исчезл?[аи]?|исправлена?|решена)\b|\bбольше не (?:падает|вылетает|ломается)\b|\bошибок (?:больше )?нет\b",
    but: r"\b(?:но|однако|по-прежнему)\b|вс[её] (?:ещ[её]|равно)",
    complaints: "",
    outcries: "",
    corrections: r"не (?:работает|компилируется|загружается|открывается|видно|сохраняется|показывает|помогло|изменилось|то,? что|запускается)|\bты (?:сломал|удалил|забыл|изменил|пропустил|убрал|не)\w*|вс[её] (?:ещ[её]|равно) |по-прежнему|\bопять\b|снова (?:не|ошиб|пада)|\bя (?:просил|просила|говорил|говорила|имел в виду|имела в виду)\b|ошибка (?:осталась|та же|снова)|та же ошибка|пропал[аои]?\b|^(?:это )?(?:не так|неправильно|неверно|не то)\b|\b(?:зачем|почему) ты\b|\b(?:падает|вылетает) (?:с|при|на)\b",
    refusals: r"^(?:нет|не)[,.! ]+(?:я|только|не|в|на|это|надо|нужно|другой|другую) ",
    reverts: r"^(?:нет[,. ]+)?(?:верни|откати|отмени)(?:те)?(?:,? пожалуйста,?)?(?: (?:это|вс[её]|его|е[её]|их|как было|обратно|назад|(?:последние |свои |мои |эти )?(?:изменения|правки))(?:[ ,.!]|$)|[ ,.!]*$)",
    harmless: r"\bотличная работа\b|\bмолодец\b|\bосталось только\b",
    supposed: r"\b(?:если|когда|чтобы)\b",
    requests: r"\b(?:добавь|проверь)\b",
};

const CHINESE: Language = Language {
    thanks: r"谢谢|感谢|多谢|辛苦了|太(?:好|棒|赞)了|完美|很好|棒|赞(?:$|[！!。])|厉害|牛(?:$|[！!。逼])",
    declines: r"不用|不必|结构",
    gone: r"(?:错误|报错|问题|bug|警告)(?:都|已经|也)?(?:不见了|消失|没了|没有了|解决了)|不再(?:报错|崩溃|出错)|没有(?:问题|报错|错误)了",
    but: r"但|不过|可是|然而|还是|仍",
    complaints: r"还是(?:不行|不对|不能|报错|错|没|有(?:问题|错|bug)|一样|失败|老样子|崩)|仍然(?:不|报错|有|没|失败)|依然(?:不|报错|有|没|失败)|又(?:错|报错|坏|崩|失败|改|来|不|挂|忘)|(?:一直|总是|老是)(?:报错|错|失败|不)|(?:我|已经|早就|不是)(?:已经|都|早就|刚才|刚刚)?(?:说|讲|告诉)(?:过|了|你)|说了(?:多少|几)遍|跟你说|为什么(?:你)?(?:又|要|把|没|不听|总|老|删|改了|擅自)|你(?:为什么|干嘛|怎么|到底|在干)(?:把|又|删|改|在|什么|不|没|嘛|搞|能)|(?:完全|根本|全|都|全都)(?:没用|不对|错|坏|不能用|不行|不工作|没有用|崩)|没(?:用|解决|修好|生效|效果|反应)|(?:弄|搞|改)(?:坏|砸|错|崩)|^(?:不对|不行|错了|不是这样)|(?:不能|没法|无法)用了?$|不是我(?:要|想|说)|没(?:看|读|听)",
    outcries: r"什么鬼|妈的|他妈|卧槽|我靠|操|狗屎|垃圾|傻|废物|有病|无语|气死|服了|离谱|扯淡|胡说|瞎(?:改|写|搞|编)|乱(?:改|写|搞|来)|搞什么",
    corrections: r"我(?:说|要|指)的(?:是|不是)|不是(?:这个|这样|让你)|(?:还|依然|仍然|仍)是?(?:显示|没|不|报|一样|旧|原来|有(?:问题|错|bug))|没有?(?:变化|显示|更新|反应)|漏了|忘了(?:加|改|写|更新|删|处理|把)|少了(?:一|个|几|最后)|缺了|丢了|不见了|(?:报错|出错|崩溃)了|^(?:不是(?:[，,。这那我吧！!]|$))|样式(?:乱|坏)了|太(?:长|短|大|小|慢|复杂)了?$|不要(?:这样|动|改)",
    refusals: "",
    reverts: r"^(?:请|先)?(?:把(?:它|这个|那个|这些|改动|修改|代码|刚才的.{0,6}))?(?:撤销|撤回|回滚|回退|还原|恢复|改回)(?:吧|一下|掉|了|来|去|它|这个|这些|刚才|上一步|之前|所有|全部|原来|原样|原状|(?:到|成)(?:之前|原来|原样|上)|你的|改动|修改|更改|[，。！,.! ]|$)",
    harmless: r"还不(?:错|赖|急)|就好(?:[，,。！!]|$)|还没(?:有)?(?:看|试|测)",
    supposed: r"如果|要是|假如|万一|的话",
    requests: r"请|帮我|确保",
};

const JAPANESE: Language = Language {
    thanks: r"ありがと|感謝|助かり(?:ました|ます)|助かった|完璧|素晴らし|すばらし|いい(?:です)?ね|良い感じ|最高|お疲れ様|グッド|ばっちり|バッチリ",
    declines: r"結構です|いいえ|大丈夫です",
    gone: r"(?:エラー|バグ|問題|警告|ちらつき)(?:が|は|も)?(?:もう)?(?:出(?:てい)?ません|出なく|消え|なくな|ありません)",
    but: r"しかし|でも|けど|ですが|まだ",
    complaints: r"まだ(?:動|直|だめ|ダメ|駄目|エラー|同じ|壊|失敗|治|解決|おかし)|(?:相変わらず|依然)|また(?:同じ|エラー|間違|壊|失敗|だめ|ダメ|落ち)|同じ(?:エラー|ミス|間違い|問題)(?:が|です|だ|を|$)|(?:さっき|前に|何度も|だから|もう|すでに|既に)[^。？?]{0,14}(?:言|伝え)(?:っ|い|え|た)|って言(?:った|って|いました|ってる)|何回(?:言|も)|話を聞|(?:なんで|なぜ|どうして|何で)[^。]{0,24}(?:消し|変え|変更し|触|削除し|壊し|勝手|無視|いじ|やっ)|全然(?:違|だめ|ダメ|駄目|動|使え|直)|(?:違います|違う|ちがう|違うよ|違うって)(?:$|[。！!、])|(?:動|直)(?:か|き|って)(?:ない|ません|いない|いません)|うまくいか|できていません|頼んでいない|壊れ(?:た|てる|ました|てしま)",
    outcries: r"ふざけ|くそ|クソ|ひどい|最悪|使えない|役に立た|意味(?:が)?(?:わから|不明)|いい加減|勝手に",
    corrections: r"(?:そう|これ|それ)(?:じゃ|では)な|(?:では|じゃ)なくて|(?:直|変わ|動|映|出|消え|表示され|反映され)(?:っ|り|い|か)?(?:て)?(?:い)?(?:ない|ません|ていません|てない|ておりません)|まだ(?:古い|残って)|(?:忘れ|抜け|消え|崩れ|ずれ)て(?:い|る|ます|しま)|頼んでない|言って(?:い)?ない|エラーが(?:出|発生|表示)|エラーに(?:なり|なっ|なる)|と言いました|同じエラー|(?:長|短|大き|小さ|遅)すぎ",
    refusals: "",
    reverts: r"(?:元に戻して|取り消して|巻き戻して|^戻して)(?:ください|下さい|くれ|ほしい|欲しい)?(?:[。！!、,.]|$)",
    harmless: "",
    supposed: r"(?:場合|たら|なら|れば|とき|時)(?:は|、|に|$|の|どう)|もし",
    requests: r"ように|てください",
};

const LANGUAGES: [Language; 8] =
    [GERMAN, FRENCH, SPANISH, PORTUGUESE, POLISH, RUSSIAN, CHINESE, JAPANESE];

/// One pattern of each kind for all languages.
struct Idioms {
    thanks: Regex,
    declines: Regex,
    gone: Regex,
    but: Regex,
    complaints: Regex,
    /// The same without word boundaries, which matches a superset. With Unicode boundaries the
    /// engine takes several times as long on text that is not all ASCII.
    may_complain: Regex,
    objections: Regex,
    refusals: Regex,
    reverts: Regex,
    harmless: Regex,
    supposed: Regex,
    requests: Regex,
}

static IDIOMS: LazyLock<Idioms> = LazyLock::new(|| {
    let joined = |fields: &[fn(&Language) -> &'static str]| {
        let all = fields.iter().flat_map(|field| LANGUAGES.iter().map(field));
        all.filter(|pattern| !pattern.is_empty()).collect::<Vec<_>>().join("|")
    };
    let regex = |pattern: &str| Regex::new(pattern).expect("the pattern is a constant");
    let complaints = joined(&[|language| language.complaints, |language| language.outcries]);
    Idioms {
        thanks: regex(&joined(&[|language| language.thanks])),
        declines: regex(&joined(&[|language| language.declines])),
        gone: regex(&joined(&[|language| language.gone])),
        but: regex(&joined(&[|language| language.but])),
        may_complain: regex(&complaints.replace(r"\b", "")),
        complaints: regex(&complaints),
        objections: regex(&joined(&[|language| language.complaints, |l| l.corrections])),
        refusals: regex(&joined(&[|language| language.refusals])),
        reverts: regex(&joined(&[|language| language.reverts])),
        harmless: regex(&joined(&[|language| language.harmless])),
        supposed: regex(&joined(&[|language| language.supposed])),
        requests: regex(&joined(&[|language| language.requests])),
    }
});

/// Returns true if a folded sentence complains, by what it says or by its tone. A supposition does
/// not.
pub(super) fn is_complaint(sentence: &str) -> bool {
    let idioms = &*IDIOMS;
    // The engine is fast on ASCII text anyway.
    let may_complain = sentence.is_ascii() || idioms.may_complain.is_match(sentence);
    may_complain && idioms.complaints.is_match(sentence) && !idioms.supposed.is_match(sentence)
}

/// Returns true if a folded text thanks or praises. Declining something (*nein, danke*) does not.
pub(super) fn is_gratitude(text: &str) -> bool {
    let bare = without_quotes(text);
    sentences(&bare)
        .any(|sentence| IDIOMS.thanks.is_match(sentence) && !IDIOMS.declines.is_match(sentence))
}

/// Returns true if a folded sentence thanks, praises, or says that a fault is gone, and does not
/// take it back.
pub(super) fn is_good_news(sentence: &str) -> bool {
    let idioms = &*IDIOMS;
    (idioms.thanks.is_match(sentence) || idioms.gone.is_match(sentence))
        && !idioms.but.is_match(sentence)
        && !vocabulary::takes_back(sentence)
}

/// Returns the objection at the beginning of a folded message. Reports count only after work.
pub(super) fn objection(beginning: &str, turn: AgentTurn) -> Option<Objection> {
    const MAX_SENTENCES: usize = 3;
    let idioms = &*IDIOMS;
    for sentence in sentences(beginning).take(MAX_SENTENCES) {
        let is_supposed = idioms.supposed.is_match(sentence);
        if idioms.reverts.is_match(sentence) && !is_supposed {
            return Some(Objection::Reverts);
        }
        if !turn.has_worked || is_supposed || is_good_news(sentence) {
            continue;
        }
        // *Warum fehlt …?* is a complaint, though it ends like a question.
        let asks = sentence.ends_with(['?', '？']) && !sentence.starts_with("warum");
        let corrects = || {
            !turn.has_asked
                && idioms.refusals.is_match(sentence)
                && !idioms.declines.is_match(sentence)
        };
        if !asks
            && (idioms.objections.is_match(sentence) || corrects())
            && !idioms.harmless.is_match(sentence)
            && !idioms.requests.is_match(sentence)
        {
            return Some(Objection::Complains);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_its_idioms() {
        use Objection::{Complains, Reverts};
        let worked = AgentTurn { has_worked: true, ..AgentTurn::default() };
        for (message, expected) in [
            ("mach das bitte rückgängig", Some(Reverts)),
            ("die überschrift ist immer noch englisch", Some(Complains)),
            ("du hast den footer vergessen", Some(Complains)),
            ("wenn etwas fehlt, sag bescheid", None),
            ("super, jetzt noch auf französisch", None),
            ("annule ça", Some(Reverts)),
            ("le bouton ne fait rien", Some(Complains)),
            ("est-ce que ça marche avec de gros fichiers ?", None),
            ("deshaz eso", Some(Reverts)),
            ("sigue sin enviar", Some(Complains)),
            ("sigue con el plan", None),
            ("desfaz isso", Some(Reverts)),
            ("continua dando erro", Some(Complains)),
            ("continua com o próximo passo", None),
            ("ótimo, agora o cadastro", None),
            ("cofnij to", Some(Reverts)),
            ("to nie to, o co prosiłem", Some(Complains)),
            ("czy da się to zrobić bez przeładowania?", None),
            ("верни как было", Some(Reverts)),
            ("ты сломал авторизацию", Some(Complains)),
            ("отлично, теперь тесты", None),
            ("撤销", Some(Reverts)),
            ("还是显示全部", Some(Complains)),
            ("很好，再加一个搜索框", None),
            ("元に戻して", Some(Reverts)),
            ("まだ直っていません", Some(Complains)),
            ("このまま進めてください", None),
        ] {
            assert_eq!(objection(message, worked), expected, "{message}");
        }
        let talked = AgentTurn::default();
        assert_eq!(objection("le bouton ne fait rien", talked), None);
        assert_eq!(objection("annule ça", talked), Some(Reverts));
    }
}
