//! The record of a case, and the status derived from it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judge::{Judgement, Scorecard, Verdict};
use crate::rubric;
use crate::scenario::generate::GenerationAttempt;
use crate::sut::namespace::{RunId, SessionId};
use crate::sut::{SutEvidence, SutReply};
use selftest_checks::check::{
    CheckFinding, CheckObservation, CheckOutcome, CommandRun, FileChanges, ObservedToolCall,
};
use selftest_checks::scenario::{FileExcerpt, GeneratedCase, Scenario, TaskStatus};
use selftest_models::structured::UnscoredReason;
use selftest_stats::score::{Score, Threshold};

/// The status of a finished case.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum CaseStatus {
    /// Every step reached the threshold with the expected status.
    Passed,
    /// A step missed the threshold or the expected status.
    Failed,
    /// Failed at first and passed when it was retried. The pass rate counts the first trial, so
    /// that retries cannot raise it; a gate against a baseline accepts it.
    Flaky,
    /// The system under test died, broke its protocol or reported an error.
    SutError,
    /// The system under test did not answer in time.
    SutTimeout,
    /// Files of the project changed during the case.
    IsolationViolation,
    /// The generator produced no usable prompt.
    GenerationFailed,
    /// There is no verdict.
    Unscored,
    /// Not run or not finished: a model server gave no answer, a limit of the run was reached, or
    /// the run stopped at its first failure. This status says nothing about the system under test.
    NotRun,
    /// Not run, because the run was interrupted.
    Skipped,
}

selftest_text::named!(CaseStatus);

impl CaseStatus {
    /// Returns the report's `pass` value; `None` if there is no verdict.
    pub const fn pass(self) -> Option<bool> {
        match self {
            CaseStatus::Passed => Some(true),
            CaseStatus::Failed
            | CaseStatus::Flaky
            | CaseStatus::SutError
            | CaseStatus::SutTimeout
            | CaseStatus::IsolationViolation => Some(false),
            CaseStatus::GenerationFailed
            | CaseStatus::Unscored
            | CaseStatus::NotRun
            | CaseStatus::Skipped => None,
        }
    }

    /// Returns the label used in tables, such as `PASS` or `FAIL`.
    pub const fn label(self) -> &'static str {
        match self {
            CaseStatus::Passed => "PASS",
            CaseStatus::Failed => "FAIL",
            CaseStatus::Flaky => "FLAKY",
            CaseStatus::SutError => "SUT ERROR",
            CaseStatus::SutTimeout => "SUT TIMEOUT",
            CaseStatus::IsolationViolation => "ISOLATION",
            CaseStatus::GenerationFailed => "NOT GENERATED",
            CaseStatus::Unscored => "UNSCORED",
            CaseStatus::NotRun => "NOT RUN",
            CaseStatus::Skipped => "SKIPPED",
        }
    }
}

/// All attempts of the generator for one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GenerationRecord {
    /// The attempts in order. The last one is used unless it was rejected.
    pub attempts: Vec<GenerationAttempt>,
}

impl GenerationRecord {
    /// Returns the number of rejected prompts.
    pub fn rejections(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.rejected.is_some()).count()
    }
}

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// The prompt and the first answer.
    Answer,
    /// A step of the reply flow, counted from 1.
    Reply(u32),
}

/// One exchange with the system under test and its judgement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseStep {
    /// The kind of exchange.
    pub kind: StepKind,
    /// The prompt or reply.
    pub input: String,
    /// Expected status of the task after this step; the actual status if nothing was expected.
    pub expected_status: TaskStatus,
    /// The answer. Absent after an error or a timeout, or if the step was not run.
    pub reply: Option<SutReply>,
    /// Files that the system under test wrote before this answer, as the judge sees them: bounded
    /// and redacted. Read for judged answers only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<FileExcerpt>,
    /// The judgement. Absent if there was nothing to judge.
    pub judgement: Option<Judgement>,
    /// Wall time of the system under test.
    pub duration_ms: u64,
}

/// A check of a case and its finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// Name of the check, or the expectation as written in the suite.
    pub check: String,
    /// Outcome of the check, with its reason.
    #[serde(flatten)]
    pub finding: CheckFinding,
}

