//! Events of a week worth looking at, for people with a few tasks a week, of which no test can say
//! anything. At most three, and none where nothing stands out.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use super::outcome::{OutcomeEvidence, OutcomeSign};
use super::spending::{TokenCost, format_money};
use super::{ErrorCount, GradePoint, GradeRecord, TaskOutcome};
use selftest_models::prices::ModelPrices;

/// Largest number of tasks of a week whose events are named one by one.
pub const MAX_TASKS: usize = 7;
/// Number of events.
const MAX_EVENTS: usize = 3;
/// Fewest equal errors that count as repeated, and errors in a row that count as a loop.
const MIN_REPEATS: u64 = 3;
const MIN_RUN: u64 = 3;
/// Multiple of the median from which a cost stands out.
const HIGH_COST: f64 = 2.0;

/// Kind of an event worth looking at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum NotableKind {
    /// The person objected, and nothing resolved it.
    Objection,
    /// The same error occurred several times.
    RepeatedError,
    /// Several calls in a row failed.
    Loop,
    /// The task cost far more than others.
    Cost,
}

/// An event worth looking at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotableEvent {
    /// Kind of the event.
    pub kind: NotableKind,
    /// ID of the session.
    pub session_id: String,
    /// Request of the session.
    pub title: String,
    /// Number of the event in the session, if it is one event.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub event: Option<u64>,
    /// Description, with the fix where one is known.
    pub words: String,
}

/// Returns the events worth looking at of a week with few tasks, and none of a week with more:
/// there the tables and tests say more. `earlier` are the same person's tasks of the months before.
pub fn notable_events(
    tasks: &[&GradeRecord],
    earlier: &[&GradeRecord],
    prices: &ModelPrices,
) -> Vec<NotableEvent> {
    if tasks.is_empty() || tasks.len() > MAX_TASKS {
        return Vec::new();
    }
    let repeated = repeated_error(tasks);
    let in_repeated = repeated.as_ref().map(|event| event.session_id.clone());
    let found = [
        objection(tasks),
        repeated,
        // A loop of the repeated error would be the same event twice.
        longest_loop(tasks).filter(|event| in_repeated.as_ref() != Some(&event.session_id)),
        largest_cost(tasks, earlier, prices),
    ];
    found.into_iter().flatten().take(MAX_EVENTS).collect()
}

fn event(kind: NotableKind, task: &GradeRecord, event: Option<u64>, words: String) -> NotableEvent {
    let title = task.task_summary.clone().unwrap_or_default();
    NotableEvent { kind, session_id: task.session_id.clone(), title, event, words }
}

fn objection(tasks: &[&GradeRecord]) -> Option<NotableEvent> {
    let said = |sign: &&OutcomeEvidence| {
        matches!(
            sign.sign,
            OutcomeSign::UserComplains
                | OutcomeSign::UserCorrects
                | OutcomeSign::UserReverts
                | OutcomeSign::UserAsksAgain
                | OutcomeSign::UserInterrupts
        )
    };
    let of_task = |task: &&GradeRecord| {
        let sign = task.details.outcome_evidence.iter().find(said)?.clone();
        Some(((task.outcome == TaskOutcome::Contradicted, task.details.corrections), sign))
    };
    let (task, (_, sign)) = tasks
        .iter()
        .filter_map(|task| Some((task, of_task(task)?)))
        // An objection that the end of the task confirms goes first, then the task with most
        // corrections.
        .max_by_key(|(_, (rank, _))| *rank)?;
    let words = if sign.words.is_empty() {
        sign.sign.words().to_owned()
    } else {
        format!("{}: “{}”", sign.sign.words(), selftest_text::one_line(&sign.words, 120))
    };
    Some(event(NotableKind::Objection, task, Some(sign.event), words))
}

fn repeated_error(tasks: &[&GradeRecord]) -> Option<NotableEvent> {
    let errors: Vec<(&GradeRecord, &ErrorCount)> = tasks
        .iter()
        .flat_map(|task| task.details.errors.iter().map(move |error| (*task, error)))
        .collect();
    let is_same = |one: &ErrorCount, other: &ErrorCount| {
        one.cause == other.cause
            && one.template == other.template
            // Agents name their shells differently; without words, only the tool tells errors apart.
            && (one.tool == other.tool || !one.template.is_empty())
    };
    let same = |one: &ErrorCount| -> Vec<(&GradeRecord, &ErrorCount)> {
        errors.iter().copied().filter(|(_, other)| is_same(one, other)).collect()
    };
    let count = |one: &ErrorCount| {
        same(one).iter().fold(0_u64, |count, (_, other)| count.saturating_add(other.count))
    };
    let (task, error) =
        // Summed over the tasks: an error of every task is seen even if no task has it three times.
        errors.iter().max_by_key(|(_, error)| (count(error), Reverse(error.first_event)))?;
    let times = count(error);
    if times < MIN_REPEATS {
        return None;
    }
    let same = same(error);
    let places: BTreeSet<&str> = same.iter().map(|(task, _)| task.session_id.as_str()).collect();
    let tools: BTreeSet<&str> = same.iter().map(|(_, other)| other.tool.as_str()).collect();
    let at = if tools.len() > 1 {
        format!("“{}”", selftest_text::one_line(&error.template, 120))
    } else {
        format!("of {}", selftest_text::one_line(&error.tool, 40))
    };
    let within =
        if places.len() > 1 { format!(" in {} tasks", places.len()) } else { String::new() };
    let fix = error.cause.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
    let words = format!("{times} times {} {at}{within}{fix}", error.cause);
    Some(event(NotableKind::RepeatedError, task, Some(error.first_event), words))
}

