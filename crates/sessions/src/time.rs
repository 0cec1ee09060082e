//! Parses times in the formats that agents use, and dates sessions. Never panics and never guesses
//! a time zone.
//!
//! The date of a session is that of its own events, else of its file's name, else of the folder
//! that the agent named after it. A session without any of these is undated, and so is one whose
//! times cannot be right. The date of the file itself is never used: a copy has another.

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use regex::Regex;
use serde_json::Number;

use crate::SessionHead;
use crate::wire::{AnyJson, deserialize_any_json};

/// A time that may be missing or invalid. Accepts RFC 3339 text, ISO text without a zone (read as
/// UTC), and seconds or milliseconds since 1970 as a number or text.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Moment(pub(super) Option<Timestamp>);

impl Moment {
    /// Parses a text.
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim();
        let zoned = || parse_utc_millis(text).or_else(|| text.parse().ok());
        // Tried second: a text with an offset also parses as a civil time, but without the offset.
        let without_zone = || {
            let time = text.parse::<DateTime>().ok()?;
            Offset::UTC.to_timestamp(time).ok()
        };
        let number = || text.parse::<f64>().ok().and_then(|number| Self::epoch(number).0);
        Self(zoned().or_else(without_zone).or_else(number))
    }

    /// Interprets a number as seconds since 1970, or as milliseconds if it is too large for
    /// seconds.
    pub(super) fn epoch(number: f64) -> Self {
        /// The year 5138 in seconds, or 1973 in milliseconds.
        const MAX_SECONDS: f64 = 1e11;
        // 0 is what programs write for a time that was never set, not the year 1970.
        if !number.is_finite() || number <= 0.0 {
            return Self(None);
        }
        let milliseconds = if number < MAX_SECONDS { number * 1000.0 } else { number };
        #[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate")]
        let milliseconds = milliseconds as i64;
        Self(Timestamp::from_millisecond(milliseconds).ok())
    }
}

/// Parses the output of JavaScript's `toISOString`, such as `2026-04-29T20:05:00.123Z`. Nearly
/// every record has one, and the library's general parser would add 1 % to the time of reading and
/// grading.
fn parse_utc_millis(text: &str) -> Option<Timestamp> {
    let bytes: &[u8; 24] = text.as_bytes().try_into().ok()?;
    let is_written_so = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.')]
        .into_iter()
        .all(|(at, byte)| bytes[at] == byte);
    if !is_written_so || bytes[23] != b'Z' {
        return None;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0_i32, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + i32::from(byte - b'0'))
        })
    };
    let two = |at: usize| i8::try_from(number(at, at + 2)?).ok();
    let year = i16::try_from(number(0, 4)?).ok()?;
    let nanosecond = number(20, 23)? * 1_000_000;
    let time = DateTime::new(year, two(5)?, two(8)?, two(11)?, two(14)?, two(17)?, nanosecond);
    Offset::UTC.to_timestamp(time.ok()?).ok()
}

deserialize_any_json!(Moment);

impl AnyJson<'_> for Moment {
    fn string(&mut self, text: Cow<'_, str>) {
        *self = Moment::parse(&text);
    }

    fn number(&mut self, number: &Number) {
        *self = number.as_f64().map(Moment::epoch).unwrap_or_default();
    }
}

/// Start of the year 2000. An earlier time is a counter or a clock that was never set.
const EARLIEST: Timestamp = Timestamp::constant(946_684_800, 0);

/// Time by which the clock of the agent's machine may be ahead.
const AHEAD: SignedDuration = SignedDuration::from_hours(24);

/// Sets the date of a session that was read from `path`, as of `now`.
pub(super) fn set_date(head: &mut SessionHead, path: &Path, now: Timestamp) {
    let is_possible = |time: &Timestamp| is_possible(*time, now);
    head.end = head.end.filter(is_possible);
    head.start = head.start.filter(is_possible);
    if head.start.is_none() {
        head.start = date_in_path(path).filter(is_possible);
        // The end of a session without a beginning says nothing of its length.
        head.end = None;
    }
}

