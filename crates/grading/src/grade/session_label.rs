//! Labels that record if the task of a session truly succeeded, given by a person, a verifier or
//! CI, the reader for label files, and outcomes measured on labelled sessions: precision, recall and
//! lift of each outcome and state, by source, beside the baseline of claims.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::estimate::LabelledGrade;
use super::outcome::{OutcomeSign, StateName, TaskOutcome};
use super::share::{Proportion, rounded, saturated};
use super::{GradeRecord, OutcomeState};
use selftest_stats::{Interval, proportion_difference};

/// Maximum size in bytes of a label file.
pub const MAX_FILE: u64 = 64 * 1024 * 1024;
/// Keys that may contain the session ID, most specific first.
const SESSION_KEYS: [&str; 10] = [
    "session_id",
    "session",
    "trial_name",
    "trajectory_id",
    "instance_id",
    "id",
    "run_id",
    "uuid",
    "file",
    "task_id",
];
/// Keys that may contain the result: true, false, or a reward from 0 to 1.
const SUCCESS_KEYS: [&str; 8] =
    ["success", "succeeded", "passed", "resolved", "is_resolved", "is_correct", "reward", "score"];

/// Source of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum LabelSource {
    /// A person, with `selftest sessions label`.
    Person,
    /// A file with benchmark rewards or CI results.
    File,
    /// A person's override of `task_completed`.
    Override,
}

selftest_text::named!(LabelSource);

/// Label of a session's task: success or failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLabel {
    /// ID of the session.
    pub session_id: String,
    /// True if the task succeeded.
    pub success: bool,
    /// Source of the label.
    pub source: LabelSource,
    /// Task, if several sessions worked on the same one. They are held out together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Note for readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Time of labelling.
    pub labelled_at: Timestamp,
}

/// Reads labels from JSON: one object per line, or an array of objects.
///
/// Each object contains a session ID and a result. A reward below `least_reward` counts as failure.
///
/// # Errors
///
/// The error names the line or entry, the problem, and what was expected.
pub fn read_labels(
    text: &str,
    least_reward: f64,
    labelled_at: Timestamp,
) -> Result<Vec<SessionLabel>, LabelFileError> {
    // Byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let one = |place: String, value: Value| {
        let label = match &value {
            Value::Object(map) => label(map, least_reward, labelled_at),
            _ => Err(LabelFault::Shape),
        };
        label.map_err(|source| LabelFileError::Label { place, source })
    };
    if text.trim_start().starts_with('[') {
        let list: Vec<Value> = serde_json::from_str(text)?;
        return list
            .into_iter()
            .zip(1..)
            .map(|(value, at)| one(format!("entry {at}"), value))
            .collect();
    }
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let read = |(line, at): (&str, usize)| {
        let place = format!("line {at}");
        match serde_json::from_str(line) {
            Ok(value) => one(place, value),
            Err(error) => Err(LabelFileError::Label { place, source: error.into() }),
        }
    };
    lines.map(read).collect()
}

/// Labels that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LabelFileError {
    /// An array that is not JSON.
    #[error(transparent)]
    Array(#[from] serde_json::Error),
    /// A line or an entry that is no label.
    #[error("{place}: {source}")]
    Label {
        /// The line or entry.
        place: String,
        /// The problem.
        source: LabelFault,
    },
}

/// Reasons why a value is no label.
#[derive(Debug, thiserror::Error)]
pub enum LabelFault {
    /// Not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Not an object.
    #[error("expected an object such as {EXAMPLE}")]
    Shape,
    /// No key with a session.
    #[error("no session is named: expected one of {}", SESSION_KEYS.join(", "))]
    NoSession,
    /// No key with a result.
    #[error("nothing says whether it succeeded: expected one of {}", SUCCESS_KEYS.join(", "))]
    NoResult,
    /// A result that is neither a boolean nor a reward.
    #[error("{key} is {value}, expected true, false or 0 to 1")]
    Result {
        /// Its key.
        key: &'static str,
        /// Its value, shortened.
        value: String,
    },
}

/// Example of a label, for error messages.
const EXAMPLE: &str = r#"{"session_id": "0199…", "success": true, "task": "fix-login"}"#;

