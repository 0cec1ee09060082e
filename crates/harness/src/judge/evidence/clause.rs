//! Clauses of a text with their content words, and how two clauses correspond. Pure.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use selftest_text::words::{WordIter, fold};

/// Words without content of their own, in the languages that are known.
const STOP_WORDS: &str = "a an the and or of to in on at for by with from as is are was were be been being it its this that these those which who whom what when then than there here their they them he she his her we our you your i me my do does did done will would can could shall should may might must have has had if so such about into over under also each any all some both per via not no \
der die das den dem des ein eine einen einem einer eines und oder von zu im in am an auf für mit bei aus als ist sind war waren wird werden es er sie wir ihr ihre man kann können muss müssen soll dass wenn dann auch nur noch nach vor über unter zum zur nicht kein keine \
le la les un une des du de et ou à au aux en dans sur pour par avec est sont était il elle on nous vous ils que qui ce cette ces se sa son ses leur leurs ne pas plus peut doit être \
el los las uno una unos unas y o del al en con por para es son está están se su sus lo le que como más no si hay debe puede \
w z na do od po i lub oraz jest są się nie o to ten ta te za przez dla \
answer says say states state names name mentions mention antwort sagt nennt réponse dit respuesta dice";

static STOP: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split_whitespace().collect());

static BREAK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[\n;!?。！？｡]+|[.:](?:\s|$)|\s[–—]\s|,\s(?:and|but|while|whereas|und|aber|et|mais|y|pero|a|ale)\s|、")
        .expect("the pattern is a constant, and a test compiles it")
});

/// A clause of a text.
#[derive(Debug, Clone)]
pub(super) struct Clause {
    /// Its text.
    pub(super) text: String,
    /// Stems of its content words, in order.
    pub(super) stems: Vec<String>,
}

/// Splits a text into clauses with at least one content word.
pub(super) fn clauses(text: &str) -> Vec<Clause> {
    let mut all = Vec::new();
    let mut start = 0;
    let ends = BREAK
        .find_iter(text)
        .map(|found| found.range())
        .chain(std::iter::once(text.len()..text.len()));
    for end in ends {
        let range = start..end.start.max(start);
        start = end.end;
        let folded = fold(&text[range.clone()]);
        let stems = stems(&folded);
        if !stems.is_empty() {
            all.push(Clause { text: text[range].to_owned(), stems });
        }
    }
    all
}

/// Returns true for a folded word without content.
pub(super) fn is_stop(word: &str) -> bool {
    STOP.contains(word)
}

/// Returns the stems of the content words of a folded text.
pub(super) fn stems(folded: &str) -> Vec<String> {
    let mut all = Vec::new();
    for word in WordIter::new(folded) {
        let text = word.text;
        if STOP.contains(text) {
            continue;
        }
        if text.chars().any(is_cjk) {
            // Without spaces, pairs of characters stand in for words.
            let characters: Vec<char> = text.chars().collect();
            all.extend(characters.windows(2).map(|pair| pair.iter().collect::<String>()));
            if characters.len() == 1 {
                all.push(text.to_owned());
            }
            continue;
        }
        all.push(stem(text));
    }
    all
}

/// Returns the first letters of a word, which its forms share.
fn stem(word: &str) -> String {
    let word = word.split('\'').next().unwrap_or(word);
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return word.to_owned();
    }
    let length = word.chars().count();
    let kept = match length {
        0..=4 => length,
        5..=7 => 4.max(length - 2),
        _ => 6,
    };
    let stem: String = word.chars().take(kept).collect();
    if length == 4 { stem.trim_end_matches('s').to_owned() } else { stem }
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

/// Returns the share of a clause's stems that are in a set, 0 to 1.
pub(super) fn coverage(clause: &[String], known: &HashSet<&str>) -> f64 {
    let unique: HashSet<&str> = clause.iter().map(String::as_str).collect();
    let found = unique.iter().filter(|stem| known.contains(**stem)).count();
    share(found, unique.len())
}

/// Returns a share of a count, 0 if there is nothing to count.
#[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
pub(super) fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
