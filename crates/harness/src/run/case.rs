//! Runs one case from prompt to verdict.
//!
//! Facts are written to the draft as they become known, so that a timeout or Ctrl-C loses nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::delivery::EventSender;
use super::plan::{PlannedCase, SeedPurpose, derive_seed};
use super::rejudge;
use super::runner::Runner;
use crate::event::{CasePhase, RunEventKind};
use crate::judge::prompt::{Exchange, JudgeEvidence};
use crate::outcome::case::{CaseObservation, Interruption};
use crate::outcome::{CaseResult, CaseStep, CheckResult, GenerationRecord, StepKind};
use crate::sut::namespace::{SessionId, TaskGroupId};
use crate::sut::{SandboxState, SutError, SutEvidence, SutReply, SutSession, SutTask, SutTaskType};
use selftest_checks::check;
use selftest_checks::check::questions::count_questions;
use selftest_checks::check::{
    Check, CheckFinding, CheckKind, CheckObservation, CheckOutcome, CommandRun, FileContent,
};
use selftest_checks::scenario::{FileExcerpt, GeneratedCase, Scenario, TaskStatus};
use selftest_models::guarded;
use selftest_models::guarded::Outages;

/// Timeout for probing the model server after the system under test timed out.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a command in a note, in bytes.
const MAX_LINE: usize = 200;

/// A case in progress.
pub(super) struct CaseRun {
    runner: Arc<Runner>,
    events: EventSender,
    planned: PlannedCase,
    task: SutTask,
    session: Option<Box<dyn SutSession>>,
    /// Time that the system under test has left.
    remaining: Duration,
    draft: CaseResult,
    started: Instant,
    /// Time spent on the prompt before the case started.
    prompt_duration: Duration,
}

impl CaseRun {
    pub(super) fn new(
        runner: Arc<Runner>,
        events: EventSender,
        planned: PlannedCase,
        task_group_id: TaskGroupId,
        session_id: SessionId,
    ) -> Self {
        let seed = derive_seed(runner.seed, planned.index, SeedPurpose::Sut, 0);
        Self {
            runner,
            events,
            session: None,
            remaining: planned.limits.timeout,
            draft: planned.recorded.as_ref().map_or_else(
                || CaseResult {
                    index: planned.index,
                    scenario: planned.scenario.clone(),
                    repeat: planned.repeat,
                    skill: planned.skill.clone(),
                    session_id: session_id.clone(),
                    generation: GenerationRecord::default(),
                    case: planned.frozen.clone(),
                    steps: Vec::new(),
                    checks: Vec::new(),
                    interruption: None,
                    reruns: Vec::new(),
                    evidence: SutEvidence::default(),
                    notes: Vec::new(),
                    former: None,
                    cache_key: planned.cache_key.clone(),
                    unchanged_since: None,
                    threshold: planned.threshold,
                    safety_floor: planned.limits.safety_floor,
                    duration_ms: 0,
                },
                |stored| rejudge::without_judgements(stored, planned.index),
            ),
            task: SutTask {
                session_id,
                task_group_id,
                task_type: SutTaskType::ReadInfo,
                seed,
                fixtures: Arc::clone(&planned.fixtures),
            },
            started: Instant::now(),
            prompt_duration: Duration::ZERO,
            planned,
        }
    }

    /// Returns the case as not started, with this reason.
    pub(super) fn not_started(self, why: Interruption) -> CaseResult {
        CaseResult { interruption: Some(why), ..self.draft }
    }

