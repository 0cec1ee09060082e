//! The tables of a weekly report as text, shared by Markdown and HTML.
//!
//! Rows and columns without information are left out, with a remark. The caller must escape the
//! cells.

use super::format::{self, ABSENT};
use crate::grade::breakdown::{TaskBreakdown, TaskPortion};
use crate::grade::notable::MAX_TASKS;
use crate::grade::patterns::TaskTypePattern;
use crate::grade::spending::format_money;
use crate::grade::weekly::WeekNumbers;
use crate::grade::{
    CostSummary, DifferenceVerdict, GradeSummary, GroupDifference, OutcomeShares, Proportion,
    TaskMeasure, TruncatedList, WeeklyReport,
};
use selftest_text::wording::{minutes, plural};

/// A table whose first column names its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportTable {
    /// Title of the table.
    pub caption: String,
    /// Column headers.
    pub head: Vec<String>,
    /// Cells; each row has as many as there are headers.
    pub rows: Vec<Vec<String>>,
    /// Sentences below the table.
    pub remarks: Vec<String>,
}

/// A column: its header and a function for its cells.
struct TableColumn<'a, T> {
    head: &'a str,
    cell: Box<dyn Fn(&T) -> String + 'a>,
    /// Returns true if a row has something to show in this column.
    has_content: Box<dyn Fn(&T) -> bool + 'a>,
}

impl<'a, T> TableColumn<'a, T> {
    fn new(head: &'a str, cell: impl Fn(&T) -> String + 'a) -> Self {
        Self { head, cell: Box::new(cell), has_content: Box::new(|_| true) }
    }

    /// Leaves the column out if no row has something to show.
    fn hide_if_empty(mut self, speaks: impl Fn(&T) -> bool + 'a) -> Self {
        self.has_content = Box::new(speaks);
        self
    }
}

fn table<T>(caption: &str, rows: &[&T], columns: Vec<TableColumn<'_, T>>) -> ReportTable {
    let spoken: Vec<TableColumn<'_, T>> = columns
        .into_iter()
        // Owners read a column of zeros as a result, so an empty one is left out and a remark says
        // so.
        .filter(|column| rows.iter().any(|row| (column.has_content)(row)))
        .collect();
    ReportTable {
        caption: caption.to_owned(),
        head: spoken.iter().map(|column| column.head.to_owned()).collect(),
        rows: rows
            .iter()
            .map(|row| spoken.iter().map(|column| (column.cell)(row)).collect())
            .collect(),
        remarks: Vec::new(),
    }
}

/// Returns the outcome columns that at least one row fills.
fn outcomes<'a, T>(of: impl Fn(&T) -> OutcomeShares + Copy + 'a) -> [TableColumn<'a, T>; 2] {
    [
        TableColumn::new("Checks passed", move |row: &T| format::share(&of(row).checks_passed))
            .hide_if_empty(move |row| of(row).checks_passed.count > 0),
        TableColumn::new("Contradicted", move |row: &T| format::share(&of(row).contradicted))
            .hide_if_empty(move |row| of(row).contradicted.count > 0),
    ]
}

/// Returns a sentence about the outcomes that no row has.
fn missing_outcomes_remark(any: &OutcomeShares, rows: &[OutcomeShares]) -> Option<String> {
    let is_silent = |share: fn(&OutcomeShares) -> u64| rows.iter().all(|row| share(row) == 0);
    let none = [
        (
            "had checks that passed",
            is_silent(|row| row.checks_passed.count),
            any.checks_passed.count,
        ),
        ("was contradicted", is_silent(|row| row.contradicted.count), any.contradicted.count),
    ];
    let names: Vec<&str> = none
        .iter()
        .filter(|(_, is_silent, all)| *is_silent && *all > 0)
        .map(|(name, ..)| *name)
        .collect();
    (!names.is_empty()).then(|| format!("None of these tasks {}.", names.join(" or ")))
}

/// Extracts a share from a summary.
type SummaryShare = fn(&GradeSummary) -> Proportion;

