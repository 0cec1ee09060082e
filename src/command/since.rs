//! `--since`: a span such as 30d, or a date. Pure.

use anyhow::anyhow;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use selftest_app::AppError;

/// Returns the time that the flag means, relative to `now`. Dates start at midnight UTC.
pub(super) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, AppError> {
    moment_of("--since", text, now)
}

/// The same for a flag of that name.
pub(super) fn moment_of(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp, AppError> {
    let hours = |text: &str| {
        let unit = text.chars().next_back()?;
        let number: i64 = text[..text.len() - unit.len_utf8()].trim().parse().ok()?;
        let hours = match unit.to_ascii_lowercase() {
            'h' => 1,
            'd' => 24,
            'w' => 24 * 7,
            _ => return None,
        };
        let hours = number.checked_mul(hours).filter(|hours| (0..=24 * 36_500).contains(hours))?;
        now.checked_sub(SignedDuration::from_hours(hours)).ok()
    };
    let date = || Some(text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    // Times before dates: a date is a prefix of a time.
    let time = || text.parse::<Timestamp>().ok();
    hours(text).or_else(time).or_else(date).ok_or_else(|| {
        let shown = selftest_text::one_line(text, 60);
        AppError::usage(anyhow!("{flag} {shown:?} is not a valid time"))
            .hint(Some("write 12h, 30d or 2w, or a date such as 2026-11-01"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_dates() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("12h", "2026-11-22T00:00:00Z"),
            ("30d", "2026-10-23T12:00:00Z"),
            ("2w", "2026-11-08T12:00:00Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2026-11-01T10:00:00+02:00", "2026-11-01T08:00:00Z"),
        ] {
            assert_eq!(moment(text, now).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "d", "-3d", "30", "soon", "30µ", "99999999999999999999d", "900000000w"] {
            let failure = moment(text, now).unwrap_err();
            assert!(failure.render(false).contains("is not a valid time"), "{text}");
        }
    }
}
