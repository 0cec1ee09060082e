//! Suggestions for the types of a week's tasks, from outcomes and causes: how many were found not
//! done, what showed it, and the cause of failed calls that they share. The specification's rules,
//! which go by scores and thresholds, are in [`super::suggestions`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::breakdown::ContradictedTask;
use super::patterns;
use super::{
    ErrorCause, GradeRecord, OutcomeSign, Proportion, TaskOutcome, TaskType, TruncatedList,
};

/// Fewest tasks of a type that were found not done, or that share a cause. Of one there is nothing
/// to say beyond the list of tasks.
const MIN_TASKS: u64 = 2;
/// Maximum number of types.
const MAX_TYPES: usize = 5;

/// What went wrong with a type of task, and one suggestion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TypeFinding {
    /// Task type.
    pub task_type: TaskType,
    /// Share of its tasks that a check or a person found not done.
    pub contradicted: Proportion,
    /// What showed it most often, in at least two of these tasks; absent if people overrode the
    /// grades, or if no two tasks share a sign.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sign: Option<OutcomeSign>,
    /// Number of tasks with that sign. Without a sign, the number that people overrode, or 0 if no
    /// two tasks share one.
    pub with_sign: u64,
    /// Cause of failed calls that most of these tasks met: at least two, more than half of them, and
    /// a larger share than of the type's other tasks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<ErrorCause>,
    /// Number of tasks with that cause.
    pub with_cause: u64,
    /// Advice.
    pub suggestion: String,
    /// Requests of `sessions`, in the same order.
    pub titles: Vec<String>,
    /// IDs of the tasks that were found not done, newest first.
    pub sessions: TruncatedList<String>,
}

/// Returns the types of which several tasks were found not done, those with most of them first.
/// `tasks` are ordered newest first.
pub(super) fn type_findings(tasks: &[&GradeRecord]) -> Vec<TypeFinding> {
    let mut types: BTreeMap<TaskType, Vec<&GradeRecord>> = BTreeMap::new();
    for task in tasks {
        types.entry(task.details.task_type).or_default().push(task);
    }
    let mut found: Vec<TypeFinding> =
        types.into_iter().filter_map(|(task_type, tasks)| finding(task_type, &tasks)).collect();
    found.sort_by_key(|one| Reverse(one.contradicted.count));
    found.truncate(MAX_TYPES);
    found
}

fn finding(task_type: TaskType, tasks: &[&GradeRecord]) -> Option<TypeFinding> {
    let is_contradicted = |task: &GradeRecord| task.outcome == TaskOutcome::Contradicted;
    let (failed, others): (Vec<&GradeRecord>, Vec<&GradeRecord>) =
        tasks.iter().copied().partition(|task| is_contradicted(task));
    let contradicted = Proportion::new(failed.len() as u64, tasks.len() as u64);
    if contradicted.count < MIN_TASKS {
        return None;
    }
    let signs = failed.iter().map(|task| ContradictedTask::from_record(task).sign);
    // A sign of one task says nothing about the type.
    let shared = most_frequent(signs).filter(|(_, tasks)| *tasks >= MIN_TASKS);
    let (sign, with_sign) = shared.unwrap_or_default();
    let cause = shared_cause(&failed, &others);
    let advice = cause.and_then(|(cause, _)| cause.advice());
    let sessions = patterns::matching_sessions(tasks, is_contradicted);
    Some(TypeFinding {
        task_type,
        contradicted,
        sign,
        with_sign,
        cause: cause.map(|(cause, _)| cause),
        with_cause: cause.map_or(0, |(_, tasks)| tasks),
        suggestion: advice.unwrap_or_else(|| advice_of(sign)).to_owned(),
        titles: patterns::session_titles(tasks, &sessions),
        sessions,
    })
}

/// Returns the cause with advice that most of the failed tasks met, and how many. Causes that few of
/// them met, or as large a share of the type's other tasks, do not explain why these failed.
fn shared_cause(failed: &[&GradeRecord], others: &[&GradeRecord]) -> Option<(ErrorCause, u64)> {
    let met = |task: &GradeRecord, cause: ErrorCause| {
        task.details.errors.iter().any(|error| error.cause == cause)
    };
    let count = |tasks: &[&GradeRecord], cause: ErrorCause| {
        tasks.iter().filter(|task| met(task, cause)).count() as u64
    };
    let is_shared = |cause: ErrorCause| {
        let (with_cause, all) = (count(failed, cause), failed.len() as u64);
        let (others_with_cause, all_others) = (count(others, cause), others.len() as u64);
        with_cause >= MIN_TASKS
            && 2 * with_cause > all
            // Compares shares without dividing. Without other tasks there is no share to exceed.
            && (all_others == 0 || with_cause * all_others > others_with_cause * all)
    };
    let causes = failed.iter().flat_map(|task| {
        let met: BTreeSet<ErrorCause> =
            task.details.errors.iter().map(|error| error.cause).collect();
        met.into_iter().filter(|cause| cause.advice().is_some() && !is_of_check(*cause))
    });
    most_frequent(causes.filter(|cause| is_shared(*cause)))
}

/// Returns true for failed checks: they are the sign of what went wrong, not its cause.
fn is_of_check(cause: ErrorCause) -> bool {
    matches!(cause, ErrorCause::TestFailure | ErrorCause::LintFailure | ErrorCause::CompileError)
}

fn most_frequent<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Option<(T, u64)> {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(one, count)| (*count, Reverse(*one)))
}

