//! What was seen of each type of task: outcomes by evidence, and the causes of failed calls. It
//! stands beside the specification's score ([`super::routing`]), which predicts success no better
//! than chance.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::grade::{ErrorCause, GradeRecord, OutcomeShares, Proportion, TaskOutcome, TaskType};

/// Maximum number of causes of a task type.
const MAX_CAUSES: usize = 3;
/// Minimum number of tasks that meet a cause.
const MIN_TASKS: u64 = 2;

/// What was seen of one type of task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TypeEvidence {
    /// Task type.
    pub task_type: TaskType,
    /// Number of tasks.
    pub tasks: u64,
    /// Their outcomes.
    pub outcomes: OutcomeShares,
    /// Causes of failed calls that several of them met, most frequent first; at most 3.
    pub causes: Vec<TypeCause>,
}

/// A cause of failed calls within a task type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TypeCause {
    /// The cause.
    pub cause: ErrorCause,
    /// Share of the tasks that met it.
    pub tasks: Proportion,
    /// Advice for fixing it.
    pub advice: &'static str,
}

/// Counts the outcomes and causes of tasks by type.
#[derive(Debug, Default)]
pub struct EvidenceTally {
    types: BTreeMap<TaskType, TypeTally>,
}

#[derive(Debug, Default)]
struct TypeTally {
    tasks: u64,
    outcomes: BTreeMap<TaskOutcome, u64>,
    causes: BTreeMap<ErrorCause, u64>,
}

impl EvidenceTally {
    /// Adds a graded session, unless rates exclude it.
    pub fn add(&mut self, grade: &GradeRecord) {
        if !grade.is_task() {
            return;
        }
        let tally = self.types.entry(grade.details.task_type).or_default();
        tally.tasks += 1;
        *tally.outcomes.entry(grade.outcome).or_default() += 1;
        let met: BTreeSet<ErrorCause> =
            grade.details.errors.iter().map(|error| error.cause).collect();
        for cause in met {
            *tally.causes.entry(cause).or_default() += 1;
        }
    }

    /// Returns the types, those first of which most is known to have failed.
    pub fn finish(self) -> Vec<TypeEvidence> {
        let mut types: Vec<TypeEvidence> = self.types.into_iter().map(TypeTally::finish).collect();
        let failed = |one: &TypeEvidence| {
            let least = one.outcomes.contradicted.interval.map_or(0.0, |interval| interval.low);
            let met = one.causes.first().and_then(|cause| cause.tasks.interval);
            (least, met.map_or(0.0, |interval| interval.low))
        };
        types.sort_by(|a, b| {
            let ((a_failed, a_met), (b_failed, b_met)) = (failed(a), failed(b));
            b_failed.total_cmp(&a_failed).then(b_met.total_cmp(&a_met))
        });
        types
    }
}

impl TypeTally {
    fn finish((task_type, tally): (TaskType, Self)) -> TypeEvidence {
        let Self { tasks, outcomes, causes } = tally;
        let count = |outcome| outcomes.get(&outcome).copied().unwrap_or_default();
        let mut causes: Vec<TypeCause> = causes
            .into_iter()
            .filter(|(_, met)| *met >= MIN_TASKS)
            .filter_map(|(cause, met)| {
                let tasks = Proportion::new(met, tasks);
                Some(TypeCause { cause, tasks, advice: cause.advice()? })
            })
            .collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.tasks.count));
        causes.truncate(MAX_CAUSES);
        let outcomes = OutcomeShares::from_counts(count, tasks);
        TypeEvidence { task_type, tasks, outcomes, causes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::ErrorCount;
    use crate::grade::fixture::record;

    fn grades(of: TaskType, count: usize, outcome: TaskOutcome) -> Vec<GradeRecord> {
        let grade =
            |id: usize| GradeRecord { outcome, ..record(&format!("{of}{id}"), of, true, 5, 5) };
        (0..count).map(grade).collect()
    }

    fn with_error(mut grade: GradeRecord, cause: ErrorCause) -> GradeRecord {
        grade.details.errors = vec![ErrorCount {
            class: crate::grade::ErrorClass::Unknown,
            cause,
            template: String::new(),
            tool: "Edit".to_owned(),
            count: 7,
            first_event: 1,
            example: "no match".to_owned(),
        }];
        grade
    }

    #[test]
    fn what_failed_most_surely_comes_first() {
        let mut tally = EvidenceTally::default();
        let debugging = grades(TaskType::Debugging, 10, TaskOutcome::Contradicted);
        let one = grades(TaskType::Testing, 1, TaskOutcome::Contradicted);
        let passed = grades(TaskType::Documentation, 10, TaskOutcome::ChecksPassed);
        let research = grades(TaskType::Research, 4, TaskOutcome::Claimed);
        let research = research.into_iter().map(|one| with_error(one, ErrorCause::EditMismatch));
        let all = debugging.into_iter().chain(one).chain(passed).chain(research);
        all.for_each(|grade| tally.add(&grade));
        let types = tally.finish();
        let order: Vec<TaskType> = types.iter().map(|one| one.task_type).collect();
        assert_eq!(
            order,
            [TaskType::Debugging, TaskType::Testing, TaskType::Research, TaskType::Documentation]
        );
        assert_eq!(types[0].outcomes.contradicted.count, 10);
        let cause = &types[2].causes[0];
        assert_eq!((cause.cause, cause.tasks.count), (ErrorCause::EditMismatch, 4));
    }

    #[test]
    fn a_cause_of_one_task_is_left_out() {
        let mut tally = EvidenceTally::default();
        let grade = grades(TaskType::Testing, 1, TaskOutcome::Unknown).remove(0);
        tally.add(&with_error(grade, ErrorCause::EditMismatch));
        assert_eq!(tally.finish()[0].causes, []);
        assert!(EvidenceTally::default().finish().is_empty());
    }
}
