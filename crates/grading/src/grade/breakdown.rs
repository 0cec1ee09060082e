//! Tasks split by project, agent and model: where things go well, and where not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::share::{ratio, total};
use super::{GradeRecord, Listed, OutcomeShares, OutcomeSign, TaskOutcome};

/// Rows of a split.
const ROWS: usize = 10;
/// Contradicted tasks that are named.
const NAMED: usize = 10;

/// The tasks of one project, agent or model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Portion {
    /// The folder, the agent or the model.
    pub name: String,
    /// Tasks.
    pub tasks: u64,
    /// What became of them.
    pub outcomes: OutcomeShares,
    /// How often people objected, or stopped the agent.
    pub corrections: u64,
    /// Failed calls of all calls of tools, 0.0 to 1.0; absent without calls.
    pub error_rate: Option<f64>,
}

/// The tasks of a week, split in three ways; the portion with most tasks first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Breakdown {
    /// By the folder that the agent worked in; tasks without one are left out.
    pub projects: Listed<Portion>,
    /// By agent.
    pub agents: Listed<Portion>,
    /// By the model that answered first; tasks without one are left out.
    pub models: Listed<Portion>,
    /// Contradicted tasks, newest first.
    pub contradicted: Listed<ContradictedTask>,
}

/// A task that a check or a person says is not done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContradictedTask {
    /// The session.
    pub session_id: String,
    /// Its request.
    pub title: String,
    /// What says so; absent where a person has overridden the grade.
    pub sign: Option<OutcomeSign>,
    /// The command, or the person's words.
    pub words: String,
}

impl Breakdown {
    /// Of these tasks, newest first.
    pub fn of(tasks: &[&GradeRecord]) -> Self {
        let contradicted = tasks.iter().filter(|task| task.outcome == TaskOutcome::Contradicted);
        Self {
            projects: portions(tasks, |task| task.details.project.as_deref()),
            agents: portions(tasks, |task| Some(&task.details.agent)),
            models: portions(tasks, |task| task.model.as_deref()),
            contradicted: Listed::new(
                contradicted.map(|task| ContradictedTask::of(task)).collect(),
                NAMED,
            ),
        }
    }
}

impl ContradictedTask {
    fn of(task: &GradeRecord) -> Self {
        let first = task.details.outcome_evidence.first();
        Self {
            session_id: task.session_id.clone(),
            title: task.task_summary.clone().unwrap_or_default(),
            sign: first.map(|evidence| evidence.sign),
            words: first.map(|evidence| evidence.words.clone()).unwrap_or_default(),
        }
    }
}

fn portions(
    tasks: &[&GradeRecord],
    name: impl Fn(&GradeRecord) -> Option<&str>,
) -> Listed<Portion> {
    let mut groups: BTreeMap<String, Vec<&GradeRecord>> = BTreeMap::new();
    for task in tasks {
        if let Some(name) = name(task) {
            groups.entry(name.to_owned()).or_default().push(task);
        }
    }
    let portion = |(name, tasks): (String, Vec<&GradeRecord>)| {
        let calls = total(tasks.iter().map(|task| task.details.calls_of_tools()));
        Portion {
            name,
            tasks: tasks.len() as u64,
            outcomes: OutcomeShares::of(&tasks),
            corrections: total(tasks.iter().map(|task| task.details.corrections)),
            error_rate: ratio(total(tasks.iter().map(|task| task.total_errors)), calls),
        }
    };
    let mut portions: Vec<Portion> = groups.into_iter().map(portion).collect();
    // Stable: names decide between equals.
    portions.sort_by_key(|portion| Reverse(portion.tasks));
    Listed::new(portions, ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::TaskType;
    use crate::grade::fixture::record;

    #[test]
    fn tasks_are_split_and_the_bad_ones_named() {
        let mut records: Vec<GradeRecord> =
            (0..5).map(|id| record(&id.to_string(), TaskType::General, id > 1, 3, 3)).collect();
        records[4].details.project = None;
        records[3].details.project = Some("/work/other".to_owned());
        records[0].details.corrections = 2;
        let split = Breakdown::of(&records.iter().collect::<Vec<_>>());
        let names: Vec<(&str, u64)> =
            split.projects.items.iter().map(|one| (one.name.as_str(), one.tasks)).collect();
        assert_eq!(names, [("/work/site", 3), ("/work/other", 1)]);
        let agent = &split.agents.items[0];
        assert_eq!((agent.tasks, agent.outcomes.contradicted.count, agent.corrections), (5, 2, 2));
        assert_eq!(split.contradicted.total(), 2);
        assert_eq!(split.contradicted.items[0].title, "do something");
    }
}
