//! Follows the events of a session and determines the outcome of its task. Memory use stays small
//! for sessions of any length.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::authorship::{CreatedFiles, ForeignEdit, base_name, foreign_edit};
use super::command::{
    CommandStep, ShellCheck, ShellCheckKind, affects_tests, ends_with_search, parse_steps,
    says_nothing_found,
};
use super::output::{self, CheckExit, CheckVerdict};
use super::runners::RunnerOutput;
use super::tools::{ToolEffect, tool_effect};
use super::{
    ElsewhereResult, OutcomeEvidence, OutcomeSign, OutcomeState, ResultSource, TaskOutcome,
    TestCounts, TestScope,
};
use crate::english;
use crate::grade::error_cause::FailedCheck;
use crate::grade::rule_scores;
use crate::grade::tally::{FinalMessage, RedactedMessage};
use crate::signal::{self, AgentTurn, Objection, RequestWords};
use selftest_sessions::{Event, EventMark, EventOrigin, EventRole, ToolOutcome, ToolResult};

/// Maximum numbers of calls awaiting a result, and of stored runs.
const MAX_OPEN: usize = 64;
const MAX_RUNS: usize = 16;
/// Maximum number of commands whose failures are remembered.
const MAX_COMMANDS: usize = 200;
/// Maximum numbers of files that the agent changed, and of changes by other hands that are listed.
const MAX_EDITED: usize = 500;
const MAX_FOREIGN_EDITS: usize = 5;
/// Maximum length in bytes of a stored command or message.
const MAX_WORDS: usize = 1000;

/// Phrases that claim completion, in addition to the specification's indicators.
static CLAIM: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)\b(done|completed?|finished|success(ful|fully)?|fixed|resolved|implemented|(has|have) been (added|updated|created|changed|removed|fixed|cancelled|canceled|booked|processed)|I(['’]ve| have)( now| also| just)? (added|updated|created|changed|removed|fixed|written|built|refactored|renamed|moved|set up|made)|tests? (are |is )?(now )?(all )?pass(es|ing|ed)?|(now )?works?( now| as expected| correctly| again)|is (now )?(ready|working|in place)|all set|saved to)\b";
    english::regex(pattern)
});

/// Result of a check that says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunResult {
    Passed,
    Failed {
        /// True if an earlier run of the session had fewer failures.
        is_new: bool,
    },
    NoneRan,
    CouldNotRun,
}

/// A run of a check.
#[derive(Debug, Clone)]
struct CheckRun {
    kind: ShellCheckKind,
    command: String,
    event: u64,
    result: RunResult,
    scope: TestScope,
    counts: Option<TestCounts>,
}

/// What is known about the end of a task.
#[derive(Debug)]
pub(in crate::grade) struct EndOfTask {
    pub(in crate::grade) outcome: TaskOutcome,
    pub(in crate::grade) state: OutcomeState,
    /// Outcome and state without the verdicts of verifiers, if there are any.
    pub(in crate::grade) own: Option<(TaskOutcome, OutcomeState)>,
    /// Decisive events first, then the agent's claim.
    pub(in crate::grade) evidence: Vec<OutcomeEvidence>,
}

/// A call awaiting its result.
#[derive(Debug)]
struct PendingCall {
    call_id: String,
    steps: Vec<CommandStep>,
    command: String,
    /// True if exit code 1 without output only means that nothing was found.
    is_search: bool,
}

