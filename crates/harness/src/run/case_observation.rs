//! Builds the observation that checks are decided on, from the steps of a case. Pure.

use std::time::Duration;

use crate::outcome::CaseStep;
use crate::sut::SutReply;
use selftest_checks::check::{CheckObservation, CommandRun, FileChanges, ObservedToolCall};

/// The answers of a case with their metadata.
pub(super) struct CaseObservation<'a> {
    answers: Vec<&'a str>,
    last: &'a SutReply,
    tool_calls: Option<Vec<ObservedToolCall>>,
    tokens: Option<u64>,
    duration_ms: u64,
}

impl<'a> CaseObservation<'a> {
    /// Collects the steps that were run. Returns `None` if there is no answer.
    pub(super) fn of(steps: &'a [CaseStep]) -> Option<Self> {
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
    pub(super) fn last(&self) -> &'a SutReply {
        self.last
    }

    /// Combines the answers with the results of files and commands.
    pub(super) fn observation<'b>(
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
