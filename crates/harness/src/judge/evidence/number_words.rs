//! Numbers in words and in other digits: `twenty-five`, `fünfundzwanzig`, `quatre-vingts`, `九十`,
//! `２５`, and ordinals of days. Pure.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// A word of a text: its position in bytes, and its letters in lower case.
pub(super) type Token = (Range<usize>, String);

/// Words for numbers. Words of another meaning in a common language (`once`, `son`) are left out.
const NUMBER_WORDS: &[(u32, &str)] = &[
    (0, "zero null zéro cero"),
    (1, "one ein eins eine einen einem einer eines un une uno una jeden jedna jedną a an"),
    (2, "two zwei deux dos dwa dwie dwóch both beide beiden"),
    (3, "three drei trois tres trzy trzech"),
    (4, "four vier quatre cuatro cztery czterech"),
    (5, "five fünf cinq cinco pięć pięciu"),
    (6, "six sechs seis sześć sześciu"),
    (7, "seven sieben sept siete siedem siedmiu"),
    (8, "eight acht huit ocho osiem ośmiu"),
    (9, "nine neun neuf nueve dziewięć"),
    (10, "ten zehn dix diez dziesięć dziesięciu"),
    (11, "eleven elf onze jedenaście"),
    (12, "twelve zwölf douze doce dwanaście dozen dutzend douzaine docena"),
    (13, "thirteen dreizehn treize trece trzynaście"),
    (14, "fourteen vierzehn quatorze catorce czternaście fortnight"),
    (15, "fifteen fünfzehn quinze quince piętnaście"),
    (16, "sixteen sechzehn seize dieciséis szesnaście"),
    (17, "seventeen siebzehn diecisiete siedemnaście"),
    (18, "eighteen achtzehn dieciocho osiemnaście"),
    (19, "nineteen neunzehn diecinueve dziewiętnaście"),
    (20, "twenty zwanzig vingt vingts veinte dwadzieścia dwudziestu"),
    (21, "veintiuno veintiún"),
    (22, "veintidós"),
    (23, "veintitrés"),
    (24, "veinticuatro"),
    (25, "veinticinco"),
    (30, "thirty dreißig dreissig trente treinta trzydzieści trzydziestu"),
    (40, "forty vierzig quarante cuarenta czterdzieści"),
    (50, "fifty fünfzig cinquante cincuenta pięćdziesiąt"),
    (60, "sixty sechzig soixante sesenta sześćdziesiąt"),
    (70, "seventy siebzig setenta siedemdziesiąt"),
    (80, "eighty achtzig ochenta osiemdziesiąt"),
    (90, "ninety neunzig noventa dziewięćdziesiąt"),
    (100, "hundred hundert cent cien ciento sto"),
    (200, "doscientos doscientas dwieście"),
    (300, "trescientos trescientas trzysta"),
    (500, "quinientos quinientas pięćset"),
    (1000, "thousand tausend mille mil tysiąc tysiące tysięcy"),
    (1_000_000, "million millionen millones milion"),
];

static WORD: LazyLock<HashMap<String, u32>> = LazyLock::new(|| {
    let mut words = HashMap::new();
    for (value, names) in NUMBER_WORDS {
        words.extend(names.split(' ').map(|name| (name.to_owned(), *value)));
    }
    let of = |words: &HashMap<String, u32>, range: Range<u32>| -> Vec<(String, u32)> {
        words
            .iter()
            .filter(|(_, value)| range.contains(value))
            .map(|(word, value)| (word.clone(), *value))
            .collect()
    };
    // German puts the ones first, in one word: `fünfundzwanzig`.
    let (ones, tens) = (of(&words, 1..10), of(&words, 20..100));
    for (one, value) in &ones {
        for (ten, base) in tens.iter().filter(|(_, base)| base % 10 == 0) {
            words.insert(format!("{one}und{ten}"), base + value);
        }
    }
    words
});

/// Returns the value of the number words at the start, with the number of words.
pub(super) fn number_words(tokens: &[Token]) -> Option<(f64, usize)> {
    let (mut total, mut current, mut used) = (0_u32, None::<u32>, 0);
    let mut at = 0;
    while let Some((range, word)) = tokens.get(at) {
        let joins = matches!(word.as_str(), "and" | "et" | "y" | "und");
        if joins && current.is_some_and(|current| current >= 20) && at == used {
            at += 1;
            continue;
        }
        let is_adjacent = at == 0 || range.start <= tokens[at - 1].0.end + 1;
        let Some(value) = in_one_word(word).filter(|_| is_adjacent) else { break };
        current = Some(match (current, value) {
            (None, value) => value,
            (Some(before), 100) if before < 100 => before * 100,
            (Some(before), 1000 | 1_000_000) => {
                total = total.saturating_add(before.saturating_mul(value));
                0
            }
            (Some(before), value) if value < 10 && before % 10 == 0 && before % 100 >= 20 => {
                before + value
            }
            (Some(before), value) if value < 100 && before % 100 == 0 && before >= 100 => {
                before + value
            }
            // `soixante-dix`, `quatre-vingts` and `quatre-vingt-dix`.
            (Some(60), value @ 10..20) => 60 + value,
            (Some(4), 20) => 80,
            (Some(80), value @ 10..20) => 80 + value,
            _ => break,
        });
        at += 1;
        used = at;
    }
    Some((f64::from(total.saturating_add(current?)), used)).filter(|(_, used)| *used > 0)
}