/// Returns true if a session can have this time. A clock may be a day ahead.
fn is_possible(time: Timestamp, now: Timestamp) -> bool {
    let latest = now.checked_add(AHEAD).unwrap_or(Timestamp::MAX);
    (EARLIEST..=latest).contains(&time)
}

/// Returns the time in the name of a file, or at the beginning of its folder's name, or in folders
/// such as `2026/04/29`.
fn date_in_path(path: &Path) -> Option<Timestamp> {
    let mut names = path.components().rev().map(|part| part.as_os_str().to_string_lossy());
    let file = names.next()?;
    let folders: Vec<_> = names.take(3).collect();
    date_in_name(&file).map(|(_, time)| time).or_else(|| {
        // A folder's name may end in digits of another meaning; agents put the date at the
        // beginning.
        let at_start =
            |name: &str| date_in_name(name).filter(|(at, _)| *at == 0).map(|(_, time)| time);
        let day = match folders.as_slice() {
            [day, month, year] => at_start(&format!("{year}-{month}-{day}")),
            _ => None,
        };
        folders.first().and_then(|folder| at_start(folder)).or(day)
    })
}

/// Returns the first time in a name and where it begins.
///
/// Known are dates with and without a time of day, seconds and milliseconds since 1970, and UUIDs
/// of version 7. A time without a zone is read as UTC.
fn date_in_name(name: &str) -> Option<(usize, Timestamp)> {
    static UUID: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("(?i)([0-9a-f]{8})-([0-9a-f]{4})-([0-9])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
            .expect("the pattern is valid")
    });
    static DATE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            "(?:^|[^0-9])(?<date>(?<y>20[0-9]{2})(?<s>[-_.]?)(?<m>[01][0-9])[-_.]?(?<d>[0-3][0-9])\
             (?:[T_ -]?(?<h>[0-2][0-9])[-:_.]?(?<min>[0-5][0-9])(?:[-:_.]?(?<sec>[0-5][0-9]))?)?)\
             (?:[^0-9]|$)",
        )
        .expect("the pattern is valid")
    });
    static EPOCH: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("(?:^|[^0-9a-zA-Z])(?<time>1[0-9]{12}|1[0-9]{9})(?:[^0-9a-zA-Z]|$)")
            .expect("the pattern is valid")
    });
    if let Some(found) = UUID.captures(name)
        && &found[3] == "7"
    {
        let millisecond = i64::from_str_radix(&format!("{}{}", &found[1], &found[2]), 16).ok()?;
        return Some((found.get(0)?.start(), Timestamp::from_millisecond(millisecond).ok()?));
    }
    // The digits of another UUID are no date.
    let name = UUID.replace_all(name, |found: &regex::Captures<'_>| "~".repeat(found[0].len()));
    if let Some(found) = DATE.captures(&name) {
        let number = |part: &str| found.name(part).and_then(|one| one.as_str().parse::<i8>().ok());
        let day = Date::new(found["y"].parse().ok()?, number("m")?, number("d")?).ok()?;
        let of_day = |part| number(part).unwrap_or_default();
        // The pattern allows 24 to 29, and a wrong hour must not lose the day.
        let hour = of_day("h").min(23);
        let time = day.at(hour, of_day("min"), of_day("sec"), 0);
        return Some((found.name("date")?.start(), Offset::UTC.to_timestamp(time).ok()?));
    }
    let found = EPOCH.captures(&name)?.name("time")?;
    let number: i64 = found.as_str().parse().ok()?;
    let millisecond = if found.len() == 13 { number } else { number * 1000 };
    Some((found.start(), Timestamp::from_millisecond(millisecond).ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The fast path returns what the library's parser returns, or nothing.
        #[test]
        fn the_fast_path_agrees_with_the_library(
            text in "[0-9]{3}[0-9x]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9].[0-9]{3}[Z+]",
        ) {
            if let Some(quick) = parse_utc_millis(&text) {
                prop_assert_eq!(Some(quick), text.parse().ok());
            }
        }

        #[test]
        fn javascript_timestamps_take_the_fast_path(millisecond in 0..253_402_300_800_000_i64) {
            let moment = Timestamp::from_millisecond(millisecond).unwrap();
            prop_assert_eq!(parse_utc_millis(&format!("{moment:.3}")), Some(moment));
        }
    }

    #[test]
    fn every_way_of_writing_a_time() {
        for json in [
            r#""2026-04-29T20:05:00Z""#,
            r#""2026-04-29T22:05:00.000+02:00""#,
            r#""2026-04-29T20:05:00""#,
            r#""2026-04-29 20:05:00.000""#,
            r#""1777493100""#,
            "1777493100",
            "1777493100.0",
            "1777493100000",
        ] {
            let time = serde_json::from_str::<Moment>(json).unwrap().0;
            assert_eq!(time.unwrap().to_string(), "2026-04-29T20:05:00Z", "{json}");
        }
        for json in ["null", "[1]", "{\"a\": 2}", "true", "-3", "1e300", "\"soon\""] {
            assert_eq!(serde_json::from_str::<Moment>(json).unwrap().0, None, "{json}");
        }
    }

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    fn dated(path: &str, start: Option<&str>, end: Option<&str>) -> (Option<String>, bool) {
        let mut head =
            SessionHead { start: start.map(at), end: end.map(at), ..SessionHead::default() };
        set_date(&mut head, Path::new(path), at("2026-11-27T12:00:00Z"));
        (head.start.map(|time| time.to_string()), head.end.is_some())
    }

    #[test]
    fn names_that_hold_a_date() {
        for (path, date) in [
            ("/s/rollout-2026-04-29T20-05-01-x.jsonl", "2026-04-29T20:05:01Z"),
            ("/s/20260429_200501_ab12cd.jsonl", "2026-04-29T20:05:01Z"),
            ("/s/session-2026-04-29T20-05-ab12.json", "2026-04-29T20:05:00Z"),
            ("/s/2026-04-29_20-05-01Z-title.md", "2026-04-29T20:05:01Z"),
            ("/s/20260429-run.json", "2026-04-29T00:00:00Z"),
            ("/s/chat.1777493100000.json", "2026-04-29T20:05:00Z"),
            ("/tasks/1777493100000/api_conversation_history.json", "2026-04-29T20:05:00Z"),
            ("/s/1777493100.json", "2026-04-29T20:05:00Z"),
            ("/s/019ddad8-45e0-7000-8000-000000000000.jsonl", "2026-04-29T20:05:00Z"),
            ("/sessions/2026/04/29/a.jsonl", "2026-04-29T00:00:00Z"),
            ("/runs/20260429_agent_model/i-1.traj", "2026-04-29T00:00:00Z"),
        ] {
            assert_eq!(dated(path, None, None).0.as_deref(), Some(date), "{path}");
        }
        for path in [
            "/s/a.jsonl",
            "/s/v2026.json",
            "/s/20261345.json",
            "/backup-2026-11-20/chat.json",
            "/s/20260429-1234-4567-8901-202604292005.json",
            "/s/2031-01-01.json",
            "/s/00000000-0000-7000-8000-000000000000.jsonl",
            "/s/12345678901234567890.json",
            "x",
            "/",
        ] {
            assert_eq!(dated(path, None, None).0, None, "{path}");
        }
    }

    #[test]
    fn events_come_first_and_impossible_ones_do_not_count() {
        let name = "/s/20260429_200501.jsonl";
        let (start, end) = (Some("2026-05-01T00:00:00Z"), Some("2026-05-01T01:00:00Z"));
        assert_eq!(dated(name, start, end), (start.map(str::to_owned), true));
        // A clock in 2099, and one that was never set.
        for wrong in ["2099-01-01T00:00:00Z", "1970-01-02T00:00:00Z"] {
            assert_eq!(dated("/s/a.jsonl", Some(wrong), Some(wrong)), (None, false));
            let by_name = dated(name, Some(wrong), end);
            assert_eq!(by_name, (Some("2026-04-29T20:05:01Z".to_owned()), false));
        }
        assert_eq!(
            dated(name, start, Some("2099-01-01T00:00:00Z")),
            (start.map(str::to_owned), false)
        );
        let ahead = Some("2026-11-28T11:00:00Z");
        assert_eq!(dated("/s/a.jsonl", ahead, ahead), (ahead.map(str::to_owned), true));
    }
}
