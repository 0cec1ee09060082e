//! Formats the values of a weekly report as text for pages and terminals. Untrusted names are
//! shortened here; the caller must escape the results.

use crate::grade::breakdown::ContradictedTask;
use crate::grade::patterns::ToolPattern;
use crate::grade::spending::format_money;
use crate::grade::suggestions::SuggestionRule;
use crate::grade::{
    Alert, AlertMetric, Alerts, CostSummary, DifferenceVerdict, ExcludedSessions, GradeSummary,
    GroupDifference, Proportion, ScanCoverage, Suggestion, TaskMeasure, TruncatedList,
    WeeklyReport,
};
use selftest_stats::Interval;
use selftest_text::one_line;
use selftest_text::wording::{minutes, percent, plural};

/// Maximum number of rows for tools and clusters.
const MAX_ROWS: usize = 8;

/// Placeholder if there was nothing to count.
pub(super) const ABSENT: &str = "–";

/// Formats a share as `58 % (7 of 12)`.
pub fn share(share: &Proportion) -> String {
    let Proportion { count, of, rate, .. } = share;
    rate.map_or(ABSENT.to_owned(), |rate| format!("{} % ({count} of {of})", percent(rate)))
}

/// Formats a rate as `58 %`.
pub fn rate(rate: Option<f64>) -> String {
    rate.map_or(ABSENT.to_owned(), |rate| format!("{} %", percent(rate)))
}

/// Formats an interval as `32 % to 81 %`.
pub fn interval(share: &Proportion) -> String {
    share.interval.map_or(ABSENT.to_owned(), |ends| {
        format!("{:.0} % to {:.0} %", ends.low * 100.0, ends.high * 100.0)
    })
}

/// Formats a mean of grades as `3.4`.
pub fn mean(mean: Option<f64>) -> String {
    mean.map_or(ABSENT.to_owned(), |mean| format!("{mean:.1}"))
}

/// Describes the sessions that are excluded from rates: `Beside these, in no rate: 12 sessions of
/// subagents.`
pub fn not_tasks(others: ExcludedSessions) -> Option<String> {
    let kinds = [
        (others.subagents, plural(others.subagents, "session of a subagent")),
        (others.warm_ups, plural(others.warm_ups, "warm-up")),
        (others.automatic, plural(others.automatic, "automatic run")),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<&str> = kinds.map(|(_, words)| words.as_str()).collect();
    // `plural` only appends an `s` at the end of the phrase.
    let subagents = if others.subagents > 1 { "sessions of subagents" } else { "" };
    let words = all_of(&kinds).replace("session of a subagents", subagents);
    (others.total() > 0).then(|| format!("Beside these, in no rate: {words}."))
}

/// Describes a difference between two groups. It has a direction only if a test found one.
pub fn difference(found: &GroupDifference) -> String {
    let is_share = found.interval.is_some() || found.measure == TaskMeasure::FailedCalls;
    let size = found.own.zip(found.other).map(|(own, other)| own - other);
    let size = match (found.measure, size) {
        (_, None) => ABSENT.to_owned(),
        (TaskMeasure::Duration, Some(size)) => {
            format!("{} {}", if size < 0.0 { "down" } else { "up" }, minutes(size.abs()))
        }
        (_, Some(size)) if is_share => direction(size * 100.0, 0, " point"),
        (_, Some(size)) => direction(size, 1, ""),
    };
    let points = |interval: &Interval| {
        format!("{:+.0} to {:+.0} points", interval.low * 100.0, interval.high * 100.0)
    };
    let range = found.interval.as_ref().map(points);
    let is_clear = found.interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0);
    match (found.verdict, range) {
        (DifferenceVerdict::NotTested, _) => "not tested".to_owned(),
        // The interval covers this difference alone, while the test is corrected for several.
        (DifferenceVerdict::WithinChance, Some(range)) if is_clear => {
            format!("uncertain ({range}, {} among all of these)", p_value(found))
        }
        (DifferenceVerdict::WithinChance, Some(range)) => format!("none beyond chance ({range})"),
        (DifferenceVerdict::WithinChance, None) => {
            format!("none beyond chance ({})", p_value(found))
        }
        // The test compares ranks, whose order may differ from that of the means.
        (DifferenceVerdict::Up | DifferenceVerdict::Down, Some(range)) => {
            format!("{size} (95 % interval {range}, {})", p_value(found))
        }
        (DifferenceVerdict::Up | DifferenceVerdict::Down, None) => {
            format!("{size} ({})", p_value(found))
        }
    }
}

