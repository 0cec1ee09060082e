//! Derives a case's status from its steps, a summary from the cases, and the outcome of a run from
//! the summary. Pure: no clock, no files, no models.
//!
//! Finds evidence, too, that the system under test did more than answer: changes to the project, tool
//! calls that name an answer key, and accesses denied by the sandbox. Isolation itself is enforced
//! elsewhere.

pub mod agreement;
pub mod case;
pub mod repeats;
pub mod skills;
#[cfg(test)]
mod tests;
pub mod usage;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use case::Interruption;
pub use case::{
    CaseResult, CaseStatus, CaseStep, CheckResult, GenerationRecord, Rerun, StepKind, case_name,
};
use selftest_checks::check::ObservedToolCall;
use selftest_models::structured::UnscoredReason;
use selftest_sandbox::AttemptKind;
use selftest_stats::{Interval, wilson_clustered};
pub use skills::{LoadingRates, SkillResult};

/// Counts over the cases of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Number of planned cases.
    pub total: u32,
    /// Cases with `pass: true`.
    pub passed: u32,
    /// Cases with `pass: false`.
    pub failed: u32,
    /// Cases with `pass: null`: unscored, not generated, not run, skipped.
    pub unscored: u32,
    /// passed / (passed + failed), from 0.0 to 1.0; null if both are 0.
    pub pass_rate: Option<f64>,
    /// 95 % Wilson interval of the pass rate. With repeats it is not narrower than without, because
    /// repeats of a case are not independent.
    pub pass_rate_interval: Option<Interval>,
    /// Number of repeats of each case. Absent in a run without repeats. Each repeat counts as a
    /// case above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// Number of cases by status.
    pub by_status: std::collections::BTreeMap<CaseStatus, u32>,
    /// Number of unscored cases by reason.
    pub by_unscored_reason: std::collections::BTreeMap<UnscoredReason, u32>,
    /// Generated prompts that the harness rejected.
    pub rejected_prompts: u32,
    /// Cases reused from an earlier run because their inputs are unchanged. They are included in
    /// the counts above.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unchanged: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl RunSummary {
    /// Adds one case.
    pub fn add(&mut self, case: &CaseResult) {
        let (status, _) = case.status();
        self.total += 1;
        match status.pass() {
            Some(true) => self.passed += 1,
            Some(false) => self.failed += 1,
            None => self.unscored += 1,
        }
        *self.by_status.entry(status).or_default() += 1;
        if let Some(reason) = case.unscored_reason() {
            *self.by_unscored_reason.entry(reason).or_default() += 1;
        }
        self.rejected_prompts += u32::try_from(case.generation.rejections()).unwrap_or(u32::MAX);
        self.unchanged += u32::from(case.unchanged_since.is_some());
        // Cases are numbered from 1 within their repeats, so the highest number is the count.
        self.repeats = self.repeats.max(case.repeat);
        self.update_rate();
    }

    /// Recomputes the pass rate and its interval from the counts.
    pub fn update_rate(&mut self) {
        let decided = self.passed.saturating_add(self.failed);
        self.pass_rate = (decided > 0).then(|| f64::from(self.passed) / f64::from(decided));
        self.pass_rate_interval = wilson_clustered(self.passed, decided, self.repeats.unwrap_or(1));
    }

    /// Returns true if cases lack a verdict because the server of their judge was given up.
    pub(crate) fn lost_verdicts(&self, ending: RunEnding) -> bool {
        ending == RunEnding::ServerLost
            && self.by_unscored_reason.contains_key(&UnscoredReason::Unavailable)
    }

    /// Returns the number of cases with this status.
    pub fn count(&self, status: CaseStatus) -> u32 {
        self.by_status.get(&status).copied().unwrap_or(0)
    }
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Outcome")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum RunOutcome {
    /// Every case passed.
    Passed,
    /// A case failed.
    Failed,
    /// No case failed, but not all have a verdict.
    Inconclusive,
    /// No case failed, but not all could be run because a model server gave no answer.
    ModelUnavailable,
    /// There was no case.
    NothingRan,
    /// Stopped by the user.
    Interrupted,
}

selftest_text::named!(RunOutcome);

/// The reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnding {
    /// All cases were run.
    Complete,
    /// The user interrupted it.
    Interrupted,
    /// A limit of time, tokens or money was reached.
    LimitReached,
    /// A server that the run needs was given up.
    ServerLost,
}