/// Returns the number that a single word or its digits stand for.
pub(super) fn number_word(word: &str) -> Option<u32> {
    word.parse().ok().or_else(|| in_one_word(word))
}

/// Longer words spell no number, in bytes.
const MAX_WORD: usize = 80;

/// Returns the number that a word spells. German writes all of it in one: `sechshundertvierzig`.
fn in_one_word(word: &str) -> Option<u32> {
    if let Some(value) = WORD.get(word) {
        return Some(*value);
    }
    // Each part is read by a call of its own, and a hostile word has many.
    if word.len() > MAX_WORD {
        return None;
    }
    [("tausend", 1000), ("hundert", 100)].into_iter().find_map(|(name, factor)| {
        let (times, rest) = word.split_once(name)?;
        let times = if times.is_empty() { 1 } else { in_one_word(times)? };
        let rest = if rest.is_empty() { 0 } else { in_one_word(rest.trim_start_matches("und"))? };
        // A larger one stands in front.
        (times < 1000 && rest < factor).then_some(times * factor + rest)
    })
}

/// Days of a month in words whose form is their own. Others add an ending to the number.
const ORDINALS: &[(u32, &str)] = &[
    (1, "first erste ersten erster premier primero pierwszego"),
    (2, "second zweite zweiten zweiter segundo drugiego"),
    (3, "third dritte dritten dritter trzeciego"),
    (5, "fifth"),
    (7, "siebte siebten siebter"),
    (8, "eighth achte achten achter"),
    (9, "ninth"),
    (12, "twelfth"),
    (20, "twentieth"),
    (30, "thirtieth"),
];

/// Returns the day that an ordinal names, with its number of words: `third`, `dritten`, `twenty
/// first`.
pub(super) fn ordinal(tokens: &[Token]) -> Option<(u32, usize)> {
    let (_, word) = tokens.first()?;
    if let Some(tens @ (20 | 30)) = WORD.get(word)
        && let Some(ones @ 1..10) = tokens.get(1).and_then(|(_, word)| ordinal_word(word))
    {
        return Some((tens + ones, 2));
    }
    ordinal_word(word).map(|day| (day, 1))
}

fn ordinal_word(word: &str) -> Option<u32> {
    static OWN: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| {
        let each = ORDINALS.iter();
        each.flat_map(|(day, names)| names.split(' ').map(move |name| (name, *day))).collect()
    });
    let day = OWN.get(word).copied().or_else(|| {
        let endings = ["sten", "ster", "ste", "ten", "ter", "te", "th"];
        endings.iter().find_map(|end| WORD.get(word.strip_suffix(end)?).copied())
    })?;
    (1..=31).contains(&day).then_some(day)
}

/// Returns the value of a number in Japanese or Chinese characters: `九十`, `百二十`.
pub(super) fn cjk_number(characters: &str) -> Option<f64> {
    let (mut total, mut ones) = (0_u32, None);
    for character in characters.chars() {
        let factor = match character {
            '十' => 10,
            '百' => 100,
            '千' => 1000,
            _ => {
                let digit = "〇一二三四五六七八九".chars().position(|one| one == character)?;
                // `二〇` is written digit by digit, as a year is.
                let before = ones.map_or(0, |ones: u32| ones.saturating_mul(10));
                ones = Some(before.saturating_add(u32::try_from(digit).ok()?));
                continue;
            }
        };
        total = total.saturating_add(ones.take().unwrap_or(1).saturating_mul(factor));
    }
    (!characters.is_empty()).then(|| f64::from(total.saturating_add(ones.unwrap_or_default())))
}

/// Converts full-width digits to ASCII.
pub(super) fn ascii_digits(number: &str) -> String {
    let ascii = |c: char| match c {
        '０'..='９' => char::from_digit(u32::from(c) - u32::from('０'), 10).unwrap_or(c),
        _ => c,
    };
    number.chars().map(ascii).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_other_scripts_have_a_value() {
        for (text, value) in
            [("九十", 90.0), ("十五", 15.0), ("百二十", 120.0), ("二〇二六", 2026.0), ("三", 3.0)]
        {
            assert_eq!(cjk_number(text), Some(value), "{text}");
        }
        assert_eq!(cjk_number("九日"), None);
        assert_eq!(cjk_number(""), None);
    }

    #[test]
    fn german_numbers_are_one_word() {
        for (word, value) in [
            ("zweihundert", 200),
            ("sechshundertvierzig", 640),
            ("hundertzwanzig", 120),
            ("zwölftausenddreihundertfünfundzwanzig", 12_325),
            ("hundertundeins", 101),
        ] {
            assert_eq!(number_word(word), Some(value), "{word}");
        }
        for word in ["jahrhundert", "hunderthundert", "tausender", "", &"hundert".repeat(9_999)] {
            assert_eq!(number_word(word), None, "{word}");
        }
    }

    #[test]
    fn ordinals_are_days_of_a_month() {
        let day = |text: &str| {
            let tokens: Vec<Token> = text.split(' ').map(|word| (0..0, word.to_owned())).collect();
            ordinal(&tokens).map(|(day, _)| day)
        };
        for (text, expected) in [
            ("third", 3),
            ("dritte", 3),
            ("vierzehnten", 14),
            ("einundzwanzigste", 21),
            ("sixteenth", 16),
            ("twenty first", 21),
            ("premier", 1),
        ] {
            assert_eq!(day(text), Some(expected), "{text}");
        }
        for text in ["hunderttausendste", "mit", "thousandth", "weiter", "month"] {
            assert_eq!(day(text), None, "{text}");
        }
    }
}
