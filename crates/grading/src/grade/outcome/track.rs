//! Follows the events of a session and determines the outcome of its task. Memory use stays small
//! for sessions of any length.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::command::{CommandStep, ShellCheck, ShellCheckKind, affects_tests, parse_steps};
use super::output::{self, CheckExit, CheckVerdict};
use super::tools::{ToolEffect, tool_effect};
use super::{OutcomeEvidence, OutcomeSign, TaskOutcome};
use crate::english;
use crate::grade::completion;
use crate::grade::error_cause::FailedCheck;
use crate::grade::final_message::{FinalMessage, RedactedMessage};
use crate::signal::{self, Objection, RequestWords};
use selftest_sessions::{Event, EventMark, EventOrigin, EventRole, ToolOutcome, ToolResult};

/// Maximum numbers of calls awaiting a result, and of stored runs.
const MAX_OPEN: usize = 64;
const MAX_RUNS: usize = 16;
/// Maximum number of stored names of files that the agent created.
const MAX_CREATED: usize = 500;
/// Maximum length in bytes of a stored command or message.
const MAX_WORDS: usize = 1000;

/// Phrases that claim completion, in addition to the specification's indicators.
static CLAIM: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)\b(done|completed?|finished|success(ful|fully)?|fixed|resolved|implemented|(has|have) been (added|updated|created|changed|removed|fixed|cancelled|canceled|booked|processed)|I(['’]ve| have)( now| also| just)? (added|updated|created|changed|removed|fixed|written|built|refactored|renamed|moved|set up|made)|tests? (are |is )?(now )?(all )?pass(es|ing|ed)?|(now )?works?( now| as expected| correctly| again)|is (now )?(ready|working|in place)|all set|saved to)\b";
    english::regex(pattern)
});

/// A run of a check.
#[derive(Debug, Clone)]
struct CheckRun {
    check: ShellCheck,
    command: String,
    event: u64,
    /// True if it ran only tests created in the same session.
    is_own: bool,
}

/// A call awaiting its result.
#[derive(Debug)]
struct PendingCall {
    call_id: String,
    steps: Vec<CommandStep>,
    command: String,
}

/// Tracks the outcome of a session's task.
#[derive(Debug, Default)]
pub(in crate::grade) struct OutcomeTracker {
    open: Vec<PendingCall>,
    has_changed: bool,
    /// Base names of files that the agent created.
    created: BTreeSet<String>,
    /// Runs since the last change, oldest first.
    passed: Vec<CheckRun>,
    failed: Vec<CheckRun>,
    merged: Option<OutcomeEvidence>,
    /// Verdicts of verifiers.
    verdicts: Vec<OutcomeEvidence>,
    objection: Option<OutcomeEvidence>,
    corrections: u64,
    has_answered: bool,
    previous: Option<RequestWords>,
}

impl OutcomeTracker {
    /// Processes an event.
    pub(in crate::grade) fn add(&mut self, event: &Event<'_>) {
        match event.mark {
            Some(EventMark::Interrupted) => {
                self.record_objection(OutcomeSign::UserInterrupts, event);
            }
            Some(EventMark::VerifierPassed) => {
                self.record_verdict(OutcomeSign::VerifierPassed, event);
            }
            Some(EventMark::VerifierFailed) => {
                self.record_verdict(OutcomeSign::VerifierFailed, event);
            }
            _ if event.role == EventRole::User && event.origin == EventOrigin::Human => {
                self.add_request(event);
            }
            _ => {}
        }
        self.has_answered |= event.role == EventRole::Assistant;
        self.add_work(event);
    }

    /// Processes the calls and results of an event by the agent or a subagent.
    pub(in crate::grade) fn add_work(&mut self, event: &Event<'_>) {
        for call in &event.calls {
            // Truncated arguments are no longer valid JSON, so the path could not be read.
            let whole = call.arguments.repaired_json();
            match tool_effect(&call.name, whole.as_deref().unwrap_or(&call.arguments)) {
                ToolEffect::Edit { path, is_whole } => self.record_change(&path, is_whole),
                ToolEffect::Command(command) => {
                    let steps = parse_steps(&command);
                    if !steps.is_empty() && self.open.len() < MAX_OPEN {
                        let call_id = call.id.as_str().to_owned();
                        let end = command.floor_char_boundary(MAX_WORDS);
                        let command = command[..end].to_owned();
                        self.open.push(PendingCall { call_id, steps, command });
                    }
                }
                ToolEffect::Other => {}
            }
        }
        for result in &event.results {
            let known = self.open.iter().position(|open| open.call_id == result.call_id.as_str());
            if let Some(at) = known {
                let open = self.open.remove(at);
                self.finish_command(open, event.number, result);
            }
        }
    }

    /// Returns true if the output of a check is pending. It is needed even if the call succeeded,
    /// since it contains the result.
    pub(in crate::grade) fn awaits_output(&self) -> bool {
        let is_check = |step: &CommandStep| matches!(step, CommandStep::Check(_));
        self.open.iter().any(|open| open.steps.iter().any(is_check))
    }

    /// Returns the kind of check run by a pending call. Returns `None` for CI, or if the call runs
    /// no check.
    pub(in crate::grade) fn failed_check(&self, call_id: &str) -> Option<FailedCheck> {
        let open = self.open.iter().find(|open| open.call_id == call_id)?;
        open.steps.iter().find_map(|step| match step {
            CommandStep::Check(check) => match check.kind {
                ShellCheckKind::Tests => Some(FailedCheck::Tests),
                ShellCheckKind::Build => Some(FailedCheck::Build),
                ShellCheckKind::Lint => Some(FailedCheck::Lint),
                ShellCheckKind::Ci => None,
            },
            CommandStep::Change | CommandStep::Merge => None,
        })
    }

    /// Returns the number of times that the person corrected the agent.
    pub(in crate::grade) fn corrections(&self) -> u64 {
        self.corrections
    }

    fn add_request(&mut self, event: &Event<'_>) {
        let text = event.text.trim();
        if text.is_empty() {
            return;
        }
        let (objection, request) = if self.has_answered {
            signal::classify_objection(text, self.previous.as_ref())
        } else {
            (None, RequestWords::from_message(text))
        };
        self.previous = Some(request);
        match objection {
            Some(objection) => {
                let sign = match objection {
                    Objection::Complains => OutcomeSign::UserComplains,
                    Objection::Corrects => OutcomeSign::UserCorrects,
                    Objection::Reverts => OutcomeSign::UserReverts,
                    Objection::AsksAgain => OutcomeSign::UserAsksAgain,
                };
                self.record_objection(sign, event);
            }
            // The person continues with something else, so the objection counts as resolved.
            None => self.objection = None,
        }
    }

    fn record_objection(&mut self, sign: OutcomeSign, event: &Event<'_>) {
        self.corrections += 1;
        self.objection = Some(event_evidence(sign, event));
    }

    fn record_verdict(&mut self, sign: OutcomeSign, event: &Event<'_>) {
        if self.verdicts.len() < MAX_RUNS {
            self.verdicts.push(event_evidence(sign, event));
        }
    }

    fn record_change(&mut self, path: &str, is_whole: bool) {
        if !path.is_empty() && !affects_tests(path) {
            return;
        }
        // Earlier results do not apply to the changed files.
        self.has_changed = true;
        self.passed.clear();
        self.failed.clear();
        self.merged = None;
        // A check that runs concurrently with the change may not have seen it.
        self.open
            .iter_mut()
            .for_each(|open| open.steps.retain(|step| !matches!(step, CommandStep::Check(_))));
        if is_whole && self.created.len() < MAX_CREATED {
            self.created.insert(base_name(path).to_owned());
        }
    }

    fn finish_command(&mut self, open: PendingCall, event: u64, result: &ToolResult<'_>) {
        let PendingCall { steps, command, .. } = open;
        // A rejected call, or one without a result, had no effect.
        if matches!(result.outcome, ToolOutcome::Rejected | ToolOutcome::Pending) {
            return;
        }
        // With several checks, a failure does not tell which one failed.
        let is_alone =
            steps.iter().filter(|step| matches!(step, CommandStep::Check(_))).count() == 1;
        for step in steps {
            match step {
                CommandStep::Change => self.record_change("", false),
                CommandStep::Merge => {
                    if result.outcome == ToolOutcome::Ok {
                        let (sign, words) = (OutcomeSign::Merged, command.clone());
                        self.merged = Some(OutcomeEvidence { sign, event, words });
                    }
                }
                CommandStep::Check(check) => {
                    let words = if result.error.is_empty() { &result.text } else { &result.error };
                    let exit = match (result.outcome, result.exit_code) {
                        (ToolOutcome::Ok, None | Some(0)) if check.exit_code_is_reliable => {
                            CheckExit::Zero
                        }
                        (ToolOutcome::Failed, _) if is_alone => CheckExit::NonZero,
                        _ => CheckExit::Unknown,
                    };
                    let said = output::check_result(exit, words);
                    let is_own = !check.targets.is_empty()
                        && check.targets.iter().all(|path| self.created.contains(base_name(path)));
                    let run = CheckRun { check, command: command.clone(), event, is_own };
                    self.finish_check(run, said);
                }
            }
        }
    }

    fn finish_check(&mut self, run: CheckRun, said: CheckVerdict) {
        match said {
            CheckVerdict::Passed => {
                // A repeated run without a change in between replaces the earlier result.
                self.failed.retain(|failed| failed.command != run.command);
                push_run(&mut self.passed, run);
            }
            CheckVerdict::Failed => {
                self.passed.retain(|passed| passed.command != run.command);
                push_run(&mut self.failed, run);
            }
            CheckVerdict::DidNotRun => {}
        }
    }

    /// Returns the outcome of the task with its evidence: decisive events first, then the agent's
    /// claim.
    pub(in crate::grade) fn finish(
        &self,
        response: &FinalMessage,
        shown: &RedactedMessage<'_>,
        redact: &dyn Fn(&str) -> String,
    ) -> (TaskOutcome, Vec<OutcomeEvidence>) {
        let claim = final_claim(response, shown);
        let (outcome, mut evidence) = self.decide(claim.is_some());
        for one in &mut evidence {
            one.words = redact(&one.words);
        }
        evidence.extend(claim);
        (outcome, evidence)
    }

    fn decide(&self, claims: bool) -> (TaskOutcome, Vec<OutcomeEvidence>) {
        // A verifier outranks all other evidence.
        if !self.verdicts.is_empty() {
            let failed = self.verdicts.iter().any(|one| one.sign == OutcomeSign::VerifierFailed);
            let outcome = if failed { TaskOutcome::Contradicted } else { TaskOutcome::Verified };
            return (outcome, self.verdicts.clone());
        }
        let settled = if claims { TaskOutcome::Claimed } else { TaskOutcome::Unknown };
        let proofs = self.proofs();
        let last_pass = self.passed.last().map(|run| run.event);
        if let Some(objection) = &self.objection {
            // The objection is about work that passed its checks before; only a later check can
            // resolve it.
            let is_checked = proofs.iter().any(|proof| proof.event > objection.event);
            let outcome = if is_checked { settled } else { TaskOutcome::Contradicted };
            let later = proofs.into_iter().filter(|proof| proof.event > objection.event);
            return (outcome, [objection.clone()].into_iter().chain(later).collect());
        }
        if let Some(failed) = self.failed.last()
            && last_pass.is_none_or(|passed| failed.event > passed)
            && (self.has_changed || claims)
        {
            return (TaskOutcome::Contradicted, vec![failed.evidence(false)]);
        }
        if let Some(merged) = &self.merged {
            return (TaskOutcome::Verified, [merged.clone()].into_iter().chain(proofs).collect());
        }
        if !self.has_changed {
            return (settled, Vec::new());
        }
        if !self.failed.is_empty() {
            // Some runs failed and others passed without a change in between.
            let failed = self.failed.iter().map(|run| run.evidence(false));
            return (settled, failed.chain(proofs).collect());
        }
        // A successful build says little about behaviour; docs/recorded-sessions.md has the numbers.
        let is_proved = proofs
            .iter()
            .any(|proof| matches!(proof.sign, OutcomeSign::TestsPassed | OutcomeSign::CiPassed));
        (if is_proved { TaskOutcome::Verified } else { settled }, proofs)
    }

    /// Returns everything that passed since the last change, one entry per sign.
    fn proofs(&self) -> Vec<OutcomeEvidence> {
        let mut proofs: Vec<OutcomeEvidence> = Vec::new();
        for proof in self.passed.iter().rev().map(|run| run.evidence(true)) {
            if !proofs.iter().any(|known| known.sign == proof.sign) {
                proofs.push(proof);
            }
        }
        proofs.reverse();
        proofs
    }
}

impl CheckRun {
    fn evidence(&self, passed: bool) -> OutcomeEvidence {
        let sign = match (self.check.kind, passed) {
            (ShellCheckKind::Tests, true) if self.is_own => OutcomeSign::OwnTestsPassed,
            (ShellCheckKind::Tests, true) => OutcomeSign::TestsPassed,
            (ShellCheckKind::Tests, false) => OutcomeSign::TestsFailed,
            (ShellCheckKind::Build, true) => OutcomeSign::BuildPassed,
            (ShellCheckKind::Build, false) => OutcomeSign::BuildFailed,
            (ShellCheckKind::Lint, true) => OutcomeSign::LintPassed,
            (ShellCheckKind::Lint, false) => OutcomeSign::LintFailed,
            (ShellCheckKind::Ci, true) => OutcomeSign::CiPassed,
            (ShellCheckKind::Ci, false) => OutcomeSign::CiFailed,
        };
        OutcomeEvidence { sign, event: self.event, words: self.command.clone() }
    }
}

/// Returns the agent's final claim that the task is done.
fn final_claim(response: &FinalMessage, shown: &RedactedMessage<'_>) -> Option<OutcomeEvidence> {
    let at = completion::find_unnegated(response.text(), &CLAIM)?.start();
    let words =
        completion::find_excerpt(shown.text(), &CLAIM).unwrap_or(selftest_text::redact::REDACTED);
    let event = response.event_at(at)?;
    Some(OutcomeEvidence { sign: OutcomeSign::Claims, event, words: words.to_owned() })
}

/// Creates evidence from the event's own text.
fn event_evidence(sign: OutcomeSign, event: &Event<'_>) -> OutcomeEvidence {
    let words = event.text[..event.text.floor_char_boundary(MAX_WORDS)].to_owned();
    OutcomeEvidence { sign, event: event.number, words }
}

fn push_run(runs: &mut Vec<CheckRun>, run: CheckRun) {
    // A repeated command replaces its earlier run.
    runs.retain(|known| known.command != run.command);
    if runs.len() >= MAX_RUNS {
        runs.remove(0);
    }
    runs.push(run);
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
