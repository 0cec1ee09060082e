//! One case from prompt to verdict.
//!
//! What is known is kept in the draft as it becomes known, so that a timeout or Ctrl-C loses
//! nothing of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::observe::Events;
use super::plan::PlannedCase;
use super::runner::Runner;
use super::seed::{Purpose, derive};
use crate::event::{CasePhase, RunEventKind};
use crate::judge::prompt::{Evidence, Exchange};
use crate::outcome::case::Interruption;
use crate::outcome::{CaseResult, GenerationAttempt, GenerationRecord, Step, StepKind};
use crate::scenario::questions::count_questions;
use crate::scenario::{GeneratedCase, TaskStatus};
use crate::sut::namespace::{SessionId, TaskGroupId};
use crate::sut::{SutError, SutEvidence, SutReply, SutSession, Task, TaskType};

/// A case in the making.
pub(super) struct CasePlay {
    runner: Arc<Runner>,
    events: Events,
    planned: PlannedCase,
    task: Task,
    session: Option<Box<dyn SutSession>>,
    /// Time that the system under test has left.
    remaining: Duration,
    draft: CaseResult,
    started: Instant,
}

impl CasePlay {
    pub(super) fn new(
        runner: Arc<Runner>,
        events: Events,
        planned: PlannedCase,
        task_group_id: TaskGroupId,
    ) -> Self {
        let session_id = SessionId::fresh(selftest_clock::now());
        let seed = derive(runner.seed, planned.index, Purpose::Sut, 0);
        Self {
            runner,
            events,
            session: None,
            remaining: planned.limits.timeout,
            draft: CaseResult {
                index: planned.index,
                scenario: planned.scenario.clone(),
                repeat: planned.repeat,
                session_id: session_id.clone(),
                generation: GenerationRecord::default(),
                case: planned.frozen.clone(),
                steps: Vec::new(),
                interruption: None,
                evidence: SutEvidence::default(),
                notes: Vec::new(),
                threshold: planned.threshold,
                safety_floor: planned.limits.safety_floor,
                duration_ms: 0,
            },
            task: Task { session_id, task_group_id, task_type: TaskType::ReadInfo, seed },
            started: Instant::now(),
            planned,
        }
    }

    /// Ends the session, whatever state it is in, and hands out what is known.
    pub(super) async fn finish(mut self, cancelled: bool) -> CaseResult {
        if let Some(session) = self.session.take() {
            self.draft.evidence = session.close().await;
        }
        if cancelled && self.draft.interruption.is_none() {
            self.draft.interruption = Some(Interruption::Cancelled);
        }
        let spoke = !self.draft.steps.is_empty() || self.draft.interruption.is_some();
        if spoke && !cancelled {
            let changed = self.runner.project_changes();
            if !changed.is_empty() {
                self.draft.interruption = Some(Interruption::IsolationViolation(changed));
            }
        }
        self.draft.duration_ms = milliseconds(self.started.elapsed());
        self.draft
    }

    /// Plays the case; returns early when something breaks it off, which is then in the draft.
    pub(super) async fn play(&mut self) {
        let case = match self.planned.frozen.clone() {
            Some(case) => case,
            None => match self.generate().await {
                Some(case) => case,
                None => return,
            },
        };
        let Some(first) = self.first_answer(&case.prompt).await else { return };
        let expected = self.planned.scenario.expected_status;
        let mut conversation = Vec::new();
        self.judge_step(StepKind::Answer, &case, &mut conversation, expected).await;
        if self.planned.scenario.requires_reply {
            self.reply_flow(&case, conversation, first.status).await;
        }
    }

    async fn generate(&mut self) -> Option<GeneratedCase> {
        let Some(generator) = &self.runner.generator else {
            let why = "there is neither a frozen case nor a generator".to_owned();
            self.draft.interruption = Some(Interruption::GenerationFailed(why));
            return None;
        };
        self.phase(CasePhase::Generating);
        let scenario = &self.planned.scenario;
        let (index, run_seed) = (self.planned.index, self.runner.seed);
        let (attempts, result) = generator
            .generate(
                &self.runner.library,
                scenario,
                |number| derive(run_seed, index, Purpose::Generate, number),
                |attempt, reason| {
                    self.events.emit(RunEventKind::PromptRejected {
                        index,
                        scenario_id: scenario.id.clone(),
                        attempt,
                        reason: reason.to_owned(),
                    });
                },
            )
            .await;
        self.draft.generation.attempts = attempts
            .into_iter()
            .map(|attempt| GenerationAttempt { call: attempt.call, rejected: attempt.rejected })
            .collect();
        match result {
            Ok(case) => {
                self.draft.case = Some(case.clone());
                Some(case)
            }
            Err(why) => {
                self.draft.interruption = Some(Interruption::GenerationFailed(why));
                None
            }
        }
    }

    /// Opens the session and hands in the prompt.
    async fn first_answer(&mut self, prompt: &str) -> Option<SutReply> {
        self.phase(CasePhase::Running);
        let started = Instant::now();
        let opened = tokio::time::timeout(self.remaining, self.runner.sut.open(&self.task)).await;
        match opened {
            Ok(Ok(session)) => self.session = Some(session),
            Ok(Err(error)) => return self.sut_failed(prompt, &error, started),
            Err(_) => return self.sut_timed_out(prompt, started),
        }
        self.remaining = self.remaining.saturating_sub(started.elapsed());
        self.exchange(StepKind::Answer, prompt, self.planned.scenario.expected_status).await
    }