fn label(
    map: &Map<String, Value>,
    least_reward: f64,
    labelled_at: Timestamp,
) -> Result<SessionLabel, LabelFault> {
    let text = |key: &str| match map.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let session_id = SESSION_KEYS.iter().find_map(|key| text(key));
    let session_id = session_id.ok_or(LabelFault::NoSession)?;
    let said = SUCCESS_KEYS.iter().find_map(|key| Some((*key, map.get(*key)?)));
    let (key, value) = said.ok_or(LabelFault::NoResult)?;
    let success = match value {
        Value::Bool(success) => Some(*success),
        Value::Number(number) => {
            // A score of another scale, such as 72.5, must not count as success.
            number.as_f64().filter(|it| (0.0..=1.0).contains(it)).map(|it| it >= least_reward)
        }
        _ => None,
    };
    let success = success.ok_or_else(|| LabelFault::Result {
        key,
        value: selftest_text::one_line(&value.to_string(), 40),
    })?;
    Ok(SessionLabel {
        session_id,
        success,
        source: LabelSource::File,
        task: text("task").or_else(|| text("task_id")),
        note: text("note"),
        labelled_at,
    })
}

/// Success of labelled sessions by what was seen of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutcomeTable {
    /// Share of all labelled sessions that succeeded: the base rate.
    pub all: Proportion,
    /// Every outcome, also those that do not occur.
    pub outcomes: Vec<OutcomeRow<TaskOutcome>>,
    /// The states that occur.
    pub states: Vec<OutcomeRow<StateName>>,
    /// What the agent's last message alone would say.
    pub baseline: Vec<OutcomeRow<LastMessage>>,
}

/// The dumbest reading of a session: its last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LastMessage {
    /// It says that the task is done.
    SaysDone,
    /// It does not.
    SaysNothing,
}

/// Success of the labelled sessions of which the same was seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutcomeRow<T> {
    /// What was seen.
    pub seen: T,
    /// Share of its sessions that succeeded: the precision of reading it as success.
    pub succeeded: Proportion,
    /// Share of all successes that are here: the recall of reading it as success.
    pub of_successes: Proportion,
    /// Share of all failures that are here: the recall of reading it as failure.
    pub of_failures: Proportion,
    /// `succeeded` less the base rate, -1.0 to 1.0. Absent without sessions.
    pub lift: Option<f64>,
    /// 95 % interval of the lift. Absent if all sessions or none are here.
    pub lift_interval: Option<Interval>,
}

impl<T> OutcomeRow<T> {
    /// Returns true if success is more frequent here than among all sessions, beyond chance.
    pub fn raises(&self) -> bool {
        self.lift_interval.is_some_and(|interval| interval.low > 0.0)
    }

    /// Returns true if success is less frequent here than among all sessions, beyond chance.
    pub fn lowers(&self) -> bool {
        self.lift_interval.is_some_and(|interval| interval.high < 0.0)
    }
}

/// Successes and sessions.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    successes: u64,
    sessions: u64,
}

impl Tally {
    fn add(&mut self, success: bool) {
        self.successes += u64::from(success);
        self.sessions += 1;
    }

    fn row<T>(self, seen: T, all: Tally) -> OutcomeRow<T> {
        let succeeded = Proportion::new(self.successes, self.sessions);
        let base = Proportion::new(all.successes, all.sessions);
        let failures = |tally: Tally| tally.sessions.saturating_sub(tally.successes);
        let lift = succeeded.rate.zip(base.rate).map(|(rate, base)| rounded(rate - base));
        OutcomeRow {
            seen,
            succeeded,
            of_successes: Proportion::new(self.successes, all.successes),
            of_failures: Proportion::new(failures(self), failures(all)),
            lift,
            lift_interval: self.lift_interval(all),
        }
    }

    /// The sessions here are a part of all, so the lift is their difference from the others, times
    /// the share of the others.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn lift_interval(self, all: Tally) -> Option<Interval> {
        let (successes, sessions) =
            (all.successes.checked_sub(self.successes)?, all.sessions.checked_sub(self.sessions)?);
        let counts = |successes, sessions| (saturated(successes), saturated(sessions));
        let ends = proportion_difference(
            counts(self.successes, self.sessions),
            counts(successes, sessions),
        )?;
        let others = sessions as f64 / all.sessions as f64;
        Some(Interval { low: rounded(ends.low * others), high: rounded(ends.high * others) })
    }
}

