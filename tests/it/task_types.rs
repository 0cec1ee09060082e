//! Task types on 300 recorded tasks that were read and labelled by hand, half of which the rules
//! were tuned on: the table of `docs/recorded-sessions.md` is what the code computes.
//!
//! A task is a session with its first request, or a later request with what was done until the
//! next one. None is part of the project, only digests and labels are. Their folder is found as in
//! `real_sessions.rs`; without it the measurement is skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use regex::Regex;
use selftest_grading::grade::{TaskType, TaskWork};
use selftest_sessions::{
    Event, EventOrigin, EventRole, Session, SessionCollector, find_session_files, read,
};
use selftest_stats::wilson;
use selftest_text::digest;

use crate::real_sessions::sessions;

const LABELS: &str = include_str!("fixtures/task_type_labels.csv");

/// A recorded task.
struct Task {
    request: String,
    work: TaskWork,
}

struct Label {
    task: &'static str,
    source: &'static str,
    task_type: TaskType,
}

impl Label {
    /// By the digest, so that it was not chosen by hand.
    fn is_held_out(&self) -> bool {
        u8::from_str_radix(&self.task[..1], 16).unwrap() % 2 == 1
    }
}

fn labels() -> Vec<Label> {
    let rows = LABELS.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let label = |row: Vec<&'static str>| {
        let [task, source, label] = row[..] else { panic!("{row:?}") };
        let task_type = TaskType::from_name(label).unwrap_or_else(|| panic!("{label}"));
        Label { task, source, task_type }
    };
    rows.map(label).collect()
}

fn is_request(event: &Event<'_>) -> bool {
    event.role == EventRole::User && !event.text.trim().is_empty()
}

fn has_answer(events: &[Event<'_>]) -> bool {
    events.iter().any(|event| event.role == EventRole::Assistant)
}

/// The tasks of a session, by their digests.
fn tasks(session: &Session, found: &mut BTreeMap<String, Task>) {
    let events = &session.events;
    let asked: Vec<usize> = (0..events.len())
        .filter(|at| is_request(&events[*at]) && events[*at].origin == EventOrigin::Human)
        .collect();
    let first = asked.first().copied().or_else(|| events.iter().position(is_request));
    let Some(first) = first.filter(|_| has_answer(events)) else { return };
    let mut add = |kind: &str, request: &str, events: &[Event<'_>]| {
        let calls: usize = events.iter().map(|event| event.calls.len()).sum();
        let key = digest::sha256_hex(format!("{kind}\n{calls}\n{request}").as_bytes());
        let mut work = TaskWork::default();
        for event in events {
            work.add(event);
        }
        let task = Task { request: request.to_owned(), work };
        found.entry(key[..16].to_owned()).or_insert(task);
    };
    add("session", &events[first].text, events);
    for (place, at) in asked.iter().enumerate().filter(|(_, at)| **at > first) {
        let end = asked.get(place + 1).copied().unwrap_or(events.len());
        if has_answer(&events[*at..end]) {
            add("request", &events[*at].text, &events[*at..end]);
        }
    }
}

/// The specification's table to the letter: the first row with one of its words.
fn by_table(request: &str) -> TaskType {
    let table = [
        (TaskType::CodeReview, "review|code review|pr"),
        (TaskType::Debugging, "debug|fix|troubleshoot"),
        (TaskType::FeatureImpl, "implement|add feature|build"),
        (TaskType::Refactoring, "refactor|clean up|reorganize"),
        (TaskType::Documentation, "document|readme|docstring"),
        (TaskType::Testing, "test|pytest|unit test"),
        (TaskType::Research, "research|investigate|look up"),
        (TaskType::Deployment, "deploy|release|publish"),
        (TaskType::DataAnalysis, "analyze data|process file|parse"),
        (TaskType::Infrastructure, "server|docker|kubernetes"),
    ];
    let has = |words: &str| Regex::new(&format!(r"(?i)\b({words})\b")).unwrap().is_match(request);
    let row = table.iter().find(|(_, words)| has(words));
    row.map_or(TaskType::General, |(row, _)| *row)
}

#[test]
fn the_labels_are_sound() {
    let labels = labels();
    assert_eq!(labels.len(), 300);
    assert_eq!(labels.iter().map(|label| label.task).collect::<BTreeSet<_>>().len(), 300);
    assert!(labels.iter().all(|label| ["agents", "tau-bench"].contains(&label.source)));
}

#[test]
fn the_page_tells_how_often_types_are_right() {
    let Some(folder) = sessions() else { return };
    let mut known = BTreeMap::new();
    for file in find_session_files(&[folder], |problem| panic!("{problem}")) {
        let mut collector = SessionCollector::default();
        if read(&file.source, &mut collector).is_ok() {
            collector.into_sessions().iter().for_each(|session| tasks(session, &mut known));
        }
    }
    let labels = labels();
    let mut rows = Vec::new();
    for (source, shown) in [("agents", "coding agents"), ("tau-bench", "tau-bench")] {
        for (held_out, half) in [(false, "tuned"), (true, "held out")] {
            let own = || {
                let own = labels.iter().filter(|label| label.source == source);
                own.filter(|label| label.is_held_out() == held_out).map(|label| {
                    let task = known.get(label.task);
                    (task.unwrap_or_else(|| panic!("no task {}", label.task)), label.task_type)
                })
            };
            let share = |of: &dyn Fn(&Task) -> TaskType| {
                let (mut right, mut all) = (0, 0);
                for (task, label) in own() {
                    right += u32::from(of(task) == label);
                    all += 1;
                }
                let interval = wilson(right, all).unwrap();
                let rate = f64::from(right) / f64::from(all);
                format!("{right}/{all} = {rate:.2} ({:.2} to {:.2})", interval.low, interval.high)
            };
            let table = share(&|task| by_table(&task.request));
            let words = share(&|task| TaskType::from_request(&task.request));
            let all = share(&|task| TaskType::from_task(&task.request, &task.work));
            rows.push(format!("| {shown} | {half} | {table} | {words} | {all} |"));
        }
    }
    eprintln!("{}", rows.join("\n"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recorded-sessions.md");
    let page = fs::read_to_string(page).unwrap();
    let missing: Vec<_> = rows.iter().filter(|row| !page.contains(*row)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "rows that docs/recorded-sessions.md does not have");
}
