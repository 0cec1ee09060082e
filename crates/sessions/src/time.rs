//! Parses times in the formats that agents use. Never panics and never guesses a time zone.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde_json::Number;

use super::any_json::{AnyJson, deserialize_any_json};

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
}
