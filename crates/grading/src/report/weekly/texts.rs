//! What a weekly report says, as texts for any kind of page: sentences, and tables cell by cell.
//! Foreign names are bounded here; whoever shows the texts escapes them.

use super::words;
use crate::grade::{GradeSummary, Listed, Suggestions, WeeklyReport};
use selftest_text::one_line;
use selftest_text::wording::{self, plural};

/// Bytes of a tool's name.
const NAME: usize = 60;
/// Bytes of a session's id: a UUID fits. Commands take the beginning of an id.
const ID: usize = 40;
/// Bytes of an error's words.
const EXAMPLE: usize = 160;
/// Sessions named in a line.
const SESSIONS: usize = 4;
/// Rows of tools and clusters.
const ROWS: usize = 8;

/// The report in words. Rows are in the order of the tables' columns.
#[derive(Debug)]
pub struct WeeklyTexts {
    /// The whole report in one paragraph, sentence by sentence.
    pub lead: Vec<String>,
    /// What became of the files.
    pub coverage: String,
    /// Name, this week, 95 % interval, four weeks before, change.
    pub numbers: Vec<[String; 5]>,
    /// One sentence for each test.
    pub alerts: Vec<String>,
    /// What to improve.
    pub suggestions: Vec<SuggestionText>,
    /// Why there is no suggestion.
    pub no_suggestions: Option<String>,
    /// How many were left out.
    pub more_suggestions: Option<String>,
    /// Task type, sessions, completed, efficiency, quality, score.
    pub task_types: Vec<[String; 6]>,
    /// What the table of tools shows.
    pub tools_remark: String,
    /// Tool, errors, calls, failed, sessions with errors.
    pub tools: Vec<[String; 5]>,
    /// Class, errors, share, sessions, tools.
    pub classes: Vec<[String; 5]>,
    /// The most frequent pairs of class and tool.
    pub clusters: Vec<ClusterText>,
    /// How many were left out.
    pub more_clusters: Option<String>,
    /// Week, sessions, completed, efficiency, quality, recovered; newest first.
    pub weeks: Vec<[String; 6]>,
}

/// A suggestion and what it rests on.
#[derive(Debug)]
pub struct SuggestionText {
    /// What to do.
    pub text: String,
    /// The numbers behind it.
    pub numbers: String,
    /// Some of its sessions.
    pub sessions: String,
}

/// Errors of one class at one tool.
#[derive(Debug)]
pub struct ClusterText {
    /// Class and tool.
    pub what: String,
    /// Errors and sessions.
    pub numbers: String,
    /// The words of one.
    pub example: String,
    /// Some of its sessions.
    pub sessions: String,
}

impl WeeklyTexts {
    /// The texts of a report.
    pub fn of(report: &WeeklyReport) -> Self {
        let problems = &report.problem_areas;
        let shown = problems.clusters.items.iter().take(ROWS);
        let more_clusters = problems.clusters.total() - shown.len() as u64;
        let left_out = report.suggestions.left_out;
        Self {
            lead: lead(report),
            coverage: words::coverage_text(&report.coverage),
            numbers: numbers(report),
            alerts: report
                .alerts
                .checks
                .iter()
                .map(|alert| format!("{}.", words::alert_text(&report.alerts, alert)))
                .collect(),
            suggestions: report
                .suggestions
                .items
                .iter()
                .map(|suggestion| SuggestionText {
                    text: one_line(&suggestion.text, 2 * NAME),
                    numbers: words::reason(suggestion),
                    sessions: sessions(&suggestion.sessions),
                })
                .collect(),
            no_suggestions: no_suggestions(&report.suggestions, report.summary.sessions),
            more_suggestions: (left_out > 0).then(|| format!("{left_out} more of the same rules.")),
            task_types: task_types(report),
            tools_remark: tools_remark(report),
            tools: tools(report),
            classes: classes(report),
            clusters: shown
                .map(|cluster| ClusterText {
                    what: format!("{} at {}", cluster.class, name(&cluster.tool)),
                    numbers: format!(
                        "{} in {}",
                        plural(cluster.count, "error"),
                        plural(cluster.sessions.total(), "session")
                    ),
                    example: one_line(&cluster.example, EXAMPLE),
                    sessions: sessions(&cluster.sessions),
                })
                .collect(),
            more_clusters: (more_clusters > 0)
                .then(|| format!("{} of class and tool.", plural(more_clusters, "more pair"))),
            weeks: weeks(report),
        }
    }
}

