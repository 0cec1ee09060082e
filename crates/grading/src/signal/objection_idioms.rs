//! Detects objections in German, French, Spanish, Portuguese, Polish, Russian, Chinese and Japanese
//! by idiom. The language is not detected, since each idiom belongs to one language.

use std::sync::LazyLock;

use regex::Regex;

use super::objection::{AgentTurn, Objection};
use super::{good_news, sentences};

/// Orders to take work back. Each names it by a pronoun or ends with the verb, since programs have
/// orders of the same words: *верни 404*, *撤销功能*.
const REVERTS: [&str; 8] = [
    r"\bmach(?:e|t)? (?:das|es|dies|alles)(?: bitte| wieder| jetzt)* (?:rückgängig|weg)\b|^(?:bitte )?(?:rückgängig(?: machen)?|zurücksetzen)[ ,.!]*$|\bsetz(?:e)? (?:das|es|alles)(?: bitte| wieder)* zurück\b|\bnimm (?:das|es)(?: bitte| wieder)* zurück\b",
    r"^(?:non[,. ]+|stop[,. ]+)?(?:annulez?(?: (?:ça|cela|tout|(?:tes|ces|les) (?:derni[eè]re?s )?(?:changements|modifications|modifs))\b|[ ,.!]*$)|reviens en arrière|remets (?:tout |ça |la |le |les ).*(?:avant|comme|état))",
    r"^(?:no[,. ]+)?(?:(?:deshaz(?:lo)?|deshacer|revierte(?:lo)?|revertir)(?: (?:eso|esto|todo|(?:los|tus) (?:últimos )?cambios|el (?:último )?cambio)\b|[ ,.!]*$)|vuelve (?:atrás|a como)|déjalo como estaba\b)",
    r"^(?:não[,. ]+)?(?:(?:desfa[zç]\w*|reverta|reverte)(?: (?:isso|isto|tudo|(?:as|essas) (?:últimas )?(?:mudanças|alterações))\b|[ ,.!]*$)|volt[ae] (?:como|atrás|ao que)\b)",
    r"^(?:nie[,. ]+)?(?:cofnij|przywróć|wycofaj)(?: (?:to|wszystko|(?:te|swoje|ostatnie) zmiany|poprzedni\w+)\b|[ ,.!]*$)",
    r"^(?:нет[,. ]+)?(?:верни|откати|отмени)(?:те)?(?:,? пожалуйста,?)?(?: (?:это|вс[её]|его|е[её]|их|как было|обратно|назад|(?:последние |свои |мои |эти )?(?:изменения|правки))(?:[ ,.!]|$)|[ ,.!]*$)",
    r"^(?:请|先)?(?:把(?:它|这个|那个|这些|改动|修改|代码|刚才的.{0,6}))?(?:撤销|撤回|回滚|回退|还原|恢复|改回)(?:吧|一下|掉|了|来|去|它|这个|这些|刚才|上一步|之前|所有|全部|原来|原样|原状|(?:到|成)(?:之前|原来|原样|上)|你的|改动|修改|更改|[，。！,.! ]|$)",
    r"(?:元に戻して|取り消して|巻き戻して|^戻して)(?:ください|下さい|くれ|ほしい|欲しい)?(?:[。！!、,.]|$)",
];

/// Words that make a supposition of an order to take work back.
const IF: &str = r"\b(?:wenn|falls|sobald|si|cuando|lorsque|quand|quando|caso|jeśli|jeżeli|gdy|kiedy|если|когда|чтобы)\b|如果|要是|假如|万一|的话|(?:場合|たら|なら|れば)(?:は|、|に|$|の)";

/// Refusals at the beginning that correct the work, unless the agent had asked.
const REFUSES: &str = r"^(?:nein|nee|ne|halt|stopp|moment)[,.! ]+(?:ich (?:mein|woll|hab|sag)|nur|nicht|das|die|der|den|in|auf|es|wir|du|lieber|mach|lass|erst|sondern)\b|^(?:non|nan|attends|stop)[,.! ]+(?:(?:je|pas|en|dans|le|la|les|c'est|il|elle|juste|seulement|sur|au|à|plutôt)\b|l')|^(?:no|espera)[,.! ]+(?:el|la|los|las|en|solo|sólo|quiero|quería|me refer\w+|digo|eso|así|usa|haz|lo) \w+|^não[,.! ]+(?:o|a|os|as|em|no|na|só|quero|eu|isso|é|usa|use) \w+|^nie[,.! ]+(?:chodzi|chodziło|to|tylko|w|na|ten|ta|tę|tamten) |^(?:нет|не)[,.! ]+(?:я|только|не|в|на|это|надо|нужно|другой|другую) ";
/// Refusals that end the work instead: *nein, das war alles*.
const ENOUGH: &str = r"^[^ ]+ (?:das (?:war|ist|wär\w*|reicht|passt)(?: \w+)? (?:alles|es|ok|okay|gut|genug|so)|das (?:reicht|passt|wars|war's)|nicht nötig|c'est (?:tout|bon|parfait|très bien)|pas (?:besoin|la peine|maintenant)|eso es todo|así está bien|(?:é )?só (?:é )?(?:isso|isto)|isso é tudo|to (?:wszystko|wystarczy)|(?:это )?вс[её]|(?:это )?не (?:надо|нужно))";

