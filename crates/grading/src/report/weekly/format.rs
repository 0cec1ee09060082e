//! A weekly report in words, for pages and terminals. Pure. Foreign names are bounded here;
//! whoever shows a text escapes it.

use crate::grade::breakdown::{Breakdown, ContradictedTask, Portion};
use crate::grade::patterns::{ErrorCluster, ToolPattern};
use crate::grade::suggestions::RuleId;
use crate::grade::{
    Alert, Alerts, Coverage, ErrorCause, GradeSummary, Listed, Metric, NotTasks, Share, Suggestion,
    WeeklyReport,
};
use selftest_text::one_line;
use selftest_text::wording::{percent, plural};

/// Rows of tools and clusters.
const MAX_ROWS: usize = 8;

/// Shown where there was nothing to count.
pub(super) const ABSENT: &str = "–";

/// `58 % (7 of 12)`.
pub fn share(share: &Share) -> String {
    let Share { count, of, rate, .. } = share;
    rate.map_or(ABSENT.to_owned(), |rate| format!("{} % ({count} of {of})", percent(rate)))
}

/// `58 %`.
pub fn rate(rate: Option<f64>) -> String {
    rate.map_or(ABSENT.to_owned(), |rate| format!("{} %", percent(rate)))
}

/// `32 % to 81 %`.
pub fn interval(share: &Share) -> String {
    share.interval.map_or(ABSENT.to_owned(), |ends| {
        format!("{:.0} % to {:.0} %", ends.low * 100.0, ends.high * 100.0)
    })
}

/// A mean of grades: `3.4`.
pub fn mean(mean: Option<f64>) -> String {
    mean.map_or(ABSENT.to_owned(), |mean| format!("{mean:.1}"))
}

/// The sessions that no rate counts: `Beside these, which no rate counts: 12 of subagents.`
pub fn not_tasks(others: NotTasks) -> Option<String> {
    let kinds = [
        (others.subagents, plural(others.subagents, "session of a subagent")),
        (others.warm_ups, plural(others.warm_ups, "warm-up")),
        (others.automatic, plural(others.automatic, "automatic run")),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<&str> = kinds.map(|(_, words)| words.as_str()).collect();
    let subagents = if others.subagents > 1 { "sessions of subagents" } else { "" };
    let words = all_of(&kinds).replace("session of a subagents", subagents);
    (others.total() > 0).then(|| format!("Beside these, in no rate: {words}."))
}

/// A change of a rate: `down 35 points`.
pub fn points(change: Option<f64>) -> String {
    change.map_or(ABSENT.to_owned(), |change| direction(change * 100.0, 0, " point"))
}

/// A change of a rate that a test of the report has looked at: without one it is not called a
/// change.
pub fn tested(report: &WeeklyReport, metric: Metric, change: Option<f64>) -> String {
    with_verdict(report, metric, &points(change))
}

/// The same of a mean.
pub fn tested_mean(report: &WeeklyReport, metric: Metric, change: Option<f64>) -> String {
    with_verdict(report, metric, &self::change(change))
}

fn with_verdict(report: &WeeklyReport, metric: Metric, shown: &str) -> String {
    match report.alerts.checks.iter().find(|check| check.metric == metric) {
        Some(check) if check.raised => format!("{shown}: worse beyond chance"),
        Some(check) if check.p.is_some() => "not worse beyond chance".to_owned(),
        _ => "not tested".to_owned(),
    }
}

/// A change of a mean: `up 0.3`.
pub fn change(change: Option<f64>) -> String {
    change.map_or(ABSENT.to_owned(), |change| direction(change, 1, ""))
}

/// In words, because a sign at the beginning would be escaped: it could begin a list.
fn direction(value: f64, places: usize, unit: &str) -> String {
    let size = format!("{:.places$}", value.abs());
    if size.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return "none".to_owned();
    }
    let more = if unit.is_empty() || size == "1" { "" } else { "s" };
    format!("{} {size}{unit}{more}", if value < 0.0 { "down" } else { "up" })
}

