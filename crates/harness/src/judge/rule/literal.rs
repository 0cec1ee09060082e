//! Compares literal numbers and names: those of an expectation that an answer lacks, and numbers in
//! an answer that occur in none of its sources. Pure.
//!
//! It reports only what is missing. An answer that names everything may still be wrong about it.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

/// Matches digits with separators: `4,200`, `0.35`, `22:30`, `5.0.0`.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"\d+(?:[.,:'\u{202f}\u{a0}]\d+)*"));
/// Matches thousands separated by spaces.
static SPACED: LazyLock<Regex> = LazyLock::new(|| regex(r"\b\d{1,3}(?: \d{3})+\b"));
/// Matches thousands separated by a mark.
static GROUPED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^\d{1,3}(?:[.,'\u{202f}\u{a0} ]\d{3})+$"));
/// Matches the number of a list item.
static ITEM: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^[ \t>]*\d{1,3}[.)](?:[ \t]|$)"));
/// Matches code in backticks, and words that can only be names. `clean-tiles` is not one, since
/// words of prose have hyphens too.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"`([^`\n]{2,80})`|(?:^|\s)(--?[a-z][\w-]{2,})|\b([A-Za-z]\w*(?:_\w+|::\w+|/[\w.]+)+)|\b([a-z]+[A-Z]\w+)",
    )
});
/// Matches units after which a number counts lines or words of the answer and is not part of its
/// content.
static UNIT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)^\s*(?:\p{L}+\s+)?(?:sentence|line|bullet|item|row|column|step|word|question|character|point|paragraph|s[äa]tz|zeile|spalte|punkt|wort|w[öo]rter|phrase|ligne|colonne|mot|frase|l[íi]ne?a|columna|palabra|linha|coluna|palavra|rig[ah]|colonn|parol|zda[nń]|wiersz|zin|regel|kolom|woord|句|行|列|字|文)",
    )
});
/// Matches words that negate a sentence or state that something stays unchanged, so that it need
/// not be named.
static NEGATION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:not|no|never|without|neither|nor|none|nothing|avoids?|free of|instead|leaves?|keeps?|intact|unchanged|untouched|n['’]t|nicht|kein\w*|ohne|nie|lässt|bleibt|pas|sans|aucun\w*|jamais|laisse|sin|ning[úu]n\w*|nunca|deja|n[ãa]o|sem|nenhum\w*|deixa|non|senza|nessun\w*|lasciano?|bez|nie|niet|geen|zonder|laat)\b|[不没無无未]|ない|ません",
    )
});

/// The words for 0 to 12 in English, German, French, Spanish, Portuguese, Italian, Polish and
/// Dutch.
const WORDS: [&str; 13] = [
    "zero null zéro cero nul",
    "one ein eins eine einen einem einer un une uno una um uma jeden jedna een één",
    "two zwei deux dos dois duas due dwa dwie twee",
    "three drei trois tres três tre trzy drie",
    "four vier quatre cuatro quatro quattro cztery",
    "five fünf cinq cinco cinque pięć vijf",
    "six sechs seis sei sześć zes",
    "seven sieben sept siete sete sette siedem zeven",
    "eight acht huit ocho oito otto osiem",
    "nine neun neuf nueve nove dziewięć negen",
    "ten zehn dix diez dez dieci dziesięć tien",
    "eleven elf onze once undici jedenaście",
    "twelve zwölf douze doce doze dodici dwanaście twaalf",
];

/// Largest number that may as well have been counted as read.
const MAX_COUNTED: u32 = 12;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

/// Returns the literals of an expectation if an answer contains none of them. Empty for an
/// expectation without literals, and for one that can be met without naming anything.
pub(super) fn missing_literals(expectation: &str, answer: &str) -> Vec<String> {
    if NEGATION.is_match(expectation) {
        return Vec::new();
    }
    let expectation = plain_digits(expectation);
    let answer = plain_digits(answer);
    let wanted: Vec<(&str, Vec<String>)> = NUMBER
        .find_iter(&expectation)
        .filter(|found| !UNIT.is_match(&expectation[found.end()..]))
        .map(|found| (found.as_str(), readings(found.as_str())))
        .collect();
    if !wanted.is_empty() {
        let named = named_numbers(&answer);
        let is_named =
            |(_, readings): &(&str, Vec<String>)| readings.iter().any(|r| named.contains(r));
        // One matching literal is enough, since only plain misses are reported.
        if wanted.iter().any(is_named) {
            return Vec::new();
        }
        return wanted.into_iter().map(|(text, _)| text.to_owned()).collect();
    }
    let answer = answer.to_lowercase();
    let names = names(&expectation);
    if names.iter().any(|name| answer.contains(&name.to_lowercase())) {
        return Vec::new();
    }
    names
}

/// Returns the first number of an answer that occurs in none of the texts. Numbers of list items
/// and small numbers, which may have been counted, are ignored.
pub(super) fn unknown_number<'k>(
    answer: &str,
    known: impl Iterator<Item = &'k str>,
) -> Option<String> {
    let known: Vec<String> = known.map(plain_digits).collect();
    let given: HashSet<String> = known.iter().flat_map(|text| named_numbers(text)).collect();
    let answer = plain_digits(answer);
    let answer = ITEM.replace_all(&answer, "");
    let spaced = SPACED.find_iter(&answer);
    let spaced: Vec<_> = spaced.map(|found| (found.range(), readings(found.as_str()))).collect();
    NUMBER
        .find_iter(&answer)
        .find(|found| {
            let mut all = readings(found.as_str());
            // In `4 200`, each part may belong to the whole number.
            let around = spaced.iter().filter(|(range, _)| range.contains(&found.start()));
            all.extend(around.flat_map(|(_, readings)| readings.clone()));
            let counted = found.as_str().parse::<u32>().is_ok_and(|number| number <= MAX_COUNTED);
            // A part of a longer known number counts as known.
            let is_part = known.iter().any(|text| text.contains(found.as_str()));
            !counted && !is_part && !all.iter().any(|reading| given.contains(reading))
        })
        .map(|found| found.as_str().to_owned())
}

