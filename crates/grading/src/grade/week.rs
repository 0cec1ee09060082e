//! ISO weeks, Monday to Sunday, in UTC.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, ISOWeekDate, Weekday};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// An ISO 8601 week, written `2026-W47`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Week {
    monday: Date,
}

impl Week {
    /// Returns the week that contains the time, in UTC.
    pub fn containing(at: Timestamp) -> Self {
        let date = at.to_zoned(TimeZone::UTC).date();
        let since_monday = i64::from(date.weekday().to_monday_zero_offset());
        Self { monday: days_earlier(date, since_monday) }
    }

    /// Returns the Monday of the week.
    pub fn first_day(self) -> Date {
        self.monday
    }

    /// Returns the Sunday of the week.
    pub fn last_day(self) -> Date {
        self.monday.saturating_add(jiff::Span::new().days(6))
    }

    /// Returns the start of the week and the start of the next one.
    pub fn bounds(self) -> (Timestamp, Timestamp) {
        let midnight = |date: Date| {
            date.to_zoned(TimeZone::UTC).map_or(Timestamp::MAX, |zoned| zoned.timestamp())
        };
        (midnight(self.monday), midnight(self.monday.saturating_add(jiff::Span::new().days(7))))
    }

    /// Returns the week that is `weeks` weeks earlier.
    #[must_use]
    pub fn weeks_earlier(self, weeks: u8) -> Self {
        Self { monday: days_earlier(self.monday, 7 * i64::from(weeks)) }
    }
}

/// Subtracts days. The first day of the calendar is also a Monday, so saturation preserves the
/// invariant.
fn days_earlier(date: Date, days: i64) -> Date {
    date.saturating_sub(jiff::Span::new().days(days))
}

impl fmt::Display for Week {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let week = self.monday.iso_week_date();
        formatter.pad(&format!("{:04}-W{:02}", week.year(), week.week()))
    }
}

/// Error for a text that is not an ISO week.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no week, expected an ISO week such as 2026-W47")]
pub struct WeekError(String);

impl FromStr for Week {
    type Err = WeekError;

    fn from_str(text: &str) -> Result<Self, WeekError> {
        let digits = |text: &str, count: usize| {
            // `parse` by itself would also take a sign.
            let all = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
            all.then(|| text.parse::<i16>().ok()).flatten()
        };
        let parse = || {
            let (year, week) = text.split_once("-W")?;
            let (year, week) = (digits(year, 4)?, i8::try_from(digits(week, 2)?).ok()?);
            ISOWeekDate::new(year, week, Weekday::Monday).ok()
        };
        let refuse = || WeekError(selftest_text::one_line(text, 40));
        parse().map(|monday| Self { monday: monday.date() }).ok_or_else(refuse)
    }
}

impl TryFrom<String> for Week {
    type Error = WeekError;

    fn try_from(text: String) -> Result<Self, WeekError> {
        text.parse()
    }
}

impl From<Week> for String {
    fn from(week: Week) -> String {
        week.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn week_of(at: &str) -> String {
        Week::containing(at.parse().unwrap()).to_string()
    }

    #[test]
    fn weeks_begin_on_monday_and_years_on_a_thursday() {
        assert_eq!(week_of("2026-11-22T23:59:59Z"), "2026-W47");
        assert_eq!(week_of("2026-11-23T00:00:00Z"), "2026-W48");
        assert_eq!(week_of("2027-01-03T12:00:00Z"), "2026-W53");
        assert_eq!(week_of("2024-12-30T00:00:00Z"), "2025-W01");
        let week: Week = "2026-W01".parse().unwrap();
        assert_eq!(week.first_day().to_string(), "2025-12-29");
        assert_eq!(week.last_day().to_string(), "2026-01-04");
        assert_eq!(week.weeks_earlier(4).to_string(), "2025-W49");
    }

    #[test]
    fn only_weeks_are_parsed() {
        for text in
            ["", "2026", "2026-W54", "2026-W00", "2025-W53", "26-W47", "2026-W7", "+026-W47"]
        {
            assert!(text.parse::<Week>().is_err(), "{text}");
        }
        assert_eq!(
            "2026-47".parse::<Week>().unwrap_err().to_string(),
            "\"2026-47\" is no week, expected an ISO week such as 2026-W47"
        );
        let week: Week = serde_json::from_str("\"2026-W53\"").unwrap();
        assert_eq!(serde_json::to_string(&week).unwrap(), "\"2026-W53\"");
    }

    #[test]
    fn the_ends_of_time_have_weeks() {
        for at in [Timestamp::MIN, Timestamp::MAX] {
            let week = Week::containing(at);
            assert_eq!(week.first_day().weekday(), Weekday::Monday);
            assert_eq!(week.weeks_earlier(200).first_day().weekday(), Weekday::Monday);
            assert!(week.last_day() >= week.first_day());
        }
    }
}
