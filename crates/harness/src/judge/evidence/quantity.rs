//! Numbers, dates and times of a text, compared by value: `twenty seconds` is `20 s`, `0.3 GB` is
//! `300 MB`, and `3 March` holds another month than `3 May`. Pure.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

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
        3600.0,
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

/// Months by number, in the languages that are known.
const MONTHS: [&str; 12] = [
    "january januar janvier enero stycznia styczeń",
    "february februar février febrero lutego luty",
    "march märz mars marzo marca marzec",
    "april avril abril kwietnia kwiecień",
    "mai mayo maja maj",
    "june juni juin junio czerwca czerwiec",
    "july juli juillet julio lipca lipiec",
    "august août agosto sierpnia sierpień",
    "september septembre septiembre września wrzesień",
    "october oktober octobre octubre października październik",
    "november novembre noviembre listopada listopad",
    "december dezember décembre diciembre grudnia grudzień",
];

/// Weekdays from Monday.
const WEEKDAYS: [&str; 7] = [
    "monday mondays montag montags lundi lundis lunes poniedziałek poniedziałki 月曜日 月曜",
    "tuesday tuesdays dienstag dienstags mardi mardis martes wtorek wtorki 火曜日 火曜",
    "wednesday wednesdays mittwoch mittwochs mercredi mercredis miércoles środa środę środy 水曜日 水曜",
    "thursday thursdays donnerstag donnerstags jeudi jeudis jueves czwartek czwartki 木曜日 木曜",
    "friday fridays freitag freitags vendredi vendredis viernes piątek piątki 金曜日 金曜",
    "saturday saturdays samstag samstags samedi samedis sábado sábados sobota sobotę soboty 土曜日 土曜",
    "sunday sundays sonntag sonntags dimanche dimanches domingo domingos niedziela niedzielę niedziele 日曜日 日曜",
];

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
    (20, "twenty zwanzig vingt veinte dwadzieścia dwudziestu"),
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

/// Characters of Japanese and Chinese numbers.
const CJK_DIGITS: &str = "〇一二三四五六七八九十";

static UNIT: LazyLock<HashMap<&str, (Dimension, f64)>> = LazyLock::new(|| {
    let each = UNITS.iter().flat_map(|(names, dimension, factor)| {
        names.split(' ').map(move |name| (name, (*dimension, *factor)))
    });
    each.collect()
});

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
    // German puts the ones first, in one word: `fünfundzwanzig`; `zweihundert`.
    let (ones, tens) = (of(&words, 1..10), of(&words, 20..100));
    for (one, value) in &ones {
        for (ten, base) in tens.iter().filter(|(_, base)| base % 10 == 0) {
            words.insert(format!("{one}und{ten}"), base + value);
        }
        words.insert(format!("{one}hundert"), 100 * value);
        words.insert(format!("{one}tausend"), 1000 * value);
    }
    words
});

static CALENDAR: LazyLock<HashMap<&str, (Dimension, u32)>> = LazyLock::new(|| {
    let months = MONTHS.iter().zip(1..).map(|(names, number)| (names, Dimension::Month, number));
    let days = WEEKDAYS.iter().zip(1..).map(|(names, number)| (names, Dimension::Weekday, number));
    months
        .chain(days)
        .flat_map(|(names, dimension, number)| {
            names.split(' ').map(move |name| (name, (dimension, number)))
        })
        .collect()
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

/// Matches the item number at the start of a line, which is not part of what is said.
static ITEM: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^[ \t>]*\d{1,2}[.)](?:[ \t]|$)"));
static ISO_DATE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b(\d{4})-(\d{2})-(\d{2})\b|\b(\d{1,2})\.(\d{1,2})\.(\d{4}\b)?"));
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b([01]?\d|2[0-4])(?:[:h.]([0-5]\d))?\s?(a\.?m\.?|p\.?m\.?|uhr)\b|\b([01]?\d|2[0-4])(?:(?::|h)([0-5]\d))\b|\b([01]?\d|2[0-4])時(?:([0-5]?\d)分)?",
    )
});
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

/// Converts full-width digits to ASCII.
fn ascii_digits(number: &str) -> String {
    let ascii = |c: char| match c {
        '０'..='９' => char::from_digit(u32::from(c) - u32::from('０'), 10).unwrap_or(c),
        _ => c,
    };
    number.chars().map(ascii).collect()
}