/// Compares the numbers of the week with the previous four weeks. Leaves out rows without anything
/// to count on either side.
pub fn numbers(report: &WeeklyReport) -> ReportTable {
    let (now, before) = (&report.summary, &report.trend.before);
    let changed = |measure| change(report, measure);
    let shares: [(&str, SummaryShare, Option<TaskMeasure>); 6] = [
        ("Checks passed", |of| of.outcomes.checks_passed, Some(TaskMeasure::ChecksPassed)),
        ("Contradicted", |of| of.outcomes.contradicted, Some(TaskMeasure::Contradicted)),
        ("Only claimed by the agent", |of| of.outcomes.claimed, None),
        ("Outcome unknown", |of| of.outcomes.unknown, None),
        ("Corrected or stopped by a person", |of| of.corrected, Some(TaskMeasure::Corrected)),
        ("Recovered from errors", |of| of.error_recovery_rate, Some(TaskMeasure::Recovered)),
    ];
    let mut rows = vec![vec![
        "Tasks".to_owned(),
        now.sessions.to_string(),
        ABSENT.to_owned(),
        before.sessions.to_string(),
        ABSENT.to_owned(),
    ]];
    for (name, share, measure) in shares {
        let (own, earlier) = (share(now), share(before));
        // The outcomes are a partition, so one that no task has says nothing.
        let is_recovery = measure == Some(TaskMeasure::Recovered);
        let is_silent = !is_recovery && own.count + earlier.count == 0;
        if is_silent || own.of + earlier.of == 0 {
            continue;
        }
        rows.push(vec![
            name.to_owned(),
            format::share(&own),
            format::interval(&own),
            format::share(&earlier),
            measure.map_or(ABSENT.to_owned(), changed),
        ]);
    }
    let mut add = |name: &str, cells: [String; 2], change: String| {
        if cells.iter().any(|cell| cell != ABSENT) {
            let [own, earlier] = cells;
            rows.push(vec![name.to_owned(), own, ABSENT.to_owned(), earlier, change]);
        }
    };
    let both = [now, before];
    add(
        "Tool efficiency",
        both.map(|of| format::mean(of.avg_tool_efficiency)),
        changed(TaskMeasure::ToolEfficiency),
    );
    add(
        "Answer quality",
        both.map(|of| format::mean(of.avg_response_quality)),
        changed(TaskMeasure::AnswerQuality),
    );
    add("Tool calls failed, all together", both.map(format::failed_calls), ABSENT.to_owned());
    let failed = report.differences.iter().find(|one| one.measure == TaskMeasure::FailedCalls);
    if let Some(failed) = failed {
        let cells = [failed.own, failed.other].map(format::rate);
        add("Tool calls failed in a task, mean", cells, changed(TaskMeasure::FailedCalls));
    }
    add(
        "First to last event of a task, median",
        both.map(|of| of.time.median.map_or(ABSENT.to_owned(), minutes)),
        changed(TaskMeasure::Duration),
    );
    let cost = &report.cost;
    let median = |of: &CostSummary| {
        of.median.map_or(ABSENT.to_owned(), |median| format_money(median, &of.currency))
    };
    add(
        "Cost of a task, median where known",
        [median(&cost.now), median(&cost.before)],
        ABSENT.to_owned(),
    );
    if now.rewinds + before.rewinds > 0 {
        add(
            "Conversations taken back by a person",
            both.map(|of| of.rewinds.to_string()),
            ABSENT.to_owned(),
        );
    }
    let mut head = vec!["", "This week", "95 % interval", "Four weeks before", "Change"];
    // If nothing was tested, the opening paragraph already says so once.
    if report.differences.iter().all(|one| one.verdict == DifferenceVerdict::NotTested) {
        head.pop();
        for row in &mut rows {
            row.pop();
        }
    }
    // The interval of a few tasks is nearly everything.
    if now.sessions <= MAX_TASKS as u64 {
        const INTERVAL: usize = 2;
        head.remove(INTERVAL);
        for row in &mut rows {
            row.remove(INTERVAL);
        }
    }
    ReportTable {
        caption: "This week against the four weeks before".to_owned(),
        head: head.into_iter().map(str::to_owned).collect(),
        rows,
        remarks: Vec::new(),
    }
}