/// Returns the advice where the tasks share no cause of failed calls. `sign` is the one that they
/// share.
fn advice_of(sign: Option<OutcomeSign>) -> &'static str {
    match sign {
        Some(OutcomeSign::TestsFailed) => {
            "have the agent run the tests after its last change, and not stop while new ones fail"
        }
        Some(OutcomeSign::BuildFailed | OutcomeSign::LintFailed) => {
            "have the agent build and lint after its last change"
        }
        Some(OutcomeSign::CiFailed) => "have the agent run what CI runs before it stops",
        Some(OutcomeSign::VerifierFailed) => "read what the verifier asks for beside the session",
        Some(
            OutcomeSign::UserComplains
            | OutcomeSign::UserCorrects
            | OutcomeSign::UserReverts
            | OutcomeSign::UserAsksAgain
            | OutcomeSign::UserInterrupts,
        ) => "write into the agent's instructions what the person had to add afterwards",
        _ => "read them side by side: nothing recorded says what they share",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::fixture::record;
    use crate::grade::{ErrorClass, OutcomeEvidence};

    fn task(id: &str, task_type: TaskType, sign: Option<OutcomeSign>) -> GradeRecord {
        let mut task = record(id, task_type, true, 4, 4);
        task.outcome =
            if sign.is_some() { TaskOutcome::Contradicted } else { TaskOutcome::Unknown };
        task.details.outcome_evidence = sign
            .into_iter()
            .map(|sign| OutcomeEvidence { sign, event: 3, words: String::new() })
            .collect();
        task
    }

    #[test]
    fn several_tasks_that_were_not_done_are_a_finding() {
        let corrected = Some(OutcomeSign::UserCorrects);
        let failed = Some(OutcomeSign::TestsFailed);
        let tasks = [
            task("a", TaskType::Debugging, corrected).failed("bash", ErrorClass::Timeout, 1, "x"),
            task("b", TaskType::Debugging, failed),
            task("c", TaskType::Debugging, corrected).failed("bash", ErrorClass::Timeout, 2, "x"),
            task("d", TaskType::Debugging, None),
            task("e", TaskType::Testing, failed),
            task("f", TaskType::Testing, failed),
            task("g", TaskType::Documentation, corrected),
        ];
        let tasks: Vec<&GradeRecord> = tasks.iter().collect();
        let found = type_findings(&tasks);
        let [debugging, testing] = &found[..] else { panic!("{found:?}") };
        assert_eq!((debugging.contradicted.count, debugging.contradicted.of), (3, 4));
        assert_eq!((debugging.sign, debugging.with_sign), (corrected, 2));
        assert_eq!((debugging.cause, debugging.with_cause), (Some(ErrorCause::Timeout), 2));
        assert_eq!(Some(debugging.suggestion.as_str()), ErrorCause::Timeout.advice());
        assert_eq!(debugging.sessions.total(), 3);
        assert_eq!((testing.cause, testing.with_sign), (None, 2));
        assert!(testing.suggestion.contains("run the tests"), "{}", testing.suggestion);
        assert_eq!(type_findings(&tasks[3..5]), []);
        assert_eq!(type_findings(&[]), []);
    }

    #[test]
    fn a_cause_is_named_only_if_it_sets_these_tasks_apart() {
        // Ten tasks not done, some of which met a timeout, and four others.
        let cause = |failed_with: usize, others_with: usize| {
            let timed_out = |task: GradeRecord, is_met: bool| {
                if is_met { task.failed("bash", ErrorClass::Timeout, 1, "x") } else { task }
            };
            let mut tasks = Vec::new();
            for number in 0..10 {
                let sign = Some(OutcomeSign::TestsFailed);
                let not_done = task(&format!("failed-{number}"), TaskType::Debugging, sign);
                tasks.push(timed_out(not_done, number < failed_with));
            }
            for number in 0..4 {
                let other = task(&format!("other-{number}"), TaskType::Debugging, None);
                tasks.push(timed_out(other, number < others_with));
            }
            let tasks: Vec<&GradeRecord> = tasks.iter().collect();
            let found = type_findings(&tasks);
            let [debugging] = &found[..] else { panic!("{found:?}") };
            let is_about_tests = debugging.suggestion.contains("run the tests");
            assert_eq!(is_about_tests, debugging.cause.is_none(), "{}", debugging.suggestion);
            debugging.cause.map(|cause| (cause, debugging.with_cause))
        };
        assert_eq!(cause(2, 0), None, "few of them met it");
        assert_eq!(cause(5, 0), None, "half of them is not most");
        assert_eq!(cause(6, 0), Some((ErrorCause::Timeout, 6)));
        assert_eq!(cause(6, 2), Some((ErrorCause::Timeout, 6)));
        assert_eq!(cause(6, 3), None, "more of the others met it");
        assert_eq!(cause(10, 4), None, "every task of the type met it");
    }

    #[test]
    fn a_sign_of_one_task_is_not_named() {
        let tasks = [
            task("a", TaskType::Debugging, Some(OutcomeSign::TestsFailed)),
            task("b", TaskType::Debugging, Some(OutcomeSign::UserCorrects)),
        ];
        let tasks: Vec<&GradeRecord> = tasks.iter().collect();
        let found = type_findings(&tasks);
        let [debugging] = &found[..] else { panic!("{found:?}") };
        assert_eq!((debugging.contradicted.count, debugging.contradicted.of), (2, 2));
        assert_eq!((debugging.sign, debugging.with_sign), (None, 0));
        assert!(debugging.suggestion.contains("side by side"), "{}", debugging.suggestion);
    }
}
