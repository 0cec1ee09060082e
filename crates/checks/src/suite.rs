//! A suite: frozen cases that were generated once and are rerun unchanged.
//!
//! Types and digests only. A suite contains hints and is therefore an answer key: code that reads
//! or writes one must keep it from the system under test.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::scenario::{GeneratedCase, Scenario};
pub use crate::suite_case::{SuiteCase, id_of_prompt};
use selftest_text::digest;

/// Version of the format. Increases when a key changes its meaning or is removed.
pub const SUITE_VERSION: u32 = 1;

/// Frozen cases, run with `selftest --suite`. An answer key: keep it from the system under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "selftest suite")]
pub struct Suite {
    /// Version of this format; 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// ID of the run that the cases come from; absent in a hand-written suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// SHA-256 of that run's rubric. With another rubric, scores have a different meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric_digest: Option<String>,
    /// SHA-256 of each prompt template of that run, by path under `prompts/`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompt_digests: BTreeMap<String, String>,
    /// The cases, in this order.
    #[schemars(length(min = 1, max = 10_000))]
    pub cases: Vec<SuiteCase>,
}

impl Suite {
    /// Returns the SHA-256 of the cases, independent of the file's comments, key order and run ID.
    pub fn digest(&self) -> String {
        digest::json_sha256_hex(json!(self.cases))
    }
}

/// Returns the SHA-256 of what makes two cases the same: the messages to the system under test, the
/// expected answer, and the judge's criteria. Thresholds and limits are excluded, because they only
/// affect how an answer is rated.
pub fn case_digest(scenario: &Scenario, case: &GeneratedCase) -> String {
    let mut parts = json!(case);
    parts["expected_status"] = json!(scenario.expected_status);
    parts["reply_flow"] = json!(scenario.reply_flow);
    // Omitted if empty, so that digests from before this key stay valid.
    if !scenario.follow_ups.is_empty() {
        parts["follow_ups"] = json!(scenario.follow_ups);
    }
    digest::json_sha256_hex(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{ReplyStep, TaskStatus};
    use selftest_stats::score::Strictness;

    fn case() -> SuiteCase {
        let scenario = json!({"id": "a", "description": "d", "expected_status": "COMPLETE"});
        let (prompt, hints) = ("Explain x".to_owned(), "names y".to_owned());
        let case = GeneratedCase { prompt, hints, ..GeneratedCase::default() };
        SuiteCase::new(serde_json::from_value(scenario).unwrap(), case)
    }

    fn suite(cases: Vec<SuiteCase>) -> Suite {
        let (run_id, rubric_digest, prompt_digests) = (None, None, BTreeMap::new());
        Suite { version: SUITE_VERSION, run_id, rubric_digest, prompt_digests, cases }
    }

    #[test]
    fn only_the_cases_make_the_digest() {
        let one = suite(vec![case()]);
        let mut same = one.clone();
        same.run_id = Some("selftest-20260206-1234-bcdfgh".into());
        assert_eq!(one.digest(), same.digest());
        let mut other = one.clone();
        other.cases[0].hints.push('!');
        assert_ne!(one.digest(), other.digest());
        other = one.clone();
        other.cases[0].scenario.strictness = Some(Strictness::new(0.1).unwrap());
        assert_ne!(one.digest(), other.digest());
    }

    #[test]
    fn a_case_is_what_is_said_and_expected() {
        let digest = |case: &SuiteCase| case_digest(&case.scenario, &case.generated());
        let one = case();
        let mut same = one.clone();
        same.scenario.strictness = Some(Strictness::new(0.1).unwrap());
        same.scenario.timeout_seconds = Some(5.0);
        assert_eq!(digest(&one), digest(&same));
        let changes: [fn(&mut SuiteCase); 7] = [
            |case| case.prompt.push('!'),
            |case| case.hints.push('!'),
            |case| case.checks.push(serde_json::from_value(json!({"lines": 3})).unwrap()),
            |case| case.scenario.checks.push(serde_json::from_value(json!({"lines": 3})).unwrap()),
            |case| case.scenario.expected_status = TaskStatus::Error,
            |case| case.scenario.follow_ups.push("And then?".to_owned()),
            |case| {
                let (reply, expected_status) = ("Flat".to_owned(), TaskStatus::Complete);
                case.scenario.reply_flow.push(ReplyStep { reply, expected_status });
            },
        ];
        for change in changes {
            let mut other = one.clone();
            change(&mut other);
            assert_ne!(digest(&one), digest(&other), "{other:?}");
        }
    }
}
