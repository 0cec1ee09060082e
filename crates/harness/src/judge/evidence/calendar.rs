//! Dates and times of day in a text, in digits or spelled out: `5.10.2026`, `01/07/2031`, `3 pm`,
//! `half past six`, `zehn Uhr abends`, `noon`. Pure.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::number_words::{ascii_digits, number_word};

/// A word of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CalendarWord {
    /// A month, from 1.
    Month(u32),
    /// A weekday, from 1 for Monday.
    Weekday(u32),
}

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

/// Short names, which need their capital: `sat` and `mar` are other words. By number, from 1.
const SHORT_MONTHS: [&str; 12] = [
    "jan", "feb", "mar mär", "apr", "", "jun", "jul", "aug", "sep sept", "oct okt", "nov",
    "dec dez",
];
const SHORT_WEEKDAYS: [&str; 7] = ["mon", "tue tues", "wed", "thu thur thurs", "fri", "sat", "sun"];

static CALENDAR: LazyLock<HashMap<&str, CalendarWord>> =
    LazyLock::new(|| words(&MONTHS, &WEEKDAYS));

static SHORT_CALENDAR: LazyLock<HashMap<&str, CalendarWord>> =
    LazyLock::new(|| words(&SHORT_MONTHS, &SHORT_WEEKDAYS));

fn words<'a>(months: &[&'a str], weekdays: &[&'a str]) -> HashMap<&'a str, CalendarWord> {
    let months = months.iter().zip(1..).map(|(names, at)| (names, CalendarWord::Month(at)));
    let weekdays = weekdays.iter().zip(1..).map(|(names, at)| (names, CalendarWord::Weekday(at)));
    let each = months.chain(weekdays);
    each.flat_map(|(names, word)| names.split_whitespace().map(move |name| (name, word))).collect()
}

/// Returns the month or weekday that a word names, from the word in lower case and as written.
pub(super) fn calendar_word(lower: &str, written: &str) -> Option<CalendarWord> {
    let is_capital = written.starts_with(char::is_uppercase);
    // Verbs and other nouns in lower case.
    if matches!(lower, "may" | "march" | "mars" | "august") && !is_capital {
        return None;
    }
    if lower == "may" {
        return Some(CalendarWord::Month(5));
    }
    let short = || SHORT_CALENDAR.get(lower).filter(|_| is_capital && !is_shouted(written));
    CALENDAR.get(lower).or_else(short).copied()
}

/// Returns true for capitals only: `SAT` is a test, `SEP` a key.
fn is_shouted(written: &str) -> bool {
    !written.contains(char::is_lowercase)
}

/// A date of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Date {
    /// Position in the text, in bytes.
    pub(super) range: Range<usize>,
    /// The possible years, months and days. `4/7/2031` is of April or of July.
    pub(super) parts: [Vec<f64>; 3],
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

static DATE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b(\d{4})([-/])(\d{1,2})[-/](\d{1,2})\b|\b(\d{1,2})([./])\s?(\d{1,2})[./]\s?(\d{4})\b|\b(\d{1,2})\.(\d{1,2})\.",
    )
});

/// Matches what stands before a date without a year: a German or Polish preposition, a weekday, or
/// the first date of a range. Without it, `5.8.` is a number at the end of a sentence.
static BEFORE_DAY: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)(?:\b(?:am|vom|bis|zum|ab|seit|den|dem|der|nach|vor|dnia|od|mo|di|mi|do|fr|sa|so|\p{L}+tag)[.,]?\s|\d\.\s?[-–]\s?)$",
    )
});