    /// Closes the session, whatever its state, and returns the collected result. `cut` is the
    /// reason if the case could not finish.
    pub(super) async fn finish(mut self, cut: Option<Interruption>) -> CaseResult {
        let is_cut = cut.is_some();
        if let Some(session) = self.session.take() {
            // Closed first: the comparison of the project below has to see the last writes of the
            // program.
            self.draft.evidence = session.close().await;
        }
        // The first error explains more than a later cut.
        if self.draft.interruption.is_none() {
            self.draft.interruption = cut;
        }
        let begun = matches!(&self.draft.interruption,
            Some(interruption) if !matches!(interruption, Interruption::ModelUnavailable(_)));
        // Only a case that reached the system under test can have changed anything.
        let spoke = !self.draft.steps.is_empty() || begun;
        if let Some(hint) = self.draft.evidence.hint.clone() {
            self.draft.interruption =
                self.draft.interruption.take().map(|why| why.with_hint(&hint));
        }
        // After a cut the program may still be writing, so that its changes can no longer be
        // distinguished from the user's.
        if spoke && !is_cut {
            let changed = self.runner.project_changes();
            if let Some(sandbox) = &mut self.draft.evidence.sandbox {
                if !changed.is_empty() {
                    sandbox.state = SandboxState::Tainted;
                }
                // A forbidden deed outweighs the failure that it may have led to, and a changed
                // project outweighs both.
                if !sandbox.forbidden.is_empty() {
                    let forbidden = sandbox.forbidden.clone();
                    self.draft.interruption = Some(Interruption::Forbidden(forbidden));
                }
            }
            if !changed.is_empty() {
                self.draft.interruption = Some(Interruption::IsolationViolation(changed));
            }
            self.void_tainted_safety();
        }
        self.draft.duration_ms = milliseconds(self.started.elapsed() + self.prompt_duration);
        self.draft
    }

    /// Sets safety to zero if the program broke its rules or escaped its sandbox, whatever it
    /// answered.
    fn void_tainted_safety(&mut self) {
        let sandbox = self.draft.evidence.sandbox.as_ref();
        let is_tainted = sandbox.is_some_and(|sandbox| sandbox.state == SandboxState::Tainted);
        if let Some(panel) = self.runner.judge.as_ref().filter(|_| is_tainted) {
            let judgements = self.draft.steps.iter_mut().filter_map(|step| step.judgement.as_mut());
            judgements.for_each(|judgement| panel.void_safety(judgement));
        }
    }

    /// Runs the case. Its results are in the draft.
    pub(super) async fn run(&mut self) {
        // Once a model server is given up, no further case is tried.
        self.draft.interruption = match self.runner.outages.first() {
            Some(why) => Some(Interruption::ModelUnavailable(why)),
            None => match self.planned.recorded.clone() {
                Some(stored) => {
                    self.rejudge(&stored).await;
                    rejudge::interruption(&stored)
                }
                None => self.try_run().await.err(),
            },
        };
    }

    /// Judges recorded answers again, if anything is left to judge.
    async fn rejudge(&mut self, stored: &CaseResult) {
        if rejudge::interruption(stored).is_some() {
            return;
        }
        self.draft.checks = rejudge::checks(stored);
        match (&stored.case, rejudge::missing_evidence(stored)) {
            (Some(case), None) => self.judge_steps(case).await,
            // Its checks decide it without what is missing.
            (Some(case), Some(_)) if !case.needs_judge() => {}
            (_, why) => {
                let why = why.unwrap_or_default();
                for step in &mut self.draft.steps {
                    step.judgement = Some(rejudge::evidence_missing(why));
                }
            }
        }
    }

    async fn try_run(&mut self) -> Result<(), Interruption> {
        let case = match &self.planned.frozen {
            Some(case) => case.clone(),
            None => self.generate().await?,
        };
        let scenario = self.planned.scenario.clone();
        if !self.set_up(&case).await? {
            return Ok(());
        }
        let played = self.exchanges(&case, &scenario).await;
        if played.is_ok() {
            self.decide_checks(&case).await;
        }
        // Answers given before a failure are still judged, unless the model server is down.
        if !matches!(played, Err(Interruption::ModelUnavailable(_))) {
            self.judge_steps(&case).await;
        }
        played
    }

    /// Judges every step, unless a failed check has already decided the case.
    async fn judge_steps(&mut self, case: &GeneratedCase) {
        // A failed check decides the case; a judge's call could not change it.
        let decided = self.draft.first_check_with(CheckOutcome::Failed).is_some();
        if case.needs_judge() && !decided {
            for number in self.draft.first_judged_step()..self.draft.steps.len() {
                self.judge_step(case, number).await;
            }
        }
    }

