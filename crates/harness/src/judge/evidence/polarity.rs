//! Detects clauses that say the opposite in nearly the same words: by one more negation, or by an
//! antonym. Pure.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use regex::Regex;
use selftest_text::words::WordIter;

/// Words that negate a clause.
const NEGATORS: &str = "not no never without neither nor none nothing nobody cannot can't don't doesn't didn't isn't aren't wasn't won't shouldn't mustn't hasn't haven't couldn't wouldn't unless except excluding fails refuses \
nicht kein keine keinen keinem keiner nie niemals ohne außer weder \
pas jamais aucun aucune sans sauf ni \
no nunca ningún ninguna sin tampoco excepto salvo jamás \
nie nigdy bez żaden żadna oprócz";

/// Endings of Japanese negations.
const CJK_NEGATION: [&str; 6] = ["ない", "ません", "なし", "せず", "できず", "不可"];

/// Phrases and words of opposite directions: an axis is a pair of lists.
const AXES: &[(&str, &str)] = &[
    // Bounds.
    (
        "at least|no less than|no fewer than|minimum|min|mindestens|wenigstens|au moins|minimum|al menos|como mínimo|mínimo|co najmniej|以上|少なくとも",
        "at most|no more than|up to|maximum|max|not exceed|höchstens|maximal|bis zu|au plus|maximum|como máximo|máximo|hasta|najwyżej|co najwyżej|maksymalnie|以下|以内|最大|まで",
    ),
    (
        "more|longer|larger|greater|higher|bigger|above|over|exceeds|exceed|exceeding|mehr|länger|größer|höher|über|plus de|plus long|supérieur|supérieure|au-dessus|más|mayor|superior|encima|dłużej|większy|powyżej|ponad|より長い|超える|超えると|超えた|より多い",
        "less|fewer|shorter|smaller|lower|below|under|weniger|kürzer|kleiner|niedriger|unter|moins de|plus court|inférieur|inférieure|en dessous|menos|menor|inferior|debajo|mniej|krócej|poniżej|未満|より短い|より少ない|下回る",
    ),
    (
        "before|earlier|prior|until|precedes|vor|vorher|früher|bevor|avant|antes|przed|wcześniej|前に|以前",
        "after|later|following|afterwards|since|nach|nachher|später|nachdem|après|después|tras|po|później|後に|以後|以降",
    ),
    (
        "first|oldest|earliest|zuerst|erste|ersten|älteste|ältesten|premier|première|d'abord|primero|primera|najpierw|pierwszy|最初",
        "last|newest|latest|zuletzt|letzte|letzten|neueste|neuesten|dernier|dernière|último|última|ostatni|najnowszy|最後|最新",
    ),
    (
        "increase|increases|increased|rises|raise|raised|grows|steigt|erhöht|augmente|aumenta|rośnie|増える",
        "decrease|decreases|decreased|falls|lower|lowered|reduced|reduces|shrinks|sinkt|gesenkt|diminue|disminuye|maleje|減る",
    ),
    (
        "enable|enables|enabled|on|active|activated|aktiviert|eingeschaltet|activé|activada|activado|włączone",
        "disable|disables|disabled|inactive|deactivated|deaktiviert|ausgeschaltet|désactivé|desactivada|desactivado|wyłączone",
    ),
    (
        "allow|allows|allowed|permit|permits|permitted|may|erlaubt|darf|dürfen|autorisé|permis|peut|permitido|puede|dozwolone|wolno|可能|できます|できる",
        "forbid|forbids|forbidden|deny|denies|denied|prohibited|banned|blocked|verboten|untersagt|interdit|défendu|prohibido|zabronione|禁止|できません",
    ),
    (
        "include|includes|included|including|contains|inbegriffen|enthalten|inklusive|einschließlich|inclus|compris|comprise|incluido|incluye|wliczone|zawiera|含む|含まれます",
        "exclude|excludes|excluded|excluding|omits|ausgeschlossen|exklusive|zuzüglich|exclus|non compris|excluido|excluye|wyłączone z|含まない|含まれません",
    ),
    (
        "required|mandatory|must|compulsory|pflicht|muss|müssen|verpflichtend|obligatoire|doit|obligatorio|obligatoria|debe|wymagane|obowiązkowe|必須|必要",
        "optional|voluntary|freiwillig|optional|facultatif|facultative|opcional|voluntario|opcjonalne|dobrowolne|任意|不要",
    ),
    (
        "open|opens|opened|geöffnet|öffnet|offen|ouvert|ouverte|ouvre|abierto|abierta|abre|otwarte|otwarty|otwarta|開館|営業|開いて",
        "close|closes|closed|shut|geschlossen|schließt|fermé|fermée|ferme|cerrado|cerrada|cierra|zamknięte|zamknięty|zamknięta|休館|休業|閉",
    ),
    (
        "start|starts|begin|begins|began|beginnt|startet|commence|débute|empieza|comienza|zaczyna|始ま",
        "end|ends|stop|stops|finish|finishes|endet|stoppt|finit|termine|termina|acaba|kończy|終わ",
    ),
    (
        "ascending|aufsteigend|croissant|ascendente|rosnąco|昇順",
        "descending|absteigend|décroissant|descendente|malejąco|降順",
    ),
    (
        "accept|accepts|accepted|akzeptiert|angenommen|accepté|accepte|acepta|aceptado|akceptuje",
        "reject|rejects|rejected|refuse|refuses|refused|declined|abgelehnt|lehnt|refusé|refuse|rechaza|rechazado|odrzuca",
    ),
    (
        "succeeds|succeed|success|successful|passes|passed|erfolgreich|réussit|réussi|éxito|sukces|成功",
        "fails|fail|failure|failed|unsuccessful|fehlgeschlagen|scheitert|échoue|échec|falla|fracaso|błąd|失敗",
    ),
    (
        "always|every|immer|jeden|jede|toujours|chaque|siempre|cada|zawsze|każdy|必ず|毎",
        "never|nie|niemals|jamais|nunca|nigdy|決して",
    ),
    ("with|including|mit|avec|con|z", "without|ohne|sans|sin|bez"),
    (
        "keep|keeps|kept|preserve|preserves|retain|retains|retained|behält|bleibt|conserve|conserva|guarda|zachowuje|残",
        "delete|deletes|deleted|remove|removes|removed|drop|drops|dropped|discard|discards|discarded|löscht|gelöscht|entfernt|supprime|supprimé|elimina|borra|usuwa|削除",
    ),
    (
        "add|adds|added|hinzugefügt|ajoute|ajouté|añade|añadido|dodaje",
        "remove|removes|removed|entfernt|retire|retiré|quita|usuwa",
    ),
    (
        "send|sends|sent|sendet|schickt|envoie|envía|wysyła|送",
        "receive|receives|received|empfängt|erhält|reçoit|recibe|otrzymuje|受け取",
    ),
    (
        "read|reads|read-only|liest|lit|lee|czyta|読み取り",
        "write|writes|written|schreibt|écrit|escribe|zapisuje|書き込み",
    ),
    (
        "public|öffentlich|publique|público|publiczny|公開",
        "private|privat|privé|privada|privado|prywatny|非公開",
    ),
    (
        "import|imports|input|inbound|incoming|source",
        "export|exports|output|outbound|outgoing|target|destination",
    ),
    ("left|links|gauche|izquierda|lewo|左", "right|rechts|droite|derecha|prawo|右"),
    ("north|nord|norte|północ|北", "south|süd|sud|sur|południe|南"),
    (
        "cheaper|billiger|moins cher|más barato|taniej|安",
        "dearer|costlier|teurer|plus cher|más caro|drożej|高い",
    ),
    (
        "free|kostenlos|gratis|gratuit|gratuite|gratuito|gratuita|darmowy|bezpłatny|無料",
        "paid|charged|kostenpflichtig|payant|payante|pago|płatny|有料",
    ),
    (
        "faster|quicker|schneller|plus rapide|más rápido|szybciej",
        "slower|langsamer|plus lent|más lento|wolniej",
    ),
    (
        "automatically|automatic|automatisch|automatiquement|automáticamente|automatycznie|自動",
        "manually|manual|by hand|manuell|manuellement|manualmente|ręcznie|手動",
    ),
    (
        "client|customer|buyer|borrower|reader|kunde|client|cliente|klient",
        "server|seller|vendor|lender|library|verkäufer|vendeur|vendedor|sprzedawca",
    ),
    (
        "refunded|refundable|erstattet|remboursé|remboursable|reembolsable|reembolsado|zwracane|返金",
        "non-refundable|nonrefundable|forfeited|verfällt|non remboursable|no reembolsable|bezzwrotne",
    ),
    ("older|älter|plus âgé|mayores|starszy", "younger|jünger|plus jeune|menores|młodszy"),
    ("upload|uploads|hochladen", "download|downloads|herunterladen"),
    ("locks|lock|locked|gesperrt", "unlocks|unlock|unlocked|entsperrt"),
    ("internal|intern|interne|interno", "external|extern|externe|externo"),
];

