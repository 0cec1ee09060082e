//! Weekly usage of a skill over the last weeks.

use jiff::ToSpan as _;
use jiff::civil::Date;
use serde::Serialize;
use utoipa::ToSchema;

/// Number of weeks in a trend.
pub const WEEKS: i64 = 8;

/// Executions in one week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct WeekCount {
    /// Monday of the week.
    #[schema(value_type = String, format = Date)]
    pub week_start: Date,
    /// Number of executions.
    pub executions: u32,
    /// Number of successful executions.
    pub successes: u32,
}

/// Returns the first day of the trend whose last week contains `today`.
pub fn first_day(today: Date) -> Date {
    monday(today).saturating_sub((7 * (WEEKS - 1)).days())
}

/// Aggregates daily counts of executions and successes into the last [`WEEKS`] weeks, oldest first.
/// Weeks without executions are included.
pub fn weeks(days: impl IntoIterator<Item = (Date, u32, u32)>, today: Date) -> Vec<WeekCount> {
    let first = first_day(today);
    let mut weeks: Vec<WeekCount> = (0..WEEKS)
        .map(|number| WeekCount {
            week_start: first.saturating_add((7 * number).days()),
            executions: 0,
            successes: 0,
        })
        .collect();
    for (day, executions, successes) in days {
        let week = monday(day);
        if let Some(week) = weeks.iter_mut().find(|other| other.week_start == week) {
            week.executions = week.executions.saturating_add(executions);
            week.successes = week.successes.saturating_add(successes);
        }
    }
    weeks
}

fn monday(day: Date) -> Date {
    day.saturating_sub(i64::from(day.weekday().to_monday_zero_offset()).days())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn days_are_gathered_in_weeks_and_empty_weeks_are_there() {
        let days = [
            ("2026-09-27", 9),
            ("2026-09-28", 1),
            ("2026-11-15", 2),
            ("2026-11-16", 3),
            ("2026-11-22", 4),
            ("2026-11-23", 9),
        ];
        // A Sunday.
        let today = day("2026-11-22");
        let weeks = weeks(days.map(|(date, count)| (day(date), count, count - 1)), today);
        let counts: Vec<_> = weeks.iter().map(|week| (week.executions, week.successes)).collect();
        assert_eq!(counts, [(1, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (2, 1), (7, 5)]);
        assert_eq!(weeks[0].week_start, first_day(today));
        assert_eq!(
            (weeks[0].week_start, weeks[7].week_start),
            (day("2026-09-28"), day("2026-11-16"))
        );
    }

    #[test]
    fn no_day_is_too_early_or_too_late() {
        for today in [Date::MIN, Date::MAX] {
            let all = [(Date::MIN, u32::MAX, 0), (Date::MAX, 1, 1), (today, u32::MAX, 1)];
            assert_eq!(weeks(all, today).len(), 8);
        }
    }
}
