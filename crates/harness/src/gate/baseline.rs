//! The committed baseline file: the accepted results of a run. Pure: text in, text out.
//!
//! It contains only digests and results and no conversation text, so that it cannot serve as an
//! answer key.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::trials::TrialCounts;
use crate::judge::JudgeMethod;
use crate::outcome::CaseResult;
use crate::outcome::repeats::RepeatedResult;
use selftest_checks::suite::case_digest;
use selftest_stats::score::{Score, Threshold};
use selftest_stats::{TestTail, fisher_exact};

/// Version of the format. Incremented when a key changes its meaning or is removed.
pub const BASELINE_VERSION: u32 = 1;

/// Name of the file, which is stored next to the configuration.
pub const BASELINE_FILE: &str = "selftest-baseline.json";

/// P-value below which two accepted runs are those of different agents.
const CHANGED: f64 = 0.05;

type PairOfCounts = (TrialCounts, TrialCounts);

/// Accepted results of a run, with which later runs are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "selftest baseline")]
pub struct Baseline {
    /// Version of this format; 1.
    #[schemars(range(min = 1, max = 1))]
    pub schema_version: u32,
    /// Id of the run whose results were accepted.
    pub run_id: String,
    /// Version of the program that wrote the file.
    pub selftest_version: String,
    /// The judge of that run. Absent if its cases were decided by checks alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeIdentity>,
    /// The cases, by id.
    pub cases: Vec<BaselineCase>,
}

/// The identity of a judge. A pass by one judge is not comparable with a pass by another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgeIdentity {
    /// Name of the model, or of all models of a panel.
    pub model: String,
    /// Digest of its weights, or its name if no digest is available.
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
    /// Id of the case.
    pub id: String,
    /// SHA-256 of the case's prompt and expectations.
    pub digest: String,
    /// The result over its trials.
    pub result: RepeatedResult,
    /// Number of passed trials.
    pub passed: u32,
    /// Total number of trials.
    pub trials: u32,
    /// Trials that were not retries, in this and in earlier accepted runs of the same case. Absent
    /// if they are those above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_trials: Option<TrialCounts>,
    /// Mean overall score of the trials that have one; null if none has.
    pub score: Option<Score>,
    /// True if a judge decides part of the case.
    pub judged: bool,
    /// Minimum overall score that passed.
    pub threshold: Threshold,
    /// Minimum safety score that passed.
    pub safety_floor: Score,
}

impl BaselineCase {
    /// Returns true if the case passed, so that a failure now would be a regression.
    pub fn passed_all(&self) -> bool {
        self.result == RepeatedResult::Passed
    }

    /// Returns the trials that were not retries, including those of earlier accepted runs.
    pub fn first_trials(&self) -> TrialCounts {
        self.first_trials.unwrap_or_else(|| match self.result {
            RepeatedResult::Unscored => TrialCounts::default(),
            // Trials without a verdict are among `trials`.
            RepeatedResult::Passed => TrialCounts { passed: self.passed, failed: 0 },
            RepeatedResult::Failed | RepeatedResult::Flaky => {
                TrialCounts { passed: self.passed, failed: self.trials.saturating_sub(self.passed) }
            }
        })
    }

    /// Records the trials that were not retries.
    #[must_use]
    pub fn with_first_trials(mut self, counts: TrialCounts) -> Self {
        self.first_trials = None;
        self.first_trials = (self.first_trials() != counts).then_some(counts);
        self
    }

    /// Returns true if a pass means the same in both, apart from the judge.
    fn is_same_case(&self, other: &Self) -> bool {
        let limits = |case: &Self| case.judged.then_some((case.threshold, case.safety_floor));
        (&self.id, &self.digest, self.judged) == (&other.id, &other.digest, other.judged)
            && limits(self) == limits(other)
    }
}

/// The text is not a usable baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The schema version is not supported by this program.
    #[error("it has the schema version {found}, and this selftest knows {BASELINE_VERSION} only")]
    Version {
        /// The version found in the file.
        found: String,
    },
    /// The text cannot be parsed.
    #[error("it is no baseline: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Two cases share an id.
    #[error("it has the case `{0}` twice")]
    Twice(String),
}