/// Tracks the outcome of a session's task.
#[derive(Debug, Default)]
pub(in crate::grade) struct OutcomeTracker {
    open: Vec<PendingCall>,
    has_changed: bool,
    created: CreatedFiles,
    /// Runs since the last change, oldest first.
    runs: Vec<CheckRun>,
    /// Fewest failures of each command in the session.
    fewest_failures: BTreeMap<String, u64>,
    merged: Option<OutcomeEvidence>,
    /// Verdicts of verifiers.
    verdicts: Vec<OutcomeEvidence>,
    objection: Option<OutcomeEvidence>,
    /// True if the agent changed files after the objection.
    is_answered: bool,
    corrections: u64,
    /// Base names of the files that the agent changed.
    edited: BTreeSet<String>,
    /// Calls of editing tools that wait for their result: id and path.
    open_edits: Vec<(String, String)>,
    /// Changes of these files by other hands.
    foreign_edits: Vec<OutcomeEvidence>,
    foreign_edit_count: u64,
    has_answered: bool,
    previous: Option<RequestWords>,
    /// What the agent did since the person's last message.
    turn: AgentTurn,
}

impl OutcomeTracker {
    /// Processes an event.
    pub(in crate::grade) fn add(&mut self, event: &Event<'_>) {
        match event.mark {
            Some(EventMark::Interrupted) => {
                self.record_objection(OutcomeSign::UserInterrupts, event);
                // What follows belongs to the interruption, which is counted.
                self.turn.was_refused = false;
            }
            Some(EventMark::FileEdited) if self.has_edited(&event.text) => {
                self.record_foreign_edit(event.number, &event.text);
            }
            Some(EventMark::EditUndone) => self.record_objection(OutcomeSign::UserReverts, event),
            Some(EventMark::VerifierPassed) => {
                self.record_verdict(OutcomeSign::VerifierPassed, event);
            }
            Some(EventMark::VerifierFailed) => {
                self.record_verdict(OutcomeSign::VerifierFailed, event);
            }
            _ if event.role == EventRole::User && event.origin == EventOrigin::Human => {
                self.add_request(event);
            }
            // Before the first answer there is nothing that a command could take back.
            _ if event.origin == EventOrigin::Harness && self.has_answered => {
                if let Some(command) = signal::command_that_takes_back(&event.text) {
                    let (sign, words) = (OutcomeSign::UserReverts, command.to_owned());
                    self.hold_objection(OutcomeEvidence { sign, event: event.number, words });
                }
            }
            _ => {}
        }
        if event.role == EventRole::Assistant {
            self.has_answered = true;
            let words = event.text.trim_end();
            if !words.is_empty() {
                // Chinese and Japanese use a wide question mark.
                self.turn.has_asked = words.ends_with(['?', '？']);
                self.turn.was_refused = false;
            }
        }
        self.add_work(event);
    }

