//! Grades by rules, following docs/spec/session-grades.md to the letter.
//!
//! Exceptions are documented where they are made: phrases match on word boundaries, negated phrases
//! and harmless exit codes are ignored, and only actions of the session's own agent count. Every
//! grade includes its evidence.

use jiff::Timestamp;

use crate::grade::final_message::RedactedMessage;
use crate::grade::grade_record::{
    ErrorCount, GradeDetails, GradeEvidence, GradePoint, GradeRecord,
};
use crate::grade::outcome::EndOfTask;
use crate::grade::tally::{ErrorGroup, ErrorKey, SessionTally};
use crate::grade::task_type::TaskType;
use crate::grade::weights::GradeWeights;
use crate::grade::{ErrorClass, GradeLevel, OutcomeEvidence, SessionKind, completion, response};
use selftest_sessions::{Event, EventOrigin, SessionHead, SessionSink, SessionSource, TokenCounts};
use selftest_text::one_line;
use selftest_text::redact::Redactor;

/// Maximum number of error groups in a grade.
const MAX_GROUPS: usize = 50;
/// Maximum length in bytes of an evidence text.
const MAX_WORDS: usize = 240;

/// Result of grading a session.
#[derive(Debug, Clone, PartialEq)]
pub enum GradingResult {
    /// The session was graded.
    Graded(Box<GradeRecord>),
    /// The session contains too little to grade. It also stays out of averages.
    NotGradable {
        /// ID of the session.
        session_id: String,
        /// Readable reason.
        reason: &'static str,
    },
}

/// Facts about a session that its events do not contain.
#[derive(Debug, Clone)]
pub struct GradingContext<'a> {
    /// Path of the file, as displayed and stored.
    pub session_file: &'a str,
    /// Current time.
    pub graded_at: Timestamp,
}

/// Grades the sessions of one source as they are read.
pub struct RuleGrader<'a> {
    context: GradingContext<'a>,
    weights: GradeWeights,
    redactor: &'a Redactor,
    own: SessionTally,
    subagents: SessionTally,
    gradings: Vec<GradingResult>,
}

impl<'a> RuleGrader<'a> {
    /// Creates a grader for one source.
    pub fn new(context: GradingContext<'a>, weights: GradeWeights, redactor: &'a Redactor) -> Self {
        let (own, subagents) = (SessionTally::default(), SessionTally::default());
        Self { context, weights, redactor, own, subagents, gradings: Vec::new() }
    }

    /// Returns the results in the order of the source.
    pub fn into_gradings(self) -> Vec<GradingResult> {
        self.gradings
    }
}

impl SessionSink for RuleGrader<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event.origin {
            EventOrigin::Subagent => {
                self.subagents.add(&event);
                // Changes and checks by a subagent are part of the work.
                self.own.outcome.add_work(&event);
                self.own.work.add(&event);
            }
            EventOrigin::Human | EventOrigin::Agent | EventOrigin::Harness => self.own.add(&event),
        }
    }

    fn end(&mut self, head: SessionHead) {
        let own = std::mem::take(&mut self.own);
        let subagents = std::mem::take(&mut self.subagents);
        // A file may contain only a subagent's work, which is then graded itself. Its prompt may be
        // marked as a subagent's even if its answers are not.
        let is_subagent = if own.has_answered() {
            own.request.is_none() && subagents.request.is_some()
        } else {
            subagents.has_answered()
        };
        let tally = if !own.has_answered() && subagents.has_answered() {
            subagents
        } else {
            let mut own = own;
            // The cost of a session includes its subagents.
            own.spending.merge(subagents.spending);
            SessionTally { request: own.request.or(subagents.request), ..own }
        };
        self.gradings.push(self.grade(head, tally, is_subagent));
    }

    fn restart(&mut self) {
        (self.own, self.subagents) = (SessionTally::default(), SessionTally::default());
    }

    fn wants_outputs(&self) -> bool {
        self.own.outcome.awaits_output() || self.subagents.outcome.awaits_output()
    }
}