/// The error that ended a case before all its steps were judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum Interruption {
    /// The generator produced no usable prompt.
    GenerationFailed(String),
    /// The system under test died, broke its protocol or could not be started.
    SutError(String),
    /// The system under test did not answer in time.
    SutTimeout(String),
    /// A limit of the harness cut the answer of the system under test, or its input.
    AnswerCut(String),
    /// These files of the project changed.
    IsolationViolation(Vec<String>),
    /// The system under test tried to read the answer key, spoke for another session, or did
    /// something else that fails every case.
    Forbidden(Vec<String>),
    /// The run stops at the first failure, which occurred before this case started.
    NotBegun(String),
    /// A limit of the run (time, tokens, money) was reached before the case started or finished.
    LimitReached(String),
    /// A model server gave no answer, or the system under test could not be started or reached, so
    /// that the case could not be run or finished.
    ModelUnavailable(String),
    /// The run was interrupted.
    Cancelled,
}

impl Interruption {
    /// Adds a remedy to the reason of a missing answer.
    #[must_use]
    pub fn with_hint(self, hint: &str) -> Self {
        let with = |why: String| format!("{why}; hint: {hint}");
        match self {
            Interruption::SutError(why) => Interruption::SutError(with(why)),
            Interruption::SutTimeout(why) => Interruption::SutTimeout(with(why)),
            other => other,
        }
    }
}

/// A further trial of a case that failed against a baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rerun {
    /// Status of the trial.
    pub status: CaseStatus,
    /// The reason, in one line; null if it passed.
    pub reason: Option<String>,
    /// The lowest overall score of its steps; null if it has none.
    pub overall: Option<Score>,
    /// Session of the system under test.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// Every exchange.
    pub steps: Vec<CaseStep>,
    /// The checks with their findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
    /// The error that ended the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interruption>,
    /// Traces of the system under test.
    pub evidence: SutEvidence,
    /// Wall time.
    pub duration_ms: u64,
}

impl From<CaseResult> for Rerun {
    fn from(case: CaseResult) -> Self {
        let (status, reason) = case.first_status();
        Self {
            status,
            reason,
            overall: case.weakest_step().and_then(CaseStep::overall),
            session_id: case.session_id,
            steps: case.steps,
            checks: case.checks,
            interruption: case.interruption,
            evidence: case.evidence,
            duration_ms: case.duration_ms,
        }
    }
}

/// Returns the name of a case: the id of its scenario, with the repeat's number in a run with
/// repeats.
pub fn case_name(id: &str, repeat: Option<u32>) -> String {
    repeat.map_or_else(|| id.to_owned(), |repeat| format!("{id} #{repeat}"))
}

/// The verdict of an earlier run on the same answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormerVerdict {
    /// Status of the case in the earlier run.
    pub status: CaseStatus,
    /// The lowest overall score of its steps; null if it has none.
    pub overall: Option<Score>,
    /// True if a judge's scores decided it, and not a check, a status or an error.
    pub by_judge: bool,
}

impl FormerVerdict {
    /// Extracts the verdict from a case of the earlier run.
    pub fn of(case: &CaseResult) -> Self {
        Self {
            status: case.status().0,
            overall: case.weakest_step().and_then(CaseStep::overall),
            by_judge: case.is_by_judge(),
        }
    }
}

/// The complete record of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Position in the plan, from 0.
    pub index: usize,
    /// The scenario.
    pub scenario: Scenario,
    /// Number of the repeat, from 1. Absent in a run without repeats.
    pub repeat: Option<u32>,
    /// Name of the skill that the case belongs to.
    pub skill: Option<String>,
    /// Session of the system under test.
    pub session_id: SessionId,
    /// The attempts of the generator.
    pub generation: GenerationRecord,
    /// Prompt and hints. Absent if generation failed.
    pub case: Option<GeneratedCase>,
    /// Steps that were run.
    pub steps: Vec<CaseStep>,
    /// The checks of the case, decided after the last step; empty before.
    pub checks: Vec<CheckResult>,
    /// The error that ended the case.
    pub interruption: Option<Interruption>,
    /// Further trials of a case that failed against a baseline; empty if it was not retried.
    pub reruns: Vec<Rerun>,
    /// Traces of the system under test: its stderr, files and processes.
    pub evidence: SutEvidence,
    /// Remarks, such as a reply flow that was not run.
    pub notes: Vec<String>,
    /// The verdict of an earlier run on the same answers, if they are judged again.
    pub former: Option<FormerVerdict>,
    /// SHA-256 of all inputs of the result. Absent if some are unknown.
    pub cache_key: Option<String>,
    /// The run that produced this result. Absent if the case was run in the current run.
    pub unchanged_since: Option<RunId>,
    /// Minimum overall score that passes.
    pub threshold: Threshold,
    /// Minimum safety score that passes.
    pub safety_floor: Score,
    /// Wall time of the whole case.
    pub duration_ms: u64,
}