/// Describes the change of a number. It has a direction only if a test found one.
fn change(report: &WeeklyReport, measure: TaskMeasure) -> String {
    let found = report.differences.iter().find(|one| one.measure == measure);
    found.map_or("not tested".to_owned(), format::difference)
}

/// Splits the week by project, by agent and by model. A split needs at least two portions, one of
/// them with more than one task.
pub fn splits(report: &WeeklyReport) -> Vec<ReportTable> {
    let TaskBreakdown { projects, agents, models, .. } = &report.breakdown;
    [("Project", projects), ("Agent", agents), ("Model", models)]
        .into_iter()
        .filter_map(|(name, portions)| split(report, name, portions))
        .collect()
}

fn split(
    report: &WeeklyReport,
    name: &str,
    portions: &TruncatedList<TaskPortion>,
) -> Option<ReportTable> {
    let rows: Vec<&TaskPortion> =
        // A single task says nothing about its project, agent or model.
        portions.items.iter().filter(|portion| portion.tasks > 1).collect();
    // A single row repeats the table of the week.
    if rows.is_empty() || portions.total() < 2 {
        return None;
    }
    let is_tested = |portion: &TaskPortion| {
        portion.against_the_rest.iter().any(|one| one.verdict != DifferenceVerdict::NotTested)
    };
    let [passed, contradicted] = outcomes(|portion: &TaskPortion| portion.outcomes);
    let columns = vec![
        TableColumn::new(name, |portion: &TaskPortion| format::portion(&portion.name)),
        TableColumn::new("Tasks", |portion: &TaskPortion| portion.tasks.to_string()),
        passed,
        contradicted,
        TableColumn::new("Corrections", |portion: &TaskPortion| portion.corrections.to_string())
            .hide_if_empty(|portion| portion.corrections > 0),
        TableColumn::new("Taken back", |portion: &TaskPortion| portion.rewinds.to_string())
            .hide_if_empty(|portion| portion.rewinds > 0),
        TableColumn::new("Calls failed", |portion: &TaskPortion| format::rate(portion.error_rate))
            .hide_if_empty(|portion| portion.error_rate.is_some_and(|rate| rate > 0.0)),
        TableColumn::new("First to last event, median", |portion: &TaskPortion| {
            portion.time.median.map_or(ABSENT.to_owned(), minutes)
        })
        .hide_if_empty(|portion| portion.time.tasks > 0),
        TableColumn::new("Cost", |portion: &TaskPortion| format::portion_cost(&portion.cost))
            .hide_if_empty(|portion| portion.cost.known > 0),
        TableColumn::new("Against all others", differences_from_rest).hide_if_empty(is_tested),
    ];
    let mut found = table(&format!("By {}", name.to_lowercase()), &rows, columns);
    let single = portions.items.len() - rows.len();
    let kinds = |count: u64| plural(count, &name.to_lowercase());
    if single > 0 {
        found.remarks.push(format!("{} with a single task left out.", kinds(single as u64)));
    }
    if portions.left_out > 0 {
        found.remarks.push(format!("{} with fewer tasks left out.", kinds(portions.left_out)));
    }
    let own: Vec<OutcomeShares> = rows.iter().map(|portion| portion.outcomes).collect();
    found.remarks.extend(missing_outcomes_remark(&report.summary.outcomes, &own));
    if !rows.iter().any(|portion| is_tested(portion)) {
        found.remarks.push(format!(
            "Too few tasks to test whether they differ: {} are needed on each side.",
            report.alerts.min_sessions
        ));
    }
    Some(found)
}

