//! Askama filters for untrusted text, numbers and times. Askama escapes HTML after the filters.

#![expect(
    unreachable_pub,
    clippy::inline_always,
    clippy::trivially_copy_pass_by_ref,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "the form that askama wants, and what its `filter_fn` makes of it"
)]

use std::fmt::Display;

use askama::{Result, Values, filter_fn};
use jiff::Timestamp;
use serde::Serialize;

use selftest_grading::improve::effectiveness::ChangeReason;
use selftest_grading::improve::skill::SkillStatus;
use selftest_harness::outcome::{CaseStatus, RunOutcome};
use selftest_reports::against::CaseStanding;
use selftest_stats::Interval;
use selftest_stats::score::Score;
use selftest_text::{escape, wording};

/// Placeholder for a missing value.
pub(super) const ABSENT: &str = "–";
/// Maximum number of bytes of a line of untrusted text.
const MAX_LINE: usize = 300;
/// Maximum number of bytes of a prompt, an answer or a raw reply.
const MAX_BLOCK: usize = 64 * 1024;

/// An optional value, owned or borrowed, as expressions in templates can be either.
pub(super) trait OptionalValue<T> {
    fn value(&self) -> Option<T>;
}

impl<T, M: OptionalValue<T>> OptionalValue<T> for &M {
    fn value(&self) -> Option<T> {
        (*self).value()
    }
}

impl<T, M: OptionalValue<T>> OptionalValue<T> for Option<M> {
    fn value(&self) -> Option<T> {
        self.as_ref()?.value()
    }
}

impl OptionalValue<f64> for f64 {
    fn value(&self) -> Option<f64> {
        Some(*self)
    }
}

impl OptionalValue<f64> for Score {
    fn value(&self) -> Option<f64> {
        Some(self.get())
    }
}

impl OptionalValue<u64> for u64 {
    fn value(&self) -> Option<u64> {
        Some(*self)
    }
}

impl OptionalValue<u64> for u32 {
    fn value(&self) -> Option<u64> {
        Some((*self).into())
    }
}

impl OptionalValue<Timestamp> for Timestamp {
    fn value(&self) -> Option<Timestamp> {
        Some(*self)
    }
}

fn or_absent<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> Result<String> {
    Ok(value.map_or_else(|| ABSENT.to_owned(), show))
}

/// Formats untrusted text on one line, with invisible characters made visible.
#[filter_fn]
pub(super) fn line(text: impl Display, _: &dyn Values) -> Result<String> {
    Ok(one_line(&text.to_string()))
}

/// Like the filter `line`, for use outside of templates.
pub(super) fn one_line(text: &str) -> String {
    escape::terminal(text, MAX_LINE)
}

/// Formats untrusted text with its line breaks.
#[filter_fn]
pub(super) fn block(text: impl Display, _: &dyn Values) -> Result<String> {
    Ok(escape::block(&text.to_string(), MAX_BLOCK))
}

/// Formats the first request of a session.
#[filter_fn]
pub(super) fn request(summary: &Option<String>, _: &dyn Values) -> Result<String> {
    let line = one_line(summary.as_deref().unwrap_or_default());
    Ok(if line.is_empty() { "(no request)".to_owned() } else { line })
}

/// Formats a serialised name, `feature_impl`, as `feature impl`.
#[filter_fn]
pub(super) fn spaced(name: impl Serialize, _: &dyn Values) -> Result<String> {
    let name = serde_json::to_value(name).map_err(askama::Error::custom)?;
    Ok(name.as_str().unwrap_or_default().replace('_', " "))
}

/// Formats indented JSON.
#[filter_fn]
pub(super) fn pretty(value: impl Serialize, _: &dyn Values) -> Result<String> {
    let text = serde_json::to_string_pretty(&value).map_err(askama::Error::custom)?;
    // JSON escapes control characters, but not those that reorder text.
    Ok(escape::visible(&text))
}

/// Formats a score as `0.82`.
#[filter_fn]
pub(super) fn score(score: impl OptionalValue<f64>, _: &dyn Values) -> Result<String> {
    or_absent(score.value(), |score| format!("{score:.2}"))
}

/// Formats a mean as `3.4`.
#[filter_fn]
pub(super) fn tenths(mean: impl OptionalValue<f64>, _: &dyn Values) -> Result<String> {
    or_absent(mean.value(), |mean| format!("{mean:.1}"))
}

/// Formats a share as `82 %`.
#[filter_fn]
pub(super) fn percent(share: impl OptionalValue<f64>, _: &dyn Values) -> Result<String> {
    or_absent(share.value(), |share| format!("{} %", wording::percent(share)))
}

/// Formats a score or share as the width of a bar, 0 to 100.
#[filter_fn]
pub(super) fn width(share: impl OptionalValue<f64>, _: &dyn Values) -> Result<String> {
    Ok(format!("{:.0}", 100.0 * share.value().unwrap_or_default().clamp(0.0, 1.0)))
}

/// Returns the CSS class of a score, which sets its colour. The number is shown as well.
#[filter_fn]
pub(super) fn grade(score: impl OptionalValue<f64>, _: &dyn Values) -> Result<&'static str> {
    Ok(match score.value() {
        // For the eye only. Whether a case passed is decided by its threshold and shown by its
        // badge.
        Some(score) if score >= 0.7 => "good",
        Some(score) if score >= 0.4 => "fair",
        Some(_) => "poor",
        None => "none",
    })
}

