//! Describes the findings of a weekly report in text. Untrusted names are shortened here; the
//! caller must escape the results.

use super::format::{p_value, rate, title, tool};
use crate::grade::findings::{ErrorFinding, ErrorPlace, MessagePattern};
use crate::grade::{DifferenceVerdict, ErrorCause, OutcomeSign, TypeFinding, WeeklyReport};
use selftest_text::one_line;
use selftest_text::wording::plural;

/// Maximum number of places to list.
const MAX_PLACES: usize = 3;

/// Returns the name of a finding: its cause, or the message pattern of a tool.
pub fn name(finding: &ErrorFinding) -> String {
    match (&finding.tool, finding.patterns.items.first()) {
        (Some(own), Some(pattern)) if finding.cause == ErrorCause::Unknown => {
            format!("{} says “{}”", tool(own), words(pattern))
        }
        (Some(own), Some(pattern)) => {
            format!("{} at {}, “{}”", finding.cause, tool(own), words(pattern))
        }
        _ => finding.cause.to_string(),
    }
}

/// Returns short descriptions of the causes that affected a single task.
pub fn single_causes(report: &WeeklyReport) -> impl Iterator<Item = (String, &ErrorFinding)> {
    let single = report.findings.single.items.iter();
    single.map(|one| (format!("{}: {}", name(one), plural(one.errors, "failed call")), one))
}

/// Describes what went wrong with a type of task: `3 of 4 tasks found not done (2: the person
/// complains; 2: timeout)`.
pub fn of_type(finding: &TypeFinding) -> String {
    let TypeFinding { contradicted, sign, with_sign, cause, with_cause, .. } = finding;
    let sign = sign.map_or("a person overrode the grade", OutcomeSign::words);
    // 0 if no two of them share a sign.
    let sign = (*with_sign > 0).then(|| format!("{with_sign}: {sign}"));
    let cause = cause.map(|cause| format!("{with_cause}: {cause}"));
    let shared: Vec<String> = sign.into_iter().chain(cause).collect();
    let shared =
        if shared.is_empty() { String::new() } else { format!(" ({})", shared.join("; ")) };
    let all = plural(contradicted.of, "task");
    format!("{} of {all} found not done{shared}", contradicted.count)
}

/// Describes the number of affected tasks and its change: `4 failed calls in 3 of
/// 21 tasks (14 %); …`.
pub fn size(finding: &ErrorFinding) -> String {
    let ErrorFinding { tasks, before, difference, .. } = finding;
    let now = format!(
        "{} in {} of {} ({})",
        plural(finding.errors, "failed call"),
        tasks.count,
        plural(tasks.of, "task"),
        rate(tasks.rate)
    );
    let earlier = match (before.of, before.count) {
        (0, _) => "no task in the four weeks before".to_owned(),
        (of, 0) => format!("none of {} in the four weeks before", plural(of, "task")),
        (of, count) => {
            let share = rate(before.rate);
            format!("{count} of {} in the four weeks before ({share})", plural(of, "task"))
        }
    };
    let verdict = match difference.verdict {
        DifferenceVerdict::Up => {
            format!(": more than before, beyond chance ({})", p_value(difference))
        }
        DifferenceVerdict::Down => {
            format!(": fewer than before, beyond chance ({})", p_value(difference))
        }
        DifferenceVerdict::WithinChance => ": no difference beyond chance".to_owned(),
        DifferenceVerdict::NotTested => ", not tested".to_owned(),
    };
    format!("{now}; {earlier}{verdict}")
}

/// Describes in a sentence how the affected tasks ended. Returns `None` if none of them got stuck
/// or was contradicted.
pub fn consequence(finding: &ErrorFinding) -> Option<String> {
    let ErrorFinding { stuck, contradicted, tasks, .. } = finding;
    let of = |count: &u64, what: &str| {
        (*count > 0).then(|| match (*count == tasks.count, tasks.count) {
            (true, 1) => format!("this task {what}"),
            (true, _) => format!("all of these tasks {what}"),
            (false, _) => format!("{count} of these tasks {what}"),
        })
    };
    let parts = [
        of(stuck, "got no tool to work after it"),
        of(contradicted, "ended contradicted by a check or a person"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let mut text = parts.join("; ");
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    (!text.is_empty()).then_some(text)
}

/// Lists the message patterns: `“cat: <path>: No such file” at bash (3)`.
pub fn patterns(finding: &ErrorFinding) -> String {
    let shown: Vec<String> = finding
        .patterns
        .items
        .iter()
        .map(|pattern| {
            format!("“{}” at {} ({})", words(pattern), tool(&pattern.tool), pattern.errors)
        })
        .collect();
    match finding.patterns.left_out {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns true if the name of a finding already contains its only pattern.
pub fn is_named_by_pattern(finding: &ErrorFinding) -> bool {
    finding.tool.is_some()
}

/// Returns the message pattern, or an example message if the pattern is empty.
fn words(pattern: &MessagePattern) -> String {
    match one_line(&pattern.template, 100) {
        template if template.is_empty() => one_line(&pattern.example, 100),
        template => template,
    }
}

/// Returns the first places of a finding.
pub fn places(finding: &ErrorFinding) -> impl ExactSizeIterator<Item = &ErrorPlace> {
    finding.places.items.iter().take(MAX_PLACES)
}

/// Describes how many more places there are.
pub fn more_places(finding: &ErrorFinding) -> Option<String> {
    let more = finding.places.total() - places(finding).len() as u64;
    (more > 0).then(|| format!("{more} more"))
}

/// Formats a place as `“fix the login” (4f2a, event 12)`.
pub fn place(place: &ErrorPlace) -> String {
    format!("{} ({}, event {})", title(&place.title), one_line(&place.session_id, 40), place.event)
}