impl RuleGrader<'_> {
    fn grade(&self, head: SessionHead, tally: SessionTally, is_subagent: bool) -> GradingResult {
        let said = tally.request.as_ref().map_or("", |request| &request.text);
        let session_kind = SessionKind::classify(&head, is_subagent, said);
        let copied = tally.spending.copied_model_tokens(&head);
        let spent = tally.spending.clone().into_model_tokens(&head);
        let stated_cost = head.whole_stated_cost();
        let session_id = head.id;
        let Some(request) = &tally.request else {
            return GradingResult::NotGradable { session_id, reason: "no user request" };
        };
        if !tally.has_answered() {
            return GradingResult::NotGradable { session_id, reason: "no answer of the agent" };
        }
        let redacted = |text: &str| self.redactor.apply(text).into_owned();
        let shown = RedactedMessage::new(&tally.response, &redacted);
        // Redacted before it is cut, since part of a secret may not be recognized.
        let redact = |text: &str| one_line(&self.redactor.apply(text), MAX_WORDS);

        let (tool_calls_efficient, row) = response::efficiency(&tally);
        let indicators = completion::indicators(&tally, &self.weights.completion, &shown);
        let task_completed = sum(&indicators) > 0.0;
        let points = response::quality(&tally, &self.weights.quality, &shown);
        let response_quality = GradeLevel::nearest(self.weights.quality.base + sum(&points));
        let recovery = recovery(&tally);

        let evidence = indicators.into_iter().chain(points).chain([row]).chain(recovery.evidence);
        let clarification = tally.clarification.as_ref().map(|asked| GradeEvidence {
            point: GradePoint::Clarification,
            worth: 0.0,
            event: Some(asked.event),
            words: asked.text.clone(),
        });
        let evidence = evidence
            .chain(clarification)
            .map(|evidence| GradeEvidence { words: redact(&evidence.words), ..evidence });

        let EndOfTask { outcome, state, own, evidence: outcome_evidence } =
            tally.outcome.finish(&tally.response, &shown, &redacted);
        let shorten = |one: OutcomeEvidence| OutcomeEvidence { words: redact(&one.words), ..one };

        let errors = self.errors(&tally);
        let mut tools_with_errors: Vec<_> =
            tally.tools.iter().filter(|(_, tool)| tool.errors > 0).collect();
        tools_with_errors.sort_by_key(|(_, tool)| std::cmp::Reverse(tool.errors));
        let tools_with_errors =
            tools_with_errors.into_iter().map(|(name, _)| name.clone()).collect();
        let duration = head.start.zip(head.end).map(|(start, end)| end.duration_since(start));
        let events_usage = (tally.usage != TokenCounts::default()).then_some(tally.usage);

        GradingResult::Graded(Box::new(GradeRecord {
            session_id,
            session_file: self.context.session_file.to_owned(),
            graded_at: self.context.graded_at,
            task_completed,
            tool_calls_efficient,
            response_quality,
            errors_recovered: recovery.recovered,
            total_api_calls: tally.model_calls,
            model: head.models.into_iter().next(),
            platform: head.platform.map(|platform| one_line(&platform, 80)),
            session_start: head.start,
            duration_seconds: duration.map(|duration| duration.as_secs_f64()),
            task_summary: Some(redact(&request.text)),
            total_errors: tally.errors,
            error_types: classes(&tally),
            tools_with_errors,
            had_repeated_errors: response::had_repeated_errors(&tally),
            had_infinite_loop_risk: response::had_infinite_loop_risk(&tally),
            had_user_clarification: tally.clarification.is_some(),
            outcome,
            session_kind,
            parent_session: head.parent,
            details: GradeDetails {
                agent: one_line(&head.agent, 80),
                project: head.cwd.as_deref().map(&redact),
                task_type: TaskType::from_task(&request.text, &tally.work),
                counts_at: head.start,
                messages: tally.messages,
                tool_calls: tally.tool_calls,
                rejected_calls: tally.rejected,
                pending_calls: tally.pending,
                longest_error_run: tally.longest_error_run,
                // The file's own total takes precedence over the sum of its events.
                tokens: head.usage.or(events_usage).unwrap_or_default(),
                evidence: evidence.collect(),
                state,
                own_state: own.map(|(_, state)| state),
                own_outcome: own.map(|(outcome, _)| outcome),
                outcome_evidence: outcome_evidence.into_iter().map(shorten).collect(),
                results: Vec::new(),
                corrections: tally.outcome.corrections(),
                lineage: head.lineage,
                foreign_edits: tally.outcome.foreign_edits(),
                rewinds: head.rewinds,
                spent,
                copied,
                stated_cost,
                copied_from: head.copied_from,
                errors,
                tools: tally.tools,
            },
        }))
    }

    /// Returns the errors by cause, tool and template, most frequent first.
    fn errors(&self, tally: &SessionTally) -> Vec<ErrorCount> {
        let mut groups: Vec<_> = tally.error_groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        groups.truncate(MAX_GROUPS);
        let count = |(key, group): (&ErrorKey, &ErrorGroup)| ErrorCount {
            class: key.class,
            cause: key.cause,
            template: one_line(&self.redactor.apply(&tally.template(key)), MAX_WORDS),
            tool: key.tool.clone(),
            count: group.count,
            first_event: group.first.event,
            example: one_line(&self.redactor.apply(&group.first.text), MAX_WORDS),
        };
        groups.into_iter().map(count).collect()
    }
}