/// Counts successes by what each session itself shows. Results from elsewhere are left out: they
/// are labels.
pub fn outcome_table(labelled: &[LabelledGrade<'_>]) -> OutcomeTable {
    let mut all = Tally::default();
    // Each outcome has a row, also one that no session had.
    let mut outcomes: BTreeMap<TaskOutcome, Tally> =
        TaskOutcome::ALL.iter().map(|outcome| (*outcome, Tally::default())).collect();
    let mut states: BTreeMap<StateName, Tally> = BTreeMap::new();
    let mut baseline: BTreeMap<LastMessage, Tally> = BTreeMap::new();
    for LabelledGrade { grade, success, .. } in labelled {
        let (outcome, state) = own_outcome(grade);
        let signs = &grade.details.outcome_evidence;
        let says_done = signs.iter().any(|one| one.sign == OutcomeSign::Claims);
        let said = if says_done { LastMessage::SaysDone } else { LastMessage::SaysNothing };
        all.add(*success);
        outcomes.entry(outcome).or_default().add(*success);
        states.entry(state.name()).or_default().add(*success);
        baseline.entry(said).or_default().add(*success);
    }
    OutcomeTable {
        all: Proportion::new(all.successes, all.sessions),
        outcomes: outcomes.into_iter().map(|(seen, tally)| tally.row(seen, all)).collect(),
        states: states.into_iter().map(|(seen, tally)| tally.row(seen, all)).collect(),
        baseline: baseline.into_iter().map(|(seen, tally)| tally.row(seen, all)).collect(),
    }
}

/// Returns outcome and state as the session itself shows them.
fn own_outcome(grade: &GradeRecord) -> (TaskOutcome, OutcomeState) {
    let details = &grade.details;
    (details.own_outcome.unwrap_or(grade.outcome), details.own_state.unwrap_or(details.state))
}

/// What tells the sources of labelled sessions apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKey {
    /// The agent that recorded them.
    Agent,
    /// The model that answered first.
    Model,
    /// The folder that the agent worked in.
    Project,
    /// The first folder of their files below the one that all files are in.
    Folder,
}

/// Groups labelled sessions by their source.
pub fn by_source<'a>(
    labelled: Vec<LabelledGrade<'a>>,
    key: SourceKey,
) -> BTreeMap<String, Vec<LabelledGrade<'a>>> {
    let files = || labelled.iter().map(|one| Path::new(&one.grade.session_file));
    let shared = shared_folders(files());
    let source = |grade: &GradeRecord| match key {
        SourceKey::Agent => grade.details.agent.clone(),
        SourceKey::Model => grade.model.clone().unwrap_or_else(|| "no model".to_owned()),
        SourceKey::Project => {
            grade.details.project.clone().unwrap_or_else(|| "no project".to_owned())
        }
        SourceKey::Folder => {
            let below = folders(Path::new(&grade.session_file)).nth(shared);
            below.map_or_else(|| ".".to_owned(), |one| one.as_os_str().to_string_lossy().into())
        }
    };
    let mut sources: BTreeMap<String, Vec<LabelledGrade<'a>>> = BTreeMap::new();
    for one in labelled {
        sources.entry(source(one.grade)).or_default().push(one);
    }
    sources
}

fn folders(file: &Path) -> impl Iterator<Item = Component<'_>> {
    file.parent().into_iter().flat_map(Path::components)
}