impl Baseline {
    /// Parses a baseline file. The version is checked first, so that a file written by a newer
    /// selftest is not reported as malformed.
    pub fn read(text: &str) -> Result<Self, BaselineError> {
        let value: Value = serde_json::from_str(text)?;
        match value.get("schema_version") {
            Some(found) if found != &Value::from(BASELINE_VERSION) => {
                let found = selftest_text::one_line(&found.to_string(), 40);
                return Err(BaselineError::Version { found });
            }
            _ => {}
        }
        // Parsed from the text again, because errors from a `Value` have no line numbers.
        let baseline: Self = serde_json::from_str(text)?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = baseline.cases.iter().find(|case| !seen.insert(&case.id)) {
            return Err(BaselineError::Twice(selftest_text::one_line(&twice.id, 100)));
        }
        Ok(baseline)
    }

    /// Returns the text of the file, with one line per case, so that a changed case is a one-line
    /// diff.
    pub fn text(&self) -> String {
        // The head is pretty-printed without its cases, which are added one per line.
        let head = Self { cases: Vec::new(), ..self.clone() };
        let head = serde_json::to_string_pretty(&head).unwrap_or_default();
        let cases: Vec<String> =
            self.cases.iter().map(|case| format!("    {}", serde_json::json!(case))).collect();
        // `cases` is the last field, so that the head ends in its empty list.
        let head = head.strip_suffix("[]\n}").unwrap_or(&head);
        if cases.is_empty() {
            return format!("{head}[]\n}}\n");
        }
        format!("{head}[\n{}\n  ]\n}}\n", cases.join(",\n"))
    }

    /// Adds the trials of the baseline that this one replaces to those of the same cases, so that
    /// the gate knows how often they fail. Returns the number of added trials: 0 if the two runs
    /// differ beyond chance, because then the agent is another one.
    #[must_use]
    pub fn with_history_of(mut self, former: &Self) -> (Self, u32) {
        let is_same_judge = match (&self.judge, &former.judge) {
            (Some(now), Some(then)) => now.difference_from(then).is_none(),
            (now, then) => now == then,
        };
        let trials_before = |case: &BaselineCase| {
            let then = former.case(&case.id)?;
            let is_comparable = case.is_same_case(then) && (is_same_judge || !case.judged);
            is_comparable.then(|| then.first_trials())
        };
        let pairs: Vec<(TrialCounts, Option<TrialCounts>)> =
            self.cases.iter().map(|case| (case.first_trials(), trials_before(case))).collect();
        let both = pairs.iter().filter_map(|(now, before)| Some((*now, (*before)?)));
        let (now, before) = both.fold(Default::default(), |(now, before): PairOfCounts, pair| {
            (now.plus(pair.0), before.plus(pair.1))
        });
        // An agent that became better is another one too, of which older trials say nothing.
        let is_changed = [TestTail::Less, TestTail::Greater].into_iter().any(|tail| {
            let table = [[now.failed, now.passed], [before.failed, before.passed]];
            fisher_exact(table, tail).is_some_and(|p_value| p_value < CHANGED)
        });
        if is_changed {
            return (self, 0);
        }
        // The same run accepted again is not counted twice.
        let is_same_run = self.run_id == former.run_id;
        let mut added = 0_u32;
        let cases = std::mem::take(&mut self.cases);
        self.cases = cases
            .into_iter()
            .zip(pairs)
            .map(|(case, (now, before))| match before {
                Some(before) if is_same_run => case.with_first_trials(before),
                Some(before) => {
                    let before = before.recent();
                    added = added.saturating_add(before.all());
                    case.with_first_trials(now.plus(before))
                }
                None => case,
            })
            .collect();
        (self, added)
    }

    /// Returns the case with this id.
    pub fn case(&self, id: &str) -> Option<&BaselineCase> {
        self.cases.iter().find(|case| case.id == id)
    }
}

/// Returns the digest that identifies a case, or `None` if it has no prompt.
pub fn case_digest_of(case: &CaseResult) -> Option<String> {
    Some(case_digest(&case.scenario, case.case.as_ref()?))
}

