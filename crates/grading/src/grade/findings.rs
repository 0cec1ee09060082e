//! Failed calls of a week grouped by cause: the number of tasks affected, the change from before,
//! example messages and places, and one suggestion per cause.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::difference::SignificanceRule;
use super::share::total;
use super::template::TemplateSet;
use super::{
    ErrorCause, GradeRecord, GroupDifference, Proportion, TaskMeasure, TaskOutcome, TruncatedList,
};

/// Maximum numbers of causes, patterns per cause, and places to list.
const MAX_CAUSES: usize = 10;
const MAX_PATTERNS: usize = 4;
const MAX_PLACES: usize = 5;

/// The causes of a week's failed calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorFindings {
    /// Causes in more than one task, ordered by number of tasks, largest first.
    pub causes: TruncatedList<ErrorFinding>,
    /// Causes in a single task.
    pub single: TruncatedList<ErrorFinding>,
}

/// A cause of failed calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorFinding {
    /// The cause.
    pub cause: ErrorCause,
    /// Tool, if the cause is only known by this tool's messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Number of failed calls.
    pub errors: u64,
    /// Share of the week's tasks that were affected.
    pub tasks: Proportion,
    /// The same share in the previous four weeks.
    pub before: Proportion,
    /// Comparison of this week with the previous four weeks.
    pub difference: GroupDifference,
    /// Number of affected tasks in which no tool call succeeded after the last error.
    pub stuck: u64,
    /// Number of affected tasks that a check or a person found not done.
    pub contradicted: u64,
    /// Advice.
    pub suggestion: String,
    /// Message patterns, most frequent first.
    pub patterns: TruncatedList<MessagePattern>,
    /// Occurrences, newest first.
    pub places: TruncatedList<ErrorPlace>,
}

/// Similar messages from one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessagePattern {
    /// Name of the tool.
    pub tool: String,
    /// Pattern of the messages.
    pub template: String,
    /// Example message from the newest task.
    pub example: String,
    /// Number of errors.
    pub errors: u64,
    /// Number of tasks.
    pub tasks: u64,
}

/// The first error of a cause in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorPlace {
    /// ID of the session.
    pub session_id: String,
    /// The session's request.
    pub title: String,
    /// Number of the event in the session.
    pub event: u64,
}

/// Grouping key for errors: a cause, or a message pattern of a tool if the cause says too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ErrorGroupKey<'a> {
    Cause(ErrorCause),
    Words(ErrorCause, &'a str, usize),
}

/// Group of similar messages: cause, tool and index of the template.
type MessageKind<'a> = (ErrorCause, &'a str, usize);

/// Message templates shared by both periods of the comparison.
#[derive(Default)]
struct MessageKinds<'a> {
    templates: BTreeMap<(ErrorCause, &'a str), TemplateSet>,
}

impl<'a> MessageKinds<'a> {
    /// Returns the message kinds in a task, each with count, first event and example.
    fn message_kinds(
        &mut self,
        task: &'a GradeRecord,
    ) -> Vec<(MessageKind<'a>, u64, u64, &'a str)> {
        let errors = task.details.errors.iter().filter(|error| error.count > 0);
        errors
            .map(|error| {
                let tool = error.tool.as_str();
                let known = self.templates.entry((error.cause, tool)).or_default();
                let kind = (error.cause, tool, known.add(&error.template));
                (kind, error.count, error.first_event, error.example.as_str())
            })
            .collect()
    }

    fn template(&self, (cause, tool, number): MessageKind<'_>) -> String {
        self.templates.get(&(cause, tool)).map(|known| known.text(number)).unwrap_or_default()
    }
}

fn group_key((cause, tool, template): MessageKind<'_>) -> ErrorGroupKey<'_> {
    // These causes are too vague to group by; only similar messages belong together.
    match cause {
        ErrorCause::Unknown | ErrorCause::CommandFailed => {
            ErrorGroupKey::Words(cause, tool, template)
        }
        cause => ErrorGroupKey::Cause(cause),
    }
}

/// Errors collected for a cause.
#[derive(Default)]
struct CauseErrors<'a> {
    tasks: Vec<(&'a GradeRecord, u64)>,
    kinds: BTreeMap<MessageKind<'a>, (u64, u64, &'a str)>,
}