/// Returns the dates that are written in digits.
pub(super) fn dates(text: &str) -> Vec<Date> {
    let mut found = Vec::new();
    for date in DATE.captures_iter(text) {
        let Some(all) = date.get(0) else { continue };
        let part = |index: usize| date.get(index).and_then(|part| part.as_str().parse().ok());
        let is_month = |value: u32| (1..=12).contains(&value);
        let is_day = |value: u32| (1..=31).contains(&value);
        let parts: Option<[Vec<u32>; 3]> = match (part(1), part(8)) {
            (Some(year), _) => {
                part(3).zip(part(4)).map(|(month, day)| [vec![year], vec![month], vec![day]])
            }
            (_, Some(year)) => part(5).zip(part(7)).map(|(first, second)| {
                // With strokes, Americans write the month first.
                let is_open = date.get(6).is_some_and(|mark| mark.as_str() == "/");
                let is_swapped = is_open && is_month(first) && is_day(second);
                let (mut months, mut days) = (vec![second], vec![first]);
                if is_swapped && first != second {
                    months.push(first);
                    days.push(second);
                }
                months.retain(|month| is_month(*month));
                days.retain(|day| is_day(*day));
                [vec![year], months, days]
            }),
            _ => {
                let next = text[all.end()..].chars().next();
                let is_version = next.is_some_and(|c| c.is_ascii_digit());
                let has_cue = BEFORE_DAY.is_match(last_bytes(&text[..all.start()], 24));
                let parts = part(9).zip(part(10)).filter(|_| has_cue && !is_version);
                parts.map(|(day, month)| [vec![], vec![month], vec![day]])
            }
        };
        let Some(parts) = parts else { continue };
        let [_, months, days] = &parts;
        let is_real =
            months.iter().any(|month| is_month(*month)) && days.iter().any(|day| is_day(*day));
        if is_real {
            let parts = parts.map(|values| values.into_iter().map(f64::from).collect());
            found.push(Date { range: all.range(), parts });
        }
    }
    found
}

/// Returns the last bytes of a text, from the first whole character on.
fn last_bytes(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// A time of day in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TimeOfDay {
    /// Position in the text, in bytes.
    pub(super) range: Range<usize>,
    /// The possible minutes since midnight: `half past six` is 6:30 or 18:30.
    pub(super) minutes: Vec<f64>,
    /// True if it is written in digits.
    pub(super) is_digits: bool,
}

static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b([01]?\d|2[0-4])(?:[:h.]([0-5]\d))?\s?(a\.?m\.?|p\.?m\.?|uhr)\b|\b([01]?\d|2[0-4])(?:(?::|h)([0-5]\d))\b|(?-u:\b)([01]?\d|2[0-4])時(?:([0-5]?\d)分|(半))?",
    )
});

/// Matches a time that is spelled out: `half past six`, `twenty to four`, `halb elf`.
static SPOKEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:(half|quarter|[a-z]+(?:-[a-z]+)?|\d{1,2})(?: minutes?)? (past|to) |(halb|viertel nach|viertel vor) )(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|\d{1,2})\b",
    )
});

/// Matches what makes the number before it an hour: a word for hours, a part of the day, or both.
static HOUR_WORD: LazyLock<Regex> = LazyLock::new(|| {
    regex(&format!(r"(?i)\s(?:uhr|o['’]clock)\b|(?:\s(?:heures?|horas?)\b)?{PART}"))
});

/// The parts of the day, as a pattern with the groups `am`, `pm` and `night`.
const PART: &str = r",?\s(?:(?P<am>in the morning|du matin|de la mañana|morgens|vormittags|rano)|(?P<pm>in the (?:afternoon|evening)|de l['’]après-midi|du soir|de la tarde|nachmittags|abends|po południu|wieczorem)|(?P<night>at night|de la noche|nachts))\b";

static DAY_PART: LazyLock<Regex> = LazyLock::new(|| regex(&format!("(?i)^{PART}")));

/// Matches the middle of the day and of the night.
static NAMED_HOUR: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:(noon|midday|midi|mediodía|12 uhr mittags|południe)|(midnight|minuit|mitternacht|medianoche|północ))\b",
    )
});