    /// Processes the calls and results of an event by the agent or a subagent.
    pub(in crate::grade) fn add_work(&mut self, event: &Event<'_>) {
        if !event.calls.is_empty() {
            self.turn.has_worked = true;
            self.turn.was_refused = false;
        }
        self.turn.was_refused |= event.results.iter().any(is_refused_by_person);
        for call in &event.calls {
            // Truncated arguments are no longer valid JSON, so the path could not be read.
            let whole = call.arguments.repaired_json();
            let arguments = whole.as_deref().unwrap_or(&call.arguments);
            match tool_effect(&call.name, arguments) {
                ToolEffect::Edit { path, is_whole } => {
                    if self.open_edits.len() < MAX_OPEN {
                        self.open_edits.push((call.id.as_str().to_owned(), path.to_string()));
                    }
                    // An edit of a file that was there before adds no tests of the agent's own.
                    if is_whole || self.created.has(&path) {
                        self.created.add(&path, arguments, is_whole);
                    }
                    self.record_change(&path);
                }
                ToolEffect::Command(command) => {
                    let steps = parse_steps(&command);
                    for step in &steps {
                        // A here-document, and so the tests in it, is a part of the command.
                        if let CommandStep::Write(paths) = step {
                            for path in paths {
                                self.created.add(path, &command, true);
                            }
                        }
                    }
                    let is_search = ends_with_search(&command);
                    if (is_search || !steps.is_empty()) && self.open.len() < MAX_OPEN {
                        let call_id = call.id.as_str().to_owned();
                        let end = command.floor_char_boundary(MAX_WORDS);
                        let command = command[..end].to_owned();
                        self.open.push(PendingCall { call_id, steps, command, is_search });
                    }
                }
                ToolEffect::Other => {}
            }
        }
        for result in &event.results {
            self.finish_edit(event.number, result);
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
            _ => None,
        })
    }

    /// Returns true if the failed result of a pending call only says that a search found nothing.
    pub(in crate::grade) fn is_fruitless_search(&self, result: &ToolResult<'_>) -> bool {
        let open = self.open.iter().find(|open| open.call_id == result.call_id.as_str());
        let words = if result.error.is_empty() { &result.text } else { &result.error };
        open.is_some_and(|open| open.is_search) && says_nothing_found(result.exit_code, words)
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
        // Each message answers what the agent did since the one before.
        let turn = std::mem::take(&mut self.turn);
        let (objection, request) = if self.has_answered {
            signal::classify_objection(text, self.previous.as_ref(), turn)
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
        self.hold_objection(event_evidence(sign, event));
    }

    fn hold_objection(&mut self, objection: OutcomeEvidence) {
        self.corrections += 1;
        self.objection = Some(objection);
        self.is_answered = false;
    }

    fn has_edited(&self, path: &str) -> bool {
        self.edited.contains(base_name(path))
    }

    /// Takes the result of an editing tool: the agent has changed the file, and the result may say
    /// that other hands did.
    fn finish_edit(&mut self, event: u64, result: &ToolResult<'_>) {
        let at = self.open_edits.iter().position(|(id, _)| id == result.call_id.as_str());
        let Some((_, path)) = at.map(|at| self.open_edits.remove(at)) else { return };
        let is_foreign = match foreign_edit(&result.text, &result.error) {
            Some(ForeignEdit::OfProposal) => true,
            Some(ForeignEdit::SinceTouched) => self.has_edited(&path),
            None => false,
        };
        if is_foreign {
            self.record_foreign_edit(event, &path);
        }
        let has_written = matches!(result.outcome, ToolOutcome::Ok | ToolOutcome::Unknown);
        if has_written && self.edited.len() < MAX_EDITED {
            self.edited.insert(base_name(&path).to_owned());
        }
    }

    fn record_foreign_edit(&mut self, event: u64, path: &str) {
        self.foreign_edit_count += 1;
        if self.foreign_edits.len() < MAX_FOREIGN_EDITS {
            let words = path[..path.floor_char_boundary(MAX_WORDS)].to_owned();
            let sign = OutcomeSign::UserEdits;
            self.foreign_edits.push(OutcomeEvidence { sign, event, words });
        }
    }

    /// Returns the number of times that a person, or a program of theirs, changed what the agent had
    /// written.
    pub(in crate::grade) fn foreign_edits(&self) -> u64 {
        self.foreign_edit_count
    }

    fn record_verdict(&mut self, sign: OutcomeSign, event: &Event<'_>) {
        if self.verdicts.len() < MAX_RUNS {
            self.verdicts.push(event_evidence(sign, event));
        }
    }

    fn record_change(&mut self, path: &str) {
        if !path.is_empty() && !affects_tests(path) {
            return;
        }
        // Work on the objection answers it; what it came to is open again. Work after taking
        // something back is another matter.
        let is_answered = |objection: &OutcomeEvidence| {
            !matches!(objection.sign, OutcomeSign::UserReverts | OutcomeSign::UserInterrupts)
        };
        self.is_answered |= self.objection.as_ref().is_some_and(is_answered);
        // Earlier results do not apply to the changed files.
        self.has_changed = true;
        self.runs.clear();
        self.merged = None;
        // A check that runs concurrently with the change may not have seen it.
        self.open
            .iter_mut()
            .for_each(|open| open.steps.retain(|step| !matches!(step, CommandStep::Check(_))));
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
                CommandStep::Write(_) => {}
                // Removing one's own scratch files does not change the work.
                CommandStep::Delete(paths) if paths.iter().all(|path| self.created.has(path)) => {}
                CommandStep::Change | CommandStep::Delete(_) => {
                    // What follows a merge in its own command tidies up: `git pull`.
                    let merged = self.merged.take().filter(|merged| merged.event == event);
                    self.record_change("");
                    self.merged = merged;
                }
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
                        (ToolOutcome::Failed, _) if is_alone && check.is_last => CheckExit::NonZero,
                        _ => CheckExit::Unknown,
                    };
                    self.finish_check(&check, &command, event, exit, words);
                }
            }
        }
    }

    fn finish_check(
        &mut self,
        check: &ShellCheck,
        command: &str,
        event: u64,
        exit: CheckExit,
        words: &str,
    ) {
        let verdict = match check.kind {
            ShellCheckKind::Tests => output::test_result(exit, &check.program, words),
            ShellCheckKind::Build | ShellCheckKind::Lint => output::build_result(exit, words),
            ShellCheckKind::Ci => output::ci_result(exit, words),
        };
        // The checks of one command have numbers of their own.
        let key = format!("{:?} {} {command}", check.kind, check.program);
        let fewest = self.fewest_failures.get(&key).copied();
        let (result, counts) = match verdict {
            CheckVerdict::Passed(counts) => (RunResult::Passed, counts),
            CheckVerdict::Failed(counts) => {
                // Without a count, at least one test failed.
                let failures = counts.map_or(1, |counts| counts.failures());
                let is_new = fewest.is_some_and(|fewest| fewest < failures);
                (RunResult::Failed { is_new }, counts)
            }
            CheckVerdict::NoneRan(counts) => (RunResult::NoneRan, counts),
            CheckVerdict::CouldNotRun => (RunResult::CouldNotRun, None),
            CheckVerdict::Unclear => return,
        };
        let failures = match result {
            RunResult::Passed => Some(0),
            RunResult::Failed { .. } => Some(counts.map_or(1, |counts| counts.failures())),
            RunResult::NoneRan | RunResult::CouldNotRun => None,
        };
        if let Some(failures) = failures
            && (fewest.is_some() || self.fewest_failures.len() < MAX_COMMANDS)
        {
            let fewest = fewest.unwrap_or(u64::MAX).min(failures);
            self.fewest_failures.insert(key, fewest);
        }
        let scope = match result {
            RunResult::NoneRan => TestScope::NoneRan,
            _ => self.scope(check, counts, words),
        };
        // A repeated command replaces its earlier run.
        self.runs.retain(|known| {
            known.event == event || known.command != command || known.kind != check.kind
        });
        if self.runs.len() >= MAX_RUNS {
            self.runs.remove(0);
        }
        let (kind, command) = (check.kind, command.to_owned());
        self.runs.push(CheckRun { kind, command, event, result, scope, counts });
    }

    /// Determines how much of which tests ran.
    fn scope(&self, check: &ShellCheck, counts: Option<TestCounts>, words: &str) -> TestScope {
        let are_own = |mut files: Box<dyn Iterator<Item = &str> + '_>| {
            let first = files.next();
            first.is_some_and(|first| self.created.has(first))
                && files.all(|file| self.created.has(file))
        };
        let listed = RunnerOutput::new(words);
        // A script of the agent's own package.json or Makefile is its own test.
        let definition: &[&str] = match check.program.as_str() {
            "npm" | "pnpm" | "yarn" | "bun" => &["package.json"],
            "make" | "gmake" => &["Makefile", "makefile", "GNUmakefile"],
            "just" => &["justfile", "Justfile"],
            _ => &[],
        };
        // Without `-v`, `go test` counts packages.
        let counts_packages = check.program == "go" && !words.contains("--- ");
        let written =
            if counts_packages { self.created.test_files() } else { self.created.tests() };
        let is_own = are_own(Box::new(check.targets.iter().map(String::as_str)))
            || are_own(Box::new(listed.test_files()))
            || definition.iter().any(|file| self.created.has(file))
            || counts.is_some_and(|counts| counts.passed > 0 && counts.ran() <= written);
        if is_own {
            TestScope::Own
        } else if check.is_part
            || counts.is_some_and(|counts| counts.deselected > 0 || counts.skipped > counts.passed)
        {
            TestScope::Part
        } else {
            TestScope::Whole
        }
    }

    /// Returns the outcome of the task, what was seen, and its evidence: decisive events first,
    /// then the agent's claim.
    pub(in crate::grade) fn finish(
        &self,
        response: &FinalMessage,
        shown: &RedactedMessage<'_>,
        redact: &dyn Fn(&str) -> String,
    ) -> EndOfTask {
        let claim = final_claim(response, shown);
        let (outcome, state, mut evidence) = self.decide(claim.is_some());
        let own = (!self.verdicts.is_empty()).then(|| {
            let (outcome, state, _) = self.decide_inside(claim.is_some());
            (outcome, state)
        });
        evidence.extend(self.foreign_edits.iter().cloned());
        for one in &mut evidence {
            one.words = redact(&one.words);
        }
        evidence.extend(claim);
        EndOfTask { outcome, state, own, evidence }
    }

    fn decide(&self, claims: bool) -> (TaskOutcome, OutcomeState, Vec<OutcomeEvidence>) {
        // A verifier outranks all other evidence.
        if !self.verdicts.is_empty() {
            let failed = |one: &OutcomeEvidence| one.sign == OutcomeSign::VerifierFailed;
            let failures = self.verdicts.iter().filter(|one| failed(one)).count();
            let result = match failures {
                0 => ElsewhereResult::Passed,
                all if all == self.verdicts.len() => ElsewhereResult::Failed,
                _ => ElsewhereResult::Disagreed,
            };
            let state = OutcomeState::CheckedElsewhere { by: ResultSource::Verifier, result };
            let outcome = state.headline().unwrap_or_default();
            return (outcome, state, self.verdicts.clone());
        }
        self.decide_inside(claims)
    }

    /// Decides by what the session itself shows.
    fn decide_inside(&self, claims: bool) -> (TaskOutcome, OutcomeState, Vec<OutcomeEvidence>) {
        let (by_claim, of_claim) = if claims {
            (TaskOutcome::Claimed, OutcomeState::Claimed)
        } else {
            (TaskOutcome::Unknown, OutcomeState::Unknown)
        };
        let proofs = self.proofs();
        if let Some(objection) = &self.objection {
            // The objection is about work that passed its checks before; only a later check can
            // resolve it, and then no more than a claim is left.
            let later: Vec<OutcomeEvidence> =
                proofs.into_iter().filter(|proof| proof.event > objection.event).collect();
            let resolved = self.tests().filter(|(event, _)| *event > objection.event);
            let state = resolved.map(|(_, state)| state);
            let (outcome, state) = match state {
                Some(state) if !later.is_empty() => (by_claim, state),
                _ if !later.is_empty() || (self.is_answered && claims) => (by_claim, of_claim),
                _ => (TaskOutcome::Contradicted, OutcomeState::Objected),
            };
            return (outcome, state, [objection.clone()].into_iter().chain(later).collect());
        }
        let elsewhere = |by, result| OutcomeState::CheckedElsewhere { by, result };
        let last_ci = self.runs.iter().rfind(|run| run.kind == ShellCheckKind::Ci);
        let state = match (&self.merged, last_ci.map(|run| run.result)) {
            (_, Some(RunResult::Failed { .. })) => {
                elsewhere(ResultSource::Ci, ElsewhereResult::Failed)
            }
            (_, Some(RunResult::Passed)) if self.has_changed => {
                elsewhere(ResultSource::Ci, ElsewhereResult::Passed)
            }
            (Some(_), _) => elsewhere(ResultSource::Merge, ElsewhereResult::Passed),
            _ => self.tests().map_or(of_claim, |(_, state)| state),
        };
        let evidence: Vec<OutcomeEvidence> =
            self.failures().chain(self.merged.clone()).chain(proofs).collect();
        let outcome = match state.headline() {
            // Without a change there is nothing that tests could verify, and to run failing tests
            // may have been the task.
            Some(TaskOutcome::ChecksPassed) if !self.has_changed && self.merged.is_none() => {
                by_claim
            }
            Some(TaskOutcome::Contradicted) if !self.has_changed && !claims => by_claim,
            Some(TaskOutcome::ChecksPassed) if self.has_later_failure() => by_claim,
            Some(TaskOutcome::ChecksPassed) => TaskOutcome::ChecksPassed,
            Some(TaskOutcome::Contradicted) => TaskOutcome::Contradicted,
            // A build or linter that passed before in the session and fails now.
            _ if self.breaks_build() && (self.has_changed || claims) => TaskOutcome::Contradicted,
            _ => by_claim,
        };
        (outcome, state, evidence)
    }

    /// Returns the state of the tests since the last change, and the event that shows it.
    fn tests(&self) -> Option<(u64, OutcomeState)> {
        let tests = || self.runs.iter().filter(|run| run.kind == ShellCheckKind::Tests);
        let failed = tests().rfind(|run| matches!(run.result, RunResult::Failed { .. }));
        let passed = tests()
            .filter(|run| run.result == RunResult::Passed)
            .max_by_key(|run| (run.scope, run.counts.is_some(), run.event));
        let last = |passes: &dyn Fn(&CheckRun) -> bool| tests().rfind(|run| passes(run));
        let state = |run: &CheckRun| {
            let (scope, counts) = (run.scope, run.counts);
            let state = match run.result {
                RunResult::Failed { is_new } => OutcomeState::TestsFailed { scope, counts, is_new },
                RunResult::Passed | RunResult::NoneRan => {
                    OutcomeState::TestsPassed { scope, counts }
                }
                RunResult::CouldNotRun => OutcomeState::CouldNotRun,
            };
            (run.event, state)
        };
        match (failed, passed) {
            // A later run of the whole suite includes what had failed. One of fewer tests is of
            // another suite.
            (Some(failed), Some(passed))
                if passed.scope == TestScope::Whole
                    && passed.event > failed.event
                    && passed
                        .counts
                        .zip(failed.counts)
                        .is_none_or(|(passed, failed)| passed.ran() >= failed.ran()) =>
            {
                Some(state(passed))
            }
            (Some(failed), _) => {
                // What failed only before the last pass is not known to be new at the end.
                let (event, found) = state(failed);
                let found = match found {
                    OutcomeState::TestsFailed { scope, counts, is_new } => {
                        let is_last = passed.is_none_or(|passed| passed.event < failed.event);
                        OutcomeState::TestsFailed { scope, counts, is_new: is_new && is_last }
                    }
                    other => other,
                };
                Some((event, found))
            }
            (None, Some(passed)) => Some(state(passed)),
            (None, None) => last(&|_| true).map(state),
        }
    }

    /// Returns true if a build or linter failed after everything that passed.
    fn has_later_failure(&self) -> bool {
        // By position: several checks of one command have one event.
        let last = |passed: bool| {
            self.runs.iter().rposition(|run| match run.result {
                RunResult::Passed => passed,
                RunResult::Failed { .. } => !passed,
                RunResult::NoneRan | RunResult::CouldNotRun => false,
            })
        };
        // `None` is below any position, so a failure counts even if nothing has passed.
        last(false) > last(true)
    }

    fn breaks_build(&self) -> bool {
        self.has_later_failure()
            && self.runs.iter().any(|run| {
                matches!(run.kind, ShellCheckKind::Build | ShellCheckKind::Lint)
                    && run.result == RunResult::Failed { is_new: true }
            })
    }

    /// Returns everything that failed since the last change.
    fn failures(&self) -> impl Iterator<Item = OutcomeEvidence> {
        let runs = self.runs.iter().filter(|run| run.result != RunResult::Passed);
        runs.map(CheckRun::evidence)
    }

    /// Returns everything that passed since the last change, one entry per sign.
    fn proofs(&self) -> Vec<OutcomeEvidence> {
        let mut proofs: Vec<OutcomeEvidence> = Vec::new();
        // From the end, so that the latest of each sign is kept.
        let passed = self.runs.iter().rev().filter(|run| run.result == RunResult::Passed);
        for proof in passed.map(CheckRun::evidence) {
            if !proofs.iter().any(|known| known.sign == proof.sign) {
                proofs.push(proof);
            }
        }
        proofs.reverse();
        proofs
    }
}