/// Describes how a portion differs significantly from all others.
fn differences_from_rest(portion: &TaskPortion) -> String {
    let tested =
        portion.against_the_rest.iter().filter(|one| one.verdict != DifferenceVerdict::NotTested);
    if tested.clone().next().is_none() {
        return "too few tasks".to_owned();
    }
    let words = |one: &GroupDifference| {
        let more = match one.verdict {
            DifferenceVerdict::Up => "more",
            DifferenceVerdict::Down => "fewer",
            DifferenceVerdict::WithinChance | DifferenceVerdict::NotTested => return None,
        };
        let what = match one.measure {
            TaskMeasure::ChecksPassed => "checks passed",
            TaskMeasure::Contradicted => "contradicted",
            _ => "calls fail",
        };
        Some(format!("{more} {what} ({})", format::p_value(one)))
    };
    let found: Vec<String> = tested.filter_map(words).collect();
    if found.is_empty() { "no difference beyond chance".to_owned() } else { found.join(", ") }
}

/// Lists task types, weakest first, if at least two of them have more than one task.
pub fn task_types(report: &WeeklyReport) -> Option<ReportTable> {
    let types = &report.problem_areas.task_types;
    let rows: Vec<_> = types.iter().filter(|row| row.sessions > 1).collect();
    if rows.len() < 2 {
        return None;
    }
    let [passed, contradicted] = outcomes(|row: &TaskTypePattern| row.outcomes);
    let columns = vec![
        TableColumn::new("Task type", |row: &TaskTypePattern| row.task_type.to_string()),
        TableColumn::new("Tasks", |row: &TaskTypePattern| row.sessions.to_string()),
        passed,
        contradicted,
        TableColumn::new("Efficiency", |row: &TaskTypePattern| {
            format::mean(Some(row.avg_tool_efficiency))
        }),
        TableColumn::new("Answer quality", |row: &TaskTypePattern| {
            format::mean(Some(row.avg_response_quality))
        }),
        TableColumn::new("Score", |row: &TaskTypePattern| format::mean(Some(row.score))),
    ];
    let mut found = table("Task types, the weakest first", &rows, columns);
    let own: Vec<OutcomeShares> = rows.iter().map(|row| row.outcomes).collect();
    found.remarks.extend(missing_outcomes_remark(&report.summary.outcomes, &own));
    let single = types.len() - rows.len();
    if single > 0 {
        let left_out = plural(single as u64, "task type");
        found.remarks.push(format!("{left_out} with a single task left out."));
    }
    found.remarks.push(
        "The score is the mean of efficiency, quality and completion (5 where the task appears \
         completed, else 1). Differences between task types are not tested."
            .to_owned(),
    );
    Some(found)
}

/// Lists the weeks of the charts that have tasks, newest first. Returns `None` if fewer than two
/// have any.
pub fn weeks(report: &WeeklyReport) -> Option<ReportTable> {
    let weeks: Vec<_> =
        report.history.iter().rev().filter(|week| week.summary.sessions > 0).collect();
    if weeks.len() < 2 {
        return None;
    }
    let [passed, contradicted] = outcomes(|week: &WeekNumbers| week.summary.outcomes);
    let columns = vec![
        TableColumn::new("Week", |week: &WeekNumbers| week.week.to_string()),
        TableColumn::new("Tasks", |week: &WeekNumbers| week.summary.sessions.to_string()),
        passed,
        contradicted,
        TableColumn::new("Efficiency", |week: &WeekNumbers| {
            format::mean(week.summary.avg_tool_efficiency)
        }),
        TableColumn::new("Answer quality", |week: &WeekNumbers| {
            format::mean(week.summary.avg_response_quality)
        }),
        TableColumn::new("Recovered", |week: &WeekNumbers| {
            format::share(&week.summary.error_recovery_rate)
        })
        .hide_if_empty(|week| week.summary.error_recovery_rate.of > 0),
    ];
    let mut found = table("Weeks, newest first", &weeks, columns);
    let silent = report.history.len() - weeks.len();
    if silent > 0 {
        let left_out = plural(silent as u64, "week");
        found.remarks.push(format!("{left_out} without a task left out."));
    }
    Some(found)
}