    /// Runs the set-up commands of the case. Returns false if one failed: then nothing is asked,
    /// and the case has an undecided check.
    async fn set_up(&mut self, case: &GeneratedCase) -> Result<bool, Interruption> {
        let commands = Arc::clone(&self.planned.setup_commands);
        if commands.is_empty() {
            return Ok(true);
        }
        let runner = Arc::clone(&self.runner);
        let limit = self.planned.limits.timeout;
        // Opening counts against the time of the case; the commands have time limits of their own.
        let opening = open(&runner, &self.planned, &self.task);
        let left = &mut self.remaining;
        let session = match within_time_left(opening, left, limit, &runner.outages).await.0 {
            Ok(session) => session,
            Err(interruption) => return Err(attribute_failure(&runner, interruption).await),
        };
        let session = self.session.insert(session);
        let workspace = session.workspace().map(Path::to_owned);
        let facts = json!({ "id": self.draft.name(), "prompt": case.prompt }).to_string();
        for command in commands.iter() {
            let id = &self.draft.session_id;
            let end = runner.commands.run(command, id, &facts, "", workspace.as_deref()).await;
            // Set-up lines run as `sh -c LINE`, so the line is the last word.
            let line = command.run.words().last().map_or("", String::as_str);
            let line = selftest_text::one_line(line, MAX_LINE);
            let run = [CommandRun { command: command.clone(), end }];
            let observation = CheckObservation { commands: &run, ..CheckObservation::default() };
            let check = Check::new(CheckKind::Command(command.clone()));
            let finding = check::decide(&check, &observation);
            if finding.outcome != CheckOutcome::Held {
                // The agent never had its chance, so that the case cannot fail.
                let finding = CheckFinding { outcome: CheckOutcome::Undecided, ..finding };
                self.draft.checks.push(CheckResult { check: format!("set-up `{line}`"), finding });
                return Ok(false);
            }
            self.draft.notes.push(format!("set-up: `{line}` was run in the sandbox"));
        }
        // The changes of the set-up must not count as changes by the program.
        if let Some(session) = &mut self.session {
            session.take_baseline().await;
        }
        Ok(true)
    }

    /// Sends the prompt and runs the reply flow.
    async fn exchanges(
        &mut self,
        case: &GeneratedCase,
        scenario: &Scenario,
    ) -> Result<(), Interruption> {
        // If the case only tests skill loading, the task's status does not matter.
        let last = case.should_load().is_none().then_some(scenario.expected_status);
        let expected = last.filter(|_| scenario.follow_ups.is_empty());
        let mut status = self.step(StepKind::Answer, case, &case.prompt, expected).await?;
        let flow = if scenario.requires_reply { &scenario.reply_flow[..] } else { &[] };
        // The flow continues only as long as the program asks back.
        for ((played, reply), number) in flow.iter().enumerate().zip(1..) {
            if status != TaskStatus::AwaitingResponse {
                let planned = flow.len();
                self.draft.notes.push(format!(
                    "reply flow: {} of {planned} replies not played, because the status was {status}",
                    planned - played
                ));
                break;
            }
            let kind = StepKind::Reply(number);
            status = self.step(kind, case, &reply.reply, Some(reply.expected_status)).await?;
        }
        let left = |number: u32| scenario.follow_ups.len() - number as usize;
        for (message, number) in scenario.follow_ups.iter().zip(1..) {
            if status == TaskStatus::Error {
                break;
            }
            let expected = last.filter(|_| left(number) == 0);
            let said = self.step(StepKind::Reply(number), case, message, expected).await;
            if said.is_err() && status == TaskStatus::Complete {
                let words =
                    "after COMPLETE the next message got no answer: the program has to read on";
                self.draft.notes.push(words.to_owned());
            }
            status = said?;
        }
        Ok(())
    }

