//! The few words in which a statement of an answer differs from a known one, and the clauses of a text
//! that correspond. A copy with one number, name or direction exchanged says something else, whatever
//! the rest shares. Pure.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use super::polarity::{Opposition, Polarity};
use super::quantity::{Quantity, quantities};
use selftest_text::words::{WordIter, fold};

static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"--?[A-Za-z][\w-]*|[\p{Han}\p{Hiragana}]|\p{Katakana}+|[\p{L}\p{N}_]+(?:[.'’:,/_-][\p{L}\p{N}_]+)*|[%€$£]",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

/// A statement as a list of words.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    /// Words as written.
    words: Vec<String>,
    /// The same in lower case.
    folded: Vec<String>,
    /// The same, sorted.
    sorted: Vec<String>,
}

impl Statement {
    /// Reads a statement.
    pub(super) fn new(text: &str) -> Self {
        let words: Vec<String> =
            TOKEN.find_iter(text).map(|token| token.as_str().to_owned()).collect();
        let folded: Vec<String> = words.iter().map(|word| fold(word)).collect();
        let mut sorted = folded.clone();
        sorted.sort_unstable();
        Self { words, folded, sorted }
    }

    /// Returns the number of words.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns false if lengths or words rule out that the two are so alike: at best, all common words
    /// stand in the same order.
    pub(super) fn may_be_like(&self, other: &Self, likeness: f64) -> bool {
        let both = self.len() + other.len();
        // Texts of such lengths cannot be more alike than this.
        if 2.0 * share(self.len().min(other.len()), both) < likeness {
            return false;
        }
        let (mut a, mut b) = (self.sorted.iter().peekable(), other.sorted.iter().peekable());
        let mut common = 0;
        while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
            match left.cmp(right) {
                std::cmp::Ordering::Less => drop(a.next()),
                std::cmp::Ordering::Greater => drop(b.next()),
                std::cmp::Ordering::Equal => {
                    common += 1;
                    a.next();
                    b.next();
                }
            }
        }
        2.0 * share(common, both) >= likeness
    }
}

impl Edit {
    /// Describes the replaced part.
    pub(super) fn describe(&self) -> String {
        format!("`{}` in place of `{}`", self.said.join(" "), self.known.join(" "))
    }
}

/// A replaced part: words of the known statement, and words of the answer in their place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) known: Vec<String>,
    pub(super) said: Vec<String>,
    /// The words before and after the part, which both share.
    before: Option<String>,
    after: Option<String>,
}

