//! The opening paragraph of a weekly report. The caller must escape it.

use super::finding;
use super::format::{all_of, interval, mean, not_tasks, rate, tool};
use crate::grade::notable::MAX_TASKS;
use crate::grade::spending::{self, format_money};
use crate::grade::{
    CostSummary, DifferenceVerdict, GradeSummary, GroupDifference, TaskMeasure, WeeklyReport,
};
use selftest_text::wording::{minutes, plural};

/// Summarizes the whole report in one paragraph, as a list of sentences.
pub fn sentences(report: &WeeklyReport) -> Vec<String> {
    let (now, before) = (&report.summary, &report.trend.before);
    let only = report.agent.as_ref().map(|agent| format!("Only sessions of {}.", tool(agent)));
    let mut sentences: Vec<String> = only.into_iter().collect();
    if now.sessions == 0 {
        let earlier = match before.sessions {
            0 => "nor in the four weeks before".to_owned(),
            sessions => format!("in the four weeks before {sessions} were"),
        };
        sentences.push(format!("No task was graded in this week, {earlier}."));
        sentences.extend(not_tasks(now.not_tasks));
        return sentences;
    }
    sentences.push(outcomes(now));
    sentences.extend(undecided(now));
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
    sentences.extend(effort(report));
    sentences.push(verdict(report));
    sentences
}

/// Counts the tasks by outcome. Of a few tasks, shares and intervals say no more than the counts.
fn outcomes(now: &GradeSummary) -> String {
    let is_small = now.sessions <= MAX_TASKS as u64;
    let of = &now.outcomes;
    let counted = [
        (&of.checks_passed, "with checks that passed", true),
        (&of.contradicted, "contradicted by a check or a person", true),
        (&of.claimed, "only claimed by the agent", false),
        (&of.unknown, "of unknown outcome", false),
    ];
    let counted = counted.into_iter().filter(|(share, ..)| share.count > 0);
    let parts: Vec<String> = counted
        .map(|(share, name, has_interval)| match (is_small, has_interval) {
            (true, _) => format!("{} {name}", share.count),
            (false, true) => format!(
                "{} {name} ({}, 95 % interval {})",
                share.count,
                rate(share.rate),
                interval(share)
            ),
            (false, false) => format!("{} {name} ({})", share.count, rate(share.rate)),
        })
        .collect();
    format!("{} of this week: {}.", plural(now.sessions, "task"), parts.join(", "))
}

/// Says how the tests ended of tasks that are only claimed, or whose outcome is unknown.
fn undecided(now: &GradeSummary) -> Option<String> {
    let of = now.undecided_tests;
    let failed = (of.failed > 0)
        .then(|| format!("{} ended with tests that failed, as they may have before", of.failed));
    let not_run = (of.not_run > 0).then(|| format!("in {} no test ran", of.not_run));
    let parts: Vec<String> = failed.into_iter().chain(not_run).collect();
    let all = now.outcomes.claimed.count + now.outcomes.unknown.count;
    (!parts.is_empty()).then(|| format!("Of the {all} that nothing decides, {}.", parts.join("; ")))
}

/// Describes the significant changes from the previous four weeks.
fn verdict(report: &WeeklyReport) -> String {
    let name = |measure: TaskMeasure| match measure {
        TaskMeasure::ChecksPassed => "tasks whose checks passed",
        TaskMeasure::Contradicted => "contradicted tasks",
        TaskMeasure::Corrected => "tasks that a person corrected",
        TaskMeasure::Recovered => "recovery from errors",
        TaskMeasure::ToolEfficiency => "tool efficiency",
        TaskMeasure::AnswerQuality => "answer quality",
        TaskMeasure::FailedCalls => "failed calls of a task",
        TaskMeasure::Duration => "time of a task",
        TaskMeasure::MetCause => "tasks that met a cause",
    };
    let causes = || report.findings.causes.items.iter().chain(&report.findings.single.items);
    let is_told = |one: &&GroupDifference| {
        matches!(one.verdict, DifferenceVerdict::Up | DifferenceVerdict::Down)
    };
    let numbers = report.differences.iter().filter(is_told).map(|one| {
        let direction = if one.verdict == DifferenceVerdict::Up { "up" } else { "down" };
        format!("{} {direction}", name(one.measure))
    });
    let met = |wanted: DifferenceVerdict, more: &str| {
        let found = causes().filter(|one| one.difference.verdict == wanted);
        let names: Vec<String> = found.map(finding::name).collect();
        (!names.is_empty()).then(|| format!("{more} tasks met {}", names.join(", ")))
    };
    let causes = [met(DifferenceVerdict::Up, "more"), met(DifferenceVerdict::Down, "fewer")];
    let changed: Vec<String> = numbers.chain(causes.into_iter().flatten()).collect();
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    let is_tested =
        report.differences.iter().any(|one| one.verdict != DifferenceVerdict::NotTested);
    match (changed.as_slice(), is_tested) {
        ([], true) => "Nothing differs from the four weeks before by more than chance.".to_owned(),
        ([], false) => format!(
            "Too few tasks to tell whether anything changed: {} are needed in this week and in the \
             four before.",
            report.alerts.min_sessions
        ),
        (changed, _) => {
            format!("Changed against the four weeks before, beyond chance: {}.", all_of(changed))
        }
    }
}

/// Describes how often people intervened and how long the tasks took.
fn effort(report: &WeeklyReport) -> Vec<String> {
    let now = &report.summary;
    let mut sentences = Vec::new();
    if now.corrections > 0 {
        let (times, tasks) = (plural(now.corrections, "time"), plural(now.corrected.count, "task"));
        sentences.push(format!("People corrected or stopped an agent {times}, in {tasks}."));
    }
    if now.rewinds > 0 {
        let times = plural(now.rewinds, "time");
        sentences.push(format!("They took a conversation back {times}."));
    }
    if let Some(median) = now.time.median {
        let (all, median) = (minutes(now.time.seconds), minutes(median));
        let tasks = plural(now.time.tasks, "task");
        sentences.push(format!(
            "From the first event to the last, pauses among them, {tasks} with times took {all}, \
             the median {median}."
        ));
    }
    sentences.extend(cost(&report.cost.now));
    sentences
}

/// Describes the cost of the tasks, and for how many it is unknown: `12.30 USD for 14 tasks (median
/// 0.61 USD); …`.
fn cost(of: &CostSummary) -> Option<String> {
    let unknown = [
        (of.unpriced, spending::describe_unpriced(&of.unpriced_models)),
        (of.without_tokens, "no tokens were recorded".to_owned()),
    ];
    let unknown: Vec<String> = unknown
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("unknown for {} ({why})", plural(*count, "task")))
        .collect();
    let known = of.median.map(|median| {
        format!(
            "{} for {} (median {})",
            format_money(of.amount, &of.currency),
            plural(of.known, "task"),
            format_money(median, &of.currency)
        )
    });
    let parts: Vec<String> = known.into_iter().chain(unknown).collect();
    (!parts.is_empty()).then(|| format!("Cost: {}.", parts.join("; ")))
}