    async fn generate(&mut self) -> Result<GeneratedCase, Interruption> {
        self.phase(CasePhase::Generating);
        let runner = Arc::clone(&self.runner);
        let generator = runner.generator.as_ref().ok_or_else(|| {
            let why = "there is neither a frozen case nor a generator".to_owned();
            Interruption::GenerationFailed(why)
        })?;
        let (index, scenario) = (self.planned.index, &self.planned.scenario);
        let on_rejected = |attempt, reason: &str| {
            self.events.emit(RunEventKind::PromptRejected {
                index,
                scenario_id: scenario.id.clone(),
                attempt,
                reason: reason.to_owned(),
            });
        };
        let asked = Instant::now();
        let made = if let Some(generated) = runner.prefetch.take(index).await {
            // Only the part of the generation that ran before the case started.
            self.prompt_duration = generated.duration.saturating_sub(asked.elapsed());
            for (attempt, reason) in &generated.rejected {
                on_rejected(*attempt, reason);
            }
            self.draft.generation.attempts = generated.attempts;
            generated.result
        } else {
            let seed = |number| derive_seed(runner.seed, index, SeedPurpose::Generate, number);
            let attempts = &mut self.draft.generation.attempts;
            let grounds = &self.planned.grounds;
            generator
                .generate(&runner.library, scenario, grounds, attempts, seed, on_rejected)
                .await
        };
        let made = made.map_err(|error| {
            let why = error.to_string();
            // An outage is not the generator's fault.
            let last = self.draft.generation.attempts.last();
            if last.is_some_and(|attempt| attempt.call.outage) {
                unavailable(&self.runner, why)
            } else {
                Interruption::GenerationFailed(why)
            }
        })?;
        let mut case = made.case;
        // A frozen case has the user's grounds already; a generated one only gets them here.
        case.grounds.add(self.planned.grounds.clone());
        self.draft.notes.extend(made.notes);
        self.draft.case = Some(case.clone());
        Ok(case)
    }

    /// Sends an input to the system under test and returns the task's status. If nothing is
    /// `expected`, every status but an error is accepted.
    async fn step(
        &mut self,
        kind: StepKind,
        case: &GeneratedCase,
        input: &str,
        expected: Option<TaskStatus>,
    ) -> Result<TaskStatus, Interruption> {
        self.phase(CasePhase::Running);
        let (reply, duration_ms) = self.exchange(kind, input).await;
        let stands = reply.as_ref().ok().map(|reply| reply.status);
        // If nothing specific is expected, the actual status is recorded as expected, except an
        // error.
        let stands = stands.filter(|status| *status != TaskStatus::Error);
        let expected_status = expected.or(stands).unwrap_or(TaskStatus::Complete);
        // Recorded before an error is returned, so that the report shows the input without an
        // answer.
        self.draft.steps.push(CaseStep {
            kind,
            input: input.to_owned(),
            expected_status,
            reply: reply.as_ref().ok().cloned(),
            written: Vec::new(),
            judgement: None,
            duration_ms,
        });
        let reply = match reply {
            Ok(reply) => reply,
            Err(interruption) => return Err(attribute_failure(&self.runner, interruption).await),
        };
        let name = self.draft.steps.last().map(CaseStep::name).unwrap_or_default();
        self.draft.notes.extend(reply.notes.iter().map(|note| format!("{name}: {note}")));
        let failed = reply.status == TaskStatus::Error;
        // Checks may ask for an empty answer, or concern files instead of text.
        let is_empty = if case.needs_judge() {
            !reply.output.contains(char::is_alphanumeric)
        } else {
            check::is_blank(&reply.output) && !check::accepts_empty_answer(&case.grounds.checks)
        };
        if is_empty && !failed {
            let why = "the system under test gave an empty answer".to_owned();
            return Err(Interruption::SutError(why));
        }
        Ok(reply.status)
    }

    /// Sends an input to the session and times the answer. The first input opens the session.
    async fn exchange(
        &mut self,
        kind: StepKind,
        input: &str,
    ) -> (Result<SutReply, Interruption>, u64) {
        let limit = self.planned.limits.timeout;
        let left = &mut self.remaining;
        let session = match &mut self.session {
            Some(session) => session,
            none => {
                let opening = open(&self.runner, &self.planned, &self.task);
                match within_time_left(opening, left, limit, &self.runner.outages).await {
                    (Ok(session), _) => none.insert(session),
                    (Err(interruption), duration_ms) => return (Err(interruption), duration_ms),
                }
            }
        };
        let answer = match kind {
            StepKind::Answer => session.submit(input),
            StepKind::Reply(_) => session.reply(input),
        };
        let (mut reply, duration_ms) =
            within_time_left(answer, left, limit, &self.runner.outages).await;
        // Redacted before the answer is stored, checked or judged.
        if let Ok(reply) = &mut reply {
            let redactor = &self.runner.redactor;
            reply.output = redactor.apply(&reply.output).into_owned();
            let raw = reply.raw_output.as_deref();
            reply.raw_output = raw.map(|text| redactor.apply(text).into_owned());
        }
        (reply, duration_ms)
    }

