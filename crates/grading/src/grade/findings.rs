//! Findings of a week: failed calls grouped by cause, with the number of tasks affected, the change
//! from before, example messages and places, and one suggestion per cause; and suggestions for the
//! types of tasks, from outcomes and causes.
//!
//! The specification's rules, which go by scores and thresholds, are in [`super::suggestions`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::breakdown::ContradictedTask;
use super::difference::SignificanceRule;
use super::error_message::TemplateSet;
use super::share::total;
use super::{
    ErrorCause, GradeRecord, GroupDifference, OutcomeSign, Proportion, TaskMeasure, TaskOutcome,
    TaskType, TruncatedList, patterns,
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
            let mut met: BTreeSet<MessageKind<'_>> = BTreeSet::new();
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
                // Two groups of a task may be alike here: they differ in class, or in few words.
                own.1 += u64::from(met.insert(kind));
            }
        }
        let mut met_before: BTreeMap<ErrorGroupKey<'_>, u64> = BTreeMap::new();
        for &task in before {
            // A set: several templates of a task may fall into one group, and each task counts
            // once.
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
        // Over all causes, before the list is cut: what is not shown was tested too.
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
    // The sort is stable, so ties stay in the order of the types.
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
        // A failed test is how a task is found not done, so it is no cause of it. A cause without
        // advice leads to no suggestion.
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
    // `max_by_key` takes the last of equal ones; reversed, that is the first of the enum.
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
    use crate::grade::{DifferenceVerdict, ErrorClass, TaskType};

    use super::super::OutcomeEvidence;

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
    fn a_pattern_counts_each_task_once() {
        let mut task = failing("a", ErrorClass::FileNotFound, 2, "cat: no a.rs");
        let mut other = task.details.errors[0].clone();
        other.class = ErrorClass::CommandFailed;
        task.details.errors.push(other);
        let found = findings(&[task], &[]);
        let pattern = &found.single.items[0].patterns.items[0];
        assert_eq!((pattern.errors, pattern.tasks), (4, 1));
    }

    #[test]
    fn nothing_failed() {
        assert_eq!(findings(&[], &[]), ErrorFindings::default());
        let clean = [record("a", TaskType::General, true, 3, 3)];
        assert_eq!(findings(&clean, &clean).causes.total(), 0);
    }

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
