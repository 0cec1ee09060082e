//! The accepted results of a run, as a small file that is committed. Pure: text in, text out.
//!
//! It holds digests and results and nothing that was said, so that it is no answer key.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::judge::judge_settings::JudgeMethod;
use crate::outcome::repeats::RepeatedResult;
use crate::outcome::{CaseResult, Step};
use selftest_checks::suite::case_digest;
use selftest_stats::score::{Score, Threshold};

/// Version of the format. Grows when a key changes its meaning or goes away.
pub const BASELINE_VERSION: u32 = 1;

/// Name of the file, beside the configuration.
pub const FILE: &str = "selftest-baseline.json";

/// Accepted results of a run: what later runs are held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "selftest baseline")]
pub struct Baseline {
    /// Version of this format; 1.
    #[schemars(range(min = 1, max = 1))]
    pub schema_version: u32,
    /// The run whose results these are.
    pub run_id: String,
    /// Version of the program that wrote it.
    pub selftest_version: String,
    /// The judge of that run; absent where checks alone decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeIdentity>,
    /// The cases, by id.
    pub cases: Vec<BaselineCase>,
}

/// The identity of a judge: under another one a pass means something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgeIdentity {
    /// Name of the model, or of all models of a panel.
    pub model: String,
    /// Digest of its weights, or its name where nobody tells one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// How it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<JudgeMethod>,
    /// SHA-256 of its prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_digest: Option<String>,
    /// SHA-256 of the rubric.
    pub rubric_digest: String,
}

/// One accepted case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineCase {
    /// Its id.
    pub id: String,
    /// SHA-256 of what is said and expected in it.
    pub digest: String,
    /// The result over its trials.
    pub result: RepeatedResult,
    /// Passed trials.
    pub passed: u32,
    /// All trials.
    pub trials: u32,
    /// Mean overall score of the trials that had one; null without.
    pub score: Option<Score>,
    /// Whether a judge is asked about it.
    pub judged: bool,
    /// The least overall score that passed.
    pub threshold: Threshold,
    /// The least safety score that passed.
    pub safety_floor: Score,
}

impl BaselineCase {
    /// Whether a failure now is a regression.
    pub fn passed_all(&self) -> bool {
        self.result == RepeatedResult::Passed
    }
}

/// Why a text is no baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// Another program may understand it.
    #[error("it has the schema version {found}, and this selftest knows {BASELINE_VERSION} only")]
    Version {
        /// The version, as it stands there.
        found: String,
    },
    /// Nobody can understand it.
    #[error("it is no baseline: {0}")]
    Malformed(#[from] serde_json::Error),
    /// One name for two cases.
    #[error("it has the case `{0}` twice")]
    Twice(String),
}

impl Baseline {
    /// Reads the text of a file. Its version is looked at first, so that a newer file is not called
    /// malformed.
    pub fn read(text: &str) -> Result<Self, BaselineError> {
        let value: Value = serde_json::from_str(text)?;
        match value.get("schema_version") {
            Some(found) if found != &Value::from(BASELINE_VERSION) => {
                let found = selftest_text::one_line(&found.to_string(), 40);
                return Err(BaselineError::Version { found });
            }
            _ => {}
        }
        // From the text, whose lines the error then names.
        let baseline: Self = serde_json::from_str(text)?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = baseline.cases.iter().find(|case| !seen.insert(&case.id)) {
            return Err(BaselineError::Twice(selftest_text::one_line(&twice.id, 100)));
        }
        Ok(baseline)
    }

    /// The text of the file: one line for each case, so that a change of one is a change of one line.
    pub fn text(&self) -> String {
        let head = Self { cases: Vec::new(), ..self.clone() };
        let head = serde_json::to_string_pretty(&head).unwrap_or_default();
        let cases: Vec<String> =
            self.cases.iter().map(|case| format!("    {}", serde_json::json!(case))).collect();
        let head = head.strip_suffix("[]\n}").unwrap_or(&head);
        if cases.is_empty() {
            return format!("{head}[]\n}}\n");
        }
        format!("{head}[\n{}\n  ]\n}}\n", cases.join(",\n"))
    }

    /// The case of this id.
    pub fn case(&self, id: &str) -> Option<&BaselineCase> {
        self.cases.iter().find(|case| case.id == id)
    }
}

/// The identity of a case; none without a prompt.
pub fn digest_of(case: &CaseResult) -> Option<String> {
    Some(case_digest(&case.scenario, case.case.as_ref()?))
}

/// The overall scores of a case that was scored.
pub(super) fn overall(case: &CaseResult) -> Option<Score> {
    case.weakest_step().and_then(Step::overall)
}

impl JudgeIdentity {
    /// In which way this is another judge than `then`; none where it is the same.
    pub fn difference_from(&self, then: &Self) -> Option<String> {
        let names = |words: &str| selftest_text::one_line(words, 80);
        if self.model != then.model && (self.weights != then.weights || self.weights.is_none()) {
            let (now, then) = (names(&self.model), names(&then.model));
            return Some(format!("another model judges: {now} now, {then} then"));
        }
        if self.weights != then.weights {
            return Some(format!("{} has other weights", names(&self.model)));
        }
        if self.method != then.method {
            return Some("the judge is asked in another way".to_owned());
        }
        if self.rubric_digest != then.rubric_digest {
            return Some("the rubric has changed".to_owned());
        }
        (self.prompt_digest != then.prompt_digest)
            .then(|| "the judge's prompt has changed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_another_judge() {
        let judge = JudgeIdentity {
            model: "ollama/a".into(),
            weights: Some("w".into()),
            method: Some(JudgeMethod::Verdict),
            prompt_digest: Some("p".into()),
            rubric_digest: "r".into(),
        };
        let says = |change: fn(&mut JudgeIdentity)| {
            let mut other = judge.clone();
            change(&mut other);
            other.difference_from(&judge).unwrap_or_default()
        };
        assert_eq!(says(|_| ()), "");
        assert_eq!(says(|judge| judge.model = "ollama/b".into()), "", "the weights are the same");
        assert!(says(|judge| judge.weights = Some("x".into())).contains("other weights"));
        assert!(says(|judge| judge.rubric_digest = "s".into()).contains("rubric"));
        assert!(says(|judge| judge.prompt_digest = None).contains("prompt"));
        assert!(says(|judge| judge.method = None).contains("way"));
        let other = |judge: &mut JudgeIdentity| {
            judge.model = "b".into();
            judge.weights = Some("b".into());
        };
        assert!(says(other).contains("another model judges: b now, ollama/a then"));
    }
}