impl CheckRun {
    fn evidence(&self) -> OutcomeEvidence {
        let sign = match (self.kind, self.result) {
            (ShellCheckKind::Tests, RunResult::Passed) => match self.scope {
                TestScope::Whole => OutcomeSign::TestsPassed,
                TestScope::Part => OutcomeSign::SomeTestsPassed,
                TestScope::Own => OutcomeSign::OwnTestsPassed,
                TestScope::NoneRan => OutcomeSign::NoTestsRan,
            },
            (ShellCheckKind::Tests, RunResult::Failed { .. }) => OutcomeSign::TestsFailed,
            (ShellCheckKind::Build, RunResult::Passed) => OutcomeSign::BuildPassed,
            (ShellCheckKind::Build, RunResult::Failed { .. }) => OutcomeSign::BuildFailed,
            (ShellCheckKind::Lint, RunResult::Passed) => OutcomeSign::LintPassed,
            (ShellCheckKind::Lint, RunResult::Failed { .. }) => OutcomeSign::LintFailed,
            (ShellCheckKind::Ci, RunResult::Passed) => OutcomeSign::CiPassed,
            (ShellCheckKind::Ci, RunResult::Failed { .. }) => OutcomeSign::CiFailed,
            (_, RunResult::NoneRan) => OutcomeSign::NoTestsRan,
            (_, RunResult::CouldNotRun) => OutcomeSign::TestsCouldNotRun,
        };
        OutcomeEvidence { sign, event: self.event, words: self.command.clone() }
    }
}