impl CaseResult {
    /// Returns the name of the case.
    pub fn name(&self) -> String {
        case_name(&self.scenario.id, self.repeat)
    }

    /// Returns the status and, unless passed, its reason in one line. This is the status of the
    /// first trial, unless that failed and a later one passed.
    pub fn status(&self) -> (CaseStatus, Option<String>) {
        let (first, reason) = self.first_status();
        let again = self.reruns.iter().filter(|rerun| rerun.status.pass().is_some());
        let passed = again.clone().filter(|rerun| rerun.status.pass() == Some(true)).count();
        // A change to the project is final: no later trial can undo it.
        let is_flaky = first.pass() == Some(false) && first != CaseStatus::IsolationViolation;
        if passed == 0 || !is_flaky {
            return (first, reason);
        }
        let words = format!("failed at first, passed {passed} of {} further trials", again.count());
        let why = reason.map_or_else(|| words.clone(), |reason| format!("{words}: {reason}"));
        (CaseStatus::Flaky, Some(why))
    }

    /// Returns the status of the first trial and, unless passed, its reason in one line.
    ///
    /// Precedence: the error that ended the case; an error reported by the system under test; an
    /// unexpected status or a failed check (facts that need no judge); an undecided check; a
    /// missing verdict; the scores.
    pub fn first_status(&self) -> (CaseStatus, Option<String>) {
        match &self.interruption {
            Some(Interruption::GenerationFailed(why)) => {
                return (CaseStatus::GenerationFailed, Some(why.clone()));
            }
            Some(Interruption::SutError(why)) => return (CaseStatus::SutError, Some(why.clone())),
            Some(Interruption::SutTimeout(why)) => {
                return (CaseStatus::SutTimeout, Some(why.clone()));
            }
            // The harness cut it, so that the agent is not to blame, and what is left must not be
            // judged either.
            Some(Interruption::AnswerCut(why)) => {
                return (CaseStatus::Unscored, Some(why.clone()));
            }
            Some(Interruption::IsolationViolation(files)) => {
                let why = format!("files of the project changed: {}", files.join(", "));
                return (CaseStatus::IsolationViolation, Some(why));
            }
            Some(Interruption::Forbidden(what)) => {
                let why =
                    format!("the system under test did what it must not: {}", what.join(", "));
                return (CaseStatus::IsolationViolation, Some(why));
            }
            Some(
                Interruption::ModelUnavailable(why)
                | Interruption::NotBegun(why)
                | Interruption::LimitReached(why),
            ) => return (CaseStatus::NotRun, Some(why.clone())),
            Some(Interruption::Cancelled) => {
                return (CaseStatus::Skipped, Some("the run was interrupted".to_owned()));
            }
            None => {}
        }
        // An error report takes precedence over an unexpected status.
        if let Some(reply) = self.steps.iter().find_map(CaseStep::unexpected_error) {
            // A silent program has no message, so the rule that classified it is quoted instead.
            let said = Some(reply.output.trim()).filter(|said| !said.is_empty());
            let words = said.or(reply.status_rule.as_deref()).unwrap_or("without a word");
            let words = selftest_text::one_line(words, 200);
            let why = format!("the system under test reported ERROR: {words}");
            return (CaseStatus::SutError, Some(why));
        }
        if let Some(why) = self.steps.iter().find_map(CaseStep::status_mismatch) {
            return (CaseStatus::Failed, Some(why));
        }
        if let Some(check) = self.first_check_with(CheckOutcome::Failed) {
            return (CaseStatus::Failed, Some(check.describe()));
        }
        if let Some(check) = self.first_check_with(CheckOutcome::Undecided) {
            return (CaseStatus::Unscored, Some(format!("undecided: {}", check.describe())));
        }
        if let Some((reason, detail)) = self.missing_verdict() {
            let why = format!("{}: {detail}", reason.describe());
            return (CaseStatus::Unscored, Some(why));
        }
        // Where checks decide, a judge's score is advice.
        for step in self.steps.iter().filter(|_| !self.is_decided_by_checks()) {
            if let Some(why) = step.shortfall(self.threshold, self.safety_floor) {
                return (CaseStatus::Failed, Some(why));
            }
        }
        // A case without steps must not pass.
        if self.steps.is_empty() {
            return (CaseStatus::Unscored, Some("nothing was judged".to_owned()));
        }
        (CaseStatus::Passed, None)
    }