impl ErrorFindings {
    /// Compares the tasks of a week, newest first, with those of the previous four weeks.
    pub(super) fn compare(
        now: &[&GradeRecord],
        before: &[&GradeRecord],
        rule: SignificanceRule,
    ) -> Self {
        let mut kinds = MessageKinds::default();
        let mut gathered: BTreeMap<ErrorGroupKey<'_>, CauseErrors<'_>> = BTreeMap::new();
        for &task in now {
            for (kind, count, event, example) in kinds.message_kinds(task) {
                let one = gathered.entry(group_key(kind)).or_default();
                // The errors of a task are adjacent, so only the last entry can be the same task.
                match one.tasks.last_mut() {
                    Some((last, first)) if last.session_id == task.session_id => {
                        *first = (*first).min(event);
                    }
                    _ => one.tasks.push((task, event)),
                }
                let own = one.kinds.entry(kind).or_insert((0, 0, example));
                own.0 = own.0.saturating_add(count);
                own.1 += 1;
            }
        }
        let mut met_before: BTreeMap<ErrorGroupKey<'_>, u64> = BTreeMap::new();
        for &task in before {
            let keys: BTreeSet<ErrorGroupKey<'_>> =
                kinds.message_kinds(task).into_iter().map(|(kind, ..)| group_key(kind)).collect();
            for key in keys {
                *met_before.entry(key).or_default() += 1;
            }
        }
        let mut found: Vec<ErrorFinding> = gathered
            .iter()
            .map(|(key, one)| {
                let tasks = (one.tasks.len() as u64, now.len() as u64);
                let earlier = met_before.get(key).copied().unwrap_or_default();
                let earlier = (earlier, before.len() as u64);
                ErrorFinding::from_errors(*key, one, &kinds, [tasks, earlier], rule)
            })
            .collect();
        GroupDifference::correct_and_decide(found.iter_mut().map(|one| &mut one.difference), rule);
        found.sort_by_key(|one| (Reverse(one.tasks.count), Reverse(one.errors)));
        let (causes, single) = found.into_iter().partition(|one| one.tasks.count > 1);
        Self {
            causes: TruncatedList::new(causes, MAX_CAUSES),
            single: TruncatedList::new(single, MAX_CAUSES),
        }
    }

    /// Returns the listed findings, most frequent first.
    fn listed(&self) -> impl Iterator<Item = &ErrorFinding> {
        self.causes.items.iter().chain(&self.single.items)
    }

    /// Returns true if a cause is listed.
    pub(super) fn names_cause(&self, cause: &str) -> bool {
        self.listed().any(|one| one.cause.name() == cause)
    }

    /// Returns true if a tool is listed under one of the causes.
    pub(super) fn names_tool(&self, tool: &str) -> bool {
        self.listed().any(|one| one.patterns.items.iter().any(|pattern| pattern.tool == tool))
    }
}

impl ErrorFinding {
    fn from_errors(
        key: ErrorGroupKey<'_>,
        gathered: &CauseErrors<'_>,
        kinds: &MessageKinds<'_>,
        [tasks, before]: [(u64, u64); 2],
        rule: SignificanceRule,
    ) -> Self {
        let mut patterns: Vec<MessagePattern> = gathered
            .kinds
            .iter()
            .map(|(kind, (errors, tasks, example))| MessagePattern {
                tool: kind.1.to_owned(),
                template: kinds.template(*kind),
                example: (*example).to_owned(),
                errors: *errors,
                tasks: *tasks,
            })
            .collect();
        patterns.sort_by_key(|pattern| (Reverse(pattern.errors), Reverse(pattern.tasks)));
        let (cause, tool) = match key {
            ErrorGroupKey::Cause(cause) => (cause, None),
            ErrorGroupKey::Words(cause, tool, _) => (cause, Some(tool.to_owned())),
        };
        let count = |is: fn(&GradeRecord) -> bool| {
            gathered.tasks.iter().filter(|(task, _)| is(task)).count() as u64
        };
        let places = gathered.tasks.iter().map(|(task, event)| ErrorPlace {
            session_id: task.session_id.clone(),
            title: task.task_summary.clone().unwrap_or_default(),
            event: *event,
        });
        Self {
            cause,
            errors: total(patterns.iter().map(|pattern| pattern.errors)),
            tasks: Proportion::new(tasks.0, tasks.1),
            before: Proportion::new(before.0, before.1),
            difference: GroupDifference::compare_shares(TaskMeasure::MetCause, tasks, before, rule),
            stuck: count(|task| !task.errors_recovered),
            contradicted: count(|task| task.outcome == TaskOutcome::Contradicted),
            suggestion: suggestion_for(cause, tool.as_deref()),
            tool,
            patterns: TruncatedList::new(patterns, MAX_PATTERNS),
            places: TruncatedList::new(places.collect(), MAX_PLACES),
        }
    }
}

