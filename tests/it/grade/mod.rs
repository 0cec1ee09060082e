//! `selftest grade` and `selftest sessions`: recorded sessions, their grades, and what becomes
//! of both.

// What the tests stand on.
pub(crate) mod receiver;
pub(crate) mod recording;
pub(crate) mod sqlite;

// Grading.
mod file;
mod formats;
mod homes;
mod latest;
mod quality;
mod secrets;
mod watch;

// What grades are for.
mod agreement;
mod alerts;
mod cost;
mod dates;
mod labels;
mod overrides;
mod real_week;
mod show;
mod summary;
pub(crate) mod weekly;

// Around it.
mod database;
mod odd_sessions;
mod search;
mod sessions;

use serde_json::Value;

use crate::run::Run;

impl Run {
    /// The output, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {}\n{}", self.stdout, self.stderr))
    }

    /// Ids of the sessions that `--json` says were graded now, in their order.
    #[track_caller]
    fn graded(&self) -> Vec<String> {
        let json = self.json();
        let grades = json["grades"].as_array().unwrap_or_else(|| panic!("no grades: {json}"));
        grades.iter().map(|grade| grade["session_id"].as_str().unwrap().to_owned()).collect()
    }
}