    /// Returns the reason for the missing verdict of an unscored case.
    pub fn unscored_reason(&self) -> Option<UnscoredReason> {
        if matches!(self.interruption, Some(Interruption::AnswerCut(_))) {
            return Some(UnscoredReason::Truncated);
        }
        let unscored = self.status().0 == CaseStatus::Unscored;
        if unscored && self.first_check_with(CheckOutcome::Undecided).is_some() {
            return Some(UnscoredReason::CantTell);
        }
        self.missing_verdict().filter(|_| unscored).map(|(reason, _)| reason)
    }

    /// Returns true if a limit of the run kept the case from finishing.
    pub fn was_stopped_by_limit(&self) -> bool {
        matches!(self.interruption, Some(Interruption::LimitReached(_)))
    }

    /// Returns true if the case finished, so that a resumed run does not repeat it. A case is
    /// unfinished if a model server gave no answer or a limit stopped it.
    pub fn is_settled(&self) -> bool {
        let is_begun = !matches!(
            self.interruption,
            Some(
                Interruption::ModelUnavailable(_)
                    | Interruption::NotBegun(_)
                    | Interruption::LimitReached(_)
                    | Interruption::Cancelled
            )
        );
        // A resumed run asks the judge again that was not reached.
        is_begun && self.unscored_reason() != Some(UnscoredReason::Unavailable)
    }

    /// Returns true if a later run may reuse the result: checks or a judge decided it, and nothing
    /// interrupted it.
    pub fn is_reusable(&self) -> bool {
        // An error or a timeout may have been the day's, and is tried again.
        let scored = matches!(self.first_status().0, CaseStatus::Passed | CaseStatus::Failed);
        scored && self.former.is_none()
    }

    /// Returns true if a judge's scores decided the case.
    pub fn is_by_judge(&self) -> bool {
        matches!(self.status().0, CaseStatus::Passed | CaseStatus::Failed)
            && self.steps.iter().all(|step| step.status_mismatch().is_none())
            && self.first_check_with(CheckOutcome::Failed).is_none()
            && !self.is_decided_by_checks()
            && self.steps.iter().any(CaseStep::is_scored_by_judge)
    }

    /// Returns true if these scores of a step would pass.
    pub fn passes_with(&self, card: &Scorecard) -> bool {
        let safety = card.score(rubric::SAFETY);
        card.overall.reaches(self.threshold)
            && safety.is_none_or(|safety| safety >= self.safety_floor)
    }

    /// Returns the first check with this outcome.
    pub fn first_check_with(&self, outcome: CheckOutcome) -> Option<&CheckResult> {
        self.checks.iter().find(|check| check.finding.outcome == outcome)
    }

    /// Returns true if the checks decide alone, and scores only stand beside them.
    pub fn is_decided_by_checks(&self) -> bool {
        self.case.as_ref().is_some_and(GeneratedCase::is_decided_by_checks)
    }

    fn missing_verdict(&self) -> Option<(UnscoredReason, String)> {
        if self.is_decided_by_checks() {
            return None;
        }
        self.steps.get(self.first_judged_step()..)?.iter().find_map(CaseStep::missing_verdict)
    }

    /// Returns the index of the first step that is judged: in a conversation of several messages
    /// the last one.
    pub fn first_judged_step(&self) -> usize {
        match self.scenario.follow_ups.len() {
            0 => 0,
            _ => self.steps.len().saturating_sub(1),
        }
    }

    /// Returns the step that decides the case: the one with the lowest overall score.
    pub fn weakest_step(&self) -> Option<&CaseStep> {
        let scored = self.steps.iter().filter(|step| step.overall().is_some());
        scored.min_by(|a, b| {
            a.overall().partial_cmp(&b.overall()).unwrap_or(std::cmp::Ordering::Equal)
        })
    }
}

impl CheckResult {
    /// Describes the expectation and the finding, for reports.
    pub fn describe(&self) -> String {
        format!("check “{}”: {}", self.check, self.finding.sentence)
    }
}

impl CaseStep {
    /// Returns the name of the step in reports.
    pub fn name(&self) -> String {
        match self.kind {
            StepKind::Answer => "answer".to_owned(),
            StepKind::Reply(number) => format!("reply {number}"),
        }
    }

    /// Returns the overall score of this step as computed by the harness, if it has one.
    pub fn overall(&self) -> Option<Score> {
        self.card().map(|card| card.overall)
    }

    /// Returns true if a judge gave the scores, and not form alone.
    fn is_scored_by_judge(&self) -> bool {
        self.card().is_some_and(|card| !card.is_certain)
    }

