//! Splits tasks by project, agent and model to show which ones do well.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::difference::SignificanceRule;
use super::share::{ratio, total};
use super::spending::CostSummary;
use super::{
    GradeRecord, GroupDifference, OutcomeShares, OutcomeSign, OutcomeState, ResultSource,
    TaskDurations, TaskMeasure, TaskOutcome, TruncatedList,
};
use selftest_models::prices::ModelPrices;

/// Maximum number of rows in a split.
const MAX_ROWS: usize = 10;
/// Measures in which a portion is compared with the others.
const MEASURES: [TaskMeasure; 3] =
    [TaskMeasure::ChecksPassed, TaskMeasure::Contradicted, TaskMeasure::FailedCalls];
/// Maximum number of contradicted tasks to list.
const MAX_NAMED: usize = 10;

/// The tasks of one project, agent or model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskPortion {
    /// Name of the folder, agent or model.
    pub name: String,
    /// Number of tasks.
    pub tasks: u64,
    /// Outcomes of the tasks.
    pub outcomes: OutcomeShares,
    /// Number of times that people objected or stopped the agent.
    pub corrections: u64,
    /// Number of times that people took a conversation back.
    #[serde(default)]
    pub rewinds: u64,
    /// Share of failed tool calls, 0.0 to 1.0; absent without calls.
    pub error_rate: Option<f64>,
    /// Duration of the tasks.
    #[serde(default)]
    pub time: TaskDurations,
    /// Cost of the tasks.
    #[serde(default)]
    pub cost: CostSummary,
    /// Comparison with all other tasks of the week.
    #[serde(default)]
    pub against_the_rest: Vec<GroupDifference>,
}

/// The tasks of a week in three splits, each ordered by number of tasks, largest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskBreakdown {
    /// Split by the agent's working folder, leaving out tasks without one.
    pub projects: TruncatedList<TaskPortion>,
    /// Split by agent.
    pub agents: TruncatedList<TaskPortion>,
    /// Split by the model that answered first, leaving out tasks without one.
    pub models: TruncatedList<TaskPortion>,
    /// Contradicted tasks, newest first.
    pub contradicted: TruncatedList<ContradictedTask>,
}

/// A task that a check or a person found not done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContradictedTask {
    /// ID of the session.
    pub session_id: String,
    /// The task's request.
    pub title: String,
    /// Evidence against the task; absent if a person overrode the grade.
    pub sign: Option<OutcomeSign>,
    /// The command, or the person's message.
    pub words: String,
    /// Number of the event with the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
}

impl TaskBreakdown {
    /// Splits these tasks, which are ordered newest first.
    pub(super) fn from_tasks(
        tasks: &[&GradeRecord],
        rule: SignificanceRule,
        prices: &ModelPrices,
    ) -> Self {
        let contradicted = tasks.iter().filter(|task| task.outcome == TaskOutcome::Contradicted);
        Self {
            projects: portions(tasks, |task| task.details.project.as_deref(), rule, prices),
            agents: portions(tasks, |task| Some(&task.details.agent), rule, prices),
            models: portions(tasks, |task| task.model.as_deref(), rule, prices),
            contradicted: TruncatedList::new(
                contradicted.map(|task| ContradictedTask::from_record(task)).collect(),
                MAX_NAMED,
            ),
        }
    }
}

impl ContradictedTask {
    pub(super) fn from_record(task: &GradeRecord) -> Self {
        let (session_id, title) =
            (task.session_id.clone(), task.task_summary.clone().unwrap_or_default());
        if let OutcomeState::CheckedElsewhere { by: ResultSource::Person, .. } = task.details.state
        {
            // The person's word decided, whatever else was seen.
            return Self { session_id, title, sign: None, words: String::new(), event: None };
        }
        let failed = task.details.results.iter().find(|result| result.passed == Some(false));
        if let Some(result) = failed {
            // A verdict beside the session outranks what is in it, and has no event there.
            let words = format!("{} in {}", result.words, result.file);
            let sign = Some(OutcomeSign::VerifierFailed);
            return Self { session_id, title, sign, words, event: None };
        }
        let evidence = &task.details.outcome_evidence;
        // Evidence for success is no reason why a task was found not done.
        let against = evidence.iter().find(|one| one.sign.is_against());
        Self {
            session_id,
            title,
            sign: against.map(|evidence| evidence.sign),
            words: against.map(|evidence| evidence.words.clone()).unwrap_or_default(),
            event: against.map(|evidence| evidence.event),
        }
    }
}