/// Returns the advice for a cause.
fn suggestion_for(cause: ErrorCause, tool: Option<&str>) -> String {
    match (cause.advice(), cause, tool) {
        (Some(advice), ..) => advice.to_owned(),
        (None, ErrorCause::CommandFailed, _) => {
            "have these commands say why they fail: all that is recorded is an exit code".to_owned()
        }
        (None, _, Some(tool)) => {
            format!("say in the instructions what to do when {tool} answers so")
        }
        (None, _, None) => "look at the sessions: the words do not say why".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::fixture::record;
    use crate::grade::{DifferenceVerdict, ErrorClass, TaskType};

    const RULE: SignificanceRule = SignificanceRule { alpha: 0.05, min_tasks: 10 };

    fn failing(id: &str, class: ErrorClass, count: u64, words: &str) -> GradeRecord {
        let mut one = record(id, TaskType::General, true, 3, 3).used("bash", 9);
        one = one.failed("bash", class, count, words);
        if let Some(error) = one.details.errors.last_mut() {
            error.template = words.to_owned();
            error.first_event = 7;
        }
        one
    }

    fn findings(now: &[GradeRecord], before: &[GradeRecord]) -> ErrorFindings {
        let (now, before): (Vec<_>, Vec<_>) = (now.iter().collect(), before.iter().collect());
        ErrorFindings::compare(&now, &before, RULE)
    }

    #[test]
    fn a_cause_with_its_tasks_places_and_one_suggestion() {
        let mut now: Vec<GradeRecord> = (0..12)
            .map(|id| match id {
                0..6 => failing(&id.to_string(), ErrorClass::FileNotFound, 2, "cat: no a.rs"),
                6 => failing("6", ErrorClass::Timeout, 1, "timed out"),
                _ => record(&id.to_string(), TaskType::General, true, 3, 3).used("bash", 1),
            })
            .collect();
        now[0] = now[0].clone().stuck();
        now[1].outcome = TaskOutcome::Contradicted;
        let before: Vec<GradeRecord> =
            (0..40).map(|id| record(&format!("b{id}"), TaskType::General, true, 3, 3)).collect();
        let found = findings(&now, &before);
        let one = &found.causes.items[0];
        assert_eq!(
            (one.cause, one.errors, one.stuck, one.contradicted),
            (ErrorCause::FileNotFound, 12, 1, 1)
        );
        assert_eq!((one.tasks, one.before), (Proportion::new(6, 12), Proportion::new(0, 40)));
        assert_eq!(one.difference.verdict, DifferenceVerdict::Up);
        assert_eq!((one.places.total(), one.places.items[0].event), (6, 7));
        assert_eq!(one.suggestion, ErrorCause::FileNotFound.advice().unwrap());
        assert_eq!(one.patterns.items[0].template, "cat: no a.rs");
        assert_eq!((found.causes.total(), found.single.items[0].cause), (1, ErrorCause::Timeout));
        assert!(found.names_cause("timeout") && found.names_tool("bash"));
        assert!(!found.names_cause("unknown") && !found.names_tool("read"));
    }

    #[test]
    fn what_has_no_cause_goes_by_its_words() {
        let now = [
            failing("a", ErrorClass::Unknown, 1, "Wrong flag!"),
            failing("b", ErrorClass::Unknown, 3, "Wrong flag!"),
            failing("c", ErrorClass::Unknown, 1, "the moon is down tonight"),
        ];
        let found = findings(&now, &[failing("d", ErrorClass::Unknown, 1, "Wrong flag!")]);
        let flag = &found.causes.items[0];
        assert_eq!((flag.errors, flag.before), (4, Proportion::new(1, 1)));
        assert_eq!(flag.suggestion, "say in the instructions what to do when bash answers so");
        assert_eq!(flag.difference.verdict, DifferenceVerdict::NotTested);
        assert_eq!(found.single.items[0].patterns.items[0].template, "the moon is down tonight");
    }

    #[test]
    fn nothing_failed() {
        assert_eq!(findings(&[], &[]), ErrorFindings::default());
        let clean = [record("a", TaskType::General, true, 3, 3)];
        assert_eq!(findings(&clean, &clean).causes.total(), 0);
    }
}