    /// Runs the commands of the checks and decides all checks.
    async fn decide_checks(&mut self, case: &GeneratedCase) {
        let Some(last) = self.draft.steps.last() else { return };
        let checks = &case.checks_after(&last.input, last.expected_status);
        if checks.is_empty() {
            return;
        }
        let named: Vec<String> =
            check::needed_paths(checks).into_iter().map(ToOwned::to_owned).collect();
        // Before the commands of checks run, which may write to the copy as well.
        let (files, workspace) = match &mut self.session {
            Some(session) => (session.files(&named).await, session.workspace().map(Path::to_owned)),
            None => (None, None),
        };
        let Some(observed) = CaseObservation::of(&self.draft.steps) else { return };
        let last = observed.last();
        let facts = json!({
            "id": self.draft.name(),
            "prompt": case.prompt,
            "expected_status": self.draft.steps.last().map(|step| step.expected_status),
            "status": last.status,
        });
        let mut runs = Vec::new();
        for command in check::distinct_commands(checks) {
            let (session, facts) = (&self.draft.session_id, facts.to_string());
            let (runner, workspace) = (&self.runner.commands, workspace.as_deref());
            let end = runner.run(command, session, &facts, &last.output, workspace).await;
            runs.push(CommandRun { command: command.clone(), end });
        }
        let observation = observed.observation(files.as_ref(), &runs);
        let findings = check::decide_all(checks, &observation).findings;
        let results = checks
            .iter()
            .zip(findings)
            .map(|(check, finding)| CheckResult { check: check.describe(), finding });
        self.draft.checks = results.collect();
    }

    /// Returns the files that the system under test wrote or changed, bounded and redacted: what it
    /// made is part of its answer.
    async fn written_files(&mut self) -> Vec<FileExcerpt> {
        let Some(session) = &mut self.session else { return Vec::new() };
        // The first report lists the files, the second one reads those that count.
        let Some(changes) = session.files(&[]).await else { return Vec::new() };
        let names = changes.created.iter().chain(&changes.changed).take(MAX_JUDGED_FILES);
        let names: Vec<String> = names.cloned().collect();
        if names.is_empty() {
            return Vec::new();
        }
        let Some(changes) = session.files(&names).await else { return Vec::new() };
        let mut written = Vec::new();
        for (path, content) in changes.after {
            let FileContent::Text(text) = content else { continue };
            // Redacted before it is cut: half of a secret would no longer be recognised.
            let text = self.runner.redactor.apply(&text).into_owned();
            let end = text.floor_char_boundary(MAX_JUDGED_BYTES);
            let mark = if end < text.len() { "\n(the rest is left out here)" } else { "" };
            written.push(FileExcerpt { path, text: format!("{}{mark}", &text[..end]) });
        }
        written
    }

    async fn judge_step(&mut self, case: &GeneratedCase, number: usize) {
        let Some(judge) = self.runner.judge.clone() else { return };
        let is_last = number + 1 == self.draft.steps.len();
        let written = if is_last { self.written_files().await } else { Vec::new() };
        let (earlier, rest) = self.draft.steps.split_at_mut(number);
        let Some(step) = rest.first_mut() else { return };
        // A recorded answer has no session; its files are recorded with it.
        if !written.is_empty() {
            step.written = written;
        }
        let files = step.written.clone();
        // There is nothing to judge in an unexpected error.
        let may_fail = step.expected_status == TaskStatus::Error;
        let judged = |reply: &&SutReply| {
            let says = reply.output.contains(char::is_alphanumeric) || !files.is_empty();
            if reply.status == TaskStatus::Error { may_fail } else { says }
        };
        let Some(reply) = step.reply.clone().as_ref().filter(judged).cloned() else { return };
        self.events.emit(RunEventKind::PhaseStarted {
            index: self.planned.index,
            scenario_id: self.planned.scenario.id.clone(),
            phase: CasePhase::Judging,
        });
        let said = |step: &CaseStep| {
            let answered = step.reply.as_ref()?.output.clone();
            Some(Exchange { said: step.input.clone(), answered })
        };
        let (reply_to_question, number) = match step.kind {
            StepKind::Answer => (None, 0),
            StepKind::Reply(number) => (Some(step.input.clone()), number),
        };
        let limits = &self.planned.limits;
        let evidence = JudgeEvidence {
            case: case.clone(),
            conversation: earlier.iter().filter_map(said).collect(),
            reply: reply_to_question,
            question_count: count_questions(&reply.output),
            output: reply.output.clone(),
            tool_calls: reply.tool_calls.clone().unwrap_or_default(),
            files,
            scores_expectations: self.planned.frozen.is_some(),
            expected_status: step.expected_status,
            actual_status: reply.status,
            max_questions_allowed: limits.max_questions_allowed,
            allow_minor_format_deviation: limits.allow_minor_format_deviation,
        };
        let (index, runner) = (self.planned.index, &self.runner);
        let seed = |call| derive_seed(runner.seed, index, SeedPurpose::Judge(number), call);
        step.judgement = Some(judge.judge(&runner.library, &evidence, seed).await);
    }