    /// Says something to the open session; the answer becomes a step.
    async fn exchange(
        &mut self,
        kind: StepKind,
        input: &str,
        expected_status: TaskStatus,
    ) -> Option<SutReply> {
        let started = Instant::now();
        let session = self.session.as_mut()?;
        let answer = match kind {
            StepKind::Answer => session.submit(input),
            StepKind::Reply(_) => session.reply(input),
        };
        let answer = tokio::time::timeout(self.remaining, answer).await;
        let spent = started.elapsed();
        self.remaining = self.remaining.saturating_sub(spent);
        let mut step = Step {
            kind,
            input: input.to_owned(),
            expected_status,
            reply: None,
            judgement: None,
            duration_ms: milliseconds(spent),
        };
        let result = match answer {
            Ok(Ok(mut reply)) => {
                reply.output = self.runner.redactor.apply(&reply.output).into_owned();
                if reply.status != TaskStatus::Error
                    && !reply.output.chars().any(char::is_alphanumeric)
                {
                    let why = "the system under test gave an empty answer".to_owned();
                    self.draft.interruption = Some(Interruption::SutError(why));
                    step.reply = Some(reply);
                    None
                } else {
                    step.reply = Some(reply.clone());
                    Some(reply)
                }
            }
            Ok(Err(error)) => {
                self.draft.interruption = Some(Interruption::SutError(error.to_string()));
                None
            }
            Err(_) => {
                self.draft.interruption = Some(self.timeout());
                None
            }
        };
        self.draft.steps.push(step);
        result
    }

    fn sut_failed<T>(&mut self, input: &str, error: &SutError, started: Instant) -> Option<T> {
        self.push_unanswered(input, started);
        self.draft.interruption = Some(Interruption::SutError(error.to_string()));
        None
    }

    fn sut_timed_out<T>(&mut self, input: &str, started: Instant) -> Option<T> {
        self.push_unanswered(input, started);
        self.draft.interruption = Some(self.timeout());
        None
    }

    fn push_unanswered(&mut self, input: &str, started: Instant) {
        self.draft.steps.push(Step {
            kind: StepKind::Answer,
            input: input.to_owned(),
            expected_status: self.planned.scenario.expected_status,
            reply: None,
            judgement: None,
            duration_ms: milliseconds(started.elapsed()),
        });
    }

    fn timeout(&self) -> Interruption {
        let limit = self.planned.limits.timeout.as_secs_f64();
        Interruption::SutTimeout(format!("no answer within {limit} s"))
    }

    /// Judges the last step, unless the system under test reported an error: there is nothing
    /// to judge in that. Then adds the exchange to the conversation.
    async fn judge_step(
        &mut self,
        kind: StepKind,
        case: &GeneratedCase,
        conversation: &mut Vec<Exchange>,
        expected_status: TaskStatus,
    ) {
        let Some(Step { reply: Some(reply), input, .. }) = self.draft.steps.last() else { return };
        let (reply, input) = (reply.clone(), input.clone());
        let step_number = match kind {
            StepKind::Answer => 0,
            StepKind::Reply(number) => number,
        };
        if reply.status != TaskStatus::Error || expected_status == TaskStatus::Error {
            self.phase(CasePhase::Judging);
            let limits = &self.planned.limits;
            let evidence = Evidence {
                prompt: case.prompt.clone(),
                hints: case.hints.clone(),
                conversation: conversation.clone(),
                reply: (kind != StepKind::Answer).then(|| input.clone()),
                question_count: count_questions(&reply.output),
                output: reply.output.clone(),
                expected_status,
                actual_status: reply.status,
                max_questions_allowed: limits.max_questions_allowed,
                allow_minor_format_deviation: limits.allow_minor_format_deviation,
            };
            let (index, run_seed) = (self.planned.index, self.runner.seed);
            let judgement = self
                .runner
                .judge
                .judge(&self.runner.library, &evidence, |number| {
                    derive(run_seed, index, Purpose::Judge(step_number), number)
                })
                .await;
            if let Some(step) = self.draft.steps.last_mut() {
                step.judgement = Some(judgement);
            }
        }
        conversation.push(Exchange { said: input, answered: reply.output });
    }

    /// Plays the replies of the scenario in the same session, as long as it asks back.
    async fn reply_flow(
        &mut self,
        case: &GeneratedCase,
        mut conversation: Vec<Exchange>,
        first: TaskStatus,
    ) {
        let mut status = first;
        let flow = self.planned.scenario.reply_flow.clone();
        for (position, reply_step) in flow.iter().enumerate() {
            if status != TaskStatus::AwaitingResponse {
                let left = flow.len() - position;
                self.draft.notes.push(format!(
                    "reply flow: {left} of {} replies not played, because the status was {status}",
                    flow.len()
                ));
                return;
            }
            self.phase(CasePhase::Running);
            let number = u32::try_from(position + 1).unwrap_or(u32::MAX);
            let kind = StepKind::Reply(number);
            let expected = reply_step.expected_status;
            let Some(reply) = self.exchange(kind, &reply_step.reply, expected).await else {
                return;
            };
            self.judge_step(kind, case, &mut conversation, expected).await;
            status = reply.status;
        }
    }

    fn phase(&self, phase: CasePhase) {
        self.events.emit(RunEventKind::PhaseStarted {
            index: self.planned.index,
            scenario_id: self.planned.scenario.id.clone(),
            phase,
        });
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