/// The first of a list, and how many more there are: `a, b and 3 more`.
fn some_of(list: &Listed<String>, most: usize, shown: impl Fn(&str) -> String) -> String {
    let names: Vec<String> = list.items.iter().take(most).map(|name| shown(name)).collect();
    let more = list.total() - names.len() as u64;
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

/// `a`, `a and b`, `a, b and c`.
fn all_of(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Verified => "share of verified tasks",
        Metric::Contradicted => "share of contradicted tasks",
        Metric::CompletionRate => "completion rate",
        Metric::ToolEfficiency => "tool efficiency",
        Metric::ErrorRate => "error rate",
    }
}

/// The coverage of the scan in one line: `412 files found, 398 read, 377 sessions graded, 14
/// skipped: …. The database holds 377 graded sessions.` Without a scan it says so.
pub fn coverage_text(coverage: &Coverage) -> String {
    let &Coverage { found, read, graded, unchanged, left_out, .. } = coverage;
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

/// The metrics that became worse.
pub fn raised(alerts: &Alerts) -> String {
    let raised: Vec<&str> = alerts.raised().map(|alert| metric(alert.metric)).collect();
    if raised.is_empty() { "none".to_owned() } else { raised.join(", ") }
}

/// One check of the alerts in one sentence, without a full stop.
pub fn alert_text(alerts: &Alerts, alert: &Alert) -> String {
    let shown = |value: Option<f64>| match alert.metric {
        Metric::ToolEfficiency => mean(value),
        Metric::Verified | Metric::Contradicted | Metric::CompletionRate => rate(value),
        // Small rates differ behind the point.
        Metric::ErrorRate => {
            value.map_or(ABSENT.to_owned(), |value| format!("{:.1} %", value * 100.0))
        }
    };
    let name = match alert.metric {
        Metric::Verified => "Verified tasks",
        Metric::Contradicted => "Contradicted tasks",
        Metric::CompletionRate => "Completion rate",
        Metric::ToolEfficiency => "Tool efficiency",
        // The numbers have that of all calls together.
        Metric::ErrorRate => "Error rate of a session, on average",
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

/// The numbers behind a suggestion.
pub fn reason(suggestion: &Suggestion) -> String {
    let Suggestion { measured, threshold, n, .. } = suggestion;
    let count = suggestion.count.unwrap_or(0);
    let limit = percent(*threshold);
    // Both rounded to the same number would look like a mistake.
    let share = match percent(*measured) {
        same if same == limit => format!("{:.2} %", measured * 100.0),
        other => format!("{other} %"),
    };
    match suggestion.rule {
        RuleId::LowCompletionRate => {
            format!("{count} of {n} sessions completed ({share}), below {limit} %")
        }
        RuleId::LowErrorRecoveryRate => {
            format!("{count} of {n} sessions with errors recovered ({share}), below {limit} %")
        }
        RuleId::LowToolEfficiency => {
            format!("mean efficiency {measured:.2} of 5 over {n} sessions, below {threshold}")
        }
        RuleId::LowTaskType => {
            format!("mean score {measured:.2} of 5 over {n} sessions, below {threshold}")
        }
        RuleId::HighToolErrors => {
            format!("{count} of {n} calls failed ({share}), more than {limit} %")
        }
        RuleId::CommonError => {
            format!("{count} of {n} errors ({share}), at least {limit} %")
        }
    }
}

/// `4 % (3 of 75)`: the calls of tools that failed.
pub fn failed_calls(summary: &GradeSummary) -> String {
    let GradeSummary { error_rate, errors, tool_calls, .. } = summary;
    error_rate
        .map_or(ABSENT.to_owned(), |_| format!("{} ({errors} of {tool_calls})", rate(*error_rate)))
}

/// A tool's name, short enough that what follows it is not cut off.
pub fn tool(name: &str) -> String {
    one_line(name, 60)
}

/// Some tools of a class of errors.
pub fn tools(tools: &Listed<String>) -> String {
    some_of(tools, 3, tool)
}

/// Some of the sessions. Commands take the beginning of an id, and a UUID fits.
pub fn sessions(sessions: &Listed<String>) -> String {
    some_of(sessions, 4, |id| one_line(id, 40))
}

/// Some of the sessions by their requests, each with its id for the commands.
pub fn named(sessions: &Listed<String>, titles: &[String]) -> String {
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

/// The first sessions of a list, each with its request.
pub fn titled<'a>(sessions: &'a Listed<String>, titles: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let titles = titles.iter().map(String::as_str).chain(std::iter::repeat(""));
    sessions.items.iter().map(String::as_str).zip(titles).take(3).collect()
}

/// The id of a session.
pub fn id(id: &str) -> String {
    one_line(id, 40)
}

/// A request as a title.
pub fn title(request: &str) -> String {
    match one_line(request, 70) {
        line if line.is_empty() => "(no request)".to_owned(),
        line => format!("“{line}”"),
    }
}

/// Why a task is contradicted: `tests failed, and no later run passed: pytest -q`.
pub fn why(task: &ContradictedTask) -> String {
    match task.sign {
        None => "a person says so".to_owned(),
        Some(sign) if task.words.trim().is_empty() => sign.words().to_owned(),
        Some(sign) => format!("{}: {}", sign.words(), one_line(&task.words, 120)),
    }
}

/// The last part of a folder's path; other names as they are.
pub fn portion(name: &str) -> String {
    let last = name.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
    one_line(last.filter(|last| !last.is_empty()).unwrap_or(name), 40)
}

/// The splits of the week that say something: those with two portions or more of which one has
/// more than one task.
pub fn splits(report: &WeeklyReport) -> Vec<(&'static str, Vec<&Portion>, u64)> {
    let Breakdown { projects, agents, models, .. } = &report.breakdown;
    let listed = [("Project", projects), ("Agent", agents), ("Model", models)];
    listed
        .into_iter()
        .filter_map(|(name, listed)| {
            let rows: Vec<&Portion> =
                listed.items.iter().filter(|portion| portion.tasks > 1).collect();
            let others = listed.left_out + (listed.items.len() - rows.len()) as u64;
            (listed.items.len() > 1 && !rows.is_empty()).then_some((name, rows, others))
        })
        .collect()
}

/// How often people corrected agents; nothing where they never did.
pub fn corrections(report: &WeeklyReport) -> Option<String> {
    let now = report.summary.corrections;
    (now > 0).then(|| {
        let before = report.trend.before.corrections;
        let times = plural(now, "time");
        let tasks = plural(report.summary.sessions, "task");
        let earlier = plural(report.trend.before.sessions, "task");
        format!(
            "People corrected or stopped an agent {times} in {tasks}, {before} in {earlier} of the \
             four weeks before; not tested."
        )
    })
}

/// The words of an error.
pub fn example(words: &str) -> String {
    one_line(words, 160)
}

/// `file_not_found at Bash`.
pub fn cluster(cluster: &ErrorCluster) -> String {
    format!("{} at {}", cause(cluster), tool(&cluster.tool))
}

/// The cause of a cluster; its class in reports of earlier versions.
fn cause(cluster: &ErrorCluster) -> &'static str {
    match cluster.cause {
        ErrorCause::Unknown => cluster.class.name(),
        cause => cause.name(),
    }
}

/// What the errors of a cluster have in common, else one of them.
pub fn pattern(cluster: &ErrorCluster) -> String {
    let template = one_line(&cluster.template, 120);
    if template.is_empty() { example(&cluster.example) } else { template }
}

/// `3 errors in 2 sessions`.
pub fn cluster_size(cluster: &ErrorCluster) -> String {
    let sessions = plural(cluster.sessions.total(), "session");
    format!("{} in {sessions}", plural(cluster.count, "error"))
}

/// The most frequent patterns of errors.
pub fn clusters(report: &WeeklyReport) -> impl ExactSizeIterator<Item = &ErrorCluster> {
    report.problem_areas.clusters.items.iter().take(MAX_ROWS)
}

/// How many patterns are not among [`clusters`].
pub fn more_clusters(report: &WeeklyReport) -> Option<String> {
    let more = report.problem_areas.clusters.total() - clusters(report).len() as u64;
    (more > 0).then(|| format!("{} of errors.", plural(more, "more pattern")))
}

/// The tools with most errors.
pub fn worst_tools(report: &WeeklyReport) -> impl Iterator<Item = &ToolPattern> {
    report.problem_areas.tools_with_errors().take(MAX_ROWS)
}

/// A suggestion's advice.
pub fn advice(text: &str) -> String {
    one_line(text, 160)
}

/// The whole report in one paragraph, sentence by sentence.
pub fn lead(report: &WeeklyReport) -> Vec<String> {
    let (now, before) = (&report.summary, &report.trend.before);
    let only = report.agent.as_ref().map(|agent| format!("Only sessions of {}.", tool(agent)));
    let mut sentences: Vec<String> = only.into_iter().collect();
    if now.sessions == 0 {
        let earlier = match before.sessions {
            0 => "nor in the four weeks before".to_owned(),
            sessions => format!("in the four weeks before {sessions} were"),
        };
        sentences.push(format!("No session was graded in this week, {earlier}."));
        sentences.extend(not_tasks(now.not_tasks));
        return sentences;
    }
    let outcomes = &now.outcomes;
    let counted = |share: &Share, name: &str, and: &str| {
        format!("{} {name} ({}{and}{})", share.count, rate(share.rate), interval(share))
    };
    sentences.push(format!(
        "{} of this week: {}, {}, {} only claimed by the agent, {} of unknown outcome ({}).",
        plural(now.sessions, "task"),
        counted(&outcomes.verified, "verified", ", 95 % interval "),
        counted(&outcomes.contradicted, "contradicted", ", "),
        outcomes.claimed.count,
        outcomes.unknown.count,
        rate(outcomes.unknown.rate),
    ));
    sentences.extend(not_tasks(now.not_tasks));
    let earlier = match (before.avg_tool_efficiency, before.avg_response_quality) {
        (None, _) | (_, None) => String::new(),
        (efficiency, quality) => {
            format!(" (before: {} and {})", mean(efficiency), mean(quality))
        }
    };
    sentences.push(format!(
        "On a scale of 1 to 5, tool efficiency averaged {} and answer quality {}{earlier}.",
        mean(now.avg_tool_efficiency),
        mean(now.avg_response_quality),
    ));
    let recovery = &now.error_recovery_rate;
    sentences.push(if recovery.of == 0 {
        "No session met an error.".to_owned()
    } else {
        let with_errors = plural(recovery.of, "session");
        format!("{} of {with_errors} with errors recovered from them.", recovery.count)
    });
    sentences.push(verdict(report));
    sentences
}

fn verdict(report: &WeeklyReport) -> String {
    let raised: Vec<&str> = report.alerts.raised().map(|alert| metric(alert.metric)).collect();
    let tested = report.alerts.checks.iter().any(|check| check.p.is_some());
    match (raised.as_slice(), tested) {
        ([], true) => "Nothing is worse than before beyond chance.".to_owned(),
        ([], false) => format!(
            "Too few sessions to tell whether anything became worse: {} are needed in this week \
             and in the four before.",
            report.alerts.min_sessions
        ),
        (raised, _) => format!("Worse than before, beyond chance: {}.", all_of(raised)),
    }
}

/// Why there is no suggestion.
pub fn no_suggestions(report: &WeeklyReport) -> Option<String> {
    let suggestions = &report.suggestions;
    let needed = suggestions.min_sessions;
    if suggestions.too_few_sessions {
        let sessions = plural(report.summary.sessions, "session");
        return Some(format!("None: {sessions} graded, at least {needed} are needed."));
    }
    let none = suggestions.items.is_empty() && suggestions.left_out == 0;
    none.then(|| "None: every number is on the good side of its threshold.".to_owned())
}

/// The sentence above the table of tools.
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
