//! Results that stand in files beside a session: of Harbor, SWE-bench, terminal-bench, tau-bench,
//! and JUnit. Reads their text and joins them to a session by id or folder; opens no file.

use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::outcome::{ElsewhereResult, OutcomeSign, OutcomeState, ResultSource};
use super::{GradeRecord, TaskOutcome};
use crate::english;

/// Maximum number of results of one file.
const MAX_RESULTS: usize = 20_000;
/// Maximum depth of nested lists of results.
const MAX_DEPTH: usize = 6;
/// Maximum number of results that a grade keeps.
const MAX_KEPT: usize = 8;

/// Names of files with results, relative to a folder above the session.
pub const RESULT_FILES: [&str; 12] = [
    "result.json",
    "results.json",
    "report.json",
    "rewards.json",
    "results/results.json",
    "verifier/reward.txt",
    "verifier/reward.json",
    "reward.txt",
    "reward.json",
    "verifier/junit.xml",
    "junit.xml",
    "test-results.xml",
];

/// Result of a task, as a file states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Ids of the task, instance or trial. Empty if the file's place names the task.
    #[serde(skip)]
    pub ids: Vec<String>,
    /// True if the task succeeded; `None` for a partial reward.
    pub passed: Option<bool>,
    /// The result as the file states it, such as *reward 0*.
    pub words: String,
    /// Path of the file.
    pub file: String,
}

/// Reads the results in a file. Text in no known form has none.
pub fn read_results(file: &str, text: &str) -> Vec<TaskResult> {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let mut results = Vec::new();
    if name.ends_with(".txt") {
        let reward = text.trim().parse::<f64>().ok().map(Value::from);
        results.extend(reward.and_then(|value| of_value(Vec::new(), "reward", &value)));
    } else if name.ends_with(".xml") {
        results.extend(junit(text));
    // Programs on Windows may start a JSON file with a byte order mark, which serde_json refuses.
    } else if let Ok(value) = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) {
        collect(&value, &mut results, 0);
    }
    results.truncate(MAX_RESULTS);
    results.into_iter().map(|one| TaskResult { file: file.to_owned(), ..one }).collect()
}

/// Keys that name a task or a run of it.
const ID_KEYS: [&str; 6] =
    ["trial_name", "instance_id", "task_id", "session_id", "task_name", "trajectory_id"];
/// Keys that state a result: true, false, 0 or 1.
const RESULT_KEYS: [&str; 7] =
    ["resolved", "is_resolved", "reward", "success", "succeeded", "passed", "score"];
/// Keys of lists with one entry per task.
const LIST_KEYS: [&str; 4] = ["results", "trial_results", "trials", "simulations"];
/// Lists of ids by result: SWE-bench's reports.
const SUCCESS_LISTS: [&str; 2] = ["resolved_ids", "resolved"];
const FAILURE_LISTS: [&str; 8] = [
    "unresolved_ids",
    "unresolved",
    "error_ids",
    "empty_patch_ids",
    "no_generation",
    "generated",
    "applied",
    "no_apply",
];

fn collect(value: &Value, results: &mut Vec<TaskResult>, depth: usize) {
    if depth > MAX_DEPTH || results.len() >= MAX_RESULTS {
        return;
    }
    match value {
        Value::Array(list) => list.iter().for_each(|one| collect(one, results, depth + 1)),
        Value::Object(map) => collect_object(map, results, depth),
        _ => {}
    }
}