/// A foreign name, short enough that what follows it is not cut off.
fn name(text: &str) -> String {
    one_line(text, NAME)
}

fn sessions(list: &Listed<String>) -> String {
    let items = list.items.iter().map(|id| one_line(id, ID)).collect();
    words::some_of(&Listed { items, left_out: list.left_out }, SESSIONS)
}

/// The whole report in one paragraph.
fn lead(report: &WeeklyReport) -> Vec<String> {
    let (now, before) = (&report.summary, &report.trend.before);
    let only = report.agent.as_ref().map(|agent| format!("Only sessions of {}.", name(agent)));
    let mut sentences: Vec<String> = only.into_iter().collect();
    let Some(rate) = now.completion_rate.rate else {
        let earlier = match before.sessions {
            0 => "nor in the four weeks before".to_owned(),
            sessions => format!("in the four weeks before {sessions} were"),
        };
        sentences.push(format!("No session was graded in this week, {earlier}."));
        return sentences;
    };
    let compared = match before.completion_rate.rate {
        None => "; there is no session of the four weeks before to compare with".to_owned(),
        Some(earlier) => {
            let order = if rate < earlier {
                "lower than"
            } else if rate > earlier {
                "higher than"
            } else {
                "the same as"
            };
            let earlier = wording::percent(earlier);
            let sessions = plural(before.sessions, "session");
            format!(", {order} the {earlier} % of {sessions} in the four weeks before")
        }
    };
    sentences.push(format!(
        "{} of this week graded, {} % completed (95 % interval {}){compared}.",
        plural(now.sessions, "session"),
        wording::percent(rate),
        words::interval(&now.completion_rate),
    ));
    let earlier = match (before.avg_tool_efficiency, before.avg_response_quality) {
        (None, _) | (_, None) => String::new(),
        (efficiency, quality) => {
            format!(" (before: {} and {})", words::mean(efficiency), words::mean(quality))
        }
    };
    sentences.push(format!(
        "On a scale of 1 to 5, tool efficiency averaged {} and answer quality {}{earlier}.",
        words::mean(now.avg_tool_efficiency),
        words::mean(now.avg_response_quality),
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
    let raised: Vec<String> =
        report.alerts.raised().map(|alert| words::metric(alert.metric).to_owned()).collect();
    let tested = report.alerts.checks.iter().any(|check| check.p.is_some());
    match (raised.as_slice(), tested) {
        ([], true) => "Nothing is worse than before beyond chance.".to_owned(),
        ([], false) => format!(
            "Too few sessions to tell whether anything became worse: {} are needed in this week \
             and in the four before.",
            report.alerts.min_sessions
        ),
        (raised, _) => format!("Worse than before, beyond chance: {}.", words::all_of(raised)),
    }
}

fn numbers(report: &WeeklyReport) -> Vec<[String; 5]> {
    let (now, before, change) = (&report.summary, &report.trend.before, &report.trend.change);
    let absent = || words::ABSENT.to_owned();
    let failed = |summary: &GradeSummary| match summary.error_rate {
        Some(_) => format!(
            "{} ({} of {})",
            words::rate(summary.error_rate),
            summary.errors,
            summary.tool_calls
        ),
        None => absent(),
    };
    let rows = [
        [
            "Sessions graded".to_owned(),
            now.sessions.to_string(),
            absent(),
            before.sessions.to_string(),
            absent(),
        ],
        [
            "Task completed".to_owned(),
            words::share(&now.completion_rate),
            words::interval(&now.completion_rate),
            words::share(&before.completion_rate),
            words::points(change.completion_rate),
        ],
        [
            "Tool efficiency".to_owned(),
            words::mean(now.avg_tool_efficiency),
            absent(),
            words::mean(before.avg_tool_efficiency),
            words::change(change.avg_tool_efficiency),
        ],
        [
            "Answer quality".to_owned(),
            words::mean(now.avg_response_quality),
            absent(),
            words::mean(before.avg_response_quality),
            words::change(change.avg_response_quality),
        ],
        [
            "Recovered from errors".to_owned(),
            words::share(&now.error_recovery_rate),
            words::interval(&now.error_recovery_rate),
            words::share(&before.error_recovery_rate),
            words::points(change.error_recovery_rate),
        ],
        [
            "Tool calls failed, all together".to_owned(),
            failed(now),
            absent(),
            failed(before),
            words::points(change.error_rate),
        ],
    ];
    rows.into()
}

fn no_suggestions(suggestions: &Suggestions, sessions: u64) -> Option<String> {
    let needed = suggestions.min_sessions;
    if suggestions.too_few_sessions {
        let sessions = plural(sessions, "session");
        return Some(format!("None: {sessions} graded, at least {needed} are needed."));
    }
    let none = suggestions.items.is_empty() && suggestions.left_out == 0;
    none.then(|| "None: every number is on the good side of its threshold.".to_owned())
}

fn task_types(report: &WeeklyReport) -> Vec<[String; 6]> {
    let patterns = report.problem_areas.task_types.iter();
    let rows = patterns.map(|pattern| {
        [
            pattern.task_type.to_string(),
            pattern.sessions.to_string(),
            words::share(&pattern.completion_rate),
            words::mean(Some(pattern.avg_tool_efficiency)),
            words::mean(Some(pattern.avg_response_quality)),
            words::mean(Some(pattern.score)),
        ]
    });
    rows.collect()
}

fn tools_remark(report: &WeeklyReport) -> String {
    let tools = &report.problem_areas.tools;
    let called = plural(tools.total(), "tool");
    let erring = tools.items.iter().filter(|tool| tool.errors > 0).count();
    let errors = plural(report.summary.errors, "error");
    let calls = plural(report.summary.tool_calls, "call");
    match erring {
        0 => format!("None: {called}, {calls}, no error."),
        _ if erring > ROWS => {
            format!("{called}, {calls}, {errors}; the {ROWS} tools with most errors:")
        }
        _ => format!("{called}, {calls}, {errors}:"),
    }
}

fn tools(report: &WeeklyReport) -> Vec<[String; 5]> {
    let erring = report.problem_areas.tools.items.iter().filter(|tool| tool.errors > 0);
    let rows = erring.take(ROWS).map(|tool| {
        [
            name(&tool.tool),
            tool.errors.to_string(),
            tool.calls.to_string(),
            words::rate(tool.error_rate),
            format!("{} of {}", tool.sessions_with_errors, tool.sessions),
        ]
    });
    rows.collect()
}

fn classes(report: &WeeklyReport) -> Vec<[String; 5]> {
    let rows = report.problem_areas.error_classes.iter().map(|pattern| {
        let tools = pattern.tools.items.iter().map(|tool| name(tool)).collect();
        let tools = Listed { items: tools, left_out: pattern.tools.left_out };
        [
            pattern.class.to_string(),
            pattern.count.to_string(),
            words::rate(Some(pattern.share)),
            pattern.sessions.to_string(),
            words::some_of(&tools, 3),
        ]
    });
    rows.collect()
}

fn weeks(report: &WeeklyReport) -> Vec<[String; 6]> {
    let newest_first = report.history.iter().rev();
    newest_first.map(|week| week_row(week.week.to_string(), &week.summary)).collect()
}

/// The columns of a week.
fn week_row(week: String, summary: &GradeSummary) -> [String; 6] {
    [
        week,
        summary.sessions.to_string(),
        words::share(&summary.completion_rate),
        words::mean(summary.avg_tool_efficiency),
        words::mean(summary.avg_response_quality),
        words::share(&summary.error_recovery_rate),
    ]
}