fn longest_loop(tasks: &[&GradeRecord]) -> Option<NotableEvent> {
    let task = tasks.iter().max_by_key(|task| task.details.longest_error_run)?;
    let run = task.details.longest_error_run;
    // The evidence has where the run begins; the errors are sorted by class.
    let evidence = &task.details.evidence;
    let first = evidence.iter().find(|it| it.point == GradePoint::RepeatedErrors);
    let first = first.and_then(|it| it.event);
    let words = format!("{run} calls in a row failed");
    (run >= MIN_RUN).then(|| event(NotableKind::Loop, task, first, words))
}

/// Returns the most expensive task, if it stands out from the person's own tasks.
fn largest_cost(
    tasks: &[&GradeRecord],
    earlier: &[&GradeRecord],
    prices: &ModelPrices,
) -> Option<NotableEvent> {
    let amount = |task: &&GradeRecord| TokenCost::compute(&task.details.spent, prices).amount;
    let costs = tasks.iter().filter_map(|task| Some((task, amount(task)?)));
    let (task, most) = costs.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = tasks.iter().filter(|other| other.session_id != task.session_id);
    let others: Vec<f64> = others.chain(earlier).filter_map(amount).collect();
    let median = selftest_stats::median(&others)?;
    let words = format!(
        "{}, where the median of your {} other tasks with a cost is {}",
        format_money(most, &prices.currency),
        others.len(),
        format_money(median, &prices.currency)
    );
    // Free models make the median 0, and any cost would be a multiple of it.
    (most > 0.0 && most >= HIGH_COST * median).then(|| event(NotableKind::Cost, task, None, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::fixture::record;
    use crate::grade::{ErrorClass, GradeEvidence, TaskType};

    fn found(records: &[GradeRecord]) -> Vec<(NotableKind, String)> {
        let tasks: Vec<&GradeRecord> = records.iter().collect();
        let events = notable_events(&tasks, &[], &ModelPrices::default());
        events.into_iter().map(|one| (one.kind, one.words)).collect()
    }

    #[test]
    fn what_stands_out_is_named_and_nothing_else() {
        let quiet = record("a", TaskType::General, true, 3, 3);
        assert_eq!(found(std::slice::from_ref(&quiet)), [], "nothing stands out");
        let mut said_no = record("b", TaskType::General, false, 3, 3);
        said_no.details.outcome_evidence = vec![OutcomeEvidence {
            sign: OutcomeSign::UserCorrects,
            event: 7,
            words: "no, i mean the other form".to_owned(),
        }];
        let failing = record("c", TaskType::General, true, 3, 3).used("Bash", 9).failed(
            "Bash",
            ErrorClass::Timeout,
            4,
            "timed out",
        );
        let mut looping = record("d", TaskType::General, true, 3, 3);
        looping.details.longest_error_run = 6;
        looping.details.evidence.push(GradeEvidence {
            point: GradePoint::RepeatedErrors,
            worth: -1.0,
            event: Some(31),
            words: String::new(),
        });
        let run = longest_loop(&[&looping]).unwrap();
        assert_eq!(run.event, Some(31));
        let events = found(&[quiet, said_no, failing, looping]);
        assert_eq!(events.len(), 3, "{events:?}");
        assert_eq!(
            events[0],
            (
                NotableKind::Objection,
                "the person corrects the agent: “no, i mean the other form”".to_owned()
            )
        );
        assert!(events[1].1.starts_with("4 times timeout of Bash; "), "{events:?}");
        assert_eq!(events[2], (NotableKind::Loop, "6 calls in a row failed".to_owned()));
    }

    #[test]
    fn one_error_of_two_shells_is_one() {
        let failing = |id: &str, tool: &str| {
            let said = "error: shim binary not found";
            let task = record(id, TaskType::General, true, 3, 3).used(tool, 9);
            let mut task = task.failed(tool, ErrorClass::CommandFailed, 2, said);
            said.clone_into(&mut task.details.errors[0].template);
            task
        };
        let events = found(&[failing("a", "Bash"), failing("b", "shell_command")]);
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(events[0].1.starts_with("4 times "), "{events:?}");
        assert!(events[0].1.contains("“error: shim binary not found” in 2 tasks"), "{events:?}");
    }

    #[test]
    fn a_busy_week_has_its_tables() {
        let mut records: Vec<GradeRecord> =
            (0..8).map(|id| record(&id.to_string(), TaskType::General, true, 3, 3)).collect();
        records[0].details.longest_error_run = 9;
        assert_eq!(found(&records), []);
        assert_eq!(found(&[]), []);
    }
}
