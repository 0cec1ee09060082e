//! Foreign text and numbers as the pages show them. Escaping is left to the templates.

use jiff::Timestamp;

use selftest_text::escape;
pub(super) use selftest_text::wording::{date_time, duration, plural};

/// What stands where there is no value.
pub(super) const ABSENT: &str = "–";
/// Bytes of a line.
const LINE: usize = 300;
/// Bytes of a prompt, an answer, a raw reply.
const BLOCK: usize = 64 * 1024;

/// Foreign text on one line.
pub(super) fn line(text: &str) -> String {
    escape::terminal(text, LINE)
}

/// Foreign text with its lines.
pub(super) fn block(text: &str) -> String {
    escape::block(text, BLOCK)
}

/// A score or share of 0 to 1 in per cent, for bars.
pub(super) fn percent(score: Option<f64>) -> String {
    format!("{:.0}", 100.0 * score.unwrap_or_default().clamp(0.0, 1.0))
}

/// `0.82`.
pub(super) fn score(score: Option<f64>) -> String {
    score.map_or_else(|| ABSENT.to_owned(), |score| format!("{score:.2}"))
}

/// What colour a score has: `good`, `fair`, `poor`, or `none`. The number stands beside it.
pub(super) fn grade(score: Option<f64>) -> &'static str {
    match score {
        Some(score) if score >= 0.7 => "good",
        Some(score) if score >= 0.4 => "fair",
        Some(_) => "poor",
        None => "none",
    }
}

/// `4 min 05 s`, from seconds.
pub(super) fn seconds(seconds: Option<f64>) -> String {
    let text = rough(seconds);
    match seconds {
        Some(seconds) if text.ends_with(" min") && !text.contains('h') => {
            format!("{text} {:02.0} s", seconds.round() % 60.0)
        }
        _ => text,
    }
}

/// `4 min`, from seconds.
pub(super) fn rough(seconds: Option<f64>) -> String {
    match seconds {
        Some(seconds) if seconds.is_finite() && seconds >= 0.0 => {
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
        _ => ABSENT.to_owned(),
    }
}

/// `2026-11-20 10:00`, in UTC.
pub(super) fn minute(at: Timestamp) -> String {
    let text = date_time(at);
    text.get(..16).unwrap_or(&text).to_owned()
}

/// `feature_impl` as `feature impl`.
pub(super) fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

/// `1,234,567`.
pub(super) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(super) fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let times = [None, Some(f64::NAN), Some(-1.0), Some(59.7), Some(3_599.7), Some(1e300)];
        let shown = times.map(seconds);
        assert_eq!(shown[..5], ["–", "–", "–", "1 min 00 s", "1 h 00 min"]);
        assert_eq!((score(Some(0.825)).as_str(), percent(Some(7.0)).as_str()), ("0.82", "100"));
    }
}
