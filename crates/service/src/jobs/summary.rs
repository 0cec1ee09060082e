//! The result of a job, with the keys of docs/spec/skills-and-signals.md#job-results. Pure.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It did its work.
    Completed,
    /// It could not.
    Failed,
    /// There was nothing that it could have worked on.
    Skipped,
}

impl Status {
    /// As in the summary.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

/// The result that a job returns (docs/spec/skills-and-signals.md#job-results): a status, what was
/// counted, why it failed or was skipped, and how long it took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How it ended.
    pub status: Status,
    /// Why there was nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Counts and names, in the order in which the job gives them.
    #[serde(flatten)]
    pub counts: Map<String, Value>,
    /// Milliseconds.
    pub elapsed_ms: f64,
}

/// How a job's work ended: its counts, or why there was nothing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// The counts.
    Completed(Map<String, Value>),
    /// Why there was nothing to do.
    Skipped(String),
}

impl Done {
    /// These counts, an object.
    pub fn counted(counts: &Value) -> Self {
        Done::Completed(counts.as_object().cloned().unwrap_or_default())
    }
}

impl Summary {
    /// Of work that took so long.
    pub fn of(done: Result<Done, String>, elapsed: Duration) -> Self {
        // As specified: tenths of a millisecond.
        let elapsed_ms = (elapsed.as_secs_f64() * 10_000.0).round() / 10.0;
        let empty = Self {
            status: Status::Completed,
            reason: None,
            error: None,
            counts: Map::new(),
            elapsed_ms,
        };
        match done {
            Ok(Done::Completed(counts)) => Self { counts, ..empty },
            Ok(Done::Skipped(why)) => Self { status: Status::Skipped, reason: Some(why), ..empty },
            Err(why) => Self { status: Status::Failed, error: Some(why), ..empty },
        }
    }

    /// The counts as `name=value` for a line of a log; names in lists are left out.
    pub fn counted(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.counts.iter().filter(|(_, value)| value.is_number()) {
            let separator = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{separator}{name}={value}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counts() -> Map<String, Value> {
        let counts = json!({ "skills_scored": 3, "skills_disabled": 1, "disabled_names": ["fix"] });
        counts.as_object().unwrap().clone()
    }

    /// docs/spec/skills-and-signals.md#job-results: the objects that a job returns.
    #[test]
    fn a_job_returns_the_specified_objects() {
        let elapsed = Duration::from_micros(12_340);
        let of = |done| serde_json::to_string(&Summary::of(done, elapsed)).unwrap();
        assert_eq!(
            of(Ok(Done::Completed(counts()))),
            r#"{"status":"completed","skills_scored":3,"skills_disabled":1,"disabled_names":["fix"],"elapsed_ms":12.3}"#
        );
        assert_eq!(
            of(Ok(Done::Skipped("no DEFAULT_USER_ID".to_owned()))),
            r#"{"status":"skipped","reason":"no DEFAULT_USER_ID","elapsed_ms":12.3}"#
        );
        assert_eq!(
            of(Err("boom".to_owned())),
            r#"{"status":"failed","error":"boom","elapsed_ms":12.3}"#
        );
    }

    #[test]
    fn read_back_as_written() {
        for done in [Ok(Done::Completed(counts())), Ok(Done::Skipped("x".to_owned()))] {
            let summary = Summary::of(done, Duration::from_millis(7));
            let text = serde_json::to_string(&summary).unwrap();
            assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
        }
    }

    #[test]
    fn a_log_line_has_the_numbers() {
        let summary = Summary::of(Ok(Done::Completed(counts())), Duration::ZERO);
        assert_eq!(summary.counted(), "skills_scored=3 skills_disabled=1");
    }
}
