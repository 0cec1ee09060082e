//! Numbers, dates and times of a text, compared by value: `twenty seconds` is `20 s`, `0.3 GB` is
//! `300 MB`, and `3 March` holds another month than `3 May`. Pure.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::calendar::{CalendarWord, Date, TimeOfDay, calendar_word, dates, times_of_day};
use super::number_words::{Token, ascii_digits, cjk_number, number_words, ordinal};

/// What a number counts. Numbers of different dimensions are never equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Dimension {
    Time,
    Bytes,
    Length,
    Mass,
    Volume,
    Share,
    Money(char),
    Degrees,
    /// Minutes since midnight.
    Clock,
    Month,
    Weekday,
}

/// The factor of hours, in seconds.
const HOUR: f64 = 3600.0;

/// A number of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantity {
    /// Every value that it may have: `4.200` is 4200 or 4.2.
    values: Vec<f64>,
    /// Its unit, as a dimension with the factor to the dimension's base.
    unit: Option<(Dimension, f64)>,
    /// Position in the text, in bytes, with its unit.
    pub(super) range: Range<usize>,
    /// False for a number that was spelled out.
    pub(super) is_digits: bool,
}

impl Quantity {
    /// Returns true if both have the same value. A number without a unit equals one with any.
    pub(super) fn equals(&self, other: &Self) -> bool {
        let factors = match (self.unit, other.unit) {
            (Some((mine, own)), Some((theirs, other))) if mine == theirs => (own, other),
            // `22 heures` is a time of day as well as a duration.
            (Some((Dimension::Time, HOUR)), Some((Dimension::Clock, _))) => (60.0, 1.0),
            (Some((Dimension::Clock, _)), Some((Dimension::Time, HOUR))) => (1.0, 60.0),
            (Some(_), Some(_))
            | (Some((Dimension::Month | Dimension::Weekday, _)), None)
            | (None, Some((Dimension::Month | Dimension::Weekday, _))) => return false,
            // Clocks are in minutes, and a bare number beside one is in hours: `at 19`.
            (Some((Dimension::Clock, _)), None) => (1.0 / 60.0, 1.0),
            (None, Some((Dimension::Clock, _))) => (1.0, 1.0 / 60.0),
            _ => (1.0, 1.0),
        };
        // Conversions are rounded; numbers of the same unit are not.
        let tolerance = if (factors.0 - factors.1).abs() > f64::EPSILON { 0.002 } else { 1e-9 };
        let is_close = |a: f64, b: f64| (a - b).abs() <= tolerance * a.abs().max(b.abs());
        self.values
            .iter()
            .any(|a| other.values.iter().any(|b| is_close(a * factors.0, b * factors.1)))
    }