static NEGATOR: LazyLock<std::collections::HashSet<&str>> =
    LazyLock::new(|| NEGATORS.split_whitespace().collect());

/// The phrases of all axes, each with its expression, axis and sign. Longer phrases come first.
static PHRASES: LazyLock<Vec<(&str, Regex, usize, i8)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for (axis, (positive, negative)) in AXES.iter().enumerate() {
        for (list, sign) in [(positive, 1), (negative, -1)] {
            let phrases = list.split('|').filter(|phrase| is_phrase(phrase));
            for phrase in phrases {
                let edge = if phrase.is_ascii() { r"\b" } else { "" };
                let pattern = format!("{edge}{}{edge}", regex::escape(phrase));
                let pattern = Regex::new(&pattern).expect("a phrase is a literal");
                all.push((phrase, pattern, axis, sign));
            }
        }
    }
    all.sort_by_key(|(phrase, ..)| std::cmp::Reverse(phrase.len()));
    all
});

/// The single words of all axes.
static WORDS: LazyLock<HashMap<&str, Vec<(usize, i8)>>> = LazyLock::new(|| {
    let mut all = HashMap::<&str, Vec<(usize, i8)>>::new();
    for (axis, (positive, negative)) in AXES.iter().enumerate() {
        for (list, sign) in [(positive, 1), (negative, -1)] {
            for word in list.split('|').filter(|word| !is_phrase(word)) {
                all.entry(word).or_default().push((axis, sign));
            }
        }
    }
    all
});