/// Returns every quantity of a text, in order.
pub(super) fn quantities(text: &str) -> Vec<Quantity> {
    let mut found = Vec::new();
    // The longest and surest readings come first, and take their place in the text: numbers of a
    // list are none, a date is no three numbers, a time no two.
    let mut taken: Vec<Range<usize>> = ITEM.find_iter(text).map(|item| item.range()).collect();
    let is_free = |taken: &[Range<usize>], range: &Range<usize>| {
        taken.iter().all(|other| other.end <= range.start || range.end <= other.start)
    };
    for date in ISO_DATE.captures_iter(text) {
        let range = date.get(0).map_or(0..0, |all| all.range());
        let part = |index: usize| {
            date.get(index).and_then(|part| ascii_digits(part.as_str()).parse().ok())
        };
        let parts: [Option<f64>; 3] = match part(1) {
            Some(year) => [Some(year), part(2), part(3)],
            None => [part(6), part(5), part(4)],
        };
        let units = [None, Some((Dimension::Month, 1.0)), None];
        for (value, unit) in parts.into_iter().zip(units) {
            let values = value.into_iter().collect();
            found.push(Quantity { values, unit, range: range.clone(), is_digits: true });
        }
        taken.push(range);
    }
    for clock in CLOCK.captures_iter(text) {
        let range = clock.get(0).map_or(0..0, |all| all.range());
        if !is_free(&taken, &range) {
            continue;
        }
        let part = |index: usize| {
            clock.get(index).and_then(|part| ascii_digits(part.as_str()).parse::<f64>().ok())
        };
        let hours = part(1).or(part(4)).or(part(6)).unwrap_or_default();
        let minutes = part(2).or(part(5)).or(part(7)).unwrap_or_default();
        let half = clock.get(3).map(|half| half.as_str().to_lowercase());
        let hours = match half.as_deref() {
            Some(half) if half.starts_with('p') && hours < 12.0 => hours + 12.0,
            Some(half) if half.starts_with('a') && hours >= 12.0 => hours - 12.0,
            _ => hours,
        };
        let mut values = vec![hours * 60.0 + minutes];
        // `7 Uhr abends` is 19:00; which half of the day is meant stands elsewhere.
        if half.as_deref() == Some("uhr") && hours < 12.0 {
            values.push((hours + 12.0) * 60.0 + minutes);
        }
        let unit = Some((Dimension::Clock, 1.0));
        found.push(Quantity { values, unit, range: range.clone(), is_digits: true });
        taken.push(range);
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
    words(text, &mut found);
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
    } else if (factor - 3600.0).abs() < 1.0
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

/// Adds the numbers that are spelled out, the months and the weekdays.
fn words(text: &str, found: &mut Vec<Quantity>) {
    let tokens: Vec<(Range<usize>, String)> =
        TOKEN.find_iter(text).map(|token| (token.range(), token.as_str().to_lowercase())).collect();
    let mut at = 0;
    while at < tokens.len() {
        let (range, word) = &tokens[at];
        if let Some((dimension, number)) = calendar(word, &text[range.clone()]) {
            found.push(Quantity {
                values: vec![f64::from(number)],
                unit: Some((dimension, 1.0)),
                range: range.clone(),
                is_digits: false,
            });
            at += 1;
            continue;
        }
        if let Some(value) = cjk_number(word) {
            let (unit, length) = unit_after(&text[range.end..])
                .map_or((None, 0), |(unit, length)| (Some(unit), length));
            let range = range.start..range.end + length;
            found.push(Quantity { values: vec![value], unit, range, is_digits: false });
            at += 1;
            continue;
        }
        let Some((value, used)) = number_words(&tokens[at..]) else {
            if let Some((_, value)) = FRACTIONS.iter().find(|(name, _)| name == word) {
                fraction(*value, &tokens[at..], found);
            }
            at += 1;
            continue;
        };
        let end = tokens[at + used - 1].0.end;
        let unit = unit_after(&text[end..]);
        if text[end..].to_lowercase().trim_start().starts_with("uhr") {
            found.push(Quantity {
                values: if value < 12.0 {
                    vec![value * 60.0, (value + 12.0) * 60.0]
                } else {
                    vec![value * 60.0]
                },
                unit: Some((Dimension::Clock, 1.0)),
                range: range.start..end,
                is_digits: false,
            });
            at += used;
            continue;
        }
        // `one` and `a` are pronouns and articles unless they count a unit.
        if value > 1.0 || unit.is_some() {
            let (unit, length) = unit.map_or((None, 0), |(unit, length)| (Some(unit), length));
            let range = range.start..end + length;
            found.push(Quantity { values: vec![value], unit, range, is_digits: false });
        }
        at += used;
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
fn fraction(value: f64, tokens: &[(Range<usize>, String)], found: &mut Vec<Quantity>) {
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

/// Returns the month or weekday that a word names. `may` and `march` need a capital.
fn calendar(lower: &str, written: &str) -> Option<(Dimension, u32)> {
    if lower == "may" {
        return written.starts_with('M').then_some((Dimension::Month, 5));
    }
    if matches!(lower, "march" | "mars" | "august") && !written.starts_with(char::is_uppercase) {
        return None;
    }
    CALENDAR.get(lower).copied()
}

/// Returns the value of a number in Japanese or Chinese characters.
fn cjk_number(word: &str) -> Option<f64> {
    let digit = |c: char| CJK_DIGITS.chars().position(|digit| digit == c);
    let digits: Vec<usize> = word.chars().map(digit).collect::<Option<_>>()?;
    let value = match digits.as_slice() {
        [one] => *one,
        [10, one] => 10 + one,
        [ten, 10] => 10 * ten,
        [ten, 10, one] => 10 * ten + one,
        _ => return None,
    };
    Some(f64::from(u32::try_from(value).ok()?))
}

/// Returns the value of the number words at the start, with the number of words.
fn number_words(tokens: &[(Range<usize>, String)]) -> Option<(f64, usize)> {
    let (mut total, mut current, mut used) = (0_u32, None::<u32>, 0);
    let mut at = 0;
    while let Some((range, word)) = tokens.get(at) {
        let joins = matches!(word.as_str(), "and" | "et" | "y" | "und");
        if joins && current.is_some_and(|current| current >= 20) && at == used {
            at += 1;
            continue;
        }
        let is_adjacent = at == 0 || range.start <= tokens[at - 1].0.end + 1;
        let Some(&value) = WORD.get(word).filter(|_| is_adjacent) else { break };
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
            // `soixante-dix` and `quatre-vingts`.
            (Some(60), value @ 10..20) => 60 + value,
            (Some(4), 20) => 80,
            _ => break,
        });
        at += 1;
        used = at;
    }
    Some((f64::from(total.saturating_add(current?)), used)).filter(|(_, used)| *used > 0)
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
        for text in
            ["one of them", "a file", "you may march", "sha256 and utf8", "1. first\n2. then"]
        {
            assert_eq!(quantities(text), [], "{text}");
        }
    }
}