/// Returns the times of day of a text, in digits or spelled out. Where two overlap, a spoken one counts.
pub(super) fn times_of_day(text: &str) -> Vec<TimeOfDay> {
    let mut found: Vec<TimeOfDay> = Vec::new();
    let mut add = |range: Range<usize>, minutes: Vec<f64>, is_digits: bool| {
        let is_free =
            |other: &TimeOfDay| other.range.end <= range.start || range.end <= other.range.start;
        if found.iter().all(is_free) {
            found.push(narrowed(text, TimeOfDay { range, minutes, is_digits }));
        }
    };
    for spoken in SPOKEN.captures_iter(text) {
        let Some(all) = spoken.get(0) else { continue };
        if let Some(minutes) = spoken_minutes(text, &spoken, all.range()) {
            add(all.range(), minutes, false);
        }
    }
    for clock in CLOCK.captures_iter(text) {
        let Some(all) = clock.get(0) else { continue };
        let part = |index: usize| {
            clock.get(index).and_then(|part| ascii_digits(part.as_str()).parse::<u32>().ok())
        };
        let hours = part(1).or(part(4)).or(part(6)).unwrap_or_default();
        let half = clock.get(8).map(|_| 30);
        let minutes = part(2).or(part(5)).or(part(7)).or(half).unwrap_or_default();
        let mark = clock.get(3).map(|mark| mark.as_str().to_lowercase()).unwrap_or_default();
        let before = last_bytes(&text[..all.start()], 9);
        let hours = if (mark.starts_with('p') || before.ends_with("午後")) && hours < 12 {
            hours + 12
        } else if mark.starts_with('a') && hours >= 12 {
            hours - 12
        } else {
            hours
        };
        // `7 Uhr` may be 19:00; which half of the day is meant stands elsewhere.
        let is_open = mark == "uhr";
        add(all.range(), either_half(hours, minutes, is_open), true);
    }
    for word in HOUR_WORD.captures_iter(text) {
        let Some(all) = word.get(0) else { continue };
        let Some((start, hour)) = hour_before(text, all.start()) else { continue };
        // The part of the day is read again, as it is after other times.
        let part = ["am", "pm", "night"].iter().find_map(|part| word.name(part));
        let end = part.map_or(all.end(), |part| {
            text[..part.start()].trim_end_matches([',', ' ', '\n', '\u{a0}']).len()
        });
        let is_digits = text[start..].starts_with(|c: char| c.is_ascii_digit());
        add(start..end, either_half(hour, 0, true), is_digits);
    }
    for named in NAMED_HOUR.captures_iter(text) {
        let Some(all) = named.get(0) else { continue };
        let minutes = if named.get(1).is_some() { vec![720.0] } else { vec![0.0, 1440.0] };
        add(all.range(), minutes, false);
    }
    found
}

/// Returns the minutes of `half past six`, `twenty to four`, `halb elf`.
fn spoken_minutes(
    text: &str,
    spoken: &regex::Captures<'_>,
    range: Range<usize>,
) -> Option<Vec<f64>> {
    let group = |index: usize| spoken.get(index).map(|part| part.as_str().to_lowercase());
    let hour = number_word(&group(4)?).filter(|hour| (1..=12).contains(hour))?;
    let (minutes, is_sure) = match (group(1).as_deref(), group(2).as_deref(), group(3).as_deref()) {
        (_, _, Some("halb")) | (Some("half"), Some("to"), _) => (-30, group(3).is_some()),
        (_, _, Some("viertel nach")) | (Some("quarter"), Some("past"), _) => (15, true),
        (_, _, Some(_)) | (Some("quarter"), Some(_), _) => (-15, true),
        (Some("half"), ..) => (30, true),
        (Some(number), past, _) => {
            let values: Option<Vec<u32>> = number.split('-').map(number_word).collect();
            let minutes = values?.into_iter().sum::<u32>();
            let minutes =
                i32::try_from(minutes).ok().filter(|minutes| (1..60).contains(minutes))?;
            if past == Some("past") { (minutes, true) } else { (-minutes, false) }
        }
        _ => return None,
    };
    // `from ten to four` is a range of numbers.
    let is_time = is_sure
        || DAY_PART.is_match(&text[range.end..])
        || last_bytes(&text[..range.start], 4).to_lowercase().ends_with("at ");
    if !is_time {
        return None;
    }
    let hour = i32::try_from(hour).ok()?;
    let at = |hour: i32| f64::from((hour * 60 + minutes).rem_euclid(1440));
    Some(vec![at(hour), at(hour + 12)])
}

/// Returns the minutes of an hour, in both halves of the day if that is open.
fn either_half(hours: u32, minutes: u32, is_open: bool) -> Vec<f64> {
    let first = f64::from(hours * 60 + minutes);
    if is_open && hours <= 12 { vec![first, first + 720.0] } else { vec![first] }
}