    /// Returns true if one could be said in place of the other: same dimension, or one has none.
    pub(super) fn is_comparable(&self, other: &Self) -> bool {
        match (self.unit, other.unit) {
            (Some((mine, _)), Some((theirs, _))) => mine == theirs,
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns true if it counts something of a known unit.
    pub(super) fn has_unit(&self) -> bool {
        self.unit.is_some()
    }

    /// Returns true for a month.
    pub(super) fn is_month(&self) -> bool {
        matches!(self.unit, Some((Dimension::Month, _)))
    }

    /// Returns true for a weekday.
    pub(super) fn is_weekday(&self) -> bool {
        matches!(self.unit, Some((Dimension::Weekday, _)))
    }

    /// Returns true for a small number without a unit, which may as well have been counted.
    pub(super) fn may_be_counted(&self) -> bool {
        self.unit.is_none() && self.values.iter().all(|value| *value <= 12.0)
    }
}

/// Returns true for two names of one unit. Where their case counts, as in `MB` and `Mb`, or a scale is
/// left open, as in degrees, only the same name is.
pub(super) fn same_unit(one: &str, other: &str) -> bool {
    let of = |name: &str| {
        let name = if name.chars().count() == 1 { name.to_owned() } else { name.to_lowercase() };
        UNIT.get(name.as_str()).copied()
    };
    let is_named_alike = |(dimension, _): &(Dimension, f64)| {
        matches!(dimension, Dimension::Time | Dimension::Length | Dimension::Mass)
    };
    one == other || of(one).filter(is_named_alike).is_some_and(|unit| of(other) == Some(unit))
}

/// Units: names, dimension, factor to the base unit. Names of one or two letters are matched with
/// their case.
const UNITS: &[(&str, Dimension, f64)] = &[
    (
        "ms millisecond milliseconds millisekunde millisekunden milliseconde millisecondes milisegundo milisegundos ミリ秒",
        Dimension::Time,
        0.001,
    ),
    (
        "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos secondo secondi sekunda sekundy sekund 秒 秒間",
        Dimension::Time,
        1.0,
    ),
    (
        "min mins minute minutes minuten minuto minutos minuti minuta minuty minut 分 分間",
        Dimension::Time,
        60.0,
    ),
    (
        "h hr hrs hour hours stunde stunden heure heures hora horas ora ore godzina godziny godzin 時間",
        Dimension::Time,
        HOUR,
    ),
    (
        "d day days tag tage tagen jour jours día días dia dias giorno giorni dzień dni dnia 日間 日以内",
        Dimension::Time,
        86_400.0,
    ),
    (
        "week weeks woche wochen semaine semaines semana semanas settimana settimane tydzień tygodnie tygodni 週間",
        Dimension::Time,
        604_800.0,
    ),
    (
        "month months monat monate monaten mois mes meses mese mesi miesiąc miesiące miesięcy か月 ヶ月 ヵ月",
        Dimension::Time,
        2_592_000.0,
    ),
    (
        "year years jahr jahre jahren an ans année années año años anno anni rok lata lat 年間",
        Dimension::Time,
        31_104_000.0,
    ),
    ("b byte bytes octet octets", Dimension::Bytes, 1.0),
    ("kb kilobyte kilobytes ko", Dimension::Bytes, 1e3),
    ("mb megabyte megabytes mo", Dimension::Bytes, 1e6),
    ("gb gigabyte gigabytes go", Dimension::Bytes, 1e9),
    ("tb terabyte terabytes to", Dimension::Bytes, 1e12),
    ("kib kibibyte kibibytes", Dimension::Bytes, 1024.0),
    ("mib mebibyte mebibytes", Dimension::Bytes, 1_048_576.0),
    ("gib gibibyte gibibytes", Dimension::Bytes, 1_073_741_824.0),
    ("mm millimetre millimetres millimeter millimeters milímetros", Dimension::Length, 0.001),
    (
        "cm centimetre centimetres centimeter centimeters zentimeter centimètre centimètres centímetro centímetros centymetrów センチ",
        Dimension::Length,
        0.01,
    ),
    (
        "m metre metres meter meters mètre mètres metro metros metry metrów メートル",
        Dimension::Length,
        1.0,
    ),
    (
        "km kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro kilómetros kilometrów キロ",
        Dimension::Length,
        1000.0,
    ),
    ("mg milligram milligrams", Dimension::Mass, 0.001),
    ("g gram grams gramm gramme grammes gramo gramos gramów グラム", Dimension::Mass, 1.0),
    (
        "kg kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramo kilogramos kilogramów キログラム",
        Dimension::Mass,
        1000.0,
    ),
    ("t tonne tonnes tonnen ton tons", Dimension::Mass, 1e6),
    ("ml millilitre millilitres milliliter milliliters", Dimension::Volume, 0.001),
    ("l litre litres liter liters litro litros litrów リットル", Dimension::Volume, 1.0),
    ("% percent prozent por-ciento procent procenta パーセント ％", Dimension::Share, 1.0),
    ("€ eur euro euros", Dimension::Money('€'), 1.0),
    ("cent cents ct centimes céntimos", Dimension::Money('€'), 0.01),
    ("$ usd dollar dollars dólares", Dimension::Money('$'), 1.0),
    ("£ gbp pound pounds", Dimension::Money('£'), 1.0),
    ("zł pln złoty złote złotych", Dimension::Money('z'), 1.0),
    ("円 yen", Dimension::Money('y'), 1.0),
    ("°c °f ° degree degrees grad degrés grados 度", Dimension::Degrees, 1.0),
];

static UNIT: LazyLock<HashMap<&str, (Dimension, f64)>> = LazyLock::new(|| {
    let each = UNITS.iter().flat_map(|(names, dimension, factor)| {
        names.split(' ').map(move |name| (name, (*dimension, *factor)))
    });
    each.collect()
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

/// Matches the item number at the start of a line, which is not part of what is said.
static ITEM: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^[ \t>]*\d{1,2}[.)](?:[ \t]|$)"));
static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\d{1,3}(?:[ \u{202f}\u{a0}']\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)*"));
static GROUPED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^\d{1,3}(?:[.,'\u{202f}\u{a0} ]\d{3})+$"));
/// Matches what follows a number directly: its unit.
static AFTER: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^[ \u{a0}\u{202f}-]?(%|％|°[CFcf]?|[€$£円分秒度]|時間|日間|週間|年間|分間|秒間|[かヶヵ]月|月|日|年|\p{L}+)",
    )
});
static TOKEN: LazyLock<Regex> = LazyLock::new(|| regex(r"\p{L}+|\p{Han}+"));

/// Maximum number of quantities of a text: each is compared with those of other texts.
const MAX_QUANTITIES: usize = 200;

/// Returns every quantity of a text, in order.
pub(super) fn quantities(text: &str) -> Vec<Quantity> {
    let mut found = Vec::new();
    // The longest and surest readings come first, and take their place in the text: numbers of a
    // list are none, a date is no three numbers, a time no two.
    let mut taken: Vec<Range<usize>> = ITEM.find_iter(text).map(|item| item.range()).collect();
    let is_free = |taken: &[Range<usize>], range: &Range<usize>| {
        taken.iter().all(|other| other.end <= range.start || range.end <= other.start)
    };
    for Date { range, parts } in dates(text) {
        let units = [None, Some((Dimension::Month, 1.0)), None];
        for (values, unit) in parts.into_iter().zip(units) {
            found.push(Quantity { values, unit, range: range.clone(), is_digits: true });
        }
        taken.push(range);
    }
    for TimeOfDay { range, minutes: values, is_digits } in times_of_day(text) {
        if is_free(&taken, &range) {
            let unit = Some((Dimension::Clock, 1.0));
            found.push(Quantity { values, unit, range: range.clone(), is_digits });
            taken.push(range);
        }
    }
    for number in NUMBER.find_iter(text) {
        let range = number.range();
        // Digits inside of a name belong to the name.
        let before = text[..range.start].chars().next_back();
        let is_inside = before.is_some_and(|c| c.is_alphabetic() && c.is_ascii() || c == '_');
        if is_inside || !is_free(&taken, &range) {
            continue;
        }
        // The sign may stand in front, where other units never do.
        let money = before.and_then(|c| match c {
            '$' | '€' | '£' => Some((Dimension::Money(c), 1.0)),
            _ => None,
        });
        let (unit, end) = match unit_after(&text[range.end..]) {
            Some((unit, length)) => (Some(unit), range.end + length),
            None => (money, range.end),
        };
        let values = values(&ascii_digits(number.as_str()));
        found.push(Quantity { values, unit, range: range.start..end, is_digits: true });
    }
    words(text, &taken, &mut found);
    for quantity in &mut found {
        extend(text, quantity);
    }
    // Each is compared with each.
    found.truncate(4 * MAX_QUANTITIES);
    // The minutes of `1 h 30` are no number of their own.
    let spans: Vec<Range<usize>> = found.iter().map(|quantity| quantity.range.clone()).collect();
    found.retain(|quantity| {
        let range = &quantity.range;
        spans
            .iter()
            .all(|other| other == range || !(other.start < range.start && range.end <= other.end))
    });
    found.sort_by_key(|quantity| quantity.range.start);
    found.truncate(MAX_QUANTITIES);
    found
}

/// Adds to a quantity what follows it: a half, or minutes after hours.
fn extend(text: &str, quantity: &mut Quantity) {
    let Some((Dimension::Time, factor)) = quantity.unit else { return };
    let rest = &text[quantity.range.end..];
    if let Some(half) = AND_A_HALF.find(rest) {
        quantity.values.iter_mut().for_each(|value| *value += 0.5);
        quantity.range.end += half.end();
    } else if (factor - HOUR).abs() < 1.0
        && let Some(minutes) = AND_MINUTES.captures(rest)
    {
        let more = minutes[1].parse::<f64>().unwrap_or_default() / 60.0;
        quantity.values.iter_mut().for_each(|value| *value += more);
        quantity.range.end += minutes[0].len();
    }
}

/// Returns the unit at the start of a text, with its length in bytes.
fn unit_after(rest: &str) -> Option<((Dimension, f64), usize)> {
    let after = AFTER.captures(rest)?;
    let word = after.get(1)?;
    let name = word.as_str();
    match name {
        "月" => return Some(((Dimension::Month, 1.0), word.end())),
        "日" | "年" => return None,
        _ => {}
    }
    // One letter of another case is another unit, or a name.
    let is_short = name.chars().count() == 1 && name.is_ascii();
    let lower = name.to_lowercase();
    let unit = *UNIT.get(if is_short { name } else { lower.as_str() })?;
    Some((unit, word.end()))
}

/// Returns the possible values of a number as written: `4.200` is 4200 or 4.2.
fn values(number: &str) -> Vec<f64> {
    let is_mark = |c: char| !c.is_ascii_digit();
    let parts: Vec<&str> = number.split(is_mark).collect();
    let mut all = Vec::new();
    if GROUPED.is_match(number) {
        all.extend(number.replace(is_mark, "").parse::<f64>());
    }
    match parts.as_slice() {
        [whole] => all.extend(whole.parse::<f64>()),
        [whole, fraction] => all.extend(format!("{whole}.{fraction}").parse::<f64>()),
        // A version, or a number with several marks: each part keeps its weight.
        parts if all.is_empty() => {
            let sum = parts
                .iter()
                .fold(0.0, |sum, part| sum * 1000.0 + part.parse::<f64>().unwrap_or_default());
            all.push(sum + 0.5);
        }
        _ => {}
    }
    all.dedup();
    all
}

/// Adds the numbers that are spelled out, the months and the weekdays, but for what is taken.
fn words(text: &str, taken: &[Range<usize>], found: &mut Vec<Quantity>) {
    let tokens: Vec<Token> = TOKEN
        .find_iter(text)
        .map(|token| (token.range(), token.as_str().to_lowercase()))
        .filter(|(range, _)| {
            taken.iter().all(|other| other.end <= range.start || range.end <= other.start)
        })
        .collect();
    let mut at = 0;
    while at < tokens.len() {
        let (range, word) = &tokens[at];
        if let Some((value, dimension)) = month_or_weekday(word, &text[range.clone()]) {
            let unit = Some((dimension, 1.0));
            let range = range.clone();
            found.push(Quantity { values: vec![value], unit, range, is_digits: false });
            at += 1;
            continue;
        }
        if let Some((day, used)) = ordinal(&tokens[at..])
            && is_beside_month(text, &tokens, at, used)
        {
            let range = range.start..tokens[at + used - 1].0.end;
            found.push(Quantity {
                values: vec![f64::from(day)],
                unit: None,
                range,
                is_digits: false,
            });
            at += used;
            continue;
        }
        let Some((value, used)) = number_words(&tokens[at..]) else {
            if let Some((_, value)) = FRACTIONS.iter().find(|(name, _)| name == word) {
                fraction(*value, &tokens[at..], found);
            }
            at += 1;
            continue;
        };
        let mut end = tokens[at + used - 1].0.end;
        let mut value = value;
        // `one and a half hours`; without a unit, the half is of something else.
        if let Some(half) = AND_A_HALF.find(&text[end..])
            && unit_after(&text[end + half.end()..]).is_some()
        {
            value += 0.5;
            end += half.end();
        }
        let unit = unit_after(&text[end..]);
        // `one` and `a` are pronouns and articles unless they count a unit. `jeden Tag` is every day
        // in German, and `jeden` is one in Polish.
        let is_every = word == "jeden" && text[end..].trim_start().starts_with(char::is_uppercase);
        // Of the words for nothing, `null` is a value of code.
        let is_zero = value == 0.0 && word != "null";
        if !is_every && (value > 1.0 || is_zero || unit.is_some()) {
            let (unit, length) = unit.map_or((None, 0), |(unit, length)| (Some(unit), length));
            let range = range.start..end + length;
            found.push(Quantity { values: vec![value], unit, range, is_digits: false });
        }
        at += used;
    }
    cjk_words(text, taken, found);
}

/// Returns a month or weekday with its number.
fn month_or_weekday(lower: &str, written: &str) -> Option<(f64, Dimension)> {
    Some(match calendar_word(lower, written)? {
        CalendarWord::Month(month) => (f64::from(month), Dimension::Month),
        CalendarWord::Weekday(day) => (f64::from(day), Dimension::Weekday),
    })
}

/// Returns true if a month stands beside the words at this position: `dritte Juli`, `third of July`.
fn is_beside_month(text: &str, tokens: &[Token], at: usize, used: usize) -> bool {
    let is_month = |at: usize| {
        let (range, lower) = &tokens[at];
        matches!(calendar_word(lower, &text[range.clone()]), Some(CalendarWord::Month(_)))
    };
    // A period between them begins another sentence, and digits are the day already.
    let between = |one: usize, other: usize| text[tokens[one].0.end..tokens[other].0.start].trim();
    let last = at + used - 1;
    let follows = (last + 1..tokens.len().min(last + 3))
        .any(|next| matches!(between(last, next), "" | "of" | "de") && is_month(next));
    let precedes = (at.saturating_sub(2)..at)
        .any(|before| matches!(between(before, at), "" | "the") && is_month(before));
    follows || precedes
}

/// Matches a number in Japanese or Chinese characters.
static CJK_NUMBER: LazyLock<Regex> = LazyLock::new(|| regex("[〇一二三四五六七八九十百千]+"));

/// Words that count things in Japanese and Chinese.
const COUNTERS: [char; 14] =
    ['次', '個', '个', '件', '回', '人', '名', '本', '行', '台', '枚', '章', '条', 'つ'];

/// Adds the numbers in Japanese or Chinese characters that have a unit or count something. Without one, the characters
/// are parts of words: `一緒`. So are `十分` (enough) and `一度` (once).
fn cjk_words(text: &str, taken: &[Range<usize>], found: &mut Vec<Quantity>) {
    for number in CJK_NUMBER.find_iter(text) {
        let range = number.range();
        let is_free =
            taken.iter().all(|other| other.end <= range.start || range.end <= other.start);
        let Some(mut value) = cjk_number(number.as_str()).filter(|_| is_free) else { continue };
        let rest = &text[range.end..];
        let (unit, length) = match unit_after(rest) {
            Some((unit, length)) => (Some(unit), length),
            // `一人` may be alone, and `一つ` any.
            None if value > 1.0 && rest.starts_with(COUNTERS) => (None, 0),
            None => continue,
        };
        let mut end = range.end + length;
        if text[end..].starts_with('半') {
            value += 0.5;
            end += '半'.len_utf8();
        } else if matches!(&text[range.start..end], "十分" | "一度") {
            continue;
        }
        found.push(Quantity {
            values: vec![value],
            unit,
            range: range.start..end,
            is_digits: false,
        });
    }
}

/// Words for a part of a unit: `half an hour`, `a quarter of an hour`.
const FRACTIONS: [(&str, f64); 14] = [
    ("half", 0.5),
    ("halbe", 0.5),
    ("halben", 0.5),
    ("demi", 0.5),
    ("media", 0.5),
    ("pół", 0.5),
    ("quarter", 0.25),
    ("quart", 0.25),
    ("cuarto", 0.25),
    ("third", 1.0 / 3.0),
    ("tiers", 1.0 / 3.0),
    ("anderthalb", 1.5),
    ("eineinhalb", 1.5),
    ("półtora", 1.5),
];

/// Matches a half that follows a number and its unit.
static AND_A_HALF: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)^\s*(?:and a half|et demie?|y media|einhalb)\b"));

/// Matches minutes that follow hours: `1 h 30`.
static AND_MINUTES: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s?([0-5]\d)\b(?:\s?min)?"));

/// Adds `half an hour`.
fn fraction(value: f64, tokens: &[Token], found: &mut Vec<Quantity>) {
    let start = tokens[0].0.start;
    let last = tokens[1..].iter().take(3).find(|(_, word)| {
        // The article `an` is a French year.
        word != "an" && UNIT.contains_key(word.as_str())
    });
    if let Some((range, word)) = last
        && range.start - start < 20
    {
        let unit = UNIT.get(word.as_str()).copied();
        let range = start..range.end;
        found.push(Quantity { values: vec![value], unit, range, is_digits: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        let (a, b) = (quantities(a), quantities(b));
        assert!(!a.is_empty() && !b.is_empty(), "{a:?} {b:?}");
        a.iter().all(|a| b.iter().any(|b| a.equals(b)))
    }

    #[test]
    fn numbers_are_compared_by_value() {
        for (a, b) in [
            ("20 s", "twenty seconds"),
            ("300 MB", "0.3 GB"),
            ("90 s", "1.5 min"),
            ("4,200 rows", "4200"),
            ("25 Minuten", "fünfundzwanzig Minuten"),
            ("150", "one hundred and fifty"),
            ("72", "soixante-douze"),
            ("10 pm", "22:00"),
            ("22 Uhr", "10 p.m."),
            ("2026-11-03", "3 November 2026"),
            ("half an hour", "30 minutes"),
            ("5 %", "five percent"),
            ("料金は２５円", "25円"),
            ("5月", "May"),
            ("2 h", "120 minutes"),
            ("a quarter of an hour", "15 min"),
            ("1 h 30", "90 minutes"),
            ("an hour and a half", "90 minutes"),
            ("neun Uhr", "9 Uhr"),
            ("zwei Tage", "48 hours"),
            ("one and a half hours", "90 minutes"),
            ("quatre-vingts euros", "80 €"),
            ("quatre-vingt-dix-huit", "98"),
            ("九十秒", "90 秒"),
            ("一分半", "90 秒"),
            ("version 5.8.", "5.8"),
            ("5.0.0.", "5.0.0"),
            ("01/07/2031", "1 July 2031"),
            ("der dritte Juli", "am 3. Juli"),
            ("the third of July", "July 3"),
            ("ten in the evening", "22:00"),
            ("22 heures", "dix heures du soir"),
            ("Mon and Sun", "Sundays and Mondays"),
            ("a span of zero", "Span(0)"),
            ("sechshundertvierzig Euro", "640 Euro"),
            ("失败四次", "4 次"),
        ] {
            assert!(same(a, b), "{a} {b}: {:?} {:?}", quantities(a), quantities(b));
        }
        for (a, b) in [
            ("20 s", "20 min"),
            ("30 MB", "30 GB"),
            ("3 March", "3 May"),
            ("Monday", "Tuesday"),
            ("10 am", "10 pm"),
            ("12", "21"),
            ("2026", "2028"),
        ] {
            assert!(!same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn a_range_is_of_the_text_itself() {
        let text = "料金は２５円、または 30 円です";
        let found = quantities(text);
        let written: Vec<&str> = found.iter().map(|one| &text[one.range.clone()]).collect();
        assert_eq!(written, ["２５円", "30 円"]);
        let huge = "million million thousand million ".repeat(50);
        assert!(!quantities(&huge).is_empty());
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "one of them",
            "a file",
            "jeden Tag",
            "十分です",
            "null",
            "First, read it",
            "一緒に",
            "you may march",
            "sha256 and utf8",
            "1. first\n2. then",
        ] {
            assert_eq!(quantities(text), [], "{text}");
        }
    }
}
