//! Detects objections in German, French, Spanish, Portuguese, Polish, Russian, Chinese and Japanese
//! by idiom. The language is not detected, since each idiom belongs to one language.

use std::sync::LazyLock;

use regex::Regex;

use super::objection::{AgentTurn, Objection};
use super::sentences;

/// Orders to take work back.
const REVERTS: [&str; 8] = [
    r"\bmach(?:e|t)? (?:das|es|dies|alles)(?: bitte| wieder| jetzt)* (?:rückgängig|weg)\b|^(?:bitte )?(?:rückgängig|zurücksetzen)\b|\bsetz(?:e)? (?:das|es|alles)(?: bitte| wieder)* zurück\b|\bnimm (?:das|es)(?: bitte| wieder)* zurück\b",
    r"^(?:non[,. ]+|stop[,. ]+)?(?:annule|reviens en arrière|remets (?:tout |ça |la |le |les ).*(?:avant|comme|état))",
    r"^(?:no[,. ]+)?(?:deshaz|deshacer|revierte|revertir|vuelve (?:atrás|a como)|déjalo como estaba)\b",
    r"^(?:não[,. ]+)?(?:desfa[zç]\w*|reverta|reverte|volta (?:como|atrás|ao que)|volte (?:como|atrás|ao que))\b",
    r"^(?:nie[,. ]+)?(?:cofnij|przywróć|wycofaj)\b",
    r"^(?:нет[,. ]+)?(?:верни(?:те)?|откати(?:те)?|отмени(?:те)?)\b",
    r"^(?:请|先|把.{0,8})?(?:撤销|撤回|回滚|回退|还原|恢复(?:到|原|之前|成)|改回)",
    r"元に戻|取り消して|巻き戻して|戻してください|^戻して",
];

