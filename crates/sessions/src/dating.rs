//! The one rule for the date of a session: its own events, else the name of its file, else the
//! folder that the agent named after it. A session without any of these is undated, and so is one
//! whose times cannot be right. The date of the file itself is never used: a copy has another.

use std::path::Path;
use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use regex::Regex;

use super::SessionHead;

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
    use super::*;

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
