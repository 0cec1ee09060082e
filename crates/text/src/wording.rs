//! Formatting of shares, counts, durations and dates for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::one_line;

/// Formats a share as whole per cent. Only exactly 1 gives 100, and only exactly 0 gives 0.
pub fn percent(share: f64) -> String {
    let rounded = (share * 100.0).round();
    let honest = if share > 0.0 && share < 1.0 { rounded.clamp(1.0, 99.0) } else { rounded };
    format!("{honest:.0}")
}

/// Formats a number of trials: `10 trials of 2 cases`.
pub fn trials(count: u32, of: u32) -> String {
    format!("{} of {}", plural(count, "trial"), cases(of))
}

/// Quotes a command-line argument if a shell would interpret it.
pub fn shell_quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Formats a number of cases: `1 case`, `2 cases`.
pub fn cases(count: u32) -> String {
    plural(count, "case")
}

/// Formats a count with its noun.
pub fn plural(count: impl Into<u64>, noun: &str) -> String {
    let count: u64 = count.into();
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Formats a duration: `850 ms`, `12.3 s`, `4 min 05 s`.
pub fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => {
            // Tenths are rounded down, so that 59.99 s is not shown as 60.0 s.
            format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100)
        }
        _ => format!("{} min {:02} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

/// Formats seconds to the minute: `45 s`, `12 min`, `3 h 05 min`. A value that is not a duration
/// gives a dash.
pub fn minutes(seconds: f64) -> String {
    if !(seconds.is_finite() && seconds >= 0.0) {
        return "–".to_owned();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "finite and not negative; more than u64 holds is shown as its maximum"
    )]
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min", whole / 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats a UTC time: `2026-02-06 12:34:56`.
pub fn date_time(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Formats a UTC date: `2026-02-06`.
pub fn date(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d").to_string()
}

/// Names the members of a reply, for a user who has to find out what answered.
pub fn json_members(reply: &Value) -> String {
    match reply {
        Value::Object(members) if members.is_empty() => "the reply has: no members".to_owned(),
        Value::Object(members) => {
            let names: Vec<&str> = members.keys().map(String::as_str).collect();
            format!("the reply has: {}", one_line(&names.join(", "), MAX_MEMBERS))
        }
        Value::Array(_) => "the reply is a list".to_owned(),
        _ => "the reply is no JSON object".to_owned(),
    }
}

/// Maximum length of the list of members, in bytes.
const MAX_MEMBERS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_is_a_hundred_per_cent() {
        let shown = [0.0, 0.001, 0.8, 0.999, 1.0].map(percent);
        assert_eq!(shown, ["0", "1", "80", "99", "100"]);
    }

    #[test]
    fn durations() {
        let shown = [850, 12_399, 59_999, 245_000].map(duration);
        assert_eq!(shown, ["850 ms", "12.3 s", "59.9 s", "4 min 05 s"]);
    }
}