/// Corrections and reports of faults.
const OBJECTS: [&str; 8] = [
    // German
    r"\bich (?:meinte|sagte (?:doch|schon|ja)|hatte .*gesagt|wollte (?:doch|ja|nicht))\b|\bnicht (?:das,? )?was ich\b|\bso war das nicht\b|\bdu (?:hast|solltest)\b.*\b(?:vergessen|gelöscht|übersehen|entfernt|geändert|überschrieben|falsche?[nsr]?|kaputt|nicht|nur)\b|\b(?:immer noch|noch immer|weiterhin)\b.*\b(?:nicht|kein|falsch|fehler|kaputt|englisch|alte?[nrs]?|leer|gleiche?[nrs]?|zu)\b|\bist (?:immer noch|noch immer)\b|\b(?:fehlt|fehlen)\b|\b(?:war|ist|sind) (?:\w+ )?(?:falsch|kaputt|leer|weg|verschwunden)\b|\bstürzt (?:\w+ )?ab\b|\b(?:geht|funktioniert|klappt|läuft|lädt|baut|kompiliert|passt|stimmt)\b(?: \w+){0,2} nicht\b|\bwarum (?:fehlt|geht|funktioniert)\b|\bwarum (?:ist|sind) .*\b(?:noch|nicht|weg|leer|falsch|kaputt|kein\w*)\b|\bwarum hast du .*\b(?:gelöscht|entfernt|geändert|überschrieben|nicht)\b|\bgleiche[rn]? fehler\b",
    // French
    r"\bje (?:voulais|parlais|t'ai (?:dit|demandé)|t'avais (?:dit|demandé))\b|\bce (?:n'est|que tu as fait n'est) pas\b|\bc'est pas (?:ça|ce|bon|le|la)\b|\btu (?:as|n'as) (?:\w+ )?(?:oublié|supprimé|cassé|changé|enlevé|modifié|mis|effacé|pas)\b|\b(?:ne |n')(?:\w+ )?(?:fait|marche|fonctionne|affiche|passe|compile|charge|démarre|sert|voit|vois|répond|s'affiche|s'ouvre|s'enregistre|a) (?:\w+ )?(?:rien|pas|plus)\b|\bça (?:plante|bugge|bug|marche pas|fonctionne pas|casse)\b|\b(?:est|sont|affiche|y a) (?:encore|toujours)\b|\bil manque\b|\bmême erreur\b|\b(?:est|sont) (?:vide|cassée?s?|faux|fausse|manquante?s?)\b",
    // Spanish
    r"\bsigue (?:sin|dando|fallando|igual|mal|roto|rota|apareciendo|saliendo|mostrando|el|la)\b|\bte (?:pedí|dije)\b|\bno (?:me )?(?:funciona|carga|compila|aparece|muestra|guarda|envía|abre|hace nada|se ve|era eso|es eso|es lo que|cambió|ha cambiado)\b|\bfaltan? (?:el|la|los|las|un|una|algo)\b|\bse (?:rompió|perdió|borró|cayó|ve mal)\b|\b(?:te )?olvidaste\b|\bquería decir\b|\bme refería\b|\bmismo error\b",
    // Portuguese
    r"\bnão (?:funciona|funcionou|carrega|compila|aparece|abre|salva|mudou|era isso|foi isso|é isso|era o que|foi o que|deu certo)\b|\bcontinua (?:dando|sem|igual|errado|errada|quebrado|quebrada|aparecendo|mostrando)\b|\bvocê (?:esqueceu|apagou|quebrou|removeu|mudou|deletou)\b|\beu (?:pedi|disse|quis dizer|queria (?:dizer|que))\b|\bainda (?:não|está|dá|aparece|mostra)\b|\b(?:falta|faltou|faltam) (?:o|a|os|as|um|uma)\b|\bmesmo erro\b",
    // Polish
    r"\bnie (?:działa|dziala|kompiluje|ładuje|widać|pokazuje|zapisuje|otwiera|o to)\b|\bto nie (?:to|tak|jest to)\b|\bzapomnia\w+ (?:o|że|dodać|zmienić|usunąć)\b|\b(?:usunąłeś|usunęłaś|zepsułeś|zepsułaś|zmieniłeś|zmieniłaś)\b|\b(?:dalej|nadal|wciąż) (?:nie|jest|pokazuje|ten sam|ta sama|błąd|się|brakuje|mam)\b|\b(?:prosiłem|prosiłam|miałem na myśli|miałam na myśli|mówiłem|mówiłam)\b|\bbrakuje\b|\bten sam błąd\b",
    // Russian
    r"не (?:работает|компилируется|загружается|открывается|видно|сохраняется|показывает|помогло|изменилось|то,? что|запускается)|\bты (?:сломал|удалил|забыл|изменил|пропустил|убрал|не)\w*|вс[её] (?:ещ[её]|равно) |по-прежнему|\bопять\b|снова (?:не|ошиб|пада)|\bя (?:просил|просила|говорил|говорила|имел в виду|имела в виду)\b|ошибка (?:осталась|та же|снова)|та же ошибка|пропал[аои]?\b",
    // Chinese
    r"我(?:说|要|指)的(?:是|不是)|不是(?:这个|这样|我|让你)|(?:还|依然|仍然|仍)是?(?:显示|没|不|报|一样|旧|原来|有(?:问题|错|bug))|没有?(?:变化|生效|反应|效果|显示|更新)|漏了|忘了(?:加|改|写|更新|删|处理|把)|少了(?:一|个|几|最后)|缺了|丢了|不见了|又?(?:报错|出错|崩溃)了|^(?:不对|错了|不是(?:[，,。这那我吧！!]|$))|样式(?:乱|坏)了",
    // Japanese
    r"(?:そう|これ|それ)(?:じゃ|では)な|(?:では|じゃ)なくて|(?:直|変わ|動|映|出|消え|表示され|反映され)(?:っ|り|い|か)?(?:て)?(?:い)?(?:ない|ません|ていません|てない|ておりません)|まだ(?:エラー|動か|同じ|古い|残って)|(?:忘れ|抜け|消え|壊れ|崩れ|ずれ)て(?:い|る|ます|しま)|頼んで(?:い)?ない|言って(?:い)?ない|エラーが(?:出|発生|表示)|と言いました|同じエラー",
];