impl JudgeIdentity {
    /// Describes how this judge differs from `then`, or returns `None` if they are the same.
    pub fn difference_from(&self, then: &Self) -> Option<String> {
        let names = |words: &str| selftest_text::one_line(words, 80);
        // The same weights under another name are the same judge.
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

    fn baseline(run_id: &str, counts: &[(u32, u32)]) -> Baseline {
        let case = |(number, (passed, failed)): (usize, &(u32, u32))| BaselineCase {
            id: format!("case-{number}"),
            digest: "d".into(),
            result: RepeatedResult::of(*passed, passed + failed),
            passed: *passed,
            trials: passed + failed,
            first_trials: None,
            score: None,
            judged: false,
            threshold: Threshold::new(0.7).unwrap(),
            safety_floor: Score::new(0.5).unwrap(),
        };
        Baseline {
            schema_version: BASELINE_VERSION,
            run_id: run_id.into(),
            selftest_version: "0.1.0".into(),
            judge: None,
            cases: counts.iter().enumerate().map(case).collect(),
        }
    }

    #[test]
    fn trials_of_earlier_baselines_are_kept_until_the_agent_is_another_one() {
        let counts = |baseline: &Baseline| -> Vec<(u32, u32)> {
            let of = |case: &BaselineCase| (case.first_trials().passed, case.first_trials().failed);
            baseline.cases.iter().map(of).collect()
        };
        let first = baseline("a", &[(1, 0), (1, 0), (0, 1)]);
        let (second, added) = baseline("b", &[(1, 0), (0, 1), (1, 0)]).with_history_of(&first);
        assert_eq!((counts(&second), added), (vec![(2, 0), (1, 1), (1, 1)], 3));
        // The same run accepted again counts once.
        let (again, added) = baseline("b", &[(1, 0), (0, 1), (1, 0)]).with_history_of(&second);
        assert_eq!((counts(&again), added), (counts(&second), 0));
        assert_eq!(Baseline::read(&again.text()).unwrap(), again);
        // What was seen long ago fades.
        let long = baseline("a", &[(90, 10); 3]);
        let (kept, _) = baseline("b", &[(1, 0); 3]).with_history_of(&long);
        assert_eq!(counts(&kept), [(1 + 22, 3); 3]);
        // An agent that passes now what always failed is another one.
        let (better, added) =
            baseline("b", &[(5, 0); 3]).with_history_of(&baseline("a", &[(0, 5); 3]));
        assert_eq!((counts(&better), added), (vec![(5, 0); 3], 0));
        // So is a case with another prompt.
        let mut other = baseline("a", &[(1, 0); 3]);
        other.cases[1].digest = "e".into();
        let (changed, _) = baseline("b", &[(1, 0); 3]).with_history_of(&other);
        assert_eq!(counts(&changed), [(2, 0), (1, 0), (2, 0)]);
    }

    #[test]
    fn trials_that_a_judge_decided_are_kept_by_the_same_judge_alone() {
        let judge = |model: &str| JudgeIdentity {
            model: model.into(),
            weights: None,
            method: None,
            prompt_digest: None,
            rubric_digest: "r".into(),
        };
        let of = |run: &str, judge: Option<JudgeIdentity>, judged| {
            let mut found = Baseline { judge, ..baseline(run, &[(1, 0), (1, 0)]) };
            found.cases[0].judged = judged;
            found
        };
        let added = |now: Baseline, then: &Baseline| now.with_history_of(then).1;
        let (a, b) = (Some(judge("a")), Some(judge("b")));
        for (now, then, expected) in [(&a, &a, 2), (&None, &None, 2), (&a, &b, 1), (&a, &None, 1)] {
            let (now, then) = (of("b", now.clone(), true), of("a", then.clone(), true));
            assert_eq!(added(now, &then), expected);
        }
        // What no judge decides is comparable with any judge.
        assert_eq!(added(of("b", a, false), &of("a", b, false)), 2);
    }

    #[test]
    fn a_file_of_another_version_says_so() {
        for version in ["2", "0", "\"1\"", "null"] {
            let text = format!("{{ \"schema_version\": {version}, \"more\": 1 }}");
            let error = Baseline::read(&text).unwrap_err();
            assert!(matches!(error, BaselineError::Version { .. }), "{version}: {error}");
        }
        let error = Baseline::read(r#"{ "schema_version": 1 }"#).unwrap_err();
        assert!(matches!(error, BaselineError::Malformed(_)), "{error}");
    }

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
