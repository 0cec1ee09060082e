//! Moments in the many ways in which agents write them. Never panics, never guesses a zone.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Number;

use super::any_json::{AnyJson, deserialize_any_json};

/// A moment that may be absent or unreadable. From RFC 3339 text, ISO text without zone (taken
/// for UTC), seconds or milliseconds since 1970 as number or text.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Moment(pub(super) Option<Timestamp>);

impl Moment {
    /// Reads a text.
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim();
        let zoned = || text.parse::<Timestamp>().ok();
        let without_zone = || {
            let time = text.parse::<DateTime>().ok()?;
            Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
        };
        let number = || text.parse::<f64>().ok().and_then(|number| Self::epoch(number).0);
        Self(zoned().or_else(without_zone).or_else(number))
    }

    /// Seconds since 1970, or milliseconds where the number is too large for seconds.
    pub(super) fn epoch(number: f64) -> Self {
        /// In seconds the year 5138, in milliseconds 1973.
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
    use super::*;

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