/// Returns the number of leading folders that all files share.
fn shared_folders<'p>(mut files: impl Iterator<Item = &'p Path>) -> usize {
    let Some(first) = files.next() else { return 0 };
    let shared = |file: &Path| {
        folders(first).zip(folders(file)).take_while(|(one, other)| one == other).count()
    };
    files.map(shared).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::grade_record::sample;
    use super::super::{OutcomeEvidence, TestCounts, TestScope};
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, bool, Option<String>)>, LabelFileError> {
        let labels = read_labels(text, 1.0, Timestamp::UNIX_EPOCH)?;
        Ok(labels.into_iter().map(|one| (one.session_id, one.success, one.task)).collect())
    }

    #[test]
    fn lines_and_lists() {
        let expected =
            vec![("a".to_owned(), true, None), ("7".to_owned(), false, Some("t".to_owned()))];
        let lines = "\u{feff}{\"session_id\": \"a\", \"success\": true}\n\n\
                     {\"id\": 7, \"reward\": 0.5, \"task_id\": \"t\"}\n";
        assert_eq!(read(lines).unwrap(), expected);
        let list = r#" [{"session": "a", "passed": 1}, {"id": 7, "resolved": false, "task": "t"}]"#;
        assert_eq!(read(list).unwrap(), expected);
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn what_is_no_label_is_said_with_its_line() {
        for (text, why) in [
            ("{}", "line 1: no session is named"),
            ("\n{\"id\": \"a\"}", "line 2: nothing says whether it succeeded"),
            (r#"{"id": "a", "success": "yes"}"#, "line 1: success is \"yes\", expected true"),
            (r#"{"id": "a", "reward": 2}"#, "line 1: reward is 2, expected"),
            (r#"[{"id": "a", "reward": 1}, 3]"#, "entry 2: expected an object"),
            ("session,success\na,1", "line 1: expected value"),
        ] {
            let said = read(text).unwrap_err().to_string();
            assert!(said.starts_with(why), "{said}");
        }
    }

    #[test]
    fn rewards_count_from_the_least() {
        let text = r#"{"id": "a", "score": 0.7}"#;
        let success = |least| read_labels(text, least, Timestamp::UNIX_EPOCH).unwrap()[0].success;
        assert!(success(0.7) && !success(1.0));
    }

    fn whole_suite(id: &str) -> GradeRecord {
        let counts = Some(TestCounts { passed: 3, ..TestCounts::default() });
        let mut grade = sample(id);
        grade.outcome = TaskOutcome::ChecksPassed;
        grade.details.state = OutcomeState::TestsPassed { scope: TestScope::Whole, counts };
        grade
    }

    fn label(grade: &GradeRecord, success: bool) -> LabelledGrade<'_> {
        LabelledGrade { grade, success, task: "t" }
    }

    #[test]
    fn outcomes_are_compared_with_all() {
        let mut whole = whole_suite("a");
        let sign = OutcomeSign::Claims;
        whole.details.outcome_evidence =
            vec![OutcomeEvidence { sign, event: 1, words: String::new() }];
        let mut claimed = sample("b");
        claimed.outcome = TaskOutcome::Unknown;
        let mut labelled = vec![label(&whole, true); 18];
        labelled.extend(vec![label(&whole, false); 2]);
        labelled.extend(vec![label(&claimed, true); 6]);
        labelled.extend(vec![label(&claimed, false); 14]);
        let table = outcome_table(&labelled);
        assert_eq!((table.all.count, table.all.of), (24, 40));
        let [whole, unknown] = &table.states[..] else { panic!("{table:?}") };
        assert_eq!((whole.seen, unknown.seen), (StateName::WholeSuitePassed, StateName::Unknown));
        assert_eq!((whole.lift, whole.of_successes.count), (Some(0.3), 18));
        assert!(whole.raises() && !whole.lowers() && unknown.lowers(), "{table:?}");
        // Half of Newcombe's interval of 18 of 20 against 6 of 20.
        let interval = whole.lift_interval.unwrap();
        assert!(interval.low > 0.15 && interval.high < 0.42, "{interval:?}");
        let rows: Vec<u64> = table.outcomes.iter().map(|row| row.succeeded.of).collect();
        assert_eq!(rows, [20, 0, 0, 20]);
        assert_eq!((table.outcomes[1].lift, table.outcomes[1].lift_interval), (None, None));
        assert_eq!(table.baseline.len(), 2);
        assert_eq!(table.baseline[0].succeeded, whole.succeeded);
    }

    #[test]
    fn without_others_there_is_no_interval() {
        let whole = whole_suite("a");
        let table = outcome_table(&[label(&whole, true), label(&whole, false)]);
        assert_eq!((table.states[0].lift, table.states[0].lift_interval), (Some(0.0), None));
        assert_eq!(outcome_table(&[]).states, []);
    }

    #[test]
    fn a_result_from_elsewhere_is_no_evidence() {
        let mut checked = whole_suite("a");
        checked.outcome = TaskOutcome::Contradicted;
        checked.details.own_outcome = Some(TaskOutcome::Claimed);
        checked.details.own_state = Some(OutcomeState::Claimed);
        let table = outcome_table(&[label(&checked, false)]);
        assert_eq!(table.states[0].seen, StateName::Claimed);
        assert_eq!(table.outcomes.iter().map(|row| row.succeeded.of).sum::<u64>(), 1);
        assert_eq!(table.outcomes[2].succeeded.of, 1);
    }

    #[test]
    fn folders_are_sources() {
        let grades = ["/r/swe/a/1.traj", "/r/swe/b/2.traj", "/r/terminal/3.json", "/r/4.json"]
            .map(|file| GradeRecord { session_file: file.to_owned(), ..sample("a") });
        let labelled = || grades.iter().map(|grade| label(grade, true)).collect();
        let counts = |key| -> Vec<(String, usize)> {
            by_source(labelled(), key).into_iter().map(|(name, of)| (name, of.len())).collect()
        };
        let expected = [(".", 1), ("swe", 2), ("terminal", 1)];
        assert_eq!(counts(SourceKey::Folder), expected.map(|(name, n)| (name.to_owned(), n)));
        assert_eq!(counts(SourceKey::Agent).len(), 1);
        assert!(by_source(Vec::new(), SourceKey::Folder).is_empty());
    }
}