/// Formats the p-value after Holm's correction as `p = 0.012`.
pub fn p_value(found: &GroupDifference) -> String {
    match found.p_corrected {
        None => "not tested".to_owned(),
        Some(p) if p < 0.001 => "p below 0.001".to_owned(),
        Some(p) => format!("p = {p:.3}"),
    }
}

/// Spells out the direction, because a leading sign would be escaped: it could start a list.
fn direction(value: f64, places: usize, unit: &str) -> String {
    let size = format!("{:.places$}", value.abs());
    // Rounded to nothing: "up 0 points" would contradict itself.
    if size.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return "none".to_owned();
    }
    let more = if unit.is_empty() || size == "1" { "" } else { "s" };
    format!("{} {size}{unit}{more}", if value < 0.0 { "down" } else { "up" })
}

/// Lists the first items and the number of remaining ones: `a, b and 3 more`.
fn some_of(list: &TruncatedList<String>, most: usize, shown: impl Fn(&str) -> String) -> String {
    let names: Vec<String> = list.items.iter().take(most).map(|name| shown(name)).collect();
    let more = list.total() - names.len() as u64;
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

/// Joins items as `a`, `a and b` or `a, b and c`.
pub(super) fn all_of(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn metric(metric: AlertMetric) -> &'static str {
    match metric {
        AlertMetric::ChecksPassed => "share of tasks whose checks passed",
        AlertMetric::Contradicted => "share of contradicted tasks",
        AlertMetric::CompletionRate => "completion rate",
        AlertMetric::ToolEfficiency => "tool efficiency",
        AlertMetric::ErrorRate => "error rate",
    }
}

/// Describes the coverage of the scan in one line: `412 files found, 398 read, 377 sessions graded,
/// 14 skipped: …. The database holds 377 graded sessions.` Says so if there was no scan.
pub fn coverage_text(coverage: &ScanCoverage) -> String {
    let &ScanCoverage { found, read, graded, unchanged, left_out, .. } = coverage;
    let held = if coverage.scanned { coverage.stored } else { graded };
    let undated = match coverage.undated {
        0 => String::new(),
        count => format!(", {count} of them without a date and so in no week"),
    };
    let holds = format!("The database holds {}{undated}", plural(held, "graded session"));
    let unchanged = match unchanged {
        0 => String::new(),
        count => format!(" ({count} of them unchanged since the last scan)"),
    };
    let reasons: Vec<(u64, String)> = [
        (coverage.not_gradable, format!("{} with too little to grade", coverage.not_gradable)),
        (coverage.no_session, format!("{} without a session", coverage.no_session)),
        (coverage.duplicate, format!("{} duplicate", coverage.duplicate)),
        (coverage.unreadable, format!("{} unreadable", coverage.unreadable)),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .collect();
    let skipped: u64 = reasons.iter().map(|(count, _)| count).sum();
    let reasons: Vec<&str> = reasons.iter().map(|(_, words)| words.as_str()).collect();
    let why = if skipped > 0 { format!(": {}", all_of(&reasons)) } else { String::new() };
    let files = plural(found, "file");
    if !coverage.scanned {
        return format!(
            "No scan was made for this report. {holds}, and knows {files}, some of which may be gone \
             by now; {skipped} skipped{why}."
        );
    }
    let left_out = match left_out {
        0 => String::new(),
        count => format!("; {count} left out: too old, of another agent or still being written"),
    };
    format!(
        "{files} found{unchanged}, {read} read, {} graded, {skipped} skipped{why}{left_out}. \
         {holds}.",
        plural(graded, "session"),
    )
}

/// Lists the metrics that became worse.
pub fn raised(alerts: &Alerts) -> String {
    let raised: Vec<&str> = alerts.raised().map(|alert| metric(alert.metric)).collect();
    if raised.is_empty() { "none".to_owned() } else { raised.join(", ") }
}

/// Describes an alert check in one sentence without a full stop.
pub fn alert_text(alerts: &Alerts, alert: &Alert) -> String {
    let shown = |value: Option<f64>| match alert.metric {
        AlertMetric::ToolEfficiency => mean(value),
        AlertMetric::ChecksPassed | AlertMetric::Contradicted | AlertMetric::CompletionRate => {
            rate(value)
        }
        // Small rates differ only after the decimal point.
        AlertMetric::ErrorRate => {
            value.map_or(ABSENT.to_owned(), |value| format!("{:.1} %", value * 100.0))
        }
    };
    let name = match alert.metric {
        AlertMetric::ChecksPassed => "Checks passed",
        AlertMetric::Contradicted => "Contradicted tasks",
        AlertMetric::CompletionRate => "Completion rate",
        AlertMetric::ToolEfficiency => "Tool efficiency",
        // The table of numbers shows the rate over all calls together; this is a mean per session.
        AlertMetric::ErrorRate => "Error rate of a session, on average",
    };
    let Alert { n_now, n_before, test, .. } = alert;
    let Some(p) = alert.p_corrected else {
        let needed = alerts.min_sessions;
        return format!(
            "{name}: not tested, {n_now} sessions this week and {n_before} before; {needed} are \
             needed on each side"
        );
    };
    let (now, before) = (shown(alert.now), shown(alert.before));
    let p = if p < 0.001 { "p below 0.001".to_owned() } else { format!("p = {p:.3}") };
    let verdict = if alert.raised { "worse than before" } else { "not worse beyond chance" };
    format!(
        "{name}: {verdict}, {now} this week ({}), {before} in the four weeks before ({}); {test}, \
         {p} after Holm's correction",
        plural(*n_now, "session"),
        plural(*n_before, "session"),
    )
}

/// Describes the numbers behind a suggestion.
pub fn reason(suggestion: &Suggestion) -> String {
    let Suggestion { measured, threshold, n, .. } = suggestion;
    let count = suggestion.count.unwrap_or(0);
    let limit = percent(*threshold);
    // Two equal rounded numbers would look like a mistake.
    let share = match percent(*measured) {
        same if same == limit => format!("{:.2} %", measured * 100.0),
        other => format!("{other} %"),
    };
    match suggestion.rule {
        SuggestionRule::LowCompletionRate => {
            format!("{count} of {n} sessions completed ({share}), below {limit} %")
        }
        SuggestionRule::LowErrorRecoveryRate => {
            format!("{count} of {n} sessions with errors recovered ({share}), below {limit} %")
        }
        SuggestionRule::LowToolEfficiency => {
            format!("mean efficiency {measured:.2} of 5 over {n} sessions, below {threshold}")
        }
        SuggestionRule::LowTaskType => {
            format!("mean score {measured:.2} of 5 over {n} sessions, below {threshold}")
        }
        SuggestionRule::HighToolErrors => {
            format!("{count} of {n} calls failed ({share}), more than {limit} %")
        }
        SuggestionRule::CommonError => {
            format!("{count} of {n} errors ({share}), at least {limit} %")
        }
    }
}

/// Formats the share of failed tool calls as `4 % (3 of 75)`.
pub fn failed_calls(summary: &GradeSummary) -> String {
    let GradeSummary { error_rate, errors, tool_calls, .. } = summary;
    error_rate
        .map_or(ABSENT.to_owned(), |_| format!("{} ({errors} of {tool_calls})", rate(*error_rate)))
}

/// Shortens a tool's name, so that the text after it is not cut off.
pub fn tool(name: &str) -> String {
    one_line(name, 60)
}

/// Lists some of the sessions by ID. Commands accept an ID prefix, and a UUID fits.
pub fn sessions(sessions: &TruncatedList<String>) -> String {
    some_of(sessions, 4, |id| one_line(id, 40))
}

/// Lists some of the sessions by request, each with its ID for use in commands.
pub fn named(sessions: &TruncatedList<String>, titles: &[String]) -> String {
    if titles.len() < sessions.items.len() {
        return self::sessions(sessions);
    }
    let shown: Vec<String> = sessions
        .items
        .iter()
        .zip(titles)
        .take(3)
        .map(|(id, title)| format!("{} ({})", self::title(title), one_line(id, 40)))
        .collect();
    match sessions.total() - shown.len() as u64 {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns the first sessions of a list, each with its request.
pub fn titled<'a>(
    sessions: &'a TruncatedList<String>,
    titles: &'a [String],
) -> Vec<(&'a str, &'a str)> {
    let titles = titles.iter().map(String::as_str).chain(std::iter::repeat(""));
    sessions.items.iter().map(String::as_str).zip(titles).take(3).collect()
}

/// Formats a position as `4f2a, event 12`.
pub fn at(session_id: &str, event: Option<u64>) -> String {
    let id = one_line(session_id, 40);
    event.map_or(id.clone(), |event| format!("{id}, event {event}"))
}

/// Formats a request as a title.
pub fn title(request: &str) -> String {
    match one_line(request, 70) {
        line if line.is_empty() => "(no request)".to_owned(),
        line => format!("“{line}”"),
    }
}

/// Explains why a task is contradicted: `tests failed, and no later run passed: pytest -q`.
pub fn why(task: &ContradictedTask) -> String {
    match task.sign {
        None => "a person says so".to_owned(),
        Some(sign) if task.words.trim().is_empty() => sign.words().to_owned(),
        Some(sign) => format!("{}: {}", sign.words(), one_line(&task.words, 120)),
    }
}

/// Returns the last component of a folder's path; other names are unchanged.
pub fn portion(name: &str) -> String {
    // Projects are paths, of which the last part names them.
    let last = name.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
    one_line(last.filter(|last| !last.is_empty()).unwrap_or(name), 40)
}

/// Shortens an error message.
pub fn example(words: &str) -> String {
    one_line(words, 160)
}

/// Returns the tools with the most errors.
pub fn worst_tools(report: &WeeklyReport) -> impl Iterator<Item = &ToolPattern> {
    report.problem_areas.tools_with_errors().take(MAX_ROWS)
}

/// Shortens a suggestion's advice.
pub fn advice(text: &str) -> String {
    one_line(text, 160)
}

/// Formats the cost of a portion of the tasks: `1.23 USD`, `at least 1.23 USD`, `unknown`.
pub fn portion_cost(of: &CostSummary) -> String {
    let amount = format_money(of.amount, &of.currency);
    match (of.known, of.unpriced + of.without_tokens) {
        (0, 0) => ABSENT.to_owned(),
        // A missing price is unknown and never 0.
        (0, _) => "unknown".to_owned(),
        (_, 0) => amount,
        _ => format!("at least {amount}"),
    }
}

/// Describes the alert checks: raised ones individually, the others grouped.
pub fn alert_lines(report: &WeeklyReport) -> Vec<String> {
    let alerts = &report.alerts;
    let mut lines: Vec<String> = alerts.raised().map(|alert| alert_text(alerts, alert)).collect();
    let named = |wanted: fn(&&Alert) -> bool| -> Vec<&str> {
        alerts.checks.iter().filter(wanted).map(|alert| metric(alert.metric)).collect()
    };
    let calm = named(|alert| !alert.raised && alert.p.is_some());
    if !calm.is_empty() {
        lines.push(format!("Tested and not worse beyond chance: {}", all_of(&calm)));
    }
    let untested = named(|alert| alert.p.is_none());
    if !untested.is_empty() {
        let needed = alerts.min_sessions;
        lines.push(format!(
            "Not tested, because {needed} tasks are needed on each side: {}",
            all_of(&untested)
        ));
    }
    lines
}

/// Stands for the suggestions from outcomes and causes where there are none.
pub const NO_TYPE_FINDING: &str =
    "None from outcomes: no type of task has two that were found not done.";

/// Returns true if the specification's thresholds suggest something that no finding covers.
pub fn has_suggestions(report: &WeeklyReport) -> bool {
    report.suggestions.of_rules().next().is_some()
}

/// Returns the sentence above the table of tools.
pub fn tools_remark(report: &WeeklyReport) -> String {
    let tools = &report.problem_areas.tools;
    let called = plural(tools.total(), "tool");
    let erring = report.problem_areas.tools_with_errors().count();
    let errors = plural(report.summary.errors, "error");
    let calls = plural(report.summary.tool_calls, "call");
    match erring {
        0 => format!("None: {called}, {calls}, no error."),
        _ if erring > MAX_ROWS => {
            format!("{called}, {calls}, {errors}; the {MAX_ROWS} tools with most errors:")
        }
        _ => format!("{called}, {calls}, {errors}:"),
    }
}