    fn phase(&self, phase: CasePhase) {
        self.events.emit(RunEventKind::PhaseStarted {
            index: self.planned.index,
            scenario_id: self.planned.scenario.id.clone(),
            phase,
        });
    }
}

/// Most files of the system under test that a judge sees.
const MAX_JUDGED_FILES: usize = 8;

/// Most bytes of such a file.
const MAX_JUDGED_BYTES: usize = 3_000;

/// Opens a session of the system under test, with the case's skill if it has one.
async fn open(
    runner: &Runner,
    planned: &PlannedCase,
    task: &SutTask,
) -> Result<Box<dyn SutSession>, SutError> {
    match &planned.given_skill {
        Some(skill) => runner.sut.with_skill(Arc::clone(skill))?.open(task).await,
        None => runner.sut.open(task).await,
    }
}

/// Returns the interruption for an unavailable model. All cases report the same reason once its
/// server was given up.
fn unavailable(runner: &Runner, why: String) -> Interruption {
    // The first server that was given up is the cause. What failed later follows from it.
    Interruption::ModelUnavailable(runner.outages.first().unwrap_or(why))
}

/// Distinguishes a failing system under test from one whose model server is down.
async fn attribute_failure(runner: &Runner, interruption: Interruption) -> Interruption {
    match interruption {
        Interruption::ModelUnavailable(why) => unavailable(runner, why),
        // A dead model server also looks like a timeout, so it is probed.
        Interruption::SutTimeout(late) => {
            match tokio::time::timeout(PROBE_TIMEOUT, runner.sut.check_model()).await {
                Ok(Ok(())) => Interruption::SutTimeout(late),
                Ok(Err(error)) => unavailable(runner, format!("{late}; {error}")),
                Err(_) => unavailable(runner, format!("{late}; its model server is silent")),
            }
        }
        other => other,
    }
}

/// Waits for the system under test within the remaining time, and deducts the time spent. If it
/// is lost for all cases, that is recorded in `outages`.
async fn within_time_left<T>(
    call: impl Future<Output = Result<T, SutError>>,
    left: &mut Duration,
    limit: Duration,
    outages: &Outages,
) -> (Result<T, Interruption>, u64) {
    let started = Instant::now();
    // The inner limit lets a call that waits for its server give up in time, with a reason. The
    // outer one drops any call.
    let result = tokio::time::timeout(*left, guarded::within_deadline(*left, call)).await;
    let spent = started.elapsed();
    *left = left.saturating_sub(spent);
    let result = if let Ok(result) = result {
        result.map_err(|error| match error {
            SutError::Unavailable { what } => Interruption::ModelUnavailable(what),
            // Every other case would fail alike, so that no further one is started.
            error @ (SutError::NotStarted { .. } | SutError::Lost { .. }) => {
                let why = error.message();
                outages.record(&why);
                Interruption::ModelUnavailable(why)
            }
            SutError::Cut { what } => Interruption::AnswerCut(what),
            SutError::Failed { what } => Interruption::SutError(what),
        })
    } else {
        let why = format!("no answer within {} s", limit.as_secs_f64());
        Err(Interruption::SutTimeout(why))
    };
    (result, milliseconds(spent))
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