/// Returns the outcome of a summary (design, "Exit codes").
pub fn absolute_outcome(summary: &RunSummary, ending: RunEnding) -> RunOutcome {
    // The order is that of what a caller can act on: who pressed Ctrl-C knows why; a failure is a
    // fact, whatever else is missing; an outage explains missing verdicts better than
    // "inconclusive".
    if ending == RunEnding::Interrupted {
        RunOutcome::Interrupted
    } else if summary.total == 0 || summary.count(CaseStatus::Skipped) == summary.total {
        RunOutcome::NothingRan
    } else if summary.failed > 0 {
        RunOutcome::Failed
    // A limit leaves cases as `NotRun` too. That is what was asked for, and no outage.
    } else if summary.lost_verdicts(ending)
        || summary.count(CaseStatus::NotRun) > 0 && ending != RunEnding::LimitReached
    {
        RunOutcome::ModelUnavailable
    } else if summary.unscored > 0 {
        RunOutcome::Inconclusive
    } else {
        RunOutcome::Passed
    }
}

/// Answer keys with unmistakable paths. A bare `reports` folder could belong to the project.
const UNMISTAKABLE: &[&str] = &[
    "config/selftest.yaml",
    "config/suites",
    "docs/reports/selftest",
    "prompts/generator",
    "prompts/judge",
    "reports/selftest",
    ".selftest",
];

/// Maximum number of values inspected in one call's arguments.
const MAX_VALUES: usize = 10_000;

/// An action that the system under test should not have taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IsolationBreach {
    /// These files of the project changed while the case ran: `changed: a.md`.
    ProjectChanged(Vec<String>),
    /// The system under test reported a tool call with the path of an answer key.
    AnswerKeyNamed {
        /// Name of the tool.
        tool: String,
        /// Path of the answer key.
        path: String,
    },
    /// It tried to read this answer key and was denied.
    AnswerKeyRefused(String),
    /// It tried to read this file of keys or passwords and was denied.
    SecretRefused(String),
    /// Other denied actions: `connection to 10.0.0.1:80`.
    Refused(Vec<String>),
}

/// Returns the breaches of a case and its further trials. `more_keys` are additional files with
/// answers, such as the suite.
pub fn breaches(case: &CaseResult, more_keys: &[&str]) -> Vec<IsolationBreach> {
    let again = case.reruns.iter();
    // A trial that was run again counts too: the breach happened, whatever became of the case.
    let interruptions = case
        .interruption
        .iter()
        .chain(again.clone().filter_map(|rerun| rerun.interruption.as_ref()));
    let mut found: Vec<IsolationBreach> = Vec::new();
    for interruption in interruptions {
        if let Interruption::IsolationViolation(files) = interruption {
            found.push(IsolationBreach::ProjectChanged(files.clone()));
        }
    }
    let steps = case.steps.iter().chain(again.flat_map(|rerun| &rerun.steps));
    for call in steps.flat_map(tool_calls) {
        // The longest matching path is the most specific one.
        let keys = more_keys.iter().chain(UNMISTAKABLE);
        let named =
            keys.filter(|path| mentions_path(&call.arguments, path)).max_by_key(|path| path.len());
        if let Some(path) = named {
            let (tool, path) = (call.name.clone(), (*path).to_owned());
            let breach = IsolationBreach::AnswerKeyNamed { tool, path };
            if !found.contains(&breach) {
                found.push(breach);
            }
        }
    }
    let sandbox = case.evidence.sandbox.iter();
    let mut others = Vec::new();
    for attempt in sandbox.flat_map(|sandbox| &sandbox.attempts).map(|it| &it.attempt) {
        match attempt.kind {
            AttemptKind::AnswerKey => {
                found.push(IsolationBreach::AnswerKeyRefused(attempt.what.clone()));
            }
            AttemptKind::Secret => found.push(IsolationBreach::SecretRefused(attempt.what.clone())),
            _ => others.push(attempt.to_string()),
        }
    }
    found.extend((!others.is_empty()).then_some(IsolationBreach::Refused(others)));
    found
}

fn tool_calls(step: &CaseStep) -> impl Iterator<Item = &ObservedToolCall> {
    step.reply.iter().flat_map(|reply| reply.tool_calls.iter().flatten())
}

/// Returns true if a value anywhere in the arguments contains the path as a whole.
fn mentions_path(arguments: &Value, path: &str) -> bool {
    // Iterative and bounded, because the arguments come from the program under test.
    let mut waiting = vec![arguments];
    for _ in 0..MAX_VALUES {
        match waiting.pop() {
            Some(Value::String(text)) if contains_path(text, path) => return true,
            Some(Value::Array(items)) => waiting.extend(items),
            Some(Value::Object(members)) => waiting.extend(members.values()),
            Some(_) => {}
            None => return false,
        }
    }
    false
}

/// Returns true if the text contains the path and not merely as part of a longer name.
fn contains_path(text: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "._-".contains(c);
    // `reports/selftest` must not match within `my-reports/selftests`.
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + path.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