fn collect_object(map: &Map<String, Value>, results: &mut Vec<TaskResult>, depth: usize) {
    let ids: Vec<String> = ID_KEYS.iter().filter_map(|key| text_of(map.get(*key)?)).collect();
    // Harbor: a trial whose verifier did not run has no result.
    let verifier = map.get("verifier_result").and_then(Value::as_object);
    let rewards = verifier.map(|verifier| verifier.get("rewards").unwrap_or(&Value::Null));
    let reward = match rewards {
        Some(Value::Object(rewards)) => reward_of(rewards),
        _ => verifier.and_then(|verifier| verifier.get("reward")),
    };
    if let Some(reward) = reward {
        results.extend(of_value(ids, "reward", reward));
        return;
    }
    let info = map.get("reward_info").and_then(|info| info.get("reward"));
    // A number of `passed` or `resolved` ones counts tests or tasks.
    let is_result = |key: &str, value: &Value| {
        value.is_boolean() || (value.is_number() && matches!(key, "reward" | "score" | "success"))
    };
    let own = RESULT_KEYS.iter().find_map(|key| {
        map.get(*key).filter(|value| is_result(key, value)).map(|value| (*key, value))
    });
    // tau-bench: the reward is one level below, in `reward_info`.
    if let Some((key, value)) = info.map(|value| ("reward", value)).or(own) {
        results.extend(of_value(ids, key, value));
        return;
    }
    for key in LIST_KEYS {
        if let Some(list @ Value::Array(_)) = map.get(key) {
            collect(list, results, depth + 1);
        }
    }
    let listed = |keys: &[&str]| -> Vec<String> {
        let lists = keys.iter().filter_map(|key| map.get(*key)?.as_array());
        lists.flatten().filter_map(text_of).collect()
    };
    let resolved = listed(&SUCCESS_LISTS);
    if SUCCESS_LISTS.iter().any(|key| map.get(*key).is_some_and(Value::is_array)) {
        // An id may be in `applied` or `generated` too: these lists hold every id that came so far.
        let known: HashSet<&str> = resolved.iter().map(String::as_str).collect();
        for id in listed(&FAILURE_LISTS) {
            if results.len() < MAX_RESULTS && !known.contains(id.as_str()) {
                results.extend(of_value(vec![id], "resolved", &Value::Bool(false)));
            }
        }
        for id in resolved {
            results.extend(of_value(vec![id], "resolved", &Value::Bool(true)));
        }
        return;
    }
    // SWE-bench: an object per instance, below its id.
    for (id, value) in map {
        if let Some(resolved @ Value::Bool(_)) = value.get("resolved") {
            results.extend(of_value(vec![id.clone()], "resolved", resolved));
        }
    }
}

/// Returns the reward: the one of that name, or the only one.
fn reward_of(rewards: &Map<String, Value>) -> Option<&Value> {
    rewards.get("reward").or_else(|| rewards.values().next().filter(|_| rewards.len() == 1))
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a result for true, false, 1 and 0. Another number is a result that does not decide.
fn of_value(ids: Vec<String>, key: &str, value: &Value) -> Option<TaskResult> {
    let passed = match value {
        Value::Bool(passed) => Some(*passed),
        Value::Number(number) => match number.as_f64()? {
            number if (number - 1.0).abs() < f64::EPSILON => Some(true),
            number if number.abs() < f64::EPSILON => Some(false),
            _ => None,
        },
        _ => return None,
    };
    let words = format!("{key} {value}");
    Some(TaskResult { ids, passed, words, file: String::new() })
}

static SUITE: LazyLock<Regex> = LazyLock::new(|| english::regex(r"<(testsuites?)\b([^>]*)>"));
static ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r#"\b(tests|failures|errors|skipped|disabled)\s*=\s*["'](\d{1,9})["']"#)
});

/// Reads the counts of a JUnit file: those of the outermost element, or the sum of its suites.
fn junit(text: &str) -> Option<TaskResult> {
    let mut sums = [0_u64; 4];
    for suite in SUITE.captures_iter(text).take(MAX_RESULTS) {
        let mut counts = [0_u64; 4];
        let mut is_counted = false;
        for found in ATTRIBUTE.captures_iter(&suite[2]) {
            let at = match &found[1] {
                "tests" => 0,
                "failures" => 1,
                "errors" => 2,
                _ => 3,
            };
            is_counted = true;
            counts[at] += found[2].parse::<u64>().unwrap_or(0);
        }
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        // The outermost element has the sum already.
        if is_counted && &suite[1] == "testsuites" {
            break;
        }
    }
    let [tests, failures, errors, skipped] = sums;
    let failed = failures + errors;
    let ran = tests.saturating_sub(skipped);
    let words = format!("{ran} tests ran, {failed} failed, {skipped} skipped");
    (tests > 0).then_some(TaskResult {
        ids: Vec::new(),
        // A run that skipped all of its tests checked nothing, so it is not a success.
        passed: if failed > 0 { Some(false) } else { (ran > 0).then_some(true) },
        words,
        file: String::new(),
    })
}

/// Returns the results that belong to a session.
///
/// A result with ids belongs to the session whose id or path has one of them; a trial's folder may
/// add a suffix after two underscores. A result without ids belongs to its folder, if `is_alone`
/// says that no other session could be meant.
pub fn results_of<'r>(
    session_id: &str,
    session_file: &str,
    results: &'r [TaskResult],
    is_alone: bool,
) -> Vec<&'r TaskResult> {
    // The most specific id decides: two trials of one task share the task's name.
    let places = session_names(session_id, session_file);
    let is_named = |id: &str| {
        places.iter().any(|place| {
            place == id || place.strip_prefix(id).is_some_and(|rest| rest.starts_with("__"))
        })
    };
    results
        .iter()
        .filter(|one| match one.ids.first() {
            None => is_alone,
            Some(first) if one.ids.len() > 1 && first != &one.ids[1] => {
                // A trial's own name is known only where a folder has it.
                is_named(first)
                    || (one.ids[1..].iter().any(|id| is_named(id))
                        && !has_trials(results, &one.ids[1..]))
            }
            Some(first) => is_named(first),
        })
        .take(MAX_KEPT)
        .collect()
}