    /// Returns the scores of this step, if it has any.
    pub fn card(&self) -> Option<&Scorecard> {
        self.judgement.as_ref()?.verdict.card()
    }

    /// Returns the verdicts of each judge that was asked several times about the answer.
    pub fn repeated_verdicts(&self) -> impl Iterator<Item = &[Verdict]> {
        let judgement = self.judgement.iter();
        let all = judgement.flat_map(|judgement| {
            let of_panel = judgement.panel.iter().map(|judge| &judge.samples[..]);
            std::iter::once(&judgement.samples[..]).chain(of_panel)
        });
        all.filter(|samples| samples.len() > 1)
    }

    /// Returns the verdicts that the score is computed from: one, unless the judge was asked
    /// several times.
    pub fn samples(&self) -> &[Verdict] {
        match &self.judgement {
            Some(judgement) if judgement.samples.is_empty() => {
                std::slice::from_ref(&judgement.verdict)
            }
            Some(judgement) => &judgement.samples,
            None => &[],
        }
    }

    fn unexpected_error(&self) -> Option<&SutReply> {
        self.reply.as_ref().filter(|reply| {
            reply.status == TaskStatus::Error && self.expected_status != TaskStatus::Error
        })
    }

    fn status_mismatch(&self) -> Option<String> {
        let reply = self.reply.as_ref()?;
        let (actual, expected) = (reply.status, self.expected_status);
        // Of text, a rule read the status: its name says what to change.
        let rule = reply.status_rule.as_ref().map(|rule| format!(" ({rule})")).unwrap_or_default();
        (actual != expected)
            .then(|| format!("{}: expected {expected}, got {actual}{rule}", self.name()))
    }

    fn missing_verdict(&self) -> Option<(UnscoredReason, String)> {
        match self.judgement.as_ref().map(|judgement| &judgement.verdict) {
            Some(Verdict::Scored(_)) => None,
            Some(Verdict::Unscored { reason, detail, .. }) => Some((*reason, detail.clone())),
            None => Some((UnscoredReason::Unavailable, "the step was not judged".to_owned())),
        }
    }

    fn shortfall(&self, threshold: Threshold, safety_floor: Score) -> Option<String> {
        let card = self.card()?;
        if !card.overall.reaches(threshold) {
            let (name, overall) = (self.name(), card.overall);
            return Some(format!("{name}: overall {overall} is below threshold {threshold}"));
        }
        // A rubric of the user need not have this category.
        let safety = card.score(rubric::SAFETY)?;
        (safety < safety_floor)
            .then(|| format!("{}: safety {safety} is below the floor {safety_floor}", self.name()))
    }
}

/// The answers of a case with their metadata.
pub(crate) struct CaseObservation<'a> {
    answers: Vec<&'a str>,
    last: &'a SutReply,
    tool_calls: Option<Vec<ObservedToolCall>>,
    tokens: Option<u64>,
    duration_ms: u64,
}

impl<'a> CaseObservation<'a> {
    /// Collects the steps that were run. Returns `None` if there is no answer.
    pub(crate) fn of(steps: &'a [CaseStep]) -> Option<Self> {
        let replies: Vec<&SutReply> = steps.iter().filter_map(|step| step.reply.as_ref()).collect();
        // Known only if every answer reports them.
        let tool_calls: Option<Vec<_>> =
            replies.iter().map(|reply| reply.tool_calls.clone()).collect();
        Some(Self {
            last: replies.last()?,
            answers: replies.iter().map(|reply| reply.output.as_str()).collect(),
            tool_calls: tool_calls.map(|calls| calls.concat()),
            tokens: replies.iter().map(|reply| reply.tokens).sum(),
            duration_ms: steps.iter().map(|step| step.duration_ms).sum(),
        })
    }

    /// Returns the last answer.
    pub(crate) fn last(&self) -> &'a SutReply {
        self.last
    }

    /// Combines the answers with the results of files and commands.
    pub(crate) fn observation<'b>(
        &'b self,
        files: Option<&'b FileChanges>,
        commands: &'b [CommandRun],
    ) -> CheckObservation<'b> {
        CheckObservation {
            status: Some(self.last.status),
            output: &self.last.output,
            answers: &self.answers,
            tool_calls: self.tool_calls.as_deref(),
            files,
            turns: Some(self.answers.len() as u64),
            tokens: self.tokens,
            duration: Some(Duration::from_millis(self.duration_ms)),
            commands,
        }
    }
}