/// Returns how alike two statements are, 0 to 1, and the parts in which they differ.
pub(super) fn compare(known: &Statement, said: &Statement) -> (f64, Vec<Edit>) {
    let (rows, columns) = (known.len(), said.len());
    // Lengths of the longest common subsequences of the ends.
    let mut table = vec![0_u32; (rows + 1) * (columns + 1)];
    let at = |row: usize, column: usize| row * (columns + 1) + column;
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            table[at(row, column)] = if known.folded[row] == said.folded[column] {
                table[at(row + 1, column + 1)] + 1
            } else {
                table[at(row + 1, column)].max(table[at(row, column + 1)])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut edits = Vec::new();
    let mut edit = Edit::default();
    let mut last = None;
    // Walks the table from the start. Runs of words that only one side has become one edit.
    while row < rows || column < columns {
        if row < rows && column < columns && known.folded[row] == said.folded[column] {
            if !edit.known.is_empty() || !edit.said.is_empty() {
                edit.after = Some(known.folded[row].clone());
                edits.push(std::mem::take(&mut edit));
            }
            last = Some(known.folded[row].clone());
            (row, column) = (row + 1, column + 1);
        } else if column < columns
            && (row == rows || table[at(row, column + 1)] > table[at(row + 1, column)])
        {
            if edit == Edit::default() {
                edit.before.clone_from(&last);
            }
            edit.said.push(said.words[column].clone());
            column += 1;
        } else {
            if edit == Edit::default() {
                edit.before.clone_from(&last);
            }
            edit.known.push(known.words[row].clone());
            row += 1;
        }
    }
    if !edit.known.is_empty() || !edit.said.is_empty() {
        edits.push(edit);
    }
    let common = usize::try_from(table[0]).unwrap_or_default();
    (2.0 * share(common, rows + columns), edits)
}

/// What a set of edits changes. Each is 0 or 1, or a share.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a finding of its own")]
pub(super) struct Change {
    /// A number became another one.
    pub(super) number: bool,
    /// A negation came or went.
    pub(super) negation: bool,
    /// A word became one of the opposite direction.
    pub(super) direction: bool,
    /// A name became another one.
    pub(super) name: bool,
    /// Words changed places.
    pub(super) swap: bool,
    /// A word of content became another one, and nothing else changed there.
    pub(super) word: bool,
    /// Words of content were left out.
    pub(super) removed: bool,
    /// Words of content were added.
    pub(super) added: bool,
}

impl Change {
    /// Returns true if nothing changed that has a meaning.
    pub(super) fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Returns true if two words may be forms of one word: `retry` and `retries`. Short endings alone may
/// differ, so that neighbouring names do not count.
fn is_form_of(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let shared = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let longest = a.chars().count().max(b.chars().count());
    shared >= 4 && longest - shared <= 3 && stems(a) == stems(b) && longest > 5
}

fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    let first = letters.next().unwrap_or_default();
    let has = |test: fn(char) -> bool| word.chars().any(test);
    word.starts_with('-')
        || word.contains(['_', '/'])
        || (word.contains('.') && has(char::is_alphabetic))
        || (first.is_alphabetic() && has(|c| c.is_ascii_digit()))
        || word.chars().skip(1).any(char::is_uppercase)
}

/// Returns true if the edits leave every word of content, every number and every name in place.
pub(super) fn keeps_content(edits: &[Edit]) -> bool {
    let content = |words: &[String]| -> Vec<String> {
        let folded = words.iter().map(|word| fold(word));
        folded.filter(|word| !is_stop(word)).collect()
    };
    edits.iter().all(|edit| {
        let (old, new) = (content(&edit.known), content(&edit.said));
        let is_kept =
            |word: &String, others: &[String]| others.iter().any(|other| is_form_of(word, other));
        let numbers = quantities(&edit.known.join(" "));
        let said = quantities(&edit.said.join(" "));
        let same_numbers = numbers.len() == said.len()
            && numbers.iter().all(|one| said.iter().any(|other| one.equals(other)));
        (same_numbers && !numbers.is_empty())
            || (old.iter().all(|word| is_kept(word, &new))
                && new.iter().all(|word| is_kept(word, &old)))
    }) && change(edits).is_none()
}

/// Returns what the edits change.
pub(super) fn change(edits: &[Edit]) -> Change {
    let mut change = Change::default();
    let text = |words: &[String]| words.join(" ");
    let content = |words: &[String]| -> Vec<String> {
        let folded: Vec<String> = words.iter().map(|word| fold(word)).collect();
        folded.into_iter().filter(|word| !is_stop(word)).collect()
    };
    let all_known: Vec<String> = edits.iter().flat_map(|edit| content(&edit.known)).collect();
    let all_said: Vec<String> = edits.iter().flat_map(|edit| content(&edit.said)).collect();
    let numbers = |side: fn(&Edit) -> &Vec<String>| -> Vec<Quantity> {
        edits
            .iter()
            .flat_map(|edit| {
                // With a neighbour, so that a unit is seen.
                let after = edit.after.clone().unwrap_or_default();
                quantities(&format!("{} {after}", side(edit).join(" ")))
            })
            .collect()
    };
    let (known_numbers, said_numbers) = (numbers(|edit| &edit.known), numbers(|edit| &edit.said));
    for edit in edits {
        let after = edit.after.clone().unwrap_or_default();
        let before = edit.before.clone().unwrap_or_default();
        let known = quantities(&format!("{} {after}", text(&edit.known)));
        let said = quantities(&format!("{} {after}", text(&edit.said)));
        let is_new = |one: &Quantity, others: &[Quantity]| others.iter().all(|o| !o.equals(one));
        if said.iter().any(|one| is_new(one, &known)) && known.iter().any(|one| is_new(one, &said))
        {
            change.number = true;
        }
        let whole = |words: &[String]| fold(&format!("{before} {} {after}", text(words)));
        match Polarity::of(&whole(&edit.known)).opposes(&Polarity::of(&whole(&edit.said))) {
            Opposition::Negation => change.negation = true,
            Opposition::Direction => change.direction = true,
            Opposition::None => {}
        }
        let names = |words: &[String]| -> HashSet<String> {
            words.iter().filter(|word| is_name(word)).map(|word| fold(word)).collect()
        };
        let (old, new) = (names(&edit.known), names(&edit.said));
        let elsewhere = |side: fn(&Edit) -> &Vec<String>, name: &String| {
            edits.iter().any(|other| side(other).iter().any(|word| fold(word) == *name))
        };
        // A name that the known statement has elsewhere only changed its place.
        if new.iter().any(|name| !elsewhere(|edit| &edit.known, name)) && !old.is_empty() {
            change.name = true;
        }
        let (old, new) = (content(&edit.known), content(&edit.said));
        if (1..=2).contains(&old.len())
            // More words than that are another statement rather than another word.
            && (1..=2).contains(&new.len())
            && known.is_empty()
            && said.is_empty()
            && old.iter().all(|word| new.iter().all(|other| !is_form_of(word, other)))
        {
            change.word = true;
        }
        change.removed |= !old.is_empty() && new.is_empty();
        change.added |= old.is_empty() && !new.is_empty();
    }
    // The same words went away in one place and came in another.
    let moved = all_known.iter().filter(|stem| all_said.contains(stem)).count();
    // Two exchanged numbers leave the same numbers on both sides, at other places.
    let is_moved_number = edits.len() > 1
        && known_numbers.iter().any(|one| said_numbers.iter().any(|other| one.equals(other)));
    change.swap = moved >= 2 || (is_moved_number && change.number);
    if !all_known.is_empty()
        && all_known.iter().all(|stem| all_said.contains(stem))
        && edits.len() > 1
    {
        // Only the order differs.
        change.word = false;
        change.removed = false;
        change.added = false;
    }
    change
}

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