/// Formats an interval as `38 to 96 %`.
#[filter_fn]
pub(super) fn percents(interval: &Option<Interval>, _: &dyn Values) -> Result<String> {
    or_absent(*interval, |Interval { low, high }| {
        format!("{:.0} to {:.0} %", 100.0 * low, 100.0 * high)
    })
}

/// Formats an interval as `0.38 to 0.96`.
#[filter_fn]
pub(super) fn interval(interval: &Option<Interval>, _: &dyn Values) -> Result<String> {
    or_absent(*interval, |Interval { low, high }| format!("{low:.2} to {high:.2}"))
}

/// Formats a count as `1,234,567`.
#[filter_fn]
pub(super) fn count(count: impl OptionalValue<u64>, _: &dyn Values) -> Result<String> {
    or_absent(count.value(), thousands)
}

/// Like the filter `count`, for use outside of templates.
pub(super) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Formats milliseconds as `4 min 05 s`.
#[filter_fn]
pub(super) fn duration(milliseconds: impl OptionalValue<u64>, _: &dyn Values) -> Result<String> {
    or_absent(milliseconds.value(), wording::duration)
}

/// Formats seconds as `4 min 05 s`.
#[filter_fn]
pub(super) fn seconds(seconds: impl OptionalValue<f64>, _: &dyn Values) -> Result<String> {
    or_absent(seconds.value(), |seconds| match wording::minutes(seconds) {
        // From an hour on, seconds say nothing any more.
        text if text.ends_with(" min") && !text.contains('h') => {
            format!("{text} {:02.0} s", seconds.round() % 60.0)
        }
        text => text,
    })
}

/// Formats seconds as `4 min`.
#[filter_fn]
pub(super) fn minutes(seconds: impl OptionalValue<f64>, _: &dyn Values) -> Result<String> {
    or_absent(seconds.value(), wording::minutes)
}

/// Formats a UTC time as `2026-11-20 10:00`.
#[filter_fn]
pub(super) fn minute(at: impl OptionalValue<Timestamp>, _: &dyn Values) -> Result<String> {
    or_absent(at.value(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Formats a UTC time as `2026-11-20 10:00 UTC`.
#[filter_fn]
pub(super) fn minute_utc(at: impl OptionalValue<Timestamp>, _: &dyn Values) -> Result<String> {
    or_absent(at.value(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// Formats a UTC time as `2026-11-20 10:00:05`.
#[filter_fn]
pub(super) fn date_time(at: impl OptionalValue<Timestamp>, _: &dyn Values) -> Result<String> {
    or_absent(at.value(), wording::date_time)
}

/// Returns the CSS class of a case's badge.
#[filter_fn]
pub(super) fn status_class(status: &CaseStatus, _: &dyn Values) -> Result<&'static str> {
    Ok(match status.pass() {
        Some(true) => "good",
        Some(false) => "poor",
        None => "fair",
    })
}

/// Returns the CSS class of the badge that says how a case stands against the baseline.
#[filter_fn]
pub(super) fn standing_class(standing: &CaseStanding, _: &dyn Values) -> Result<&'static str> {
    Ok(match standing.class() {
        "passed" => "good",
        "failed" => "poor",
        "open" => "fair",
        other => other,
    })
}

/// Returns the CSS class of a run's badge.
#[filter_fn]
pub(super) fn outcome_class(outcome: &Option<RunOutcome>, _: &dyn Values) -> Result<&'static str> {
    Ok(match outcome {
        Some(RunOutcome::Passed) => "good",
        Some(RunOutcome::Failed) => "poor",
        Some(
            RunOutcome::Inconclusive
            | RunOutcome::ModelUnavailable
            | RunOutcome::NothingRan
            | RunOutcome::Interrupted,
        ) => "fair",

        None => "none",
    })
}

/// Returns the CSS class of the badge of a gap or proposal by its status.
#[filter_fn]
pub(super) fn decision_class(status: &str, _: &dyn Values) -> Result<&'static str> {
    Ok(match status {
        "accepted" | "closed" => "good",
        "open" | "proposed" => "fair",
        _ => "none",
    })
}

/// Returns the CSS class of the badge of a skill version.
#[filter_fn]
pub(super) fn skill_class(status: &SkillStatus, _: &dyn Values) -> Result<&'static str> {
    Ok(match status {
        SkillStatus::Active => "good",
        SkillStatus::Superseded => "none",
        SkillStatus::Disabled => "poor",
    })
}

/// Formats reasons on one line.
#[filter_fn]
pub(super) fn reasons(reasons: &[ChangeReason], _: &dyn Values) -> Result<String> {
    let lines = reasons.iter().map(|reason| one_line(&reason.to_string()));
    Ok(lines.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use askama::Template;

    use super::super::filters;

    #[derive(Template)]
    #[template(
        source = r#"{% for count in counts %}{{ count|count }} {% endfor %}{% for time in times %}{{ time|seconds }}, {% endfor %}{{ 0.825|score }} {{ 7.0|width }}"#,
        ext = "html"
    )]
    struct Numbers {
        counts: [u64; 4],
        times: [Option<f64>; 5],
    }

    #[test]
    fn numbers_for_people() {
        let times = [None, Some(f64::NAN), Some(-1.0), Some(59.7), Some(3_599.7)];
        let shown = Numbers { counts: [0, 999, 1000, 1_234_567], times }.render().unwrap();
        assert_eq!(shown, "0 999 1,000 1,234,567 –, –, –, 1 min 00 s, 1 h 00 min, 0.82 100");
        assert!(selftest_text::wording::minutes(1e300).ends_with("min"));
    }
}