/// Returns true if several results are of the same task, so that its name does not tell which.
fn has_trials(results: &[TaskResult], ids: &[String]) -> bool {
    let same = results.iter().filter(|one| one.ids.iter().any(|id| ids.contains(id)));
    same.take(2).count() > 1
}

/// Returns the names by which files refer to a session: its id, and the names of its file and of the
/// folders around it.
pub fn session_names(session_id: &str, session_file: &str) -> Vec<String> {
    const MAX_FOLDERS: usize = 6;
    let path = Path::new(session_file);
    let folders = path.ancestors().skip(1).take(MAX_FOLDERS);
    let folders = folders.filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // `django__django-11099.traj.json`
    let stem = [".json", ".jsonl", ".traj"]
        .iter()
        .fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
    let stem = stem.strip_suffix(".traj").unwrap_or(stem);
    [session_id.to_owned(), name.to_owned(), stem.to_owned()].into_iter().chain(folders).collect()
}

/// Adds results to a grade. They outrank what the session itself shows; with verdicts that disagree
/// the task counts as contradicted.
pub fn apply_results(mut record: GradeRecord, results: &[&TaskResult]) -> GradeRecord {
    if results.is_empty() {
        return record;
    }
    record.details.results = results.iter().take(MAX_KEPT).map(|one| (*one).clone()).collect();
    let inside = record.details.outcome_evidence.iter().map(|one| one.sign);
    let inside = inside.filter_map(OutcomeSign::verdict);
    let verdicts: Vec<bool> = inside.chain(results.iter().filter_map(|one| one.passed)).collect();
    let result = match verdicts.iter().filter(|passed| **passed).count() {
        // Partial rewards only: they are kept as details, and the session's own outcome stays.
        _ if verdicts.is_empty() => return record,
        0 => ElsewhereResult::Failed,
        all if all == verdicts.len() => ElsewhereResult::Passed,
        _ => ElsewhereResult::Disagreed,
    };
    let state = OutcomeState::CheckedElsewhere { by: ResultSource::Verifier, result };
    // The first own state stays when results are applied a second time.
    record.details.own_state.get_or_insert(record.details.state);
    record.details.own_outcome.get_or_insert(record.outcome);
    record.details.state = state;
    record.outcome = match result {
        ElsewhereResult::Passed => TaskOutcome::ChecksPassed,
        ElsewhereResult::Failed | ElsewhereResult::Disagreed => TaskOutcome::Contradicted,
    };
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::grade_record::sample;

    fn read(file: &str, text: &str) -> Vec<(Vec<String>, Option<bool>, String)> {
        let results = read_results(file, text).into_iter();
        results.map(|one| (one.ids, one.passed, one.words)).collect()
    }

    fn one(ids: &[&str], passed: Option<bool>, words: &str) -> (Vec<String>, Option<bool>, String) {
        (ids.iter().map(|id| (*id).to_owned()).collect(), passed, words.to_owned())
    }

    #[test]
    fn every_form_is_read() {
        for (file, text, expected) in [
            ("a/verifier/reward.txt", "0\n", vec![one(&[], Some(false), "reward 0.0")]),
            ("reward.txt", "0.5", vec![one(&[], None, "reward 0.5")]),
            ("reward.txt", "", vec![]),
            ("reward.txt", "3", vec![one(&[], None, "reward 3.0")]),
            // Counts of tests.
            ("results.json", r#"{"passed":12,"failed":3}"#, vec![]),
            ("results.json", r#"{"passed":true}"#, vec![one(&[], Some(true), "passed true")]),
            ("results.json", r#"{"score":72.5}"#, vec![one(&[], None, "score 72.5")]),
            ("reward.json", r#"{"reward": 1}"#, vec![one(&[], Some(true), "reward 1")]),
            (
                "result.json",
                r#"{"id":"x","task_name":"hello","trial_name":"hello__a1","verifier_result":{"rewards":{"reward":0.0}},"exception_info":null}"#,
                vec![one(&["hello__a1", "hello"], Some(false), "reward 0.0")],
            ),
            (
                "result.json",
                r#"{"task_name":"hello","trial_name":"hello__a1","verifier_result":null,"exception_info":{"exception_type":"E"}}"#,
                vec![],
            ),
            (
                "report.json",
                r#"{"django__django-1":{"patch_exists":true,"resolved":true,"tests_status":{}}}"#,
                vec![one(&["django__django-1"], Some(true), "resolved true")],
            ),
            (
                "report.json",
                r#"{"resolved_ids":["a-1"],"unresolved_ids":["b-2"],"total_instances":2}"#,
                vec![
                    one(&["b-2"], Some(false), "resolved false"),
                    one(&["a-1"], Some(true), "resolved true"),
                ],
            ),
            (
                "results.json",
                r#"{"id":"r","results":[{"trial_name":"t.1-of-1","task_id":"t","is_resolved":false,"failure_mode":"unset"}],"accuracy":0}"#,
                vec![one(&["t.1-of-1", "t"], Some(false), "is_resolved false")],
            ),
            (
                "results.json",
                r#"[{"task_id":3,"reward":1.0},{"task_id":4,"reward":0}]"#,
                vec![one(&["3"], Some(true), "reward 1.0"), one(&["4"], Some(false), "reward 0")],
            ),
            (
                "results.json",
                r#"{"simulations":[{"task_id":"5","reward_info":{"reward":1.0}}]}"#,
                vec![one(&["5"], Some(true), "reward 1.0")],
            ),
            (
                "junit.xml",
                r#"<testsuites tests="5" failures="1"><testsuite name="a" tests="5" failures="1"/></testsuites>"#,
                vec![one(&[], Some(false), "5 tests ran, 1 failed, 0 skipped")],
            ),
            (
                "junit.xml",
                r#"<testsuite name="a" tests="2" failures="0" errors="0" skipped="2"/>"#,
                vec![one(&[], None, "0 tests ran, 0 failed, 2 skipped")],
            ),
            ("results.json", "{", vec![]),
            ("results.json", "[[[[[[[[[[1]]]]]]]]]]", vec![]),
        ] {
            assert_eq!(read(file, text), expected, "{text}");
        }
    }

    #[test]
    fn a_result_of_another_task_is_not_joined() {
        let of = |text: &str, file: &str, is_alone| {
            let results = read_results("result.json", text);
            results_of("5a3e", file, &results, is_alone).len()
        };
        let trial = r#"{"task_name":"hello","trial_name":"hello__a1","verifier_result":{"rewards":{"reward":0}}}"#;
        assert_eq!(of(trial, "/jobs/j/hello__a1/agent/trajectory.json", true), 1);
        assert_eq!(of(trial, "/jobs/j/hello__b2/agent/trajectory.json", true), 1, "its only trial");
        assert_eq!(of(trial, "/jobs/j/other__c3/agent/trajectory.json", true), 0);
        let two = format!("[{trial},{}]", trial.replace("__a1", "__a2"));
        assert_eq!(of(&two, "/jobs/j/hello__a2/agent/trajectory.json", true), 1);
        let report =
            r#"{"django__django-1":{"resolved":false},"django__django-11":{"resolved":true}}"#;
        assert_eq!(of(report, "/runs/django__django-1/django__django-1.traj.json", true), 1);
        assert_eq!(of(report, "/runs/django__django-2.traj", true), 0);
        let reward = r#"{"reward": 1}"#;
        assert_eq!(of(reward, "/runs/a/session.jsonl", true), 1);
        assert_eq!(of(reward, "/runs/a/session.jsonl", false), 0, "several sessions");
    }

    #[test]
    fn results_outrank_and_disagreement_is_said() {
        let result = |passed| TaskResult {
            ids: Vec::new(),
            passed,
            words: "reward".to_owned(),
            file: "reward.txt".to_owned(),
        };
        let (good, bad, partial) = (result(Some(true)), result(Some(false)), result(None));
        let outcome = |results: &[&TaskResult]| {
            let record = apply_results(sample("s"), results);
            (record.outcome, record.details.state.name().to_string(), record.verdict())
        };
        assert_eq!(
            outcome(&[&good]),
            (TaskOutcome::ChecksPassed, "passed_elsewhere".to_owned(), Some(true))
        );
        assert_eq!(
            outcome(&[&good, &bad]),
            (TaskOutcome::Contradicted, "disagreed_elsewhere".to_owned(), Some(false))
        );
        assert_eq!(outcome(&[&partial]), (TaskOutcome::Unknown, "unknown".to_owned(), None));
    }
}