/// True for several words, and for scripts without spaces.
fn is_phrase(text: &str) -> bool {
    text.contains([' ', '-']) || text.chars().any(|c| c > '\u{3000}')
}

/// The direction of a clause.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Polarity {
    /// True if the clause is negated.
    is_negated: bool,
    /// The sign of each axis that it speaks of; 0 if of both directions.
    axes: BTreeMap<usize, i8>,
}

/// The relation of two clauses about the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opposition {
    /// They say the same, as far as words tell.
    None,
    /// One of them has a negation more.
    Negation,
    /// They use words of opposite directions.
    Direction,
}

impl Polarity {
    /// Reads a clause in lower case.
    pub(super) fn of(folded: &str) -> Self {
        // `No, we do not ship` negates once.
        let start = folded.trim_start_matches(|c: char| !c.is_alphanumeric());
        let start = ["no, ", "nein, ", "non, ", "nie, ", "いいえ、"]
            .iter()
            .find_map(|answer| start.strip_prefix(answer))
            .unwrap_or(start);
        let mut polarity = Self::default();
        let mut rest = start.to_owned();
        let mut add = |axis: usize, sign: i8| {
            polarity
                .axes
                .entry(axis)
                // Both directions in one clause cancel each other out.
                .and_modify(|known| *known = if *known == sign { sign } else { 0 })
                .or_insert(sign);
        };
        for (phrase, pattern, axis, sign) in PHRASES.iter() {
            // Most phrases are not there, and looking for a literal costs far less than an expression.
            if rest.contains(phrase) && pattern.is_match(&rest) {
                add(*axis, *sign);
                // Removed, so that the words of a phrase do not count once more by themselves.
                rest = pattern.replace_all(&rest, " ").into_owned();
            }
        }
        for word in WordIter::new(&rest) {
            for (axis, sign) in WORDS.get(word.text).into_iter().flatten() {
                add(*axis, *sign);
            }
        }
        let is_word = WordIter::new(&rest).any(|word| NEGATOR.contains(word.text));
        polarity.is_negated = is_word || CJK_NEGATION.iter().any(|end| rest.contains(end));
        polarity
    }

    /// Compares two clauses about the same thing.
    pub(super) fn opposes(&self, other: &Self) -> Opposition {
        let negations_differ = self.is_negated != other.is_negated;
        let mut shared = self.axes.iter().filter_map(|(axis, sign)| {
            let theirs = other.axes.get(axis)?;
            (*sign != 0 && *theirs != 0).then_some(sign != theirs)
        });
        let is_turned = shared.any(|differs| differs);
        match (negations_differ, is_turned) {
            // Two turns, as in `never open` and `closed`, leave the meaning.
            (true, true) | (false, false) => Opposition::None,
            (true, false) => Opposition::Negation,
            (false, true) => Opposition::Direction,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opposites_are_seen_and_two_turns_are_none() {
        let opposes = |a: &str, b: &str| Polarity::of(a).opposes(&Polarity::of(b));
        let direction = Opposition::Direction;
        assert_eq!(
            opposes("runs longer than 20 s are skipped", "runs shorter than 20 s are skipped"),
            direction
        );
        assert_eq!(opposes("at least three", "at most three"), direction);
        assert_eq!(
            opposes("we ship to po boxes", "we do not ship to po boxes"),
            Opposition::Negation
        );
        for (a, b) in [
            ("no, we do not ship to po boxes", "we do not ship to po boxes"),
            ("it is closed on mondays", "it is never open on mondays"),
            ("the oldest entry goes first", "the oldest entry goes first"),
        ] {
            assert_eq!(opposes(a, b), Opposition::None, "{a} / {b}");
        }
    }
}
