//! Grades by rules, following docs/spec/session-grades.md to the letter.
//!
//! Exceptions are documented where they are made: phrases match on word boundaries, negated phrases
//! and harmless exit codes are ignored, and only actions of the session's own agent count. Every
//! grade includes its evidence.

use jiff::Timestamp;

use super::grade_settings::GradeWeights;
use super::rule_scores;
use super::tally::RedactedMessage;
use crate::grade::grade_record::{
    ErrorCount, GradeDetails, GradeEvidence, GradePoint, GradeRecord,
};
use crate::grade::outcome::EndOfTask;
use crate::grade::tally::{ErrorGroup, ErrorKey, SessionTally};
use crate::grade::task_type::TaskType;
use crate::grade::{ErrorClass, GradeLevel, OutcomeEvidence, SessionKind};
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
            // The prompt may be all that is marked as a subagent's.
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

        let (tool_calls_efficient, row) = rule_scores::efficiency(&tally);
        // Each score is a sum of its evidence, so that a reader can add it up again.
        let indicators = rule_scores::indicators(&tally, &self.weights.completion, &shown);
        let task_completed = sum(&indicators) > 0.0;
        let points = rule_scores::quality(&tally, &self.weights.quality, &shown);
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
            had_repeated_errors: rule_scores::had_repeated_errors(&tally),
            had_infinite_loop_risk: rule_scores::had_infinite_loop_risk(&tally),
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
        // The sort is stable and the map is ordered: equal counts always come in the same order.
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
    // The sort is stable, so classes with equal counts keep their order.
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
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::grade::ErrorClass;
    use selftest_sessions::{EventRole, ToolCall, ToolOutcome, ToolResult};

    /// A session under construction.
    struct Script {
        head: SessionHead,
        events: Vec<Event<'static>>,
    }

    fn session() -> Script {
        let time = |text: &str| Some(text.parse().unwrap());
        let head = SessionHead {
            id: "s1".to_owned(),
            agent: "test".to_owned(),
            models: vec!["m1".to_owned(), "m2".to_owned()],
            start: time("2026-11-16T10:00:00Z"),
            end: time("2026-11-16T10:01:30Z"),
            ..SessionHead::default()
        };
        Script { head, events: Vec::new() }
    }

    impl Script {
        fn event(mut self, event: Event<'static>) -> Self {
            let number = self.events.len() as u64;
            self.events.push(Event { number, ..event });
            self
        }

        fn say(self, role: EventRole, origin: EventOrigin, text: &str) -> Self {
            let text = text.to_owned().into();
            self.event(Event { role, origin, text, ..Event::default() })
        }

        fn asks(self, text: &str) -> Self {
            self.say(EventRole::User, EventOrigin::Human, text)
        }

        fn answers(self, text: &str) -> Self {
            self.say(EventRole::Assistant, EventOrigin::Agent, text)
        }

        fn calls(self, tool: &str, outcome: ToolOutcome, output: &str) -> Self {
            let name: selftest_sessions::Text<'static> = tool.to_owned().into();
            let call = ToolCall { id: "c".into(), name: name.clone(), ..ToolCall::default() };
            let text = output.to_owned().into();
            let result = ToolResult { tool: name, text, outcome, ..ToolResult::default() };
            let (role, origin) = (EventRole::Assistant, EventOrigin::Agent);
            self.event(Event { role, origin, calls: vec![call], ..Event::default() }).event(Event {
                role: EventRole::Tool,
                origin,
                results: vec![result],
                ..Event::default()
            })
        }

        /// A tool's result, in a file that does not hold the call.
        fn gives(self, tool: &str, outcome: ToolOutcome) -> Self {
            let (tool, role) = (tool.to_owned().into(), EventRole::Tool);
            let result = ToolResult { tool, outcome, ..ToolResult::default() };
            self.event(Event { role, results: vec![result], ..Event::default() })
        }

        fn grading(self) -> GradingResult {
            let context = GradingContext {
                session_file: "/s/s1.jsonl",
                graded_at: "2026-11-18T00:00:00Z".parse().unwrap(),
            };
            let redactor = Redactor::default();
            let mut heuristic = RuleGrader::new(context, GradeWeights::default(), &redactor);
            self.events.into_iter().for_each(|event| heuristic.event(event));
            heuristic.end(self.head);
            heuristic.into_gradings().remove(0)
        }

        fn grade(self) -> GradeRecord {
            match self.grading() {
                GradingResult::Graded(record) => *record,
                GradingResult::NotGradable { reason, .. } => panic!("not gradable: {reason}"),
            }
        }
    }

    fn evidence(record: &GradeRecord, point: GradePoint) -> &GradeEvidence {
        record.details.evidence.iter().find(|evidence| evidence.point == point).unwrap()
    }

    #[test]
    fn a_plain_success() {
        let record = session()
            .asks("Please fix the login bug")
            .calls("bash", ToolOutcome::Ok, "fine")
            .answers("All done: see https://example.org/1 for details.")
            .grade();
        assert!(record.task_completed && record.errors_recovered);
        assert_eq!(record.tool_calls_efficient.get(), 5);
        assert_eq!(record.response_quality.get(), 4);
        assert_eq!((record.total_api_calls, record.total_errors), (2, 0));
        assert_eq!(record.model.as_deref(), Some("m1"));
        assert_eq!(record.duration_seconds, Some(90.0));
        assert_eq!(record.task_summary.as_deref(), Some("Please fix the login bug"));
        assert_eq!(record.details.task_type, TaskType::Debugging);
        assert_eq!(record.started_at().unwrap().to_string(), "2026-11-16T10:00:00Z");
        let done = evidence(&record, GradePoint::SaysDone);
        assert_eq!((done.event, done.worth), (Some(3), 1.0));
        assert!(done.words.starts_with("All done"));
        assert_eq!(
            evidence(&record, GradePoint::Efficiency).words,
            "1 tool calls, 0 errors in 2 model calls"
        );
    }

    #[test]
    fn errors_are_counted_classed_and_traced() {
        let record = session()
            .asks("run it")
            .calls("bash", ToolOutcome::Failed, "cat: x: No such file or directory")
            .calls("bash", ToolOutcome::Failed, "cat: y: No such file or directory")
            .calls("fetch", ToolOutcome::Failed, "Connection refused, password=hunter2secret99")
            .calls("bash", ToolOutcome::Rejected, "the user said no")
            .calls("bash", ToolOutcome::Ok, "fine")
            .answers("I was unable to do the whole of it.")
            .grade();
        assert_eq!((record.total_errors, record.total_api_calls), (3, 6));
        assert_eq!(record.error_types, [ErrorClass::FileNotFound, ErrorClass::NetworkError]);
        assert_eq!(record.tools_with_errors, ["bash", "fetch"]);
        assert!(record.had_repeated_errors && !record.had_infinite_loop_risk);
        assert!(record.errors_recovered);
        assert!(!record.task_completed);
        assert_eq!(record.tool_calls_efficient.get(), 1);
        assert_eq!(record.response_quality.get(), 2);
        let first = &record.details.errors[0];
        assert_eq!((first.count, first.first_event, first.tool.as_str()), (2, 2, "bash"));
        assert!(!record.details.errors[1].example.contains("hunter2"));
        assert_eq!(record.details.tools["bash"].calls, 4);
        assert_eq!(record.details.rejected_calls, 1);
        assert_eq!(evidence(&record, GradePoint::Recovery).event, Some(10));
    }

    #[test]
    fn every_class_is_named_however_many_kinds_of_errors_there_are() {
        const NAMES: [&str; 8] = ["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple"];
        let mut script = session().asks("run it");
        for (one, other) in NAMES.iter().flat_map(|one| NAMES.map(|other| (one, other))) {
            for _ in 0..2 {
                script =
                    script.calls(&format!("{one}-{other}"), ToolOutcome::Failed, "No such file: x");
            }
        }
        let record =
            script.calls("fetch", ToolOutcome::Failed, "Connection refused").answers("No.").grade();
        assert_eq!((record.total_errors, record.details.errors.len()), (129, MAX_GROUPS));
        let found: BTreeSet<ErrorClass> = record.error_types.iter().copied().collect();
        assert!(found.contains(&ErrorClass::NetworkError), "{found:?}");
    }

    #[test]
    fn a_result_without_its_call_is_a_call_of_its_tool() {
        let record = session()
            .asks("run it")
            .gives("terminal", ToolOutcome::Failed)
            .gives("terminal", ToolOutcome::Ok)
            .calls("bash", ToolOutcome::Ok, "fine")
            .calls("terminal", ToolOutcome::Ok, "fine")
            .calls("bash", ToolOutcome::Pending, "")
            .answers("That is how it is, and no more can be said.")
            .grade();
        let calls = |tool| record.details.tools[tool].calls;
        assert_eq!((calls("terminal"), calls("bash")), (3, 2));
        // The grade itself is by the calls that the file holds.
        assert_eq!((record.details.tool_calls, record.details.calls_of_tools()), (3, 5));
    }

    #[test]
    fn the_example_of_an_error_is_the_exception_not_the_traceback() {
        let words = "Exit code 1\nTraceback (most recent call last):\n  File \"a.py\", line 5\n    \
                 d['id']\nKeyError: 'id', password=hunter2secret99";
        let script = session().asks("run it").calls("bash", ToolOutcome::Failed, words);
        let record = script.answers("That is how it is, and no more can be said.").grade();
        assert_eq!(record.details.errors[0].example, "KeyError: 'id', password=[redacted]");
    }

    #[test]
    fn an_error_at_the_end_is_not_recovered_from() {
        let record = session()
            .asks("run it")
            .calls("bash", ToolOutcome::Ok, "fine")
            .calls("bash", ToolOutcome::Failed, "Permission denied")
            .answers("That is how it is, and no more can be said.")
            .grade();
        assert!(!record.errors_recovered);
        assert_eq!(evidence(&record, GradePoint::Recovery).event, Some(4));
    }

    #[test]
    fn only_the_sessions_own_agent_counts() {
        let record = session()
            .say(EventRole::User, EventOrigin::Harness, "<environment>deploy</environment>")
            .asks("a poem, please")
            .say(EventRole::User, EventOrigin::Subagent, "fix everything")
            .say(EventRole::Assistant, EventOrigin::Subagent, "sub answer, failed")
            .answers("Roses are red, violets are blue.")
            .grade();
        assert_eq!(record.total_api_calls, 1);
        assert_eq!(record.task_summary.as_deref(), Some("a poem, please"));
        assert_eq!(record.details.task_type, TaskType::General);

        let alone = session()
            .say(EventRole::User, EventOrigin::Subagent, "fix everything")
            .say(EventRole::Assistant, EventOrigin::Subagent, "It is all finished by now.")
            .grade();
        assert!(alone.task_completed);
        let own_file = session()
            .say(EventRole::User, EventOrigin::Subagent, "fix everything")
            .answers("It is all finished by now.")
            .grade();
        assert_eq!(own_file.details.task_type, TaskType::Debugging);
    }

    #[test]
    fn continued_calls_are_one_call_and_one_response() {
        let text = |text: &'static str, continues| Event {
            role: EventRole::Assistant,
            origin: EventOrigin::Agent,
            text: text.into(),
            continues,
            ..Event::default()
        };
        let record = session()
            .asks("go")
            .event(text("The first half", false))
            .event(text("is done", true))
            .grade();
        assert_eq!(record.total_api_calls, 1);
        let done = evidence(&record, GradePoint::SaysDone);
        assert!(done.words.contains("is done"));
        assert_eq!(done.event, Some(2), "the message that says it");
        let record = session()
            .asks("go")
            .event(text("Here is the first half, which says so in some words", false))
            .event(text("and this is the second: see https://example.org", true))
            .event(text("```\ncode\n```", true))
            .grade();
        assert_eq!(evidence(&record, GradePoint::NamesOutput).event, Some(1));
        assert_eq!(evidence(&record, GradePoint::HasLinks).event, Some(2));
        assert_eq!(evidence(&record, GradePoint::HasCode).event, Some(3));
    }

    #[test]
    fn asking_back_is_noted_when_a_person_answers() {
        let record = session()
            .asks("make it better")
            .answers("I can do that.\nWhich file do you mean?")
            .asks("main.rs")
            .answers("Now it is better than before.")
            .grade();
        assert!(record.had_user_clarification);
        let asked = evidence(&record, GradePoint::Clarification);
        assert_eq!((asked.event, asked.words.as_str()), (Some(1), "Which file do you mean?"));

        let at_end = session().asks("make it better").answers("Anything else?").grade();
        assert!(!at_end.had_user_clarification);
        let tool = session()
            .asks("go")
            .calls("AskUserQuestion", ToolOutcome::Ok, "yes")
            .answers("ok")
            .grade();
        assert!(tool.had_user_clarification);
    }

    #[test]
    fn the_end_decides_not_the_middle() {
        let record = session()
            .asks("go")
            .answers("Step one is done, on we go to the next.")
            .calls("bash", ToolOutcome::Pending, "")
            .grade();
        assert_eq!(record.details.pending_calls, 1);
        assert!(!record.task_completed);
        assert_eq!(evidence(&record, GradePoint::ShortResponse).event, None);
    }

    #[test]
    fn an_empty_session_is_not_gradable() {
        let reason = |script: Script| match script.grading() {
            GradingResult::NotGradable { reason, .. } => reason,
            GradingResult::Graded(_) => "graded",
        };
        assert_eq!(reason(session()), "no user request");
        assert_eq!(reason(session().answers("hello")), "no user request");
        assert_eq!(reason(session().asks("hello")), "no answer of the agent");
        assert_eq!(reason(session().asks("hello").answers("")), "no answer of the agent");
        let blank = session().asks("hello").answers(" \n").asks("are you there?").answers("");
        assert_eq!(reason(blank), "no answer of the agent");
        assert_eq!(reason(session().asks("hello").answers("hi")), "graded");
        assert_eq!(reason(session().asks("hello").answers("hi").answers("")), "graded");
        assert_eq!(reason(session().asks("hello").calls("bash", ToolOutcome::Ok, "")), "graded");
    }

    #[test]
    fn an_infinite_loop_is_seen() {
        let mut script = session().asks("loop");
        for _ in 0..60 {
            script = script.calls("bash", ToolOutcome::Failed, "Request timed out");
        }
        let record = script.grade();
        assert!(record.had_repeated_errors && record.had_infinite_loop_risk);
        assert_eq!(record.details.longest_error_run, 60);
        assert_eq!((record.tool_calls_efficient.get(), record.response_quality.get()), (1, 1));
        assert!(!record.task_completed && !record.errors_recovered);

        let mut long = session().asks("long");
        for _ in 0..51 {
            long = long.calls("bash", ToolOutcome::Ok, "fine");
        }
        assert!(long.grade().had_infinite_loop_risk);
    }

    #[test]
    fn a_tool_name_for_each_call_fills_no_memory() {
        let mut script = session().asks("go");
        for number in 0..700 {
            script = script.calls(&format!("tool{number}"), ToolOutcome::Ok, "");
        }
        let record = script.grade();
        assert_eq!(record.details.tools.len(), 501);
        assert_eq!(record.details.tools["(other tools)"].calls, 200);
    }

    #[test]
    fn no_cut_bares_a_secret() {
        // Near the phrase stands the value alone, and in the beginning of the link no `@`.
        let said = "I set DB_PASSWORD=correct-horse-9 for the whole of the shop, the work is done";
        let linked = format!("see https://shop:{}@shop.example/", "correct-horse-".repeat(8));
        for text in [said, &linked] {
            let record = session().asks("set it").answers(text).grade();
            let words: Vec<_> = record.details.evidence.iter().map(|one| &*one.words).collect();
            assert!(words.iter().all(|words| !words.contains("horse")), "{words:?}");
            assert!(words.iter().any(|words| words.contains("[redacted]")), "{words:?}");
        }
    }

    #[test]
    fn the_sample_triggers_most_rules() {
        let [GradingResult::Graded(grade)] = &grade_sample()[..] else { panic!("no grade") };
        assert_eq!((grade.total_errors, grade.details.corrections), (1, 1));
        assert_eq!(grade.outcome, crate::grade::TaskOutcome::Contradicted);
    }
}