/// Corrections and reports of faults.
const OBJECTS: [&str; 8] = [
    // German
    r"^(?:nein|nee|ne|halt|stopp|moment)[,.! ]+(?:ich (?:mein|woll|hab|sag)|nur|nicht|das|die|der|den|in|auf|es|wir|du|lieber|mach|lass|erst|sondern)\b|\bich (?:meinte|sagte (?:doch|schon|ja)|hatte .*gesagt|wollte (?:doch|ja|nur|nicht))\b|\bnicht (?:das,? )?was ich\b|\bso war das nicht\b|\bdu (?:hast|solltest)\b.*\b(?:vergessen|gelöscht|übersehen|entfernt|geändert|überschrieben|falsche?[nsr]?|kaputt|nicht|nur)\b|\b(?:immer noch|noch immer|weiterhin)\b.*\b(?:nicht|kein|falsch|fehler|kaputt|englisch|alte?[nrs]?|leer|gleiche?[nrs]?|zu)\b|\bist (?:immer noch|noch immer)\b|\b(?:fehlt|fehlen)\b|\b(?:war|ist|sind) (?:\w+ )?(?:falsch|kaputt|leer|weg|verschwunden)\b|\bstürzt (?:\w+ )?ab\b|\b(?:geht|funktioniert|klappt|läuft|lädt|baut|kompiliert|passt|stimmt)\b(?: \w+){0,2} nicht\b|\bwarum (?:ist|sind|fehlt|geht|funktioniert|hast)\b|\bgleiche[rn]? fehler\b",
    // French
    r"^(?:non|nan|attends|stop)[,.! ]+(?:je|pas|en|dans|le|la|les|l'|c'est|il|elle|juste|seulement|sur|au|à|plutôt)\b|\bje (?:voulais|parlais|t'ai (?:dit|demandé)|t'avais (?:dit|demandé))\b|\bce (?:n'est|que tu as fait n'est) pas\b|\bc'est pas (?:ça|ce|bon|le|la)\b|\btu (?:as|n'as) (?:\w+ )?(?:oublié|supprimé|cassé|changé|enlevé|modifié|mis|effacé|pas)\b|\b(?:ne |n')(?:\w+ )?(?:fait|marche|fonctionne|affiche|passe|compile|charge|démarre|sert|voit|vois|répond|s'affiche|s'ouvre|s'enregistre|a) (?:\w+ )?(?:rien|pas|plus)\b|\bça (?:plante|bugge|bug|marche pas|fonctionne pas|casse)\b|\b(?:est|sont|reste|affiche|a|y a) (?:encore|toujours)\b|\bil manque\b|\bmême erreur\b|\b(?:est|sont) (?:vide|cassée?s?|faux|fausse|manquante?s?)\b",
    // Spanish
    r"^(?:no|espera)[,.! ]+(?:el|la|los|las|en|solo|sólo|quiero|quería|me refer\w+|digo|eso|así|usa|haz|lo) \w+|\bsigue (?:sin|dando|fallando|igual|mal|roto|rota|apareciendo|saliendo|mostrando|el|la)\b|\bte (?:pedí|dije)\b|\bno (?:me )?(?:funciona|carga|compila|aparece|muestra|guarda|envía|abre|hace nada|se ve|era eso|es eso|es lo que|cambió|ha cambiado)\b|\bfaltan? (?:el|la|los|las|un|una|algo)\b|\bse (?:rompió|perdió|borró|cayó|ve mal)\b|\b(?:te )?olvidaste\b|\bquería decir\b|\bme refería\b|\bmismo error\b",
    // Portuguese
    r"^não[,.! ]+(?:o|a|os|as|em|no|na|só|quero|eu|isso|é|usa|use) \w+|\bnão (?:funciona|funcionou|carrega|compila|aparece|abre|salva|mudou|era isso|foi isso|é isso|era o que|foi o que|deu certo)\b|\bcontinua (?:dando|sem|igual|errado|errada|quebrado|quebrada|aparecendo|mostrando)\b|\bvocê (?:esqueceu|apagou|quebrou|removeu|mudou|deletou)\b|\beu (?:pedi|disse|quis dizer|queria)\b|\bainda (?:não|está|dá|aparece|mostra)\b|\b(?:falta|faltou|faltam) (?:o|a|os|as|um|uma)\b|\bmesmo erro\b",
    // Polish
    r"^nie[,.! ]+(?:chodzi|chodziło|to|tylko|w|na|ten|ta|tę|tamten) |\bnie (?:działa|dziala|kompiluje|ładuje|widać|pokazuje|zapisuje|otwiera|o to)\b|\bto nie (?:to|tak|jest to)\b|\bzapomnia\w+ (?:o|że|dodać|zmienić|usunąć)\b|\b(?:usunąłeś|usunęłaś|zepsułeś|zepsułaś|zmieniłeś|zmieniłaś)\b|\b(?:dalej|nadal|wciąż) (?:nie|jest|są|pokazuje|ten sam|ta sama|błąd|się|brakuje|mam)\b|\b(?:prosiłem|prosiłam|miałem na myśli|miałam na myśli|mówiłem|mówiłam)\b|\bbrakuje\b|\bten sam błąd\b",
    // Russian
    r"^(?:нет|не)[,.! ]+(?:я|только|не|в|на|это|надо|нужно|другой|другую) |не (?:работает|компилируется|загружается|открывается|видно|сохраняется|показывает|помогло|изменилось|то,? что|запускается)|\bты (?:сломал|удалил|забыл|изменил|пропустил|убрал|не)\w*|вс[её] (?:ещ[её]|равно) |по-прежнему|\bопять\b|снова (?:не|ошиб|пада)|\bя (?:просил|просила|говорил|говорила|имел в виду|имела в виду)\b|ошибка (?:осталась|та же|снова)|та же ошибка|пропал[аои]?\b",
    // Chinese
    r"我(?:说|要|指)的(?:是|不是)|不是(?:这个|这样|我|让你)|(?:还|依然|仍然|仍)是?(?:显示|没|不|报|一样|旧|原来|有(?:问题|错|bug))|没有?(?:变化|生效|反应|效果|显示|更新)|漏了|忘了|少了|缺了|丢了|不见了|又?(?:报错|出错|崩溃)了|^(?:不对|错了|不是)|样式(?:乱|坏)了",
    // Japanese
    r"(?:そう|これ|それ)(?:じゃ|では)な|(?:では|じゃ)なくて|(?:直|変わ|動|映|出|消え|表示され|反映され)(?:っ|り|い|か)?(?:て)?(?:い)?(?:ない|ません|ていません|てない|ておりません)|まだ(?:エラー|動か|同じ|古い|残って)|(?:忘れ|抜け|消え|壊れ|崩れ|ずれ)て(?:い|る|ます|しま)|頼んで(?:い)?ない|言って(?:い)?ない|エラーが(?:出|発生|表示)|と言いました|同じエラー",
];

/// Words that make a sentence conditional, or a request.
const SUPPOSED: &str = r"\b(?:wenn|falls|ob|sobald|bevor|damit|si|s'il|s'ils|cuando|lorsque|quand|quando|caso|pour que|para que|jeśli|jeżeli|gdy|kiedy|czy|если|когда|чтобы|bitte|prüfe|füge|ajoute|añade|agrega|adiciona|adicione|dodaj|sprawdź|добавь|проверь)\b|如果|要是|假如|万一|的话|请|帮我|确保|(?:場合|たら|なら|れば)(?:は|、|に|$|の)|もし|ように|てください";

struct ObjectionIdioms {
    reverts: Regex,
    objects: Regex,
    supposed: Regex,
}

static IDIOMS: LazyLock<ObjectionIdioms> = LazyLock::new(|| {
    let regex = |pattern: &str| Regex::new(pattern).expect("the pattern is a constant");
    ObjectionIdioms {
        reverts: regex(&REVERTS.join("|")),
        objects: regex(&OBJECTS.join("|")),
        supposed: regex(SUPPOSED),
    }
});

/// Returns the objection at the beginning of a folded message. Reports count only after work.
pub(super) fn objection(beginning: &str, turn: AgentTurn) -> Option<Objection> {
    const MAX_SENTENCES: usize = 3;
    let idioms = &*IDIOMS;
    for sentence in sentences(beginning).take(MAX_SENTENCES) {
        if idioms.reverts.is_match(sentence) {
            return Some(Objection::Reverts);
        }
        let asks = sentence.ends_with(['?', '？']) && !sentence.starts_with("warum");
        if turn.has_worked
            && !asks
            && idioms.objects.is_match(sentence)
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