/// Returns every possible value of the numbers and number words of a text.
fn named_numbers(text: &str) -> HashSet<String> {
    let mut named = HashSet::new();
    for found in NUMBER.find_iter(text).chain(SPACED.find_iter(text)) {
        named.extend(readings(found.as_str()));
    }
    let text = text.to_lowercase();
    for word in text.split(|c: char| !c.is_alphabetic()) {
        let value = WORDS.iter().position(|words| words.split(' ').any(|known| known == word));
        named.extend(value.map(|value| value.to_string()));
    }
    let digits = "零一二三四五六七八九十";
    for c in text.chars() {
        let value = digits.chars().position(|digit| digit == c).or((c == '两').then_some(2));
        named.extend(value.map(|value| value.to_string()));
    }
    named
}

/// Returns the possible values of a number as written: `4.200` is 4200 or 4.2, `05:15` is 5:15.
fn readings(number: &str) -> Vec<String> {
    let is_mark = |c: char| !c.is_ascii_digit();
    let whole = |digits: &str| {
        let trimmed = digits.trim_start_matches('0');
        if trimmed.is_empty() { "0".to_owned() } else { trimmed.to_owned() }
    };
    let mut all = Vec::new();
    if GROUPED.is_match(number) {
        all.push(whole(&number.replace(is_mark, "")));
    }
    let parts: Vec<&str> = number.split(is_mark).collect();
    match (parts.as_slice(), number.contains(':')) {
        ([digits], _) => all.push(whole(digits)),
        ([digits, fraction], false) => {
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            all.push(format!("{}{point}{fraction}", whole(digits)));
        }
        (parts, clock) => {
            let parts: Vec<String> = parts.iter().map(|part| whole(part)).collect();
            all.push(parts.join(if clock { ":" } else { "." }));
        }
    }
    all
}

/// Returns the names of a text without duplicates.
fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for found in NAME.captures_iter(text) {
        let name = found.iter().skip(1).flatten().next().map(|name| name.as_str().to_owned());
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

/// Converts full-width digits to ASCII.
fn plain_digits(text: &str) -> String {
    let plain = |c: char| match c {
        '０'..='９' => char::from_digit(u32::from(c) - u32::from('０'), 10).unwrap_or(c),
        c => c,
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_the_numbers_of_an_expectation_misses_them() {
        let says = "The answer says that exit code 17 means a full disk.";
        assert_eq!(missing_literals(says, "It means that something failed."), ["17"]);
        assert_eq!(missing_literals(says, "17: the disk is full"), [""; 0]);
        for (expectation, answer) in [
            ("The limit is 18500.", "18,500 requests"),
            ("The limit is 2000.", "**2 000**"),
            ("Die Antwort nennt 9,25 Euro.", "€ 9.25 per hour"),
            ("The period ends at 05:15.", "until 5:15"),
            ("It is kept for 8 years.", "acht Jahre"),
            ("可续水9次。", "续水九次"),
            ("It is -35 °C to 55 °C.", "from −35 °C"),
            ("The gain is 0.350.", "0.35"),
        ] {
            assert_eq!(missing_literals(expectation, answer), [""; 0], "{expectation} / {answer}");
        }
    }

    #[test]
    fn an_answer_without_any_name_of_an_expectation_misses_them() {
        let says = "The answer gives `just clean-tiles` or the `mapwell prune` behind it.";
        assert_eq!(
            missing_literals(says, "Delete the folder."),
            ["just clean-tiles", "mapwell prune"]
        );
        assert_eq!(missing_literals(says, "Run `JUST clean-tiles`."), [""; 0]);
        assert_eq!(missing_literals("It names max_loans.", "It is 14."), ["max_loans"]);
        assert_eq!(missing_literals("It is well-kept.", "No."), [""; 0]);
    }

    #[test]
    fn what_may_be_met_in_silence_is_not_missed() {
        for expectation in [
            "The answer does not name port 80.",
            "The command leaves `ledger` intact.",
            "I comandi lasciano intatto il volume `pergamena_dati`.",
            "The answer has 3 lines.",
            "The answer takes at most 2 short sentences.",
            "The answer is friendly.",
        ] {
            assert_eq!(missing_literals(expectation, "Yes."), [""; 0], "{expectation}");
        }
    }

    #[test]
    fn numbers_that_nobody_gave_are_found() {
        let file = "Port 7341, flushed every 12 s, 4.200 ms, from 05:15 on";
        let unknown = |answer: &str| unknown_number(answer, [file].into_iter());
        assert_eq!(unknown("It listens on 7341 and flushes after 12 s."), None);
        assert_eq!(unknown("4200 ms, 4,200 ms, 4 200 ms, 5:15, 7341.0"), None);
        assert_eq!(unknown("1. one\n13. two\n  14) three"), None);
        assert_eq!(unknown("Two of 3."), None);
        assert_eq!(unknown("It listens on 7431."), Some("7431".to_owned()));
    }
}