/// A session that triggers most rules: a request, a failed command, a complaint.
const SAMPLE: &str = r#"{"type":"user","uuid":"1","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"Fix the tests, please."}}
{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","timestamp":"2026-01-01T00:00:01Z","message":{"id":"a","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"pytest -q"}}]}}
{"type":"user","uuid":"3","parentUuid":"2","sessionId":"s","timestamp":"2026-01-01T00:00:02Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"Exit code 1\nTraceback (most recent call last):\n  File \"/w/a.py\", line 7\nKeyError: 'a'\n1 failed"}]}}
{"type":"assistant","uuid":"4","parentUuid":"3","sessionId":"s","timestamp":"2026-01-01T00:00:03Z","message":{"id":"b","role":"assistant","model":"m","content":[{"type":"text","text":"Done: it is fixed. See `a.py`."}]}}
{"type":"user","uuid":"5","parentUuid":"4","sessionId":"s","timestamp":"2026-01-01T00:00:04Z","message":{"role":"user","content":"It still does not work, as I said. Why did you stop?"}}
"#;

/// Compiles the regular expressions of the rules, which takes as long as grading many sessions.
/// Meant for a thread that runs in parallel with other preparations.
pub fn warm_up() {
    // The grade itself is not needed.
    drop(grade_sample());
}

fn grade_sample() -> Vec<GradingResult> {
    let redactor = Redactor::default();
    let now = Timestamp::UNIX_EPOCH;
    let context = GradingContext { session_file: "sample.jsonl", graded_at: now };
    let mut rules = RuleGrader::new(context, GradeWeights::default(), &redactor);
    let source = SessionSource::bytes("sample.jsonl", SAMPLE);
    let _ = selftest_sessions::read(&source, &mut rules);
    rules.into_gradings()
}

fn sum(evidence: &[GradeEvidence]) -> f64 {
    evidence.iter().map(|evidence| evidence.worth).sum()
}

/// Returns the distinct error classes, most frequent first.
fn classes(tally: &SessionTally) -> Vec<ErrorClass> {
    let mut counts = std::collections::BTreeMap::<_, u64>::new();
    for (key, group) in &tally.error_groups {
        *counts.entry(key.class).or_default() += group.count;
    }
    let mut classes: Vec<_> = counts.into_iter().collect();
    classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    classes.into_iter().map(|(class, _)| class).collect()
}

struct ErrorRecovery {
    recovered: bool,
    evidence: Option<GradeEvidence>,
}

/// Determines if a tool worked after the last error. A session without errors counts as recovered,
/// but recovery rates exclude it.
fn recovery(tally: &SessionTally) -> ErrorRecovery {
    let Some(error) = tally.last_error else {
        return ErrorRecovery { recovered: true, evidence: None };
    };
    let (event, words) = match tally.worked_after {
        Some(event) => (event, "a tool worked after the last error"),
        None => (error, "no tool worked after this error"),
    };
    let recovered = tally.worked_after.is_some();
    let worth = f64::from(u8::from(recovered));
    let words = words.to_owned();
    let evidence = GradeEvidence { point: GradePoint::Recovery, worth, event: Some(event), words };
    ErrorRecovery { recovered, evidence: Some(evidence) }
}

#[cfg(test)]
mod tests;