/// Returns true if a person refused the call, not a policy or a missing approval.
fn is_refused_by_person(result: &ToolResult<'_>) -> bool {
    const MAX_EXAMINED: usize = 1000;
    const POLICIES: [&str; 5] = ["policy", "guardrail", "approval_required", "blocked", "disabled"];
    let text = &result.text[..result.text.floor_char_boundary(MAX_EXAMINED)];
    let text = text.to_lowercase();
    result.outcome == ToolOutcome::Rejected && !POLICIES.iter().any(|words| text.contains(words))
}

/// Returns the agent's final claim that the task is done.
fn final_claim(response: &FinalMessage, shown: &RedactedMessage<'_>) -> Option<OutcomeEvidence> {
    let at = rule_scores::find_unnegated(response.text(), &CLAIM)?.start();
    let words =
        rule_scores::find_excerpt(shown.text(), &CLAIM).unwrap_or(selftest_text::redact::REDACTED);
    let event = response.event_at(at)?;
    Some(OutcomeEvidence { sign: OutcomeSign::Claims, event, words: words.to_owned() })
}

/// Creates evidence from the event's own text.
fn event_evidence(sign: OutcomeSign, event: &Event<'_>) -> OutcomeEvidence {
    let words = event.text[..event.text.floor_char_boundary(MAX_WORDS)].to_owned();
    OutcomeEvidence { sign, event: event.number, words }
}