fn portions(
    tasks: &[&GradeRecord],
    name: impl Fn(&GradeRecord) -> Option<&str>,
    rule: SignificanceRule,
    prices: &ModelPrices,
) -> TruncatedList<TaskPortion> {
    let mut groups: BTreeMap<String, Vec<&GradeRecord>> = BTreeMap::new();
    for task in tasks {
        if let Some(name) = name(task) {
            groups.entry(name.to_owned()).or_default().push(task);
        }
    }
    let portion = |(wanted, own): (&String, &Vec<&GradeRecord>)| {
        let rest: Vec<&GradeRecord> =
            tasks.iter().filter(|task| name(task) != Some(wanted)).copied().collect();
        let calls = total(own.iter().map(|task| task.details.calls_of_tools()));
        TaskPortion {
            name: wanted.clone(),
            tasks: own.len() as u64,
            outcomes: OutcomeShares::from_tasks(own),
            corrections: total(own.iter().map(|task| task.details.corrections)),
            rewinds: total(own.iter().map(|task| task.details.rewinds)),
            error_rate: ratio(total(own.iter().map(|task| task.total_errors)), calls),
            time: TaskDurations::from_tasks(own),
            cost: CostSummary::from_tasks(own, prices),
            against_the_rest: MEASURES
                .map(|measure| GroupDifference::compare(measure, own, &rest, rule))
                .into(),
        }
    };
    // Largest first, ties by name. Only the rows shown are compared.
    let mut largest: Vec<(&String, &Vec<&GradeRecord>)> = groups.iter().collect();
    largest.sort_by_key(|(_, own)| Reverse(own.len()));
    let left_out = largest.len().saturating_sub(MAX_ROWS) as u64;
    let mut items: Vec<TaskPortion> = largest.into_iter().take(MAX_ROWS).map(portion).collect();
    GroupDifference::correct_and_decide(
        items.iter_mut().flat_map(|one| &mut one.against_the_rest),
        rule,
    );
    TruncatedList { items, left_out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::fixture::record;
    use crate::grade::{DifferenceVerdict, TaskType};

    #[test]
    fn a_portion_that_differs_from_the_rest_is_found() {
        let mut records: Vec<GradeRecord> =
            (0..40).map(|id| record(&id.to_string(), TaskType::General, id > 14, 3, 3)).collect();
        for (id, one) in records.iter_mut().enumerate() {
            one.model = Some(if id < 15 { "small" } else { "large" }.to_owned());
        }
        let rule = SignificanceRule { alpha: 0.05, min_tasks: 10 };
        let split = TaskBreakdown::from_tasks(
            &records.iter().collect::<Vec<_>>(),
            rule,
            &ModelPrices::default(),
        );
        let verdicts = |portion: &TaskPortion| {
            let of = portion.against_the_rest.iter();
            of.map(|one| (one.measure, one.verdict)).collect::<Vec<_>>()
        };
        assert_eq!(
            verdicts(&split.models.items[1]),
            [
                (TaskMeasure::ChecksPassed, DifferenceVerdict::Down),
                (TaskMeasure::Contradicted, DifferenceVerdict::Up),
                (TaskMeasure::FailedCalls, DifferenceVerdict::NotTested),
            ]
        );
        let alone = &split.agents.items[0].against_the_rest;
        assert!(
            alone.iter().all(|one| one.verdict == DifferenceVerdict::NotTested),
            "there is no rest"
        );
    }

    #[test]
    fn tasks_are_split_and_the_bad_ones_named() {
        let mut records: Vec<GradeRecord> =
            (0..5).map(|id| record(&id.to_string(), TaskType::General, id > 1, 3, 3)).collect();
        records[4].details.project = None;
        records[3].details.project = Some("/work/other".to_owned());
        records[0].details.corrections = 2;
        let rule = SignificanceRule { alpha: 0.05, min_tasks: 10 };
        let split = TaskBreakdown::from_tasks(
            &records.iter().collect::<Vec<_>>(),
            rule,
            &ModelPrices::default(),
        );
        let names: Vec<(&str, u64)> =
            split.projects.items.iter().map(|one| (one.name.as_str(), one.tasks)).collect();
        assert_eq!(names, [("/work/site", 3), ("/work/other", 1)]);
        let agent = &split.agents.items[0];
        assert_eq!((agent.tasks, agent.outcomes.contradicted.count, agent.corrections), (5, 2, 2));
        assert_eq!(split.contradicted.total(), 2);
        assert_eq!(split.contradicted.items[0].title, "do something");
    }

    #[test]
    fn what_speaks_against_a_task_is_its_reason() {
        use crate::grade::OutcomeEvidence;
        use crate::grade::beside::TaskResult;
        let mut task = record("a", TaskType::General, true, 3, 3);
        task.details.outcome_evidence = [OutcomeSign::TestsPassed, OutcomeSign::UserReverts]
            .map(|sign| OutcomeEvidence { sign, event: 4, words: String::new() })
            .into();
        let reason = |task: &GradeRecord| {
            let found = ContradictedTask::from_record(task);
            (found.sign, found.event)
        };
        assert_eq!(reason(&task), (Some(OutcomeSign::UserReverts), Some(4)));
        let (words, file) = ("reward 0.0".to_owned(), "/job/verifier/reward.txt".to_owned());
        task.details.results = vec![TaskResult { ids: vec![], passed: Some(false), words, file }];
        assert_eq!(reason(&task), (Some(OutcomeSign::VerifierFailed), None));
    }

    #[test]
    fn an_override_has_no_sign() {
        use crate::grade::{ElsewhereResult, OutcomeEvidence};
        let with = |sign: OutcomeSign| {
            let mut task = record("a", TaskType::General, false, 3, 3);
            let words = "cargo test".to_owned();
            task.details.outcome_evidence = vec![OutcomeEvidence { sign, event: 4, words }];
            task
        };
        let sign = |task: &GradeRecord| ContradictedTask::from_record(task).sign;
        for passed in [OutcomeSign::TestsPassed, OutcomeSign::Claims] {
            assert_eq!(sign(&with(passed)), None, "{passed}");
        }
        let mut task = with(OutcomeSign::TestsFailed);
        assert_eq!(sign(&task), Some(OutcomeSign::TestsFailed));
        let (by, result) = (ResultSource::Person, ElsewhereResult::Failed);
        task.details.state = OutcomeState::CheckedElsewhere { by, result };
        let overridden = ContradictedTask::from_record(&task);
        assert_eq!((overridden.sign, overridden.event), (None, None));
        assert_eq!(overridden.words, "");
    }
}
