//! Labels that record if the task of a session truly succeeded, given by a person, a verifier or
//! CI, and the reader for label files.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

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

#[cfg(test)]
mod tests {
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
}