/// Returns the start of the hour that ends at this position, and the hour. It may be spelled out.
fn hour_before(text: &str, end: usize) -> Option<(usize, u32)> {
    let word = text[..end].rsplit(|c: char| !c.is_alphanumeric()).next()?;
    let hour = number_word(&word.to_lowercase()).filter(|hour| (1..=24).contains(hour))?;
    // `3.10 Uhr` is matched as digits.
    let start = end - word.len();
    let is_fraction = text[..start].ends_with(['.', ':', ',']);
    (!is_fraction).then_some((start, hour))
}

/// Returns a time with the half of the day that is named behind it.
fn narrowed(text: &str, time: TimeOfDay) -> TimeOfDay {
    let Some(part) = DAY_PART.captures(&text[time.range.end..]) else { return time };
    let length = part.get(0).map_or(0, |all| all.len());
    let in_half = |minutes: f64| {
        let early = minutes % 720.0;
        let is_late = part.name("pm").is_some() || part.name("night").is_some() && early >= 360.0;
        // A time after noon is of the second half already.
        if is_late || (780.0..1440.0).contains(&minutes) && part.name("am").is_none() {
            early + 720.0
        } else {
            early
        }
    };
    let mut minutes: Vec<f64> = time.minutes.iter().map(|minutes| in_half(*minutes)).collect();
    minutes.dedup();
    TimeOfDay { range: time.range.start..time.range.end + length, minutes, ..time }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_at_the_end_of_a_sentence_is_no_date() {
        for text in
            ["Since 5.8. Update", "as of 5.0.0.", "version 3.2.", "2.13.", "10.5.2.1", "1/2"]
        {
            assert_eq!(dates(text), [], "{text}");
        }
        let parts = |text: &str| dates(text).first().map(|date| date.parts.clone());
        for (text, expected) in [
            ("am 5.8. um acht", [vec![], vec![8.0], vec![5.0]]),
            ("18.9.2023", [vec![2023.0], vec![9.0], vec![18.0]]),
            ("2026-11-03", [vec![2026.0], vec![11.0], vec![3.0]]),
            ("15/01/2032", [vec![2032.0], vec![1.0], vec![15.0]]),
            ("01/07/2031", [vec![2031.0], vec![7.0, 1.0], vec![1.0, 7.0]]),
        ] {
            assert_eq!(parts(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn times_of_day_are_read_in_words() {
        let minutes = |text: &str| times_of_day(text).first().map(|time| time.minutes.clone());
        for (text, expected) in [
            ("at ten in the evening UTC", vec![1320.0]),
            ("twenty to four in the morning", vec![220.0]),
            ("half past six", vec![390.0, 1110.0]),
            ("a quarter to nine at night", vec![1245.0]),
            ("halb elf abends", vec![1350.0]),
            ("neun Uhr", vec![540.0, 1260.0]),
            ("7 Uhr morgens", vec![420.0]),
            ("dix heures du soir", vec![1320.0]),
            ("two in the afternoon", vec![840.0]),
            ("3 pm", vec![900.0]),
            ("12 am", vec![0.0]),
            ("午後3時半", vec![930.0]),
            ("noon", vec![720.0]),
            ("22:05", vec![1325.0]),
            ("three o'clock", vec![180.0, 900.0]),
        ] {
            assert_eq!(minutes(text), Some(expected), "{text}");
        }
        for text in
            ["from ten to four", "dix heures", "half the answer", "listen to one", "in the evening"]
        {
            assert_eq!(minutes(text), None, "{text}");
        }
    }

    #[test]
    fn short_names_need_their_capital() {
        assert_eq!(calendar_word("sun", "Sun"), Some(CalendarWord::Weekday(7)));
        assert_eq!(calendar_word("sept", "Sept"), Some(CalendarWord::Month(9)));
        for (lower, written) in [("sat", "sat"), ("sat", "SAT"), ("may", "may"), ("mar", "mar")] {
            assert_eq!(calendar_word(lower, written), None, "{written}");
        }
    }
}