/// Words around an idiom that make it praise or a plan: *encore mieux*, *es fehlt nur noch*.
const HARMLESS: &str = r"\bnur noch\b|^(?:mach|macht) weiter\b|\bencore (?:mieux|plus)\b|\bmanque (?:plus|juste|seulement) (?:que|les?|la)\b|\b(?:solo|sólo|só) falta\b|\bbrakuje (?:już )?tylko\b|\bосталось только\b|还不(?:错|赖|急)|就好(?:[，,。！!]|$)|还没(?:有)?(?:看|试|测)";

/// Words that make a sentence conditional, or a request.
const SUPPOSED: &str = r"\b(?:wenn|falls|ob|sobald|bevor|damit|si|s'il|s'ils|cuando|lorsque|quand|quando|caso|pour que|para que|jeśli|jeżeli|gdy|kiedy|czy|если|когда|чтобы|bitte|prüfe|füge|ajoute|añade|agrega|adiciona|adicione|dodaj|sprawdź|добавь|проверь)\b|如果|要是|假如|万一|的话|请|帮我|确保|(?:場合|たら|なら|れば)(?:は|、|に|$|の)|もし|ように|てください";

struct ObjectionIdioms {
    reverts: Regex,
    supposed_revert: Regex,
    objects: Regex,
    refuses: Regex,
    enough: Regex,
    harmless: Regex,
    supposed: Regex,
}

static IDIOMS: LazyLock<ObjectionIdioms> = LazyLock::new(|| {
    let regex = |pattern: &str| Regex::new(pattern).expect("the pattern is a constant");
    ObjectionIdioms {
        reverts: regex(&REVERTS.join("|")),
        supposed_revert: regex(IF),
        objects: regex(&OBJECTS.join("|")),
        refuses: regex(REFUSES),
        enough: regex(ENOUGH),
        harmless: regex(HARMLESS),
        supposed: regex(SUPPOSED),
    }
});

/// Returns the objection at the beginning of a folded message. Reports count only after work.
pub(super) fn objection(beginning: &str, turn: AgentTurn) -> Option<Objection> {
    const MAX_SENTENCES: usize = 3;
    let idioms = &*IDIOMS;
    for sentence in sentences(beginning).take(MAX_SENTENCES) {
        if idioms.reverts.is_match(sentence) && !idioms.supposed_revert.is_match(sentence) {
            return Some(Objection::Reverts);
        }
        if !turn.has_worked || good_news::is_good_news_elsewhere(sentence) {
            continue;
        }
        let asks = sentence.ends_with(['?', '？']) && !sentence.starts_with("warum");
        let corrects = || {
            !turn.has_asked
                && idioms.refuses.is_match(sentence)
                && !idioms.enough.is_match(sentence)
        };
        if !asks
            && (idioms.objects.is_match(sentence) || corrects())
            && !idioms.harmless.is_match(sentence)
            && !idioms.supposed.is_match(sentence)
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
